// node test/load/expensive.mjs [--json FILE]
//
// Sends each of the expensive requests to a server of its own and prints what the answer was, how long it took, and how much
// anonymous memory the process had more than before at its highest: the table of docs/reliability.md.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';

import { findApiKey } from '../../scripts/lib/api-client.mjs';
import { CLI } from '../../scripts/lib/paths.mjs';
import { main } from '../../scripts/lib/process.mjs';
import { MemoryWatch, startServer, usage } from '../../scripts/lib/server-process.mjs';
import { createSender } from '../rest-suites/client.mjs';
import { LIMIT, LIMITED_ROWS, ROWS, prepare } from './expensive-requests.mjs';

/** How often memory is looked at: a peak that is shorter is not seen. */
const LOOK_MS = 5;
const LIMIT_SETTING = 'indices.breaker.request.limit';

async function measure([name, call, expected], limit) {
  const data = mkdtempSync(join(tmpdir(), 'sparrow-expensive-'));
  const server = await startServer(process.execPath, [CLI, '--deploy-at-start', 'false'], data);
  try {
    const send = createSender({ url: server.url, apiKey: findApiKey(data) });
    const request = (method, path, body) =>
      send({
        method,
        path,
        body: typeof body === 'string' ? body : JSON.stringify(body),
        contentType: typeof body === 'string' ? 'application/x-ndjson' : 'application/json',
      });
    await prepare(request);
    if (limit !== undefined) await request('PUT', '/_cluster/settings', { persistent: { [LIMIT_SETTING]: limit } });
    const [path, body] = call();
    const before = usage(server.pid).anonymous;
    const watch = new MemoryWatch(server.pid, LOOK_MS);
    const begun = performance.now();
    const { status, text } = await request('POST', path, body);
    const seconds = (performance.now() - begun) / 1000;
    const { anonymous } = watch.end();
    // In a list of answers it is the last ones that are refused.
    const ends = text.slice(0, 100_000) + text.slice(-10_000);
    const type = /"type":"(\w+_(?:exception|clauses))"/.exec(ends)?.[1] ?? '';
    const asExpected = expected.test(ends);
    return { name, limit, status, type, seconds, moreBytes: anonymous - before, answerBytes: text.length, asExpected };
  } finally {
    await server.stop();
    rmSync(data, { recursive: true, force: true });
  }
}

/** The figures as a table in Markdown. */
function table(rows) {
  const lines = rows.map(
    ({ name, limit, status, type, seconds, moreBytes, asExpected }) =>
      `| ${name}${limit === undefined ? '' : ` (${limit})`} | ${status}${type === '' ? '' : `, \`${type}\``} | ` +
      `${seconds.toFixed(2)} | ${Math.round(moreBytes / 2 ** 20)} |${asExpected ? '' : ' not as expected'}`,
  );
  return ['| request | answer | seconds | anonymous MiB more |', '|---|---|---|---|', ...lines].join('\n');
}

await main(async (args) => {
  const { values } = parseArgs({ args, options: { json: { type: 'string' } } });
  const rows = [];
  for (const row of ROWS) rows.push(await measure(row));
  for (const row of LIMITED_ROWS) rows.push(await measure(row, LIMIT));
  console.log(table(rows));
  if (values.json !== undefined) {
    const record = {
      suite: 'expensive',
      title: 'requests that ask for more than they may have, each to a server of its own',
      command: `node test/load/expensive.mjs ${args.join(' ')}`,
      date: new Date().toISOString(),
      machine: { cpu: cpus()[0]?.model, cores: cpus().length, node: process.version },
      rows,
    };
    writeFileSync(values.json, `${JSON.stringify(record, null, 2)}\n`);
  }
  return rows.every(({ asExpected, status }) => asExpected && status < 500) ? 0 : 1;
});
