// Retrievers through HTTP: each kind, nested, filtered, weighted, paged, aggregated, highlighted; bad input; searches that
// run out of time or whose caller goes away.
import { readFileSync } from 'node:fs';
import http from 'node:http';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const search = (body: object, query = ''): Promise<Answer> => server.request('POST', `/docs/_search${query}`, body);
const ids = ({ body, status }: Answer): string[] => {
  expect(status, JSON.stringify(body)).toBe(200);
  return (body.hits.hits as { _id: string }[]).map((hit) => hit._id);
};
const standard = (kind: string, extra: object = {}): object => ({ standard: { query: { term: { kind } }, ...extra } });
const scored = (field: string): object => ({
  standard: { query: { function_score: { field_value_factor: { field }, boost_mode: 'replace' } } },
});
const knn = (vector: number[], k: number): object => ({
  knn: { field: 'vector', query_vector: vector, k, num_candidates: 10 },
});

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const properties = {
    kind: { type: 'keyword' },
    up: { type: 'integer' },
    down: { type: 'integer' },
    text: { type: 'text' },
    vector: { type: 'dense_vector', dims: 1, similarity: 'l2_norm' },
  };
  await server.request('PUT', '/docs', { settings: { number_of_replicas: 0 }, mappings: { properties } });
  const lines = [1, 2, 3, 4, 5, 6].flatMap((n) => [
    JSON.stringify({ index: { _id: String(n) } }),
    JSON.stringify({ kind: n % 2 ? 'odd' : 'even', up: n, down: 7 - n, text: `number ${String(n)}`, vector: [n] }),
  ]);
  await server.request('POST', '/docs/_bulk?refresh=true', `${lines.join('\n')}\n`);
});

afterAll(async () => {
  await server.stop();
});

