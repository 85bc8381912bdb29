/** Checks a machine in order, and draws a conclusion. */
import { backendOf } from '../../internal/backend';
import { SandboxManager } from '../../manager';
import type { EngineInfo, SandboxManagerOptions } from '../../options';
import { disk } from './disk';
import { attemptsOf, engineFound, engineMissing } from './engine';
import { environment, ignoreInvalid } from './environment';
import { type Finding, GROUPS } from './finding';
import { leftovers, type Trial, trial } from './sandboxes';
import { milliseconds, within } from './time-limit';
import { kernelSupport, namespacesFound, namespacesMissing } from './user-namespaces';
import { versions } from './versions';

/** Each place may take the five seconds that an engine has for its first answer, and Podman is slow. */
const INFO_MS = 45_000;
const CLOSE_MS = 15_000;

type Backend = 'docker' | 'namespaces';

/** A backend, and its answer to `info()`. */
type Asked = { manager: SandboxManager } & ({ info: EngineInfo } | { error: Error });

export interface Wanted {
  readonly backend: 'auto' | Backend | undefined;
  readonly host: string | undefined;
  readonly image: string | undefined;
  readonly stop: AbortSignal;
}

export interface Diagnosis {
  /** Whether a sandbox opens. */
  readonly ok: boolean;
  readonly verdict: string;
  /** The backend of a program that names none; `null` if there is none. */
  readonly backend: Backend | null;
  readonly findings: readonly Finding[];
  readonly engines: { readonly docker: EngineInfo | null; readonly namespaces: EngineInfo | null };
}

export async function examine(wanted: Wanted): Promise<Diagnosis> {
  const findings = versions();
  // Without the addon, or on an old Node, nothing else can be checked.
  if (findings.some(({ state }) => state === 'problem')) {
    return conclude([...findings, ...environment(), ...(await disk(undefined, undefined))], undefined, {}, {});
  }
  findings.push(...environment());
  ignoreInvalid(findings);
  const backend = backendOf(wanted.backend, wanted.host, process.env);
  const options = wanted.host === undefined ? {} : { docker: { host: wanted.host } };
  const [docker, namespaces] = await Promise.all([
    backend === 'namespaces' ? undefined : ask({ ...options, backend: 'docker' }, wanted.stop),
    // Other systems have none, which is reported only if they are named.
    backend === 'docker' || (backend === 'auto' && process.platform !== 'linux')
      ? undefined
      : ask({ backend: 'namespaces' }, wanted.stop),
  ]);
  try {
    const chosen = choose(docker, namespaces);
    findings.push(...ofEngine(docker, chosen), ...ofNamespaces(namespaces, chosen));
    findings.push(...(await disk(infoOf(docker), infoOf(namespaces))));
    const trials: Partial<Record<Backend, Trial>> = {};
    // One after the other: they are timed.
    for (const asked of [docker, namespaces]) {
      if (!asked || !('info' in asked)) continue;
      const name = asked.info.backend as Backend;
      const isNeeded = chosen === name;
      // The image is for the backend that programs get; the other one need not have it.
      const image = isNeeded ? wanted.image : undefined;
      const tried = await trial(asked.manager, asked.info, { isNeeded, image, host: wanted.host, stop: wanted.stop });
      trials[name] = tried;
      findings.push(tried.finding, await leftovers(asked.manager, name, wanted.host));
      wanted.stop.throwIfAborted();
    }
    return conclude(findings, chosen, trials, { docker: infoOf(docker), namespaces: infoOf(namespaces) });
  } finally {
    await Promise.all([docker, namespaces].map((asked) => asked && close(asked.manager)));
  }
}

/** With short leases, so that a doctor that is killed leaves nothing for long. */
async function ask(options: SandboxManagerOptions, stop: AbortSignal): Promise<Asked> {
  const leases = { idleTimeoutMs: 120_000, maxLifetimeMs: 300_000, orphanTimeoutMs: 10_000 };
  const manager = new SandboxManager({ ...options, ...leases, telemetry: false });
  try {
    return { manager, info: await within(INFO_MS, `the ${options.backend} backend`, manager.info(), stop) };
  } catch (error) {
    stop.throwIfAborted();
    return { manager, error: error as Error };
  }
}

async function close(manager: SandboxManager): Promise<void> {
  // A backend that could not be reached has nothing to close.
  await within(CLOSE_MS, 'closing', manager.close()).catch(() => {});
}

function infoOf(asked: Asked | undefined): EngineInfo | undefined {
  return asked && 'info' in asked ? asked.info : undefined;
}

/** As `backend: 'auto'`: an engine if one answers. An engine that is named is used or nothing is. */
function choose(docker: Asked | undefined, namespaces: Asked | undefined): Backend | undefined {
  if (docker && 'info' in docker) return 'docker';
  const isNamed = docker && 'error' in docker && attemptsOf(docker.error).some(({ source }) => source !== 'default');
  if (isNamed || !namespaces || !('info' in namespaces)) return undefined;
  return 'namespaces';
}

function ofEngine(docker: Asked | undefined, chosen: Backend | undefined): Finding[] {
  if (!docker) return [];
  return 'info' in docker ? engineFound(docker.info) : engineMissing(severity(chosen), docker.error);
}

function ofNamespaces(namespaces: Asked | undefined, chosen: Backend | undefined): Finding[] {
  if (!namespaces) return [];
  const support = kernelSupport();
  if ('info' in namespaces) return namespacesFound(namespaces.info, support);
  return namespacesMissing(severity(chosen), namespaces.error, support);
}

/** A missing backend is a problem only if there is no other. */
function severity(chosen: Backend | undefined): 'warning' | 'problem' {
  return chosen === undefined ? 'problem' : 'warning';
}

function conclude(
  findings: readonly Finding[],
  chosen: Backend | undefined,
  trials: Partial<Record<Backend, Trial>>,
  engines: { docker?: EngineInfo | undefined; namespaces?: EngineInfo | undefined },
): Diagnosis {
  const sorted = GROUPS.flatMap((group) => findings.filter((finding) => finding.group === group));
  const timings = chosen && trials[chosen]?.timings;
  const isRefused = sorted.some(({ group, state }) => group === 'Environment' && state === 'problem');
  const problems = sorted.filter(({ state }) => state === 'problem').length;
  const many = problems === 1 ? 'one problem is' : `${problems} problems are`;
  const works = timings !== undefined && !isRefused;
  return {
    ok: works,
    verdict: works
      ? `sandboxes open here with ${chosen} in ${milliseconds(timings.openMs)}; exec takes ${milliseconds(timings.execMs)}`
      : `no sandbox opens here: ${many} in the way`,
    backend: chosen ?? null,
    // If a sandbox opens, nothing is a problem.
    findings: sorted.map((finding) =>
      works && finding.state === 'problem' ? { ...finding, state: 'warning' } : finding,
    ),
    engines: { docker: engines.docker ?? null, namespaces: engines.namespaces ?? null },
  };
}
