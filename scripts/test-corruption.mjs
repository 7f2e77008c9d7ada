// `npm run test:corruption -- --rounds N --seed S`: damages one file of a data directory N times, opens it each time, and counts how
// often that was found, did not matter, or went wrong (which must be never). `npm test` does it a few hundred times.
import { onnxRuntimeLibrary } from './lib/paths.mjs';
import { StepFailed, main, run } from './lib/process.mjs';
import { cargoEnvironment, hostTriple, setUp } from './lib/setup.mjs';

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
  const test = [
    'test',
    '--release',
    '--locked',
    '--target',
    hostTriple(),
    '-p',
    'sparrow-engine',
    '--test',
    'corruption',
  ];
  return run('cargo', [...test, '--', '--nocapture'], {
    env: {
      ...cargoEnvironment(),
      SPARROW_ONNXRUNTIME: onnxRuntimeLibrary() ?? '',
      SPARROW_CORRUPTION_ROUNDS: values.get('--rounds'),
      SPARROW_CORRUPTION_SEED: values.get('--seed'),
    },
  });
});
