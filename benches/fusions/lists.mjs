// node benches/fusions/lists.mjs OUT-DIR DIR… [--inference ID] [--url URL] [--data DIR]
//
// The ranked lists that a hybrid search fuses, by a running server: for each query of each collection the first 100
// documents by words (with the standard and with the English analyzer), by sparse and by dense vectors, with scores, and what the
// server makes of them. One file for each collection in OUT-DIR, so that any number of fusions can be tried on them without a
// server. A collection that the server already has, under the name of its index, is not loaded again.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';

import { bulkLines, createClient, findApiKey } from '../../scripts/lib/api-client.mjs';
import { rows } from '../lib/collections.mjs';

const DEPTH = 100;
const BATCH = 250;
/** Queries whose searches are sent together. */
const AT_ONCE = 8;
const SEMANTIC = 'body.semantic';
/** The server's own fusions, of which few hits are asked for: more would widen their windows. */
const FUSIONS = {
  rrf: ['rrf', {}],
  linear: ['linear', {}],
  calibrated: ['linear', { normalizer: 'calibrated' }],
};
const SHOWN = 10;
const ANALYZERS = { standard: 'body.standard', english: 'body' };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    inference: { type: 'string', default: '.hybrid' },
    url: { type: 'string', default: process.env.SPARROW_URL ?? 'http://127.0.0.1:9200' },
    data: { type: 'string', default: process.env.SPARROW_DATA ?? 'data' },
  },
});
const [out, ...collections] = positionals;
if (collections.length === 0) {
  console.error('usage: node benches/fusions/lists.mjs OUT-DIR DIR… [--inference ID] [--url URL] [--data DIR]');
  process.exit(2);
}
const request = createClient({ url: values.url, apiKey: findApiKey(values.data) });
const body = {
  type: 'text',
  analyzer: 'english',
  fields: { standard: { type: 'text' }, semantic: { type: 'semantic_text', inference_id: values.inference } },
};
const indexOf = (directory) => `fusions-${basename(directory)}-${values.inference.replace(/^\./, '')}`;

async function load(directory) {
  const index = indexOf(directory);
  const documents = rows(join(directory, 'corpus.jsonl.gz'));
  const there = await request('GET', `/${index}/_count?ignore_unavailable=true`);
  if (there.count === documents.length) return;
  await request('DELETE', `/${index}?ignore_unavailable=true`);
  await request('PUT', `/${index}`, { mappings: { properties: { body } } });
  for (let from = 0; from < documents.length; from += BATCH) {
    const batch = documents
      .slice(from, from + BATCH)
      .map(({ _id, title, text }) => ({ _id, body: title ? `${title} ${text}` : text }));
    const answer = await request('POST', `/${index}/_bulk`, bulkLines(batch));
    if (answer.errors) throw new Error(JSON.stringify(answer.items.find((item) => item.index.error)));
  }
  await request('POST', `/${index}/_refresh`);
}

function judgements(directory) {
  const files = readdirSync(directory);
  const file = ['qrels.test.tsv', 'qrels.dev.tsv'].find((name) => files.includes(name));
  const grades = {};
  for (const line of readFileSync(join(directory, file), 'utf8').trim().split('\n').slice(1)) {
    const [query, document, grade] = line.split('\t');
    if (Number(grade) > 0) (grades[query] ??= {})[document] = Number(grade);
  }
  return grades;
}

/** The searches of a text: what is fused, and the server's own fusions. */
function searches(text) {
  const both = Object.entries(ANALYZERS);
  return Object.assign(
    {},
    ...both.map(([name, field]) => ({ [name]: { query: { match: { [field]: text } } } })),
    {
      sparse: { query: { sparse_vector: { field: SEMANTIC, query: text } } },
      dense: {
        retriever: {
          knn: {
            field: SEMANTIC,
            k: DEPTH,
            num_candidates: 1.5 * DEPTH,
            query_vector_builder: { text_embedding: { model_text: text } },
          },
        },
      },
      semantic: { query: { semantic: { field: SEMANTIC, query: text } } },
    },
    ...both.flatMap(([name, field]) =>
      Object.entries(FUSIONS).map(([fusion, [kind, more]]) => ({
        [`${fusion}, ${name}`]: {
          retriever: { [kind]: { query: text, fields: [field, SEMANTIC], ...more } },
          size: SHOWN,
        },
      })),
    ),
  );
}

mkdirSync(out, { recursive: true });
for (const directory of collections) {
  await load(directory);
  const grades = judgements(directory);
  const asked = rows(join(directory, 'queries.jsonl.gz')).filter(({ _id }) => grades[_id]);
  const found = [];
  for (let from = 0; from < asked.length; from += AT_ONCE) {
    const batch = asked.slice(from, from + AT_ONCE).map((query) => ({ ...query, ways: searches(query.text) }));
    const lines = batch.flatMap(({ ways }) =>
      Object.values(ways).flatMap((way) => ['{}', JSON.stringify({ size: DEPTH, _source: false, ...way })]),
    );
    const { responses } = await request('POST', `/${indexOf(directory)}/_msearch`, `${lines.join('\n')}\n`);
    for (const { _id, ways } of batch) {
      const lists = {};
      for (const name of Object.keys(ways)) {
        const { error, hits } = responses.shift();
        if (error) throw new Error(JSON.stringify(error));
        lists[name] = hits.hits.map((hit) => [hit._id, hit._score]);
      }
      found.push({ id: _id, grades: grades[_id], lists });
    }
  }
  writeFileSync(join(out, `${basename(directory)}.json`), JSON.stringify(found));
  console.log(`${basename(directory)}: ${found.length} queries`);
}
