import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { Den } from './den';
import { everyUser, expectShut } from './shut';
import { describeWorlds, differs } from './worlds';

/** CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE, SYS_CHROOT. */
const ALLOWED = [0, 1, 3, 4, 5, 6, 7, 10, 18].reduce((mask, capability) => mask | (1n << BigInt(capability)), 0n);

interface Ids {
  Uid: string;
  CapInh: string;
  CapPrm: string;
  CapEff: string;
  CapBnd: string;
  CapAmb: string;
  NoNewPrivs: string;
  Seccomp: string;
}

describeWorlds('processes', (world) => {
  const den = new Den(world);
  beforeAll(() => den.start());
  afterAll(() => den.stop());
  const { witness } = den;
  const pid = () => String(witness.pid);

  test('of the host cannot be signalled', async () => {
    await expectShut(den, { words: ['kill', pid(), '0'] });
    await expectShut(den, { words: ['kill', pid(), '9'], outside: ['kill', pid(), '0'] });
  });

  test('of the host outlive a signal to everybody', async () => {
    const sandbox = await den.open();
    await den.inside(['kill', '-1', '9'], 'root', sandbox).catch(() => {});
    expect(witness.isUntouched).toBe(true);
    // The program that holds the sandbox is one of them.
    expect(await den.info()).toHaveProperty('backend', world.backend);
    await den.ask('close', sandbox);
  });

  test.each(['trace', 'read-memory', 'take-descriptor'])('of the host cannot be reached by %s', async (attempt) => {
    await expectShut(den, { words: [attempt, pid()] });
  });

  test('of the host keep their priority', async () => {
    const before = witness.niceness;
    await expectShut(den, { words: ['renice', 'process', pid()], outside: ['kill', pid(), '0'] });
    // In a sandbox these are all that one’s user has there; outside it would be everything that the user runs.
    await everyUser(den, ['renice', 'user', '0']);
    expect(witness.niceness).toBe(before);
    await den.outside(['renice', 'process', pid()]);
    expect(witness.niceness).toBe(before + 3);
  });

  test('of the host show neither command lines nor environments', async () => {
    await expectShut(den, { words: ['seen', witness.reversed] });
  });

  test('do not learn the name of the machine', async () => {
    expect(await den.outside(['hostname'])).toEqual({ got: hostname() });
    for (const [, answer] of await everyUser(den, ['hostname'])) {
      expect(answer).toEqual({ got: expect.not.stringMatching(`^${hostname()}$`) });
    }
  });

  test('have no capability but those that package managers need, and get no new ones', async () => {
    const outside = (await den.outside(['ids'])) as { got: Ids };
    if (den.isRoot) expect(BigInt(`0x${outside.got.CapEff}`) & ~ALLOWED).not.toBe(0n);
    for (const [boxUser, answer] of await everyUser(den, ['ids'])) {
      const { got } = answer as { got: Ids };
      for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'] as const) {
        expect([boxUser, set, BigInt(`0x${got[set]}`) & ~ALLOWED]).toEqual([boxUser, set, 0n]);
      }
      expect(got).toMatchObject({ NoNewPrivs: '1', Seccomp: '2' });
      if (boxUser === 'ordinary') expect(got).toMatchObject({ CapEff: '0'.repeat(16), CapPrm: '0'.repeat(16) });
    }
  });

  test('gain nothing from setuid programs', async () => {
    if (den.isRoot) {
      const copy = path.join(den.folder, 'setuid');
      copyFileSync(den.probe, copy);
      chmodSync(copy, 0o6755);
      const outside = execFileSync('setpriv', ['--reuid=4321', '--regid=4321', '--clear-groups', '--', copy, 'ids']);
      expect(JSON.parse(String(outside)).got.Uid).toBe('4321 0 0 0');
    }
    for (const place of ['/workspace/setuid', '/tmp/setuid', '/usr/local/bin/setuid', '/dev/shm/setuid']) {
      await den.ask('put', den.sandbox, den.probe, place, 0o6755);
      for (const boxUser of den.users) {
        const user = boxUser === 'root' ? '0' : '4321';
        const run = den.ask<{ stdout: string }>('exec', den.sandbox, [place, 'ids'], { user: `${user}:${user}` });
        // A folder from which nothing may be executed is as good.
        const { stdout } = await run.catch(() => ({ stdout: '' }));
        if (stdout) expect(JSON.parse(stdout).got.Uid).toBe(`${user} ${user} ${user} ${user}`);
      }
    }
  });

  test('have no controlling terminal of the program that made the sandbox', async () => {
    expect(await den.outside(['terminal'], { leash: true })).toEqual({ got: '/dev/tty' });
    for (const [, answer] of await everyUser(den, ['terminal'])) expect(answer).toMatchObject({ refused: 'ENXIO' });
  });

  test('cannot type into a terminal, not even their own, nor ask the console', async () => {
    const probe = '/workspace/probe';
    expect(await den.ask('inTerminal', den.sandbox, [probe, 'terminal'])).toContain('"got"');
    for (const attempt of ['type-into-terminal', 'read-console']) {
      const said = await den.ask('inTerminal', den.sandbox, [probe, attempt]);
      expect(said).toMatch(differs(world, [attempt]) ? /"got"|"refused"/ : /"refused"/);
    }
  });
});
