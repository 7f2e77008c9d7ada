// Options of searches whose meaning Elasticsearch's own tests pin down, one by one.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const search = (body: object, index = 'docs') => server.request('POST', `/${index}/_search`, body);
const reason = async (body: object): Promise<string> => {
  const { status, body: answer } = await search(body);
  const [cause] = answer.error?.root_cause ?? [];
  return `${String(status)} ${String(cause?.type)}: ${String(cause?.reason)}`;
};
const aggs = async (asked: object, query: object = { match_all: {} }): Promise<any> => {
  const { status, body } = await search({ size: 0, query, aggs: asked });
  expect(status, JSON.stringify(body)).toBe(200);
  return body.aggregations;
};
const ids = async (query: object): Promise<string[]> => {
  const { status, body } = await search({ query });
  expect(status, JSON.stringify(body)).toBe(200);
  return body.hits.hits.map((hit: { _id: string }) => hit._id);
};

const DOCS = [
  { n: 1, at: '2024-01-15', kw: 'abc', ip: '::1', text: 'dancing with the stars' },
  { n: 2, at: '2024-02-20', kw: 'abc', ip: '127.0.0.1', text: 'dance with star' },
  { n: 4, at: '2024-04-01', kw: 'bcd' },
];

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const properties = {
    n: { type: 'integer' },
    at: { type: 'date' },
    kw: { type: 'keyword' },
    ip: { type: 'ip' },
    text: { type: 'text', fields: { english: { type: 'text', analyzer: 'english' } } },
  };
  await server.request('PUT', '/docs', { mappings: { properties } });
  const lines = DOCS.flatMap((doc, n) => [JSON.stringify({ index: { _id: String(n + 1) } }), JSON.stringify(doc)]);
  await server.request('POST', '/docs/_bulk?refresh=true', `${lines.join('\n')}\n`);
});

afterAll(async () => {
  await server.stop();
});

