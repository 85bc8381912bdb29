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
export type { FileContent, FileData, FileEntry, FileType, WriteOptions } from './file';
export type { Files } from './files';
export type { Logger } from './logger';
export { SandboxManager } from './manager';
export type {
  Artifact,
  Command,
  EngineAttempt,
  EngineInfo,
  ExecOptions,
  ExecResult,
  Limits,
  NetworkPolicy,
  ObjectStoreOptions,
  OpenOptions,
  OutputChunk,
  Packages,
  PortForward,
  ProcessInfo,
  PruneOptions,
  PruneReport,
  PublishOptions,
  PullOptions,
  PullProgress,
  RunPhase,
  RunRequest,
  RunResult,
  SandboxEvent,
  SandboxInfo,
  SandboxManagerOptions,
  SandboxManagerOptions as ManagerOptions,
  SandboxState,
  SandboxStats,
  Scope,
  SpawnOptions,
  StageOptions,
  TerminalOptions,
  TlsOptions,
} from './options';
export { Process } from './process';
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
export { Terminal } from './terminal';
export type { TransferOptions, TransferProgress, TransferReport } from './transfer';
export { version } from './version';
export type { FileChange, WatchOptions } from './watch';
