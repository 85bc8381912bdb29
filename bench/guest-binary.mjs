// The guest as the build leaves it, before it is embedded in the addon.

import { fileURLToPath } from 'node:url';

const RUST_ARCHITECTURES = { x64: 'x86_64', arm64: 'aarch64' };

export const GUEST_BINARY = fileURLToPath(
  new URL(`../target/guest/${RUST_ARCHITECTURES[process.arch]}-unknown-linux-gnu/guest/guest`, import.meta.url),
);
