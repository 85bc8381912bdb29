/** What commands do, the same for a real manager and for the fake with this script. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { OutputChunk } from 'cofferdam';
import type { FakeScript } from 'cofferdam/testing';
import { failure } from '../faults/failure';
import { record, unique, until } from '../support';
import type { Behaviour } from './behaviours';

/** As a shell would answer. */
export const script: FakeScript = {
  exec: [
    { command: 'echo out; echo err >&2; exit 3', stdout: 'out\n', stderr: 'err\n', exitCode: 3 },
    { command: ['printf', '%s|', 'a b', '*'], stdout: 'a b|*|' },
    { command: ['nope'], error: { code: 'COMMAND_NOT_FOUND', message: 'there is no program "nope"' } },
    { command: 'nope', stderr: 'sh: nope: not found\n', exitCode: 127 },
    { command: 'cat', answer: async ({ stdin }) => ({ stdout: await stdin() }) },
    { command: /^echo \$GREETING$/, answer: ({ env }) => ({ stdout: `${env.GREETING}\n` }) },
    { command: 'echo before; sleep 1000', stdout: 'before\n', delayMs: Number.POSITIVE_INFINITY },
    { command: 'sleep 1000', delayMs: Number.POSITIVE_INFINITY },
    { command: 'seq 1 100000', stdout: `${Array.from({ length: 100_000 }, (_, index) => index + 1).join('\n')}\n` },
    { command: 'echo made > made.txt; rm old.txt', files: { 'made.txt': 'made\n', 'old.txt': null } },
    {
      command: ({ command }) => command === 'tr a-z A-Z < in.txt',
      answer: async ({ files }) => ({ stdout: (await files.readText('in.txt')).toUpperCase() }),
    },
    { command: 'echo up', stdout: 'up\n' },
    { command: 'exit 9', exitCode: 9 },
  ],
  run: [
    { code: 'echo "$1"; echo 1 > a.txt; echo 22 > b.log', stdout: 'x\n', files: { 'a.txt': '1\n', 'b.log': '22\n' } },
    { code: 'exit 4', exitCode: 4 },
    { code: /^sleep/, delayMs: Number.POSITIVE_INFINITY },
  ],
};

async function text(chunks: AsyncIterable<OutputChunk>): Promise<string> {
  let all = '';
  for await (const chunk of chunks) all += chunk.text;
  return all;
}

