/**
 * The fields of a configuration and their values. Every fault is `INVALID_ARGUMENT` with the field, the value, what is
 * allowed and, where there is one, the line.
 */
import type { SandboxConfig } from './config';
import { nearest } from './nearest';
import { type Found, fault } from './source';

const FIELDS = [
  'mode',
  'runtime',
  'image',
  'session',
  'limits',
  'network',
  'allow_network',
  'timeout_seconds',
  'max_stdout_bytes',
  'pip_packages',
  'npm_packages',
  'apt_packages',
] as const;

const LIMITS = [
  'cpu_millicores',
  'memory_mb',
  'timeout_seconds',
  'workspace_mb',
  'max_file_size_bytes',
  'max_files',
] as const;

/** The runtime of `sandbox_run` for each word. */
export const RUNTIMES = { python: 'python', node: 'node', bash: 'bash', linux: 'bash', shell: 'bash' } as const;

const DAY_SECONDS = 24 * 60 * 60;
const TERA = 2 ** 40;

type Path = readonly string[];

/** Reads and checks the fields. */
export class Fields {
  readonly #found: Found;

  constructor(found: Found) {
    this.#found = found;
  }

  config(): SandboxConfig {
    const { value } = this.#found;
    if (typeof value === 'string') return withDefaults({ runtime: this.#runtime([], value, 'compute') });
    const all = this.#map([], value, FIELDS);
    const mode = this.#oneOf(['mode'], all.mode, ['compute', 'code']) ?? 'compute';
    const limits = all.limits === undefined ? {} : this.#map(['limits'], all.limits, LIMITS);
    const limit = (name: (typeof LIMITS)[number], least: number, most = TERA) =>
      this.#whole(['limits', name], limits[name], least, most);
    const millicores = limit('cpu_millicores', 10, 1_000_000);
    const idle = limit('timeout_seconds', 1, DAY_SECONDS);
    const timeout = this.#whole(['timeout_seconds'], all.timeout_seconds, 1, DAY_SECONDS);
    return withDefaults({
      mode,
      runtime: all.runtime === undefined ? undefined : this.#runtime(['runtime'], all.runtime, mode),
      image: this.#text(['image'], all.image),
      ...this.#session(all.session),
      limits: {
        cpus: millicores === undefined ? undefined : millicores / 1000,
        memoryMb: limit('memory_mb', 16),
        workspaceMb: limit('workspace_mb', 1),
      },
      // Without a session, only the time of a run can be limited.
      idleTimeoutMs: mode === 'code' ? toMs(idle) : undefined,
      timeoutMs: toMs(timeout ?? (mode === 'compute' ? idle : undefined)),
      maxFileBytes: limit('max_file_size_bytes', 0),
      maxFiles: limit('max_files', 0),
      network: this.#network(all.network, all.allow_network),
      maxOutputBytes: this.#whole(['max_stdout_bytes'], all.max_stdout_bytes, 100, TERA),
      packages: {
        pip: this.#texts(['pip_packages'], all.pip_packages),
        npm: this.#texts(['npm_packages'], all.npm_packages),
        apt: this.#texts(['apt_packages'], all.apt_packages),
      },
    });
  }

  #fault(path: Path, text: (name: string) => string): Error {
    const line = this.#found.lineOf(path);
    const name = ['sandbox', ...path].join('.').slice(0, 100);
    if (line === undefined) return fault(text(name), { field: name });
    return fault(`line ${line}: ${text(name)}`, { field: name, line });
  }

  #wrong(path: Path, allowed: string, value: unknown): Error {
    return this.#fault(path, (name) => `${name} must be ${allowed}, not ${show(value)}`);
  }

