import { createFakeManager } from 'cofferdam/testing';
import { toolDefinitions } from 'cofferdam/tools';
import { describeWithEngine, testManager } from '../support';
import { done, refused, tools } from './toolbox';

/** Right inputs, each of which is then made wrong in one field. */
const RIGHT: Record<string, Record<string, unknown>> = {
  sandbox_run: { code: 'print(1)' },
  sandbox_open: {},
  sandbox_exec: { command: 'true' },
  sandbox_exec_read: { exec_id: 'exec_1' },
  sandbox_exec_wait: { exec_id: 'exec_1' },
  sandbox_fs_write: { path: 'a', content: 'x' },
  sandbox_fs_read: { path: 'a' },
  sandbox_fs_list: {},
  sandbox_fs_edit: { path: 'a', old_text: 'x', new_text: 'y' },
  sandbox_fs_search: { glob: '*' },
  sandbox_fs_delete: { path: 'a' },
  sandbox_stage_file: { key: 'files/f_1' },
  sandbox_publish_file: { path: 'a' },
  sandbox_close: {},
};

function nested(depth: number): unknown {
  let value: unknown = [];
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}

const HUGE = 'x'.repeat(5_000_000);

const fieldsOf = (name: string) =>
  Object.entries(
    (toolDefinitions.find((tool) => tool.name === name)?.inputSchema.properties ?? {}) as Record<
      string,
      { type?: string }
    >,
  );

const CASES = toolDefinitions.flatMap(({ name }) =>
  fieldsOf(name).map(([field, { type }]) => [name, field, type ?? 'string or array'] as const),
);

