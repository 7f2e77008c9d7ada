import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

import type {
  NativeEngine,
  ZstdReader,
  checkData,
  checkRepository,
  configureLog,
  declared,
  expandShortForm,
  freeAnswer,
  fuseCalibrated,
  fuseLists,
  repairData,
  shapeAnswer,
  unterminated,
  zstdCompress,
} from './addon.generated.js';
import { BindingError } from './errors.js';
import { ADDON_FILE, platformName, runtimeLibraryNames } from './platform.js';

const require = createRequire(import.meta.url);

/** What the addon exports. */
export interface Addon {
  readonly NativeEngine: typeof NativeEngine;
  readonly ZstdReader: typeof ZstdReader;
  readonly checkData: typeof checkData;
  readonly checkRepository: typeof checkRepository;
  readonly configureLog: typeof configureLog;
  readonly declared: typeof declared;
  readonly expandShortForm: typeof expandShortForm;
  readonly freeAnswer: typeof freeAnswer;
  readonly fuseCalibrated: typeof fuseCalibrated;
  readonly fuseLists: typeof fuseLists;
  readonly repairData: typeof repairData;
  readonly shapeAnswer: typeof shapeAnswer;
  readonly unterminated: typeof unterminated;
  readonly zstdCompress: typeof zstdCompress;
}

/** Where the native parts lie. */
export interface Binding {
  /** The addon itself. */
  readonly addon: string;
  /** ONNX Runtime's shared library, where it is installed. */
  readonly onnxRuntime: string | undefined;
}

/**
 * Finds the addon and ONNX Runtime: built locally (`native/` of this package, only in a checkout, where it is newer than
 * anything installed), else in the installed packages.
 *
 * @throws {BindingError} saying what to do where there is no addon
 */
export function findBinding(): Binding {
  const local = fileURLToPath(new URL('../native/', import.meta.url));
  const platform = platformName();
  const installed = packageDirectory(`@sparrow-search/engine-${platform}`);
  const folders = [local, ...(installed === undefined ? [] : [installed])];
  const addon = firstExisting(folders.map((folder) => join(folder, ADDON_FILE)));
  if (addon === undefined) {
    // Only a checkout has the sources.
    const isCheckout = existsSync(new URL('../src/', import.meta.url));
    throw new BindingError(
      isCheckout
        ? `the addon is not built (there is no ${join(local, ADDON_FILE)}): \`npm run build\` builds it`
        : withoutAddon(platform, require('@sparrow-search/engine/package.json') as Manifest),
    );
  }
  return { addon, onnxRuntime: findRuntime() };
}

/** What this module reads of a package.json. */
export interface Manifest {
  readonly version: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** What to tell who installed the engine and has no addon; the platform packages are those that its manifest lists. */
export function withoutAddon(platform: string, { version, optionalDependencies = {} }: Manifest): string {
  const name = `@sparrow-search/engine-${platform}`;
  const known = Object.keys(optionalDependencies);
  if (!known.includes(name)) {
    const platforms = known.map((one) => one.slice('@sparrow-search/engine-'.length)).join(', ');
    return (
      `Sparrow has no package for this platform, ${platform}; there are packages for ${platforms}. ` +
      'Its sources build with Rust and a C++ compiler: https://github.com/sparrow-search/sparrow'
    );
  }
  return (
    `the package ${name}, which holds the addon for this platform, is not installed. Optional packages were left out, or ` +
    `node_modules comes from another platform: install anew here without --omit=optional, or \`npm install ${name}@${version}\`.`
  );
}

/**
 * Loads the addon. Node keeps one copy however often this is called.
 *
 * ONNX Runtime, which the addon loads when a model needs it, reports to its maker unless this variable is in the environment
 * by then. A worker thread has an environment of its own, which the addon does not see: there the whole process must have been
 * started with the variable, or the addon refuses to load the library.
 */
export function loadAddon(binding: Binding): Addon {
  process.env['ORT_DISABLE_TELEMETRY'] = '1';
  try {
    return require(binding.addon) as Addon;
  } catch (cause) {
    throw new BindingError(`the addon ${binding.addon} does not load: ${String(cause)}`, { cause });
  }
}

/**
 * Finds the shared library of ONNX Runtime: what SPARROW_ONNXRUNTIME names, else the package for it, else the one that a
 * project has for its own use. Its package is optional, since the embedded models do without.
 */
function findRuntime(): string | undefined {
  const named = process.env['SPARROW_ONNXRUNTIME'];
  if (named !== undefined && named !== '') return named;
  const { platform, arch } = process;
  const places: string[] = [];
  // Resolved from the package that depends on it: not every package manager lets others see it.
  const ours = packageDirectory('@sparrow-search/onnxruntime');
  const library =
    ours && packageDirectory(`@sparrow-search/onnxruntime-${platform}-${arch}`, join(ours, 'package.json'));
  if (library !== undefined) places.push(library);
  const theirs = packageDirectory('onnxruntime-node');
  // Not `onnxruntime-node/dist`: only the shared library is used, never that package's own binding.
  if (theirs !== undefined) places.push(join(theirs, 'bin', 'napi-v6', platform, arch));
  return firstExisting(places.flatMap((place) => runtimeLibraryNames().map((name) => join(place, name))));
}

function firstExisting(paths: readonly string[]): string | undefined {
  return paths.find((path) => existsSync(path));
}

/** The folder of an installed package, as seen from this file or from another one. */
function packageDirectory(name: string, from: string = import.meta.url): string | undefined {
  try {
    return dirname(createRequire(from).resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}
