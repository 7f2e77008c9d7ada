// Bulks over HTTP, Sparrow against OpenSearch: documents that bring their tokens, and documents of text alone. Two bulks at a time, from
// the first byte until all of them can be searched, with the default settings of each, but without replicas. A new index each round,
// in turn, whose answers are compared; the client and both servers share the machine, and a server that is not asked rests.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { usage } from '../../scripts/lib/server-process.mjs';
import { vectorsOf } from '../serving/corpus.mjs';
import { FIELD, features, startOpenSearch, startSparrow } from '../serving/servers.mjs';
import { Connection } from '../serving/wire.mjs';

export const title = 'Writing over HTTP, against OpenSearch 2.19';
export const prepares = true;

const SIZES = {
  smoke: { passages: 300, documents: 900, bulk: 200, rounds: 1, checked: 5 },
  quick: { passages: 5000, documents: 20_000, bulk: 1000, rounds: 2, checked: 20 },
  full: { passages: 20_000, documents: 100_000, bulk: 2000, rounds: 2, checked: 50 },
};
const INDEX = 'writing';
const AT_ONCE = 2;
/** The shares of two passages' tokens, the heaviest first, that a derived one takes. */
const [MORE, LESS] = [0.6, 0.4];
/** OpenSearch keeps 9 significant bits of a weight, and of a length in words what its norms tell. */
const PRECISION = { tokens: 0.004, text: 0.001 };
/** What was asked for: times the documents a second of the peer, and times its documents per second of its processor time. */
const TIMES = 3;

/** The kinds of documents: what is in one, how a field of it is mapped in either server, and how it is asked for. */
const KINDS = {
  tokens: {
    what: 'documents with tokens',
    document: ({ tokens }, server) => ({ [FIELD]: isOurs(server) ? tokens : features(tokens) }),
    properties: (server) => ({ [FIELD]: { type: isOurs(server) ? 'sparse_vector' : 'rank_features' } }),
    excluded: [FIELD],
    query: ({ tokens }, server) =>
      isOurs(server)
        ? { sparse_vector: { field: FIELD, query_vector: tokens } }
        : { neural_sparse: { [FIELD]: { query_tokens: features(tokens) } } },
  },
  text: {
    what: 'documents of text',
    document: ({ title: name, text }) => ({ title: name, text }),
    properties: () => ({ title: { type: 'text' }, text: { type: 'text' } }),
    excluded: [],
    query: ({ text }) => ({ match: { text: text.split(/\s+/).slice(0, 6).join(' ') } }),
  },
};

