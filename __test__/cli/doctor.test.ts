import { existsSync, readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { version } from 'cofferdam';
import Docker from 'dockerode';
import { describeOnDocker, until } from '../support';
import { describeAsRoot, doctor, finding, Installed, report } from './doctor-program';
import { folder } from './program';

const ENGINE = process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock';
const engine = { env: { DOCKER_HOST: process.env.DOCKER_HOST } };

const withNamespaces = process.env.COFFERDAM_NO_NAMESPACES ? test.skip : test;

function isTimed(facts: Record<string, unknown>): void {
  for (const name of ['firstOpenMs', 'openMs', 'firstExecMs', 'execMs', 'filesMs']) {
    expect(facts[name]).toEqual(expect.any(Number));
    expect(facts[name]).toBeGreaterThan(0);
  }
}

/** How many there are from now on: of the past, an engine that is busy soon forgets. */
async function countEvents(client: Docker, filters: Record<string, string[]>) {
  const stream = (await client.getEvents({ filters })) as Readable;
  const counter = { count: 0, [Symbol.dispose]: () => void stream.destroy() };
  createInterface({ input: stream }).on('line', (line) => {
    if (line.trim()) counter.count += 1;
  });
  return counter;
}

describeOnDocker('doctor where there is an engine', () => {
  test('says what it is and how it was found, times a sandbox, and ends with 0', async () => {
    const found = await report(engine, ['--backend', 'docker']);
    expect(found).toMatchObject({ code: 0, ok: true, version, backend: 'docker' });
    expect(found.verdict).toMatch(/^sandboxes open here with docker in [\d.]+ ms; exec takes [\d.]+ ms$/);
    expect(finding(found, 'engine')).toMatchObject({
      state: 'ok',
      cure: null,
      text: expect.stringContaining(ENGINE),
      facts: { product: 'docker', host: ENGINE, foundBy: process.env.DOCKER_HOST ? 'DOCKER_HOST' : 'default' },
    });
    expect(finding(found, 'engine.api').facts).toMatchObject({ apiVersion: expect.stringMatching(/^1\.\d+$/) });
    expect(finding(found, 'engine.storage').facts).toMatchObject({ cgroupVersion: expect.stringMatching(/^[12]$/) });
    expect(finding(found, 'engine.limits').facts).toMatchObject({ memoryMb: expect.any(String) });
    expect(finding(found, 'disk.tmp').facts).toMatchObject({ freeBytes: expect.any(Number) });
    isTimed(finding(found, 'sandboxes.docker').facts);
    expect(found.engines.docker).toMatchObject({ backend: 'docker', abilities: { product: 'docker' } });
    expect(found.findings.every(({ state, cure }) => (state === 'ok') === (cure === null))).toBe(true);
    const ids = found.findings.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('prints groups, marks and a verdict at the end, without colour in a pipe', async () => {
    const { code, stdout } = await doctor(['--backend', 'docker'], engine);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Versions\n {2}✓ cofferdam /);
    for (const group of ['Environment', 'Engine', 'Disk', 'Sandboxes', 'Leftovers'])
      expect(stdout).toContain(`\n${group}\n`);
    expect(stdout).toMatch(/\n\nsandboxes open here with docker in .* ms\n$/);
    expect(stdout).not.toContain('\x1b');
    const { stdout: coloured } = await doctor(['--backend', 'docker'], { env: { ...engine.env, FORCE_COLOR: '1' } });
    expect(coloured).toContain('\x1b[32m✓\x1b[0m');
  });

  test('leaves nothing behind', async () => {
    const client = new Docker();
    const label = 'cofferdam.label.made-by=cofferdam doctor';
    using made = await countEvents(client, { type: ['container'], event: ['create'], label: [label] });
    expect(await report(engine, ['--backend', 'docker'])).toMatchObject({ code: 0 });
    await until(() => made.count >= 3);
    expect(await client.listContainers({ all: true, filters: { label: [label] } })).toEqual([]);
  });

  test('stopped on the way, it ends as shells expect, and leaves nothing behind either', async () => {
    const client = new Docker();
    const label = 'cofferdam.label.made-by=cofferdam doctor';
    const containers = () => client.listContainers({ all: true, filters: { label: [label] } });
    const stop = new AbortController();
    const ending = doctor(['--backend', 'docker'], { ...engine, stop: stop.signal });
    await until(async () => (await containers()).length > 0);
    stop.abort();
    expect(await ending).toMatchObject({ code: 130, stdout: '' });
    expect(await containers()).toEqual([]);
  });

  test('an image that is not there: says how to get it, and pulls none', async () => {
    const found = await report(engine, ['--backend', 'docker', '--image', 'no-such-image:1']);
    expect(found).toMatchObject({ code: 1, ok: false, verdict: 'no sandbox opens here: one problem is in the way' });
    expect(finding(found, 'sandboxes.docker')).toMatchObject({
      state: 'problem',
      text: expect.stringContaining('there is no image "no-such-image:1"'),
      cure: 'npx cofferdam pull no-such-image:1',
    });
  });
});

describe('doctor on namespaces', () => {
  withNamespaces('times a sandbox and leaves nothing behind', async () => {
    const env = { COFFERDAM_STATE: folder() };
    const found = await report({ env }, ['--backend', 'namespaces']);
    expect(found).toMatchObject({ code: 0, ok: true, backend: 'namespaces', engines: { docker: null } });
    const { facts, state } = finding(found, 'namespaces');
    expect(state).toBe('ok');
    expect(facts).toMatchObject({ tier: 'full', state: expect.any(String) });
    isTimed(finding(found, 'sandboxes.namespaces').facts);
    expect(finding(found, 'disk.state').facts).toMatchObject({ folder: facts.state });
    expect(found.findings.some(({ group }) => group === 'Engine')).toBe(false);
    const again = await report({ env }, ['--backend', 'namespaces']);
    expect(finding(again, 'leftovers.namespaces')).toMatchObject({ state: 'ok', facts: { sandboxes: [] } });
  });
});

describe('doctor on the environment', () => {
  test('names what is set, shows no secret, and knows what is misspelt', async () => {
    const env = { COFFERDAM_MCP_TOKEN: 'hush', COFFERDAM_BACKENDS: 'docker', DOCKER_HOST: 'tcp://me:hush@127.0.0.1:1' };
    const { stdout } = await doctor([], { env });
    expect(stdout).not.toContain('hush@');
    expect(stdout).not.toContain('=hush');
    expect(stdout).toContain('COFFERDAM_MCP_TOKEN=(hidden)');
    expect(stdout).toMatch(/! COFFERDAM_BACKENDS means nothing.*\n +unset COFFERDAM_BACKENDS\n/);
  });

  test.each([
    ['COFFERDAM_BACKEND', 'dcoker', /unknown backend "dcoker" \(from COFFERDAM_BACKEND\)/],
    ['COFFERDAM_IDLE_TIMEOUT', 'soon', /COFFERDAM_IDLE_TIMEOUT must be a time/],
  ])('%s=%s keeps sandboxes from opening: take it away', async (name, value, cause) => {
    const found = await report({ env: { [name]: value } });
    expect(found).toMatchObject({ code: 1, ok: false });
    expect(finding(found, `environment.${name}`)).toMatchObject({
      state: 'problem',
      text: expect.stringMatching(cause),
      cure: `unset ${name}`,
    });
  });

  test('a docker context that does not exist', async () => {
    const found = await report({ env: { DOCKER_CONTEXT: 'gone' } });
    expect(finding(found, 'environment.context')).toMatchObject({ state: 'warning', cure: 'unset DOCKER_CONTEXT' });
  });
});

describeAsRoot('doctor without the native addon', () => {
  test('says why, and how to get it', async () => {
    using installed = new Installed({ addon: false });
    expect(existsSync(installed.main) && readdirSync(installed.folder).some((name) => name.endsWith('.node'))).toBe(
      false,
    );
    const found = await report({ main: installed.main });
    expect(found).toMatchObject({ code: 1, ok: false, backend: null });
    expect(finding(found, 'addon')).toMatchObject({
      state: 'problem',
      text: expect.stringMatching(/^the native addon cannot be loaded: .*linux-/),
      cure: expect.stringMatching(/^npm install .*cofferdam/),
    });
  });
});
