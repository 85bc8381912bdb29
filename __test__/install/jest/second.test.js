// A module registry of its own in the same process: the addon is loaded a second time.
const { visit } = require('./visit.cjs');

test('a sandbox answers in a second test file', () => visit(require('cofferdam')));
