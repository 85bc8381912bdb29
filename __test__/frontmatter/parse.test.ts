import { findSandboxConfig, parseSandboxConfig } from 'cofferdam/frontmatter';

const plain = (runtime: string) => ({ mode: 'compute', runtime, limits: {}, network: false, packages: {} });

const FULL = `
sandbox:
  mode: code
  runtime: python
  image: "python:3.11-slim"
  session: build
  limits:
    cpu_millicores: 1500
    memory_mb: 2048
    timeout_seconds: 900
    workspace_mb: 500
    max_file_size_bytes: 10485760
    max_files: 100
  network:
    enabled: true
  timeout_seconds: 300
  max_stdout_bytes: 200000
  pip_packages: [pandas, pyyaml==6.0]
  npm_packages:
    - left-pad@1
  apt_packages: []
`;

const FULL_CONFIG = {
  mode: 'code',
  runtime: 'python',
  image: 'python:3.11-slim',
  session: 'build',
  limits: { cpus: 1.5, memoryMb: 2048, workspaceMb: 500 },
  idleTimeoutMs: 900_000,
  maxFileBytes: 10_485_760,
  maxFiles: 100,
  network: true,
  timeoutMs: 300_000,
  maxOutputBytes: 200_000,
  packages: { pip: ['pandas', 'pyyaml==6.0'], npm: ['left-pad@1'], apt: [] },
};

describe('parseSandboxConfig', () => {
  test.each([
    ['a word', 'python'],
    ['a word with space around it', '  python \n'],
    ['YAML', 'sandbox: python'],
    ['YAML with a document’s mark', '---\nsandbox: python\n'],
    ['YAML without the key', 'runtime: python'],
    ['JSON, which is YAML', '{"sandbox": {"runtime": "python", "mode": "compute"}}'],
    [
      'a prompt file',
      '---\nmodel: openai/gpt-4o\nmetadata:\n  name: "Data Analyst"\nsandbox: python\n---\n\nYou are…\n',
    ],
    ['a prompt file with CRLF', '---\r\nmodel: x\r\nsandbox: python\r\n---\r\nYou are…\r\n'],
    ['a prompt file with a byte order mark', '\uFEFF---\nsandbox: python\n---\n'],
    ['a prompt file after empty lines', '\n \n---\nsandbox:\n  runtime: python\n---\ntext'],
    ['a prompt file without a prompt', '---\nsandbox: python\n---'],
    ['a prompt with lines like marks', '---\nsandbox: python\n---\ntext\n---\nsandbox: {{{ not yaml\n---\n'],
    ['an object', { runtime: 'python' }],
    ['an object with the key', { model: 'x', sandbox: 'python' }],
    ['an object with both', { sandbox: { runtime: 'python' } }],
    ['an object without a prototype', Object.assign(Object.create(null), { sandbox: 'python' })],
    ['nothing but an empty map', 'sandbox: {}'],
  ])('reads %s', (_, source) => {
    expect(parseSandboxConfig(source)).toEqual(plain('python'));
  });

  test('reads every field, in the terms of this package', () => {
    expect(parseSandboxConfig(FULL)).toEqual(FULL_CONFIG);
    expect(parseSandboxConfig(`---\nmodel: x${FULL}---\nYou are a developer.`)).toEqual(FULL_CONFIG);
  });

  test.each(['python', 'node', 'bash', 'linux', 'shell'])('knows the runtime %s by its name alone', (runtime) => {
    expect(parseSandboxConfig(runtime)).toEqual(plain(runtime));
    expect(parseSandboxConfig({ sandbox: runtime })).toEqual(plain(runtime));
  });

  test('has compute mode with python, and code mode with linux, by default', () => {
    expect(parseSandboxConfig({})).toEqual(plain('python'));
    expect(parseSandboxConfig('mode: code')).toEqual({ ...plain('linux'), mode: 'code' });
    expect(parseSandboxConfig({ mode: 'code', runtime: 'golang:1.22' })).toMatchObject({ runtime: 'golang:1.22' });
  });

  test.each([
    ['workflow', { share: 'workflow' }],
    ['agent', { share: 'agent' }],
    ['default', { session: 'default' }],
    ['isolated', { session: 'isolated' }],
    ['build', { session: 'build' }],
  ])('takes session: %s in the sense of either habit', (session, expected) => {
    expect(parseSandboxConfig({ mode: 'code', session })).toEqual({ ...plain('linux'), mode: 'code', ...expected });
  });

  test.each([
    ['network:\n  enabled: true', true],
    ['network: true', true],
    ['allow_network: true', true],
    ['network: {enabled: true}\nallow_network: true', true],
    ['network: {}', false],
    ['network:', false],
    ['allow_network: false', false],
  ])('takes %j for network', (yaml, network) => {
    expect(parseSandboxConfig(`runtime: bash\n${yaml}`)).toEqual({ ...plain('bash'), network });
  });

  test('takes an empty field as one that is not there', () => {
    expect(parseSandboxConfig('runtime: node\nimage:\nlimits:\npip_packages:\nsession: ~')).toEqual(plain('node'));
  });

  test('takes the limit of time as that of the run where there is no session', () => {
    expect(parseSandboxConfig({ limits: { timeout_seconds: 60 } })).toEqual({ ...plain('python'), timeoutMs: 60_000 });
    const both = { timeout_seconds: 10, limits: { timeout_seconds: 60 } };
    expect(parseSandboxConfig(both)).toEqual({ ...plain('python'), timeoutMs: 10_000 });
    expect(parseSandboxConfig({ mode: 'code', ...both })).toMatchObject({ timeoutMs: 10_000, idleTimeoutMs: 60_000 });
  });

  test('takes aliases of YAML as they are meant', () => {
    const yaml = 'defaults: &box {runtime: node, timeout_seconds: 5}\nsandbox: *box';
    expect(parseSandboxConfig(yaml)).toEqual({ ...plain('node'), timeoutMs: 5_000 });
  });

  test('tells a prompt that asks for no sandbox from one that asks for a wrong one', () => {
    const prompt = '---\nmodel: x\n---\nYou are a poet.';
    expect(findSandboxConfig(prompt)).toBeUndefined();
    expect(findSandboxConfig('You are a poet. Note: sandbox: python\n')).toBeUndefined();
    expect(findSandboxConfig('x'.repeat(1_000_000))).toBeUndefined();
    expect(() => parseSandboxConfig(prompt)).toThrow('has no "sandbox"');
    expect(findSandboxConfig('---\nsandbox: node\n---\n')).toEqual(plain('node'));
    expect(() => findSandboxConfig('---\nsandbox: nod\n---\n')).toThrow('nod');
  });
});
