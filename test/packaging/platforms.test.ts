// Which package npm takes on which platform, and that the engine looks for that one.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { platformName } from '@sparrow-search/engine';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Manifest, type Registry, readTarballs, startRegistry } from './registry.js';

interface Platform {
  readonly name: string;
  readonly os: string;
  readonly cpu: string;
  readonly libc?: string;
  readonly triple: string;
  readonly cross: string;
}

interface AddonFile {
  readonly os?: string;
  readonly cpu?: string;
  readonly oldest?: string;
  readonly libraries: readonly string[];
  readonly unresolved: readonly string[];
  readonly newestGlibc: number;
}

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const script = (name: string): Promise<unknown> =>
  import(new URL(`../../scripts/lib/${name}.mjs`, import.meta.url).href);
const { PLATFORMS } = (await script('platforms')) as { PLATFORMS: readonly Platform[] };
const { platformManifest, publishedManifest } = (await script('manifests')) as {
  platformManifest: (platform: Platform) => Manifest;
  publishedManifest: (folder: string) => Manifest;
};
const { describeAddon } = (await script('addon-file')) as { describeAddon: (bytes: Buffer) => AddonFile };
const { whyNotLoaded } = (await script('addon-check')) as {
  whyNotLoaded: (platform: Platform, bytes: Buffer) => string[];
};
const packageOf = ({ name }: Platform): string => `@sparrow-search/engine-${name}`;
const titled = PLATFORMS.map((platform) => [platform.name, platform] as const);

let folder: string;
let registry: Registry;

// The manifests are those that are published; beside them the packages are empty, so that no addon of another platform is needed.
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparrow-platforms-'));
  const engine = { ...publishedManifest('engine'), dependencies: {}, peerDependencies: {}, peerDependenciesMeta: {} };
  for (const manifest of [engine as Manifest, ...PLATFORMS.map(platformManifest)]) {
    const name = manifest.name.split('/')[1] ?? '';
    await mkdir(join(folder, name, 'package'), { recursive: true });
    await writeFile(join(folder, name, 'package', 'package.json'), JSON.stringify(manifest));
    await run('tar', ['-czf', join(folder, `${name}.tgz`), '-C', join(folder, name), 'package']);
  }
  registry = await startRegistry(await readTarballs(folder), []);
  await writeFile(join(folder, 'npmrc'), '');
}, 60_000);

afterAll(async () => {
  await registry.close();
  await rm(folder, { recursive: true, force: true });
});

/** The packages that npm installs with the engine for a platform. */
async function installed(name: string, ...target: readonly string[]): Promise<string[]> {
  const home = join(folder, `home-${name}`);
  await mkdir(home);
  await writeFile(join(home, 'package.json'), '{"name":"somebody","private":true}');
  await run(
    'npm',
    ['install', '@sparrow-search/engine', ...target, '--no-audit', '--no-fund', '--no-update-notifier'],
    {
      shell: process.platform === 'win32',
      cwd: home,
      env: {
        ...process.env,
        npm_config_registry: registry.url,
        npm_config_cache: join(folder, 'cache'),
        npm_config_userconfig: join(folder, 'npmrc'),
      },
    },
  );
  const names = await readdir(join(home, 'node_modules', '@sparrow-search'));
  return names.filter((one) => one !== 'engine').map((one) => `@sparrow-search/${one}`);
}

describe.each(titled)('on %s', (_, platform) => {
  const { name, os, cpu, libc } = platform;

  it('npm installs the package for it alone', async () => {
    const target = [`--os=${os}`, `--cpu=${cpu}`, ...(libc === undefined ? [] : [`--libc=${libc}`])];
    expect(await installed(name, ...target)).toEqual([packageOf(platform)]);
  });

  it('the engine looks for that package', () => {
    expect(platformName({ os, cpu, usesMusl: () => libc === 'musl' })).toBe(name);
  });

  it('the addon is built for what the package says', () => {
    const [arch, ...system] = platform.triple.split('-');
    expect(arch).toBe(cpu === 'x64' ? 'x86_64' : 'aarch64');
    expect(system.join('-')).toBe(
      { glibc: 'unknown-linux-gnu', musl: 'unknown-linux-musl', darwin: 'apple-darwin', win32: 'pc-windows-msvc' }[
        libc ?? os
      ],
    );
    // zig has the headers of Windows' other C library only; Node takes either.
    const cross = platform.cross.replace('windows-gnu', 'windows-msvc');
    expect(cross).toBe(libc === 'glibc' ? `${platform.triple}.2.28` : platform.triple);
  });
});

