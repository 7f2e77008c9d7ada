// geohash_grid and geotile_grid, and the histograms that are asked for a number of buckets.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);
const ask = async (aggs: object, more: object = {}): Promise<any> => {
  const { status, body } = await call('POST', '/museums/_search', { size: 0, aggs, ...more });
  expect(status, JSON.stringify(body)).toBe(200);
  return body.aggregations;
};
const refusal = async (aggs: object): Promise<string> => {
  const { status, body } = await call('POST', '/museums/_search', { size: 0, aggs });
  return `${String(status)} ${JSON.stringify(body.error)}`;
};
const counts = (result: { buckets: { key: string; doc_count: number }[] }): [string, number][] =>
  result.buckets.map(({ key, doc_count }) => [key, doc_count]);

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const properties = {
    place: { type: 'geo_point' },
    town: { type: 'keyword' },
    opened: { type: 'date' },
    price: { type: 'double' },
  };
  await call('PUT', '/museums', { mappings: { properties } });
  const documents = [
    { place: '52.374081,4.912350', town: 'Amsterdam', opened: '2024-01-01', price: 1 },
    { place: '52.369219,4.901618', town: 'Amsterdam', opened: '2024-01-02', price: 2 },
    { place: ['52.371667,4.914722', '52.371668,4.914723'], town: 'Amsterdam', opened: '2024-01-31', price: 2.5 },
    { place: '51.222900,4.405200', town: 'Antwerp', opened: '2024-03-31T01:30:00Z', price: 40 },
    { place: '48.861111,2.336389', town: 'Paris', opened: '2024-10-27T00:30:00Z', price: 41 },
    { place: '48.860000,2.327000', town: 'Paris', opened: '2024-10-27T01:30:00Z', price: 90 },
    { town: 'Nowhere' },
  ];
  for (const [n, document] of documents.entries()) await call('PUT', `/museums/_doc/${String(n)}`, document);
  await call('POST', '/museums/_refresh');
});

afterAll(async () => {
  await server.stop();
});

describe('grids of places', () => {
  it('count documents by cells, those with most first', async () => {
    const aggs = { t: { terms: { field: 'town' } } };
    const { hash, tile, most } = await ask({
      hash: { geohash_grid: { field: 'place', precision: 3 }, aggs },
      tile: { geotile_grid: { field: 'place', precision: 8 } },
      most: { max_bucket: { buckets_path: 'hash>_count' } },
    });
    expect(counts(hash)).toEqual([
      ['u17', 3],
      ['u09', 2],
      ['u15', 1],
    ]);
    expect(counts(hash.buckets[1].t)).toEqual([['Paris', 2]]);
    expect(counts(tile)).toEqual([
      ['8/131/84', 3],
      ['8/129/88', 2],
      ['8/131/85', 1],
    ]);
    expect(most).toEqual({ value: 3, keys: ['u17'] });
  });

  it('take distances, defaults, sizes, and bounds', async () => {
    const hash = async (more: object) => counts((await ask({ a: { geohash_grid: { field: 'place', ...more } } })).a);
    expect([...new Set((await hash({})).map(([key]) => key.length))]).toEqual([5]);
    expect(await hash({ precision: '200km' })).toEqual(await hash({ precision: 3 }));
    expect(await hash({ precision: 3, size: 1 })).toEqual([['u17', 3]]);
    const bounds = { top_left: '53,4', bottom_right: '50,6' };
    expect(await hash({ precision: 3, bounds })).toEqual([
      ['u17', 3],
      ['u15', 1],
    ]);
    const { a } = await ask({ a: { geotile_grid: { field: 'place', bounds, precision: '8' } } });
    expect(counts(a)).toEqual([
      ['8/131/84', 3],
      ['8/131/85', 1],
    ]);
    expect((await ask({ a: { geotile_grid: { field: 'nowhere' } } })).a.buckets).toEqual([]);
  });

  it('are sources of composite, whose pages go on after a tile', async () => {
    const sources = [
      { at: { geotile_grid: { field: 'place', precision: 8 } } },
      { town: { terms: { field: 'town' } } },
    ];
    const page = async (after?: object) => (await ask({ c: { composite: { sources, size: 2, after } } })).c;
    const first = await page();
    expect(first.buckets.map(({ key, doc_count }: any) => [key.at, key.town, doc_count])).toEqual([
      ['8/129/88', 'Paris', 2],
      ['8/131/84', 'Amsterdam', 3],
    ]);
    const second = await page(first.after_key);
    expect(second.buckets.map(({ key }: any) => key)).toEqual([{ at: '8/131/85', town: 'Antwerp' }]);
    expect((await page(second.after_key)).buckets).toEqual([]);
    const after = { at: '9/1/1', town: 'a' };
    expect(await refusal({ c: { composite: { sources, after } } })).toContain('Invalid value for [after.at]');
  });

  it.each([
    [{ geohash_grid: { field: 'place', precision: 13 } }, 'Must be between 1 and 12'],
    [{ geohash_grid: { field: 'place', precision: '1 furlong' } }, 'failed to parse'],
    [{ geotile_grid: { field: 'place', precision: 30 } }, 'Must be between 0 and 29'],
    [{ geotile_grid: { field: 'place', precision: -1 } }, 'Must be between 0 and 29'],
    [
      { geotile_grid: { field: 'town' } },
      'Field [town] of type [keyword] is not supported for aggregation [geotile_grid]',
    ],
    [
      { geotile_grid: { field: 'price' } },
      'Field [price] of type [double] is not supported for aggregation [geotile_grid]',
    ],
    [{ geohash_grid: {} }, 'Required one of fields [field, script]'],
    [
      { geohash_grid: { field: 'place', bounds: { top_left: '1,1', bottom_right: '2,2' } } },
      'top is below bottom corner',
    ],
    [
      { geohash_grid: { field: 'place', bounds: 3 } },
      "geohash_grid] bounds doesn't support values of type: VALUE_NUMBER",
    ],
  ])('refuse %j', async (aggregation, sentence) => {
    expect(await refusal({ a: aggregation })).toContain(sentence);
  });
});

