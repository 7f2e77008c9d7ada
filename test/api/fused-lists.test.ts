// Fused lists through HTTP: how far each is read, how many hits are counted, and what explains a hit behind the first window.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

interface Explanation {
  readonly value: number;
  readonly description: string;
  readonly details: readonly Explanation[];
}
interface Found {
  readonly _id: string;
  readonly _score: number;
  readonly _explanation: Explanation;
}

const DENSE = { type: 'semantic_text', inference_id: '.all-minilm-l6-v2-elasticsearch' };
const COUNT = 200;

let server: RunningServer;
const done = async (method: string, path: string, body?: unknown): Promise<any> => {
  const answer = await server.request(method, path, body);
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.body;
};
const search = (retriever: object, more: object = {}, index = 'numbers') =>
  done('POST', `/${index}/_search`, { retriever, _source: false, ...more });
const ids = (answer: any): string[] => (answer.hits.hits as Found[]).map((hit) => hit._id);
const total = async (retriever: object, more: object = {}, index?: string): Promise<[number, string]> => {
  const { value, relation } = (await search(retriever, more, index)).hits.total;
  return [value, relation];
};
const load = (index: string, documents: object[]) =>
  done(
    'POST',
    `/${index}/_bulk?refresh=true`,
    documents
      .flatMap((document, at) => [{ index: { _id: String(at + 1) } }, document])
      .map((line) => `${JSON.stringify(line)}\n`)
      .join(''),
  );
const list = (query: object, more: object = {}) => ({ standard: { query, ...more } });
const scored = (field: string, more: object = {}) => list({ function_score: { field_value_factor: { field } } }, more);
const rrf = (retrievers: object[], more: object = {}) => ({ rrf: { retrievers, ...more } });
const linear = (retrievers: object[], more: object = {}) => ({
  linear: { retrievers: retrievers.map((retriever) => ({ retriever })), ...more },
});
const knn = (more: object = {}) => ({ knn: { field: 'vector', query_vector: [0], ...more } });

beforeAll(async () => {
  server = await startServer();
  const properties = {
    up: { type: 'integer' },
    down: { type: 'integer' },
    mixed: { type: 'integer' },
    kind: { type: 'keyword' },
    vector: { type: 'dense_vector', dims: 1, similarity: 'l2_norm' },
  };
  for (const index of ['numbers', 'others', 'few']) await done('PUT', `/${index}`, { mappings: { properties } });
  const numbers = Array.from({ length: COUNT }, (_, at) => ({
    up: at + 1,
    down: COUNT - at,
    mixed: ((at + 1) * 37) % 211,
    kind: at % 2 ? 'even' : 'odd',
    vector: [at],
  }));
  await load('numbers', numbers);
  await load('others', numbers.slice(0, 50));
  await load('few', numbers.slice(0, 15));
  await done('PUT', '/animals', { mappings: { properties: { words: { type: 'text' }, meaning: DENSE } } });
  const animals = Array.from({ length: 60 }, (_, n) => {
    const text = `animal ${'very '.repeat(n % 7)}${['cat', 'dog', 'whale', 'ant'][n % 4] ?? ''} ${String(n)}`;
    return { words: text, meaning: text };
  });
  await load('animals', animals);
});
afterAll(() => server.stop());

describe('a lowest score', () => {
  it('of the address is refused beside any retriever, as that of the body is', async () => {
    const sections = [
      ['min_score=1', 'min_score'],
      ['sort=up', 'sort'],
      ['terminate_after=3', 'terminate_after'],
      ['q=up:1', 'query'],
    ];
    for (const retriever of [
      list({ match_all: {} }),
      knn({ k: 5, num_candidates: 5 }),
      rrf([list({ match_all: {} }), knn()]),
    ]) {
      for (const [parameter, section] of sections) {
        const answer = await server.request('POST', `/numbers/_search?${parameter!}`, { retriever });
        const refusal = expect.stringContaining(`cannot specify [retriever] and [${section!}]`) as unknown;
        expect([answer.status, answer.text], parameter).toEqual([400, refusal]);
      }
    }
  });

  it('of a list leaves out what aggregations count', async () => {
    const aggs = { seen: { stats: { field: 'up' } } };
    const counted = async (...lists: object[]): Promise<[number, number]> => {
      const { seen } = (await search(linear(lists), { size: 0, aggs })).aggregations;
      return [seen.count, seen.min];
    };
    const few = scored('up', { min_score: COUNT - 4 });
    expect(await counted(few)).toEqual([5, COUNT - 4]);
    expect(await counted(few, scored('down', { min_score: COUNT - 1 }))).toEqual([7, 1]);
    // A vector at a distance of 1 scores 1 / 2.
    expect(await counted(few, knn({ k: 10, num_candidates: 10, min_score: 0.4 }))).toEqual([7, 1]);
    expect(await counted(few, linear([scored('down', { min_score: COUNT })]))).toEqual([6, 1]);
  });
});

