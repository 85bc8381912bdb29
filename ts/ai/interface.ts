/**
 * The sandbox interfaces of AI SDK 7, written out: `Experimental_SandboxSession` of `ai` and `HarnessV1SandboxProvider` of
 * `@ai-sdk/harness`, as far as we implement them.
 *
 * They are not imported, so that `cofferdam/ai` has the same types with AI SDK 5 and 6, which do not have them, and without
 * `@ai-sdk/harness`. `__test__/types/ai.ts` checks them against the originals.
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
  /**
   * The encoding of the file.
   *
   * @default 'utf-8'
   */
  encoding?: string;
  /** The first line, starting at 1. */
  startLine?: number;
  /** The last line, inclusive. */
  endLine?: number;
}

export interface WriteOptions<Content> extends PathOptions {
  content: Content;
}

export interface WriteTextOptions extends WriteOptions<string> {
  /**
   * The encoding of the file.
   *
   * @default 'utf-8'
   */
  encoding?: string;
}

export interface CommandOptions extends Abortable {
  /** Runs in the sandbox's shell. */
  command: string;
  workingDirectory?: string;
  env?: Record<string, string>;
}

/** A process in the background. */
export interface SandboxProcess {
  /** Its pid in the sandbox. */
  readonly pid: number;
  /** Its standard output, from the start. */
  readonly stdout: ReadableStream<Uint8Array>;
  /** Its standard error, from the start. */
  readonly stderr: ReadableStream<Uint8Array>;
  /** Rejects with `signal.reason` when the process was aborted. */
  wait(): Promise<{ exitCode: number }>;
  /** Kills it with all processes it started. */
  kill(): Promise<void>;
}

/** A process whose input is open. */
export interface WritableSandboxProcess extends SandboxProcess {
  /** Its standard input. Closing the stream ends the input. */
  readonly stdin: WritableStream<Uint8Array>;
}

/** A sandbox for `experimental_sandbox` of AI SDK 7. */
export interface SandboxSession {
  /** For a model: what this sandbox is, and where commands run. */
  readonly description: string;
  /** A file as a stream; `null` when it is missing. */
  readonly readFile: (options: PathOptions) => Promise<ReadableStream<Uint8Array> | null>;
  /** A whole file; `null` when it is missing. */
  readonly readBinaryFile: (options: PathOptions) => Promise<Uint8Array | null>;
  /** A whole file or some of its lines; `null` when it is missing. */
  readonly readTextFile: (options: ReadTextOptions) => Promise<string | null>;
  /** Writes a file from a stream, atomically. */
  readonly writeFile: (options: WriteOptions<ReadableStream<Uint8Array>>) => Promise<void>;
  /** Writes bytes, atomically. */
  readonly writeBinaryFile: (options: WriteOptions<Uint8Array>) => Promise<void>;
  /** Writes text, atomically. */
  readonly writeTextFile: (options: WriteTextOptions) => Promise<void>;
  /** The entry at a path; `null` when there is none. */
  readonly stat: (options: PathOptions) => Promise<{ type: 'file' | 'directory' | 'other'; size: number } | null>;
  /** The entries of a directory; `null` when it is missing. */
  readonly listDirectory: (
    options: PathOptions,
  ) => Promise<{ name: string; type: 'file' | 'directory' | 'symlink' | 'other' }[] | null>;
  /** Removes a file; `false` when it did not exist. */
  readonly deleteFile: (options: PathOptions) => Promise<boolean>;
  /** Starts a command in the background; `stdin: true` keeps its input open. */
  readonly spawn: {
    (options: CommandOptions & { stdin: true }): Promise<WritableSandboxProcess>;
    (options: CommandOptions & { stdin?: false }): Promise<SandboxProcess>;
    (options: CommandOptions & { stdin?: boolean }): Promise<SandboxProcess | WritableSandboxProcess>;
  };
  /** Runs a command and waits for it to end. */
  readonly run: (options: CommandOptions) => Promise<{ exitCode: number; stdout: string; stderr: string }>;
}

/** A port and its protocol. */
export interface PortOptions {
  port: number;
  protocol?: 'http' | 'https' | 'ws';
}

/** A session with the methods that only its owner may call. */
export interface NetworkSandboxSession extends SandboxSession {
  /** `sbx_…` */
  readonly id: string;
  /** The sandbox’s workdir. */
  readonly defaultWorkingDirectory: string;
  /** The ports that can be reached. */
  readonly ports: readonly number[];
  /** The URL of a port of the sandbox on the host. */
  readonly getPortEndpoint: (options: PortOptions) => Promise<{ url: string }>;
  /** The same, as a string. */
  readonly getPortUrl: (options: PortOptions) => Promise<string>;
  /** Sets the ports that can be reached from now on. */
  readonly setPorts: (ports: readonly number[], options?: Abortable) => Promise<void>;
  /** Stops the sandbox; only a persistent workspace stays. */
  readonly stop: () => Promise<void>;
  /** Closes the sandbox and deletes its workspace. */
  readonly destroy: () => Promise<void>;
  /** The same sandbox without the methods of its owner. */
  readonly restricted: () => SandboxSession;
}

/** The `sandbox` of a `HarnessAgent`. */
export interface SandboxProvider extends AsyncDisposable {
  /** The version of the SDK interface. */
  readonly specificationVersion: 'harness-sandbox-v1';
  /** Who provides the sandboxes. */
  readonly providerId: string;
  /** Opens a sandbox; with a `sessionId`, gets or creates it. */
  readonly createSession: (options?: {
    sessionId?: string;
    abortSignal?: AbortSignal;
    identity?: string;
    onFirstCreate?: (session: SandboxSession, options: Abortable) => Promise<void>;
  }) => Promise<NetworkSandboxSession>;
  /** Reopens a session. */
  readonly resumeSession: (options: { sessionId: string; abortSignal?: AbortSignal }) => Promise<NetworkSandboxSession>;
  /** Closes the provider's own manager with all its sandboxes. A manager that was passed in stays open. */
  readonly close: () => Promise<void>;
}
