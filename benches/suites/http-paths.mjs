// The HTTP layer of this commit against that of another one: the same requests, from the cheapest on, to two servers with the same
// documents, in blocks that take turns. `--base` is a built tree of the other commit; without one the tree is compared with itself, which
// shows the noise.
import { request as httpRequest } from 'node:http';
import { isDeepStrictEqual } from 'node:util';

import { ROOT } from '../../scripts/lib/paths.mjs';
import { median, percentile } from '../lib/statistics.mjs';
import { FIELD, INDEX, MODEL, fill, sparrowFolder, startSparrow, threadCpu } from '../serving/servers.mjs';
import { Connection } from '../serving/wire.mjs';

export const title = 'requests over HTTP, this commit against another one';
export const prepares = true;

const SIZES = {
  smoke: { documents: 300, hybrid: 20, questions: 20, turns: 2, blockSeconds: 0.01, warm: 100 },
  quick: { documents: 5000, hybrid: 500, questions: 200, turns: 40, blockSeconds: 0.06, warm: 5_000 },
  full: { documents: 5000, hybrid: 500, questions: 200, turns: 100, blockSeconds: 0.06, warm: 20_000 },
};
const CLIENTS = [32, 1];
/** How many requests a second there are to be at least, for each that the other commit answers; one with a model hides what HTTP costs. */
const FEWER = { at_least: 0.9 };
const WITH_MODEL = { at_least: 0.97 };
const HYBRID = 'bench-hybrid';
const SCRATCH = 'bench-scratch';
const BULK = 500;
const NAMES = ['this', 'base'];

/** @returns {Promise<{rows: object[], notes?: string[]}>} */
export async function run(context) {
  const size = SIZES[context.size];
  const texts = await context.texts(size.documents);
  const questions = await context.questions(size.questions);
  const folder = sparrowFolder(context, size.documents);
  const servers = [];
  try {
    for (const [name, tree] of [
      ['this', ROOT],
      ['base', context.base ?? ROOT],
    ]) {
      const server = await startSparrow(`${folder}-${name}`, { tree });
      servers.push(server);
      await fill(context, server, texts);
      await fillHybrid(server, texts.slice(0, size.hybrid));
    }
    if (context.prepare) return { rows: [] };
    const kinds = await kindsOf(servers[0], texts, questions);
    for (const kind of kinds) kind.checked = await check(servers, kind);
    const rows = [];
    for (const clients of CLIENTS) {
      for (const kind of kinds) rows.push(await measure(context, size, servers, kind, clients));
    }
    const notes = [
      `${size.documents} documents, ${size.hybrid} in the index of the hybrid search; client and servers share the machine's cores`,
      `blocks of about ${1000 * size.blockSeconds} ms on either server take turns, ${size.turns} times; rates and ratios are medians of those`,
      ...(context.base === undefined ? ['no --base: the tree is compared with itself'] : []),
    ];
    return { rows, notes };
  } finally {
    for (const server of servers) {
      await server.request('DELETE', `/${SCRATCH}`).catch(() => undefined);
      await server.stop();
    }
  }
}

/** An index with a sparse and a dense vector of each text, unless it is there. */
async function fillHybrid({ request }, texts) {
  const there = await request('GET', `/${HYBRID}/_count`).catch(() => ({ count: 0 }));
  if (there.count === texts.length) return;
  await request('DELETE', `/${HYBRID}`).catch(() => undefined);
  const text = { type: 'text', fields: { semantic: { type: 'semantic_text', inference_id: '.hybrid' } } };
  await request('PUT', `/${HYBRID}`, { mappings: { properties: { text } } });
  const lines = texts.map(
    ({ id, text: value }) => `${JSON.stringify({ index: { _id: id } })}\n${JSON.stringify({ text: value })}\n`,
  );
  const { errors } = await request('POST', `/${HYBRID}/_bulk?refresh=true`, lines.join(''));
  if (errors) throw new Error('documents of the hybrid index are refused');
}

async function kindsOf({ request }, texts, questions) {
  const docs = questions.map((text) => ({ text_field: text }));
  const { inference_results: results } = await request('POST', `/_ml/trained_models/${MODEL}/_infer`, { docs });
  const search = (what, index, bodyOf) => ({
    what,
    method: 'POST',
    path: `/${index}/_search`,
    bodies: questions.map((text, at) => bodyOf(text, results[at].predicted_value)),
  });
  const lines = texts
    .slice(0, BULK)
    .map(({ id, title: name, text }) =>
      [{ index: { _id: id } }, { title: name, text }].map((line) => `${JSON.stringify(line)}\n`).join(''),
    );
  return [
    search('sparse search, tokens given', INDEX, (_, tokens) => ({
      query: { sparse_vector: { field: FIELD, query_vector: tokens } },
    })),
    search('search by words', INDEX, (text) => ({ query: { match: { text } } })),
    {
      ...search('a question by meaning', INDEX, (query) => ({
        query: { sparse_vector: { field: FIELD, inference_id: MODEL, query } },
      })),
      target: WITH_MODEL,
    },
    search('hybrid search of a text', HYBRID, (query) => ({ retriever: { rrf: { query } } })),
    {
      what: 'a document by id',
      method: 'GET',
      path: `/${INDEX}/_doc/${encodeURIComponent(texts[0].id)}`,
      bodies: [''],
    },
    // More wait than the queue of writes has room for.
    { what: `a bulk of ${lines.length}`, most: 8, method: 'POST', path: `/${SCRATCH}/_bulk`, bodies: [lines.join('')] },
    { what: '_cat/indices', method: 'GET', path: '/_cat/indices?h=index,docs.count', bodies: [''] },
  ];
}

