// Queries by text against a naive evaluator that works with the tokens and vectors the models give: text_expansion,
// sparse_vector, semantic and knn, on random short texts.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Random, SEED, rounds } from '../support/oracle/random.js';
import { type RunningServer, startServer } from '../support/server.js';

const ROUNDS = rounds(12);
const SPARSE = '.sparse_encoder_model_2';
const DENSE = '.all-minilm-l6-v2';
const WORDS = [
  'whale',
  'ocean',
  'ship',
  'stamp',
  'letter',
  'lava',
  'volcano',
  'pasta',
  'tomato',
  'king',
  'queen',
  'road',
];

type Tokens = Readonly<Record<string, number>>;

interface Doc {
  readonly id: string;
  readonly kind: string;
  readonly tokens: Tokens;
  readonly vector: readonly number[];
}

let server: RunningServer;
let docs: Doc[];
const random = new Random(SEED);
const text = (): string => [...new Set(random.several(1, 4, () => random.pick(WORDS)))].join(' ');

async function infer(model: string, texts: readonly string[]): Promise<any[]> {
  const { status, body } = await server.request('POST', `/_ml/trained_models/${model}/_infer`, {
    docs: texts.map((text_field) => ({ text_field })),
  });
  expect(status, JSON.stringify(body)).toBe(200);
  return body.inference_results.map((result: { predicted_value: unknown }) => result.predicted_value);
}

beforeAll(async () => {
  server = await startServer();
  await server.request('POST', `/_ml/trained_models/${DENSE}/deployment/_start?wait_for=started`);
  const properties = {
    kind: { type: 'keyword' },
    sv: { type: 'sparse_vector' },
    v: { type: 'dense_vector', dims: 384, similarity: 'cosine' },
    body: { type: 'semantic_text', inference_id: '.elser-2-elasticsearch' },
  };
  expect((await server.request('PUT', '/texts', { mappings: { properties } })).status).toBe(200);
  const texts = Array.from({ length: 24 }, text);
  const [tokens, vectors] = [await infer(SPARSE, texts), await infer(DENSE, texts)];
  docs = texts.map((_, n) => ({
    id: String(n),
    kind: random.pick(['a', 'b']),
    tokens: tokens[n] as Tokens,
    vector: vectors[n] as number[],
  }));
  // Two segments.
  for (const part of [docs.slice(0, 10), docs.slice(10)]) {
    const lines = part.flatMap(({ id, kind, tokens: sv, vector: v }) => [
      JSON.stringify({ index: { _id: id } }),
      JSON.stringify({ kind, sv, v, body: texts[Number(id)] }),
    ]);
    const { body } = await server.request('POST', '/texts/_bulk?refresh=true', `${lines.join('\n')}\n`);
    expect(body.errors, JSON.stringify(body)).toBe(false);
  }
});

afterAll(async () => {
  await server.stop();
});

const dot = (query: Tokens, doc: Tokens): number | undefined => {
  const shared = Object.keys(query).filter((token) => token in doc);
  return shared.length === 0
    ? undefined
    : shared.reduce((sum, token) => sum + (query[token] ?? 0) * (doc[token] ?? 0), 0);
};

/** Holds the hits of a query, among those of one kind with a factor, against the scores of the documents. */
async function check(query: object, score: (doc: Doc) => number | undefined): Promise<void> {
  const [kind, boost] = [random.pick(['a', 'b']), random.int(1, 4)];
  const tree = { bool: { must: [query], filter: [{ term: { kind } }], boost } };
  const { status, body } = await server.request('POST', '/texts/_search', { query: tree, size: 100 });
  const what = `${JSON.stringify(query)}\n${JSON.stringify(body).slice(0, 500)}`;
  expect(status, what).toBe(200);
  const wanted = docs
    .filter((doc) => doc.kind === kind)
    .flatMap((doc): [string, number][] => {
      const own = score(doc);
      return own === undefined ? [] : [[doc.id, own * boost]];
    });
  const hits = body.hits.hits as { _id: string; _score: number }[];
  expect(hits.map(({ _id }) => _id).sort(), what).toEqual(wanted.map(([id]) => id).sort());
  const scores = new Map(wanted);
  for (const { _id, _score } of hits) {
    // Stored weights are kept in half precision, and the model is not run the same way for one text as for many.
    const expected = scores.get(_id) ?? NaN;
    expect(Math.abs(_score - expected), `${what}\n${_id}: ${_score} is not ${expected}`).toBeLessThan(0.01 * expected);
  }
}

describe('a query by text against a naive evaluator', () => {
  it('is a dot product of tokens: text_expansion, sparse_vector', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const model_text = text();
      const [tokens] = (await infer(SPARSE, [model_text])) as [Tokens];
      const of = (doc: Doc): number | undefined => dot(tokens, doc.tokens);
      await check({ text_expansion: { sv: { model_id: SPARSE, model_text } } }, of);
      await check({ sparse_vector: { field: 'sv', inference_id: SPARSE, query: model_text } }, of);
    }
  });

  it('is the best passage: semantic', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const query = text();
      const [tokens] = (await infer(SPARSE, [query])) as [Tokens];
      await check({ semantic: { field: 'body', query } }, (doc) => dot(tokens, doc.tokens));
    }
  });

  it('is the nearest vectors: knn', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const model_text = text();
      const [vector] = (await infer(DENSE, [model_text])) as [number[]];
      const cosine = (own: readonly number[]): number => {
        const length = (of: readonly number[]): number => Math.hypot(...of);
        const product = own.reduce((sum, value, n) => sum + value * (vector[n] ?? 0), 0);
        return product / length(own) / length(vector);
      };
      const near = [...docs].sort((a, b) => cosine(b.vector) - cosine(a.vector)).slice(0, 9);
      const query_vector_builder = { text_embedding: { model_id: DENSE, model_text } };
      const knn = { field: 'v', query_vector_builder, k: 9, num_candidates: 50 };
      await check({ knn }, (doc) => (near.includes(doc) ? (1 + cosine(doc.vector)) / 2 : undefined));
    }
  });
});
