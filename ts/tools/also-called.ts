/**
 * Fields with two names. Programs can read both. Serialisers, and so models, see only the first: a file's content is long
 * enough once.
 */
export function alsoCalled<T extends object>(result: T, names: Record<string, keyof T & string>): T {
  for (const [name, field] of Object.entries(names)) {
    Object.defineProperty(result, name, { value: result[field], enumerable: false, configurable: true });
  }
  return result;
}
