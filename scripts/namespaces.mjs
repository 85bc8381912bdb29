// Whether this machine can have sandboxes of namespaces, by asking the built package, which tries one.

import { Unavailable } from './unavailable.mjs';

const NEXT =
  'Try as root, or allow user namespaces to ordinary users (sysctl user.max_user_namespaces, AppArmor), and run this again.';

/** Rejects with {@link Unavailable} where it cannot. */
export async function ensureNamespaces() {
  const { SandboxManager } = await import('../index.mjs');
  let manager;
  try {
    manager = new SandboxManager({ backend: 'namespaces' });
    await manager.info();
  } catch (error) {
    throw new Unavailable(`Sandboxes of namespaces cannot be made here: ${error.message}`, NEXT);
  } finally {
    await manager?.close();
  }
}
