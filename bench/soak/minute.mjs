// What a soak looked like at one minute, and what grew between two of them.

import { growth } from '../figures.mjs';

/**
 * Beyond these, a figure has grown. Descriptors and processes are exact while nobody works; memory is not: a guest keeps
 * the output of the last commands, up to 2 MB of each here, and a host has just had files of 5 MB in its hands.
 */
const LIMITS = {
  host: { residentBytes: 48_000_000, descriptors: 0 },
  guest: { residentBytes: 4_000_000, descriptors: 0, processes: 0 },
};

export function line({ minute, operations, errors, hosts, guests }) {
  const list = (figures, show) => figures.map(show).join(' ');
  return [
    `${String(minute).padStart(3)} min  ${operations} operations  ${errors} errors`,
    `hosts MB ${list(hosts, ({ residentBytes }) => megabytes(residentBytes, 0))}`,
    `fd ${list(hosts, ({ descriptors }) => descriptors)}`,
    `guests MB ${list(guests, ({ residentBytes }) => megabytes(residentBytes, 2))}`,
    `fd ${list(guests, ({ descriptors }) => descriptors)}`,
    `processes ${list(guests, ({ processes }) => processes)}`,
  ].join('  |  ');
}

/** Of those that lived at both minutes. */
export function grown(before, after) {
  return [...pairs('host', before.hosts, after.hosts), ...pairs('guest', before.guests, after.guests)].map(
    ({ kind, place, was, is }) => {
      const { id, ...rose } = growth(was, is);
      const leaks = Object.entries(LIMITS[kind]).some(([name, limit]) => rose[name] > limit);
      return { kind, place, ...rose, leaks };
    },
  );
}

function pairs(kind, before, after) {
  return after.flatMap((is, place) => {
    const was = before[place];
    return was.id === is.id ? [{ kind, place, was, is }] : [];
  });
}

function megabytes(bytes, digits) {
  return (bytes / 1e6).toFixed(digits);
}
