// Scores that mean the same for every question, against the real models: whether anything is relevant.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ENGINES } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

let server: RunningServer;
const done = async (method: string, path: string, body?: unknown): Promise<any> => {
  const answer = await server.request(method, path, body);
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.body;
};
const search = (index: string, body: unknown) => done('POST', `/${index}/_search`, body);
const calibrated = (query: string, more: object = {}) => ({
  retriever: { linear: { query, normalizer: 'calibrated', ...more } },
});
const found = (answer: any): [string, number][] => answer.hits.hits.map((hit: any) => [hit._id, hit._score]);
const reason = async (index: string, body: unknown): Promise<string> => {
  const answer = await server.request('POST', `/${index}/_search`, body);
  expect(answer.status, answer.text).toBe(400);
  return answer.text;
};

const CONTENT = { type: 'text', fields: { semantic: { type: 'semantic_text', inference_id: '.hybrid' } } };
const MAPPINGS = {
  properties: {
    content: CONTENT,
    vector: { type: 'dense_vector', dims: 384 },
    far: { type: 'dense_vector', dims: 384, similarity: 'l2_norm' },
  },
};
const TEXTS: Record<string, string> = {
  muscles: 'Sore muscles recover faster after a run with rest, water and gentle stretching.',
  bread: 'Bread rises because the yeast in its dough makes gas.',
  whales: 'Blue whales are the largest animals that have ever lived.',
  lava: 'Lava is molten rock that flows out of a volcano.',
  vikings: 'The Vikings sailed from Scandinavia to Iceland, Greenland and North America.',
  glass: 'Glass is made by melting sand with soda and lime.',
};
const ON_TOPIC: Record<string, string> = {
  'how do sore muscles recover after running': 'muscles',
  'why does bread dough rise': 'bread',
  'what is the largest animal': 'whales',
  'what flows out of a volcano': 'lava',
  'where did the vikings sail': 'vikings',
  'how is glass made': 'glass',
};
const OFF_TOPIC = [
  'who won the world cup in 1998',
  'convert a string to an integer in python',
  'what is the capital gains tax rate',
  'lyrics of the national anthem of Canada',
  'symptoms of vitamin D deficiency',
  'when does the next season of the show begin',
];
const bulk = (texts: Record<string, string>) =>
  Object.entries(texts)
    .flatMap(([_id, content]) => [{ index: { _id } }, { content }])
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');