export const commands: Behaviour[] = [
  [
    'a command that fails is a result; one that cannot be started is not',
    async (manager) => {
      const sandbox = await manager.open();
      const result = await sandbox.exec('echo out; echo err >&2; exit 3');
      expect(result).toMatchObject({ exitCode: 3, ok: false, signal: null, stdout: 'out\n', stderr: 'err\n' });
      expect(result).toMatchObject({ timedOut: false, oomKilled: false, truncated: { stdout: false, stderr: false } });
      expect(result.execId).toMatch(/^exec_/);
      expect((await sandbox.exec(['printf', '%s|', 'a b', '*'])).stdout).toBe('a b|*|');
      expect((await failure(sandbox.exec(['nope']))).code).toBe('COMMAND_NOT_FOUND');
      expect((await sandbox.exec('nope')).exitCode).toBe(127);
    },
  ],
  [
    'input, environment, callbacks and files reach a command, and what it leaves is there',
    async (manager) => {
      const sandbox = await manager.open({ session: 'isolated', env: { GREETING: 'hi' } });
      expect((await sandbox.exec('cat', { stdin: 'h€llo' })).stdout).toBe('h€llo');
      expect((await sandbox.exec('cat')).stdout).toBe('');
      expect((await sandbox.exec('echo $GREETING')).stdout).toBe('hi\n');
      expect((await sandbox.exec('echo $GREETING', { env: { GREETING: 'ho' } })).stdout).toBe('ho\n');
      const heard: string[] = [];
      await sandbox.exec('cat', { stdin: 'streamed', onStdout: (piece) => heard.push(piece) });
      expect(heard.join('')).toBe('streamed');
      await sandbox.files.writeMany({ 'in.txt': 'shout', 'old.txt': '' });
      expect((await sandbox.exec('tr a-z A-Z < in.txt')).stdout).toBe('SHOUT');
      await sandbox.exec('echo made > made.txt; rm old.txt');
      expect(await sandbox.files.readText('made.txt')).toBe('made\n');
      expect(await sandbox.files.exists('old.txt')).toBe(false);
    },
  ],
  [
    'a command that is out of time, aborted or too loud ends as it should',
    async (manager) => {
      const sandbox = await manager.open();
      const late = await sandbox.exec('echo before; sleep 1000', { timeoutMs: 2_000 });
      expect(late).toMatchObject({ timedOut: true, ok: false, stdout: 'before\n' });
      expect([137, 143]).toContain(late.exitCode);
      const reason = new Error('changed my mind');
      const controller = new AbortController();
      const running = sandbox.exec('sleep 1000', { signal: controller.signal });
      setTimeout(() => controller.abort(reason), 20);
      await expect(running).rejects.toBe(reason);
      await expect(sandbox.exec('sleep 1000', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      const loud = await sandbox.exec('seq 1 100000', { maxOutputBytes: 4096 });
      expect(loud.truncated).toEqual({ stdout: true, stderr: false });
      expect(Buffer.byteLength(loud.stdout)).toBeLessThanOrEqual(4096);
      expect(loud.stdout).toMatch(/^1\n2\n[\s\S]* bytes left out [\s\S]*\n100000\n$/);
    },
  ],
  [
    'a process is iterated, read, written to, found again, waited for and killed',
    async (manager) => {
      const sandbox = await manager.open();
      const cat = await sandbox.spawn('cat');
      await cat.write('héllo ');
      await cat.write(Buffer.from('world'));
      await cat.end();
      expect(await text(cat)).toBe('héllo world');
      expect(await cat.wait()).toMatchObject({ exitCode: 0, stdout: 'héllo world' });
      expect((await failure(cat.write('more'))).code).toBe('INVALID_ARGUMENT');
      const sleeper = await sandbox.spawn('echo before; sleep 1000');
      expect(await sleeper.read({ waitMs: 5_000 })).toMatchObject({
        done: false,
        chunks: [{ seq: 1, text: 'before\n' }],
      });
      expect(await sleeper.read({ sinceSeq: 1 })).toEqual({ chunks: [], done: false, lostBytes: 0 });
      for await (const chunk of sleeper) {
        expect(chunk).toMatchObject({ seq: 1, stream: 'stdout' });
        break;
      }
      expect((await failure(sleeper.wait({ timeoutMs: 20 }))).code).toBe('TIMED_OUT');
      const again = await sandbox.process(sleeper.execId);
      expect(again.pid).toBe(sleeper.pid);
      expect((await sandbox.processes()).find(({ execId }) => execId === sleeper.execId)?.exitCode).toBeNull();
      expect((await failure(again.kill('SIGNOPE' as never))).code).toBe('INVALID_ARGUMENT');
      await again.kill();
      expect(await sleeper.wait()).toMatchObject({ exitCode: 143, signal: 'SIGTERM', timedOut: false });
      expect(await sleeper.read({ sinceSeq: 1 })).toEqual({ chunks: [], done: true, lostBytes: 0 });
      const controller = new AbortController();
      const aborted = await sandbox.spawn('sleep 1000', { signal: controller.signal });
      controller.abort();
      expect((await aborted.wait()).exitCode).toBe(143);
    },
  ],
  [
    'a call under way when its sandbox is closed rejects',
    async (manager) => {
      const sandbox = await manager.open({ session: 'isolated' });
      const process = await sandbox.spawn('sleep 1000');
      const waiting = failure(process.wait());
      await sandbox.close();
      expect((await waiting).code).toBe('SANDBOX_CLOSED');
      const other = await manager.open({ session: 'isolated' });
      let isAsked = false;
      const stalling = async function* () {
        yield Buffer.from('first');
        isAsked = true;
        await new Promise(() => {});
      };
      const writing = failure(other.files.write('never', stalling()));
      await until(() => isAsked);
      await other.close();
      expect((await writing).code).toBe('SANDBOX_CLOSED');
    },
  ],
  [
    'init runs once in a new sandbox, and fails it when it fails',
    async (manager) => {
      const failed = await failure(manager.open({ session: 'isolated', init: 'exit 9' }));
      expect(failed.details).toMatchObject({ exitCode: 9 });
      const order = { session: unique(), files: { 'old.txt': '' }, init: 'echo made > made.txt; rm old.txt' };
      const [one, two] = await Promise.all([manager.open(order), manager.open(order)]);
      expect([one.created, two.created].filter(Boolean)).toHaveLength(1);
      expect([await two.files.readText('made.txt'), await one.files.exists('old.txt')]).toEqual(['made\n', false]);
    },
  ],
  [
    'a run gives its artifacts and its phases',
    async (manager) => {
      const code = 'echo "$1"; echo 1 > a.txt; echo 22 > b.log';
      const result = await manager.run({ runtime: 'bash', code, args: ['x'], artifacts: ['*.txt'] });
      expect(result).toMatchObject({ ok: true, exitCode: 0, stdout: 'x\n', runtime: 'bash', image: 'ubuntu:22.04' });
      expect(result.artifacts.map(({ path: name, sizeBytes }) => [name, sizeBytes])).toEqual([['a.txt', 2]]);
      expect(Buffer.from(result.artifacts[0]?.content ?? []).toString()).toBe('1\n');
      const phases = ['connect', 'prepare_files', 'exec', 'collect_artifacts', 'destroy'];
      expect(result.phases.map(({ name }) => name)).toEqual(phases);
      const large = await manager.run({ runtime: 'bash', code, artifacts: ['*'], maxArtifactBytes: 2, args: ['x'] });
      expect(large.artifacts).toContainEqual({ path: 'b.log', sizeBytes: 3, content: null, omitted: 'too large' });
      const heard: string[] = [];
      const onStdout = (text: string) => heard.push(text);
      expect((await manager.run({ runtime: 'bash', code, args: ['x'], onStdout })).stdout).toBe('x\n');
      expect(heard.join('')).toBe('x\n');
      expect((await manager.run({ runtime: 'bash', code: 'exit 4' })).exitCode).toBe(4);
      expect(await manager.run({ runtime: 'bash', code: 'sleep 1000', timeoutMs: 100 })).toMatchObject({
        timedOut: true,
      });
      expect((await failure(manager.run({ runtime: 'perl' as never, code: '' }))).code).toBe('INVALID_ARGUMENT');
    },
  ],
  [
    'events tell of a session and its commands',
    async (manager) => {
      const events = record(manager);
      const sandbox = await manager.open({ session: 'isolated' });
      const { execId } = await sandbox.exec('exit 9');
      await until(() => events.some(({ type }) => type === 'exec-finished'));
      await sandbox.close();
      await until(() => events.some(({ type }) => type === 'closed'));
      expect(events.filter(({ sandboxId }) => sandboxId === sandbox.id)).toMatchObject([
        { type: 'opened', key: sandbox.key, image: sandbox.image, at: expect.any(Date) },
        { type: 'exec-started', execId, command: 'exit 9' },
        { type: 'exec-finished', execId, exitCode: 9, timedOut: false, oomKilled: false },
        { type: 'closed', reason: 'closed' },
      ]);
    },
  ],
  [
    'trees go in and out, and objects through the store',
    async (manager) => {
      const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-testing-'));
      try {
        mkdirSync(path.join(folder, 'in/sub'), { recursive: true });
        writeFileSync(path.join(folder, 'in/a.txt'), 'A');
        writeFileSync(path.join(folder, 'in/sub/b.sh'), 'BB', { mode: 0o755 });
        writeFileSync(path.join(folder, 'in/skip.log'), 'no');
        const { files } = await manager.open({ session: 'isolated' });
        const up = await files.upload(path.join(folder, 'in'), 'tree', { exclude: ['*.log'] });
        expect(up).toMatchObject({ files: 2, dirs: 1, bytes: 3 });
        expect(await files.stat('tree/sub/b.sh')).toMatchObject({ mode: 0o755, sizeBytes: 2 });
        expect(await files.upload(path.join(folder, 'in'), 'tree', { exclude: ['*.log'], sync: true })).toMatchObject({
          files: 0,
        });
        expect(await files.download('tree', path.join(folder, 'out'))).toMatchObject({ files: 2, bytes: 3 });
        expect(readFileSync(path.join(folder, 'out/sub/b.sh'), 'utf8')).toBe('BB');
        await files.upload(path.join(folder, 'in/a.txt'));
        expect(await files.readText('a.txt')).toBe('A');
        expect((await failure(files.upload(path.join(folder, 'missing')))).code).toBe('FILE_NOT_FOUND');
      } finally {
        rmSync(folder, { recursive: true });
      }
      const sandbox = await manager.open();
      await sandbox.files.write('report', 'done');
      const { key, sha256, sizeBytes } = await sandbox.publish('report');
      expect(await sandbox.stage(key, 'back', { sha256 })).toMatchObject({
        path: '/workspace/back',
        sizeBytes,
        sha256,
      });
      expect((await failure(sandbox.stage('no/such', 'x'))).code).toBe('FILE_NOT_FOUND');
      expect((await failure(sandbox.stage(key, 'x', { sha256: '0'.repeat(64) }))).code).toBe('PROTOCOL');
      expect(await sandbox.files.exists('x')).toBe(false);
    },
  ],
];
