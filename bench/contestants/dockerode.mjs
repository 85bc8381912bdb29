// dockerode as it is usually used: a container kept alive by `sleep`, `exec` with a hijacked and demultiplexed stream,
// and the archive API for files.

import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import Docker from 'dockerode';
import { IDLE_COMMAND, IMAGE, labelsOf, PLACE } from '../ring.mjs';
import { pack, unpack } from '../ustar.mjs';

/** The faster way for each: a small archive in one piece, a large one without a copy. */
const STREAMED_FROM = 1_000_000;

export class Dockerode {
  id = 'dockerode';
  #runId;
  #docker = new Docker();
  #container;

  constructor(runId) {
    this.#runId = runId;
  }

  async start() {
    this.#container = await this.#run('none');
    await this.exec(['mkdir', '-p', PLACE]);
  }

  async stop() {
    await this.#container?.remove({ force: true });
  }

  async #run(networkMode) {
    const container = await this.#docker.createContainer({
      Image: IMAGE,
      Cmd: IDLE_COMMAND,
      Labels: labelsOf(this.#runId),
      HostConfig: { AutoRemove: true, NetworkMode: networkMode },
    });
    await container.start();
    return container;
  }

  async exec(argv) {
    const { exec, stream } = await this.#startExec(argv);
    const stdout = [];
    const stderr = [];
    this.#docker.modem.demuxStream(stream, collector(stdout), collector(stderr));
    await once(stream, 'end');
    const { ExitCode: exitCode } = await exec.inspect();
    return { exitCode, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() };
  }

  async #startExec(argv) {
    const exec = await this.#container.exec({ Cmd: argv, AttachStdout: true, AttachStderr: true });
    const stream = await exec.start({ hijack: true, stdin: false });
    return { exec, stream };
  }

  async write(name, bytes) {
    const pieces = pack(name, bytes);
    const archive = bytes.length < STREAMED_FROM ? Buffer.concat(pieces) : Readable.from(pieces);
    await this.#container.putArchive(archive, { path: PLACE });
  }

  async read(name) {
    return unpack(await this.#container.getArchive({ path: `${PLACE}/${name}` }));
  }

  async list(name) {
    const { stdout } = await this.exec(['ls', '-lA', `${PLACE}/${name}`]);
    return linesOfListing(stdout);
  }

  async open({ network }) {
    const container = await this.#run(network ? 'default' : 'none');
    return () => container.remove({ force: true });
  }

  async stream(argv, take) {
    const { exec, stream } = await this.#startExec(argv);
    const stdout = new PassThrough();
    this.#docker.modem.demuxStream(stream, stdout, collector([]));
    stream.on('end', () => stdout.end());
    stream.on('error', (error) => stdout.destroy(error));
    for await (const chunk of stdout) take(chunk.length);
    return (await exec.inspect()).ExitCode;
  }

  async terminal(argv) {
    const exec = await this.#container.exec({ Cmd: argv, Tty: true, AttachStdin: true, AttachStdout: true });
    const stream = await exec.start({ hijack: true, stdin: true, Tty: true });
    return { output: stream, write: (data) => stream.write(data), close: () => stream.end() };
  }
}

/** All that `demuxStream` asks of a stream. */
function collector(chunks) {
  return { write: (chunk) => chunks.push(chunk) };
}

/** `ls -l` prints a total first. */
export function linesOfListing(text) {
  return text.trimEnd().split('\n').length - 1;
}
