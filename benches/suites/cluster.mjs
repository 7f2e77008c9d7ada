// What Sparrow adds over a cluster: the same requests to a bare OpenSearch 2.19 in its own form and through Sparrow in front of it, in turns.
// Milliseconds of a search by words (passed on), by tokens that are given (translated) and by a text (encoded first); documents a second
// of a bulk load whose tokens are given, and of one through the model against the encoder alone; two Sparrow servers against one under 32
// clients. One client unless a row says otherwise. The cluster has cores of its own: who compares machines that share theirs measures how
// the system divides them.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

import { withClusterServers } from '../lib/cluster-server.mjs';
import { median, percentile } from '../lib/statistics.mjs';
import { ask, processorTime } from '../serving/ask.mjs';
import { Side, inTurns } from '../serving/paired.mjs';
import { startOpenSearch } from '../serving/servers.mjs';

export const title = 'Over a cluster, against the bare cluster';

const SIZES = {
  quick: {
    encoded: 250,
    through: 200,
    searches: { warm: 100, rounds: 2, count: 100 },
    loads: 3,
    clients: { rounds: 2, count: 400 },
  },
  // Both sides compile what they run often: before some thousand requests neither is as fast as it stays.
  full: {
    encoded: 500,
    through: 4000,
    searches: { warm: 2000, rounds: 6, count: 300 },
    loads: 40,
    clients: { rounds: 3, count: 600 },
  },
};
const MODEL = '.sparse_encoder_model_2';
const FIELD = 'tokens';
const [ENCODED, BARE, THROUGH] = ['overhead-encoded', 'overhead-bare', 'overhead-through'];
const PIPELINE = 'overhead-embed';
const BULK = 250;
/** Texts of one request to the encoder, which has ten seconds for it. */
const TEXTS = 100;
/** Clients that send texts to encode, one request after another: with one alone, the encoder waits while the cluster writes. */
const LOADING = 2;
/** Requests in a turn, for each of them: with few, the encoder waits at the end of most of them. */
const REQUESTS_OF_TURN = 5;
const CLIENTS = 32;
const [WORDS, GIVEN, A_TEXT] = ['words, passed on', 'tokens given', 'a text'];
const PROXY = fileURLToPath(new URL('../serving/proxy.mjs', import.meta.url));
const AGAINST = 'OpenSearch 2.19 alone';

/** @param {import('../lib/context.mjs').Context} context */
export async function run(context) {
  if (context.size === 'smoke' || context.peers === undefined) {
    return { rows: [{ what: 'a search and a bulk load', against: AGAINST, skipped: 'no folder of peers' }] };
  }
  const size = SIZES[context.size];
  // Those that go through the model are not those that the encoder alone gets: it would know them.
  const texts = await context.texts(size.encoded + 2 * size.through);
  const questions = [...new Set(await context.questions(20_000))];
  const data = mkdtempSync(join(context.work, 'over-cluster-'));
  const cluster = await startOpenSearch(context.peers, data, 9280);
  const before = coresOf(process.pid);
  const cores = divide(cluster.pid);
  try {
    return await withClusterServers(cluster.url, 2, (servers) =>
      measure(context, { ...size, cores }, cluster, servers, { texts, questions }),
    );
  } finally {
    if (cores !== undefined) bind(process.pid, before);
    await cluster.stop();
    rmSync(data, { recursive: true, force: true });
  }
}

/**
 * Gives the cluster one half of the cores, and this process with all that it starts from now on the other.
 *
 * @returns {{ cluster: string, sparrow: string } | undefined} the numbers of the cores; none where they cannot be divided
 */
function divide(cluster) {
  const all = availableParallelism();
  if (process.platform !== 'linux' || all < 2) return undefined;
  const half = Math.floor(all / 2);
  const cores = { sparrow: `0-${half - 1}`, cluster: `${half}-${all - 1}` };
  bind(cluster, cores.cluster);
  bind(process.pid, cores.sparrow);
  return cores;
}

const bind = (pid, cores) => execFileSync('taskset', ['-acp', cores, String(pid)], { stdio: 'ignore' });

