/**
 * What a query means, document by document, by its documentation: slow, and sharing nothing with the server. Text is
 * scored where the corpus has exact statistics.
 */
import { DAY, type Corpus, type Doc } from './corpus.js';
import { functionScore } from './functions.js';
import { intervalsOf } from './intervals.js';
import {
  best,
  docFreq,
  fuzzyScore,
  isNear,
  minimum,
  phraseScore,
  type Score,
  sum,
  termScore,
  termsOf,
  vocabulary,
} from './words.js';

export type Query = Readonly<Record<string, any>>;

/** The query that a text in a query syntax stands for, kept by the one who wrote both. */
export const MEANINGS = new WeakMap<object, Query>();

type Evaluator = (body: Query, doc: Doc, corpus: Corpus) => Score;

const constant = (matches: boolean): Score => (matches ? 1 : undefined);

/** The one field of a clause such as `{"match": {"title": …}}`, its options as an object. */
function single(body: Query, key: string): [string, Query] {
  const [[field, value] = ['', {}]] = Object.entries(body);
  return [field, typeof value === 'object' && value !== null ? value : { [key]: value }];
}

/** Values of a field as comparable numbers or texts. */
export function valuesOf(doc: Doc, field: string): (number | string | boolean)[] {
  const value = (doc.source as Record<string, unknown>)[field];
  const list = value === undefined ? [] : Array.isArray(value) ? value : [value];
  return field === 'when' ? list.map((date) => Date.parse(String(date))) : list;
}

/** First and last millisecond of what a date in a query stands for. */
export function span(text: string, zone = 0): [number, number] {
  const [day = '', round] = text.split('||/');
  const start = Date.parse(`${day}T00:00:00Z`) - zone;
  if (round === 'M') {
    const date = new Date(Date.parse(`${day}T00:00:00Z`));
    const month = (plus: number): number => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + plus) - zone;
    return [month(0), month(1) - 1];
  }
  return [start, start + DAY - 1];
}

function inRange(value: number | string, range: Query, zone: number): boolean {
  const bytes = (text: string): string => Buffer.from(text).toString('hex');
  const end = (name: string, upper: boolean): number | string => {
    const bound = range[name];
    if (typeof value === 'string') return bytes(String(bound));
    return typeof bound === 'string' ? span(bound, zone)[upper ? 1 : 0] : bound;
  };
  const own = typeof value === 'string' ? bytes(value) : value;
  return (
    (!('gte' in range) || own >= end('gte', false)) &&
    (!('gt' in range) || own > end('gt', true)) &&
    (!('lte' in range) || own <= end('lte', true)) &&
    (!('lt' in range) || own < end('lt', false))
  );
}

function pattern(source: string, ignoreCase: unknown): RegExp {
  return new RegExp(`^(?:${source})$`, ignoreCase === true ? 'is' : 's');
}

/** Any term of the field that the expression matches. */
function byPattern(doc: Doc, field: string, expression: RegExp, options: Query): Score {
  if (!termsOf(doc, field).some((term) => expression.test(term))) return undefined;
  return options['rewrite'] === 'scoring_boolean' ? NaN : 1;
}

const words = (text: unknown): string[] => String(text).split(' ').filter(Boolean);

