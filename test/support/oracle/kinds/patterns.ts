/** Terms by their letters. */
import { boost, type Query, single, start, TEXTS } from '../clauses.js';
import { type Doc, WORDS } from '../corpus.js';
import type { Kinds } from '../queries.js';
import type { Random } from '../random.js';
import { fuzzyScore, type Score, termsOf } from '../words.js';

function pattern(source: string, ignoreCase: unknown): RegExp {
  return new RegExp(`^(?:${source})$`, ignoreCase === true ? 'is' : 's');
}

/** Any term of the field that the expression matches. */
function byPattern(doc: Doc, field: string, expression: RegExp, options: Query): Score {
  if (!termsOf(doc, field).some((term) => expression.test(term))) return undefined;
  return options['rewrite'] === 'scoring_boolean' ? NaN : 1;
}

const cased = (random: Random): object => ({
  ...random.maybe(0.3, () => ({ case_insensitive: random.chance(0.7) })),
  ...random.maybe(0.2, () => ({ rewrite: random.pick(['constant_score', 'scoring_boolean']) })),
  ...boost(random),
});

const wordField = (random: Random): string => random.pick(['kw', 't', 't2', 'nope']);

export const kinds: Kinds = {
  prefix: {
    optionsBelowField: true,
    make: (random) => ({ [wordField(random)]: { value: start(random), ...cased(random) } }),
    score: (body, doc) => {
      const [field, options] = single(body, 'value');
      return byPattern(doc, field, pattern(`${String(options['value'])}.*`, options['case_insensitive']), options);
    },
  },
  wildcard: {
    optionsBelowField: true,
    make: (random) => ({
      [wordField(random)]: { value: random.pick(['a*', '?b*', '*b', 'A?', '*', 'c?b', '?']), ...cased(random) },
    }),
    score: (body, doc) => {
      const [field, options] = single(body, 'value');
      const source = String(options['value']).replaceAll('?', '.').replaceAll('*', '.*');
      return byPattern(doc, field, pattern(source, options['case_insensitive']), options);
    },
  },
  regexp: {
    optionsBelowField: true,
    make: (random) => ({
      [wordField(random)]: { value: random.pick(['a.*', '[ab]+', '(aa|ab)c?', '.b', 'A.', 'c?.*b']), ...cased(random) },
    }),
    score: (body, doc) => {
      const [field, options] = single(body, 'value');
      return byPattern(doc, field, pattern(String(options['value']), options['case_insensitive']), options);
    },
  },
  fuzzy: {
    optionsBelowField: true,
    make: (random) => ({
      [random.pick(TEXTS)]: {
        value: random.pick([...WORDS, 'abcd', 'bac']),
        ...random.maybe(0.7, () => ({ fuzziness: random.pick([0, 1, 2, 'AUTO', 'AUTO:2,4', '1']) })),
        ...random.maybe(0.3, () => ({ prefix_length: random.int(0, 2) })),
        ...random.maybe(0.3, () => ({ transpositions: random.chance(0.5) })),
        ...boost(random),
      },
    }),
    score: (body, doc, corpus) => {
      const [field, options] = single(body, 'value');
      return fuzzyScore(doc, corpus, field, String(options['value']), options);
    },
  },
};
