// `semantic_text` fields against the real engine and its models.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown) => server.request(method, path, body);
const reason = async (method: string, path: string, body?: unknown): Promise<string> => {
  const { status, body: answer } = await call(method, path, body);
  const error = answer.error as { type: string; reason: string } | undefined;
  return `${String(status)} ${String(error?.type)}: ${String(error?.reason)}`;
};
const search = async (index: string, body: unknown): Promise<any> => {
  const answer = await call('POST', `/${index}/_search`, body);
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};
const ids = (answer: any): string[] => answer.hits.hits.map((hit: { _id: string }) => hit._id);
const semantic = (query: string, field = 'body') => ({ semantic: { field, query } });

const FILLER = 'The committee met again on a grey morning and talked about the budget for roads and bridges.';
/** About 1,800 words, of which only the last ones are about whales. */
const LONG = `${`${FILLER} `.repeat(110)}Blue whales are the largest animals that ever lived in the ocean.`;
const EXAMPLES: Record<string, unknown> = {
  long: { title: 'long', tag: 'a', body: LONG },
  cooking: {
    title: 'cooking',
    tag: 'a',
    body: ['Boil the pasta in salted water.', '  ', 'Serve it with tomato sauce.'],
  },
  volcano: { title: 'volcano', tag: 'b', body: 'Hot lava flows down the side of the volcano.' },
  empty: { title: 'empty', tag: 'b', body: null },
};
const MODELS: [string, string][] = [
  ['sparse', '.elser-2-elasticsearch'],
  ['dense', '.all-minilm-l6-v2'],
];

beforeAll(async () => {
  server = await startServer();
  for (const [index, inference_id] of MODELS) {
    const made = await call('PUT', `/${index}`, {
      mappings: {
        properties: {
          tag: { type: 'keyword' },
          body: { type: 'semantic_text', inference_id },
        },
      },
    });
    expect(made.status, made.text).toBe(200);
    const lines = Object.entries(EXAMPLES).flatMap(([_id, source]) => [{ index: { _id } }, source]);
    const ndjson = `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`;
    const written = await call('POST', `/${index}/_bulk?refresh=true`, ndjson);
    expect(written.body.errors, written.text).toBe(false);
  }
});
afterAll(async () => {
  await server.stop();
});

