// The retriever that keeps hits which differ from each other: one suite for every engine behind the routes.
import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ENGINES } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

const DENSE = '.all-minilm-l6-v2-elasticsearch';

describe.each(ENGINES)('the retriever diversify over the $name engine', ({ start }) => {
  const run = randomBytes(4).toString('hex');
  const of = (what: string): string => `diversify-${run}-${what}`;
  let server: RunningServer;

  async function ask(method: string, path: string, body?: unknown, status?: number): Promise<any> {
    const answer = await server.request(method, path, body);
    if (status === undefined) expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300);
    else expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
    return answer.body;
  }
  const search = async (index: string, retriever: object, extra: object = {}): Promise<any> =>
    (await ask('POST', `/${of(index)}/_search`, { retriever, ...extra })).hits;
  const ids = ({ hits }: { hits: readonly { _id: string }[] }): readonly string[] => hits.map(({ _id }) => _id);
  /** Hits whose scores are the numbers in a field. */
  const scored = (field: string): object => ({
    standard: { query: { function_score: { query: { match_all: {} }, field_value_factor: { field } } } },
  });
  const mmr = (more: object): { diversify: object } => ({
    diversify: { type: 'mmr', field: 'around', lambda: 0, retriever: scored('up'), ...more },
  });

  beforeAll(async () => {
    server = await start();
    await ask('PUT', `/${of('points')}`, {
      mappings: {
        properties: {
          up: { type: 'integer' },
          kind: { type: 'keyword' },
          around: { type: 'dense_vector', dims: 2, similarity: 'cosine', index_options: { type: 'hnsw' } },
        },
      },
    });
    const lines = [1, 2, 3, 4, 5, 6].flatMap((up) => [
      { index: { _id: String(up) } },
      { up, kind: up % 2 === 0 ? 'even' : 'odd', around: [up % 2 === 0 ? -1 : 1, up / 100] },
    ]);
    await ask('POST', `/${of('points')}/_bulk?refresh=true`, lines.map((it) => `${JSON.stringify(it)}\n`).join(''));
    const meaning = { type: 'semantic_text', inference_id: DENSE };
    await ask('PUT', `/${of('talks')}`, { mappings: { properties: { meaning, rank: { type: 'integer' } } } });
    const texts = [
      'A cat sleeps on the warm roof.',
      'On the warm roof a cat sleeps.',
      'Interest rates rose again this quarter.',
      ['The ferry leaves at nine.', 'A cat is asleep on the warm roof.'],
    ];
    for (const [at, text] of texts.entries())
      await ask('PUT', `/${of('talks')}/_doc/${String(at)}?refresh=true`, { meaning: text, rank: 10 - at });
  });
  afterAll(async () => {
    await server.request('DELETE', `/${of('*')}`);
    await server.stop();
  });

  it('keeps hits that differ, in the order of its list and with their scores', async () => {
    const two = await search('points', mmr({ size: 2 }));
    expect(two.hits.map(({ _id, _score }: any) => [_id, _score])).toEqual([
      ['6', 6],
      ['1', 1],
    ]);
    expect(ids(await search('points', mmr({ size: 2, query_vector: [1, 0], lambda: 1 })))).toEqual(['5', '3']);
    expect(ids(await search('points', mmr({ size: 2, query_vector: [1, 0], lambda: 0.5 })))).toEqual(['5', '2']);
    expect(ids(await search('points', mmr({ rank_window_size: 3 }), { size: 3 }))).toEqual(['6', '5', '4']);
    expect(ids(await search('points', mmr({ filter: { term: { kind: 'odd' } }, size: 1 })))).toEqual(['5']);
    expect(ids(await search('points', mmr({}), { from: 4, size: 5 }))).toEqual(['2', '1']);
    const inside = { rrf: { retrievers: [mmr({ size: 2 }), scored('up')] } };
    expect(ids(await search('points', inside)).slice(0, 2)).toEqual(['6', '1']);
  });

  it('compares the passages of a semantic_text field', async () => {
    const talks = { field: 'meaning', retriever: scored('rank'), size: 2 };
    expect(ids(await search('talks', mmr(talks)))).toEqual(['0', '2']);
    const builder = { text_embedding: { model_id: DENSE, model_text: 'when does the boat go?' } };
    expect(ids(await search('talks', mmr({ ...talks, lambda: 1, size: 1, query_vector_builder: builder })))).toEqual([
      '3',
    ]);
  });

  it.each([
    [{ lambda: 2 }, 'must have a [lambda] between 0.0 and 1.0. The value provided was 2.0'],
    [{ lambda: undefined }, 'The value provided was null'],
    [{ size: 11 }, '[size] of 11 cannot be greater than the [rank_window_size] of 10'],
    [{ type: 'other' }, 'unknown result diversification type [other]'],
    [{ field: 'up' }, 'Failed to retrieve vectors for field [up]'],
    [{ query_vector: [1] }, 'different numbers of dimensions'],
    [{ query_vector: [1, 0], query_vector_builder: {} }, 'but not both'],
    [{ retriever: undefined }, 'Required [retriever]'],
  ])('refuses %j', async (more, sentence) => {
    const { error } = await ask('POST', `/${of('points')}/_search`, { retriever: mmr(more) }, 400);
    expect(JSON.stringify(error)).toContain(sentence);
  });

  it('explains the scores that hits have in its list', async () => {
    const { hits } = await search('points', mmr({ size: 2 }), { explain: true });
    for (const { _score, _explanation: shown } of hits as any[]) {
      expect(shown).toMatchObject({ value: _score, details: [{ value: _score, details: [{ value: _score }] }] });
      expect(shown.description).toContain(`weighted linear combination score: [${_score.toFixed(1)}]`);
    }
  });

  it('compares as many hits as its window may have', async () => {
    const lines = Array.from({ length: 300 }, (_, up) => [
      { index: { _id: String(up) } },
      { up: up + 1, around: up === 17 ? [0, 1] : [up % 3 === 0 ? -1 : 1, up / 1000] },
    ]);
    await ask('PUT', `/${of('window')}`, {
      mappings: { properties: { around: { type: 'dense_vector', dims: 2, index_options: { type: 'hnsw' } } } },
    });
    const sent = lines.flat().map((it) => `${JSON.stringify(it)}\n`);
    await ask('POST', `/${of('window')}/_bulk?refresh=true`, sent.join(''));
    // Besides the best hit and one that points the other way, only one of all is far from both.
    const [first, second, third] = ids(await search('window', mmr({ rank_window_size: 300, size: 3 })));
    expect([first, second]).toEqual(['299', '17']);
    expect(Number(third) % 3).toBe(0);
  });
});
