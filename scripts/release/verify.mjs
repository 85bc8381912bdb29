// Whether an addon is what its package says: of that system and architecture, loadable there, with the guests in it.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { compareVersions, readBinary } from './binary.mjs';
import { GLIBC_FLOOR, GUESTS } from './targets.mjs';

const FORMATS = { linux: 'elf', darwin: 'mach-o', win32: 'pe' };

/** What every system of that kind has: anything else would have to be installed along with us. */
const PRESENT = {
  glibc: /^(ld-linux-.*|lib(c|m|dl|rt|pthread|gcc_s))\.so\.\d$/,
  musl: /^libc(\.musl-.*)?\.so(\.1)?$/,
  darwin: /^(\/usr\/lib\/|\/System\/Library\/Frameworks\/)/,
  win32:
    /^(api-ms-win-.*|kernel32|ntdll|advapi32|bcrypt|bcryptprimitives|crypt32|ncrypt|secur32|ws2_32|userenv|shell32|combase|ole32|oleaut32|user32|msvcrt|ucrtbase|iphlpapi|pdh|powrprof|psapi|netapi32)\.dll$/i,
};

/** @returns {{ cpu: string, bytes: number, glibc?: string }} of an addon that passes */
export function verifyAddon(target, file, guests = GUESTS) {
  const bytes = readFileSync(file);
  const binary = readBinary(bytes);
  const faults = [];
  if (binary.format !== FORMATS[target.os]) faults.push(`its format is ${binary.format}, not ${FORMATS[target.os]}`);
  if (binary.cpu !== target.cpu) faults.push(`it is for ${binary.cpu}, not ${target.cpu}`);
  if (!binary.exports.includes('napi_register_module_v1')) faults.push('it exports no napi_register_module_v1');
  if (target.libc !== 'glibc' && binary.glibc) faults.push(`it asks for glibc ${binary.glibc}`);
  if (target.libc === 'glibc' && compareVersions(binary.glibc ?? '0', GLIBC_FLOOR) > 0) {
    faults.push(`it asks for glibc ${binary.glibc}, and is to run on ${GLIBC_FLOOR}`);
  }
  const strangers = binary.needs.filter((library) => !PRESENT[target.libc ?? target.os].test(library));
  if (strangers.length) faults.push(`it needs ${strangers.join(', ')}, which not every system has`);
  for (const guest of guests) {
    if (!bytes.includes(shortHash(readFileSync(guest.file))))
      faults.push(`it does not carry the guest for ${guest.cpu}`);
  }
  if (faults.length) throw new Error(`${file} is not an addon for ${target.title}: ${faults.join('; ')}`);
  return { cpu: binary.cpu, bytes: bytes.length, glibc: binary.glibc };
}

/** As crates/core/build.rs writes it beside the guest. */
function shortHash(guest) {
  return createHash('sha256').update(guest).digest('hex').slice(0, 16);
}

/** A guest runs in any image: it must need no loader and no library. */
export function verifyGuest(guest) {
  const { format, cpu, needs } = readBinary(readFileSync(guest.file));
  if (format === 'elf' && cpu === guest.cpu && needs.length === 0) return;
  throw new Error(
    `${guest.file} is not a static guest for ${guest.cpu}: ${format} for ${cpu}, needs ${needs.join(', ') || 'nothing'}`,
  );
}
