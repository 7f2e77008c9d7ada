// `npm test`: sets up, runs the Rust and the TypeScript tests, and closes with one line that sums them all.
// Options: --slow also runs what takes minutes; --rust or --ts only one side; the rest goes to vitest.
import { existsSync, readFileSync, rmSync } from 'node:fs';

import { Counts } from './lib/counts.mjs';
import { at, onnxRuntimeLibrary } from './lib/paths.mjs';
import { main, run, tool } from './lib/process.mjs';
import { cargoEnvironment, hostTriple, setUp } from './lib/setup.mjs';

const REPORT = at('node_modules', '.sparrow-vitest.json');

await main(async (args) => {
  await setUp();
  const counts = new Counts();
  const slow = args.includes('--slow');
  const env = slow ? { SPARROW_SLOW_TESTS: '1' } : {};
  const rest = args.filter((arg) => !['--slow', '--rust', '--ts'].includes(arg));
  if (!args.includes('--ts')) await runRust(counts, slow, env);
  if (!args.includes('--rust')) await runTypeScript(counts, rest, env);
  console.log(`\n${counts}`);
  return counts.failed > 0 || counts.passed === 0 ? 1 : 0;
});

async function runRust(counts, slow, env) {
  console.log('sparrow: Rust tests');
  const before = counts.failed;
  const args = ['test', '--workspace', '--release', '--locked', '--no-fail-fast', '--target', hostTriple()];
  const code = await run('cargo', slow ? [...args, '--', '--include-ignored'] : args, {
    env: { ...cargoEnvironment(), ...env, SPARROW_ONNXRUNTIME: onnxRuntimeLibrary() ?? '' },
    onLine: (line) => counts.readCargoLine(line),
  });
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