describe.each(ENGINES)('calibrated scores over the $name engine', ({ start }) => {
  beforeAll(async () => {
    server = await start();
    await server.request('DELETE', '/facts,more?ignore_unavailable=true');
    await done('PUT', '/facts', { mappings: MAPPINGS });
    await done('POST', '/facts/_bulk?refresh=true', bulk(TEXTS));
  });
  afterAll(async () => {
    await server.request('DELETE', '/facts,more?ignore_unavailable=true');
    await server.stop();
  });

  it('are from 0 to 1, and tell whether anything is relevant', async () => {
    for (const [query, id] of Object.entries(ON_TOPIC)) {
      const hits = found(await search('facts', calibrated(query, { min_score: 0.3 })));
      expect(hits[0]?.[0], query).toBe(id);
      for (const [, score] of hits) expect(score).toBeLessThanOrEqual(1);
    }
    for (const query of OFF_TOPIC) {
      const all = found(await search('facts', calibrated(query)));
      expect(all.length, query).toBeGreaterThan(0);
      for (const [, score] of all) expect(score).toBeGreaterThanOrEqual(0);
      const answer = await search('facts', calibrated(query, { min_score: 0.3 }));
      expect(found(answer), query).toEqual([]);
      expect(answer.hits.total.value, query).toBe(0);
      // The usual normalizer makes the first hit of a list stand out, whatever the list.
      const best = await search('facts', { retriever: { linear: { query, normalizer: 'zscore' } } });
      expect(best.hits.max_score, query).toBeGreaterThan(1);
    }
  });

  it('look for many stars in no time, over one engine or the other', async () => {
    const fields = [`${'*'.repeat(40)}t`];
    const standard = { query: { multi_match: { query: 'whales', fields } } };
    const retrievers = [{ normalizer: 'calibrated', retriever: { standard } }];
    expect(found(await search('facts', { retriever: { linear: { retrievers } } }))).toHaveLength(1);
  });

  it('do not depend on the other hits of a window that holds all', async () => {
    for (const [query, id] of Object.entries(ON_TOPIC)) {
      const [, among] = found(await search('facts', calibrated(query))).find(([found]) => found === id)!;
      const alone = found(await search('facts', calibrated(query, { filter: { ids: { values: [id] } } })));
      expect(alone).toEqual([[id, among]]);
    }
  });

  it('count a document outside the window of a list as absent there', async () => {
    const list = (of: object) => ({ normalizer: 'calibrated', retriever: { standard: { query: of } } });
    const words = list({ match: { content: 'bread volcano' } });
    const meaning = list({
      knn: { field: 'content.semantic', k: 1, query_vector_builder: { text_embedding: { model_text: 'lava' } } },
    });
    const scores = async (rank_window_size: number, ...retrievers: object[]) => {
      const retriever = { linear: { retrievers, rank_window_size } };
      return new Map(found(await search('facts', { retriever, size: 1, from: 0 })));
    };
    const [alone, first] = await Promise.all([scores(10, meaning), scores(10, words)]);
    expect([...alone.keys(), ...first.keys()]).toEqual(['lava', 'bread']);
    const absent = 1 / (1 + Math.exp(3.462));
    const [narrow, wide] = await Promise.all([scores(1, meaning, words), scores(10, meaning, words)]);
    expect(narrow.get('lava')).toBeCloseTo((alone.get('lava')! + absent) / 2, 5);
    expect(wide.get('lava')).toBeGreaterThan(narrow.get('lava')! + 0.01);
  });

  it('are the weighted mean of the probabilities of the lists', async () => {
    const query = 'why does bread dough rise';
    const clause = {
      words: { multi_match: { query, type: 'most_fields' } },
      sparse: { sparse_vector: { field: 'content.semantic', query } },
      dense: {
        knn: { field: 'content.semantic', k: 100, query_vector_builder: { text_embedding: { model_text: query } } },
      },
    };
    const list = (of: object, weight = 1) => ({
      weight,
      normalizer: 'calibrated',
      retriever: { standard: { query: of } },
    });
    const linear = (...retrievers: object[]) => ({ retriever: { linear: { retrievers, rank_window_size: 100 } } });
    const of = async (...retrievers: object[]) => new Map(found(await search('facts', linear(...retrievers))));
    const [words, sparse, dense] = await Promise.all(Object.values(clause).map((it) => of(list(it, 7))));
    const all = await of(list(clause.words), list(clause.sparse), list(clause.dense, 1.5));
    const mean = (words!.get('bread')! + sparse!.get('bread')! + 1.5 * dense!.get('bread')!) / 3.5;
    expect(all.get('bread')).toBeCloseTo(mean, 5);
    expect([...all]).toEqual(found(await search('facts', calibrated(query))));
    // A factor of a clause counts as little as the scale of a score.
    const boosted = list({ bool: { must: [{ match: { content: { query, boost: 5 } } }], filter: { match_all: {} } } });
    expect((await of(boosted)).get('bread')).toBeCloseTo(words!.get('bread')!, 5);
    const raw = (await search('facts', { query: clause.dense })).hits.hits[0];
    expect(dense!.get(raw._id)).toBeCloseTo(1 / (1 + Math.exp(-(10.964 * (2 * raw._score - 1) - 6.654))), 4);
  });

  it('are explained', async () => {
    const { hits } = await search('facts', { ...calibrated('what flows out of a volcano'), explain: true });
    const { value, description, details } = hits.hits[0]._explanation;
    expect(value).toBe(hits.hits[0]._score);
    expect(description).toContain('weighted mean');
    const sum = details[0].value + details[1].value + 1.5 * details[2].value;
    expect(value).toBeCloseTo(sum / 3.5, 4);
  });

  it('count documents of several indices alike', async () => {
    await done('PUT', '/more', { mappings: { properties: { content: { type: 'text' } } } });
    await done('POST', '/more/_bulk?refresh=true', bulk({ coin: 'A coin is money.' }));
    const both = found(await search('facts,more', calibrated('what is the largest animal')));
    expect(both[0]?.[0]).toBe('whales');
    for (const [, score] of both) {
      expect(score).toBeGreaterThanOrEqual(0);
      expect(score).toBeLessThanOrEqual(1);
    }
  });

  it('are refused where there is no map, with what to do', async () => {
    const query = { match: { content: 'bread' } };
    const one = (retriever: object) => ({
      retriever: { linear: { retrievers: [{ retriever, normalizer: 'calibrated' }] } },
    });
    const standard = (of: object) => one({ standard: { query: of } });
    expect(await reason('facts', one({ rrf: { retrievers: [{ standard: { query } }] } }))).toContain(
      '[linear] normalizer [calibrated] takes the scores of a query or a kNN search, not of a [rrf] retriever',
    );
    for (const of of [{ match_all: {} }, { bool: { should: [query, query] } }, { prefix: { content: 'b' } }]) {
      expect(await reason('facts', standard(of))).toContain('takes the scores of words');
    }
    expect(await reason('facts', standard({ semantic: { field: 'content.semantic', query: 'x' } }))).toContain(
      'field [content.semantic] adds up those of two',
    );
    const vector = Array.from({ length: 384 }, () => 0.05);
    expect(await reason('facts', one({ knn: { field: 'vector', query_vector: vector, k: 1 } }))).toContain(
      'needs to know the model of a list: give it a text with [query_vector_builder]',
    );
    const model = { text_embedding: { model_id: '.all-minilm-l6-v2', model_text: 'x' } };
    expect(await reason('facts', one({ knn: { field: 'far', query_vector_builder: model, k: 1 } }))).toContain(
      'takes vectors whose similarity is [cosine] or [dot_product]',
    );
    expect(await reason('facts', { ...calibrated('bread'), indices_boost: [{ facts: 2 }] })).toContain(
      'cannot be combined with [indices_boost]',
    );
    const mixed = [
      { retriever: { standard: { query } }, normalizer: 'calibrated' },
      { retriever: { standard: { query } } },
    ];
    expect(await reason('facts', { retriever: { linear: { retrievers: mixed } } })).toContain(
      'must be that of all [retrievers] or of none',
    );
  });
});
