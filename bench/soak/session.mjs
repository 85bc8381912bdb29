// One of the sandboxes that all hosts share, as one host sees it: opened anew for every operation, as agents do. Knows
// when it is being closed on purpose, and which errors that explains.

export const SANDBOXES = 8;

const CODES_OF_A_CLOSE = ['SANDBOX_CLOSED', 'SANDBOX_LOST', 'SANDBOX_NOT_FOUND'];

/** What a connection says whose other end went away with the sandbox. */
const CODES_OF_A_CUT = ['ECONNRESET', 'ECONNREFUSED', 'EPIPE'];

export function workflowOf(runId, index) {
  return `soak-${runId}-${index}`;
}

export class Session {
  index;
  #manager;
  #workflow;
  #disturbed = false;
  #disturbances = 0;

  constructor(manager, runId, index) {
    this.index = index;
    this.#manager = manager;
    this.#workflow = workflowOf(runId, index);
  }

  open() {
    return this.#manager.open({ scope: { workflow: this.#workflow } });
  }

  /** From now until `calm()`, somebody closes it. */
  disturb() {
    this.#disturbed = true;
    this.#disturbances += 1;
  }

  calm() {
    this.#disturbed = false;
  }

  /** Starts watching: the returned function tells whether an error since then was provoked. */
  watch() {
    const before = this.#disturbances;
    const disturbedBefore = this.#disturbed;
    return ({ code }) =>
      (disturbedBefore || this.#disturbances > before) &&
      (CODES_OF_A_CLOSE.includes(code) || CODES_OF_A_CUT.includes(code));
  }
}