describe.each(MODELS)('a %s semantic_text field', (index, inferenceId) => {
  it('finds a long text by its last passage', async () => {
    const answer = await search(index, { query: semantic('largest whale in the sea') });
    expect(ids(answer)[0]).toBe('long');
    expect(answer.hits.hits[0]._source).toEqual(EXAMPLES['long']);
    const shown = await search(index, {
      query: semantic('largest whale in the sea'),
      highlight: { fields: { body: { number_of_fragments: 1, order: 'score' } } },
    });
    const [passage] = shown.hits.hits[0].highlight.body as string[];
    expect(passage).toContain('Blue whales are the largest animals');
    expect(passage!.length).toBeLessThan(LONG.length / 3);
  });

  it('answers match, sparse_vector or knn, filters, bool and rrf alike', async () => {
    const scores = (answer: any) => answer.hits.hits.map((hit: any) => [hit._id, hit._score.toFixed(4)]);
    const expected = scores(await search(index, { query: semantic('pasta sauce recipe') }));
    expect(expected[0][0]).toBe('cooking');
    expect(scores(await search(index, { query: { match: { body: 'pasta sauce recipe' } } }))).toEqual(expected);
    const own =
      index === 'sparse'
        ? { sparse_vector: { field: 'body', query: 'pasta sauce recipe' } }
        : { knn: { field: 'body', query_vector_builder: { text_embedding: { model_text: 'pasta sauce recipe' } } } };
    expect(scores(await search(index, { query: own }))).toEqual(expected);
    const filtered = { bool: { must: [semantic('pasta sauce recipe')], filter: [{ term: { tag: 'b' } }] } };
    for (const id of ids(await search(index, { query: filtered }))) {
      expect(['volcano']).toContain(id);
    }
    const both = await search(index, {
      query: { bool: { should: [semantic('pasta sauce recipe'), { match: { title: 'volcano' } }] } },
    });
    expect(ids(both).slice(0, 2).sort()).toEqual(['cooking', 'volcano']);
    const fused = await search(index, {
      retriever: {
        rrf: {
          retrievers: [
            { standard: { query: semantic('lava from the volcano') } },
            { standard: { query: { match: { title: 'volcano' } } } },
          ],
        },
      },
    });
    expect(ids(fused)[0]).toBe('volcano');
    expect(ids(await search(index, { query: semantic('   ') }))).toEqual([]);
  });

  it('highlights passages and says which documents have any', async () => {
    const of = async (body: object) =>
      (await search(index, { query: { term: { title: 'cooking' } }, ...body })).hits.hits[0].highlight;
    const passages = ['Boil the pasta in salted water.', 'Serve it with tomato sauce.'];
    const query = semantic('tomato sauce');
    const highlight = (options: object) => ({ query, highlight: { fields: { body: options } } });
    expect((await of(highlight({ type: 'semantic' }))).body).toContain(passages[1]);
    expect((await of(highlight({ order: 'score', number_of_fragments: 1 }))).body).toEqual([passages[1]]);
    const all = { query: { match_all: {} }, highlight: { fields: { body: {} } } };
    const found = (await search(index, all)).hits.hits.find((hit: any) => hit._id === 'cooking');
    expect(found.highlight.body).toEqual(passages);
    expect(await of({ highlight: { fields: { body: {} } } })).toBeUndefined();
    const exists = await search(index, { query: { exists: { field: 'body' } } });
    expect(ids(exists).sort()).toEqual(['cooking', 'long', 'volcano']);
  });

  it('shows its model in the mapping and is text to field_caps', async () => {
    const { body } = await call('GET', `/${index}/_mapping`);
    expect(body[index].mappings.properties.body).toMatchObject({
      type: 'semantic_text',
      inference_id: inferenceId,
      model_settings:
        index === 'sparse'
          ? { service: 'elasticsearch', task_type: 'sparse_embedding' }
          : { task_type: 'text_embedding', dimensions: 384, similarity: 'cosine', element_type: 'float' },
    });
    const caps = await call('GET', `/${index}/_field_caps?fields=body`);
    expect(caps.body.fields.body.text).toMatchObject({ searchable: true, aggregatable: false });
  });

  it('keeps passages through updates, reindex, restart of a copy and a forced merge', async () => {
    const copy = `${index}-copy`;
    await call('PUT', `/${copy}`, {
      mappings: { properties: { body: { type: 'semantic_text', inference_id: inferenceId } } },
    });
    const copied = await call('POST', '/_reindex?refresh=true', { source: { index }, dest: { index: copy } });
    expect(copied.body).toMatchObject({ created: 4, failures: [] });
    const updated = await call('POST', `/${copy}/_update/long?refresh=true`, { doc: { title: 'renamed' } });
    expect(updated.status, updated.text).toBe(200);
    const changed = await call('POST', `/${copy}/_update/volcano?refresh=true`, {
      doc: { body: 'A poem about cheese.' },
    });
    expect(changed.status).toBe(200);
    await call('DELETE', `/${copy}/_doc/cooking?refresh=true`);
    await call('POST', `/${copy}/_forcemerge?max_num_segments=1`);
    const found = await search(copy, { query: semantic('largest whale in the sea') });
    expect([ids(found)[0], found.hits.hits[0]._source.title]).toEqual(['long', 'renamed']);
    expect(ids(await search(copy, { query: semantic('cheese') }))[0]).toBe('volcano');
    expect(ids(await search(copy, { query: semantic('pasta') }))).not.toContain('cooking');
    expect((await call('GET', `/${copy}/_doc/long`)).body._source).toEqual({
      ...(EXAMPLES['long'] as object),
      title: 'renamed',
    });
    await call('DELETE', `/${copy}`);
  });
});

