/** The commands of a script as a shell splits them: enough of its grammar for what pages show. */

const WORD = /(?:[^\s'"\\|&;<>()#]|\\[\s\S]|'[^']*'|"(?:[^"\\]|\\[\s\S])*"|(?<=\S)#)+/y;

/** Each simple command as its words. Comments, redirections and what joins commands are gone. */
export function commandsIn(script: string): string[][] {
  const commands: string[][] = [[]];
  let at = 0;
  let isTarget = false;
  while (at < script.length) {
    WORD.lastIndex = at;
    const word = WORD.exec(script)?.[0];
    if (word !== undefined && !/^\\\n/.test(word)) {
      at += word.length;
      // After `>` stands a file, and before it perhaps the number of a descriptor.
      if (isTarget) isTarget = false;
      else if (!(/^\d$/.test(word) && /[<>]/.test(script[at] ?? ''))) commands.at(-1)?.push(unquoted(word));
      continue;
    }
    const mark = script[at] ?? '';
    if (mark === '\\') at += 2;
    else if (mark === '#') at = (script.indexOf('\n', at) + 1 || script.length + 1) - 1;
    else {
      if ('<>'.includes(mark)) isTarget = true;
      if ('|;()\n'.includes(mark) || (mark === '&' && !isTarget)) commands.push([]);
      at += 1;
    }
  }
  return commands.filter((words) => words.length > 0);
}

function unquoted(word: string): string {
  return word.replaceAll(
    /'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])/g,
    (_, single, double, escaped) =>
      single ?? (double === undefined ? (escaped === '\n' ? '' : escaped) : double.replaceAll(/\\(["\\$`])/g, '$1')),
  );
}

const BEFORE_IT = /^(npx|sudo|time|exec|env|-y|--yes|-E|\w+=.*)$/;

/** What is given to `cofferdam`, for each time that a script calls it. */
export function callsOfCofferdam(script: string): string[][] {
  // A transcript shows what is typed after a prompt, and answers beside it.
  const typed = script.split('\n').filter((line) => line.startsWith('$ '));
  const source = typed.length > 0 ? typed.map((line) => line.slice(2)).join('\n') : script;
  return commandsIn(source).flatMap((words) => {
    const first = words.findIndex((word) => !BEFORE_IT.test(word));
    return /^cofferdam(@.+)?$/.test(words[first] ?? '') ? [words.slice(first + 1)] : [];
  });
}
