// What is public and says too little of itself, in TypeDoc's model: every export, method and property needs a doc
// comment; every class, function and method shows how it is used.

const KIND = { function: 64, class: 128, method: 2048 };

/** Classes that are exported as types only, because nobody makes one. */
const CLASSES = new Set(['Files']);

/** Shapes of other people's protocols, whose fields are documented there. */
const FOREIGN = /^(Anthropic|OpenAI)/;

/** Names that a reader knows without being told. */
const SELF_EVIDENT = new Set(['[asyncDispose]', '[asyncIterator]', 'constructor']);

export function undocumented(project) {
  return project.children.flatMap((module) => [
    ...(hasSummary(module.comment) ? [] : [`${module.name}: no comment of its own`]),
    ...module.children.flatMap((item) => ofExport(item, `${module.name}: ${item.name}`)),
  ]);
}

function ofExport(item, name) {
  // A name for something that is documented elsewhere.
  if (item.target !== undefined) return [];
  const isClass = item.kind === KIND.class || CLASSES.has(item.name);
  const found = lacking(item, name, isClass || item.kind === KIND.function);
  if (FOREIGN.test(item.name)) return found;
  const members = [...(item.children ?? []), ...(item.type?.declaration?.children ?? [])];
  for (const member of members) {
    if (SELF_EVIDENT.has(member.name) || member.flags?.isExternal || member.inheritedFrom) continue;
    found.push(...lacking(member, `${name}.${member.name}`, isClass && member.kind === KIND.method));
  }
  return found;
}

function lacking(item, name, wantsExample) {
  const signatures = [...(item.signatures ?? []), ...(item.getSignature ? [item.getSignature] : [])];
  const comments = [item.comment, ...signatures.map(({ comment }) => comment)];
  const comment = comments.find(hasSummary) ?? item.type?.declaration?.signatures?.[0]?.comment;
  if (!hasSummary(comment)) return [`${name}: no doc comment`];
  const hasExample = comments.some((each) => each?.blockTags?.some(({ tag }) => tag === '@example'));
  return wantsExample && !hasExample ? [`${name}: no example`] : [];
}

function hasSummary(comment) {
  return Boolean(comment?.summary?.length || comment?.blockTags?.some(({ tag }) => tag === '@ts-ignore'));
}
