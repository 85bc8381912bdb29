import { addon } from './internal/native';

/** The version of this package. */
export const version: string = addon().version();
