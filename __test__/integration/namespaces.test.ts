import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ground, stateFolder } from '../ground';
import { describeOnNamespaces, program, testManager, unique, until } from '../support';

/** The first process of a sandbox, by its number on the machine. */
async function firstProcess(sandboxId: string): Promise<number> {
  return (await ground.boxOf(sandboxId)).first ?? 0;
}

/** The name that only one sandbox of a session can have. */
const claimOf = (key: string) => `cofferdam-${createHash('sha256').update(key).digest('hex').slice(0, 32)}`;

const isAlive = (pid: number) => existsSync(`/proc/${pid}`);

describeOnNamespaces('the programs of the machine as an image', () => {
  const manager = testManager({ defaults: { image: 'host' } });

  test('can be run, and nothing else of the machine is to be seen', async () => {
    const sandbox = await manager.open();
    writeFileSync('/var/tmp/cofferdam-secret', 'secret');
    const { stdout } = await sandbox.exec('node --version; ls -A /home /root /var/tmp /opt; cat /etc/shadow; hostname');
    expect(stdout).toBe(`${process.version}\n/home:\n\n/opt:\n\n/root:\n\n/var/tmp:\nsandbox\n`);
    rmSync('/var/tmp/cofferdam-secret');
  });

  test('are not changed by what a sandbox does, which sees its own changes', async () => {
    const sandbox = await manager.open({ session: 'isolated' });
    const name = unique('cofferdam-made');
    await sandbox.files.write(`/usr/local/bin/${name}`, '#!/bin/sh\necho made', { mode: 0o755 });
    await sandbox.files.write('/etc/hostname', 'mine\n');
    expect((await sandbox.exec(`${name}; cat /etc/hostname`)).stdout).toBe('made\nmine\n');
    expect(existsSync(`/usr/local/bin/${name}`)).toBe(false);
    expect((await (await manager.open()).exec(`${name}`)).exitCode).toBe(127);
  });

  test('are what the shortcuts stand for, under one name', async () => {
    expect((await manager.open({ image: 'linux', session: 'isolated' })).image).toBe('host');
    const node = await manager.open({ image: 'node', session: 'isolated' });
    expect((await node.exec(['node', '-p', '6 * 7'])).stdout).toBe('42\n');
  });

  test('do not come with a network, and whoever asks for one is told', async () => {
    await expect(manager.open({ session: 'isolated', network: true })).rejects.toMatchObject({ code: 'UNSUPPORTED' });
    const { stdout } = await (await manager.open()).exec('cat /proc/net/dev | tail -n +3 | cut -d: -f1');
    expect(stdout.trim()).toBe('lo');
  });
});

describeOnNamespaces('a folder as an image', () => {
  test('that leads out of itself by a link leaves the machine as it was', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-root-'));
    const outside = mkdtempSync(path.join(tmpdir(), 'cofferdam-outside-'));
    for (const name of ['workspace', 'proc', 'dev', 'sys', 'run']) symlinkSync(outside, path.join(folder, name));
    const manager = testManager({ defaults: { image: folder } });
    const opening = manager.open().then((sandbox) => sandbox.files.write('file', 'x'));
    await opening.catch(({ code }) => expect(typeof code).toBe('string'));
    expect(statSync(outside).nlink).toBe(2);
    expect(existsSync(path.join(outside, 'file'))).toBe(false);
    await manager.close();
    for (const each of [folder, outside]) rmSync(each, { recursive: true });
  });

  test('is refused where there is none', async () => {
    const opening = testManager().open({ image: '/no/such/root' });
    await expect(opening).rejects.toMatchObject({ code: 'IMAGE_NOT_FOUND', details: { image: '/no/such/root' } });
  });
});

