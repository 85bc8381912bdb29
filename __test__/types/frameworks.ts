/** What `cofferdam/tools` gives is what the frameworks take: checked by the compiler, never run. */
import type Anthropic from '@anthropic-ai/sdk';
import { Agent, type Tool } from '@openai/agents';
import type { SandboxManager } from 'cofferdam';
import {
  anthropicTools,
  type GenkitTool,
  genkitTools,
  type LangChainTool,
  langchainTools,
  type MastraTool,
  mastraTools,
  openaiAgentTools,
  openaiTools,
} from 'cofferdam/tools';
import type { Genkit } from 'genkit';
import type OpenAI from 'openai';
import type { IsAny } from './exact';

type Structured = import('@langchain/core/tools', { with: { 'resolution-mode': 'import' }}).StructuredToolInterface;
type Models = typeof import('@langchain/core/language_models/chat_models', { with: { 'resolution-mode': 'import' }});
type ChatModel = InstanceType<Models['BaseChatModel']>;
type Mastra = typeof import('@mastra/core/agent', { with: { 'resolution-mode': 'import' }});

export const known: [IsAny<LangChainTool>, IsAny<MastraTool>, IsAny<GenkitTool>] = [false, false, false];

export async function openai(client: OpenAI, manager: SandboxManager) {
  const { tools, responsesTools, call } = openaiTools(manager, { image: 'python', mode: 'code' });
  const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [];
  const completion = await client.chat.completions.create({ model: 'm', messages, tools });
  for (const toolCall of completion.choices[0]?.message.tool_calls ?? []) messages.push(await call(toolCall));
  const input: OpenAI.Responses.ResponseInputItem[] = [];
  const response = await client.responses.create({ model: 'm', input, tools: responsesTools });
  for (const item of response.output) if (item.type === 'function_call') input.push(await call(item));
}

export function openaiAgents(manager: SandboxManager) {
  const tools: Tool[] = openaiAgentTools(manager, { needsApproval: (name) => name === 'sandbox_exec' });
  return new Agent({ name: 'a', tools });
}

export async function anthropic(client: Anthropic, manager: SandboxManager) {
  const { tools, answer, call } = anthropicTools(manager);
  const messages: Anthropic.MessageParam[] = [];
  const message = await client.messages.create({ model: 'm', max_tokens: 1, messages, tools });
  messages.push({ role: 'user', content: await answer(message.content) });
  for (const block of message.content) {
    if (block.type === 'tool_use') messages.push({ role: 'user', content: [await call(block)] });
  }
}

export function langchain(model: ChatModel, manager: SandboxManager) {
  const tools: Structured[] = langchainTools(manager, { session: 'isolated' });
  return model.bindTools?.(tools);
}

export function mastra({ Agent }: Mastra, manager: SandboxManager) {
  const tools = mastraTools(manager);
  return new Agent({ id: 'a', name: 'a', instructions: '', model: 'openai/m', tools });
}

export function genkit(ai: Genkit, manager: SandboxManager) {
  return ai.generate({ prompt: '', tools: genkitTools(manager, { ai, image: 'python' }) });
}
