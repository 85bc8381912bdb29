import { packageVersion } from './internal/package';

/** The version of this package. */
export const version: string = packageVersion();
