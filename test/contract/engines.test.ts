// One suite for every engine behind the routes: what holds for the native one holds for one over a cluster.
import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { CLUSTER, ENGINES, IS_ELASTICSEARCH, NO_CLUSTER } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

const MODEL = '.sparse_encoder_model_2';

const PASSAGES: Readonly<Record<string, string>> = {
  muscle: 'Sore muscles after a long run recover faster with rest, water and gentle stretching.',
  stamps: 'A philatelist is a person who collects and studies postage stamps.',
  open: 'Agoraphobia is the fear of open spaces and crowded public places.',
  bread: 'Sourdough bread rises slowly because wild yeast works at its own pace.',
  part: 'The replacement filter has the part number XJ-4471-B.',
  volcano: 'Lava flows from a volcano when molten rock reaches the surface of the earth.',
  whale: 'The blue whale is the largest animal that has ever lived.',
  vaccine: 'A vaccine teaches the immune system to recognise a virus.',
};

/** A feature's weight is kept in 9 bits by a cluster of the Lucene family: at most this share of it is lost. */
const LOST = 2 ** -8;

type Tokens = Readonly<Record<string, number>>;
type Hit = { _id: string; _index: string; _score: number; _rank?: number; _source: any; highlight?: any };

const expansion = (text: string, more: object = {}) => ({
  text_expansion: { tokens: { model_id: MODEL, model_text: text, ...more } },
});

