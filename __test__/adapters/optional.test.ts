import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { project } from './project';

const run = promisify(execFile);

async function print(folder: string, code: string): Promise<string> {
  return (await run(process.execPath, ['-e', code], { cwd: folder })).stdout.trim();
}

describe('the frameworks', () => {
  test('are not loaded by importing cofferdam, its tools and its adapter for AI SDK', async () => {
    using user = project({
      ai: 'ai',
      '@langchain/core': '@langchain/core',
      '@mastra/core': '@mastra/core',
      genkit: 'genkit',
    });
    const loaded = await print(
      user.folder,
      `for (const name of ['cofferdam', 'cofferdam/tools', 'cofferdam/ai']) require(name);
       const packages = Object.keys(require.cache).map((file) => /.*node_modules\\/((@[^/]+\\/)?[^/]+)/.exec(file)?.[1]);
       console.log([...new Set(packages)].filter(Boolean).sort().join());`,
    );
    expect(loaded).toBe('cofferdam,zod');
  });

  test.each([
    ['langchainTools', '@langchain/core'],
    ['mastraTools', '@mastra/core'],
  ])('that %s needs is named, with how to install it, where it is missing', async (name, framework) => {
    using user = project();
    const code = `const { SandboxManager } = require('cofferdam');
      const manager = new SandboxManager();
      try { require('cofferdam/tools').${name}(manager); } catch (error) { console.log(error.code, error.message); }
      manager.close();`;
    const said = await print(user.folder, code);
    expect(said).toMatch(new RegExp(`^UNSUPPORTED ${name}\\(\\) needs the package ${framework}`));
    expect(said).toContain(`npm install ${framework}`);
  });

  test('that need nothing of their package work without it', async () => {
    using user = project();
    const code = `const { SandboxManager } = require('cofferdam');
      const { openaiTools, openaiAgentTools, anthropicTools } = require('cofferdam/tools');
      const { sandboxTools } = require('cofferdam/ai');
      const manager = new SandboxManager();
      const sets = [openaiTools(manager).tools, openaiAgentTools(manager), anthropicTools(manager).tools, Object.keys(sandboxTools(manager))];
      console.log(new Set(sets.map(({ length }) => length)).size, sets[0].length > 5);
      manager.close();`;
    expect(await print(user.folder, code)).toBe('1 true');
  });
});
