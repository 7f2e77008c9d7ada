// Ingest pipelines over HTTP: processors, simulations, versions, what a pipeline changes beside the source, statistics.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);
const put = (name: string, ...processors: unknown[]): Promise<Answer> =>
  call('PUT', `/_ingest/pipeline/${name}`, { processors });
const simulate = (processors: unknown[], source: unknown, query = ''): Promise<Answer> =>
  call('POST', `/_ingest/pipeline/_simulate${query}`, { pipeline: { processors }, docs: [{ _source: source }] });

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
});

afterAll(async () => {
  await server.stop();
});

describe('a pipeline', () => {
  it.each([
    ['foreach', { field: 'l', processor: { uppercase: { field: '_ingest._value' } } }, { l: ['a'] }, { l: ['A'] }],
    ['kv', { field: 't', field_split: ' ', value_split: '=' }, { t: 'a=1 b=2' }, { t: 'a=1 b=2', a: '1', b: '2' }],
    ['csv', { field: 't', target_fields: ['a', 'b'] }, { t: 'x,"y,z"' }, { t: 'x,"y,z"', a: 'x', b: 'y,z' }],
    ['dissect', { field: 't', pattern: '%{a} [%{b}]' }, { t: 'x [y]' }, { t: 'x [y]', a: 'x', b: 'y' }],
    ['bytes', { field: 't' }, { t: '1kb' }, { t: 1024 }],
    ['sort', { field: 'l', order: 'desc' }, { l: [1, 3, 2] }, { l: [3, 2, 1] }],
    [
      'uri_parts',
      { field: 't', target_field: 'u', remove_if_successful: true, keep_original: false },
      { t: 'http://a.org/b.c' },
      { u: { domain: 'a.org', path: '/b.c', extension: 'c', scheme: 'http' } },
    ],
    [
      'date',
      { field: 't', target_field: 't', formats: ['dd/MM/yyyy'], timezone: 'Europe/Amsterdam' },
      { t: '12/06/2010' },
      { t: '2010-06-12T00:00:00.000+02:00' },
    ],
  ])('runs %s', async (kind, parameters, source, expected) => {
    const { status, body } = await simulate([{ [kind]: parameters }], source);
    expect([status, body.docs[0].doc?._source ?? body]).toEqual([200, expected]);
  });

  it.each([
    [{ set: { field: 'a', value: 1, if: 'ctx.b ==' } }, 'compile error'],
    [{ script: { source: 'ctx.a = x' } }, 'compile error'],
    [{ grok: { field: 'a', patterns: ['%{IP:a}'] } }, 'No processor type exists with name [grok]: it is not available'],
    [{ nope: {} }, 'No processor type exists with name [nope]'],
    [{ foreach: { field: 'a' } }, '[processor] required property is missing'],
    [{ foreach: { field: 'a', processor: {} } }, '[processor] Must specify exactly one processor type'],
    [{ foreach: { field: 'a', processor: { nope: {} } } }, 'No processor type exists with name [nope]'],
    [{ dissect: { field: 'a', pattern: 'bad' } }, '[pattern] Unable to parse pattern: bad Reason: '],
    [
      { terminate: { x: 1 } },
      "processor [terminate] doesn't support one or more provided configuration parameters [x]",
    ],
  ])('with %j is refused and changes nothing', async (processor, reason) => {
    const { status, body } = await put('refused', processor);
    const type = reason === 'compile error' ? 'script_exception' : 'parse_exception';
    expect([status, body.error.type]).toEqual([400, type]);
    expect(body.error.reason).toContain(reason);
    expect((await call('GET', '/_ingest/pipeline/refused')).status).toBe(404);
  });

  it('keeps its version, description and _meta, and is replaced under a condition', async () => {
    const definition = { description: 'd', version: 1, _meta: { by: 'us' }, deprecated: true, processors: [] };
    await call('PUT', '/_ingest/pipeline/versioned', definition);
    expect((await call('GET', '/_ingest/pipeline/versioned')).body).toEqual({ versioned: definition });
    const reason = async (version: number, body: object, name = 'versioned'): Promise<string> =>
      (await call('PUT', `/_ingest/pipeline/${name}?if_version=${String(version)}`, body)).body.error?.reason;
    expect(await reason(9, { processors: [] })).toBe(
      'version conflict, required version [9] for pipeline [versioned] but current version is [1]',
    );
    expect(await reason(1, { version: 1, processors: [] })).toBe(
      'cannot update pipeline [versioned] with the same version [1]',
    );
    expect(await reason(1, { processors: [] }, 'none')).toContain('but no pipeline was found');
    expect(await reason(1, { processors: [] })).toBeUndefined();
    expect((await call('GET', '/_ingest/pipeline/versioned')).body).toEqual({
      versioned: { processors: [], version: 2 },
    });
  });
});