describe('a list by dense vectors below a fusion', () => {
  it('is as long as the window, whatever the page', async () => {
    const semantic = rrf([list({ semantic: { field: 'meaning', query: 'animal' } })], { rank_window_size: 50 });
    for (const from of [0, 20, 40])
      expect(ids(await search(semantic, { from }, 'animals')), String(from)).toHaveLength(10);
    expect(await total(semantic, {}, 'animals')).toEqual([50, 'eq']);
    const neighbours = rrf([knn()], { rank_window_size: 30 });
    expect(ids(await search(neighbours, { from: 20 }))).toHaveLength(10);
    expect(await total(neighbours)).toEqual([30, 'eq']);
    // As many as are candidates, if the request says how many these are.
    expect(await total(rrf([knn({ num_candidates: 20 })], { rank_window_size: 30 }))).toEqual([20, 'eq']);
    // A query finds half as many more, as it does in Elasticsearch.
    const clause = rrf([list(knn())], { rank_window_size: 30 });
    expect(await total(clause)).toEqual([45, 'eq']);
    // The inner window is that of the inner list.
    const inner = rrf([rrf([knn()], { rank_window_size: 40 })], { rank_window_size: 30 });
    expect(await total(inner)).toEqual([40, 'eq']);
    // What the request says stays.
    expect(await total(rrf([knn({ k: 7, num_candidates: 9 })], { rank_window_size: 30 }))).toEqual([7, 'eq']);
  });

  it('is read on for later pages, which share no document', async () => {
    const meaning = { match: { meaning: 'animal dog' } };
    const retriever = rrf([list(meaning), list({ match: { words: 'very whale' } })]);
    const pages: string[] = [];
    for (let from = 0; from < 60; from += 5) pages.push(...ids(await search(retriever, { from, size: 5 }, 'animals')));
    expect(pages).toHaveLength(60);
    expect(new Set(pages).size).toBe(60);
  });
});

describe('the short form with fields', () => {
  it.each([
    ['rrf', rrf],
    ['linear', linear],
  ])('is read on until the groups or the hits of a page are found: %s', async (name, fused) => {
    const index = `grouped-${name}`;
    // Nine groups, of which three have four fifths of the documents, and all of the first ones.
    await done('PUT', `/${index}`, {
      mappings: { properties: { group: { type: 'keyword' }, up: { type: 'integer' }, down: { type: 'integer' } } },
    });
    await load(
      index,
      Array.from({ length: 60 }, (_value, at) => ({
        group: `g${String(at % 10 === 5 ? 3 + (at - 5) / 10 : at % 3)}`,
        ...{ up: at + 1, down: (at * 7) % 61 },
      })),
    );
    const lists = fused([scored('up'), scored('down')]);
    const pages = async (more: object, shown: (hit: any) => string): Promise<string[]> => {
      const all: string[] = [];
      for (let from = 0; from < 60; from += 3) {
        const page = (await search(lists, { from, size: 3, ...more }, index)).hits.hits as unknown[];
        all.push(...page.map(shown));
        if (page.length < 3) break;
      }
      return all;
    };
    const groups = await pages({ collapse: { field: 'group' } }, (hit) => hit.fields.group[0] as string);
    expect(groups).toHaveLength(9);
    expect(new Set(groups).size).toBe(9);
    const once = await search(lists, { size: 9, collapse: { field: 'group' } }, index);
    expect(groups).toEqual(once.hits.hits.map((hit: any) => hit.fields.group[0] as string));

    const few = { post_filter: { terms: { group: ['g4', 'g7'] } } };
    const found = await pages(few, (hit) => hit._id as string);
    expect([...found].sort()).toEqual(['16', '46']);
    // A window that is named is the end of the list.
    const named = await search(
      fused([scored('up'), scored('down')], { rank_window_size: 3 }),
      { size: 3, ...few },
      index,
    );
    expect(named.hits.hits.length).toBeLessThan(2);
    await done('DELETE', `/${index}`);
  });

  it('searches a field for what it is in each index', async () => {
    await done('PUT', '/meanings', { mappings: { properties: { body: DENSE, title: { type: 'text' } } } });
    await done('PUT', '/texts', { mappings: { properties: { body: { type: 'text' } } } });
    await load('meanings', [{ body: 'Bread rises because of the yeast in its dough.', title: 'baking' }]);
    await load('texts', [{ body: 'The yeast makes gas.' }, { body: 'Lava flows.' }]);
    const found = async (fields: string[], more: object = {}, kind = 'rrf') => {
      const answer = await search({ [kind]: { query: 'yeast', fields, ...more } }, {}, 'meanings,texts');
      return (answer.hits.hits as { _index: string; _id: string }[]).map((hit) => `${hit._index}/${hit._id}`).sort();
    };
    expect(await found(['body'])).toEqual(['meanings/1', 'texts/1']);
    expect(await found(['body^2', 'title'])).toEqual(['meanings/1', 'texts/1']);
    expect(await found(['bo*'])).toEqual(['meanings/1', 'texts/1']);
    for (const normalizer of ['zscore', 'calibrated']) {
      expect(await found(['body'], { normalizer }, 'linear')).toEqual(['meanings/1', 'texts/1']);
    }
  });
});

