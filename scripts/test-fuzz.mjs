// npm run test:fuzz -- [--minutes N] [--inputs N] [--seed S] [--only http|rust]
//
// Sends bad requests to a real server, and bad bytes to each decoder in Rust, for N minutes each; with --inputs, so many requests.
// docs/reliability.md says what is counted. A request that went wrong is kept in test/fuzz/found, bytes in the tests/found of their
// crate: npm test tries both again. Ends with 1 on any mistake.
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { cargoTest } from './lib/cargo-test.mjs';
import { at } from './lib/paths.mjs';
import { StepFailed, main } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';

/** Crates with tests of their decoders, and how many decoders each has: those of one crate share its time. */
const CRATES = { storage: 2, postings: 1, vectors: 2, encoder: 7, engine: 16 };

/** Of these crates, those with decoders that only the crate itself can call: their tests are in modules called `fuzz`. */
const INSIDE = new Set(['encoder']);

await main(async (args) => {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string', default: '1' },
      inputs: { type: 'string' },
      seed: { type: 'string', default: '1' },
      only: { type: 'string' },
    },
  });
  for (const name of ['minutes', 'seed', 'inputs']) {
    if (values[name] !== undefined && !/^\d+$/.test(values[name]))
      throw new StepFailed(`--${name} wants a whole number`);
  }
  const seed = Number(values.seed);
  await setUp();
  let mistakes = 0;
  if (values.only !== 'rust') mistakes += await overHttp(seed, values);
  if (values.only !== 'http') mistakes += await inRust(seed, Number(values.minutes));
  return mistakes > 0 ? 1 : 0;
});

async function overHttp(seed, { minutes, inputs }) {
  const { fuzz } = await import('../test/fuzz/run.mjs');
  const folder = at('test', 'fuzz', 'found');
  const limit = inputs === undefined ? { minutes: Number(minutes) } : { inputs: Number(inputs) };
  const counts = await fuzz({
    seed,
    ...limit,
    report: ({ number, kind, request, outcome, log }) => {
      console.log(`${kind} at number ${number}: ${request?.method ?? ''} ${request?.path ?? ''}`);
      if (outcome?.text !== undefined) console.log(`  ${outcome.text.slice(0, 300)}`);
      if (kind === 'end') console.log(log.map((line) => `  ${line}`).join('\n'));
      if (request === undefined) return;
      const body = request.body?.toString('base64');
      const text = JSON.stringify({ kind, seed, number, ...request, body }, null, 2);
      mkdirSync(folder, { recursive: true });
      const name = createHash('sha256').update(text).digest('hex').slice(0, 16);
      writeFileSync(at('test', 'fuzz', 'found', `${name}.json`), `${text}\n`);
    },
  });
  const { tried, statuses, documented, fiveHundreds, hangs, cuts, deaths, slowest } = counts;
  const answers = Object.entries(statuses).map(([status, count]) => `${count} ${status}`);
  console.log(
    `HTTP, seed ${seed}: ${tried} bad requests; ${answers.join(', ')} (${documented} of 500 as in Elasticsearch); ` +
      `slowest ${Math.round(slowest)} ms; other answers of 500 and above: ${fiveHundreds}, hangs: ${hangs}, cut off: ${cuts}, deaths: ${deaths}`,
  );
  return fiveHundreds + hangs + cuts + deaths;
}

async function inRust(seed, minutes) {
  let failed = 0;
  for (const [crate, decoders] of Object.entries(CRATES)) {
    const seconds = Math.max(1, Math.ceil((minutes * 60) / Object.keys(CRATES).length / decoders));
    const options = {
      env: { SPARROW_FUZZ_SEED: String(seed), SPARROW_FUZZ_SECONDS: String(seconds) },
      threads: 1,
      onLine: (line) => {
        if (/^fuzz |panicked|^test .*FAILED|seed \d+, number/.test(line)) console.log(line);
      },
    };
    const tests = [{ file: 'fuzz' }, ...(INSIDE.has(crate) ? [{ module: 'fuzz' }] : [])];
    for (const test of tests) {
      if ((await cargoTest(`sparrow-${crate}`, test, options)) !== 0) failed += 1;
    }
  }
  return failed;
}
