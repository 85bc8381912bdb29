/** The name and the version of this package, without loading the addon. */
export const SCOPE = 'cofferdam';

let version: string | undefined;

export function packageVersion(): string {
  version ??= (require('../../package.json') as { version: string }).version;
  return version;
}
