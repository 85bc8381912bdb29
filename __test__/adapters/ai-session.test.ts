import type { Sandbox } from 'cofferdam';
import { type SandboxSession, sandboxSession } from 'cofferdam/ai';
import { countProcesses, describeWithEngine, IMAGES, testManager, until } from '../support';
import { seenBy } from './program';

async function text(stream: ReadableStream<Uint8Array>): Promise<string> {
  return new Response(stream).text();
}

describeWithEngine('a sandbox as AI SDK’s session', () => {
  const manager = testManager({ defaults: { image: IMAGES.alpine } });
  let sandbox: Sandbox;
  let session: SandboxSession;

  beforeAll(async () => {
    sandbox = await manager.open();
    session = sandboxSession(sandbox);
  });

  test('describes itself for a model', () => {
    expect(session.description).toContain(IMAGES.alpine);
    expect(session.description).toContain('/workspace');
  });

  test('runs commands through the shell, in a folder and with an environment', async () => {
    const ran = await session.run({
      command: 'pwd; echo "$WHO" >&2; exit 3',
      workingDirectory: '/tmp',
      env: { WHO: 'me' },
    });
    expect(ran).toEqual({ exitCode: 3, stdout: '/tmp\n', stderr: 'me\n' });
  });

  test('ends a run with all that it started when the signal aborts', async () => {
    const abort = new AbortController();
    const ran = session.run({ command: 'sleep 1001 & sleep 1001', abortSignal: abort.signal });
    await until(async () => (await countProcesses(sandbox, 'sleep 1001')) >= 2);
    abort.abort(new Error('enough'));
    await expect(ran).rejects.toThrow('enough');
    expect(await countProcesses(sandbox, 'sleep 1001')).toBe(0);
  });

  test('writes and reads text, bytes and streams, relative paths from where commands start', async () => {
    await session.writeTextFile({ path: 'new/folder/a.txt', content: 'grüße\n' });
    expect(await session.readTextFile({ path: '/workspace/new/folder/a.txt' })).toBe('grüße\n');
    expect((await session.run({ command: 'cat new/folder/a.txt' })).stdout).toBe('grüße\n');
    const bytes = Uint8Array.from({ length: 300_000 }, (_, index) => index % 251);
    await session.writeBinaryFile({ path: 'bytes', content: bytes });
    expect(Buffer.compare((await session.readBinaryFile({ path: 'bytes' })) as Uint8Array, bytes)).toBe(0);
    const source = (await session.readFile({ path: 'bytes' })) as ReadableStream<Uint8Array>;
    await session.writeFile({ path: 'copy', content: source });
    expect((await session.run({ command: 'cmp bytes copy' })).exitCode).toBe(0);
    await session.writeTextFile({ path: 'empty', content: '' });
    expect(await session.readTextFile({ path: 'empty' })).toBe('');
  });

  test('reads lines from one to another, both included, without the last one’s end', async () => {
    await session.writeTextFile({ path: 'lines', content: 'one\r\ntwo\r\nthree\r\n' });
    expect(await session.readTextFile({ path: 'lines', startLine: 2, endLine: 3 })).toBe('two\r\nthree');
    expect(await session.readTextFile({ path: 'lines', startLine: 3 })).toBe('three\r\n');
    expect(await session.readTextFile({ path: 'lines', endLine: 99 })).toBe('one\r\ntwo\r\nthree\r\n');
  });

  test('knows other encodings, and refuses those it does not know', async () => {
    await session.writeTextFile({ path: 'latin', content: 'é', encoding: 'latin1' });
    expect(await session.readBinaryFile({ path: 'latin' })).toEqual(Uint8Array.of(0xe9));
    expect(await session.readTextFile({ path: 'latin', encoding: 'latin1' })).toBe('é');
    await session.writeBinaryFile({ path: 'japanese', content: Uint8Array.of(0x82, 0xa0) });
    expect(await session.readTextFile({ path: 'japanese', encoding: 'shift_jis' })).toBe('あ');
    await expect(session.readTextFile({ path: 'latin', encoding: 'klingon' })).rejects.toMatchObject({
      code: 'UNSUPPORTED',
    });
    await expect(session.writeTextFile({ path: 'latin', content: 'x', encoding: 'klingon' })).rejects.toMatchObject({
      code: 'UNSUPPORTED',
    });
  });

  test('says null for what is not there, and rejects for what is of another kind', async () => {
    for (const read of [
      session.readFile,
      session.readBinaryFile,
      session.readTextFile,
      session.stat,
      session.listDirectory,
    ]) {
      expect(await read({ path: 'missing' })).toBeNull();
    }
    expect(await session.deleteFile({ path: 'missing' })).toBe(false);
    await session.run({ command: 'mkdir kind; touch plain' });
    for (const use of [session.readFile, session.readTextFile, session.deleteFile]) {
      await expect(use({ path: 'kind' })).rejects.toMatchObject({ code: 'IS_A_DIRECTORY' });
    }
    await expect(session.writeTextFile({ path: 'kind', content: '' })).rejects.toMatchObject({
      code: 'IS_A_DIRECTORY',
    });
    await expect(session.listDirectory({ path: 'plain' })).rejects.toMatchObject({ code: 'NOT_A_DIRECTORY' });
  });

  test('follows links in stat, lists them as links and deletes them, not what they lead to', async () => {
    await session.run({
      command:
        'mkdir -p deep/er; printf 12345 > deep/file; ln -s deep/er hop; ln -s ../file deep/er/up; ln -s loop loop; mkfifo pipe',
    });
    // The kernel's way: "hop" is a link, so that ".." behind it is "deep".
    expect(await session.stat({ path: 'hop/up' })).toEqual({ type: 'file', size: 5 });
    expect(await session.stat({ path: 'hop' })).toMatchObject({ type: 'directory' });
    expect(await session.stat({ path: 'pipe' })).toMatchObject({ type: 'other' });
    await expect(session.stat({ path: 'loop' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await session.listDirectory({ path: 'hop' })).toEqual([{ name: 'up', type: 'symlink' }]);
    expect(await session.listDirectory({ path: 'deep' })).toEqual(
      expect.arrayContaining([
        { name: 'er', type: 'directory' },
        { name: 'file', type: 'file' },
      ]),
    );
    expect(await session.deleteFile({ path: 'hop/up' })).toBe(true);
    expect(await session.stat({ path: 'deep/file' })).toEqual({ type: 'file', size: 5 });
  });

  test('refuses every call whose signal has aborted already', async () => {
    const abortSignal = AbortSignal.abort(new Error('before'));
    const calls = [
      () => session.readFile({ path: 'x', abortSignal }),
      () => session.readTextFile({ path: 'x', abortSignal }),
      () => session.writeTextFile({ path: 'x', content: '', abortSignal }),
      () => session.stat({ path: 'x', abortSignal }),
      () => session.listDirectory({ path: '.', abortSignal }),
      () => session.deleteFile({ path: 'x', abortSignal }),
      () => session.run({ command: 'true', abortSignal }),
      () => session.spawn({ command: 'true', abortSignal }),
    ];
    for (const call of calls) await expect(call()).rejects.toThrow('before');
  });

  describe('spawns processes', () => {
    test('with both outputs as streams, and input closed', async () => {
      const process = await session.spawn({ command: 'cat; echo out; echo err >&2; exit 4' });
      expect('stdin' in process).toBe(false);
      expect(process.pid).toBeGreaterThan(0);
      expect(await Promise.all([text(process.stdout), text(process.stderr), process.wait()])).toEqual([
        'out\n',
        'err\n',
        { exitCode: 4 },
      ]);
    });

    test('whose input is a stream, and ends with it', async () => {
      const process = await session.spawn({ command: 'tr a-z A-Z', stdin: true });
      const writer = process.stdin.getWriter();
      await writer.write(Buffer.from('hello '));
      await writer.write(Buffer.from('there'));
      await writer.close();
      expect(await text(process.stdout)).toBe('HELLO THERE');
      expect(await process.wait()).toEqual({ exitCode: 0 });
    });

    test('of which no byte is lost, and which a stream that nobody reads does not hold up', async () => {
      const process = await session.spawn({
        command: 'head -c 5000000 /dev/zero >&2; head -c 9000000 /dev/zero | tr "\\0" x',
      });
      expect(await text(process.stdout)).toHaveLength(9_000_000);
      expect(await process.wait()).toEqual({ exitCode: 0 });
      // Its middle is gone by now: that is said, and not passed over.
      await expect(text(process.stderr)).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' });
    });

    test('that end with all that they started when killed, twice too', async () => {
      const process = await session.spawn({ command: 'sleep 1002 & sleep 1002' });
      await until(async () => (await countProcesses(sandbox, 'sleep 1002')) >= 2);
      await process.kill();
      await process.kill();
      expect((await process.wait()).exitCode).toBeGreaterThan(128);
      expect(await countProcesses(sandbox, 'sleep 1002')).toBe(0);
    });

    test('whose wait rejects with the reason when the signal aborts, and nothing of them is left', async () => {
      const abort = new AbortController();
      const process = await session.spawn({ command: 'sleep 1003 & sleep 1003', abortSignal: abort.signal });
      const waited = process.wait();
      abort.abort(new Error('no more'));
      await expect(waited).rejects.toThrow('no more');
      expect(await countProcesses(sandbox, 'sleep 1003')).toBe(0);
    });

    test('and a reader that leaves early leaves the process running', async () => {
      const process = await session.spawn({ command: 'echo ready; sleep 0.2; touch done-anyway' });
      const reader = process.stdout.getReader();
      expect(Buffer.from((await reader.read()).value as Uint8Array).toString()).toBe('ready\n');
      await reader.cancel();
      expect(await process.wait()).toEqual({ exitCode: 0 });
      expect(await session.stat({ path: 'done-anyway' })).toMatchObject({ type: 'file' });
    });
  });
});

describeWithEngine('experimental_sandbox of AI SDK 7', () => {
  test('reaches the tools of a program, and the descriptions of them', async () => {
    const { text, told } = await seenBy<{ text: string; told: string }>('experimental-sandbox');
    expect(text).toBe('It is 42.');
    expect(told).toMatch(/^Runs Python\. A persistent Linux sandbox with the image python:3\.11-slim/);
  });
});
