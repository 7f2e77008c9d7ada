// What a request of version 9 gets differently, each with the same request of version 8 beside it: rows of docs/compatibility.md.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { fakeApp } from '../support/app.js';
import { type Answer, type RunningServer, startServer } from '../support/server.js';

const media = (version: number, kind = 'json'): string =>
  `application/vnd.elasticsearch+${kind}; compatible-with=${String(version)}`;

let server: RunningServer;
/** A request as a client of that version sends it. */
const ask = (version: number, method: string, path: string, body?: object | string): Promise<Answer> => {
  const headers = { accept: media(version) };
  if (body === undefined) return server.request(method, path, undefined, { headers });
  const sent = media(version, typeof body === 'string' ? 'x-ndjson' : 'json');
  return server.request(method, path, body, { headers: { ...headers, 'content-type': sent } });
};

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  await ask(9, 'PUT', '/points', {
    mappings: { properties: { v: { type: 'dense_vector', dims: 2, similarity: 'l2_norm' }, n: { type: 'integer' } } },
    aliases: { dots: {} },
  });
  const lines = Array.from(
    { length: 20 },
    (_, n) => `{"index":{"_id":"${String(n)}"}}\n{"v":[${String(n)},1],"n":7}\n`,
  );
  expect((await ask(9, 'POST', '/points/_bulk?refresh=true', lines.join(''))).body.errors).toBe(false);
});

afterAll(async () => {
  await server.stop();
});

