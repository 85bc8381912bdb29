// All but cofferdam/mcp must compile without any of the optional frameworks.
import { SandboxManager } from 'cofferdam';
import { sandboxTools } from 'cofferdam/ai';
import { parseSandboxConfig } from 'cofferdam/frontmatter';
import { createFakeManager } from 'cofferdam/testing';
import { createToolset } from 'cofferdam/tools';

export { createFakeManager, createToolset, parseSandboxConfig, SandboxManager, sandboxTools };