describe('a retriever', () => {
  it('pinned ranks chosen documents above all others', async () => {
    const pinned = (more: object, retriever: object = scored('up')): object => ({
      retriever: { pinned: { retriever, ...more } },
    });
    expect(ids(await search(pinned({ ids: ['2', '1'] })))).toEqual(['2', '1', '6', '5', '4', '3']);
    const docs = [{ _id: '3' }, { _index: 'docs', _id: '1' }, { _index: 'other', _id: '2' }];
    expect(ids(await search(pinned({ docs, filter: { term: { kind: 'even' } } })))).toEqual(['3', '1', '6', '4', '2']);
    const fused = { rrf: { retrievers: [standard('odd'), scored('down')] } };
    expect(ids(await search(pinned({ ids: ['6'] }, fused))).slice(0, 2)).toEqual(['6', '1']);
    expect(ids(await search({ ...pinned({ ids: ['6'] }, scored('down')), from: 1, size: 2 }))).toEqual(['1', '2']);
    const inside = {
      rrf: { retrievers: [(pinned({ ids: ['4'] }) as { retriever: object }).retriever], rank_window_size: 2 },
    };
    expect(ids(await search({ retriever: inside, size: 2 }))).toEqual(['4', '6']);
    // Chosen documents that do not match, or are not there, are shown or missed as they are.
    expect(ids(await search(pinned({ ids: ['9', '2'] }, standard('odd'))))).toEqual(['2', '1', '3', '5']);
  });

  it('diversify keeps hits that differ', async () => {
    const kept = (more: object, extra: object = {}): Promise<Answer> =>
      search({
        retriever: { diversify: { type: 'mmr', field: 'around', retriever: scored('up'), lambda: 0, ...more } },
        ...extra,
      });
    const lines = [1, 2, 3, 4, 5, 6].flatMap((n) => [
      JSON.stringify({ update: { _id: String(n) } }),
      JSON.stringify({ doc: { around: [n % 2 ? 1 : -1, n / 100] } }),
    ]);
    await server.request('PUT', '/docs/_mapping', {
      properties: { around: { type: 'dense_vector', dims: 2, similarity: 'cosine' } },
    });
    await server.request('POST', '/docs/_bulk?refresh=true', `${lines.join('\n')}\n`);
    expect(ids(await kept({ size: 2 }))).toEqual(['6', '1']);
    // In the order of the retriever, whichever is chosen first.
    expect(ids(await kept({ size: 2, query_vector: [1, 0], lambda: 1 }))).toEqual(['5', '3']);
    expect(ids(await kept({ size: 2, query_vector: [1, 0], lambda: 0.5 }))).toEqual(['5', '2']);
    expect(ids(await kept({ rank_window_size: 3 }))).toEqual(['6', '5', '4']);
    expect(ids(await kept({ filter: { term: { kind: 'odd' } }, size: 1 }))).toEqual(['5']);
    expect(ids(await kept({}, { from: 4, size: 5 }))).toEqual(['2', '1']);
    const reason = async (more: object): Promise<string> => {
      const { status, body } = await kept(more);
      expect(status).toBe(400);
      return JSON.stringify(body.error);
    };
    expect(await reason({ lambda: 2 })).toContain(
      'must have a [lambda] between 0.0 and 1.0. The value provided was 2.0',
    );
    expect(await reason({ lambda: undefined })).toContain('The value provided was null');
    expect(await reason({ size: 11 })).toContain('[size] of 11 cannot be greater than the [rank_window_size] of 10');
    expect(await reason({ size: 0 })).toContain('[size] of 0 must be greater than zero');
    expect(await reason({ type: 'other' })).toContain('unknown result diversification type [other]');
    expect(await reason({ field: 'kind' })).toContain('Failed to retrieve vectors for field [kind]');
    expect(await reason({ query_vector: [1] })).toContain('different numbers of dimensions');
    expect(await reason({ query_vector: [1, 0], query_vector_builder: {} })).toContain('but not both');
  });

  it('diversify compares the passages of a semantic_text field', async () => {
    const meaning = { type: 'semantic_text', inference_id: '.all-minilm-l6-v2-elasticsearch' };
    await server.request('PUT', '/talks', { mappings: { properties: { meaning, rank: { type: 'integer' } } } });
    const texts = [
      'A cat sleeps on the warm roof.',
      'On the warm roof a cat sleeps.',
      'Interest rates rose again this quarter.',
      ['The ferry leaves at nine.', 'A cat is asleep on the warm roof.'],
    ];
    for (const [at, text] of texts.entries()) {
      const written = await server.request('PUT', `/talks/_doc/${String(at)}?refresh=true`, {
        ...{ meaning: text, rank: 10 - at },
      });
      expect(written.status, written.text).toBe(201);
    }
    const kept = (more: object): Promise<Answer> => {
      const diversify = { type: 'mmr', field: 'meaning', retriever: scored('rank'), size: 2, ...more };
      return server.request('POST', '/talks/_search', { retriever: { diversify } });
    };
    // The fourth has a passage that resembles the first text, so that the third differs most.
    expect(ids(await kept({ lambda: 0 }))).toEqual(['0', '2']);
    const builder = {
      text_embedding: { model_id: '.all-minilm-l6-v2-elasticsearch', model_text: 'when does the boat go?' },
    };
    expect(ids(await kept({ lambda: 1, query_vector_builder: builder, size: 1 }))).toEqual(['3']);
    const lexical = await kept({ lambda: 0, field: 'rank' });
    expect([lexical.status, lexical.body.error.reason]).toEqual([
      400,
      expect.stringContaining('[semantic_text] field'),
    ]);
    await server.request('DELETE', '/talks');
  });

  it('standard is a search with a filter, a least score, a sort, collapsed and ended early', async () => {
    expect(ids(await search({ retriever: standard('odd') }))).toEqual(['1', '3', '5']);
    const filter = { range: { up: { gte: 3 } } };
    expect(ids(await search({ retriever: standard('odd', { filter }) }))).toEqual(['3', '5']);
    expect(ids(await search({ retriever: standard('odd', { filter: [filter], sort: [{ up: 'desc' }] }) }))).toEqual([
      '5',
      '3',
    ]);
    const { standard: up } = scored('up') as { standard: object };
    expect(ids(await search({ retriever: { standard: { ...up, min_score: 5 } } }))).toEqual(['6', '5']);
    const collapsed = { standard: { ...up, collapse: { field: 'kind' } } };
    expect(ids(await search({ retriever: collapsed }))).toEqual(['6', '5']);
    const paged = { standard: { query: { match_all: {} }, sort: [{ up: 'asc' }], search_after: [4] } };
    expect(ids(await search({ retriever: paged }))).toEqual(['5', '6']);
    const ended = await search({ retriever: { standard: { query: { match_all: {} }, terminate_after: 2 } } });
    expect([ended.body.terminated_early, ended.body.hits.total.value]).toEqual([true, 2]);
  });

  it('knn finds neighbours, filtered and as near as asked', async () => {
    expect(ids(await search({ retriever: knn([3], 2) }))).toHaveLength(2);
    const near = { knn: { ...(knn([3], 6) as { knn: object }).knn, similarity: 1, filter: { term: { kind: 'odd' } } } };
    expect(ids(await search({ retriever: near }))).toEqual(['3']);
    const least = { knn: { ...(knn([3], 6) as { knn: object }).knn, min_score: 0.5 } };
    expect(ids(await search({ retriever: least }))[0]).toBe('3');
  });

  it('rrf fuses, weighs, filters and cuts', async () => {
    const retrievers = [scored('up'), knn([1], 1)];
    const { body } = await search({ retriever: { rrf: { retrievers, rank_constant: 1 } }, size: 3 });
    const hits = body.hits.hits as { _id: string; _score: number }[];
    expect(hits.map((hit) => hit._id)).toEqual(['1', '6', '5']);
    expect(hits[0]?._score).toBeCloseTo(1 / 2 + 1 / 7, 5);
    const weighted = [{ retriever: scored('up'), weight: 4 }, { retriever: knn([1], 1) }];
    expect(ids(await search({ retriever: { rrf: { retrievers: weighted, rank_constant: 1 } }, size: 1 }))).toEqual([
      '6',
    ]);
    const filter = { term: { kind: 'even' } };
    expect(
      ids(await search({ retriever: { rrf: { retrievers: [scored('up'), scored('down')], filter } } })),
    ).toHaveLength(3);
    const cut = { rrf: { retrievers: [scored('up'), scored('down')], rank_window_size: 2 } };
    expect(ids(await search({ retriever: cut, size: 2 }))).toHaveLength(2);
  });

  it('linear adds weighted and normalized scores', async () => {
    const retrievers = [
      { retriever: scored('up'), weight: 1, normalizer: 'minmax' },
      { retriever: scored('down'), weight: 3, normalizer: 'minmax' },
    ];
    const answer = await search({ retriever: { linear: { retrievers } } });
    expect(ids(answer)).toEqual(['1', '2', '3', '4', '5', '6']);
    expect(answer.body.hits.max_score).toBeCloseTo(3, 5);
  });

  it('rescorer scores the first ones again', async () => {
    const rescore = { window_size: 2, query: { rescore_query: { term: { kind: 'odd' } }, query_weight: 0 } };
    expect(ids(await search({ retriever: { rescorer: { retriever: scored('up'), rescore } }, size: 2 }))).toContain(
      '5',
    );
  });

  it('nests', async () => {
    const inner = { rrf: { retrievers: [scored('up'), scored('down')], rank_window_size: 10 } };
    const retrievers = [{ retriever: inner, weight: 100 }, { retriever: standard('odd') }];
    const outer = { linear: { retrievers, rank_window_size: 10 } };
    expect(ids(await search({ retriever: outer }))).toHaveLength(6);
  });

  it('pages, aggregates, highlights and explains', async () => {
    const retriever = { rrf: { retrievers: [scored('up'), standard('odd')], rank_window_size: 6 } };
    const all = ids(await search({ retriever, size: 6 }));
    expect(ids(await search({ retriever, size: 2, from: 2 }))).toEqual(all.slice(2, 4));
    const { body } = await search({
      retriever: { rrf: { retrievers: [{ standard: { query: { match: { text: '1' } } } }, standard('even')] } },
      size: 1,
      aggs: { kinds: { terms: { field: 'kind' } } },
      highlight: { fields: { text: {} } },
      explain: true,
    });
    expect(body.aggregations.kinds.buckets).toEqual([
      { key: 'even', doc_count: 3 },
      { key: 'odd', doc_count: 1 },
    ]);
    const [first] = body.hits.hits;
    expect([first._id, first.highlight]).toEqual(['1', { text: ['number <em>1</em>'] }]);
    expect(first._explanation.value).toBeCloseTo(first._score, 5);
  });

  it.each([
    [{ rrf: {} }, /\[retrievers\]/],
    [{ rrf: { retrievers: [standard('odd')], rank_constant: 0 } }, /\[rank_constant\]/],
    [{ rrf: { retrievers: 'x' } }, /retrievers/],
    [{ rrf: { retrievers: [standard('odd'), standard('even')], rank_window_size: 1 } }, /rank_window_size: 1/],
    [{ rrf: { retrievers: [{ nothing: {} }] } }, /nothing/],
    [{ linear: { retrievers: [{ retriever: standard('odd'), normalizer: 'x' }] } }, /normalizer/],
    [{ linear: { retrievers: [{ retriever: standard('odd'), weight: -1 }] } }, /weight/],
    [
      { knn: { field: 'vector', query_vector: [1], k: 3, num_candidates: 2 } },
      /\[num_candidates\] cannot be less than \[k\]/,
    ],
    [{ knn: { field: 'vector', k: 3, num_candidates: 3 } }, /query_vector/],
    [{ standard: { quer: {} } }, /\[quer\]/],
    [{ rescorer: { retriever: standard('odd') } }, /rescore/],
    [{}, /retriever/],
    [{ standard: {}, knn: {} }, /./],
  ])('that is wrong is refused: %j', async (retriever, reason) => {
    const { status, body } = await search({ retriever });
    expect([status, JSON.stringify(body.error)]).toEqual([400, expect.stringMatching(reason)]);
  });

  it('stands alone', async () => {
    for (const [section, value] of Object.entries({ query: { match_all: {} }, sort: ['up'], min_score: 1 })) {
      const { status, body } = await search({ retriever: standard('odd'), [section]: value });
      expect([status, body.error.reason]).toEqual([
        400,
        expect.stringContaining(`cannot specify [retriever] and [${section}]`),
      ]);
    }
  });
});