describe('a compiled addon', () => {
  const at = (...parts: string[]): string => join(ROOT, 'node_modules', 'onnxruntime-node', 'bin', 'napi-v6', ...parts);
  const describeFile = async (path: string): Promise<AddonFile> => describeAddon(await readFile(path));

  // Real libraries of each platform: a checkout has no addons of others.
  it.each([
    ['linux', 'x64', 'libonnxruntime.so.1'],
    ['linux', 'arm64', 'libonnxruntime.so.1'],
    ['darwin', 'arm64', 'libonnxruntime.1.dylib'],
    ['win32', 'x64', 'onnxruntime.dll'],
    ['win32', 'arm64', 'onnxruntime.dll'],
  ])('tells that it is for %s on %s', async (os, cpu, file) => {
    expect(await describeFile(at(os, cpu, file))).toMatchObject({ os, cpu });
  });

  it('tells what it needs', async () => {
    const mac = await describeFile(at('darwin', 'arm64', 'libonnxruntime.1.dylib'));
    expect(mac.oldest).toMatch(/^\d+\.\d+$/);
    expect(mac.libraries).toContain('/usr/lib/libSystem.B.dylib');
    const linux = await describeFile(at('linux', 'x64', 'libonnxruntime.so.1'));
    expect(linux.newestGlibc).toBeGreaterThan(0);
    expect(linux.libraries).toEqual(expect.arrayContaining(['libc.so.6', 'libstdc++.so.6']));
    const windows = await describeFile(at('win32', 'x64', 'onnxruntime_binding.node'));
    expect(windows.libraries).toEqual(expect.arrayContaining(['onnxruntime.dll', 'KERNEL32.dll', 'VCRUNTIME140.dll']));
    const addon = await describeFile(at('darwin', 'arm64', 'onnxruntime_binding.node'));
    expect(addon.unresolved).toContain('_napi_call_function');
    expect(addon.unresolved).not.toContain('_malloc');
    expect(mac.newestGlibc).toBe(0);
  });

  it.each([
    ['linux-x64-gnu', 'linux', ['it needs libonnxruntime.so.1, libstdc++.so.6']],
    ['linux-x64-musl', 'linux', [expect.stringMatching(/^it needs libonnxruntime.*, libc\.so\.6/)]],
    ['darwin-arm64', 'darwin', ['it needs macOS 14.0', 'it needs @rpath/libonnxruntime.1.dylib']],
    ['win32-x64', 'win32', ['it needs onnxruntime.dll, MSVCP140.dll, VCRUNTIME140.dll, VCRUNTIME140_1.dll']],
    ['darwin-x64', 'darwin', ['it is for darwin on arm64']],
    ['win32-x64', 'linux', ['it is for linux on x64']],
  ])('for %s must not need what only some machines have (a file for %s)', async (name, os, reasons) => {
    const platform = PLATFORMS.find((one) => one.name === name) as Platform;
    const cpu = os === 'darwin' ? 'arm64' : 'x64';
    expect(whyNotLoaded(platform, await readFile(at(os, cpu, 'onnxruntime_binding.node')))).toEqual(reasons);
  });

  it('may be for an older macOS, however it says so', async () => {
    const bytes = await readFile(at('darwin', 'arm64', 'onnxruntime_binding.node'));
    // The system that it is for, macOS, and the oldest version of it, 14.0.
    const place = bytes.indexOf(Buffer.from([1, 0, 0, 0, 0, 0, 14, 0]));
    const platform = PLATFORMS.find(({ name }) => name === 'darwin-arm64') as Platform;
    const rest = ['it needs @rpath/libonnxruntime.1.dylib'];
    for (const [version, reasons] of [
      ['10.15', rest],
      ['11.0', rest],
      ['11.1', ['it needs macOS 11.1', ...rest]],
    ] as const) {
      const [major = 0, minor = 0] = version.split('.').map(Number);
      bytes.writeUInt32LE((major << 16) | (minor << 8), place + 4);
      expect([version, whyNotLoaded(platform, bytes)]).toEqual([version, reasons]);
    }
    // As linkers wrote it for versions before 10.14.
    bytes.writeUInt32LE(0x24, place - 8);
    bytes.writeUInt32LE(0x000a0c00, place);
    expect(describeAddon(bytes).oldest).toBe('10.12');
  });

  it('is none, if it is anything else', async () => {
    expect((await describeFile(join(ROOT, 'README.md'))).os).toBeUndefined();
    expect(describeAddon(Buffer.alloc(0)).os).toBeUndefined();
  });
});

it('where there is no package, npm installs none and does not fail', async () => {
  expect(await installed('other', '--os=freebsd', '--cpu=x64')).toEqual([]);
  expect(await installed('old', '--os=linux', '--cpu=ia32', '--libc=glibc')).toEqual([]);
});

it('docs/platforms.md has a row for each platform', async () => {
  const page = await readFile(join(ROOT, 'docs', 'platforms.md'), 'utf8');
  const [, table = ''] = /^## Platforms$([\s\S]*?)^###? /m.exec(page) ?? [];
  const rows = [...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name);
  expect(rows).toEqual(PLATFORMS.map(({ name }) => name));
});
