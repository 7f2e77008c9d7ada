// `npm run test:corruption -- --rounds N --seed S`: damages one file of a data directory N times, opens it each time, and counts how
// often that was found, did not matter, or went wrong (which must be never). `npm test` does it a few hundred times.
import { cargoTest } from './lib/cargo-test.mjs';
import { StepFailed, main } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';

await main(async (args) => {
  const values = new Map([
    ['--rounds', '10000'],
    ['--seed', '1'],
  ]);
  for (let at = 0; at < args.length; at += 2) {
    const [name, value] = [args[at], args[at + 1]];
    if (!values.has(name) || !/^\d+$/.test(value ?? '')) throw new StepFailed('usage: [--rounds N] [--seed S]');
    values.set(name, value);
  }
  await setUp();
  return cargoTest(
    'sparrow-engine',
    { file: 'corruption' },
    {
      env: {
        SPARROW_CORRUPTION_ROUNDS: values.get('--rounds'),
        SPARROW_CORRUPTION_SEED: values.get('--seed'),
      },
    },
  );
});
