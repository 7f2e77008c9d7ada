// Runs the tests of a suite against a server, one after the other.
import { allowPatterns, cleanUp } from './cleanup.mjs';
import { Stash } from './stash.mjs';
import { Skipped, runStep } from './steps.mjs';

/** Tests that delete or close indices by patterns. */
const BY_PATTERNS = /^indices\.(?:delete|open)\//;

/**
 * Runs one test: its setup, its steps, its teardown; then the server is as it was.
 *
 * @param {import('./load.mjs').SuiteTest} test
 * @param {{ spec: object, send: Function }} tools
 * @returns {Promise<{ state: 'passed' | 'failed' | 'skipped', why?: string }>}
 */
export async function runTest(test, tools) {
  const stash = new Stash();
  let result = { state: 'passed' };
  let at = '';
  let changed = BY_PATTERNS.test(test.file);
  if (changed) await allowPatterns(tools.send);
  try {
    for (const [section, steps] of [
      ['setup', test.setup],
      ['step', test.steps],
    ]) {
      for (const [place, step] of steps.entries()) {
        at = `${section} ${place + 1}`;
        await runStep(step, { ...tools, stash });
        changed = true;
      }
    }
  } catch (error) {
    result = { state: error instanceof Skipped ? 'skipped' : 'failed', why: explain(at, error) };
  }
  if (result.state === 'skipped' && !changed) return result;
  try {
    for (const step of test.teardown) await runStep(step, { ...tools, stash });
  } catch (error) {
    if (result.state === 'passed') result = { state: 'failed', why: explain('teardown', error) };
  }
  await cleanUp(tools.send);
  return result;
}

const explain = (at, error) => (error instanceof Skipped ? error.message : `${at}: ${error.message}`);
