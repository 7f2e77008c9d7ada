/** What `function_score` comes to, by its documentation. */
import { DAY, type Corpus, type Doc } from './corpus.js';
import type { Query } from './evaluate.js';
import type { Score } from './words.js';

type Evaluate = (query: Query, doc: Doc, corpus: Corpus) => Score;

const MODIFIERS: Readonly<Record<string, (value: number) => number>> = {
  none: (value) => value,
  log: Math.log10,
  log1p: (value) => Math.log10(value + 1),
  log2p: (value) => Math.log10(value + 2),
  ln: Math.log,
  ln1p: Math.log1p,
  ln2p: (value) => Math.log(value + 2),
  square: (value) => value * value,
  sqrt: Math.sqrt,
  reciprocal: (value) => 1 / value,
};

const total = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);

/** A day, `3d`, as milliseconds; anything else is a number. */
const length = (value: unknown): number => (typeof value === 'string' ? parseInt(value, 10) * DAY : Number(value));

function decay(name: string, body: Query, doc: Doc): number {
  const [[field, options] = ['', {}]] = Object.entries(body).filter(([key]) => key !== 'multi_value_mode');
  const found = (doc.source as Record<string, unknown>)[field];
  const values = found === undefined ? [] : [found].flat();
  const number = (value: unknown): number => (typeof value === 'string' ? Date.parse(value) : Number(value));
  const offset = length(options.offset ?? 0);
  const far = values.map((value) => Math.max(Math.abs(number(value) - number(options.origin)) - offset, 0));
  if (far.length === 0) return 1;
  const mode = String(body['multi_value_mode'] ?? 'min');
  const distance =
    mode === 'min'
      ? Math.min(...far)
      : mode === 'max'
        ? Math.max(...far)
        : total(far) / (mode === 'avg' ? far.length : 1);
  const scale = length(options.scale);
  const share = Number(options.decay ?? 0.5);
  if (name === 'gauss') return share ** ((distance / scale) ** 2);
  if (name === 'exp') return share ** (distance / scale);
  return Math.max(1 - ((1 - share) * distance) / scale, 0);
}

function result(entry: Query, doc: Doc): number {
  if (entry['field_value_factor']) {
    const { field, factor = 1, modifier = 'none', missing } = entry['field_value_factor'];
    const value = ((doc.source as Record<string, unknown>)[field] ?? missing) as number;
    return MODIFIERS[modifier]?.(value * factor) ?? NaN;
  }
  const name = ['gauss', 'exp', 'linear'].find((kind) => kind in entry);
  if (name !== undefined) return decay(name, entry[name], doc);
  return 'random_score' in entry ? NaN : 1;
}

export function functionScore(body: Query, doc: Doc, corpus: Corpus, evaluate: Evaluate): Score {
  const inner = evaluate(body['query'] ?? { match_all: {} }, doc, corpus);
  if (inner === undefined) return undefined;
  const own = inner * (body['boost'] ?? 1);
  const entries: Query[] = body['functions'] ?? [body];
  const applying = entries.filter(({ filter }) => !filter || evaluate(filter, doc, corpus) !== undefined);
  const weights = applying.map(({ weight }) => Number(weight ?? 1));
  const values = applying.map((entry, n) => result(entry, doc) * (weights[n] ?? 1));
  const mode = String(body['score_mode'] ?? 'multiply');
  let combined = 1;
  if (values.length > 0) {
    if (mode === 'multiply') combined = values.reduce((all, value) => all * value, 1);
    else if (mode === 'first') combined = values[0] ?? 1;
    else if (mode === 'max') combined = Math.max(...values);
    else if (mode === 'min') combined = Math.min(...values);
    else if (total(weights) !== 0) combined = mode === 'sum' ? total(values) : total(values) / total(weights);
  }
  combined = Math.min(combined, body['max_boost'] ?? Infinity);
  const boostMode = String(body['boost_mode'] ?? 'multiply');
  const score =
    entries.length === 0
      ? own
      : boostMode === 'multiply'
        ? own * combined
        : boostMode === 'replace'
          ? combined
          : boostMode === 'sum'
            ? own + combined
            : boostMode === 'avg'
              ? (own + combined) / 2
              : boostMode === 'max'
                ? Math.max(own, combined)
                : Math.min(own, combined);
  return 'min_score' in body && score < body['min_score'] ? undefined : score;
}
