/**
 * Finds and loads the native addon: beside the package in a checkout, else the prebuilt package of this platform.
 *
 * Not before it is needed: a program that only uses the fake manager of `cofferdam/testing` never loads it.
 */
import type * as Binding from './binding';

function isMusl(): boolean {
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined;
  return process.platform === 'linux' && !report?.header?.glibcVersionRuntime;
}

function platformName(): string {
  const { platform, arch } = process;
  if (platform === 'linux') return `linux-${arch}-${isMusl() ? 'musl' : 'gnu'}`;
  if (platform === 'win32') return `win32-${arch}-msvc`;
  return `${platform}-${arch}`;
}

function load(): typeof Binding {
  const name = platformName();
  const candidates = [`../../cofferdam.${name}.node`, `cofferdam-${name}`];
  const failures: string[] = [];
  for (const candidate of candidates) {
    try {
      return require(candidate);
    } catch (error) {
      failures.push(`${candidate}: ${(error as Error).message.split('\n')[0]}`);
    }
  }
  throw new Error(
    `cofferdam has no native addon for ${name}. Install again with optional dependencies (npm install --include=optional ` +
      `cofferdam), or in a checkout run "npm run build". Tried:\n  ${failures.join('\n  ')}`,
  );
}

let loaded: typeof Binding | undefined;

export function addon(): typeof Binding {
  loaded ??= load();
  return loaded;
}

/** The addon's own, with the signal it stands for. Without an addon there is only a fake to hear of it, by the signal. */
export function newCancel(signal?: AbortSignal): SignalledCancel {
  return Object.assign(loaded ? new loaded.Cancel() : { cancel() {} }, { signal });
}

export type SignalledCancel = Binding.Cancel & { readonly signal?: AbortSignal };