describeOnNamespaces('a host program that is killed, on namespaces', () => {
  test('takes sandboxes that nobody can find again with it, long before their orphan timeout', async () => {
    const host = program(`
      const manager = new SandboxManager({ defaults: { image: 'host' }, warm: { host: 1 } });
      const sandbox = await manager.open();
      await sandbox.spawn('trap "" TERM HUP; sleep 1000', { detached: true });
      console.log(sandbox.id);
      setInterval(() => {}, 1000);
    `);
    const first = await firstProcess(await host.line());
    expect(isAlive(first)).toBe(true);
    host.child.kill('SIGKILL');
    await until(() => !isAlive(first));
  });

  test('leaves what a killed keeper kept to the next program, which cleans up', async () => {
    const manager = testManager({ defaults: { image: 'host' } });
    const sandbox = await manager.open();
    const first = await firstProcess(sandbox.id);
    const status = readFileSync(`/proc/${first}/status`, 'utf8');
    process.kill(Number(/PPid:\s+(\d+)/.exec(status)?.[1]), 'SIGKILL');
    await until(() => !isAlive(first));
    await expect(sandbox.exec('true')).rejects.toMatchObject({ code: 'SANDBOX_LOST' });
    const next = testManager();
    // Of others, some may take a minute until it is known that nobody makes them any more.
    await until(async () => {
      await next.prune();
      return !(await ground.debris()).some((name) => name.includes('box_'));
    });
    expect(await manager.open()).toMatchObject({ created: true });
  }, 180_000);
});

describeOnNamespaces('what a power cut leaves', () => {
  const manager = testManager({ defaults: { image: 'host' } });
  const scope = { workflow: unique('cut') };

  test('a name whose sandbox is gone, or has no record, is free', async () => {
    const claims = path.join(stateFolder(), 'claims');
    const sandbox = await manager.open({ scope });
    const claim = claimOf(sandbox.key);
    await sandbox.close();
    expect(existsSync(path.join(claims, claim))).toBe(false);
    const boxes = path.join(stateFolder(), 'boxes');
    const unread = `box_${unique('unread')}`;
    mkdirSync(path.join(boxes, `.${unread}`));
    writeFileSync(path.join(boxes, `.${unread}`, 'record.json'), '');
    renameSync(path.join(boxes, `.${unread}`), path.join(boxes, unread));
    for (const handle of ['box_gone', unread]) {
      symlinkSync(handle, path.join(claims, claim));
      const again = await manager.open({ scope });
      expect(again.created).toBe(true);
      await again.close();
    }
    await manager.prune();
    expect(existsSync(path.join(boxes, unread))).toBe(false);
  });

  test('a persistent workspace without its record has its files', async () => {
    const request = { scope, session: 'kept', persist: true };
    const sandbox = await manager.open(request);
    await sandbox.files.write('notes', 'kept');
    await sandbox.stop();
    writeFileSync(path.join(stateFolder(), 'data', claimOf(sandbox.key), 'record.json'), '');
    const again = await manager.open(request);
    expect(await again.files.readText('notes')).toBe('kept');
    await again.close({ keepData: false });
  });
});

describeOnNamespaces('a machine without an engine', () => {
  const hidden = process.getuid?.() === 0 && existsSync('/run/docker.sock');

  /** What a program prints where an engine that runs here is out of sight. */
  async function printed(work: string): Promise<string> {
    const dist = path.resolve(__dirname, '../../dist/index.js');
    const source = `const { SandboxManager } = require(${JSON.stringify(dist)}); (async () => { ${work} })();`;
    const { COFFERDAM_BACKEND, DOCKER_HOST, ...env } = process.env;
    const hide = 'mount --bind /dev/null /run/docker.sock && exec "$0" -e "$1"';
    const child = hidden
      ? spawn('unshare', ['--mount', 'sh', '-c', hide, process.execPath, source], { env })
      : spawn(process.execPath, ['-e', source], { env });
    let output = '';
    child.stdout.on('data', (data) => {
      output += data;
    });
    await once(child, 'close');
    return output;
  }

  test('has sandboxes of namespaces without being told', async () => {
    const output = await printed(`
      const manager = new SandboxManager();
      const { backend } = await manager.info();
      const sandbox = await manager.open();
      console.log(backend, (await sandbox.exec('echo here')).stdout.trim());
      await manager.close();`);
    expect(output).toBe('namespaces here\n');
  });

  test('gives no sandbox of namespaces to a program that names a runtime of engines', async () => {
    const output = await printed(`
      for (const backend of [undefined, 'auto']) {
        const manager = new SandboxManager({ backend, docker: { runtime: 'runsc' } });
        await manager.open().catch(({ code }) => console.log(code));
      }`);
    expect(output).toBe('ENGINE_UNAVAILABLE\nENGINE_UNAVAILABLE\n');
  });
});
