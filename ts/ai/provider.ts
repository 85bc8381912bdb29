/**
 * Sandboxes for the harnesses of AI SDK 7 (`@ai-sdk/harness`). Each session of a harness is a session of ours.
 *
 * Opens nothing before a session is requested.
 */
import { SandboxError } from '../errors';
import * as check from '../internal/check';
import { SandboxManager } from '../manager';
import type { OpenOptions, PortForward, Scope } from '../options';
import type { Sandbox } from '../sandbox';
import type { NetworkSandboxSession, PortOptions, SandboxProvider } from './interface';
import { sandboxSession } from './session';

/** Any port can be forwarded. A harness with a bridge in the sandbox needs the number of one. */
const DEFAULT_PORTS = [4096];

/** Options of {@link createCofferdamSandbox}. */
export interface CofferdamSandboxOptions extends Omit<OpenOptions, 'signal' | 'session'> {
  /**
   * The manager that opens the sandboxes.
   *
   * @default a manager of the provider's own
   */
  manager?: SandboxManager;
  /**
   * Ports of the sandbox that a harness can reach. They are forwarded through the guest, so the network can stay off.
   *
   * @default [4096]
   */
  ports?: readonly number[];
}

/**
 * A sandbox provider for a `HarnessAgent`. The session id of the harness names the session of the sandbox, so that
 * `resumeSession` finds it from any process: while it runs or, with `persist: true`, with its workspace after it was stopped.
 *
 * @example
 * ```ts
 * const agent = new HarnessAgent({ harness, sandbox: createCofferdamSandbox({ image: 'node', persist: true }) });
 * ```
 */
export function createCofferdamSandbox(options: CofferdamSandboxOptions = {}): SandboxProvider {
  const { manager: given, ports = DEFAULT_PORTS, ...open } = options;
  let own: SandboxManager | undefined;
  const manager = () => {
    if (given) return given;
    own ??= new SandboxManager();
    return own;
  };

  /** Nobody can return to a session without an id, so it is isolated. */
  const whose = (sessionId: string | undefined) =>
    sessionId === undefined
      ? { session: 'isolated', scope: open.scope }
      : { session: `harness-${sessionId}`, scope: open.scope ?? { agent: sessionId } };

  const close = async () => {
    await own?.close();
    own = undefined;
  };

  return {
    specificationVersion: 'harness-sandbox-v1',
    providerId: 'cofferdam',
    async createSession({ sessionId, abortSignal, onFirstCreate } = {}) {
      const sandbox = await manager().open({ ...open, ...whose(sessionId), signal: abortSignal });
      if (sandbox.created && onFirstCreate) {
        try {
          await onFirstCreate(sandboxSession(sandbox), { abortSignal });
        } catch (error) {
          // The next caller would take a half-prepared sandbox for ready.
          await sandbox.close({ keepData: false }).catch(() => {});
          throw error;
        }
      }
      return networkSession(sandbox, ports);
    },
    async resumeSession({ sessionId, abortSignal }) {
      abortSignal?.throwIfAborted();
      const { session, scope = {} } = whose(sessionId);
      // The core picks the part of the scope that counts.
      const known = await manager().list({ scope: scope as Scope });
      const info = known.find((each) => each.session === session);
      if (info === undefined) {
        throw new SandboxError(
          'SANDBOX_NOT_FOUND',
          `no sandbox of session ${JSON.stringify(sessionId)} to resume; create it again, with persist: true if its files should survive stop()`,
          { sessionId },
        );
      }
      const sandbox = await manager().get(info.id);
      if (info.state === 'stopped') await sandbox.start();
      return networkSession(sandbox, ports);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function networkSession(sandbox: Sandbox, exposed: readonly number[]): NetworkSandboxSession {
  let ports = checkPorts(exposed);
  const forwards = new Map<number, Promise<PortForward>>();

  const release = async (gone: (port: number) => boolean) => {
    const ended = [...forwards].filter(([port]) => gone(port));
    for (const [port] of ended) forwards.delete(port);
    await Promise.allSettled(ended.map(async ([, forward]) => (await forward).close()));
  };

  const getPortUrl = async ({ port, protocol = 'http' }: PortOptions) => {
    if (!ports.includes(port)) {
      throw new SandboxError(
        'INVALID_ARGUMENT',
        `port ${port} is not one of the session's ports (${ports.join(', ') || 'none'}); name it in createCofferdamSandbox({ ports }) or call setPorts()`,
        { port },
      );
    }
    const forward = forwards.get(port) ?? sandbox.forward(port);
    forwards.set(port, forward);
    // The next call tries a failed one again.
    forward.catch(() => forwards.delete(port));
    return `${protocol}://127.0.0.1:${(await forward).hostPort}`;
  };

  return {
    ...sandboxSession(sandbox),
    id: sandbox.id,
    defaultWorkingDirectory: sandbox.workdir,
    get ports() {
      return ports;
    },
    getPortUrl,
    getPortEndpoint: async (options) => ({ url: await getPortUrl(options) }),
    async setPorts(next, { abortSignal } = {}) {
      abortSignal?.throwIfAborted();
      ports = checkPorts(next);
      await release((port) => !ports.includes(port));
    },
    async stop() {
      await release(() => true);
      await stopOrClose(sandbox);
    },
    async destroy() {
      await release(() => true);
      await sandbox.close({ keepData: false });
    },
    restricted: () => sandboxSession(sandbox),
  };
}

/** Only a sandbox with a persistent workspace can be started again; others are closed. */
async function stopOrClose(sandbox: Sandbox): Promise<void> {
  try {
    await sandbox.stop();
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    if (error.code === 'SANDBOX_CLOSED' || error.code === 'SANDBOX_LOST') return;
    if (error.code !== 'UNSUPPORTED') throw error;
    await sandbox.close();
  }
}

function checkPorts(ports: readonly number[]): number[] {
  return ports.map((port, index) => check.port(`ports[${index}]`, port));
}
