import { createCofferdamSandbox, sandboxSession, sandboxTools } from 'cofferdam/ai';
import { parseSandboxConfig } from 'cofferdam/frontmatter';
import { createMcpServer, serveHttp, serveStdio } from 'cofferdam/mcp';
import { createFakeManager } from 'cofferdam/testing';
import { anthropicTools, createToolset, openaiTools, toolDefinitions } from 'cofferdam/tools';
import { visitSubpaths } from './visit.cjs';

await visitSubpaths({
  ai: { createCofferdamSandbox, sandboxSession, sandboxTools },
  frontmatter: { parseSandboxConfig },
  mcp: { createMcpServer, serveHttp, serveStdio },
  testing: { createFakeManager },
  tools: { anthropicTools, createToolset, openaiTools, toolDefinitions },
});
