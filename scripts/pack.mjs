// `npm run pack:all [-- FOLDER] [--addons DIR]`: packs every package as it would be published. Without --addons there is one
// platform package, that of this machine; with it one for each DIR/<platform>/sparrow.node, as scripts/cross.mjs leaves them.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { parseArgs } from 'node:util';

import { mustLoad } from './lib/addon-check.mjs';
import {
  anyRuntimeManifest,
  platformManifest,
  publishedManifest,
  runtimeManifest,
  runtimeVersion,
} from './lib/manifests.mjs';
import { ADDON, at } from './lib/paths.mjs';
import { PLATFORMS, RUNTIMES } from './lib/platforms.mjs';
import { StepFailed, main, npmOutput, output } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';
import { runtimeNotices, thirdPartyNotices } from './lib/third-party.mjs';

const PACKAGES = [
  ...['engine', 'cluster', 'endpoints', 'evaluation', 'http', 'cli', 'server'],
  ...['model-splade-tiny', 'model-minilm-l6', 'model-splade-minilm-l6'],
  ...['model-bge-small-en', 'model-multilingual-e5-small'],
].filter(isWhole);

/** What a folder of `packages/` has that no package needs. Source maps would point at sources that are not there. */
const LEFT = /^(?:node_modules|src|native|tsconfig\.json|package\.json)$|\.tsbuildinfo$|\.map$/;

await main(async (args) => {
  const { values, positionals } = parseArgs({
    args,
    options: { addons: { type: 'string' } },
    allowPositionals: true,
  });
  const folder = resolve(positionals[0] ?? at('dist'));
  await setUp();
  const addons = values.addons === undefined ? [await ownAddon()] : builtAddons(resolve(values.addons));
  mkdirSync(folder, { recursive: true });
  // A new folder each time: whatever else is in the one that was named belongs to somebody.
  const staging = mkdtempSync(join(folder, 'staging-'));
  try {
    const staged = [
      ...addons.map((addon) => stagePlatform(staging, addon)),
      ...RUNTIMES.filter((runtime) => addons.some(({ platform }) => fits(runtime, platform))).map((runtime) =>
        stageRuntime(staging, runtime),
      ),
      stageAnyRuntime(staging),
      ...PACKAGES.map((name) => stagePackage(staging, name)),
    ];
    const packed = npmOutput(['pack', '--json', '--ignore-scripts', '--pack-destination', folder, ...staged]);
    for (const { filename } of JSON.parse(packed)) console.log(join(folder, filename));
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
});

/** The addon of this checkout, without debug lines and inner names: they are of use here and not in a package. */
async function ownAddon() {
  const { platformName } = await import('@sparrow-search/engine');
  const platform = PLATFORMS.find(({ name }) => name === platformName());
  if (platform === undefined) throw new StepFailed(`there is no package for ${platformName()}`);
  return { platform, file: ADDON, strip: true };
}

/**
 * Addons that were built elsewhere, as small as they get.
 *
 * @throws {StepFailed} for one that would not load wherever its package is installed
 */
function builtAddons(folder) {
  const found = PLATFORMS.map((platform) => ({ platform, file: join(folder, platform.name, 'sparrow.node') }));
  const built = found.filter(({ file }) => existsSync(file));
  if (built.length === 0) throw new StepFailed(`${folder} has no <platform>/sparrow.node`);
  for (const { platform, file } of built) mustLoad(platform, readFileSync(file));
  return built;
}

function stagePlatform(staging, { platform, file, strip = false }) {
  const target = stage(staging, platformManifest(platform));
  const addon = join(target, 'sparrow.node');
  cpSync(file, addon);
  // Without `strip` the package is only larger.
  if (strip) output('strip', [platform.os === 'darwin' ? '-x' : '--strip-unneeded', addon]);
  writeFileSync(join(target, 'THIRD-PARTY.md'), thirdPartyNotices(platform.triple));
  copyNotices(target);
  return target;
}

/** Whether a platform has that library of ONNX Runtime. */
function fits(runtime, platform) {
  return ['os', 'cpu', 'libc'].every((key) => runtime[key] === platform[key]);
}

function stageRuntime(staging, runtime) {
  const target = stage(staging, runtimeManifest(runtime));
  const from = at('node_modules', 'onnxruntime-node', 'bin', 'napi-v6', runtime.os, runtime.cpu);
  for (const name of runtime.files) cpSync(join(from, name), join(target, name), { dereference: true });
  writeFileSync(join(target, 'LICENSE'), runtimeNotices(runtimeVersion()));
  return target;
}

function stageAnyRuntime(staging) {
  const target = stage(staging, anyRuntimeManifest());
  cpSync(at('packages', 'npm', 'onnxruntime.md'), join(target, 'README.md'));
  writeFileSync(join(target, 'LICENSE'), runtimeNotices(runtimeVersion()));
  return target;
}

function stagePackage(staging, name) {
  const source = at('packages', name);
  const target = stage(staging, publishedManifest(name));
  cpSync(source, target, {
    recursive: true,
    filter: (path) =>
      !relative(source, path)
        .split(sep)
        .some((part) => LEFT.test(part)) && hasSource(source, path),
  });
  // A model's package has the licence and notices of its model instead.
  if (!name.startsWith('model-')) copyNotices(target);
  return target;
}

/** Whether a package has its files: the weights of one model are made before it is published, as its README says. */
function isWhole(name) {
  const whole = !name.startsWith('model-') || existsSync(at('packages', name, 'model.safetensors'));
  if (!whole) console.error(`packages/${name} is left out: it has no weights`);
  return whole;
}

/** Whether what was compiled still has its source: the compiler leaves what it made of a file that is gone. */
function hasSource(folder, path) {
  const compiled = /^dist[\\/](.+?)(?:\.d)?\.(?:ts|js)$/.exec(relative(folder, path));
  return compiled === null || ['.ts', '.d.ts'].some((end) => existsSync(join(folder, 'src', compiled[1] + end)));
}

/** A folder for a package, with its manifest. */
function stage(staging, manifest) {
  const target = join(staging, manifest.name.split('/')[1]);
  mkdirSync(target);
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  return target;
}

/** Our own licence and notices. */
function copyNotices(target) {
  for (const file of ['LICENSE', 'NOTICE']) cpSync(at(file), join(target, file));
}
