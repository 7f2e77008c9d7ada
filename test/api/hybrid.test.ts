// Words, sparse and dense vectors of the same texts in one mapping and one line of a query, against the real models.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
let repositories: string;
const call = (method: string, path: string, body?: unknown) => server.request(method, path, body);
const done = async (method: string, path: string, body?: unknown): Promise<any> => {
  const answer = await call(method, path, body);
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.body;
};
const search = (index: string, body: unknown) => done('POST', `/${index}/_search`, body);
const ids = (answer: any): string[] => answer.hits.hits.map((hit: { _id: string }) => hit._id);
const scores = (answer: any) => answer.hits.hits.map((hit: any) => [hit._id, hit._score.toFixed(4)]);
const rrf = (query: string, more: object = {}) => ({ retriever: { rrf: { query, ...more } } });

const CONTENT = {
  type: 'text',
  fields: { semantic: { type: 'semantic_text', inference_id: '.hybrid' }, raw: { type: 'keyword' } },
};
const MAPPINGS = { properties: { content: CONTENT, tag: { type: 'keyword' }, size: { type: 'integer' } } };
const FILLER = 'The committee met again on a grey morning and talked about the budget for roads and bridges.';
const DOCUMENTS: Record<string, Record<string, unknown>> = {
  muscles: { content: 'Sore muscles recover faster with rest, water and gentle stretching.', tag: 'a', size: 1 },
  bread: { content: 'Bread rises because yeast makes gas.', tag: 'a', size: 2 },
  whales: { content: [FILLER, `${`${FILLER} `.repeat(40)}Blue whales are the largest animals.`], tag: 'b', size: 3 },
  lava: { content: 'Lava is rock so hot that it flows.', tag: 'b', size: 4 },
  nothing: { content: null, tag: 'b', size: 5 },
};

beforeAll(async () => {
  repositories = await mkdtemp(join(tmpdir(), 'sparrow-repositories-'));
  server = await startServer({ args: ['--repo-path', repositories] });
  await done('PUT', '/notes', { mappings: MAPPINGS });
  const lines = Object.entries(DOCUMENTS).flatMap(([_id, source]) => [{ index: { _id } }, source]);
  const ndjson = `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`;
  const written = await done('POST', '/notes/_bulk?refresh=true', ndjson);
  expect(written.errors, JSON.stringify(written)).toBe(false);
});
afterAll(async () => {
  await server.stop();
  await rm(repositories, { recursive: true, force: true });
});

describe('one mapping', () => {
  it('shows what the model makes, and leaves the source as it came', async () => {
    const mapping = await done('GET', '/notes/_mapping');
    const field = mapping.notes.mappings.properties.content.fields.semantic;
    expect(field).toMatchObject({
      inference_id: '.hybrid',
      model_settings: { task_type: 'hybrid_embedding', dimensions: 384, similarity: 'cosine', element_type: 'float' },
    });
    const read = await done('GET', '/notes/_doc/whales');
    expect(read._source).toEqual(DOCUMENTS['whales']);
    // What is shown can be said again, and by somebody who does not know of the model.
    await done('PUT', '/notes/_mapping', mapping.notes.mappings);
    await done('PUT', '/notes/_mapping', { properties: { content: CONTENT } });
  });

  it('searches each kind of vector, and both', async () => {
    const query = 'how to avoid pain after running';
    const field = 'content.semantic';
    const sparse = await search('notes', { query: { sparse_vector: { field, query } } });
    const knn = { field, k: 10, query_vector_builder: { text_embedding: { model_text: query } } };
    const dense = await search('notes', { query: { knn } });
    const named = { ...knn, query_vector_builder: { text_embedding: { model_id: '.hybrid', model_text: query } } };
    expect(scores(await search('notes', { query: { knn: named } }))).toEqual(scores(dense));
    const both = await search('notes', { query: { semantic: { field, query } } });
    for (const answer of [sparse, dense, both]) expect(ids(answer)[0]).toBe('muscles');
    // Every document with a text is more or less near.
    expect(ids(dense).sort()).toEqual(['bread', 'lava', 'muscles', 'whales']);
    const sum = sparse.hits.hits[0]._score + 80 * dense.hits.hits[0]._score;
    expect(both.hits.hits[0]._score).toBeCloseTo(sum, 2);
    expect(scores(await search('notes', { query: { match: { [field]: query } } }))).toEqual(scores(both));
    expect(ids(await search('notes', { query: { exists: { field } } })).sort()).toEqual(ids(dense).sort());
  });
});

