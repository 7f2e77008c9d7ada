// npm run test:soak -- [options]
//
// Uses a server in every way at once for N minutes and looks whether it stays as it was; docs/reliability.md says what is compared.
// Closes with `soak: N passed, N failed`, and ends with 1 when a check failed.
import { soak } from '../test/soak/run.mjs';
import { BOUNDS, SHORT_BOUNDS, checks, growth, table } from '../test/soak/verdict.mjs';
import { Counts } from './lib/counts.mjs';
import { StepFailed } from './lib/process.mjs';
import { testCommand, wholeNumber } from './lib/test-command.mjs';

/** Shorter runs are held to the bounds of short ones. */
const SHORT_MINUTES = 4;

/** Details of a failed check that are told. */
const MOST_DETAILS = 10;

await testCommand({
  suite: 'soak',
  title: 'a server used in every way at once, at the end as at the beginning',
  command: 'npm run test:soak',
  options: {
    minutes: { type: 'string', default: '10', value: 'N', help: 'for how long; parts of a minute too' },
    seed: { type: 'string', default: '1', value: 'S', help: 'seed of all random choices' },
  },
  run: async (values) => {
    const [minutes, seed] = [Number(values.minutes), wholeNumber(values, 'seed')];
    if (!(minutes > 0)) throw new StepFailed('--minutes wants a number above 0');
    const bounds = minutes < SHORT_MINUTES ? SHORT_BOUNDS : BOUNDS;
    const { failures: failed, ...report } = await soak({ seconds: minutes * 60, seed, say: console.log });
    const counts = new Counts();
    const failures = [];
    console.log(`\n${table(report.windows)}\n`);
    for (const { name, passed, detail } of checks({ ...report, failures: failed }, bounds)) {
      counts.add(passed ? 1 : 0, passed ? 0 : 1);
      const text = `${name}${detail.length > 0 ? `: ${detail.slice(0, MOST_DETAILS).join('\n          ')}` : ''}`;
      if (passed) console.log(`passed  ${text}`);
      else failures.push(text);
    }
    const { requests, cut, windows } = report;
    return {
      seed,
      counts: { requests, cut, passed: counts.passed, failed: counts.failed },
      closing: `${requests.toLocaleString('en-US')} requests, ${cut.toLocaleString('en-US')} of them cut off, seed ${seed}\nsoak: ${counts}`,
      failures,
      growth: growth(windows, bounds),
      windows,
    };
  },
});
