// The fusion of the command line against that of a real server: the same hits in the same order.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RankedHit, type Setting, DEFAULTS, FUSIONS, QueryLists, ndcg } from '@sparrow-search/evaluation';

import { type RunningServer, startServer } from '../../../../test/support/server.js';
import { Context } from '../context.js';
import { dictionary } from '../dictionary.js';
import { type Part, bodyFor, partsOf } from './lists.js';

let server: RunningServer;
let context: Context;

const { meanings, questions } = dictionary();
const some = meanings.slice(0, 240);
const texts = [...questions.map(({ text }) => text), ...some.slice(40, 60).map(({ words: [first = ''] }) => first)];
const semantic = (inference_id: string): object => ({ type: 'semantic_text', inference_id });

beforeAll(async () => {
  server = await startServer();
  context = new Context({ url: server.url, data: server.data });
  const gloss = { type: 'text', analyzer: 'english', fields: { semantic: semantic('.hybrid') } };
  await server.request('PUT', '/one', { mappings: { properties: { words: { type: 'text' }, gloss } } });
  await server.request('PUT', '/several', {
    mappings: {
      properties: {
        words: { type: 'text', fields: { near: semantic('.all-minilm-l6-v2-elasticsearch') } },
        gloss,
        never: semantic('.hybrid'),
      },
    },
  });
  const near = (inference_id: string): object => ({ type: 'text', fields: { near: semantic(inference_id) } });
  await server.request('PUT', '/three', {
    mappings: {
      properties: {
        words: near('.all-minilm-l6-v2-elasticsearch'),
        gloss: near('.hybrid'),
        again: near('.all-minilm-l6-v2-elasticsearch'),
      },
    },
  });
  for (const index of ['one', 'several', 'three']) {
    const lines = some.flatMap(({ _id, words, gloss: text }) => [
      { index: { _id } },
      { words, gloss: text, ...(index === 'three' && { again: text.slice(0, 20) }) },
    ]);
    // The second half is written again, so that the order of writing is not that of the ids.
    for (const part of [lines, lines.slice(some.length)]) {
      const body = `${part.map((line) => JSON.stringify(line)).join('\n')}\n`;
      const answer = await server.request('POST', `/${index}/_bulk?refresh=true`, body);
      expect(answer.body.errors).toBe(false);
    }
  }
});
afterAll(() => server.stop());

async function search(index: string, body: object): Promise<readonly RankedHit[]> {
  const request = { size: 100, _source: false, seq_no_primary_term: true, ...body };
  const { status, body: answer } = await server.request('POST', `/${index}/_search`, request);
  expect(status).toBe(200);
  return answer.hits.hits.map((hit: any) => ({
    index: hit._index,
    id: hit._id,
    order: hit._seq_no,
    score: hit._score,
  }));
}

async function listsFor(index: string, parts: readonly Part[], text: string, grades = new Map()): Promise<QueryLists> {
  const lists = [];
  for (const { kind, share, retriever } of parts) {
    lists.push({ kind, share, hits: await search(index, { retriever: retriever(text) }) });
  }
  return new QueryLists(lists, grades);
}

describe.each(['one', 'several', 'three', 'one,several'])('in [%s]', (index) => {
  it.each(FUSIONS)('%s with its defaults gives the hits of the short form', async (fusion) => {
    const parts = await partsOf(context, index);
    for (const query of texts) {
      const short = fusion === 'rrf' ? { query } : { query, normalizer: 'zscore' };
      const hits = await search(index, { retriever: { [fusion]: short } });
      const lists = await listsFor(index, parts, query);
      expect(lists.ranked(DEFAULTS[fusion]).slice(0, 100), query).toEqual(hits.map(({ id }) => id));
    }
  });

  it.each<Setting>([
    { fusion: 'rrf', constant: 20, weights: { words: 1, sparse: 0.5, dense: 3 } },
    { fusion: 'rrf', constant: 2, weights: { words: 0, sparse: 1, dense: 1 } },
    { fusion: 'linear', weights: { words: 1, sparse: 2, dense: 6 } },
    { fusion: 'linear', weights: { words: 1, sparse: 0, dense: 0 } },
    { fusion: 'linear', weights: { words: 1, sparse: 0.5, dense: 1 } },
  ])('%j gives the hits of the request that is shown for it', async (setting) => {
    const parts = await partsOf(context, index);
    for (const query of texts) {
      const hits = await search(index, bodyFor(parts, setting, query));
      const lists = await listsFor(index, parts, query);
      expect(lists.ranked(setting).slice(0, 100), query).toEqual(hits.map(({ id }) => id));
    }
  });
});

it('has the same nDCG@10 as the answers of the server', async () => {
  const parts = await partsOf(context, 'one');
  let answered = 0;
  for (const { text, wanted } of questions) {
    const right = some.filter(({ words }) => words.some((word) => wanted.includes(word)));
    const grades = new Map(right.map(({ _id }) => [_id, 1]));
    const hits = await search('one', { retriever: { rrf: { query: text } } });
    const lists = await listsFor('one', parts, text, grades);
    const ids = hits.map(({ id }) => id);
    expect(lists.ndcg(DEFAULTS.rrf)).toBeCloseTo(ndcg(ids, grades), 12);
    if (ndcg(ids, grades) > 0) answered += 1;
  }
  expect(answered).toBeGreaterThan(0);
});

it('counts fields that share a kind together as much as one, and passes over a field without documents', async () => {
  const parts = await partsOf(context, 'several');
  expect(parts.map(({ name, share }) => [name, share])).toEqual([
    ['words', 1],
    ['sparse gloss.semantic', 0.5],
    ['dense gloss.semantic', 0.5],
    ['dense words.near', 0.5],
  ]);
});

it('says what is missing where there is nothing to fuse', async () => {
  await server.request('PUT', '/plain', { mappings: { properties: { words: { type: 'text' } } } });
  await expect(partsOf(context, 'plain')).rejects.toThrow('[plain] has no semantic_text field with documents');
});
