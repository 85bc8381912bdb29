/** Where `cofferdam cp` copies from and to: a path of the host, a path in a sandbox, or a standard stream. */

export type Place =
  | { readonly kind: 'host'; readonly path: string }
  | { readonly kind: 'sandbox'; readonly sandbox: string; readonly path: string }
  | { readonly kind: 'standard' };

/** A key contains colons; those inside its parts are escaped. */
const IN_SANDBOX = /^((?:workflow|agent|user|manager):[^:/]+:[^:/]+|[^:/\\.][^:/\\]*):(.*)$/s;

/** As in docker and scp: a colon before any slash separates a sandbox from a path; `./a:b` is a file of the host. */
export function placeOf(word: string): Place {
  if (word === '-') return { kind: 'standard' };
  // C:\data
  if (/^[A-Za-z]:[\\/]/.test(word) && process.platform === 'win32') return { kind: 'host', path: word };
  const [, sandbox, path] = IN_SANDBOX.exec(word) ?? [];
  if (sandbox === undefined || path === undefined) return { kind: 'host', path: word };
  return { kind: 'sandbox', sandbox, path: path === '' ? '.' : path };
}
