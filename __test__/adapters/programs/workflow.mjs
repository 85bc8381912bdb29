// Three agents of AI SDK 7 on one sandbox: one analyzes what the tests say, one fixes it, one tests; again until the tests
// pass. The models are scripts, but they know nothing of the bugs: each decides by what its last tool call really gave.
import { stepCountIs, ToolLoopAgent } from 'ai';
import { SandboxManager } from 'cofferdam';
import { sandboxTools } from 'cofferdam/ai';
import { results, scriptedModel } from './scripted-model.mjs';

const [workflow] = process.argv.slice(2);
const manager = new SandboxManager({ defaults: { labels: { workflow } } });
const scope = { workflow };
const MAX_ROUNDS = 6;

const files = {
  'stats.py': `def mean(numbers):
    return sum(numbers) / len(number)


def median(numbers):
    return sorted(numbers)[len(numbers) // 2]


def spread(numbers):
    return max(numbers) - min(numbers
`,
  'test_stats.py': `import unittest

import stats


class Tests(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(stats.mean([1, 2, 3, 4]), 2.5)

    def test_median(self):
        self.assertEqual(stats.median([3, 1, 2]), 2)
        self.assertEqual(stats.median([4, 1, 2, 3]), 2.5)

    def test_spread(self):
        self.assertEqual(stats.spread([1, 9, 4]), 8)


if __name__ == "__main__":
    unittest.main()
`,
};

/** An agent with a model that takes the next of these steps each time, given the result of the last call. */
async function agent(instructions, include, steps) {
  const model = await scriptedModel('ai', (prompt, step) => steps[step - 1](results(prompt)[0]));
  const tools = sandboxTools(manager, { scope, image: 'python', include });
  return new ToolLoopAgent({ model, instructions, tools, stopWhen: stepCountIs(10) });
}

const exec = (command) => ({ name: 'sandbox_exec', input: { command } });
const read = (path) => ({ name: 'sandbox_fs_read', input: { path } });

/** What the first traceback tells: of a chain of errors the last one is what is wrong. */
function diagnose(output) {
  const [, first = ''] = output.split(/^={10,}$/m);
  const fault = [...first.matchAll(/^(?<kind>\w+Error): (?<message>.*)$/gm)].at(-1)?.groups;
  const line = [...first.matchAll(/File "[^"]*stats\.py", line (\d+)/g)].map((match) => Number(match[1])).at(-1);
  const test = /^(?:FAIL|ERROR): (\w+)/m.exec(first)?.[1];
  return { ...fault, line, test };
}

const analyst = () =>
  agent(
    'Find out why the tests fail.',
    ['sandbox_exec', 'sandbox_fs_write'],
    [
      () => exec('python -m unittest 2>&1'),
      ({ stdout }) => ({
        name: 'sandbox_fs_write',
        input: { path: 'analysis.json', content: JSON.stringify(diagnose(stdout)) },
      }),
      ({ path }) => `The analysis is in ${path}.`,
    ],
  );

let diagnosis;
const fixer = () =>
  agent(
    'Fix what the analysis names.',
    ['sandbox_fs_read', 'sandbox_fs_edit'],
    [
      () => read('analysis.json'),
      ({ content }) => {
        diagnosis = JSON.parse(content);
        return read('stats.py');
      },
      ({ content }) => ({ name: 'sandbox_fs_edit', input: { path: 'stats.py', ...repair(diagnosis, content) } }),
      ({ replacements }) => `Replaced ${replacements} place.`,
    ],
  );

/** What a programmer would do about it. */
function repair({ kind, message, line, test }, source) {
  const lines = source.split('\n');
  const faulty = lines[(line ?? 1) - 1];
  if (kind === 'SyntaxError') return { old_text: faulty, new_text: `${faulty})` };
  if (kind === 'NameError') {
    const [, unknown] = /name '(\w+)' is not defined/.exec(message);
    const [, parameter] = /\((\w+)\)/.exec(lines.slice(0, line).findLast((each) => each.startsWith('def ')));
    return { old_text: faulty, new_text: faulty.replace(new RegExp(`\\b${unknown}\\b`), parameter) };
  }
  // A value that is wrong: the function that the test is named after does not do what it should.
  const name = test.replace('test_', '');
  const [body] = new RegExp(`(?<=def ${name}\\(numbers\\):\\n).*`).exec(source);
  return {
    old_text: body,
    new_text: `    middle = len(numbers) // 2\n    ordered = sorted(numbers)\n    if len(numbers) % 2 == 0:\n        return (ordered[middle - 1] + ordered[middle]) / 2\n    return ordered[middle]`,
  };
}

const tester = () =>
  agent(
    'Say whether the tests pass.',
    ['sandbox_exec'],
    [
      () => exec('python -m unittest 2>&1'),
      ({ exit_code, stdout }) => (exit_code === 0 ? `PASS: ${/Ran \d+ tests?/.exec(stdout)[0]}` : 'FAIL'),
    ],
  );

// The workflow's first step puts the project there; all agents after it work in the same sandbox.
await manager.open({ scope, image: 'python', files });
const seen = { verdicts: [], kinds: [] };
for (let round = 1; round <= MAX_ROUNDS && !seen.verdicts.at(-1)?.startsWith('PASS'); round += 1) {
  await (await analyst()).generate({ prompt: 'Analyze.' });
  await (await fixer()).generate({ prompt: 'Fix.' });
  seen.kinds.push(diagnosis.kind);
  seen.verdicts.push((await (await tester()).generate({ prompt: 'Test.' })).text);
}

const running = await manager.list({ scope });
seen.sandboxes = running.map(({ key, image }) => ({ key, image }));
// Not the agents' word: the tests themselves.
const sandbox = await manager.open({ scope });
seen.proof = (await sandbox.exec('python -m unittest')).exitCode;
seen.ended = await manager.endScope(scope);
seen.left = await manager.list({ scope });
await manager.close();
console.log(JSON.stringify(seen));
