// node scripts/rest-suites.mjs DIR [FOLDER …] [--quiet] [--json FILE]
//
// Runs a public REST suite (CONTRIBUTING.md says how to get one) against a server of its own and prints what passes. FOLDER
// is the beginning of a file's name below `test`: `search`, `bulk/10`. `--json` writes all results.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { loadApi } from '../test/rest-suites/api-spec.mjs';
import { createSender } from '../test/rest-suites/client.mjs';
import { loadExpected } from '../test/rest-suites/expected.mjs';
import { loadTests, suiteFolders } from '../test/rest-suites/load.mjs';
import { runTest } from '../test/rest-suites/runner.mjs';
import { shares } from '../test/rest-suites/shares.mjs';
import { findApiKey } from './lib/api-client.mjs';
import { CLI } from './lib/paths.mjs';
import { main, StepFailed } from './lib/process.mjs';
import { startServer } from './lib/server-process.mjs';

await main(async (args) => {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { quiet: { type: 'boolean', default: false }, json: { type: 'string' } },
  });
  const [directory, ...wanted] = positionals;
  if (directory === undefined)
    throw new StepFailed('usage: node scripts/rest-suites.mjs DIR [FOLDER …] [--quiet] [--json FILE]');
  const folders = suiteFolders(directory);
  const tests = loadTests(folders.tests).filter(
    ({ file }) => wanted.length === 0 || wanted.some((name) => file === name || file.startsWith(name)),
  );
  const results = await onServer((server) =>
    runAll(tests, { spec: loadApi(folders.api), send: createSender(server) }, values),
  );
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(results, null, 1)}\n`);
  return summarize(results);
});

/** Runs `work` with a server whose data is thrown away, and with it the snapshots, which are kept beside the data. */
async function onServer(work) {
  const folder = mkdtempSync(join(tmpdir(), 'sparrow-rest-suites-'));
  const data = join(folder, 'data');
  const server = await startServer(process.execPath, [CLI], data);
  try {
    return await work({ url: server.url, apiKey: findApiKey(data) });
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runAll(tests, tools, { quiet }) {
  const expected = loadExpected();
  const results = [];
  for (const test of tests) {
    const reason = expected.failing(test);
    const removed = expected.removed(test);
    const { state, why } =
      removed === undefined ? await runTest(test, tools) : { state: 'skipped', why: `removed: ${removed}` };
    results.push({ file: test.file, name: test.name, state: judge(state, reason), why, reason });
    const { state: judged } = results.at(-1);
    if (judged === 'FAILED') console.log(`FAILED  ${test.file}: ${test.name}\n        ${why}`);
    else if (judged === 'UNEXPECTED')
      console.log(`PASSES  ${test.file}: ${test.name}\n        expected to fail: ${reason}`);
    else if (!quiet)
      console.log(
        `${judged.padEnd(8)}${test.file}: ${test.name}${why === undefined ? '' : `\n        ${reason ?? why}`}`,
      );
  }
  return results;
}

function judge(state, reason) {
  if (state === 'skipped' || (state === 'passed' && reason === undefined)) return state;
  if (reason === undefined) return 'FAILED';
  return state === 'failed' ? 'expected' : 'UNEXPECTED';
}

function summarize(results) {
  const count = (by) => {
    const counts = new Map();
    for (const result of results) counts.set(by(result), (counts.get(by(result)) ?? 0) + 1);
    return counts;
  };
  console.log('\nfolder: passed / expected failures / skipped / FAILED or passing unexpectedly');
  const folders = new Map();
  for (const { file, state } of results) {
    const row = folders.get(file.split('/')[0]) ?? { passed: 0, expected: 0, skipped: 0, FAILED: 0 };
    row[state === 'UNEXPECTED' ? 'FAILED' : state] += 1;
    folders.set(file.split('/')[0], row);
  }
  for (const [folder, row] of folders) console.log(`  ${folder}: ${Object.values(row).join(' / ')}`);
  console.log('\nexpected failures:');
  for (const [reason, n] of count(({ state, reason }) => (state === 'expected' ? reason : ''))) {
    if (reason !== '') console.log(`  ${n}  ${reason}`);
  }
  console.log('');
  for (const { name, passed, of, percent } of shares(results)) {
    console.log(`${name}: ${passed} of ${of} pass, ${percent} %`);
  }
  const states = count(({ state }) => state);
  console.log(
    `${['passed', 'expected', 'skipped', 'FAILED', 'UNEXPECTED'].map((state) => `${states.get(state) ?? 0} ${state}`).join(', ')}`,
  );
  return states.has('FAILED') || states.has('UNEXPECTED') ? 1 : 0;
}
