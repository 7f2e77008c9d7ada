/** The intervals of a text that a rule of `intervals` finds: all are tried, and those that hold a smaller one dropped. */
import { type Query, single, start, text, TEXTS } from '../clauses.js';
import { WORDS } from '../corpus.js';
import type { Kinds } from '../queries.js';
import type { Random } from '../random.js';
import { isNear, termsOf } from '../words.js';

interface Interval {
  readonly start: number;
  readonly end: number;
  /** Positions between the parts. */
  readonly gaps: number;
}

function minimal(intervals: readonly Interval[]): Interval[] {
  const inside = (a: Interval, b: Interval): boolean => a.start >= b.start && a.end <= b.end;
  const same = (a: Interval, b: Interval): boolean => a.start === b.start && a.end === b.end;
  return intervals.filter(
    (one, n) =>
      !intervals.some((other, m) => inside(other, one) && (!same(other, one) || (m < n && other.gaps <= one.gaps))),
  );
}

/** One interval of each part. */
function choices(parts: readonly (readonly Interval[])[]): Interval[][] {
  return parts.reduce<Interval[][]>((all, part) => all.flatMap((chosen) => part.map((one) => [...chosen, one])), [[]]);
}

function combine(parts: readonly (readonly Interval[])[], ordered: boolean, maxGaps: number): Interval[] {
  const found = choices(parts)
    .filter((chosen) => !ordered || chosen.every((one, n) => n === 0 || one.start > (chosen[n - 1]?.end ?? 0)))
    .map((chosen) => {
      const start = Math.min(...chosen.map((one) => one.start));
      const end = Math.max(...chosen.map((one) => one.end));
      const covered = chosen.reduce((all, one) => all + one.end - one.start + 1, 0);
      return { start, end, gaps: end - start + 1 - covered };
    });
  return minimal(found).filter((one) => maxGaps < 0 || one.gaps <= maxGaps);
}

type Relation = (own: Interval, other: Interval) => boolean;

const overlap: Relation = (own, other) => own.start <= other.end && other.start <= own.end;
const RELATIONS: Readonly<Record<string, Relation>> = {
  after: (own, other) => own.start > other.end,
  before: (own, other) => own.end < other.start,
  contained_by: (own, other) => own.start >= other.start && own.end <= other.end,
  containing: (own, other) => other.start >= own.start && other.end <= own.end,
  overlapping: overlap,
};

function filtered(intervals: Interval[], filter: Query | undefined, terms: readonly string[]): Interval[] {
  if (!filter) return intervals;
  const [[name, rule] = ['', {}]] = Object.entries(filter);
  const others = intervalsOf(rule, terms);
  const relation = RELATIONS[name.replace('not_', '')] ?? overlap;
  if (name === 'not_overlapping') return intervals.filter((own) => !others.some((other) => overlap(own, other)));
  return intervals.filter((own) => others.some((other) => relation(own, other)) !== name.startsWith('not_'));
}

function intervalsOf(rule: Query, terms: readonly string[]): Interval[] {
  const [[name, body] = ['', {} as Query]] = Object.entries(rule).filter(([key]) => key !== 'boost');
  const places = (wanted: (term: string) => boolean): Interval[] =>
    terms.flatMap((term, at) => (wanted(term) ? [{ start: at, end: at, gaps: 0 }] : []));
  const leaf = (): Interval[] => {
    switch (name) {
      case 'match': {
        const words = String(body.query).split(' ');
        const parts = words.map((word) => places((term) => term === word));
        return words.length === 1 ? (parts[0] ?? []) : combine(parts, body.ordered ?? false, body.max_gaps ?? -1);
      }
      case 'prefix':
        return places((term) => term.startsWith(body.prefix));
      case 'wildcard': {
        const source = String(body.pattern).replaceAll('?', '.').replaceAll('*', '.*');
        return places((term) => new RegExp(`^${source}$`).test(term));
      }
      case 'regexp':
        return places((term) => new RegExp(`^(?:${String(body.pattern)})$`).test(term));
      case 'range':
        return places(
          (term) =>
            (!('gte' in body) || term >= body.gte) &&
            (!('gt' in body) || term > body.gt) &&
            (!('lte' in body) || term <= body.lte) &&
            (!('lt' in body) || term < body.lt),
        );
      case 'fuzzy':
        return places((term) => isNear(body.term, term, body));
      case 'any_of':
        return minimal((body.intervals as Query[]).flatMap((inner) => intervalsOf(inner, terms)));
      default: {
        const parts = (body.intervals as Query[]).map((inner) => intervalsOf(inner, terms));
        return combine(parts, body.ordered ?? false, body.max_gaps ?? -1);
      }
    }
  };
  return filtered(leaf(), body.filter, terms);
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

export const kinds: Kinds = {
  intervals: {
    optionsBelowField: true,
    make: (random) => ({ [random.pick(TEXTS)]: rule(random, 0) }),
    score: (body, doc) => {
      const [field, rule] = single(body, 'match');
      return intervalsOf(rule, termsOf(doc, field)).length > 0 ? NaN : undefined;
    },
  },
};
