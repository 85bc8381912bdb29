// docs/api/README.md: every public name, by entry point, with what it is in a sentence.

const KINDS = [
  ['Classes', 128],
  ['Functions', 64],
  ['Values', 32],
  ['Types', 256 | 2097152],
];

export function indexPage(project) {
  return [
    '# API reference',
    'Made from the types by `npm run docs:api`; edit the doc comments in `ts/`, not these pages.',
    ...project.children.flatMap(ofModule),
    '',
  ]
    .join('\n\n')
    .replace(/\n+$/, '\n');
}

function ofModule(module) {
  const page = `${module.name.replace(/^cofferdam\//, '')}.md`;
  const lists = KINDS.flatMap(([title, kinds]) => {
    const items = module.children.filter(({ kind }) => kind & kinds);
    const links = items.map((item) => `[\`${item.name}\`](${place(item, module, page)})`);
    return links.length > 0 ? [`${title}: ${links.join(', ')}`] : [];
  });
  return [`## [${module.name}](${page})`, firstParagraph(module.comment), ...lists];
}

/** A class has a page of its own; two names that differ in case alone have anchors that are counted. */
function place(item, module, page) {
  if (item.kind === 128 || item.name === 'Files') return `${item.name}.md`;
  const slug = item.name.toLowerCase();
  const alike = module.children.filter(({ name }) => name.toLowerCase() === slug).indexOf(item);
  return `${page}#${slug}${alike > 0 ? `-${alike}` : ''}`;
}

function firstParagraph(comment) {
  return comment.summary
    .map(({ text }) => text)
    .join('')
    .split('\n\n')[0];
}
