/**
 * Tracks the modes that programs set on a terminal, from their output, and restores them.
 *
 * Invariant: only changed modes are restored. Leaving an alternate screen that no one entered would move the cursor, and a
 * clean terminal gets no bytes.
 */

/** Modes of `CSI ? n h` that are on by default. All others are off. */
const ON = new Set([7, 25]);

/** Modes that would disturb the next program: keys, wrapping, the cursor, the mouse, focus, screens, paste. */
const WATCHED = new Set([
  1, 5, 6, 7, 9, 25, 47, 66, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1049, 2004, 2026, 2031,
]);

const ALTERNATE = [47, 1047, 1049];

/** Longer sequences contain nothing that we look for. */
const LONGEST = 64;

const ESC = 0x1b;
const BEL = 0x07;
const CANCEL = new Set([0x18, 0x1a]);

/** State of the parser. A `string` is a title or the like, of any length; `string-escape` may be its end. */
type ParserState = 'text' | 'escape' | 'sequence' | 'string' | 'string-escape';

export class TerminalModes {
  readonly #changed = new Set<number>();
  /** Settings other than modes, each with the sequence that undoes it. */
  readonly #undo = new Map<string, string>();
  /** How often the keyboard protocol was pushed. */
  #keyboards = 0;
  #state: ParserState = 'text';
  #sequence = '';

  /** Parses output that is about to be shown. */
  take(bytes: Uint8Array): void {
    for (let index = 0; index < bytes.length; index += 1) {
      if (this.#state === 'text') {
        index = bytes.indexOf(ESC, index);
        if (index < 0) return;
        this.#state = 'escape';
      } else this.#step(bytes[index] ?? 0);
    }
  }

  /** Whether a program uses the alternate screen, as editors do. */
  get isAlternate(): boolean {
    return ALTERNATE.some((mode) => this.#changed.has(mode));
  }

  /** The sequence that restores everything; empty if nothing changed. */
  restore(): string {
    const cut = { text: '', escape: '\x18', sequence: '\x18', string: '\x1b\\', 'string-escape': '\\' }[this.#state];
    // The alternate screen last: what was set in it is undone in it.
    const modes = [...this.#changed].sort((a, b) => Number(ALTERNATE.includes(a)) - Number(ALTERNATE.includes(b)));
    const keyboards = this.#keyboards > 0 ? `\x1b[<${this.#keyboards}u` : '';
    const undone = modes.map((mode) => `\x1b[?${mode}${ON.has(mode) ? 'h' : 'l'}`);
    const all = [cut, keyboards, ...this.#undo.values(), ...undone].join('');
    this.#clear();
    this.#state = 'text';
    return all;
  }

  #clear(): void {
    this.#changed.clear();
    this.#undo.clear();
    this.#keyboards = 0;
  }

  #step(byte: number): void {
    if (CANCEL.has(byte)) this.#state = 'text';
    else if (this.#state === 'string') {
      if (byte === BEL) this.#state = 'text';
      else if (byte === ESC) this.#state = 'string-escape';
    } else if (byte === ESC) this.#state = 'escape';
    else if (this.#state === 'string-escape' && byte === 0x5c) this.#state = 'text';
    else if (this.#state !== 'sequence') this.#begin(byte);
    else this.#collect(byte);
  }

  /** The byte after an escape. */
  #begin(byte: number): void {
    const character = String.fromCharCode(byte);
    // Titles, clipboards, images, and answers to queries: `]`, `P`, `X`, `^`, `_`.
    if (']PX^_'.includes(character)) this.#state = 'string';
    else if (character === '[' || (byte >= 0x20 && byte < 0x30)) {
      this.#state = 'sequence';
      this.#sequence = character;
    } else {
      this.#state = 'text';
      if (character === 'c') this.#clear();
      else if (character === '=') this.#undo.set('keypad', '\x1b>');
      else if (character === '>') this.#undo.delete('keypad');
    }
  }

  #collect(byte: number): void {
    // Terminals execute control characters within a sequence; they are not part of it.
    if (byte < 0x20) return;
    const character = String.fromCharCode(byte);
    const isLast = this.#sequence.startsWith('[') ? byte >= 0x40 : byte >= 0x30;
    if (!isLast) {
      if (this.#sequence.length < LONGEST) this.#sequence += character;
      return;
    }
    this.#state = 'text';
    if (this.#sequence.startsWith('[')) this.#control(this.#sequence.slice(1), character);
    else if (this.#sequence === '(') this.#note('characters', character !== 'B', '\x1b(B');
    // Line drawing shifts to the second character set, which stays active.
    else if (this.#sequence === ')') this.#note('shifted', character !== 'B', '\x0f');
  }

  /** `CSI`, its parameters, and its final letter. */
  #control(between: string, letter: string): void {
    const [, mark = '', numbers = '', rest = ''] = /^([<-?]?)([\d;:]*)(.*)$/.exec(between) ?? [];
    const isPlain = numbers === '' || /^[0;]+$/.test(numbers);
    const kind = `${mark}${rest}${letter}`;
    if (kind === '?h' || kind === '?l') this.#mode(numbers, letter === 'h');
    else if (kind === 'm') this.#note('colours', !isPlain, '\x1b[0m');
    else if (kind === 'r') this.#note('region', !isPlain, '\x1b7\x1b[r\x1b8');
    else if (kind === ' q') this.#note('cursor', !isPlain, '\x1b[0 q');
    else if (kind === '>m' && /^4(;|$)/.test(numbers)) this.#note('other keys', /^4;[1-9]/.test(numbers), '\x1b[>4m');
    else if (kind === '=u') this.#note('keyboard', !isPlain, '\x1b[=0u');
    else if (kind === '>u') this.#keyboards += 1;
    else if (kind === '<u') this.#keyboards = Math.max(0, this.#keyboards - Number(numbers || 1));
    else if (kind === '!p') this.#softReset();
  }

  #mode(numbers: string, on: boolean): void {
    for (const mode of numbers.split(';').map(Number)) {
      if (!WATCHED.has(mode)) continue;
      if (on === ON.has(mode)) this.#changed.delete(mode);
      else this.#changed.add(mode);
    }
  }

  /** Does not affect screens and the mouse. */
  #softReset(): void {
    for (const mode of [1, 6, 7, 25, 66]) this.#changed.delete(mode);
    for (const name of ['keypad', 'characters', 'colours', 'region']) this.#undo.delete(name);
  }

  #note(name: string, isChanged: boolean, undo: string): void {
    if (isChanged) this.#undo.set(name, undo);
    else this.#undo.delete(name);
  }
}