describe('the head on the dense model', () => {
  it('makes both vectors of a text in one pass, and dense scores count half as much beside it', async () => {
    const content = { type: 'semantic_text', inference_id: '.hybrid-minilm-l6' };
    await done('PUT', '/headed', { mappings: { properties: { content } } });
    for (const id of ['muscles', 'bread', 'lava']) await done('PUT', `/headed/_doc/${id}`, DOCUMENTS[id]);
    await done('POST', '/headed/_refresh');
    const read = async (): Promise<number> => {
      const { body } = await call('GET', '/_ml/trained_models/.splade-minilm-l6,.all-minilm-l6-v2/_stats');
      const kinds = body.trained_model_stats.flatMap((it: any) => it.arithmetic ?? []);
      expect(new Set(kinds)).toEqual(new Set(['int8']));
      const nodes = body.trained_model_stats.flatMap((it: any) => it.deployment_stats?.nodes ?? []);
      return nodes.reduce((sum: number, node: any) => sum + node.inference_count, 0);
    };
    const before = await read();
    const field = 'content';
    const query = 'yeast and gas';
    const both = await search('headed', { query: { semantic: { field, query } } });
    expect(await read()).toBe(before + 1);
    const sparse = await search('headed', { query: { sparse_vector: { field, query } } });
    const knn = { field, k: 10, query_vector_builder: { text_embedding: { model_text: query } } };
    const dense = await search('headed', { query: { knn } });
    for (const answer of [sparse, dense, both]) expect(ids(answer)[0]).toBe('bread');
    const sum = sparse.hits.hits[0]._score + 40 * dense.hits.hits[0]._score;
    expect(both.hits.hits[0]._score).toBeCloseTo(sum, 2);
    // A name that the dense model has never learned weighs for what it is.
    const { sparse_embedding: found } = await done('POST', '/_inference/.splade-minilm-l6-elasticsearch', {
      input: 'Xyzzyqua',
    });
    expect(found[0].embedding['##qua']).toBeGreaterThan(0.9);
  });
});

describe('the dense model of a package that is not installed by default', () => {
  it('is served alone and beside the sparse one, and its questions have the prompt of its makers', async () => {
    const folder = fileURLToPath(new URL('../../packages/model-bge-small-en', import.meta.url));
    const other = await startServer({ args: ['--models', folder] });
    try {
      const put = async (path: string, body: unknown): Promise<any> => {
        const answer = await other.request(path.endsWith('_search') ? 'POST' : 'PUT', path, body);
        expect(answer.status, answer.text).toBeLessThan(300);
        return answer.body;
      };
      const content = { type: 'semantic_text', inference_id: '.hybrid-bge-small-en' };
      await put('/notes', { mappings: { properties: { content } } });
      for (const id of ['muscles', 'bread', 'lava']) await put(`/notes/_doc/${id}?refresh=true`, DOCUMENTS[id]);
      const query = 'how to avoid pain after running';
      const knn = { field: 'content', k: 10, query_vector_builder: { text_embedding: { model_text: query } } };
      const found = await put('/notes/_search', { query: { knn } });
      expect(ids(found)[0]).toBe('muscles');
      expect(ids(await put('/notes/_search', { query: { semantic: { field: 'content', query } } }))[0]).toBe('muscles');
      const path = '/_inference/.bge-small-en-elasticsearch';
      const vector = async (input: string, type: string): Promise<number[]> =>
        (await other.request('POST', path, { input, input_type: type })).body.text_embedding[0].embedding;
      const asked = await vector(query, 'search');
      expect(asked).toHaveLength(384);
      const prompted = await vector(`Represent this sentence for searching relevant passages: ${query}`, 'ingest');
      expect(asked).toEqual(prompted);
      expect(asked).not.toEqual(await vector(query, 'ingest'));
    } finally {
      await other.stop();
    }
  });
});

