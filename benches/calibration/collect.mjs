// node benches/calibration/collect.mjs OUT-DIR --url URL --data DIR --scifact DIR --collections DIR --questions FILE
//
// What the maps of `"normalizer": "calibrated"` are fitted to: for each question, asked of its own collection and of
// others, the first 100 documents by words, by sparse and by dense vectors with their scores, the question's token weights,
// and how many documents hold each of its words. --scifact is a folder as `npm run eval` reads it, --collections what
// benches/fusions/collections.mjs made, --questions a file of questions that belong to none of them ({"text": …} a line).
// Collections that the server already has, under the names of their indices, are not loaded again.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';

import { bulkLines, createClient, findApiKey } from '../../scripts/lib/api-client.mjs';
import { rows, sampler } from '../lib/collections.mjs';

const DEPTH = 100;
const BATCH = 250;
const OWN = 300;
const FOREIGN = 75;
const AT_ONCE = 4;
const TASKS = [
  { name: 'scifact', corpus: 'scifact' },
  { name: 'squad', corpus: 'squad' },
  { name: 'wordnet-words', corpus: 'wordnet' },
  { name: 'wordnet-examples', corpus: 'wordnet' },
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    url: { type: 'string', default: process.env.SPARROW_URL ?? 'http://127.0.0.1:9200' },
    data: { type: 'string', default: process.env.SPARROW_DATA ?? 'data' },
    scifact: { type: 'string' },
    collections: { type: 'string' },
    questions: { type: 'string' },
  },
});
const [out] = positionals;
if (!out || !values.scifact || !values.collections || !values.questions) {
  console.error(
    'usage: node benches/calibration/collect.mjs OUT-DIR --scifact DIR --collections DIR --questions FILE [--url URL] [--data DIR]',
  );
  process.exit(2);
}
const request = createClient({ url: values.url, apiKey: findApiKey(values.data) });
const directoryOf = (task) => (task === 'scifact' ? values.scifact : join(values.collections, task));
const sample = sampler(7);

const properties = {
  title: { type: 'text' },
  text: { type: 'text' },
  body: {
    type: 'text',
    fields: {
      english: { type: 'text', analyzer: 'english' },
      semantic: { type: 'semantic_text', inference_id: '.hybrid' },
    },
  },
};
const indexOf = (corpus) => `calibration-${corpus}`;

async function load({ name, corpus }) {
  const index = indexOf(corpus);
  const documents = rows(join(directoryOf(name), 'corpus.jsonl.gz'));
  const there = await request('GET', `/${index}/_count?ignore_unavailable=true`);
  if (there.count === documents.length) return;
  await request('DELETE', `/${index}?ignore_unavailable=true`);
  await request('PUT', `/${index}`, { mappings: { properties } });
  for (let from = 0; from < documents.length; from += BATCH) {
    const batch = documents
      .slice(from, from + BATCH)
      .map(({ _id, title, text }) => ({ _id, title, text, body: title ? `${title} ${text}` : text }));
    const answer = await request('POST', `/${index}/_bulk`, bulkLines(batch));
    if (answer.errors) throw new Error(JSON.stringify(answer.items.find((item) => item.index.error)));
  }
  await request('POST', `/${index}/_refresh`);
  console.log(`${corpus}: ${documents.length} documents`);
}

/** Questions of a task with the documents that answer them. */
function questions({ name }) {
  const directory = directoryOf(name);
  const grades = {};
  for (const file of readdirSync(directory).filter((file) => file.startsWith('qrels.'))) {
    for (const line of readFileSync(join(directory, file), 'utf8').trim().split('\n').slice(1)) {
      const [query, document, grade] = line.split('\t');
      if (Number(grade) > 0) (grades[query] ??= []).push(document);
    }
  }
  const asked = rows(join(directory, 'queries.jsonl.gz')).filter(({ _id }) => grades[_id]);
  return sample(asked, OWN).map(({ _id, text }) => ({ task: name, id: _id, text, relevant: grades[_id] }));
}

async function ask(corpus, { task, id, text, relevant = [] }) {
  const index = indexOf(corpus);
  const queries = {
    words: { match: { body: text } },
    english: { match: { 'body.english': text } },
    fields: { multi_match: { query: text, fields: ['title', 'text'], type: 'most_fields' } },
    sparse: { sparse_vector: { field: 'body.semantic', query: text } },
    dense: {
      knn: {
        field: 'body.semantic',
        k: DEPTH,
        num_candidates: 2 * DEPTH,
        query_vector_builder: { text_embedding: { model_text: text } },
      },
    },
  };
  const answers = await Promise.all(
    Object.values(queries).map((query) => request('POST', `/${index}/_search`, { size: DEPTH, _source: false, query })),
  );
  const lists = Object.fromEntries(
    Object.keys(queries).map((name, at) => [name, answers[at].hits.hits.map((hit) => [hit._id, hit._score])]),
  );
  const fields = ['title', 'text', 'body', 'body.english'];
  const found = await request('POST', `/${index}/_termvectors`, {
    doc: { title: text, text, body: text },
    fields,
    term_statistics: true,
    field_statistics: true,
    positions: false,
    offsets: false,
  });
  const terms = {};
  for (const field of fields) {
    const { field_statistics: statistics, terms: of } = found.term_vectors[field] ?? {};
    terms[field] = {
      docs: statistics?.doc_count ?? 0,
      terms: Object.values(of ?? {}).map((term) => [term.term_freq, term.doc_freq ?? 0]),
    };
  }
  return { corpus, task, id, text, relevant, lists, terms };
}

mkdirSync(out, { recursive: true });
for (const task of TASKS) if (task.name !== 'wordnet-examples') await load(task);
const asked = Object.fromEntries(TASKS.map((task) => [task.name, questions(task)]));
const elsewhere = readFileSync(values.questions);
asked.general = sample(
  (values.questions.endsWith('.gz') ? gunzipSync(elsewhere) : elsewhere)
    .toString()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line)),
  OWN,
).map(({ _id, text }) => ({ task: 'general', id: _id, text }));

const weights = {};
const all = Object.values(asked).flat();
for (let from = 0; from < all.length; from += 50) {
  const batch = all.slice(from, from + 50);
  const answer = await request('POST', '/_inference/sparse_embedding/.elser-2-elasticsearch', {
    input: batch.map(({ text }) => text),
  });
  answer.sparse_embedding.forEach(({ embedding }, at) => {
    weights[batch[at].text] = Object.values(embedding);
  });
}

for (const corpus of new Set(TASKS.map((task) => task.corpus))) {
  const own = TASKS.filter((task) => task.corpus === corpus).flatMap(({ name }) => asked[name]);
  const foreign = [...TASKS.filter((task) => task.corpus !== corpus).map(({ name }) => name), 'general'].flatMap(
    (name) => sample(asked[name], name === 'general' ? 2 * FOREIGN : FOREIGN),
  );
  const all = [...own, ...foreign.map((question) => ({ ...question, relevant: [] }))];
  const lines = [];
  for (let from = 0; from < all.length; from += AT_ONCE) {
    const answered = await Promise.all(all.slice(from, from + AT_ONCE).map((question) => ask(corpus, question)));
    lines.push(...answered.map((answer) => JSON.stringify({ ...answer, weights: weights[answer.text] })));
  }
  writeFileSync(join(out, `${corpus}.jsonl`), `${lines.join('\n')}\n`);
  console.log(`${corpus}: ${own.length} questions of its own, ${foreign.length} of others`);
}
