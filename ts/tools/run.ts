/** `sandbox_run`: one program in a sandbox of its own, which is removed afterwards. */
import { z } from 'zod';
import type { Artifact, RunRequest } from '../options';
import { defineTool, type ToolCall } from './definition';
import { listeners, seconds, toModel } from './exec';
import { during, HintedError } from './failure';
import { checkSize } from './fs-write';

const RUN_TIMEOUT_MS = 120_000;

/** All artifacts of a run together may have this many times the size of one text. */
const ARTIFACTS_AT_MOST = 4;

const strings = z.record(z.string(), z.string());

export const runTool = defineTool({
  name: 'sandbox_run',
  kind: 'compute',
  description:
    'Run a program in a new, empty Linux sandbox, and get its output. Nothing is kept: pass everything it needs in code and files. ' +
    'A program that fails returns its exit_code and stderr.',
  input: {
    code: z.string().describe('The source code. Print what you want to know'),
    runtime: z.enum(['python', 'node', 'bash']).optional().describe('What runs the code. Leave out for the default'),
    args: z.array(z.string()).optional().describe('Arguments of the program'),
    env: strings.optional().describe('Environment variables'),
    files: strings.optional().describe('Files to create in the working directory first, as path: content'),
    artifacts: z.array(z.string()).optional().describe('Files to return, as patterns such as "out/*.json"'),
    timeout_seconds: seconds
      .optional()
      .describe('When this time is over, the program and all processes it started are killed'),
  },
  output: {
    runtime: z.string(),
    exit_code: z.int().min(0).max(255),
    duration_ms: z.number(),
    stdout: z.string(),
    stderr: z.string(),
    timed_out: z.boolean(),
    oom_killed: z.boolean(),
    truncated: z.boolean(),
    artifacts: z.array(
      z.looseObject({
        path: z.string(),
        size_bytes: z.number(),
        content_base64: z.string().optional(),
        omitted: z.string().optional().describe('Why the content is missing'),
      }),
    ),
    limits: z.looseObject({ timeout_seconds: z.number(), max_stdout_bytes: z.number() }),
  },
  async run(input, call) {
    const { context, maxBytes } = call;
    const files = checkFiles(input.files ?? {}, call);
    const asked = input.timeout_seconds === undefined ? context.commandTimeoutMs : input.timeout_seconds * 1000;
    const timeoutMs = asked ?? RUN_TIMEOUT_MS;
    const request: RunRequest = {
      code: input.code,
      runtime: input.runtime ?? context.runtime,
      image: imageFor(input.runtime, call),
      args: input.args,
      env: { ...context.env, ...input.env },
      files: { ...context.files, ...files },
      packages: context.packages,
      limits: context.limits,
      network: context.network,
      artifacts: input.artifacts,
      timeoutMs,
      maxOutputBytes: maxBytes,
      maxArtifactBytes: maxBytes,
      signal: call.signal,
      ...listeners(call.onOutput),
    };
    const result = await during('running', call.manager.run(withoutUndefined(request)));
    const { exec_id: _, status: __, note, ...shown } = toModel(result, maxBytes);
    const why = whatWasWrong(result.timedOut, result.oomKilled, timeoutMs);
    return {
      ok: result.ok,
      runtime: result.runtime,
      ...shown,
      ...(why && { error: why }),
      artifacts: toModelArtifacts(result.artifacts, ARTIFACTS_AT_MOST * maxBytes),
      limits: { timeout_seconds: timeoutMs / 1000, max_stdout_bytes: maxBytes },
      ...(shown.truncated === true && {
        note: 'The middle of the output is left out. Print less, or return a file with artifacts.',
      }),
    };
  },
});

/** The context's image belongs to the context's runtime. */
function imageFor(runtime: RunRequest['runtime'], { context }: ToolCall): string | undefined {
  return runtime === undefined || runtime === (context.runtime ?? 'python') ? context.image : undefined;
}

function whatWasWrong(timedOut: boolean, oomKilled: boolean, timeoutMs: number): string | undefined {
  if (timedOut) return `the program timed out after ${timeoutMs / 1000} s and was killed`;
  return oomKilled ? 'the program was killed because it ran out of memory' : undefined;
}

/** With their content, as long as it fits. */
function toModelArtifacts(artifacts: Artifact[], room: number): object[] {
  let left = room;
  return artifacts.map(({ path, sizeBytes, content, omitted }) => {
    if (content === null || content.length > left)
      return { path, size_bytes: sizeBytes, omitted: omitted ?? 'too large' };
    left -= content.length;
    return { path, size_bytes: sizeBytes, content_base64: Buffer.from(content).toString('base64') };
  });
}

function checkFiles(files: Record<string, string>, call: ToolCall): Record<string, string> {
  const { maxFiles } = call.context;
  const count = Object.keys(files).length;
  if (maxFiles !== undefined && count > maxFiles) {
    const message = `files has ${count} files, but at most ${maxFiles} are allowed`;
    throw new HintedError('LIMIT_EXCEEDED', message, 'Pass fewer files, or put more into one.');
  }
  for (const content of Object.values(files)) checkSize(Buffer.byteLength(content), call);
  return files;
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as T;
}
