import { SandboxError } from 'cofferdam';
import { parseSandboxConfig } from 'cofferdam/frontmatter';

function fault(source: unknown): SandboxError {
  try {
    parseSandboxConfig(source as string);
  } catch (error) {
    expect(error).toBeInstanceOf(SandboxError);
    expect((error as SandboxError).code).toBe('INVALID_ARGUMENT');
    expect((error as SandboxError).message.length).toBeLessThan(600);
    return error as SandboxError;
  }
  throw new Error('it was taken');
}

describe('a wrong configuration', () => {
  test.each([
    ['mode: chat', 'sandbox.mode must be "compute" or "code", not "chat"'],
    [
      'runtime: cobol',
      'sandbox.runtime must be one of python, node, bash, linux, shell (name an image with "image"), not "cobol"',
    ],
    [
      'runtime: 7',
      'sandbox.runtime must be one of python, node, bash, linux, shell (name an image with "image"), not 7',
    ],
    ['image: [a]', 'sandbox.image must be a string of 1 to 500 characters, not a list'],
    ['image: ""', 'sandbox.image must be a string of 1 to 500 characters, not ""'],
    ['session: 5', 'sandbox.session must be a string of 1 to 500 characters, not 5'],
    ['timeout_seconds: "300"', 'sandbox.timeout_seconds must be a whole number from 1 to 86400, not "300"'],
    ['timeout_seconds: 0', 'sandbox.timeout_seconds must be a whole number from 1 to 86400, not 0'],
    ['timeout_seconds: 1.5', 'sandbox.timeout_seconds must be a whole number from 1 to 86400, not 1.5'],
    ['timeout_seconds: .inf', 'sandbox.timeout_seconds must be a whole number from 1 to 86400, not Infinity'],
    ['timeout_seconds: .nan', 'sandbox.timeout_seconds must be a whole number from 1 to 86400, not NaN'],
    ['max_stdout_bytes: 5', 'sandbox.max_stdout_bytes must be a whole number from 100 to 1099511627776, not 5'],
    ['limits: 5', 'sandbox.limits must be a map, not 5'],
    ['limits:\n  - 5', 'sandbox.limits must be a map, not a list'],
    ['limits: {memory_mb: 1}', 'sandbox.limits.memory_mb must be a whole number from 16 to 1099511627776, not 1'],
    ['limits: {cpu_millicores: -1}', 'sandbox.limits.cpu_millicores must be a whole number from 10 to 1000000, not -1'],
    ['network: on', 'sandbox.network must be true or false, not "on"'],
    ['network: {enabled: 1}', 'sandbox.network.enabled must be true or false, not 1'],
    [
      'network: true\nallow_network: false',
      'sandbox.allow_network must be the same as network, which is true, not false',
    ],
    ['pip_packages: pandas', 'sandbox.pip_packages must be a list of package names, not "pandas"'],
    ['pip_packages: [pandas, 7]', 'sandbox.pip_packages.1 must be a string of 1 to 500 characters, not 7'],
    [
      'pip_packages: ["--index-url=http://x"]',
      'sandbox.pip_packages.0 must be a package name, not "--index-url=http://x"',
    ],
  ])('%j says the field, the value and what is allowed', (yaml, message) => {
    const line = yaml.includes('\nallow_network') ? 2 : 1;
    expect(fault(yaml).message).toBe(`line ${line}: ${message}`);
  });

  test.each([
    ['timeout: 5', 'timeout', 'did you mean "timeout_seconds"?'],
    ['timeoutSeconds: 5', 'timeoutSeconds', 'did you mean "timeout_seconds"?'],
    ['Runtime: python', 'Runtime', 'did you mean "runtime"?'],
    ['pip-packages: []', 'pip-packages', 'did you mean "pip_packages"?'],
    ['limits: {memory: 5}', 'limits.memory', 'did you mean "memory_mb"?'],
    ['limits: {cpus: 5}', 'limits.cpus', 'the fields are: cpu_millicores, memory_mb'],
    ['volumes: [a]', 'volumes', 'the fields are: mode, runtime'],
    ['__proto__: {mode: code}', '__proto__', 'the fields are: mode'],
    ['constructor: {mode: code}', 'constructor', 'the fields are: mode'],
  ])('%j has an unknown field, and says what was meant', (yaml, field, words) => {
    const { message, details } = fault(yaml);
    expect(message).toContain(`line 1: there is no field sandbox.${field};`);
    expect(message).toContain(words);
    expect(details).toEqual({ field: `sandbox.${field}`, line: 1 });
  });

  test('says the line in the file, not in the front matter', () => {
    const prompt = '---\nmodel: x\nsandbox:\n  mode: code\n  limits:\n    memory_mb: lots\n---\ntext\n';
    expect(fault(prompt).message).toMatch(/^line 6: sandbox\.limits\.memory_mb must be .*, not "lots"$/);
    expect(fault(`\n\n${prompt}`).details).toEqual({ field: 'sandbox.limits.memory_mb', line: 8 });
    const list = 'mode: code\npip_packages:\n  - a\n  - 7\nvolumes:\n\n  - x\n';
    expect(fault(list.replace('- 7', '- b')).details).toEqual({ field: 'sandbox.volumes', line: 5 });
    expect(fault(list.replace('volumes', 'npm_packages')).details).toEqual({
      field: 'sandbox.pip_packages.1',
      line: 4,
    });
    expect(fault(prompt.replaceAll('\n', '\r\n')).details).toMatchObject({ line: 6 });
    expect(fault('---\na: 1\nb: [1\n---\n').message).toMatch(/^line \d: not valid YAML: /);
    expect(fault('---\na: 1\na: 2\n---\n').message).toMatch(/^line 3: not valid YAML: .*unique/);
  });

  test('says the same of an object, without a line', () => {
    expect(fault({ sandbox: { mode: 'chat' } }).message).toBe('sandbox.mode must be "compute" or "code", not "chat"');
    expect(fault({ sandbox: { mod: 'code' } }).message).toContain(
      'there is no field sandbox.mod; did you mean "mode"?',
    );
    expect(fault(JSON.parse('{"__proto__": {"mode": "code"}}')).message).toContain('sandbox.__proto__');
    expect(({} as { mode?: string }).mode).toBeUndefined();
  });

  test.each([
    ['nothing', ''],
    ['a prompt without front matter', 'You are a developer with access to a sandbox.'],
    ['an unknown word', 'cobol'],
    ['a list', '- python'],
    ['a number', '7'],
    ['an empty sandbox', 'sandbox:'],
    ['a sandbox that is true', 'sandbox: true'],
    ['two documents', 'sandbox: python\n---\nsandbox: node\n...\n---\nx: 1'],
    ['an array', ['python']],
    ['null', null],
    ['undefined', undefined],
    ['a function', () => 'python'],
    ['a number', 7],
    ['an inherited field', Object.create({ sandbox: 'python' }, { mode: { value: 'chat', enumerable: true } })],
    ['a name with half of a pair', { image: 'a\ud800' }],
    ['a very long name', { session: 'x'.repeat(100_000) }],
    ['a very long field', { ['x'.repeat(100_000)]: 1 }],
    ['a function of YAML’s', 'runtime: !!js/function "python"\nmode: 7'],
  ])('that is %s is refused', (_, source) => {
    expect(fault(source).message).toMatch(/sandbox|YAML/);
  });
});

