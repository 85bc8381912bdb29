/**
 * Fields that go by two names. A program finds both; a serialiser, and so a model, sees the first alone: a file's content is
 * long enough once.
 */
export function alsoCalled<T extends object>(result: T, names: Record<string, keyof T & string>): T {
  for (const [name, field] of Object.entries(names)) {
    Object.defineProperty(result, name, { value: result[field], enumerable: false, configurable: true });
  }
  return result;
}
