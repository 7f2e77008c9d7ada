// npm run test:crash -- [--rounds N] [--seed S] [--max-problems N] [--with OPERATION …] [--without OPERATION …] [--json FILE]
//
// Kills a server under load again and again and compares what it has after each restart with a model; docs/reliability.md says what is compared.
// Ends with 1 on any difference.
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import process from 'node:process';
import { parseArgs } from 'node:util';

import { OPERATION_NAMES } from '../test/crash/clients.mjs';
import { closingLine, runRounds } from '../test/crash/rounds.mjs';
import { SWITCHED_OFF } from '../test/crash/switched-off.mjs';
import { main, StepFailed } from './lib/process.mjs';

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

await main(async (args) => {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: 'string', default: '100' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      'max-problems': { type: 'string', default: '5' },
      with: { type: 'string', multiple: true, default: [] },
      without: { type: 'string', multiple: true, default: [] },
      json: { type: 'string' },
    },
  });
  for (const name of [...values.with, ...values.without]) {
    if (!OPERATION_NAMES.includes(name)) throw new StepFailed(`no operation [${name}]: ${OPERATION_NAMES.join(', ')}`);
  }
  const off = new Set([...SWITCHED_OFF.keys(), ...values.without].filter((name) => !values.with.includes(name)));
  const options = { rounds: wholeNumber(values, 'rounds'), seed: wholeNumber(values, 'seed'), off };
  console.log(`seed ${options.seed}, ${options.rounds} rounds; switched off: ${[...off].join(', ') || 'nothing'}`);
  const report = await runRounds({ ...options, maxProblems: wholeNumber(values, 'max-problems'), say: console.log });
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(record(report, args, off), null, 2)}\n`);
  console.log(`\n${closingLine(report)}`);
  return report.failures.length > 0 ? 1 : 0;
});

function wholeNumber(values, name) {
  const number = Number(values[name]);
  if (!Number.isInteger(number) || number < 0) throw new StepFailed(`--${name} must be a whole number`);
  return number;
}

/** The report as the records of the benchmarks are: how it was made, when and where. */
function record(report, args, off) {
  return {
    suite: 'crash',
    title: 'a server killed at random moments, compared with a model',
    command: `npm run test:crash -- ${args.join(' ')}`,
    date: new Date().toISOString(),
    machine: { cpu: cpus()[0]?.model, cores: cpus().length, node: process.version },
    switchedOff: [...off],
    ...report,
  };
}
