import { run } from './process.mjs';
import { cargoEnvironment, hostTriple, packageOptions, testEnvironment } from './setup.mjs';

/**
 * Runs some tests of a crate, as `npm test` compiles it, and answers with cargo's exit code.
 * @param {string} crate such as `sparrow-engine`
 * @param {object} tests `file`: the name of a program below `tests`, without its ending, the crate itself if absent; `module`: one
 *   of its modules, all of them if absent
 * @param {object} options `env`: variables for the tests; `threads`: how many tests run at once; `onLine`: called with each
 *   line instead of printing it
 */
export function cargoTest(crate, { file, module }, { env = {}, threads, onLine } = {}) {
  const test = ['test', '--release', '--locked', '--target', hostTriple(), ...packageOptions(crate)];
  const which = [
    ...(file === undefined ? ['--lib'] : ['--test', file]),
    ...(module === undefined ? [] : [`${module}::`]),
  ];
  const options = ['--', '--nocapture', ...(threads === undefined ? [] : [`--test-threads=${threads}`])];
  return run('cargo', [...test, ...which, ...options], {
    env: { ...cargoEnvironment(), ...testEnvironment(), ...env },
    ...(onLine === undefined ? {} : { quiet: true, onLine }),
  });
}
