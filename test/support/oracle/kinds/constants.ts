/** Every document, and none. */
import { boost } from '../clauses.js';
import type { Kinds } from '../queries.js';

export const kinds: Kinds = {
  match_all: {
    make: (random) => boost(random),
    score: () => 1,
  },
  match_none: {
    make: () => ({}),
    score: () => undefined,
  },
};
