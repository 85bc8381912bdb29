// One file as a tar archive and back, for the engine's archive API. No copy of the content on the way in and a single
// one on the way out: the archive API shall be measured, not our packing.

const BLOCK = 512;
const MAX_OCTAL_SIZE = 0o77777777777;

/** The pieces of an archive that holds one file. */
export function pack(name, content) {
  const padding = (BLOCK - (content.length % BLOCK)) % BLOCK;
  return [header(name, content.length), content, Buffer.alloc(padding + 2 * BLOCK)];
}

function header(name, size) {
  if (Buffer.byteLength(name) > 100) throw new Error(`"${name}" is too long for a plain ustar header`);
  if (size > MAX_OCTAL_SIZE) throw new Error(`${size} bytes are too many for a plain ustar header`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value, at, length) => block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at);
  block.write(name, 0);
  octal(0o644, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(Math.floor(Date.now() / 1000), 136, 12);
  block.write('        ', 148);
  block.write('0', 156);
  block.write('ustar\u000000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

/** Resolves to the content of the first regular file of an archive that arrives as a stream. */
export async function unpack(archive) {
  const block = Buffer.alloc(BLOCK);
  let inBlock = 0;
  let toSkip = 0;
  let content = null;
  let filled = 0;

  for await (const chunk of archive) {
    let at = 0;
    while (at < chunk.length) {
      if (content && filled < content.length) {
        const copied = chunk.copy(content, filled, at);
        filled += copied;
        at += copied;
      } else if (content) {
        break;
      } else if (toSkip > 0) {
        const skipped = Math.min(toSkip, chunk.length - at);
        toSkip -= skipped;
        at += skipped;
      } else {
        const copied = chunk.copy(block, inBlock, at);
        inBlock += copied;
        at += copied;
        if (inBlock < BLOCK) continue;
        inBlock = 0;
        const size = sizeIn(block);
        if (isRegularFile(block)) content = Buffer.allocUnsafe(size);
        else toSkip = Math.ceil(size / BLOCK) * BLOCK;
      }
    }
  }
  if (!content || filled < content.length) throw new Error('the archive ended before its file did');
  return content;
}

/** Extended headers and directories may come before the file. */
function isRegularFile(block) {
  const type = String.fromCharCode(block[156]);
  return block[0] !== 0 && (type === '0' || type === '\0');
}

function sizeIn(block) {
  if (block[124] & 0x80) return Number(block.readBigUInt64BE(128));
  return Number.parseInt(block.toString('latin1', 124, 136), 8) || 0;
}
