// npm run test:faults -- [--rounds N|all] [--seed S]
//
// Lets operations on files fail one after another, in a workload and in the recovery from it, and cuts the power at any moment;
// docs/reliability.md says what is compared. Ends with 1 on any difference.
import process from 'node:process';
import { parseArgs } from 'node:util';

import { onnxRuntimeLibrary } from './lib/paths.mjs';
import { main, run, StepFailed } from './lib/process.mjs';
import { cargoEnvironment, hostTriple, setUp } from './lib/setup.mjs';

await main(async (args) => {
  const { values } = parseArgs({
    args,
    options: { rounds: { type: 'string', default: '300' }, seed: { type: 'string', default: '1' } },
  });
  if (values.rounds !== 'all' && !/^[1-9]\d*$/.test(values.rounds)) {
    throw new StepFailed('--rounds wants a number of cases for each kind of test, or all');
  }
  if (!/^\d+$/.test(values.seed)) throw new StepFailed('--seed wants a whole number');
  await setUp({ only: ['packages'] });
  const test = ['--release', '--locked', '--target', hostTriple(), '-p', 'sparrow-engine', '--test', 'faults'];
  console.log(`seed ${values.seed}, ${values.rounds} cases for each kind of test`);
  return run('cargo', ['test', ...test, '--', '--nocapture', '--test-threads=2'], {
    env: {
      ...process.env,
      ...cargoEnvironment(),
      SPARROW_FAULTS_SEED: values.seed,
      SPARROW_FAULTS_ROUNDS: values.rounds,
      SPARROW_ONNXRUNTIME: onnxRuntimeLibrary() ?? '',
    },
    quiet: true,
    onLine: (line) => {
      if (/^(faults|power cuts)|^test |panicked|^seed/.test(line)) console.log(line);
    },
  });
});
