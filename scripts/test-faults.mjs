// npm run test:faults -- [--rounds N|all] [--seed S]
//
// Lets operations on files fail one after another, in a workload and in the recovery from it, and cuts the power at any moment;
// docs/reliability.md says what is compared. Ends with 1 on any difference.
import { parseArgs } from 'node:util';

import { cargoTest } from './lib/cargo-test.mjs';
import { main, StepFailed } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';

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
  console.log(`seed ${values.seed}, ${values.rounds} cases for each kind of test`);
  return cargoTest(
    'sparrow-engine',
    { file: 'faults' },
    {
      env: { SPARROW_FAULTS_SEED: values.seed, SPARROW_FAULTS_ROUNDS: values.rounds },
      threads: 2,
      onLine: (line) => {
        if (/^(faults|power cuts)|^test |panicked|^seed/.test(line)) console.log(line);
      },
    },
  );
});
