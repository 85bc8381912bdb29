import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describeWithEngine } from '../support';

const run = promisify(execFile);
const FOLDER = path.resolve(__dirname, '../../examples');

/** What an example prints when it did what it is there to show. */
const TELLING: Record<string, RegExp> = {
  'agent-loop.mjs': /timed out: true, exit code \d+, nothing left running/,
  'ai-sdk-agent.mjs':
    /… month \d: \d+\n.*The total: 420\..*a person approves sandbox_fs_delete.*The program is gone\./s,
  'data-analysis.mjs': /api 16667 172 .*report\.csv: \d+ bytes.*destroy/s,
  'multi-agent-workflow.mjs': /FAIL: many spaces.*PASS.*1 sandbox was shared: workflow:.*1 sandbox closed/s,
  'web-server.mjs': /GET \/about → visit 2, interfaces of the sandbox: lo\n.*nobody answers/s,
};

const examples = readdirSync(FOLDER).filter((name) => name.endsWith('.mjs'));

describeWithEngine('the examples', () => {
  test('that are known here are there', () => {
    expect(examples).toEqual(expect.arrayContaining(Object.keys(TELLING)));
  });

  test.each(examples)('%s runs as it stands, without a key', async (name) => {
    const { stdout, stderr } = await run(process.execPath, [path.join(FOLDER, name)], { timeout: 55_000 });
    expect(stderr).toBe('');
    expect(stdout).toMatch(TELLING[name] ?? /\S/);
  });
});
