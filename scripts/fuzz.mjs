// `npm run fuzz`: the fuzz target of the transfer decoder, on its saved corpus, for a while. What it finds is saved in
// `fuzz/artifacts`; new inputs that reach new code go to `fuzz/target/corpus`, and into the saved corpus with --save.
//
//   npm run fuzz -- --seconds 60 [--save]    0 seconds: it is only built

import { cpSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { run } from './child.mjs';
import { command } from './lifetime.mjs';
import { ROOT, requireTools } from './workspace.mjs';

/** What `cargo fuzz` gives the compiler, without the sanitizers, which need a nightly one. */
const COVERAGE = [
  '--cfg fuzzing',
  '-Cpasses=sancov-module',
  '-Cllvm-args=-sanitizer-coverage-level=4',
  '-Cllvm-args=-sanitizer-coverage-inline-8bit-counters',
  '-Cllvm-args=-sanitizer-coverage-pc-table',
  '-Cllvm-args=-sanitizer-coverage-trace-compares',
  '-Ccodegen-units=1',
].join(' ');

export async function fuzz({ seconds, save = false }) {
  const folder = path.join(ROOT, 'fuzz');
  const at = (...parts) => path.join(folder, ...parts);
  const target = 'x86_64-unknown-linux-gnu';
  // Named, so that build scripts and macros are built without the counters.
  const args = ['build', '--release', '--locked', '--target', target, '--target-dir', at('target')];
  await run('cargo', args, { cwd: folder, env: { RUSTFLAGS: COVERAGE, CARGO_ENCODED_RUSTFLAGS: undefined } });
  if (seconds === 0) return;
  mkdirSync(at('artifacts'), { recursive: true });
  mkdirSync(at('target', 'corpus'), { recursive: true });
  const limits = [`-max_total_time=${seconds}`, '-timeout=20', '-rss_limit_mb=2048', '-max_len=20000'];
  const places = [`-artifact_prefix=${at('artifacts')}/`, at('target', 'corpus'), at('corpus', 'tree')];
  await run(at('target', target, 'release', 'tree'), [...limits, '-print_final_stats=1', '-verbosity=0', ...places]);
  if (save) cpSync(at('target', 'corpus'), at('corpus', 'tree'), { recursive: true });
}

if (process.argv[1] === import.meta.filename) {
  const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' }, save: { type: 'boolean' } } });
  await command(async () => {
    requireTools();
    await fuzz({ seconds: Number(values.seconds), save: values.save });
  });
}
