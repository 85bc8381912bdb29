import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { SandboxManager } from 'cofferdam';
import { createFakeManager, type Recording, recordManager } from 'cofferdam/testing';
import { createToolset } from 'cofferdam/tools';
import { failure } from '../faults/failure';
import { describeWithEngine, IMAGES, testManager, unique } from '../support';

const run = promisify(execFile);
const ROOT = path.resolve(__dirname, '../..');

describe('a program that imports cofferdam/testing', () => {
  const body = `
    const manager = createFakeManager({ exec: [{ command: 'hi', stdout: 'hello' }] });
    const sandbox = await manager.open();
    const aborted = await sandbox.exec('hi', { signal: AbortSignal.abort('no') }).catch((reason) => reason);
    console.log((await sandbox.exec('hi', { signal: new AbortController().signal })).stdout, aborted);
    await manager.close();`;
  const noAddon = `
    const Module = require('node:module');
    Module._extensions['.node'] = () => { throw new Error('the addon was loaded'); };`;

  test.each([
    [
      'CommonJS',
      ['-e', `${noAddon} const { createFakeManager } = require('cofferdam/testing'); (async () => {${body}})()`],
    ],
    [
      'ES modules',
      [
        '--input-type=module',
        '-e',
        `import { createRequire } from 'node:module'; const require = createRequire('/'); ${noAddon}
         const { createFakeManager } = await import('cofferdam/testing'); ${body}`,
      ],
    ],
  ])('loads no addon, in %s', async (_, args) => {
    const { stdout } = await run(process.execPath, args, { cwd: ROOT, timeout: 30_000 });
    expect(stdout).toBe('hello no\n');
  });
});

/** Something of everything; says all that it saw. */
async function work(manager: SandboxManager, folder: string): Promise<unknown[]> {
  const sandbox = await manager.open({ scope: { workflow: unique() }, image: IMAGES.alpine });
  const seen: unknown[] = [sandbox.id, sandbox.key, sandbox.created];
  await sandbox.files.write('in.txt', 'b\na\n');
  await sandbox.files.write('big', Buffer.alloc(10_000, 1));
  for (const command of ['date +%N', 'date +%N', 'sort in.txt > out.txt; cat out.txt', 'exit 3']) {
    seen.push(await sandbox.exec(command));
  }
  seen.push(
    await sandbox.files.readText('out.txt'),
    await sandbox.files.list('.'),
    await sandbox.files.stat('missing'),
  );
  seen.push((await failure(sandbox.files.read('missing'))).message, (await failure(sandbox.exec(['nope']))).code);
  const process = await sandbox.spawn('cat; head -c 3 /dev/urandom');
  await process.write('typed');
  await process.end();
  let bytes = '';
  for await (const { data } of process) bytes += Buffer.from(data).toString('hex');
  seen.push(bytes, await process.wait());
  seen.push(await sandbox.exec('sleep 1000', { signal: AbortSignal.timeout(50) }).catch(({ name }) => name));
  await sandbox.files.download('.', path.join(folder, 'down'), { exclude: ['big'] });
  seen.push(readFileSync(path.join(folder, 'down/out.txt'), 'utf8'));
  let streamed = 0;
  for await (const piece of sandbox.files.stream('big')) streamed += piece.length;
  const onStdout = (text: string) => seen.push(text);
  const program = { runtime: 'bash', image: IMAGES.alpine, code: 'echo ran' } as const;
  seen.push(streamed, (await manager.run(program)).stdout, (await manager.run({ ...program, onStdout })).exitCode);
  await sandbox.close();
  seen.push((await failure(sandbox.exec('true'))).code);
  await manager.close();
  return seen;
}

describeWithEngine('a recording', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-recording-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  test('plays all that was seen, as JSON and without the engine', async () => {
    const { manager, script } = recordManager(testManager());
    const seen = await work(manager, mkdtempSync(path.join(folder, 'real-')));
    const recording = JSON.parse(JSON.stringify(script())) as Recording;
    const replayed = createFakeManager(recording);
    expect(await work(replayed, mkdtempSync(path.join(folder, 'fake-')))).toEqual(seen);
    expect(replayed.unscripted).toEqual([]);
    expect(replayed.calls).toContainEqual(
      expect.objectContaining({ name: 'exec', input: expect.objectContaining({ command: 'exit 3' }) }),
    );
  });

  test('plays in a program that can reach no engine and loads no addon', async () => {
    const { manager, script } = recordManager(testManager({ defaults: { image: IMAGES.alpine } }));
    const { stdout } = await (await manager.open()).exec('cat /proc/sys/kernel/random/uuid');
    await manager.close();
    const file = path.join(folder, 'uuid.json');
    writeFileSync(file, JSON.stringify(script()));
    const source = `
      process.env.DOCKER_HOST = 'unix:///nowhere/docker.sock';
      require('node:module')._extensions['.node'] = () => { throw new Error('the addon was loaded'); };
      const { createFakeManager } = require('cofferdam/testing');
      const manager = createFakeManager(require(${JSON.stringify(file)}), { defaults: { image: ${JSON.stringify(IMAGES.alpine)} } });
      manager.open().then((sandbox) => sandbox.exec('cat /proc/sys/kernel/random/uuid')).then(({ stdout }) => console.log(stdout.trim()));`;
    const replayed = await run(process.execPath, ['-e', source], { cwd: ROOT, timeout: 30_000 });
    expect(replayed.stdout).toBe(stdout);
  });

  test('says what it has no answer for', async () => {
    const { manager, script } = recordManager(testManager({ defaults: { image: IMAGES.alpine } }));
    await (await manager.open()).exec('true');
    await manager.close();
    const replayed = createFakeManager(script(), { defaults: { image: IMAGES.alpine } });
    const sandbox = await replayed.open();
    await sandbox.exec('true');
    const error = await failure(sandbox.exec('true'));
    expect(error).toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringContaining('no (further) answer for exec('),
    });
    expect(replayed.unscripted).toEqual([error.message]);
    await replayed.close();
    expect((await failure(sandbox.exec('true'))).code).toBe('SANDBOX_CLOSED');
  });

  test('plays what the tools of an agent did', async () => {
    const steps = async (manager: SandboxManager) => {
      await using tools = createToolset(manager, { image: IMAGES.alpine });
      const results = [
        await tools.call('sandbox_fs_write', { path: 'a.txt', content: 'one\n' }),
        await tools.call('sandbox_exec', { command: 'cat a.txt; date +%N' }),
        await tools.call('sandbox_fs_read', { path: 'missing' }),
      ];
      return results;
    };
    const { manager, script } = recordManager(testManager());
    const results = await steps(manager);
    await manager.close();
    const replayed = createFakeManager(script());
    expect(await steps(replayed)).toEqual(results);
    await replayed.close();
  });
});
