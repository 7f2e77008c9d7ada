// The two ways of a request through the HTTP layer: http/direct.ts, which answers Node's request, and Hono, which has Fetch's objects
// made of it. The same server is asked the same on both, in turns: a path of which one letter is escaped is left to Hono.
import { request as httpRequest } from 'node:http';
import { isDeepStrictEqual } from 'node:util';

import { median, percentile } from '../lib/statistics.mjs';
import { FIELD, INDEX, MODEL, fill, sparrowFolder, startSparrow, threadCpu } from '../serving/servers.mjs';
import { Connection } from '../serving/wire.mjs';

export const title = 'Requests past Hono and through it';
export const prepares = true;

const SIZES = {
  smoke: { documents: 300, hybrid: 20, questions: 20, turns: 2, blockSeconds: 0.01 },
  quick: { documents: 5000, hybrid: 500, questions: 200, turns: 40, blockSeconds: 0.06 },
  full: { documents: 5000, hybrid: 500, questions: 200, turns: 100, blockSeconds: 0.06 },
};
const CLIENTS = [1, 32];
/** What a way past Hono has to bring, in requests a second, to be worth its code. */
const WORTH = 1.15;
const HYBRID = 'bench-hybrid';
const SCRATCH = 'bench-scratch';
const BULK = 500;

/** @returns {Promise<{rows: object[], notes?: string[]}>} */
export async function run(context) {
  const size = SIZES[context.size];
  const texts = await context.texts(size.documents);
  const questions = await context.questions(size.questions);
  const sparrow = await startSparrow(sparrowFolder(context, size.documents));
  try {
    await fill(context, sparrow, texts);
    await fillHybrid(sparrow, texts.slice(0, size.hybrid));
    if (context.prepare) return { rows: [] };
    const kinds = await kindsOf(sparrow, texts, questions);
    for (const kind of kinds) kind.checked = await check(sparrow, kind);
    const rows = [];
    for (const clients of CLIENTS) {
      for (const kind of kinds) rows.push(await measure(context, size, sparrow, kind, clients));
    }
    const notes = [
      `${size.documents} documents, ${size.hybrid} in the index of the hybrid search; client and server share the machine's cores`,
      `blocks of about ${1000 * size.blockSeconds} ms on either way take turns, ${size.turns} times; rates and ratios are medians of those`,
    ];
    return { rows, notes };
  } finally {
    await sparrow.request('DELETE', `/${SCRATCH}`).catch(() => undefined);
    await sparrow.stop();
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

/** The path of a request as Hono gets it: the last letter of its first segment is escaped. */
const escaped = (path) =>
  path.replace(/^(\/[^/]*)([^/])(?=\/)/, (_, start, last) => `${start}%${last.charCodeAt(0).toString(16)}`);

/** Both ways give the same answer, and each is the way that it is taken for: Fetch's headers are in lower case. */
async function check({ url, headers }, { what, method, path, bodies }) {
  const answers = [];
  for (const way of [path, escaped(path)]) answers.push(await once(url, method, way, headers, bodies[0]));
  const [direct, hono] = answers;
  if (!direct.names.includes('Content-Type') || !hono.names.includes('content-type'))
    throw new Error(`${what}: ${path} and ${escaped(path)} do not go both ways`);
  if (direct.status !== hono.status || !isDeepStrictEqual(shapeOf(direct.text), shapeOf(hono.text)))
    throw new Error(`${what}: ${direct.text.slice(0, 300)} is not ${hono.text.slice(0, 300)}`);
  return 'both ways give the same answer';
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
        resolve({ status: answer.statusCode, names: answer.rawHeaders, text: Buffer.concat(chunks).toString() });
      });
    });
    asked.on('error', reject);
    asked.end(text);
  });
}

/** Asks the same on both ways, in blocks of requests that take turns: what disturbs the machine for longer meets both. */
async function measure(
  context,
  size,
  { url, pid, headers },
  { what, method, path, bodies, most = Infinity, checked },
  wanted,
) {
  const clients = Math.min(wanted, most);
  const connections = await Promise.all(Array.from({ length: clients }, () => Connection.open(url)));
  const messagesOf = (at) => bodies.map((body) => connections[0].encode(method, at, headers, textOf(body)));
  const ways = { direct: messagesOf(path), hono: messagesOf(escaped(path)) };
  const block = async (name, count) => {
    let next = 0;
    const cpu = threadCpu(pid).get('node') ?? 0;
    const begun = performance.now();
    const client = async (connection) => {
      while (next < count) {
        const message = ways[name][next++ % bodies.length];
        const { status, body } = await connection.send(message);
        if (status !== 200) throw new Error(`${what}: ${status} ${body.toString().slice(0, 300)}`);
      }
    };
    await Promise.all(connections.map(client));
    const seconds = (performance.now() - begun) / 1000;
    return { seconds, loopMicros: ((threadCpu(pid).get('node') ?? 0) - cpu) / 1000 / count };
  };
  // They warm both ways as well.
  await block('hono', clients * 8);
  const { seconds } = await block('direct', clients * 8);
  const count = Math.max(clients * 2, Math.ceil((clients * 8 * size.blockSeconds) / seconds));
  const blocks = [];
  for (let turn = 0; turn < size.turns; turn += 1) {
    const measured = {};
    for (const name of turn % 2 === 0 ? ['direct', 'hono'] : ['hono', 'direct'])
      measured[name] = await block(name, count);
    blocks.push(measured);
  }
  connections.forEach((connection) => connection.close());
  const rate = (name) => count / median(blocks.map((measured) => measured[name].seconds));
  const loop = (name) => median(blocks.map((measured) => measured[name].loopMicros));
  const ratios = blocks.map(({ direct, hono }) => hono.seconds / direct.seconds);
  const row = {
    what: `${what}, ${clients === 1 ? 'one client' : `${clients} clients`}`,
    against: 'the same through Hono',
    unit: '1/s',
    sparrow: rate('direct'),
    peer: rate('hono'),
    ratio: median(ratios),
    target: { at_least: WORTH },
    checked,
    detail: {
      quartiles: [percentile(ratios, 0.25), percentile(ratios, 0.75)],
      requestsInBlock: count,
      eventLoopMicros: { direct: loop('direct'), hono: loop('hono') },
    },
  };
  const micros = `${Math.round(loop('hono'))} → ${Math.round(loop('direct'))} µs of the event loop`;
  context.log(
    `${row.what}: ${Math.round(row.peer)} → ${Math.round(row.sparrow)} requests/s, ${row.ratio.toFixed(2)} times; ${micros}`,
  );
  return row;
}
