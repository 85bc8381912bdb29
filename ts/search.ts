/** Search and edit: what is asked for, what comes back, and the way from one side of the binding to the other. */
import { SandboxError } from './errors';
import type { FileEntry } from './files';
import type { NativeContent, NativeGlob, NativeGrep, NativeReplace, NativeSearchScope } from './internal/binding';
import * as check from './internal/check';

const MAX_RESULTS = 1000;
const MAX_FILE_BYTES = 16 * 1024 * 1024;

/** Where a search looks, and what it leaves out. */
export interface SearchOptions {
  /** The workdir unless told. */
  path?: string;
  /** Leaves out what `.gitignore` files there and above say, and `.git`. True unless told. */
  gitignore?: boolean;
  /** More to leave out, as in a `.gitignore` at `path`. */
  exclude?: string[];
  /** False leaves out names that begin with a dot. */
  hidden?: boolean;
  /** Gives it up: the call rejects with the signal's own reason. */
  signal?: AbortSignal;
}

/** How to look for paths. */
export interface GlobOptions extends SearchOptions {
  /** 1,000 unless told; at most 100,000. */
  maxResults?: number;
}

/** What was found. */
export interface GlobResult {
  /** Sorted by path. */
  entries: FileEntry[];
  /** Whether there are more than `maxResults`; which ones are given is then the file system's choice. */
  truncated: boolean;
}

/** How to look for lines. */
export interface GrepOptions extends SearchOptions {
  /** Only files with such names, or with such paths from `path` down: `'*.ts'`, `'src/**'`. */
  include?: string | string[];
  /** Takes upper and lower case for the same. False unless told. */
  ignoreCase?: boolean;
  /** The pattern is the text itself, not an expression. */
  literal?: boolean;
  /** So many lines before each match, at most 20. */
  before?: number;
  /** So many lines after each match, at most 20. */
  after?: number;
  /** 1,000 unless told; at most 100,000. */
  maxMatches?: number;
  /** As many as there are unless told. */
  maxMatchesPerFile?: number;
  /** Longer files are skipped. 16 MiB unless told. */
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
  /** The line without its end; of a long one, 500 bytes around the match. */
  text: string;
  /** The lines before it, where asked for. */
  before: string[];
  /** The lines after it, where asked for. */
  after: string[];
}

/** What was found. */
export interface GrepResult {
  /** Sorted by path and line. */
  matches: GrepMatch[];
  /** Whether `maxMatches` or `maxMatchesPerFile` left something out. */
  truncated: boolean;
  /** Files that were looked into. */
  filesSearched: number;
  /** Files that are binary (a NUL in the first 8 KiB), longer than `maxFileBytes`, or not readable. */
  filesSkipped: number;
}

/** How often the text may be there. */
export interface ReplaceOptions {
  /** In all places; otherwise there must be just one. */
  all?: boolean;
  /** In all places, of which there must be just so many. */
  expected?: number;
  /** Gives it up: the call rejects with the signal's own reason. */
  signal?: AbortSignal;
}

/** What was changed. */
export interface ReplaceResult {
  /** Absolute. */
  path: string;
  /** In how many places. */
  replacements: number;
}

/** Which lines of a file, counted from 1, both included. */
export interface LineRange {
  /** The first; 1 unless told. */
  fromLine?: number;
  /** The last; that of the file unless told. */
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

/** @internal As git decides: by a NUL near the start. */
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

/** @internal The text that was asked for, if it is all there. */
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