const coresOf = (pid) => /(\S+)\s*$/.exec(execFileSync('taskset', ['-cp', String(pid)]).toString())[1];

async function measure(context, size, cluster, servers, { texts, questions }) {
  const [sparrow] = servers;
  const sides = { bare: new Side(cluster), sparrow: new Side(sparrow) };
  try {
    const inference = { model_id: MODEL, input_output: [{ input_field: 'text', output_field: FIELD }] };
    await sparrow.request('PUT', `/_ingest/pipeline/${PIPELINE}`, { processors: [{ inference }] });
    const lines = await encodedLines(sides.sparrow, texts.slice(0, size.encoded));
    const bulk = await bulkLoads(context, size, { cluster, sparrow, sides }, lines);
    await makeIndex(sparrow, ENCODED);
    const through = await throughModel(sparrow, texts.slice(size.encoded));
    context.log(`through the model: ${Math.round(through.bulk)}, the encoder alone: ${Math.round(through.encoder)}`);
    await makeIndex(sparrow, ENCODED);
    await sides.sparrow.post(`/${ENCODED}/_bulk`, lines.join(''));
    await sparrow.request('POST', `/${ENCODED}/_forcemerge?max_num_segments=1`);
    await sparrow.request('POST', `/${ENCODED}/_refresh`);
    const searches = await searchTimes(context, size, { servers, sides }, questions);
    const proxy = await throughProxy(context, size.searches, { cluster, bare: sides.bare }, questions);
    const { warm, rounds, count } = size.searches;
    const used = Math.max(1000, rounds * count + warm);
    const fresh = { known: questions.slice(0, 1000), questions: questions.slice(used) };
    const clients = await underClients(context, size.clients, { cluster, servers }, fresh);
    return {
      rows: rowsOf(size, { through, bulk, searches, proxy, clients }),
      notes: notesOf(size, { searches, bulk, clients }),
    };
  } finally {
    sides.bare.close();
    sides.sparrow.close();
  }
}

async function makeIndex(sparrow, name) {
  await sparrow.request('DELETE', `/${name}?ignore_unavailable=true`);
  await sparrow.request('PUT', `/${name}`, {
    settings: { number_of_shards: 1, number_of_replicas: 0 },
    mappings: {
      properties: { title: { type: 'text' }, text: { type: 'text' }, [FIELD]: { type: 'sparse_vector' } },
    },
  });
}

const lineOf = (id, document) => `${JSON.stringify({ index: { _id: id } })}\n${JSON.stringify(document)}\n`;

/** Documents with their tokens, as lines of a bulk request. */
async function encodedLines(sparrow, texts) {
  const lines = [];
  for (let from = 0; from < texts.length; from += TEXTS) {
    const part = texts.slice(from, from + TEXTS);
    const docs = part.map(({ text }) => ({ text_field: text }));
    const { answer } = await sparrow.post(`/_ml/trained_models/${MODEL}/_infer`, { docs });
    part.forEach(({ id, title: name, text }, at) => {
      lines.push(lineOf(id, { title: name, text, [FIELD]: answer.inference_results[at].predicted_value }));
    });
  }
  return lines;
}

/** Half of the texts through the pipeline into the cluster, the other half through the encoder alone, in turns. */
async function throughModel(server, texts) {
  const sides = Array.from({ length: LOADING }, () => new Side(server));
  const seconds = { bulk: 0, encoder: 0 };
  const half = texts.length / 2;
  const timed = async (part, send) => {
    const begun = performance.now();
    let next = 0;
    const client = async (side) => {
      while (next < part.length) {
        const first = next;
        next += TEXTS;
        await send(side, part.slice(first, first + TEXTS));
      }
    };
    await Promise.all(sides.map(client));
    return (performance.now() - begun) / 1000;
  };
  const turn = LOADING * REQUESTS_OF_TURN * TEXTS;
  for (let from = 0; from < half; from += turn) {
    const [mine, others] = [
      [from, half],
      [half + from, 2 * half],
    ].map(([at, end]) => texts.slice(at, Math.min(end, at + turn)));
    seconds.bulk += await timed(mine, async (side, part) => {
      const body = part.map(({ id, title: name, text }) => lineOf(id, { title: name, text })).join('');
      const written = await side.post(`/${ENCODED}/_bulk?pipeline=${PIPELINE}`, body);
      if (written.answer.errors) throw new Error('a document was refused');
    });
    seconds.encoder += await timed(others, async (side, part) => {
      const docs = part.map(({ text }) => ({ text_field: text }));
      const { answer } = await side.post(`/_ml/trained_models/${MODEL}/_infer`, { docs });
      if (answer.inference_results.length !== part.length) throw new Error('a text has no tokens');
    });
  }
  for (const side of sides) side.close();
  return { bulk: half / seconds.bulk, encoder: half / seconds.encoder, documents: half };
}

