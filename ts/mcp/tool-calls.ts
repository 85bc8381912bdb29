/**
 * The toolset as MCP tools: lists them, and converts calls and results.
 *
 * It decides nothing about sandboxes. What a model could correct is never a protocol error, but a result with `isError`.
 */
import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  type ServerNotification,
  type ServerRequest,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js';
import { isToolFailure } from '../tools';
import type { ToolDefinition, ToolResult, Toolset } from '../tools/toolset';
import { annotationsOf } from './annotations';
import { OutputProgress } from './progress';
import { ProtocolError } from './protocol-error';

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

function toTool({ name, description, inputSchema, outputSchema }: ToolDefinition, network: boolean | undefined): Tool {
  return {
    name,
    description,
    inputSchema: inputSchema as Tool['inputSchema'],
    // Clients validate every structured result with it; it allows failures.
    outputSchema: outputSchema as Tool['outputSchema'],
    annotations: annotationsOf(name, network),
  };
}

function toCallResult(result: ToolResult): CallToolResult {
  return {
    // For clients that support only text.
    content: [{ type: 'text', text: JSON.stringify(result) }],
    structuredContent: { ...result },
    ...(isToolFailure(result) && { isError: true }),
  };
}

/** The cause that a model does not see, because it may quote the host: for the operator of the server. */
function hiddenCause(result: ToolResult): Error | undefined {
  if (!isToolFailure(result)) return undefined;
  const { cause } = result as { cause?: Error };
  return cause?.message === result.error ? undefined : cause;
}

/** The calls of one client: serves `tools/list` and `tools/call`. */
export class ToolCalls {
  readonly #toolset: Toolset;
  readonly #server: Server;
  readonly #tools: Tool[];
  readonly #underWay = new Map<AbortController, Promise<ToolResult>>();

  /** Annotations say whether sandboxes have `network`, if known; `onCalled` is called after every call. */
  constructor(server: Server, toolset: Toolset, network: boolean | undefined, onCalled: () => void) {
    this.#toolset = toolset;
    this.#server = server;
    this.#tools = toolset.tools.map((tool) => toTool(tool, network));
    server.registerCapabilities({ tools: {} });
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: this.#tools }));
    server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) =>
      this.#call(params.name, params.arguments ?? {}, extra).finally(onCalled),
    );
  }

  /** Aborts all calls when the client is gone: not every version of the SDK does. */
  abort(): void {
    for (const ending of this.#underWay.keys()) ending.abort();
  }

  /** Resolves when no call is running. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#underWay.values());
  }

  async #call(name: string, input: Record<string, unknown>, extra: Extra): Promise<CallToolResult> {
    if (!this.#tools.some((tool) => tool.name === name)) {
      const names = this.#tools.map((tool) => tool.name).join(', ');
      throw new ProtocolError(
        ErrorCode.InvalidParams,
        `there is no tool ${JSON.stringify(name)}; the tools are ${names}`,
      );
    }
    const progress = progressOf(extra);
    try {
      const result = await this.#abortable(extra.signal, (signal) =>
        this.#toolset.call(name, input, { signal, onOutput: progress?.onOutput }),
      );
      const hidden = hiddenCause(result);
      if (hidden) this.#server.onerror?.(hidden);
      return toCallResult(result);
    } finally {
      await progress?.end();
    }
  }

  /** Without `AbortSignal.any()`, which in Node leaks a little memory until the longest-lived signal is gone. */
  async #abortable(cancelled: AbortSignal, start: (signal: AbortSignal) => Promise<ToolResult>): Promise<ToolResult> {
    const ending = new AbortController();
    const cancel = () => ending.abort(cancelled.reason);
    if (cancelled.aborted) cancel();
    cancelled.addEventListener('abort', cancel, { once: true });
    const call = start(ending.signal);
    this.#underWay.set(ending, call);
    try {
      return await call;
    } finally {
      this.#underWay.delete(ending);
    }
  }
}

/** `undefined` if the client did not request progress. */
function progressOf({ _meta, sendNotification }: Extra): OutputProgress | undefined {
  const progressToken = _meta?.progressToken;
  if (progressToken === undefined) return undefined;
  return new OutputProgress((step) =>
    sendNotification({ method: 'notifications/progress', params: { progressToken, ...step } }),
  );
}