describeWithEngine('whatever a model writes', () => {
  const manager = testManager({ store: { type: 'memory' } });
  const [code, compute] = [tools(manager), tools(manager, { mode: 'compute' })];
  const toolset = (name: string) => (name === 'sandbox_run' ? compute : code);

  afterEach(async () => {
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test.each(Object.keys(RIGHT))('%s answers an input that is no object', async (name) => {
    for (const input of ['text', 7, true, [], [{}], Symbol('s'), () => {}, 1n, HUGE]) {
      const failure = await refused(toolset(name), name, input);
      expect(failure).toMatchObject({ code: 'INVALID_ARGUMENT', error: expect.stringContaining('must be an object') });
    }
  });

  test.each(CASES)('%s says that %s, which is a %s, is something else', async (name, field, type) => {
    const others = [7.5, true, 'text', { a: { b: 1 } }, nested(100_000), [7], -1, Number.NaN, 10 ** 400];
    const wrong = others.filter((value) => {
      if (type === 'boolean') return typeof value !== 'boolean';
      if (type === 'string') return typeof value !== 'string';
      if (type === 'number' || type === 'integer') return typeof value !== 'number' || !(value >= 0);
      if (type === 'string or array') return typeof value !== 'string';
      return typeof value !== 'object' || Array.isArray(value) !== (type === 'array') || !Array.isArray(value);
    });
    expect(wrong.length).toBeGreaterThan(3);
    for (const value of wrong) {
      const failure = await refused(toolset(name), name, { ...RIGHT[name], [field]: value });
      expect(failure.code).toBe('INVALID_ARGUMENT');
      expect(failure.error).toContain(field);
    }
  });

  test.each(Object.keys(RIGHT))('%s is not changed by keys of an object’s own machinery', async (name) => {
    const input = JSON.parse('{"__proto__": {"polluted": 1, "path": "/etc/passwd"}, "constructor": {"prototype": 1}}');
    const result = await toolset(name).call(name, { ...RIGHT[name], ...input, unknown_field: nested(100_000) });
    expect(JSON.stringify(result)).not.toContain('/etc/passwd');
  });

  test.each([
    ['sandbox_exec', { command: 'true', env: JSON.parse('{"__proto__": "x"}') }, 'env'],
    ['sandbox_run', { code: '1', env: JSON.parse('{"__proto__": "x"}') }, 'env'],
    ['sandbox_run', { code: '1', files: JSON.parse('{"__proto__": "x"}') }, 'files'],
  ])('%s refuses such a key where names are free: %j', async (name, input, field) => {
    const failure = await refused(toolset(name), name, input);
    expect(failure).toMatchObject({ code: 'INVALID_ARGUMENT', error: expect.stringContaining(field) });
  });

  test.each([
    ['sandbox_fs_read', { path: HUGE }],
    ['sandbox_fs_delete', { path: HUGE, recursive: true }],
    ['sandbox_fs_list', { path: HUGE }],
    ['sandbox_exec', { command: ['true'], cwd: HUGE }],
    ['sandbox_exec', { command: 'true', sandbox_id: HUGE }],
    ['sandbox_exec_read', { exec_id: HUGE }],
    ['sandbox_exec_wait', { exec_id: HUGE }],
    ['sandbox_open', { session: HUGE }],
    ['sandbox_open', { session: 'big', image: HUGE }],
    ['sandbox_fs_edit', { path: 'a', old_text: HUGE, new_text: HUGE }],
    ['sandbox_fs_search', { pattern: HUGE }],
    ['sandbox_fs_search', { glob: HUGE }],
    ['sandbox_stage_file', { key: HUGE }],
    ['sandbox_publish_file', { path: 'a', key: HUGE }],
  ])('%s answers five million characters in a few words: %#', async (name, input) => {
    await done(code, 'sandbox_fs_write', { path: 'a', content: 'x' });
    await refused(code, name, input);
  });

  test('a long file is written whole', async () => {
    expect(await done(code, 'sandbox_fs_write', { path: 'huge', content: HUGE })).toMatchObject({
      size_bytes: HUGE.length,
    });
    const { content, truncated } = await done(code, 'sandbox_fs_read', { path: 'huge' });
    expect(truncated && (content as string).length <= 64 * 1024).toBe(true);
  });

  test.each([
    ['NUL', 'a\0b'],
    ['half of a pair', 'a\ud800b'],
    ['nothing', ''],
  ])('every field of text answers %s with a failure or carries it out, and never throws', async (_, text) => {
    for (const [name, field, type] of CASES) {
      if (type !== 'string') continue;
      const result = await toolset(name).call(name, { ...RIGHT[name], [field]: text });
      expect({ name, field, kind: typeof result }).toEqual({ name, field, kind: 'object' });
      expect(JSON.stringify(result)).not.toMatch(/\n\s+at |\.[jt]s:\d/);
    }
    expect(await done(code, 'sandbox_exec', { command: 'echo alive' })).toMatchObject({ stdout: 'alive\n' });
  });

  test('an input whose fields cannot be read is a fault of the host, and an answer all the same', async () => {
    const trap = new Proxy(
      {},
      {
        getOwnPropertyDescriptor() {
          throw new Error('secret of the host');
        },
      },
    );
    const failure = await refused(code, 'sandbox_exec', trap);
    expect(failure.code).toBe('INTERNAL');
    expect(JSON.stringify(failure)).not.toContain('secret of the host');
  });

  test('nothing of the host’s environment is in a sandbox', async () => {
    process.env.COFFERDAM_TEST_SECRET = 'secret-of-the-host';
    try {
      const { stdout } = await done(tools(manager), 'sandbox_exec', { command: 'env; cat /proc/1/environ' });
      expect(stdout).not.toContain('secret-of-the-host');
    } finally {
      delete process.env.COFFERDAM_TEST_SECRET;
    }
  });

  test.each(['/', '/root', ' /etc', './x', '../x', '~/x', 'oci:/srv/image', 'docker-archive:./x.tar'])(
    'sandbox_open takes no folder or file of the host for an image: %s',
    async (image) => {
      const failure = await refused(code, 'sandbox_open', { session: 'root', image });
      expect(failure).toMatchObject({ code: 'IMAGE_NOT_ALLOWED', hint: expect.stringContaining('alpine:3.19') });
    },
  );
});

describe('an error', () => {
  test.each(['engine', 'store'])('that the core marks as quoting the %s is not quoted to a model', async (origin) => {
    const message = 'refused by 10.0.0.7';
    const error = { code: 'INVALID_ARGUMENT', message, details: { origin } } as const;
    const plain = { code: 'INVALID_ARGUMENT', message } as const;
    const manager = createFakeManager({
      exec: [
        { command: 'ask', error },
        { command: 'say', error: plain },
      ],
    });
    const own = tools(manager);
    expect((await refused(own, 'sandbox_exec', { command: 'say' })).error).toBe(message);
    expect(JSON.stringify(await refused(own, 'sandbox_exec', { command: 'ask' }))).not.toContain('10.0.0.7');
    await manager.close();
  });
});
