/** The options that describe a sandbox and its session. */
import type { Limits, OpenOptions, Packages } from '../options';
import { type Flags, type Given, UsageError } from './command';
import { oneOf, pairs, wholeNumber } from './parse';
import { userName } from './user-name';

const PULL = ['missing', 'always', 'never'] as const;
const INSTALLERS = ['pip', 'npm', 'apt'] as const;

const group = 'Sandbox';

/** Options of every sandbox, also of a single run. */
export const SANDBOX = {
  image: {
    type: 'string',
    short: 'i',
    about: 'linux, python, node or any image (default: linux)',
    group,
    complete: 'image',
  },
  env: {
    type: 'string',
    short: 'e',
    multiple: true,
    value: 'NAME=value',
    about: 'Environment variable of every command; NAME alone takes your value',
    group,
  },
  network: { type: 'boolean', about: 'Give it network access', group },
  cpus: { type: 'string', value: 'number', about: 'Processors (default: 2)', group },
  memory: { type: 'string', value: 'MiB', about: 'Memory (default: 2048)', group },
  pids: { type: 'string', value: 'number', about: 'Processes and threads (default: 512)', group },
  package: {
    type: 'string',
    multiple: true,
    value: 'pip:name',
    about: 'Package to install, once and cached: pip:pandas, npm:left-pad, apt:jq',
    group,
  },
} as const satisfies Flags;

/** Options of the session. */
export const SESSION = {
  scope: {
    type: 'string',
    value: 'kind:id',
    about: 'Who shares it: workflow:wf_1, agent:… or user:… (default: you)',
    group: 'Session',
  },
} as const satisfies Flags;

export function openFrom(flags: Given<typeof SANDBOX>): OpenOptions {
  return {
    image: flags.image,
    env: pairs('--env', flags.env),
    network: flags.network ?? false,
    limits: limitsFrom(flags),
    packages: packagesFrom(flags.package),
  };
}

export function limitsFrom({ cpus, memory, pids }: Pick<Given<typeof SANDBOX>, 'cpus' | 'memory' | 'pids'>): Limits {
  return {
    ...(cpus === undefined ? {} : { cpus: decimal('--cpus', cpus) }),
    ...(memory === undefined ? {} : { memoryMb: wholeNumber('--memory', memory) }),
    ...(pids === undefined ? {} : { pids: wholeNumber('--pids', pids) }),
  };
}

export function packagesFrom(given: readonly string[] = []): Packages | undefined {
  if (given.length === 0) return undefined;
  const packages: Packages = {};
  for (const entry of given) {
    const [, installer = '', name = ''] = /^([^:]*):(.+)$/.exec(entry) ?? [];
    if (name === '')
      throw new UsageError(`--package must be installer:name, as in pip:pandas, not ${JSON.stringify(entry)}`);
    const known = oneOf('the installer of --package', INSTALLERS, installer);
    packages[known] = [...(packages[known] ?? []), name];
  }
  return packages;
}

export function pullFrom(given: string | undefined): OpenOptions['pull'] {
  return given === undefined ? undefined : oneOf('--pull', PULL, given);
}

/** `workflow:wf_1`; by default, the user of this program. */
export function scopeFrom(given: string | undefined): NonNullable<OpenOptions['scope']> {
  if (given === undefined) return { user: userName() };
  const [, kind = '', id = ''] = /^([^:]*):(.+)$/.exec(given) ?? [];
  if (id === '') throw new UsageError(`--scope must be kind:id, as in workflow:wf_1, not ${JSON.stringify(given)}`);
  return { [oneOf('the kind of --scope', ['workflow', 'agent', 'user'], kind)]: id };
}

function decimal(option: string, value: string): number {
  if (!/^\d+(\.\d+)?$/.test(value)) throw new UsageError(`${option} must be a number, not ${JSON.stringify(value)}`);
  return Number(value);
}
