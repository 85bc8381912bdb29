/** What `cofferdam/ai` gives is what AI SDK 7 takes: checked by the compiler, never run. */
import type { Sandbox, SandboxManager } from 'cofferdam';
import {
  createCofferdamSandbox,
  type NetworkSandboxSession,
  sandboxSession,
  sandboxTools,
  type ToolSet,
} from 'cofferdam/ai';
import type { IsAny } from './exact';

type Ai = typeof import('ai', { with: { 'resolution-mode': 'import' }});
type Session = import('ai', { with: { 'resolution-mode': 'import' }}).Experimental_SandboxSession;
type Model = import('ai', { with: { 'resolution-mode': 'import' }}).LanguageModel;
type Provider = import('@ai-sdk/harness', { with: { 'resolution-mode': 'import' }}).HarnessV1SandboxProvider;
type Owned = import('@ai-sdk/harness', { with: { 'resolution-mode': 'import' }}).HarnessV1NetworkSandboxSession;

export const known: IsAny<ToolSet> = false;

export function sessions(sandbox: Sandbox, network: NetworkSandboxSession) {
  const session: Session = sandboxSession(sandbox);
  const owned: Owned = network;
  const provider: Provider = createCofferdamSandbox({ image: 'node', ports: [3000] });
  return { session, owned, provider };
}

export function tools(ai: Ai, model: Model, manager: SandboxManager) {
  const all = sandboxTools(manager, {
    scope: { workflow: 'wf' },
    session: 'tests',
    mode: 'code',
    include: ['sandbox_exec'],
    image: 'python',
    limits: { memoryMb: 512 },
    needsApproval: { sandbox_exec: ({ command }) => command !== 'ls' },
  });
  sandboxTools(manager, { needsApproval: true });
  sandboxTools(manager, { needsApproval: async (name, input) => name === 'sandbox_exec' && 'command' in input });
  // @ts-expect-error: no such mode.
  sandboxTools(manager, { mode: 'other' });
  new ai.ToolLoopAgent({ model, tools: all });
  ai.streamText({ model, tools: { ...all }, prompt: '' });
  return ai.generateText({ model, tools: all, prompt: '' });
}