describe('semantic_text', () => {
  it('cuts by words with an overlap, also what is copied to it', async () => {
    const text =
      'Elasticsearch is an open source, distributed, RESTful, search engine which is built on top of Lucene ' +
      'internally and enjoys all the features it provides.';
    const chunking_settings = { strategy: 'word', max_chunk_size: 10, overlap: 1 };
    await call('PUT', '/cut', {
      mappings: {
        properties: {
          note: { type: 'text', copy_to: 'all' },
          all: { type: 'semantic_text', chunking_settings },
        },
      },
    });
    await call('PUT', '/cut/_doc/1?refresh=true', { note: text, all: 'Own words.' });
    const answer = await search('cut', {
      query: { match_all: {} },
      highlight: { fields: { all: { number_of_fragments: 10 } } },
    });
    expect(answer.hits.hits[0].highlight.all).toEqual([
      'Own words.',
      'Elasticsearch is an open source, distributed, RESTful, search engine which',
      ' which is built on top of Lucene internally and enjoys',
      ' enjoys all the features it provides.',
    ]);
    const { body } = await call('GET', '/cut/_mapping');
    expect(body.cut.mappings.properties.all).toMatchObject({
      inference_id: '.elser-2-elasticsearch',
      chunking_settings,
    });
  });

  it('encodes nothing again when another field changes', async () => {
    const count = async (): Promise<number> => {
      const { text } = await call('GET', '/_ml/trained_models/_stats');
      return [...text.matchAll(/"inference_count":(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
    };
    const before = await count();
    expect(before).toBeGreaterThan(0);
    for (const path of ['/sparse/_update/volcano', '/sparse/_update/long']) {
      expect((await call('POST', path, { doc: { tag: 'changed' } })).body.result).toBe('updated');
    }
    expect(await count()).toBe(before);
    await call('POST', '/sparse/_update/volcano', { doc: { tag: 'b' } });
    await call('POST', '/sparse/_update/long?refresh=true', { doc: { tag: 'a' } });
    expect(ids(await search('sparse', { query: semantic('largest whale in the sea') }))[0]).toBe('long');
  });

  it('searches indices of different models at once', async () => {
    const answer = await search('sparse,dense', { query: semantic('hot lava'), size: 20 });
    const found = answer.hits.hits.map((hit: any) => `${hit._index}/${hit._id}`);
    expect(found).toContain('sparse/volcano');
    expect(found).toContain('dense/volcano');
  });

  it('names the sub-field that has a meaning, for a text that has none', async () => {
    const title = { type: 'text', fields: { meaning: { type: 'semantic_text' } } };
    expect((await call('PUT', '/titles', { mappings: { properties: { title } } })).status).toBe(200);
    const answer = await call('POST', '/titles/_search', { query: { semantic: { field: 'title', query: 'x' } } });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain(
      'Field [title] of type [text] does not support semantic queries: use its sub-field [title.meaning]',
    );
    const properties = { title: { type: 'text', copy_to: 'meaning' }, meaning: { type: 'semantic_text' } };
    expect((await call('PUT', '/copied', { mappings: { properties } })).status).toBe(200);
    const copied = await call('POST', '/copied/_search', { query: { semantic: { field: 'title', query: 'x' } } });
    expect(copied.text).toContain('does not support semantic queries: use [meaning], to which its texts are copied');
  });

  it('takes numbers and booleans as text', async () => {
    const made = await call('PUT', '/sparse/_doc/scalars?refresh=true', { body: [42, true, 'forty two'] });
    expect(made.status, made.text).toBe(201);
    const answer = await search('sparse', {
      query: { ids: { values: ['scalars'] } },
      highlight: { fields: { body: { highlight_query: { match_all: {} } } } },
    });
    expect(answer.hits.hits[0].highlight.body).toEqual(['42', 'true', 'forty two']);
    expect(answer.hits.hits[0]._source).toEqual({ body: [42, true, 'forty two'] });
    await call('DELETE', '/sparse/_doc/scalars?refresh=true');
  });

  it('refuses a write whose texts nothing can encode, and stores no part of it', async () => {
    await call('PUT', '/unknown', {
      mappings: { properties: { body: { type: 'semantic_text', inference_id: 'nowhere' } } },
    });
    expect(await reason('PUT', '/unknown/_doc/1?refresh=true', { body: 'x' })).toContain(
      '404 resource_not_found_exception: Inference id [nowhere] not found for field [body]: there are [',
    );
    expect((await call('GET', '/unknown/_doc/1')).status).toBe(404);
    // Without a text there is nothing to encode.
    expect((await call('PUT', '/unknown/_doc/2', { other: 1 })).status).toBe(201);
    const { body } = await call('GET', '/unknown/_mapping');
    expect(body.unknown.mappings.properties.body).toEqual({ type: 'semantic_text', inference_id: 'nowhere' });
    expect(
      await reason('PUT', '/unknown/_mapping', { properties: { body: { type: 'semantic_text', inference_id: 'a' } } }),
    ).toContain('200');
  });

  it.each([
    [
      'an object',
      { body: { text: 'x' } },
      '400 status_exception: Invalid format for field [body], expected [String|Number|Boolean] got [HashMap]',
    ],
    ['a list in a list', { body: [['x']] }, 'got [ArrayList]'],
    [
      'its own vectors',
      { body: 'x', _inference_fields: { body: {} } },
      "400 document_parsing_exception: [1:33] failed to parse field [_inference_fields] of type [_inference_fields] in document with id 'bad'",
    ],
  ])('refuses %s as a value', async (_what, document, expected) => {
    expect(await reason('PUT', '/sparse/_doc/bad', document)).toContain(expected);
    expect((await call('GET', '/sparse/_doc/bad')).status).toBe(404);
  });

  it.each([
    [
      'another endpoint',
      'PUT',
      '/sparse/_mapping',
      { properties: { body: { type: 'semantic_text', inference_id: 'a' } } },
      'Cannot update parameter [inference_id] from [.elser-2-elasticsearch] to [a]',
    ],
    [
      'sorting',
      'POST',
      '/sparse/_search',
      { sort: ['body'] },
      '[semantic_text] fields do not support sorting, scripting or aggregating',
    ],
    [
      'aggregating',
      'POST',
      '/sparse/_search',
      { aggs: { a: { terms: { field: 'body' } } } },
      '[semantic_text] fields do not support sorting, scripting or aggregating',
    ],
    [
      'knn on sparse passages',
      'POST',
      '/sparse/_search',
      { query: { knn: { field: 'body', query_vector: [1], k: 1 } } },
      'requires a model of task type [text_embedding]',
    ],
    [
      'sparse_vector on dense passages',
      'POST',
      '/dense/_search',
      { query: { sparse_vector: { field: 'body', query_vector: { a: 1 } } } },
      'requires a model of task type [sparse_embedding]',
    ],
    [
      'semantic on another type',
      'POST',
      '/sparse/_search',
      { query: { semantic: { field: 'tag', query: 'x' } } },
      'Field [tag] of type [keyword] does not support semantic queries',
    ],
    [
      'an unknown key',
      'POST',
      '/sparse/_search',
      { query: { semantic: { field: 'body', query: 'x', nope: 1 } } },
      '[semantic] unknown field [nope]',
    ],
    ['no query', 'POST', '/sparse/_search', { query: { semantic: { field: 'body' } } }, 'Required [query]'],
    [
      'multi-fields',
      'PUT',
      '/bad',
      { mappings: { properties: { s: { type: 'semantic_text', fields: { k: { type: 'keyword' } } } } } },
      'semantic_text field [s] does not support multi-fields',
    ],
    [
      'bad chunking',
      'PUT',
      '/bad',
      {
        mappings: {
          properties: {
            s: {
              type: 'semantic_text',
              chunking_settings: { strategy: 'word', max_chunk_size: 10, overlap: 1, extra: 'x' },
            },
          },
        },
      },
      'can not have the following settings: [extra]',
    ],
    [
      'an unknown parameter',
      'PUT',
      '/bad',
      { mappings: { properties: { s: { type: 'semantic_text', analyzer: 'x' } } } },
      'unknown parameter [analyzer] on mapper [s] of type [semantic_text]',
    ],
  ])('refuses %s', async (_what, method, path, body, expected) => {
    const answer = await call(method, path, body);
    expect(answer.status, answer.text).toBe(400);
    expect(JSON.stringify(answer.body)).toContain(expected);
  });
});
