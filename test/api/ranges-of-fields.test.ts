// Fields whose values are ranges, held against a naive evaluator.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Random } from '../support/oracle/random.js';
import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);

const DAY = 86_400_000;
/** First and last value of a range. */
type Ends = readonly [first: number, last: number];
interface Type {
  readonly type: string;
  /** How a value is written in documents and requests. */
  readonly write: (value: number) => unknown;
  /** The next value. */
  readonly next: (value: number) => number;
  readonly draw: (random: Random) => number;
}
const whole = (value: number): number => value + 1;
const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);
const TYPES: readonly Type[] = [
  { type: 'integer_range', write: (value) => value, next: whole, draw: (random) => random.int(-20, 20) },
  { type: 'long_range', write: String, next: whole, draw: (random) => random.int(-20, 20) * 2 ** 33 },
  {
    type: 'double_range',
    write: (value) => value,
    // No value that is drawn lies between.
    next: (value) => value + 2 ** -30,
    draw: (random) => random.int(-20, 20) / 4,
  },
  {
    type: 'float_range',
    write: (value) => value,
    next: (value) => {
      float[0] = value;
      bits[0] = (bits[0] ?? 0) + 1;
      return float[0];
    },
    draw: (random) => random.int(1, 40) / 4,
  },
  {
    type: 'date_range',
    write: (value) => new Date(value).toISOString(),
    next: whole,
    draw: (random) => random.int(0, 40) * DAY + random.int(0, 2),
  },
  {
    type: 'ip_range',
    write: (value) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.'),
    next: whole,
    draw: (random) => random.int(1, 40) * 100_000_000,
  },
];

/** A range as it is written, with or without its ends, and the values that are in it. */
function drawn(random: Random, { write, next, draw }: Type): { written: Record<string, unknown>; ends: Ends } {
  const values = [draw(random), draw(random), draw(random)].sort((a, b) => a - b);
  let [first, last] = [values[0] ?? 0, values[2] ?? 0];
  const written: Record<string, unknown> = {};
  const lower = random.pick(['gt', 'gte', 'none'] as const);
  const upper = random.pick(['lt', 'lte', 'none'] as const);
  if (lower !== 'none') written[lower] = write(first);
  if (upper !== 'none') written[upper] = write(lower === 'gt' || upper === 'lt' ? next(next(last)) : last);
  if (lower === 'gt') first = next(first);
  if (lower === 'gt' || upper === 'lt') last = upper === 'lt' ? next(last) : next(next(last));
  return { written, ends: [lower === 'none' ? -Infinity : first, upper === 'none' ? Infinity : last] };
}

const RELATED = {
  intersects: (doc: Ends, asked: Ends) => doc[0] <= asked[1] && doc[1] >= asked[0],
  contains: (doc: Ends, asked: Ends) => doc[0] <= asked[0] && doc[1] >= asked[1],
  within: (doc: Ends, asked: Ends) => doc[0] >= asked[0] && doc[1] <= asked[1],
} as const;

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
});

afterAll(async () => {
  await server.stop();
});