describe('hits.total of a fusion', () => {
  it('counts the hits that reach the lowest score, as far as it knows', async () => {
    const retriever = linear([scored('up')], { min_score: 21 });
    expect(await total(retriever)).toEqual([10, 'gte']);
    expect(await total(retriever, { from: 10 })).toEqual([100, 'gte']);
    expect(await total(retriever, { from: 100 })).toEqual([180, 'eq']);
    const windowed = linear([scored('up')], { min_score: 21, rank_window_size: COUNT });
    for (const from of [0, 10, 100]) expect(await total(windowed, { from })).toEqual([180, 'eq']);
    // A lowest score that the first window crosses tells nothing of what lies behind, as scores grow with the window.
    expect(await total(linear([scored('up')], { min_score: 195 }))).toEqual([6, 'gte']);
    expect(await total(linear([list({ term: { up: 7 } }), list({ term: { up: 8 } })], { min_score: 0.1 }))).toEqual([
      2,
      'eq',
    ]);
  });

  it('leaves out what is below the lowest score of a list', async () => {
    const high = scored('up', { min_score: 151 });
    expect(await total(rrf([high, scored('down', { min_score: 191 })], { rank_window_size: 10 }))).toEqual([60, 'eq']);
    expect(await total(rrf([high, list({ term: { kind: 'odd' } })], { rank_window_size: 10 }))).toEqual([125, 'eq']);
    // A lowest score is compared after the factor of an index: what is above 75 reaches 151.
    const boosted = { indices_boost: [{ numbers: 2 }] };
    expect(await total(rrf([high, scored('down', { min_score: 381 })], { rank_window_size: 10 }), boosted)).toEqual([
      125 + 10,
      'eq',
    ]);
    const near = { ...knn({ k: 50, num_candidates: 50 }).knn, min_score: 0.01 };
    // 1 / (1 + d²) is at least 0.01 up to a distance of 9.
    expect(await total(rrf([{ knn: near }, high], { rank_window_size: 10 }))).toEqual([60, 'eq']);
  });

  it('leaves out what is below the lowest score of a fusion below', async () => {
    const inner = linear([scored('up')], { min_score: 151, rank_window_size: 100 });
    expect(await total(rrf([inner], { rank_window_size: 10 }))).toEqual([50, 'eq']);
    const odd = list({ term: { kind: 'odd' } });
    expect(await total(rrf([inner, odd], { rank_window_size: 10 }))).toEqual([125, 'eq']);
    // Without a window of its own, the fusion below is read as far as the one above, and there may be more.
    const open = linear([scored('up')], { min_score: 151 });
    expect(await total(rrf([open, odd], { rank_window_size: 10 }))).toEqual([105, 'gte']);
    const filtered = { post_filter: { range: { up: { gt: 100 } } } };
    expect(await total(rrf([inner, odd], { rank_window_size: 10 }), filtered)).toEqual([75, 'eq']);
  });

  it('is exact where the lists have found every document that passes the filter of all', async () => {
    const nearest = { semantic: { field: 'meaning', query: 'animal' } };
    const whales = { match: { words: 'whale' } };
    const animals = [list(nearest), list({ match: { words: 'animal' } })];
    // The neighbours are as many as the page needs, and more may follow, but words find every animal.
    for (const fused of [rrf(animals), linear(animals), rrf([rrf(animals)])])
      expect(await total(fused, {}, 'animals')).toEqual([60, 'eq']);
    expect(await total(rrf([knn(), list({ match_all: {} })]))).toEqual([COUNT, 'eq']);
    expect(await total(rrf([knn(), list({ match_all: {} })]), {}, 'numbers,others')).toEqual([COUNT + 50, 'eq']);
    expect(await total(rrf(animals, { filter: whales }), {}, 'animals')).toEqual([15, 'eq']);
    expect(await total(rrf(animals), { post_filter: whales }, 'animals')).toEqual([15, 'eq']);
    const odd = { term: { kind: 'odd' } };
    expect(await total(rrf([knn(), list({ match_all: {} })], { filter: odd }))).toEqual([COUNT / 2, 'eq']);
    // More neighbours may follow, or the lists have other filters.
    const [value, relation] = await total(rrf([list(nearest), list(whales)]), {}, 'animals');
    expect(value).toBeLessThan(60);
    expect(relation).toBe('gte');
    expect(await total(rrf([knn({ filter: odd }), list(odd)]))).toEqual([COUNT / 2, 'gte']);
  });

  it('counts the neighbours that there are, over all indices', async () => {
    const hundred = knn({ k: 100, num_candidates: 100 });
    const tracked = { track_total_hits: 50 };
    expect(await total(rrf([hundred], { rank_window_size: 10 }), tracked, 'few')).toEqual([15, 'eq']);
    expect(await total(rrf([hundred], { rank_window_size: 10 }), tracked)).toEqual([50, 'gte']);
    const twenty = knn({ k: 20, num_candidates: 20 });
    for (const rank_window_size of [10, 50]) {
      expect(await total(rrf([twenty], { rank_window_size }), {}, 'numbers,others')).toEqual([20, 'eq']);
      // The ten nearest of each index are 1 to 10, and the word finds 21 of each.
      const words = list({ range: { up: { gte: 5, lte: 25 } } });
      expect(await total(rrf([twenty, words], { rank_window_size }), {}, 'numbers,others')).toEqual([50, 'eq']);
    }
  });

  it('is that of the retriever alone: no lowest score stands beside it', async () => {
    const retriever = rrf([scored('up')]);
    const answer = await server.request('POST', '/numbers/_search?min_score=5', { retriever });
    expect([answer.status, answer.text]).toEqual([
      400,
      expect.stringContaining('cannot specify [retriever] and [min_score]'),
    ]);
  });
});

