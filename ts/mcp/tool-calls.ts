/**
 * The toolset as MCP's tools: lists them, and turns a call and its outcome into each other's shape.
 *
 * It decides nothing about sandboxes, and never answers with a protocol error what a model could mend: that is a result
 * with `isError`.
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
    // Clients check every structured result against it; it allows for failures.
    outputSchema: outputSchema as Tool['outputSchema'],
    annotations: annotationsOf(name, network),
  };
}

function toCallResult(result: ToolResult): CallToolResult {
  return {
    // For the clients, and the models behind them, that know only text.
    content: [{ type: 'text', text: JSON.stringify(result) }],
    structuredContent: { ...result },
    ...(isToolFailure(result) && { isError: true }),
  };
}

/** What a model is not told, because it may quote the host: for whoever runs the server. */
function untoldCause(result: ToolResult): Error | undefined {
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

  /** Annotations say whether sandboxes have `network`, if that is known; `onCalled` hears of every call's end. */
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

  /** The client is gone: not every version of the SDK ends its calls. */
  abort(): void {
    for (const ending of this.#underWay.keys()) ending.abort();
  }

  /** Resolves when no call is under way. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#underWay.values());
  }

  async #call(name: string, input: Record<string, unknown>, extra: Extra): Promise<CallToolResult> {
    if (!this.#tools.some((tool) => tool.name === name)) {
      const names = this.#tools.map((tool) => tool.name).join(', ');
      throw new ProtocolError(ErrorCode.InvalidParams, `there is no tool ${JSON.stringify(name)}; there are ${names}`);
    }
    const progress = progressOf(extra);
    try {
      const result = await this.#abortable(extra.signal, (signal) =>
        this.#toolset.call(name, input, { signal, onOutput: progress?.onOutput }),
      );
      const untold = untoldCause(result);
      if (untold) this.#server.onerror?.(untold);
      return toCallResult(result);
    } finally {
      await progress?.end();
    }
  }

  /** Not by `AbortSignal.any()`, of which Node keeps a little for as long as the longest-lived signal. */
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

/** Of a call whose client asked for it. */
function progressOf({ _meta, sendNotification }: Extra): OutputProgress | undefined {
  const progressToken = _meta?.progressToken;
  if (progressToken === undefined) return undefined;
  return new OutputProgress((step) =>
    sendNotification({ method: 'notifications/progress', params: { progressToken, ...step } }),
  );
}
