// `node scripts/cross.mjs [PLATFORM…] [--out DIR]`: builds the addon for other platforms on Linux x64, from package registries
// alone, each into DIR/<platform>/sparrow.node (`npm run pack:all -- FOLDER --addons DIR` packs them). No part of `npm test`.
//
// The linker and the C and C++ compiler is zig (PyPI: ziglang, cargo-zigbuild), which has the headers and stubs of every target and
// of old glibc. For a target that the Rust toolchain here has no standard library for, that library is compiled from source by
// Debian's compiler, whose sources fit it (rustc-web, rust-web-src): nothing of it is installed, it is unpacked beside the build.
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';

import { OLDEST_MACOS, mustLoad } from './lib/addon-check.mjs';
import { targetDir } from './lib/paths.mjs';
import { PLATFORMS, libraryFile } from './lib/platforms.mjs';
import { StepFailed, main, mustRun, output } from './lib/process.mjs';

/** What is taken from PyPI, as it was tried. */
const PYTHON = ['ziglang==0.17.1', 'cargo-zigbuild==0.24.0'];

/** What is taken from Debian: a compiler and the sources of its standard library. */
const DEBIAN = ['rustc-web', 'rust-web-src', 'libstd-rust-web-dev'];

const FOLDER = join(targetDir(), 'cross');
const TOOLS = join(FOLDER, 'tools');

/** How a release is compiled: smaller and somewhat faster than the profile that the tests share, and three times as long. */
const PROFILE = {
  CARGO_PROFILE_RELEASE_DEBUG: 'false',
  CARGO_PROFILE_RELEASE_LTO: 'thin',
};

await main(async (args) => {
  const { values, positionals } = parseArgs({ args, options: { out: { type: 'string' } }, allowPositionals: true });
  const unknown = positionals.filter((name) => !PLATFORMS.some((platform) => platform.name === name));
  if (unknown.length > 0) {
    throw new StepFailed(
      `no such platform: ${unknown.join(', ')}. There are ${PLATFORMS.map((it) => it.name).join(', ')}`,
    );
  }
  if (process.platform !== 'linux')
    throw new StepFailed('this builds on Linux; elsewhere build for the machine itself');
  const out = resolve(values.out ?? join(FOLDER, 'addons'));
  await ensureZig();
  for (const platform of PLATFORMS) {
    if (positionals.length > 0 && !positionals.includes(platform.name)) continue;
    const begun = Date.now();
    const file = join(out, platform.name, 'sparrow.node');
    mkdirSync(join(out, platform.name), { recursive: true });
    copyFileSync(await build(platform), file);
    const bytes = readFileSync(file);
    mustLoad(platform, bytes);
    const seconds = Math.round((Date.now() - begun) / 1000);
    console.log(`${platform.name}: ${(bytes.length / 1e6).toFixed(2)} MB in ${seconds} s, ${file}`);
  }
});

/** How a platform's addon is linked. Nothing is said of the processor: packages are for machines of unknown age. */
function flags({ os, libc }) {
  if (libc === 'musl') return '-C target-feature=-crt-static';
  // Without inner names, and under its own name in place of a path of this machine.
  if (os === 'darwin') return '-C link-arg=-Wl,-x -C link-arg=-Wl,-install_name,@rpath/sparrow.node';
  return '';
}

/** Compiles the addon for a platform and answers where cargo left it. */
async function build(platform) {
  const triple = platform.cross.replace(/\.[\d.]+$/, '');
  const args = ['zigbuild', '-p', 'sparrow-node', '--release', '--locked', '--target', platform.cross];
  const env = {
    ...PROFILE,
    PATH: [join(TOOLS, 'venv', 'bin'), process.env.PATH].join(delimiter),
    CARGO_TARGET_DIR: FOLDER,
    // Only a tool of Apple's, or LLVM's, can strip there; the linker leaves out what it can.
    CARGO_PROFILE_RELEASE_STRIP: platform.os === 'darwin' ? 'none' : 'symbols',
    RUSTFLAGS: flags(platform),
    // zig would take a much newer one.
    MACOSX_DEPLOYMENT_TARGET: OLDEST_MACOS,
    ...(platform.os === 'win32' ? { LIBNODE_PATH: emptyLibraries() } : {}),
  };
  const own = output('rustc', ['--print', 'target-libdir', '--target', triple])?.trim();
  if (own !== undefined && existsSync(own)) {
    await mustRun('cargo', args, { env });
  } else {
    const source = { RUSTC: await ensureCompiler(), RUSTC_BOOTSTRAP: '1' };
    await mustRun('cargo', [...args, '-Z', 'build-std=std,panic_unwind'], { env: { ...env, ...source } });
  }
  return join(FOLDER, triple, 'release', libraryFile(platform.os));
}

/**
 * A folder with libraries in which there is nothing. The addon looks Node's functions up when it is loaded (the feature `dyn-symbols` of
 * napi), but napi's build script wants a library to link all the same, and looks for a DLL beside it. Debian's compiler wants gcc's
 * protection of the stack, of which nothing is used.
 */
function emptyLibraries() {
  const folder = join(TOOLS, 'libnode');
  mkdirSync(folder, { recursive: true });
  for (const name of ['libnode.dll', 'libnode.a', 'libssp_nonshared.a']) writeFileSync(join(folder, name), '!<arch>\n');
  return folder;
}

/** The Debian package that another one needs and whose name begins so. */
function dependency(name, beginning) {
  const depends = output('apt-cache', ['depends', name]) ?? '';
  const found = [...depends.matchAll(/Depends: (\S+)/g)].map(([, it]) => it).find((it) => it.startsWith(beginning));
  if (found === undefined)
    throw new StepFailed(`apt-cache knows no ${beginning}… for ${name}: \`apt-get update\`, then again`);
  return found;
}

async function ensureZig() {
  const bin = join(TOOLS, 'venv', 'bin');
  if (existsSync(join(bin, 'cargo-zigbuild'))) return;
  await mustRun('python3', ['-m', 'venv', join(TOOLS, 'venv')]);
  await mustRun(join(bin, 'pip'), ['install', '--quiet', '--disable-pip-version-check', ...PYTHON]);
}

/** Debian's compiler with the sources of its standard library; answers the program to name as RUSTC. */
async function ensureCompiler() {
  const rust = join(TOOLS, 'rust');
  const wrapper = join(TOOLS, 'rustc');
  if (existsSync(wrapper)) return wrapper;
  const packages = join(TOOLS, 'packages');
  mkdirSync(packages, { recursive: true });
  mkdirSync(rust, { recursive: true });
  // The compiler itself is a library, which needs LLVM's: both names end with a version.
  const library = dependency('libstd-rust-web-dev', 'libstd-rust-web-');
  const llvm = dependency(library, 'libllvm');
  await mustRun('apt-get', ['download', '-qq', ...DEBIAN, library, llvm], { cwd: packages });
  for (const name of readdirSync(packages)) await mustRun('dpkg', ['-x', join(packages, name), rust]);
  const libs = ['lib/x86_64-linux-gnu', 'lib'].map((path) => join(rust, 'usr', path)).join(':');
  const sysroot = join(rust, 'usr');
  writeFileSync(
    wrapper,
    `#!/bin/sh\nLD_LIBRARY_PATH='${libs}' exec '${sysroot}/bin/rustc' --sysroot '${sysroot}' "$@"\n`,
  );
  chmodSync(wrapper, 0o755);
  return wrapper;
}
