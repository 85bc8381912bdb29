import type { Command, ExecOptions, Sandbox, SandboxErrorCode } from 'cofferdam';
import { describeWithEngine, IMAGES, testManager } from '../support';
import { failure, sturdySandbox, untyped } from './failure';

const TEN_MB = 'x'.repeat(10_000_000);
const HUNDRED_KB = 'x'.repeat(100_000);

type Case = [what: string, code: SandboxErrorCode, command: Command, options?: ExecOptions];

const CASES: Case[] = [
  ['an empty script', 'INVALID_ARGUMENT', ''],
  ['an empty array', 'INVALID_ARGUMENT', []],
  ['an empty program name', 'INVALID_ARGUMENT', ['']],
  ['a program that does not exist', 'COMMAND_NOT_FOUND', ['no-such-program']],
  ['a program at a path that does not exist', 'COMMAND_NOT_FOUND', ['/no/such/program']],
  ['a program that is a directory', 'PERMISSION_DENIED', ['/etc']],
  ['a program that is not executable', 'PERMISSION_DENIED', ['/etc/passwd']],
  ['a NUL byte in a script', 'INVALID_ARGUMENT', 'echo a\0b'],
  ['a NUL byte in an argument', 'INVALID_ARGUMENT', ['echo', 'a\0b']],
  ['half of a surrogate pair in a script', 'INVALID_ARGUMENT', 'echo \ud800'],
  ['a script of 10 MB', 'INVALID_ARGUMENT', `: ${TEN_MB}`],
  ['an argument of 10 MB', 'INVALID_ARGUMENT', ['echo', TEN_MB]],
  ['3 MB of short arguments', 'INVALID_ARGUMENT', ['echo', ...Array<string>(30).fill(HUNDRED_KB)]],
  ['6 MB of short arguments', 'INVALID_ARGUMENT', ['echo', ...Array<string>(60).fill(HUNDRED_KB)]],
  ['no command', 'INVALID_ARGUMENT', untyped(undefined)],
  ['null for a command', 'INVALID_ARGUMENT', untyped(null)],
  ['a number for a command', 'INVALID_ARGUMENT', untyped(5)],
  ['an object for a command', 'INVALID_ARGUMENT', untyped({ command: 'true' })],
  ['a number among the arguments', 'INVALID_ARGUMENT', untyped(['echo', 5])],
  ['null for options', 'INVALID_ARGUMENT', 'true', untyped(null)],
  ['= in the name of a variable', 'INVALID_ARGUMENT', 'true', { env: { 'A=B': 'x' } }],
  ['an empty name of a variable', 'INVALID_ARGUMENT', 'true', { env: { '': 'x' } }],
  ['a NUL byte in the name of a variable', 'INVALID_ARGUMENT', 'true', { env: { 'A\0': 'x' } }],
  ['a NUL byte in a variable', 'INVALID_ARGUMENT', 'true', { env: { A: 'x\0' } }],
  ['a variable of 10 MB', 'INVALID_ARGUMENT', 'true', { env: { A: TEN_MB } }],
  ['a variable that is a number', 'INVALID_ARGUMENT', 'true', { env: untyped({ A: 5 }) }],
  ['a negative timeout', 'INVALID_ARGUMENT', 'true', { timeoutMs: -1 }],
  ['a timeout of minus infinity', 'INVALID_ARGUMENT', 'true', { timeoutMs: Number.NEGATIVE_INFINITY }],
  ['a timeout that is not a number', 'INVALID_ARGUMENT', 'true', { timeoutMs: Number.NaN }],
  ['a timeout that is a string', 'INVALID_ARGUMENT', 'true', { timeoutMs: untyped('5') }],
  ['a negative grace period', 'INVALID_ARGUMENT', 'true', { killGraceMs: -1 }],
  ['a grace period that is not a number', 'INVALID_ARGUMENT', 'true', { killGraceMs: Number.NaN }],
  ['a negative output limit', 'INVALID_ARGUMENT', 'true', { maxOutputBytes: -1 }],
  ['an output limit that is not a number', 'INVALID_ARGUMENT', 'true', { maxOutputBytes: Number.NaN }],
  ['a folder that does not exist', 'FILE_NOT_FOUND', 'true', { cwd: '/no/such/folder' }],
  ['a folder that is a file', 'NOT_A_DIRECTORY', 'true', { cwd: '/etc/passwd' }],
  ['a folder below a file', 'NOT_A_DIRECTORY', 'true', { cwd: '/etc/passwd/x' }],
  ['an empty folder name', 'INVALID_ARGUMENT', 'true', { cwd: '' }],
  ['a NUL byte in the folder', 'INVALID_ARGUMENT', 'true', { cwd: '/a\0b' }],
  ['a folder name that is too long', 'INVALID_ARGUMENT', 'true', { cwd: `/${'x'.repeat(300)}` }],
  ['an unknown user', 'INVALID_ARGUMENT', 'true', { user: 'no-such-user' }],
  ['an unknown group', 'INVALID_ARGUMENT', 'true', { user: 'root:no-such-group' }],
  ['an empty user', 'INVALID_ARGUMENT', 'true', { user: '' }],
  ['a NUL byte in the user', 'INVALID_ARGUMENT', 'true', { user: 'ro\0ot' }],
  ['a negative uid', 'INVALID_ARGUMENT', 'true', { user: '-1' }],
  ['a uid past all uids', 'INVALID_ARGUMENT', 'true', { user: '99999999999' }],
  // To the kernel this one means "stay who you are", which is root.
  ['the uid that is no uid', 'INVALID_ARGUMENT', 'true', { user: '4294967295' }],
  ['the gid that is no gid', 'INVALID_ARGUMENT', 'true', { user: '1000:4294967295' }],
  ['an input that is a number', 'INVALID_ARGUMENT', 'true', { stdin: untyped(5) }],
  ['a signal that is none', 'INVALID_ARGUMENT', 'true', { signal: untyped({}) }],
  ['a callback that is none', 'INVALID_ARGUMENT', 'echo hi', { onStdout: untyped(5) }],
];

