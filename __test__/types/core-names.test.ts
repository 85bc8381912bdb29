import { readFileSync } from 'node:fs';
import path from 'node:path';
import { DEFAULT_IMAGE, DEFAULT_WORKDIR, IMAGE_SHORTCUTS, MAIN_SHORTCUTS } from '../../ts/internal/images';

const read = (file: string) => readFileSync(path.resolve(__dirname, '../..', file), 'utf8');
const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, found]) => found);

describe('names that the core and the types share', () => {
  test('error codes, in the order of the core', () => {
    const inCore = all(read('crates/core/src/error.rs'), /^ {4}\w+ = "([A-Z_]+)",$/gm);
    const inTypes = all(read('ts/errors.ts'), /^ {2}\| '([A-Z_]+)'/gm);
    expect(inCore).toContain('COMMAND_FAILED');
    expect(inTypes).toEqual(inCore);
  });

  test('shortcuts of images, and what an open() without an image or a workdir has', () => {
    const source = read('crates/core/src/image.rs');
    const arms = [...source.matchAll(/^\s+((?:"\w+"(?: \| )?)+) => "([^"]+)",$/gm)];
    const inCore = arms.flatMap(([, names = '', image]) => all(names, /"(\w+)"/g).map((name) => [name, image]));
    expect(inCore.length).toBeGreaterThan(0);
    expect(Object.entries(IMAGE_SHORTCUTS)).toEqual(inCore);
    expect(MAIN_SHORTCUTS).toEqual(['linux', 'python', 'node']);
    expect(all(source, /DEFAULT_IMAGE: &str = "(\w+)"/g)).toEqual([DEFAULT_IMAGE]);
    expect(all(read('crates/core/src/options.rs'), /DEFAULT_WORKDIR: &str = "([^"]+)"/g)).toEqual([DEFAULT_WORKDIR]);
  });
});