describe.each(ENGINES)('over the $name engine', ({ name, start }) => {
  const run = randomBytes(4).toString('hex');
  const of = (index: string) => `conformance-${run}-${index}`;
  let server: RunningServer;

  async function ask(method: string, path: string, body?: unknown, status = 200, apiKey?: string): Promise<any> {
    const answer = await server.request(method, path, body, apiKey === undefined ? {} : { apiKey });
    expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
    return answer.body;
  }

  const search = async (body: unknown, index = of('passages')): Promise<Hit[]> =>
    (await ask('POST', `/${index}/_search`, body)).hits.hits;
  const ids = (hits: readonly Hit[]) => hits.map(({ _id }) => _id);

  async function tokensOf(text: string): Promise<Tokens> {
    const body = await ask('POST', `/_ml/trained_models/${MODEL}/_infer`, { docs: [{ text_field: text }] });
    return body.inference_results[0].predicted_value;
  }

  const dot = (a: Tokens, b: Tokens) =>
    Object.entries(a).reduce((sum, [token, weight]) => sum + weight * (b[token] ?? 0), 0);

  beforeAll(async () => {
    server = await start();
    await ask('PUT', `/${of('plain')}`, {
      mappings: { properties: { content: { type: 'text' }, kind: { type: 'keyword' } } },
    });
    await ask('PUT', `/${of('passages')}`, {
      mappings: {
        properties: { content: { type: 'text' }, kind: { type: 'keyword' }, tokens: { type: 'sparse_vector' } },
      },
    });
    await ask('PUT', `/_ingest/pipeline/${of('embed')}`, {
      description: 'tokens of the content',
      processors: [
        { inference: { model_id: MODEL, input_output: [{ input_field: 'content', output_field: 'tokens' }] } },
      ],
    });
    const lines = Object.entries(PASSAGES).map(
      ([_id, content], at) =>
        `${JSON.stringify({ index: { _id } })}\n${JSON.stringify({ content, kind: at % 2 === 0 ? 'even' : 'odd' })}\n`,
    );
    const written = await ask('POST', `/${of('passages')}/_bulk?pipeline=${of('embed')}&refresh=true`, lines.join(''));
    expect(written.errors, JSON.stringify(written)).toBe(false);
    expect((await ask('POST', `/${of('plain')}/_bulk?refresh=true`, lines.join(''))).errors).toBe(false);
  }, 120_000);

  afterAll(async () => {
    for (const index of [
      'plain',
      'dynamic',
      'passages',
      'copy',
      'default',
      'routed',
      'written',
      'excluded',
      'numbers',
      'own-copy',
      ...['changed', 'first-000001', 'first-000002', 'cloned'],
    ]) {
      await server.request('DELETE', `/${of(index)}`);
    }
    for (const pipeline of ['embed', 'drop', 'fail', 'mark', 'moving'])
      await server.request('DELETE', `/_ingest/pipeline/${of(pipeline)}`);
    await server.stop();
  });

  it('shows a mapping as it was put, also after a field came to it', async () => {
    const index = of('written');
    const mappings = {
      _meta: { mine: true },
      properties: { tokens: { type: 'sparse_vector' }, inner: { properties: { tokens: { type: 'sparse_vector' } } } },
    };
    await ask('PUT', `/${index}`, { mappings });
    expect((await ask('GET', `/${index}/_mapping`))[index].mappings).toEqual(mappings);
    await ask('PUT', `/${index}/_mapping`, { properties: { more: { type: 'sparse_vector' }, k: { type: 'keyword' } } });
    const shown = (await ask('GET', `/${index}`))[index].mappings;
    expect(shown).toEqual({
      ...mappings,
      properties: { ...mappings.properties, more: { type: 'sparse_vector' }, k: { type: 'keyword' } },
    });
  });

  it('makes fields of tokens by a dynamic template, and shows them as they were put', async () => {
    const index = of('dynamic');
    const mappings = {
      dynamic_templates: [{ tokens: { match: '*_tokens', mapping: { type: 'sparse_vector' } } }],
      properties: { title: { type: 'keyword' } },
    };
    await ask('PUT', `/${index}`, { mappings });
    const tokens = await tokensOf('a fear of wide open places');
    await ask('PUT', `/${index}/_doc/1?refresh=true`, { title: 'open', body_tokens: tokens }, 201);
    expect((await ask('GET', `/${index}/_mapping`))[index].mappings).toEqual({
      ...mappings,
      properties: { ...mappings.properties, body_tokens: { type: 'sparse_vector' } },
    });
    const query = { sparse_vector: { field: 'body_tokens', query_vector: tokens } };
    const [hit] = await search({ query }, index);
    expect([hit?._id, (hit?._score ?? 0) / dot(tokens, tokens)]).toEqual(['1', expect.closeTo(1, 2)]);
  });

  it('scores exact dot products of the tokens, but for the bits that a cluster keeps of a weight', async () => {
    const query = await tokensOf('a fear of wide open places');
    const hits = await search({ query: expansion('a fear of wide open places'), size: 20 });
    expect(ids(hits)[0]).toBe('open');
    expect(hits.length).toBeGreaterThan(2);
    for (const { _score, _source } of hits) {
      const exact = dot(query, _source.tokens);
      const [less, more] = name === 'native' ? [1e-3, 1e-3] : [LOST, 1e-5];
      expect(_score).toBeGreaterThanOrEqual(exact * (1 - less));
      expect(_score).toBeLessThanOrEqual(exact * (1 + more));
    }
    const boosted = await search({ query: expansion('a fear of wide open places', { boost: 3 }), size: 20 });
    boosted.forEach(({ _score }, at) => expect(_score).toBeCloseTo(3 * (hits[at]?._score ?? 0), 2));
    const given = await search({ query: { sparse_vector: { field: 'tokens', query_vector: query } }, size: 20 });
    expect(ids(given)).toEqual(ids(hits));
    const pruned = { sparse_vector: { field: 'tokens', query_vector: query, prune: true } };
    const answer = await server.request('POST', `/${of('passages')}/_search`, { query: pruned });
    // Only where the cluster knows how frequent tokens are.
    if (name === 'cluster' && !IS_ELASTICSEARCH) expect(answer.body.error.reason).toContain('[prune] of query');
    else expect(ids(answer.body.hits.hits)[0]).toBe('open');
  });

  it('combines tokens, words, filters, boosts and a least score', async () => {
    const bool = {
      should: [
        expansion('stamp collector', { boost: 2 }),
        { query_string: { query: 'postage', default_field: 'content', boost: 4 } },
      ],
      filter: { term: { kind: 'odd' } },
    };
    const hits = await search({ query: { bool } });
    expect(ids(hits)[0]).toBe('stamps');
    expect(hits.every(({ _source }) => _source.kind === 'odd')).toBe(true);
    const least = ((hits[0]?._score ?? 0) + (hits[1]?._score ?? 0)) / 2;
    expect(ids(await search({ query: { bool }, min_score: least }))).toEqual(['stamps']);
    expect((await ask('POST', `/${of('passages')}/_count`, { query: { bool } })).count).toBeGreaterThan(1);
  });

  it('fuses lists by reciprocal rank, page by page, with totals, highlights and aggregations', async () => {
    const lists = {
      sub_searches: [{ query: { match: { content: 'whale volcano' } } }, { query: expansion('a huge sea animal') }],
      rank: { rrf: { rank_constant: 1 } },
      highlight: { fields: { content: {} } },
      aggs: { kinds: { terms: { field: 'kind' } } },
    };
    const whole = await ask('POST', `/${of('passages')}/_search`, { ...lists, size: 8 });
    const hits = whole.hits.hits as Hit[];
    expect(ids(hits)[0]).toBe('whale');
    expect(hits[0]?._score).toBeCloseTo(1, 5);
    expect(hits.map(({ _rank }) => _rank)).toEqual(hits.map((_, at) => at + 1));
    expect(whole.hits.max_score).toBeNull();
    expect(whole.hits.total).toEqual({ value: hits.length, relation: 'eq' });
    expect(hits[0]?.highlight.content[0]).toContain('<em>whale</em>');
    const counted = whole.aggregations.kinds.buckets.reduce(
      (sum: number, it: { doc_count: number }) => sum + it.doc_count,
      0,
    );
    expect(counted).toBe(hits.length);
    const pages = [
      ...(await search({ ...lists, from: 0, size: 2 })),
      ...(await search({ ...lists, from: 2, size: 2 })),
    ];
    expect(ids(pages)).toEqual(ids(hits).slice(0, 4));
  });

  it('fuses by retrievers: reciprocal ranks, weighted sums, filters in each list', async () => {
    const standard = (query: object) => ({ standard: { query } });
    const words = standard({ match: { content: 'whale volcano' } });
    const meaning = standard(expansion('a huge sea animal'));
    const hits = await search({ retriever: { rrf: { retrievers: [words, meaning], rank_window_size: 20 } } });
    expect(ids(hits)[0]).toBe('whale');
    expect(hits[0]?._score).toBeCloseTo(2 / 61, 6);
    expect(hits[0]?._rank).toBeUndefined();
    const linear = {
      retrievers: [
        { retriever: words, weight: 0 },
        { retriever: meaning, weight: 2, normalizer: 'minmax' },
      ],
      rank_window_size: 20,
    };
    expect((await search({ retriever: { linear } }))[0]?._score).toBeCloseTo(2, 5);
    const found = await search({ query: expansion('a huge sea animal'), size: 20 });
    const scores = found.map(({ _score: score }) => score ?? 0);
    const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
    const deviation = Math.sqrt(scores.reduce((sum, score) => sum + (score - mean) ** 2, 0) / scores.length);
    const zscore = { retrievers: [{ retriever: meaning, normalizer: 'zscore' }], rank_window_size: 20 };
    const byDeviation = await search({ retriever: { linear: zscore } });
    expect(byDeviation[0]?._score).toBeCloseTo(((scores[0] ?? 0) - mean) / deviation, 3);
    expect(byDeviation.at(-1)?._score).toBe(0);
    const filter = { term: { kind: 'odd' } };
    const odd = await search({ retriever: { rrf: { retrievers: [words, meaning], filter } } });
    expect(odd.every(({ _source }) => _source.kind === 'odd')).toBe(true);
    const alone = await search({ retriever: { standard: { query: expansion('a huge sea animal'), filter } } });
    expect(alone.every(({ _source }) => _source.kind === 'odd')).toBe(true);
  });

  it('answers several searches at once, each with its own error', async () => {
    const lines = [
      { index: of('passages') },
      { query: expansion('fear of open spaces'), size: 1 },
      { index: of('nowhere') },
      { query: { match_all: {} } },
    ];
    const body = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    const { responses } = await ask('POST', '/_msearch', body);
    expect(ids(responses[0].hits.hits)).toEqual(['open']);
    expect(responses[0].status).toBe(200);
    expect(responses[1].error.type).toBe('index_not_found_exception');
    expect(responses[1].status).toBe(404);
  });

  it('says of lines without a last line break what takes line breaks away', async () => {
    const lines: Readonly<Record<string, string>> = { _bulk: '[\\n]', _msearch: '[\n]', '_msearch/template': '[\n]' };
    for (const [path, newline] of Object.entries(lines)) {
      const kind = path.startsWith('_bulk') ? 'bulk' : 'msearch';
      const sentence = `The ${kind} request must be terminated by a newline ${newline}`;
      const refused = async (body: string): Promise<string> => {
        const answer = await server.request('POST', `/${of('plain')}/${path}`, body);
        expect(answer.status, answer.text).toBe(400);
        return answer.body.error.reason as string;
      };
      expect(await refused('{"index":{}}\n{}')).toBe(sentence);
      expect(await refused('{"index":{}}{}')).toBe(
        `${sentence}: the body has no line break. curl removes those of a file with [-d], and keeps them with [--data-binary]`,
      );
    }
  });

  it('sends documents through the pipeline that the index, the request or the item names, and each only once', async () => {
    const index = of('default');
    await ask('PUT', `/${index}`, {
      settings: { 'index.default_pipeline': of('embed') },
      mappings: { properties: { tokens: { type: 'sparse_vector' } } },
    });
    await ask('PUT', `/${index}/_doc/single`, { content: PASSAGES['open'] }, 201);
    await ask('PUT', `/${index}/_doc/none?pipeline=_none`, { content: PASSAGES['open'] }, 201);
    await ask('PUT', `/_ingest/pipeline/${of('drop')}`, { processors: [{ drop: {} }] });
    await ask('PUT', `/_ingest/pipeline/${of('fail')}`, { processors: [{ fail: { message: 'bad one' } }] });
    await ask('PUT', `/_ingest/pipeline/${of('mark')}`, { processors: [{ set: { field: 'marked', value: true } }] });
    const lines = [
      [{ index: { _id: 'bulk' } }, { content: PASSAGES['open'] }],
      [{ index: { _id: 'odd', pipeline: of('drop') } }, { kind: 'odd' }],
      [{ create: { _id: 'bad', pipeline: of('fail') } }, { kind: 'bad' }],
      [{ index: { _id: 'kept', pipeline: of('mark') } }, { kind: 'even' }],
      [{ index: { _id: 'gone', pipeline: of('no-such') } }, { kind: 'even' }],
    ];
    const written = await ask(
      'POST',
      `/${index}/_bulk?refresh=true`,
      lines
        .flat()
        .map((it) => `${JSON.stringify(it)}\n`)
        .join(''),
    );
    const items = written.items.map((it: any) => Object.entries(it)[0]) as [string, any][];
    expect(written.errors).toBe(true);
    expect(items.map(([kind, { _id, status }]) => [kind, _id, status])).toEqual([
      ['index', 'bulk', 201],
      ['index', 'odd', 200],
      ['create', 'bad', expect.any(Number)],
      ['index', 'kept', 201],
      ['index', 'gone', 400],
    ]);
    expect(items[1]?.[1].result).toBe('noop');
    expect(JSON.stringify(items[2]?.[1].error)).toContain('bad one');
    expect(items[4]?.[1].error.reason).toContain('does not exist');
    const hits = await search({ query: { match_all: {} }, size: 20 }, index);
    expect(ids(hits).sort()).toEqual(['bulk', 'kept', 'none', 'single']);
    const tokens = Object.fromEntries(hits.map(({ _id, _source }) => [_id, _source.tokens]));
    expect(tokens['single']).toEqual(tokens['bulk']);
    expect(tokens['none']).toBeUndefined();
    expect(hits.find(({ _id }) => _id === 'kept')?._source).toEqual({ kind: 'even', marked: true });
  });

  it('keeps numbers as they are written on the way through a pipeline', async () => {
    const index = of('numbers');
    await ask('PUT', `/${index}`, {
      mappings: { properties: { n: { type: 'long' }, tokens: { type: 'sparse_vector' } } },
    });
    const line = `{"index":{"_id":"1"}}\n{"n":9007199254740993,"content":"${PASSAGES['whale'] ?? ''}"}\n`;
    await ask('POST', `/${index}/_bulk?pipeline=${of('embed')}&refresh=true`, line);
    const found = await server.request('POST', `/${index}/_search`, { query: { term: { n: '9007199254740993' } } });
    expect(found.text).toContain('9007199254740993');
    const fused = { retriever: { rrf: { retrievers: [{ standard: { query: expansion('whale') } }] } } };
    expect((await server.request('POST', `/${index}/_search`, fused)).text).toContain('9007199254740993');
  });

  it('copies through a pipeline as a task, with what it did', async () => {
    await ask('PUT', `/${of('copy')}`, { mappings: { properties: { tokens: { type: 'sparse_vector' } } } });
    const started = await ask('POST', '/_reindex?wait_for_completion=false', {
      source: { index: of('plain'), size: 3, query: { term: { kind: 'even' } } },
      dest: { index: of('copy'), pipeline: of('embed') },
    });
    expect(started.task).toMatch(/^[\w-]+:\d+$/);
    const done = await ask('GET', `/_tasks/${started.task}?wait_for_completion=true`);
    expect(done).toMatchObject({
      completed: true,
      task: { action: 'indices:data/write/reindex', description: `reindex from [${of('plain')}] to [${of('copy')}]` },
      response: { total: 4, created: 4, updated: 0, batches: 2, version_conflicts: 0, failures: [] },
    });
    const again = await ask('POST', '/_reindex?refresh=true', {
      source: { index: of('plain') },
      dest: { index: of('copy'), pipeline: of('embed') },
    });
    expect(again).toMatchObject({ total: 8, created: 4, updated: 4 });
    expect(ids(await search({ query: expansion('fear of open spaces'), size: 1 }, of('copy')))).toEqual(['open']);
    await ask(
      'POST',
      '/_reindex',
      { source: { index: of('nowhere') }, dest: { index: of('copy'), pipeline: of('embed') } },
      404,
    );
  });

  // The Elasticsearch that is started here lacks the module for it.
  const canRewrite = name === 'native' || !IS_ELASTICSEARCH;
  it.runIf(canRewrite)('writes again what a query finds, with its tokens', async () => {
    const index = of('changed');
    await ask('PUT', `/${index}`, { mappings: { properties: { tokens: { type: 'sparse_vector' } } } });
    const lines = Object.entries(PASSAGES).map(
      ([_id, content]) => `${JSON.stringify({ index: { _id } })}\n${JSON.stringify({ content })}\n`,
    );
    await ask('POST', `/${index}/_bulk?refresh=true&pipeline=${of('embed')}`, lines.join(''));
    const query = {
      bool: { must: [expansion('fear of open spaces')], filter: { ids: { values: ['open', 'whale'] } } },
    };
    const least = (await search({ query, size: 2 }, index)).map(({ _id }) => _id);
    const updated = await ask('POST', `/${index}/_update_by_query?refresh=true`, { query });
    expect(updated).toMatchObject({ total: least.length, updated: least.length, failures: [] });
    const seen = await search({ query: { match_all: {} }, size: 8, version: true }, index);
    const again = seen.filter((hit: any) => hit._version === 2);
    expect(ids(again).sort()).toEqual([...least].sort());
    expect(least.length).toBeGreaterThan(0);
    expect(ids(await search({ query: expansion('fear of open spaces'), size: 1 }, index))).toEqual(['open']);
  });

  it('writes again by a query through a pipeline: the one that is named, or the default one of the indices', async () => {
    const [one, two, apart] = ['first', 'second', 'apart'].map((index) => of(`again-${index}`));
    const set = (id: string, value: string) =>
      ask('PUT', `/_ingest/pipeline/${of(id)}`, {
        processors: [{ set: { field: 'by', value } }, { set: { if: 'ctx.n == 2', field: '_index', value: apart } }],
      });
    await set('named', 'named');
    await set('default', 'default');
    const settings = { 'index.default_pipeline': of('default') };
    await ask('PUT', `/${one}`, { settings });
    await ask('PUT', `/${two}`, { settings });
    await ask('PUT', `/${apart}`);
    const lines = [0, 1, 2, 3].map(
      (n) =>
        `${JSON.stringify({ index: { _index: n % 2 === 0 ? one : two, _id: String(n) } })}\n${JSON.stringify({ n })}\n`,
    );
    await ask('POST', '/_bulk?refresh=true&pipeline=_none', lines.join(''));
    const by = async (): Promise<object[]> => {
      const hits = await search({ size: 9, sort: ['n'] }, `${one},${two},${apart}`);
      return hits.map(({ _source }) => _source as object);
    };
    const odd = { query: { terms: { n: [1, 3] } } };
    const named = await ask('POST', `/${one},${two}/_update_by_query?refresh=true&pipeline=${of('named')}`, odd);
    expect(named).toMatchObject({ total: 2, updated: 2, failures: [] });
    const rest = { query: { bool: { must_not: { exists: { field: 'by' } } } } };
    const left = await ask('POST', `/${one},${two}/_update_by_query?refresh=true&conflicts=proceed`, rest);
    // Where the second is sent, there is no document that it could be written in place of.
    expect(left).toMatchObject({ total: 2, updated: 1, version_conflicts: 1, failures: [] });
    expect(await by()).toEqual([{ n: 0, by: 'default' }, { n: 1, by: 'named' }, { n: 2 }, { n: 3, by: 'named' }]);
    await set('other', 'other');
    await ask('PUT', `/${two}/_settings`, { 'index.default_pipeline': of('other') });
    const both = await ask('POST', `/${one},${two}/_update_by_query?refresh=true`, { query: { terms: { n: [0, 3] } } });
    expect(both).toMatchObject({ total: 2, updated: 2, failures: [] });
    expect(await by()).toEqual([{ n: 0, by: 'default' }, { n: 1, by: 'named' }, { n: 2 }, { n: 3, by: 'other' }]);
    const refused = await server.request('POST', `/${two}/_update_by_query?pipeline=${of('nowhere')}`, odd);
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining(of('nowhere'))]);
  });

  it('makes an index from another one, which shows the mapping of the first', async () => {
    const mappings = { properties: { tokens: { type: 'sparse_vector' } } };
    await ask('PUT', `/${of('first-000001')}`, { mappings, aliases: { [of('rolled')]: { is_write_index: true } } });
    await ask('PUT', `/${of('first-000001')}/_doc/1?refresh=true`, { tokens: { a: 1.5 } }, 201);
    const rolled = await ask('POST', `/${of('rolled')}/_rollover/${of('first-000002')}`, { mappings });
    expect(rolled).toMatchObject({ rolled_over: true, new_index: of('first-000002') });
    expect((await ask('GET', `/${of('first-000002')}/_mapping`))[of('first-000002')].mappings).toEqual(mappings);
    await ask('PUT', `/${of('first-000001')}/_block/write`);
    const settings = { 'index.number_of_replicas': 0, 'index.blocks.write': null };
    await ask('POST', `/${of('first-000001')}/_clone/${of('cloned')}`, { settings });
    await ask('GET', `/_cluster/health/${of('cloned')}?wait_for_status=yellow&timeout=30s`);
    expect((await ask('GET', `/${of('cloned')}/_mapping`))[of('cloned')].mappings).toEqual(mappings);
    const given = { query: { sparse_vector: { field: 'tokens', query_vector: { a: 2 } } } };
    expect((await search(given, of('cloned')))[0]?._score).toBeCloseTo(3, 2);
  });

  it('lets a restricted key use what it may, by name and by pattern', async () => {
    const { encoded: key } = await ask('POST', '/_security/api_key', {
      name: 'reader',
      role_descriptors: { r: { indices: [{ names: [of('pass*')], privileges: ['read'] }] } },
    });
    const body = { query: { match_all: {} }, size: 50 };
    expect((await ask('POST', `/${of('passages')}/_search`, body, 200, key)).hits.hits).toHaveLength(8);
    const narrowed = (await ask('POST', `/${of('*')}/_search`, body, 200, key)).hits.hits as Hit[];
    expect(new Set(narrowed.map(({ _index }) => _index))).toEqual(new Set([of('passages')]));
    const refused = await ask('POST', `/${of('plain')}/_search`, body, 403, key);
    expect(refused.error.reason).toContain(`is unauthorized for API key id`);
    expect(refused.error.reason).toContain(`on indices [${of('plain')}]`);
    await ask('GET', `/${of('plain')}/_doc/whale`, undefined, 403, key);
    await ask('PUT', `/${of('passages')}/_doc/x`, {}, 403, key);
    await ask('DELETE', `/${of('passages')}`, undefined, 403, key);
    const lookup = { query: { terms: { kind: { index: of('plain'), id: 'whale', path: 'kind' } } } };
    const looked = await server.request('POST', `/${of('passages')}/_search`, lookup, { apiKey: key });
    expect(looked.status).toBeGreaterThanOrEqual(400);
  });

  it('decides what a restricted key’s body names as the native engine does: it reaches no other index', async () => {
    const { encoded: key } = await ask('POST', '/_security/api_key', {
      name: 'curious',
      role_descriptors: { r: { indices: [{ names: [of('pass*'), of('own*'), 'n*'], privileges: ['all'] }] } },
    });
    const [mine, plain] = [of('passages'), of('plain')];
    const found = (answer: any): string[] =>
      JSON.stringify(answer).match(/sore muscles|philatelist|"kind":"(?:even|odd)"/gi) ?? [];
    const tries: [string, string, unknown][] = [
      [
        'POST',
        '/_mget',
        {
          docs: [
            { _index: mine, _id: 'whale' },
            { _index: plain, _id: 'whale' },
          ],
        },
      ],
      ['POST', `/${plain}/_mget`, { ids: ['whale'] }],
      ['POST', `/${mine}/_mget`, { docs: [{ _index: plain, _id: 'whale' }] }],
      ...[
        { terms: { kind: { index: plain, id: 'whale', path: 'kind' } } },
        { bool: { must_not: { terms: { kind: { index: plain, id: 'whale', path: 'kind' } } } } },
        { more_like_this: { fields: ['content'], like: [{ _index: plain, _id: 'whale' }], min_term_freq: 1 } },
        {
          wrapper: {
            query: Buffer.from(`{"terms":{"kind":{"index":"${plain}","id":"whale","path":"kind"}}}`).toString('base64'),
          },
        },
      ].map((query): [string, string, unknown] => ['POST', `/${mine}/_search`, { query }]),
      ['POST', '/_reindex', { source: { index: plain }, dest: { index: of('own-copy') } }],
      [
        'POST',
        '/_reindex',
        { source: { index: [mine, plain] }, dest: { index: of('own-copy'), pipeline: of('embed') } },
      ],
      ['POST', '/_reindex', { source: { index: mine }, dest: { index: plain } }],
      [
        'POST',
        '/_reindex',
        {
          source: { index: mine, query: { terms: { kind: { index: plain, id: 'whale', path: 'kind' } } } },
          dest: { index: of('own-copy') },
        },
      ],
      [
        'POST',
        `/${mine}/_delete_by_query`,
        { query: { terms: { kind: { index: plain, id: 'whale', path: 'kind' } } } },
      ],
      ['POST', '/_aliases', { actions: [{ add: { index: plain, alias: of('own-alias') } }] }],
      ['POST', '/_aliases', { actions: [{ add: { indices: [mine, plain], alias: of('own-alias') } }] }],
      ['POST', '/_aliases', { actions: { add: { index: plain, alias: of('own-alias') } } }],
      ['POST', '/_aliases', { actions: [{ remove_index: { index: plain } }] }],
      ['PUT', `/${plain}/_alias/${of('own-alias')}`, undefined],
      ['PUT', `/${of('own-new')}`, { aliases: { [plain]: {} } }],
    ];
    for (const [method, path, body] of tries) {
      const answer = await server.request(method, path, body, { apiKey: key });
      const inside = answer.body?.docs?.map(
        (it: any) => it.error?.type ?? it.error?.root_cause?.[0]?.type ?? it._index,
      );
      const refused = answer.status >= 400 || (inside?.includes('security_exception') ?? false);
      expect(refused, `${method} ${path} ${JSON.stringify(body)}: ${answer.text}`).toBe(true);
      if (!refused || answer.status < 400) expect(found(answer.body.docs.at(-1))).toEqual([]);
    }
    // Null is no name: the write is for the index of the address.
    const line = `{"index":{"_index":null,"_id":"intruder"}}\n{}\n`;
    await server.request('POST', `/${plain}/_bulk`, line, { apiKey: key });
    await ask('GET', `/${plain}/_doc/intruder`, undefined, 404);
    await ask('GET', `/_alias/${of('own-alias')}`, undefined, 404);
    expect((await ask('POST', `/${plain}/_count`)).count).toBe(8);
    const own = { query: { terms: { kind: { index: mine, id: 'whale', path: 'kind' } } }, size: 8 };
    const looked = (await ask('POST', `/${mine}/_search`, own, 200, key)).hits.hits as Hit[];
    expect(new Set(looked.map(({ _source }) => _source.kind))).toEqual(new Set(['even']));
  });

  it('refuses single items of a bulk request of a restricted key, and where a pipeline sends a document', async () => {
    const { encoded: key } = await ask('POST', '/_security/api_key', {
      name: 'writer',
      role_descriptors: { r: { indices: [{ names: [of('routed')], privileges: ['write', 'create_index'] }] } },
    });
    await ask('PUT', `/_ingest/pipeline/${of('moving')}`, {
      processors: [{ set: { field: '_index', value: of('plain') } }],
    });
    const lines = [
      [{ index: { _index: of('routed'), _id: '1' } }, {}],
      [{ index: { _index: of('plain'), _id: 'intruder' } }, {}],
      [{ index: { _index: of('routed'), _id: 'moved', pipeline: of('moving') } }, {}],
    ];
    const text = lines
      .flat()
      .map((it) => `${JSON.stringify(it)}\n`)
      .join('');
    const { items } = await ask('POST', '/_bulk', text, 200, key);
    expect(items.map((it: any) => it.index.status)).toEqual([201, 403, 403]);
    for (const id of ['intruder', 'moved']) await ask('GET', `/${of('plain')}/_doc/${id}`, undefined, 404);
  });

  it('says in the documented shape what is wrong', async () => {
    const missing = await ask(
      'POST',
      `/${of('passages')}/_search`,
      { query: { text_expansion: { tokens: { model_text: 'x' } } } },
      400,
    );
    expect(missing.error.reason).toBe('[text_expansion] requires a model_id value');
    const nowhere = await ask('POST', `/${of('nowhere')}/_search`, { query: expansion('x') }, 404);
    expect(nowhere.error.type).toBe('index_not_found_exception');
    const model = { text_expansion: { tokens: { model_id: 'no-such-model', model_text: 'x' } } };
    expect(JSON.stringify(await ask('POST', `/${of('passages')}/_search`, { query: model }, 404))).toContain(
      'no-such-model',
    );
    await ask('POST', `/${of('passages')}/_search`, '{"query":', 400);
  });
});

describe.skipIf(CLUSTER !== undefined)('over a cluster', () => {
  it.skip(NO_CLUSTER, () => undefined);
});
