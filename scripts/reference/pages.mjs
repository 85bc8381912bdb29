// The pages of the API reference as text, by name: read, compared, written.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** @returns {Map<string, string>} */
export function readPages(folder) {
  const names = existsSync(folder) ? readdirSync(folder, { recursive: true }) : [];
  const pages = names.filter((name) => name.endsWith('.md')).sort();
  return new Map(pages.map((name) => [name, readFileSync(path.join(folder, name), 'utf8')]));
}

/** Puts these pages in the place of those that are there. */
export function writePages(folder, pages) {
  rmSync(folder, { recursive: true, force: true });
  for (const [name, text] of pages) {
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

/** Where two sets of pages differ, a line per page. */
export function differences(committed, generated) {
  const names = [...new Set([...committed.keys(), ...generated.keys()])].sort();
  return names.flatMap((name) => {
    const [old, now] = [committed.get(name), generated.get(name)];
    if (old === now) return [];
    if (old === undefined) return [`${name} is missing`];
    if (now === undefined) return [`${name} is of nothing that is exported`];
    const before = old.split('\n');
    const after = now.split('\n');
    const line = after.findIndex((text, index) => text !== before[index]);
    const at = line === -1 ? after.length : line;
    return [`${name}:${at + 1} is\n    ${before[at] ?? '(its end)'}\n  and should be\n    ${after[at] ?? '(its end)'}`];
  });
}
