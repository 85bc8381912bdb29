// The probe of the escape suite: one static program that runs in any sandbox, whatever its image has.

import path from 'node:path';

const TARGETS = { x64: 'x86_64-unknown-linux-gnu', arm64: 'aarch64-unknown-linux-gnu' };

/** Builds it as a step; gives where it is, or nothing where there is no Linux to try it on. */
export async function buildProbe(steps) {
  const target = process.platform === 'linux' ? TARGETS[process.arch] : undefined;
  if (!target) return undefined;
  const folder = path.join(process.env.CARGO_TARGET_DIR ?? 'target', 'probe');
  const args = ['build', '--locked', '--release', '--package', 'cofferdam-probe', '--target', target];
  // As the guest: no loader, and at a fixed low address, where 32-bit calls find it.
  const env = { RUSTFLAGS: '-C target-feature=+crt-static -C relocation-model=static' };
  await steps.run('probe', 'cargo', [...args, '--target-dir', folder], { env });
  return path.resolve(folder, target, 'release/probe');
}
