// What a search that fuses lists shows besides its hits, and models that read them again: one suite for every engine behind the routes, as
// in engines.test.ts. The cross-encoder has random weights.
import { randomBytes } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ENGINES } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

type Hit = { _id: string; _score: number; _explanation?: any; matched_queries?: string[] };

const CROSS = fileURLToPath(new URL('../../crates/encoder/tests/fixtures/cross-bert', import.meta.url));
const QUESTION = 'red stamps';
const TEXTS = ['old blue coin. new', 'green coin', 'red stamp', '', 'new new new blue', 'old green stamps. red'];
const WORDS = ['red', 'blue', 'green', 'coin', 'stamp', 'stamps', 'old', 'new'];
/** As Elasticsearch makes scores of hits of a model's. */
const positive = (score: number): number => Math.max(score, 0) + Math.min(Math.exp(score), 1);

describe.each(ENGINES)('fused searches over the $name engine', ({ start }) => {
  const run = randomBytes(4).toString('hex');
  const of = (index: string) => `fused-${run}-${index}`;
  const folder = mkdtempSync(join(tmpdir(), 'sparrow-fused-'));
  let server: RunningServer;

  async function ask(method: string, path: string, body?: unknown, status = 200): Promise<any> {
    const answer = await server.request(method, path, body);
    expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
    return answer.body;
  }
  const search = (index: string, body: unknown, query = '') => ask('POST', `/${of(index)}/_search${query}`, body);
  const found = async (index: string, body: unknown): Promise<Hit[]> => (await search(index, body)).hits.hits;
  const ids = (hits: readonly Hit[]) => hits.map(({ _id }) => _id);
  const refused = async (body: unknown, status: number, reason: string) =>
    expect(JSON.stringify(await ask('POST', `/${of('docs')}/_search`, body, status))).toContain(reason);

  beforeAll(async () => {
    cpSync(CROSS, join(folder, 'cross'), { recursive: true });
    server = await start({ args: ['--models', folder] });
    await ask('PUT', `/_inference/rerank/${of('ranker')}`, {
      service: 'elasticsearch',
      service_settings: { num_allocations: 1, num_threads: 1, model_id: 'cross' },
    });
    const body = { type: 'text', fields: { whole: { type: 'keyword' } } };
    for (const index of ['docs', 'pages']) {
      await ask('PUT', `/${of(index)}`, { mappings: { properties: { body, n: { type: 'integer' } } } });
    }
    const words = (n: number) => [n % 8, (n * 3) % 7, (n * 5) % 8].map((at) => WORDS[at]).join(' ');
    const docs: [string, number, object][] = [
      ...TEXTS.map((text, n): [string, number, object] => [
        'docs',
        n,
        text === '' ? { n } : { body: text, n, title: [null, `no ${String(n)}`] },
      ]),
      ...Array.from({ length: 35 }, (_, n): [string, number, object] => ['pages', n, { body: words(n), n }]),
    ];
    const lines = docs.map(
      ([index, n, source]) =>
        `${JSON.stringify({ index: { _index: of(index), _id: String(n) } })}\n${JSON.stringify(source)}\n`,
    );
    const written = await ask('POST', '/_bulk?refresh=true', lines.join(''));
    expect(written.errors, JSON.stringify(written)).toBe(false);
  }, 120_000);

  afterAll(async () => {
    for (const index of ['docs', 'pages', 'many', 'parts']) await server.request('DELETE', `/${of(index)}`);
    await server.request('DELETE', `/_inference/rerank/${of('ranker')}`);
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  const all = { standard: { query: { match_all: {} }, sort: [{ n: 'asc' }] } };
  const reranker = (more: object = {}): object => ({
    text_similarity_reranker: {
      ...{ retriever: all, inference_id: of('ranker'), inference_text: QUESTION, field: 'body' },
      ...more,
    },
  });
  /** What the model says of the texts, best first. */
  const order = async (): Promise<{ index: number; relevance_score: number }[]> =>
    (await ask('POST', `/_inference/rerank/${of('ranker')}`, { query: QUESTION, input: TEXTS, top_n: 100 })).rerank;

  describe('text_similarity_reranker', () => {
    it('ranks the hits of a retriever by the texts of a field', async () => {
      const hits = await found('docs', { retriever: reranker() });
      const entries = await order();
      expect(ids(hits).map(Number)).toEqual(entries.map(({ index }) => index));
      hits.forEach(({ _score }, at) => expect(_score).toBeCloseTo(positive(entries[at]?.relevance_score ?? NaN), 4));
      const sub = await found('docs', { retriever: reranker({ field: 'body.whole' }) });
      expect(sub).toEqual(hits);
      expect(await found('docs', { retriever: reranker({ field: 'title' }) })).toHaveLength(6);
      // Without texts all are the same to the model.
      const nothing = await found('docs', { retriever: reranker({ field: 'nothing' }) });
      expect(new Set(nothing.map(({ _score }) => _score)).size).toBe(1);
    });

    it('has a window, a filter and a lowest score, and stands above and below other retrievers', async () => {
      const entries = await order();
      const first = entries.filter(({ index }) => index < 3).map(({ index }) => String(index));
      expect(ids(await found('docs', { retriever: reranker({ rank_window_size: 3 }), size: 3 }))).toEqual(first);
      const filter = { range: { n: { gte: 4 } } };
      const last = entries.filter(({ index }) => index >= 4).map(({ index }) => String(index));
      expect(ids(await found('docs', { retriever: reranker({ filter }) }))).toEqual(last);
      const least = (entries[1]?.relevance_score ?? NaN) - 1e-6;
      const best = await search('docs', { retriever: reranker({ min_score: least }) });
      expect(best.hits.hits).toHaveLength(2);
      expect(best.hits.total).toEqual({ value: 2, relation: 'eq' });
      const words = { standard: { query: { match: { body: 'coin red' } } } };
      const rrf = { rrf: { retrievers: [words, all], rank_window_size: 6 } };
      const above = ids(await found('docs', { retriever: reranker({ retriever: rrf }) }));
      expect(above).toEqual(entries.map(({ index }) => String(index)));
      const below = await found('docs', { retriever: { rrf: { retrievers: [reranker(), all], rank_constant: 1 } } });
      const sums = new Map(TEXTS.map((_, n) => [String(n), 1 / (2 + n) + 1 / (2 + above.indexOf(String(n)))]));
      for (const { _id, _score } of below) expect(_score, _id).toBeCloseTo(sums.get(_id) ?? NaN, 5);
    });

    it('reads the best parts of long texts in their place', async () => {
      const coins = `${'green coin '.repeat(5).trim()}\n`;
      await ask('PUT', `/${of('parts')}/_doc/1?refresh=true`, { body: `${coins}${coins}red stamp`, n: 1 }, 201);
      const chunking_settings = { strategy: 'recursive', max_chunk_size: 10, separators: ['\n'] };
      const scoreOf = async (size?: number): Promise<number | undefined> => {
        const chunk_rescorer = { chunking_settings, ...(size === undefined ? {} : { size }) };
        return (await found('parts', { retriever: reranker({ chunk_rescorer }) }))[0]?._score;
      };
      const input = ['red stamp', coins.trim()];
      const { rerank } = await ask('POST', `/_inference/rerank/${of('ranker')}`, { query: QUESTION, input, top_n: 2 });
      const [part, other] = [0, 1].map((at) =>
        positive(
          (rerank as { index: number; relevance_score: number }[]).find((it) => it.index === at)?.relevance_score ??
            NaN,
        ),
      );
      expect(await scoreOf()).toBeCloseTo(part ?? NaN, 4);
      expect(await scoreOf(2)).toBeCloseTo(Math.max(part ?? NaN, other ?? NaN), 4);
      // No hit is needed for a section to be refused.
      const none = { standard: { query: { match_none: {} } } };
      for (const [chunk_rescorer, reason] of [
        [{ size: 0 }, '[size] of [chunk_rescorer] must be from [1] to [10], was [0]'],
        [{ sizes: 1 }, 'unknown field [sizes]'],
        [{ chunking_settings: { strategy: 'word' } }, 'Validation Failed'],
      ] as const) {
        const refused = await ask(
          'POST',
          `/${of('parts')}/_search`,
          { retriever: reranker({ chunk_rescorer, retriever: none }) },
          400,
        );
        expect(JSON.stringify(refused)).toContain(reason);
      }
    });

    it('shows pages that go together, over several windows', async () => {
      const page = (from: number, size: number) => found('pages', { retriever: reranker(), from, size });
      const paged: Hit[] = [];
      for (let from = 0; from < 35; from += 4) paged.push(...(await page(from, 4)));
      expect(new Set(ids(paged)).size).toBe(35);
      // The first window is the list's first ten, and the hits behind it follow, whichever page asks for them.
      const first = ids(paged.slice(0, 10)).map(Number);
      expect(first.sort((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, n) => n));
      expect(await page(0, 10)).toEqual(paged.slice(0, 10));
      expect(await page(8, 6)).toEqual(paged.slice(8, 14));
      const scores = paged.map(({ _score }) => _score);
      expect(scores).toEqual(scores.toSorted((a, b) => b - a));
      const explained = await found('pages', { retriever: reranker(), from: 10, explain: true });
      for (const { _score, _explanation } of explained) expect(_explanation.value).toBe(_score);
      const capped = explained.filter(({ _explanation: { description } }) =>
        description.includes('no higher than the hit before it'),
      );
      expect(capped.length).toBeGreaterThan(0);
      expect(capped[0]?._explanation.details[0].value).toBeGreaterThan(capped[0]?._score ?? NaN);
    });

    it('needs no inference id where one endpoint reranks, and says which there are', async () => {
      const unnamed = { retriever: reranker({ inference_id: undefined }) };
      expect(await found('docs', unnamed)).toEqual(await found('docs', { retriever: reranker() }));
      const path = `/_inference/rerank/${of('another')}`;
      const settings = { num_allocations: 1, num_threads: 1, model_id: 'cross' };
      await ask('PUT', path, { service: 'elasticsearch', service_settings: settings });
      await refused(unnamed, 400, '[inference_id] is missing, and several inference endpoints rerank: [');
      await ask('DELETE', path);
    });

    it('ranks no more texts than its endpoint does', async () => {
      const path = `/_inference/rerank/${of('ranker')}/_update`;
      await ask('PUT', path, { task_settings: { top_n: 12 } });
      expect(await found('pages', { retriever: reranker(), size: 12 })).toHaveLength(12);
      expect(await found('pages', { retriever: reranker(), from: 10 })).toHaveLength(2);
      await refused(
        { retriever: reranker({ rank_window_size: 20 }) },
        400,
        'configured to return the top [12] results',
      );
      await ask('PUT', path, { task_settings: { top_n: 1000 } });
    });

    it('refuses what it cannot rank', async () => {
      await refused({ retriever: reranker({ inference_id: of('nobody') }) }, 404, 'not found');
      const sparse = { inference_id: '.elser-2-elasticsearch' };
      await refused(
        { retriever: reranker(sparse) },
        400,
        'makes sparse vectors and cannot be used for the task [rerank]',
      );
      const narrow = { retriever: reranker({ rank_window_size: 3 }) };
      await refused(narrow, 400, '[text_similarity_reranker] requires [rank_window_size: 3] be greater');
      await refused(
        { retriever: reranker({ field: undefined, retriever: undefined }) },
        400,
        'Required [retriever, field]',
      );
      await refused({ retriever: reranker({ inference_text: '' }) }, 400, '[inference_text] cannot be empty');
      await refused({ retriever: reranker({ inference_id: '' }) }, 400, '[inference_id] must not be empty');
      await refused({ retriever: reranker({ unknown: 1 }) }, 400, '[text_similarity_reranker] unknown field [unknown]');
    });
  });

  const words = { standard: { query: { match: { body: 'red coin' } }, _name: 'words' } };
  const few = { standard: { query: { constant_score: { filter: { range: { n: { lte: 1 } } } } } } };

  it('explains the scores of reciprocal ranks', async () => {
    const rrf = { retrievers: [words, { retriever: few, weight: 2 }], rank_constant: 10, rank_window_size: 10 };
    for (const query of ['', '?explain=true']) {
      const { hits } = await search('docs', { retriever: { rrf }, explain: query === '' }, query);
      const ranked = ids(await found('docs', { query: words.standard.query }));
      for (const { _id, _score, _explanation: it } of hits.hits as Hit[]) {
        const ranks = [ranked.indexOf(_id) + 1, Number(_id) <= 1 ? Number(_id) + 1 : 0];
        expect(it.value).toBe(_score);
        expect(it.description).toMatch(
          `computed for initial ranks [${ranks.join(', ')}] with rankConstant: [10] and weights [1.0, 2.0] as sum of`,
        );
        expect(it.details.map((one: any) => one.value)).toEqual(ranks);
        const [first, second] = it.details;
        const rank = String(ranks[0]);
        expect(first.description).toContain(
          ranks[0] === 0
            ? 'not found in query at index [0] [words]'
            : `[1 / (${rank} + 10)], for matching query with score`,
        );
        if (ranks[0] !== 0) expect(first.details[0].value).toBeGreaterThan(0);
        if (ranks[1] !== 0) expect(second.description).toContain('* weight [2.0], for matching');
        if (ranks[1] !== 0) expect(second.details[0].value).toBe(1);
      }
      expect((hits.hits as Hit[]).length).toBeGreaterThan(3);
    }
    expect((await found('docs', { retriever: { rrf }, explain: false }))[0]).not.toHaveProperty('_explanation');
  });

  it('explains sums of scores, of fusions in fusions, and of hits of rank', async () => {
    const rrf = { rrf: { retrievers: [words, few], rank_window_size: 10 } };
    const lists = [
      { retriever: words, weight: 3, normalizer: 'minmax' },
      { retriever: rrf, weight: 1 },
    ];
    const hits = await found('docs', { retriever: { linear: { retrievers: lists } }, explain: true });
    for (const { _score, _explanation: it } of hits) {
      expect(it.value).toBe(_score);
      expect(it.description).toContain('weighted linear combination score: [');
      expect(it.description).toContain('and weights [3.0, 1.0] as sum of (weight[i] * score[i])');
      const sum = it.details.reduce((all: number, one: any) => all + one.value, 0);
      expect(sum).toBeCloseTo(_score, 5);
      expect(it.details[1].details[0].description).toMatch(/^rrf score: \[/);
      expect(it.details[1].details[0].value).toBe(it.details[1].value);
    }
    expect(hits[0]?._explanation.details[0].description).toContain(
      'computed as [3.0 * 1.0] using score normalizer [minmax]',
    );
    const [hit] = await found('docs', {
      sub_searches: [{ query: words.standard.query }, { query: few.standard.query }],
      ...{ rank: { rrf: {} }, explain: true, post_filter: { term: { n: 1 } } },
    });
    expect([hit?._id, hit?._explanation.details.map((it: any) => it.value)]).toEqual(['1', [1, 1]]);
  });

  it('names the lists that a hit is in', async () => {
    const hits = await found('docs', { retriever: { rrf: { retrievers: [words, few] } } });
    const named = hits.filter((hit) => hit.matched_queries?.includes('words')).map(({ _id }) => _id);
    expect(named.sort()).toEqual(ids(await found('docs', { query: words.standard.query })).sort());
  });

  it('profiles each list', async () => {
    const lists = { retrievers: [words, few] };
    const { profile } = await search('docs', { retriever: { rrf: lists }, profile: true });
    const queries = profile.shards.flatMap((shard: any) => shard.searches.flatMap((it: any) => it.query));
    expect(queries.length).toBeGreaterThanOrEqual(2);
    for (const { type, time_in_nanos: took } of queries) {
      expect(typeof type).toBe('string');
      expect(took).toBeGreaterThanOrEqual(0);
    }
    expect(queries.map((it: any) => it.description)).toContainEqual(expect.stringMatching(/body:.*coin/));
    expect(queries.map((it: any) => it.description)).toContainEqual(expect.stringContaining('n:['));
    expect(Object.keys(profile.phases).sort()).toEqual(
      ['explain', 'fetch', 'fuse', 'highlight', 'infer', 'queue', 'search', 'tokenize'].map((it) => `${it}_in_nanos`),
    );
    for (const phase of ['search', 'fuse', 'fetch']) expect(profile.phases[`${phase}_in_nanos`]).toBeGreaterThan(0);
    expect([profile.phases.explain_in_nanos, profile.phases.infer_in_nanos]).toEqual([0, 0]);
    const explained = await search('docs', { retriever: { rrf: lists }, profile: true, explain: true });
    expect(explained.profile.phases.explain_in_nanos).toBeGreaterThan(0);
    expect(await search('docs', { retriever: { rrf: lists } })).not.toHaveProperty('profile');
  });

  it('shows further hits of each group', async () => {
    const lists = { retrievers: [words, all], rank_window_size: 10 };
    const first = (number: number) => ({ name: `first ${number}`, size: number, sort: [{ n: 'asc' }], _source: ['n'] });
    const body = {
      retriever: { rrf: lists },
      collapse: { field: 'body.whole', inner_hits: [first(1), { name: 'best', _source: false }] },
    };
    const index = `${of('docs')},${of('groups')}`;
    const groups = of('groups');
    await ask('PUT', `/${groups}`, {
      mappings: {
        properties: { n: { type: 'integer' }, body: { type: 'text', fields: { whole: { type: 'keyword' } } } },
      },
    });
    const doc = (n: number, more: object) => ask('PUT', `/${groups}/_doc/g${n}?refresh=true`, { n, ...more }, 201);
    await doc(10, { body: 'green coin' });
    await doc(11, { body: 'green coin' });
    await doc(12, {});
    const { hits } = await ask('POST', `/${index}/_search`, body);
    const shown = (hits.hits as any[]).map(({ fields, inner_hits: inner }) => ({
      group: fields?.['body.whole']?.[0] ?? null,
      total: inner.best.hits.total.value,
      ids: inner['first 1'].hits.hits.map((hit: Hit) => hit._id),
      source: inner['first 1'].hits.hits[0]._source,
      best: inner.best.hits.hits.length,
    }));
    expect(shown).toContainEqual({ group: 'green coin', total: 3, ids: ['1'], source: { n: 1 }, best: 3 });
    expect(shown).toContainEqual({ group: null, total: 2, ids: ['3'], source: { n: 3 }, best: 2 });
    expect(shown).toContainEqual({ group: 'red stamp', total: 1, ids: ['2'], source: { n: 2 }, best: 1 });
    expect(shown).toHaveLength(6);
    const behind = await ask('POST', `/${index}/_search`, { ...body, post_filter: { range: { n: { gte: 11 } } } });
    expect(behind.hits.hits.map((hit: any) => hit.inner_hits.best.hits.total.value)).toEqual([1, 1]);
    for (const [inner, reason] of [
      [{}, 'inner_hits must have a [name]'],
      [[first(1), first(1)], 'already contains an entry for key [first 1]'],
      [{ name: 'a', query: {} }, '[inner_hits] unknown field [query]'],
    ] as const)
      await refused({ ...body, collapse: { field: 'n', inner_hits: inner } }, 400, reason);
    await ask('DELETE', `/${groups}`);
  });

  describe('pinned', () => {
    const pinned = (more: object, retriever: object = { standard: {} }) => ({ pinned: { retriever, ...more } });

    it('ranks chosen documents above the hits of its list, in their order', async () => {
      const hits = await found('docs', { retriever: pinned({ ids: ['4', 'nothing', '2'] }) });
      expect(ids(hits)).toEqual(['4', '2', '0', '1', '3', '5']);
      expect(hits[1]?._score).toBeGreaterThan(1e38);
      expect(hits[0]?._score).toBeGreaterThan(hits[1]?._score ?? NaN);
      expect(ids(await found('docs', { query: { pinned: { ids: ['4', '2'], organic: { term: { n: 5 } } } } }))).toEqual(
        ['4', '2', '5'],
      );
      const documents = [{ _index: of('pages'), _id: '3' }, { _id: '1' }];
      const filter = { term: { n: 0 } };
      const both = await ask('POST', `/${of('docs')},${of('pages')}/_search`, {
        retriever: pinned({ docs: documents, filter }),
        size: 3,
      });
      expect(both.hits.hits[0]).toMatchObject(documents[0] ?? {});
      expect(ids(both.hits.hits)).toEqual(['3', '1', '1']);
      const above = { rrf: { retrievers: [pinned({ ids: ['5'] }), few], rank_constant: 1, rank_window_size: 10 } };
      expect(ids(await found('docs', { retriever: above }))[0]).toBe('0');
    });

    it('refuses what it cannot pin', async () => {
      const many = Array.from({ length: 101 }, (_, n) => String(n));
      const sorted = { standard: { query: { match_all: {} }, sort: [{ n: 'asc' }] } };
      for (const [more, reason] of [
        [{}, 'Required one of fields [ids, docs]'],
        [{ ids: ['1'], docs: [{ _id: '1' }] }, 'The following fields are not allowed together: [ids, docs]'],
        [{ ids: many }, 'Max of 100 ids exceeded: 101 provided.'],
        [{ docs: [{ _index: 'a' }] }, 'Required [_id]'],
        [{ ids: ['1'], rank_window_size: 3 }, '[pinned] requires [rank_window_size: 3] be greater'],
        [{ ids: ['1'], retriever: undefined }, 'Required [retriever]'],
      ] as const)
        await refused({ retriever: pinned(more, few) }, 400, reason);
      await refused({ retriever: pinned({ ids: ['1'] }, sorted) }, 400, 'only supports sorting by score');
    });
  });

  describe('rescorer', () => {
    const byNumber = (more: object = {}, passes: object = {}) => ({
      rescore: {
        window_size: 10,
        query: { rescore_query: { function_score: { field_value_factor: { field: 'n' } } }, ...passes },
      },
      ...more,
    });
    const rescorer = (more: object = byNumber()) => ({ rescorer: { retriever: words, ...more } });

    it('scores the hits of a list again, in the arithmetic of a search', async () => {
      for (const mode of ['total', 'multiply', 'avg', 'max', 'min']) {
        const more = byNumber({}, { score_mode: mode, query_weight: 2, rescore_query_weight: 0.5 });
        const plain = await found('docs', { query: words.standard.query, ...more });
        const hits = await found('docs', { retriever: rescorer(more) });
        expect(ids(hits), mode).toEqual(ids(plain));
        hits.forEach(({ _score }, at) => expect(_score, mode).toBeCloseTo(plain[at]?._score ?? NaN, 4));
      }
      const fusion = { rrf: { retrievers: [words, few], rank_window_size: 10 } };
      const sums = new Map((await found('docs', { retriever: fusion })).map(({ _id, _score }) => [_id, _score]));
      const above = await found('docs', { retriever: rescorer({ ...byNumber(), retriever: fusion }) });
      expect(above).toHaveLength(sums.size);
      for (const { _id, _score } of above) expect(_score).toBeCloseTo((sums.get(_id) ?? NaN) + Number(_id), 4);
      expect(ids(above)).toEqual([...sums.keys()].sort().reverse());
      const below = { rrf: { retrievers: [rescorer()], rank_constant: 1 } };
      expect(ids(await found('docs', { retriever: below }))).toEqual(
        ids(await found('docs', { retriever: rescorer() })),
      );
    });

    it('explains what a score was made of', async () => {
      const [first] = (await search('docs', { retriever: rescorer(), explain: true })).hits.hits as Hit[];
      const { value, description, details } = first?._explanation ?? {};
      expect(value).toBeCloseTo(first?._score ?? NaN, 5);
      const shown = details[0].details[0].value;
      expect(description).toContain(`weighted linear combination score: [${String(shown)}]`);
      expect(shown).toBeCloseTo(first?._score ?? NaN, 5);
      const retriever = { rrf: { retrievers: [words, few], rank_window_size: 10 } };
      const above = await search('docs', { retriever: rescorer({ ...byNumber(), retriever }), explain: true });
      // The number of the first document adds nothing to its score.
      const changed = (above.hits.hits as Hit[]).filter(({ _id }) => _id !== '0');
      expect(changed.length).toBeGreaterThan(1);
      for (const { _score, _explanation } of changed) {
        const [of] = _explanation.details[0].details;
        expect([of.value, of.description]).toEqual([expect.closeTo(_score, 4), 'score after rescoring, of:']);
        expect(of.details[0].description).toContain('rrf score: [');
      }
    });

    it('scores more hits again than a query has room for', async () => {
      const index = of('many');
      const lines = Array.from(
        { length: 1100 },
        (_, n) =>
          `${JSON.stringify({ index: { _index: index, _id: String(n) } })}\n${JSON.stringify({ n, up: n % 1000 })}\n`,
      );
      await ask('POST', '/_bulk?refresh=true', lines.join(''));
      const by = (field: string, factor: number) => ({ function_score: { field_value_factor: { field, factor } } });
      const rescore = { window_size: 1100, query: { query_weight: 0, rescore_query: by('up', 1) } };
      const retriever = { rescorer: { retriever: { standard: { query: by('n', 1) } }, rescore } };
      const { hits } = await search('many', { retriever, size: 1100 });
      const scores = (hits.hits as Hit[]).map(({ _id, _score }) => [Number(_id) % 1000, _score]);
      expect(scores).toHaveLength(1100);
      expect(scores.every(([up, score]) => up === score)).toBe(true);
      expect(scores.map(([up]) => up)).toEqual(scores.map(([up]) => up ?? 0).sort((one, other) => other - one));
      const { rescorer: asked } = retriever;
      const wider = { rescorer: { ...asked, rescore: { ...rescore, window_size: 10_001 } } };
      await refused({ retriever: wider }, 400, '10000');
    }, 180_000);

    it('has a filter, a lowest score and several passes, whose narrowest is its window', async () => {
      const filtered = await found('docs', { retriever: rescorer(byNumber({ filter: { range: { n: { gte: 2 } } } })) });
      expect(filtered.every(({ _id }) => Number(_id) >= 2)).toBe(true);
      const least = await found('docs', { retriever: rescorer(byNumber({ min_score: 4 })) });
      expect(least.length).toBeGreaterThan(0);
      expect(least.every(({ _score }) => _score >= 4)).toBe(true);
      const { rescore } = byNumber();
      const two = rescorer({ rescore: [rescore, { ...rescore, window_size: 2 }] });
      expect(await found('docs', { retriever: two, size: 2 })).toHaveLength(2);
      await refused({ retriever: two, size: 3 }, 400, '[rescorer] requires [rank_window_size: 2] be greater');
      await refused({ retriever: { rescorer: { retriever: words } } }, 400, 'Required [rescore]');
      await refused({ retriever: { rescorer: { rescore } } }, 400, 'Required [retriever]');
    });
  });

  it('takes suggestions and boosts of indices beside a fusion', async () => {
    const suggest = { fix: { text: 'stmps', term: { field: 'body' } } };
    const answer = await search('docs', { retriever: { rrf: { retrievers: [words, few] } }, suggest });
    expect(answer.suggest.fix[0].options.map((it: any) => it.text)).toContain('stamps');
    const linear = { linear: { retrievers: [{ retriever: few }] } };
    const body = { retriever: linear, indices_boost: [{ [of('pages')]: 3 }, { [of('docs')]: 2 }] };
    const { hits } = await ask('POST', `/${of('docs')},${of('pages')}/_search`, body);
    expect(hits.hits.map((hit: Hit) => hit._score)).toEqual([3, 3, 2, 2]);
  });

  describe('_rank_eval', () => {
    const evaluate = (requests: object[], metric: object, index = of('docs')) =>
      ask('POST', `/${index}/_rank_eval`, { requests, metric });
    const rated = (...ratings: [string, number][]) =>
      ratings.map(([_id, rating]) => ({ _index: of('docs'), _id, rating }));
    const match = (body: string) => ({ query: { match: { body } } });

    it('judges the first hits of searches, whatever finds them', async () => {
      const expected = ids(await found('docs', { query: words.standard.query }));
      const best = (await order()).map(({ index }) => String(index));
      const requests = [
        { id: 'words', request: match('red coin'), ratings: rated([expected[0] ?? '', 2], [expected[1] ?? '', 1]) },
        {
          id: 'fused',
          request: { retriever: { rrf: { retrievers: [words] } } },
          ratings: rated([expected[1] ?? '', 1]),
        },
        {
          id: 'model',
          request: { retriever: reranker(), size: 1 },
          ratings: rated([best[2] ?? '', 1]),
          summary_fields: ['n'],
        },
        {
          id: 'sorted',
          request: { query: { match_all: {} }, sort: [{ n: 'desc' }] },
          ratings: rated(['5', 1], ['9', 1]),
        },
        { id: 'none', request: match('nothing'), ratings: rated(['1', 1]) },
      ];
      const first = await evaluate(requests, { mean_reciprocal_rank: { k: 5 } });
      expect(first.failures).toEqual({});
      const scores = Object.entries(first.details).map(([id, it]: [string, any]) => [id, it.metric_score]);
      const sum = 1 + 1 / 2 + 1 / 3 + 1 + 0;
      expect(Object.fromEntries(scores)).toEqual({
        words: 1,
        fused: expect.closeTo(1 / 2, 6),
        model: expect.closeTo(1 / 3, 6),
        sorted: 1,
        none: 0,
      });
      expect(first.metric_score).toBeCloseTo(sum / 5, 6);
      expect(first.details.model.hits.map(({ hit }: any) => hit._source)).toEqual(
        best.slice(0, 5).map((n) => ({ n: Number(n) })),
      );
      expect(first.details.fused.hits[0].hit._score).toBeCloseTo(1 / 61, 6);
      expect(first.details.fused.unrated_docs[0]).toEqual({ _index: of('docs'), _id: expected[0] });
      expect(first.details.sorted.hits[0]).toMatchObject({ hit: { _id: '5', sort: [5] }, rating: 1 });
      const recall = await evaluate(requests, { recall: { k: 1 } });
      expect([recall.details.words.metric_score, recall.details.sorted.metric_score]).toEqual([1 / 2, 1 / 2]);
      const gain = await evaluate(requests.slice(0, 1), { dcg: { k: 2, normalize: true } });
      expect(gain.details.words.metric_score).toBeCloseTo(1, 6);
    });

    it('tells of a search that fails, and judges the others', async () => {
      const bad = { id: 'bad', request: { retriever: reranker({ inference_id: of('nobody') }) }, ratings: [] };
      const good = { id: 'good', request: match('red'), ratings: rated(['2', 1]) };
      const answer = await evaluate([bad, good], { precision: { k: 1 } });
      expect([answer.metric_score, Object.keys(answer.details)]).toEqual([1, ['good']]);
      expect(answer.failures.bad.error.type).toBe('resource_not_found_exception');
      const alone = await evaluate([bad], { precision: {} });
      expect([alone.metric_score, alone.details]).toEqual([null, {}]);
      const nowhere = await server.request('POST', `/${of('gone')}/_rank_eval`, {
        requests: [good],
        metric: { precision: {} },
      });
      expect([nowhere.status, nowhere.body.error.type]).toEqual([404, 'index_not_found_exception']);
    });

    it.each([
      ['no metric', { requests: [{ id: 'a', request: {}, ratings: [] }] }, 'no evaluation metric is provided'],
      [
        'no requests',
        { requests: [], metric: { precision: {} } },
        'no search requests with rated results are provided',
      ],
      ['templates', { templates: [{ id: 'a' }], metric: { precision: {} } }, '[templates] are not supported'],
      [
        'a template',
        { requests: [{ id: 'a', template_id: 't', ratings: [] }], metric: { precision: {} } },
        '[template_id] and',
      ],
      [
        'aggregations',
        { requests: [{ id: 'a', request: { aggs: { a: {} } }, ratings: [] }], metric: { precision: {} } },
        'Query in rated requests should not contain aggregations.',
      ],
      [
        'a search that is none',
        { requests: [{ id: 'a', ratings: [] }], metric: { precision: {} } },
        'Either template_id or request',
      ],
    ])('refuses %s', async (_what, body, expected) => {
      expect(JSON.stringify(await ask('POST', `/${of('docs')}/_rank_eval`, body, 400))).toContain(expected);
    });
  });
});
