// Aliases against the real engine: what they are, what they show, who may use them, and that a swap is all or nothing.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);
const act = (...actions: object[]): Promise<Answer> => call('POST', '/_aliases', { actions });
const DONE = { acknowledged: true, errors: false };

async function ids(expression: string, body: object = {}): Promise<string[]> {
  const { body: found } = await call('POST', `/${expression}/_search`, body);
  return (found.hits.hits as { _id: string }[]).map(({ _id }) => _id).sort();
}

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  for (const name of ['a1', 'a2', 'b1']) {
    await call('PUT', `/${name}`, { mappings: { properties: { n: { type: 'integer' }, t: { type: 'text' } } } });
    for (const n of [1, 2, 3]) await call('PUT', `/${name}/_doc/${name}-${String(n)}`, { n, t: `word w${String(n)}` });
  }
  await call('POST', '/_refresh');
});

afterAll(async () => {
  await server.stop();
});

describe('definitions', () => {
  it('are put, shown, found and removed', async () => {
    expect((await call('PUT', '/a1/_alias/one', { routing: 'r', is_write_index: true })).body).toEqual(DONE);
    const shown = { index_routing: 'r', search_routing: 'r', is_write_index: true };
    expect((await call('GET', '/_alias/one')).body).toEqual({ a1: { aliases: { one: shown } } });
    expect((await call('GET', '/a1')).body.a1.aliases).toEqual({ one: shown });
    expect((await call('GET', '/a*/_alias')).body).toEqual({ a1: { aliases: { one: shown } }, a2: { aliases: {} } });
    expect((await call('HEAD', '/_alias/one')).status).toBe(200);
    expect((await call('HEAD', '/a2/_alias/one')).status).toBe(404);
    expect((await call('HEAD', '/one')).status).toBe(200);
    expect((await call('GET', '/_cat/aliases?v&h=alias,index,filter,ri,is_write_index')).text).toBe(
      'alias index filter ri is_write_index\none   a1    -      r  true\n',
    );
    const missing = await call('GET', '/_alias/one,none,nope');
    expect([missing.status, missing.body.error]).toEqual([404, 'aliases [none,nope] missing']);
    expect(missing.body.a1.aliases).toEqual({ one: shown });
    expect((await call('DELETE', '/a1/_alias/one')).body).toEqual(DONE);
    const gone = await call('DELETE', '/a1/_alias/one');
    expect([gone.status, gone.body.error.type, gone.body.error.reason]).toEqual([
      ...[404, 'aliases_not_found_exception', 'aliases [one] missing'],
    ]);
  });

  it('come with a new index', async () => {
    expect((await call('PUT', '/c1', { aliases: { c: { filter: { term: { n: 1 } } }, d: {} } })).status).toBe(200);
    expect((await call('GET', '/c1/_alias')).body.c1.aliases).toEqual({ c: { filter: { term: { n: 1 } } }, d: {} });
    expect((await call('PUT', '/c')).body.error.reason).toBe('Invalid index name [c], already exists as alias');
    expect((await call('DELETE', '/c')).body.error.reason).toContain('The provided expression [c] matches an alias');
    await call('DELETE', '/c1');
    expect((await call('GET', '/_alias/c')).status).toBe(404);
  });

  it.each([
    [{ actions: [] }, 'Validation Failed: 1: Must specify at least one alias action;'],
    [{ actions: [{ add: { alias: 'x' } }] }, 'One of [index] or [indices] is required'],
    [{ actions: [{ add: { index: 'a1' } }] }, 'One of [alias] or [aliases] is required'],
    [{ actions: [{ add: { index: 'a1', alias: '' } }] }, "[alias] can't be empty string"],
    [{ actions: [{ add: { index: 'a1', alias: 'x', nope: 1 } }] }, 'unknown field [nope]'],
    [{ actions: [{ rename: {} }] }, 'unknown field [rename]'],
    [
      { actions: [{ remove: { index: 'a1', alias: 'x', filter: { term: { n: 1 } } } }] },
      '[filter] is unsupported for [remove]',
    ],
    [{ actions: [{ add: { index: 'a1', alias: 'a2' } }] }, 'Invalid alias name [a2]: an index or data stream exists'],
    [{ actions: [{ add: { index: 'a1', alias: 'x y' } }] }, 'Invalid alias name [x y]: must not contain'],
    [{ actions: [{ add: { index: 'a1', alias: 'x*' } }] }, 'Invalid alias name [x*]: must not contain'],
    [{ actions: [{ add: { index: 'a1', alias: 'x', filter: { nope: {} } } }] }, 'failed to parse filter for alias [x]'],
    [{ actions: [{ add: { index: 'a1', alias: 'x', index_routing: 'a,b' } }] }, 'alias [x] has several index routing'],
    [
      { actions: [{ add: { index: 'a1', alias: 'x', routing: 'r'.repeat(32_767) } }] },
      'routing is too long, must be no longer than 32766 bytes but was: 32767',
    ],
    [{ actions: [{ add: { index: 'none', alias: 'x' } }] }, 'no such index [none]'],
    [{ nope: 1 }, 'unknown field [nope]'],
    [{}, 'Required [actions]'],
  ])('%j is refused', async (body, reason) => {
    const answer = await call('POST', '/_aliases', body);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
    expect(answer.body.error.reason).toContain(reason);
    expect((await call('GET', '/_alias/x')).status).toBe(404);
  });
});

