// A registry for the time of one command: verdaccio on a free port of loopback, with its packages in a folder of the
// caller's. What is published here stays here; everything else comes from the registry that npm is configured with.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { exited, launch, run } from '../child.mjs';
import { atEnd } from '../lifetime.mjs';

const SERVER = fileURLToPath(new URL('./registry-server.mjs', import.meta.url));

/** Verdaccio needs a newer Node.js than cofferdam does. */
const NODE = '24';

/**
 * @param {import('./tools.mjs').Tools} tools
 * @param {string} folder
 */
export async function startRegistry(tools, folder) {
  const uplink = String(execFileSync('npm', ['config', 'get', 'registry'])).trim();
  const args = [SERVER, tools.path('verdaccio/build/index.js'), JSON.stringify(configuration(folder, uplink))];
  const child = launch(tools.node(NODE), args, { stdio: 'pipe' });
  const exit = exited(child);
  atEnd(async () => {
    child.kill('SIGKILL');
    await exit;
  });
  const said = [];
  createInterface({ input: child.stderr }).on('line', (line) => said.push(line));
  const lines = createInterface({ input: child.stdout }).on('line', (line) => said.push(line));
  const failed = exit.then(({ code }) => {
    throw new Error([`the registry ended with ${code}`, ...said].join('\n  '));
  });
  const [port] = await Promise.race([once(lines, 'line'), failed]);
  failed.catch(() => {});
  return new Registry(Number(port), path.join(folder, 'publisher'));
}

class Registry {
  constructor(port, home) {
    this.url = `http://127.0.0.1:${port}/`;
    this.home = home;
  }

  /** What `.npmrc` must say. Anybody may publish, but npm wants to have a token to send. */
  get npmrc() {
    return `registry=${this.url}\n${this.url.slice('http:'.length)}:_authToken=anybody\n`;
  }

  /** @param {string} file a tarball */
  publish(file, env) {
    return run('npm', ['publish', '--tag', 'latest', '--loglevel=error', file], { env, output: 'keep' });
  }
}

function configuration(folder, uplink) {
  const ours = { access: '$all', publish: '$all' };
  return {
    self_path: path.join(folder, 'verdaccio.yaml'),
    configPath: path.join(folder, 'verdaccio.yaml'),
    storage: path.join(folder, 'storage'),
    web: { enable: false },
    auth: {},
    // One answer that fails to come does not close the way for minutes; npm asks again.
    uplinks: { usual: { url: uplink, maxage: '1h', timeout: '60s', max_fails: 1000, fail_timeout: '1s' } },
    packages: { cofferdam: ours, 'cofferdam-*': ours, '**': { access: '$all', proxy: 'usual' } },
    log: { type: 'stdout', format: 'pretty', level: 'error' },
    max_body_size: '100mb',
  };
}
