import { spawnSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { SandboxManager } from 'cofferdam';
import Docker from 'dockerode';
import { describeOnDocker, IMAGES, testManager, unique, until } from '../support';

const docker = new Docker();
const image = IMAGES.alpine;

/** As the label has it: this boot, the numbers seen in it, the number, and when it started. */
function maker(pid: number, started: string): string {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return `${boot}:${readlinkSync('/proc/self/ns/pid')} ${pid} ${started}`;
}

const startOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[19] ?? '';

describeOnDocker('what dead programs and older versions left on Docker', () => {
  const manager = testManager();
  const made: Docker.Container[] = [];

  afterAll(async () => {
    for (const container of made) await container.remove({ force: true }).catch(() => {});
  });

  async function left(labels: Record<string, string>, Cmd = ['true']) {
    const container = await docker.createContainer({
      Image: image,
      Cmd,
      name: `cofferdam-${unique('left')}`,
      Labels: { 'cofferdam.id': unique('sbx'), ...labels },
    });
    made.push(container);
    return container;
  }

  const exists = (container: Docker.Container) =>
    container.inspect().then(
      // One that somebody else's manager is just removing is as good as gone.
      ({ State }) => State.Status !== 'removing',
      () => false,
    );

  test('prune() removes what was never started by a program that is dead, and what ended and stayed', async () => {
    const { pid } = spawnSync('true');
    const dead = await left({ 'cofferdam.maker': maker(pid, '1') });
    const ended = await left({});
    await ended.start();
    await ended.wait();
    const { sandboxes } = await manager.prune({ dryRun: true });
    // Managers of other suites clean up too: what they have not taken, the dry run has told and left.
    for (const container of [dead, ended]) {
      if (await exists(container)) expect(sandboxes).toContain(container.id);
    }
    await manager.prune();
    expect([await exists(dead), await exists(ended)]).toEqual([false, false]);
  });

  test('what a living program is just making is left alone, and so is what cannot be judged from here', async () => {
    const living = await left({ 'cofferdam.maker': maker(process.pid, startOf(process.pid)) });
    const elsewhere = await left({ 'cofferdam.maker': 'another-boot:pid:[1] 5 7' });
    const foreign = await docker.createContainer({ Image: image, Cmd: ['true'], Labels: { 'not.ours': '1' } });
    made.push(foreign);
    const { sandboxes } = await manager.prune();
    for (const container of [living, elsewhere, foreign]) {
      expect(sandboxes).not.toContain(container.id);
      expect(await exists(container)).toBe(true);
    }
  });

  test('a manager does it by itself, beside its first open', async () => {
    const { pid } = spawnSync('true');
    const dead = await left({ 'cofferdam.maker': maker(pid, '1') });
    await using fresh = new SandboxManager({ defaults: { image } });
    await fresh.open();
    await until(async () => !(await exists(dead)));
  });

  test('guests of other versions go when no sandbox uses them', async () => {
    const [unused, used] = [`cofferdam-guest-${unique('a')}`, `cofferdam-guest-${unique('b')}`];
    for (const Name of [unused, used]) await docker.createVolume({ Name, Labels: { 'cofferdam.guest': '0.0.1' } });
    const user = await docker.createContainer({
      Image: image,
      Cmd: ['true'],
      HostConfig: { Mounts: [{ Type: 'volume', Source: used, Target: '/v' }] },
    });
    made.push(user);
    const volumes = async () => ((await docker.listVolumes()).Volumes ?? []).map(({ Name }) => Name);
    await manager.prune();
    const after = await volumes();
    expect(after).not.toContain(unused);
    expect(after).toContain(used);
    await user.remove();
    // Managers of other suites may be faster.
    await docker
      .getVolume(used)
      .remove()
      .catch(() => {});
    // The one in use by this version stays.
    const sandbox = await manager.open({ image, session: 'isolated' });
    await manager.prune();
    expect((await sandbox.exec('echo fine')).stdout).toBe('fine\n');
    await sandbox.close();
  });

  test('a dry run lists a workspace when no sandbox uses it, and not before', async () => {
    const sandbox = await manager.open({ image, scope: { user: unique() }, persist: true });
    const filters = { label: [`cofferdam.id=${sandbox.id}`] };
    const mounts = (await docker.listContainers({ filters })).flatMap(({ Mounts }) => Mounts);
    const volume = mounts.find(({ Name }) => Name?.startsWith('cofferdam-data-'))?.Name ?? '';
    const listed = async () => (await manager.prune({ volumes: true, dryRun: true })).volumes;
    expect(volume).not.toBe('');
    expect(await listed()).not.toContain(volume);
    await sandbox.close();
    await until(async () => (await listed()).includes(volume));
    await docker.getVolume(volume).remove();
  });
});
