/** The order in which doctor looks at a machine, and what it concludes. */
import { backendOf } from '../../internal/backend';
import { SandboxManager } from '../../manager';
import type { EngineInfo, SandboxManagerOptions } from '../../options';
import { disk } from './disk';
import { attemptsOf, engineFound, engineMissing } from './engine';
import { environment, ignoreRefused } from './environment';
import { type Finding, GROUPS } from './finding';
import { leftovers, type Trial, trial } from './sandboxes';
import { milliseconds, within } from './time-limit';
import { groundHere, namespacesFound, namespacesMissing } from './user-namespaces';
import { versions } from './versions';

/** Several places may each take the five seconds that an engine has for its first answer, and Podman thinks long. */
const INFO_MS = 45_000;
const CLOSE_MS = 15_000;

type Backend = 'docker' | 'namespaces';

/** A backend that was asked what it is. */
type Asked = { manager: SandboxManager } & ({ info: EngineInfo } | { error: Error });

export interface Wanted {
  readonly backend: 'auto' | Backend | undefined;
  readonly host: string | undefined;
  readonly image: string | undefined;
  readonly stop: AbortSignal;
}

export interface Diagnosis {
  /** Whether a sandbox opens here. */
  readonly ok: boolean;
  readonly verdict: string;
  /** What a program gets that asks for no backend in particular; `null` when none. */
  readonly backend: Backend | null;
  readonly findings: readonly Finding[];
  readonly engines: { readonly docker: EngineInfo | null; readonly namespaces: EngineInfo | null };
}

export async function examine(wanted: Wanted): Promise<Diagnosis> {
  const findings = versions();
  // Without the addon, or on a Node that lacks what we use, nothing else can be asked.
  if (findings.some(({ state }) => state === 'problem')) {
    return conclude([...findings, ...environment(), ...(await disk(undefined, undefined))], undefined, {}, {});
  }
  findings.push(...environment());
  ignoreRefused(findings);
  const backend = backendOf(wanted.backend, wanted.host, process.env);
  const options = wanted.host === undefined ? {} : { docker: { host: wanted.host } };
  const [docker, namespaces] = await Promise.all([
    backend === 'namespaces' ? undefined : ask({ ...options, backend: 'docker' }, wanted.stop),
    // Elsewhere there are none, which is worth a word only where somebody asks for them.
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
      // An image is named for the backend that programs get; the other one need not have it.
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

/** With short leases: even a doctor that is killed leaves nothing for long. */
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
  // What could not be reached has nothing to close.
  await within(CLOSE_MS, 'closing', manager.close()).catch(() => {});
}

function infoOf(asked: Asked | undefined): EngineInfo | undefined {
  return asked && 'info' in asked ? asked.info : undefined;
}

/** As `backend: 'auto'` chooses: an engine where one answers; one that is named is used or refused. */
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
  const ground = groundHere();
  if ('info' in namespaces) return namespacesFound(namespaces.info, ground);
  return namespacesMissing(severity(chosen), namespaces.error, ground);
}

/** What is missing is a problem only where nothing else stands in. */
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
    // What did not keep a sandbox from opening is no problem after all.
    findings: sorted.map((finding) =>
      works && finding.state === 'problem' ? { ...finding, state: 'warning' } : finding,
    ),
    engines: { docker: engines.docker ?? null, namespaces: engines.namespaces ?? null },
  };
}
