/** Random queries of every kind, as a request states them. */
import { DAY, DAYS, FIRST_DAY, KEYWORDS, TOKENS, WORDS } from './corpus.js';
import { MEANINGS, type Query } from './evaluate.js';
import type { Random } from './random.js';

type Make = (random: Random, depth: number) => Query;

const TEXTS = ['t', 't2'] as const;
const FIELDS = ['kw', 't', 't2', 'n', 'd', 'when', 'flag', 'ip', 'least', 'rank', 'rf', 'sv', 'v', 'nope'] as const;

const boost = (random: Random): object => random.maybe(0.3, () => ({ boost: random.int(1, 6) / 2 }));
const text = (random: Random, most: number): string =>
  [...new Set(random.several(1, most, () => random.pick(WORDS)))].join(' ');
const start = (random: Random): string => random.pick(['a', 'b', 'ab', 'c', 'ca', 'x', 'A']);
export const day = (random: Random): string =>
  new Date(FIRST_DAY + random.int(-2, DAYS + 2) * DAY).toISOString().slice(0, 10);

/** How many clauses must match, in every way to say it. */
const minimum = (random: Random): string | number =>
  random.pick([1, 2, '2', '-1', '50%', '-50%', '1<50%', '1<-1 3<50%']);

function weights(random: Random): Record<string, number> {
  const chosen = random.some(TOKENS, 0.5);
  const entries = [...chosen, 'nope'].map((token): [string, number] => [token, random.int(1, 8) / 2]);
  return Object.fromEntries(entries);
}

const pruning = (random: Random): object => ({
  ...random.maybe(0.8, () => ({ tokens_freq_ratio_threshold: random.int(1, 2) })),
  ...random.maybe(0.8, () => ({ tokens_weight_threshold: random.int(0, 4) / 4 })),
  ...random.maybe(0.3, () => ({ only_score_pruned_tokens: random.chance(0.7) })),
});

function bounds(random: Random, value: () => number | string): object {
  const [low, high] = [value(), value()].sort((a, b) => (a < b ? -1 : 1));
  return {
    ...random.maybe(0.8, () => ({ [random.pick(['gt', 'gte'])]: low })),
    ...random.maybe(0.8, () => ({ [random.pick(['lt', 'lte'])]: high })),
  };
}

const any: Make = (random, depth) => query(random, random.pick(depth > 1 ? LEAVES : KINDS), depth + 1);
const several = (random: Random, depth: number): Query[] => random.several(0, 2, () => any(random, depth));

function decayFunction(random: Random): object {
  const curve = random.pick(['gauss', 'exp', 'linear']);
  const decay = random.maybe(0.3, () => ({ decay: random.int(1, 9) / 10 }));
  if (random.chance(0.4)) {
    const offset = random.maybe(0.5, () => ({ offset: `${String(random.int(1, 5))}d` }));
    return { [curve]: { when: { origin: day(random), scale: `${String(random.int(1, 20))}d`, ...offset, ...decay } } };
  }
  const offset = random.maybe(0.5, () => ({ offset: random.int(0, 3) }));
  const options = { origin: random.int(-5, 9), scale: random.int(1, 6), ...offset, ...decay };
  const mode = random.maybe(0.5, () => ({ multi_value_mode: random.pick(['min', 'max', 'avg', 'sum']) }));
  return { [curve]: { [random.pick(['n', 'd'])]: options, ...mode } };
}

function scoreFunction(random: Random): object {
  const kind = random.int(0, 3);
  if (kind === 0) return { weight: random.int(0, 6) / 2 };
  const weight = random.maybe(0.4, () => ({ weight: random.int(1, 6) / 2 }));
  if (kind === 1) return { ...decayFunction(random), ...weight };
  const modifier = random.pick(['none', 'log', 'log1p', 'log2p', 'ln', 'ln1p', 'ln2p', 'square', 'sqrt', 'reciprocal']);
  return { field_value_factor: { field: 'pop', factor: random.int(1, 3), modifier, missing: 1 }, ...weight };
}

