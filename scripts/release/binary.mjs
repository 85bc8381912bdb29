// Native binaries as files: format, architecture, what they export and what they need. Read from the file itself, so that
// one machine can judge the builds for all systems.

/**
 * @param {Buffer} bytes
 * @returns {{ format: 'elf' | 'mach-o' | 'pe', cpu: string, exports: string[], needs: string[], glibc?: string }}
 *   `needs`: the libraries that the loader must find; `glibc`: the newest version of it that a symbol asks for
 */
export function readBinary(bytes) {
  if (bytes.readUInt32BE(0) === 0x7f454c46) return readElf(bytes);
  if (bytes.readUInt32LE(0) === 0xfeedfacf) return readMachO(bytes);
  if (bytes.toString('latin1', 0, 2) === 'MZ') return readPe(bytes);
  throw new Error(`no binary: it begins with ${bytes.toString('hex', 0, 4)}`);
}

function text(bytes, at) {
  return bytes.toString('latin1', at, bytes.indexOf(0, at));
}

function readElf(bytes) {
  const sectionsAt = Number(bytes.readBigUInt64LE(40));
  const sections = Array.from({ length: bytes.readUInt16LE(60) }, (_, index) => {
    const at = sectionsAt + index * bytes.readUInt16LE(58);
    return {
      type: bytes.readUInt32LE(at + 4),
      offset: Number(bytes.readBigUInt64LE(at + 24)),
      size: Number(bytes.readBigUInt64LE(at + 32)),
      link: bytes.readUInt32LE(at + 40),
      count: bytes.readUInt32LE(at + 44),
    };
  });
  const of = (type) => sections.find((section) => section.type === type);
  const rows = (section, size) =>
    section ? Array.from({ length: section.size / size }, (_, index) => section.offset + index * size) : [];
  const string = (section, offset) => text(bytes, sections[section.link].offset + offset);

  const symbols = of(11);
  const exports = rows(symbols, 24)
    .filter((at) => bytes.readUInt16LE(at + 6) !== 0 && bytes[at + 4] >> 4 !== 0)
    .map((at) => string(symbols, bytes.readUInt32LE(at)));
  const dynamic = of(6);
  const needs = rows(dynamic, 16)
    .filter((at) => bytes.readBigUInt64LE(at) === 1n)
    .map((at) => string(dynamic, Number(bytes.readBigUInt64LE(at + 8))));
  const versions = neededVersions(bytes, of(0x6ffffffe), string).flatMap(
    (name) => name.match(/^GLIBC_(.+)$/)?.[1] ?? [],
  );
  return {
    format: 'elf',
    cpu: { 62: 'x64', 183: 'arm64' }[bytes.readUInt16LE(18)],
    exports,
    needs,
    glibc: versions.sort(compareVersions).at(-1),
  };
}

function neededVersions(bytes, section, string) {
  const names = [];
  for (let at = section?.offset, left = section?.count ?? 0; left > 0; left -= 1) {
    let entry = at + bytes.readUInt32LE(at + 8);
    for (let count = bytes.readUInt16LE(at + 2); count > 0; count -= 1) {
      names.push(string(section, bytes.readUInt32LE(entry + 8)));
      entry += bytes.readUInt32LE(entry + 12);
    }
    at += bytes.readUInt32LE(at + 12);
  }
  return names;
}

/** As numbers, part by part: 2.4 is older than 2.17. */
export function compareVersions(a, b) {
  return a.localeCompare(b, 'en', { numeric: true });
}

function readMachO(bytes) {
  const [LOAD_DYLIB, SYMTAB] = [0xc, 0x2];
  const needs = [];
  let exports = [];
  for (let at = 32, left = bytes.readUInt32LE(16); left > 0; left -= 1) {
    const command = bytes.readUInt32LE(at) & 0x7fffffff;
    if (command === LOAD_DYLIB) needs.push(text(bytes, at + bytes.readUInt32LE(at + 8)));
    if (command === SYMTAB) exports = machOSymbols(bytes, at);
    at += bytes.readUInt32LE(at + 4);
  }
  return { format: 'mach-o', cpu: { 16777223: 'x64', 16777228: 'arm64' }[bytes.readUInt32LE(4)], exports, needs };
}

function machOSymbols(bytes, command) {
  const [symbols, count, strings] = [8, 12, 16].map((offset) => bytes.readUInt32LE(command + offset));
  const [EXTERNAL, KIND, DEFINED] = [0x01, 0x0e, 0x0e];
  return Array.from({ length: count }, (_, index) => symbols + index * 16)
    .filter((at) => bytes[at + 4] & EXTERNAL && (bytes[at + 4] & KIND) === DEFINED)
    .map((at) => text(bytes, strings + bytes.readUInt32LE(at)).replace(/^_/, ''));
}

function readPe(bytes) {
  const header = bytes.readUInt32LE(0x3c) + 4;
  const optional = header + 20;
  const sectionsAt = optional + bytes.readUInt16LE(header + 16);
  const sections = Array.from({ length: bytes.readUInt16LE(header + 2) }, (_, index) => sectionsAt + index * 40);
  /** Where in the file an address in memory is. */
  const place = (address) => {
    const at = sections.find((each) => {
      const start = bytes.readUInt32LE(each + 12);
      return address >= start && address < start + bytes.readUInt32LE(each + 16);
    });
    return address - bytes.readUInt32LE(at + 12) + bytes.readUInt32LE(at + 20);
  };
  const [exportTable, importTable] = [0, 1].map((index) => bytes.readUInt32LE(optional + 112 + index * 8));
  const exports = exportTable ? peExports(bytes, place(exportTable), place) : [];
  const needs = [];
  for (let at = importTable ? place(importTable) : undefined; at && bytes.readUInt32LE(at + 12); at += 20) {
    needs.push(text(bytes, place(bytes.readUInt32LE(at + 12))));
  }
  return { format: 'pe', cpu: { 34404: 'x64', 43620: 'arm64' }[bytes.readUInt16LE(header)], exports, needs };
}

function peExports(bytes, table, place) {
  const names = place(bytes.readUInt32LE(table + 32));
  return Array.from({ length: bytes.readUInt32LE(table + 24) }, (_, index) =>
    text(bytes, place(bytes.readUInt32LE(names + index * 4))),
  );
}
