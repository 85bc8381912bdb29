/** `sandbox_open` and `sandbox_close`. Every other tool opens the session by itself, too. */
import { z } from 'zod';
import { defineTool, inSession, sessionAliases } from './definition';
import { HintedError } from './failure';
import { withNote } from './reached';

export const openTool = defineTool({
  name: 'sandbox_open',
  description:
    'Open your persistent Linux sandbox, or create it. Files and installed programs stay between calls. ' +
    'Other tools open it automatically: call this to choose an image, to use a second sandbox, or to get the working directory.',
  input: {
    image: z
      .string()
      .optional()
      .describe(
        'linux, python, node, or any image name. Leave out for the default. The image of an existing sandbox cannot be changed',
      ),
    session: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe('Name of another session to use in addition to your own, such as "test". Leave out for your own'),
  },
  aliases: { session_key: 'session', session_name: 'session' },
  output: {
    session_id: z.string(),
    sandbox_id: z.string().describe('Pass it to other tools to choose this sandbox'),
    image: z.string(),
    workdir: z.string().describe('Where commands run and relative paths start'),
    created: z.boolean().describe('True if the sandbox is new and empty, false if it existed before'),
    status: z.literal('ready'),
  },
  async run({ image, session }, { sessions, signal }) {
    if (image !== undefined && isOfHost(image)) {
      const message = `${JSON.stringify(image.slice(0, 200))} is not the name of an image`;
      throw new HintedError('IMAGE_NOT_ALLOWED', message, 'Use linux, python, node, or a name such as "alpine:3.19".');
    }
    const reached = await sessions.open(session, image, signal);
    const { id, key, image: resolved, workdir } = reached.sandbox;
    const { created } = reached;
    return withNote({ session_id: key, sandbox_id: id, image: resolved, workdir, created, status: 'ready' }, reached);
  },
});

/** A directory or file of the host as the root file system: only the host may choose it, not a model. */
function isOfHost(image: string): boolean {
  return /^[/.~]|^[a-z-]+:[/.~]/i.test(image.trim());
}

export const closeTool = defineTool({
  name: 'sandbox_close',
  description:
    'Close the sandbox and delete everything in it. Optional: it closes automatically when the work is over. The next call of another tool opens a new, empty one.',
  input: {
    ...inSession,
    delete_workspace: z.boolean().optional().describe('Also delete a persistent workspace'),
  },
  aliases: sessionAliases,
  output: { closed: z.boolean(), session_id: z.string() },
  async run({ sandbox_id, delete_workspace = false }, { sessions }) {
    const sandbox = await sessions.reachOpen(sandbox_id);
    if (sandbox === undefined) return { ok: true, closed: false, note: 'There was no open sandbox.' };
    await sessions.end(sandbox, delete_workspace ? { keepData: false } : {});
    return { ok: true, closed: true, session_id: sandbox.key, sandbox_id: sandbox.id };
  },
});
