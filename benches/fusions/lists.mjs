// node benches/fusions/lists.mjs OUT-DIR DIR… [--url URL] [--data DIR]
//
// The ranked lists that a hybrid search fuses, by a running server: for each query of each collection the first 200
// documents by words (with the standard and with the English analyzer), by sparse and by dense vectors, with scores.
// One file for each collection in OUT-DIR, so that any number of fusions can be tried on them without a server.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';

import { bulkLines, createClient, findApiKey } from '../../scripts/lib/api-client.mjs';
import { rows } from '../lib/collections.mjs';

const INDEX = 'sparrow-fusions';
const DEPTH = 200;
const BATCH = 250;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    url: { type: 'string', default: process.env.SPARROW_URL ?? 'http://127.0.0.1:9200' },
    data: { type: 'string', default: process.env.SPARROW_DATA ?? 'data' },
  },
});
const [out, ...collections] = positionals;
if (collections.length === 0) {
  console.error('usage: node benches/fusions/lists.mjs OUT-DIR DIR… [--url URL] [--data DIR]');
  process.exit(2);
}
const request = createClient({ url: values.url, apiKey: findApiKey(values.data) });
const properties = {
  body: {
    type: 'text',
    fields: { english: { type: 'text', analyzer: 'english' } },
    copy_to: ['sparse', 'dense'],
  },
  sparse: { type: 'semantic_text', inference_id: '.elser-2-elasticsearch' },
  dense: { type: 'semantic_text', inference_id: '.all-minilm-l6-v2-elasticsearch' },
};

async function load(directory) {
  await request('DELETE', `/${INDEX}?ignore_unavailable=true`);
  await request('PUT', `/${INDEX}`, { mappings: { properties } });
  const documents = rows(join(directory, 'corpus.jsonl.gz'));
  for (let from = 0; from < documents.length; from += BATCH) {
    const batch = documents
      .slice(from, from + BATCH)
      .map(({ _id, title, text }) => ({ _id, body: title ? `${title} ${text}` : text }));
    const answer = await request('POST', `/${INDEX}/_bulk`, bulkLines(batch));
    if (answer.errors) throw new Error(JSON.stringify(answer.items.find((item) => item.index.error)));
  }
  await request('POST', `/${INDEX}/_refresh`);
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

mkdirSync(out, { recursive: true });
for (const directory of collections) {
  await load(directory);
  const grades = judgements(directory);
  const found = [];
  for (const { _id, text } of rows(join(directory, 'queries.jsonl.gz'))) {
    if (!grades[_id]) continue;
    const queries = {
      standard: { match: { body: text } },
      english: { match: { 'body.english': text } },
      sparse: { semantic: { field: 'sparse', query: text } },
      dense: { semantic: { field: 'dense', query: text } },
    };
    const lists = {};
    for (const [name, query] of Object.entries(queries)) {
      const answer = await request('POST', `/${INDEX}/_search`, { size: DEPTH, _source: false, query });
      lists[name] = answer.hits.hits.map((hit) => [hit._id, hit._score]);
    }
    found.push({ id: _id, grades: grades[_id], lists });
  }
  writeFileSync(join(out, `${basename(directory)}.json`), JSON.stringify(found));
  console.log(`${basename(directory)}: ${found.length} queries`);
}
await request('DELETE', `/${INDEX}`);
