import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { PLATFORMS, platformName } from '../../ts/internal/platform';

const run = promisify(execFile);
const ROOT = path.resolve(__dirname, '../..');
const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
const ADDON = `cofferdam.${platformName()}.node`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-packed-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const pack = (...args: string[]) =>
  run(process.execPath, [path.join(ROOT, 'scripts/release/pack.mjs'), ...args], { cwd: ROOT });

async function unpacked(tarball: string) {
  const home = path.join(folder, `${tarball}-unpacked`);
  mkdirSync(home);
  await run('tar', ['-xzf', path.join(folder, tarball), '-C', home]);
  const files = readdirSync(path.join(home, 'package'), { recursive: true, encoding: 'utf8' });
  return { files, json: JSON.parse(readFileSync(path.join(home, 'package/package.json'), 'utf8')) };
}

describe('what is packed', () => {
  beforeAll(async () => {
    // Of any size: the addon of a checkout may be one for debugging.
    await pack(folder, '--addons', ROOT, '--any-size');
  });

  test('of the main package depends on every platform, at its own version', async () => {
    const { json, files } = await unpacked(`cofferdam-${version}.tgz`);
    const wanted = PLATFORMS.map((platform) => [`cofferdam-${platform}`, version]);
    expect(json.optionalDependencies).toEqual(Object.fromEntries(wanted));
    expect(json.scripts).toBeUndefined();
    expect(json.devDependencies).toBeUndefined();
    expect(files.filter((file) => file.endsWith('.node'))).toEqual([]);
    expect(files).toEqual(expect.arrayContaining(['dist/index.js', 'dist/index.d.ts', 'index.mjs', 'LICENSE']));
  });

  test('of a platform is the addon alone, for that platform alone', async () => {
    const { json, files } = await unpacked(`cofferdam-${platformName()}-${version}.tgz`);
    expect(files.sort()).toEqual(['LICENSE', 'README.md', ADDON, 'package.json'].sort());
    expect(json).toMatchObject({ version, os: [process.platform], cpu: [process.arch], main: ADDON });
    expect(json.scripts).toBeUndefined();
  });

  test('can be used by a program', async () => {
    const { stdout } = await run(process.execPath, [path.join(ROOT, 'scripts/release/load.mjs'), folder]);
    expect(stdout).toContain(`runs cofferdam ${version} by ${ADDON}`);
  });
});

describe('packing', () => {
  test('refuses a platform package that is too large', async () => {
    const addons = path.join(folder, 'large');
    mkdirSync(addons);
    writeFileSync(path.join(addons, ADDON), Buffer.alloc(12_000_000));
    await expect(pack(folder, '--addons', addons)).rejects.toThrow(/bytes unpacked, and the limit is 12000000/);
  });

  test('of a whole release refuses to leave out a platform', async () => {
    const addons = path.join(folder, 'lonely');
    mkdirSync(addons);
    copyFileSync(path.join(ROOT, ADDON), path.join(addons, ADDON));
    await expect(pack(folder, '--addons', addons, '--complete')).rejects.toThrow(/no addon for /);
  });
});
