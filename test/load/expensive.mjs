// node test/load/expensive.mjs [options]
//
// Sends each of the expensive requests to a server of its own and prints what the answer was, how long it took, and how much
// anonymous memory the process had more than before at its highest: the table of docs/reliability.md.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import { findApiKey } from '../../scripts/lib/api-client.mjs';
import { CLI } from '../../scripts/lib/paths.mjs';
import { MemoryWatch, startServer, usage } from '../../scripts/lib/server-process.mjs';
import { testCommand } from '../../scripts/lib/test-command.mjs';
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

await testCommand({
  suite: 'expensive',
  title: 'requests that ask for more than they may have, each to a server of its own',
  command: 'node test/load/expensive.mjs',
  options: { only: { type: 'string', default: '', value: 'TEXT', help: 'those with this in their names' } },
  run: async ({ only }) => {
    const rows = [];
    for (const [list, limit] of [
      [ROWS, undefined],
      [LIMITED_ROWS, LIMIT],
    ]) {
      for (const row of list.filter(([name]) => name.includes(only))) rows.push(await measure(row, limit));
    }
    console.log(table(rows));
    const failures = rows
      .filter(({ asExpected, status }) => !asExpected || status >= 500)
      .map(({ name, status, type }) => `${name}: ${status} ${type} is not what was expected`);
    const counts = { requests: rows.length, asExpected: rows.length - failures.length };
    const most = (of) => Math.max(0, ...rows.map(of));
    const closing =
      `expensive: ${rows.length} requests, at most ${most(({ seconds }) => seconds).toFixed(2)} s and ` +
      `${Math.round(most(({ moreBytes }) => moreBytes) / 2 ** 20)} MiB more, ${failures.length} not as expected`;
    return { counts, closing, failures, rows };
  },
});
