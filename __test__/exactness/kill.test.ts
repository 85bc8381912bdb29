import type { Sandbox } from 'cofferdam';
import { describeWithEngine, imagesOf, testManager } from '../support';
import { each, random } from './random';

/** On each image. */
const TREES = 100;

/** Processes that do not want to go. */
const NASTY: Record<string, string> = {
  'fork chain': 'down() { if [ $1 -gt 0 ]; then ( down $(($1 - 1)); sleep 1000 ) & fi; wait; }; down 12; sleep 1000',
  'own session': 'setsid sleep 1000 & setsid sh -c "setsid sleep 1000 & sleep 1000" & sleep 1000',
  'double fork': '( ( sleep 1000 & ) & ) ; ( ( ( sleep 1000 & ) & ) & ); sleep 1000',
  'deaf to TERM': 'trap "" TERM HUP INT; ( trap "" TERM; while :; do sleep 0.01; done ) & while :; do sleep 0.01; done',
  stopped: '( sleep 1000 & kill -STOP $!; sh -c "kill -STOP \\$\\$" ) & sleep 0.01; kill -STOP $$',
  'full pipe': 'yes | sleep 1000 & yes | ( sleep 1000; cat ) & yes | sleep 1000',
  'loud orphan': '( while :; do echo orphan; done & ) ; exit 0',
  'quick births': '( while :; do ( sleep 0.001 & ) ; done ) & exec sleep 1000',
  // Its first process needs no other: a shell that may not fork would give up, and leave the bomb behind.
  'fork bomb': 'bomb() { bomb | bomb & }; bomb & exec sleep 1000',
  'respawning pair':
    'a() { sleep 0.01; b & }; b() { sleep 0.01; a & }; trap "a &" TERM; a & while :; do sleep 0.01; done',
};

describeWithEngine.each(imagesOf('debian', 'alpine'))('nasty process trees on %s', (image) => {
  const manager = testManager({ defaults: { image, limits: { pids: 200 } } });

  /** Everything in the sandbox that was started with this mark in its environment. */
  async function marked(sandbox: Sandbox, mark: string): Promise<string[]> {
    const script = `for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ 2>/dev/null | grep -qx "NEEDLE=${mark}" && echo $p; done; true`;
    return (await sandbox.exec(script)).stdout.split('\n').filter(Boolean);
  }

  /** Ends one tree in one of the ways there are, and looks whether anything is left of it. */
  async function endOne(sandbox: Sandbox, name: string, number: number): Promise<void> {
    const { below, pick } = random(number);
    const script = NASTY[name] as string;
    const mark = `${name}_${number}_${below(1e9)}`.replaceAll(' ', '_');
    const options = { env: { NEEDLE: mark }, killGraceMs: pick([0, 20, 100]) };
    const afterMs = 20 + below(150);
    if (name === 'loud orphan') {
      const process = await sandbox.spawn(script, options);
      await process.read({ waitMs: 5_000 });
      await process.kill();
    } else if (below(2)) {
      const reason = new Error('aborted');
      const controller = new AbortController();
      setTimeout(() => controller.abort(reason), afterMs);
      await expect(sandbox.exec(script, { ...options, signal: controller.signal })).rejects.toBe(reason);
    } else {
      const { timedOut, exitCode } = await sandbox.exec(script, { ...options, timeoutMs: afterMs });
      expect({ name, timedOut }).toEqual({ name, timedOut: true });
      expect([137, 143]).toContain(exitCode);
    }
    expect((await sandbox.exec(['echo', 'alive'])).stdout).toBe('alive\n');
    expect({ name, number, left: await marked(sandbox, mark) }).toEqual({ name, number, left: [] });
  }

  /** Says what it is told, and needs no further process for that: whoever is disturbed loses a word, or is gone. */
  async function withWitness(sandbox: Sandbox, work: () => Promise<void>): Promise<void> {
    const witness = await sandbox.spawn(['cat']);
    const told: string[] = [];
    let speaking = Promise.resolve();
    const clock = setInterval(() => {
      told.push(`${told.length}\n`);
      const word = told.at(-1) as string;
      speaking = speaking.then(() => witness.write(word));
    }, 20);
    await work().finally(() => clearInterval(clock));
    await speaking;
    await witness.end();
    const { stdout, exitCode } = await witness.wait();
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: told.join('') });
    expect((await sandbox.processes()).filter((process) => process.exitCode === null)).toEqual([]);
  }

  const BOMBS = ['fork bomb', 'quick births'];
  const TAME = Object.keys(NASTY).filter((name) => !BOMBS.includes(name));

  test('ended by timeout or abort, several at once, leave no process and disturb nobody', async () => {
    const sandbox = await manager.open({ session: 'trees' });
    await withWitness(sandbox, () =>
      each(TREES * 0.8, 3, (number) => endOne(sandbox, TAME[number % TAME.length] as string, number)),
    );
  }, 240_000);

  test('that take every process there may be, end as well', async () => {
    const sandbox = await manager.open({ session: 'bombs' });
    await withWitness(sandbox, () =>
      each(TREES * 0.2, 1, (number) => endOne(sandbox, BOMBS[number % 2] as string, number)),
    );
  }, 240_000);
});
