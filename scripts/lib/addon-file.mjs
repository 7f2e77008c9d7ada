// What a compiled addon says of itself: the operating system and processor that it is for, and what it needs of the system. Read from
// the file's headers, so that an addon can be looked at where it cannot be loaded.

/** @typedef {{ os?: string, cpu?: string, oldest?: string, libraries: string[], newestGlibc: number }} AddonFile */

/**
 * @param {Buffer} bytes a file that may be an addon
 * @returns {AddonFile} without `os` if it is no library of any of the three
 */
export function describeAddon(bytes) {
  const text = bytes.toString('latin1');
  const glibc = [...text.matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor));
  const nothing = { libraries: [], newestGlibc: Math.max(0, ...glibc) };
  if (bytes.length < 64) return nothing;
  if (bytes.readUInt32BE(0) === 0x7f454c46) {
    return { ...nothing, os: 'linux', cpu: { 62: 'x64', 183: 'arm64' }[bytes.readUInt16LE(18)] };
  }
  if (bytes.readUInt32LE(0) === 0xfeedfacf) return { ...nothing, os: 'darwin', ...machO(bytes) };
  const header = bytes.readUInt32LE(0x3c);
  if (text.startsWith('MZ') && text.startsWith('PE\0\0', header)) {
    return { ...nothing, os: 'win32', cpu: { 0x8664: 'x64', 0xaa64: 'arm64' }[bytes.readUInt16LE(header + 4)] };
  }
  return nothing;
}

const LC_LOAD_DYLIB = 0xc;
const LC_BUILD_VERSION = 0x32;

/** The load commands of a library of macOS: what it links to, and the oldest version that may load it. */
function machO(bytes) {
  const cpu = { 0x01000007: 'x64', 0x0100000c: 'arm64' }[bytes.readUInt32LE(4)];
  const libraries = [];
  let oldest;
  for (let n = 0, at = 32; n < bytes.readUInt32LE(16); n += 1) {
    const command = bytes.readUInt32LE(at);
    const length = bytes.readUInt32LE(at + 4);
    if (command === LC_LOAD_DYLIB) {
      const name = bytes.toString('latin1', at + bytes.readUInt32LE(at + 8), at + length);
      libraries.push(name.slice(0, name.indexOf('\0')));
    } else if (command === LC_BUILD_VERSION) {
      const version = bytes.readUInt32LE(at + 12);
      oldest = `${String(version >>> 16)}.${String((version >>> 8) & 0xff)}`;
    }
    at += length;
  }
  return { cpu, libraries, oldest };
}
