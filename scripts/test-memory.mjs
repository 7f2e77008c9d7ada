// npm run test:memory -- [options]
//
// Sends the requests of test/load/memory-rows.mjs, and N more that are made by chance, to a server with a ceiling of memory, and watches its
// resident memory from outside. docs/reliability.md says what is counted. Ends with 1 if the server ended, took more than the ceiling,
// answered with 500 or above, or did not go on.
import { setUp } from './lib/setup.mjs';
import { testCommand, wholeNumber } from './lib/test-command.mjs';

await testCommand({
  suite: 'memory',
  title: 'requests that meet a text or a number of the client with many buckets, hits or documents',
  command: 'npm run test:memory',
  options: {
    requests: { type: 'string', default: '2000', value: 'N', help: 'how many are made by chance' },
    seed: { type: 'string', default: '1', value: 'S', help: 'seed of all random choices' },
    first: { type: 'string', default: '0', value: 'N', help: 'the number of the first: to repeat one' },
    rows: { type: 'string', value: 'TEXT', help: 'of the rows only those with this in their names' },
    patience: { type: 'string', default: '120', value: 'S', help: 'seconds after which a row without an answer hangs' },
    shrink: { type: 'string', default: '8', value: 'N', help: 'attempts to make a request that went wrong smaller' },
  },
  run: async (values) => {
    const [requests, seed, first, patience, shrinks] = ['requests', 'seed', 'first', 'patience', 'shrink'].map((name) =>
      wholeNumber(values, name),
    );
    await setUp();
    const { Ceiling, generated, shown, tryAll } = await import('../test/load/memory.mjs');
    const { rowTrials } = await import('../test/load/memory-rows.mjs');
    const { CEILING_MIB } = await import('../test/load/memory-world.mjs');
    const rows = rowTrials().filter(({ name }) => name.includes(values.rows ?? ''));
    const [failures, tried, found] = [[], [], []];
    const report = ({ number, trial, ...outcome }) => {
      const { statuses, errors, wrong, residentMiB, seconds } = outcome;
      const name = trial.name ?? `number ${number} of seed ${seed}`;
      tried.push(outcome);
      if (trial.name !== undefined) found.push({ name, ...outcome });
      if (trial.name === undefined && wrong.length === 0) return;
      console.log(
        `${wrong.length > 0 ? 'WRONG ' : ''}${name}: ${statuses} ${errors} ${residentMiB} MiB ${seconds.toFixed(1)} s ${wrong.join(', ')}`,
      );
      if (wrong.length === 0) return;
      failures.push(`${name}: ${wrong.join(', ')}`);
      if (trial.name === undefined) found.push({ name, request: shown(trial), ...outcome });
      console.log(`  ${shown(trial)}`);
    };
    const target = new Ceiling();
    await target.start();
    try {
      await tryAll(target, rows.entries(), report, { patienceMs: patience * 1000 });
      await tryAll(target, generated(seed, first, requests), report, { shrinks });
    } finally {
      await target.remove();
    }
    const most = (of) => Math.max(0, ...tried.map(of));
    const having = (status) => tried.filter(({ statuses }) => statuses.includes(status)).length;
    const over = tried.filter(({ residentMiB }) => residentMiB > CEILING_MIB).length;
    const counts = {
      rows: rows.length,
      requests: tried.length - rows.length,
      answered200: having(200),
      answered400: having(400),
      answered429: having(429),
      left: having('left'),
      over,
      ended: tried.filter(({ wrong }) => wrong.includes('the server ended')).length,
      mistakes: failures.length,
      largestMiB: most(({ residentMiB }) => residentMiB),
      slowestMs: Math.round(most(({ seconds }) => seconds) * 1000),
    };
    const closing =
      `memory: seed ${seed}; ${tried.length} requests, ${counts.answered200} with 200, ${counts.answered400} with 400, ` +
      `${counts.answered429} with 429; at most ${counts.largestMiB} of ${CEILING_MIB} MiB resident, ${over} over it; ${failures.length} mistakes`;
    return { seed, counts, closing, failures, found };
  },
});
