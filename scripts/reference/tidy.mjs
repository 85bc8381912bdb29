// Less noise on a page than TypeDoc makes: what a reader of it does not need to see.

const NOISE = [
  // Type arguments that are defaults.
  [/`Uint8Array`\\<`ArrayBufferLike`\\>/g, '`Uint8Array`'],
  [/, `any`, `any`\\>/g, '\\>'],
  // A table of properties is seen to be one.
  [/^#+ Properties\n\n(?=\| Property)/gm, ''],
  // One table for each form that a value may have.
  [/^#+ Type Literal\n\n\\\{.*\n\n(?=\| Name)/gm, ''],
  [/^#+ Union Members\n\n(?=\| Name)/gm, 'One of these:\n\n'],
  // Fields of a field, of which nothing is said but the type that stands above them.
  [/^\| `\w+\.[\w.?]+` \|.*\| - \|( - \|)?\n/gm, ''],
];

/** @param {Map<string, string>} pages */
export function tidy(pages) {
  const tidied = ([name, text]) => [name, NOISE.reduce((page, [noise, instead]) => page.replace(noise, instead), text)];
  return new Map([...pages].map(tidied));
}
