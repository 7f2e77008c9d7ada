/** Queries that hold others. */
import { boost, constant, minimumClauses, type Query } from '../clauses.js';
import type { Corpus, Doc } from '../corpus.js';
import { any, evaluate, type Kinds, query } from '../queries.js';
import type { Random } from '../random.js';
import { best, minimum, type Score } from '../words.js';

const someQueries = (random: Random, depth: number): Query[] => random.several(0, 2, () => any(random, depth));

function bool(body: Query, doc: Doc, corpus: Corpus): Score {
  const clauses = (name: string): Query[] => [body[name] ?? []].flat();
  const [must, should] = [clauses('must'), clauses('should')];
  const filter = clauses('filter');
  // Without any clause everything matches, whatever the minimum says.
  if (must.length + should.length + filter.length + clauses('must_not').length === 0) return 1;
  const excluded = clauses('must_not').some((clause) => evaluate(clause, doc, corpus) !== undefined);
  if (excluded || filter.some((clause) => evaluate(clause, doc, corpus) === undefined)) return undefined;
  const required = must.map((clause) => evaluate(clause, doc, corpus));
  const optional = should.map((clause) => evaluate(clause, doc, corpus)).filter((score) => score !== undefined);
  const alone = should.length > 0 && must.length === 0 && filter.length === 0;
  const spec = body['minimum_should_match'];
  const least = Math.max(spec === undefined ? 0 : minimum(should.length, spec), alone ? 1 : 0);
  if (required.includes(undefined) || optional.length < least) return undefined;
  // A bool of nothing but must_not matches the rest with 0, or nothing.
  if (body['adjust_pure_negative'] === false && must.length + should.length + filter.length === 0) return undefined;
  return [...required, ...optional].reduce<number>((all, score) => all + (score ?? 0), 0);
}

export const kinds: Kinds = {
  bool: {
    holdsQueries: true,
    make: (random, depth) => {
      const should = someQueries(random, depth);
      return {
        ...random.maybe(0.6, () => ({ must: someQueries(random, depth) })),
        ...random.maybe(0.6, () => ({ should })),
        ...random.maybe(0.3, () => ({ filter: someQueries(random, depth) })),
        ...random.maybe(0.3, () => ({ must_not: any(random, depth) })),
        ...random.maybe(0.2, () => ({ minimum_should_match: minimumClauses(random) })),
        ...random.maybe(0.1, () => ({ adjust_pure_negative: random.chance(0.5) })),
        ...boost(random),
      };
    },
    score: bool,
  },
  boosting: {
    holdsQueries: true,
    make: (random, depth) => ({
      positive: any(random, depth),
      negative: any(random, depth),
      negative_boost: random.int(0, 4) / 4,
      ...boost(random),
    }),
    score: (body, doc, corpus) => {
      const score = evaluate(body['positive'], doc, corpus);
      if (score === undefined || evaluate(body['negative'], doc, corpus) === undefined) return score;
      return score * body['negative_boost'];
    },
  },
  constant_score: {
    holdsQueries: true,
    make: (random, depth) => ({ filter: any(random, depth), ...boost(random) }),
    score: (body, doc, corpus) => constant(evaluate(body['filter'], doc, corpus) !== undefined),
  },
  dis_max: {
    holdsQueries: true,
    make: (random, depth) => ({
      queries: random.several(1, 3, () => any(random, depth)),
      ...random.maybe(0.6, () => ({ tie_breaker: random.int(0, 4) / 4 })),
      ...boost(random),
    }),
    score: (body, doc, corpus) =>
      best(
        (body['queries'] as Query[]).map((query) => evaluate(query, doc, corpus)),
        body['tie_breaker'] ?? 0,
      ),
  },
  wrapper: {
    holdsQueries: true,
    make: (random, depth) => {
      // A text of a query syntax would come out of it without its meaning.
      const inner = query(random, random.pick(['term', 'range', 'match', 'sparse_vector', 'exists']), depth + 1);
      return { query: Buffer.from(JSON.stringify(inner)).toString('base64') };
    },
    score: (body, doc, corpus) => evaluate(JSON.parse(Buffer.from(body['query'], 'base64').toString()), doc, corpus),
  },
};
