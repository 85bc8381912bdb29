import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { COMMANDS } from '../../ts/cli/commands';
import { helpOf } from '../../ts/cli/help';
import { version } from '../../ts/version';
import { cofferdam, folder, shell } from './program';

const ROOT = path.resolve(__dirname, '../..');

describe('the cofferdam program', () => {
  test('shows what a command takes, whichever way it is asked', async () => {
    const exec = COMMANDS.find(({ name }) => name === 'exec') as (typeof COMMANDS)[number];
    for (const words of [
      ['exec', '--help'],
      ['exec', '-h'],
      ['help', 'exec'],
      ['--help', 'exec'],
      ['exec', 'default', '--help'],
    ]) {
      expect(await cofferdam(words)).toMatchObject({ code: 0, stdout: helpOf(exec), stderr: '' });
    }
  });

  test('says which commands there are where there is no such one', async () => {
    for (const words of [['fly'], ['help', 'fly']]) {
      const { code, stdout, stderr } = await cofferdam(words);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(/unknown command "fly"; commands: run, open, .*\nTry: cofferdam --help\n$/);
      expect(stderr).not.toContain('__complete');
    }
  });

  test('help into a closed pipe is no failure', async () => {
    expect(await shell('set -o pipefail; cofferdam --help | head -1')).toEqual({
      code: 0,
      output: 'Usage: cofferdam <command> [options]\n',
    });
  });

  test('without its addon it shows help and completions, and says for the rest what is missing', async () => {
    const installed = path.join(folder(), 'node_modules/cofferdam');
    mkdirSync(installed, { recursive: true });
    cpSync(path.join(ROOT, 'dist'), path.join(installed, 'dist'), { recursive: true });
    symlinkSync(path.join(ROOT, 'package.json'), path.join(installed, 'package.json'));
    const main = path.join(installed, 'dist/cli/main.js');
    expect(await cofferdam(['--version'], { main })).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' });
    expect(await cofferdam(['ls', '--help'], { main })).toMatchObject({ code: 0, stderr: '' });
    const complete = ['__complete', '--', 'exec', ''];
    expect(await cofferdam(complete, { main })).toMatchObject({ code: 0, stdout: ':\n', stderr: '' });
    const ls = await cofferdam(['ls'], { main });
    expect(ls).toMatchObject({ code: 1, stdout: '' });
    expect(ls.stderr).toContain('has no native addon for');
    expect(ls.stderr).not.toMatch(/^ +at /m);
  });
});
