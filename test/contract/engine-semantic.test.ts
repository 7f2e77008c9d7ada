// Fields that are filled and searched by meaning: one suite for every engine behind the routes, as in engines.test.ts.
import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ENGINES, IS_ELASTICSEARCH } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

type Hit = { _id: string; _index: string; _score: number; _source?: any; highlight?: any; matched_queries?: string[] };

const SPARSE = '.sparse_encoder_model_2';
const DENSE = '.all-minilm-l6-v2';

const TEXTS: Readonly<Record<string, string>> = {
  muscle: 'Sore muscles after a long run recover faster with rest, water and gentle stretching.',
  stamps: 'A philatelist is a person who collects and studies postage stamps.',
  open: 'Agoraphobia is the fear of open spaces and crowded public places.',
  bread: 'Sourdough bread rises slowly because wild yeast works at its own pace.',
  whale: 'The blue whale is the largest animal that has ever lived.',
};
/** A text of several passages: what is asked for stands in the last one. */
const LONG = `${Object.values(TEXTS).join(' ')} Volcanoes throw out lava, which is rock so hot that it flows.`;

describe.each(ENGINES)('semantic_text over the $name engine', ({ name: engine, start }) => {
  const run = randomBytes(4).toString('hex');
  const of = (index: string) => `semantic-${run}-${index}`;
  const made: string[] = [];
  let server: RunningServer;

  async function ask(method: string, path: string, body?: unknown, status = 200): Promise<any> {
    const answer = await server.request(method, path, body);
    expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
    return answer.body;
  }
  async function make(index: string, properties: object, more: object = {}): Promise<void> {
    made.push(of(index));
    await ask('PUT', `/${of(index)}`, { mappings: { properties }, ...more });
  }
  const bulk = async (lines: readonly object[], query = 'refresh=true'): Promise<any> =>
    ask('POST', `/_bulk?${query}`, lines.map((it) => `${JSON.stringify(it)}\n`).join(''));
  const search = async (index: string, body: unknown): Promise<Hit[]> =>
    (await ask('POST', `/${of(index)}/_search`, body)).hits.hits;
  const ids = (hits: readonly Hit[]) => hits.map(({ _id }) => _id);
  const short = { chunking_settings: { strategy: 'word', max_chunk_size: 20, overlap: 5 } };
  const field = (id: string) => ({ type: 'semantic_text', inference_id: id, ...short });

  beforeAll(async () => {
    server = await start();
    await ask('PUT', `/_inference/hybrid_embedding/${of('both')}`, {
      service: 'elasticsearch',
      service_settings: { sparse_inference_id: SPARSE, dense_inference_id: DENSE },
    });
    await make('texts', {
      kind: { type: 'keyword' },
      sparse: field(SPARSE),
      inner: { properties: { dense: field(DENSE) } },
      both: field(of('both')),
      words: { type: 'text', fields: { meaning: field(SPARSE) } },
      title: { type: 'text', copy_to: ['sparse'] },
    });
    const lines = Object.entries({ ...TEXTS, long: LONG }).flatMap(([_id, text], at) => [
      { index: { _index: of('texts'), _id } },
      { kind: at % 2 === 0 ? 'even' : 'odd', sparse: text, inner: { dense: text }, both: text, words: text },
    ]);
    const written = await bulk(lines);
    expect(written.errors, JSON.stringify(written)).toBe(false);
  }, 180_000);

  afterAll(async () => {
    for (const index of made) await server.request('DELETE', `/${index}`);
    await server.request('DELETE', `/_inference/${of('both')}`);
    await server.stop();
  });

  it('shows nothing of passages in mappings, documents and capabilities of fields', async () => {
    const { properties } = (await ask('GET', `/${of('texts')}/_mapping`))[of('texts')].mappings;
    expect(Object.keys(properties).sort()).toEqual(['both', 'inner', 'kind', 'sparse', 'title', 'words']);
    expect(properties.sparse).toMatchObject({
      type: 'semantic_text',
      inference_id: SPARSE,
      model_settings: { task_type: 'sparse_embedding' },
    });
    expect(properties.inner.properties.dense.model_settings).toMatchObject({ dimensions: 384, similarity: 'cosine' });
    expect(properties.words.fields.meaning.type).toBe('semantic_text');
    const { _source } = await ask('GET', `/${of('texts')}/_doc/whale`);
    expect(Object.keys(_source).sort()).toEqual(['both', 'inner', 'kind', 'sparse', 'words']);
    const { fields } = await ask('GET', `/${of('texts')}/_field_caps?fields=*`);
    const shown = Object.keys(fields).filter((name) => !name.startsWith('_'));
    expect(shown.sort()).toEqual(['both', 'inner', 'inner.dense', 'kind', 'sparse', 'title', 'words', 'words.meaning']);
    expect(fields.sparse.text).toMatchObject({ type: 'text', searchable: true, aggregatable: false });
    expect(Object.keys(fields).some((name) => name.includes('sparrow'))).toBe(false);
    const own = await ask('GET', `/${of('texts')}/_field_caps?fields=*&filters=-parent,-metadata`);
    expect(Object.keys(own.fields).sort()).toEqual(shown.filter((name) => name !== 'inner').sort());
    const [hit] = await search('texts', { query: { ids: { values: ['whale'] } }, fields: ['*'] });
    expect(JSON.stringify(hit)).not.toContain('_sparrow');
  });

  it.each([
    ['sparse', 'sparse'],
    ['dense', 'inner.dense'],
    ['both', 'both'],
    ['sub-field', 'words.meaning'],
  ])('finds texts by their meaning: %s', async (_, path) => {
    for (const query of [
      { semantic: { field: path, query: 'the biggest creature' } },
      { match: { [path]: 'the biggest creature' } },
      { match: { [path]: { query: 'the biggest creature' } } },
    ])
      expect(ids(await search('texts', { query }))[0], JSON.stringify(query)).toBe('whale');
    // The last passage of the long text is a better answer than any other text.
    expect(ids(await search('texts', { query: { semantic: { field: path, query: 'melted stone' } } }))[0]).toBe('long');
    const odd = await search('texts', {
      query: {
        bool: {
          must: [{ semantic: { field: path, query: 'the biggest creature', boost: 2, _name: 'meaning' } }],
          filter: [{ term: { kind: 'odd' } }],
        },
      },
    });
    expect(ids(odd).every((id) => ['stamps', 'bread', 'long'].includes(id))).toBe(true);
    expect(odd[0]?.matched_queries).toEqual(['meaning']);
    const [plain] = await search('texts', { query: { semantic: { field: path, query: 'the biggest creature' } } });
    const [boosted] = await search('texts', {
      query: { semantic: { field: path, query: 'the biggest creature', boost: 2 } },
    });
    expect((boosted?._score ?? 0) / (plain?._score ?? 1)).toBeCloseTo(2, 4);
  });

  it('finds no more documents than are wanted by dense passages, and counts documents', async () => {
    const body = { query: { semantic: { field: 'inner.dense', query: 'fear of crowds' } }, size: 2 };
    const answer = await ask('POST', `/${of('texts')}/_search`, body);
    expect(answer.hits.total.value).toBe(2);
    expect(answer.hits.hits[0]._id).toBe('open');
  });

  it('adds the two kinds of vectors of a hybrid endpoint as the native engine does', async () => {
    const query = 'the biggest creature';
    const scores = async (clause: object): Promise<Map<string, number>> =>
      new Map((await search('texts', { query: clause, size: 10 })).map(({ _id, _score }) => [_id, _score]));
    const both = await scores({ semantic: { field: 'both', query } });
    const sparse = await scores({ sparse_vector: { field: 'both', query } });
    const dense = await scores({
      knn: { field: 'both', k: 10, query_vector_builder: { text_embedding: { model_text: query } } },
    });
    expect(dense.size).toBe(6);
    for (const [id, score] of both) {
      const sum = (sparse.get(id) ?? 0) + 80 * (dense.get(id) ?? 0);
      expect(Math.abs(score - sum) / sum, id).toBeLessThan(0.01);
    }
  });

  it('takes sparse_vector and knn on the field, with vectors and texts, as query, section and retriever', async () => {
    const text = 'the biggest creature';
    const infer = async (model: string) => {
      const body = { docs: [{ text_field: text }] };
      return (await ask('POST', `/_ml/trained_models/${model}/_infer`, body)).inference_results[0].predicted_value;
    };
    const vector = await infer(DENSE);
    const knn = { field: 'inner.dense', query_vector: vector, k: 3, num_candidates: 50 };
    const expected = ids(await search('texts', { query: { semantic: { field: 'inner.dense', query: text } } }));
    for (const form of [{ knn }, { query: { knn } }, { retriever: { knn } }])
      expect(ids(await search('texts', form)), JSON.stringify(Object.keys(form))).toEqual(expected.slice(0, 3));
    const filter = { term: { kind: 'odd' } };
    expect(ids(await search('texts', { knn: { ...knn, filter } }))).toEqual(
      expected.filter((id) => ['stamps', 'bread', 'long'].includes(id)),
    );
    const sparse = { sparse_vector: { field: 'sparse', query_vector: await infer(SPARSE) } };
    const byText = { sparse_vector: { field: 'sparse', inference_id: SPARSE, query: text } };
    expect(ids(await search('texts', { query: sparse }))).toEqual(ids(await search('texts', { query: byText })));
  });

  describe('among documents that a clause on the field finds', () => {
    const place = { type: 'dense_vector', dims: 2, similarity: 'l2_norm', index_options: { type: 'hnsw' } };
    const near = (path: string) =>
      path.endsWith('place')
        ? { query_vector: [0.9, 0] }
        : { query_vector_builder: { text_embedding: { model_text: 'rock' } } };
    const knn = (path: string, filter: unknown, k: number) => ({
      field: path,
      ...near(path),
      k,
      num_candidates: 50,
      filter,
    });
    const text = 'the biggest creature';
    const clauses: readonly (readonly [string, object])[] = [
      ['semantic', { semantic: { field: 'sparse', query: 'whale animal' } }],
      ['match', { match: { both: 'whale animal' } }],
      ['sparse_vector', { sparse_vector: { field: 'sparse', query: 'whale animal' } }],
      ['knn', { knn: { field: 'dense', ...near('dense'), k: 3, num_candidates: 10 } }],
      [
        'knn in a bool',
        { bool: { must_not: { knn: { field: 'dense', ...near('dense'), k: 3, num_candidates: 10 } } } },
      ],
      ['exists', { exists: { field: 'sparse' } }],
    ];

    beforeAll(async () => {
      const parts = { type: 'nested', properties: { page: { type: 'integer' }, place } };
      const both = field(of('both'));
      await make('filtered', { place, parts, sparse: field(SPARSE), dense: field(DENSE), both });
      const lines = Object.entries({ ...TEXTS, long: LONG }).flatMap(([_id, it], at) => [
        { index: { _index: of('filtered'), _id } },
        {
          place: [at, 0],
          parts: [1, 2].map((page) => ({ page, place: [at, page] })),
          ...(_id === 'stamps' ? {} : { sparse: it }),
          ...{ dense: it, both: it },
        },
      ]);
      expect((await bulk(lines)).errors).toBe(false);
    }, 120_000);

    it.each(clauses)('%s in the filter of a knn', async (_, filter) => {
      const passing = new Set(ids(await search('filtered', { query: filter, size: 10 })));
      expect(passing.size).toBeGreaterThan(0);
      for (const path of ['place', 'dense', 'both', 'parts.place']) {
        const all = ids(await search('filtered', { knn: knn(path, [], 10), size: 10 }));
        expect(all).toHaveLength(6);
        const wanted = all.filter((id) => passing.has(id)).slice(0, 2);
        const asked = knn(path, filter, 2);
        expect(ids(await search('filtered', { knn: asked })), `section on ${path}`).toEqual(wanted);
        // Elasticsearch finds no vectors of nested objects by a query that is not inside one about the objects.
        if (!(path === 'parts.place' && engine === 'cluster' && IS_ELASTICSEARCH))
          expect(ids(await search('filtered', { query: { knn: asked } })), `query on ${path}`).toEqual(wanted);
        expect(ids(await search('filtered', { retriever: { knn: asked } })), `retriever on ${path}`).toEqual(wanted);
        const retrievers = [{ knn: knn(path, [], 10) }, { standard: { query: { match_all: {} } } }];
        const fused = await search('filtered', { retriever: { rrf: { retrievers, filter } } });
        expect(new Set(ids(fused)), `fusion with ${path}`).toEqual(passing);
      }
    });

    it('in the filter of a knn on nested objects, and not among these', async () => {
      const nested = (query: object) => ({ nested: { path: 'parts', score_mode: 'max', query } });
      const filter = { sparse_vector: { field: 'sparse', query: 'whale animal' } };
      const passing = new Set(ids(await search('filtered', { query: filter })));
      const all = ids(await search('filtered', { knn: knn('parts.place', [], 10) }));
      const around = nested({ knn: knn('parts.place', filter, 2) });
      expect(ids(await search('filtered', { query: around }))).toEqual(all.filter((id) => passing.has(id)).slice(0, 2));
      for (const clause of [{ semantic: { field: 'sparse', query: text } }, { exists: { field: 'sparse' } }])
        expect(ids(await search('filtered', { query: nested(clause) })), JSON.stringify(clause)).toEqual([]);
      const others = nested({ bool: { must_not: { match: { both: text } }, filter: { term: { 'parts.page': 1 } } } });
      expect(await search('filtered', { query: others })).toHaveLength(6);
    });
  });

  it('knows which documents have passages', async () => {
    await bulk([
      { index: { _index: of('texts'), _id: 'empty' } },
      { kind: 'none', sparse: ' ', title: 'A lone title' },
    ]);
    const exists = (path: string) => search('texts', { query: { exists: { field: path } }, size: 20 });
    // A title is copied to it.
    expect(ids(await exists('sparse'))).toContain('empty');
    expect(ids(await exists('inner.dense'))).not.toContain('empty');
    expect((await exists('both')).every(({ _score }) => _score === 1)).toBe(true);
    const [hit] = await search('texts', { query: { semantic: { field: 'sparse', query: 'a lonely title' } } });
    expect(hit?._id).toBe('empty');
    await ask('DELETE', `/${of('texts')}/_doc/empty?refresh=true`);
  });

  it('keeps passages true when documents are updated', async () => {
    await make('changing', { sparse: field(SPARSE), both: field(of('both')), count: { type: 'integer' } });
    const about = async (query: string) => {
      const [hit] = await search('changing', { query: { match: { sparse: query } } });
      return [hit?._id, hit?._source.count];
    };
    const at = `/${of('changing')}`;
    await ask('PUT', `${at}/_doc/1?refresh=true`, { sparse: TEXTS['whale'], count: 1 }, 201);
    expect(await about('a sea animal')).toEqual(['1', 1]);
    const noop = await ask('POST', `${at}/_update/1`, { doc: { count: 1 } });
    expect(noop.result).toBe('noop');
    const updated = await ask('POST', `${at}/_update/1?refresh=true`, { doc: { count: 2 } });
    expect([updated.result, updated._version]).toEqual(['updated', 2]);
    expect(await about('a sea animal')).toEqual(['1', 2]);
    await ask('POST', `${at}/_update/1?refresh=true`, { doc: { sparse: TEXTS['stamps'] } });
    // What a document with this text has, and nothing of the text before.
    await ask('PUT', `${at}/_doc/fresh?refresh=true`, { sparse: TEXTS['stamps'], both: TEXTS['open'] }, 201);
    const alike = await search('changing', { query: { match: { sparse: 'a sea animal' } } });
    expect(ids(alike).sort()).toEqual(['1', 'fresh']);
    expect(alike[0]?._score).toBeCloseTo(alike[1]?._score ?? 0, 5);
    await ask('DELETE', `${at}/_doc/fresh?refresh=true`);
    expect(await about('collecting postage')).toEqual(['1', 2]);
    const missing = await ask('POST', `${at}/_update/2`, { doc: { count: 1 } }, 404);
    expect(missing.error.type).toBe('document_missing_exception');
    const upsert = { doc: { count: 5 }, upsert: { sparse: TEXTS['bread'], count: 4 } };
    expect((await ask('POST', `${at}/_update/2?refresh=true`, upsert, 201)).result).toBe('created');
    expect(await about('baking with yeast')).toEqual(['2', 4]);
    const stale = { doc: { count: 9 }, if_seq_no: 0, if_primary_term: 1 };
    expect((await ask('POST', `${at}/_update/1`, stale, 409)).error.type).toBe('version_conflict_engine_exception');
    // Each write of a bulk sees those before it.
    const answer = await bulk([
      { index: { _index: of('changing'), _id: '3' } },
      { sparse: TEXTS['open'], count: 1 },
      { update: { _index: of('changing'), _id: '3' } },
      { doc: { count: 2 } },
      { update: { _index: of('changing'), _id: '3' } },
      { doc: { sparse: TEXTS['muscle'] } },
      { update: { _index: of('changing'), _id: 'none' } },
      { doc: { count: 2 } },
      { delete: { _index: of('changing'), _id: '2' } },
    ]);
    expect(answer.items.map((it: any) => [Object.keys(it)[0], (Object.values(it)[0] as any).status])).toEqual([
      ['index', 201],
      ['update', 200],
      ['update', 200],
      ['update', 404],
      ['delete', 200],
    ]);
    expect(await about('pain after sport')).toEqual(['3', 2]);
    expect(await about('baking with yeast')).not.toEqual(['2', 4]);
    // Many at once: each is there in the end, as it is tried again.
    await Promise.all(
      Array.from({ length: 5 }, (_, n) =>
        ask('POST', `${at}/_update/3?retry_on_conflict=20`, { doc: { [`n${String(n)}`]: n } }),
      ),
    );
    const { _source } = await ask('GET', `${at}/_doc/3`);
    expect(_source).toMatchObject({ n0: 0, n1: 1, n2: 2, n3: 3, n4: 4 });
  });

  it('expands the one-line form of rrf and linear to the lists of the native engine', async () => {
    for (const kind of ['rrf', 'linear'] as const) {
      const hits = await search('texts', { retriever: { [kind]: { query: 'largest animal' } } });
      expect(ids(hits)[0], kind).toBe('whale');
      const filtered = await search('texts', {
        retriever: { [kind]: { query: 'largest animal', filter: { term: { kind: 'odd' } } } },
      });
      expect(ids(filtered).every((id) => ['stamps', 'bread', 'long'].includes(id))).toBe(true);
      expect(filtered.length).toBeGreaterThan(0);
    }
    // Three lists, with the weights and the constant that the page about hybrid search gives.
    const query = 'largest animal';
    const words = await search('texts', { query: { match: { words: query } } });
    const sparse = await search('texts', { query: { sparse_vector: { field: 'both', query } } });
    const dense = await search('texts', {
      query: { knn: { field: 'both', k: 100, query_vector_builder: { text_embedding: { model_text: query } } } },
    });
    const sums = new Map<string, number>();
    for (const [list, weight] of [
      [words, 1],
      [sparse, 1],
      [dense, 1.5],
    ] as const)
      ids(list).forEach((id, at) => sums.set(id, (sums.get(id) ?? 0) + weight / (5 + at + 1)));
    const fused = await search('texts', { retriever: { rrf: { query, fields: ['words', 'both'] } } });
    for (const { _id, _score } of fused) expect(_score, _id).toBeCloseTo(sums.get(_id) ?? 0, 4);
    expect(fused).toHaveLength(sums.size);
  });

  it('shows the best passages', async () => {
    const body = {
      query: { semantic: { field: 'sparse', query: 'melted stone' } },
      highlight: { fields: { sparse: { number_of_fragments: 1 }, words: {} } },
    };
    const [long] = await search('texts', body);
    expect(long?._id).toBe('long');
    expect(long?.highlight.sparse).toHaveLength(1);
    expect(long?.highlight.sparse[0]).toContain('lava');
    const fused = await search('texts', {
      retriever: { rrf: { query: 'melted stone', fields: ['both'] } },
      highlight: { fields: { both: { type: 'semantic', number_of_fragments: 2, order: 'score' } } },
      size: 1,
    });
    expect(fused[0]?.highlight.both).toHaveLength(2);
    expect(fused[0]?.highlight.both[0]).toContain('lava');
    // Other fields may have a query of their own.
    const own = { highlight_query: { match: { words: 'volcanoes' } } };
    const highlight = { max_analyzed_offset: 5000, fields: { sparse: { number_of_fragments: 1 }, words: own } };
    const [marked] = await search('texts', { ...body, highlight });
    expect([marked?.highlight.sparse.length, marked?.highlight.words.join()]).toEqual([
      1,
      expect.stringContaining('<em>Volcanoes</em>'),
    ]);
    const both = await search('texts', {
      query: { bool: { should: [{ match: { words: 'whale' } }, { match: { sparse: 'the biggest creature' } }] } },
      highlight: { fields: { words: {}, sparse: { number_of_fragments: 1 } } },
      size: 1,
    });
    expect(both[0]?.highlight).toEqual({
      words: [TEXTS['whale']?.replace('whale', '<em>whale</em>')],
      sparse: [TEXTS['whale']],
    });
  });

  it('explains and profiles clauses on the field by its name', async () => {
    for (const path of ['sparse', 'inner.dense', 'both', 'words.meaning']) {
      const query = { semantic: { field: path, query: 'melted stone' } };
      const body = { query, explain: true, profile: true, size: 1 };
      const { hits, profile } = await ask('POST', `/${of('texts')}/_search`, body);
      expect(hits.hits[0]._explanation.value, path).toBeCloseTo(hits.hits[0]._score, 4);
      expect(JSON.stringify(profile), path).toContain(path);
      const one = await ask('POST', `/${of('texts')}/_explain/long`, { query });
      expect([one.matched, one.explanation.value > 0], path).toEqual([true, true]);
      const fused = await ask('POST', `/${of('texts')}/_search`, {
        retriever: { rrf: { query: 'melted stone', fields: [path] } },
        ...{ explain: true, profile: true },
      });
      expect(fused.hits.hits[0]._explanation.value, path).toBe(fused.hits.hits[0]._score);
      const valid = await ask('POST', `/${of('texts')}/_validate/query?explain=true`, { query });
      for (const answer of [hits, profile, one, fused, valid])
        expect(JSON.stringify(answer), path).not.toContain('_sparrow');
    }
  });

  it('copies documents into an index with the field, and keeps passages where the texts are the same', async () => {
    await make('plain', { sparse: { type: 'text' } });
    await bulk(Object.entries(TEXTS).flatMap(([_id, sparse]) => [{ index: { _index: of('plain'), _id } }, { sparse }]));
    for (const [source, dest] of [
      ['plain', 'copied'],
      ['texts', 'again'],
    ] as const) {
      await make(dest, { sparse: field(SPARSE) });
      const body = { source: { index: of(source) }, dest: { index: of(dest) } };
      const done = await ask('POST', '/_reindex?refresh=true', body);
      expect([done.created, done.failures]).toEqual([source === 'plain' ? 5 : 6, []]);
      expect(ids(await search(dest, { query: { match: { sparse: 'the biggest creature' } } }))[0]).toBe('whale');
    }
  });

  it('says what a copy would do and cost, and does nothing', async () => {
    await ask('PUT', `/_ingest/pipeline/${of('dry')}`, {
      processors: [{ drop: { if: 'ctx.n == 1' } }, { fail: { if: 'ctx.n == 2', message: 'not this one' } }],
    });
    made.push(of('dry-from'));
    const lines = [...Object.values(TEXTS), LONG].flatMap((a, n) => [{ index: { _index: of('dry-from') } }, { n, a }]);
    await bulk(lines);
    await make('dry-to', { a: field(SPARSE) });
    const tried = (more: object = {}, index = 'dry-to') =>
      ask('POST', '/_reindex?dry_run=true', { source: { index: of('dry-from') }, dest: { index: of(index), ...more } });
    const dry = await tried({ pipeline: of('dry') });
    expect(dry).toMatchObject({
      dry_run: true,
      documents: { total: 6, to_write: 4, dropped: 1, failed: 1 },
      sample: { documents: 6, texts: dry.texts.total },
      failures: [{ index: of('dry-to'), cause: { reason: expect.stringContaining('not this one') } }],
    });
    expect(dry.exact).toContain('documents.total');
    expect([...dry.exact, ...dry.estimated].sort()).toEqual([
      ...['disk', 'documents.dropped', 'documents.failed', 'documents.to_write', 'documents.total'],
      ...['texts', 'time', 'tokens'],
    ]);
    // One passage of each short text, and several of the long one.
    expect(dry.texts.total).toBeGreaterThan(5);
    expect(dry.tokens.total).toBeGreaterThan(50);
    expect(dry.disk.bytes).toBeGreaterThan(1000);
    expect(dry.time.estimate).toMatch(/^\d+(\.\d)?(ms|s|m)$/u);
    expect((await tried()).documents).toEqual({ total: 6, to_write: 6, dropped: 0, failed: 0 });
    expect((await ask('GET', `/${of('dry-to')}/_count`)).count).toBe(0);
    await tried({}, 'dry-nowhere');
    expect((await server.request('HEAD', `/${of('dry-nowhere')}`)).status).toBe(404);
    await ask('POST', '/_reindex?refresh=true', { source: { index: of('dry-from') }, dest: { index: of('dry-to') } });
    await make('dry-again', { a: field(SPARSE) });
    const source = { index: of('dry-to') };
    const kept = await ask('POST', '/_reindex?dry_run=true', { source, dest: { index: of('dry-again') }, max_docs: 3 });
    expect([kept.documents.total, kept.texts]).toEqual([3, { total: 0, truncated: 0 }]);
  });

  it('writes documents again by a query, with their passages', async () => {
    const body = {
      query: { bool: { filter: [{ match: { sparse: 'the biggest creature' } }, { term: { kind: 'odd' } }] } },
    };
    const { hits } = await ask('POST', `/${of('texts')}/_search`, { ...body, size: 0 });
    const done = await ask('POST', `/${of('texts')}/_update_by_query?refresh=true`, body);
    expect([done.updated, done.total, done.failures]).toEqual([hits.total.value, hits.total.value, []]);
    expect(hits.total.value).toBeGreaterThan(0);
    for (const path of ['sparse', 'inner.dense', 'words.meaning']) {
      expect(ids(await search('texts', { query: { match: { [path]: 'melted stone' } } }))[0], path).toBe('long');
    }
  });

  it('writes again by a query in slices, and for a key that may use the index only', async () => {
    await make('mine', { sparse: field(SPARSE) });
    const lines = Object.entries(TEXTS).flatMap(([_id, sparse]) => [
      { index: { _index: of('mine'), _id } },
      { sparse },
    ]);
    await bulk(lines);
    const indices = [{ names: [of('mine')], privileges: ['read', 'write'] }];
    const key = { name: of('key'), role_descriptors: { mine: { indices } } };
    const { encoded } = await ask('POST', '/_security/api_key', key);
    const body = { query: { match: { sparse: 'the biggest creature' } } };
    const path = (index: string) => `/${of(index)}/_update_by_query?refresh=true&slices=2`;
    const done = await server.request('POST', path('mine'), body, { apiKey: encoded });
    expect([done.status, done.body.updated > 0, done.body.failures], done.text).toEqual([200, true, []]);
    expect(ids(await search('mine', body))[0]).toBe('whale');
    const refused = await server.request('POST', path('texts'), body, { apiKey: encoded });
    expect([refused.status, refused.body.error?.type], refused.text).toEqual([403, 'security_exception']);
    for (const slices of ['0', 'x', '1025']) {
      const { error } = await ask('POST', `/${of('mine')}/_update_by_query?slices=${slices}`, body, 400);
      expect(error.reason).toContain('slices');
    }
  });

  it('searches in a point in time', async () => {
    await make('viewed', { sparse: field(SPARSE), n: { type: 'integer' } });
    const lines = Object.entries(TEXTS).flatMap(([_id, sparse], n) => [
      { index: { _index: of('viewed'), _id } },
      { sparse, n },
    ]);
    await bulk(lines);
    let { id } = await ask('POST', `/${of('viewed')}/_pit?keep_alive=1m`);
    await ask('DELETE', `/${of('viewed')}/_doc/whale?refresh=true`);
    const inside = async (body: object): Promise<Hit[]> => {
      const answer = await ask('POST', '/_search', { ...body, pit: { id, keep_alive: '1m' } });
      id = answer.pit_id;
      return answer.hits.hits;
    };
    expect(await inside({ sort: [{ n: 'asc' }], size: 3 })).toHaveLength(3);
    const rest = await inside({ sort: [{ n: 'asc' }], size: 3, search_after: [2] });
    expect(ids(rest)).toEqual(['bread', 'whale']);
    const query = { semantic: { field: 'sparse', query: 'the biggest creature' } };
    expect(ids(await inside({ query }))[0]).toBe('whale');
    expect(ids(await search('viewed', { query }))).not.toContain('whale');
    const retrievers = [{ standard: { query } }, { standard: { query: { range: { n: { gte: 3 } } } } }];
    const fused = { retriever: { rrf: { retrievers } }, collapse: { field: 'n' } };
    expect(ids(await inside(fused))[0]).toBe('whale');
    expect(ids(await search('viewed', fused))).not.toContain('whale');
    const several = await ask('POST', '/_msearch', `{}\n${JSON.stringify({ query, pit: { id } })}\n`);
    expect(ids(several.responses[0].hits.hits)[0]).toBe('whale');
    const named = await ask('POST', `/${of('viewed')}/_search`, { pit: { id } }, 400);
    expect(JSON.stringify(named)).toContain('cannot be used with point in time');
    expect(await ask('DELETE', '/_pit', { id })).toMatchObject({ succeeded: true, num_freed: 1 });
    await ask('POST', '/_search', { pit: { id } }, 404);
  });

  it('makes an index by a template, and writes by an alias', async () => {
    const template = {
      index_patterns: [`${of('templated')}-*`],
      template: {
        mappings: { properties: { body: field(DENSE) } },
        aliases: { [of('alias')]: {} },
      },
    };
    await ask('PUT', `/_index_template/${of('template')}`, template);
    made.push(`${of('templated')}-1`);
    await ask('PUT', `/${of('templated')}-1/_doc/1?refresh=true`, { body: TEXTS['whale'] }, 201);
    const shown = (await ask('GET', `/${of('templated')}-1/_mapping`))[`${of('templated')}-1`].mappings;
    expect(shown.properties.body).toMatchObject({ type: 'semantic_text', model_settings: { dimensions: 384 } });
    await bulk([{ index: { _index: of('alias'), _id: '2' } }, { body: TEXTS['stamps'] }]);
    const found = await search('alias', { query: { match: { body: 'collecting postage' } } });
    expect(ids(found)).toEqual(['2', '1']);
    // The second page of what is found by a word of the field.
    const second = await search('alias', { query: { match: { body: 'collecting postage' } }, from: 1, size: 1 });
    expect(ids(second)).toEqual(['1']);
    const { index_templates: templates } = await ask('GET', `/_index_template/${of('template')}`);
    expect(JSON.stringify(templates)).not.toContain('sparrow');
    await ask('DELETE', `/_index_template/${of('template')}`);
  });

  it('runs a pipeline before the passages are made', async () => {
    await make('piped', { sparse: field(SPARSE) }, { settings: { default_pipeline: of('rename') } });
    await ask('PUT', `/_ingest/pipeline/${of('rename')}`, {
      processors: [{ rename: { field: 'body', target_field: 'sparse' } }],
    });
    await ask('POST', `/${of('piped')}/_doc/1?refresh=true`, { body: TEXTS['whale'] }, 201);
    await bulk([{ index: { _index: of('piped'), _id: '2' } }, { body: TEXTS['stamps'] }]);
    expect(ids(await search('piped', { query: { match: { sparse: 'a sea animal' } } }))[0]).toBe('1');
    expect(ids(await search('piped', { query: { match: { sparse: 'collecting postage' } } }))[0]).toBe('2');
    await ask('DELETE', `/${of('piped')}`);
    await ask('DELETE', `/_ingest/pipeline/${of('rename')}`);
  });

  it('refuses what cannot be a field, a document or a query', async () => {
    const mapping = (properties: object) => ({ mappings: { properties } });
    const bad = await ask('PUT', `/${of('bad')}`, mapping({ a: { type: 'semantic_text', inference_id: '' } }), 400);
    expect(bad.error.reason).toContain('[inference_id] on mapper [a] of type [semantic_text] must not be empty');
    await make('lost', { a: { type: 'semantic_text', inference_id: of('nobody') } });
    const lost = await ask('PUT', `/${of('lost')}/_doc/1`, { a: 'x' }, 404);
    expect(lost.error.reason).toContain(`Inference id [${of('nobody')}] not found for field [a]`);
    const items = await bulk([
      { index: { _index: of('lost'), _id: '1' } },
      { a: 'x' },
      { index: { _index: of('lost'), _id: '2' } },
      { b: 'fine' },
    ]);
    expect(items.items.map((it: any) => it.index.status)).toEqual([404, 201]);
    const object = await ask('PUT', `/${of('texts')}/_doc/x`, { sparse: { no: 'text' } }, 400);
    expect(object.error.reason).toContain('Invalid format for field [sparse]');
    await ask('POST', `/${of('texts')}/_search`, { query: { semantic: { field: 'kind', query: 'x' } } }, 400);
  });

  it('refuses a model whose vectors cannot be compared with those of the field', async () => {
    await make('other', { body: field(DENSE) });
    await ask('PUT', `/${of('other')}/_doc/1?refresh=true`, { body: TEXTS['whale'] }, 201);
    const query = { sparse_vector: { field: 'body', inference_id: SPARSE, query: 'whale' } };
    const refused = await ask('POST', `/${of('other')}/_search`, { query }, 400);
    expect(JSON.stringify(refused)).toContain('cannot be searched with model');
    const changed = { properties: { body: field(SPARSE) } };
    await ask('PUT', `/${of('other')}/_mapping`, changed, 400);
  });

  if (engine === 'native') return;

  it('names what it does not do', async () => {
    const refusals: [string, string, unknown, string][] = [
      ['POST', `/${of('texts')}/_update_by_query`, { script: { source: '' } }, '[script] of an _update_by_query'],
      ['POST', `/${of('texts')}/_update/whale`, { script: { source: '' } }, 'a script in an update'],
      ['PUT', `/${of('plain')}/_mapping`, { properties: { late: field(SPARSE) } }, 'made without one'],
      [
        'POST',
        `/${of('texts')},${of('plain')}/_search`,
        { query: { match: { sparse: 'x' } } },
        'which is semantic_text in some of the indices only',
      ],
    ];
    for (const [method, path, body, sentence] of refusals) {
      const { error } = await ask(method, path, body, 400);
      expect(error.reason, path).toContain(sentence);
    }
  });

  it('takes a field that comes later into an index that has one, and waits until all servers know it', async () => {
    await make('later', { first: field(SPARSE) });
    const began = Date.now();
    await ask('PUT', `/${of('later')}/_mapping`, { properties: { second: field(SPARSE) } });
    expect(Date.now() - began).toBeGreaterThan(5_000);
    await ask('PUT', `/${of('later')}/_doc/1?refresh=true`, { second: TEXTS['whale'] }, 201);
    expect(ids(await search('later', { query: { match: { second: 'a sea animal' } } }))).toEqual(['1']);
  });
});
