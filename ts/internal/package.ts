/** What this package is called, and which one it is: not the addon's word for it, which need not be loaded. */
export const SCOPE = 'cofferdam';

let version: string | undefined;

export function packageVersion(): string {
  version ??= (require('../../package.json') as { version: string }).version;
  return version;
}
