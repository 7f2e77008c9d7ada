// `date_nanos`: dates to the nanosecond, beside `date`, which has milliseconds.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;

/** What a document says, and its date as it is shown and in nanoseconds since the epoch. */
const TIMES: readonly [id: string, value: unknown, shown: string, nanos: string][] = [
  ['a', '2015-01-01T12:10:30.123456789Z', '2015-01-01T12:10:30.123456789Z', '1420114230123456789'],
  ['b', '2015-01-01T12:10:30.123456788Z', '2015-01-01T12:10:30.123456788Z', '1420114230123456788'],
  ['c', '2015-01-01T13:10:30.1234567+01:00', '2015-01-01T12:10:30.1234567Z', '1420114230123456700'],
  ['d', 1420114230124, '2015-01-01T12:10:30.124Z', '1420114230124000000'],
  ['e', '2262-04-11T23:47:16.854775807Z', '2262-04-11T23:47:16.854775807Z', '9223372036854775807'],
];

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const properties = {
    at: { type: 'date_nanos', fields: { lenient: { type: 'date_nanos', ignore_malformed: true } } },
    second: { type: 'date_nanos', format: 'strict_date_optional_time||epoch_second' },
    also: { type: 'alias', path: 'at' },
  };
  const made = await server.request('PUT', '/times', { mappings: { dynamic: 'strict', properties } });
  expect(made.status, JSON.stringify(made.body)).toBe(200);
  const lines = TIMES.map(([id, at]) => `{"index":{"_id":"${id}"}}\n${JSON.stringify({ at })}\n`);
  const { body } = await server.request('POST', '/times/_bulk?refresh=true', lines.join(''));
  expect(body.errors, JSON.stringify(body)).toBe(false);
});

afterAll(() => server.stop());

const search = async (body: object, index = 'times'): Promise<any> => {
  const answer = await server.request('POST', `/${index}/_search`, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
};
const ids = async (query: object): Promise<string> =>
  (await search({ query })).hits.hits
    .map((hit: { _id: string }) => hit._id)
    .sort()
    .join('');

/** The `sort` values of the hits, as the answer has them: they have more digits than a number in JavaScript. */
const sorts = async (body: object, index = 'times'): Promise<string[]> => {
  const answer = await fetch(`${server.url}/${index}/_search`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `ApiKey ${server.apiKey}` },
    body: JSON.stringify(body),
  });
  return [...(await answer.text()).matchAll(/"_id":"(\w+)".*?"sort":\[([^\]]*)\]/g)].map(
    ([, id = '', sort = '']) => `${id} ${sort}`,
  );
};

