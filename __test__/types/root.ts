/** What the root exports has the types that programs rely on: checked by the compiler, never run. */
import type {
  CloseOptions,
  DockerOptions,
  EventsOptions,
  ExecOptions,
  ExecResult,
  ExtendOptions,
  ForwardOptions,
  ListOptions,
  LogFileOptions,
  MkdirOptions,
  OpenOptions,
  OutputCallback,
  Process,
  ProgressCallback,
  PullProgress,
  ReadOptions,
  ReadOutputOptions,
  ReadTextOptions,
  RemoveOptions,
  RunRequest,
  Sandbox,
  SandboxErrorCode,
  SandboxEvent,
  SandboxFilter,
  SandboxManager,
  SandboxManagerOptions,
  SandboxPolicy,
  SessionScope,
  SpawnOptions,
  StreamOptions,
  TelemetryOptions,
  Terminal,
  TerminalSize,
  TransferOptions,
  TransferProgress,
  WaitForPortOptions,
  WaitOptions,
} from 'cofferdam';
import type { IsAny, Known } from './exact';

type Parameter<F extends (...args: never[]) => unknown, N extends number> = NonNullable<Parameters<F>[N]>;

/** Whether two types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

export const known: IsAny<SandboxEvent> = false;

/** Every kind of event has its own fields, and no others. */
export function told(event: SandboxEvent): string {
  const common: [Date, number | undefined, string | undefined, string | undefined] = [
    event.at,
    event.missed,
    event.sandboxId,
    event.key,
  ];
  // @ts-expect-error: only some kinds have it.
  event.reason;
  switch (event.type) {
    case 'opened': {
      const image: Known<typeof event.image> = event.image;
      return event.sandboxId + event.key + image;
    }
    case 'resumed':
      return event.image ?? event.key;
    case 'expiring':
      return `${event.reason} ${event.inMs.toFixed()} ${event.expiresAt?.toISOString()}`;
    case 'closed':
      // @ts-expect-error: it has no exit code.
      event.exitCode;
      return event.reason === 'scope-ended' ? 'over' : event.reason;
    case 'lost':
      return `${event.reason} ${event.exitCode?.toFixed()}`;
    case 'exec-started':
      return event.execId + event.command;
    case 'exec-finished': {
      const flags: boolean[] = [event.timedOut, event.oomKilled];
      return `${event.execId} ${event.exitCode.toFixed()} ${event.signal?.slice(3)} ${event.durationMs.toFixed()} ${flags}`;
    }
    case 'oom':
      return event.execId;
    case 'warming': {
      const code: SandboxErrorCode | undefined = event.code;
      return `${event.image} ${event.count.toFixed()} ${event.ready?.toFixed()} ${event.error?.trim()} ${code}`;
    }
    case 'pull': {
      const step: PullProgress = event;
      return step.status;
    }
    default: {
      const none: never = event;
      return `${none} ${common}`;
    }
  }
}

/** Callbacks may be asynchronous, and may return anything. */
export async function callbacks(manager: SandboxManager, sandbox: Sandbox) {
  const pieces: string[] = [];
  const later: (text: string) => void | Promise<void> = async (text) => void pieces.push(text);
  await sandbox.exec('true', { onStdout: later, onStderr: (text) => pieces.push(text) });
  await sandbox.spawn('true', { onStdout: async (text) => later(text), onStderr: later });
  await manager.run({ code: '', onStdout: later, onStderr: async () => {} });
  await manager.open({ onPullProgress: async ({ status }) => later(status) });
  await sandbox.files.upload('.', '.', { onProgress: async ({ path }) => later(path) });
  await sandbox.files.download('.', '.', { onProgress: ({ bytes }) => bytes });
  // @ts-expect-error: text is a string.
  await sandbox.exec('true', { onStdout: (text: number) => text });
}

export const outputCallbacks: [
  Same<ExecOptions['onStdout'], OutputCallback | undefined>,
  Same<SpawnOptions['onStderr'], OutputCallback | undefined>,
  Same<RunRequest['onStdout'], OutputCallback | undefined>,
  Same<OpenOptions['onPullProgress'], ProgressCallback<PullProgress> | undefined>,
  Same<TransferOptions['onProgress'], ProgressCallback<TransferProgress> | undefined>,
  Same<ReturnType<OutputCallback>, void | Promise<void>>,
] = [true, true, true, true, true, true];

/** Every options object has a name. */
export const named: [
  Same<NonNullable<SandboxManagerOptions['docker']>, DockerOptions>,
  Same<NonNullable<SandboxManagerOptions['policy']>, SandboxPolicy>,
  Same<Exclude<SandboxManagerOptions['telemetry'], false | undefined>, TelemetryOptions>,
  Same<NonNullable<OpenOptions['scope']>, SessionScope>,
  Same<Exclude<SpawnOptions['logFile'], boolean | undefined>, LogFileOptions>,
  Same<Parameter<SandboxManager['list'], 0>, SandboxFilter>,
  Same<Parameter<SandboxManager['events'], 0>, EventsOptions>,
  Same<Parameter<Sandbox['forward'], 1>, ForwardOptions>,
  Same<Parameter<Sandbox['extend'], 0>, ExtendOptions>,
  Same<Parameter<Sandbox['close'], 0>, CloseOptions>,
  Same<Parameter<Sandbox['files']['read'], 1>, ReadOptions>,
  Same<Parameter<Sandbox['files']['readText'], 1>, ReadTextOptions>,
  Same<Parameter<Sandbox['files']['stream'], 1>, StreamOptions>,
  Same<Parameter<Sandbox['files']['list'], 1>, ListOptions>,
  Same<Parameter<Sandbox['files']['mkdir'], 1>, MkdirOptions>,
  Same<Parameter<Sandbox['files']['remove'], 1>, RemoveOptions>,
  Same<Parameter<Process['read'], 0>, ReadOutputOptions>,
  Same<Parameter<Process['wait'], 0>, WaitOptions>,
  Same<Parameter<Process['waitForPort'], 1>, WaitForPortOptions>,
  Same<Parameter<Terminal['resize'], 0>, TerminalSize>,
] = [
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
  true,
];

export async function rejecting(sandbox: Sandbox): Promise<ExecResult> {
  // @ts-expect-error: a process that goes on by itself has no result to reject with.
  await sandbox.spawn('true', { reject: true });
  const code: SandboxErrorCode = 'COMMAND_FAILED';
  return sandbox.exec(code, { reject: true });
}
