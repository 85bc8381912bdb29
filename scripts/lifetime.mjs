// The life of one command: what it started is registered here and undone, newest first, before the command
// ends: by its own return, by an error or by a signal.

const cleanups = new Set();
let ending;
let interruptedBy;

const EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/** Registers `cleanup` to run before the command ends; the returned function takes it back. */
export function atEnd(cleanup) {
  cleanups.add(cleanup);
  return () => cleanups.delete(cleanup);
}

/** Throws once the command is ending, so that nothing new starts behind the cleanup's back. */
export function assertNotEnding() {
  if (ending) throw new Error('the command is ending');
}

/** Runs `body` as the whole command. It resolves to the exit code; nothing means 0. */
export async function command(body) {
  for (const signal of Object.keys(EXIT_CODES)) process.on(signal, () => interrupt(signal));
  for (const output of [process.stdout, process.stderr]) output.on('error', () => interrupt('SIGHUP'));
  watchNpm();
  try {
    process.exitCode = (await body()) ?? 0;
  } catch (error) {
    process.exitCode = 1;
    if (!interruptedBy) console.error(`\n✗ ${error.message}`);
  }
  await end();
  exit();
}

function interrupt(signal) {
  interruptedBy ??= signal;
  if (!ending) console.error(`\n${signal}: stopping what was started`);
  end().then(exit);
}

/** npm runs a script through a shell, which dies of a SIGTERM without passing it on to us: we see it go. */
function watchNpm() {
  if (!process.env.npm_lifecycle_event) return;
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && interrupt('SIGTERM'), 500).unref();
}

function end() {
  ending ??= runCleanups();
  return ending;
}

async function runCleanups() {
  // Yield first: `ending` must be set before a cleanup can look at it.
  await undefined;
  while (cleanups.size > 0) {
    const newest = [...cleanups].at(-1);
    cleanups.delete(newest);
    try {
      await newest();
    } catch (error) {
      process.exitCode ||= 1;
      console.error(`✗ while stopping: ${error.message}`);
    }
  }
}

function exit() {
  process.exit(interruptedBy ? EXIT_CODES[interruptedBy] : process.exitCode);
}