describe('names of aliases', () => {
  it('may be date math, with a date of their own', async () => {
    const index = '<dated_{2022-12-31||/d{yyyy-MM-dd}}>';
    const alias = '<alias_{2022-12-31||/M{yyyy-MM-dd}}>';
    const made = await call('PUT', `/${encodeURIComponent(index)}`, { aliases: { [alias]: {} } });
    expect([made.status, made.body.index]).toEqual([200, 'dated_2022-12-31']);
    expect(Object.keys((await call('GET', '/_alias/alias_2022-12-01')).body)).toEqual(['dated_2022-12-31']);
    expect((await act({ remove: { index, alias } })).body).toEqual(DONE);
    await call('PUT', `/dated_2022-12-31/_alias/${encodeURIComponent(alias)}`);
    expect((await call('HEAD', '/_alias/alias_2022-12-01')).status).toBe(200);
    expect((await call('DELETE', `/dated_2022-12-31/_alias/${encodeURIComponent(alias)}`)).status).toBe(200);
    expect((await act({ add: { index, alias: '<x_{never}>' } })).body.error.type).toBe('parse_exception');
    await call('DELETE', '/dated_2022-12-31');
  });
});

describe('a request with several actions', () => {
  it.each(['add', 'remove_index'])('has must_exist for what it removes only, not for %s', async (kind) => {
    await call('PUT', '/kept');
    const action = { index: 'kept', must_exist: true, ...(kind === 'add' ? { alias: 'z' } : {}) };
    const refused = await act({ [kind]: action });
    expect([refused.status, refused.body.error.reason]).toEqual([400, `[must_exist] is unsupported for [${kind}]`]);
    expect((await call('DELETE', '/kept')).status).toBe(200);
  });

  it('carries out all or none', async () => {
    expect((await act({ add: { indices: ['a1', 'a2'], aliases: ['s', 't'] } })).body).toEqual(DONE);
    const half = await act({ remove: { index: 'a1', alias: 's' } }, { add: { index: 'a1', alias: 'b1' } });
    expect(half.status).toBe(400);
    expect(Object.keys((await call('GET', '/_alias/s')).body)).toEqual(['a1', 'a2']);
    const must = await act(
      { remove: { index: 'a1', alias: 's' } },
      { remove: { index: 'b1', alias: 's', must_exist: true } },
    );
    expect([must.status, must.body.error.reason]).toEqual([404, 'required alias [s] does not exist']);
    const partly = await act({ remove: { index: 'b1', alias: 's' } }, { remove: { index: 'a*', alias: 's*' } });
    expect(partly.body).toMatchObject({
      acknowledged: true,
      errors: true,
      action_results: [
        {
          action: { type: 'remove', indices: ['b1'], aliases: ['s'] },
          status: 404,
          error: { type: 'aliases_not_found_exception', reason: 'aliases [s] missing', 'resource.id': 's' },
        },
        { action: { type: 'remove', indices: ['a1', 'a2'], aliases: ['s*'] }, status: 200 },
      ],
    });
    expect((await call('GET', '/_alias/s')).status).toBe(404);
    await act({ remove: { index: '*', alias: 't' } });
  });

  it('takes the name of an index that it removes', async () => {
    await call('PUT', '/old');
    expect((await act({ add: { index: 'a1', alias: 'old' } }, { remove_index: { index: 'old' } })).body).toEqual(DONE);
    expect((await call('GET', '/old/_count')).body.count).toBe(3);
    await act({ remove: { index: 'a1', alias: 'old' } });
  });

  it('allows one write index', async () => {
    const two = await act(
      { add: { index: 'a1', alias: 'w', is_write_index: true } },
      { add: { index: 'a2', alias: 'w', is_write_index: true } },
    );
    expect(two.body.error).toMatchObject({
      type: 'illegal_state_exception',
      reason: 'alias [w] has more than one write index [a1,a2]',
    });
    expect((await call('GET', '/_alias/w')).status).toBe(404);
  });
});