/** A rule of `intervals`; words of one rule differ. */
function rule(random: Random, depth: number): Query {
  const filter =
    depth > 1
      ? {}
      : random.maybe(0.3, () => ({
          filter: {
            [random.pick([
              'after',
              'before',
              'contained_by',
              'containing',
              'not_contained_by',
              'not_containing',
              'not_overlapping',
              'overlapping',
            ])]: rule(random, 2),
          },
        }));
  const gaps = random.maybe(0.5, () => ({ max_gaps: random.int(-1, 3) }));
  const ordered = random.maybe(0.5, () => ({ ordered: random.chance(0.6) }));
  switch (random.int(depth > 0 ? 0 : 1, depth > 0 ? 6 : 8)) {
    case 0:
      return { match: { query: random.pick(WORDS) } };
    case 1:
    case 2:
      return { match: { query: text(random, 3), ...gaps, ...ordered, ...filter } };
    case 3:
      return { prefix: { prefix: start(random).toLowerCase() } };
    case 4:
      return { wildcard: { pattern: `${random.pick(['a', 'c', '?'])}*` } };
    case 5: {
      const [low, high] = [random.pick(WORDS), random.pick(WORDS)].sort();
      return random.chance(0.5)
        ? { regexp: { pattern: random.pick(['a.', '[bc]+a?b', '.*b']) } }
        : { range: { [random.pick(['gt', 'gte'])]: low, [random.pick(['lt', 'lte'])]: high } };
    }
    case 6:
      return { fuzzy: { term: random.pick(WORDS), fuzziness: random.int(0, 1) } };
    case 7:
      return { any_of: { intervals: random.several(1, 3, () => rule(random, depth + 1)), ...filter } };
    default: {
      const words = text(random, 3).split(' ');
      const intervals = words.map((word) => ({ match: { query: word } }));
      return { all_of: { intervals, ...gaps, ...ordered, ...filter } };
    }
  }
}

/** A text of a query syntax beside the query that it stands for. */
interface Written {
  readonly text: string;
  readonly means: Query;
}

function writtenTerm(random: Random, lucene: boolean): Written {
  const word = random.pick(WORDS);
  switch (random.int(0, lucene ? 12 : 3)) {
    case 0: {
      const phrase = `${random.pick(WORDS)} ${random.pick(WORDS)}`;
      return { text: `"${phrase}"`, means: { match_phrase: { t: phrase } } };
    }
    case 1:
      return { text: `${word.slice(0, 2)}*`, means: { prefix: { t: word.slice(0, 2) } } };
    case 2:
      return { text: `${word}~1`, means: { fuzzy: { t: { value: word, fuzziness: 1 } } } };
    case 4:
      return { text: `t2:${word}`, means: { match: { t2: word } } };
    case 5: {
      const pattern = `${word.slice(0, 1)}?*`;
      return { text: `t:${pattern}`, means: { wildcard: { t: pattern } } };
    }
    case 6: {
      const [low, high] = [random.int(-5, 3), random.int(0, 9)];
      const [from, to] = [random.pick(['gt', 'gte']), random.pick(['lt', 'lte'])];
      const open = from === 'gt' ? '{' : '[';
      const close = to === 'lt' ? '}' : ']';
      const means = { range: { n: { [from]: low, [to]: high } } };
      return { text: `n:${open}${String(low)} TO ${String(high)}${close}`, means };
    }
    case 7: {
      const from = day(random);
      const [sign, name] = random.pick([
        ['>', 'gt'],
        ['>=', 'gte'],
        ['<', 'lt'],
        ['<=', 'lte'],
      ] as const);
      return { text: `when:${sign}${from}`, means: { range: { when: { [name]: from } } } };
    }
    case 8: {
      const field = random.pick(FIELDS);
      return { text: `_exists_:${field}`, means: { exists: { field } } };
    }
    case 9:
      return { text: 't:/[ab]+c?/', means: { regexp: { t: '[ab]+c?' } } };
    case 10: {
      const keyword = random.pick(KEYWORDS);
      return { text: `kw:${keyword}`, means: { term: { kw: keyword } } };
    }
    case 11:
      return { text: `n:[${String(random.int(-2, 3))} TO *]`, means: {} };
    default:
      return { text: word, means: { match: { t: word } } };
  }
}

