import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

import type {
  NativeEngine,
  ZstdReader,
  checkData,
  configureLog,
  repairData,
  shapeAnswer,
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
  readonly configureLog: typeof configureLog;
  readonly repairData: typeof repairData;
  readonly shapeAnswer: typeof shapeAnswer;
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
 * anything installed), else in the installed platform package.
 *
 * @throws {BindingError} naming every place that was looked at.
 */
export function findBinding(): Binding {
  const local = fileURLToPath(new URL('../native/', import.meta.url));
  const installed = packageDirectory(`@sparrow-search/engine-${platformName()}`);
  const folders = [local, ...(installed === undefined ? [] : [installed])];

  const addon = firstExisting(folders.map((folder) => join(folder, ADDON_FILE)));
  if (addon === undefined) {
    throw new BindingError(
      `Sparrow has no addon for ${platformName()}: looked for ${ADDON_FILE} in ${folders.join(' and ')}, and for the ` +
        `package @sparrow-search/engine-${platformName()}. In a checkout, \`npm run build\` builds it.`,
    );
  }
  return { addon, onnxRuntime: findRuntime(folders) };
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

function findRuntime(folders: readonly string[]): string | undefined {
  const places = [...folders];
  const npm = packageDirectory('onnxruntime-node');
  if (npm !== undefined) {
    // Not `onnxruntime-node/dist`: only the shared library is used, never that package's own binding.
    places.push(join(npm, 'bin', 'napi-v6', process.platform, process.arch));
  }
  const candidates = places.flatMap((place) => runtimeLibraryNames().map((name) => join(place, name)));
  return firstExisting(candidates);
}

function firstExisting(paths: readonly string[]): string | undefined {
  return paths.find((path) => existsSync(path));
}

function packageDirectory(name: string): string | undefined {
  try {
    return dirname(require.resolve(`${name}/package.json`));
  } catch {
    return undefined;
  }
}
