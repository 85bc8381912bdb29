/** What this machine's kernel and its files say about user namespaces, of which sandboxes without an engine are made. */
import { existsSync } from 'node:fs';
import type { EngineInfo } from '../../options';
import { userName } from '../user-name';
import { limitsText } from './engine';
import { cureOfNoEngine } from './engine-cure';
import { type Finding, ok, unwell } from './finding';
import { asRoot, has, installing, isRoot, textOf } from './machine';

const GROUP = 'Namespaces';

/** What may be in the way; each is `null` where the kernel does not know the word. */
export interface Ground {
  readonly isRoot: boolean;
  readonly maxUserNamespaces: number | null;
  readonly unprivilegedClone: boolean | null;
  readonly apparmorRestricts: boolean | null;
  readonly apparmor: boolean;
  readonly inContainer: boolean;
  readonly subordinateIds: boolean;
  readonly newuidmap: boolean;
}

export function groundHere(): Ground {
  const switched = (file: string) => {
    const text = textOf(file);
    return text === undefined ? null : text === '1';
  };
  const most = textOf('/proc/sys/user/max_user_namespaces');
  const names = [userName(), String(process.getuid?.())];
  const isListed = (file: string) =>
    (textOf(file) ?? '').split('\n').some((line) => names.includes(line.split(':')[0] ?? ''));
  return {
    isRoot,
    maxUserNamespaces: most === undefined ? null : Number(most),
    unprivilegedClone: switched('/proc/sys/kernel/unprivileged_userns_clone'),
    apparmorRestricts: switched('/proc/sys/kernel/apparmor_restrict_unprivileged_userns'),
    apparmor: (textOf('/sys/module/apparmor/parameters/enabled') ?? 'N').startsWith('Y'),
    inContainer: isContainer(),
    subordinateIds: isListed('/etc/subuid') && isListed('/etc/subgid'),
    newuidmap: has('newuidmap') && has('newgidmap'),
  };
}

function isContainer(): boolean {
  if (existsSync('/.dockerenv') || existsSync('/run/.containerenv')) return true;
  const mounts = (textOf('/proc/self/mountinfo') ?? '').split('\n');
  return mounts.some((line) => line.split(' ')[4] === '/' && line.includes(' - overlay '));
}

export function namespacesFound(info: EngineInfo, ground: Ground): Finding[] {
  const { abilities, version, tier } = info;
  const who = ground.isRoot ? 'as root' : 'as an ordinary user';
  const text = `sandboxes without an engine can be made ${who}, on kernel ${version}`;
  return [
    ok(GROUP, 'namespaces', text, { tier: tier ?? null, kernel: version, state: abilities.state ?? null }),
    limits(info),
    storage(info),
    ...ids(ground),
    apparmor(ground),
  ];
}

export function namespacesMissing(state: 'warning' | 'problem', error: Error, ground: Ground): Finding[] {
  const { cause, cure } = blame(error, ground);
  return [
    unwell(state, GROUP, 'namespaces', `sandboxes without an engine cannot be made: ${cause}`, cure, {
      ...ground,
      error: error.message,
    }),
  ];
}

/** The first thing that is in the way. */
function blame({ message }: Error, ground: Ground): { cause: string; cure: string } {
  if (ground.maxUserNamespaces === 0) {
    const cure = asRoot('sysctl -w user.max_user_namespaces=10000');
    return { cause: 'user namespaces are switched off (user.max_user_namespaces is 0)', cure };
  }
  if (ground.unprivilegedClone === false && !ground.isRoot) {
    const cure = asRoot('sysctl -w kernel.unprivileged_userns_clone=1');
    return { cause: 'user namespaces are for root only (kernel.unprivileged_userns_clone is 0)', cure };
  }
  if (/no space left|os error 28/i.test(message)) {
    const cure = 'npx cofferdam prune --backend namespaces';
    return { cause: `the disk of the state folder is full: ${firstOf(message)}`, cure };
  }
  if (message.includes('COFFERDAM_STATE')) {
    return { cause: firstOf(message), cure: 'export COFFERDAM_STATE="$HOME/.cofferdam"' };
  }
  if (ground.apparmorRestricts === true && !ground.isRoot) {
    const cause = 'AppArmor keeps programs of ordinary users from making user namespaces';
    return { cause, cure: asRoot('npx cofferdam setup') };
  }
  if (ground.inContainer) {
    const options = ['seccomp', 'apparmor', 'systempaths'].map((word) => `--security-opt ${word}=unconfined`).join(' ');
    const cause = 'this program runs in a container, which does not let it';
    return { cause, cure: `docker run ${options} <image>` };
  }
  return { cause: firstOf(message), cure: cureOfNoEngine() };
}

/** Without the advice, which is the cure's to give. */
function firstOf(message: string): string {
  return (message.split(/\. (?=[A-Z])/)[0] ?? message).replace(/^a sandbox of namespaces could not be made: /, '');
}

function limits(info: EngineInfo): Finding {
  const text = `limits: ${limitsText(info.limits)}`;
  if (!Object.values(info.limits).includes('none')) return ok(GROUP, 'namespaces.limits', text, info.limits);
  const cure = 'systemd-run --user --scope -p Delegate=yes npx cofferdam doctor';
  return unwell(
    'warning',
    GROUP,
    'namespaces.limits',
    `${text} (this user has no cgroup to itself)`,
    cure,
    info.limits,
  );
}

function storage({ abilities }: EngineInfo): Finding {
  const { state, storage } = abilities;
  const facts = { state: state ?? null, storage: storage ?? null };
  if (storage !== 'memory') return ok(GROUP, 'namespaces.storage', `kept in ${state}`, facts);
  const text = `the file system of ${state} cannot carry an overlay: what sandboxes write is kept in memory`;
  return unwell('warning', GROUP, 'namespaces.storage', text, 'export COFFERDAM_STATE=/var/tmp/cofferdam', facts);
}

/** Root has all ids there are. */
function ids(ground: Ground): Finding[] {
  const { subordinateIds, newuidmap } = ground;
  if (ground.isRoot) return [];
  const facts = { subordinateIds, newuidmap };
  if (subordinateIds && newuidmap) return [ok(GROUP, 'namespaces.ids', 'sandboxes can have more than one user', facts)];
  const lacking = newuidmap ? 'no range in /etc/subuid and /etc/subgid' : 'newuidmap is not installed';
  const range = asRoot('usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER');
  const cure = newuidmap ? range : installing('idMaps');
  const text = `sandboxes have one user, root (${lacking})`;
  return [unwell('warning', GROUP, 'namespaces.ids', text, cure, facts)];
}

function apparmor({ apparmor, apparmorRestricts }: Ground): Finding {
  const facts = { apparmor, restrictsUserNamespaces: apparmorRestricts };
  if (!apparmor) return ok(GROUP, 'namespaces.apparmor', 'no AppArmor in the way', facts);
  const rule = apparmorRestricts
    ? 'lets only chosen programs make user namespaces, ours among them'
    : 'is not in the way';
  return ok(GROUP, 'namespaces.apparmor', `AppArmor ${rule}`, facts);
}
