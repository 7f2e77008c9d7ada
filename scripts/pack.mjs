// `npm run pack:all [-- FOLDER]`: packs every package as it would be published, the platform package of this machine included.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ADDON, at, onnxRuntimeDir, onnxRuntimeLibrary } from './lib/paths.mjs';
import { StepFailed, main, npm, output } from './lib/process.mjs';
import { hostTriple, setUp } from './lib/setup.mjs';
import { thirdPartyNotices } from './lib/third-party.mjs';

const PACKAGES = ['engine', 'cluster', 'server', 'model-splade-tiny', 'model-minilm-l6'];

/** Names the system's dynamic linker resolves ONNX Runtime's own neighbours by; DirectML on Windows. */
const NEIGHBOURS = /^(?:libonnxruntime\.so\.1|libonnxruntime\.1\.dylib|onnxruntime\.dll|DirectML\.dll)$/;

await main(async ([folder = at('dist')]) => {
  await setUp();
  const { platformName } = await import('@sparrow-search/engine');
  const staging = join(folder, 'staging');
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(staging, { recursive: true });

  const platforms = readdirSync(at('packages', 'npm')).filter((name) =>
    existsSync(at('packages', 'npm', name, 'package.json')),
  );
  if (!platforms.includes(platformName())) {
    throw new StepFailed(`packages/npm has no package for ${platformName()}`);
  }
  const staged = [
    stagePlatform(staging, platformName()),
    ...PACKAGES.map((name) => stagePackage(staging, name, platforms)),
  ];
  for (const directory of staged) {
    await npm(['pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder, directory], {
      quiet: true,
    });
  }
  rmSync(staging, { recursive: true, force: true });
  readdirSync(folder)
    .filter((name) => name.endsWith('.tgz'))
    .forEach((name) => console.log(join(folder, name)));
});

function stagePlatform(staging, platform) {
  const target = join(staging, `engine-${platform}`);
  cpSync(at('packages', 'npm', platform), target, { recursive: true });
  cpSync(ADDON, join(target, 'sparrow.node'));
  strip(join(target, 'sparrow.node'));
  if (onnxRuntimeLibrary() === undefined) throw new StepFailed('ONNX Runtime is not installed');
  for (const name of readdirSync(onnxRuntimeDir()).filter((file) => NEIGHBOURS.test(file))) {
    cpSync(join(onnxRuntimeDir(), name), join(target, name), { dereference: true });
  }
  const { version } = JSON.parse(readFileSync(at('node_modules', 'onnxruntime-node', 'package.json'), 'utf8'));
  writeFileSync(join(target, 'THIRD-PARTY.md'), thirdPartyNotices(hostTriple(), version));
  copyNotices(target);
  return target;
}

/** Our own licence and notices. A model's package has those of its model instead. */
function copyNotices(target) {
  for (const file of ['LICENSE', 'NOTICE']) cpSync(at(file), join(target, file));
}

/** Debug lines and inner names are of use in the checkout, not in a package; without `strip` the package is only larger. */
function strip(addon) {
  output('strip', ['--strip-unneeded', addon]);
}

function stagePackage(staging, name, platforms) {
  const target = join(staging, name);
  const left = new Set(['node_modules', 'src', 'native', 'tsconfig.json']);
  cpSync(at('packages', name), target, {
    recursive: true,
    filter: (source) =>
      !left.has(source.slice(at('packages', name).length + 1).split(/[\\/]/)[0]) && !source.endsWith('.tsbuildinfo'),
  });
  if (!name.startsWith('model-')) copyNotices(target);
  if (name === 'engine') {
    const path = join(target, 'package.json');
    const manifest = JSON.parse(readFileSync(path, 'utf8'));
    manifest.optionalDependencies = Object.fromEntries(
      platforms.map((platform) => [`${manifest.name}-${platform}`, manifest.version]),
    );
    writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
  }
  return target;
}