describe('one line', () => {
  it('searches words and every semantic field without being told', async () => {
    // By words, by a name that no other text has, and by meaning alone.
    expect(ids(await search('notes', rrf('yeast')))[0]).toBe('bread');
    expect(ids(await search('notes', rrf('how to avoid pain after running')))[0]).toBe('muscles');
    expect(ids(await search('notes', rrf('the biggest creature of the sea')))[0]).toBe('whales');
    const answer = await search('notes', rrf('volcano'));
    expect(ids(answer)[0]).toBe('lava');
    expect(answer.hits.total).toEqual({ value: 4, relation: 'eq' });
  });

  it('is the fusion of three lists, of which the dense one counts half as much again', async () => {
    const query = 'gentle rest for whales';
    const lists = [
      [{ multi_match: { query, type: 'most_fields' } }, 1],
      [{ sparse_vector: { field: 'content.semantic', query } }, 1],
      [
        {
          knn: {
            field: 'content.semantic',
            k: 100,
            query_vector_builder: { text_embedding: { model_text: query } },
          },
        },
        1.5,
      ],
    ];
    const retrievers = lists.map(([clause, weight]) => ({ retriever: { standard: { query: clause } }, weight }));
    const long = { retriever: { rrf: { retrievers, rank_constant: 5, rank_window_size: 100 } } };
    expect(scores(await search('notes', rrf(query)))).toEqual(scores(await search('notes', long)));
    const other = { retriever: { rrf: { retrievers, rank_constant: 60, rank_window_size: 20 } } };
    const said = rrf(query, { rank_constant: 60, rank_window_size: 20 });
    expect(scores(await search('notes', said))).toEqual(scores(await search('notes', other)));
    // Deviations are added up with sparse vectors that count less.
    const OF_DEVIATIONS = [1, 0.7, 1.5];
    for (const normalizer of ['minmax', 'zscore', 'l2_norm', 'none']) {
      const of = retrievers.map((retriever, at) => ({
        ...{ ...retriever, normalizer },
        ...(normalizer === 'zscore' && { weight: OF_DEVIATIONS[at] }),
      }));
      const linear = { retriever: { linear: { retrievers: of, rank_window_size: 100 } } };
      const short = { retriever: { linear: { query, normalizer } } };
      expect(scores(await search('notes', short)), normalizer).toEqual(scores(await search('notes', linear)));
    }
    // Without a normalizer, documents that have all words make a list as well.
    for (const asked of [query, 'yeast makes gas', 'hot']) {
      const of = lists.map(([clause]) => JSON.parse(JSON.stringify(clause).replaceAll(query, asked)));
      const summed = of.map((clause, at) => ({
        ...{ retriever: { standard: { query: clause } }, weight: OF_DEVIATIONS[at], normalizer: 'zscore' },
      }));
      const all = { multi_match: { query: asked, type: 'most_fields', operator: 'and' } };
      const rare = { retriever: { standard: { query: all } }, normalizer: 'rarity' };
      const linear = { retriever: { linear: { retrievers: [...summed, rare], rank_window_size: 100 } } };
      const found = await search('notes', { retriever: { linear: { query: asked } } });
      expect(scores(found), asked).toEqual(scores(await search('notes', linear)));
    }
    const cut = { query, rank_window_size: 20 };
    expect(scores(await search('notes', { retriever: { linear: cut } }))).toEqual(
      scores(await search('notes', { retriever: { linear: { ...cut, normalizer: 'zscore' } } })),
    );
  });

  it('takes fields with weights and patterns', async () => {
    const query = 'hot rock';
    const of = async (...fields: string[]) => scores(await search('notes', rrf(query, { fields })));
    const all = scores(await search('notes', rrf(query)));
    expect(await of('content', 'content.semantic')).toEqual(all);
    expect(await of('cont*')).toEqual(all);
    const words = await of('content');
    expect(words.map(([id]: [string]) => id)).toEqual(['lava']);
    const meaning = await of('content.semantic');
    expect(meaning).toHaveLength(4);
    expect(await of('content^0', 'content.semantic')).toEqual(meaning);
    const [, first] = (await of('content', 'content.semantic^2'))[0];
    expect(Number(first)).toBeGreaterThan(2.5 / 6);
    expect((await call('POST', '/notes/_search', rrf(query, { fields: ['content^-1'] }))).text).toContain(
      'per-field weights must be non-negative',
    );
  });

  it('filters before neighbours are looked for, pages, nests, counts and goes through an alias', async () => {
    const query = 'hot rock';
    const filter = { term: { tag: 'a' } };
    expect(ids(await search('notes', rrf(query, { filter }))).sort()).toEqual(['bread', 'muscles']);
    const nested = {
      retriever: { rrf: { retrievers: [{ rrf: { query } }, { linear: { query, normalizer: 'minmax' } }], filter } },
    };
    expect(ids(await search('notes', nested)).sort()).toEqual(['bread', 'muscles']);
    const whole = ids(await search('notes', rrf(query)));
    const pages = [];
    for (let from = 0; from < 4; from += 1) pages.push(...ids(await search('notes', { ...rrf(query), from, size: 1 })));
    expect(pages).toEqual(whole);
    await done('PUT', '/notes/_alias/hot', { filter: { term: { tag: 'b' } } });
    expect(ids(await search('hot', rrf(query))).sort()).toEqual(['lava', 'whales']);
  });

  it('searches indices of other shapes beside it', async () => {
    await done('PUT', '/plain', { mappings: { properties: { content: { type: 'text' } } } });
    await done('PUT', '/plain/_doc/p?refresh=true', { content: 'Plain rock that was hot once.' });
    await done('PUT', '/tokens', { mappings: { properties: { body: { type: 'semantic_text' } } } });
    await done('PUT', '/tokens/_doc/t?refresh=true', { body: 'Magma glows under the mountain.' });
    const found = ids(await search('notes,plain,tokens', rrf('hot rock from a volcano')));
    expect(found).toEqual(expect.arrayContaining(['lava', 'p', 't']));
    expect(ids(await search('plain', rrf('rock')))).toEqual(['p']);
    // Nothing is known of the model of an index without documents.
    await done('PUT', '/empty', { mappings: MAPPINGS });
    expect(ids(await search('empty', rrf('rock', { fields: ['content', 'content.semantic'] })))).toEqual([]);
  });

  it('counts nothing twice: a list that goes beyond the limit says that all do', async () => {
    const queries = async (limit: number | boolean): Promise<string[]> => {
      const body = { ...rrf('the budget for roads'), track_total_hits: limit, profile: true };
      const answer = await search('notes', body);
      const total = limit === true ? { value: 4, relation: 'eq' } : { value: limit, relation: 'gte' };
      expect(answer.hits.total).toEqual(total);
      return answer.profile.shards[0].searches[0].query.map(({ type }: { type: string }) => type);
    };
    const lists = await queries(1);
    expect(lists).toHaveLength(3);
    expect(await queries(true)).toEqual(expect.arrayContaining(lists));
  });

  it('explains, profiles and highlights', async () => {
    const body = {
      ...rrf('blue whales'),
      explain: true,
      profile: true,
      highlight: { fields: { content: {}, 'content.semantic': { number_of_fragments: 1 } } },
    };
    const answer = await search('notes', body);
    const [hit] = answer.hits.hits;
    expect(hit._id).toBe('whales');
    expect(hit.highlight.content.join(' ')).toContain('<em>Blue</em> <em>whales</em>');
    expect(hit.highlight['content.semantic'][0]).toContain('Blue whales are the largest animals.');
    expect(hit._explanation.value).toBeCloseTo(hit._score, 4);
    expect(JSON.stringify(hit._explanation)).toContain('rank');
    expect(answer.profile.shards.length).toBeGreaterThan(0);
  });
});

