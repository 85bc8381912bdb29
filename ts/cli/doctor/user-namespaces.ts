/** Whether this machine supports user namespaces, which sandboxes without an engine need. */
import { existsSync } from 'node:fs';
import type { EngineInfo } from '../../options';
import { userName } from '../user-name';
import { limitsText } from './engine';
import { cureOfNoEngine } from './engine-cure';
import { type Finding, faulty, ok } from './finding';
import { asRoot, has, installing, isRoot, textOf } from './machine';

const GROUP = 'Namespaces';

/** What may prevent them; `null` if the kernel does not have the setting. */
export interface KernelSupport {
  readonly isRoot: boolean;
  readonly maxUserNamespaces: number | null;
  readonly unprivilegedClone: boolean | null;
  readonly apparmorRestricts: boolean | null;
  readonly apparmor: boolean;
  readonly inContainer: boolean;
  readonly subordinateIds: boolean;
  readonly newuidmap: boolean;
}

export function kernelSupport(): KernelSupport {
  const setting = (file: string) => {
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
    unprivilegedClone: setting('/proc/sys/kernel/unprivileged_userns_clone'),
    apparmorRestricts: setting('/proc/sys/kernel/apparmor_restrict_unprivileged_userns'),
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

export function namespacesFound(info: EngineInfo, support: KernelSupport): Finding[] {
  const { abilities, version, tier } = info;
  const who = support.isRoot ? 'as root' : 'as an ordinary user';
  const text = `sandboxes without an engine can be created ${who}, on kernel ${version}`;
  return [
    ok(GROUP, 'namespaces', text, { tier: tier ?? null, kernel: version, state: abilities.state ?? null }),
    limits(info),
    storage(info),
    ...ids(support),
    apparmor(support),
  ];
}

export function namespacesMissing(state: 'warning' | 'problem', error: Error, support: KernelSupport): Finding[] {
  const { cause, cure } = blame(error, support);
  return [
    faulty(state, GROUP, 'namespaces', `sandboxes without an engine cannot be created: ${cause}`, cure, {
      ...support,
      error: error.message,
    }),
  ];
}

/** The first obstacle. */
function blame({ message }: Error, support: KernelSupport): { cause: string; cure: string } {
  if (support.maxUserNamespaces === 0) {
    const cure = asRoot('sysctl -w user.max_user_namespaces=10000');
    return { cause: 'user namespaces are switched off (user.max_user_namespaces is 0)', cure };
  }
  if (support.unprivilegedClone === false && !support.isRoot) {
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
  if (support.apparmorRestricts === true && !support.isRoot) {
    const cause = 'AppArmor prevents programs of ordinary users from creating user namespaces';
    return { cause, cure: asRoot('npx cofferdam setup') };
  }
  if (support.inContainer) {
    const options = ['seccomp', 'apparmor', 'systempaths'].map((word) => `--security-opt ${word}=unconfined`).join(' ');
    const cause = 'this program runs in a container that does not allow it';
    return { cause, cure: `docker run ${options} <image>` };
  }
  return { cause: firstOf(message), cure: cureOfNoEngine() };
}

/** Without the advice: the cure has it. */
function firstOf(message: string): string {
  return (message.split(/\. (?=[A-Z])/)[0] ?? message).replace(/^a sandbox of namespaces could not be made: /, '');
}

function limits(info: EngineInfo): Finding {
  const text = `limits: ${limitsText(info.limits)}`;
  if (!Object.values(info.limits).includes('none')) return ok(GROUP, 'namespaces.limits', text, info.limits);
  const cure = 'systemd-run --user --scope -p Delegate=yes npx cofferdam doctor';
  return faulty(
    'warning',
    GROUP,
    'namespaces.limits',
    `${text} (this user has no cgroup of its own)`,
    cure,
    info.limits,
  );
}

function storage({ abilities }: EngineInfo): Finding {
  const { state, storage } = abilities;
  const facts = { state: state ?? null, storage: storage ?? null };
  if (storage !== 'memory') return ok(GROUP, 'namespaces.storage', `stored in ${state}`, facts);
  const text = `the file system of ${state} does not support overlays: what sandboxes write is held in memory`;
  return faulty('warning', GROUP, 'namespaces.storage', text, 'export COFFERDAM_STATE=/var/tmp/cofferdam', facts);
}

/** Root has all ids. */
function ids(support: KernelSupport): Finding[] {
  const { subordinateIds, newuidmap } = support;
  if (support.isRoot) return [];
  const facts = { subordinateIds, newuidmap };
  if (subordinateIds && newuidmap) return [ok(GROUP, 'namespaces.ids', 'sandboxes can have more than one user', facts)];
  const lacking = newuidmap ? 'no range in /etc/subuid and /etc/subgid' : 'newuidmap is not installed';
  const range = asRoot('usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER');
  const cure = newuidmap ? range : installing('idMaps');
  const text = `sandboxes have one user, root (${lacking})`;
  return [faulty('warning', GROUP, 'namespaces.ids', text, cure, facts)];
}

function apparmor({ apparmor, apparmorRestricts }: KernelSupport): Finding {
  const facts = { apparmor, restrictsUserNamespaces: apparmorRestricts };
  if (!apparmor) return ok(GROUP, 'namespaces.apparmor', 'no AppArmor', facts);
  const rule = apparmorRestricts
    ? 'allows user namespaces only to chosen programs, including ours'
    : 'does not restrict user namespaces';
  return ok(GROUP, 'namespaces.apparmor', `AppArmor ${rule}`, facts);
}
