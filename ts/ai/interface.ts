/**
 * The sandbox interfaces of AI SDK 7, written out: `Experimental_SandboxSession` of `ai` and `HarnessV1SandboxProvider` of
 * `@ai-sdk/harness`, as far as we implement them.
 *
 * They are not imported, so that `cofferdam/ai` has the same types with AI SDK 5 and 6, which do not know them, and
 * without `@ai-sdk/harness`. `__test__/types/ai.ts` holds them to the originals.
 */

/** Options of every call. */
interface Abortable {
  abortSignal?: AbortSignal;
}

/** Options of a call about one path. */
export interface PathOptions extends Abortable {
  /** Absolute, or under the sandbox's workdir. */
  path: string;
}

export interface ReadTextOptions extends PathOptions {
  /** `utf-8` unless told. */
  encoding?: string;
  /** From 1 on. */
  startLine?: number;
  /** Included. */
  endLine?: number;
}

export interface WriteOptions<Content> extends PathOptions {
  content: Content;
}

export interface WriteTextOptions extends WriteOptions<string> {
  /** `utf-8` unless told. */
  encoding?: string;
}

export interface CommandOptions extends Abortable {
  /** Goes through the sandbox's shell. */
  command: string;
  workingDirectory?: string;
  env?: Record<string, string>;
}

/** A process that goes on by itself. */
export interface SandboxProcess {
  /** In the sandbox. */
  readonly pid: number;
  /** What it prints, from its start on. */
  readonly stdout: ReadableStream<Uint8Array>;
  /** The same of standard error. */
  readonly stderr: ReadableStream<Uint8Array>;
  /** Rejects with the signal's reason when the process was aborted. */
  wait(): Promise<{ exitCode: number }>;
  /** Ends it with all that it started. */
  kill(): Promise<void>;
}

/** A process whose input is open. */
export interface WritableSandboxProcess extends SandboxProcess {
  /** Its input; closing it is the end of it. */
  readonly stdin: WritableStream<Uint8Array>;
}

/** A sandbox as AI SDK 7 sees it: what `experimental_sandbox` takes. */
export interface SandboxSession {
  /** For a model: what this computer is, and where it works. */
  readonly description: string;
  /** A file piece by piece; `null` when it is missing. */
  readonly readFile: (options: PathOptions) => Promise<ReadableStream<Uint8Array> | null>;
  /** A whole file; `null` when it is missing. */
  readonly readBinaryFile: (options: PathOptions) => Promise<Uint8Array | null>;
  /** A whole file or some of its lines; `null` when it is missing. */
  readonly readTextFile: (options: ReadTextOptions) => Promise<string | null>;
  /** Writes a file from a stream, whole or not at all. */
  readonly writeFile: (options: WriteOptions<ReadableStream<Uint8Array>>) => Promise<void>;
  /** Writes bytes, whole or not at all. */
  readonly writeBinaryFile: (options: WriteOptions<Uint8Array>) => Promise<void>;
  /** Writes text, whole or not at all. */
  readonly writeTextFile: (options: WriteTextOptions) => Promise<void>;
  /** What is at a path; `null` when nothing is. */
  readonly stat: (options: PathOptions) => Promise<{ type: 'file' | 'directory' | 'other'; size: number } | null>;
  /** What is in a directory; `null` when it is missing. */
  readonly listDirectory: (
    options: PathOptions,
  ) => Promise<{ name: string; type: 'file' | 'directory' | 'symlink' | 'other' }[] | null>;
  /** Removes a file; `false` when nothing was there. */
  readonly deleteFile: (options: PathOptions) => Promise<boolean>;
  /** Starts a command that goes on by itself; `stdin: true` keeps its input open. */
  readonly spawn: {
    (options: CommandOptions & { stdin: true }): Promise<WritableSandboxProcess>;
    (options: CommandOptions & { stdin?: false }): Promise<SandboxProcess>;
    (options: CommandOptions & { stdin?: boolean }): Promise<SandboxProcess | WritableSandboxProcess>;
  };
  /** Runs a command to its end. */
  readonly run: (options: CommandOptions) => Promise<{ exitCode: number; stdout: string; stderr: string }>;
}

/** Which port, and what is spoken there. */
export interface PortOptions {
  port: number;
  protocol?: 'http' | 'https' | 'ws';
}

/** A session with what only its owner may do. */
export interface NetworkSandboxSession extends SandboxSession {
  /** `sbx_…` */
  readonly id: string;
  /** The sandbox’s workdir. */
  readonly defaultWorkingDirectory: string;
  /** Those that may be reached. */
  readonly ports: readonly number[];
  /** Where a port of the sandbox is reached from the host. */
  readonly getPortEndpoint: (options: PortOptions) => Promise<{ url: string }>;
  /** The same, as a string. */
  readonly getPortUrl: (options: PortOptions) => Promise<string>;
  /** Says which ports may be reached from now on. */
  readonly setPorts: (ports: readonly number[], options?: Abortable) => Promise<void>;
  /** Ends all that runs in it; only a persistent workspace stays. */
  readonly stop: () => Promise<void>;
  /** Ends it with its data. */
  readonly destroy: () => Promise<void>;
  /** The same sandbox without what only its owner may do. */
  readonly restricted: () => SandboxSession;
}

/** What a `HarnessAgent` takes as its `sandbox`. */
export interface SandboxProvider extends AsyncDisposable {
  /** Which interface of the SDK this is. */
  readonly specificationVersion: 'harness-sandbox-v1';
  /** Who provides the sandboxes. */
  readonly providerId: string;
  /** Opens a sandbox; with a `sessionId`, get or create. */
  readonly createSession: (options?: {
    sessionId?: string;
    abortSignal?: AbortSignal;
    identity?: string;
    onFirstCreate?: (session: SandboxSession, options: Abortable) => Promise<void>;
  }) => Promise<NetworkSandboxSession>;
  /** Comes back to a session. */
  readonly resumeSession: (options: { sessionId: string; abortSignal?: AbortSignal }) => Promise<NetworkSandboxSession>;
  /** Closes the manager that the provider made for itself, with all its sandboxes; one that was given stays. */
  readonly close: () => Promise<void>;
}