describe('a request of version 9', () => {
  it('is answered as version 8.19', async () => {
    const { body, headers } = await ask(9, 'GET', '/');
    expect(body.version.number).toMatch(/^8\.19\.\d+$/);
    expect(headers['content-type']).toBe('application/vnd.elasticsearch+json;compatible-with=9');
  });

  it('has no _knn_search', async () => {
    const body = { knn: { field: 'v', query_vector: [3, 1], k: 1, num_candidates: 10 } };
    const { status, body: error } = await ask(9, 'POST', '/points/_knn_search', body);
    const unknown = 'no handler found for uri [/points/_knn_search] and method [POST]';
    expect([status, error]).toEqual([
      400,
      { error: `${unknown}: version 9 has none; use [_search] with a section [knn]` },
    ]);
    for (const version of [8, 7]) {
      expect((await ask(version, 'POST', '/points/_knn_search', body)).body.hits.hits[0]._id).toBe('3');
    }
    expect((await ask(9, 'POST', '/points/_search', body)).body.hits.hits[0]._id).toBe('3');
  });

  it('has no local on requests for aliases', async () => {
    for (const path of ['/_alias', '/_alias/dots', '/points/_alias', '/_cat/aliases']) {
      const refused = await ask(9, 'GET', `${path}?local=true`);
      const reason = `request [${path}] contains unrecognized parameter: [local]`;
      expect([refused.status, refused.body.error.reason]).toEqual([400, reason]);
      expect((await ask(9, 'GET', path)).status, path).toBe(200);
      expect((await ask(8, 'GET', `${path}?local=true`)).status, path).toBe(200);
    }
    expect((await ask(9, 'GET', '/_cluster/health?local=true')).status).toBe(200);
  });

  it('has no ignore_throttled', async () => {
    for (const path of ['/points/_search', '/points/_count']) {
      const refused = await ask(9, 'GET', `${path}?ignore_throttled=false`);
      expect(refused.status, path).toBe(400);
      expect(refused.body.error.reason).toContain('contains unrecognized parameter: [ignore_throttled]');
      expect(refused.body.error.reason).not.toContain('[ignore_throttled, ');
      expect((await ask(8, 'GET', `${path}?ignore_throttled=false`)).status, path).toBe(200);
    }
  });

  it('has no date_histogram of booleans', async () => {
    await ask(9, 'PUT', '/flags/_doc/1?refresh=true', { b: true });
    const body = { size: 0, aggs: { a: { date_histogram: { field: 'b', fixed_interval: '1ms' } } } };
    const refused = await ask(9, 'POST', '/flags/_search', body);
    expect([refused.status, refused.text]).toEqual([
      400,
      expect.stringContaining('Field [b] of type [boolean] is not supported for aggregation [date_histogram]'),
    ]);
    const { body: answer, headers } = await ask(8, 'POST', '/flags/_search', body);
    expect(answer.aggregations.a.buckets).toMatchObject([{ key: 1, doc_count: 1 }]);
    expect(headers['warning']).toContain('Running DateHistogram aggregations on [boolean] fields is deprecated');
  });

  it('answers a search that timed out with 429', async () => {
    const { call, engine } = await fakeApp();
    const cause = { type: 'timeout_exception', reason: 'Time exceeded' };
    engine.fail(504, { error: { root_cause: [cause], ...cause }, status: 504 });
    for (const [version, status] of [
      [9, 429],
      [8, 504],
    ] as const) {
      const headers = { accept: media(version) };
      const answer = await call('GET', '/points/_search?allow_partial_search_results=false', undefined, headers);
      expect([answer.status, ((await answer.json()) as { status: number }).status]).toEqual([status, status]);
      expect(answer.headers.get('retry-after') !== null).toBe(version === 9);
    }
  });

  it('has random scores by sequence number', async () => {
    const scores = async (version: number, random_score: object): Promise<unknown> => {
      const query = { function_score: { query: { match_all: {} }, random_score, boost_mode: 'replace' } };
      const { body } = await ask(version, 'POST', '/points/_search', { query, size: 20 });
      return body.hits.hits.map((hit: { _id: string; _score: number }) => [hit._id, hit._score]);
    };
    const expected = await scores(9, { seed: 3, field: '_seq_no' });
    expect(new Set((expected as [string, number][]).map(([, score]) => score)).size).toBe(20);
    for (const version of [9, 8]) expect(await scores(version, { seed: 3 })).toEqual(expected);
    expect(await scores(9, { seed: 3, field: 'n' })).not.toEqual(expected);
  });

  it('has no from and to in a range, and no force_source in a highlight', async () => {
    const bodies: (readonly [string, object])[] = [
      ['[range] query does not support [from]', { query: { range: { n: { from: 1 } } } }],
      ['[range] query does not support [include_upper]', { query: { range: { n: { lt: 9, include_upper: true } } } }],
      ['[force_source]', { query: { match_all: {} }, highlight: { force_source: true, fields: { n: {} } } }],
      ['[force_source]', { query: { match_all: {} }, highlight: { fields: { n: { force_source: true } } } }],
    ];
    for (const [reason, body] of bodies) {
      const refused = await ask(9, 'POST', '/points/_search', body);
      expect([refused.status, refused.text]).toEqual([400, expect.stringContaining(reason)]);
      expect(refused.text).not.toContain('did you mean [force_source]');
      const several = await ask(9, 'POST', '/_msearch', `{"index":"points"}\n${JSON.stringify(body)}\n`);
      expect(several.text).toContain(reason);
      for (const version of [8, 7]) expect((await ask(version, 'POST', '/points/_search', body)).status).toBe(200);
    }
    expect((await ask(9, 'POST', '/points/_count', { query: { range: { n: { to: 9 } } } })).status).toBe(400);
  });

  it('finds by the filter of an alias that version 8 has stored', async () => {
    await ask(8, 'PUT', '/points/_alias/few', { filter: { range: { n: { from: 7 } } } });
    for (const version of [9, 8]) {
      const { status, body } = await ask(version, 'POST', '/few/_search', { size: 0 });
      expect([status, body.hits?.total.value]).toEqual([200, 20]);
    }
  });

  it('may say what is so in any case', async () => {
    const line = '{"index":{"_id":"1"}}\n{"v":[1,1],"n":7}\n';
    const taken: (readonly [string, string, (object | string)?])[] = [
      ['POST', '/points/_bulk?require_data_stream=false&include_source_on_error=false', line],
      ['PUT', '/points/_doc/1?require_data_stream=false&include_source_on_error=true', { v: [1, 1], n: 7 }],
      ['PUT', '/points/_create/new?require_data_stream=false&include_source_on_error=false', { n: 7 }],
      ['POST', '/points/_update/1?include_source_on_error=false', { doc: { n: 8 } }],
    ];
    for (const [method, path, body] of taken) {
      const answer = await ask(9, method, path, body);
      expect(answer.status, `${path} ${answer.text}`).toBeLessThan(300);
      // The engine, or a cluster behind it, gets to see none of them.
      const { call, engine } = await fakeApp();
      await call(method, path, body);
      expect(engine.last?.query, path).toEqual({});
      if (!path.includes('require_data_stream')) continue;
      const other = await ask(9, method, path.replace('stream=false', 'stream=true'), body);
      expect([other.status, other.body.error.reason], path).toEqual([
        400,
        expect.stringMatching(/^\[require_data_stream\] can only be \[false\]: /),
      ]);
    }
  });

  it('may leave out vectors', async () => {
    const body = {
      mappings: { properties: { d: { type: 'dense_vector', dims: 2 }, 'o.s': { type: 'sparse_vector' } } },
    };
    await ask(9, 'PUT', '/left', body);
    const whole = { t: 'text', d: [1, 2], o: { s: { a: 1 }, n: 1 } };
    const rest = { t: 'text', o: { n: 1 } };
    await ask(9, 'PUT', '/left/_doc/1?refresh=true', whole);
    for (const [says, expected] of [
      [true, rest],
      [false, whole],
    ] as const) {
      const flag = `_source_exclude_vectors=${String(says)}`;
      const sourceOf = async (method: string, path: string, sent?: object) => {
        const answer = await ask(9, method, path, sent);
        expect(answer.status, answer.text).toBe(200);
        return (answer.body.hits?.hits[0] ?? answer.body.docs?.[0] ?? answer.body)._source ?? answer.body;
      };
      expect(await sourceOf('GET', `/left/_doc/1?${flag}`)).toEqual(expected);
      expect(await sourceOf('GET', `/left/_source/1?${flag}`)).toEqual(expected);
      expect(await sourceOf('GET', `/left/_search?${flag}`)).toEqual(expected);
      expect(await sourceOf('POST', '/left/_search', { _source: { exclude_vectors: says } })).toEqual(expected);
      const docs = [{ _id: '1', _source: { exclude_vectors: says } }];
      expect(await sourceOf('POST', '/left/_mget', { docs })).toEqual(expected);
      // Fields are read from the whole document, and other filters go on top.
      const both = { _source: { exclude_vectors: says, excludes: ['o'] }, fields: ['d'] };
      const { t, d } = await sourceOf('POST', '/left/_search', both);
      expect([t, d]).toEqual(['text', says ? undefined : [1, 2]]);
    }
    // Writing it again keeps what was only not shown.
    await ask(9, 'POST', '/left/_update/1?refresh=true', { doc: { t: 'more' } });
    expect((await ask(9, 'GET', '/left/_source/1')).body).toEqual({ ...whole, t: 'more' });
  });

  it('leaves out vectors by default where an index is set so', async () => {
    const mappings = { properties: { d: { type: 'dense_vector', dims: 2 } } };
    await ask(9, 'PUT', '/lean', { settings: { 'index.mapping.exclude_source_vectors': true }, mappings });
    await ask(9, 'PUT', '/lean/_doc/1?refresh=true', { t: 'text', d: [1, 2] });
    expect((await ask(9, 'GET', '/lean/_doc/1')).body._source).toEqual({ t: 'text' });
    expect((await ask(9, 'GET', '/lean/_search')).body.hits.hits[0]._source).toEqual({ t: 'text' });
    expect((await ask(9, 'POST', '/lean/_mget', { ids: ['1'] })).body.docs[0]._source).toEqual({ t: 'text' });
    const explained = await ask(9, 'POST', '/lean/_explain/1?_source=true', { query: { match_all: {} } });
    expect(explained.body.get._source).toEqual({ t: 'text' });
    const grouped = await ask(9, 'POST', '/lean/_search', {
      collapse: { field: 't.keyword', inner_hits: { name: 'all' } },
    });
    expect(grouped.body.hits.hits[0].inner_hits.all.hits.hits[0]._source).toEqual({ t: 'text' });
    const shown = await ask(9, 'POST', '/lean/_search', { _source: { exclude_vectors: false } });
    expect(shown.body.hits.hits[0]._source).toEqual({ t: 'text', d: [1, 2] });
    await ask(9, 'POST', '/lean/_update/1?refresh=true', { doc: { t: 'more' } });
    expect((await ask(9, 'GET', '/lean/_source/1?_source_exclude_vectors=false')).body).toEqual({
      t: 'more',
      d: [1, 2],
    });
    await ask(9, 'POST', '/_reindex?refresh=true', { source: { index: 'lean' }, dest: { index: 'fat' } });
    expect((await ask(9, 'GET', '/fat/_source/1')).body).toEqual({ t: 'more', d: [1, 2] });
    const changed = await ask(9, 'PUT', '/lean/_settings', { 'index.mapping.exclude_source_vectors': false });
    expect(changed.status).toBe(400);
  });

  it('may end blocks', async () => {
    await ask(9, 'PUT', '/blocked', {});
    for (const block of ['write', 'read_only', 'metadata', 'read']) {
      await ask(9, 'PUT', `/blocked/_block/${block}`);
      const { status, body } = await ask(9, 'DELETE', `/blocked/_block/${block}`);
      expect([status, body]).toEqual([200, { acknowledged: true, indices: [{ name: 'blocked', unblocked: true }] }]);
      expect((await ask(9, 'PUT', '/blocked/_doc/1', {})).status).toBeLessThan(300);
    }
    expect((await ask(9, 'DELETE', '/blocked/_block/no')).status).toBe(400);
    expect((await ask(9, 'DELETE', '/nowhere/_block/write')).status).toBe(404);
  });

  it.each([
    ['{"index":{},"more":1}', 'expected END_OBJECT'],
    ['{"index":{}} {}', ''],
    ['{"index":{}', ''],
    ['{}', ''],
  ])('refuses action lines that are malformed: %s', async (line, reason) => {
    for (const version of [9, 8]) {
      const answer = await ask(version, 'POST', '/points/_bulk', `${line}\n{"n":1}\n`);
      expect(answer.status, answer.text).toBe(400);
      expect(answer.body.error.reason).toContain(reason);
    }
  });
});