describe('writing', () => {
  it('keeps passages through update, reindex, replay and snapshot', async () => {
    await done('POST', '/notes/_update/lava?refresh=true', { doc: { size: 40 } });
    expect(ids(await search('notes', rrf('volcano')))[0]).toBe('lava');
    await done('POST', '/notes/_update/bread?refresh=true', { doc: { content: 'Jupiter is the largest planet.' } });
    expect(ids(await search('notes', rrf('astronomy')))[0]).toBe('bread');
    await done('PUT', '/copy', { mappings: MAPPINGS });
    const dry = await done('POST', '/_reindex?dry_run=true', { source: { index: 'notes' }, dest: { index: 'copy' } });
    expect(dry.failures ?? []).toEqual([]);
    const copied = await done('POST', '/_reindex?refresh=true', {
      source: { index: 'notes' },
      dest: { index: 'copy' },
    });
    expect(copied.created).toBe(5);
    const query = rrf('animals of the sea');
    const before = scores(await search('copy', query));
    await done('POST', '/copy/_forcemerge?max_num_segments=1');
    expect(scores(await search('copy', query))).toEqual(before);
    await server.kill();
    server = await startServer({ data: server.data, args: ['--repo-path', repositories] });
    expect(scores(await search('copy', query))).toEqual(before);
    expect(await done('GET', '/copy/_doc/whales')).toMatchObject({ _source: DOCUMENTS['whales'] });
    await done('PUT', '/_snapshot/hybrid', { type: 'fs', settings: { location: 'hybrid' } });
    await done('PUT', '/_snapshot/hybrid/one?wait_for_completion=true', { indices: 'copy' });
    await done('DELETE', '/copy');
    await done('POST', '/_snapshot/hybrid/one/_restore?wait_for_completion=true', { indices: 'copy' });
    expect(scores(await search('copy', query))).toEqual(before);
  });

  it('cannot be had where a field holds no text', async () => {
    const sub = { semantic: { type: 'semantic_text', inference_id: '.hybrid' } };
    const answer = await call('PUT', '/bad', { mappings: { properties: { n: { type: 'long', fields: sub } } } });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain("can't be used in multifields of a [long] field");
    const object = await call('PUT', '/notes/_doc/bad', { content: { a: 1 } });
    expect(object.status).toBe(400);
  });
});

