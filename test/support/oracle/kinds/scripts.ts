/** Scripts that find and score. */
import { constant, valuesOf } from '../clauses.js';
import { evaluate, type Kinds, query } from '../queries.js';

export const kinds: Kinds = {
  script: {
    make: (random) => ({
      script: {
        source: "doc['d'].size() > 0 && doc['d'].value * params.times > params.least",
        params: { times: random.int(1, 3), least: random.int(-9, 15) },
      },
    }),
    score: ({ script: { params } }, doc) =>
      constant(doc.source.d !== undefined && doc.source.d * params.times > params.least),
  },
  script_score: {
    make: (random) => ({
      query: query(random, random.pick(['match_all', 'range', 'exists', 'nested', 'script']), 3),
      script: {
        source:
          "def pop = doc['pop'].size() == 0 ? params.none : doc['pop'].value; return _score * params.times + pop;",
        params: { none: random.int(0, 9), times: random.int(0, 3) },
      },
    }),
    score: ({ query, script: { params } }, doc, corpus) => {
      const score = evaluate(query, doc, corpus);
      if (score === undefined) return undefined;
      // In an object of a nested field, or in a document.
      if ('f' in params) return Number(valuesOf(doc, 'o.n')[0]) * params.f;
      return score * params.times + (doc.source.pop ?? params.none);
    },
  },
};
