import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Finder, offer } from '../../ts/cli/candidates';
import { COMMANDS } from '../../ts/cli/commands';
import { describeWithEngine, IMAGES, unlessMissing, until } from '../support';
import { cofferdam, folder, MAIN, opened } from './program';

const asked: unknown[] = [];
const finder: Finder = {
  async sandboxes(engine) {
    asked.push(engine);
    return [
      { word: 'build', about: 'python' },
      { word: 'sbx_1f0', about: 'user:me:build' },
    ];
  },
  inside: async (_, sandbox, folder) => (sandbox === 'build' && folder === 'src/' ? ['a.py', 'deep/'] : []),
};

async function at(line: string) {
  const { candidates, paths } = await offer(COMMANDS, line.split(' '), finder);
  return [...candidates.map(({ word }) => word), ...(paths ? [`<${paths}>`] : [])];
}

describe('what may stand at the cursor', () => {
  test.each([
    ['ex', ['exec']],
    ['--', ['--help', '--version']],
    ['help ls', ['ls']],
    ['ls --a', ['--all']],
    ['run --runtime ', ['python', 'node', 'bash']],
    ['run -r n', ['node']],
    ['run --runtime=b', ['--runtime=bash']],
    ['run --out ', ['<folder>']],
    ['run --file=', ['<file>']],
    ['run ', ['<file>']],
    ['run --image ', ['linux', 'python', 'node']],
    ['run --code ', []],
    ['exec ', ['build', 'sbx_1f0']],
    ['exec -i b', ['build']],
    ['exec -it b', []],
    ['exec --env A=1 b', ['build']],
    ['exec build ls --c', []],
    ['exec build --c', ['--cwd']],
    ['exec build -- --c', []],
    ['logs --f', ['--follow']],
    ['logs -f b', ['build']],
    ['close build s', ['sbx_1f0']],
    ['cp ', ['build:', 'sbx_1f0:', '<file>']],
    ['cp build:src/', ['build:src/a.py', 'build:src/deep/']],
    ['cp a build:src/d', ['build:src/deep/']],
    ['completion ', ['bash', 'zsh', 'fish']],
    ['fly ', []],
  ])('%s', async (line, expected) => {
    expect(await at(line)).toEqual(expected);
  });

  test('flags that are given are not offered again, unless several may be', async () => {
    expect(await at('run --code x --c')).toEqual(['--cpus']);
    expect(await at('run --env A=1 --en')).toEqual(['--env']);
  });

  test('sandboxes are those of the engine that the line names', async () => {
    asked.length = 0;
    await at('exec --backend namespaces --host=tcp://x ');
    expect(asked).toEqual([{ backend: 'namespaces', host: 'tcp://x' }]);
  });
});

const has = (program: string) => spawnSync(program, ['-c', 'exit 0']).status === 0;
const testIn = (shell: string) =>
  unlessMissing(has(shell) ? undefined : `there is no ${shell} here; npm test installs it as root`, test);