describe('names in requests', () => {
  it('lead to all indices of an alias, and a write to its write index', async () => {
    await act({ add: { index: 'a1', alias: 'many' } }, { add: { index: 'a2', alias: 'many' } });
    expect(await ids('many')).toEqual(['a1-1', 'a1-2', 'a1-3', 'a2-1', 'a2-2', 'a2-3']);
    const write = await call('PUT', '/many/_doc/x', { n: 9 });
    expect([write.status, write.body.error.reason]).toEqual([
      400,
      expect.stringContaining('no write index is defined'),
    ]);
    const bulk = await call('POST', '/_bulk', '{"index":{"_index":"many","_id":"x"}}\n{"n":9}\n');
    expect(bulk.body.items[0].index).toMatchObject({ status: 400, error: { type: 'illegal_argument_exception' } });
    const get = await call('GET', '/many/_doc/a1-1');
    expect([get.status, get.body.error.reason]).toEqual([400, expect.stringContaining('has more than one index')]);
    await act({ add: { index: 'a2', alias: 'many', is_write_index: true } });
    expect((await call('PUT', '/many/_doc/x?require_alias=true', { n: 9 })).body).toMatchObject({ _index: 'a2' });
    expect((await call('DELETE', '/many/_doc/x')).body).toMatchObject({ _index: 'a2', result: 'deleted' });
    expect((await call('PUT', '/a2/_doc/x?require_alias=true', { n: 9 })).status).toBe(404);
    await act({ remove: { index: 'a2', alias: 'many' } });
    expect((await call('GET', '/many/_doc/a1-1')).body).toMatchObject({ _index: 'a1', found: true });
    expect((await call('POST', '/_mget', { docs: [{ _index: 'many', _id: 'a1-1' }] })).body.docs[0]._index).toBe('a1');
    await act({ remove: { index: 'a1', alias: 'many' } });
  });

  it('may be patterns, exclusions and date math', async () => {
    await act({ add: { index: 'a2', alias: 'later' } });
    const today = new Date().toISOString().slice(0, 10).replaceAll('-', '.');
    expect(await ids('a*,-a2', { query: { term: { n: 1 } } })).toEqual(['a1-1']);
    expect(await ids('*,-later', { query: { term: { n: 1 } } })).toEqual(['a1-1', 'b1-1']);
    expect(await ids('late*', { query: { term: { n: 1 } } })).toEqual(['a2-1']);
    expect((await call('GET', '/none,a1/_search?ignore_unavailable=true')).body.hits.total.value).toBe(3);
    expect((await call('GET', '/x*/_search')).body.hits.total.value).toBe(0);
    expect((await call('GET', '/x*/_search?allow_no_indices=false')).body.error.reason).toBe('no such index [x*]');
    expect((await call('GET', '/a*/_search?expand_wildcards=none')).body.hits.total.value).toBe(0);
    expect((await call('GET', '/a*/_search?expand_wildcards=x')).body.error.reason).toContain('[x]');
    const made = await call('PUT', `/${encodeURIComponent('<day-{now/d}>')}`);
    expect(made.body.index).toBe(`day-${today}`);
    expect((await call('GET', '/day-*')).body[`day-${today}`].settings.index.provided_name).toBe('<day-{now/d}>');
    await call('DELETE', `/day-${today}`);
    await act({ remove: { index: 'a2', alias: 'later' } });
  });

  it('pass over what is hidden', async () => {
    await call('PUT', '/secret', { settings: { 'index.hidden': true } });
    const listed = async (path: string): Promise<string[]> => Object.keys((await call('GET', path)).body);
    expect(await listed('/s*')).toEqual([]);
    expect(await listed('/s*?expand_wildcards=open,hidden')).toEqual(['secret']);
    expect(await listed('/secret')).toEqual(['secret']);
    await call('DELETE', '/secret');
  });
});