describe('sub_searches with rank', () => {
  it('are fused, ranked, aggregated', async () => {
    const sub_searches = [{ query: { term: { kind: 'odd' } } }, { query: { term: { up: 3 } } }];
    const { body } = await search({
      sub_searches,
      rank: { rrf: { rank_constant: 1 } },
      size: 2,
      aggs: { n: { value_count: { field: 'up' } } },
    });
    expect(body.hits.hits.map((hit: { _id: string; _rank: number }) => [hit._id, hit._rank])).toEqual([
      ['3', 1],
      ['1', 2],
    ]);
    expect(body.aggregations.n.value).toBe(3);
    expect(body.hits.total.value).toBe(3);
  });
});

describe('time', () => {
  beforeAll(async () => {
    await server.request('PUT', '/many', { mappings: { properties: { word: { type: 'keyword' } } } });
    for (let batch = 0; batch < 8; batch++) {
      const lines = Array.from({ length: 5000 }, (_, n) => {
        const word = (batch * 5000 + n).toString(4).replaceAll(/\d/g, (digit) => 'abcd'[Number(digit)] ?? 'a');
        return `{"index":{}}\n${JSON.stringify({ word })}`;
      });
      await server.request('POST', '/many/_bulk?refresh=true', `${lines.join('\n')}\n`);
    }
  });

  it('that runs out leaves what was found', async () => {
    const filters = Array.from({ length: 200 }, (_, n) => ({
      regexp: { word: { value: `.*${'abcd'[n % 4] ?? 'a'}.*${String(n)}?(a|b)*`, max_determinized_states: 100000 } },
    }));
    const body = {
      timeout: '1ms',
      query: { bool: { should: filters } },
      aggs: { n: { value_count: { field: 'word' } } },
    };
    const answer = await server.request('POST', '/many/_search', body);
    expect([answer.status, answer.body.timed_out]).toEqual([200, true]);
    expect(answer.body.hits.total.relation).toBe('gte');
    const strict = await server.request('POST', '/many/_search?allow_partial_search_results=false', body);
    expect([strict.status, strict.body.error.type]).toEqual([504, 'timeout_exception']);
  });

  it.runIf(process.platform === 'linux')('is not spent on a caller who went away', async () => {
    /** Milliseconds of processor time that the server has used. */
    const used = (): number => {
      const fields =
        readFileSync(`/proc/${String(server.process.pid)}/stat`, 'utf8')
          .split(') ')[1]
          ?.split(' ') ?? [];
      return (Number(fields[11]) + Number(fields[12])) * 10;
    };
    const pause = (ms: number): Promise<void> =>
      new Promise((resolve) => {
        setTimeout(resolve, ms);
      });
    const should = Array.from({ length: 400 }, (_, n) => ({
      regexp: { word: { value: `.*${'abcd'[n % 4] ?? 'a'}.*${String(n)}?(a|b)*` } },
    }));
    const body = { query: { bool: { should } } };
    let before = used();
    expect((await server.request('POST', '/many/_search', body)).status).toBe(200);
    const whole = used() - before;
    await pause(50);
    before = used();
    const request = http.request(new URL('/many/_search', server.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `ApiKey ${server.apiKey}` },
    });
    request.on('error', () => undefined);
    request.end(JSON.stringify(body));
    await pause(20);
    request.destroy();
    // Until nothing is worked on any more; a busy machine takes its time.
    for (let rest = -100; used() - rest > 20;) {
      rest = used();
      await pause(200);
    }
    const spent = used() - before;
    expect(spent, `${String(spent)} of ${String(whole)} ms`).toBeLessThan(Math.max(whole / 2, 100));
  });
});
