// The rows of the bench by the name that selects them: `npm run bench -- exec files`.

import { atOnce } from './at-once.mjs';
import { coldOpen } from './cold-open.mjs';
import { echo, exec } from './exec.mjs';
import { files } from './files.mjs';
import { guest } from './guest.mjs';
import { images } from './images.mjs';
import { killTree } from './kill-tree.mjs';
import { listing } from './listing.mjs';
import { load } from './load.mjs';
import { stream } from './stream.mjs';
import { together } from './together.mjs';

/**
 * @typedef {object} Row
 * @property {string} id
 * @property {string} title
 * @property {'ms' | 'exec/s' | 'MB/s' | 'MiB' | 'MB'} unit
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
  list: listing,
  'cold-open': coldOpen,
  files,
  stream,
  load,
  guest,
  together,
  images,
  'kill-tree': killTree,
};