  /** The fields of a map. An unknown field is a fault: it is most likely a typo that would go unnoticed. */
  #map<K extends string>(path: Path, value: unknown, names: readonly K[]): Partial<Record<K, unknown>> {
    const what = path.length === 0 ? `a runtime (${Object.keys(RUNTIMES).join(', ')}) or a map` : 'a map';
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw this.#wrong(path, what, value);
    const known: Partial<Record<K, unknown>> = Object.create(null);
    for (const [key, entry] of Object.entries(value)) {
      if (!names.includes(key as K)) throw this.#unknown(path, key, names);
      // An empty field in YAML is null, and counts as absent.
      if (entry !== null) known[key as K] = entry;
    }
    return known;
  }

  #unknown(path: Path, key: string, names: readonly string[]): Error {
    const near = nearest(key, names);
    const meant = near === undefined ? 'the' : `did you mean "${near}"? The`;
    return this.#fault([...path, key], (name) => `there is no field ${name}; ${meant} fields are: ${names.join(', ')}`);
  }

  #text(path: Path, value: unknown): string | undefined {
    if (value === undefined) return undefined;
    if (typeof value !== 'string' || value.trim() === '' || value.length > 500 || !value.isWellFormed()) {
      throw this.#wrong(path, 'a string of 1 to 500 characters', value);
    }
    return value.trim();
  }

  #texts(path: Path, value: unknown): string[] | undefined {
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) throw this.#wrong(path, 'a list of package names', value);
    return value.map((entry, index) => {
      const name = this.#text([...path, String(index)], entry);
      // The name becomes an argument of an installer.
      if (name === undefined || name.startsWith('-')) {
        throw this.#wrong([...path, String(index)], 'a package name', entry);
      }
      return name;
    });
  }

  #oneOf<T extends string>(path: Path, value: unknown, allowed: readonly T[]): T | undefined {
    if (value === undefined || allowed.includes(value as T)) return value as T | undefined;
    throw this.#wrong(path, allowed.map((word) => `"${word}"`).join(' or '), value);
  }

  #whole(path: Path, value: unknown, least: number, most: number): number | undefined {
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
      throw this.#wrong(path, `a whole number from ${least} to ${most}`, value);
    }
    return value;
  }

  #runtime(path: Path, value: unknown, mode: SandboxConfig['mode']): string {
    const words = Object.keys(RUNTIMES);
    if (typeof value === 'string' && words.includes(value)) return value;
    // A session can have any image; a run needs a known runtime.
    if (mode === 'code') return this.#text(path, value) as string;
    throw this.#wrong(path, `one of ${words.join(', ')} (name an image with "image")`, value);
  }

  /** Either who shares it (`workflow`, `agent`), or its name in the scope. */
  #session(value: unknown): Pick<SandboxConfig, 'session' | 'share'> {
    const name = this.#text(['session'], value);
    if (name === 'workflow' || name === 'agent') return { share: name };
    return { session: name };
  }

  #network(network: unknown, allow: unknown): boolean {
    const flag = (path: Path, value: unknown) => {
      if (value !== undefined && typeof value !== 'boolean') throw this.#wrong(path, 'true or false', value);
      return value;
    };
    const enabled =
      typeof network === 'object'
        ? flag(['network', 'enabled'], this.#map(['network'], network, ['enabled']).enabled)
        : flag(['network'], network);
    const allowed = flag(['allow_network'], allow);
    if (enabled !== undefined && allowed !== undefined && enabled !== allowed) {
      throw this.#wrong(['allow_network'], `the same as network, which is ${enabled}`, allowed);
    }
    return enabled ?? allowed ?? false;
  }
}

type Parts = { [K in keyof SandboxConfig]?: SandboxConfig[K] | undefined };

/** Without fields that were not given. */
function withDefaults({ mode = 'compute', runtime, limits = {}, packages = {}, network = false, ...rest }: Parts) {
  const usual = mode === 'code' ? 'linux' : 'python';
  return {
    mode,
    runtime: runtime ?? usual,
    ...given(rest),
    limits: given(limits),
    network,
    packages: given(packages),
  } satisfies SandboxConfig;
}

export function given<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as T;
}

function toMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' && value !== null ? 'a map' : String(value);
}