const isOurs = (server) => server.name === 'Sparrow';

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  const size = SIZES[context.size];
  const texts = await context.texts(size.passages);
  const passages = derived(texts, await vectorsOf(context, texts), size.documents);
  if (context.prepare) return { rows: [] };
  mkdirSync(context.work, { recursive: true });
  const folder = mkdtempSync(join(context.work, 'writing-'));
  const servers = [];
  try {
    servers.push(await startSparrow(join(folder, 'sparrow')));
    const isCompared = context.peers !== undefined && context.size !== 'smoke';
    if (isCompared) servers.push(await startOpenSearch(context.peers, join(folder, 'opensearch')));
    const rows = [];
    for (const kind of Object.values(KINDS)) rows.push(...(await measure(context, size, servers, kind, passages)));
    const notes = [
      `${size.documents} documents in bulks of ${size.bulk}, ${AT_ONCE} at a time, until they can be searched; usual settings, no replicas, ` +
        'the best of the rounds counts, for both; processor time is that of the server, merges that end meanwhile with it',
      `tokens: ${tokensOf(passages)} of a document on average, kept out of its source, and nothing else in it; text: title and text of a passage; ` +
        'the client makes the bodies beforehand',
    ];
    return { rows, notes };
  } finally {
    for (const server of servers) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Passages beyond those that there are: tokens of two of them, so that lists of postings grow as those of real ones do. Each
 * is made when it is asked for, as all at once would take gigabytes.
 */
function derived(texts, vectors, count) {
  const rows = texts.map((_, at) => Object.entries(vectors.row(at)).sort(([, a], [, b]) => b - a));
  return {
    count,
    at(number) {
      const own = number % texts.length;
      const { title: name, text } = texts[own];
      const round = Math.floor(number / texts.length);
      const other = rows[(number * 7919 + round) % texts.length];
      return {
        ...{ id: String(number), title: name, text },
        get tokens() {
          const pairs = round === 0 ? rows[own] : [...take(other, LESS), ...take(rows[own], MORE)];
          return Object.fromEntries(pairs);
        },
      };
    },
  };
}

/** A share of pairs, from the first on. */
const take = (pairs, share) => pairs.slice(0, Math.ceil(pairs.length * share));

/** Tokens of a document, on average of every hundredth. */
function tokensOf({ count, at }) {
  const some = Array.from(
    { length: Math.ceil(count / 100) },
    (_, number) => Object.keys(at(number * 100).tokens).length,
  );
  return Math.round(some.reduce((sum, tokens) => sum + tokens, 0) / some.length);
}

async function measure(context, size, servers, kind, passages) {
  const best = {};
  let checked;
  const bodies = new Map(servers.map((server) => [server, bodiesFor(server, kind, passages, size.bulk)]));
  for (let round = 0; round < size.rounds; round += 1) {
    for (const server of round % 2 === 0 ? servers : servers.toReversed()) {
      const result = await write(server, kind, passages.count, bodies.get(server));
      context.log(
        `${kind.what}, ${server.name}: ${Math.round(result.perSecond)} a second, ${Math.round(result.perCpuSecond)} a second of its processor time`,
      );
      const slot = (best[server.name] ??= { perSecond: 0, perCpuSecond: 0 });
      for (const figure of ['perSecond', 'perCpuSecond']) {
        if (result[figure] > slot[figure]) Object.assign(slot, { [figure]: result[figure], [`${figure}Of`]: result });
      }
    }
    checked = await check(servers, kind, passages, size.checked);
  }
  const [ours, theirs] = servers.map(({ name }) => best[name]);
  return [
    ['documents a second', 'perSecond'],
    ['documents per second of the server’s processor time', 'perCpuSecond'],
  ].map(([what, figure]) => ({
    what: `${kind.what}: ${what}`,
    ...{ against: 'OpenSearch 2.19', unit: '1/s', sparrow: ours[figure], peer: theirs?.[figure] ?? null, checked },
    ...(theirs === undefined ? {} : { target: { at_least: TIMES } }),
    detail: { sparrow: ours, ...(theirs === undefined ? {} : { peer: theirs }) },
    ...(theirs === undefined && context.size !== 'smoke' ? { skipped: 'no folder of peers' } : {}),
  }));
}

/** The bodies of all bulks. */
function bodiesFor(server, kind, passages, bulk) {
  const bodies = [];
  for (let from = 0; from < passages.count; from += bulk) {
    let lines = '';
    for (let number = from; number < Math.min(from + bulk, passages.count); number += 1) {
      const passage = passages.at(number);
      lines += `{"index":{"_id":"${passage.id}"}}\n${JSON.stringify(kind.document(passage, server))}\n`;
    }
    bodies.push(Buffer.from(lines));
  }
  return bodies;
}

async function write(server, kind, documents, bodies) {
  await server.request('GET', '/').catch(() => undefined); // A connection that rested too long may be closed.
  await server.request('DELETE', `/${INDEX}`).catch((error) => {
    if (error.status !== 404) throw error;
  });
  await server.request('PUT', `/${INDEX}`, {
    ...(isOurs(server) ? {} : { settings: { number_of_shards: 1, number_of_replicas: 0 } }),
    mappings: { dynamic: false, _source: { excludes: kind.excluded }, properties: kind.properties(server) },
  });
  const connections = await Promise.all(Array.from({ length: AT_ONCE }, () => Connection.open(server.url)));
  try {
    const headers = { ...server.headers, 'Content-Type': 'application/x-ndjson' };
    const path = `/${INDEX}/_bulk?filter_path=errors`;
    const { cpuMs: before } = usage(server.pid);
    const begun = performance.now();
    let next = 0;
    const client = async (connection) => {
      while (next < bodies.length) {
        const { status, body } = await connection.send(connection.encode('POST', path, headers, bodies[next++]));
        if (status !== 200 || JSON.parse(body.toString()).errors) throw new Error(`${server.name}: ${body.toString()}`);
      }
    };
    await Promise.all(connections.map(client));
    await server.request('POST', `/${INDEX}/_refresh`);
    const seconds = (performance.now() - begun) / 1000;
    const { anonymous, resident, cpuMs } = usage(server.pid);
    const cpuSeconds = (cpuMs - before) / 1000;
    const [perSecond, perCpuSecond] = [documents / seconds, documents / cpuSeconds];
    return {
      perSecond,
      perCpuSecond,
      seconds,
      cpuSeconds,
      cores: cpuSeconds / seconds,
      memory: { anonymous, resident },
    };
  } finally {
    for (const connection of connections) connection.close();
  }
}

/** Every document is there, and questions made of some of them find the same in both, with the same scores but for a factor. */
async function check(servers, kind, passages, count) {
  const step = Math.floor(passages.count / count);
  const asked = Array.from({ length: count }, (_, number) => passages.at(number * step));
  for (const server of servers) {
    const { count: there } = await server.request('GET', `/${INDEX}/_count`);
    if (there !== passages.count) throw new Error(`${server.name} holds ${there} documents of ${passages.count}`);
  }
  const precision = kind === KINDS.tokens ? PRECISION.tokens : PRECISION.text;
  for (const passage of asked) {
    const [ours, theirs] = await Promise.all(
      servers.map(async (server) => {
        const body = { query: kind.query(passage, server), _source: false };
        const { hits } = await server.request('POST', `/${INDEX}/_search`, body);
        return hits.hits.map(({ _score: score }) => score);
      }),
    );
    if (ours.length === 0) throw new Error(`nothing is found for document ${passage.id}`);
    const factor = theirs === undefined ? 1 : ours[0] / theirs[0];
    const differs = theirs?.findIndex((score, at) => Math.abs(score * factor - ours[at]) > ours[at] * 2 * precision);
    if (theirs !== undefined && (differs >= 0 || theirs.length !== ours.length)) {
      throw new Error(
        `document ${passage.id}: hit ${differs + 1} has score ${ours[differs]} and ${theirs[differs]} × ${factor}`,
      );
    }
  }
  const found = servers.length > 1 ? 'find ten documents with the same scores in both' : 'find some';
  return `after each round ${passages.count} documents are there; ${count} questions ${found}`;
}