describe('a hostile configuration', () => {
  const levels = 'abcdefghi'.split('');
  const bomb = levels
    .map(
      (name, index) =>
        `${name}: &${name} [${Array(9)
          .fill(index === 0 ? 'lol' : `*${levels[index - 1]}`)
          .join(', ')}]`,
    )
    .join('\n');

  test.each([
    ['aliases of aliases', `${bomb}\nsandbox: *i`],
    ['aliases of aliases in a field', `${bomb}\nsandbox: {pip_packages: *i}`],
    ['an alias of itself', 'sandbox: &a {limits: *a}'],
    ['brackets', '['.repeat(30_000)],
    ['brackets that close in strings', '[ "]", '.repeat(4_000)],
    ['braces', '{a: '.repeat(8_000)],
    ['dashes', '- '.repeat(16_000)],
    ['question marks', '? '.repeat(16_000)],
    ['question marks in brackets', `[${'?\n'.repeat(15_000)}`],
    ['colons', 'a: '.repeat(10_000)],
    ['colons alone', ': '.repeat(16_000)],
    ['indentation', Array.from({ length: 250 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n')],
    [
      'dashes in many lines',
      Array.from({ length: 50 }, (_, depth) => ' '.repeat(depth * 10) + '- '.repeat(5)).join('\n'),
    ],
    ['anchors', '&a '.repeat(10_000)],
    ['tags', '!x '.repeat(10_000)],
    ['length', `sandbox: ${'x'.repeat(40_000)}`],
    ['much length', 'x: y\n'.repeat(4_000_000)],
    ['front matter of much length', `---\n${'x: y\n'.repeat(1_000_000)}---\n`],
    ['marks without end', `---\n${'--- x\n'.repeat(1_000_000)}`],
  ])('of %s is an error like any other', (_, source) => {
    const started = process.cpuUsage();
    fault(source);
    const { user, system } = process.cpuUsage(started);
    // A guard against what grows without bound, not a measure.
    expect((user + system) / 1_000_000).toBeLessThan(10);
  });

  test('does not matter where it is in a part that is not asked for', () => {
    expect(parseSandboxConfig(`${bomb}\nsandbox: python`)).toMatchObject({ runtime: 'python' });
  });

  test('changes no object of the program', () => {
    for (const source of ['sandbox:\n  __proto__:\n    polluted: 1', '__proto__:\n  polluted: 1\nsandbox: python']) {
      try {
        parseSandboxConfig(source);
      } catch {}
    }
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  test('of a long prompt after its front matter is read at once', () => {
    const prompt = `---\nsandbox: python\n---\n${'text --- text\n'.repeat(1_000_000)}`;
    expect(parseSandboxConfig(prompt)).toMatchObject({ runtime: 'python' });
  });
});