describe('a document that is written through a pipeline', () => {
  it('goes to the index of its date', async () => {
    await put('daily', { date_index_name: { field: 'd', index_name_prefix: 'events-', date_rounding: 'M' } });
    const written = await call('PUT', '/events/_doc/1?pipeline=daily', { d: '2016-04-22T16:32:14.968Z' });
    expect([written.status, written.body._index]).toEqual([201, 'events-2016-04-01']);
    expect((await call('GET', '/events')).status).toBe(404);
    const bulk = await call('POST', '/_bulk?pipeline=daily', '{"index":{"_index":"x"}}\n{"d":"no date"}\n');
    expect(bulk.body.items[0].index.error).toMatchObject({
      type: 'illegal_argument_exception',
      reason: 'unable to parse date [no date]',
    });
  });

  it('meets the conditions that the pipeline sets', async () => {
    await put('first', { set: { field: '_if_seq_no', value: 0 } }, { set: { field: '_if_primary_term', value: 1 } });
    const refused = await call('PUT', '/conditions/_doc/1?pipeline=first', {});
    expect([refused.status, refused.body.error.type]).toEqual([409, 'version_conflict_engine_exception']);
    expect((await call('PUT', '/conditions/_doc/1', {})).body._seq_no).toBe(0);
    expect((await call('PUT', '/conditions/_doc/1?pipeline=first', {})).body._seq_no).toBe(1);
    await put(
      'external',
      { set: { field: '_version', value: 7 } },
      { set: { field: '_version_type', value: 'external' } },
    );
    expect((await call('PUT', '/conditions/_doc/2?pipeline=external', {})).body._version).toBe(7);
    expect((await call('PUT', '/conditions/_doc/2?pipeline=external', {})).status).toBe(409);
    const copy = await call('POST', '/_reindex?refresh=true', {
      source: { index: 'conditions' },
      dest: { index: 'copy', pipeline: 'external' },
    });
    expect(copy.body.failures?.[0]?.cause.reason ?? copy.body).toContain('[_version] cannot be set by the pipeline');
  });
});

describe('a restricted key', () => {
  it('reaches no index through a pipeline that it may not write to itself', async () => {
    await put('elsewhere', { set: { field: '_index', value: '{{to}}' } });
    const role_descriptors = { r: { indices: [{ names: ['mine*'], privileges: ['all'] }] } };
    const key = (await call('POST', '/_security/api_key', { name: 'k', role_descriptors })).body.encoded;
    const asKey = (method: string, path: string, body: unknown): Promise<Answer> =>
      server.request(method, path, body, { apiKey: key });
    expect((await asKey('PUT', '/mine/_doc/1?pipeline=elsewhere', { to: 'mine-2' })).body._index).toBe('mine-2');
    const refused = await asKey('PUT', '/mine/_doc/2?pipeline=elsewhere', { to: 'yours' });
    expect([refused.status, refused.body.error.type]).toEqual([403, 'security_exception']);
    expect(refused.body.error.reason).toContain('on indices [yours]');
    const bulk = '{"index":{"_id":"3"}}\n{"to":"yours"}\n{"index":{"_id":"4"}}\n{"to":"<mine-{now/d}>"}\n';
    const { items } = (await asKey('POST', '/mine/_bulk?pipeline=elsewhere', bulk)).body;
    expect(items.map((item: any) => item.index.status)).toEqual([403, 201]);
    await call('PUT', '/mine/_doc/5?refresh=true', { to: 'yours' });
    const copy = await asKey('POST', '/_reindex', {
      source: { index: 'mine' },
      dest: { index: 'mine-copy', pipeline: 'elsewhere' },
    });
    expect(copy.body.failures?.[0], copy.text).toMatchObject({ status: 403, cause: { type: 'security_exception' } });
    expect((await call('GET', '/yours')).status).toBe(404);
  });
});