function lucene(random: Random, depth: number): Written {
  const one = (): Written => {
    const nested = depth < 2 && random.chance(0.25);
    const term = nested ? lucene(random, depth + 1) : writtenTerm(random, true);
    const written = nested ? `(${term.text})` : term.text;
    if (Object.keys(term.means).length === 0) {
      const low = Number(/-?\d+/.exec(term.text)?.[0]);
      return { text: term.text, means: { range: { n: { gte: low } } } };
    }
    if (!random.chance(0.2)) return { text: written, means: term.means };
    const factor = random.int(2, 4);
    return { text: `${written}^${String(factor)}`, means: { bool: { must: [term.means], boost: factor } } };
  };
  const parts = random.several(1, 3, one);
  if (random.chance(0.4) && parts.length > 1) {
    const [word, clause] = random.pick([
      [' AND ', 'must'],
      [' && ', 'must'],
      [' OR ', 'should'],
      [' || ', 'should'],
    ] as const);
    return {
      text: parts.map((part) => part.text).join(word),
      means: { bool: { [clause]: parts.map((p) => p.means) } },
    };
  }
  const signs = parts.map((_, n) => random.pick(n === 0 ? ['', '+'] : ['', '+', '-', 'NOT ', '!']));
  const of = (...wanted: string[]): Query[] =>
    parts.filter((_, n) => wanted.includes(signs[n] ?? '')).map((part) => part.means);
  return {
    text: parts.map((part, n) => `${signs[n] ?? ''}${part.text}`).join(' '),
    means: { bool: { should: of(''), must: of('+'), must_not: of('-', 'NOT ', '!') } },
  };
}

function simple(random: Random, depth: number): Written {
  const parts = random.several(1, 3, () => {
    if (depth >= 2 || random.chance(0.7)) return writtenTerm(random, false);
    const inner = simple(random, depth + 1);
    return { ...inner, text: `(${inner.text})` };
  });
  const [word, clause] = random.pick([
    [' + ', 'must'],
    [' | ', 'should'],
  ] as const);
  const [only] = parts;
  if (parts.length === 1 && only) return only;
  return { text: parts.map((part) => part.text).join(word), means: { bool: { [clause]: parts.map((p) => p.means) } } };
}

function written(random: Random, body: object, made: Written): Query {
  const whole = { ...body, query: made.text, ...boost(random) };
  MEANINGS.set(whole, made.means);
  return whole;
}

const matching = (random: Random): object => ({
  ...random.maybe(0.3, () => ({ operator: random.pick(['and', 'or']) })),
  ...random.maybe(0.3, () => ({ minimum_should_match: minimum(random) })),
  ...boost(random),
});

const cased = (random: Random): object => ({
  ...random.maybe(0.3, () => ({ case_insensitive: random.chance(0.7) })),
  ...random.maybe(0.2, () => ({ rewrite: random.pick(['constant_score', 'scoring_boolean']) })),
  ...boost(random),
});

const wordField = (random: Random): string => random.pick(['kw', 't', 't2', 'nope']);