describe('the endpoint', () => {
  it('makes both vectors of a text', async () => {
    const shown = await done('GET', '/_inference/.hybrid');
    expect(shown.endpoints[0]).toMatchObject({
      inference_id: '.hybrid',
      task_type: 'hybrid_embedding',
      service: 'elasticsearch',
      service_settings: {
        sparse_inference_id: '.elser-2-elasticsearch',
        dense_inference_id: '.all-minilm-l6-v2-elasticsearch',
        dimensions: 384,
      },
    });
    const made = await done('POST', '/_inference/.hybrid', { input: ['blue whales', 'x'] });
    expect(made.hybrid_embedding).toHaveLength(2);
    const [first] = made.hybrid_embedding;
    expect(first.sparse_embedding.whales).toBeGreaterThan(0);
    expect(first.text_embedding).toHaveLength(384);
    expect(first.is_truncated).toBe(false);
  });

  it('can be made of others, which then are in use', async () => {
    const part = (task: string, model_id: string) => ({
      service: 'elasticsearch',
      service_settings: { model_id, num_allocations: 1, num_threads: 1 },
      task,
    });
    for (const [id, { task, ...body }] of [
      ['my-sparse', part('sparse_embedding', '.elser_model_2')],
      ['my-dense', part('text_embedding', '.all-minilm-l6-v2')],
    ] as const) {
      await done('PUT', `/_inference/${task}/${id}`, body);
    }
    const settings = { sparse_inference_id: 'my-sparse', dense_inference_id: 'my-dense' };
    const put = (service_settings: object) =>
      call('PUT', '/_inference/hybrid_embedding/mine', { service: 'elasticsearch', service_settings });
    for (const [bad, reason] of [
      [{ sparse_inference_id: 'my-sparse' }, 'does not contain the required setting [dense_inference_id]'],
      [{ ...settings, dense_inference_id: 'my-sparse' }, 'makes [sparse_embedding], but [text_embedding] is needed'],
      [{ ...settings, dense_inference_id: 'gone' }, 'Inference endpoint not found [gone]'],
      [{ ...settings, num_threads: 1 }, 'Configuration contains settings [{num_threads=1}] unknown'],
    ] as const) {
      const answer = await put(bad);
      expect(answer.status, answer.text).toBeGreaterThanOrEqual(400);
      expect(answer.text).toContain(reason);
    }
    expect((await put(settings)).status).toBe(200);
    const field = { type: 'semantic_text', inference_id: 'mine' };
    await done('PUT', '/own', { mappings: { properties: { body: field } } });
    await done('PUT', '/own/_doc/1?refresh=true', { body: 'Hot lava flows down the volcano.' });
    expect(ids(await search('own', rrf('magma')))).toEqual(['1']);
    const used = await call('DELETE', '/_inference/my-dense');
    expect(used.status).toBe(409);
    expect(used.text).toContain('encodes for the inference endpoints: [mine]');
    expect((await call('DELETE', '/_inference/.hybrid')).status).toBe(400);
    await done('DELETE', '/_inference/mine?force=true');
  });

  it('is refused by name where one vector is wanted', async () => {
    await done('PUT', '/_ingest/pipeline/both', {
      processors: [{ inference: { model_id: '.hybrid', input_output: [{ input_field: 'a', output_field: 'b' }] } }],
    });
    const answer = await call('PUT', '/other/_doc/1?pipeline=both', { a: 'some text' });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('makes a sparse and a dense vector of each text, but one vector is needed here');
  });
});

