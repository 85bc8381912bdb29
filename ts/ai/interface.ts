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
  readonly pid: number;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** Rejects with the signal's reason when the process was aborted. */
  wait(): Promise<{ exitCode: number }>;
  /** Ends it with all that it started. */
  kill(): Promise<void>;
}

export interface WritableSandboxProcess extends SandboxProcess {
  readonly stdin: WritableStream<Uint8Array>;
}

/** A sandbox as AI SDK 7 sees it: what `experimental_sandbox` takes. */
export interface SandboxSession {
  readonly description: string;
  readonly readFile: (options: PathOptions) => Promise<ReadableStream<Uint8Array> | null>;
  readonly readBinaryFile: (options: PathOptions) => Promise<Uint8Array | null>;
  readonly readTextFile: (options: ReadTextOptions) => Promise<string | null>;
  readonly writeFile: (options: WriteOptions<ReadableStream<Uint8Array>>) => Promise<void>;
  readonly writeBinaryFile: (options: WriteOptions<Uint8Array>) => Promise<void>;
  readonly writeTextFile: (options: WriteTextOptions) => Promise<void>;
  readonly stat: (options: PathOptions) => Promise<{ type: 'file' | 'directory' | 'other'; size: number } | null>;
  readonly listDirectory: (
    options: PathOptions,
  ) => Promise<{ name: string; type: 'file' | 'directory' | 'symlink' | 'other' }[] | null>;
  readonly deleteFile: (options: PathOptions) => Promise<boolean>;
  readonly spawn: {
    (options: CommandOptions & { stdin: true }): Promise<WritableSandboxProcess>;
    (options: CommandOptions & { stdin?: false }): Promise<SandboxProcess>;
    (options: CommandOptions & { stdin?: boolean }): Promise<SandboxProcess | WritableSandboxProcess>;
  };
  readonly run: (options: CommandOptions) => Promise<{ exitCode: number; stdout: string; stderr: string }>;
}

/** Which port, and what is spoken there. */
export interface PortOptions {
  port: number;
  protocol?: 'http' | 'https' | 'ws';
}

/** A session with what only its owner may do. */
export interface NetworkSandboxSession extends SandboxSession {
  readonly id: string;
  readonly defaultWorkingDirectory: string;
  readonly ports: readonly number[];
  readonly getPortEndpoint: (options: PortOptions) => Promise<{ url: string }>;
  readonly getPortUrl: (options: PortOptions) => Promise<string>;
  readonly setPorts: (ports: readonly number[], options?: Abortable) => Promise<void>;
  readonly stop: () => Promise<void>;
  readonly destroy: () => Promise<void>;
  readonly restricted: () => SandboxSession;
}

/** What a `HarnessAgent` takes as its `sandbox`. */
export interface SandboxProvider extends AsyncDisposable {
  readonly specificationVersion: 'harness-sandbox-v1';
  readonly providerId: string;
  readonly createSession: (options?: {
    sessionId?: string;
    abortSignal?: AbortSignal;
    identity?: string;
    onFirstCreate?: (session: SandboxSession, options: Abortable) => Promise<void>;
  }) => Promise<NetworkSandboxSession>;
  readonly resumeSession: (options: { sessionId: string; abortSignal?: AbortSignal }) => Promise<NetworkSandboxSession>;
  /** Closes the manager that the provider made for itself, with all its sandboxes; one that was given stays. */
  readonly close: () => Promise<void>;
}
