// A workflow of three agents that share one sandbox through the workflow's scope: a writer writes a program and its tests, a
// tester runs them, a debugger fixes what failed, and the tester runs them again. When the workflow ends, so does the
// sandbox.
import { stepCountIs, ToolLoopAgent } from 'ai';
import { SandboxManager } from 'cofferdam';
import { sandboxTools } from 'cofferdam/ai';
import { call, scriptedModel } from './support/scripted-model.mjs';

const manager = new SandboxManager();
const scope = { workflow: `example-${process.pid}` };

/** Every agent has its own tools, and only those it needs; the common scope makes them share a sandbox. */
function agent(instructions, include, model) {
  const tools = sandboxTools(manager, { scope, image: 'node', include });
  return new ToolLoopAgent({ model, instructions, tools, stopWhen: stepCountIs(10) });
}

const slug = `exports.slug = (title) => title.toLowerCase().replace(' ', '-');\n`;
const test = `const { test } = require('node:test');
const assert = require('node:assert');
const { slug } = require('./slug.js');
test('one space', () => assert.equal(slug('Hello World'), 'hello-world'));
test('many spaces', () => assert.equal(slug('The Quick  Brown Fox'), 'the-quick-brown-fox'));
`;

// Each of these models could be a real one: see support/scripted-model.mjs.
const writer = agent(
  'Write slug.js and its tests.',
  ['sandbox_fs_write'],
  scriptedModel(
    () => [
      call('sandbox_fs_write', { path: 'slug.js', content: slug }),
      call('sandbox_fs_write', { path: 'slug.test.js', content: test }),
    ],
    (...written) => `Wrote ${written.map(({ path }) => path).join(' and ')}.`,
  ),
);

const tester = () =>
  agent(
    'Run the tests and say what fails.',
    ['sandbox_exec'],
    scriptedModel(
      () => call('sandbox_exec', { command: 'node --test --test-reporter=tap' }),
      ({ exit_code, stdout }) => {
        if (exit_code === 0) return 'PASS';
        const failed = [...stdout.matchAll(/^ *not ok \d+ - (.*)$/gm)].map((match) => match[1]);
        const actual = /actual: '(.*)'/.exec(stdout)?.[1];
        return `FAIL: ${failed.join(', ')}; it gave ${actual}`;
      },
    ),
  );

const debug = agent(
  'Fix what the tests found.',
  ['sandbox_fs_read', 'sandbox_fs_edit'],
  scriptedModel(
    () => call('sandbox_fs_read', { path: 'slug.js' }),
    ({ content }) => {
      const [found] = /replace\(.*\)/.exec(content);
      return call('sandbox_fs_edit', { path: 'slug.js', old_text: found, new_text: "replace(/\\s+/g, '-')" });
    },
    ({ replacements }) => `Changed ${replacements} place.`,
  ),
);

async function step(name, agent, prompt) {
  const started = performance.now();
  const { text } = await agent.generate({ prompt });
  console.log(`▸ ${name.padEnd(9)} ${text}  (${(performance.now() - started).toFixed(0)} ms)`);
  return text;
}

try {
  await step('writer', writer, 'A function that turns titles into slugs.');
  let verdict = await step('tester', tester(), 'Run the tests.');
  while (verdict.startsWith('FAIL')) {
    await step('debugger', debug, verdict);
    verdict = await step('tester', tester(), 'Run the tests.');
  }
  const shared = await manager.list({ scope });
  console.log(`\n${shared.length} sandbox was shared: ${shared[0].key}`);
} finally {
  const { closed } = await manager.endScope(scope);
  console.log(`the workflow is over, ${closed} sandbox closed`);
  await manager.close();
}
