/**
 * Loads a framework when it is first needed, never before.
 *
 * Frameworks are optional peers. A missing one is an error that says how to install it.
 */
import { SandboxError } from '../errors';

/** `module` of the installed package `name`. */
export function loadFramework<T>(name: string, module: string, asker: string): T {
  try {
    return require(module) as T;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw error;
    throw new SandboxError(
      'UNSUPPORTED',
      `${asker}() needs the package ${name}, and ${module} could not be loaded: ${(error as Error).message.split('\n')[0]}. Install it: npm install ${name}`,
      { package: name },
    );
  }
}
