/** Words of texts. */
import { boost, constant, minimumClauses, type Query, single, start, text, TEXTS, words } from '../clauses.js';
import { type Corpus, type Doc, KEYWORDS, WORDS } from '../corpus.js';
import { evaluate, type Kinds } from '../queries.js';
import type { Random } from '../random.js';
import {
  best,
  docFreq,
  isNear,
  minimum,
  phraseScore,
  type Score,
  sum,
  termScore,
  termsOf,
  vocabulary,
} from '../words.js';

function matchIn(field: string, text: unknown, options: Query, doc: Doc, corpus: Corpus): Score {
  if (field === 'n' || field === 'flag') return evaluate({ term: { [field]: text } }, doc, corpus);
  const found = field === 'kw' ? [String(text)] : words(text);
  const scores = found.map((word) =>
    'fuzziness' in options
      ? termsOf(doc, field).some((term) => isNear(word, term, options))
        ? NaN
        : undefined
      : termScore(doc, corpus, field, word),
  );
  const all = options['operator'] === 'and';
  const spec = options['minimum_should_match'];
  const least = all ? found.length : spec === undefined ? 1 : minimum(found.length, spec);
  return sum(scores, found.length === 1 ? 1 : least);
}

function phraseIn(field: string, text: unknown, doc: Doc, corpus: Corpus): Score {
  const places = words(text).map((word) => [word]);
  return places.length === 1
    ? termScore(doc, corpus, field, words(text)[0] ?? '')
    : phraseScore(doc, corpus, field, places);
}

function phrasePrefixIn(field: string, text: unknown, doc: Doc, corpus: Corpus): Score {
  const all = words(text);
  const ends = vocabulary(corpus, field).filter((term) => term.startsWith(all.at(-1) ?? ''));
  if (all.length === 1) return sum(ends.map((term) => termScore(doc, corpus, field, term)));
  return phraseScore(doc, corpus, field, [...all.slice(0, -1).map((word) => [word]), ends]);
}

function boolPrefixIn(field: string, text: unknown, options: Query, doc: Doc, corpus: Corpus): Score {
  const all = words(text);
  const last = constant(termsOf(doc, field).some((term) => term.startsWith(all.at(-1) ?? '')));
  const scores = [...all.slice(0, -1).map((word) => termScore(doc, corpus, field, word)), last];
  return sum(scores, options['operator'] === 'and' ? scores.length : 1);
}

function multiMatch(body: Query, doc: Doc, corpus: Corpus): Score {
  const fields = (body['fields'] as string[]).map((field): [string, number] => {
    const [name = '', boost = '1'] = field.split('^');
    return [name, Number(boost)];
  });
  const type = String(body['type'] ?? 'best_fields');
  if (type === 'cross_fields') return combined(body, doc);
  const scores = fields.map(([field, boost]) => {
    const text = body['query'];
    const score =
      type === 'phrase'
        ? phraseIn(field, text, doc, corpus)
        : type === 'phrase_prefix'
          ? phrasePrefixIn(field, text, doc, corpus)
          : type === 'bool_prefix'
            ? boolPrefixIn(field, text, body, doc, corpus)
            : matchIn(field, text, body, doc, corpus);
    return score === undefined ? undefined : score * boost;
  });
  const usual = type === 'most_fields' || type === 'bool_prefix' ? 1 : 0;
  return best(scores, Number(body['tie_breaker'] ?? usual));
}

/** Each word in any of the fields; its score blends their statistics, which is not worked out here. */
function combined(body: Query, doc: Doc): Score {
  const fields = (body['fields'] as string[]).map((field) => field.split('^')[0] ?? '');
  const all = words(body['query']);
  const found = all.filter((word) => fields.some((field) => termsOf(doc, field).includes(word)));
  return found.length >= (body['operator'] === 'and' ? all.length : 1) ? NaN : undefined;
}

const matching = (random: Random): object => ({
  ...random.maybe(0.3, () => ({ operator: random.pick(['and', 'or']) })),
  ...random.maybe(0.3, () => ({ minimum_should_match: minimumClauses(random) })),
  ...boost(random),
});