/** The same lines into an index of the cluster and, through Sparrow, into another one. */
async function bulkLoads(context, { loads }, { cluster, sparrow, sides }, lines) {
  const bodies = [];
  for (let from = 0; from < lines.length; from += BULK) bodies.push(lines.slice(from, from + BULK).join(''));
  const indices = { bare: BARE, sparrow: THROUGH };
  const ms = { bare: [], sparrow: [] };
  const cpu = { cluster: 0, sparrow: 0 };
  // The first load warms all of them up.
  for (let load = -1; load < loads; load += 1) {
    for (const index of Object.values(indices)) await makeIndex(sparrow, index);
    const before = { cluster: processorTime(cluster), sparrow: processorTime(sparrow) };
    const found = await inTurns(
      sides,
      bodies.length,
      (side, at) => [`/${indices[side]}/_bulk`, bodies[at]],
      (bare, through) => {
        if (bare.errors || through.errors) throw new Error('a document was refused');
      },
    );
    if (load < 0) continue;
    for (const side of ['bare', 'sparrow']) ms[side].push(...found[side]);
    cpu.cluster += processorTime(cluster) - before.cluster;
    cpu.sparrow += processorTime(sparrow) - before.sparrow;
  }
  await sameDocuments(cluster, indices, lines);
  const written = loads * lines.length;
  const perSecond = (side) => (BULK * 1000) / median(ms[side]);
  const found = {
    // Of each pair of requests, as a disturbance lasts longer than one.
    share: median(ms.bare.map((one, at) => one / ms.sparrow[at])),
    perSecond: { bare: perSecond('bare'), sparrow: perSecond('sparrow') },
    pairs: ms.bare.length,
    cpuMicrosPerDocument: { cluster: (cpu.cluster * 1000) / (2 * written), sparrow: (cpu.sparrow * 1000) / written },
    bytesPerDocument: Math.round(bodies.reduce((sum, body) => sum + Buffer.byteLength(body), 0) / lines.length),
  };
  context.log(`bulk, tokens given: ${JSON.stringify(found)}`);
  return found;
}

/** Both indices hold as many documents, and the first thousand of them are the same. */
async function sameDocuments(cluster, indices, lines) {
  const ids = lines.slice(0, 1000).map((line) => JSON.parse(line.slice(0, line.indexOf('\n'))).index._id);
  const shown = [];
  for (const index of Object.values(indices)) {
    await cluster.request('POST', `/${index}/_refresh`);
    const { count } = await cluster.request('GET', `/${index}/_count`);
    const { docs } = await cluster.request('POST', `/${index}/_mget`, { ids });
    if (count !== lines.length || docs.some(({ found }) => !found))
      throw new Error(`documents are missing in ${index}`);
    shown.push(JSON.stringify(docs.map(({ _id, _source }) => [_id, _source])));
  }
  if (shown[0] !== shown[1]) throw new Error('what came through Sparrow is not what went to the cluster');
}