describe('pipelines of aggregations', () => {
  /** By number, with a gap at 3. */
  const histogram = (sub: object): object => ({
    h: {
      histogram: { field: 'n', interval: 1 },
      aggs: { m: { max: { field: 'n' } }, s: { sum: { field: 'n' } }, ...sub },
    },
  });
  const column = async (sub: object): Promise<unknown[]> =>
    (await aggs(histogram(sub))).h.buckets.map((bucket: any) => bucket.d?.value);

  it('take gaps by gap_policy: skip, insert_zeros, keep_values', async () => {
    expect(await column({ d: { derivative: { buckets_path: 'm' } } })).toEqual([undefined, 1, null, null]);
    const zeros = { buckets_path: 'm', gap_policy: 'insert_zeros' };
    expect(await column({ d: { derivative: zeros } })).toEqual([undefined, 1, -2, 4]);
    const kept = { buckets_path: 's', gap_policy: 'keep_values' };
    expect(await column({ d: { derivative: kept } })).toEqual([undefined, 1, -2, 4]);
    const wrong = { d: { derivative: { buckets_path: 's', gap_policy: 'x' } } };
    expect(await reason({ aggs: histogram(wrong) })).toContain('[derivative] failed to parse field [gap_policy]');
  });

  it('sort buckets, those without any number last or not at all', async () => {
    const keys = async (bucket_sort: object): Promise<number[]> =>
      (await aggs(histogram({ d: { bucket_sort } }))).h.buckets.map((bucket: any) => bucket.key);
    expect(await keys({ sort: [{ m: 'desc' }] })).toEqual([4, 2, 1]);
    expect(await keys({ sort: [{ m: 'desc' }, { _key: 'asc' }] })).toEqual([4, 2, 1, 3]);
    expect(await keys({ sort: [{ m: 'asc' }], gap_policy: 'insert_zeros' })).toEqual([3, 1, 2, 4]);
  });

  it('refuse to sort buckets by very many keys', async () => {
    const keys = (n: number): object[] => Array.from({ length: n }, () => ({ _key: 'asc' }));
    const ordered = (n: number): object => ({ a: { terms: { field: 'n', order: keys(n) } } });
    expect((await aggs(ordered(100))).a.buckets.length).toBeGreaterThan(0);
    const failed = '400 illegal_argument_exception:';
    expect(await reason({ aggs: ordered(101) })).toBe(`${failed} [order] of aggregation [a] has more than [100] keys`);
    const sorted = histogram({ d: { bucket_sort: { sort: keys(101) } } });
    expect(await reason({ aggs: sorted })).toBe(`${failed} [sort] of aggregation [d] has more than [100] keys`);
  });

  it('name the buckets with the lowest and the highest number as the aggregation does', async () => {
    const extreme = async (read: object): Promise<string[]> => {
      const found = await aggs({
        b: { ...read, aggs: { m: { max: { field: 'n' } } } },
        x: { max_bucket: { buckets_path: 'b.m' } },
      });
      return found.x.keys;
    };
    const month = { field: 'at', calendar_interval: 'month' };
    expect(await extreme({ date_histogram: month })).toEqual(['2024-04-01T00:00:00.000Z']);
    expect(await extreme({ date_histogram: { ...month, format: 'yyyy-MM' } })).toEqual(['2024-04']);
    expect(await extreme({ range: { field: 'n', ranges: [{ to: 2 }, { from: 2 }] } })).toEqual(['2.0-*']);
    const filters = { low: { range: { n: { lt: 2 } } }, high: { range: { n: { gte: 2 } } } };
    expect(await extreme({ filters: { filters } })).toEqual(['high']);
    expect(await extreme({ terms: { field: 'ip' } })).toEqual(['127.0.0.1']);
  });

  it('read a percentile without naming it, if there is one', async () => {
    const terms = (percents: number[]): object => ({
      b: { terms: { field: 'n' }, aggs: { p: { percentiles: { field: 'n', percents } } } },
      x: { max_bucket: { buckets_path: 'b>p' } },
    });
    expect((await aggs(terms([99]))).x).toEqual({ value: 4, keys: ['4'] });
    expect(await reason({ aggs: terms([50, 99]) })).toContain('contains multiple values');
  });

  it('refuse paths that lead nowhere, whatever the search finds', async () => {
    const query = { match_none: {} };
    const of = (sub: object): Promise<string> => reason({ query, aggs: histogram(sub) });
    const failed = '400 action_request_validation_exception: Validation Failed: 1:';
    expect(await of({ d: { derivative: { buckets_path: 'x' } } })).toBe(`${failed} No aggregation found for path [x];`);
    expect(await of({ d: { bucket_sort: { sort: ['x'] } } })).toBe(`${failed} No aggregation found for path [x];`);
    const below = { b: { terms: { field: 'n' } }, x: { max_bucket: { buckets_path: 'b>x' } } };
    expect(await reason({ query, aggs: below })).toBe(`${failed} No aggregation [x] found for path [b>x];`);
    const root = { b: { avg: { field: 'n' } }, d: { derivative: { buckets_path: 'b' } } };
    expect(await reason({ aggs: root })).toContain(
      'derivative aggregation [d] must have a histogram, date_histogram or auto_date_histogram as parent but ' +
        "doesn't have a parent",
    );
  });
});

