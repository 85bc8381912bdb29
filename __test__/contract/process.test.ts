import { type OutputChunk, SandboxManager } from 'cofferdam';
import { isNamespaces } from '../ground';
import { classes, describeWithEngine, IMAGES, testManager, until } from '../support';

async function collect(chunks: AsyncIterable<OutputChunk>): Promise<OutputChunk[]> {
  const all: OutputChunk[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

const text = (chunks: OutputChunk[], stream: string) =>
  chunks
    .filter((chunk) => chunk.stream === stream)
    .map((chunk) => chunk.text)
    .join('');

describeWithEngine.each(classes('debian', 'alpine'))('processes on the %s class', (name) => {
  const manager = testManager();
  const open = () => manager.open({ image: IMAGES[name] });

  test('a spawned process is iterated with rising numbers until it ends', async () => {
    const process = await (await open()).spawn('for i in 1 2 3; do echo $i; echo e$i >&2; sleep 0.02; done');
    const chunks = await collect(process);
    expect(text(chunks, 'stdout')).toBe('1\n2\n3\n');
    expect(text(chunks, 'stderr')).toBe('e1\ne2\ne3\n');
    expect(chunks.map(({ seq }) => seq)).toEqual(chunks.map((_, index) => index + 1));
    expect(await process.wait()).toMatchObject({ exitCode: 0, stdout: '1\n2\n3\n' });
  });

  test('64 MiB come through byte for byte, however slowly the reader starts', async () => {
    const sandbox = await open();
    const process = await sandbox.spawn('seq 1 8000000');
    await sandbox.exec('sleep 0.3');
    let next = 1;
    let rest = '';
    for await (const { text } of process) {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line !== String(next)) throw new Error(`expected ${next}, got ${line}`);
        next += 1;
      }
    }
    expect([next, rest]).toEqual([8_000_001, '']);
  });

  test('leaving the loop early stops reading, not the process', async () => {
    const sandbox = await open();
    const process = await sandbox.spawn('while :; do echo tick; sleep 0.01; done');
    for await (const chunk of process) {
      expect(chunk.text).toContain('tick');
      break;
    }
    expect((await sandbox.processes()).find(({ execId }) => execId === process.execId)?.exitCode).toBeNull();
    await process.kill();
    expect((await process.wait()).exitCode).toBe(143);
  });

  test('a process that nobody reads goes on', async () => {
    const process = await (await open()).spawn('head -c 20000000 /dev/zero; echo done >&2');
    const result = await process.wait();
    expect(result).toMatchObject({ exitCode: 0, stderr: 'done\n', truncated: { stdout: true } });
  });

  test('reads what is kept after a number, and waits for more', async () => {
    const process = await (await open()).spawn('echo one; read line; echo two; read line; exit 4');
    const first = await process.read({ waitMs: 5_000 });
    expect(first).toMatchObject({ done: false, lostBytes: 0, chunks: [{ seq: 1, text: 'one\n' }] });
    expect(await process.read({ sinceSeq: 1 })).toEqual({ chunks: [], done: false, lostBytes: 0 });
    await process.write('\n');
    expect(await process.read({ sinceSeq: 1, waitMs: 5_000 })).toMatchObject({ chunks: [{ seq: 2, text: 'two\n' }] });
    await process.end();
    expect((await process.wait()).exitCode).toBe(4);
    expect(await process.read({ sinceSeq: 2 })).toEqual({ chunks: [], done: true, lostBytes: 0 });
    expect((await process.read()).chunks).toHaveLength(2);
  });

  test('takes input until its end', async () => {
    const process = await (await open()).spawn('cat');
    await process.write('héllo ');
    await process.write(Buffer.from('world'));
    await process.end();
    await process.end();
    expect((await process.wait()).stdout).toBe('héllo world');
    await expect(process.write('more')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('kill ends the whole tree; a signal is only sent', async () => {
    const sandbox = await open();
    const process = await sandbox.spawn('trap "echo caught" USR1; echo ready; while :; do sleep 0.05; done');
    await process.read({ waitMs: 5_000 });
    await process.kill('SIGUSR1');
    // Bash tells on stderr of its own child that the signal ended.
    for await (const chunk of process) if (chunk.text.includes('caught')) break;
    await process.kill();
    expect(await process.wait()).toMatchObject({ exitCode: 143, signal: 'SIGTERM', timedOut: false });
    await expect(process.kill('SIGNOPE' as NodeJS.Signals)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('giving up a wait leaves the process running', async () => {
    const process = await (await open()).spawn('sleep 1000');
    await expect(process.wait({ timeoutMs: 50 })).rejects.toMatchObject({ code: 'TIMED_OUT' });
    const reason = new Error('enough');
    await expect(process.wait({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await process.kill('SIGKILL');
    expect((await process.wait()).exitCode).toBe(137);
  });

  test('an aborted signal ends a spawned process', async () => {
    const controller = new AbortController();
    const process = await (await open()).spawn('sleep 1000', { signal: controller.signal });
    controller.abort();
    expect((await process.wait()).exitCode).toBe(143);
  });

  test('another manager finds the sandbox and its process, and reads what it printed', async () => {
    const sandbox = await open();
    const process = await sandbox.spawn('echo here; sleep 1000');
    await process.read({ waitMs: 5_000 });
    const other = new SandboxManager();
    const again = await other.get(sandbox.id);
    expect(again).toMatchObject({ id: sandbox.id, key: sandbox.key, created: false });
    const found = await again.process(process.execId);
    expect(found.pid).toBe(process.pid);
    expect((await found.read()).chunks[0]?.text).toBe('here\n');
    await found.kill();
    await other.close();
    expect((await process.wait()).exitCode).toBe(143);
    expect((await sandbox.exec('echo still here')).stdout).toBe('still here\n');
    await expect(sandbox.process('exec_nope')).rejects.toMatchObject({ code: 'PROCESS_NOT_FOUND' });
  });

  test('a kill does not wait for a reader that has stopped, nor for one that never came', async () => {
    const sandbox = await open();
    const stopped = await sandbox.spawn('yes');
    const chunks = stopped[Symbol.asyncIterator]();
    await chunks.next();
    const unread = await sandbox.spawn('yes');
    await new Promise((resolve) => setTimeout(resolve, 200));
    const began = Date.now();
    await Promise.all([stopped.kill(), unread.kill()]);
    for (const process of [stopped, unread]) expect(await process.wait()).toMatchObject({ signal: 'SIGTERM' });
    // A hang guard: it took 30 and 5 seconds once.
    expect(Date.now() - began).toBeLessThan(4_500);
    await chunks.return?.();
  });
});

describeWithEngine('a process whose first thread has ended', () => {
  const manager = testManager({ defaults: { image: isNamespaces ? 'host' : 'python:3.11-slim' } });

  /** The kernel calls it a zombie, but its other thread works on. */
  const headless = (work: string) => [
    'python3',
    '-c',
    `import ctypes, platform, threading, time
def work():
    while not open('/proc/self/stat').read().split(') ')[1].startswith('Z'): time.sleep(0.01)
    ${work}
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[platform.machine()], 0)`,
  ];
  test('is ended like any other', async () => {
    const sandbox = await manager.open({ session: 'isolated' });
    const process = await sandbox.spawn(headless(`while True: print('alone', flush=True); time.sleep(0.01)`));
    await until(async () => text((await process.read()).chunks, 'stdout').startsWith('alone\n'));
    await process.kill();
    // By name: it has no command line any more.
    expect((await sandbox.exec('grep -h "(python" /proc/[0-9]*/stat')).stdout).toBe('');
    await sandbox.close();
  });

  test('counts for the memory that it has', async () => {
    const sandbox = await manager.open({ session: 'isolated', limits: { memoryMb: 96 } });
    const greedy = headless(`held = b'a' * (200 << 20); time.sleep(10); print('held', flush=True)`);
    const { exitCode, oomKilled, stdout } = await sandbox.exec(greedy);
    expect({ exitCode, oomKilled, stdout }).toEqual({ exitCode: 137, oomKilled: true, stdout: '' });
    await sandbox.close();
  });
});