/** What a search is, on either side; the tokens are those that Sparrow's encoder makes of the question. */
function kindsOf(questions, tokens) {
  const rest = { _source: ['title'] };
  const neural = (at) => ({
    query: { bool: { should: [{ neural_sparse: { [FIELD]: { query_tokens: tokens[at] } } }] } },
    ...rest,
  });
  const words = (at) => ({ query: { match: { text: questions[at] } }, ...rest });
  return {
    [WORDS]: { bare: words, sparrow: words },
    [GIVEN]: {
      bare: neural,
      sparrow: (at) => ({ query: { sparse_vector: { field: FIELD, query_vector: tokens[at] } }, ...rest }),
    },
    [A_TEXT]: {
      bare: neural,
      sparrow: (at) => ({
        query: { text_expansion: { [FIELD]: { model_id: MODEL, model_text: questions[at] } } },
        ...rest,
      }),
    },
  };
}

const PATH = `/${ENCODED}/_search`;

/** Some rounds of each kind; the better one counts, for both sides, as the machine may be disturbed. */
async function searchTimes(context, { searches: { warm, rounds, count } }, { servers, sides }, questions) {
  const [sparrow, other] = servers;
  const asked = questions.slice(0, rounds * count + warm);
  // The other server makes the tokens: a server that has read a text once knows what comes of it.
  const kinds = kindsOf(asked, await tokensOf(other, asked));
  const found = {};
  for (const requestOf of Object.values(kinds)) {
    await inTurns(sides, warm, (side, at) => [PATH, requestOf[side](rounds * count + at)], sameHits);
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const [kind, requestOf] of Object.entries(kinds)) {
      const before = { encoding: await encodingOf(sparrow), cpuMs: processorTime(sparrow) };
      const ms = await inTurns(sides, count, (side, at) => [PATH, requestOf[side](round * count + at)], sameHits);
      const cpuMicros = ((processorTime(sparrow) - before.cpuMs) * 1000) / count;
      const encoding = await encodingOf(sparrow);
      const encoded = encoding.count - before.encoding.count;
      if (encoded !== (kind === A_TEXT ? count : 0)) throw new Error(`${kind}: ${encoded} texts were encoded`);
      const all = (found[kind] ??= []);
      all.push({
        bare: figures(ms.bare),
        sparrow: figures(ms.sparrow),
        added: figures(ms.sparrow.map((one, at) => one - ms.bare[at])),
        encodingMs: (encoding.ms - before.encoding.ms) / count,
        cpuMicros,
      });
      context.log(`${kind}: ${JSON.stringify(all.at(-1))}`);
    }
  }
  return Object.fromEntries(Object.entries(found).map(([kind, all]) => [kind, { ...bestOf(all), rounds: all }]));
}

/** What a process adds that hands words on and does nothing else: p50 in milliseconds, of the best round. */
async function throughProxy(context, { warm, rounds, count }, { cluster, bare }, questions) {
  const child = spawn(process.execPath, [PROXY, cluster.url], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const ended = once(child, 'exit').then(() => {
      throw new Error('the proxy ended before it said its address');
    });
    const [line] = await Promise.race([once(child.stdout, 'data'), ended]);
    ended.catch(() => undefined);
    const proxy = new Side({ url: String(line).trim() });
    const sides = { bare, sparrow: proxy };
    const request = (at) => [PATH, { query: { match: { text: questions[at] } }, _source: ['title'] }];
    const turns = (from, number) => inTurns(sides, number, (side, at) => request(from + at), sameHits);
    await turns(rounds * count, warm);
    const all = [];
    for (let round = 0; round < rounds; round += 1) {
      const ms = await turns(round * count, count);
      all.push({ bare: figures(ms.bare), proxy: figures(ms.sparrow) });
    }
    proxy.close();
    const found = { ...bestOf(all), rounds: all };
    context.log(`a proxy: ${JSON.stringify(found)}`);
    return found;
  } finally {
    child.kill();
  }
}

const figures = (values) => ({
  p10: percentile(values, 0.1),
  p50: percentile(values, 0.5),
  p95: percentile(values, 0.95),
  p99: percentile(values, 0.99),
});

/** The least of each figure over the rounds. */
function bestOf(all) {
  const [first] = all;
  return Object.fromEntries(
    Object.entries(first).map(([name, value]) => [
      name,
      typeof value === 'number' ? Math.min(...all.map((one) => one[name])) : bestOf(all.map((one) => one[name])),
    ]),
  );
}

