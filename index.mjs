// ES modules share the one CommonJS build, so that a class is the same class whichever way it was imported.
import cofferdam from './dist/index.js';

export const { Process, Sandbox, SandboxError, SandboxManager, Terminal, version } = cofferdam;
