/** The examples in the doc comments of `ts/`, and what they take for granted. */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { type Fence, fencesOf, filesIn, ROOT, textOf } from './pages';

const COMMENT = /^[ \t]*\/\*\*\n(?:[ \t]*\*.*\n)+?[ \t]*\*\//gm;

/** Every block of TypeScript in a doc comment. */
export function doccommentExamples(): Fence[] {
  return filesIn('ts')
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
    .flatMap((file) => {
      const text = textOf(file);
      return [...text.matchAll(COMMENT)].flatMap(({ 0: comment, index }) => {
        const bare = comment.replaceAll(/^[ \t]*(?:\/\*\*|\*\/|\* ?)/gm, '');
        const before = text.slice(0, index).split('\n').length - 1;
        return fencesOf(file, bare).map((fence) => ({ ...fence, line: fence.line + before }));
      });
    });
}

/** Names that an example may use without a word: what every reader of it has at hand. */
const AT_HAND: Record<string, string> = {
  sandbox: `declare const sandbox: import('cofferdam').Sandbox;`,
  manager: `declare const manager: import('cofferdam').SandboxManager;`,
  runId: 'declare const runId: string;',
  agentRunId: 'declare const agentRunId: string;',
  yourAgent: `declare function yourAgent(manager: import('cofferdam').SandboxManager): Promise<void>;`,
  model: 'declare const model: any;',
  prompt: 'declare const prompt: string;',
  instructions: 'declare const instructions: string;',
  messages: `declare const messages: import('@anthropic-ai/sdk').default.MessageParam[];`,
  chat: `declare const chat: import('openai').default.ChatCompletionMessageParam[];`,
  anthropic: `declare const anthropic: import('@anthropic-ai/sdk').default;`,
  openai: `declare const openai: import('openai').default;`,
  harness: 'declare const harness: any;',
  tools: `declare const tools: import('ai').ToolSet;`,
  createReadStream: `import { createReadStream } from 'node:fs';`,
  writeFileSync: `import { writeFileSync } from 'node:fs';`,
  readFile: `import { readFile } from 'node:fs/promises';`,
  generateText: `import { generateText } from 'ai';`,
  ToolLoopAgent: `import { ToolLoopAgent } from 'ai';`,
  HarnessAgent: `import { HarnessAgent } from '@ai-sdk/harness/agent';`,
  genkit: `import { genkit } from 'genkit';`,
};

/** Every name that the package exports, with where from. */
const exported: ReadonlyMap<string, string> = new Map(
  ['', ...readdirSync(path.join(ROOT, 'ts'))].flatMap((folder) => {
    const file = path.posix.join('ts', folder, 'index.ts');
    if (!filesIn('ts').includes(file)) return [];
    const from = path.posix.join('cofferdam', folder);
    return namesIn(textOf(file)).map((name) => [name, from] as const);
  }),
);

export function namesIn(text: string): string[] {
  const listed = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, list]) =>
    (list as string).split(','),
  );
  const names = listed.map((name) =>
    name
      .trim()
      .replace(/^type /, '')
      .replace(/^.* as /, ''),
  );
  const declared = [...text.matchAll(/^export (?:async )?(?:function|const|class|interface|type) (\w+)/gm)];
  return [...names.filter(Boolean), ...declared.map((match) => match[1] as string)];
}

/** An example as a module: its imports, what it takes for granted, and the rest of it in a block, where it may say it anew. */
export function withPrelude(code: string): { source: string; before: number } {
  const lines = code.split('\n');
  const imports = lines.filter((line) => /^import .* from /.test(line));
  // Blank in the body, so that lines stay where they are.
  const body = lines.map((line) => (imports.includes(line) ? '' : line)).join('\n');
  const uses = (name: string) => new RegExp(`(?<![.\\w'])${name}\\b`).test(body);
  const isImported = (name: string) => imports.some((line) => new RegExp(`\\b${name}\\b`).test(line));
  const wanted = (name: string) => uses(name) && !isImported(name);
  const prelude = [
    ...imports,
    ...Object.keys(AT_HAND)
      .filter(wanted)
      .map((name) => AT_HAND[name]),
    ...[...exported].filter(([name]) => wanted(name)).map(([name, from]) => `import { ${name} } from '${from}';`),
  ];
  return { source: [...prelude, '{', body, '}', 'export {};', ''].join('\n'), before: prelude.length + 1 };
}
