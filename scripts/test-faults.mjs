// npm run test:faults -- [options]
//
// Lets operations on files fail one after another, in a workload and in the recovery from it, and cuts the power at any moment;
// docs/reliability.md says what is compared. Ends with 1 on any difference.
import { cargoTest } from './lib/cargo-test.mjs';
import { CountLines } from './lib/count-lines.mjs';
import { StepFailed } from './lib/process.mjs';
import { setUp } from './lib/setup.mjs';
import { testCommand, wholeNumber } from './lib/test-command.mjs';

await testCommand({
  suite: 'faults',
  title: 'each operation on files fails once, and the power goes at any moment: what was acknowledged is there',
  command: 'npm run test:faults',
  options: {
    rounds: { type: 'string', default: '300', value: 'N|all', help: 'cases for each of the three kinds of test' },
    seed: { type: 'string', default: '1', value: 'S', help: 'seed of all random choices' },
  },
  run: async (values) => {
    const rounds = values.rounds === 'all' ? 'all' : numberOfCases(values);
    const seed = wholeNumber(values, 'seed');
    await setUp({ only: ['packages'] });
    console.log(`seed ${seed}, ${rounds} cases for each kind of test`);
    const lines = new CountLines(
      new Map([
        ['faults', ['cases', 'of', 'acknowledged', 'refused']],
        ['faults by call', []],
        ['faults during recovery', ['cases', 'of']],
        ['power cuts', ['cases', 'changes']],
      ]),
    );
    const panics = [];
    const exitCode = await cargoTest(
      'sparrow-engine',
      { file: 'it', module: 'faults' },
      {
        env: { SPARROW_FAULTS_SEED: String(seed), SPARROW_FAULTS_ROUNDS: String(rounds) },
        threads: 2,
        onLine: (line) => {
          lines.read(line);
          if (/^(faults|power cuts)|^test |panicked|^seed/.test(line)) console.log(line);
          // The test names the case that ends it.
          if (/^seed \d+, case /.test(line)) panics.push(line);
        },
      },
    );
    const failures = [...panics, ...lines.problems()];
    if (exitCode !== 0) failures.push(`cargo test ended with ${exitCode}`);
    const counts = {
      faults: lines.of('faults', 'cases'),
      faultsOf: lines.of('faults', 'of'),
      acknowledged: lines.of('faults', 'acknowledged'),
      refused: lines.of('faults', 'refused'),
      recoveryFaults: lines.of('faults during recovery', 'cases'),
      recoveryFaultsOf: lines.of('faults during recovery', 'of'),
      powerCuts: lines.of('power cuts', 'cases'),
      changes: lines.of('power cuts', 'changes'),
    };
    const n = (name) => counts[name].toLocaleString('en-US');
    const closing =
      `faults: seed ${seed}, ${n('faults')} of ${n('faultsOf')} in the workload, ${n('recoveryFaults')} of ${n('recoveryFaultsOf')} in the ` +
      `recovery, ${n('powerCuts')} power cuts; ${n('acknowledged')} operations acknowledged, ${n('refused')} refused; ${failures.length} failures`;
    return { seed, counts, closing, failures, calls: lines.found.get('faults by call') ?? {} };
  },
});

function numberOfCases(values) {
  try {
    return wholeNumber(values, 'rounds', 1);
  } catch {
    throw new StepFailed('--rounds wants a number of cases for each kind of test, or all');
  }
}
