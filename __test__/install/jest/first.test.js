const { visit } = require('./visit.cjs');

test('a sandbox answers', () => visit(require('cofferdam')));
