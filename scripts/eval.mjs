// npm run eval -- DIR [--url URL] [--data DIR] [--queries N] [--no-dense] [--keep] [--json FILE]
//
// Loads a collection with judgements through the public API of a running server and prints nDCG@10 and recall@100 of
// lexical, semantic, dense and fused search, and of the hybrid search that is one line. DIR holds corpus.jsonl.gz ({_id, title, text}), queries.jsonl.gz
// ({_id, text}) and qrels.<split>.tsv (query-id, corpus-id, score); a `test` split is preferred over `dev`.

import { createReadStream, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { createGunzip } from 'node:zlib';

import { bulkLines, createClient, findApiKey } from './lib/api-client.mjs';
import { ndcg, recall } from './lib/ranking-metrics.mjs';

const INDEX = 'sparrow-eval';
const PIPELINE = 'sparrow-eval';
const DEPTH = 100;
const BATCH = 500;

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    url: { type: 'string', default: process.env.SPARROW_URL ?? 'http://127.0.0.1:9200' },
    data: { type: 'string', default: process.env.SPARROW_DATA ?? 'data' },
    queries: { type: 'string' },
    dense: { type: 'boolean', default: true },
    keep: { type: 'boolean', default: false },
    json: { type: 'string' },
  },
  allowNegative: true,
});
const directory = positionals[0];
if (!directory) {
  console.error('usage: npm run eval -- DIR [--url URL] [--queries N] [--no-dense] [--keep] [--json FILE]');
  process.exit(2);
}
const request = createClient({ url: options.url, apiKey: findApiKey(options.data) });

/** Rows of a gzipped JSON lines file, one at a time. */
async function* rows(file) {
  const lines = createInterface({ input: createReadStream(join(directory, file)).pipe(createGunzip()) });
  for await (const line of lines) if (line) yield JSON.parse(line);
}

/** query id → (document id → grade) */
function readJudgements() {
  const files = readdirSync(directory).filter((name) => /^qrels\..*\.tsv$/.test(name));
  const file = ['qrels.test.tsv', 'qrels.dev.tsv', ...files].find((name) => files.includes(name));
  if (!file) throw new Error(`${directory} holds no qrels.<split>.tsv`);
  const judgements = new Map();
  for (const line of readFileSync(join(directory, file), 'utf8').split('\n').slice(1)) {
    const [query, document, grade] = line.split('\t');
    if (!document || Number(grade) <= 0) continue;
    if (!judgements.has(query)) judgements.set(query, new Map());
    judgements.get(query).set(document, Number(grade));
  }
  return { file, judgements };
}

async function createIndex() {
  await request('DELETE', `/${INDEX}?ignore_unavailable=true`).catch(() => {});
  const inputs = [{ input_field: 'body', output_field: 'tokens' }];
  const processors = [{ inference: { model_id: '.sparse_encoder_model_2', input_output: inputs } }];
  const properties = {
    body: { type: 'text', analyzer: 'english' },
    tokens: { type: 'sparse_vector' },
  };
  if (options.dense) {
    await request('POST', '/_ml/trained_models/.all-minilm-l6-v2/deployment/_start?number_of_allocations=2').catch(
      (error) => {
        if (error.status !== 400 && error.status !== 409) throw error; // already started
      },
    );
    const input_output = [{ input_field: 'body', output_field: 'vector' }];
    processors.push({ inference: { model_id: '.all-minilm-l6-v2', input_output } });
    properties.vector = { type: 'dense_vector', dims: 384, similarity: 'cosine' };
    properties.body.fields = { semantic: { type: 'semantic_text', inference_id: '.hybrid' } };
  }
  await request('PUT', `/_ingest/pipeline/${PIPELINE}`, { processors });
  await request('PUT', `/${INDEX}`, {
    mappings: { _source: { excludes: ['tokens', 'vector'] }, properties },
  });
}

