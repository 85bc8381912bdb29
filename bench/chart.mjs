// The chart of a run for the README: horizontal bars on a logarithmic scale, for light and dark pages.

import { LABELS } from './contestants/index.mjs';
import { number } from './report.mjs';

const SHOWN = ['exec', 'echo', 'write-1k', 'read-1k', 'cold-open'];

const WIDTH = 840;
const LEFT = 168;
const RIGHT = 96;
const TOP = 92;
const BAR = 15;
const BAR_GAP = 3;
const GROUP_GAP = 20;
const PLOT = WIDTH - LEFT - RIGHT;

const STYLE = `
    text { font: 12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #57606a }
    .page { fill: #ffffff; stroke: #d0d7de }
    .title { font-size: 17px; font-weight: 600; fill: #1f2328 }
    .group { font-weight: 600; fill: #1f2328 }
    .value { font-size: 11px; fill: #57606a }
    .ours { font-weight: 700; fill: #1f2328 }
    .grid { stroke: #eaeef2 }
    .cofferdam { fill: #0a7ea4 }
    .namespaces { fill: #57b3d0 }
    .dockerode { fill: #8c959f }
    .docker-cli { fill: #c2c8cf }
    .host { fill: none; stroke: #8c959f; stroke-dasharray: 3 2 }
    @media (prefers-color-scheme: dark) {
      text { fill: #9198a1 }
      .page { fill: #0d1117; stroke: #30363d }
      .title, .group, .ours { fill: #e6edf3 }
      .value { fill: #9198a1 }
      .value.ours { fill: #e6edf3 }
      .grid { stroke: #21262d }
      .cofferdam { fill: #39c5ee }
      .namespaces { fill: #1f7f9c }
      .dockerode { fill: #6e7681 }
      .docker-cli { fill: #444c56 }
      .host { stroke: #8b949e }
    }`;

/**
 * @param {import('./rows/index.mjs').Row[]} rows
 * @param {Awaited<ReturnType<import('./machine.mjs').machine>>} facts
 * @returns {string | null} nothing when no row of the chart was measured
 */
export function chart(rows, facts) {
  const groups = SHOWN.flatMap((id) => rows.filter((row) => row.id === id));
  if (groups.length === 0) return null;
  const scale = logScale(groups.flatMap(({ values }) => Object.values(values).map(({ p50 }) => p50)));

  let y = TOP;
  const parts = [];
  for (const { title, values } of groups) {
    const bars = Object.keys(LABELS).filter((id) => values[id]);
    const height = bars.length * (BAR + BAR_GAP) - BAR_GAP;
    parts.push(text(LEFT - 14, y + height / 2 + 4, title, 'group', 'end'));
    for (const id of bars) {
      parts.push(bar(id, y, scale.at(values[id].p50), values[id].p50));
      y += BAR + BAR_GAP;
    }
    y += GROUP_GAP - BAR_GAP;
  }
  const bottom = y - GROUP_GAP + 10;
  const height = bottom + 56;
  const ids = Object.keys(LABELS).filter((id) => groups.some(({ values }) => values[id]));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
  <title>${escaped(describe(groups))}</title>
  <style>${STYLE}
  </style>
  <rect class="page" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
  ${text(24, 34, 'How long one call takes', 'title')}
  ${text(24, 54, 'median in milliseconds, logarithmic scale: each grid line is ten times the one before; shorter is better')}
  ${legend(ids)}
  ${axis(scale, bottom)}
  ${parts.join('\n  ')}
  ${text(24, height - 14, footer(facts))}
</svg>
`;
}

/** Whole decades, the first of them below the smallest value, so that every bar has a length. */
function logScale(values) {
  const low = Math.floor(Math.log10(Math.min(...values)) - 0.05);
  const high = Math.ceil(Math.log10(Math.max(...values)) + 0.05);
  const at = (value) => ((Math.log10(value) - low) / (high - low)) * PLOT;
  return { at, ticks: Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index)) };
}

function axis({ at, ticks }, bottom) {
  return ticks
    .map((tick) => {
      const x = round(LEFT + at(tick));
      const line = `<line class="grid" x1="${x}" x2="${x}" y1="${TOP - 8}" y2="${bottom - 4}"/>`;
      return `${line}${text(x, bottom + 12, `${tick.toLocaleString('en-US')} ms`, '', 'middle')}`;
    })
    .join('\n  ');
}

function bar(id, y, length, value) {
  const inset = id === 'host' ? 0.5 : 0;
  const shape = `<rect class="${id}" x="${LEFT + inset}" y="${y + inset}" width="${round(length - 2 * inset)}" height="${BAR - 2 * inset}" rx="2"/>`;
  const kind = id === 'cofferdam' ? 'value ours' : 'value';
  return `${shape}${text(round(LEFT + length + 6), y + BAR - 3.5, `${number(value)} ms`, kind)}`;
}

function legend(ids) {
  let x = 24;
  return ids
    .map((id) => {
      const inset = id === 'host' ? 0.5 : 0;
      const swatch = `<rect class="${id}" x="${x + inset}" y="${65 + inset}" width="${12 - 2 * inset}" height="${12 - 2 * inset}" rx="2"/>`;
      const label = text(x + 18, 75, LABELS[id], id === 'cofferdam' ? 'ours' : '');
      x += 40 + LABELS[id].length * 7;
      return swatch + label;
    })
    .join('\n  ');
}

function footer({ engine, kernel, cores, node }) {
  return `ubuntu:22.04 on Docker ${engine}, ${cores} cores, ${kernel}, Node ${node}. npm run bench`;
}

function describe(groups) {
  const line = ({ title, values }) =>
    `${title}: ${Object.entries(values)
      .map(([id, { p50 }]) => `${LABELS[id]} ${number(p50)} ms`)
      .join(', ')}`;
  return groups.map(line).join('; ');
}

function text(x, y, content, kind = '', anchor = 'start') {
  const attributes = `${kind && ` class="${kind}"`}${anchor === 'start' ? '' : ` text-anchor="${anchor}"`}`;
  return `<text x="${x}" y="${y}"${attributes}>${escaped(content)}</text>`;
}

function escaped(content) {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function round(value) {
  return Math.round(value * 10) / 10;
}
