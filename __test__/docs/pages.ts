/** The Markdown of this repository: which pages there are, and the blocks of code on them. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.resolve(__dirname, '../..');

/** What is made or fetched, and so nobody's writing: wherever it is, and at the top what git is told to ignore. */
const NOT_OURS = new Set(['node_modules', 'target', 'dist', '.git', 'corpus']);
const IGNORED = readFileSync(path.join(ROOT, '.gitignore'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('/'))
  .map((line) => new RegExp(`^${line.slice(1).replace(/\/$/, '').replaceAll('.', '\\.').replaceAll('*', '[^/]*')}$`));

/** Every file below a folder of the repository, from its root on. */
export function filesIn(folder: string): string[] {
  return readdirSync(path.join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = path.posix.join(folder, entry.name);
    if (NOT_OURS.has(entry.name) || IGNORED.some((pattern) => pattern.test(name))) return [];
    return entry.isDirectory() ? filesIn(name) : [name];
  });
}

export const pages: readonly string[] = filesIn('.').filter((name) => name.endsWith('.md'));

/** Made from doc comments, and checked where those are. */
export function isGenerated(page: string): boolean {
  return page.startsWith('docs/api/');
}

export function textOf(page: string): string {
  return readFileSync(path.join(ROOT, page), 'utf8');
}

/** A block of code: what stands after its three marks, and where it begins. */
export interface Fence {
  page: string;
  /** Counted from 1: the line of the first line of code. */
  line: number;
  language: string;
  /** What else stands there: `no-run`. */
  flags: readonly string[];
  code: string;
}

const FENCE = /^([ \t]*)(`{3,}|~{3,})([^\n`]*)\n([\s\S]*?)^\1\2[ \t]*$/gm;

export function fencesOf(page: string, text: string = textOf(page)): Fence[] {
  return [...text.matchAll(FENCE)].map(({ index, 1: indent, 3: info, 4: body }) => {
    const [language = '', ...flags] = (info as string).trim().split(/\s+/);
    const code = (body as string).replaceAll(new RegExp(`^${indent}`, 'gm'), '');
    return { page, line: text.slice(0, index).split('\n').length + 1, language, flags, code };
  });
}

/** The text without its code, for whoever looks for what is meant as text. Lines stay where they are. */
export function proseOf(text: string): string {
  const blank = (code: string) => code.replaceAll(/[^\n]/g, ' ');
  return text.replaceAll(FENCE, blank).replaceAll(/(`+)[^`\n](?:[^\n]*?[^`\n])?\1(?!`)/g, blank);
}