export const kinds: Kinds = {
  match: {
    optionsBelowField: true,
    make: (random) => {
      const field = random.pick([...TEXTS, ...TEXTS, 'kw', 'n', 'flag']);
      if (field === 'n') return { n: { query: random.int(-5, 9), ...boost(random) } };
      if (field === 'flag') return { flag: { query: random.chance(0.5), ...boost(random) } };
      if (field === 'kw') return { kw: random.pick(KEYWORDS) };
      if (random.chance(0.3)) return { [field]: text(random, 3) };
      const fuzzy = random.maybe(0.2, () => ({
        fuzziness: random.pick([1, 'AUTO']),
        ...random.maybe(0.5, () => ({ prefix_length: 1 })),
      }));
      const words = random.several(1, 4, () => random.pick(WORDS)).join(' ');
      return { [field]: { query: words, ...fuzzy, ...matching(random) } };
    },
    score: (body, doc, corpus) => {
      const [field, options] = single(body, 'query');
      return matchIn(field, options['query'], options, doc, corpus);
    },
  },
  match_phrase: {
    optionsBelowField: true,
    make: (random) => ({
      [random.pick(TEXTS)]: { query: random.several(1, 3, () => random.pick(WORDS)).join(' '), ...boost(random) },
    }),
    score: (body, doc, corpus) => {
      const [field, options] = single(body, 'query');
      return phraseIn(field, options['query'], doc, corpus);
    },
  },
  match_phrase_prefix: {
    optionsBelowField: true,
    make: (random) => {
      const words = random.several(0, 2, () => random.pick(WORDS)) as string[];
      return { [random.pick(TEXTS)]: { query: [...words, start(random).toLowerCase()].join(' '), ...boost(random) } };
    },
    score: (body, doc, corpus) => {
      const [field, options] = single(body, 'query');
      return phrasePrefixIn(field, options['query'], doc, corpus);
    },
  },
  match_bool_prefix: {
    optionsBelowField: true,
    make: (random) => {
      const words = random.several(0, 2, () => random.pick(WORDS)) as string[];
      const operator = random.maybe(0.4, () => ({ operator: random.pick(['and', 'or']) }));
      const query = [...words, start(random).toLowerCase()].join(' ');
      return { [random.pick(TEXTS)]: { query, ...operator, ...boost(random) } };
    },
    score: (body, doc, corpus) => {
      const [field, options] = single(body, 'query');
      return boolPrefixIn(field, options['query'], options, doc, corpus);
    },
  },
  more_like_this: {
    make: (random) => ({
      fields: [random.pick(TEXTS)],
      like: random.several(1, 5, () => random.pick(WORDS)).join(' '),
      min_term_freq: 1,
      min_doc_freq: 1,
      minimum_should_match: random.pick([1, 2, '50%', '100%']),
      ...boost(random),
    }),
    score: (body, doc, corpus) => {
      const field = String((body['fields'] as string[])[0]);
      const found = [...new Set(words(body['like']))].filter((word) => docFreq(corpus, field, word) > 0);
      const scores = found.map((word) => termScore(doc, corpus, field, word));
      return sum(scores, minimum(found.length, body['minimum_should_match']));
    },
  },
  multi_match: {
    make: (random) => {
      const type = random.pick([
        'best_fields',
        'most_fields',
        'cross_fields',
        'phrase',
        'phrase_prefix',
        'bool_prefix',
      ]);
      const operator = type.startsWith('phrase')
        ? {}
        : random.maybe(0.4, () => ({ operator: random.pick(['and', 'or']) }));
      return {
        query: text(random, 3),
        fields: random.pick([['t', 't2'], ['t^3', 't2'], ['t']]),
        ...random.maybe(0.8, () => ({ type })),
        ...operator,
        ...random.maybe(0.4, () => ({ tie_breaker: random.int(0, 4) / 4 })),
        ...boost(random),
      };
    },
    score: multiMatch,
  },
  combined_fields: {
    make: (random) => ({
      query: text(random, 3),
      fields: random.pick([
        ['t', 't2'],
        ['t^3', 't2'],
      ]),
      ...random.maybe(0.4, () => ({ operator: random.pick(['and', 'or']) })),
      ...boost(random),
    }),
    score: combined,
  },
};
