/** Which rule of a script matches, and the error if none does. */
import { types } from 'node:util';
import { SandboxError } from '../errors';
import type { FakeCommand, FakeExec, FakeProgram, FakeRun, FakeScript } from './script';

/** The rules of one script, and how often each was used. */
export class Rulebook {
  readonly #script: FakeScript;
  readonly #used = new Map<FakeCommand | FakeRun, number>();
  /** The errors for what no rule matched. */
  readonly unscripted: string[] = [];

  constructor(script: FakeScript) {
    this.#script = script;
  }

  #take<R extends FakeCommand | FakeRun>(rules: readonly R[] | undefined, fits: (rule: R) => boolean): R | undefined {
    const rule = rules?.find(
      (each) => (this.#used.get(each) ?? 0) < (each.times ?? Number.POSITIVE_INFINITY) && fits(each),
    );
    if (rule) this.#used.set(rule, (this.#used.get(rule) ?? 0) + 1);
    return rule;
  }

  #unscripted(what: string, add: string, used: boolean): never {
    const again = used ? ' (those that fit are used up: see their "times")' : '';
    const message = `the fake manager has no rule for ${what}${again}; add ${add}`;
    this.unscripted.push(message);
    throw new SandboxError('UNSUPPORTED', message);
  }

  forExec(exec: FakeExec): FakeCommand {
    const fits = (rule: FakeCommand) => fitsCommand(rule, exec);
    const rule = this.#take(this.#script.exec, fits);
    if (rule) return rule;
    const shown = JSON.stringify(exec.command);
    const add = `{ command: ${shown}, stdout: '…' } to "exec" of its script`;
    return this.#unscripted(`the command ${shown}`, add, this.#script.exec?.some(fits) ?? false);
  }

  forRun(program: FakeProgram): FakeRun {
    const fits = ({ code }: FakeRun) =>
      typeof code === 'string'
        ? code === program.code
        : types.isRegExp(code)
          ? matches(code, program.code)
          : code(program);
    const rule = this.#take(this.#script.run, fits);
    if (rule) return rule;
    const shown = JSON.stringify(program.code);
    const add = `{ code: ${shown}, stdout: '…' } to "run" of its script`;
    return this.#unscripted(
      `run() of the ${program.runtime} program ${shown}`,
      add,
      this.#script.run?.some(fits) ?? false,
    );
  }
}

/** Without the state that the flags `g` and `y` keep between calls. */
function matches(expression: RegExp, text: string): boolean {
  expression.lastIndex = 0;
  return expression.test(text);
}

function fitsCommand({ command: wanted }: FakeCommand, exec: FakeExec): boolean {
  const { command } = exec;
  if (typeof wanted === 'function') return wanted(exec);
  if (types.isRegExp(wanted)) return matches(wanted, typeof command === 'string' ? command : command.join(' '));
  if (typeof wanted === 'string' || typeof command === 'string') return wanted === command;
  return wanted.length === command.length && wanted.every((word, index) => word === command[index]);
}
