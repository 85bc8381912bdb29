/**
 * Finds the configuration in its source: a word, YAML, a prompt file with front matter, or an object. Finds the line of a
 * field.
 *
 * Invariant: the source may be hostile. Aliases are expanded only up to a limit, nothing long or deep is parsed, and only the
 * `sandbox` part becomes values.
 */
import { isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { SandboxError } from '../errors';
import { isShallow } from './nesting';

const MAX_YAML_BYTES = 32 * 1024;

/** The value, and the line of each field, where there are lines. */
export interface Found {
  value: unknown;
  lineOf(path: readonly (string | number)[]): number | undefined;
}

/** `undefined` when front matter has no `sandbox`. */
export function find(source: unknown): Found | undefined {
  if (typeof source === 'string') return findInText(source);
  if (typeof source !== 'object' || source === null) {
    throw fault(
      `the sandbox configuration must be a string or an object, not ${source === null ? 'null' : typeof source}`,
    );
  }
  const value = Object.hasOwn(source, 'sandbox') ? (source as { sandbox: unknown }).sandbox : source;
  return { value, lineOf: () => undefined };
}

/** In a prompt file: `undefined` when it has no front matter, or no `sandbox` in it. */
export function findInPrompt(prompt: string): Found | undefined {
  return frontMatter(withoutMark(prompt)) && findInText(prompt);
}

function withoutMark(text: string): string {
  return text.startsWith('\uFEFF') ? text.slice(1) : text;
}

function findInText(source: string): Found | undefined {
  const text = withoutMark(source);
  const block = frontMatter(text);
  const yaml = block?.text ?? text;
  if (yaml.length > MAX_YAML_BYTES) {
    throw fault(
      `the YAML of a sandbox configuration may have at most ${MAX_YAML_BYTES} characters, not ${yaml.length}`,
    );
  }
  return findInYaml(yaml, block?.firstLine ?? 1, block !== undefined);
}

/** The text between the first line, `---`, and the next such line. */
function frontMatter(text: string): { text: string; firstLine: number } | undefined {
  const opening = /^(?:[ \t]*\r?\n)*---[ \t]*\r?\n/.exec(text);
  if (opening === null) return undefined;
  const start = opening[0].length;
  const closing = /^---[ \t]*\r?$/gm;
  closing.lastIndex = start;
  const end = closing.exec(text);
  // A single such line starts a YAML document.
  if (end === null) return undefined;
  return { text: text.slice(start, end.index), firstLine: opening[0].split('\n').length };
}

function findInYaml(yaml: string, firstLine: number, isPart: boolean): Found | undefined {
  const lines = new LineCounter();
  const lineAt = (offset: number) => lines.linePos(offset).line + firstLine - 1;
  if (!isShallow(yaml)) throw fault('the YAML is nested too deeply for a sandbox configuration');
  const document = parseDocument(yaml, { lineCounter: lines, prettyErrors: false, logLevel: 'error' });
  const [error] = document.errors;
  if (error) throw fault(`line ${lineAt(error.pos[0])}: not valid YAML: ${error.message}`);
  const { contents } = document;
  const hasKey = isMap(contents) && contents.has('sandbox');
  if (isPart && !hasKey) return undefined;
  const node = hasKey ? contents.get('sandbox', true) : contents;
  const at: (string | number)[] = hasKey ? ['sandbox'] : [];
  try {
    const value = isNode(node) ? node.toJS(document, { maxAliasCount: 50 }) : node;
    return {
      value,
      lineOf(path) {
        const field = [...at, ...path];
        const parent = document.getIn(field.slice(0, -1), true);
        const isIt = (key: unknown) => isScalar(key) && key.value === field.at(-1);
        const pair = isMap(parent) ? parent.items.find(({ key }) => isIt(key)) : undefined;
        const there = [pair?.key, document.getIn(field, true), node].find(isNode);
        return there?.range ? lineAt(there.range[0]) : undefined;
      },
    };
  } catch (cause) {
    throw fault(`the YAML cannot be read: ${(cause as Error).message}`);
  }
}

export function fault(message: string, details: Record<string, unknown> = {}): SandboxError {
  return new SandboxError('INVALID_ARGUMENT', message, details);
}
