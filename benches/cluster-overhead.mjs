// node benches/cluster-overhead.mjs --cluster URL [--documents N] [--rounds N] [--json FILE]
//
// What Sparrow adds over a cluster, each time the same request once to the bare cluster in its own form and once through Sparrow, in turn:
// milliseconds of a search, and documents a second of a bulk load whose tokens are given. Beside them the load through the model, and the
// bytes that the cluster takes for a document, from which docs/design/capacity.md computes. It makes indices `overhead-*` and removes them.
import { Agent, request } from 'node:http';
import { parseArgs } from 'node:util';

import { main } from '../scripts/lib/process.mjs';
import { questionsFrom, readSynsets } from '../scripts/lib/wordnet.mjs';
import { productOf, withClusterServer, withoutAddress } from './lib/cluster-server.mjs';
import { beginRecord, commandLine, writeRecord } from './lib/record.mjs';
import { median, percentile } from './lib/statistics.mjs';

const MODEL = '.sparse_encoder_model_2';
const INDEX = 'overhead-glosses';
const LOADED = 'overhead-loaded';
const PIPELINE = 'overhead-embed';
const FIELD = 'tokens';
const BULK = 500;
const WARM_UP = 100;
const LOADS = 5;

const OPTIONS = {
  cluster: { type: 'string' },
  documents: { type: 'string', default: '5000' },
  rounds: { type: 'string', default: '500' },
  json: { type: 'string' },
};

const agent = new Agent({ keepAlive: true });

