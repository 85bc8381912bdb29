const { visit } = require('./visit.cjs');

visit(require('cofferdam'));
