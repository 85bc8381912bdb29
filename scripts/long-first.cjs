// The order of jest's suites: what takes long comes first, so that no worker is left alone with it at the end. Where jest has
// run before, it knows how long each took; on a new machine it goes by the size of the files, which says little here.

const { default: Sequencer } = require('@jest/test-sequencer');

/** Longest first; a suite that is not here takes less than half a minute. */
const LONG = [
  'integration/guest-volume',
  'integration/staging-nats',
  'integration/killed-hosts',
  'exactness/output',
  'faults/bad-paths',
  'exactness/kill',
];

module.exports = class LongFirst extends Sequencer {
  sort(tests) {
    const place = ({ path }) => {
      const index = LONG.findIndex((name) => path.endsWith(`__test__/${name}.test.ts`));
      return index < 0 ? LONG.length : index;
    };
    return super.sort(tests).sort((a, b) => place(a) - place(b));
  }
};
