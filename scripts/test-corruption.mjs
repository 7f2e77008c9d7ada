// npm run test:corruption -- [options]
//
// Damages one file of a data directory N times, opens it each time, and counts how often that was found, did not matter, or went wrong
// (which must be never). `npm run test:all` does it 250 times, `npm test` 60.
import { cargoTest } from './lib/cargo-test.mjs';
import { CountLines, countsIn } from './lib/count-lines.mjs';
import { setUp } from './lib/setup.mjs';
import { testCommand, wholeNumber } from './lib/test-command.mjs';

const COUNTS = ['damaged', 'detected', 'harmless', 'wrong', 'panics', 'hangs'];

await testCommand({
  suite: 'corruption',
  title: 'files of a data directory damaged one at a time: named, or harmless, and never answered wrongly',
  command: 'npm run test:corruption',
  options: {
    rounds: { type: 'string', default: '10000', value: 'N', help: 'files that are damaged' },
    seed: { type: 'string', default: '1', value: 'S', help: 'seed of all random choices' },
  },
  run: async (values) => {
    const [rounds, seed] = [wholeNumber(values, 'rounds', 1), wholeNumber(values, 'seed')];
    await setUp({ only: ['packages'] });
    const lines = new CountLines(new Map([['corruption', COUNTS]]));
    const kinds = {};
    const exitCode = await cargoTest(
      'sparrow-engine',
      { file: 'alone', module: 'corruption' },
      {
        env: { SPARROW_CORRUPTION_ROUNDS: String(rounds), SPARROW_CORRUPTION_SEED: String(seed) },
        onLine: (line) => {
          console.log(line);
          lines.read(line);
          const [name, kind] = /^corruption of ([\w.-]+)(?=:)/.exec(line) ?? [];
          if (kind !== undefined) kinds[kind] = countsIn(line, name);
        },
      },
    );
    const counts = Object.fromEntries(COUNTS.map((name) => [name, lines.of('corruption', name)]));
    const failures = lines.problems();
    for (const name of ['wrong', 'panics', 'hangs']) if (counts[name] > 0) failures.push(`${name}: ${counts[name]}`);
    if (counts.damaged !== rounds) failures.push(`${counts.damaged} files were damaged, ${rounds} were asked for`);
    if (exitCode !== 0) failures.push(`cargo test ended with ${exitCode}`);
    const closing = `corruption: seed ${seed}, ${COUNTS.map((name) => `${counts[name].toLocaleString('en-US')} ${name}`).join(', ')}`;
    return { seed, counts, closing, failures, kinds };
  },
});
