// What a run must show. A ratio is said as it is asked: how many times faster than another, or at most how many times its
// time.

const median = (rows, row, contestant) => rows.get(row)?.values[contestant]?.p50;

/** Which of ours is measured, where it is not the one on an engine. */
const named = (who) => (who === 'cofferdam' ? '' : `${who}: `);

/** At least `times` times faster than another. */
const faster = (row, than, times, who = 'cofferdam') => ({
  says: `${named(who)}at least ${times}× faster than ${than}`,
  row,
  measure: (rows) => median(rows, row, than) / median(rows, row, who),
  met: (ratio) => ratio >= times,
  show: (ratio) => `${ratio.toFixed(1)}×`,
});

/** At most `times` times another's time. */
const within = (row, than, times, who = 'cofferdam') => ({
  says: `${named(who)}at most ${times}× the time of ${than}`,
  row,
  measure: (rows) => median(rows, row, who) / median(rows, row, than),
  met: (ratio) => ratio <= times,
  show: (ratio) => `${ratio.toFixed(2)}×`,
});

/** At least `times` times another's throughput. */
const throughput = (row, than, times, who = 'cofferdam') => ({
  says: `${named(who)}at least ${times}× the throughput of ${than}`,
  row,
  measure: (rows) => median(rows, row, who) / median(rows, row, than),
  met: (ratio) => ratio >= times,
  show: (ratio) => `${ratio.toFixed(2)}×`,
});

/** At most `times` times another row of the same program. */
const atMost = (row, than, times, who) => ({
  says: `${named(who)}at most ${times}× ${than}`,
  row,
  measure: (rows) => median(rows, row, who) / median(rows, than, who),
  met: (ratio) => ratio <= times,
  show: (ratio) => `${ratio.toFixed(2)}×`,
});

/** Below a limit, whatever the others do. */
const below = (row, limit, unit, statistic, who = 'cofferdam') => ({
  says: `${named(who)}below ${limit} ${unit}${statistic === 'max' ? ', the worst sample' : ''}`,
  row,
  measure: (rows) => rows.get(row)?.values[who]?.[statistic],
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

/** At least `least` results of a row are compared with what they must be, and are that. */
const holds = (row, says, least, who = 'cofferdam') => ({
  says: `${named(who)}${says}`,
  row,
  measure: (rows) => rows.get(row)?.values[who]?.right,
  met: (right) => right >= least,
  show: (right) => `${right} right`,
});

const NAMESPACES = 'namespaces';

/** Both of ours. */
const OURS = ['cofferdam', NAMESPACES];

/** As fast as on an engine, which has the same guest at the other end: no more apart than two runs of the same. */
const AS_FAST = 1.1;

/** By the row's name on the command line. */
const TARGETS = {
  exec: [faster('exec', 'dockerode', 40), within('exec', 'host', 1), within('exec', 'cofferdam', AS_FAST, NAMESPACES)],
  'at-once': [throughput('at-once-64-rate', 'dockerode', 40)],
  files: [
    faster('write-1k', 'dockerode', 100),
    faster('read-1k', 'dockerode', 100),
    faster('write-1m', 'dockerode', 5),
    faster('read-1m', 'dockerode', 5),
    within('write-100m', 'dockerode', 1.1),
    within('read-100m', 'dockerode', 1.1),
    ...['1k', '1m', '100m'].flatMap((size) => [
      within(`write-${size}`, 'cofferdam', AS_FAST, NAMESPACES),
      within(`read-${size}`, 'cofferdam', AS_FAST, NAMESPACES),
    ]),
  ],
  'cold-open': [
    within('cold-open', 'dockerode', 1.15),
    below('cold-open', 20, 'ms', 'p50', NAMESPACES),
    faster('cold-open', 'dockerode', 15, NAMESPACES),
  ],
  'warm-open': ['warm-open', 'warm-open-isolated'].flatMap((row) => [
    faster(row, 'dockerode', 40),
    below(row, 2, 'ms', 'p50', NAMESPACES),
    ...OURS.map((who) => atMost(row, 'warm-open-cold', 1, who)),
  ]),
  'pool-pace': OURS.map((who) => atMost('pool-pace', 'pool-pace-cold', 1, who)),
  run: [faster('run', 'dockerode', 20)],
  resume: [below('resume', 1, 'ms', 'p50'), within('resume-elsewhere', 'dockerode', 1.5)],
  'keys-at-once': [within('keys-at-once', 'dockerode', 1.3)],
  burst: OURS.flatMap((who) => [
    holds('burst', 'all 100 answer', 100, who),
    atMost('burst-median', 'burst', 0.55, who),
    atMost('burst-first', 'burst-cold', 3, who),
  ]),
  'ordinary-user': [faster('ordinary-write-1k', 'dockerode', 100)],
  terminal: [below('terminal', 2, 'ms', 'p50')],
  stream: [
    throughput('stream-rate', 'docker-cli', 1),
    below('stream-memory', 64, 'MiB', 'max'),
    throughput('stream-rate', 'cofferdam', 0.9, NAMESPACES),
  ],
  crowd: [holds('crowd', 'all 100 answer', 100, NAMESPACES), below('crowd-memory', 5, 'MB', 'max', NAMESPACES)],
  trees: [
    within('upload-big', 'docker-cli', 1),
    within('download-big', 'docker-cli', 1),
    faster('upload-small', 'docker-cli', 3),
    faster('download-small', 'docker-cli', 3),
    holds('trees', 'identical by content, mode, time and target', 10_000),
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
  together: [holds('together', 'all finish, byte for byte', 202)],
  images: [holds('images', 'Debian-class, Alpine-class and empty', 3)],
  'kill-tree': [below('kill-tree', 3000, 'ms', 'max'), still('kill-tree-left')],
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