async function load() {
  let batch = [];
  let count = 0;
  const send = async () => {
    if (batch.length === 0) return;
    const answer = await request('POST', `/${INDEX}/_bulk?pipeline=${PIPELINE}`, bulkLines(batch));
    if (answer.errors) {
      const failed = answer.items.find((item) => item.index.error);
      throw new Error(`document ${failed.index._id}: ${failed.index.error.reason}`);
    }
    count += batch.length;
    batch = [];
    process.stderr.write(`\r  ${count} documents`);
  };
  for await (const { _id, title, text } of rows('corpus.jsonl.gz')) {
    batch.push({ _id, body: title ? `${title} ${text}` : text });
    if (batch.length === BATCH) await send();
  }
  await send();
  process.stderr.write('\n');
  await request('POST', `/${INDEX}/_refresh`);
  return count;
}

const lexical = (text) => ({ match: { body: text } });
const semantic = (text) => ({
  text_expansion: { tokens: { model_id: '.sparse_encoder_model_2', model_text: text } },
});
const searches = {
  lexical: (text) => ({ query: lexical(text) }),
  semantic: (text) => ({ query: semantic(text) }),
  ...(options.dense && {
    dense: (text) => ({
      knn: {
        field: 'vector',
        k: DEPTH,
        num_candidates: DEPTH,
        query_vector_builder: { text_embedding: { model_id: '.all-minilm-l6-v2', model_text: text } },
      },
    }),
  }),
  rrf: (text) => ({
    sub_searches: [{ query: lexical(text) }, { query: semantic(text) }],
    rank: { rrf: { rank_window_size: DEPTH } },
  }),
  ...(options.dense && { hybrid: (text) => ({ retriever: { rrf: { query: text } } }) }),
};

async function evaluate(judgements) {
  const sums = Object.fromEntries(Object.keys(searches).map((name) => [name, { ndcg: 0, recall: 0, times: [] }]));
  let count = 0;
  const limit = Number(options.queries ?? Infinity);
  for await (const { _id, text } of rows('queries.jsonl.gz')) {
    const grades = judgements.get(_id);
    if (!grades || count >= limit) continue;
    count += 1;
    for (const [name, search] of Object.entries(searches)) {
      const started = performance.now();
      const answer = await request('POST', `/${INDEX}/_search`, { size: DEPTH, _source: false, ...search(text) });
      sums[name].times.push(performance.now() - started);
      const ranked = answer.hits.hits.map((hit) => hit._id);
      sums[name].ndcg += ndcg(ranked, grades);
      sums[name].recall += recall(ranked, grades, DEPTH);
    }
    if (count % 500 === 0) process.stderr.write(`\r  ${count} queries`);
  }
  process.stderr.write('\n');
  const table = Object.entries(sums).map(([name, sum]) => {
    sum.times.sort((a, b) => a - b);
    return {
      search: name,
      'nDCG@10': Number((sum.ndcg / count).toFixed(4)),
      'recall@100': Number((sum.recall / count).toFixed(4)),
      'p50 ms': Number(sum.times[count >> 1].toFixed(2)),
    };
  });
  return { count, table };
}

const { file, judgements } = readJudgements();
console.error(`Loading ${directory}`);
await createIndex();
const started = performance.now();
const documents = await load();
const seconds = (performance.now() - started) / 1000;
console.error(`Searching (${file})`);
const { count, table } = await evaluate(judgements);
console.log(`${documents} documents in ${seconds.toFixed(1)} s, ${count} queries`);
console.table(table);
if (options.json) {
  const command = `npm run eval -- ${['DIR', ...process.argv.slice(2).filter((word) => word !== directory)].join(' ')}`;
  writeFileSync(
    options.json,
    `${JSON.stringify({ command, judgements: file, documents, queries: count, seconds, table }, null, 2)}\n`,
  );
}
if (!options.keep) {
  await request('DELETE', `/${INDEX}`);
  await request('DELETE', `/_ingest/pipeline/${PIPELINE}`);
}
