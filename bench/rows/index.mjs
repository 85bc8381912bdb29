// The rows of the bench by the name that selects them: `npm run bench -- exec files`.

import { atOnce } from './at-once.mjs';
import { backpressure } from './backpressure.mjs';
import { burst } from './burst.mjs';
import { coldOpen } from './cold-open.mjs';
import { crowd } from './crowd.mjs';
import { echo, exec } from './exec.mjs';
import { files } from './files.mjs';
import { forward } from './forward.mjs';
import { guest } from './guest.mjs';
import { idleSessions } from './idle-sessions.mjs';
import { images } from './images.mjs';
import { keysAtOnce } from './keys-at-once.mjs';
import { killTree } from './kill-tree.mjs';
import { listing } from './listing.mjs';
import { load } from './load.mjs';
import { manyCommands } from './many-commands.mjs';
import { ordinaryUser } from './ordinary-user.mjs';
import { poolPace } from './pool-pace.mjs';
import { resume } from './resume.mjs';
import { run } from './run.mjs';
import { staging } from './staging.mjs';
import { stream } from './stream.mjs';
import { terminal } from './terminal.mjs';
import { together } from './together.mjs';
import { trees } from './trees.mjs';
import { warmOpen } from './warm-open.mjs';

/**
 * @typedef {object} Row
 * @property {string} id
 * @property {string} title
 * @property {'ms' | 'exec/s' | 'req/s' | 'MB/s' | 'MiB' | 'MB' | 'KB' | '%' | ''} unit a bare count has none
 * @property {Record<string, import('../measure.mjs').Summary>} values by contestant
 */

/**
 * Files late: a Node process that holds 100 MB takes longer to fork, and the host and the docker command would pay for it.
 *
 * @type {Record<string, (ring: import('../main.mjs').Ring) => Promise<Row[]>>}
 */
export const ROWS = {
  exec,
  echo,
  'at-once': atOnce,
  terminal,
  list: listing,
  'cold-open': coldOpen,
  'warm-open': warmOpen,
  'pool-pace': poolPace,
  run,
  resume,
  'keys-at-once': keysAtOnce,
  burst,
  files,
  'ordinary-user': ordinaryUser,
  stream,
  trees,
  staging,
  forward,
  load,
  guest,
  'idle-sessions': idleSessions,
  crowd,
  'many-commands': manyCommands,
  backpressure,
  together,
  images,
  'kill-tree': killTree,
};