describe('filters', () => {
  it('restrict whatever is asked of the alias', async () => {
    await act(
      { add: { index: 'a1', alias: 'few', filter: { range: { n: { gte: 2 } } } } },
      { add: { index: 'a2', alias: 'few', filter: { term: { n: 3 } } } },
      { add: { index: 'a1', alias: 'rest', filter: { term: { n: 1 } } } },
    );
    expect(await ids('few')).toEqual(['a1-2', 'a1-3', 'a2-3']);
    expect(await ids('few', { query: { match: { t: 'word w1 w2' } } })).toEqual(['a1-2', 'a1-3', 'a2-3']);
    expect((await call('GET', '/few/_count')).body.count).toBe(3);
    expect((await call('GET', '/few/_search?size=0')).body.hits.total.value).toBe(3);
    expect((await call('POST', '/few/_count', { query: { bool: { must_not: { term: { n: 3 } } } } })).body.count).toBe(
      1,
    );
    // Several ways to one index show all that any of them shows.
    expect(await ids('few,rest')).toEqual(['a1-1', 'a1-2', 'a1-3', 'a2-3']);
    expect(await ids('few,a1')).toEqual(['a1-1', 'a1-2', 'a1-3', 'a2-3']);
    const copied = await call('POST', '/_reindex?refresh=true', { source: { index: 'few' }, dest: { index: 'copy' } });
    expect(copied.body).toMatchObject({ total: 3, created: 3 });
    expect(await ids('copy')).toEqual(['a1-2', 'a1-3', 'a2-3']);
    await call('DELETE', '/copy');
    await act({ remove: { index: '*', aliases: ['few', 'rest'] } });
  });

  it('hide values, counts and statistics of the documents that they hide', async () => {
    const properties = {
      k: { type: 'keyword' },
      n: { type: 'integer' },
      t: { type: 'text' },
      own: { type: 'keyword' },
    };
    await call('PUT', '/pay', { mappings: { properties } });
    await call('PUT', '/pay/_doc/1', { k: 'mine', n: 1, t: 'salary open' });
    await call('PUT', '/pay/_doc/2', { k: 'theirs', n: 2, t: 'salary secrets', own: 'x' });
    await call('PUT', '/pay/_doc/3?refresh=true', { k: 'theirs', n: 3, t: 'salary secrets' });
    await act({ add: { index: 'pay', alias: 'door', filter: { term: { k: 'mine' } } } });
    const buckets = async (a: object): Promise<unknown> => {
      const body = { size: 0, query: { match_none: {} }, aggs: { a } };
      const found = (await call('POST', '/door/_search', body)).body.aggregations.a;
      return (found.buckets as { key: unknown; doc_count: number }[]).map(({ key, doc_count: count }) => [key, count]);
    };
    for (const order of [{ _key: 'asc' }, { _count: 'desc' }]) {
      expect(await buckets({ terms: { field: 'k', min_doc_count: 0, order } })).toEqual([['mine', 0]]);
      expect(await buckets({ terms: { field: 'n', min_doc_count: 0, order } })).toEqual([[1, 0]]);
      expect(await buckets({ terms: { field: 'k', min_doc_count: 0, include: '.*' } })).toEqual([['mine', 0]]);
    }
    const within = { g: { terms: { field: 'k', min_doc_count: 0 } } };
    const aggs = { f: { filter: { term: { n: 1 } }, aggs: within }, all: { global: {}, aggs: within } };
    const { f, all } = (await call('POST', '/door/_search', { size: 0, aggs })).body.aggregations;
    expect([f.g.buckets, all.g.buckets]).toEqual([[{ key: 'mine', doc_count: 1 }], [{ key: 'mine', doc_count: 1 }]]);
    expect(await buckets({ multi_terms: { terms: [{ field: 'k' }, { field: 'n' }], min_doc_count: 0 } })).toEqual([]);

    const shown = (await call('GET', '/door/_termvectors/1?fields=t')).body.term_vectors.t;
    expect(Object.keys(shown)).toEqual(['terms']);
    expect((await call('GET', '/pay/_termvectors/1?fields=t')).body.term_vectors.t.field_statistics.doc_count).toBe(3);
    const doc = { t: 'secrets' };
    for (const asked of [{ term_statistics: true }, { field_statistics: true }, { filter: { min_doc_freq: 2 } }]) {
      const sentence = 'counts documents that the filter of alias [door] hides';
      const one = await call('POST', '/door/_termvectors', { doc, ...asked });
      expect([one.status, one.body.error?.reason]).toEqual([400, expect.stringContaining(sentence)]);
      const several = await call('POST', '/_mtermvectors', { docs: [{ _index: 'door', _id: '1', ...asked }] });
      expect(several.body.docs[0].error.reason).toContain(sentence);
      const common = await call('POST', '/door/_mtermvectors', { ids: ['1'], parameters: asked });
      expect(common.body.docs[0].error.reason).toContain(sentence);
    }
    expect((await call('GET', '/door/_termvectors/1?term_statistics=true')).status).toBe(400);

    const fields = Object.keys(
      (await call('GET', '/door/_field_caps?fields=k,own&include_empty_fields=false')).body.fields,
    );
    expect(fields).toEqual(['k']);
    const suggest = async (text: string, mode: string): Promise<unknown> => {
      const term = { field: 't', suggest_mode: mode, min_word_length: 1 };
      return (await call('POST', '/door/_search', { suggest: { s: { text, term } } })).body.suggest.s[0].options;
    };
    expect(await suggest('secret', 'always')).toEqual([]);
    // Were there none of it, there would be this one as well.
    expect(await suggest('salart', 'missing')).toMatchObject([{ text: 'salary', freq: 1 }]);
    for (const path of ['_validate/query?explain=true&rewrite=true', '_search?explain=true&profile=true']) {
      const query = { prefix: { t: 'secre' } };
      expect((await call('POST', `/door/${path}`, { query })).text).not.toContain('secrets');
    }
    expect((await call('POST', '/door/_explain/2', { query: { match: { t: 'secrets' } } })).text).not.toContain(
      'secrets,',
    );
    await call('DELETE', '/pay');
  });
});

