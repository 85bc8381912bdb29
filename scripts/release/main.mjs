import { pathToFileURL } from 'node:url';

/** Whether a module is the program that was started, and not one that another imports. */
export function isMain(url) {
  return url === pathToFileURL(process.argv[1]).href;
}
