import { Sandbox, SandboxError, SandboxManager, version } from 'cofferdam';
import { visit } from './visit.cjs';

await visit({ Sandbox, SandboxError, SandboxManager, version });
