import { isNamespaces } from '../ground';
import { describeWithEngine, IMAGES, record, testManager, unique, until } from '../support';

function raise(): never {
  throw new Error('no ears');
}

describeWithEngine('run', () => {
  // Others use the engine too.
  const labels = { suite: unique('run') };
  const manager = testManager({ defaults: { labels } });
  const gone = async () => {
    const left = (await manager.list()).filter((info) => info.labels.suite === labels.suite);
    expect(left).toEqual([]);
  };

  test.each([
    ['python', 'import sys; print("py", *sys.argv[1:])', 'py a b c\n'],
    ['node', 'console.log("js", ...process.argv.slice(2))', 'js a b c\n'],
    ['bash', 'echo sh "$@"', 'sh a b c\n'],
  ] as const)('runs %s code with its arguments', async (runtime, code, stdout) => {
    const result = await manager.run({ runtime, code, args: ['a', 'b c'] });
    expect(result).toMatchObject({ ok: true, exitCode: 0, stdout, stderr: '', runtime, artifacts: [] });
    await gone();
  });

  test('runs Python by default, in the image of the runtime', async () => {
    const result = await manager.run({ code: 'print(6 * 7)' });
    expect(result).toMatchObject({
      stdout: '42\n',
      runtime: 'python',
      image: isNamespaces ? 'host' : 'python:3.11-slim',
    });
    expect(result.phases.map(({ name }) => name)).toEqual([
      'connect',
      'prepare_files',
      'exec',
      'collect_artifacts',
      'destroy',
    ]);
    expect(result.phases.every(({ durationMs }) => durationMs >= 0)).toBe(true);
  });

  test('runs a shell script also where the image has no bash', async () => {
    const result = await manager.run({
      runtime: 'bash',
      image: IMAGES.alpine,
      code: 'echo $0 $A; pwd',
      env: { A: 'a' },
    });
    expect(result).toMatchObject({ stdout: 'main.sh a\n/workspace\n', image: IMAGES.alpine });
  });

  test('gives a program that fails as a result', async () => {
    const result = await manager.run({ code: 'import sys; print("oh", file=sys.stderr); sys.exit(3)' });
    expect(result).toMatchObject({ ok: false, exitCode: 3, stderr: 'oh\n' });
  });

  test('has no network and shares nothing with the run before', async () => {
    await manager.run({ code: 'open("left", "w").write("x")' });
    const code = 'import os, socket; print(os.path.exists("left"), os.listdir("/sys/class/net"))';
    expect((await manager.run({ code })).stdout).toBe("False ['lo']\n");
  });

  test('writes files before and brings back artifacts, with their bytes', async () => {
    const result = await manager.run({
      code: `
import os
os.makedirs('out/deep')
data = open('in/data.bin', 'rb').read()
open('out/copy.bin', 'wb').write(data[::-1])
open('out/deep/.hidden.json', 'w').write('{}')
open('.gitignore', 'w').write('out')
os.symlink('/etc/passwd', 'out/link.json')
`,
      files: { 'in/data.bin': new Uint8Array([0, 255, 1]), 'note.txt': 'n' },
      artifacts: ['out/**', '*.py', 'note.txt'],
    });
    expect(result.stderr).toBe('');
    expect(result.artifacts.map(({ path, sizeBytes }) => [path, sizeBytes])).toEqual([
      ['note.txt', 1],
      ['out/copy.bin', 3],
      ['out/deep/.hidden.json', 2],
    ]);
    expect(Buffer.from(result.artifacts[1]?.content ?? [])).toEqual(Buffer.from([1, 255, 0]));
  });

  test('names artifacts that are too large or too many, and leaves them', async () => {
    const result = await manager.run({
      code: 'for i in range(5): open(f"a{i}.txt", "w").write("x" * (10 + i))',
      artifacts: ['*.txt'],
      maxArtifacts: 4,
      maxArtifactBytes: 12,
    });
    expect(
      result.artifacts.map(({ path, sizeBytes, omitted, content }) => [path, sizeBytes, omitted, content?.length]),
    ).toEqual([
      ['a0.txt', 10, undefined, 10],
      ['a1.txt', 11, undefined, 11],
      ['a2.txt', 12, undefined, 12],
      ['a3.txt', 13, 'too large', undefined],
      ['a4.txt', 14, 'too many', undefined],
    ]);
  });

  test('caps output at head and tail', async () => {
    const result = await manager.run({ code: 'print("a" * 1000 + "z" * 1000)', maxOutputBytes: 100 });
    expect(result.truncated.stdout).toBe(true);
    expect(result.stdout.length).toBeLessThan(500);
    expect(result.stdout).toMatch(/^a+/);
    expect(result.stdout).toMatch(/z+\n$/);
  });

  test('gives a run that takes too long as a result, with its artifacts, and ends it', async () => {
    const code = 'import time; open("half.txt", "w").write("half"); print("began", flush=True); time.sleep(1000)';
    const result = await manager.run({ code, timeoutMs: 6_000, artifacts: ['*.txt'] });
    expect(result).toMatchObject({ timedOut: true, ok: false, stdout: 'began\n', artifacts: [{ path: 'half.txt' }] });
    await gone();
  });

  test('tells what the program prints while it runs', async () => {
    const events = record(manager);
    const heard: string[] = [];
    const waits = 'while not os.path.exists("go"): time.sleep(0.02)';
    const code = `import os, sys, time\nprint("first", flush=True)\n${waits}\nprint("then"); print("oops", file=sys.stderr)`;
    const run = manager.run({
      code,
      onStdout: async (text) => heard.push(text),
      onStderr: (text) => heard.push(`! ${text}`),
      artifacts: ['go'],
    });
    await until(() => heard.length > 0);
    expect(heard).toEqual(['first\n']);
    const { sandboxId } = events.findLast(({ type }) => type === 'opened') ?? {};
    await (await manager.get(sandboxId as string)).files.write('go', '');
    const artifacts = [{ path: 'go', sizeBytes: 0 }];
    expect(await run).toMatchObject({ ok: true, stdout: 'first\nthen\n', stderr: 'oops\n', artifacts });
    expect(heard.slice(1).sort()).toEqual(['! oops\n', 'then\n']);
    await gone();
  });

  test.each([
    ['throws', () => raise()],
    ['rejects', async () => raise()],
  ])('ends when whoever listens %s', async (_, onStdout) => {
    const code = 'import time; print("began", flush=True); time.sleep(1000)';
    await expect(manager.run({ code, onStdout })).rejects.toThrow('no ears');
    await gone();
  });

  test('is aborted while its output is streamed', async () => {
    const stop = new AbortController();
    const code = 'import time; print("began", flush=True); time.sleep(1000)';
    const run = manager.run({ code, onStdout: () => stop.abort(new Error('enough')), signal: stop.signal });
    await expect(run).rejects.toThrow('enough');
    await gone();
  });

  test('ends when it is aborted, and rejects with the reason', async () => {
    const events = record(manager);
    const stop = new AbortController();
    const run = manager.run({ code: 'import time; time.sleep(1000)', signal: stop.signal });
    await until(() => events.some(({ type }) => type === 'exec-started'));
    stop.abort(new Error('enough'));
    await expect(run).rejects.toThrow('enough');
    await gone();
    await expect(manager.run({ code: 'print()', signal: stop.signal })).rejects.toThrow('enough');
  });

  test.each([
    [{ code: '' }, /code is empty/],
    [{ code: 1 }, /code must be a string/],
    [{ code: 'x', runtime: 'perl' }, /runtime must be "python", "node" or "bash", not "perl"/],
    [{ code: 'x', files: { './main.py': '' } }, /"main.py", which is where the code goes/],
    [{ code: 'x', artifacts: ['/etc/*'] }, /\/etc/],
    [{ code: 'x', artifacts: ['../*'] }, /\.\./],
    [{ code: 'x', packages: { gem: ['x'] } }, /a key of packages must be "pip", "npm" or "apt", not "gem"/],
    [{ code: 'x', packages: { pip: ['--index-url=x'] } }, /packages.pip has "--index-url=x", which is not a package/],
    [{ code: 'x', timeoutMs: -1 }, /timeoutMs/],
    [undefined, /request/],
  ])('says what is wrong with %j', async (request, message) => {
    await expect(manager.run(request as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message });
    await gone();
  });

  test('says which runtime an image does not have', async () => {
    const run = manager.run({ runtime: 'node', image: IMAGES.alpine, code: '1' });
    await expect(run).rejects.toMatchObject({ code: 'COMMAND_NOT_FOUND', message: /"alpine:3.19" cannot run node/ });
    const heard = manager.run({ runtime: 'node', image: IMAGES.alpine, code: '1', onStdout: raise });
    await expect(heard).rejects.toMatchObject({ code: 'COMMAND_NOT_FOUND' });
    await gone();
  });

  test('is bound by the policy and takes the defaults of its manager', async () => {
    const strict = testManager({
      policy: { allowedImages: [IMAGES.alpine] },
      defaults: { env: { A: 'default' }, workdir: '/elsewhere', scope: { workflow: unique() }, user: '1000:1000' },
    });
    await expect(strict.run({ code: '1' })).rejects.toMatchObject({ code: 'IMAGE_NOT_ALLOWED' });
    const result = await strict.run({ runtime: 'bash', image: IMAGES.alpine, code: 'echo $A; pwd; id -u' });
    expect(result.stdout).toBe('default\n/elsewhere\n1000\n');
  });

  test('takes its sandbox from the warm pool', async () => {
    const warm = testManager({ warm: { [IMAGES.alpine]: 1 } });
    const events = record(warm);
    await until(() => events.some((event) => event.type === 'warming' && event.ready === 1));
    const ready = (await warm.list({ state: 'warm' })).map(({ id }) => id);
    await warm.run({ runtime: 'bash', image: IMAGES.alpine, code: 'true' });
    expect(ready).toContain(events.find(({ type }) => type === 'opened')?.sandboxId);
  });

  test('runs many at once', async () => {
    const runs = Array.from({ length: 8 }, (_, index) =>
      manager.run({ runtime: 'bash', image: IMAGES.alpine, code: `echo ${index} > n; cat n`, artifacts: ['n'] }),
    );
    const results = await Promise.all(runs);
    expect(results.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 8 }, (_, index) => `${index}\n`));
    await gone();
  });
});
