// What a host does in a sandbox, at random. Each operation checks what it got, and leaves nothing behind.

import assert from 'node:assert/strict';
import { randomFillSync } from 'node:crypto';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const MAX_FILE_BYTES = 5_000_000;

const SERVER = `
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        body = self.path.encode() * 1000
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *parts):
        pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Page).serve_forever()
`;

/**
 * By name, with how often it comes. `tag` is a word that nobody else uses, `port` a port that nobody else listens at.
 *
 * @type {Record<string, { weight: number, run: (sandbox: any, own: { tag: string, port: number }) => Promise<void> }>}
 */
export const OPERATIONS = {
  exec: { weight: 20, run: execShort },
  'exec-output': { weight: 10, run: execWithOutput },
  'exec-failing': { weight: 6, run: execFailing },
  'exec-timeout': { weight: 4, run: execOutOfTime },
  'exec-aborted': { weight: 4, run: execAborted },
  'spawn-iterate': { weight: 6, run: spawnAndIterate },
  'spawn-read': { weight: 6, run: spawnAndRead },
  'spawn-stdin': { weight: 6, run: spawnAndWrite },
  'spawn-kill': { weight: 6, run: spawnAndKill },
  files: { weight: 20, run: files },
  terminal: { weight: 5, run: terminal },
  forward: { weight: 3, run: forward },
  stats: { weight: 4, run: stats },
  info: { weight: 4, run: info },
  extend: { weight: 2, run: extend },
};

async function execShort(sandbox, { tag }) {
  const { exitCode, stdout, stderr } = await sandbox.exec(['sh', '-c', 'echo "$0"', tag]);
  assert.deepEqual({ exitCode, stdout, stderr }, { exitCode: 0, stdout: `${tag}\n`, stderr: '' });
}

async function execWithOutput(sandbox) {
  const bytes = between(1, 2_000_000);
  const maxOutputBytes = 1_000_000;
  const { exitCode, stdout, truncated } = await sandbox.exec(`head -c ${bytes} /dev/zero | tr '\\0' x`, {
    maxOutputBytes,
  });
  assert.equal(exitCode, 0);
  assert.equal(truncated.stdout, bytes > maxOutputBytes, `truncated of ${bytes}`);
  if (!truncated.stdout) assert.ok(stdout.length === bytes && /^x*$/.test(stdout), `${stdout.length} of ${bytes} came`);
}

async function execFailing(sandbox) {
  const wanted = between(1, 120);
  const { exitCode, stderr, ok } = await sandbox.exec(`echo bad >&2; exit ${wanted}`);
  assert.deepEqual({ exitCode, stderr, ok }, { exitCode: wanted, stderr: 'bad\n', ok: false });
  await assert.rejects(sandbox.exec(['no-such-program']), (error) => expectCode(error, 'COMMAND_NOT_FOUND'));
}

async function execOutOfTime(sandbox) {
  const { timedOut, signal } = await sandbox.exec('sleep 1000 & sleep 1000', { timeoutMs: between(1, 300) });
  assert.deepEqual({ timedOut, signal }, { timedOut: true, signal: 'SIGTERM' });
}

