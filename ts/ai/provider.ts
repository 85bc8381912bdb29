/**
 * Sandboxes for the harnesses of AI SDK 7 (`@ai-sdk/harness`): a session of the harness is a session of ours.
 *
 * Never opens anything before a session is asked for.
 */
import { SandboxError } from '../errors';
import * as check from '../internal/check';
import { SandboxManager } from '../manager';
import type { OpenOptions, PortForward, Scope } from '../options';
import type { Sandbox } from '../sandbox';
import type { NetworkSandboxSession, PortOptions, SandboxProvider } from './interface';
import { sandboxSession } from './session';

/** Any port can be forwarded; a harness that talks to a bridge in the sandbox needs to be told of one. */
const DEFAULT_PORTS = [4096];

/** Options of {@link createCofferdamSandbox}. */
export interface CofferdamSandboxOptions extends Omit<OpenOptions, 'signal' | 'session'> {
  /** Whose sandboxes they are; one of the provider's own unless told. */
  manager?: SandboxManager;
  /** Ports of the sandbox that a harness may reach, through the guest: the network may stay off. `[4096]` unless told. */
  ports?: readonly number[];
}

/**
 * A sandbox provider for a `HarnessAgent`. The harness's session id is the name of the sandbox's session, so that
 * `resumeSession` finds it again from any process: as long as it runs or, with `persist: true`, after it was stopped, with
 * its workspace.
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

  /** Without a session id nobody can come back to it: it is nobody else's then. */
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
          // Half set up, it would be taken for ready by the next one.
          await sandbox.close({ keepData: false }).catch(() => {});
          throw error;
        }
      }
      return networkSession(sandbox, ports);
    },
    async resumeSession({ sessionId, abortSignal }) {
      abortSignal?.throwIfAborted();
      const { session, scope = {} } = whose(sessionId);
      const known = await manager().list({ scope: shared(scope) });
      const info = known.find(({ key }) => decodeURIComponent(key.slice(key.lastIndexOf(':') + 1)) === session);
      if (info === undefined) {
        throw new SandboxError(
          'SANDBOX_NOT_FOUND',
          `there is no sandbox of session ${JSON.stringify(sessionId)} to resume; create it again, and with persist: true if its files shall outlive stop()`,
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

/** The one part of a scope that decides, as `open()` has it. */
function shared({ workflow, agent = '', user }: NonNullable<OpenOptions['scope']>): Scope {
  if (workflow !== undefined) return { workflow };
  return agent === '' && user !== undefined ? { user } : { agent };
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
    // One that failed shall not be the answer for ever.
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

/** What has a persistent workspace can be started again; of all else nothing is left to keep. */
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