describe('an alias whose filter hides documents', () => {
  const properties = {
    g: { type: 'keyword' },
    k: { type: 'keyword' },
    n: { type: 'integer' },
    d: { type: 'date' },
    f: { type: 'double' },
    ip: { type: 'ip' },
    own: { type: 'keyword' },
    t: { type: 'text', fields: { raw: { type: 'keyword' } } },
    s: { type: 'sparse_vector' },
    v: { type: 'dense_vector', dims: 3 },
    o: { type: 'nested', properties: { k: { type: 'keyword' }, n: { type: 'integer' } } },
  };
  const document = (n: number): object => ({
    g: 'mine',
    k: `v${String(n % 4)}`,
    n,
    d: 1.6e12 + n * 864e5,
    f: n / 4,
    ip: `10.0.0.${String(n)}`,
    t: `open salary word${String(n % 3)}`,
    s: { a: 1 + n, [`b${String(n % 3)}`]: 2 },
    v: [n + 1, 1, 2],
    o: [
      { k: `o${String(n % 3)}`, n },
      { k: 'shared', n: -n },
    ],
  });
  const hidden = (n: number): object => ({
    g: 'theirs',
    k: n % 2 === 0 ? `canary${String(n)}` : 'v1',
    n: 1000 + n,
    d: 1.7e12 + n * 864e5,
    f: -5e5 - n,
    ip: `192.168.${String(n % 7)}.${String(n % 250)}`,
    own: 'canary',
    t: `salary word1 canary${String(n)} openx${String(n)} opal`,
    s: { b1: 4, canary: 3 },
    v: [n, 7, 1],
    o: [{ k: `canary${String(n)}`, n: 5000 + n }],
  });

  beforeAll(async () => {
    const lines = (index: string, ids: string, make: (n: number) => object, from: number, to: number): string =>
      Array.from(
        { length: to - from },
        (_, at) =>
          `{"index":{"_index":"${index}","_id":"${ids}${String(from + at)}"}}\n${JSON.stringify(make(from + at))}\n`,
      ).join('');
    for (const [index, alias] of [
      ['whole', 'veiled'],
      ['part', 'plain'],
    ] as const) {
      const aliases = { [alias]: { filter: { term: { g: 'mine' } } } };
      await call('PUT', `/${index}`, { mappings: { properties }, aliases });
    }
    // Two segments, in which documents of both kinds lie one beside the other.
    for (const from of [0, 10]) {
      const both =
        lines('whole', 'm', document, from, from + 10) + lines('whole', 'h', hidden, from * 15, from * 15 + 150);
      const { body } = await call('POST', '/_bulk?refresh=true', both + lines('part', 'm', document, from, from + 10));
      expect(body.errors).toBe(false);
    }
  });
  afterAll(() => call('DELETE', '/whole,part'));

  /** An answer without what may differ: scores and explanations follow from statistics of the whole index, as the pages say. */
  async function answer(method: string, path: string, body: unknown, alias: string): Promise<unknown> {
    const { status, text } = await call(method, path.replace('@', alias), body);
    const open = JSON.stringify(JSON.parse(text), (name, value: unknown) =>
      /^(took|_index|index|index_uuid|_?explanation|profile|(max|_)score)$/u.test(name) ? undefined : value,
    );
    return [status, open.replaceAll(/\b(whole|part|veiled|plain)\b/gu, 'it')];
  }
  async function same(method: string, path: string, body?: unknown): Promise<void> {
    const [veiled, plain] = [await answer(method, path, body, 'veiled'), await answer(method, path, body, 'plain')];
    expect(veiled, `${path} ${JSON.stringify(body)}`).toEqual(plain);
  }

  const aggregations = (field: string): object[] => {
    const any: object[] = [
      { terms: { field, min_doc_count: 0, size: 100 } },
      { terms: { field, min_doc_count: 0, size: 100, order: { _key: 'desc' } } },
      { terms: { field, size: 1, show_term_doc_count_error: true } },
      { rare_terms: { field, max_doc_count: 50 } },
      { missing: { field } },
      { cardinality: { field } },
      { value_count: { field } },
      { composite: { size: 100, sources: [{ x: { terms: { field, missing_bucket: true } } }] } },
      { multi_terms: { terms: [{ field }, { field: 'k', missing: 'none' }], min_doc_count: 0, size: 100 } },
      { top_metrics: { metrics: [{ field }], sort: { n: 'desc' }, size: 3 } },
      { filters: { filters: { has: { exists: { field } } }, other_bucket: true } },
      { adjacency_matrix: { filters: { has: { exists: { field } }, all: { match_all: {} } } } },
    ];
    const numbers: object[] = ['stats', 'extended_stats', 'percentiles', 'boxplot', 'median_absolute_deviation'].map(
      (kind) => ({ [kind]: { field } }),
    );
    numbers.push(
      { histogram: { field, interval: 500, min_doc_count: 0 } },
      { range: { field, ranges: [{ from: -1e9 }] } },
    );
    if (['n', 'f'].includes(field)) return [...any, ...numbers];
    if (field === 'd') return [...any, { date_histogram: { field, fixed_interval: '30d', min_doc_count: 0 } }];
    return [...any, { string_stats: { field, show_distribution: true } }];
  };

  it.each(['k', 'n', 'd', 'f', 'ip', 'own', 't.raw'])(
    'answers as if there were no others: aggregations of [%s]',
    async (field) => {
      for (const query of [{ match_all: {} }, { match_none: {} }, { term: { g: 'theirs' } }]) {
        for (const a of aggregations(field)) {
          const below = { size: 0, query, aggs: { a, all: { global: {}, aggs: { a } } } };
          await same('POST', '/@/_search', 'composite' in a ? { ...below, aggs: { a } } : below);
        }
      }
      await same('POST', '/@/_search', {
        size: 50,
        sort: [{ [field]: 'desc' }, 'n'],
        fields: [field],
        docvalue_fields: [field],
      });
      await same('POST', '/@/_search', {
        sort: 'n',
        collapse: { field, inner_hits: { name: 'i', size: 50, sort: 'n' } },
      });
      await same('POST', '/@/_search', {
        sort: 'n',
        size: 50,
        script_fields: { x: { script: `doc['${field}'].size()` } },
      });
    },
  );

  it('answers as if there were no others: objects', async () => {
    for (const field of ['o.k', 'o.n']) {
      const back = { reverse_nested: {}, aggs: { k: { terms: { field: 'k', min_doc_count: 0 } } } };
      const t = { terms: { field, min_doc_count: 0, size: 500 }, aggs: { back } };
      const a = { nested: { path: 'o' }, aggs: { t, c: { cardinality: { field } } } };
      for (const query of [{ match_all: {} }, { match_none: {} }]) {
        await same('POST', '/@/_search', { size: 0, query, aggs: { a, all: { global: {}, aggs: { a } } } });
      }
      const query = { nested: { path: 'o', query: { exists: { field } }, inner_hits: { size: 50 } } };
      await same('POST', '/@/_search', { size: 50, sort: 'n', query });
    }
    const farthest = { 'o.n': { order: 'desc', mode: 'max', nested: { path: 'o' } } };
    await same('POST', '/@/_search', { size: 50, sort: [farthest, 'n'] });
  });

  const queries: Record<string, object> = {
    prefix: { prefix: { t: 'canary' } },
    wildcard: { wildcard: { k: '*a*' } },
    regexp: { regexp: { t: 'cana.*|word1' } },
    query_string: { query_string: { query: 'cana* OR word1' } },
    match: { match: { t: 'canary1 word1' } },
    cross_fields: { multi_match: { query: 'canary1 word1', fields: ['t', 'k'], type: 'cross_fields' } },
    exists: { exists: { field: 'own' } },
    ids: { ids: { values: ['h1', 'm1'] } },
    nested: { nested: { path: 'o', query: { prefix: { 'o.k': 'canary' } } } },
    knn: { knn: { field: 'v', query_vector: [1, 7, 1], k: 5, num_candidates: 10 } },
    script: { script: { script: "doc['n'].value > 3" } },
    script_score: { script_score: { query: { match_all: {} }, script: { source: "doc['n'].value + 1" } } },
    terms_set: { terms_set: { k: { terms: ['v1', 'canary2'], minimum_should_match: 1 } } },
    pinned: { pinned: { ids: ['h1'], organic: { match_all: {} } } },
    distance: { distance_feature: { field: 'd', origin: '2026-01-01', pivot: '7d' } },
    sparse_vector: { sparse_vector: { field: 's', query_vector: { a: 1, canary: 1 }, prune: false } },
  };

  it.each(Object.entries(queries))('answers as if there were no others: %s', async (_, query) => {
    for (const clause of [query, { bool: { must_not: query } }]) {
      await same('POST', '/@/_search', { size: 50, sort: 'n', query: clause, highlight: { fields: { '*': {} } } });
      await same('POST', '/@/_count', { query: clause });
      await same('POST', '/@/_field_caps?fields=*&include_empty_fields=false', { index_filter: clause });
    }
    await same('POST', '/@/_search', { size: 50, sort: 'n', post_filter: query });
    await same('POST', '/@/_search', {
      size: 50,
      retriever: { standard: { query: { constant_score: { filter: query } } } },
    });
    for (const id of ['h1', 'm1']) await same('POST', `/@/_explain/${id}`, { query });
    for (const more of ['', '&rewrite=true']) await same('POST', `/@/_validate/query?explain=true${more}`, { query });
    const profiled = await call('POST', '/veiled/_search', {
      query: { bool: { filter: query } },
      profile: true,
      size: 0,
    });
    const words: readonly string[] = JSON.stringify(query).match(/\w+/gu) ?? [];
    const told: readonly string[] = JSON.stringify(profiled.body.profile ?? '').match(/\bcanary\w*/gu) ?? [];
    expect(told.filter((word) => !words.includes(word))).toEqual([]);
  });

  it('answers as if there were no others: terms, suggestions, lists of searches', async () => {
    for (const field of ['k', 'own', 't.raw']) {
      for (const string of ['', 'can']) {
        const { body } = await call('POST', '/veiled/_terms_enum', { field, string, size: 1000 });
        expect(body.terms).toEqual([]);
      }
    }
    for (const text of ['canari2 salart', 'canary2', 'word9']) {
      for (const suggest_mode of ['always', 'missing', 'popular']) {
        await same('POST', '/@/_search', { size: 0, suggest: { s: { text, term: { field: 't', suggest_mode } } } });
      }
    }
    const search = { size: 0, aggs: { a: { terms: { field: 'k', min_doc_count: 0, size: 500 } } } };
    await same('POST', '/@/_msearch', `{}\n${JSON.stringify(search)}\n`);
    await same('POST', '/@/_search/template', { source: JSON.stringify(search) });
    await same('POST', '/@/_knn_search', { knn: { field: 'v', query_vector: [1, 7, 1], k: 50, num_candidates: 50 } });
    await same('GET', '/@/_count?q=k:can*');
    const pit = (await call('POST', '/veiled/_pit?keep_alive=1m')).body.id as string;
    const within = await call('POST', '/_search', { pit: { id: pit }, query: { term: { g: 'theirs' } } });
    expect(within.body.hits.total.value).toBe(0);
    for (const operation of ['_update_by_query', '_delete_by_query']) {
      const none = await call('POST', `/veiled/${operation}`, { query: { term: { g: 'theirs' } } });
      expect([none.status, none.body.total]).toEqual([200, 0]);
    }
  });

  it('is no way to a copy of the whole index', async () => {
    const role_descriptors = { r: { indices: [{ names: ['veiled*'], privileges: ['all'] }] } };
    const apiKey = (await call('POST', '/_security/api_key', { name: 'k', role_descriptors })).body.encoded as string;
    await call('PUT', '/whole/_settings', { 'index.blocks.write': true });
    try {
      const { status } = await server.request('PUT', '/veiled/_clone/veiled-copy', undefined, { apiKey });
      expect(status).toBe(400);
    } finally {
      await call('PUT', '/whole/_settings', { 'index.blocks.write': null });
      await call('DELETE', '/veiled-copy?ignore_unavailable=true');
    }
  });
});

