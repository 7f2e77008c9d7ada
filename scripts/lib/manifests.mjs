// The package.json files of what is published. What all packages share stands once, in the package.json of the repository; the
// manifests of the native packages are made from the table of platforms.
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';

import { at } from './paths.mjs';
import { PLATFORMS, RUNTIMES } from './platforms.mjs';

/** What a published manifest takes over from the repository's. */
const SHARED = ['version', 'license', 'homepage', 'bugs', 'engines', 'keywords', 'publishConfig'];

const SCOPE = '@sparrow-search';
/** Packages of models that a server serves where somebody has installed them. */
const MODELS_TO_ADD = ['model-bge-small-en', 'model-multilingual-e5-small'];
const ADDON_FILES = ['sparrow.node', 'THIRD-PARTY.md', 'NOTICE'];

const readJson = (...path) => JSON.parse(readFileSync(at(...path), 'utf8'));

/** The version of ONNX Runtime, which its packages have too: they change with it and not with Sparrow. */
export const runtimeVersion = () => readJson('package-lock.json').packages['node_modules/onnxruntime-node'].version;

/** The manifest of a folder of `packages/` as it is published. */
export function publishedManifest(folder) {
  const manifest = complete(readJson('packages', folder, 'package.json'), posix.join('packages', folder));
  for (const name of Object.keys(manifest.dependencies ?? {})) {
    if (name.startsWith(`${SCOPE}/`)) manifest.dependencies[name] = manifest.version;
  }
  if (manifest.name !== `${SCOPE}/engine`) return manifest;
  const models = MODELS_TO_ADD.map((name) => `${SCOPE}/${name}`);
  // Only here and not in the checkout: npm would look for them in the registry, where a version that is not yet published is
  // not to be found.
  return {
    ...manifest,
    optionalDependencies: dependencies(PLATFORMS, 'engine', manifest.version),
    peerDependencies: {
      [`${SCOPE}/onnxruntime`]: `^${runtimeVersion()}`,
      ...Object.fromEntries(models.map((name) => [name, manifest.version])),
    },
    peerDependenciesMeta: {
      [`${SCOPE}/onnxruntime`]: { optional: true },
      ...Object.fromEntries(models.map((name) => [name, { optional: true }])),
    },
  };
}

/** The manifest of the package with the addon for a platform. */
export function platformManifest(platform) {
  return native(platform, 'engine', {
    description: `The native addon of ${SCOPE}/engine for ${platform.words}.`,
    files: ADDON_FILES,
  });
}

/** The manifest of the package with ONNX Runtime for a platform. */
export function runtimeManifest(runtime) {
  return native(runtime, 'onnxruntime', {
    version: runtimeVersion(),
    description: `The shared library of ONNX Runtime for ${SCOPE}/engine on ${runtime.name}.`,
    license: 'MIT',
    files: runtime.files,
  });
}

/** The manifest of the package that brings ONNX Runtime for whatever platform it is installed on. */
export function anyRuntimeManifest() {
  const version = runtimeVersion();
  return complete(
    {
      name: `${SCOPE}/onnxruntime`,
      version,
      description: `ONNX Runtime for ${SCOPE}/engine: for models that Sparrow does not run itself.`,
      license: 'MIT',
      files: ['README.md'],
      exports: { './package.json': './package.json' },
      optionalDependencies: dependencies(RUNTIMES, 'onnxruntime', version),
    },
    'packages/npm',
  );
}

/** The manifests of all packages with native files, whatever was built. */
export const allNativeManifests = () => [...PLATFORMS.map(platformManifest), ...RUNTIMES.map(runtimeManifest)];

const dependencies = (list, prefix, version) =>
  Object.fromEntries(list.map(({ name }) => [`${SCOPE}/${prefix}-${name}`, version]));

function native({ name, os, cpu, libc }, prefix, fields) {
  return complete(
    {
      name: `${SCOPE}/${prefix}-${name}`,
      ...fields,
      os: [os],
      cpu: [cpu],
      ...(libc === undefined ? {} : { libc: [libc] }),
      exports: { './package.json': './package.json' },
    },
    'packages/npm',
  );
}

/** What a manifest does not say itself, from the repository's. */
function complete(manifest, directory) {
  const root = readJson('package.json');
  const shared = Object.fromEntries(SHARED.map((key) => [key, root[key]]));
  return { name: manifest.name, ...shared, repository: { ...root.repository, directory }, ...manifest };
}
