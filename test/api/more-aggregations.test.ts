// ip_range, moving_fn, and composite inside nested objects.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { Random } from '../support/oracle/random.js';
import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);
const ask = (aggs: object, size = 0): Promise<Answer> => call('POST', '/visits/_search', { size, aggs });
const refusal = async (aggs: object) => {
  const { status, body } = await ask(aggs);
  return [status, body.error?.root_cause[0].reason];
};

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const from = { type: 'nested', properties: { page: { type: 'keyword' } } };
  const properties = { ip: { type: 'ip' }, day: { type: 'date' }, n: { type: 'integer' }, from };
  await call('PUT', '/visits', { mappings: { properties } });
  const documents = [
    { ip: '::1', day: '2024-01-01', n: 1, from: [{ page: 'a' }, { page: 'b' }] },
    { ip: ['192.168.0.1', '10.0.0.1'], day: '2024-01-02', n: 2, from: [{ page: 'a' }] },
    { ip: '192.168.0.7', day: '2024-01-04', n: 4 },
    { day: '2024-01-05', n: 8 },
  ];
  for (const [n, document] of documents.entries()) await call('PUT', `/visits/_doc/${String(n)}`, document);
  await call('POST', '/visits/_refresh');
});

afterAll(async () => {
  await server.stop();
});

describe('ip_range', () => {
  const ranges = [
    { from: '192.169.0.0' },
    { to: '192.168.0.0' },
    { from: '192.168.0.0', to: '192.169.0.0' },
    { key: 'all' },
  ];

  it('counts documents by ranges of addresses, in the order of these', async () => {
    const aggs = { sum: { sum: { field: 'n' } } };
    const { body } = await ask({
      r: { ip_range: { field: 'ip', ranges }, aggs },
      average: { avg_bucket: { buckets_path: 'r>sum' } },
      most: { max_bucket: { buckets_path: 'r>sum' } },
    });
    expect(body.aggregations.r.buckets).toEqual([
      { key: '*-192.168.0.0', to: '192.168.0.0', doc_count: 2, sum: { value: 3 } },
      { key: 'all', doc_count: 3, sum: { value: 7 } },
      { key: '192.168.0.0-192.169.0.0', from: '192.168.0.0', to: '192.169.0.0', doc_count: 2, sum: { value: 6 } },
      { key: '192.169.0.0-*', from: '192.169.0.0', doc_count: 0, sum: { value: 0 } },
    ]);
    expect(body.aggregations.most).toEqual({ value: 7, keys: ['all'] });
  });

  it('counts what a naive evaluator counts', async () => {
    const random = new Random(7);
    const addresses = Array.from({ length: 200 }, () => random.int(0, 2 ** 32 - 1));
    const text = (address: number): string => [24, 16, 8, 0].map((bits) => (address >>> bits) & 255).join('.');
    const lines = addresses.map((address) => `{"index":{}}\n{"ip":"${text(address)}"}\n`);
    await call('PUT', '/addresses', { mappings: { properties: { ip: { type: 'ip' } } } });
    await call('POST', '/addresses/_bulk?refresh=true', lines.join(''));
    const wanted = Array.from({ length: 40 }, (_, n) => {
      const [one, other] = [random.int(0, 2 ** 32 - 1), random.int(0, 2 ** 32 - 1)];
      return { key: String(n), from: Math.min(one, other), to: Math.max(one, other) };
    });
    const ranges = wanted.map(({ key, from, to }) => ({ key, from: text(from), to: text(to) }));
    const aggs = { r: { ip_range: { field: 'ip', keyed: true, ranges } } };
    const { body } = await call('POST', '/addresses/_search', { size: 0, aggs });
    for (const { key, from, to } of wanted) {
      const inside = addresses.filter((address) => from <= address && address < to);
      expect(body.aggregations.r.buckets[key].doc_count, key).toBe(inside.length);
    }
  });

  it('counts by networks, also as members of an object', async () => {
    const masks = [{ mask: '192.168.0.0/16' }, { mask: '::/24', key: 'low' }];
    const { body } = await ask({ r: { ip_range: { field: 'ip', keyed: true, ranges: masks } } });
    expect(body.aggregations.r.buckets).toEqual({
      low: { to: '0:100::', doc_count: 3 },
      '192.168.0.0/16': { from: '192.168.0.0', to: '192.169.0.0', doc_count: 2 },
    });
  });

  it('finds nothing in a field that is not mapped, and has its type in front on request', async () => {
    const aggs = { r: { ip_range: { field: 'nowhere', ranges: [{ from: '::1' }] } } };
    const { body } = await call('POST', '/visits/_search?typed_keys=true', { size: 0, aggs });
    expect(body.aggregations['ip_range#r'].buckets).toEqual([{ key: '::1-*', from: '::1', doc_count: 0 }]);
  });

  it('refuses what is no address, no network, and no field of addresses', async () => {
    const of = (range: object, field = 'ip') => refusal({ r: { ip_range: { field, ranges: [range] } } });
    expect(await of({ to: '192.168' })).toEqual([400, "'192.168' is not an IP string literal."]);
    expect(await of({ mask: '10.0.0.0' })).toEqual([400, 'Expected [ip/prefix] but was [10.0.0.0]']);
    expect(await of({ to: '::1' }, 'n')).toEqual([
      400,
      'Field [n] of type [integer] is not supported for aggregation [ip_range]',
    ]);
    expect(await of({ too: '::1' })).toEqual([400, expect.stringContaining('did you mean [to]?')]);
    expect(await refusal({ r: { ip_range: { field: 'ip', ranges: [] } } })).toEqual([
      400,
      'No [ranges] specified for the [r] aggregation',
    ]);
  });
});

