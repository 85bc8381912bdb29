/** Whether sandboxes open: the result of a trial on a backend, and what earlier ones left behind. */
import { SandboxError } from '../../errors';
import { DEFAULT_IMAGE, MAIN_SHORTCUTS } from '../../internal/images';
import type { SandboxManager } from '../../manager';
import type { EngineInfo } from '../../options';
import { isPodman } from './engine';
import { cureOfNoEngine } from './engine-cure';
import { type Finding, faulty, ok } from './finding';
import { asRoot, has, service } from './machine';
import { milliseconds, within } from './time-limit';
import { type Timings, tryOut } from './trial';

const PRUNE_MS = 10_000;

/** Images that are often present. */
const COMMON_IMAGES = [...MAIN_SHORTCUTS, 'alpine', 'alpine:3.19', 'ubuntu', 'debian', 'busybox'];

export interface Trial {
  readonly finding: Finding;
  readonly timings?: Timings;
}

export async function trial(
  manager: SandboxManager,
  info: EngineInfo,
  options: { isNeeded: boolean; image: string | undefined; host: string | undefined; stop: AbortSignal },
): Promise<Trial> {
  const { isNeeded, image, host, stop } = options;
  const usual = info.backend === 'namespaces' ? ['host'] : COMMON_IMAGES;
  const id = `sandboxes.${info.backend}`;
  try {
    const timings = await tryOut(manager, image === undefined ? usual : [image], stop);
    const { openMs, execMs, filesMs } = timings;
    const text = `with ${info.backend} (${timings.image}): open ${milliseconds(openMs)}, exec ${milliseconds(execMs)}, file there and back ${milliseconds(filesMs)}`;
    return { finding: ok('Sandboxes', id, text, { ...timings }), timings };
  } catch (error) {
    stop.throwIfAborted();
    const { cause, cure } = blame(error as Error, info, image, host);
    const facts = error instanceof SandboxError ? { code: error.code, ...error.details } : {};
    const text = `no sandbox opens with ${info.backend}: ${cause}`;
    return { finding: faulty(isNeeded ? 'problem' : 'warning', 'Sandboxes', id, text, cure, facts) };
  }
}

function blame(
  error: Error,
  info: EngineInfo,
  image: string | undefined,
  host: string | undefined,
): { cause: string; cure: string } {
  const cause = error.message;
  const isOurs = info.backend === 'namespaces';
  const program = isPodman(info) ? 'podman' : 'docker';
  if (/no space left|disk quota exceeded|os error 28/i.test(cause)) {
    const cure = isOurs ? 'npx cofferdam prune --backend namespaces' : `${program} system prune`;
    return { cause: `the disk is full: ${cause}`, cure };
  }
  if (error instanceof SandboxError && error.code === 'IMAGE_NOT_FOUND') {
    const none =
      image === undefined ? 'there is no image to try it with' : `there is no image ${JSON.stringify(image)}`;
    return { cause: none, cure: `npx cofferdam pull ${image ?? DEFAULT_IMAGE}${there(info.backend, host)}` };
  }
  if (/rlimit/.test(cause) && isPodman(info)) {
    const limits = 'default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]';
    const folder = '/etc/containers/containers.conf.d';
    const write = `printf '[containers]\\n${limits}\\n' | ${asRoot(`tee ${folder}/cofferdam.conf`)}`;
    return { cause, cure: `${asRoot(`mkdir -p ${folder}`)} && ${write}` };
  }
  if (isOurs) return { cause, cure: cureOfNoEngine() };
  if (error.name === 'TimeoutError')
    return { cause: 'it took longer than a minute', cure: service('restart', 'docker') };
  // Shows what the engine itself reports.
  return { cause, cure: has(program) ? `${program} run --rm ${image ?? 'alpine'} true` : service('restart', 'docker') };
}

/** The option that selects the same engine. */
function there(backend: string, host: string | undefined): string {
  return backend === 'docker' && host !== undefined ? ` --host ${host}` : '';
}

export async function leftovers(manager: SandboxManager, backend: string, host: string | undefined): Promise<Finding> {
  const id = `leftovers.${backend}`;
  const cure = `npx cofferdam prune --backend ${backend}${there(backend, host)}`;
  try {
    const report = await within(PRUNE_MS, 'the check for leftovers', manager.prune({ dryRun: true }));
    const { sandboxes, volumes, packages } = report;
    const facts = { sandboxes, volumes, packages };
    const counts = [
      [sandboxes.length, 'dead sandbox', 'dead sandboxes'],
      [volumes.length, 'unused volume', 'unused volumes'],
      [packages.length, 'unused package layer', 'unused package layers'],
    ] as const;
    const left = counts
      .filter(([count]) => count > 0)
      .map(([count, one, many]) => `${count} ${count === 1 ? one : many}`);
    if (left.length === 0) return ok('Leftovers', id, `nothing is left behind with ${backend}`, facts);
    return faulty('warning', 'Leftovers', id, `left behind with ${backend}: ${left.join(', ')}`, cure, facts);
  } catch (error) {
    return faulty('warning', 'Leftovers', id, (error as Error).message, cure);
  }
}
