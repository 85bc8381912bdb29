// What a run must show. A ratio is said as it is asked: how many times faster than another, or at most how many times its
// time.

const median = (rows, row, contestant) => rows.get(row)?.values[contestant]?.p50;

/** At least `times` times faster than another. */
const faster = (row, than, times) => ({
  says: `at least ${times}× faster than ${than}`,
  row,
  measure: (rows) => median(rows, row, than) / median(rows, row, 'cofferdam'),
  met: (ratio) => ratio >= times,
  show: (ratio) => `${ratio.toFixed(1)}×`,
});

/** At most `times` times another's time. */
const within = (row, than, times) => ({
  says: `at most ${times}× the time of ${than}`,
  row,
  measure: (rows) => median(rows, row, 'cofferdam') / median(rows, row, than),
  met: (ratio) => ratio <= times,
  show: (ratio) => `${ratio.toFixed(2)}×`,
});

/** At least `times` times another's throughput. */
const throughput = (row, than, times) => ({
  says: `at least ${times}× the throughput of ${than}`,
  row,
  measure: (rows) => median(rows, row, 'cofferdam') / median(rows, row, than),
  met: (ratio) => ratio >= times,
  show: (ratio) => `${ratio.toFixed(2)}×`,
});

/** Below a limit, whatever the others do. */
const below = (row, limit, unit, statistic) => ({
  says: `below ${limit} ${unit}${statistic === 'max' ? ', the worst sample' : ''}`,
  row,
  measure: (rows) => rows.get(row)?.values.cofferdam?.[statistic],
  met: (value) => value < limit,
  show: (value) => `${value.toFixed(2)} ${unit}`,
});

/** A count that stays what it was. */
const still = (row) => ({
  says: 'does not grow',
  row,
  measure: (rows) => median(rows, row, 'cofferdam'),
  met: (more) => more <= 0,
  show: (more) => `${more} more`,
});

/** Slow calls at most `times` slower than those of another row of ours. */
const slowed = (row, than, times) => ({
  says: `p95 below ${times}× that of ${than}`,
  row,
  measure: (rows) => rows.get(row)?.values.cofferdam.p95 / rows.get(than)?.values.cofferdam.p95,
  met: (ratio) => ratio < times,
  show: (ratio) => `${ratio.toFixed(2)}×`,
});

/** A row that fails unless all that it does is right. */
const holds = (row, says) => ({
  says,
  row,
  measure: (rows) => median(rows, row, 'cofferdam'),
  met: () => true,
  show: (ms) => `in ${Math.round(ms)} ms`,
});

/** By the row's name on the command line. */
const TARGETS = {
  exec: [faster('exec', 'dockerode', 40), within('exec', 'host', 1)],
  'at-once': [throughput('at-once-64-rate', 'dockerode', 40)],
  files: [
    faster('write-1k', 'dockerode', 100),
    faster('read-1k', 'dockerode', 100),
    faster('write-1m', 'dockerode', 5),
    faster('read-1m', 'dockerode', 5),
    within('write-100m', 'dockerode', 1.1),
    within('read-100m', 'dockerode', 1.1),
  ],
  'cold-open': [within('cold-open', 'dockerode', 1.15)],
  'warm-open': [faster('warm-open', 'dockerode', 40), faster('warm-open-isolated', 'dockerode', 40)],
  run: [faster('run', 'dockerode', 20)],
  resume: [below('resume', 1, 'ms', 'p50'), within('resume-elsewhere', 'dockerode', 1.5)],
  'keys-at-once': [within('keys-at-once', 'dockerode', 1.3)],
  terminal: [below('terminal', 2, 'ms', 'p50')],
  stream: [throughput('stream-rate', 'docker-cli', 1), below('stream-memory', 64, 'MiB', 'max')],
  trees: [
    within('upload-big', 'docker-cli', 1),
    within('download-big', 'docker-cli', 1),
    faster('upload-small', 'docker-cli', 3),
    faster('download-small', 'docker-cli', 3),
    holds('trees', 'identical by content, mode, time and target'),
    below('trees-memory', 64, 'MiB', 'max'),
  ],
  staging: [below('staging-memory', 64, 'MiB', 'max')],
  load: [below('load', 30, 'ms', 'p50')],
  guest: [below('guest-size', 3, 'MB', 'max'), below('guest-memory', 3, 'MB', 'max')],
  'idle-sessions': [below('idle-memory', 100, 'KB', 'max'), below('idle-cpu', 0.5, '%', 'max')],
  'many-commands': [
    below('many-memory', 5, 'MB', 'max'),
    below('many-guest-memory', 1, 'MB', 'max'),
    still('many-descriptors'),
    still('many-guest-descriptors'),
    still('many-guest-processes'),
  ],
  backpressure: ['stopped', 'unread'].flatMap((reader) => [
    below(`${reader}-memory`, 16, 'MB', 'max'),
    below(`${reader}-guest-memory`, 4, 'MB', 'max'),
    slowed(`${reader}-exec`, `${reader}-quiet`, 5),
  ]),
  together: [holds('together', 'all finish, byte for byte')],
  images: [holds('images', 'Debian-class, Alpine-class and empty')],
  'kill-tree': [below('kill-tree', 3000, 'ms', 'max'), holds('kill-tree', 'nothing of the tree is left')],
};

/**
 * @param {import('./rows/index.mjs').Row[]} measured
 * @param {{ name: string }[]} failures rows that broke
 * @returns {{ row: string, says: string, value: number | null, shows: string, verdict: Verdict }[]}
 * @typedef {'PASS' | 'FAIL' | 'not measured'} Verdict
 */
export function judge(measured, failures) {
  const rows = new Map(measured.map((row) => [row.id, row]));
  return Object.entries(TARGETS).flatMap(([name, targets]) => {
    const broke = failures.some((failure) => failure.name === name);
    return targets.map(({ says, row, measure, met, show }) => {
      const value = measure(rows);
      if (Number.isFinite(value)) {
        return { row, says, value, shows: show(value), verdict: met(value) ? 'PASS' : 'FAIL' };
      }
      return { row, says, value: null, shows: broke ? 'broke' : '', verdict: broke ? 'FAIL' : 'not measured' };
    });
  });
}