describe('moving_fn', () => {
  const moving = (more: object) => ({
    days: {
      date_histogram: { field: 'day', calendar_interval: 'day' },
      aggs: { n: { sum: { field: 'n' } }, m: { moving_fn: { buckets_path: 'n', window: 2, ...more } } },
    },
  });
  const values = async (more: object) =>
    (await ask(moving(more))).body.aggregations.days.buckets.map((one: { m?: { value: number } }) => one.m?.value);

  it('looks at the buckets before each, without gaps', async () => {
    // The window of `moving_fn` ends before its own bucket.
    expect(await values({ script: 'MovingFunctions.max(values)' })).toEqual([null, 1, undefined, 2, 4]);
    expect(await values({ script: 'MovingFunctions.sum(values)' })).toEqual([0, 1, undefined, 3, 6]);
    const gaps = { gap_policy: 'insert_zeros', script: { source: 'return MovingFunctions.min(values);' } };
    expect(await values(gaps)).toEqual([null, 1, 1, 0, 0]);
  });

  it('comes to what a naive evaluator comes to', async () => {
    const random = new Random(11);
    const sum = (all: number[]): number => all.reduce((total, one) => total + one, 0);
    const naive: Record<string, (window: number[]) => number | null> = {
      max: (window) => (window.length === 0 ? null : Math.max(...window)),
      min: (window) => (window.length === 0 ? null : Math.min(...window)),
      sum,
      unweightedAvg: (window) => (window.length === 0 ? null : sum(window) / window.length),
    };
    const values = Array.from({ length: 30 }, () => random.int(0, 100));
    const lines = values.map((n, at) => `{"index":{}}\n{"at":${String(at)},"n":${String(n)}}\n`);
    await call('POST', '/steps/_bulk?refresh=true', lines.join(''));
    for (const [name, of] of Object.entries(naive)) {
      const [window, shift] = [random.int(1, 8), random.int(-2, 3)];
      const script = `MovingFunctions.${name}(values)`;
      const aggs = {
        steps: {
          histogram: { field: 'at', interval: 1 },
          aggs: { n: { sum: { field: 'n' } }, m: { moving_fn: { buckets_path: 'n', window, shift, script } } },
        },
      };
      const { body } = await call('POST', '/steps/_search', { size: 0, aggs });
      const found = body.aggregations.steps.buckets.map((one: { m: { value: number | null } }) => one.m.value);
      const within = (place: number): number => Math.min(Math.max(place, 0), values.length);
      const expected = values.map((_, at) => of(values.slice(within(at - window + shift), within(at + shift))));
      expect(found, `${name} over ${String(window)}, shifted by ${String(shift)}`).toEqual(expected);
    }
  });

  it('moves its window by a shift', async () => {
    const average = 'MovingFunctions.unweightedAvg(values)';
    expect(await values({ shift: 1, script: average })).toEqual([1, 1.5, undefined, 3, 6]);
    const weighed = { source: 'MovingFunctions.ewma(values, params.a)', params: { a: 0.5 } };
    expect(await values({ shift: 1, window: 9, script: weighed })).toEqual([1, 1.5, undefined, 2.75, 5.375]);
  });

  it('refuses windows of no or too many values, other scripts and other parents', async () => {
    const script = 'MovingFunctions.max(values)';
    const refused = async (more: object) => refusal(moving(more));
    expect(await refused({ window: -1, script })).toEqual([400, '[window] must be a positive, non-zero integer.']);
    expect(await refused({ window: 10_001, script })).toEqual([
      400,
      '[window] may be at most [10000] on this server, found [10001]',
    ]);
    expect(await refused({ script: 'values[0]' })).toEqual([
      400,
      expect.stringContaining('has to be one call on this server'),
    ]);
    expect(await refused({})).toEqual([400, 'Required [script]']);
    const [status, reason] = await refusal({ m: { moving_fn: { buckets_path: 'n', window: 1, script } } });
    expect([status, reason]).toEqual([400, expect.stringContaining('must have a histogram')]);
  });
});

describe('composite', () => {
  it('makes buckets of nested objects', async () => {
    const composite = { size: 1, sources: [{ page: { terms: { field: 'from.page' } } }] };
    const page = async (after?: object) => {
      const aggs = { c: { composite: { ...composite, ...(after && { after }) } } };
      return (await ask({ all: { nested: { path: 'from' }, aggs } })).body.aggregations.all.c;
    };
    const first = await page();
    expect(first).toEqual({ after_key: { page: 'a' }, buckets: [{ key: { page: 'a' }, doc_count: 2 }] });
    expect((await page(first.after_key)).buckets).toEqual([{ key: { page: 'b' }, doc_count: 1 }]);
  });
});
