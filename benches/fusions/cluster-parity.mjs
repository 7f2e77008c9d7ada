// node benches/fusions/cluster-parity.mjs COLLECTION --native URL --native-data DIR --cluster URL --cluster-data DIR
//   [--documents N|all] [--json FILE]
//
// How good the same documents are found by the native engine and over a cluster: words, sparse, dense and hybrid, as `npm run eval` asks.
// Each document is encoded once, by the native server, and both are given its tokens and its vector: what differs is the search alone.
// COLLECTION is a folder as `npm run eval` reads it, of which all are taken, or the first N of the judged ones and every sixth of the others.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { ndcg, recall } from '@sparrow-search/server';

import { bulkLines, createClient, findApiKey } from '../../scripts/lib/api-client.mjs';
import { rows } from '../lib/collections.mjs';

const INDEX = 'cluster-parity';
const SPARSE = '.sparse_encoder_model_2';
const DENSE = '.all-minilm-l6-v2';
const DEPTH = 100;
const BATCH = 100;
const AT_ONCE = 8;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    native: { type: 'string' },
    'native-data': { type: 'string' },
    cluster: { type: 'string' },
    'cluster-data': { type: 'string' },
    documents: { type: 'string', default: '600' },
    json: { type: 'string' },
  },
});
const [folder] = positionals;
if (!folder || !values.native || !values.cluster) {
  console.error('usage: cluster-parity.mjs COLLECTION --native URL --native-data DIR --cluster URL --cluster-data DIR');
  process.exit(2);
}
const engines = Object.fromEntries(
  ['native', 'cluster'].map((name) => [
    name,
    createClient({ url: values[name], apiKey: findApiKey(values[`${name}-data`] ?? 'data') }),
  ]),
);

const judged = readFileSync(join(folder, 'qrels.test.tsv'), 'utf8')
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => line.split('\t'))
  .filter(([, , grade]) => Number(grade) > 0);
const isJudged = new Set(judged.map(([, id]) => id));
const takesAll = values.documents === 'all';
const documents = rows(join(folder, 'corpus.jsonl.gz'))
  .filter(({ _id }, at) => takesAll || isJudged.has(_id) || at % 6 === 0)
  .slice(0, takesAll ? undefined : Number(values.documents))
  .map(({ _id, title = '', text }) => ({ _id, body: title === '' ? text : `${title} ${text}` }));
const isThere = new Set(documents.map(({ _id }) => _id));
const grades = new Map();
for (const [query, id, grade] of judged) {
  if (!isThere.has(id)) continue;
  grades.set(query, new Map([...(grades.get(query) ?? []), [id, Number(grade)]]));
}
const queries = rows(join(folder, 'queries.jsonl.gz')).filter(({ _id }) => grades.has(_id));

const encoded = await encode(engines.native);
for (const ask of Object.values(engines)) await load(ask, encoded);

const words = (text) => ({ match: { body: text } });
const sparse = (text) => ({ text_expansion: { tokens: { model_id: SPARSE, model_text: text } } });
const dense = (text) => ({
  ...{ field: 'vector', k: DEPTH, num_candidates: DEPTH },
  query_vector_builder: { text_embedding: { model_id: DENSE, model_text: text } },
});
const lists = (text) => [
  { standard: { query: words(text) } },
  { standard: { query: sparse(text) } },
  { knn: dense(text) },
];
const ways = {
  words: (text) => ({ query: words(text) }),
  sparse: (text) => ({ query: sparse(text) }),
  dense: (text) => ({ knn: dense(text) }),
  'words and sparse': (text) => ({
    sub_searches: [{ query: words(text) }, { query: sparse(text) }],
    rank: { rrf: { rank_window_size: DEPTH } },
  }),
  rrf: (text) => ({ retriever: { rrf: { retrievers: lists(text), rank_window_size: DEPTH } } }),
  linear: (text) => ({
    retriever: {
      linear: {
        retrievers: lists(text).map((retriever) => ({ retriever, normalizer: 'zscore' })),
        rank_window_size: DEPTH,
      },
    },
  }),
};
const table = [];
for (const [name, body] of Object.entries(ways)) {
  const row = { search: name };
  const first = {};
  for (const [engine, ask] of Object.entries(engines)) {
    const sums = [0, 0];
    first[engine] = [];
    const left = queries.entries();
    const worker = async () => {
      for (const [at, { _id, text }] of left) {
        const { hits } = await ask('POST', `/${INDEX}/_search`, { ...body(text), size: DEPTH, _source: false });
        const ids = hits.hits.map((hit) => hit._id);
        sums[0] += ndcg(ids, grades.get(_id));
        sums[1] += recall(ids, grades.get(_id));
        first[engine][at] = ids.slice(0, 10).join();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    const [quality, found] = sums.map((sum) => Number((sum / queries.length).toFixed(4)));
    row[engine] = { 'nDCG@10': quality, 'recall@100': found };
  }
  row['same first ten'] = first.native.filter((ids, at) => ids === first.cluster[at]).length;
  table.push(row);
  console.log(JSON.stringify(row));
}
for (const ask of Object.values(engines)) await ask('DELETE', `/${INDEX}`);
const command =
  'node benches/fusions/cluster-parity.mjs COLLECTION --native URL --native-data DIR --cluster URL --cluster-data DIR ' +
  `--documents ${values.documents} --json FILE`;
const record = { command, judgements: 'qrels.test.tsv', documents: documents.length, queries: queries.length, table };
if (values.json) writeFileSync(values.json, `${JSON.stringify(record, null, 2)}\n`);

async function encode(ask) {
  await start(ask);
  const inference = (model_id, output_field) => ({
    inference: { model_id, input_output: [{ input_field: 'body', output_field }] },
  });
  const pipeline = { processors: [inference(SPARSE, 'tokens'), inference(DENSE, 'vector')] };
  const made = [];
  for (let from = 0; from < documents.length; from += BATCH) {
    const docs = documents.slice(from, from + BATCH).map(({ _id, body }) => ({ _id, _source: { body } }));
    const answer = await ask('POST', '/_ingest/pipeline/_simulate', { pipeline, docs });
    made.push(...answer.docs.map(({ doc }) => ({ _id: doc._id, ...doc._source })));
  }
  return made;
}

async function load(ask, made) {
  await start(ask);
  await ask('DELETE', `/${INDEX}?ignore_unavailable=true`);
  await ask('PUT', `/${INDEX}`, {
    mappings: {
      properties: {
        body: { type: 'text', analyzer: 'english' },
        tokens: { type: 'sparse_vector' },
        vector: { type: 'dense_vector', dims: 384, similarity: 'cosine' },
      },
    },
  });
  for (let from = 0; from < made.length; from += BATCH) {
    const { errors } = await ask('POST', `/${INDEX}/_bulk`, bulkLines(made.slice(from, from + BATCH)));
    if (errors) throw new Error('a document was refused');
  }
  await ask('POST', `/${INDEX}/_refresh`);
}

/** The dense model, which may be started already. */
async function start(ask) {
  await ask('POST', `/_ml/trained_models/${DENSE}/deployment/_start?wait_for=started`).catch((error) => {
    if (error.status !== 409 && error.status !== 400) throw error;
  });
}
