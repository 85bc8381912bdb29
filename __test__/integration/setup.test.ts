import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, statSync, truncateSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { isNamespaces } from '../ground';
import { until } from '../support';

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
    const { mode, size } = statSync(helper as string);
    expect(mode & 0o777).toBe(0o755);
    truncateSync(helper as string, 1000);
    await setup('--root', root);
    expect(statSync(helper as string).size).toBe(size);
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

  // In mounts of its own: what is at that place of the machine, every other program that starts meanwhile would take, too.
  const asRoot = isNamespaces && process.getuid?.() === 0 ? test : test.skip;
  asRoot('makes sandboxes by the helper that it installed', async () => {
    const source = `
      const { SandboxManager } = require(${JSON.stringify(path.resolve(CLI, '../../index.js'))});
      (async () => {
        const manager = new SandboxManager({ backend: 'namespaces' });
        const sandbox = await manager.open();
        console.log((await sandbox.exec('echo in')).stdout.trim());
        for await (const _ of process.stdin);
        await manager.close();
      })();`;
    const covered =
      'for place in /usr/local/libexec /etc/apparmor.d; do mkdir -p $place; mount -t tmpfs tmpfs $place; done';
    const script = `${covered}; "$0" "$1" setup; exec "$0" -e "$2"`;
    const child = spawn('unshare', ['--mount', 'sh', '-euc', script, process.execPath, CLI, source]);
    const ended = once(child, 'close');
    let output = '';
    child.stdout.on('data', (data) => {
      output += data;
    });
    await until(() => /^in$/m.test(output) || child.exitCode !== null);
    const helper = output.match(/^helper {3}(.+)$/m)?.[1];
    expect(helper).toMatch(/^\/usr\/local\/libexec\/cofferdam\/guest-/);
    const { stdout: found } = await run('pgrep', ['-f', 'guest-.* keep'], {});
    expect(found.trim().split('\n').flatMap(programOf)).toContain(helper);
    child.stdin.end();
    expect((await ended)[0]).toBe(0);
  });
});

/** Nothing of a process that has just ended. */
function programOf(pid: string): string[] {
  try {
    return [readlinkSync(`/proc/${pid}/exe`)];
  } catch {
    return [];
  }
}
