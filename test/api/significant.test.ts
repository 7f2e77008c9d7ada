// significant_terms, significant_text and sampler: what is more frequent in the documents of a bucket than elsewhere.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);
const ask = async (aggs: object, more: object = {}, index = 'crimes'): Promise<any> => {
  const { status, body } = await call('POST', `/${index}/_search`, { size: 0, aggs, ...more });
  expect(status, JSON.stringify(body)).toBe(200);
  return body.aggregations;
};
const refusal = async (aggs: object): Promise<string> => {
  const { status, body } = await call('POST', '/crimes/_search', { size: 0, aggs });
  return `${String(status)} ${JSON.stringify(body.error)}`;
};
const term = (force: string): object => ({ term: { force } });
const bikes = { significant_terms: { field: 'kind' } };
const keys = (result: { buckets: { key: string }[] }): string[] => result.buckets.map(({ key }) => key);

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const notes = { type: 'nested', properties: { by: { type: 'keyword' }, says: { type: 'text' } } };
  const properties = {
    force: { type: 'keyword' },
    kind: { type: 'keyword' },
    title: { type: 'text', fields: { raw: { type: 'keyword' } } },
    n: { type: 'integer' },
    secret: { type: 'boolean' },
    notes,
  };
  for (const index of ['crimes', 'more']) await call('PUT', `/${index}`, { mappings: { properties } });
  // 100 of two forces; bicycles are rare, and most of them are the transport police's. A tenth is secret.
  const lines = Array.from({ length: 100 }, (_, n) => {
    const force = n < 80 ? 'city' : 'transport';
    const kind = (n < 80 ? n % 20 === 0 : n % 2 === 0) ? 'bicycle' : 'burglary';
    const title = n < 80 ? 'window broken at night' : 'lock cut in the station at night';
    const by = n < 80 ? ['ann', 'bob'] : ['cid'];
    const document = {
      force,
      kind,
      title,
      n,
      secret: n % 10 === 0,
      notes: by.map((one) => ({ by: one, says: title })),
    };
    return [{ index: { _index: n % 3 === 0 ? 'more' : 'crimes', _id: String(n) } }, document];
  }).flat();
  await call('POST', '/_bulk?refresh=true', `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
});

afterAll(async () => {
  await server.stop();
});

describe('significant_terms', () => {
  it('compares a bucket with the indices that are searched', async () => {
    const { s } = await ask({ s: bikes }, { query: term('transport') }, 'crimes,more');
    // 10 of 20, where 14 of 100 are.
    expect(s).toEqual({
      doc_count: 20,
      bg_count: 100,
      buckets: [{ key: 'bicycle', doc_count: 10, score: (0.5 - 0.14) * (0.5 / 0.14), bg_count: 14 }],
    });
    const { f } = await ask({ f: { terms: { field: 'force' }, aggs: { s: bikes } } }, {}, 'crimes,more');
    const found = f.buckets.map((one: any) => [one.key, one.s.doc_count, keys(one.s)]);
    expect(found).toEqual([
      ['city', 80, ['burglary']],
      ['transport', 20, ['bicycle']],
    ]);
  });

  it('compares with another background', async () => {
    const s = { significant_terms: { field: 'kind', background_filter: term('transport') } };
    const { s: found } = await ask({ s }, { query: { range: { n: { gte: 80, lt: 90 } } } }, 'crimes,more');
    expect([found.doc_count, found.bg_count, keys(found)]).toEqual([10, 20, []]);
  });

  it.each([
    ['jlh', {}, (0.5 - 0.14) * (0.5 / 0.14)],
    ['percentage', {}, 10 / 14],
    ['chi_square', {}, (100 * (10 * 76 - 10 * 4) ** 2) / (20 * 14 * 86 * 80)],
    [
      'chi_square',
      { include_negatives: true, background_is_superset: false },
      (120 * (10 * 86 - 10 * 14) ** 2) / (20 * 24 * 96 * 100),
    ],
    ['gnd', {}, Math.exp(-(Math.log(20) - Math.log(10)) / (Math.log(100) - Math.log(14)))],
  ])('scores by %s %j', async (name, options, score) => {
    const s = { significant_terms: { field: 'kind', include: 'bic.*', [name]: options } };
    const { s: found } = await ask({ s }, { query: term('transport') }, 'crimes,more');
    expect(found.buckets).toHaveLength(1);
    expect(found.buckets[0].score).toBeCloseTo(score, 10);
  });

  it('tells nothing of documents that the filter of an alias hides, also to a key that has only this', async () => {
    const filter = { term: { secret: false } };
    await call('POST', '/_aliases', {
      actions: ['crimes', 'more'].map((index) => ({ add: { index, alias: 'public', filter } })),
    });
    const role = { r: { indices: [{ names: ['public'], privileges: ['read'] }] } };
    const { body: key } = await call('POST', '/_security/api_key', { name: 'reader', role_descriptors: role });
    const aggs = { s: bikes, w: { significant_text: { field: 'title' } } };
    const body = { size: 0, query: term('transport'), aggs };
    const own = await server.request('POST', '/public/_search', body, { apiKey: key.encoded });
    expect(own.status, JSON.stringify(own.body)).toBe(200);
    const { s, w } = own.body.aggregations;
    expect([s.doc_count, s.bg_count, w.bg_count]).toEqual([18, 90, 90]);
    // 8 of 18, and 8 of 90: those of the city are all among the hidden.
    expect(s.buckets).toMatchObject([{ key: 'bicycle', doc_count: 8, bg_count: 8 }]);
    expect(w.buckets.find(({ key: word }: any) => word === 'station')).toMatchObject({ doc_count: 18, bg_count: 18 });
    expect((await ask(aggs, { query: term('transport') }, 'public')).s).toEqual(s);
    const apart = { significant_terms: { field: 'kind', background_filter: { match_all: {} } } };
    expect((await ask({ apart }, {}, 'public')).apart.bg_count).toBe(90);
  });

  it('compares objects with objects', async () => {
    const by = { significant_terms: { field: 'notes.by' } };
    const says = { significant_text: { field: 'notes.says' } };
    const { n } = await ask({ n: { nested: { path: 'notes' }, aggs: { by, says } } }, { query: term('transport') });
    const objects = (await ask({ n: { nested: { path: 'notes' } } })).n.doc_count;
    expect([n.by.doc_count, n.by.bg_count]).toEqual([n.doc_count, objects]);
    expect(n.by.buckets).toMatchObject([{ key: 'cid', doc_count: n.doc_count, bg_count: n.doc_count }]);
    expect(keys(n.says).sort()).toEqual(['cut', 'in', 'lock', 'station', 'the']);
  });

  it('counts what buckets that are joined have together', async () => {
    // Each number is one document, fewer than a value needs.
    const v = { variable_width_histogram: { field: 'n', buckets: 1 }, aggs: { s: bikes } };
    const { v: found } = await ask({ v }, { query: term('transport') }, 'crimes,more');
    expect(found.buckets[0].s).toMatchObject({
      ...{ doc_count: 20, bg_count: 100 },
      buckets: [{ key: 'bicycle', doc_count: 10, bg_count: 14 }],
    });
  });

  it('tells a fraction in one index from the whole number in another', async () => {
    for (const [index, type, n] of [
      ['whole', 'long', 3],
      ['parts', 'double', 3.5],
    ] as const) {
      await call('PUT', `/${index}`, { mappings: { properties: { n: { type } } } });
      const lines = Array.from({ length: 5 }, () => `{"index":{}}\n{"n":${String(n)}}\n`);
      await call('POST', `/${index}/_bulk?refresh=true`, lines.join(''));
    }
    const s = { significant_terms: { field: 'n' } };
    const { s: found } = await ask({ s }, { query: { range: { n: { gt: 3.2 } } } }, 'whole,parts');
    expect(found.buckets).toEqual([{ key: 3.5, doc_count: 5, score: 1, bg_count: 5 }]);
  });

  it.each([
    [{ field: 'kind', jlp: {} }, '[significant_terms] unknown field [jlp] did you mean [jlh]?'],
    [
      { field: 'kind', script_heuristic: { script: '1' } },
      '[script_heuristic] of the [significant_terms] aggregation [s] is not supported',
    ],
    [{ field: 'kind', gnd: { include_negatives: true } }, 'unknown field [include_negatives]'],
    [{ field: 'kind', jlh: 1 }, "[significant_terms] jlh doesn't support values of type: VALUE_NUMBER"],
    [{ field: 'title' }, 'Fielddata is disabled on [title]'],
    [{}, 'Required one of fields [field, script], but none were specified.'],
    [{ field: 'kind', size: 0 }, '[size] must be greater than 0. Found [0] in [s]'],
    [
      { field: 'kind', chi_square: {}, background_filter: { term: { force: 'none' } } },
      'does your background filter not include all documents in the bucket?',
    ],
  ])('refuses %j', async (body, sentence) => {
    expect(await refusal({ s: { significant_terms: body } })).toContain(sentence);
  });
});

describe('significant_text', () => {
  it('finds the words of a text field, which needs no field data', async () => {
    const { w } = await ask(
      { w: { significant_text: { field: 'title' } } },
      { query: term('transport') },
      'crimes,more',
    );
    expect([w.doc_count, w.bg_count, keys(w)]).toEqual([20, 100, ['cut', 'in', 'lock', 'station', 'the']]);
    expect(w.buckets[0]).toMatchObject({ doc_count: 20, bg_count: 20 });
    const chosen = { significant_text: { field: 'title', include: ['lock', 'cut'], exclude: 'c.*', size: 3 } };
    expect(keys((await ask({ chosen }, { query: term('transport') })).chosen)).toEqual(['lock']);
  });

  it('leaves out what earlier documents said in the same words', async () => {
    const w = { significant_text: { field: 'title', filter_duplicate_text: true, min_doc_count: 1, percentage: {} } };
    const { w: found } = await ask({ w }, { query: term('transport') });
    expect(found.buckets.map(({ doc_count }: any) => doc_count)).toEqual([1, 1, 1, 1, 1, 1, 1]);
  });

  it('counts the words of a document in each of its buckets, also where repetitions are left out', async () => {
    const texts = { mappings: { properties: { tags: { type: 'keyword' }, text: { type: 'text' } } } };
    await call('PUT', '/tagged', texts);
    const lines = Array.from({ length: 20 }, (_, n) => {
      const text = ['a', 'b', 'c', 'd', 'e', 'f'].map((sign) => `word${String(n)}${sign}`).join(' ');
      return `{"index":{}}\n${JSON.stringify({ tags: ['x', 'y', 'z'], text })}\n`;
    });
    await call('POST', '/tagged/_bulk?refresh=true', lines.join(''));
    const w = { field: 'text', filter_duplicate_text: true, min_doc_count: 1, size: 1000, percentage: {} };
    const aggs = { t: { terms: { field: 'tags' }, aggs: { w: { significant_text: w } } } };
    const { t } = await ask(aggs, {}, 'tagged');
    expect(t.buckets.map(({ w: { buckets } }: any) => buckets.length)).toEqual([120, 120, 120]);
  });

  it('reads texts where they are', async () => {
    const w = { significant_text: { field: 'title', source_fields: ['notes.says'] } };
    expect(keys((await ask({ w }, { query: term('transport') })).w)).toContain('station');
    const none = { significant_text: { field: 'title', source_fields: ['nowhere'] } };
    expect((await ask({ none }, { query: term('transport') })).none.buckets).toEqual([]);
  });

  it('finds nothing of a field that is not mapped, and refuses one that has no words', async () => {
    expect((await ask({ w: { significant_text: { field: 'nowhere' } } })).w.buckets).toEqual([]);
    expect(await refusal({ w: { significant_text: { field: 'n' } } })).toContain(
      'Field [n] of type [integer] is not supported for aggregation [significant_text]',
    );
    expect(await refusal({ w: { significant_text: { field: 'title', execution_hint: 'map' } } })).toContain(
      'unknown field',
    );
  });
});

describe('sampler', () => {
  it('looks at the best documents of each index', async () => {
    const query = { function_score: { query: { match_all: {} }, field_value_factor: { field: 'n' } } };
    const s = {
      sampler: { shard_size: 4 },
      aggs: { least: { min: { field: 'n' } }, f: { terms: { field: 'force' } } },
    };
    const { s: one } = await ask({ s }, { query });
    // 98, 97, 95 and 94 are there; what 3 divides is in the other index.
    expect([one.doc_count, one.least.value, keys(one.f)]).toEqual([4, 94, ['transport']]);
    const { s: two } = await ask({ s }, { query }, 'crimes,more');
    expect([two.doc_count, two.least.value]).toEqual([8, 90]);
  });

  it('takes the first of equals, and all where there are not so many', async () => {
    const s = { sampler: { shard_size: 4 }, aggs: { most: { max: { field: 'n' } } } };
    expect((await ask({ s })).s).toEqual({ doc_count: 4, most: { value: 5 } });
    const { s: all } = await ask({ s: { sampler: { shard_size: 1000 } } });
    expect(all.doc_count).toBe(66);
    expect((await ask({ s }, { query: { match_none: {} } })).s).toEqual({ doc_count: 0, most: { value: null } });
  });

  it('is possible at the top level only', async () => {
    const inside = { f: { terms: { field: 'force' }, aggs: { s: { sampler: {} } } } };
    expect(await refusal(inside)).toContain('[sampler] aggregation [s] inside of [f] is not supported by this server');
  });
});
