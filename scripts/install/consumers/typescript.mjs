// TypeScript as strict as it gets, with the declarations of the package checked as well, compiled and run.

import { MCP_SDK } from '../ground.mjs';
import { versionOf } from '../tools.mjs';

/** The last compiler that was written in TypeScript, and the resolution that ended with it: many projects stay with both. */
const OLD = 'typescript-5';

const SETTINGS = [
  { resolution: 'node16', module: 'node16', type: 'commonjs' },
  { resolution: 'node16', module: 'node16', type: 'module' },
  { resolution: 'bundler', module: 'esnext', type: 'module' },
  { resolution: 'node10', module: 'commonjs', type: 'commonjs', compiler: OLD },
];

const strict = SETTINGS.map(({ resolution, module, type, compiler = 'typescript' }) => ({
  name: `TypeScript, strict: ${resolution}, ${type === 'module' ? 'ES modules' : 'CommonJS'}`,
  version: `TypeScript ${versionOf(compiler)}`,
  async visit(ground) {
    const project = await ground.installed(`${compiler}-${resolution}-${type}`, {
      consumer: 'typescript',
      manifest: { type },
      with: ['@types/node', MCP_SDK],
    });
    await compile(ground, project, compiler, ['--module', module, '--moduleResolution', resolution]);
    await project.visit(process.execPath, ['out/main.js']);
  },
}));

const noFrameworks = {
  name: 'TypeScript, strict: without any framework',
  version: `TypeScript ${versionOf('typescript')}`,
  async visit(ground) {
    const project = await ground.installed('no-frameworks', { consumer: 'typescript', with: ['@types/node'] });
    const flags = ['--module', 'node16', '--noEmit'];
    await compile(ground, project, 'typescript', flags, 'tsconfig.no-frameworks.json');
  },
};

/** Declarations of frameworks are checked along with ours; what is wrong in theirs is theirs (the SDK of MCP, in node16). */
async function compile(ground, project, compiler, flags, settings = 'tsconfig.json') {
  const tsc = [ground.tools.path(`${compiler}/bin/tsc`), '-p', settings, ...flags];
  const output = await project.attempt(process.execPath, tsc);
  const errors = output.lines.filter((line) => /error TS\d+/.test(line));
  const ours = errors.filter((line) => !line.startsWith(`node_modules/${MCP_SDK}/`));
  if (ours.length > 0 || (output.failure && errors.length === 0)) throw output.failure;
}

export const typescript = [...strict, noFrameworks];