describe('aggregations', () => {
  it('round the bounds of dates, and need two of them where nothing is found', async () => {
    const months = async (bounds: object, query?: object): Promise<string[]> => {
      const asked = {
        h: { date_histogram: { field: 'at', calendar_interval: 'month', format: 'yyyy-MM-dd', ...bounds } },
      };
      return (await aggs(asked, query)).h.buckets.map((bucket: any) => bucket.key_as_string.slice(0, 7));
    };
    expect(await months({ hard_bounds: { min: '2024-01-20', max: '2024-04-15' } })).toEqual(['2024-01', '2024-02']);
    const none = { match_none: {} };
    expect(await months({ extended_bounds: { min: '2024-01-20' } }, none)).toEqual([]);
    expect(await months({ extended_bounds: { min: '2024-01-20', max: '2024-02-01' } }, none)).toEqual([
      '2024-01',
      '2024-02',
    ]);
  });

  it('say NaN where one value has no sampling variance', async () => {
    const { x } = await aggs({ x: { extended_stats: { field: 'n' } } }, { term: { n: 1 } });
    expect([x.variance, x.variance_sampling, x.std_deviation_bounds.upper_sampling]).toEqual([0, 'NaN', 'NaN']);
  });

  it('take patterns of Lucene for words alone, and no unknown hint', async () => {
    const kept = await aggs({ x: { terms: { field: 'kw', include: '~(b.*)' } } });
    expect(kept.x.buckets).toEqual([{ key: 'abc', doc_count: 2 }]);
    expect(await reason({ aggs: { x: { terms: { field: 'ip', exclude: '127.*' } } } })).toContain(
      'cannot support regular expression style include/exclude settings',
    );
    expect(await reason({ aggs: { x: { terms: { field: 'kw', execution_hint: 'x' } } } })).toContain(
      'Unknown `execution_hint`: [x], expected any of [map, global_ordinals]',
    );
  });

  it('refuse a composite page that the next one could not follow', async () => {
    const source = { d: { date_histogram: { field: 'at', calendar_interval: '1d', format: 'yyyy' } } };
    expect(await reason({ aggs: { x: { composite: { sources: [source] } } } })).toContain(
      "Format [yyyy] created output it couldn't parse for value [1711929600000]",
    );
  });

  it('show names of clauses and the fields of the search in top_hits', async () => {
    const should = [{ match: { text: { query: 'star', _name: 'star' } } }, { term: { n: { value: 2, _name: 'two' } } }];
    const { body } = await search({ query: { bool: { should } }, fields: ['n'], aggs: { top: { top_hits: {} } } });
    const [hit] = body.aggregations.top.hits.hits;
    expect([hit._id, hit.matched_queries, hit.fields]).toEqual(['2', ['star', 'two'], { n: [2] }]);
  });
});

describe('queries', () => {
  it('of nothing but must_not match the rest, or nothing with adjust_pure_negative: false', async () => {
    const must_not = [{ term: { n: 1 } }];
    expect(await ids({ bool: { must_not } })).toEqual(['2', '3']);
    expect(await ids({ bool: { must_not, adjust_pure_negative: false } })).toEqual([]);
    expect(await ids({ bool: { must_not, filter: { exists: { field: 'ip' } }, adjust_pure_negative: false } })).toEqual(
      ['2'],
    );
  });

  it('look for fields by pattern with _exists_', async () => {
    expect((await ids({ query_string: { query: '_exists_:i*' } })).sort()).toEqual(['1', '2']);
    expect(await ids({ query_string: { query: '_exists_:x*' } })).toEqual([]);
  });

  it('draw the same random numbers for the same seed and word', async () => {
    const draw = async (seed: number): Promise<number[]> => {
      const { body } = await search({
        query: { function_score: { random_score: { seed, field: 'kw' } } },
        sort: ['_doc'],
        track_scores: true,
      });
      return body.hits.hits.map((hit: any) => hit._score);
    };
    const [first, second, third] = await draw(7);
    expect(first).toBe(second);
    expect(first).not.toBe(third);
    expect(await draw(7)).toEqual([first, second, third]);
    expect(await draw(8)).not.toEqual([first, second, third]);
    expect(await reason({ query: { function_score: { random_score: { seed: 1, field: '_id' } } } })).toContain(
      'Fielddata access on the _id field is disallowed',
    );
  });
});

describe('what hits show', () => {
  it('are no internal fields', async () => {
    expect(await reason({ fields: ['_seq_no'] })).toContain('Cannot fetch values for internal field [_seq_no].');
  });

  it('are marks of other fields only where fields are told apart', async () => {
    const highlight = { fields: { text: { matched_fields: ['text.english'] } } };
    const query = { match: { 'text.english': 'star' } };
    const { body } = await search({ query, highlight });
    expect(body.hits.hits.map((hit: any) => hit.highlight.text[0]).sort()).toEqual([
      'dance with <em>star</em>',
      'dancing with the <em>stars</em>',
    ]);
    expect(await reason({ query, highlight: { ...highlight, require_field_match: false } })).toContain(
      'Matched fields are not supported when [require_field_match] is set to [false]',
    );
  });
});