/** Sends a body; resolves with the milliseconds until the whole answer was there, and the answer. */
function send(to, method, path, body, type = 'application/json') {
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    const headers = {
      ...(body === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(body) }),
      ...(to.apiKey === undefined ? {} : { authorization: `ApiKey ${to.apiKey}` }),
    };
    const sent = request(to.url + path, { method, agent, headers }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => {
        const ms = performance.now() - begun;
        const text = Buffer.concat(chunks).toString();
        if (response.statusCode < 300) resolve({ ms, body: text === '' ? {} : JSON.parse(text) });
        else reject(new Error(`${to.url}${path}: ${response.statusCode} ${text.slice(0, 300)}`));
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const post = (to, path, body) => send(to, 'POST', path, JSON.stringify(body));
const lineOf = (id, document) => `${JSON.stringify({ index: { _id: id } })}\n${JSON.stringify(document)}\n`;

const MAPPINGS = {
  properties: { [FIELD]: { type: 'sparse_vector' }, words: { type: 'text' }, gloss: { type: 'text' } },
};

async function makeIndex(sparrow, cluster, name) {
  await send(cluster, 'DELETE', `/${name}?ignore_unavailable=true`);
  const body = { settings: { number_of_shards: 1, number_of_replicas: 0 }, mappings: MAPPINGS };
  await send(sparrow, 'PUT', `/${name}`, JSON.stringify(body));
}

/** Loads lines in requests of {@link BULK} documents; resolves with the seconds that it took. */
async function load(to, path, lines) {
  let seconds = 0;
  for (let from = 0; from < lines.length; from += BULK) {
    const chunk = lines.slice(from, from + BULK).join('');
    const { ms, body } = await send(to, 'POST', path, chunk, 'application/x-ndjson');
    if (body.errors)
      throw new Error(`a document was refused: ${JSON.stringify(body.items.find((it) => it.index.error))}`);
    seconds += ms / 1000;
  }
  return seconds;
}

const figures = (all) => ({
  p50: Number(percentile(all, 0.5).toFixed(3)),
  p99: Number(percentile(all, 0.99).toFixed(3)),
});

async function searches(cluster, sparrow, questions, rounds) {
  const vectors = [];
  for (const text of questions) {
    const { body } = await post(sparrow, `/_ml/trained_models/${MODEL}/_infer`, { docs: [{ text_field: text }] });
    vectors.push(body.inference_results[0].predicted_value);
  }
  const sparse = (at) => ({ bool: { should: [{ neural_sparse: { [FIELD]: { query_tokens: vectors[at] } } }] } });
  const match = (at) => ({ query: { match: { gloss: questions[at] } }, _source: ['words'] });
  const kinds = {
    'words, passed on': { bare: match, sparrow: match },
    'tokens given': {
      bare: (at) => ({ query: sparse(at), _source: ['words'] }),
      sparrow: (at) => ({ query: { sparse_vector: { field: FIELD, query_vector: vectors[at] } }, _source: ['words'] }),
    },
    'a text, encoded by Sparrow': {
      bare: (at) => ({ query: sparse(at), _source: ['words'] }),
      sparrow: (at) => ({
        query: { text_expansion: { [FIELD]: { model_id: MODEL, model_text: questions[at] } } },
        _source: ['words'],
      }),
    },
  };
  const found = [];
  for (const [search, { bare, sparrow: through }] of Object.entries(kinds)) {
    const times = { bare: [], sparrow: [], added: [] };
    for (let round = -WARM_UP; round < rounds; round += 1) {
      const question = (round + WARM_UP) % questions.length;
      const one = await post(cluster, `/${INDEX}/_search`, bare(question));
      const two = await post(sparrow, `/${INDEX}/_search`, through(question));
      const ids = ({ body }) => body.hits.hits.map(({ _id, _score }) => `${_id} ${_score.toFixed(3)}`).join();
      if (ids(one) !== ids(two)) throw new Error(`${search}: the answers differ:\n${ids(one)}\n${ids(two)}`);
      if (round < 0) continue;
      times.bare.push(one.ms);
      times.sparrow.push(two.ms);
      times.added.push(two.ms - one.ms);
    }
    const added_p50_ms = Number(median(times.added).toFixed(3));
    found.push({ search, rounds, bare_ms: figures(times.bare), sparrow_ms: figures(times.sparrow), added_p50_ms });
    console.log(JSON.stringify(found.at(-1)));
  }
  return found;
}

async function bulkLoads(cluster, sparrow, lines) {
  const rates = { bare: [], sparrow: [] };
  for (let round = -1; round < LOADS; round += 1) {
    // Who comes first changes: what comes second finds warmer caches.
    const sides = round % 2 === 0 ? ['bare', 'sparrow'] : ['sparrow', 'bare'];
    for (const side of sides) {
      await makeIndex(sparrow, cluster, LOADED);
      const seconds = await load(side === 'bare' ? cluster : sparrow, `/${LOADED}/_bulk`, lines);
      if (round >= 0) rates[side].push(lines.length / seconds);
    }
  }
  const [bare, through] = [median(rates.bare), median(rates.sparrow)];
  return {
    documents: lines.length,
    loads: LOADS,
    bare_per_second: Math.round(bare),
    sparrow_per_second: Math.round(through),
    share: Number((through / bare).toFixed(3)),
  };
}

await main(async (args) => {
  const { values } = parseArgs({ args, options: OPTIONS });
  const endRecord = beginRecord({
    suite: 'cluster-overhead',
    title: 'what Sparrow adds over a cluster',
    command: commandLine('node benches/cluster-overhead.mjs', withoutAddress(args, values.cluster)),
  });
  const [documents, rounds] = [Number(values.documents), Number(values.rounds)];
  const cluster = { url: values.cluster };
  const found = await withClusterServer(values.cluster, (sparrow) => measure(cluster, sparrow, documents, rounds));
  if (values.json !== undefined) writeRecord(values.json, endRecord(found));
});

async function measure(cluster, sparrow, documents, rounds) {
  try {
    const synsets = readSynsets(documents);
    const questions = questionsFrom(synsets, 20).map(({ text }) => text);
    const { body: root } = await send(cluster, 'GET', '/');
    const inference = { model_id: MODEL, input_output: [{ input_field: 'gloss', output_field: FIELD }] };
    await send(sparrow, 'PUT', `/_ingest/pipeline/${PIPELINE}`, JSON.stringify({ processors: [{ inference }] }));
    await makeIndex(sparrow, cluster, INDEX);
    const plain = synsets.map(({ _id, words, gloss }, at) => lineOf(_id ?? String(at), { words, gloss }));
    const encoding = await load(sparrow, `/${INDEX}/_bulk?pipeline=${PIPELINE}`, plain);
    const through_the_model = { documents: plain.length, per_second: Math.round(plain.length / encoding) };
    console.log(JSON.stringify({ through_the_model }));
    await send(cluster, 'POST', `/${INDEX}/_refresh`);
    const { body: all } = await post(cluster, `/${INDEX}/_search`, { size: 10_000 });
    const given = all.hits.hits.map(({ _id, _source }) => lineOf(_id, _source));
    const tokens = all.hits.hits.reduce((sum, { _source }) => sum + Object.keys(_source[FIELD]).length, 0);
    const bulk = await bulkLoads(cluster, sparrow, given);
    console.log(JSON.stringify({ bulk }));
    const found = await searches(cluster, sparrow, questions, rounds);
    await send(cluster, 'POST', `/${INDEX}/_forcemerge?max_num_segments=1`);
    const { body: stats } = await send(cluster, 'GET', `/${INDEX}/_stats/store`);
    const bytes = stats._all.primaries.store.size_in_bytes;
    const store = {
      documents: given.length,
      bytes_per_document: Math.round(bytes / given.length),
      tokens_per_document: Number((tokens / given.length).toFixed(1)),
      line_bytes_per_document: Math.round(given.reduce((sum, line) => sum + line.length, 0) / given.length),
    };
    console.log(JSON.stringify(store));
    return { cluster: productOf(root), searches: found, bulk_tokens_given: bulk, through_the_model, store };
  } finally {
    for (const index of [INDEX, LOADED])
      await send(cluster, 'DELETE', `/${index}?ignore_unavailable=true`).catch(() => {});
    await send(sparrow, 'DELETE', `/_ingest/pipeline/${PIPELINE}`).catch(() => {});
    agent.destroy();
  }
}
