// `npm test`: sets up, runs the Rust and the TypeScript tests and the benchmarks' own checks, and closes with one line that sums
// them all. Options: --slow also runs what takes minutes; --rust, --ts or --bench only one of the three; the rest goes to vitest.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import process from 'node:process';

import { Counts } from './lib/counts.mjs';
import { at, onnxRuntimeLibrary } from './lib/paths.mjs';
import { main, run, tool } from './lib/process.mjs';
import { cargoEnvironment, hostTriple, setUp } from './lib/setup.mjs';
import { MINUTES, StuckTests, killChildren } from './lib/stuck-tests.mjs';

const REPORT = at('node_modules', '.sparrow-vitest.json');
const BENCH_REPORT = at('node_modules', '.sparrow-bench.json');
const SIDES = ['--rust', '--ts', '--bench'];

await main(async (args) => {
  await setUp();
  const counts = new Counts();
  const slow = args.includes('--slow');
  const env = slow ? { SPARROW_SLOW_TESTS: '1' } : {};
  const rest = args.filter((arg) => arg !== '--slow' && !SIDES.includes(arg));
  const wanted = (side) => args.includes(side) || !SIDES.some((other) => args.includes(other));
  if (wanted('--rust')) await runRust(counts, slow, env);
  if (wanted('--ts')) await runTypeScript(counts, rest, env);
  // Arguments for vitest name some of its tests: nobody waits for benchmarks then.
  if (args.includes('--bench') || (wanted('--bench') && rest.length === 0)) await runBenchmarks(counts);
  for (const failure of counts.failures) console.log(`\nfailed: ${failure}`);
  console.log(`\n${counts}`);
  return counts.failed > 0 || counts.passed === 0 ? 1 : 0;
});

async function runRust(counts, slow, env) {
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
  const args = ['test', '--workspace', '--release', '--locked', '--no-fail-fast', '--target', hostTriple()];
  const code = await run('cargo', slow ? [...args, '--', '--include-ignored'] : args, {
    env: { ...cargoEnvironment(), ...env, SPARROW_ONNXRUNTIME: onnxRuntimeLibrary() ?? '' },
    onLine: (line, child) => {
      cargo = child;
      counts.readCargoLine(line);
      // Tests that only run with --slow may take their time.
      if (!slow) stuck.readCargoLine(line);
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

/** Every benchmark once, small, as a test of its answers. */
async function runBenchmarks(counts) {
  console.log('\nsparrow: benchmarks, small');
  rmSync(BENCH_REPORT, { force: true });
  const before = counts.failed;
  const code = await tool(at('benches', 'run.mjs'), ['--smoke', '--json', BENCH_REPORT]);
  if (existsSync(BENCH_REPORT)) counts.readBench(JSON.parse(readFileSync(BENCH_REPORT, 'utf8')));
  if (code !== 0 && counts.failed === before) counts.add(0, 1);
}
