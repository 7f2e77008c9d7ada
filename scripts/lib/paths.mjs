// Where things are, as seen from the scripts. Nothing here may need an installed package: it runs before `npm ci`.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const at = (...parts) => join(ROOT, ...parts);

export const STAMP = at('.stamp.json');
export const CLI = at('packages', 'server', 'dist', 'cli.js');
export const CONSOLE = at('packages', 'http', 'dist', 'console.html');
export const DOCUMENTATION = at('packages', 'http', 'dist', 'docs', 'index.html');
export const DEMO = at('packages', 'cli', 'dist', 'demo', 'dictionary.json.gz');
export const ADDON = at('packages', 'engine', 'native', 'sparrow.node');
export const ADDON_TYPES = at('packages', 'engine', 'src', 'addon.generated.ts');

/** Cargo's target directory: one for the addon and for the Rust tests. */
export function targetDir() {
  return process.env.CARGO_TARGET_DIR ?? at('target');
}

/** The folder of ONNX Runtime's shared library inside the installed onnxruntime-node. */
export function onnxRuntimeDir() {
  return at('node_modules', 'onnxruntime-node', 'bin', 'napi-v6', process.platform, process.arch);
}

/** ONNX Runtime's shared library itself, or undefined before the packages are installed. */
export function onnxRuntimeLibrary() {
  const names = {
    win32: ['onnxruntime.dll'],
    darwin: ['libonnxruntime.1.dylib'],
    linux: ['libonnxruntime.so.1'],
  };
  return (names[process.platform] ?? []).map((name) => join(onnxRuntimeDir(), name)).find((path) => existsSync(path));
}
