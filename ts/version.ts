import { native } from './internal/native';

/** The version of this package. */
export const version: string = native.version();