describe.each(TYPES)('a field of type $type', (type) => {
  const documents: (readonly Ends[])[] = [];
  const index = `of_${type.type}`;
  const random = new Random(5);

  beforeAll(async () => {
    const created = await call('PUT', `/${index}`, { mappings: { properties: { r: { type: type.type } } } });
    expect(created.status).toBe(200);
    const lines: string[] = [];
    for (let n = 0; n < 120; n++) {
      const ranges = random.several(0, 2, () => drawn(random, type));
      documents.push(ranges.map(({ ends }) => ends));
      lines.push(
        JSON.stringify({ index: { _id: String(n) } }),
        JSON.stringify({ r: ranges.map((one) => one.written) }),
      );
    }
    const { body } = await call('POST', `/${index}/_bulk?refresh=true`, `${lines.join('\n')}\n`);
    expect(body.errors, JSON.stringify(body).slice(0, 2000)).toBe(false);
  });

  const found = async (query: object): Promise<string[]> => {
    const { body } = await call('POST', `/${index}/_search`, { size: 200, query });
    expect(body.hits, JSON.stringify(body)).toBeDefined();
    return body.hits.hits.map((hit: { _id: string }) => hit._id).sort();
  };
  const expected = (matches: (ends: Ends) => boolean): string[] =>
    documents.flatMap((ranges, n) => (ranges.some(matches) ? [String(n)] : [])).sort();

  it('is found by how its ranges lie to another one', async () => {
    for (let round = 0; round < 60; round++) {
      const { written, ends } = drawn(random, type);
      for (const [relation, holds] of Object.entries(RELATED)) {
        const query = { range: { r: { ...written, relation } } };
        expect(await found(query), JSON.stringify(query)).toEqual(expected((doc) => holds(doc, ends)));
      }
    }
  });

  it('is found by a value inside, and where it has any', async () => {
    for (let round = 0; round < 20; round++) {
      const value = type.draw(random);
      const inside = expected((doc) => RELATED.intersects(doc, [value, value]));
      expect(await found({ term: { r: type.write(value) } })).toEqual(inside);
      expect(await found({ match: { r: type.write(value) } })).toEqual(inside);
    }
    expect(await found({ exists: { field: 'r' } })).toEqual(expected(() => true));
    const { body } = await call('POST', `/${index}/_search`, { size: 0, aggs: { n: { value_count: { field: 'r' } } } });
    // As in Lucene, a range that a document has twice counts once.
    const distinct = documents.map((ranges) => new Set(ranges.map((ends) => ends.join())).size);
    expect(body.aggregations.n.value).toBe(distinct.reduce((sum, count) => sum + count, 0));
  });

  it('cannot be sorted by, and is known to the capabilities of fields', async () => {
    expect((await call('POST', `/${index}/_search`, { sort: ['r'] })).status).toBe(400);
    const { body } = await call('GET', `/${index}/_field_caps?fields=r`);
    expect(body.fields.r[type.type]).toMatchObject({ searchable: true, aggregatable: true });
  });
});

describe('histograms of ranges', () => {
  it('count a document in every interval that it has a value in', async () => {
    await call('PUT', '/spans', { mappings: { properties: { r: { type: 'integer_range' } } } });
    const random = new Random(3);
    const documents = Array.from({ length: 80 }, () =>
      random.several(1, 3, (): Ends => {
        const first = random.int(-30, 30);
        return [first, first + random.int(0, 25)];
      }),
    );
    const lines = documents.map((ranges) => {
      const r = ranges.map(([gte, lte]) => ({ gte, lte }));
      return `{"index":{}}\n${JSON.stringify({ r })}\n`;
    });
    await call('POST', '/spans/_bulk?refresh=true', lines.join(''));
    for (const [interval, offset, min, max] of [
      [7, 0, -Infinity, Infinity],
      [5, 2, -10, 20],
    ] as const) {
      const hard_bounds = Number.isFinite(min) ? { hard_bounds: { min, max } } : {};
      const aggs = { h: { histogram: { field: 'r', interval, offset, ...hard_bounds, min_doc_count: 1 } } };
      const { body } = await call('POST', '/spans/_search', { size: 0, aggs });
      const start = (value: number): number => Math.floor((value - offset) / interval) * interval + offset;
      const counts = new Map<number, number>();
      for (const ranges of documents) {
        const own = new Set<number>();
        for (const [first, last] of ranges) {
          for (let value = Math.max(first, min); value <= Math.min(last, max); value++) own.add(start(value));
        }
        for (const key of own) counts.set(key, (counts.get(key) ?? 0) + 1);
      }
      const expected = [...counts].sort(([a], [b]) => a - b).map(([key, doc_count]) => ({ key, doc_count }));
      expect(body.aggregations.h.buckets).toEqual(expected);
    }
  });

  it('refuse a range without an end that nothing bounds', async () => {
    await call('PUT', '/open', { mappings: { properties: { r: { type: 'long_range' }, d: { type: 'date_range' } } } });
    await call('PUT', '/open/_doc/1?refresh=true', { r: { gte: 1 }, d: { lt: '2024-01-01' } });
    for (const aggs of [
      { h: { histogram: { field: 'r', interval: 1 } } },
      { h: { date_histogram: { field: 'd', calendar_interval: 'day' } } },
      { h: { histogram: { field: 'r', interval: 1, missing: 4 } } },
      { h: { terms: { field: 'r' } } },
    ]) {
      expect((await call('POST', '/open/_search', { size: 0, aggs })).status, JSON.stringify(aggs)).toBe(400);
    }
  });
});

