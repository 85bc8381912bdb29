import { readdirSync, readFileSync } from 'node:fs';
import Docker from 'dockerode';
import { ground, isNamespaces } from '../ground';
import { describeWithEngine, IMAGES, testManager, testOnDocker, unique } from '../support';

const docker = new Docker();

/** Every user of the machine can read these. */
function commandLines(): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      return [readFileSync(`/proc/${pid}/cmdline`, 'latin1')];
    } catch {
      // It ended meanwhile.
      return [];
    }
  });
}

/** The forms in which a text could stand on a command line. */
const forms = (text: string) => [
  text,
  Buffer.from(text).toString('hex'),
  Buffer.from(text).toString('base64').slice(0, -4),
];

describeWithEngine('command lines', () => {
  test.each(Object.entries(IMAGES))('say nothing of a session, its variables and its labels (%s)', async (_, image) => {
    const [workflow, secret, label] = [unique('wf'), unique('secret'), unique('label')];
    const manager = testManager({ defaults: { image } });
    const sandbox = await manager.open({ scope: { workflow }, env: { TOKEN: secret }, labels: { team: label } });
    expect(sandbox.key).toContain(workflow);
    const words = [workflow, secret, label, sandbox.id].flatMap(forms);
    const leaks = (lines: string[]) => lines.filter((line) => words.some((word) => line.includes(word)));
    expect(leaks(commandLines())).toEqual([]);
    expect(leaks([await sandbox.files.read('/proc/1/cmdline', { maxBytes: 4096 }).then(String)])).toEqual([]);
    // The one that was looked for is among those that were looked at.
    const first = isNamespaces ? (await ground.boxOf(sandbox.id)).first : await firstOf(sandbox.id);
    expect(readFileSync(`/proc/${first}/cmdline`, 'latin1').split('\0')).toContain('init');
    await sandbox.close();
  });

  testOnDocker('of containers are as short as can be', async () => {
    const sandbox = await testManager({ defaults: { image: IMAGES.alpine } }).open();
    const [found] = await docker.listContainers({ filters: { label: [`cofferdam.id=${sandbox.id}`] } });
    const { Config, Args } = await docker.getContainer(found?.Id ?? 'none').inspect();
    expect({ Cmd: Config.Cmd, Args }).toEqual({ Cmd: ['init'], Args: ['init'] });
    await sandbox.close();
  });
});

async function firstOf(sandboxId: string): Promise<number> {
  const [found] = await docker.listContainers({ filters: { label: [`cofferdam.id=${sandboxId}`] } });
  return (await docker.getContainer(found?.Id ?? 'none').inspect()).State.Pid;
}