async function execAborted(sandbox) {
  const controller = new AbortController();
  const reason = new Error('the operation was aborted on purpose');
  const timer = setTimeout(() => controller.abort(reason), between(0, 200));
  try {
    await sandbox.exec('sleep 1000', { signal: controller.signal });
    assert.fail('an aborted exec resolved');
  } catch (error) {
    if (error !== reason) throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function spawnAndIterate(sandbox) {
  const last = between(1, 50_000);
  const running = await sandbox.spawn(['seq', String(last)]);
  const pieces = [];
  let seq = 0;
  for await (const chunk of running) {
    assert.equal(chunk.seq, seq + 1, 'a chunk is missing');
    seq = chunk.seq;
    pieces.push(chunk.data);
  }
  assert.equal((await running.wait()).exitCode, 0);
  const lines = Buffer.concat(pieces).toString().split('\n');
  assert.deepEqual([lines.length, lines[0], lines.at(-2)], [last + 1, '1', String(last)]);
}

async function spawnAndRead(sandbox) {
  const running = await sandbox.spawn('for i in 1 2 3 4 5; do echo $i; sleep 0.02; done');
  let text = '';
  for (let sinceSeq = 0, ended = false; !ended; ) {
    const { chunks, done, lostBytes } = await running.read({ sinceSeq, waitMs: 1_000 });
    assert.equal(lostBytes, 0);
    text += chunks.map((chunk) => chunk.text).join('');
    sinceSeq = chunks.at(-1)?.seq ?? sinceSeq;
    ended = done;
  }
  assert.equal(text, '1\n2\n3\n4\n5\n');
  assert.equal((await (await sandbox.process(running.execId)).wait()).exitCode, 0);
}

async function spawnAndWrite(sandbox, { tag }) {
  const running = await sandbox.spawn(['cat']);
  const words = Array.from({ length: between(1, 20) }, (_, index) => `${tag}-${index}\n`);
  for (const word of words) await running.write(word);
  await running.end();
  const { exitCode, stdout } = await running.wait();
  assert.deepEqual({ exitCode, stdout }, { exitCode: 0, stdout: words.join('') });
}

async function spawnAndKill(sandbox) {
  const running = await sandbox.spawn('sleep 1000 & sleep 1000');
  const known = await sandbox.processes();
  assert.equal(known.find(({ execId }) => execId === running.execId)?.exitCode, null, 'it is not among the processes');
  await sleep(between(0, 100));
  await running.kill();
  assert.equal((await running.wait()).signal, 'SIGTERM');
}

async function files(sandbox, { tag }) {
  // As many small ones as large ones, over all orders of magnitude.
  const content = randomFillSync(Buffer.allocUnsafe(Math.ceil(MAX_FILE_BYTES ** Math.random())));
  const path = `${tag}/content.bin`;
  assert.equal((await sandbox.files.write(path, content)).sizeBytes, content.length);
  const listed = await sandbox.files.list(tag);
  assert.deepEqual(
    listed.map(({ name, sizeBytes }) => ({ name, sizeBytes })),
    [{ name: 'content.bin', sizeBytes: content.length }],
  );
  const { bytes, truncated } = await sandbox.files.read(path, { maxBytes: MAX_FILE_BYTES });
  assert.ok(!truncated && content.equals(bytes), `${content.length} bytes came back different`);
  assert.equal(await sandbox.files.remove(tag, { recursive: true }), true);
  await assert.rejects(sandbox.files.read(path), (error) => expectCode(error, 'FILE_NOT_FOUND'));
}

async function terminal(sandbox) {
  const screen = await sandbox.terminal({ cols: between(20, 200), rows: between(5, 60) });
  try {
    const [a, b] = [between(1, 9_999), between(1, 9_999)];
    await screen.write(`echo "<$((${a} * ${b}))>"\n`);
    let text = '';
    for await (const bytes of screen) {
      text += Buffer.from(bytes).toString();
      if (text.includes(`<${a * b}>`)) break;
    }
    assert.ok(text.includes(`<${a * b}>`), `the terminal ended after ${JSON.stringify(text)}`);
    await screen.resize({ cols: 100, rows: 30 });
  } finally {
    await screen.close();
  }
  await screen.wait();
}

async function forward(sandbox, { tag, port }) {
  const server = await sandbox.spawn(['python3', '-c', SERVER, String(port)]);
  try {
    await server.waitForPort(port);
    const web = await sandbox.forward(port);
    try {
      const bodies = await Promise.all([1, 2, 3].map((count) => get(`${web.url}/${tag}/${count}`)));
      assert.deepEqual(
        bodies,
        [1, 2, 3].map((count) => `/${tag}/${count}`.repeat(1000)),
      );
    } finally {
      await web.close();
    }
  } finally {
    await server.kill();
  }
}

function get(url) {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { agent: false }, async (response) => {
      try {
        const pieces = await response.toArray();
        resolve(Buffer.concat(pieces).toString());
      } catch (error) {
        reject(error);
      }
    });
    request.on('error', reject);
  });
}

async function stats(sandbox) {
  const { cpuMs, memoryBytes, pids, oomKills } = await sandbox.stats();
  assert.ok(cpuMs > 0 && memoryBytes > 0 && pids > 0, JSON.stringify({ cpuMs, memoryBytes, pids }));
  assert.equal(oomKills, 0);
}

async function info(sandbox) {
  const { id, state } = await sandbox.info();
  assert.deepEqual({ id, state }, { id: sandbox.id, state: 'running' });
}

async function extend(sandbox) {
  await sandbox.extend({ idleTimeoutMs: 1_800_000, maxLifetimeMs: 14_400_000 });
}

/** For `assert.rejects`: any other error is passed on as it is, so that one that was provoked is known as such. */
function expectCode(error, code) {
  if (error.code !== code) throw error;
  return true;
}

function between(low, high) {
  return low + Math.floor(Math.random() * (high - low + 1));
}
