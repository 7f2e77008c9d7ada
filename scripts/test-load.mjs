// npm run test:load -- [options]
//
// Measures searches under more and more load, beside a reindex, and arriving at ten times the rate that the server can carry, and
// prints the table of docs/limits.md. Ends with 1 if anything fails, the server is not well at any time, or the p99 of what is
// admitted is over three times that of a load which it carries (docs/limits.md says which).
import { table } from '../test/load/measure.mjs';
import { runLoad } from '../test/load/run.mjs';
import { problems } from '../test/load/verdict.mjs';
import { StepFailed } from './lib/process.mjs';
import { testCommand, wholeNumber } from './lib/test-command.mjs';

await testCommand({
  suite: 'load',
  title: 'searches under more and more load, beside a reindex, and arriving faster than they can be answered',
  command: 'npm run test:load',
  options: {
    seed: { type: 'string', default: '1', value: 'S', help: 'seed of all random choices' },
    seconds: { type: 'string', default: '20', value: 'N', help: 'for how long each load is counted' },
    documents: { type: 'string', default: '50000', value: 'N', help: 'documents that are searched' },
    clients: {
      type: 'string',
      default: '1,32,256,1000',
      value: 'N,…',
      help: 'numbers of clients that wait for answers',
    },
    rude: { type: 'boolean', default: false, help: 'clients that are refused ask again at once' },
    'no-reindex': { type: 'boolean', default: false, help: 'no searches beside a reindex' },
    times: {
      type: 'string',
      default: '10',
      value: 'N',
      help: 'how much more arrives than the server carries; 0: nothing',
    },
  },
  run: async (values) => {
    const [seed, seconds, times] = ['seed', 'seconds', 'times'].map((name) => wholeNumber(values, name));
    const count = wholeNumber(values, 'documents', 1);
    const clients = values.clients === '' ? [] : values.clients.split(',').map(Number);
    if (!clients.every((number) => Number.isInteger(number) && number > 0)) {
      throw new StepFailed('--clients wants numbers of clients, such as 1,32');
    }
    const reindex = !values['no-reindex'];
    const options = { clients, ms: seconds * 1000, seed, count, patient: !values.rude, reindex, times };
    const rows = await runLoad({ ...options, say: console.log });
    console.log(`\n${table(rows)}\n`);
    const failures = problems(rows);
    const sum = (name) => rows.reduce((all, row) => all + row[name], 0);
    const counts = {
      answered: sum('ok'),
      refused: sum('refused'),
      untold: sum('untold'),
      failed: sum('failed'),
      cut: sum('cut'),
    };
    const closing = `load: seed ${seed}, ${counts.answered} answered, ${counts.refused} refused, ${counts.failed + counts.cut} failed, ${failures.length} problems`;
    return { seed, counts, closing, failures, rows };
  },
});
