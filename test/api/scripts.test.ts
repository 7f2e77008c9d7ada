// Scripts in every place that takes them: pipelines, updates, jobs and searches.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
});

afterAll(async () => {
  await server.stop();
});

async function ok(method: string, path: string, body?: unknown): Promise<any> {
  const answer = await server.request(method, path, body);
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.body;
}

async function refused(method: string, path: string, body?: unknown, status = 400): Promise<any> {
  const answer = await server.request(method, path, body);
  expect(answer.status, answer.text).toBe(status);
  return answer.body.error;
}

const source = async (path: string): Promise<any> => (await server.request('GET', path)).body;

describe('a pipeline', () => {
  it('splits a text into pieces by a script, as passages were made before semantic_text', async () => {
    const script = `
      List passages = new ArrayList();
      for (String sentence : ctx.text.splitOnToken('. ')) {
        if (sentence.length() > params.least) { passages.add(['text': sentence.trim()]) }
      }
      ctx.passages = passages;`;
    await ok('PUT', '/_ingest/pipeline/split', { processors: [{ script: { source: script, params: { least: 3 } } }] });
    await ok('PUT', '/pieces/_doc/1?pipeline=split', { text: 'A red fox. No. Two dogs' });
    expect((await source('/pieces/_source/1')).passages).toEqual([{ text: 'A red fox' }, { text: 'Two dogs' }]);
  });

  it('runs a processor only where its condition holds, and says so when it is simulated', async () => {
    const processors = [
      { set: { field: 'size', value: 'large', if: 'ctx.n > 10', tag: 'big' } },
      { drop: { if: "ctx.tags?.contains('secret') == true" } },
    ];
    await ok('PUT', '/_ingest/pipeline/some', { processors });
    await ok('PUT', '/some/_doc/1?pipeline=some', { n: 11 });
    await ok('PUT', '/some/_doc/2?pipeline=some', { n: 9, tags: ['open'] });
    expect((await ok('PUT', '/some/_doc/3?pipeline=some', { n: 9, tags: ['secret'] })).result).toBe('noop');
    expect(await source('/some/_source/1')).toEqual({ n: 11, size: 'large' });
    expect(await source('/some/_source/2')).toEqual({ n: 9, tags: ['open'] });
    const shown = await ok('POST', '/_ingest/pipeline/some/_simulate?verbose', { docs: [{ _source: { n: 9 } }] });
    expect(shown.docs[0].processor_results[0]).toEqual({
      processor_type: 'conditional',
      status: 'skipped',
      tag: 'big',
      if: { condition: 'ctx.n > 10', result: false },
    });
  });

  it('may change where a document goes, by the rules of metadata', async () => {
    const processors = [{ script: { source: "ctx._index = 'by-' + ctx.kind; ctx._id = ctx.remove('key')" } }];
    await ok('PUT', '/_ingest/pipeline/route', { processors });
    const written = await ok('POST', '/anywhere/_doc?pipeline=route', { kind: 'a', key: 'k1' });
    expect([written._index, written._id]).toEqual(['by-a', 'k1']);
    const simulated = {
      pipeline: { processors: [{ script: { source: 'ctx._index = null' } }] },
      docs: [{ _source: {} }],
    };
    const [failed] = (await ok('POST', '/_ingest/pipeline/_simulate', simulated)).docs;
    expect(failed.error.reason).toContain('_index cannot be');
  });

  it('is refused with a script that does not compile, with the place', async () => {
    const error = await refused('PUT', '/_ingest/pipeline/bad', {
      processors: [{ script: { source: 'ctx.a = foo' } }],
    });
    expect(error).toMatchObject({
      type: 'script_exception',
      reason: 'compile error',
      script_stack: ['ctx.a = foo', '        ^---- HERE'],
      lang: 'painless',
      processor_type: 'script',
      caused_by: { type: 'illegal_argument_exception', reason: 'cannot resolve symbol [foo]' },
    });
    expect((await refused('PUT', '/_ingest/pipeline/bad', { processors: [{ drop: { if: '1 +' } }] })).type).toBe(
      'script_exception',
    );
  });

  it('hands a failed script to its handlers', async () => {
    const handler = [{ set: { field: 'why', value: '{{ _ingest.on_failure_message }}' } }];
    const processors = [{ script: { source: 'ctx.a.b.c = 1', on_failure: handler } }];
    await ok('PUT', '/_ingest/pipeline/handled', { processors });
    await ok('PUT', '/handled/_doc/1?pipeline=handled', {});
    expect((await source('/handled/_source/1')).why).toContain('runtime error');
    await ok('PUT', '/_ingest/pipeline/failing', { processors: [{ script: { source: 'ctx.a.b.c = 1' } }] });
    const error = await refused('PUT', '/handled/_doc/2?pipeline=failing', {});
    expect(error).toMatchObject({ type: 'script_exception', reason: 'runtime error' });
  });
});

