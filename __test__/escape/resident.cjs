// A program that holds sandboxes, as any user of the machine would run one, and does what the suite asks of it by lines of
// JSON: it is the host that a sandbox must not get out to. Its environment, its command line, its open descriptors and its
// controlling terminal hold what nobody inside may ever see.
//
//   node resident.cjs <options of the manager as JSON>

const { readFile } = require('node:fs/promises');
const { createInterface } = require('node:readline');
const { SandboxManager } = require('./dist/index.js');

const manager = new SandboxManager({ orphanTimeoutMs: 30_000, ...JSON.parse(process.argv[2]) });
const sandboxes = new Map();
const running = new Map();

const deeds = {
  info: () => manager.info(),
  async open(options) {
    const sandbox = await manager.open({ session: 'isolated', ...options });
    sandboxes.set(sandbox.id, sandbox);
    return sandbox.id;
  },
  async put(id, hostPath, path, mode) {
    await sandboxes.get(id).files.write(path, await readFile(hostPath), { mode });
  },
  exec: (id, argv, options) => sandboxes.get(id).exec(argv, options),
  stats: (id) => sandboxes.get(id).stats(),
  readText: (id, path) => sandboxes.get(id).files.readText(path),
  /** Resolves with its first line; the process waits for the end of its input. */
  async hold(id, argv, options) {
    const process = await sandboxes.get(id).spawn(argv, options);
    running.set(process.execId, process);
    let text = '';
    for await (const chunk of process) {
      text += chunk.text;
      if (text.includes('\n')) break;
    }
    return { execId: process.execId, line: text.split('\n')[0] };
  },
  wait: (execId) => running.get(execId).wait(),
  async release(execId) {
    const process = running.get(execId);
    // One that is gone takes no input.
    await process.end().catch(() => {});
    return process.wait();
  },
  async inTerminal(id, command) {
    const terminal = await sandboxes.get(id).terminal({ command });
    const pieces = [];
    for await (const piece of terminal) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  },
  close: (id) => sandboxes.get(id).close(),
};

const lines = createInterface({ input: process.stdin });
lines.on('line', async (line) => {
  const { number, deed, words } = JSON.parse(line);
  const answer = await deeds[deed](...words).then(
    (value) => ({ number, value: value ?? null }),
    ({ code, message, details }) => ({ number, error: { code, message, details } }),
  );
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
lines.on('close', () => manager.close());