/** Both servers give the same answer. */
async function check(servers, { what, method, path, bodies }) {
  const answers = [];
  for (const { url, headers } of servers) answers.push(await once(url, method, path, headers, bodies[0]));
  const [ours, base] = answers;
  if (ours.status !== base.status || !isDeepStrictEqual(shapeOf(ours.text), shapeOf(base.text)))
    throw new Error(`${what}: ${ours.text.slice(0, 300)} is not ${base.text.slice(0, 300)}`);
  return 'both servers give the same answer';
}

/** An answer without what differs each time. */
function shapeOf(text) {
  if (!text.startsWith('{')) return text;
  const { took, items, ...rest } = JSON.parse(text);
  return { took: typeof took, items: items?.length, ...rest };
}

const textOf = (body) => (typeof body === 'string' ? body : JSON.stringify(body));

function once(url, method, path, headers, body) {
  const text = textOf(body);
  return new Promise((resolve, reject) => {
    const about = { ...headers, 'Content-Length': Buffer.byteLength(text) };
    const asked = httpRequest(url + path, { method, headers: about }, (answer) => {
      const chunks = [];
      answer.on('data', (chunk) => chunks.push(chunk));
      answer.on('end', () => {
        resolve({ status: answer.statusCode, text: Buffer.concat(chunks).toString() });
      });
    });
    asked.on('error', reject);
    asked.end(text);
  });
}

/** Asks both servers the same, in blocks of requests that take turns: what disturbs the machine for longer meets both. */
async function measure(
  context,
  size,
  servers,
  { what, method, path, bodies, most = Infinity, target = FEWER, checked },
  wanted,
) {
  const clients = Math.min(wanted, most);
  const ways = {};
  for (const [at, { url, pid, headers }] of servers.entries()) {
    const connections = await Promise.all(Array.from({ length: clients }, () => Connection.open(url)));
    const messages = bodies.map((body) => connections[0].encode(method, path, headers, textOf(body)));
    ways[NAMES[at]] = { pid, connections, messages };
  }
  const block = async (name, count) => {
    const { pid, connections, messages } = ways[name];
    let next = 0;
    const cpu = threadCpu(pid).get('node') ?? 0;
    const begun = performance.now();
    const client = async (connection) => {
      while (next < count) {
        const message = messages[next++ % bodies.length];
        let answer = await connection.send(message);
        // A machine that others use as well may be so late that the server takes itself for overloaded.
        while (answer.status === 429) answer = await connection.send(message);
        const { status, body } = answer;
        if (status !== 200) throw new Error(`${what}: ${status} ${body.toString().slice(0, 300)}`);
      }
    };
    await Promise.all(connections.map(client));
    const seconds = (performance.now() - begun) / 1000;
    return { seconds, loopMicros: ((threadCpu(pid).get('node') ?? 0) - cpu) / 1000 / count };
  };
  // Until V8 has compiled what a request runs, the commit with more functions is slower, by up to a tenth after some thousand requests.
  const warm = clients === Math.max(...CLIENTS) ? size.warm : clients * 8;
  const part = clients * 8;
  let seconds;
  for (let warmed = 0; warmed < warm; warmed += part) {
    await block('base', part);
    ({ seconds } = await block('this', part));
  }
  const count = Math.max(clients * 2, Math.ceil((part * size.blockSeconds) / seconds));
  const blocks = [];
  for (let turn = 0; turn < size.turns; turn += 1) {
    const measured = {};
    for (const name of turn % 2 === 0 ? NAMES : NAMES.toReversed()) measured[name] = await block(name, count);
    blocks.push(measured);
  }
  for (const { connections } of Object.values(ways)) connections.forEach((connection) => connection.close());
  const rate = (name) => count / median(blocks.map((measured) => measured[name].seconds));
  const loop = (name) => median(blocks.map((measured) => measured[name].loopMicros));
  const ratios = blocks.map((measured) => measured.base.seconds / measured.this.seconds);
  const row = {
    what: `${what}, ${clients === 1 ? 'one client' : `${clients} clients`}`,
    against: 'commit of --base',
    unit: '1/s',
    sparrow: rate('this'),
    peer: rate('base'),
    ratio: median(ratios),
    target,
    checked,
    detail: {
      quartiles: [percentile(ratios, 0.25), percentile(ratios, 0.75)],
      requestsInBlock: count,
      eventLoopMicros: { this: loop('this'), base: loop('base') },
    },
  };
  const micros = `${Math.round(loop('base'))} → ${Math.round(loop('this'))} µs of the event loop`;
  context.log(
    `${row.what}: ${Math.round(row.peer)} → ${Math.round(row.sparrow)} requests/s, ${row.ratio.toFixed(3)} times; ${micros}`,
  );
  return row;
}
