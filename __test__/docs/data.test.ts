import { parse } from 'yaml';
import { fencesOf, filesIn, pages, textOf } from './pages';

const all = pages.flatMap((page) => fencesOf(page));

/** Everything that a page may show; another language is one that nothing here checks. */
const KNOWN = new Set([
  '',
  'js',
  'ts',
  'tsx',
  'json',
  'yaml',
  'toml',
  'sh',
  'bash',
  'console',
  'md',
  'text',
  'diff',
  'rust',
  'python',
  'dockerfile',
]);

describe('what pages show', () => {
  test.each(all.filter(({ language }) => language === 'json').map((fence) => [fence.page, fence.line, fence] as const))(
    '%s:%d is JSON',
    (_page, _line, { code }) => {
      expect(() => JSON.parse(code)).not.toThrow();
    },
  );

  const yaml = all.filter(({ language }) => language === 'yaml');
  test('is YAML where it says so', () => {
    for (const { page, line, code } of yaml) {
      expect({ page, line, fault: faultOf(() => parse(code)) }).toEqual({ page, line, fault: undefined });
    }
  });

  test('is in a language that is named, so that something checks it', () => {
    const unknown = all.filter(({ language }) => !KNOWN.has(language));
    expect(unknown.map(({ page, line, language }) => `${page}:${line} ${language}`)).toEqual([]);
  });
});

describe('what GitHub reads', () => {
  const forms = filesIn('.github').filter((file) => /ISSUE_TEMPLATE\/(?!config)/.test(file));

  test.each(filesIn('.github').filter((file) => file.endsWith('.yml')))('%s is YAML', (file) => {
    expect(() => parse(textOf(file))).not.toThrow();
  });

  test.each(forms)('%s is a form: named, described, and asking for something', (file) => {
    const { name, description, body } = parse(textOf(file));
    expect([typeof name, typeof description]).toEqual(['string', 'string']);
    const asked = body.filter(({ type }: { type: string }) => type !== 'markdown');
    const ids = asked.map(({ id }: { id: string }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(asked.some(({ validations }: { validations?: { required?: boolean } }) => validations?.required)).toBe(true);
    for (const { attributes } of asked) expect(attributes.label).toMatch(/\w/);
  });
});

describe('CHANGELOG.md', () => {
  const text = textOf('CHANGELOG.md');

  test('is in the form of Keep a Changelog: Unreleased first, then versions with their days', () => {
    const [first, ...others] = [...text.matchAll(/^## (.*)$/gm)].map((match) => match[1] as string);
    expect(first).toBe('[Unreleased]');
    for (const heading of others) expect(heading).toMatch(/^\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}$/);
    const kinds = [...text.matchAll(/^### (.*)$/gm)].map((match) => match[1]);
    const known = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security'];
    expect(kinds.filter((kind) => !known.includes(kind as string))).toEqual([]);
  });
});

function faultOf(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return `${error}`;
  }
}
