/** `cofferdam forward`: ports of a sandbox on this machine's loopback address, while the program runs. */
import { SandboxError } from '../../errors';
import type { SandboxManager } from '../../manager';
import type { Sandbox } from '../../sandbox';
import { command, EXIT, say, UsageError } from '../command';
import { ENGINE, managerFrom } from '../engine';
import { findInfo, SANDBOX_OPERAND } from '../find';
import { pause } from '../pause';
import { JSON_FLAG, print, printJson } from '../print';
import { stopSignal } from '../stop';

const POLL_MS = 100;

/** State of a listening socket in the kernel's tables. */
const LISTENING = '0A';

interface Ports {
  readonly port: number;
  readonly hostPort?: number;
}

export const forward = command({
  name: 'forward',
  summary: 'Reach a port of a sandbox from this machine',
  about: `Listens on 127.0.0.1 and forwards every connection into the sandbox, through the guest: the sandbox needs no
network access, and no one else on your network can connect. Runs until Ctrl-C, and then closes its connections;
fails when the sandbox is gone. Prints each address as soon as it is ready.`,
  operands: [
    SANDBOX_OPERAND,
    {
      name: '[hostPort:]port',
      about: 'A port of the sandbox, and one of this machine (default: any free port)',
      many: true,
    },
  ],
  flags: {
    wait: { type: 'boolean', about: 'Print an address only once a program listens in the sandbox' },
    ...JSON_FLAG,
    ...ENGINE,
  },
  examples: [
    { line: 'cofferdam forward web 8000', about: 'Any port here to port 8000 there' },
    { line: 'cofferdam forward web 3000:3000 5432 --wait', about: 'Several ports, once their servers listen' },
  ],
  async run({ flags, operands: [name = '', ...words] }) {
    const wanted = words.map(portsFrom);
    const signal = stopSignal();
    const manager = managerFrom(flags);
    const { id } = await findInfo(manager, name);
    const gone = whenGone(manager, id);
    // Not awaited yet.
    gone.catch(() => {});
    const sandbox = await manager.get(id);
    const serving = Promise.all(
      wanted.map(async ({ port, hostPort }) => {
        const { hostPort: given, url } = await sandbox.forward(port, { hostPort });
        if (flags.wait) await untilListening(sandbox, port, signal);
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
    // Closes its connections; the sandbox was opened by others, and stays.
    await manager.close();
    return EXIT.ok;
  },
});

function portsFrom(word: string): Ports {
  const [, hostPort, port] = /^(?:(\d+):)?(\d+)$/.exec(word) ?? [];
  const isPort = (text: string) => Number(text) >= 1 && Number(text) <= 65_535;
  if (port === undefined || !isPort(port) || (hostPort !== undefined && !isPort(hostPort))) {
    throw new UsageError(
      `${JSON.stringify(word)} is not a port: give 8000, or 3000:8000 for port 3000 of this machine`,
    );
  }
  return { port: Number(port), ...(hostPort === undefined ? {} : { hostPort: Number(hostPort) }) };
}

/** Rejects when the sandbox is gone. */
async function whenGone(manager: SandboxManager, id: string): Promise<never> {
  for await (const event of manager.events()) {
    if (event.sandboxId !== id || (event.type !== 'closed' && event.type !== 'lost')) continue;
    const { reason } = event;
    if (reason === 'manager-closed') break;
    throw new SandboxError('SANDBOX_LOST', `the sandbox ${id} is gone: ${reason}`, { reason });
  }
  return new Promise(() => {});
}

/** Reads the kernel's tables, which needs no program in the sandbox. */
async function untilListening(sandbox: Sandbox, port: number, signal: AbortSignal): Promise<void> {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const isListening = (line: string) => {
    const [, address, , state] = line.trim().split(/\s+/);
    return state === LISTENING && address?.endsWith(local);
  };
  let isReported = false;
  for (;;) {
    const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => sandbox.files.readText(path).catch(() => ''));
    if ((await Promise.all(tables)).some((table) => table.split('\n').some(isListening))) return;
    if (!isReported) say(`waiting until a program listens on port ${port} in ${sandbox.id}`);
    isReported = true;
    if (!(await pause(POLL_MS, signal))) return;
  }
}