describe('an update', () => {
  it('changes, keeps, deletes or makes a document by a script', async () => {
    await ok('PUT', '/counts/_doc/1', { n: 1, big: 3 });
    const add = { script: { source: 'ctx._source.n += params.by', params: { by: 4 } } };
    expect((await ok('POST', '/counts/_update/1', add)).result).toBe('updated');
    expect(await source('/counts/_source/1')).toEqual({ n: 5, big: 3 });
    expect((await ok('POST', '/counts/_update/1', { script: "ctx.op = 'none'" })).result).toBe('noop');
    const shown = await ok('POST', '/counts/_update/1?_source=n', add);
    expect(shown.get._source).toEqual({ n: 9 });
    expect((await ok('POST', '/counts/_update/1', { script: "ctx.op = 'delete'" })).result).toBe('deleted');
    expect((await server.request('GET', '/counts/_doc/1')).status).toBe(404);
    const made = { scripted_upsert: true, upsert: { n: 2 }, script: 'ctx._source.n *= 10' };
    expect((await ok('POST', '/counts/_update/2', made)).result).toBe('created');
    expect(await source('/counts/_source/2')).toEqual({ n: 20 });
    // A plain upsert is written as it is.
    expect((await ok('POST', '/counts/_update/3', { upsert: { n: 2 }, script: 'ctx._source.n *= 10' })).result).toBe(
      'created',
    );
    expect(await source('/counts/_source/3')).toEqual({ n: 2 });
    const unmade = { scripted_upsert: true, upsert: {}, script: "ctx.op = 'noop'" };
    expect((await ok('POST', '/counts/_update/4', unmade)).result).toBe('noop');
    expect((await server.request('GET', '/counts/_doc/4')).status).toBe(404);
  });

  it('works in _bulk, many times on one document, and loses none', async () => {
    const one = '{"update":{"_index":"bulk","_id":"1"}}\n{"script":"ctx._source.n++","upsert":{"n":0}}\n';
    const answers = await Promise.all(
      Array.from({ length: 4 }, () =>
        server.request('POST', '/_bulk', one.replace('"1"', '"1","retry_on_conflict":50').repeat(25)),
      ),
    );
    for (const answer of answers) expect(answer.body.errors, answer.text).toBe(false);
    expect(await source('/bulk/_source/1')).toEqual({ n: 99 });
  });

  it.each([
    ['a script that fails', { script: 'ctx._source.a.b = 1' }, 'failed to execute script'],
    ['one that does not compile', { script: 'ctx._source.a = ' }, 'failed to execute script'],
    ['another operation', { script: "ctx.op = 'fly'" }, 'failed to execute script'],
    ['other metadata', { script: "ctx._id = 'x'" }, 'failed to execute script'],
    ['a stored script', { script: { id: 's' } }, 'failed to execute script'],
    ['a script and fields', { script: '1', doc: {} }, "can't provide both script and doc"],
    ['another language', { script: { source: '1', lang: 'javascript' } }, 'failed to execute script'],
  ])('is refused with %s', async (_, body, reason) => {
    await ok('PUT', '/kept/_doc/1', { n: 1 });
    const error = await refused('POST', '/kept/_update/1', body);
    expect(error.reason).toContain(reason);
    expect(await source('/kept/_source/1')).toEqual({ n: 1 });
  });

  it('lets no key delete that may not', async () => {
    await ok('PUT', '/guarded/_doc/1', { n: 1 });
    const key = await ok('POST', '/_security/api_key', {
      name: 'writer',
      role_descriptors: { w: { indices: [{ names: ['guarded'], privileges: ['index'] }] } },
    });
    const headers = { authorization: `ApiKey ${key.encoded}` };
    const answer = await server.request('POST', '/guarded/_update/1', { script: "ctx.op = 'delete'" }, { headers });
    expect(answer.status, answer.text).toBeGreaterThanOrEqual(400);
    const changed = await server.request('POST', '/guarded/_update/1', { script: 'ctx._source.n = 2' }, { headers });
    expect(changed.status, changed.text).toBe(200);
    expect(await source('/guarded/_source/1')).toEqual({ n: 2 });
  });
});

