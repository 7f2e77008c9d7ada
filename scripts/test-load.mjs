// npm run test:load -- [--seed S] [--seconds N] [--documents N] [--clients 1,32,256,1000] [--rude]
//
// Measures searches under more and more load and prints the table of docs/limits.md. Rude clients ask again at once when
// they are refused. Ends with 1 if anything fails, the server is not well at any time, or the p99 of what is admitted of the
// most clients is over three times that of as many as the server carries.
import process from 'node:process';
import { parseArgs } from 'node:util';

import { table } from '../test/load/measure.mjs';
import { runLoad } from '../test/load/run.mjs';
import { problems } from '../test/load/verdict.mjs';
import { main } from './lib/process.mjs';

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));

await main(async (args) => {
  const { values } = parseArgs({
    args,
    options: {
      seed: { type: 'string', default: '1' },
      seconds: { type: 'string', default: '20' },
      documents: { type: 'string', default: '50000' },
      clients: { type: 'string', default: '1,32,256,1000' },
      rude: { type: 'boolean', default: false },
    },
  });
  const rows = await runLoad({
    clients: values.clients.split(',').map(Number),
    ms: Number(values.seconds) * 1000,
    seed: Number(values.seed),
    count: Number(values.documents),
    patient: !values.rude,
    say: console.log,
  });
  console.log(`\n${table(rows)}\n`);
  const found = problems(rows);
  for (const problem of found) console.log(problem);
  const answered = rows.reduce((sum, row) => sum + row.ok, 0);
  const refused = rows.reduce((sum, row) => sum + row.refused, 0);
  console.log(`seed ${values.seed}: ${answered} answered, ${refused} refused, ${found.length} problems`);
  return found.length > 0 ? 1 : 0;
});
