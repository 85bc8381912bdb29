/** What fixes depend on: the user, the package manager, the service manager. */
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const isRoot = process.getuid?.() === 0;

/** A command as this user must type it. */
export function asRoot(command: string): string {
  return isRoot || process.platform === 'win32' ? command : `sudo ${command}`;
}

export function has(program: string): boolean {
  const folders = [...(process.env.PATH ?? '').split(path.delimiter), '/usr/sbin', '/usr/local/sbin', '/sbin'];
  return folders.some((folder) => {
    try {
      accessSync(path.join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

const INSTALLERS = [
  { program: 'apt-get', command: 'apt-get install -y', docker: 'docker.io', idMaps: 'uidmap' },
  { program: 'dnf', command: 'dnf install -y', docker: 'moby-engine', idMaps: 'shadow-utils' },
  { program: 'yum', command: 'yum install -y', docker: 'docker', idMaps: 'shadow-utils' },
  { program: 'zypper', command: 'zypper install -y', docker: 'docker', idMaps: 'shadow' },
  { program: 'pacman', command: 'pacman -S --noconfirm', docker: 'docker', idMaps: 'shadow' },
  { program: 'apk', command: 'apk add', docker: 'docker', idMaps: 'shadow-uidmap' },
] as const;

type Package = 'docker' | 'podman' | 'idMaps' | 'fuse-overlayfs';

/** Installs or updates. */
export function installing(what: Package): string {
  if (process.platform === 'darwin') return what === 'podman' ? 'brew install podman' : 'brew install --cask docker';
  if (process.platform === 'win32') {
    return `winget install ${what === 'podman' ? 'RedHat.Podman' : 'Docker.DockerDesktop'}`;
  }
  const installer = INSTALLERS.find(({ program }) => has(program)) ?? INSTALLERS[0];
  const name = what === 'docker' || what === 'idMaps' ? installer[what] : what;
  return asRoot(`${installer.command} ${name}`);
}

/** Kernel parameters, from the next boot on. */
export function bootingWith(words: string): string {
  if (has('grubby')) return asRoot(`grubby --update-kernel=ALL --args="${words}"`);
  const edit = asRoot(`sed -i 's/^GRUB_CMDLINE_LINUX="/&${words} /' /etc/default/grub`);
  return `${edit} && ${asRoot(has('update-grub') ? 'update-grub' : 'grub-mkconfig -o /boot/grub/grub.cfg')}`;
}

export function service(action: 'start' | 'restart', name: 'docker' | 'podman.socket'): string {
  if (process.platform === 'darwin') {
    return action === 'start' ? 'open -a Docker' : 'docker desktop restart';
  }
  if (process.platform === 'win32') return `docker desktop ${action}`;
  if (name === 'podman.socket' && !isRoot) return `systemctl --user ${action} podman.socket`;
  if (existsSync('/run/systemd/system')) return asRoot(`systemctl ${action} ${name}`);
  const plain = name === 'docker' ? 'docker' : 'podman';
  return asRoot(has('rc-service') ? `rc-service ${plain} ${action}` : `service ${plain} ${action}`);
}

/** In the shell of this system. */
export function unsetting(variable: string): string {
  return process.platform === 'win32' ? `Remove-Item Env:${variable}` : `unset ${variable}`;
}

/** A small file of the kernel or of the system; undefined if it does not exist. */
export function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}
