// Runs the tests of a suite against a server, one after the other.
import { cleanUp } from './cleanup.mjs';
import { Stash } from './stash.mjs';
import { Skipped, runStep } from './steps.mjs';

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
  const first = test.setup.length > 0 ? 'setup 1' : 'step 1';
  try {
    for (const [section, steps] of [
      ['setup', test.setup],
      ['step', test.steps],
    ]) {
      for (const [place, step] of steps.entries()) {
        at = `${section} ${place + 1}`;
        await runStep(step, { ...tools, stash });
      }
    }
  } catch (error) {
    // What is skipped at once has left nothing behind.
    if (error instanceof Skipped && at === first) return { state: 'skipped', why: error.message };
    result = { state: error instanceof Skipped ? 'skipped' : 'failed', why: explain(at, error) };
  }
  try {
    for (const step of test.teardown) await runStep(step, { ...tools, stash });
  } catch (error) {
    if (result.state === 'passed') result = { state: 'failed', why: explain('teardown', error) };
  }
  await cleanUp(tools.send);
  return result;
}

const explain = (at, error) => (error instanceof Skipped ? error.message : `${at}: ${error.message}`);
