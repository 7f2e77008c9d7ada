// What a compiled addon says of itself: the operating system and processor that it is for, and what it needs of the system. Read from
// the file's headers, so that an addon can be looked at where it cannot be loaded.

/**
 * @typedef {object} AddonFile
 * @property {string} [os]         as Node names it; left out where the file is no library of any of the three
 * @property {string} [cpu]        as Node names it
 * @property {string} [oldest]     the oldest macOS that may load it
 * @property {string[]} libraries  the libraries that it is linked to
 * @property {string[]} unresolved names that the loader of macOS is to look for in whatever is loaded by then
 * @property {number} newestGlibc  n of the newest glibc 2.n whose functions it calls
 */

/**
 * @param {Buffer} bytes a file that may be an addon
 * @returns {AddonFile}
 */
export function describeAddon(bytes) {
  const text = bytes.toString('latin1');
  const glibc = [...text.matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor));
  const nothing = { libraries: [], unresolved: [], newestGlibc: Math.max(0, ...glibc) };
  if (bytes.length < 64) return nothing;
  if (bytes.readUInt32BE(0) === 0x7f454c46) return { ...nothing, os: 'linux', ...elf(bytes) };
  if (bytes.readUInt32LE(0) === 0xfeedfacf) return { ...nothing, os: 'darwin', ...machO(bytes) };
  const header = bytes.readUInt32LE(0x3c);
  if (text.startsWith('MZ') && text.startsWith('PE\0\0', header)) {
    return { ...nothing, os: 'win32', ...portableExecutable(bytes, header) };
  }
  return nothing;
}

/** The text at a place, up to its zero byte. */
const textAt = (bytes, at) => bytes.toString('latin1', at, bytes.indexOf(0, at));

const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const DT_NEEDED = 1;
const DT_STRTAB = 5;

/** A library of Linux, of 64 bits: its segments tell where in the file its dynamic section and that one's names are. */
function elf(bytes) {
  const cpu = { 62: 'x64', 183: 'arm64' }[bytes.readUInt16LE(18)];
  const number = (at) => Number(bytes.readBigUInt64LE(at));
  const segments = Array.from({ length: bytes.readUInt16LE(56) }, (_, n) => {
    const at = number(32) + n * bytes.readUInt16LE(54);
    return { kind: bytes.readUInt32LE(at), offset: number(at + 8), address: number(at + 16), size: number(at + 32) };
  });
  const offsetOf = placedBy(segments.filter(({ kind }) => kind === PT_LOAD));
  const entries = segments
    .filter(({ kind }) => kind === PT_DYNAMIC)
    .flatMap(({ offset, size }) =>
      Array.from({ length: size / 16 }, (_, n) => [number(offset + n * 16), number(offset + n * 16 + 8)]),
    );
  const names = entries.find(([tag]) => tag === DT_STRTAB)?.[1];
  const needed = entries.filter(([tag]) => tag === DT_NEEDED);
  return { cpu, libraries: needed.map(([, name]) => textAt(bytes, offsetOf(names + name))) };
}

/** A library of Windows, of 64 bits: its table of imports names a library in each row. */
function portableExecutable(bytes, header) {
  const cpu = { 0x8664: 'x64', 0xaa64: 'arm64' }[bytes.readUInt16LE(header + 4)];
  const optional = header + 24;
  const sections = optional + bytes.readUInt16LE(header + 20);
  const offsetOf = placedBy(
    Array.from({ length: bytes.readUInt16LE(header + 6) }, (_, n) => {
      const [, address, size, offset] = [8, 12, 16, 20].map((at) => bytes.readUInt32LE(sections + n * 40 + at));
      return { address, size, offset };
    }),
  );
  const libraries = [];
  const imports = bytes.readUInt32LE(optional + 120);
  for (let at = imports === 0 ? undefined : offsetOf(imports); at !== undefined; at += 20) {
    const name = bytes.readUInt32LE(at + 12);
    if (name === 0) break;
    libraries.push(textAt(bytes, offsetOf(name)));
  }
  return { cpu, libraries };
}

/** Where in the file an address lies, by the parts of the file that are loaded. */
function placedBy(parts) {
  return (address) => {
    const part = parts.find((one) => address >= one.address && address < one.address + one.size);
    return part && part.offset + address - part.address;
  };
}

const LC_SYMTAB = 0x2;
const LC_LOAD_DYLIB = 0xc;
/** What libraries for macOS before 10.14 have in place of the next one. */
const LC_VERSION_MIN_MACOSX = 0x24;
const LC_BUILD_VERSION = 0x32;
/** Of a symbol: the bits that say where it is defined, in place of one's own names for a debugger. */
const N_STAB = 0xe0;
const N_TYPE = 0x0e;
/** The library of a symbol that may be in any. */
const DYNAMIC_LOOKUP = 0xfe;

/** The load commands of a library of macOS: what it links to, and the oldest version that may load it. */
function machO(bytes) {
  const cpu = { 0x01000007: 'x64', 0x0100000c: 'arm64' }[bytes.readUInt32LE(4)];
  const libraries = [];
  let oldest;
  let unresolved = [];
  for (let n = 0, at = 32; n < bytes.readUInt32LE(16); n += 1) {
    const command = bytes.readUInt32LE(at);
    if (command === LC_LOAD_DYLIB) {
      libraries.push(textAt(bytes, at + bytes.readUInt32LE(at + 8)));
    } else if (command === LC_BUILD_VERSION || command === LC_VERSION_MIN_MACOSX) {
      const version = bytes.readUInt32LE(at + (command === LC_BUILD_VERSION ? 12 : 8));
      oldest = `${String(version >>> 16)}.${String((version >>> 8) & 0xff)}`;
    } else if (command === LC_SYMTAB) {
      unresolved = lookedUp(bytes, ...[8, 12, 16].map((field) => bytes.readUInt32LE(at + field)));
    }
    at += bytes.readUInt32LE(at + 4);
  }
  return { cpu, libraries, oldest, unresolved };
}

/** The symbols of a table of macOS that no library is named for. */
function lookedUp(bytes, table, count, names) {
  const found = [];
  for (let at = table; at < table + count * 16; at += 16) {
    const kind = bytes.readUInt8(at + 4);
    const isUndefined = (kind & N_STAB) === 0 && (kind & N_TYPE) === 0;
    if (isUndefined && bytes.readUInt8(at + 7) === DYNAMIC_LOOKUP) {
      found.push(textAt(bytes, names + bytes.readUInt32LE(at)));
    }
  }
  return found;
}