describe('a job', () => {
  beforeAll(async () => {
    const lines = Array.from({ length: 10 }, (_, n) => `{"index":{"_index":"jobs","_id":"${n}"}}\n{"n":${n}}\n`);
    await ok('POST', '/_bulk?refresh=true', lines.join(''));
  });

  it('updates, skips and deletes documents by a script', async () => {
    const script = {
      source:
        "if (ctx._source.n < params.a) { ctx.op = 'noop' } else if (ctx._source.n > 7) { ctx.op = 'delete' } else { ctx._source.seen = true }",
      params: { a: 3 },
    };
    const done = await ok('POST', '/jobs/_update_by_query?refresh=true', { script });
    expect([done.total, done.updated, done.noops, done.deleted]).toEqual([10, 5, 3, 2]);
    const found = await ok('POST', '/jobs/_search', { query: { term: { seen: true } }, size: 0 });
    expect(found.hits.total.value).toBe(5);
  });

  it('copies documents to where a script sends them', async () => {
    const script =
      "ctx._index = 'jobs-' + (ctx._source.n % 2); ctx._id = 'copy-' + ctx._id; ctx._source.remove('seen')";
    await ok('POST', '/_reindex', {
      source: { index: 'jobs' },
      dest: { index: 'jobs-all' },
      script: { source: script },
    });
    expect(await source('/jobs-1/_source/copy-3')).toEqual({ n: 3 });
    expect(await source('/jobs-0/_source/copy-4')).toEqual({ n: 4 });
  });

  it('ends with the error of a script that fails', async () => {
    const error = await refused('POST', '/jobs/_update_by_query', { script: 'ctx._source.x.y = 1' });
    expect(error).toMatchObject({ type: 'script_exception', reason: 'runtime error' });
    expect(
      (await refused('POST', '/jobs/_delete_by_query', { query: { match_all: {} }, script: '1' })).reason,
    ).toContain('script');
  });
});

