// What traces cost: cheap searches to servers with the same documents, without OpenTelemetry, with its API alone, and with a tracer
// provider that keeps spans in memory, of a part of the requests or of all. Blocks of requests take turns, and processor time counts: what else the machine does is in rates.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { createClient, findApiKey } from '../../scripts/lib/api-client.mjs';
import { StepFailed } from '../../scripts/lib/process.mjs';
import { fill } from '../lib/server.mjs';
import { median } from '../lib/statistics.mjs';
import { startProcess, threadCpu } from '../serving/servers.mjs';
import { Connection } from '../serving/wire.mjs';

export const title = 'searches with and without traces';

const SIZES = {
  smoke: { documents: 300, turns: 2, requests: 40, warm: 40 },
  quick: { documents: 5000, turns: 11, requests: 800, warm: 4000 },
  full: { documents: 5000, turns: 40, requests: 4000, warm: 20_000 },
};
const CLIENTS = 8;
const INDEX = 'traced';
const WITHOUT = 'without OpenTelemetry';
const WAYS = {
  [WITHOUT]: undefined,
  'its API, no provider': 'untraced.mjs',
  'a provider, 5% sampled': 'sampled.mjs',
  'a provider in memory': 'traced.mjs',
};

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const size = SIZES[context.size];
  const documents = (await context.texts(size.documents)).map(({ id, title: name, text }) => ({
    _id: id,
    title: name,
    text,
  }));
  const folder = mkdtempSync(join(tmpdir(), 'sparrow-tracing-'));
  const servers = [];
  try {
    for (const [name, file] of Object.entries(WAYS)) {
      const data = join(folder, String(servers.length));
      const loaded =
        file === undefined ? [] : ['--import', fileURLToPath(new URL(`../serving/${file}`, import.meta.url))];
      const server = await startProcess(data, loaded);
      servers.push(server);
      const apiKey = findApiKey(data);
      const mappings = { properties: { title: { type: 'text' }, text: { type: 'text' } } };
      await fill(createClient({ url: server.url, apiKey }), INDEX, documents, { mappings });
      const headers = { Authorization: `ApiKey ${apiKey}`, 'Content-Type': 'application/json' };
      const bodies = documents.slice(0, 100).map((one) => JSON.stringify({ query: { match: { title: one.title } } }));
      Object.assign(server, { name, headers, bodies });
    }
    for (const server of servers) await block(server, size.warm);
    const blocks = [];
    for (let turn = 0; turn < size.turns; turn += 1) {
      const measured = {};
      for (const server of turn % 2 === 0 ? servers : servers.toReversed())
        measured[server.name] = await block(server, size.requests);
      blocks.push(measured);
    }
    return {
      rows: Object.keys(WAYS).flatMap((name) => (name === WITHOUT ? [] : rowsOf(name, blocks))),
      notes: [
        `${documents.length} documents; ${size.turns} blocks of ${size.requests} requests for each server, in turn; medians of blocks`,
      ],
    };
  } finally {
    for (const server of servers) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Sends so many searches; resolves with requests a second, and with microseconds of the server's processor time for each. */
async function block({ url, pid, headers, bodies }, count) {
  // A server closes connections that nothing came over for long, as while others have their turns.
  const connections = await Promise.all(Array.from({ length: CLIENTS }, () => Connection.open(url)));
  const messages = bodies.map((body) => connections[0].encode('POST', `/${INDEX}/_search`, headers, body));
  const used = () => [...threadCpu(pid).values()].reduce((sum, nanoseconds) => sum + nanoseconds, 0);
  let next = 0;
  const before = used();
  const begun = performance.now();
  const client = async (connection) => {
    while (next < count) {
      const { status, body } = await connection.send(messages[next++ % messages.length]);
      if (status !== 200 || body.includes('"hits":[]')) throw new StepFailed(`a search found: ${body.toString()}`);
    }
  };
  await Promise.all(connections.map(client));
  const seconds = (performance.now() - begun) / 1000;
  for (const connection of connections) connection.close();
  return { rate: count / seconds, micros: (used() - before) / 1000 / count };
}

function rowsOf(name, blocks) {
  const of = (way, figure) => median(blocks.map((measured) => measured[way][figure]));
  const row = (figure, what, unit) => ({
    what: `a search by words, ${name}: ${what}`,
    against: WITHOUT,
    unit,
    sparrow: of(name, figure),
    peer: of(WITHOUT, figure),
    ratio: median(blocks.map((measured) => measured[name][figure] / measured[WITHOUT][figure])),
    checked: 'every search finds something',
  });
  return [row('micros', 'processor time', 'µs'), row('rate', 'requests', '1/s')];
}
