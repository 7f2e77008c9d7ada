// `npm test`: sets up, runs the first tier of the Rust and the TypeScript tests and of the benchmarks' own checks, and closes with one
// line that sums them all. Options: --all runs the second tier too (test/tiers.mjs says what is in it); --rust, --ts or --bench only
// one of the three; the rest goes to vitest.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import process from 'node:process';

import { FIRST_SUITES } from '../test/tiers.mjs';
import { Counts } from './lib/counts.mjs';
import { memoryFolder } from './lib/memory-folder.mjs';
import { at } from './lib/paths.mjs';
import { main, run, tool } from './lib/process.mjs';
import { cargoEnvironment, hostTriple, setUp, testEnvironment } from './lib/setup.mjs';
import { MINUTES, StuckTests, killChildren } from './lib/stuck-tests.mjs';

const REPORT = at('node_modules', '.sparrow-vitest.json');
const BENCH_REPORT = at('node_modules', '.sparrow-bench.json');
const SIDES = ['--rust', '--ts', '--bench'];

await main(async (args) => {
  const counts = new Counts();
  const times = [];
  /** Runs a part of it, and keeps how long that took. */
  const part = async (name, work) => {
    const begun = performance.now();
    await work();
    times.push(`${name} ${Math.round((performance.now() - begun) / 1000)} s`);
  };
  await part('set-up', () => setUp());
  const rest = args.filter((arg) => arg !== '--all' && !SIDES.includes(arg));
  // Tests that are named run, whichever tier they are in.
  const all = args.includes('--all') || rest.length > 0;
  // Clusters take minutes to start: the first tier takes one only where somebody names it.
  const env = all
    ? { SPARROW_TEST_TIER: 'all' }
    : {
        SPARROW_TEST_TIER: 'first',
        SPARROW_TEST_CLUSTER: process.env.SPARROW_TEST_CLUSTER ?? 'none',
        ...memoryFolder(),
      };
  const wanted = (side) => args.includes(side) || !SIDES.some((other) => args.includes(other));
  if (wanted('--rust')) await part('Rust', () => runRust(counts, args.includes('--all'), env));
  if (wanted('--ts')) await part('TypeScript', () => runTypeScript(counts, rest, env));
  // Arguments for vitest name some of its tests: nobody waits for benchmarks then.
  if (args.includes('--bench') || (wanted('--bench') && rest.length === 0)) {
    await part('benchmarks', () => runBenchmarks(counts, all));
  }
  for (const failure of counts.failures) console.log(`\nfailed: ${failure}`);
  console.log(`\nsparrow: ${all ? 'both tiers' : 'first tier'}: ${times.join(', ')}`);
  console.log(`\n${counts}`);
  return counts.failed > 0 || counts.passed === 0 ? 1 : 0;
});

async function runRust(counts, all, env) {
  console.log('sparrow: Rust tests');
  const before = counts.failed;
  let cargo;
  const stuck = new StuckTests((names) => {
    counts.add(0, names.length);
    for (const name of names) counts.failures.push(`${name}: has not ended ${MINUTES + 1} minutes after it began`);
    // Cargo goes on with the next test binary when one is gone.
    if (killChildren(cargo.pid)) return;
    console.log(`\nfailed: ${counts.failures.join('\n\nfailed: ')}\n\n${counts}`);
    process.exit(1);
  });
  // Examples are programs of their own, which clippy compiles; no crate has examples in its documentation.
  const targets = ['--workspace', '--tests'];
  // Tests wait for the disk as long as they compute.
  const threads = { RUST_TEST_THREADS: String(2 * availableParallelism()) };
  const args = ['test', ...targets, '--release', '--locked', '--no-fail-fast', '--target', hostTriple()];
  const code = await run('cargo', all ? [...args, '--', '--include-ignored'] : args, {
    env: { ...cargoEnvironment(), ...testEnvironment(), ...threads, ...env },
    onLine: (line, child) => {
      cargo = child;
      counts.readCargoLine(line);
      // Tests of the second tier may take their time.
      if (!all) stuck.readCargoLine(line);
    },
  });
  stuck.stop();
  // A crate that does not compile, or a test binary that dies, reports no failed test of its own.
  if (code !== 0 && counts.failed === before) counts.add(0, 1);
}

async function runTypeScript(counts, rest, env) {
  console.log('\nsparrow: TypeScript tests');
  rmSync(REPORT, { force: true });
  const vitest = at('node_modules', 'vitest', 'vitest.mjs');
  const before = counts.failed;
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${REPORT}`];
  const code = await tool(vitest, ['run', ...reporters, ...rest], { env });
  if (existsSync(REPORT)) counts.readVitest(JSON.parse(readFileSync(REPORT, 'utf8')));
  if (code !== 0 && counts.failed === before) counts.add(0, 1);
}

/** Benchmarks once, small, as a test of their answers. */
async function runBenchmarks(counts, all) {
  console.log('\nsparrow: benchmarks, small');
  rmSync(BENCH_REPORT, { force: true });
  const before = counts.failed;
  const some = all ? [] : ['--only', FIRST_SUITES.join(',')];
  const code = await tool(at('benches', 'run.mjs'), ['--smoke', ...some, '--json', BENCH_REPORT]);
  if (existsSync(BENCH_REPORT)) counts.readBench(JSON.parse(readFileSync(BENCH_REPORT, 'utf8')));
  if (code !== 0 && counts.failed === before) counts.add(0, 1);
}
