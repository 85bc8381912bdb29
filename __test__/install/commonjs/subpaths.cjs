const { visitSubpaths } = require('./visit.cjs');

visitSubpaths({
  ai: require('cofferdam/ai'),
  frontmatter: require('cofferdam/frontmatter'),
  mcp: require('cofferdam/mcp'),
  testing: require('cofferdam/testing'),
  tools: require('cofferdam/tools'),
});
