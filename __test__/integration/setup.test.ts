import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { isNamespaces } from '../ground';
import { program } from '../support';

const CLI = path.resolve(__dirname, '../../dist/cli/main.js');
const run = promisify(execFile);
const setup = (...args: string[]) => run(process.execPath, [CLI, 'setup', ...args]);
const onLinux = process.platform === 'linux' ? describe : describe.skip;

onLinux('cofferdam setup', () => {
  const root = mkdtempSync(path.join(os.tmpdir(), 'cofferdam-setup-'));
  afterAll(() => rmSync(root, { recursive: true }));

  test('installs the helper, and a profile where there is AppArmor', async () => {
    const first = await setup('--root', root);
    expect(first.stdout).toContain('profile  none');
    mkdirSync(path.join(root, 'etc/apparmor.d'), { recursive: true });
    const { stdout } = await setup('--root', root);
    const [, helper, profile] = stdout.match(/^helper {3}(.+)\nprofile {2}(.+)\n$/) ?? [];
    expect(helper?.startsWith(`${root}/usr/local/libexec/cofferdam/guest-`)).toBe(true);
    expect(statSync(helper as string).mode & 0o777).toBe(0o755);
    expect(readFileSync(profile as string, 'utf8')).toContain('profile cofferdam /usr/local/libexec/cofferdam/guest-*');
  });

  test('says what to do where the folder is not ours to write', async () => {
    const failed = await setup('--root', '/proc').then(
      () => undefined,
      (error) => error,
    );
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringMatching(/\/proc\/usr/) });
    expect(failed.stderr).not.toContain('    at ');
  });

  // The one place is the machine's own: only where nobody has set it up for real.
  const machine = '/usr/local/libexec/cofferdam';
  const onMachine = isNamespaces && process.getuid?.() === 0 && !existsSync(machine) ? test : test.skip;
  onMachine('makes sandboxes by the helper that it installed', async () => {
    try {
      const { stdout } = await setup();
      const helper = stdout.match(/^helper {3}(.+)$/m)?.[1] as string;
      const { child, line, ended } = program(`
        const manager = new SandboxManager({ backend: 'namespaces' });
        const sandbox = await manager.open();
        console.log((await sandbox.exec('readlink /proc/1/exe; echo in')).stdout.trim().split('\\n').at(-1));
        process.stdin.resume();
        await new Promise((resolve) => setTimeout(resolve, 2000));
        await manager.close();`);
      expect(await line()).toBe('in');
      const { stdout: found } = await run('pgrep', ['-f', 'guest-.* keep'], {});
      const programs = found
        .trim()
        .split('\n')
        .map((pid) => readlinkSync(`/proc/${pid}/exe`));
      expect(programs).toContain(helper);
      expect((await ended).code).toBe(0);
      expect(child.exitCode).toBe(0);
    } finally {
      rmSync(machine, { recursive: true, force: true });
      rmSync('/etc/apparmor.d/cofferdam', { force: true });
    }
  });
});