/** The same documents in the same order, with the same scores. */
function sameHits(bare, sparrow) {
  const shown = ({ hits }) => hits.hits.map(({ _id, _score }) => `${_id} ${_score.toFixed(3)}`).join();
  if (shown(bare) !== shown(sparrow)) throw new Error(`the answers differ:\n${shown(bare)}\n${shown(sparrow)}`);
  if (bare.hits.total.value !== sparrow.hits.total.value) throw new Error('the totals differ');
}

/** The milliseconds that the encoder of a server has spent since it started, and on how many texts; texts that it knew not counted. */
async function encodingOf({ request }) {
  const { trained_model_stats: all } = await request('GET', `/_ml/trained_models/${MODEL}/_stats`);
  const nodes = all.flatMap(({ deployment_stats: deployment }) => deployment?.nodes ?? []);
  return nodes.reduce(
    (
      { ms, count },
      { inference_count: texts, inference_cache_hit_count: known, average_inference_time_ms: average },
    ) => ({
      ms: ms + texts * (average ?? 0),
      count: count + texts - known,
    }),
    { ms: 0, count: 0 },
  );
}

async function tokensOf({ request }, texts) {
  const tokens = [];
  for (let from = 0; from < texts.length; from += 100) {
    const docs = texts.slice(from, from + 100).map((text) => ({ text_field: text }));
    const { inference_results: results } = await request('POST', `/_ml/trained_models/${MODEL}/_infer`, { docs });
    tokens.push(...results.map((it) => it.predicted_value));
  }
  return tokens;
}

/** The bare cluster, one Sparrow server and two of them under many clients, in turns; each text is new to the server that reads it. */
async function underClients(context, { rounds, count }, { cluster, servers }, { known, questions: fresh }) {
  const plan = { clients: CLIENTS, count, warm: Math.ceil(count / 4) };
  const each = plan.count + plan.warm;
  const kinds = kindsOf(known, await tokensOf(servers[1], known));
  const given = kinds[GIVEN];
  const repeated = Array.from({ length: each }, (_, at) => at % known.length);
  const [one, two] = [1, 2].map((number) => ({
    url: servers[0].url,
    urls: servers.slice(0, number).map(({ url }) => url),
    pid: servers[0].pid,
    pids: servers.slice(0, number).map(({ pid }) => pid),
    path: PATH,
    headers: servers[0].headers,
  }));
  const text = (question) => ({
    query: { text_expansion: { [FIELD]: { model_id: MODEL, model_text: question } } },
    _source: ['title'],
  });
  const turns = [
    ['tokens given, bare', { ...cluster, path: PATH, query: given.bare }, () => repeated],
    ['tokens given, one', { ...one, query: given.sparrow }, () => repeated],
    ['tokens given, two', { ...two, query: given.sparrow }, () => repeated],
    ['a text, one', { ...one, query: text }, (used) => fresh.slice(used, used + each)],
    ['a text, two', { ...two, query: text }, (used) => fresh.slice(used, used + each)],
  ];
  const found = Object.fromEntries(turns.map(([name]) => [name, []]));
  let used = 0;
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, server, requestsOf] of round % 2 === 0 ? turns : [...turns].reverse()) {
      const requests = requestsOf(used);
      if (requests.length < each) throw new Error('there are too few questions');
      if (name.startsWith(A_TEXT)) used += each;
      const result = await ask(context, server, requests, plan);
      found[name].push(result);
      context.log(`${name}: ${Math.round(result.perSecond)} searches/s, p50 ${result.ms.p50} ms`);
    }
  }
  return Object.fromEntries(
    Object.entries(found).map(([name, all]) => [
      name,
      {
        perSecond: median(all.map(({ perSecond }) => perSecond)),
        p50: median(all.map(({ ms }) => ms.p50)),
        cpuMicros: median(all.map(({ serverCpuMicros }) => serverCpuMicros)),
        rounds: all.map(({ perSecond }) => Math.round(perSecond)),
      },
    ]),
  );
}

