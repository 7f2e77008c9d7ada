/** Exact values of fields. */
import { boost, constant, day, FIELDS, type Query, single, span, valuesOf } from '../clauses.js';
import { KEYWORDS, WORDS } from '../corpus.js';
import { evaluate, type Kinds } from '../queries.js';
import type { Random } from '../random.js';
import { minimum, sum, termScore, termsOf } from '../words.js';

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

function bounds(random: Random, value: () => number | string): object {
  const [low, high] = [value(), value()].sort((a, b) => (a < b ? -1 : 1));
  return {
    ...random.maybe(0.8, () => ({ [random.pick(['gt', 'gte'])]: low })),
    ...random.maybe(0.8, () => ({ [random.pick(['lt', 'lte'])]: high })),
  };
}

export const kinds: Kinds = {
  ids: {
    make: (random) => ({ values: random.several(0, 6, () => String(random.int(0, 80))), ...boost(random) }),
    score: (body, doc) => constant((body['values'] as string[]).includes(doc.id)),
  },
  exists: {
    make: (random) => ({ field: random.pick(FIELDS), ...boost(random) }),
    score: (body, doc) => constant(valuesOf(doc, body['field']).length > 0),
  },
  term: {
    optionsBelowField: true,
    make: (random) => {
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
    score: (body, doc, corpus) => {
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
  },
  terms: {
    make: (random) => {
      const values = random.pick<() => [string, unknown[]]>([
        () => ['kw', random.several(0, 3, () => random.pick(KEYWORDS))],
        () => ['t', random.several(0, 3, () => random.pick(WORDS))],
        () => ['n', random.several(0, 3, () => random.int(-5, 9))],
        () => ['when', random.several(0, 3, () => day(random))],
      ])();
      return { [values[0]]: values[1], ...boost(random) };
    },
    score: (body, doc, corpus) => {
      const [[field, values] = ['', []]] = Object.entries(body).filter(([name]) => name !== 'boost');
      const found = (values as unknown[]).some(
        (value) => evaluate({ term: { [field]: value } }, doc, corpus) !== undefined,
      );
      return constant(found);
    },
  },
  terms_set: {
    optionsBelowField: true,
    make: (random) => {
      const terms = random.several(0, 4, () => random.pick(KEYWORDS));
      const least = random.chance(0.6)
        ? { minimum_should_match_field: 'least' }
        : { minimum_should_match: random.pick(['1', '2', '50%', '-1']) };
      return { kw: { terms, ...least, ...boost(random) } };
    },
    score: (body, doc, corpus) => {
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
  },
  range: {
    optionsBelowField: true,
    make: (random) => {
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
    score: (body, doc) => {
      const [field, range] = single(body, 'gte');
      const zone = range['time_zone'] === '+02:00' ? 7_200_000 : 0;
      return constant(valuesOf(doc, field).some((value) => inRange(value as number | string, range, zone)));
    },
  },
};
