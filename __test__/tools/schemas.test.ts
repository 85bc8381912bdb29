import Ajv from 'ajv';
import Ajv2020 from 'ajv/dist/2020';
import { toolDefinitions, toolSchemas } from 'cofferdam/tools';
import { z } from 'zod';

const NAMES = [
  'sandbox_run',
  'sandbox_open',
  'sandbox_exec',
  'sandbox_exec_read',
  'sandbox_exec_wait',
  'sandbox_fs_write',
  'sandbox_fs_read',
  'sandbox_fs_list',
  'sandbox_fs_edit',
  'sandbox_fs_search',
  'sandbox_fs_delete',
  'sandbox_stage_file',
  'sandbox_publish_file',
  'sandbox_close',
];

/** Inputs that say something to at least one tool, right and wrong. */
const INPUTS: unknown[] = [
  {},
  [],
  null,
  'text',
  7,
  { path: 'a' },
  { path: 7 },
  { path: 'a', content: 'x' },
  { path: 'a', content: ['x'] },
  { path: 'a', contents: 'x' },
  { path: 'a', contents_b64: 'AA==' },
  { path: 'a', content: 'x', encoding: 'utf9' },
  { path: 'a', mode: '0755' },
  { path: 'a', mode: 'rwx' },
  { path: 'a', overwrite: 'yes' },
  { path: 'a', recursive: true },
  { path: 'a', recursive: 1 },
  { path: 'a', from_line: 0 },
  { path: 'a', from_line: 1.5 },
  { path: 'a', max_bytes: 10 },
  { path: 'a', max_bytes: -1 },
  { path: 'a', old_text: 'x', new_text: 'y' },
  { path: 'a', old_text: '', new_text: 'y' },
  { command: 'ls' },
  { command: ['ls', '-l'] },
  { command: 7 },
  { command: ['ls', 7] },
  { cmd: ['ls'] },
  { command: 'ls', timeout_seconds: 0 },
  { command: 'ls', timeout_seconds: 0.5 },
  { command: 'ls', timeout_seconds: 10 ** 9 },
  { command: 'ls', env: { A: 'b' } },
  { command: 'ls', env: { A: 7 } },
  { command: 'ls', env: ['A=b'] },
  { command: 'ls', stream: true, sandbox_id: 'sbx_1' },
  { command: 'ls', sandbox_id: 7 },
  { command: 'ls', session_id: 'workflow:a:default' },
  { exec_id: 'exec_1' },
  { exec_id: 'exec_1', since_seq: 3, max_chunks: 2 },
  { exec_id: 'exec_1', since_seq: -1 },
  { exec_id: 7 },
  { code: 'print(1)' },
  { code: 'print(1)', runtime: 'node', files: { a: 'b' }, args: ['x'], artifacts: ['*.csv'] },
  { code: 'print(1)', runtime: 'cobol' },
  { code: 'print(1)', files: { a: 7 } },
  { image: 'python', session: 'x' },
  { image: 7 },
  { session_key: 'x' },
  { pattern: 'x', glob: '*.ts', context_lines: 2 },
  { pattern: 'x', context_lines: 100 },
  { key: 'files/f_1' },
  { key: '' },
];

describe('the tools’ schemas', () => {
  test('are those of all tools, in a fixed order', () => {
    expect(toolDefinitions.map(({ name }) => name)).toEqual(NAMES);
    expect(Object.keys(toolSchemas)).toEqual(NAMES);
  });

  test.each(toolDefinitions)('of $name are JSON Schemas of objects, by both drafts in use', (definition) => {
    for (const schema of [definition.inputSchema, definition.outputSchema]) {
      expect(schema.type).toBe('object');
      expect(new Ajv({ strict: true, strictTypes: false }).validateSchema(schema)).toBe(true);
      expect(new Ajv2020({ strict: true, strictTypes: false }).validateSchema(schema)).toBe(true);
      expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
    }
  });

  test.each(toolDefinitions)(
    'of $name take and refuse the same, as Zod and as JSON Schema',
    ({ name, inputSchema }) => {
      const validate = new Ajv().compile(inputSchema);
      for (const input of INPUTS) {
        const verdicts = { input, zod: toolSchemas[name]?.input.safeParse(input).success, ajv: validate(input) };
        expect(verdicts).toEqual({ input, zod: verdicts.ajv, ajv: verdicts.ajv });
      }
    },
  );

  test.each(toolDefinitions)(
    'of $name are small, and every field a model must understand is described',
    (definition) => {
      expect(definition.description.length).toBeGreaterThan(40);
      expect(JSON.stringify(definition.inputSchema).length).toBeLessThan(1_000);
      expect(JSON.stringify(definition)).not.toContain('$schema');
      const properties = Object.entries(definition.inputSchema.properties as Record<string, { description?: string }>);
      const plain = ['max_chunks', 'ignore_case', 'timeout_seconds'];
      for (const [field, { description }] of properties) {
        expect({ field, isClear: description !== undefined || plain.includes(field) }).toEqual({
          field,
          isClear: true,
        });
      }
    },
  );

  test.each([
    ['sandbox_exec', { cmd: ['ls'], workdir: '/tmp' }],
    ['sandbox_fs_write', { path: 'a', contents: 'x' }],
    ['sandbox_fs_write', { path: 'a', contents_b64: 'AA==' }],
    ['sandbox_open', { session_key: 'x' }],
    ['sandbox_fs_read', { session_id: 'x', path: 'a' }],
  ])('of %s let the other names through: %j', (name, input) => {
    const { inputSchema } = toolDefinitions.find((tool) => tool.name === name) as (typeof toolDefinitions)[number];
    // As frameworks set it up that drop what a schema does not name.
    const validate = new Ajv({ removeAdditional: true }).compile(inputSchema);
    const given = structuredClone(input);
    expect(validate(given)).toBe(true);
    expect(given).toEqual(input);
    expect(toolSchemas[name]?.input.parse(input)).toEqual(input);
  });

  test('can be made into JSON Schemas by a framework that is given Zod', () => {
    for (const { name, inputSchema } of toolDefinitions) {
      const made = z.toJSONSchema(toolSchemas[name]?.input as z.ZodObject, { io: 'input' });
      expect(Object.keys(made.properties ?? {})).toEqual(Object.keys(inputSchema.properties as object));
    }
  });
});
