// The platforms that there are packages for, and ONNX Runtime's. One table: packing, cross-building, the page on platforms and
// the release workflow read it, and `packages/npm` needs no six nearly equal manifests.

/**
 * @typedef {object} Platform
 * @property {string} name   what `platformName()` of packages/engine says there; ends the package's name
 * @property {string} words  the platform in words, for descriptions
 * @property {string} os     npm's `os`
 * @property {string} cpu    npm's `cpu`
 * @property {string} [libc] npm's `libc`, on Linux
 * @property {string} triple what Rust calls it
 * @property {string} cross  the target of `cargo zigbuild`: the triple, with the oldest glibc that is to load the addon
 */

/** @type {readonly Platform[]} */
export const PLATFORMS = [
  {
    name: 'linux-x64-gnu',
    words: 'Linux on x64 with glibc 2.28 or newer',
    ...{ os: 'linux', cpu: 'x64', libc: 'glibc' },
    triple: 'x86_64-unknown-linux-gnu',
    cross: 'x86_64-unknown-linux-gnu.2.28',
  },
  {
    name: 'linux-arm64-gnu',
    words: 'Linux on arm64 with glibc 2.28 or newer',
    ...{ os: 'linux', cpu: 'arm64', libc: 'glibc' },
    triple: 'aarch64-unknown-linux-gnu',
    cross: 'aarch64-unknown-linux-gnu.2.28',
  },
  {
    name: 'linux-x64-musl',
    words: 'Linux on x64 with musl (Alpine)',
    ...{ os: 'linux', cpu: 'x64', libc: 'musl' },
    triple: 'x86_64-unknown-linux-musl',
    cross: 'x86_64-unknown-linux-musl',
  },
  {
    name: 'darwin-arm64',
    words: 'macOS on Apple silicon',
    ...{ os: 'darwin', cpu: 'arm64' },
    triple: 'aarch64-apple-darwin',
    cross: 'aarch64-apple-darwin',
  },
  {
    name: 'darwin-x64',
    words: 'macOS on Intel',
    ...{ os: 'darwin', cpu: 'x64' },
    triple: 'x86_64-apple-darwin',
    cross: 'x86_64-apple-darwin',
  },
  {
    // Node does not tell which of Windows' two C ABIs an addon was built with, so the package's name does not either.
    name: 'win32-x64',
    words: 'Windows on x64',
    ...{ os: 'win32', cpu: 'x64' },
    triple: 'x86_64-pc-windows-msvc',
    cross: 'x86_64-pc-windows-gnu',
  },
];

/** ONNX Runtime, as onnxruntime-node has it: the files of a platform that the addon needs. None for musl and for macOS on Intel. */
export const RUNTIMES = [
  { name: 'linux-x64', os: 'linux', cpu: 'x64', libc: 'glibc', files: ['libonnxruntime.so.1'] },
  { name: 'linux-arm64', os: 'linux', cpu: 'arm64', libc: 'glibc', files: ['libonnxruntime.so.1'] },
  { name: 'darwin-arm64', os: 'darwin', cpu: 'arm64', files: ['libonnxruntime.1.dylib'] },
  { name: 'win32-x64', os: 'win32', cpu: 'x64', files: ['onnxruntime.dll', 'DirectML.dll'] },
];

/** The names that the addon's library has where cargo leaves it, by operating system. */
const LIBRARY = { linux: 'libsparrow_node.so', darwin: 'libsparrow_node.dylib', win32: 'sparrow_node.dll' };

/** @param {string} os as npm and Node name it */
export const libraryFile = (os) => LIBRARY[os] ?? LIBRARY.linux;