// Rows of one length: jest takes a missing last argument for its own `done`.
const REFUSED = CASES.map(([what, code, command, options]) => [what, code, command, options] as const);

describeWithEngine('a command that cannot be run', () => {
  const sandbox = sturdySandbox(testManager(), { image: IMAGES.alpine });

  test.each(REFUSED)('%s rejects exec with %s', async (_, code, command, options) => {
    const error = await failure(sandbox().exec(command, options));
    expect(error.code).toBe(code);
    expect(error.stack).toContain('bad-commands.test.ts');
  });

  const spawned = REFUSED.filter(([, , , options]) => options?.stdin === undefined);

  test.each(spawned)('%s rejects spawn with %s', async (_, code, command, options) => {
    expect((await failure(sandbox().spawn(command, options))).code).toBe(code);
  });
});

describeWithEngine('a command with odd but honest options', () => {
  const sandbox = sturdySandbox(testManager(), { image: IMAGES.alpine });

  test.each([0, 1e18, Number.MAX_SAFE_INTEGER, Number.MAX_VALUE, Number.POSITIVE_INFINITY])(
    'a timeout of %p does not end it',
    async (timeoutMs) => {
      const result = await sandbox().exec('sleep 0.05; echo done', { timeoutMs, killGraceMs: timeoutMs });
      expect(result).toMatchObject({ stdout: 'done\n', exitCode: 0, timedOut: false });
    },
  );

  test('an argument just as long as Linux allows arrives whole', async () => {
    const argument = 'x'.repeat(128 * 1024 - 1);
    const { stdout } = await sandbox().exec(['sh', '-c', 'printf %s "$1" | wc -c', 'sh', argument]);
    expect(Number(stdout)).toBe(argument.length);
  });

  test('a command that cannot read all of its input ends all the same', async () => {
    const result = await sandbox().exec(['head', '-c', '3'], { stdin: TEN_MB });
    expect(result).toMatchObject({ stdout: 'xxx', exitCode: 0 });
  });

  test('an image without a shell says so, and runs no string', async () => {
    const manager = testManager();
    const empty = await manager.open({ image: IMAGES.empty });
    const error = await failure(empty.exec('echo hi'));
    expect(error.code).toBe('COMMAND_NOT_FOUND');
    expect(error.message).toMatch(/no shell/);
  });
});

describeWithEngine('a process that is asked for what it cannot do', () => {
  const sandbox = sturdySandbox(testManager(), { image: IMAGES.alpine });

  async function withSleeper(use: (process: Awaited<ReturnType<Sandbox['spawn']>>) => Promise<void>) {
    const process = await sandbox().spawn('sleep 1000');
    try {
      await use(process);
    } finally {
      await process.kill();
    }
  }

  test('a process that never was is not found', async () => {
    for (const execId of ['', 'exec_nope', '\0']) {
      expect((await failure(sandbox().process(execId))).code).toBe('PROCESS_NOT_FOUND');
    }
    expect((await failure(sandbox().process(untyped(5)))).code).toBe('INVALID_ARGUMENT');
  });

  test('a signal that is none is refused, and the process lives', async () => {
    await withSleeper(async (process) => {
      for (const signal of ['SIGNOPE', '', 'kill', 9]) {
        expect((await failure(process.kill(untyped(signal)))).code).toBe('INVALID_ARGUMENT');
      }
      const known = (await sandbox().processes()).find(({ execId }) => execId === process.execId);
      expect(known?.exitCode).toBeNull();
    });
  });

  test('numbers that are none are refused', async () => {
    await withSleeper(async (process) => {
      for (const bad of [-1, Number.NaN, '1']) {
        const number = untyped<number>(bad);
        expect((await failure(process.read({ sinceSeq: number }))).code).toBe('INVALID_ARGUMENT');
        expect((await failure(process.read({ maxChunks: number }))).code).toBe('INVALID_ARGUMENT');
        expect((await failure(process.read({ waitMs: number }))).code).toBe('INVALID_ARGUMENT');
        expect((await failure(process.wait({ timeoutMs: number }))).code).toBe('INVALID_ARGUMENT');
      }
    });
  });

  test('a wait that takes too long says so, and the process lives', async () => {
    await withSleeper(async (process) => {
      const error = await failure(process.wait({ timeoutMs: 20 }));
      expect(error.code).toBe('TIMED_OUT');
      expect(error.details).toMatchObject({ execId: process.execId });
      expect(await process.read()).toMatchObject({ done: false });
    });
  });

  test('input after its end is refused', async () => {
    const process = await sandbox().spawn('cat');
    await process.write('a');
    await process.end();
    expect((await failure(process.write('b'))).code).toBe('INVALID_ARGUMENT');
    expect((await failure(process.write(untyped(5)))).code).toBe('INVALID_ARGUMENT');
    expect((await process.wait()).stdout).toBe('a');
  });
});
