/** A person at a terminal: tmux, with a server of its own for each, and a shell in it. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describeWithEngine, until } from '../support';

/** The program under test. */
export const MAIN = path.resolve(__dirname, '../../dist/cli/main.js');

/** Suites in a real terminal. Where tmux cannot be had, `scripts/test.mjs` says so loudly, and fails in CI. */
export const describeWithTmux = process.env.COFFERDAM_NO_TMUX ? describe.skip : describeWithEngine;

const panes: Pane[] = [];

export class Pane {
  /** For files of the test's own. */
  readonly folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-pane-'));
  #isClosed = false;
  #server = 0;

  /** The shell is ready when this resolves. */
  static async open(options: { cols?: number; rows?: number; env?: Record<string, string> } = {}): Promise<Pane> {
    const pane = new Pane();
    panes.push(pane);
    const { cols = 100, rows = 30, env = {} } = options;
    const variables = Object.entries({ ...env, COFFERDAM: MAIN, NODE: process.execPath });
    const rc = path.join(pane.folder, 'rc');
    writeFileSync(rc, "PS1='outer> '\n");
    pane.#tmux(
      ...['new-session', '-d', '-x', String(cols), '-y', String(rows)],
      ...variables.flatMap(([name, value]) => ['-e', `${name}=${value}`]),
      `bash --noprofile --rcfile ${rc}`,
    );
    pane.#server = Number(pane.#tmux('display-message', '-p', '#{pid}'));
    await pane.shows(/^outer>$/m);
    return pane;
  }

  #tmux(...words: string[]): string {
    const args = ['-S', path.join(this.folder, 'tmux'), '-f', '/dev/null', ...words];
    return execFileSync('tmux', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** Types a line for the shell outside, or for whatever reads. */
  enter(line: string): void {
    this.#tmux('send-keys', '-l', line);
    this.#tmux('send-keys', 'Enter');
  }

  /** Keys by their names: `C-c`, `Escape`, `a`. */
  press(...keys: string[]): void {
    this.#tmux('send-keys', ...keys);
  }

  /** All of it at once, byte for byte. */
  paste(bytes: Uint8Array): void {
    const file = path.join(this.folder, 'paste');
    writeFileSync(file, bytes);
    this.#tmux('load-buffer', file);
    this.#tmux('paste-buffer', '-r');
  }

  resize(cols: number, rows: number): void {
    this.#tmux('resize-window', '-x', String(cols), '-y', String(rows));
  }

  /** Its lines, those that were wrapped as one, without the spaces at their ends. */
  get screen(): string {
    return this.#tmux('capture-pane', '-p', '-J').replace(/ +$/gm, '');
  }

  /** Waits for it. A guard against hanging says what was seen instead. */
  async shows(pattern: RegExp): Promise<string> {
    const late = Date.now() + 30_000;
    return until(() => {
      const { screen } = this;
      if (Date.now() > late) throw new Error(`not seen: ${pattern}\n${screen}`);
      return pattern.exec(screen)?.[0];
    });
  }

  /** What tmux knows of the terminal's modes. */
  get modes(): string {
    const names = [
      ...['alternate_on', 'cursor_flag', 'mouse_any_flag', 'mouse_sgr_flag'],
      ...[
        'keypad_cursor_flag',
        'keypad_flag',
        'origin_flag',
        'wrap_flag',
        'scroll_region_upper',
        'scroll_region_lower',
      ],
    ];
    return this.#tmux('display-message', '-p', names.map((name) => `${name}=#{${name}}`).join(' ')).trim();
  }

  /** Runs a line outside, and gives what it printed: the terminal must be sane for that. */
  async run(line: string): Promise<string> {
    const file = path.join(this.folder, 'answer');
    rmSync(file, { force: true });
    this.enter(`{ ${line}; } > ${file}.part 2>&1; mv ${file}.part ${file}`);
    return until(() => {
      try {
        return ` ${readFileSync(file, 'utf8')}`;
      } catch {
        return false;
      }
    }).then((text) => text.slice(1));
  }

  /** The line settings, all of them. */
  settings(): Promise<string> {
    return this.run('stty -a < /dev/tty');
  }

  /** While it lasts, the terminal takes nothing. Gives what ends it. */
  freeze(): () => void {
    process.kill(this.#server, 'SIGSTOP');
    return () => void process.kill(this.#server, 'SIGCONT');
  }

  /** The number of the newest process with the command under test. */
  async program(): Promise<number> {
    const shell = this.#tmux('display-message', '-p', '#{pane_pid}').trim();
    return until(() => {
      const children = readFileSync(`/proc/${shell}/task/${shell}/children`, 'utf8');
      return Number(children.trim().split(' ').at(-1));
    });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      // A test that failed may have left it frozen.
      process.kill(this.#server, 'SIGCONT');
      this.#tmux('kill-server');
    } catch {
      // It went with its shell.
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

afterAll(() => {
  for (const pane of panes.splice(0)) pane.close();
});
