/** Variables that decide where sandboxes run and how long they live. Secrets are named, never shown. */

import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { backendOf } from '../../internal/backend';
import { duration } from '../../internal/environment';
import { type Finding, faulty, ok } from './finding';
import { unsetting } from './machine';

const DOCKERS = ['DOCKER_HOST', 'DOCKER_CONTEXT', 'DOCKER_CONFIG', 'DOCKER_TLS_VERIFY', 'DOCKER_CERT_PATH'];
const TIMES = ['COFFERDAM_IDLE_TIMEOUT', 'COFFERDAM_MAX_LIFETIME', 'COFFERDAM_ORPHAN_TIMEOUT'];
const OURS = ['COFFERDAM_BACKEND', 'COFFERDAM_STATE', 'COFFERDAM_IMAGES', 'COFFERDAM_MCP_TOKEN', ...TIMES];

/** For our own builds and tests. */
const INTERNAL = /^COFFERDAM_(TEST_|NO_|GUEST_|SHORTCUT)/;

export function environment(variables: NodeJS.ProcessEnv = process.env): Finding[] {
  const names = Object.keys(variables).sort();
  const own = names.filter((name) => name.startsWith('COFFERDAM_') && !INTERNAL.test(name));
  const listed = [...DOCKERS.filter((name) => variables[name]), ...own];
  const values = Object.fromEntries(listed.map((name) => [name, shown(name, variables[name] ?? '')]));
  const text = listed.map((name) => `${name}=${values[name]}`).join(', ');
  return [
    ok('Environment', 'environment', text || 'no variable sets where sandboxes run or how long they live', values),
    ...own.filter((name) => !OURS.includes(name)).map(unknownVariable),
    ...invalid(variables),
    ...missingContext(variables),
  ];
}

function shown(name: string, value: string): string {
  return /TOKEN|SECRET|PASSWORD|_KEY/.test(name) ? '(hidden)' : value;
}

/** Hides the passwords in addresses, wherever one is quoted. */
export function withoutPasswords<T>(value: T): T {
  return JSON.parse(JSON.stringify(value).replace(/(:\/\/[^/@:\s"]*):[^@/\s"]*@/g, '$1:(hidden)@'));
}

function unknownVariable(name: string): Finding {
  const text = `${name} means nothing to this version; known variables: ${OURS.join(', ')}`;
  return faulty('warning', 'Environment', `environment.${name}`, text, unsetting(name));
}

function invalid(variables: NodeJS.ProcessEnv): Finding[] {
  const checks = [
    ['COFFERDAM_BACKEND', () => backendOf(undefined, undefined, variables)] as const,
    ...TIMES.map((name) => [name, () => duration(name, variables[name])] as const),
  ];
  return checks.flatMap(([name, check]) => {
    try {
      check();
      return [];
    } catch (error) {
      const text = (error as Error).message;
      return [faulty('problem', 'Environment', `environment.${name}`, text, unsetting(name))];
    }
  });
}

/** Unsets invalid variables, so that everything else can still be checked. */
export function ignoreInvalid(findings: readonly Finding[]): void {
  const prefix = 'environment.';
  for (const { group, state, id } of findings) {
    if (group === 'Environment' && state === 'problem') delete process.env[id.slice(prefix.length)];
  }
}

/** The docker command refuses a missing context; we ignore it, which may be a surprise. */
function missingContext({ DOCKER_HOST, DOCKER_CONTEXT, DOCKER_CONFIG }: NodeJS.ProcessEnv): Finding[] {
  if (DOCKER_HOST) return [];
  const folder = DOCKER_CONFIG || path.join(homedir(), '.docker');
  const name = DOCKER_CONTEXT || currentContext(folder);
  if (!name || name === 'default') return [];
  const digest = createHash('sha256').update(name).digest('hex');
  if (existsSync(path.join(folder, 'contexts/meta', digest, 'meta.json'))) return [];
  const text = `the docker context ${JSON.stringify(name)} does not exist, and is ignored`;
  const cure = DOCKER_CONTEXT ? unsetting('DOCKER_CONTEXT') : 'docker context use default';
  return [faulty('warning', 'Environment', 'environment.context', text, cure, { context: name })];
}

function currentContext(folder: string): string | undefined {
  try {
    return JSON.parse(readFileSync(path.join(folder, 'config.json'), 'utf8')).currentContext;
  } catch {
    return undefined;
  }
}