describe('reindex', () => {
  it('writes through an alias, and not into what it reads', async () => {
    await call('PUT', '/into', { aliases: { door: {} } });
    const dest = { index: 'door' };
    const copied = await call('POST', '/_reindex?require_alias=true&refresh=true', { source: { index: 'b1' }, dest });
    expect(copied.body).toMatchObject({ created: 3 });
    expect(await ids('into')).toEqual(['b1-1', 'b1-2', 'b1-3']);
    const itself = await call('POST', '/_reindex', { source: { index: 'into' }, dest });
    expect(itself.body.error.reason).toContain('reindex cannot write into an index its reading from');
    const named = await call('POST', '/_reindex?require_alias=true', {
      source: { index: 'b1' },
      dest: { index: 'into' },
    });
    expect(named.status).toBe(404);
    await call('DELETE', '/into');
  });
});

describe('a key', () => {
  async function keyFor(names: string[], privileges: string[]): Promise<string> {
    const { body } = await call('POST', '/_security/api_key', {
      name: 'k',
      role_descriptors: { r: { indices: [{ names, privileges }] } },
    });
    return body.encoded as string;
  }

  it('for an alias reaches its indices only through it', async () => {
    await act({ add: { index: 'a1', alias: 'open-door', filter: { term: { n: 1 } } } });
    const apiKey = await keyFor(['open-*'], ['read', 'manage']);
    const as = (method: string, path: string, body?: unknown): Promise<Answer> =>
      server.request(method, path, body, { apiKey });
    expect((await as('GET', '/open-door/_count')).body.count).toBe(1);
    expect((await as('GET', '/*/_count')).body.count).toBe(1);
    expect((await as('GET', '/_count')).body.count).toBe(1);
    expect((await as('GET', '/a1/_count')).status).toBe(403);
    expect((await as('GET', '/*,a1/_count')).status).toBe(403);
    expect((await as('GET', '/a*/_count')).body.count).toBe(0);
    // Neither may it widen what it sees: the index is not its own.
    const widen = { add: { index: 'a1', alias: 'open-wide' } };
    expect((await as('POST', '/_aliases', { actions: [widen] })).status).toBe(403);
    expect((await as('PUT', '/a1/_alias/open-wide')).status).toBe(403);
    expect((await as('PUT', '/_alias/open-wide', { index: 'a1' })).status).toBe(403);
    expect((await as('PUT', '/open-new', { aliases: { other: {} } })).status).toBe(403);
    expect((await as('PUT', `/${encodeURIComponent('<other-{now/d}>')}`)).status).toBe(403);
    const wild = await as('POST', '/_aliases', { actions: [{ add: { index: '*', alias: 'open-wide' } }] });
    expect([wild.status, (await call('GET', '/_alias/open-wide')).status]).toEqual([404, 404]);
  });

  it('for an index does not reach it through an alias of another name', async () => {
    const apiKey = await keyFor(['a1'], ['read', 'view_index_metadata']);
    const as = (path: string): Promise<Answer> => server.request('GET', path, undefined, { apiKey });
    expect((await as('/a1/_count')).body.count).toBe(3);
    expect((await as('/open-door/_count')).status).toBe(403);
    expect((await as('/*/_count')).body.count).toBe(3);
    expect(Object.keys((await as('/*')).body)).toEqual(['a1']);
    expect((await as('/_alias')).body).toEqual({ a1: { aliases: {} } });
    expect((await as('/_alias/open-door')).status).toBe(403);
  });
});

