import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { buffer } from 'node:stream/consumers';
import { describeWithEngine, IMAGES, testManager } from '../support';
import { each, random } from './random';

const PROGRAMS = 500;

/** A program that prints to both streams in pieces of all sizes, with pauses, and ends in some way. */
function write(seed: number): string {
  const { below, pick } = random(seed);
  const word = () => pick(['tick', 'ü€😀', '\\xff\\xfe', 'long line of text ', '\\n', '\\r\\n', '\\x00', '\\xe2\\x82']);
  const piece = () => {
    const size = pick([1, 2, 3, 7, 100, 4_096, 65_536, 70_001, 300_000]);
    const times = Math.max(1, Math.floor(size / 8));
    return `for i in $(seq ${Math.min(times, 200)}); do printf '${word().repeat(Math.min(8, Math.ceil(size / 200)))}'; done`;
  };
  const bulk = () => `head -c ${below(400_000)} /dev/zero | tr '\\0' '${pick(['a', 'b', 'z'])}'`;
  const steps = Array.from({ length: 1 + below(6) }, () => {
    const to = pick(['', ' >&2']);
    const action = pick([piece, piece, bulk, () => `sleep 0.00${below(9)}`, () => `printf '%s' '${below(1e9)}'`])();
    return pick([`{ ${action}; }${to}`, `( ${action} )${to}`, `{ ${action}; }${to} & wait`]);
  });
  const signals = ['TERM', 'KILL', 'INT', 'SEGV', 'USR1', 'ABRT', 'PIPE', 'HUP'];
  const end = pick([() => 'true', () => `exit ${below(256)}`, () => `kill -${pick(signals)} $$; sleep 5`])();
  return `${steps.join('\n')}\n${end}`;
}

interface Outcome {
  stdout: Buffer;
  stderr: Buffer;
  exitCode: number;
  signal: string | null;
}

/** What the same program gives under the host's own bash. */
async function onHost(program: string): Promise<Outcome> {
  const env = { PATH: process.env.PATH, LANG: 'C' };
  const child = spawn('/bin/bash', ['-c', program], { stdio: ['ignore', 'pipe', 'pipe'], env });
  const [stdout, stderr, [code, signal]] = await Promise.all([
    buffer(child.stdout),
    buffer(child.stderr),
    once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
  ]);
  return { stdout, stderr, exitCode: code ?? 128 + constants.signals[signal ?? 'SIGHUP'], signal };
}

describeWithEngine('the output of random programs', () => {
  const manager = testManager({ defaults: { image: IMAGES.debian } });

  test(`is, for ${PROGRAMS} of them, what the host's own bash gives: every byte, each stream's order, the status`, async () => {
    const sandbox = await manager.open({ env: { LANG: 'C' } });
    const maxOutputBytes = 16 * 2 ** 20;

    async function followed(program: string): Promise<Outcome> {
      const process = await sandbox.spawn(['/bin/bash', '-c', program], { maxOutputBytes });
      await process.end();
      const streams = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
      let last = 0;
      for await (const { seq, stream, data } of process) {
        expect(seq).toBe(++last);
        streams[stream].push(data);
      }
      const { exitCode, signal } = await process.wait();
      return { stdout: Buffer.concat(streams.stdout), stderr: Buffer.concat(streams.stderr), exitCode, signal };
    }

    async function collected(program: string): Promise<Outcome> {
      const process = await sandbox.spawn(['/bin/bash', '-c', program], { maxOutputBytes });
      await process.end();
      const { exitCode, signal } = await process.wait();
      const { chunks, done, lostBytes } = await process.read({ maxChunks: 100_000 });
      expect({ done, lostBytes }).toEqual({ done: true, lostBytes: 0 });
      const of = (name: string) =>
        Buffer.concat(chunks.filter(({ stream }) => stream === name).map(({ data }) => data));
      return { stdout: of('stdout'), stderr: of('stderr'), exitCode, signal };
    }

    const digest = ({ stdout, stderr, exitCode, signal }: Outcome) => ({
      exitCode,
      signal,
      stdout: stdout.toString('latin1'),
      stderr: stderr.toString('latin1'),
    });

    await each(PROGRAMS, 4, async (number) => {
      const program = write(number);
      const run = number % 2 ? followed : collected;
      const [ours, hosts] = await Promise.all([run(program), onHost(program)]);
      const same =
        ours.stdout.equals(hosts.stdout) &&
        ours.stderr.equals(hosts.stderr) &&
        ours.exitCode === hosts.exitCode &&
        ours.signal === hosts.signal;
      // Only then, because a difference of megabytes is slow to show.
      if (!same) expect({ number, program, ...digest(ours) }).toEqual({ number, program, ...digest(hosts) });
    });
  }, 240_000);
});