describe('a search', () => {
  const documents = [
    {
      name: 'a',
      price: 3.5,
      stock: 2,
      day: '2026-01-02',
      on: true,
      tags: ['x', 'y'],
      need: 2,
      ip: '10.0.0.1',
      v: [1, 0],
    },
    { name: 'b', price: 1.25, stock: 7, day: '2026-03-04', on: false, tags: ['y'], need: 1, ip: '10.0.0.2', v: [0, 1] },
    { name: 'c', price: 9, stock: 0, day: '2025-05-06', on: true, tags: [], need: 1 },
  ];

  beforeAll(async () => {
    await ok('PUT', '/shop', {
      mappings: {
        properties: {
          name: { type: 'keyword' },
          price: { type: 'double' },
          stock: { type: 'integer' },
          day: { type: 'date' },
          on: { type: 'boolean' },
          tags: { type: 'keyword' },
          need: { type: 'long' },
          ip: { type: 'ip' },
          note: { type: 'text' },
          v: { type: 'dense_vector', dims: 2 },
        },
      },
    });
    const lines = documents.map((document, at) => `{"index":{"_id":"${at}"}}\n${JSON.stringify(document)}\n`);
    await ok('POST', '/shop/_bulk?refresh=true', lines.join(''));
  });

  async function hits(body: object): Promise<any[]> {
    return (await ok('POST', '/shop/_search', body)).hits.hits;
  }

  const names = async (body: object): Promise<string[]> =>
    (await hits({ ...body, fields: ['name'] })).map((hit) => hit.fields.name[0]);

  it('shows what scripts compute of fields and of the source', async () => {
    const script_fields = {
      total: { script: { source: "doc['price'].value * doc['stock'].value * params.f", params: { f: 2 } } },
      tags: { script: "doc['tags']" },
      year: { script: "doc['day'].value.year" },
      flag: { script: "doc['on'].value ? 'yes' : 'no'" },
      address: { script: "doc['ip'].size() == 0 ? 'none' : doc['ip'].value" },
      raw: { script: 'params._source.name.toUpperCase()' },
    };
    const found = await hits({ sort: ['name'], script_fields });
    expect(found[0].fields).toEqual({
      total: [14],
      tags: ['x', 'y'],
      year: [2026],
      flag: ['yes'],
      address: ['10.0.0.1'],
      raw: ['A'],
    });
    expect(found[0]._source).toBeUndefined();
    expect(found[2].fields).toMatchObject({ tags: [], address: ['none'], year: [2025] });
    const both = await hits({ sort: ['name'], _source: ['name'], script_fields: { one: { script: '1' } } });
    expect(both[0]).toMatchObject({ _source: { name: 'a' }, fields: { one: [1] } });
  });

  it('scores by a script, alone and as a function', async () => {
    const script = { source: "_score * doc['price'].value + params.x", params: { x: 1 } };
    const scored = await hits({ query: { script_score: { query: { match_all: {} }, script } } });
    expect(scored.map((hit) => hit._score)).toEqual([10, 4.5, 2.25]);
    const functions = [{ script_score: { script: "Math.max(doc['stock'].value, 1)" } }];
    const multiplied = await hits({ query: { function_score: { query: { match_all: {} }, functions } } });
    expect(multiplied.map((hit) => hit._score)).toEqual([7, 2, 1]);
    const loop = 'double sum = 0; for (tag in doc["tags"]) { sum += tag == "y" ? 2 : 1 } return sum';
    const looped = await hits({ query: { script_score: { query: { match_all: {} }, script: loop } } });
    expect(looped.map((hit) => hit._score)).toEqual([3, 2, 0]);
    const decay = "decayNumericLinear(9, 8, 0, 0.5, doc['price'].value)";
    const decayed = await hits({ query: { script_score: { query: { match_all: {} }, script: decay } } });
    expect(decayed[0]._score).toBe(1);
    const cosine = "doc['v'].size() == 0 ? 0 : cosineSimilarity(params.q, 'v') + 1";
    const near = { script_score: { query: { match_all: {} }, script: { source: cosine, params: { q: [0, 2] } } } };
    expect(await names({ query: near })).toEqual(['b', 'a', 'c']);
  });

  it('finds documents by a script', async () => {
    const filter = { script: { script: { source: "doc['stock'].value > params.n", params: { n: 1 } } } };
    expect(await names({ query: { bool: { filter } }, sort: ['name'] })).toEqual(['a', 'b']);
    expect((await hits({ query: filter })).map((hit) => hit._score)).toEqual([1, 1]);
    expect(await names({ query: { bool: { must_not: filter } } })).toEqual(['c']);
    expect((await ok('POST', '/shop/_count', { query: filter })).count).toBe(2);
  });

  it('runs scripts last, and on visible documents only', async () => {
    const guarded = [{ exists: { field: 'ip' } }, { script: { script: "doc['ip'].value.startsWith('10.')" } }];
    expect(await names({ query: { bool: { filter: guarded } }, sort: ['name'] })).toEqual(['a', 'b']);
    expect(await names({ query: { bool: { filter: guarded.toReversed() } }, sort: ['_score', 'name'] })).toEqual([
      'a',
      'b',
    ]);
    const must = [{ term: { tags: 'y' } }, { script: { script: "doc['v'].size() == 1", boost: 2 } }];
    const both = await hits({ query: { bool: { must } } });
    const alone = await hits({ query: { term: { tags: 'y' } } });
    expect(both.map((hit) => hit._score)).toEqual(alone.map((hit) => expect.closeTo(hit._score + 2, 5)));
    expect(await names({ query: { bool: { should: must, filter: guarded } } })).toHaveLength(2);
    // Of what an alias hides, and of what was deleted, nothing is told.
    await ok('POST', '/_aliases', {
      actions: [{ add: { index: 'shop', alias: 'open', filter: { term: { on: true } } } }],
    });
    await ok('PUT', '/shop/_doc/gone?refresh=true', { name: 'gone', on: true });
    await ok('DELETE', '/shop/_doc/gone?refresh=true');
    const telling =
      "if (doc['name'].value == 'b' || doc['name'].value == 'gone') { throw new Exception(doc['name'].value) } return true";
    const script = { script: { script: telling } };
    const score = { script_score: { query: { match_all: {} }, script: telling.replace('true', '1'), min_score: 0 } };
    const functions = [{ filter: script, weight: 2 }, { script_score: { script: telling.replace('true', '1') } }];
    const needed = {
      tags: { terms: ['x', 'y'], minimum_should_match_script: { source: telling.replace('true', '1') } },
    };
    for (const query of [
      script,
      score,
      { terms_set: needed },
      { bool: { must_not: script } },
      { bool: { should: [script, { match_all: {} }] } },
      { constant_score: { filter: script } },
      { function_score: { query: { match_all: {} }, functions } },
    ]) {
      const answer = await server.request('POST', '/open/_search', { query, aggs: { f: { filter: script } } });
      expect(answer.status, `${JSON.stringify(query)} ${answer.text}`).toBe(200);
    }
    expect((await server.request('POST', '/shop/_count', { query: script })).text).toContain('"reason":"b"');
  });

  it('asks the objects of nested fields apart', async () => {
    await ok('PUT', '/boxes', {
      mappings: { properties: { o: { type: 'nested', properties: { n: { type: 'long' } } } } },
    });
    await ok('PUT', '/boxes/_doc/1?refresh=true', { a: 1, o: [{ n: 1 }, { n: 5 }] });
    const count = async (query: unknown): Promise<number> => (await ok('POST', '/boxes/_count', { query })).count;
    expect(await count({ script: { script: "doc['a'].value == 1" } })).toBe(1);
    const inside = (least: number) => ({ script: { script: `doc['o.n'].value > ${String(least)}` } });
    expect(await count({ nested: { path: 'o', query: inside(4) } })).toBe(1);
    expect(await count({ nested: { path: 'o', query: inside(5) } })).toBe(0);
  });

  it('sorts by a script', async () => {
    const key = (script: string, order = 'asc') => ({ _script: { type: 'number', script, order } });
    expect(await names({ sort: [key("doc['stock'].value * -1")] })).toEqual(['b', 'a', 'c']);
    expect(await names({ sort: [key("doc['day'].value.monthValue", 'desc')] })).toEqual(['c', 'b', 'a']);
    const found = await hits({ sort: [key("doc['price'].value * 2")], size: 1 });
    expect(found[0].sort).toEqual([2.5]);
    const after = await names({ sort: [key("doc['price'].value * 2")], search_after: [2.5] });
    expect(after).toEqual(['a', 'c']);
    const error = await refused('POST', '/shop/_search', { sort: [{ _script: { type: 'string', script: "'a'" } }] });
    expect(JSON.stringify(error)).toContain('[_script] sorts by numbers here');
  });

  it('asks a script how many terms are needed', async () => {
    const terms_set = {
      tags: {
        terms: ['x', 'y', 'z'],
        minimum_should_match_script: { source: "Math.min(params.num_terms, doc['need'].value)" },
      },
    };
    expect(await names({ query: { terms_set }, sort: ['name'] })).toEqual(['a', 'b']);
  });

  it('computes numbers of buckets from others, and drops buckets', async () => {
    const days = (aggs: object): Promise<any> =>
      ok('POST', '/shop/_search', {
        size: 0,
        aggs: { by: { date_histogram: { field: 'day', calendar_interval: 'year' }, aggs } },
      });
    const sums = { paid: { sum: { field: 'price' } }, left: { sum: { field: 'stock' } } };
    const paths = { paid: 'paid', left: 'left', n: '_count' };
    const mean = { bucket_script: { buckets_path: paths, script: 'params.paid / params.n', format: '0.00' } };
    // What reads another one is computed behind it, wherever it stands.
    const doubled = { bucket_script: { buckets_path: 'mean', script: 'params._value * 2' } };
    const listed = {
      bucket_script: { buckets_path: ['left', '_key'], script: 'params._value1 > 0 ? params._value0 : null' },
    };
    const { aggregations } = await days({ doubled, mean, listed, ...sums });
    expect(aggregations.by.buckets.map((bucket: any) => [bucket.mean, bucket.doubled, bucket.listed])).toEqual([
      [{ value: 9, value_as_string: '9.00' }, { value: 18 }, { value: 0 }],
      [{ value: 2.375, value_as_string: '2.38' }, { value: 4.75 }, { value: 9 }],
    ]);
    const few = {
      bucket_selector: {
        buckets_path: { mean: 'mean' },
        script: { source: 'params.mean < params.most', params: { most: 5 } },
      },
    };
    const kept = (await days({ few, mean, ...sums })).aggregations.by.buckets;
    expect(kept.map((bucket: any) => bucket.key_as_string)).toEqual(['2026-01-01T00:00:00.000Z']);
  });

  it.each([
    ['a circle', { a: ['b', '1'], b: ['a', '1'] }, 'Cyclical dependency found with pipeline aggregator [a]'],
    ['a path that leads nowhere', { a: ['nope', '1'] }, 'No aggregation found for path [nope]'],
    ['a script that returns a text', { a: ['_count', "'x'"] }, 'the script must return a number'],
    ['a script that fails', { a: ['_count', 'def x = null; x.y'] }, 'cannot access method/field [y] from a null def'],
    ['a script that reads documents', { a: ['_count', "doc['price'].value"] }, 'compile error'],
    ['no script', { a: ['_count'] }, 'Missing required field [script] for bucket_script aggregation [a]'],
  ])('is refused with a bucket_script that has %s', async (_, scripts, reason) => {
    const aggs = Object.entries(scripts).map(([name, [path, script]]) => [
      name,
      { bucket_script: { buckets_path: path, script } },
    ]);
    const body = { aggs: { by: { terms: { field: 'name' }, aggs: Object.fromEntries(aggs) } } };
    const answer = await server.request('POST', '/shop/_search', body);
    expect(answer.status, answer.text).toBe(400);
    expect(answer.text).toContain(reason);
  });

  it.each([
    [
      'a field that is not there',
      { script_fields: { f: { script: "doc['gone'].value" } } },
      'No field found for [gone] in mapping',
    ],
    ['a field of texts', { script_fields: { f: { script: "doc['note'].value" } } }, 'Fielddata is disabled on [note]'],
    [
      'a document without a value',
      { query: { script_score: { query: { match_all: {} }, script: "doc['tags'].value.length()" } } },
      "A document doesn't have a value for a field!",
    ],
    [
      'a negative score',
      { query: { script_score: { query: { match_all: {} }, script: '-1' } } },
      'Must be a non-negative score!',
    ],
    [
      'a script that never ends',
      { query: { script: { script: 'while (true) { }' } } },
      'The maximum number of statements that can be executed in a loop has been reached.',
    ],
    ['a script that does not compile', { query: { script: { script: "doc['a'" } } }, 'compile error'],
    ['a stored script', { query: { script: { script: { id: 'x' } } } }, 'unable to find script [x]'],
    ['a filter that is no boolean', { query: { script: { script: '1' } } }, 'the script must return true or false'],
  ])('is refused with %s', async (_, body, reason) => {
    const answer = await server.request('POST', '/shop/_search', body);
    expect(answer.status, answer.text).toBe(400);
    expect(answer.text).toContain(JSON.stringify(reason).slice(1, -1));
  });
});

it('lists where scripts can stand, and their languages', async () => {
  const contexts = await server.request('GET', '/_script_context');
  expect([contexts.status, contexts.body.contexts.map(({ name }: { name: string }) => name)]).toEqual([
    200,
    expect.arrayContaining(['ingest', 'update', 'score', 'template']),
  ]);
  const { status, body } = await server.request('GET', '/_script_language');
  expect([status, body.types_allowed]).toEqual([200, ['inline', 'stored']]);
  expect(body.language_contexts.map(({ language }: { language: string }) => language)).toEqual([
    'mustache',
    'painless',
  ]);
});
