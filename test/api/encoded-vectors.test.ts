// Vectors as strings in Base64, as clients of Elasticsearch 9.3 and later send them.
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;

const bigEndian = (floats: readonly number[]): string => {
  const bytes = Buffer.alloc(4 * floats.length);
  floats.forEach((float, at) => bytes.writeFloatBE(float, 4 * at));
  return bytes.toString('base64');
};

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  await server.request('PUT', '/v', {
    mappings: {
      properties: {
        f: { type: 'dense_vector', dims: 3, similarity: 'l2_norm' },
        b: { type: 'dense_vector', dims: 2, element_type: 'byte', similarity: 'l2_norm' },
      },
    },
  });
});

afterAll(async () => {
  await server.stop();
});

it('finds documents with Base64 as with arrays, by one as by the other', async () => {
  const documents = [
    { f: [0.5, 10, 6], b: [127, -128] },
    { f: bigEndian([-0.5, 10, 10]), b: Buffer.from([1, 2]).toString('base64') },
    { f: bigEndian([1, 2, 3]).replace(/=+$/u, ''), b: '7f80' },
  ];
  const lines = documents.flatMap((document, at) => [{ index: { _id: String(at) } }, document]);
  const bulk = await server.request(
    'POST',
    '/v/_bulk?refresh=true',
    `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`,
  );
  expect(bulk.body.errors, bulk.text).toBe(false);
  for (const [field, vector, text, best] of [
    ['f', [-0.5, 10, 10], bigEndian([-0.5, 10, 10]), '1'],
    ['f', [1, 2, 3.5], bigEndian([1, 2, 3.5]), '2'],
    ['b', [1, 2], '0102', '1'],
  ] as const) {
    const search = (query_vector: unknown) =>
      server.request('POST', '/v/_search', { knn: { field, query_vector, k: 3, num_candidates: 10 } });
    const [byArray, byText] = [await search(vector), await search(text)];
    expect(byText.body.hits, byText.text).toEqual(byArray.body.hits);
    expect(byText.body.hits.hits[0]._id).toBe(best);
  }
});

it('keeps them through updates and reindexes', async () => {
  await server.request('POST', '/v/_update/1', { doc: { t: 'more' } });
  const { body: indices } = await server.request('GET', '/v/_mapping');
  await server.request('PUT', '/w', { mappings: indices.v.mappings });
  await server.request('POST', '/_reindex?refresh=true', { source: { index: 'v' }, dest: { index: 'w' } });
  for (const index of ['v', 'w']) {
    await server.request('POST', `/${index}/_refresh`);
    const { body } = await server.request('POST', `/${index}/_search`, {
      knn: { field: 'f', query_vector: [-0.5, 10, 10], k: 1, num_candidates: 10 },
    });
    expect(body.hits.hits[0]).toMatchObject({
      _id: '1',
      _score: 1,
      _source: { f: bigEndian([-0.5, 10, 10]), t: 'more' },
    });
  }
});

it.each([
  ['another number of dimensions', { f: bigEndian([1, 2]) }, 'different number of dimensions [2]'],
  ['more dimensions', { f: bigEndian([1, 2, 3, 4]) }, 'more dimensions than defined'],
  ['half a float', { f: 'AAAAAAA=' }, '32-bit big-endian floats'],
  ['no Base64', { f: 'a vector' }, '32-bit big-endian floats'],
  ['no number', { f: bigEndian([1, NaN, 3]) }, 'NaN'],
  ['neither digits nor Base64', { b: 'xyz' }, 'uneven number of hexadecimal digits'],
])('refuses %s', async (_, document, words) => {
  const { status, text } = await server.request('POST', '/v/_doc', document);
  expect(status, text).toBe(400);
  expect(text).toContain(words);
});

it('refuses a query vector that is nothing', async () => {
  for (const query_vector of ['', 'xyz', 'a vector', bigEndian([1, 2])]) {
    const { status } = await server.request('POST', '/v/_search', { knn: { field: 'f', query_vector } });
    expect(status, query_vector).toBe(400);
  }
});