describe('auto_date_histogram', () => {
  const opened = async (more: object, aggs: object = {}) =>
    (await ask({ a: { auto_date_histogram: { field: 'opened', ...more }, aggs } })).a;

  it('takes the shortest interval with few enough buckets, without gaps', async () => {
    const { buckets, interval } = await opened({ buckets: 4 });
    expect(interval).toBe('3M');
    expect(buckets.map((one: any) => [one.key_as_string, one.doc_count])).toEqual([
      ['2024-01-01T00:00:00.000Z', 4],
      ['2024-04-01T00:00:00.000Z', 0],
      ['2024-07-01T00:00:00.000Z', 0],
      ['2024-10-01T00:00:00.000Z', 2],
    ]);
    expect((await opened({ buckets: 1 })).interval).toBe('1y');
    expect((await opened({ buckets: 10 })).interval).toBe('1M');
    expect((await opened({ buckets: 50 })).interval).toBe('7d');
    expect((await opened({ buckets: 50, minimum_interval: 'year' })).interval).toBe('1y');
  });

  it('chooses for each bucket around it, in a time zone, and has pipelines in it', async () => {
    const a = {
      auto_date_histogram: { field: 'opened', buckets: 4, time_zone: 'Europe/Berlin', format: 'yyyy-MM-dd HH:mm' },
    };
    const { t, price } = await ask({
      t: { terms: { field: 'town' }, aggs: { a } },
      price: {
        auto_date_histogram: { field: 'opened', buckets: 4 },
        aggs: { p: { sum: { field: 'price' } }, all: { cumulative_sum: { buckets_path: 'p' } } },
      },
    });
    const paris = t.buckets.find(({ key }: any) => key === 'Paris').a;
    // Clocks go back from 03:00 to 02:00, and it is half past two twice.
    expect(paris.interval).toBe('30m');
    expect(paris.buckets.map((one: any) => [one.key_as_string, one.doc_count])).toEqual([
      ['2024-10-27 02:30', 1],
      ['2024-10-27 02:00', 0],
      ['2024-10-27 02:30', 1],
    ]);
    expect(t.buckets.find(({ key }: any) => key === 'Nowhere').a).toEqual({ buckets: [], interval: '1s' });
    expect(price.buckets.map((one: any) => one.all.value)).toEqual([45.5, 45.5, 45.5, 176.5]);
  });

  it.each([
    [{ buckets: 0 }, '[buckets] must be greater than 0'],
    [{ buckets: 2184 }, 'buckets must be less than 2184'],
    [{ minimum_interval: 'week' }, 'minimum_interval must be one of [year, month, day, hour, minute, second]'],
    [{ interval: 'day' }, 'unknown field [interval]'],
    [{ field: 'town' }, 'is not supported for aggregation [auto_date_histogram]'],
  ])('refuses %j', async (more, sentence) => {
    expect(await refusal({ a: { auto_date_histogram: { field: 'opened', ...more } } })).toContain(sentence);
  });
});

describe('variable_width_histogram', () => {
  it('joins what is near', async () => {
    const aggs = { t: { terms: { field: 'town' } } };
    const { a, most } = await ask({
      a: { variable_width_histogram: { field: 'price', buckets: 3 }, aggs },
      most: { max_bucket: { buckets_path: 'a>_count' } },
    });
    expect(a.buckets.map(({ t, ...own }: any) => [own, counts(t)])).toEqual([
      [{ min: 1, key: 5.5 / 3, max: 2.5, doc_count: 3 }, [['Amsterdam', 3]]],
      [
        { min: 40, key: 40.5, max: 41, doc_count: 2 },
        [
          ['Antwerp', 1],
          ['Paris', 1],
        ],
      ],
      [{ min: 90, key: 90, max: 90, doc_count: 1 }, [['Paris', 1]]],
    ]);
    expect(most.value).toBe(3);
    expect((await ask({ a: { variable_width_histogram: { field: 'nowhere' } } })).a.buckets).toEqual([]);
  });

  it.each([
    [{ field: 'price', buckets: 0 }, '[buckets] must be greater than 0'],
    [{ field: 'price', buckets: 50_000 }, 'buckets must be less than 50000'],
    [{ field: 'price', shard_size: 1 }, '[shard_size] must be greater than or equal to 2'],
    [{ field: 'town' }, 'is not supported for aggregation [variable_width_histogram]'],
    [{ field: 'price', keyed: true }, 'unknown field [keyed]'],
  ])('refuses %j', async (body, sentence) => {
    expect(await refusal({ a: { variable_width_histogram: body } })).toContain(sentence);
  });
});
