/** Search and edit on the disk of a fake sandbox, with the guest's answers. */
import { posix } from 'node:path';
import { SandboxError } from '../errors';
import type {
  NativeEntries,
  NativeEntry,
  NativeGlob,
  NativeGrep,
  NativeMatch,
  NativeMatches,
  NativeReplace,
  NativeReplaced,
  NativeSearchScope,
} from '../internal/binding';
import type { Disk } from './disk';
import { toExpression } from './expression';
import { gitignoreRules, pathTest, type Rules } from './patterns';

const MAX_RESULTS = 100_000;
const MAX_AROUND = 20;
const MAX_REPLACE_BYTES = 64 * 1024 * 1024;
const MAX_TEXT = 500;

function invalid(message: string, details: Record<string, unknown> = {}): never {
  throw new SandboxError('INVALID_ARGUMENT', message, details);
}

/** Everything below the scope's path that its rules do not exclude, each with its relative path. */
export function inScope(disk: Disk, { path, exclude, gitignore, hidden }: NativeSearchScope): [string, NativeEntry][] {
  const root = disk.resolve(path);
  const entries = disk.list(path, true).sort((a, b) => (a.path < b.path ? -1 : 1));
  const excluded = gitignoreRules(exclude);
  const own = new Map<string, Rules>();
  const rulesAt = (folder: string): Rules | undefined => {
    if (!own.has(folder)) {
      const file = posix.join(folder, '.gitignore');
      const text = disk.stat(file)?.fileType === 'file' ? disk.read(file).bytes.toString('utf8') : '';
      own.set(folder, gitignoreRules(text.split('\n')));
    }
    return own.get(folder);
  };
  const above: string[] = [];
  for (let folder = root; !disk.stat(posix.join(folder, '.git')) && folder !== '/'; ) {
    folder = posix.dirname(folder);
    above.push(folder);
  }
  const isIgnored = (entry: NativeEntry, isDir: boolean): boolean => {
    if (posix.basename(entry.path) === '.git') return true;
    const folders: string[] = [];
    for (let folder = posix.dirname(entry.path); folder.length >= root.length; folder = posix.dirname(folder)) {
      folders.push(folder);
      if (folder === '/') break;
    }
    for (const folder of [...folders, ...above.filter((each) => !folders.includes(each))]) {
      const said = rulesAt(folder)?.(posix.relative(folder, entry.path), isDir);
      if (said !== undefined) return said;
    }
    return false;
  };
  const excludedFolders: string[] = [];
  return entries.flatMap((entry): [string, NativeEntry][] => {
    if (excludedFolders.some((folder) => entry.path.startsWith(`${folder}/`))) return [];
    const relative = posix.relative(root, entry.path);
    const isDir = entry.fileType === 'dir';
    const said = excluded(relative, isDir);
    const isHidden = !hidden && posix.basename(entry.path).startsWith('.');
    if (said ?? (isHidden || (gitignore && isIgnored(entry, isDir)))) {
      if (isDir) excludedFolders.push(entry.path);
      return [];
    }
    return [[relative, entry]];
  });
}

export function glob(disk: Disk, { scope, patterns, maxResults }: NativeGlob): NativeEntries {
  if (maxResults > MAX_RESULTS) invalid(`maxResults is at most ${MAX_RESULTS}, not ${maxResults}`);
  for (const pattern of patterns) {
    const leadsOut = pattern.startsWith('/') || pattern.split('/').includes('..');
    if (pattern === '' || leadsOut)
      invalid(`${JSON.stringify(pattern)} is not a pattern for paths below a folder`, { pattern });
  }
  const fits = pathTest(patterns, false);
  const found = inScope(disk, scope).filter(([path, { fileType }]) => fits(path, fileType === 'dir'));
  return { entries: found.slice(0, maxResults).map(([, entry]) => entry), truncated: found.length > maxResults };
}

