/** What a sandbox may reach, from the caller's words to the core's. */
import type { NetworkPolicy } from '../options';
import type { NativeOpen } from './binding';
import * as check from './check';

const FIELDS = ['enabled'];

/** Rejects every field it does not know: a rule that is ignored would leave the sandbox more open than its caller thinks. */
export function toNativeNetwork(network: boolean | NetworkPolicy): NativeOpen['network'] {
  if (typeof network === 'boolean') return network ? 'open' : 'off';
  check.object('network', network);
  const unknown = Object.keys(network).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined) {
    throw check.invalid('network', `true, false or { enabled: boolean }, without "${unknown}"`, network);
  }
  return check.boolean('network.enabled', network.enabled) ? 'open' : 'off';
}
