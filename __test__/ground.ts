/** What stands behind a sandbox on each backend, for tests that look or reach behind the API. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type Docker from 'dockerode';

export const isNamespaces = process.env.COFFERDAM_BACKEND === 'namespaces';

/** The box of a sandbox: a container, or a keeper with a first process. */
export interface Box {
  /** The number of its first process, where that is one of this machine's own. */
  first?: number;
  /** Its first process ends at once. */
  kill(): Promise<void>;
  /** Its first process is asked to end. */
  stop(): Promise<void>;
  /** It goes with whoever keeps it. */
  remove(): Promise<void>;
}

interface Ground {
  boxOf(sandboxId: string): Promise<Box>;
  /** Ids of the sandboxes that exist with this label of the caller's own, started or not. */
  labelled(name: string, value: string): Promise<string[]>;
  /** Names of the persistent workspaces of a session. */
  workspaces(key: string): Promise<string[]>;
  /** Sandboxes that exist, by what is on record of them. */
  withMemoryMb(megabytes: number): Promise<string[]>;
  /** What is left on the machine that belongs to no sandbox: names for people. Of others, it may be on its way out. */
  debris(): Promise<string[]>;
  /** Boxes of the warm pool that this very process made. */
  ownWarm(sandboxId: string): Promise<Box | undefined>;
}

let client: Docker | undefined;

/** Loaded when it is first needed: most suites never do, and it is large. */
async function docker(): Promise<Docker> {
  client ??= new (await import('dockerode')).default();
  return client;
}

const onDocker: Ground = {
  async boxOf(sandboxId) {
    const [found] = await (await docker()).listContainers({ filters: { label: [`cofferdam.id=${sandboxId}`] } });
    return containerBox(found?.Id ?? 'none');
  },
  async labelled(name, value) {
    const found = await (await docker()).listContainers({
      all: true,
      filters: { label: [`cofferdam.label.${name}=${value}`] },
    });
    return found.map(({ Id }) => Id);
  },
  async workspaces(key) {
    const { Volumes } = await (await docker()).listVolumes({ filters: { label: ['cofferdam.data'] } });
    const ours = (Volumes ?? []).filter(({ Labels }) => Labels['cofferdam.data']?.includes(`"${key}"`));
    return ours.map(({ Name }) => Name);
  },
  async withMemoryMb(megabytes) {
    const all = await (await docker()).listContainers({ all: true, filters: { label: ['cofferdam.id'] } });
    const ours = all.filter(({ Labels }) => Labels['cofferdam.facts']?.includes(`"memory_mb":${megabytes}`));
    return ours.map(({ Id }) => Id);
  },
  async debris() {
    const networks = (await (await docker()).listNetworks()).map(({ Name }) => Name);
    return networks.filter((name) => !['bridge', 'host', 'none'].includes(name));
  },
  async ownWarm(sandboxId) {
    const all = await (await docker()).listContainers({ filters: { label: [`cofferdam.id=${sandboxId}`] } });
    const own = all.find(
      ({ Labels, Names }) =>
        Names[0]?.startsWith('/cofferdam-warm-') && Labels['cofferdam.maker']?.includes(` ${process.pid} `),
    );
    return own && containerBox(own.Id);
  },
};

function containerBox(id: string): Box {
  const container = async () => (await docker()).getContainer(id);
  return {
    kill: async () => void (await (await container()).kill()),
    stop: async () => void (await (await container()).stop()),
    remove: async () => void (await (await container()).remove({ force: true })),
  };
}

/** Where the namespaces backend keeps its state, as the core finds it. */
export function stateFolder(): string {
  const { COFFERDAM_STATE, XDG_DATA_HOME } = process.env;
  if (COFFERDAM_STATE) return COFFERDAM_STATE;
  if (process.getuid?.() === 0) return '/var/lib/cofferdam';
  return path.join(XDG_DATA_HOME ?? path.join(os.homedir(), '.local/share'), 'cofferdam');
}

interface Recorded {
  handle: string;
  spec: { sandbox_id: string; key: string; labels: object; limits: { memory_mb?: number } };
}

function recorded(folder: 'boxes' | 'data'): Recorded[] {
  const parent = path.join(stateFolder(), folder);
  return readdirSync(parent).flatMap((handle) => {
    try {
      return [{ handle, ...JSON.parse(readFileSync(path.join(parent, handle, 'record.json'), 'utf8')) }];
    } catch {
      // It went away while we looked.
      return [];
    }
  });
}

const onNamespaces: Ground = {
  async boxOf(sandboxId) {
    const found = recorded('boxes').find(({ spec }) => spec.sandbox_id === sandboxId);
    return processBox(found?.handle ?? 'none');
  },
  async labelled(name, value) {
    const has = (labels: object) => Object.entries(labels).some(([key, text]) => key === name && text === value);
    return recorded('boxes').flatMap(({ handle, spec }) => (has(spec.labels) ? [handle] : []));
  },
  async workspaces(key) {
    return recorded('data').flatMap(({ handle, spec }) => (spec.key === key ? [handle] : []));
  },
  async withMemoryMb(megabytes) {
    return recorded('boxes').flatMap(({ handle, spec }) => (spec.limits.memory_mb === megabytes ? [handle] : []));
  },
  async debris() {
    const state = stateFolder();
    const boxes = new Set(readdirSync(path.join(state, 'boxes')));
    const belongs = (name: string) => boxes.has(name.slice(name.indexOf('box_')));
    const found = [
      ...[...boxes].filter((name) => name.startsWith('.')),
      ...readdirSync(path.join(state, 'trash')).map((name) => `trash/${name}`),
      ...readdirSync(path.join(state, 'claims')).filter((name) => !boxes.has(linkOf(state, name))),
      ...cgroups(`cofferdam-${createHash('sha256').update(state).digest('hex').slice(0, 8)}-`),
      ...keepers(`${state}/boxes/`),
    ];
    return found.filter((name) => !belongs(name));
  },
  async ownWarm(sandboxId) {
    const isOurs = ({ spec }: Recorded) => spec.sandbox_id === sandboxId && spec.key === '';
    const found = recorded('boxes').find(isOurs);
    return found && processBox(found.handle);
  },
};

function linkOf(state: string, claim: string): string {
  try {
    return readlinkSync(path.join(state, 'claims', claim));
  } catch {
    return 'gone';
  }
}

/** Folders of cgroups whose names begin so, in all hierarchies. */
function cgroups(prefix: string): string[] {
  const found = spawnSync('find', ['/sys/fs/cgroup', '-type', 'd', '-name', `${prefix}*`], { encoding: 'utf8' });
  return found.stdout.split('\n').filter(Boolean);
}

/** Keepers of boxes below a folder, by their command lines. */
function keepers(folder: string): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      const [, word, box] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      return word === 'keep' && box?.startsWith(folder) ? [`keeper of ${box}`] : [];
    } catch {
      return [];
    }
  });
}

function processBox(handle: string): Box {
  const numbers = readFileSync(path.join(stateFolder(), 'boxes', handle, 'keeper'), 'utf8')
    .split(' ')
    .map(Number);
  const [keeper = 0, first = 0] = numbers;
  return {
    first,
    kill: async () => void process.kill(first, 'SIGKILL'),
    stop: async () => void process.kill(first, 'SIGTERM'),
    remove: async () => void process.kill(keeper, 'SIGKILL'),
  };
}

export const ground: Ground = isNamespaces ? onNamespaces : onDocker;
