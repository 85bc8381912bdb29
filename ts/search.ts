/** Search and edit: options, results, and their conversion for the addon. */
import { SandboxError } from './errors';
import type { FileEntry } from './files';
import type { NativeContent, NativeGlob, NativeGrep, NativeReplace, NativeSearchScope } from './internal/binding';
import * as check from './internal/check';

const MAX_RESULTS = 1000;
const MAX_FILE_BYTES = 16 * 1024 * 1024;

/** Where a search looks, and what it skips. */
export interface SearchOptions {
  /** Where to start. By default, the workdir. */
  path?: string;
  /**
   * Skips what `.gitignore` files there and above name, and `.git`.
   *
   * @default true
   */
  gitignore?: boolean;
  /** More to skip, as in a `.gitignore` at `path`. */
  exclude?: string[];
  /**
   * False skips names that begin with a dot.
   *
   * @default true
   */
  hidden?: boolean;
  /** Aborts the call; rejects with `signal.reason`. */
  signal?: AbortSignal;
}

/** How to find paths. */
export interface GlobOptions extends SearchOptions {
  /**
   * At most 100,000.
   *
   * @default 1000
   */
  maxResults?: number;
}

/** What was found. */
export interface GlobResult {
  /** Sorted by path. */
  entries: FileEntry[];
  /** Whether there are more than `maxResults`; which of them are returned then depends on the file system. */
  truncated: boolean;
}

/** How to find lines. */
export interface GrepOptions extends SearchOptions {
  /** Only files whose names, or paths below `path`, match: `'*.ts'`, `'src/**'`. */
  include?: string | string[];
  /**
   * Ignores case.
   *
   * @default false
   */
  ignoreCase?: boolean;
  /**
   * Takes the pattern as plain text, not as an expression.
   *
   * @default false
   */
  literal?: boolean;
  /**
   * Lines to return before each match; at most 20.
   *
   * @default 0
   */
  before?: number;
  /**
   * Lines to return after each match; at most 20.
   *
   * @default 0
   */
  after?: number;
  /**
   * At most 100,000.
   *
   * @default 1000
   */
  maxMatches?: number;
  /** No limit by default. */
  maxMatchesPerFile?: number;
  /**
   * Longer files are skipped.
   *
   * @default 16_777_216
   */
  maxFileBytes?: number;
}

/** A line that matches. */
export interface GrepMatch {
  /** Absolute. */
  path: string;
  /** Counted from 1. */
  line: number;
  /** Where in the line the first match begins: in characters (Unicode code points), counted from 1. */
  column: number;
  /** The line without its line end; of a long line, 500 bytes around the match. */
  text: string;
  /** The lines before it, if requested. */
  before: string[];
  /** The lines after it, if requested. */
  after: string[];
}

/** What was found. */
export interface GrepResult {
  /** Sorted by path and line. */
  matches: GrepMatch[];
  /** Whether `maxMatches` or `maxMatchesPerFile` left something out. */
  truncated: boolean;
  /** Files that were read. */
  filesSearched: number;
  /** Files that are binary (a NUL in the first 8 KiB), longer than `maxFileBytes`, or unreadable. */
  filesSkipped: number;
}

/** How often the text may occur. */
export interface ReplaceOptions {
  /**
   * Replaces every occurrence; otherwise there must be exactly one.
   *
   * @default false
   */
  all?: boolean;
  /** Replaces every occurrence; there must be exactly this many. */
  expected?: number;
  /** Aborts the call; rejects with `signal.reason`. */
  signal?: AbortSignal;
}

/** What was changed. */
export interface ReplaceResult {
  /** Absolute. */
  path: string;
  /** How many occurrences were replaced. */
  replacements: number;
}

/** Lines of a file, counted from 1, both ends included. */
export interface LineRange {
  /**
   * The first line.
   *
   * @default 1
   */
  fromLine?: number;
  /** The last line. By default, the last of the file. */
  toLine?: number;
}

/** @internal */
export function byPath(a: { path: string }, b: { path: string }): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}

/** @internal */
export function byPathAndLine(a: GrepMatch, b: GrepMatch): number {
  return byPath(a, b) || a.line - b.line;
}

/** @internal By a NUL near the start, as git decides. */
export function isBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, 8000).includes(0);
}

/** @internal */
export function toNativeGlob(pattern: string | string[], options: GlobOptions): NativeGlob {
  return {
    scope: toNativeSearchScope(options),
    patterns: patterns('pattern', pattern),
    maxResults: check.count('maxResults', options.maxResults ?? MAX_RESULTS),
  };
}

/** @internal */
export function toNativeGrep(pattern: string, options: GrepOptions): NativeGrep {
  return {
    scope: toNativeSearchScope(options),
    pattern: check.text('pattern', pattern),
    literal: check.boolean('literal', options.literal ?? false),
    ignoreCase: check.boolean('ignoreCase', options.ignoreCase ?? false),
    include: patterns('include', options.include ?? []),
    before: check.count('before', options.before ?? 0),
    after: check.count('after', options.after ?? 0),
    maxMatches: check.count('maxMatches', options.maxMatches ?? MAX_RESULTS),
    maxMatchesPerFile: check.count('maxMatchesPerFile', options.maxMatchesPerFile ?? Number.MAX_SAFE_INTEGER),
    maxFileBytes: check.count('maxFileBytes', options.maxFileBytes ?? MAX_FILE_BYTES),
  };
}

/** @internal */
export function toNativeReplace(
  path: string,
  search: string,
  replacement: string,
  { all, expected }: ReplaceOptions,
): NativeReplace {
  return {
    path: check.text('path', path),
    search: check.text('search', search),
    replacement: check.text('replacement', replacement),
    all: check.boolean('all', all ?? false),
    expected: expected === undefined ? undefined : check.count('expected', expected),
  };
}

/** @internal The requested text, if it is complete. */
export function wholeText(path: string, content: NativeContent, limit: number, range: LineRange): string {
  if (!content.truncated) return content.bytes.toString('utf8');
  const isPart = range.fromLine !== undefined || range.toLine !== undefined;
  const [what, instead] = isPart
    ? [`these lines of "${path}" have more than the ${limit} bytes`, 'ask for fewer of them']
    : [`"${path}" has ${content.sizeBytes} bytes, more than the ${limit}`, 'read() a part of it'];
  const details = { path, sizeBytes: content.sizeBytes, maxBytes: limit };
  throw new SandboxError('LIMIT_EXCEEDED', `${what} allowed; raise maxBytes, or ${instead}`, details);
}

function toNativeSearchScope(options: SearchOptions): NativeSearchScope {
  check.object('options', options);
  return {
    path: check.text('path', options.path ?? '.'),
    exclude: patterns('exclude', options.exclude ?? []),
    gitignore: check.boolean('gitignore', options.gitignore ?? true),
    hidden: check.boolean('hidden', options.hidden ?? true),
  };
}

function patterns(name: string, value: unknown): string[] {
  if (!Array.isArray(value)) return [check.text(name, value)];
  return value.map((pattern, index) => check.text(`${name}[${index}]`, pattern));
}