function rowsOf(size, { through, bulk, searches, proxy, clients }) {
  const rows = [];
  for (const [kind, { bare, sparrow, encodingMs, ...more }] of Object.entries(searches)) {
    const encoding = kind === A_TEXT ? encodingMs : 0;
    for (const part of ['p50', 'p99']) {
      rows.push({
        what: `a search, ${kind}: what Sparrow adds${kind === A_TEXT ? ' beside the encoding' : ''}, ${part}`,
        unit: 'ms',
        sparrow: sparrow[part] - bare[part] - encoding,
        target: { at_most: part === 'p50' ? 0.7 : 1.5 },
        checked: 'each answer with that of the bare cluster: ids, scores to 3 digits, total',
        detail: { bare, sparrow, encodingMs: encoding, ...more },
      });
    }
  }
  rows.push(
    {
      what: 'a search, words: what a process adds that only hands it on (Node and undici), p50',
      unit: 'ms',
      sparrow: proxy.proxy.p50 - proxy.bare.p50,
      checked: 'each answer with that of the bare cluster: ids, scores to 3 digits, total',
      detail: proxy,
    },
    {
      what: 'bulk load, tokens given',
      against: AGAINST,
      unit: 'documents/s',
      sparrow: bulk.perSecond.sparrow,
      peer: bulk.perSecond.bare,
      ratio: bulk.share,
      target: { at_least: 0.95 },
      checked: 'a thousand documents of both indices are the same, and the counts',
      detail: bulk,
    },
    {
      what: `bulk load through the model, ${LOADING} clients`,
      against: 'the encoder alone, other texts',
      unit: 'documents/s',
      sparrow: through.bulk,
      peer: through.encoder,
      target: { at_least: 0.85 },
      checked: 'no document was refused',
      detail: { documents: through.documents },
    },
  );
  const many = (what, name, peer, against, target) => ({
    what,
    against,
    unit: 'searches/s',
    target: { at_least: target },
    sparrow: clients[name].perSecond,
    peer: clients[peer].perSecond,
    checked: 'every status',
    detail: { sparrow: clients[name], peer: clients[peer] },
  });
  rows.push(
    many(`${CLIENTS} clients, tokens given, one server`, 'tokens given, one', 'tokens given, bare', AGAINST, 0.9),
    many(`${CLIENTS} clients, tokens given, two servers`, 'tokens given, two', 'tokens given, one', 'one server', 1),
    many(`${CLIENTS} clients, a text, two servers`, 'a text, two', 'a text, one', 'one server', 1),
  );
  return rows;
}

const whoHas = (cores) =>
  cores === undefined
    ? "cluster, Sparrow and client share the machine's cores"
    : `the cluster has cores ${cores.cluster}, Sparrow and the client ${cores.sparrow}`;

function notesOf(size, { searches, bulk, clients }) {
  const shown = ({ p50, p99 }) => `${p50.toFixed(2)} and ${p99.toFixed(2)} ms`;
  const micros = (value) => `${Math.round(value)} µs`;
  return [
    `${size.encoded} passages, 1 shard, heap 2 GB; ${whoHas(size.cores)}; ${size.searches.rounds} rounds of ` +
      `${size.searches.count} pairs of searches of each kind, the better round counts for both sides; bulk: the median of ${bulk.pairs} pairs of requests`,
    ...Object.entries(searches).map(
      ([kind, { bare, sparrow, encodingMs }]) =>
        `${kind}: p50 and p99 are ${shown(bare)} without and ${shown(sparrow)} with Sparrow` +
        (kind === A_TEXT ? `, of which the encoder has ${encodingMs.toFixed(2)} ms on average` : ''),
    ),
    `Sparrow's processor time, which others disturb less: ${Object.entries(searches)
      .map(([kind, { cpuMicros }]) => `${micros(cpuMicros)} (${kind})`)
      .join(
        ', ',
      )} for a search of one client, ${micros(clients['tokens given, one'].cpuMicros)} for one of ${CLIENTS} with tokens; for a ` +
      `document of a bulk load with tokens ${micros(bulk.cpuMicrosPerDocument.sparrow)}, the cluster's ${micros(bulk.cpuMicrosPerDocument.cluster)}`,
  ];
}
