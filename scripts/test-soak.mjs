// npm run test:soak -- [--minutes N] [--seed S] [--json FILE]
//
// Uses a server in every way at once for N minutes and looks whether it stays as it was; docs/reliability.md says what is compared.
// Closes with `soak: N passed, N failed`, and ends with 1 when a check failed.
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import process from 'node:process';
import { parseArgs } from 'node:util';

import { soak } from '../test/soak/run.mjs';
import { BOUNDS, SHORT_BOUNDS, checks, growth, table } from '../test/soak/verdict.mjs';
import { Counts } from './lib/counts.mjs';
import { StepFailed, main } from './lib/process.mjs';

/** Shorter runs are held to the bounds of short ones. */
const SHORT_MINUTES = 4;

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

await main(async (args) => {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: '1' },
      json: { type: 'string' },
    },
  });
  const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
  if (!(minutes > 0)) throw new StepFailed('--minutes wants a number above 0');
  if (!Number.isInteger(seed)) throw new StepFailed('--seed wants a whole number');
  const bounds = minutes < SHORT_MINUTES ? SHORT_BOUNDS : BOUNDS;
  const report = await soak({ seconds: minutes * 60, seed, say: console.log });
  const counts = new Counts();
  console.log(`\n${table(report.windows)}\n`);
  for (const { name, passed, detail } of checks(report, bounds)) {
    counts.add(passed ? 1 : 0, passed ? 0 : 1);
    console.log(
      `${passed ? 'passed' : 'FAILED'}  ${name}${detail.length > 0 ? `: ${detail.slice(0, 10).join('\n          ')}` : ''}`,
    );
  }
  if (values.json !== undefined) {
    const record = {
      suite: 'soak',
      title: 'a server used in every way at once, at the end as at the beginning',
      command: `npm run test:soak -- ${args.join(' ')}`,
      date: new Date().toISOString(),
      machine: { cpu: cpus()[0]?.model, cores: cpus().length, node: process.version },
      growth: growth(report.windows, bounds),
      passed: counts.passed,
      failed: counts.failed,
      ...report,
    };
    writeFileSync(values.json, `${JSON.stringify(record, null, 2)}\n`);
  }
  console.log(`\n${report.requests} requests, ${report.cut} of them cut off, seed ${seed}`);
  console.log(`soak: ${counts}`);
  return counts.failed > 0 ? 1 : 0;
});