describe('a hit behind the first window', () => {
  it('is explained by the window that it comes from', async () => {
    const place = (field: string): Map<string, number> => {
      const value = (n: number) => (field === 'up' ? n : (n * 37) % 211);
      const numbers = Array.from({ length: COUNT }, (_, at) => at + 1).sort((a, b) => value(b) - value(a));
      return new Map(numbers.map((n, at) => [String(n), at + 1]));
    };
    const places = [place('up'), place('mixed')];
    const score = (id: string, window: number): number =>
      places.map((of) => of.get(id) ?? Infinity).reduce((sum, rank) => sum + (rank <= window ? 1 / (60 + rank) : 0), 0);
    let capped = 0;
    for (const [from, window] of [
      [0, 10],
      [10, 100],
      [20, 100],
    ] as const) {
      const hits = (await search(rrf([scored('up'), scored('mixed')]), { from, explain: true })).hits.hits as Found[];
      expect(hits).toHaveLength(10);
      for (const { _id, _score, _explanation } of hits) {
        expect(_explanation.value).toBe(_score);
        const isCapped = !_explanation.description.startsWith('rrf score');
        capped += Number(isCapped);
        const fused = isCapped ? (_explanation.details[0] as Explanation) : _explanation;
        if (isCapped) {
          expect(_explanation.description).toContain('no higher than the hit before');
          expect(fused.value).toBeGreaterThan(_score);
        }
        expect(fused.value, _id).toBeCloseTo(score(_id, window), 6);
        const told = Number(/^rrf score: \[([^\]]+)\]/.exec(fused.description)?.[1]);
        expect(told, _id).toBeCloseTo(fused.value, 6);
        const ranks = fused.details.map((detail) => detail.value).filter((rank) => rank > 0);
        expect(ranks, _id).toEqual(places.map((of) => of.get(_id)).filter((rank) => (rank ?? Infinity) <= window));
      }
    }
    expect(capped).toBeGreaterThan(0);
  });

  it('is held against the lowest score before it is shown', async () => {
    const of = (count: number, a: number, b: number) => Array.from({ length: count }, () => ({ a, b }));
    await load('late', [...of(5, 200, 0), ...of(5, 120, 0), ...of(1, 100, 100), ...of(10, 0, 110)]);
    const retriever = linear([scored('a'), scored('b')], { min_score: 150 });
    expect(ids(await search(retriever, {}, 'late'))).toEqual(['1', '2', '3', '4', '5']);
    const late = await search(retriever, { from: 5 }, 'late');
    expect(ids(late)).toEqual(['11']);
    expect(late.hits.hits[0]._score).toBe(200);
    expect(late.hits.total).toEqual({ value: 6, relation: 'eq' });
  });
});
