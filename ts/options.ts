/** Every type of options and results, from the room of its noun. */
export type * from './callbacks';
export type * from './command';
export type * from './engine-info';
export type * from './events';
export type * from './forward';
export type * from './lifetime';
export type * from './manager-options';
export type * from './open-options';
export type { OutputChunk, ProcessInfo } from './process';
export type * from './prune';
export type * from './pull';
export type * from './run';
export type * from './sandbox-info';
export type * from './store';
export type { TerminalOptions } from './terminal';
