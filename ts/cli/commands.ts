/** All commands, in the order of the help. */
import type { Command } from './command';
import { close } from './commands/close';
import { complete } from './commands/complete';
import { completion } from './commands/completion';
import { cp } from './commands/cp';
import { doctor } from './commands/doctor';
import { events } from './commands/events';
import { exec } from './commands/exec';
import { forward } from './commands/forward';
import { logs } from './commands/logs';
import { ls } from './commands/ls';
import { mcp } from './commands/mcp';
import { open } from './commands/open';
import { prune } from './commands/prune';
import { ps } from './commands/ps';
import { pull } from './commands/pull';
import { run } from './commands/run';
import { setup } from './commands/setup';
import { shell } from './commands/shell';
import { stats } from './commands/stats';

export const COMMANDS: readonly Command[] = [
  run,
  open,
  exec,
  shell,
  cp,
  ls,
  ps,
  logs,
  events,
  stats,
  forward,
  close,
  pull,
  prune,
  doctor,
  setup,
  mcp,
  completion,
  complete,
];