export function grep(disk: Disk, request: NativeGrep): NativeMatches {
  const { scope, before, after, include, maxMatches, maxMatchesPerFile, maxFileBytes } = request;
  if (Math.max(before, after) > MAX_AROUND) invalid(`before and after are at most ${MAX_AROUND}`);
  if (maxMatches > MAX_RESULTS) invalid(`maxMatches is at most ${MAX_RESULTS}, not ${maxMatches}`);
  const expression = toExpression(request);
  const included = include.length > 0 ? pathTest(include, true) : () => true;
  const whole = disk.stat(scope.path);
  const files =
    whole?.fileType === 'file'
      ? [whole]
      : inScope(disk, scope).flatMap(([path, entry]) =>
          entry.fileType === 'file' && included(path, false) ? [entry] : [],
        );
  const result: NativeMatches = { matches: [], truncated: false, filesSearched: 0, filesSkipped: 0 };
  for (const { path, sizeBytes } of files) {
    const { bytes } = disk.read(path);
    if (sizeBytes > maxFileBytes || bytes.subarray(0, 8192).includes(0)) {
      result.filesSkipped += 1;
      continue;
    }
    result.filesSearched += 1;
    const found = linesOf(path, bytes.toString('utf8'), expression, before, after);
    const room = Math.min(maxMatchesPerFile, maxMatches - result.matches.length);
    if (found.length > room) result.truncated = true;
    result.matches.push(...found.slice(0, room));
  }
  return result;
}

function linesOf(path: string, text: string, expression: RegExp, before: number, after: number): NativeMatch[] {
  const lines = text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => line.replace(/\r$/, ''));
  if (text === '') return [];
  return lines.flatMap((line, index) => {
    const match = expression.exec(line);
    if (!match) return [];
    const around = {
      before: lines.slice(Math.max(0, index - before), index),
      after: lines.slice(index + 1, index + 1 + after),
    };
    const column = [...line.slice(0, match.index)].length + 1;
    return [{ path, line: index + 1, column, text: shortened(line, match.index), ...around }];
  });
}

/** The part of a long line around the match. */
function shortened(line: string, at: number): string {
  if (Buffer.byteLength(line) <= MAX_TEXT) return line;
  const half = Math.floor(MAX_TEXT / 8);
  return line.slice(Math.max(0, at - half), at + half);
}

export function replace(disk: Disk, { path, search, replacement, all, expected }: NativeReplace): NativeReplaced {
  if (search === '') invalid('search is empty: give the text to replace, or write() the whole file');
  const { bytes, sizeBytes } = disk.read(path);
  if (sizeBytes > MAX_REPLACE_BYTES) {
    throw new SandboxError(
      'LIMIT_EXCEEDED',
      `"${path}" has ${sizeBytes} bytes, more than the ${MAX_REPLACE_BYTES} that can be edited`,
    );
  }
  // Bytes that are not UTF-8 must stay as they are.
  const [text, wanted] = [bytes.toString('latin1'), Buffer.from(search).toString('latin1')];
  const parts = text.split(wanted);
  const count = parts.length - 1;
  let at = 0;
  const lines = parts.slice(0, -1).map((part) => {
    at += part.length + wanted.length;
    return text.slice(0, at - wanted.length).split('\n').length;
  });
  const details = { count, lines, path };
  if (count === 0) {
    const again = 'read it again, and give the text just as it is there, with its spaces and line ends';
    invalid(`${JSON.stringify(search)} does not occur in "${path}": ${again}`, details);
  }
  if (expected !== undefined ? count !== expected : count > 1 && !all) {
    const unique = [...new Set(lines)];
    const where =
      unique.length > 1 ? `lines ${unique.slice(0, -1).join(', ')} and ${unique.at(-1)}` : `line ${unique[0]}`;
    invalid(`the text occurs ${count} times, in ${where}: give more of the text around it, or say all: true`, details);
  }
  const written = disk.write({ path }, Buffer.from(parts.join(Buffer.from(replacement).toString('latin1')), 'latin1'));
  return { path: written.path, replacements: count };
}