describeWithEngine('completions in a real shell', () => {
  const place = folder();
  const env = { ...process.env, PATH: `${place}/bin:${process.env.PATH}`, HOME: place, TERM: 'dumb' };
  let id: string;

  beforeAll(async () => {
    mkdirSync(path.join(place, 'bin'));
    writeFileSync(path.join(place, 'bin/cofferdam'), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`);
    chmodSync(path.join(place, 'bin/cofferdam'), 0o755);
    mkdirSync(path.join(place, 'work/some folder'), { recursive: true });
    writeFileSync(path.join(place, 'work/script.py'), '');
    writeFileSync(path.join(place, 'completion.bash'), (await cofferdam(['completion', 'bash'])).stdout);
    id = await opened('--image', IMAGES.alpine);
    await cofferdam(['exec', id, 'mkdir -p deep && touch deep/one.txt deep/other.txt']);
  });

  /** What bash would offer: its own splitting of the line into words is asked of it, too. */
  function inBash(line: string): string[] {
    const script = `
source ../completion.bash
complete -p cofferdam | grep -q _cofferdam || exit 9
COMP_LINE=$1 COMP_POINT=\${#1}
# As readline splits it: at blanks, and at = and : as words of their own.
mapfile -t COMP_WORDS < <(grep -oE '[=:]+|[^ =:]+' <<< "$1")
[[ $1 == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
compopt() { :; }
_cofferdam cofferdam
printf '%s\\n' "\${COMPREPLY[@]}"`;
    const found = spawnSync('bash', ['-c', script, 'bash', line], { env, cwd: path.join(place, 'work') });
    expect(found.stderr.toString()).toBe('');
    expect(found.status).toBe(0);
    return found.stdout.toString().split('\n').filter(Boolean);
  }

  /** An engine that is slow to answer completes nothing: then the key is pressed again. */
  async function completes(inShell: (line: string) => string[], line: string, expected: string[]): Promise<void> {
    let found: string[] = [];
    await until(() => {
      found = inShell(line);
      return found.length > 0;
    });
    expect(found).toEqual(expected);
  }

  test('bash', async () => {
    expect(inBash('cofferdam ex')).toEqual(['exec']);
    expect(inBash('cofferdam run --runtime=p')).toEqual(['python']);
    expect(inBash('cofferdam run --runtime=')).toEqual(['python', 'node', 'bash']);
    expect(inBash('cofferdam run ').sort()).toEqual(['script.py', 'some folder']);
    expect(inBash('cofferdam run --out ')).toEqual(['some folder']);
    expect(inBash('cofferdam run --file=scr')).toEqual(['script.py']);
    await completes(inBash, `cofferdam exec ${id.slice(0, 12)}`, [id]);
    await completes(inBash, `cofferdam cp ${id.slice(0, 12)}`, [`${id}:`]);
    await completes(inBash, `cofferdam cp ${id}:de`, ['deep/']);
    await completes(inBash, `cofferdam cp ${id}:deep/o`, ['deep/one.txt', 'deep/other.txt']);
    expect(inBash('cofferdam fly ')).toEqual([]);
    expect(inBash('cofferdam exec --host tcp://127.0.0.1:1 --backend docker ')).toEqual([]);
  });

  test('bash itself, at a terminal', async () => {
    const text = await typed('bash --norc --noprofile -i', 'source <(cofferdam completion bash)', [
      ['cofferdam comp\t', 'cofferdam completion '],
      ['fi\t', 'cofferdam completion fish '],
    ]);
    expect(text).toContain('cofferdam completion fish');
  });

  testIn('fish')('fish', async () => {
    const inFish = (line: string) => {
      const script = 'cofferdam completion fish | source; complete -C $argv[1]';
      const found = spawnSync('fish', ['-c', script, line], { env, cwd: path.join(place, 'work') });
      expect(found.stderr.toString()).toBe('');
      return found.stdout.toString().split('\n').filter(Boolean);
    };
    expect(inFish('cofferdam ex')).toEqual(['exec\tRun a command in a sandbox']);
    expect(inFish('cofferdam run --runtime ').sort()).toEqual(['bash', 'node', 'python']);
    expect(inFish('cofferdam run --runtime=p')).toEqual(['--runtime=python']);
    expect(inFish('cofferdam run --file=scr')).toEqual(['--file=script.py']);
    expect(inFish('cofferdam run scr')).toEqual(['script.py']);
    await completes(inFish, `cofferdam exec ${id}`, [expect.stringMatching(new RegExp(`^${id}\tworkflow:`))]);
    await completes(inFish, `cofferdam cp ${id}:deep/o`, [`${id}:deep/one.txt`, `${id}:deep/other.txt`]);
  });

  testIn('zsh')('zsh, at a terminal', async () => {
    const setUp = 'autoload -Uz compinit; compinit -u -D; source <(cofferdam completion zsh)';
    const text = await typed('zsh -f -i', setUp, [
      ['cofferdam comp\t', 'cofferdam completion '],
      ['fi\t', 'cofferdam completion fish '],
      ['\u0015cofferdam run --runtime=py\t', '--runtime=python'],
      ['\u0015cofferdam run scr\t', 'script.py'],
      [`\u0015cofferdam exec ${id.slice(0, 14)}\t`, id],
      [`\u0015cofferdam cp ${id}:de\t`, 'deep/'],
      [`\u0015cofferdam cp ${id}:deep/on\t`, 'deep/one.txt'],
    ]);
    expect(text).not.toMatch(/not found|parse error|bad /);
  });

  /** Types at a shell in a terminal, and waits each time until it shows what it should. */
  async function typed(program: string, setUp: string, steps: [string, string][]): Promise<string> {
    const child = spawn('script', ['-qec', program, '/dev/null'], { env, cwd: path.join(place, 'work') });
    let text = '';
    child.stdout.on('data', (piece) => (text += piece));
    try {
      child.stdin.write(`${setUp}; PS1='ready'; PS1="$PS1> "\n`);
      await until(() => text.includes('ready> '));
      for (const [keys, expected] of steps) {
        text = keys.startsWith('\u0015') ? '' : text;
        child.stdin.write(keys);
        // An engine that is slow to answer completes nothing: then a whole line is typed again.
        const again = () => keys.startsWith('\u0015') && child.stdin.write(keys);
        const timer = setInterval(again, 10_000);
        // What a terminal shows: without the codes that move its cursor.
        await until(() => plain(text).includes(expected)).finally(() => clearInterval(timer));
      }
      return plain(text);
    } finally {
      child.kill('SIGKILL');
    }
  }
});

function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are made of them.
  let shown = text.replaceAll(/\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x07|\r/g, '');
  // A backspace goes back over the character before it.
  while (/[^\b][\b]/.test(shown)) shown = shown.replace(/[^\b][\b]/, '');
  return shown;
}
