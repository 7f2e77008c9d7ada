import { onnxRuntimeLibrary } from './paths.mjs';
import { run } from './process.mjs';
import { cargoEnvironment, hostTriple } from './setup.mjs';

/**
 * Runs one file of tests of a crate, as `npm test` compiles it, and answers with cargo's exit code.
 * @param {string} crate such as `sparrow-engine`
 * @param {string} file the file's name below `tests`, without its ending
 * @param {object} options `env`: variables for the tests; `threads`: how many tests run at once; `onLine`: called with each
 *   line instead of printing it
 */
export function cargoTest(crate, file, { env = {}, threads, onLine } = {}) {
  const test = ['test', '--release', '--locked', '--target', hostTriple(), '-p', crate, '--test', file];
  const options = ['--', '--nocapture', ...(threads === undefined ? [] : [`--test-threads=${threads}`])];
  return run('cargo', [...test, ...options], {
    env: { ...cargoEnvironment(), SPARROW_ONNXRUNTIME: onnxRuntimeLibrary() ?? '', ...env },
    ...(onLine === undefined ? {} : { quiet: true, onLine }),
  });
}
