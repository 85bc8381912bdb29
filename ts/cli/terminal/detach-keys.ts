/**
 * Finds the keys that detach from a shell among all others.
 *
 * Invariant: everything except the whole sequence, typed on its own, reaches the sandbox byte for byte. A paste never counts
 * as typed on its own.
 */
import { UsageError } from '../command';

/** How long a key is held back as the start of a sequence. */
const HOLD_MS = 1_000;

/** `ctrl-],d` as bytes; `none` as no bytes. */
export function keysFrom(option: string, given: string): Buffer {
  if (given === 'none') return Buffer.alloc(0);
  return Buffer.from(given.split(',').map((key) => byteOf(option, key)));
}

function byteOf(option: string, key: string): number {
  if (/^[\x21-\x7e]$/.test(key)) return key.charCodeAt(0);
  const [, held] = /^ctrl-([a-z@[\\\]^_])$/i.exec(key) ?? [];
  // The control key clears the upper bits.
  if (held !== undefined) return held.toUpperCase().charCodeAt(0) & 0x1f;
  throw new UsageError(`${option} must be keys as in ctrl-],d, or none; ${JSON.stringify(key)} is not a key`);
}

export class DetachKeys {
  readonly #sequence: Buffer;
  readonly #pass: (bytes: Buffer) => void;
  readonly #detach: () => void;
  #held = Buffer.alloc(0);
  #timer: NodeJS.Timeout | undefined;

  constructor(sequence: Buffer, to: { pass: (bytes: Buffer) => void; detach: () => void }) {
    this.#sequence = sequence;
    this.#pass = to.pass;
    this.#detach = to.detach;
  }

  /** Takes what was typed or pasted at once. */
  take(typed: Buffer): void {
    if (this.#sequence.length === 0) {
      this.#pass(typed);
      return;
    }
    clearTimeout(this.#timer);
    const ahead = Buffer.concat([this.#held, typed]);
    if (ahead.length > this.#sequence.length || !this.#sequence.subarray(0, ahead.length).equals(ahead)) {
      const isAgain = this.#held.length > 0;
      this.#flush();
      // What broke the sequence may start it again.
      if (isAgain) this.take(typed);
      else this.#pass(typed);
    } else if (ahead.length === this.#sequence.length) this.#detach();
    else {
      this.#held = ahead;
      this.#timer = setTimeout(() => this.#flush(), HOLD_MS);
    }
  }

  #flush(): void {
    const held = this.#held;
    this.#held = Buffer.alloc(0);
    if (held.length > 0) this.#pass(held);
  }
}