describe('several models in one search', () => {
  it('may be one deployment by several names, whose queue has a single place', async () => {
    const settings = 'deployment_id=narrow&queue_capacity=1&cache_size=0b&wait_for=started';
    await done('POST', `/_ml/trained_models/.sparse_encoder_model_2/deployment/_start?${settings}`);
    await done('PUT', '/narrow', {
      mappings: { properties: { t: { type: 'sparse_vector' }, d: { type: 'dense_vector', dims: 384 } } },
    });
    for (const id of ['narrow-1', 'narrow-2'])
      await done('PUT', `/_inference/sparse_embedding/${id}`, {
        service: 'elasticsearch',
        service_settings: { deployment_id: 'narrow' },
      });
    const sparse = (id: string, query: string) => ({ sparse_vector: { field: 't', inference_id: id, query } });
    const dense = {
      knn: {
        ...{ field: 'd', k: 3, num_candidates: 10 },
        query_vector_builder: { text_embedding: { model_id: '.all-minilm-l6-v2', model_text: 'the sea' } },
      },
    };
    const should = [sparse('narrow-1', 'one'), dense, sparse('narrow-2', 'two'), sparse('narrow', 'three')];
    for (let round = 0; round < 10; round += 1) await search('narrow', { query: { bool: { should } } });
    const { trained_model_stats: stats } = await done('GET', '/_ml/trained_models/.sparse_encoder_model_2/_stats');
    const narrow = stats.find((of: any) => of.deployment_stats?.deployment_id === 'narrow');
    expect(narrow.deployment_stats).toMatchObject({ rejected_execution_count: 0 });
    await done('POST', '/_ml/trained_models/narrow/deployment/_stop?force=true');
  });
});
