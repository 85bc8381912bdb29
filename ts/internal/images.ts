/** Names that the core defines in `image.rs` and `options.rs`; a test holds these equal to them. */

/** Shortcut → image. */
export const IMAGE_SHORTCUTS: Readonly<Record<string, string>> = {
  linux: 'ubuntu:22.04',
  bash: 'ubuntu:22.04',
  shell: 'ubuntu:22.04',
  python: 'python:3.11-slim',
  node: 'node:20-slim',
};

/** The image of an `open()` that names none. */
export const DEFAULT_IMAGE = 'linux';

/** The working directory of an `open()` that names none. */
export const DEFAULT_WORKDIR = '/workspace';

/** One shortcut per image: those that are shown to people. */
export const MAIN_SHORTCUTS: readonly string[] = Object.keys(IMAGE_SHORTCUTS).filter(
  (name, index, all) => all.findIndex((other) => IMAGE_SHORTCUTS[other] === IMAGE_SHORTCUTS[name]) === index,
);
