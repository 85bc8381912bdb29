/**
 * The modes that programs put a terminal into, read off their output, and what puts it back as it was.
 *
 * Invariant: only what is out of the ordinary is put back. To leave an alternate screen that nobody entered would move the
 * cursor, and a terminal that was left well gets not a byte.
 */

/** Modes of `CSI ? n h` that a terminal begins with. All others begin as off. */
const ON = new Set([7, 25]);

/** Those that a next program would suffer from: keys, wrapping, the cursor, the mouse, focus, screens, paste. */
const WATCHED = new Set([
  1, 5, 6, 7, 9, 25, 47, 66, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1047, 1049, 2004, 2026, 2031,
]);

const ALTERNATE = [47, 1047, 1049];

/** Longer sequences than this have none of what we look for. */
const LONGEST = 64;

const ESC = 0x1b;
const BEL = 0x07;
const CANCEL = new Set([0x18, 0x1a]);

/** Where in the stream we are. A `string` is a title or the like, of any length; `string-escape` perhaps its end. */
type Place = 'text' | 'escape' | 'sequence' | 'string' | 'string-escape';

export class TerminalModes {
  readonly #odd = new Set<number>();
  /** Other things than modes, each with what undoes it. */
  readonly #undo = new Map<string, string>();
  /** How often the keyboard protocol was pushed. */
  #keyboards = 0;
  #place: Place = 'text';
  #sequence = '';

  /** Looks through what is about to be shown. */
  take(bytes: Uint8Array): void {
    for (let index = 0; index < bytes.length; index += 1) {
      if (this.#place === 'text') {
        index = bytes.indexOf(ESC, index);
        if (index < 0) return;
        this.#place = 'escape';
      } else this.#step(bytes[index] ?? 0);
    }
  }

  /** Whether a program has the alternate screen, as editors do. */
  get isAlternate(): boolean {
    return ALTERNATE.some((mode) => this.#odd.has(mode));
  }

  /** What puts everything back; empty where nothing has to be. */
  restore(): string {
    const cut = { text: '', escape: '\x18', sequence: '\x18', string: '\x1b\\', 'string-escape': '\\' }[this.#place];
    // The alternate screen last: what was said in it is undone in it.
    const modes = [...this.#odd].sort((a, b) => Number(ALTERNATE.includes(a)) - Number(ALTERNATE.includes(b)));
    const keyboards = this.#keyboards > 0 ? `\x1b[<${this.#keyboards}u` : '';
    const undone = modes.map((mode) => `\x1b[?${mode}${ON.has(mode) ? 'h' : 'l'}`);
    const all = [cut, keyboards, ...this.#undo.values(), ...undone].join('');
    this.#forget();
    this.#place = 'text';
    return all;
  }

  #forget(): void {
    this.#odd.clear();
    this.#undo.clear();
    this.#keyboards = 0;
  }

  #step(byte: number): void {
    if (CANCEL.has(byte)) this.#place = 'text';
    else if (this.#place === 'string') {
      if (byte === BEL) this.#place = 'text';
      else if (byte === ESC) this.#place = 'string-escape';
    } else if (byte === ESC) this.#place = 'escape';
    else if (this.#place === 'string-escape' && byte === 0x5c) this.#place = 'text';
    else if (this.#place !== 'sequence') this.#begin(byte);
    else this.#collect(byte);
  }

  /** The byte after an escape. */
  #begin(byte: number): void {
    const character = String.fromCharCode(byte);
    // Titles, clipboards, pictures, and answers to questions: `]`, `P`, `X`, `^`, `_`.
    if (']PX^_'.includes(character)) this.#place = 'string';
    else if (character === '[' || (byte >= 0x20 && byte < 0x30)) {
      this.#place = 'sequence';
      this.#sequence = character;
    } else {
      this.#place = 'text';
      if (character === 'c') this.#forget();
      else if (character === '=') this.#undo.set('keypad', '\x1b>');
      else if (character === '>') this.#undo.delete('keypad');
    }
  }

  #collect(byte: number): void {
    // Controls within a sequence are obeyed by terminals, and are no part of it.
    if (byte < 0x20) return;
    const character = String.fromCharCode(byte);
    const isLast = this.#sequence.startsWith('[') ? byte >= 0x40 : byte >= 0x30;
    if (!isLast) {
      if (this.#sequence.length < LONGEST) this.#sequence += character;
      return;
    }
    this.#place = 'text';
    if (this.#sequence.startsWith('[')) this.#control(this.#sequence.slice(1), character);
    else if (this.#sequence === '(') this.#note('characters', character !== 'B', '\x1b(B');
    // Lines are drawn by shifting to the second set, which stays after them.
    else if (this.#sequence === ')') this.#note('shifted', character !== 'B', '\x0f');
  }

  /** `CSI`, what stood between, and the letter that ends it. */
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
    else if (kind === '!p') this.#soften();
  }

  #mode(numbers: string, on: boolean): void {
    for (const mode of numbers.split(';').map(Number)) {
      if (!WATCHED.has(mode)) continue;
      if (on === ON.has(mode)) this.#odd.delete(mode);
      else this.#odd.add(mode);
    }
  }

  /** A soft reset leaves screens and the mouse as they are. */
  #soften(): void {
    for (const mode of [1, 6, 7, 25, 66]) this.#odd.delete(mode);
    for (const name of ['keypad', 'characters', 'colours', 'region']) this.#undo.delete(name);
  }

  #note(name: string, isOdd: boolean, undo: string): void {
    if (isOdd) this.#undo.set(name, undo);
    else this.#undo.delete(name);
  }
}
