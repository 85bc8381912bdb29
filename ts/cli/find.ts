/** Finds the sandbox that a person named. */
import { SandboxError } from '../errors';
import type { SandboxManager } from '../manager';
import type { SandboxInfo } from '../options';
import type { Sandbox } from '../sandbox';
import type { Operand } from './command';
import { scopeFrom } from './sandbox-options';

export const SANDBOX_OPERAND = {
  name: 'sandbox',
  about: 'Its id or a prefix of it, its key, or the name of one of your sessions',
  complete: 'sandbox',
} as const satisfies Operand;

/** The sandbox that `name` identifies. */
export async function findInfo(manager: SandboxManager, name: string): Promise<SandboxInfo> {
  const all = await manager.list();
  const [user = ''] = Object.values(scopeFrom(undefined));
  const own = `user:${escaped(user)}:${escaped(name)}`;
  const exact = all.find(({ id, key }) => id === name || key === name || key === own);
  if (exact) return exact;
  // The common prefix of all ids identifies none.
  const beginning = name.startsWith('sbx_') ? name : `sbx_${name}`;
  const close = all.filter(({ id }) => beginning !== 'sbx_' && id.startsWith(beginning));
  if (close.length === 1 && close[0]) return close[0];
  const found = close.length === 0 ? 'there is no sandbox' : `${close.length} sandboxes have ids that begin with`;
  throw new SandboxError('SANDBOX_NOT_FOUND', `${found} ${JSON.stringify(name)}. Try: cofferdam ls`, { sandbox: name });
}

/** As in a key. */
function escaped(part: string): string {
  return part.replaceAll('%', '%25').replaceAll(':', '%3A');
}

export async function findSandbox(manager: SandboxManager, name: string): Promise<Sandbox> {
  const { id } = await findInfo(manager, name);
  return manager.get(id);
}
