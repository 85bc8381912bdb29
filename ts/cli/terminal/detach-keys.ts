/**
 * The keys that leave a shell without ending it, found among all others.
 *
 * Invariant: what is not the whole sequence, typed by itself, reaches the sandbox, byte for byte. A paste is never typed by
 * itself, whatever is in it.
 */
import { UsageError } from '../command';

/** How long a key waits to become a sequence, before it is but a key. */
const PATIENCE_MS = 1_000;

/** `ctrl-],d` as bytes; `none` as no bytes. */
export function keysFrom(option: string, given: string): Buffer {
  if (given === 'none') return Buffer.alloc(0);
  return Buffer.from(given.split(',').map((key) => byteOf(option, key)));
}

function byteOf(option: string, key: string): number {
  if (/^[\x21-\x7e]$/.test(key)) return key.charCodeAt(0);
  const [, held] = /^ctrl-([a-z@[\\\]^_])$/i.exec(key) ?? [];
  // The control key takes the upper bits off.
  if (held !== undefined) return held.toUpperCase().charCodeAt(0) & 0x1f;
  throw new UsageError(`${option} must be keys as in ctrl-],d, or none; ${JSON.stringify(key)} is not a key`);
}

export class DetachKeys {
  readonly #sequence: Buffer;
  readonly #pass: (bytes: Buffer) => void;
  readonly #detach: () => void;
  #held = Buffer.alloc(0);
  #patience: NodeJS.Timeout | undefined;

  constructor(sequence: Buffer, to: { pass: (bytes: Buffer) => void; detach: () => void }) {
    this.#sequence = sequence;
    this.#pass = to.pass;
    this.#detach = to.detach;
  }

  /** What was typed or pasted at one time. */
  take(typed: Buffer): void {
    if (this.#sequence.length === 0) {
      this.#pass(typed);
      return;
    }
    clearTimeout(this.#patience);
    const ahead = Buffer.concat([this.#held, typed]);
    if (ahead.length > this.#sequence.length || !this.#sequence.subarray(0, ahead.length).equals(ahead)) {
      const isAgain = this.#held.length > 0;
      this.#flush();
      // What broke the sequence off may be its beginning.
      if (isAgain) this.take(typed);
      else this.#pass(typed);
    } else if (ahead.length === this.#sequence.length) this.#detach();
    else {
      this.#held = ahead;
      this.#patience = setTimeout(() => this.#flush(), PATIENCE_MS);
    }
  }

  #flush(): void {
    const held = this.#held;
    this.#held = Buffer.alloc(0);
    if (held.length > 0) this.#pass(held);
  }
}
