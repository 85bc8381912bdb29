// Links within the pages, mended: the plugin counts anchors of names that differ in case alone (`sandboxSession()`,
// `SandboxSession`) otherwise than GitHub does, so links are made again by what GitHub makes of the headings.

const LINK = /\[`([^`\]]+)`\]\(([\w.-]*)#(?!property-)([\w-]+)\)/g;

/** @param {Map<string, string>} pages */
export function mendAnchors(pages) {
  const anchors = new Map([...pages].map(([name, text]) => [name, anchorsOf(text)]));
  return new Map(
    [...pages].map(([name, text]) => [
      name,
      text.replace(LINK, (link, words, page) => {
        const found = anchors.get(page || name)?.get(words);
        return found ? `[\`${words}\`](${page}#${found})` : link;
      }),
    ]),
  );
}

/** From the name in a heading to its anchor on GitHub; of two headings of one name, the first. */
function anchorsOf(text) {
  const counts = new Map();
  const anchors = new Map();
  for (const [, heading] of text.matchAll(/^#+ (.+)$/gm)) {
    const name = heading.replace(/\\/g, '').replace(/\(\)\??$/, '');
    const slug = name
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-');
    const count = counts.get(slug) ?? 0;
    counts.set(slug, count + 1);
    if (!anchors.has(name)) anchors.set(name, count === 0 ? slug : `${slug}-${count}`);
  }
  return anchors;
}
