/** What the kinds of query share: how they are made at random, and how they see the documents. */
import { DAY, DAYS, type Doc, FIRST_DAY, WORDS } from './corpus.js';
import type { Random } from './random.js';
import type { Score } from './words.js';

export type Query = Readonly<Record<string, any>>;

export const TEXTS = ['t', 't2'] as const;
export const FIELDS = [
  'kw',
  't',
  't2',
  'n',
  'd',
  'when',
  'flag',
  'ip',
  'least',
  'rank',
  'rf',
  'sv',
  'v',
  'nope',
] as const;

export const boost = (random: Random): object => random.maybe(0.3, () => ({ boost: random.int(1, 6) / 2 }));
export const text = (random: Random, most: number): string =>
  [...new Set(random.several(1, most, () => random.pick(WORDS)))].join(' ');
export const start = (random: Random): string => random.pick(['a', 'b', 'ab', 'c', 'ca', 'x', 'A']);
export const day = (random: Random): string =>
  new Date(FIRST_DAY + random.int(-2, DAYS + 2) * DAY).toISOString().slice(0, 10);

/** How many clauses must match, in every way to say it. */
export const minimumClauses = (random: Random): string | number =>
  random.pick([1, 2, '2', '-1', '50%', '-50%', '1<50%', '1<-1 3<50%']);

export const constant = (matches: boolean): Score => (matches ? 1 : undefined);

/** The one field of a clause such as `{"match": {"title": …}}`, its options as an object. */
export function single(body: Query, key: string): [string, Query] {
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

export const words = (text: unknown): string[] => String(text).split(' ').filter(Boolean);