describe('ranges in documents', () => {
  beforeAll(async () => {
    const properties = {
      ...{ n: { type: 'integer_range' }, f: { type: 'float_range' }, ip: { type: 'ip_range' } },
      d: { type: 'date_range', format: 'yyyy-MM-dd' },
    };
    expect((await call('PUT', '/ranged', { mappings: { properties } })).status).toBe(200);
  });

  it.each([
    [{ n: 5 }, 'error parsing field [n], expected an object but got VALUE_NUMBER'],
    [{ n: { gte: 5, lte: 1 } }, 'min value (5) is greater than max value (1)'],
    [{ n: { gt: 2_147_483_647 } }, 'min value (2147483648) is greater than max value (2147483647)'],
    [{ n: { from: 5 } }, 'error parsing field [n], with unknown parameter [from]'],
    [{ d: { gte: 'soon' } }, 'failed to parse date field [soon] with format [yyyy-MM-dd]'],
    [{ ip: '10.0.0.0/33' }, 'Illegal prefix length [33]'],
    [{ ip: { gte: 'home' } }, "'home' is not an IP string literal."],
  ])('%j is refused', async (source, reason) => {
    const { status, text } = await call('PUT', '/ranged/_doc/9', source);
    expect([status, text]).toEqual([400, expect.stringContaining(reason)]);
  });

  it('are shown as their fields read them, and cover the days that they name', async () => {
    const source = {
      n: { gte: '3', lt: null },
      d: { gte: '2024-02-01', lte: '2024-02-29' },
      ip: '10.1.0.0/16',
      f: null,
    };
    expect((await call('PUT', '/ranged/_doc/1?refresh=true', source)).status).toBe(201);
    const last = { term: { d: '2024-02-29' } };
    const { body } = await call('POST', '/ranged/_search', { query: last, fields: ['*'], _source: false });
    expect(body.hits.hits[0].fields).toEqual({
      n: [{ gte: 3, lt: null }],
      d: [{ gte: '2024-02-01', lte: '2024-02-29' }],
      ip: ['10.1.0.0/16'],
    });
    const count = async (query: object) => (await call('POST', '/ranged/_count', { query })).body.count;
    expect(await count({ range: { d: { gt: '2024-02-29' } } })).toBe(0);
    expect(await count({ term: { ip: '10.1.255.255' } })).toBe(1);
    expect(await count({ term: { ip: '10.2.0.0' } })).toBe(0);
    expect(await count({ query_string: { query: 'n:[* TO 4]' } })).toBe(1);
    expect(await count({ exists: { field: 'f' } })).toBe(0);
  });
});

describe('a field of type token_count', () => {
  it('counts the words of texts', async () => {
    const of = (analyzer: string, more = {}) => ({ type: 'token_count', analyzer, ...more });
    const fields = { words: of('standard'), stopped: of('stop', { enable_position_increments: false }) };
    await call('PUT', '/counted', { mappings: { properties: { t: { type: 'text', fields } } } });
    await call('PUT', '/counted/_doc/1', { t: 'the fox and the hen' });
    await call('PUT', '/counted/_doc/2?refresh=true', { t: ['one two', 'three'] });
    const body = { query: { range: { 't.words': { gte: 2 } } }, sort: [{ 't.words': 'desc' }], fields: ['t.*'] };
    const { hits } = (await call('POST', '/counted/_search', body)).body;
    expect(hits.hits.map((hit: { fields: unknown }) => hit.fields)).toEqual([
      { 't.words': [5], 't.stopped': [2] },
      { 't.words': [1, 2], 't.stopped': [1, 2] },
    ]);
    const unknown = await call('PUT', '/wrong', { mappings: { properties: { t: of('nothing') } } });
    expect([unknown.status, unknown.text]).toEqual([400, expect.stringContaining('[nothing]')]);
    const none = await call('PUT', '/wrong', { mappings: { properties: { t: { type: 'token_count' } } } });
    expect([none.status, none.text]).toEqual([400, expect.stringContaining('Analyzer must be set for field [t]')]);
  });
});