function matchIn(field: string, text: unknown, options: Query, doc: Doc, corpus: Corpus): Score {
  if (field === 'n' || field === 'flag') return EVALUATORS['term']?.({ [field]: text }, doc, corpus);
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

/** Tokens that pruning leaves, by its definition. */
export function kept(tokens: Readonly<Record<string, number>>, field: 'sv', config: Query, corpus: Corpus): string[] {
  const docs = corpus.docs.map(({ source }) => Object.keys(source[field] ?? {})).filter((own) => own.length > 0);
  const postings = docs.reduce((all, own) => all + own.length, 0);
  // In single precision, as Elasticsearch computes it: what is pruned may hang on the last bit.
  const { fround } = Math;
  const average = fround(fround(postings / docs.length) / new Set(docs.flat()).size);
  const heaviest = Math.max(...Object.values(tokens));
  return Object.entries(tokens)
    .filter(([token, weight]) => {
      const share = fround(docs.filter((own) => own.includes(token)).length / docs.length);
      const frequent = share >= fround((config['tokens_freq_ratio_threshold'] ?? 5) * average);
      const light = weight <= fround(fround(config['tokens_weight_threshold'] ?? 0.4) * heaviest);
      return (frequent && light) === (config['only_score_pruned_tokens'] ?? false);
    })
    .map(([token]) => token);
}

function sparse(tokens: Record<string, number>, config: Query | undefined, doc: Doc, corpus: Corpus): Score {
  const scored = config === undefined ? Object.keys(tokens) : kept(tokens, 'sv', config, corpus);
  const stored = doc.source.sv ?? {};
  return sum(scored.map((token) => (stored[token] === undefined ? undefined : (tokens[token] ?? 0) * stored[token])));
}

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

function rankFeature(body: Query, doc: Doc): Score {
  const [field = '', token = ''] = String(body['field']).split('.');
  const value = field === 'rank' ? doc.source.rank : doc.source.rf?.[token];
  if (value === undefined) return undefined;
  if (body['log']) return Math.log(body['log'].scaling_factor + value);
  if (body['linear']) return value;
  const { pivot, exponent } = body['sigmoid'] ?? { pivot: body['saturation'].pivot, exponent: 1 };
  return value ** exponent / (value ** exponent + pivot ** exponent);
}

const EVALUATORS: Readonly<Record<string, Evaluator>> = {
  match_all: () => 1,
  match_none: () => undefined,
  bool,
  boosting: (body, doc, corpus) => {
    const score = evaluate(body['positive'], doc, corpus);
    if (score === undefined || evaluate(body['negative'], doc, corpus) === undefined) return score;
    return score * body['negative_boost'];
  },
  constant_score: (body, doc, corpus) => constant(evaluate(body['filter'], doc, corpus) !== undefined),
  dis_max: (body, doc, corpus) =>
    best(
      (body['queries'] as Query[]).map((query) => evaluate(query, doc, corpus)),
      body['tie_breaker'] ?? 0,
    ),
  function_score: (body, doc, corpus) => functionScore(body, doc, corpus, evaluate),
  wrapper: (body, doc, corpus) => evaluate(JSON.parse(Buffer.from(body['query'], 'base64').toString()), doc, corpus),
  nested: (body, doc, corpus) => {
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
  script: ({ script: { params } }, doc) =>
    constant(doc.source.d !== undefined && doc.source.d * params.times > params.least),
  script_score: ({ query, script: { params } }, doc, corpus) => {
    const score = evaluate(query, doc, corpus);
    if (score === undefined) return undefined;
    // In an object of a nested field, or in a document.
    if ('f' in params) return Number(valuesOf(doc, 'o.n')[0]) * params.f;
    return score * params.times + (doc.source.pop ?? params.none);
  },
  ids: (body, doc) => constant((body['values'] as string[]).includes(doc.id)),
  exists: (body, doc) => constant(valuesOf(doc, body['field']).length > 0),
  term: (body, doc, corpus) => {
    const [field, options] = single(body, 'value');
    const value = options['value'];
    if (field === 'kw' && options['case_insensitive'] === true) {
      return constant(termsOf(doc, field).some((term) => term.toLowerCase() === String(value).toLowerCase()));
    }
    if (['kw', 't', 't2'].includes(field)) return termScore(doc, corpus, field, String(value));
    if (field === 'when') {
      const [start, end] = span(String(value));
      return constant(valuesOf(doc, field).some((date) => Number(date) >= start && Number(date) <= end));
    }
    const found = valuesOf(doc, field).some((own) => String(own) === String(value));
    // A boolean is scored as a word is; that is not worked out.
    return found && field === 'flag' ? NaN : constant(found);
  },
  terms: (body, doc, corpus) => {
    const [[field, values] = ['', []]] = Object.entries(body).filter(([name]) => name !== 'boost');
    const found = (values as unknown[]).some(
      (value) => EVALUATORS['term']?.({ [field]: value }, doc, corpus) !== undefined,
    );
    return constant(found);
  },
  terms_set: (body, doc, corpus) => {
    const [field, options] = single(body, 'terms');
    const terms = [...new Set(options['terms'] as string[])];
    const spec = options['minimum_should_match'];
    const least = spec === undefined ? doc.source.least : minimum(terms.length, spec);
    if (least === undefined) return undefined;
    return sum(
      terms.map((term) => termScore(doc, corpus, field, term)),
      least,
    );
  },
  range: (body, doc) => {
    const [field, range] = single(body, 'gte');
    const zone = range['time_zone'] === '+02:00' ? 7_200_000 : 0;
    return constant(valuesOf(doc, field).some((value) => inRange(value as number | string, range, zone)));
  },
  prefix: (body, doc) => {
    const [field, options] = single(body, 'value');
    return byPattern(doc, field, pattern(`${String(options['value'])}.*`, options['case_insensitive']), options);
  },
  wildcard: (body, doc) => {
    const [field, options] = single(body, 'value');
    const source = String(options['value']).replaceAll('?', '.').replaceAll('*', '.*');
    return byPattern(doc, field, pattern(source, options['case_insensitive']), options);
  },
  regexp: (body, doc) => {
    const [field, options] = single(body, 'value');
    return byPattern(doc, field, pattern(String(options['value']), options['case_insensitive']), options);
  },
  fuzzy: (body, doc, corpus) => {
    const [field, options] = single(body, 'value');
    return fuzzyScore(doc, corpus, field, String(options['value']), options);
  },
  match: (body, doc, corpus) => {
    const [field, options] = single(body, 'query');
    return matchIn(field, options['query'], options, doc, corpus);
  },
  match_phrase: (body, doc, corpus) => {
    const [field, options] = single(body, 'query');
    return phraseIn(field, options['query'], doc, corpus);
  },
  match_phrase_prefix: (body, doc, corpus) => {
    const [field, options] = single(body, 'query');
    return phrasePrefixIn(field, options['query'], doc, corpus);
  },
  match_bool_prefix: (body, doc, corpus) => {
    const [field, options] = single(body, 'query');
    return boolPrefixIn(field, options['query'], options, doc, corpus);
  },
  more_like_this: (body, doc, corpus) => {
    const field = String((body['fields'] as string[])[0]);
    const found = [...new Set(words(body['like']))].filter((word) => docFreq(corpus, field, word) > 0);
    const scores = found.map((word) => termScore(doc, corpus, field, word));
    return sum(scores, minimum(found.length, body['minimum_should_match']));
  },
  multi_match: multiMatch,
  combined_fields: combined,
  query_string: (body, doc, corpus) => evaluate(MEANINGS.get(body) ?? {}, doc, corpus),
  simple_query_string: (body, doc, corpus) => evaluate(MEANINGS.get(body) ?? {}, doc, corpus),
  intervals: (body, doc) => {
    const [field, rule] = single(body, 'match');
    return intervalsOf(rule, termsOf(doc, field)).length > 0 ? NaN : undefined;
  },
  sparse_vector: (body, doc, corpus) =>
    sparse(body['query_vector'], body['prune'] === true ? (body['pruning_config'] ?? {}) : undefined, doc, corpus),
  weighted_tokens: (body, doc, corpus) => {
    const [, options] = single(body, 'tokens');
    return sparse(options['tokens'], options['pruning_config'], doc, corpus);
  },
  knn,
  rank_feature: rankFeature,
  distance_feature: (body, doc) => {
    const pivot = parseInt(body['pivot'], 10) * DAY;
    const [date] = valuesOf(doc, body['field']);
    return date === undefined ? undefined : pivot / (pivot + Math.abs(Number(date) - Date.parse(body['origin'])));
  },
};

export const EVALUATED = Object.keys(EVALUATORS);

/** The score that a query gives a document. */
export function evaluate(query: Query, doc: Doc, corpus: Corpus): Score {
  const [[name, body] = ['', {}]] = Object.entries(query);
  const evaluator = EVALUATORS[name];
  if (!evaluator) throw new Error(`no evaluator for ${name}`);
  const score = evaluator(body, doc, corpus);
  const inner = Object.values(body as object).find((value) => typeof value === 'object' && value !== null);
  const own = body.boost ?? (name in SINGLE ? inner?.boost : undefined) ?? 1;
  // The functions of a function_score see the boosted score.
  return score === undefined || name === 'function_score' ? score : score * own;
}

/** Queries whose options are below the name of a field. */
const SINGLE: Readonly<Record<string, true>> = Object.fromEntries(
  [
    'fuzzy',
    'intervals',
    'match',
    'match_bool_prefix',
    'match_phrase',
    'match_phrase_prefix',
    'prefix',
    'range',
    'regexp',
    'term',
    'terms_set',
    'weighted_tokens',
    'wildcard',
  ].map((name) => [name, true]),
);