describe('a crash', () => {
  it('leaves a swap whole', async () => {
    const data = await startServer({ args: ['--deploy-at-start', 'false'] });
    let current = data;
    const send = (method: string, path: string, body?: unknown): Promise<Answer> => current.request(method, path, body);
    for (const name of ['x1', 'x2']) await send('PUT', `/${name}`);
    await send('PUT', '/x1/_alias/now');
    for (let round = 0; round < 4; round += 1) {
      // Swaps go on until the server dies in the middle of one.
      let killed = false;
      const swapping = (async () => {
        for (let n = 0; !killed; n += 1) {
          const [from, to] = n % 2 === 0 ? ['x1', 'x2'] : ['x2', 'x1'];
          const actions = [{ remove: { index: from, alias: 'now' } }, { add: { index: to, alias: 'now' } }];
          await send('POST', '/_aliases', { actions }).catch(() => undefined);
        }
      })();
      await new Promise((resolve) => setTimeout(resolve, 40 + round * 13));
      await current.kill();
      killed = true;
      await swapping;
      current = await startServer({ data: data.data, args: ['--deploy-at-start', 'false'] });
      expect(Object.keys((await send('GET', '/_alias/now')).body)).toHaveLength(1);
    }
    await current.stop();
  }, 60_000);
});