describe('a simulation', () => {
  it('takes a hit of a search as it is, and a type with a warning', async () => {
    const { status, body, headers } = await call('POST', '/_ingest/pipeline/_simulate', {
      pipeline: { processors: [{ set: { field: 'b', value: '{{_index}}/{{_id}}/{{_routing}}' } }] },
      docs: [{ _index: 'i', _id: 7, _routing: 'r', _score: 1, _type: '_doc', _version: 3, _source: { a: 1 } }],
    });
    expect([status, body.docs[0].doc]).toMatchObject([
      200,
      { _index: 'i', _id: '7', _routing: 'r', _version: '3', _source: { a: 1, b: 'i/7/r' } },
    ]);
    expect(headers['warning']).toContain('specifying _type in pipeline simulation requests is deprecated');
  });

  it.each([
    [{ docs: [{ _source: {} }] }, '[pipeline] required property is missing'],
    [{ pipeline: { processors: [] } }, '[docs] required property is missing'],
    [{ pipeline: { processors: [] }, docs: [] }, 'must specify at least one document in [docs]'],
    [{ pipeline: { processors: [] }, docs: [{}] }, '[_source] required property is missing'],
    [{ pipeline: { processors: [] }, docs: [{ _source: {}, _id: [] }] }, "[_id] property isn't a string or int"],
    [{ pipeline: { processors: [] }, docs: [{ _source: {}, x: 1 }] }, 'unknown key [x] in a document of a simulation'],
    [{ pipeline: { processors: [] }, docs: [{ _source: {} }], x: 1 }, 'unknown key [x] in the body of a simulation'],
  ])('of %j is refused', async (body, reason) => {
    const answer = await call('POST', '/_ingest/pipeline/_simulate', body);
    expect(answer.status).toBe(400);
    expect(answer.body.error.reason).toContain(reason);
  });

  it('shows every step, and the error that a handler took', async () => {
    const processors = [
      { set: { field: 'a', value: 1, tag: 'one', description: 'sets a' } },
      {
        uppercase: {
          field: 'no',
          tag: 'two',
          on_failure: [{ set: { field: 'why', value: '{{_ingest.on_failure_message}}' } }],
        },
      },
      { rename: { field: 'no', target_field: 'x', ignore_failure: true } },
    ];
    const { body } = await simulate(processors, {}, '?verbose=true');
    const steps = body.docs[0].processor_results;
    expect(steps.map((step: { status: string }) => step.status)).toEqual([
      'success',
      'error',
      'success',
      'error_ignored',
    ]);
    expect(steps[0]).toMatchObject({
      processor_type: 'set',
      tag: 'one',
      description: 'sets a',
      doc: { _source: { a: 1 } },
    });
    expect(steps[2].doc._source).toEqual({ a: 1, why: 'field [no] not present as part of path [no]' });
    expect(steps[3].ignored_error.error.reason).toBe("field [no] doesn't exist");
  });
});

describe('a node', () => {
  it('has the same sections of figures without an index as with one', async () => {
    const shape = (value: unknown): unknown =>
      typeof value === 'object' && value !== null
        ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shape(inner)]))
        : typeof value;
    const figures = async (from: RunningServer): Promise<unknown> => {
      const [node] = Object.values<any>((await from.request('GET', '/_nodes/stats/indices')).body.nodes);
      return shape(node.indices);
    };
    const bare = await startServer({ args: ['--deploy-at-start', 'false'] });
    try {
      const before = await figures(bare);
      await bare.request('PUT', '/i');
      expect(await figures(bare)).toEqual(before);
    } finally {
      await bare.stop();
    }
  });

  it('names the processors that it has, and no other', async () => {
    const { nodes } = (await call('GET', '/_nodes/ingest')).body;
    const [node] = Object.values<any>(nodes);
    const kinds: string[] = node.ingest.processors.map(({ type }: { type: string }) => type);
    expect(kinds).toEqual([...kinds].sort());
    expect(kinds.length).toBeGreaterThan(25);
    for (const kind of kinds) {
      const { body } = await put('probe', { [kind]: { surely_unknown: 1 } });
      expect(body.error.reason, kind).not.toContain('No processor type');
    }
  });

  it.each([
    ['gsub', 'pattern', { field: 't', replacement: 'y' }],
    ['split', 'separator', { field: 't' }],
    ['kv', 'field_split', { field: 't', value_split: '=' }],
  ])('of %s keeps no regular expression that takes much memory', async (kind, name, more) => {
    const { status, text } = await put('large', { [kind]: { ...more, [name]: String.raw`\w{100}` } });
    expect(status, text).toBe(400);
    expect(text).toContain('Compiled regex exceeds size limit of 1048576 bytes');
    expect((await put('usual', { [kind]: { ...more, [name]: String.raw`(\w+)\s+(\d{4})` } })).status).toBe(200);
  });

  it('counts what its pipelines do', async () => {
    await put('counted', { set: { field: 'a', value: 1, tag: 't' } }, { json: { field: 'j', ignore_failure: true } });
    await call(
      'POST',
      '/_bulk?pipeline=counted',
      '{"index":{"_index":"c"}}\n{"j":"1"}\n{"index":{"_index":"c"}}\n{"j":"{"}\n',
    );
    const [node] = Object.values<any>((await call('GET', '/_nodes/stats/ingest')).body.nodes);
    expect(node.ingest.total.count).toBeGreaterThanOrEqual(2);
    expect(node.ingest.pipelines.counted).toMatchObject({
      ...{ count: 2, failed: 0, current: 0 },
      processors: [
        { 'set:t': { type: 'set', stats: { count: 2, failed: 0 } } },
        { json: { type: 'json', stats: { count: 2, failed: 1, current: 0 } } },
      ],
    });
    const cluster = (await call('GET', '/_cluster/stats')).body.nodes.ingest;
    expect(cluster.processor_stats.json).toMatchObject({ count: 2, failed: 1 });
  });
});
