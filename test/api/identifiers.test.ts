// What somebody types who knows what stands in a document: the default hybrid search has to find it as surely as a search by words does.
import { ndcg } from '@sparrow-search/server';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const { identifiers } = (await import(new URL('../../benches/lib/identifiers.mjs', import.meta.url).href)) as {
  identifiers: () => {
    readonly documents: readonly { readonly _id: string; readonly title: string; readonly text: string }[];
    readonly queries: readonly { readonly _id: string; readonly text: string }[];
    readonly judgements: readonly (readonly [query: string, document: string, grade: number])[];
  };
};
const { documents, queries, judgements } = identifiers();
const BATCH = 250;

let server: RunningServer;

beforeAll(async () => {
  server = await startServer();
  const semantic = { type: 'semantic_text', inference_id: '.hybrid' };
  const body = { type: 'text', fields: { semantic, english: { type: 'text', analyzer: 'english' } } };
  const made = await server.request('PUT', '/notes', { mappings: { properties: { body } } });
  expect(made.status, made.text).toBe(200);
  for (let from = 0; from < documents.length; from += BATCH) {
    const lines = documents
      .slice(from, from + BATCH)
      .flatMap(({ _id, title, text }) => [{ index: { _id } }, { body: `${title} ${text}` }]);
    const ndjson = `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`;
    const written = await server.request('POST', '/notes/_bulk?refresh=true', ndjson);
    expect(written.body.errors, written.text).toBe(false);
  }
}, 600_000);
afterAll(async () => {
  await server.stop();
});

/** nDCG@10 of a way to search, on average over the questions. */
async function measured(request: (query: string) => object): Promise<number> {
  let sum = 0;
  for (const { _id, text } of queries) {
    const {
      status,
      text: said,
      body,
    } = await server.request('POST', '/notes/_search', { _source: false, ...request(text) });
    expect(status, said).toBe(200);
    const grades = new Map(judgements.filter(([query]) => query === _id).map(([, id, grade]) => [id, grade]));
    sum += ndcg(
      body.hits.hits.map((hit: { _id: string }) => hit._id),
      grades,
    );
  }
  return sum / queries.length;
}

const linear =
  (field: string, more: object = {}) =>
  (query: string) => ({
    retriever: { linear: { query, fields: [field, 'body.semantic'], ...more } },
  });

it.each(['body', 'body.english'])(
  'are found by the default hybrid search at least as well as by words in %s',
  async (field) => {
    const words = await measured((query) => ({ query: { match: { [field]: query } } }));
    const hybrid = await measured(linear(field));
    expect(hybrid).toBeGreaterThanOrEqual(words);
    // The list of documents that have all words does it: without, the hybrid search loses.
    expect(await measured(linear(field, { normalizer: 'zscore' }))).toBeLessThan(words);
  },
  300_000,
);