const MAKERS: Readonly<Record<string, Make>> = {
  match_all: (random) => boost(random),
  match_none: () => ({}),
  bool: (random, depth) => {
    const should = several(random, depth);
    return {
      ...random.maybe(0.6, () => ({ must: several(random, depth) })),
      ...random.maybe(0.6, () => ({ should })),
      ...random.maybe(0.3, () => ({ filter: several(random, depth) })),
      ...random.maybe(0.3, () => ({ must_not: any(random, depth) })),
      ...random.maybe(0.2, () => ({ minimum_should_match: minimum(random) })),
      ...random.maybe(0.1, () => ({ adjust_pure_negative: random.chance(0.5) })),
      ...boost(random),
    };
  },
  boosting: (random, depth) => ({
    positive: any(random, depth),
    negative: any(random, depth),
    negative_boost: random.int(0, 4) / 4,
    ...boost(random),
  }),
  constant_score: (random, depth) => ({ filter: any(random, depth), ...boost(random) }),
  dis_max: (random, depth) => ({
    queries: random.several(1, 3, () => any(random, depth)),
    ...random.maybe(0.6, () => ({ tie_breaker: random.int(0, 4) / 4 })),
    ...boost(random),
  }),
  function_score: (random, depth) => {
    // Whether a text score reaches a limit depends on statistics, which deleted documents change.
    const limited = depth === 1 && random.chance(0.3);
    const inner = limited ? query(random, random.pick(['match_all', 'sparse_vector', 'range']), 3) : any(random, depth);
    const filtered = (): object => random.maybe(0.4, () => ({ filter: any(random, 2) }));
    return {
      ...random.maybe(0.7, () => ({ query: inner })),
      ...(random.chance(0.3)
        ? scoreFunction(random)
        : { functions: random.several(0, 3, () => ({ ...scoreFunction(random), ...filtered() })) }),
      ...random.maybe(0.6, () => ({ score_mode: random.pick(['multiply', 'sum', 'avg', 'first', 'max', 'min']) })),
      // Below another query its boost would come before the functions.
      ...(depth === 1
        ? random.maybe(0.7, () => ({ boost_mode: random.pick(['multiply', 'replace', 'sum', 'avg', 'max', 'min']) }))
        : {}),
      ...random.maybe(0.3, () => ({ max_boost: random.int(1, 8) / 2 })),
      ...(limited ? { min_score: random.int(1, 9) + 0.123 } : {}),
      ...boost(random),
    };
  },
  wrapper: (random, depth) => {
    // A text of a query syntax would come out of it without its meaning.
    const inner = query(random, random.pick(['term', 'range', 'match', 'sparse_vector', 'exists']), depth + 1);
    return { query: Buffer.from(JSON.stringify(inner)).toString('base64') };
  },
  nested: (random) => {
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
  script: (random) => ({
    script: {
      source: "doc['d'].size() > 0 && doc['d'].value * params.times > params.least",
      params: { times: random.int(1, 3), least: random.int(-9, 15) },
    },
  }),
  script_score: (random) => ({
    query: query(random, random.pick(['match_all', 'range', 'exists', 'nested', 'script']), 3),
    script: {
      source: "def pop = doc['pop'].size() == 0 ? params.none : doc['pop'].value; return _score * params.times + pop;",
      params: { none: random.int(0, 9), times: random.int(0, 3) },
    },
  }),
  ids: (random) => ({ values: random.several(0, 6, () => String(random.int(0, 80))), ...boost(random) }),
  exists: (random) => ({ field: random.pick(FIELDS), ...boost(random) }),
  term: (random) => {
    const [field, value] = random.pick<() => [string, unknown]>([
      () => ['kw', random.pick(KEYWORDS)],
      () => ['t', random.pick(WORDS)],
      () => ['n', random.int(-5, 9)],
      () => ['d', random.int(-8, 12) / 2],
      () => ['when', day(random)],
      () => ['flag', random.chance(0.5)],
      () => ['ip', `10.0.0.${String(random.int(1, 9))}`],
    ])();
    if (field !== 'kw' && random.chance(0.5)) return { [field]: value };
    const insensitive = field === 'kw' ? random.maybe(0.4, () => ({ case_insensitive: random.chance(0.7) })) : {};
    return { [field]: { value, ...insensitive, ...boost(random) } };
  },
  terms: (random) => {
    const values = random.pick<() => [string, unknown[]]>([
      () => ['kw', random.several(0, 3, () => random.pick(KEYWORDS))],
      () => ['t', random.several(0, 3, () => random.pick(WORDS))],
      () => ['n', random.several(0, 3, () => random.int(-5, 9))],
      () => ['when', random.several(0, 3, () => day(random))],
    ])();
    return { [values[0]]: values[1], ...boost(random) };
  },
  terms_set: (random) => {
    const terms = random.several(0, 4, () => random.pick(KEYWORDS));
    const least = random.chance(0.6)
      ? { minimum_should_match_field: 'least' }
      : { minimum_should_match: random.pick(['1', '2', '50%', '-1']) };
    return { kw: { terms, ...least, ...boost(random) } };
  },
  range: (random) => {
    switch (random.int(0, 3)) {
      case 0:
        return { n: { ...bounds(random, () => random.int(-6, 10)), ...boost(random) } };
      case 1:
        return { d: { ...bounds(random, () => random.int(-9, 13) / 2), ...boost(random) } };
      case 2:
        return { kw: { ...bounds(random, () => random.pick(KEYWORDS)), ...boost(random) } };
      default: {
        const zone = random.maybe(0.3, () => ({ time_zone: '+02:00' }));
        const round = random.chance(0.2) ? '||/M' : '';
        return { when: { ...bounds(random, () => day(random) + round), ...zone, ...boost(random) } };
      }
    }
  },
  prefix: (random) => ({ [wordField(random)]: { value: start(random), ...cased(random) } }),
  wildcard: (random) => ({
    [wordField(random)]: { value: random.pick(['a*', '?b*', '*b', 'A?', '*', 'c?b', '?']), ...cased(random) },
  }),
  regexp: (random) => ({
    [wordField(random)]: { value: random.pick(['a.*', '[ab]+', '(aa|ab)c?', '.b', 'A.', 'c?.*b']), ...cased(random) },
  }),
  fuzzy: (random) => ({
    [random.pick(TEXTS)]: {
      value: random.pick([...WORDS, 'abcd', 'bac']),
      ...random.maybe(0.7, () => ({ fuzziness: random.pick([0, 1, 2, 'AUTO', 'AUTO:2,4', '1']) })),
      ...random.maybe(0.3, () => ({ prefix_length: random.int(0, 2) })),
      ...random.maybe(0.3, () => ({ transpositions: random.chance(0.5) })),
      ...boost(random),
    },
  }),
  match: (random) => {
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
  match_phrase: (random) => ({
    [random.pick(TEXTS)]: { query: random.several(1, 3, () => random.pick(WORDS)).join(' '), ...boost(random) },
  }),
  match_phrase_prefix: (random) => {
    const words = random.several(0, 2, () => random.pick(WORDS)) as string[];
    return { [random.pick(TEXTS)]: { query: [...words, start(random).toLowerCase()].join(' '), ...boost(random) } };
  },
  match_bool_prefix: (random) => {
    const words = random.several(0, 2, () => random.pick(WORDS)) as string[];
    const operator = random.maybe(0.4, () => ({ operator: random.pick(['and', 'or']) }));
    const query = [...words, start(random).toLowerCase()].join(' ');
    return { [random.pick(TEXTS)]: { query, ...operator, ...boost(random) } };
  },
  more_like_this: (random) => ({
    fields: [random.pick(TEXTS)],
    like: random.several(1, 5, () => random.pick(WORDS)).join(' '),
    min_term_freq: 1,
    min_doc_freq: 1,
    minimum_should_match: random.pick([1, 2, '50%', '100%']),
    ...boost(random),
  }),
  multi_match: (random) => {
    const type = random.pick(['best_fields', 'most_fields', 'cross_fields', 'phrase', 'phrase_prefix', 'bool_prefix']);
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
  combined_fields: (random) => ({
    query: text(random, 3),
    fields: random.pick([
      ['t', 't2'],
      ['t^3', 't2'],
    ]),
    ...random.maybe(0.4, () => ({ operator: random.pick(['and', 'or']) })),
    ...boost(random),
  }),
  query_string: (random) => written(random, { default_field: 't' }, lucene(random, 0)),
  simple_query_string: (random) => written(random, { fields: ['t'] }, simple(random, 0)),
  intervals: (random) => ({ [random.pick(TEXTS)]: rule(random, 0) }),
  sparse_vector: (random) => ({
    field: 'sv',
    query_vector: weights(random),
    ...random.maybe(0.4, () => ({ prune: true, pruning_config: pruning(random) })),
    ...boost(random),
  }),
  weighted_tokens: (random) => ({
    sv: {
      tokens: weights(random),
      ...random.maybe(0.4, () => ({ pruning_config: pruning(random) })),
      ...boost(random),
    },
  }),
  knn: (random, depth) => ({
    field: 'v',
    query_vector: [random.int(-5000, 5000) / 1000, random.int(-5000, 5000) / 1000],
    k: random.int(1, 20),
    num_candidates: 100,
    ...random.maybe(0.5, () => ({ filter: any(random, Math.max(depth, 2)) })),
    ...random.maybe(0.2, () => ({ similarity: random.int(1, 5) + 0.0123 })),
    ...boost(random),
  }),
  rank_feature: (random) => {
    const functions = [
      { saturation: { pivot: random.int(1, 50) } },
      { log: { scaling_factor: random.int(1, 5) } },
      { sigmoid: { pivot: random.int(1, 50), exponent: random.int(1, 8) / 4 } },
      { linear: {} },
    ];
    return { field: random.pick(['rank', 'rf.w1']), ...random.pick(functions), ...boost(random) };
  },
  distance_feature: (random) => ({
    field: 'when',
    origin: day(random),
    pivot: `${String(random.int(1, 20))}d`,
    ...boost(random),
  }),
};

export const KINDS = Object.keys(MAKERS);
const COMPOUND = ['bool', 'boosting', 'constant_score', 'dis_max', 'function_score', 'wrapper'];
const LEAVES = KINDS.filter((kind) => !COMPOUND.includes(kind));

/** A random query of a kind; those inside others are `depth` deep. */
export function query(random: Random, kind: string, depth = 1): Query {
  return { [kind]: MAKERS[kind]?.(random, depth) ?? {} };
}

/** Whether what a query finds depends on statistics of tokens, which deleted documents change until a merge. */
export function prunes(query: Query): boolean {
  const body = JSON.stringify(query);
  const hidden = [...body.matchAll(/"wrapper":\{"query":"([^"]+)"/g)].map(([, encoded = '']) =>
    Buffer.from(encoded, 'base64').toString(),
  );
  return [body, ...hidden].some((text) => text.includes('pruning_config'));
}
