// Everything between a fresh clone and a server that can start: packages, the addon, the compiled TypeScript.
// Each step is skipped when the stamp says that nothing it reads has changed.
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';

import { typeDefinitionFolder, writeAddonTypes } from './addon-types.mjs';
import { writeDeclarations } from './declarations.mjs';
import { writeDemoData } from './demo-data.mjs';
import { ADDON, CLI, CONSOLE, DEMO, DOCUMENTATION, ROOT, at, onnxRuntimeLibrary, targetDir } from './paths.mjs';
import { libraryFile } from './platforms.mjs';
import { StepFailed, mustRun, npm, output, tool } from './process.mjs';
import { fingerprint, isDone, markDone } from './stamp.mjs';

const RUST_INPUTS = ['Cargo.toml', 'Cargo.lock', 'crates'];

/** Every folder of packages/ with a package.json: a workspace. */
function workspaces() {
  return readdirSync(at('packages'))
    .filter((name) => existsSync(at('packages', name, 'package.json')))
    .map((name) => join('packages', name));
}

const STEPS = [
  {
    name: 'packages',
    title: 'installing npm packages',
    inputs: () => ['package.json', 'package-lock.json', ...workspaces().map((dir) => join(dir, 'package.json'))],
    results: () => [
      at('node_modules', 'hono', 'package.json'),
      at('node_modules', 'typescript', 'package.json'),
      at('node_modules', 'preact', 'package.json'),
      at('node_modules', '@11ty', 'eleventy', 'package.json'),
    ],
    run: install,
  },
  {
    name: 'addon',
    title: 'compiling the engine (Rust; some minutes the first time)',
    inputs: () => RUST_INPUTS,
    results: () => [ADDON],
    run: buildAddon,
  },
  {
    name: 'typescript',
    title: 'compiling the server (TypeScript)',
    inputs: () => [
      'tsconfig.json',
      'tsconfig.base.json',
      ...['engine', 'cluster', 'endpoints', 'evaluation', 'http', 'cli', 'server'].map((name) =>
        join('packages', name),
      ),
    ],
    results: () => [CLI],
    run: compileTypeScript,
  },
  {
    name: 'console',
    title: 'building the console',
    // The page has code in common with the command line and the interface.
    inputs: () => [
      join('packages', 'console'),
      join('packages', 'cli', 'src', 'documents'),
      ...['explanations.ts', 'json-text.ts', 'warning-texts.ts'].map((name) =>
        join('packages', 'endpoints', 'src', name),
      ),
    ],
    results: () => [CONSOLE],
    run: buildConsole,
  },
  {
    name: 'documentation',
    title: 'building the documentation',
    inputs: () => ['docs', join('packages', 'site'), join('packages', 'endpoints', 'src')],
    results: () => [DOCUMENTATION],
    run: buildDocumentation,
  },
  {
    name: 'demo',
    title: 'packing a dictionary for sparrow demo',
    inputs: () => ['package-lock.json', join('scripts', 'lib', 'demo-data.mjs'), join('scripts', 'lib', 'wordnet.mjs')],
    results: () => [DEMO],
    run: writeDemoData,
  },
];

/** Brings the tree to a state in which the server runs. Prints nothing when there is nothing to do. */
export async function setUp({ only } = {}) {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    throw new StepFailed(`Sparrow needs Node 20.19 or newer; this is ${process.version}`);
  }
  const steps = STEPS.filter(({ name }) => only === undefined || only.includes(name));
  for (const [index, step] of steps.entries()) {
    const print = () => fingerprint(step.inputs());
    if (isDone(step.name, print(), step.results())) continue;
    console.log(`sparrow: [${index + 1}/${steps.length}] ${step.title}`);
    const begun = Date.now();
    await step.run();
    // Taken again: a step may write its own inputs (the lock file, the generated types).
    markDone(step.name, print());
    console.log(`sparrow: [${index + 1}/${steps.length}] done in ${((Date.now() - begun) / 1000).toFixed(1)} s`);
  }
}

/** The triple that Rust builds for on this machine. */
export function hostTriple() {
  const version = output('rustc', ['-vV']);
  if (version === undefined) {
    throw new StepFailed(
      'no Rust toolchain found (rustc is not on the PATH). Install it with rustup, then run this again.',
    );
  }
  return /^host: (.+)$/m.exec(version)[1].trim();
}

/** What every cargo call shares, so that the addon and the Rust tests compile each crate once. */
export function cargoEnvironment() {
  return { CARGO_TARGET_DIR: targetDir(), NAPI_TYPE_DEF_TMP_FOLDER: typeDefinitionFolder() };
}

/** Where tests and benchmarks find ONNX Runtime. */
export function onnxRuntimeEnvironment() {
  return { SPARROW_ONNXRUNTIME: onnxRuntimeLibrary() ?? '' };
}

/** The environment in which cargo compiles and runs tests, beside its usual one. */
export function testEnvironment() {
  // The wrapper is a shell script.
  const wrapper = process.platform === 'win32' ? {} : { RUSTC_WRAPPER: at('scripts', 'lib', 'rustc-tests.sh') };
  return { ...wrapper, ...onnxRuntimeEnvironment() };
}

/**
 * Cargo's options for one crate. The addon is always named too: features are joined over what is named, and without it nearly all
 * dependencies would be compiled again with fewer. It has no tests of its own.
 */
export function packageOptions(crate) {
  return ['-p', crate, '-p', 'sparrow-node'];
}

async function install() {
  // Nothing may run on install, and onnxruntime-node would download GPU libraries.
  const env = { ONNXRUNTIME_NODE_INSTALL: 'skip', npm_config_ignore_scripts: 'true' };
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  if (existsSync(at('package-lock.json')) && !existsSync(at('node_modules'))) {
    await npm(['ci', ...quiet], { env });
  } else {
    await npm(['install', ...quiet], { env });
  }
}

async function buildAddon() {
  const triple = hostTriple();
  await mustRun('cargo', ['build', '--release', '--locked', '--target', triple, '-p', 'sparrow-node'], {
    env: cargoEnvironment(),
  });
  const built = join(targetDir(), triple, 'release', libraryFile(process.platform));
  mkdirSync(dirname(ADDON), { recursive: true });
  // Renamed into place: a server that is running has the old file mapped.
  copyFileSync(built, `${ADDON}.tmp`);
  renameSync(`${ADDON}.tmp`, ADDON);
  writeAddonTypes();
  writeDeclarations();
}

async function compileTypeScript() {
  const tsc = at('node_modules', 'typescript', 'bin', 'tsc');
  if ((await tool(tsc, ['-b', ROOT])) !== 0) throw new StepFailed('the TypeScript sources do not compile');
}

async function buildConsole() {
  if ((await tool(at('packages', 'console', 'build.mjs'), [])) !== 0)
    throw new StepFailed('the console does not build');
}

async function buildDocumentation() {
  if ((await tool(at('packages', 'site', 'build.mjs'), [])) !== 0)
    throw new StepFailed('the documentation does not build');
}
