/**
 * Persistent Linux sandboxes for agents.
 *
 * @example
 * ```ts
 * import { SandboxManager } from 'cofferdam';
 *
 * await using manager = new SandboxManager();
 * const sandbox = await manager.open({ image: 'python' });
 * await sandbox.files.write('main.py', 'print(6 * 7)');
 * const { stdout } = await sandbox.exec('python main.py');
 * ```
 *
 * @module cofferdam
 */
export { SandboxError, type SandboxErrorCode } from './errors';
export type {
  FileContent,
  FileData,
  FileEntry,
  FileType,
  ListOptions,
  MkdirOptions,
  ReadOptions,
  ReadTextOptions,
  RemoveOptions,
  StreamOptions,
  WriteOptions,
} from './file';
export type { Files } from './files';
export type { Logger } from './logger';
export { SandboxManager } from './manager';
export type {
  Artifact,
  ClosedEvent,
  CloseOptions,
  Command,
  DockerOptions,
  EngineAttempt,
  EngineInfo,
  EventsOptions,
  ExecFinishedEvent,
  ExecOptions,
  ExecResult,
  ExecStartedEvent,
  ExpiringEvent,
  ExtendOptions,
  ForwardOptions,
  Limits,
  LogFileOptions,
  LostEvent,
  NetworkPolicy,
  ObjectStoreOptions,
  OomEvent,
  OpenedEvent,
  OpenOptions,
  OutputCallback,
  OutputChunk,
  Packages,
  PortForward,
  ProcessInfo,
  ProgressCallback,
  PruneOptions,
  PruneReport,
  PublishOptions,
  PublishResult,
  PullEvent,
  PullOptions,
  PullProgress,
  ResumedEvent,
  RunPhase,
  RunRequest,
  RunResult,
  SandboxEvent,
  SandboxFilter,
  SandboxInfo,
  SandboxManagerOptions,
  SandboxManagerOptions as ManagerOptions,
  SandboxPolicy,
  SandboxState,
  SandboxStats,
  Scope,
  SessionScope,
  SpawnOptions,
  StageOptions,
  StageResult,
  TelemetryOptions,
  TerminalOptions,
  TlsOptions,
  WarmingEvent,
} from './options';
export { Process, type ReadOutputOptions, type WaitForPortOptions, type WaitOptions } from './process';
export { Sandbox } from './sandbox';
export type {
  GlobOptions,
  GlobResult,
  GrepMatch,
  GrepOptions,
  GrepResult,
  LineRange,
  ReplaceOptions,
  ReplaceResult,
  SearchOptions,
} from './search';
export { Terminal, type TerminalSize } from './terminal';
export type { TransferOptions, TransferProgress, TransferReport } from './transfer';
export { version } from './version';
export type { FileChange, WatchOptions } from './watch';
