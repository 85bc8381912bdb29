// What consumers stand on: the tools, the registry, and a new project for each, all in one folder that is gone afterwards.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Project } from './project.mjs';
import { versionOf } from './tools.mjs';

export class Ground {
  #projects = [];
  #sandboxes = [];

  /**
   * @param {object} given
   * @param {import('./tools.mjs').Tools} given.tools
   * @param {string} given.folder
   * @param {{ url: string, npmrc: string }} given.registry
   * @param {import('../release/pack.mjs').Packed} given.main
   * @param {Record<string, string>} given.env which backend, and where it keeps its state
   */
  constructor({ tools, folder, registry, main, env }) {
    this.tools = tools;
    this.registry = registry;
    this.main = main;
    this.folder = folder;
    this.env = { ...env, HOME: this.home('home'), DENO_NO_UPDATE_CHECK: '1', YARN_ENABLE_TELEMETRY: '0' };
  }

  /** A home folder with nothing in it but where packages come from. */
  home(name) {
    const home = path.join(this.folder, name);
    mkdirSync(home, { recursive: true });
    const habits = [
      'fund=false',
      'audit=false',
      'update-notifier=false',
      'fetch-retries=5',
      'fetch-retry-mintimeout=1000',
    ];
    writeFileSync(path.join(home, '.npmrc'), `${this.registry.npmrc}${habits.join('\n')}\n`);
    return home;
  }

  /** An empty project, with the files of a consumer if there are any; `manifest: null` is one without a package.json. */
  project(name, { consumer, manifest, env } = {}) {
    const project = new Project(path.join(this.folder, 'projects', name), { ...this.env, ...env });
    if (manifest !== null) project.write(manifest);
    if (consumer) project.copy(consumer);
    this.#projects.push(project);
    return project;
  }

  /** As {@link project}, with cofferdam and others installed by npm. */
  async installed(name, { with: others = [], flags = [], ...options } = {}) {
    const project = this.project(name, options);
    await project.run('npm', ['install', ...flags, 'cofferdam', ...others.map(exact)]);
    return project;
  }

  /** Sandboxes that were opened so far. */
  get sandboxes() {
    return [...this.#sandboxes, ...this.#projects.flatMap(({ sandboxes }) => sandboxes)];
  }

  /** Removes the projects there are. */
  clear() {
    for (const project of this.#projects.splice(0)) {
      this.#sandboxes.push(...project.sandboxes);
      project.remove();
    }
  }
}

export function exact(name) {
  return `${name}@${versionOf(name)}`;
}

/** The only optional framework that a subpath needs when it runs. */
export const MCP_SDK = '@modelcontextprotocol/sdk';
