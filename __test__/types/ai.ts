/** What `cofferdam/ai` gives is what AI SDK takes: checked by the compiler, never run. */
import type { Sandbox } from 'cofferdam';
import { createCofferdamSandbox, type NetworkSandboxSession, sandboxSession } from 'cofferdam/ai';

type Session = import('ai', { with: { 'resolution-mode': 'import' }}).Experimental_SandboxSession;
type Provider = import('@ai-sdk/harness', { with: { 'resolution-mode': 'import' }}).HarnessV1SandboxProvider;
type Owned = import('@ai-sdk/harness', { with: { 'resolution-mode': 'import' }}).HarnessV1NetworkSandboxSession;

export function sessions(sandbox: Sandbox, network: NetworkSandboxSession) {
  const session: Session = sandboxSession(sandbox);
  const owned: Owned = network;
  const provider: Provider = createCofferdamSandbox({ image: 'node', ports: [3000] });
  return { session, owned, provider };
}
