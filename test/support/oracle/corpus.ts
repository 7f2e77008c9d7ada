/**
 * The documents of the property tests, and indices that hold them in different ways: what a search finds must not depend on
 * how documents lie in segments and indices, and must be what a naive evaluator finds.
 */
import { expect } from 'vitest';

import type { RunningServer } from '../server.js';
import type { Random } from './random.js';

/** What a document holds; a field without a value is absent. */
export interface Source {
  /** Another number for each document. */
  u?: number;
  kw?: string[];
  t?: string;
  t2?: string;
  n?: number[];
  d?: number;
  when?: string;
  flag?: boolean;
  ip?: string;
  least?: number;
  rank?: number;
  pop?: number;
  rf?: Record<string, number>;
  sv?: Record<string, number>;
  v?: number[];
  at?: { lat: number; lon: number };
  o?: { k: string; n: number }[];
}

export interface Doc {
  readonly id: string;
  readonly source: Source;
}

/** The live documents of one index, in the order of writing. */
export interface Corpus {
  readonly docs: readonly Doc[];
  /** Whether statistics of words are those of the live documents: deleted ones count until segments are merged. */
  readonly exact: boolean;
}

/** One way to keep the documents. */
export interface Layout {
  readonly name: string;
  /** Expression of its indices. */
  readonly target: string;
  /** The documents of each index, in the order in which equal hits are shown. */
  readonly corpora: readonly Corpus[];
}

export const WORDS = ['aa', 'ab', 'ba', 'abc', 'bb', 'cab', 'acb'] as const;
export const KEYWORDS = ['aa', 'AB', 'ab', 'abc', 'b', 'ba', 'Cab'] as const;
export const TOKENS = ['w0', 'w1', 'w2', 'w3', 'w4', 'w5'] as const;
/** First day of the dates, and one after the last. */
export const FIRST_DAY = Date.UTC(2023, 11, 20);
export const DAYS = 60;
export const DAY = 86_400_000;

const MAPPINGS = {
  properties: {
    u: { type: 'integer' },
    kw: { type: 'keyword' },
    t: { type: 'text' },
    t2: { type: 'text' },
    n: { type: 'long' },
    d: { type: 'double' },
    when: { type: 'date' },
    flag: { type: 'boolean' },
    ip: { type: 'ip' },
    least: { type: 'integer' },
    rank: { type: 'rank_feature' },
    pop: { type: 'integer' },
    rf: { type: 'rank_features' },
    sv: { type: 'sparse_vector' },
    v: { type: 'dense_vector', dims: 2, similarity: 'l2_norm' },
    at: { type: 'geo_point' },
    o: { type: 'nested', properties: { k: { type: 'keyword' }, n: { type: 'integer' } } },
  },
};

export function randomSource(random: Random): Source {
  const weights = (share: number, unit: number): Record<string, number> =>
    Object.fromEntries(random.some(TOKENS, share).map((token) => [token, random.int(1, 12) * unit]));
  const text = (most: number): string => random.several(1, most, () => random.pick(WORDS)).join(' ');
  const source: Source = {};
  const kw = [...new Set(random.several(0, 3, () => random.pick(KEYWORDS)))];
  const n = random.several(0, 2, () => random.int(-5, 9));
  const sv = weights(0.4, 0.25);
  const rf = weights(0.3, 1);
  if (kw.length > 0) source.kw = kw;
  if (random.chance(0.85)) source.t = text(8);
  if (random.chance(0.6)) source.t2 = text(4);
  if (n.length > 0) source.n = n;
  if (random.chance(0.8)) source.d = random.int(-8, 12) / 2;
  if (random.chance(0.8)) {
    source.when = new Date(FIRST_DAY + random.int(0, DAYS * 24 - 1) * 3_600_000).toISOString();
  }
  if (random.chance(0.7)) source.flag = random.chance(0.5);
  if (random.chance(0.5)) source.ip = `10.0.0.${String(random.int(1, 9))}`;
  if (random.chance(0.8)) source.least = random.int(0, 3);
  if (random.chance(0.7)) source.rank = random.int(1, 200);
  if (random.chance(0.8)) source.pop = random.int(1, 40);
  if (Object.keys(rf).length > 0) source.rf = rf;
  if (Object.keys(sv).length > 0) source.sv = sv;
  if (random.chance(0.7)) source.v = [random.int(-500, 500) / 100, random.int(-500, 500) / 100];
  // Around one town, so that large cells have many and small ones few.
  if (random.chance(0.8)) source.at = { lat: 52 + random.int(-90, 90) / 70, lon: 5 + random.int(-90, 90) / 70 };
  const o = random.several(0, 3, () => ({ k: random.pick(KEYWORDS), n: random.int(0, 5) }));
  if (o.length > 0) source.o = o;
  return source;
}

async function write(server: RunningServer, index: string, docs: readonly Doc[]): Promise<void> {
  const lines = docs.flatMap(({ id, source }) => [JSON.stringify({ index: { _id: id } }), JSON.stringify(source)]);
  if (lines.length === 0) return;
  const { body } = await server.request('POST', `/${index}/_bulk?refresh=true`, `${lines.join('\n')}\n`);
  expect(body.errors, JSON.stringify(body)).toBe(false);
}

/** Puts random documents into one segment, into several with deleted ones between them, and into two indices. */
export async function layouts(server: RunningServer, random: Random, count: number): Promise<Layout[]> {
  const numbers = Array.from({ length: count }, (_, n) => n).sort(() => random.next() - 0.5);
  const docs = numbers.map((u, n) => ({ id: String(n), source: { ...randomSource(random), u } }));
  for (const index of ['whole', 'split', 'left', 'right']) {
    const settings = { number_of_replicas: 0, number_of_shards: 1 };
    const { status } = await server.request('PUT', `/${index}`, { settings, mappings: MAPPINGS });
    expect(status).toBe(200);
  }
  await write(server, 'whole', docs);
  await server.request('POST', '/whole/_forcemerge?max_num_segments=1');

  // Some documents are there in an older version first, some that are deleted, and the batches are segments.
  const stale = random.some(docs, 0.2).map(({ id }) => ({ id, source: randomSource(random) }));
  const gone = Array.from({ length: count / 10 }, (_, n) => ({ id: `gone${String(n)}`, source: randomSource(random) }));
  await write(server, 'split', [...stale, ...gone]);
  const third = Math.ceil(count / 3);
  for (const start of [0, third, 2 * third]) await write(server, 'split', docs.slice(start, start + third));
  const deletions = gone.map(({ id }) => JSON.stringify({ delete: { _id: id } }));
  await server.request('POST', '/split/_bulk?refresh=true', `${deletions.join('\n')}\n`);

  const half = Math.floor(count / 2);
  await write(server, 'left', docs.slice(0, half));
  await write(server, 'right', docs.slice(half));
  return [
    { name: 'one segment', target: 'whole', corpora: [{ docs, exact: true }] },
    { name: 'several segments', target: 'split', corpora: [{ docs, exact: false }] },
    {
      name: 'two indices',
      target: 'left,right',
      corpora: [
        { docs: docs.slice(0, half), exact: true },
        { docs: docs.slice(half), exact: true },
      ],
    },
  ];
}