describe('dates to the nanosecond', () => {
  it('order the best hits of a bucket as they order all hits', async () => {
    const latest = { top_hits: { size: 2, _source: false, sort: [{ at: 'desc' }] } };
    const query = { ids: { values: ['a', 'b', 'c'] } };
    // Within one millisecond.
    expect(await sorts({ size: 0, query, aggs: { latest } })).toEqual([
      'a 1420114230123456789',
      'b 1420114230123456788',
    ]);
  });

  it('are not shown where the index ignored them', async () => {
    await server.request('PUT', '/early', {
      mappings: { properties: { at: { type: 'date_nanos', ignore_malformed: true } } },
    });
    await server.request('PUT', '/early/_doc/1?refresh=true', { at: ['1969-12-31T00:00:00Z', '2015-01-01T00:00:00Z'] });
    const [hit] = (await search({ fields: ['at'], query: { match_all: {} } }, 'early')).hits.hits;
    expect([hit._ignored, hit.fields.at]).toEqual([['at'], ['2015-01-01T00:00:00.000Z']]);
  });

  it('are found by ranges and values', async () => {
    const range = (bounds: object) => ids({ range: { at: bounds } });
    expect(await range({ gt: '2015-01-01T12:10:30.123456788Z', lt: '2100' })).toBe('ad');
    expect(await range({ gte: '2015-01-01T12:10:30.123456788Z', lt: '2015-01-01T12:10:30.123456789Z' })).toBe('b');
    // A bound of seconds covers the whole second.
    expect(await range({ lte: '2015-01-01T12:10:30Z' })).toBe('abcd');
    expect(await range({ lt: '2015-01-01T12:10:30Z' })).toBe('');
    expect(await range({ gte: '2015-01-01||/d', lt: '2015-01-01||+1d/d' })).toBe('abcd');
    expect(await range({ gte: '1200-01-01', lte: '9000-01-01' })).toBe('abcde');
    expect(await range({ lte: 1420114230123 })).toBe('abc');
    expect(await range({ gte: '12:10 01/2015', format: 'HH:mm MM/yyyy', lt: '12:11 01/2015' })).toBe('abcd');
    expect(await ids({ term: { at: '2015-01-01T12:10:30.123456789Z' } })).toBe('a');
    expect(await ids({ match: { also: '2015-01-01T12:10:30.123456788Z' } })).toBe('b');
    expect(await ids({ query_string: { query: 'at:[2015-01-01T12:10:30.123456789 TO 2015]' } })).toBe('ad');
    expect(await ids({ exists: { field: 'at' } })).toBe('abcde');
  });

  it('are sorted by nanoseconds, which hits show', async () => {
    const shown = (order: readonly number[]) => order.map((at) => `${TIMES[at]?.[0] ?? ''} ${TIMES[at]?.[3] ?? ''}`);
    expect(await sorts({ sort: ['at'] })).toEqual(shown([2, 1, 0, 3, 4]));
    expect(await sorts({ sort: [{ at: 'desc' }], size: 2 })).toEqual(shown([4, 3]));
    expect(await sorts({ sort: ['at'], search_after: ['2015-01-01T12:10:30.123456788Z'], size: 1 })).toEqual(
      shown([0]),
    );
    expect(await sorts({ sort: [{ at: { format: 'strict_date_optional_time_nanos' } }], size: 1 })).toEqual([
      'c "2015-01-01T12:10:30.1234567Z"',
    ]);
    expect(await sorts({ sort: [{ at: { numeric_type: 'date' } }], size: 1 })).toEqual([
      expect.stringMatching(/^[abc] 1420114230123$/),
    ]);
  });

  it('are sorted beside dates in milliseconds with a numeric_type', async () => {
    await server.request('PUT', '/older', { mappings: { properties: { at: { type: 'date' } } } });
    await server.request('PUT', '/older/_doc/o?refresh=true', { at: '2015-01-01T12:10:30.1235Z' });
    const body = (numeric_type: string) => ({ sort: [{ at: { numeric_type } }], size: 4 });
    expect((await sorts(body('date_nanos'), 'times,older')).map(([id]) => id).join('')).toBe('ocba');
    expect((await sorts(body('date'), 'times,older'))[3]).toMatch(/^[abco] 1420114230123$/);
  });

  it('are aggregated by milliseconds', async () => {
    const aggs = {
      minutes: { date_histogram: { field: 'at', fixed_interval: '1ms', min_doc_count: 1 } },
      first: { min: { field: 'at' } },
      last: { max: { field: 'also' } },
      each: { terms: { field: 'at', size: 1 } },
      parts: { date_range: { field: 'at', ranges: [{ to: '2100' }, { from: '2100' }] } },
      pairs: { composite: { size: 1, sources: [{ at: { terms: { field: 'at' } } }] } },
    };
    const { aggregations: of } = await search({ size: 0, aggs });
    expect(of.minutes.buckets.map((bucket: any) => [bucket.key_as_string, bucket.key, bucket.doc_count])).toEqual([
      ['2015-01-01T12:10:30.123Z', 1420114230123, 3],
      ['2015-01-01T12:10:30.124Z', 1420114230124, 1],
      ['2262-04-11T23:47:16.854Z', 9223372036854, 1],
    ]);
    expect(of.first).toEqual({ value: 1420114230123, value_as_string: '2015-01-01T12:10:30.123Z' });
    expect(of.last.value).toBe(9223372036854);
    expect(of.each.buckets).toEqual([{ key: 1420114230123, key_as_string: '2015-01-01T12:10:30.123Z', doc_count: 3 }]);
    expect(of.parts.buckets.map((bucket: any) => bucket.doc_count)).toEqual([4, 1]);
    expect(of.pairs.buckets).toEqual([{ key: { at: 1420114230123 }, doc_count: 3 }]);
  });

  it('are shown and read by scripts with all their digits', async () => {
    const { hits } = await search({
      _source: false,
      fields: ['at', { field: 'also', format: 'epoch_millis' }],
      docvalue_fields: [{ field: 'at.lenient' }],
      script_fields: { nano: { script: "doc['at'].value.getNano()" } },
    });
    hits.hits.sort((one: any, other: any) => (one._id < other._id ? -1 : 1));
    expect(hits.hits.map((hit: any) => [hit.fields['at.lenient'][0], hit.fields.at[0]])).toEqual(
      TIMES.map(([, , shown]) => [shown, shown]),
    );
    expect([hits.hits[0].fields.nano, hits.hits[0].fields.also]).toEqual([[123456789], ['1420114230123.456789']]);
  });

  it('are scored by their distance', async () => {
    const near = await search({
      query: { distance_feature: { field: 'at', origin: '2262-04-11', pivot: '1d' } },
      size: 1,
    });
    expect(near.hits.hits[0]._id).toBe('e');
    const gauss = { at: { origin: '2015-01-01T12:10:30.124Z', scale: '1ms' } };
    const decayed = await search({ query: { function_score: { gauss } }, size: 1 });
    expect([decayed.hits.hits[0]._id, decayed.hits.hits[0]._score]).toEqual(['d', 1]);
  });

  it('are in mappings and _field_caps, and are refused outside of 1970 to 2262', async () => {
    const { body } = await server.request('GET', '/times/_mapping');
    expect(body.times.mappings.properties.second).toEqual({
      type: 'date_nanos',
      format: 'strict_date_optional_time||epoch_second',
    });
    const caps = await server.request('GET', '/times/_field_caps?fields=at');
    expect(caps.body.fields.at.date_nanos).toMatchObject({ searchable: true, aggregatable: true });
    const refused = async (at: string): Promise<any> =>
      (await server.request('PUT', '/times/_doc/x', { at })).body.error;
    expect((await refused('1969-12-31T23:59:59Z')).caused_by).toEqual({
      type: 'illegal_argument_exception',
      reason: 'date[1969-12-31T23:59:59Z] is before the epoch in 1970 and cannot be stored in nanosecond resolution',
    });
    expect((await refused('2263-01-01')).caused_by.reason).toBe(
      'date[2263-01-01T00:00:00Z] is after 2262-04-11T23:47:16.854775807 and cannot be stored in nanosecond resolution',
    );
    expect((await refused('soon')).reason).toContain('failed to parse field [at] of type [date_nanos]');
    const changed = await server.request('PUT', '/times/_mapping', { properties: { at: { type: 'date' } } });
    expect(changed.body.error.reason).toBe('mapper [at] cannot be changed from type [date_nanos] to [date]');
  });
});
