/** Nearest vectors. */
import { boost, type Query } from '../clauses.js';
import type { Corpus, Doc } from '../corpus.js';
import { any, evaluate, type Kinds } from '../queries.js';
import type { Score } from '../words.js';

function knn(body: Query, doc: Doc, corpus: Corpus): Score {
  const [x = 0, y = 0] = body['query_vector'] as number[];
  const filters: Query[] = [body['filter'] ?? []].flat();
  const square = ({ source: { v } }: Doc): number => ((v?.[0] ?? 0) - x) ** 2 + ((v?.[1] ?? 0) - y) ** 2;
  const candidates = corpus.docs
    .filter((other) => other.source.v && filters.every((filter) => evaluate(filter, other, corpus) !== undefined))
    .sort((a, b) => square(a) - square(b));
  const near = candidates.slice(0, Number(body['k'])).includes(doc);
  if (!near || Math.sqrt(square(doc)) > (body['similarity'] ?? Infinity)) return undefined;
  return 1 / (1 + square(doc));
}

export const kinds: Kinds = {
  knn: {
    make: (random, depth) => ({
      field: 'v',
      query_vector: [random.int(-5000, 5000) / 1000, random.int(-5000, 5000) / 1000],
      k: random.int(1, 20),
      num_candidates: 100,
      ...random.maybe(0.5, () => ({ filter: any(random, Math.max(depth, 2)) })),
      ...random.maybe(0.2, () => ({ similarity: random.int(1, 5) + 0.0123 })),
      ...boost(random),
    }),
    score: knn,
  },
};
