// The addon of this machine's own platform as it is shipped, but for the guest of the other processor, put where the checkout
// looks for one: what is tested is what is released. The one of `npm run build` is for this machine's own glibc only.

import { cpSync, existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from '../workspace.mjs';
import { buildAddon, typesOf } from './addon.mjs';
import { GUESTS, manifest, OWN } from './targets.mjs';
import { TARGET_DIR } from './toolchain.mjs';

const DECLARATIONS = 'ts/internal/binding.d.ts';

/** Builds it; the guest comes first. Fails where the declarations that are committed are not those of the sources. */
export async function buildShipped() {
  if (!OWN) throw new Error(`no addon is released for ${process.platform} on ${process.arch}`);
  const guests = GUESTS.filter(({ cpu }) => cpu === process.arch);
  const { file } = await buildAddon(OWN, { guests });
  await checkDeclarations();
  cpSync(file, path.join(ROOT, OWN.addon));
}

async function checkDeclarations() {
  const types = typesOf(OWN);
  // They are written when the crate is compiled, and only then.
  if (!existsSync(path.join(types, manifest.name))) {
    throw new Error(
      `the addon in ${TARGET_DIR} was compiled without its declarations: remove that folder and try again`,
    );
  }
  const { generateTypeDef } = await import('@napi-rs/cli');
  const { dts } = await generateTypeDef({ typeDefDir: types, cwd: ROOT });
  if (readFileSync(path.join(ROOT, DECLARATIONS), 'utf8') === dts) return;
  throw new Error(`${DECLARATIONS} is not what src/ declares: run "npm run build:native" and commit it`);
}
