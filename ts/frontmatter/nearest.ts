/** Finds the name that a misspelt one was meant to be. */

/** The most similar name, if one is similar enough. */
export function nearest(key: string, names: readonly string[]): string | undefined {
  if (key.length > 60) return undefined;
  const plain = (name: string) => name.toLowerCase().replaceAll(/[_-]/g, '');
  const same = names.find((name) => plain(name) === plain(key));
  if (same) return same;
  // The unit is missing.
  const begun = key.length > 2 && names.find((name) => plain(name).startsWith(plain(key)));
  if (begun) return begun;
  const [best] = names.map((name) => ({ name, far: distance(name, key) })).sort((a, b) => a.far - b.far);
  return best && best.far <= Math.max(2, Math.floor(key.length / 3)) ? best.name : undefined;
}

/** The edit distance of two words. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
