/** What is on the host for a sandbox to find: a file, a process, sockets. Each is there, works, and stays as it is. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';

export class Witness {
  /** In nothing but what a sandbox must not see. */
  readonly token = `witness-${randomBytes(12).toString('hex')}`;
  /** As the probe takes it, so that its own command line is not what is found. */
  readonly reversed = [...this.token].reverse().join('');
  /** Readable by the one who runs the program, and written by the suite alone. */
  readonly file: string;
  /** As long as a name can be: Node fills shorter ones up, and then they are other names. */
  readonly abstractName = `cofferdam-${this.token}`.padEnd(107, '-');
  readonly socketPath: string;
  port = 0;
  #process!: ChildProcess;
  readonly #servers: net.Server[] = [];
  readonly #planted: string[] = [];
  #visits = 0;

  constructor(
    readonly home: string,
    private readonly uid: number,
  ) {
    mkdirSync(path.join(home, '.ssh'), { mode: 0o700 });
    this.file = path.join(home, '.ssh/id_ed25519');
    this.socketPath = path.join(home, 'socket');
    writeFileSync(this.file, this.token, { mode: 0o600 });
    for (const name of [path.dirname(this.file), this.file]) chownSync(name, uid, uid);
  }

  /** `as` gives the words that run a program as the user. */
  async start(as: (command: string[]) => [string, string[]]): Promise<void> {
    const [program, words] = as(['sleep', '3600']);
    this.#process = spawn(program, words, { stdio: 'ignore', env: { ...process.env, COFFERDAM_WITNESS: this.token } });
    await once(this.#process, 'spawn');
    const visited = (socket: net.Socket) => {
      this.#visits += 1;
      socket.on('error', () => {});
      socket.end();
    };
    for (const at of [`\0${this.abstractName}`, this.socketPath, { host: '0.0.0.0', port: 0 }]) {
      const server = net.createServer(visited);
      this.#servers.push(server);
      server.listen(at);
      await once(server, 'listening');
      const address = server.address();
      if (address && typeof address === 'object') this.port = (address as AddressInfo).port;
    }
    chownSync(this.socketPath, this.uid, this.uid);
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  /** How often somebody connected. */
  get visits(): number {
    return this.#visits;
  }

  /** The kernel's word for it: alive, and what it was. */
  get isUntouched(): boolean {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    const isTraced = !/TracerPid:\s+0\n/.test(status);
    return /State:\s+[SR]/.test(status) && !isTraced && readFileSync(this.file, 'utf8') === this.token;
  }

  get niceness(): number {
    const stat = readFileSync(`/proc/${this.pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]);
  }

  /** Puts a secret to a place of the host's, if this user may; gives its path. */
  plant(folder: string, mode = 0o644): string | null {
    const file = path.join(folder, `cofferdam-${this.token}`);
    try {
      writeFileSync(file, this.token, { mode });
    } catch {
      return null;
    }
    this.#planted.push(file);
    return file;
  }

  async stop(): Promise<void> {
    for (const file of this.#planted) rmSync(file, { force: true });
    for (const server of this.#servers) server.close();
    if (existsSync(`/proc/${this.pid}`)) {
      const ended = once(this.#process, 'exit');
      this.#process.kill('SIGKILL');
      await ended;
    }
  }
}
