// Whether a compiled addon will load wherever npm installs its platform's package: what it needs beyond Node itself must be there on
// every machine. A linker does not tell: it takes whatever the machine has that it runs on.
import { describeAddon } from './addon-file.mjs';
import { StepFailed } from './process.mjs';

/** The newest glibc 2.n whose symbols an addon may need. */
const NEWEST_GLIBC = 28;

/** The oldest macOS that Node 20 runs on. */
export const OLDEST_MACOS = '11.0';

/** The libraries that are there wherever Node runs, by platform: of glibc, of musl, of macOS, of Windows 10. */
const SYSTEM = {
  glibc: /^(?:lib(?:c|m|gcc_s|dl|pthread|rt)\.so\.\d|ld-linux-[\w-]+\.so\.\d)$/,
  // Node is written in C++, whose library needs that of gcc.
  musl: /^libc\.so$|^libc\.musl-|^libgcc_s\.so\.\d$/,
  darwin: /^\/(?:usr\/lib|System)\//,
  // Its universal C library is named by sets of functions; the one that compilers bring (vcruntime140.dll) is no part of it.
  win32:
    /^(?:(?:kernel32|ntdll|advapi32|bcrypt(?:primitives)?|ws2_32|userenv|psapi)\.dll|api-ms-win-(?:core|crt)-.*\.dll)$/i,
};

/**
 * @param {import('./platforms.mjs').Platform} platform
 * @param {Buffer} bytes the addon
 * @returns {string[]} why Node could not load it on some machine of that platform; empty if it could
 */
export function whyNotLoaded({ os, cpu, libc }, bytes) {
  const addon = describeAddon(bytes);
  if (addon.os !== os || addon.cpu !== cpu) return [`it is for ${String(addon.os)} on ${String(addon.cpu)}`];
  const foreign = addon.libraries.filter((library) => !SYSTEM[libc ?? os].test(library));
  const unknown = addon.unresolved.filter((name) => !/^_(?:napi|node_api)_/.test(name));
  return [
    ...(bytes.includes('napi_register_module_v1') ? [] : ['Node would find no module in it']),
    ...(libc === 'glibc' && addon.newestGlibc > NEWEST_GLIBC ? [`it needs glibc 2.${String(addon.newestGlibc)}`] : []),
    ...(os === 'darwin' && !isAtMost(addon.oldest, OLDEST_MACOS) ? [`it needs macOS ${String(addon.oldest)}`] : []),
    ...(foreign.length > 0 ? [`it needs ${foreign.join(', ')}`] : []),
    ...(unknown.length > 0 ? [`nothing is known to have ${unknown.join(', ')}`] : []),
  ];
}

/** Whether a version is no newer than another one; unknown ones may be. */
function isAtMost(version = '', most) {
  return version !== '' && version.localeCompare(most, 'en', { numeric: true }) <= 0;
}

/** @throws {StepFailed} for an addon that Node could not load on some machine of that platform */
export function mustLoad(platform, bytes) {
  const reasons = whyNotLoaded(platform, bytes);
  if (reasons.length > 0) throw new StepFailed(`the addon for ${platform.name}: ${reasons.join('; ')}`);
}
