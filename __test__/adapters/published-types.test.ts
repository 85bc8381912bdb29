import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { project, ROOT } from './project';

const run = promisify(execFile);
const TSC = path.join(ROOT, 'node_modules/typescript/bin/tsc');

/** What stands in the declarations, without comments and texts, in which the word may occur. */
function declarations(): { file: string; code: string }[] {
  const files = readdirSync(path.join(ROOT, 'dist'), { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.d.ts'))
    .map((file) => {
      const source = readFileSync(path.join(ROOT, 'dist', file), 'utf8');
      return { file, code: source.replace(/\/\*.*?\*\/|\/\/.*?$|'[^'\n]*'|"[^"\n]*"/gms, '') };
    });
}

/** What the compiler has to say about a program in a project with these packages. */
async function compile(
  source: string,
  packages: Record<string, string> = {},
  type: 'module' | 'commonjs' = 'module',
): Promise<string> {
  using user = project(packages);
  writeFileSync(path.join(user.folder, 'package.json'), JSON.stringify({ type }));
  const alone = Object.keys(packages).length === 0;
  const compilerOptions = {
    target: 'es2023',
    lib: ['es2024', 'esnext.disposable', ...(alone ? [] : ['dom'])],
    module: 'nodenext',
    strict: true,
    noEmit: true,
    types: ['node'],
    // Our own declarations are looked into as well, where no other package's could be at fault.
    skipLibCheck: !alone,
  };
  writeFileSync(path.join(user.folder, 'main.ts'), source);
  writeFileSync(path.join(user.folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['main.ts'] }));
  return await run(process.execPath, [TSC, '-p', user.folder]).then(
    () => '',
    (error: { stdout: string }) => error.stdout,
  );
}

const WITH_AI = `
  import { generateText, streamText, type LanguageModel, type ToolSet } from 'ai';
  import { SandboxManager } from 'cofferdam';
  import { sandboxTools } from 'cofferdam/ai';
  type IsAny<T> = 0 extends 1 & T ? true : false;
  export const isAny: IsAny<ReturnType<typeof sandboxTools>> = false;
  const tools: ToolSet = sandboxTools(new SandboxManager(), { image: 'python', needsApproval: { sandbox_exec: true } });
  export const generated = (model: LanguageModel) => generateText({ model, prompt: '', tools });
  export const streamed = (model: LanguageModel) => streamText({ model, prompt: '', tools: sandboxTools(new SandboxManager()) });
`;

describe('the published types', () => {
  test('have no any in them', () => {
    const all = declarations();
    expect(all.length).toBeGreaterThan(20);
    expect(all.filter(({ code }) => /\bany\b/.test(code)).map(({ file }) => file)).toEqual([]);
  });

  test('need no framework to be installed', async () => {
    const source = `
      import { SandboxManager } from 'cofferdam';
      import { createToolset, openaiTools, anthropicTools, openaiAgentTools, toolDefinitions } from 'cofferdam/tools';
      import { sandboxSession } from 'cofferdam/ai';
      const manager = new SandboxManager();
      export const names: string[] = toolDefinitions.map(({ name }) => name);
      export const result = createToolset(manager, { image: 'python' }).call('sandbox_exec', {});
      export const called = openaiTools(manager).call({ type: 'function_call', call_id: '', name: '', arguments: '' });
      export const output = called.then(({ output }): string => output);
      export const schema: 'object' | undefined = anthropicTools(manager).tools[0]?.input_schema.type;
      export const agents = openaiAgentTools(manager).map(({ name }): string => name);
      export const session = manager.open().then((sandbox) => sandboxSession(sandbox).run({ command: 'ls' }));
    `;
    expect(await compile(source)).toBe('');
  });

  test.each([
    [5, 'ai-5'],
    [6, 'ai-6'],
    [7, 'ai'],
  ])('of cofferdam/ai are those of AI SDK %d where that is installed', async (_major, installed) => {
    expect(await compile(WITH_AI, { ai: installed })).toBe('');
  });

  test.each(['module', 'commonjs'] as const)(
    'of cofferdam/tools fit the frameworks in a project of type %s',
    async (type) => {
      const source = `
      import type { StructuredToolInterface } from '@langchain/core/tools';
      import { SandboxManager } from 'cofferdam';
      import { genkitTools, langchainTools, mastraTools } from 'cofferdam/tools';
      import type { Genkit } from 'genkit';
      type IsAny<T> = 0 extends 1 & T ? true : false;
      const manager = new SandboxManager();
      export const anyOf: IsAny<ReturnType<typeof langchainTools>[0]> = false;
      export const structured: StructuredToolInterface[] = langchainTools(manager);
      export const id: string | undefined = mastraTools(manager).sandbox_exec?.id;
      export const generated = (ai: Genkit) => ai.generate({ prompt: '', tools: genkitTools(manager, { ai }) });
    `;
      const packages = ['@langchain/core', '@mastra/core', 'genkit'];
      expect(await compile(source, Object.fromEntries(packages.map((name) => [name, name])), type)).toBe('');
    },
  );

  test('are held against those of the SDK: a wrong use does not compile', async () => {
    const wrong = `${WITH_AI}\nexport const no: number = sandboxTools(new SandboxManager());`;
    expect(await compile(wrong, { ai: 'ai' })).toContain("is not assignable to type 'number'");
  });
});
