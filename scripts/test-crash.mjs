// npm run test:crash -- [options]
//
// Kills a server under load again and again and compares what it has after each restart with a model; docs/reliability.md says what is compared.
// Ends with 1 on any difference.
import { StepFailed } from './lib/process.mjs';
import { testCommand, wholeNumber } from './lib/test-command.mjs';

await testCommand({
  suite: 'crash',
  title: 'a server killed at random moments, compared with a model',
  command: 'npm run test:crash',
  options: {
    rounds: { type: 'string', default: '100', value: 'N', help: 'rounds of two to four seconds' },
    seed: {
      type: 'string',
      default: String(Date.now() % 1_000_000),
      value: 'S',
      help: 'seed of all random choices; another one each time if nothing is said',
    },
    'max-problems': { type: 'string', default: '5', value: 'N', help: 'stop after so many rounds with differences' },
    with: { type: 'string', multiple: true, default: [], value: 'NAME', help: 'an operation that is switched off' },
    without: { type: 'string', multiple: true, default: [], value: 'NAME', help: 'leave an operation out' },
  },
  run: async (values) => {
    // They need installed packages, which `--help` has to do without.
    const { OPERATION_NAMES } = await import('../test/crash/clients.mjs');
    const { closingLine, runRounds } = await import('../test/crash/rounds.mjs');
    const { SWITCHED_OFF } = await import('../test/crash/switched-off.mjs');
    for (const name of [...values.with, ...values.without]) {
      if (!OPERATION_NAMES.includes(name))
        throw new StepFailed(`no operation [${name}]: ${OPERATION_NAMES.join(', ')}`);
    }
    const off = new Set([...SWITCHED_OFF.keys(), ...values.without].filter((name) => !values.with.includes(name)));
    const options = { rounds: wholeNumber(values, 'rounds', 1), seed: wholeNumber(values, 'seed'), off };
    console.log(`seed ${options.seed}, ${options.rounds} rounds; switched off: ${[...off].join(', ') || 'nothing'}`);
    const maxProblems = wholeNumber(values, 'max-problems', 1);
    const report = await runRounds({ ...options, maxProblems, say: console.log });
    const { seed, failures, rounds, kills, terminations, operations, documents, searches, upgrades, lost, wrong } =
      report;
    const counts = { rounds, kills, terminations, operations, documents, searches, upgrades, lost, wrong };
    const texts = failures.flatMap(({ round, problems }) => problems.map((problem) => described(round, problem)));
    return { seed, counts, closing: closingLine(report), failures: texts, switchedOff: [...off] };
  },
});

/** A difference in one line; what was sent and answered has been printed. */
function described(round, { kind, index, id, ...rest }) {
  const details = JSON.stringify({ ...rest, log: undefined, round: undefined });
  return `round ${round}: ${kind}: ${[index, id].filter((part) => part !== undefined).join(' / ')} ${details}`;
}
