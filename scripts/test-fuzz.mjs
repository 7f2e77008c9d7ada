// npm run test:fuzz -- [options]
//
// Sends bad requests to a real server, and bad bytes to each decoder in Rust, for N minutes each; with --inputs, so many requests.
// docs/reliability.md says what is counted. A request that went wrong is kept in test/fuzz/found, bytes in the tests/found of their
// crate: npm test tries both again. Ends with 1 on any mistake.
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';

import { cargoTest } from './lib/cargo-test.mjs';
import { countsIn } from './lib/count-lines.mjs';
import { at } from './lib/paths.mjs';
import { StepFailed } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';
import { testCommand, wholeNumber } from './lib/test-command.mjs';

/** Crates with tests of their decoders, and how many decoders each has: those of one crate share its time. */
const CRATES = { storage: 2, postings: 1, vectors: 2, encoder: 7, engine: 16 };

/** Of these crates, those whose tests are one program with a module called `fuzz`; the others have a program of that name. */
const JOINED = new Set(['encoder', 'engine']);

/** Of these crates, those with decoders that only the crate itself can call: their tests are in modules called `fuzz`. */
const INSIDE = new Set(['encoder']);

await testCommand({
  suite: 'fuzz',
  title: 'bad requests to a server, and bad bytes to each decoder',
  command: 'npm run test:fuzz',
  options: {
    minutes: { type: 'string', default: '1', value: 'N', help: 'for how long a server, and all decoders together' },
    inputs: { type: 'string', value: 'N', help: 'so many requests to the server, however long they take' },
    seed: { type: 'string', default: '1', value: 'S', help: 'seed of all random choices' },
    only: { type: 'string', value: 'http|rust', help: 'only the server, or only the decoders' },
  },
  run: async (values) => {
    const [minutes, inputs, seed] = ['minutes', 'inputs', 'seed'].map((name) => wholeNumber(values, name));
    if (![undefined, 'http', 'rust'].includes(values.only)) throw new StepFailed('--only wants http or rust');
    await setUp();
    const found = { counts: {}, failures: [], closing: [] };
    if (values.only !== 'rust') await overHttp(seed, inputs === undefined ? { minutes } : { inputs }, found);
    if (values.only !== 'http') await inRust(seed, minutes, found);
    const closing = `fuzz: seed ${seed}; ${found.closing.join('; ')}; ${found.failures.length} mistakes`;
    return { seed, ...found, closing };
  },
});

async function overHttp(seed, limit, found) {
  const { fuzz } = await import('../test/fuzz/run.mjs');
  const folder = at('test', 'fuzz', 'found');
  const http = await fuzz({
    seed,
    ...limit,
    report: ({ number, kind, request, outcome, log }) => {
      const what = `${kind} at number ${number}: ${request?.method ?? ''} ${request?.path ?? ''}`;
      found.failures.push(what);
      console.log(what);
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
  const { tried, statuses, documented, fiveHundreds, hangs, cuts, deaths, slowest } = http;
  const mistakes = { fiveHundreds, hangs, cuts, deaths };
  // Each is reported; one that was not is a mistake all the same.
  if (found.failures.length === 0) {
    for (const [name, count] of Object.entries(mistakes)) if (count > 0) found.failures.push(`${name}: ${count}`);
  }
  const answers = Object.entries(statuses).map(([status, count]) => [`answered${status}`, count]);
  Object.assign(found.counts, {
    requests: tried,
    ...Object.fromEntries(answers),
    documented500s: documented,
    ...mistakes,
    slowestMs: Math.round(slowest),
  });
  found.closing.push(
    `${tried} bad requests: ${Object.entries(statuses).map(([status, count]) => `${count} ${status}`)} (${documented} of 500 as in ` +
      `Elasticsearch), slowest ${Math.round(slowest)} ms, other answers of 500 and above: ${fiveHundreds}, hangs: ${hangs}, ` +
      `cut off: ${cuts}, deaths: ${deaths}`,
  );
}

async function inRust(seed, minutes, found) {
  const decoders = {};
  for (const [crate, expected] of Object.entries(CRATES)) {
    const seconds = Math.max(1, Math.ceil((minutes * 60) / Object.keys(CRATES).length / expected));
    let seen = 0;
    const options = {
      env: { SPARROW_FUZZ_SEED: String(seed), SPARROW_FUZZ_SECONDS: String(seconds) },
      threads: 1,
      onLine: (line) => {
        if (/^fuzz |panicked|^test .*FAILED|seed \d+, number/.test(line)) console.log(line);
        const [name, decoder] = /^fuzz (\S+)(?=:)/.exec(line) ?? [];
        if (decoder === undefined) return;
        seen += 1;
        decoders[`${crate}: ${decoder}`] = countsIn(line, name);
      },
    };
    const outside = JOINED.has(crate) ? { file: 'it', module: 'fuzz' } : { file: 'fuzz' };
    const tests = [outside, ...(INSIDE.has(crate) ? [{ module: 'fuzz' }] : [])];
    for (const test of tests) {
      const exitCode = await cargoTest(`sparrow-${crate}`, test, options);
      if (exitCode !== 0) found.failures.push(`${crate}: cargo test ended with ${exitCode}`);
    }
    if (seen !== expected) found.failures.push(`${crate}: ${seen} decoders were tried, there are ${expected}`);
  }
  const sum = (name) => Object.values(decoders).reduce((all, counts) => all + (counts[name] ?? 0), 0);
  const [inputs, crashes, hangs] = ['inputs', 'crashes', 'hangs'].map(sum);
  for (const [name, { crashes: ends, hangs: late }] of Object.entries(decoders)) {
    if (ends + late > 0) found.failures.push(`${name}: ${ends} crashes, ${late} hangs`);
  }
  Object.assign(found.counts, { decoders: Object.keys(decoders).length, inputs, crashes, decoderHangs: hangs });
  found.decoders = decoders;
  found.closing.push(
    `${inputs} inputs to ${Object.keys(decoders).length} decoders: ${crashes} crashes, ${hangs} hangs`,
  );
}
