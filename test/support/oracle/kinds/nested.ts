/** Objects of a nested field. */
import { KEYWORDS } from '../corpus.js';
import { evaluate, type Kinds } from '../queries.js';

export const kinds: Kinds = {
  nested: {
    make: (random) => {
      if (random.chance(0.1)) return { path: 'nope', query: { match_all: {} }, ignore_unmapped: true };
      const number = { range: { 'o.n': { gte: random.int(0, 5) } } };
      const word = { constant_score: { filter: { term: { 'o.k': random.pick(KEYWORDS) } }, boost: random.int(1, 4) } };
      const inside = random.pick([
        number,
        { bool: { should: [number, word] } },
        { bool: { must: [word], filter: [number] } },
        { bool: { must: [number], must_not: [word] } },
        {
          script_score: {
            query: number,
            script: { source: "doc['o.n'].value * params.f", params: { f: random.int(1, 3) } },
          },
        },
      ]);
      return {
        path: 'o',
        query: inside,
        ...random.maybe(0.8, () => ({ score_mode: random.pick(['avg', 'max', 'min', 'sum', 'none']) })),
      };
    },
    score: (body, doc, corpus) => {
      const objects = body['path'] === 'o' ? (doc.source.o ?? []) : [];
      const scores = objects.flatMap(({ k, n }) => {
        const score = evaluate(body['query'], { id: doc.id, source: { 'o.k': k, 'o.n': n } as object }, corpus);
        return score === undefined ? [] : [score];
      });
      if (scores.length === 0) return undefined;
      const all = scores.reduce((sum, score) => sum + score, 0);
      switch (body['score_mode'] ?? 'avg') {
        case 'max':
          return Math.max(...scores);
        case 'min':
          return Math.min(...scores);
        case 'sum':
          return all;
        case 'none':
          return 0;
        default:
          return all / scores.length;
      }
    },
  },
};
