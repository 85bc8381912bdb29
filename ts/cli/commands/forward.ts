/** `cofferdam forward`: ports of a sandbox on this machine's own loopback, for as long as the program runs. */
import { SandboxError } from '../../errors';
import type { SandboxManager } from '../../manager';
import type { Sandbox } from '../../sandbox';
import { command, EXIT, say, UsageError } from '../command';
import { ENGINE, managerFrom } from '../engine';
import { findInfo, SANDBOX_OPERAND } from '../find';
import { pause } from '../pause';
import { JSON_FLAG, print, printJson } from '../print';
import { stopSignal } from '../stop';

const LOOK_AGAIN_MS = 100;

/** How the kernel's tables call a socket that somebody listens at. */
const LISTENING = '0A';

interface Ports {
  readonly port: number;
  readonly hostPort?: number;
}

export const forward = command({
  name: 'forward',
  summary: 'Reach a port of a sandbox from this machine',
  about: `Listens on 127.0.0.1 and carries every connection into the sandbox, through the guest: its network may
be off, and nobody else on your network can reach it. Runs until Ctrl-C, and then ends its connections;
fails when the sandbox is gone. Its addresses are printed as soon as they are there.`,
  operands: [
    SANDBOX_OPERAND,
    { name: '[hostPort:]port', about: 'A port of the sandbox; any free port of this machine unless told', many: true },
  ],
  flags: {
    wait: { type: 'boolean', about: 'Print an address only when somebody listens in the sandbox' },
    ...JSON_FLAG,
    ...ENGINE,
  },
  examples: [
    { line: 'cofferdam forward web 8000', about: 'Any port here to port 8000 there' },
    { line: 'cofferdam forward web 3000:3000 5432 --wait', about: 'Several, when there are servers' },
  ],
  async run({ flags, operands: [name = '', ...words] }) {
    const wanted = words.map(portsFrom);
    const signal = stopSignal();
    const manager = managerFrom(flags);
    const { id } = await findInfo(manager, name);
    const gone = whenGone(manager, id);
    // Nobody waits for it yet.
    gone.catch(() => {});
    const sandbox = await manager.get(id);
    const serving = Promise.all(
      wanted.map(async ({ port, hostPort }) => {
        const { hostPort: given, url } = await sandbox.forward(port, { hostPort });
        if (flags.wait) await untilHeard(sandbox, port, signal);
        if (signal.aborted) return;
        if (flags.json) printJson({ sandboxId: sandbox.id, port, hostPort: given, url }, 'line');
        else print(`${url} → ${port}`);
      }),
    );
    await Promise.race([gone, serving]);
    const stopped = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.race([gone, stopped]);
    // What it made is closed with it, connections too; the sandbox is not its own.
    await manager.close();
    return EXIT.ok;
  },
});

function portsFrom(word: string): Ports {
  const [, hostPort, port] = /^(?:(\d+):)?(\d+)$/.exec(word) ?? [];
  const isPort = (text: string) => Number(text) >= 1 && Number(text) <= 65_535;
  if (port === undefined || !isPort(port) || (hostPort !== undefined && !isPort(hostPort))) {
    throw new UsageError(`${JSON.stringify(word)} is no port: give 8000, or 3000:8000 for port 3000 of this machine`);
  }
  return { port: Number(port), ...(hostPort === undefined ? {} : { hostPort: Number(hostPort) }) };
}

/** Rejects when the sandbox is no more. */
async function whenGone(manager: SandboxManager, id: string): Promise<never> {
  for await (const { type, sandboxId, reason } of manager.events()) {
    if (sandboxId !== id || (type !== 'closed' && type !== 'lost')) continue;
    if (reason === 'manager-closed') break;
    throw new SandboxError('SANDBOX_LOST', `the sandbox ${id} is gone: ${reason}`, { reason });
  }
  return new Promise(() => {});
}

/** By the kernel's own tables, which need no program in the sandbox to be read. */
async function untilHeard(sandbox: Sandbox, port: number, signal: AbortSignal): Promise<void> {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const hears = (line: string) => {
    const [, address, , state] = line.trim().split(/\s+/);
    return state === LISTENING && address?.endsWith(local);
  };
  let isTold = false;
  for (;;) {
    const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => sandbox.files.readText(path).catch(() => ''));
    if ((await Promise.all(tables)).some((table) => table.split('\n').some(hears))) return;
    if (!isTold) say(`waiting until somebody listens at port ${port} in ${sandbox.id}`);
    isTold = true;
    if (!(await pause(LOOK_AGAIN_MS, signal))) return;
  }
}
