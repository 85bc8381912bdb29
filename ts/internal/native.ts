/**
 * Loads the native addon: beside the package in a checkout, else from the package of this platform.
 *
 * Loads it on first use: a program that only uses the fake manager of `cofferdam/testing` never does.
 */
import type * as Binding from './binding';
import { loadAddon } from './load';
import { packageVersion } from './package';
import { platformName } from './platform';

let loaded: typeof Binding | undefined;

export function addon(): typeof Binding {
  loaded ??= loadAddon(platformName(), packageVersion(), (id) => require(id));
  return loaded;
}

/** The addon's `Cancel` with its signal. Without an addon there is only a fake, which uses the signal. */
export function newCancel(signal?: AbortSignal): SignalledCancel {
  return Object.assign(loaded ? new loaded.Cancel() : { cancel() {} }, { signal });
}

export type SignalledCancel = Binding.Cancel & { readonly signal?: AbortSignal };
