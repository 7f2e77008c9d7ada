/** What `function_score` comes to, by its documentation. */
import { boost, day, type Query } from '../clauses.js';
import { type Corpus, DAY, type Doc } from '../corpus.js';
import { any, evaluate, type Kinds, query } from '../queries.js';
import type { Random } from '../random.js';
import type { Score } from '../words.js';

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

function functionScore(body: Query, doc: Doc, corpus: Corpus): Score {
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

export const kinds: Kinds = {
  function_score: {
    holdsQueries: true,
    // Its functions see the boosted score.
    boostsItself: true,
    make: (random, depth) => {
      // Whether a text score reaches a limit depends on statistics, which deleted documents change.
      const limited = depth === 1 && random.chance(0.3);
      const inner = limited
        ? query(random, random.pick(['match_all', 'sparse_vector', 'range']), 3)
        : any(random, depth);
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
    score: functionScore,
  },
};
