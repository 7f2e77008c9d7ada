// Copies of indices, rollovers and settings of indices, against the real engine.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

const ARGS = ['--deploy-at-start', 'false'];
let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);
const reason = async (method: string, path: string, body?: unknown): Promise<[number, string]> => {
  const answer = await call(method, path, body);
  return [answer.status, answer.body.error?.reason];
};

beforeAll(async () => {
  server = await startServer({ args: ARGS });
});

afterAll(async () => {
  await server.stop();
});

describe('copies', () => {
  it('copies an index, and shows it with another number of shards', async () => {
    await call('PUT', '/source', {
      settings: { number_of_shards: 2, number_of_replicas: 0 },
      mappings: { properties: { s: { type: 'sparse_vector' }, k: { type: 'keyword' } } },
    });
    await call('PUT', '/source/_doc/1', { k: 'a', s: { x: 1 } });
    await call('PUT', '/source/_doc/2', { k: 'b' });
    await call('DELETE', '/source/_doc/2');
    expect(await reason('PUT', '/source/_clone/target')).toEqual([
      400,
      'index source must be read-only to resize index. use "index.blocks.write=true"',
    ]);
    await call('PUT', '/source/_settings', { 'index.blocks.write': true });
    for (const [path, settings, status] of [
      ['_clone', { 'index.number_of_shards': 6 }, 400],
      ['_split', { 'index.number_of_shards': 5 }, 400],
      ['_split', {}, 400],
      ['_shrink', { 'index.number_of_shards': 4 }, 400],
    ] as const) {
      expect((await call('PUT', `/source/${path}/target`, { settings })).status, path).toBe(status);
    }
    expect(await reason('PUT', '/source/_clone/source')).toEqual([400, expect.stringContaining('already exists')]);
    expect((await reason('PUT', '/source/_clone/Bad'))[1]).toContain('must be lowercase');
    expect((await reason('PUT', '/source/_clone/target', { mappings: {} }))[1]).toContain('unknown field [mappings]');
    expect((await call('HEAD', '/target')).status).toBe(404);
    for (const [path, shards] of [
      ['_clone', 2],
      ['_split', 4],
      ['_shrink', 1],
    ] as const) {
      const target = `to${path.replace('_', '-')}`;
      const body = {
        settings: { 'index.blocks.write': null, ...(path === '_split' ? { 'index.number_of_shards': 4 } : {}) },
        aliases: { [`alias-${target}`]: {} },
      };
      const made = await call('POST', `/source/${path}/${target}`, body);
      expect(made.body).toEqual({ acknowledged: true, shards_acknowledged: true, index: target });
      const shown = (await call('GET', `/${target}/_settings`)).body[target].settings.index;
      expect(shown.number_of_shards).toBe(String(shards));
      expect(shown.blocks, 'the block of the source was given as null').toBeUndefined();
      expect((await call('GET', `/alias-${target}/_doc/1`)).body).toMatchObject({ _index: target, _seq_no: 0 });
      expect((await call('PUT', `/${target}/_doc/3?refresh`, { k: 'c' })).body._seq_no).toBe(3);
      expect((await call('GET', `/${target}/_count`)).body.count).toBe(2);
    }
    expect((await call('GET', '/source/_count')).body.count).toBe(1);
  });
});

describe('rollovers', () => {
  it('rolls an alias over when a condition holds', async () => {
    await call('PUT', '/logs-1', { aliases: { logs: {}, other: {} } });
    const conditions = { max_docs: 1, max_age: '7d', max_size: '5gb' };
    const not = (await call('POST', '/logs/_rollover', { conditions })).body;
    expect(not).toEqual({
      acknowledged: false,
      shards_acknowledged: false,
      old_index: 'logs-1',
      new_index: 'logs-000002',
      rolled_over: false,
      dry_run: false,
      lazy: false,
      conditions: { '[max_docs: 1]': false, '[max_age: 7d]': false, '[max_size: 5gb]': false },
    });
    await call('PUT', '/logs/_doc/1?refresh', { a: 1 });
    expect((await call('POST', '/logs/_rollover?dry_run', { conditions })).body).toMatchObject({
      dry_run: true,
      rolled_over: false,
      conditions: { '[max_docs: 1]': true },
    });
    const body = {
      conditions,
      settings: { number_of_replicas: 0 },
      mappings: { properties: { k: { type: 'keyword' } } },
    };
    expect((await call('POST', '/logs/_rollover', body)).body).toMatchObject({ rolled_over: true, acknowledged: true });
    expect(Object.keys((await call('GET', '/_alias/logs')).body)).toEqual(['logs-000002']);
    expect(Object.keys((await call('GET', '/_alias/other')).body)).toEqual(['logs-1']);
    expect((await call('GET', '/logs-000002')).body['logs-000002'].mappings.properties.k).toEqual({ type: 'keyword' });
    expect((await call('POST', '/logs/_rollover/mine')).body).toMatchObject({ new_index: 'mine', rolled_over: true });
  });

  it('keeps the old index readable where the alias has a write index', async () => {
    await call('PUT', '/w-1', { aliases: { w: { is_write_index: true } } });
    expect((await call('POST', '/w/_rollover')).body.rolled_over).toBe(true);
    const aliases = (await call('GET', '/_alias/w')).body;
    expect(aliases['w-1'].aliases.w.is_write_index).toBe(false);
    expect(aliases['w-000002'].aliases.w.is_write_index).toBe(true);
  });

  it('refuses what cannot be rolled over', async () => {
    await call('PUT', '/plain', { aliases: { odd: {} } });
    await call('PUT', '/taken-1', { aliases: { taken: {} } });
    await call('PUT', '/taken-000002');
    for (const [path, body, text] of [
      ['/nothing/_rollover', {}, 'rollover target [nothing] does not exist'],
      ['/plain/_rollover', {}, 'rollover target is a [concrete index] but one of [alias,data_stream] was expected'],
      ['/odd/_rollover', {}, "index name [plain] does not match pattern '^.*-\\d+$'"],
      ['/taken/_rollover?dry_run', {}, 'already exists'],
      ['/taken/_rollover/Bad', {}, 'must be lowercase'],
      ['/taken/_rollover/x', { foo: 1 }, '[rollover_request] unknown field [foo]'],
      ['/taken/_rollover/x', { conditions: { max_foo: 1 } }, '[conditions] unknown field [max_foo]'],
      ['/taken/_rollover/x', { conditions: { max_size: '5' } }, 'unit is missing or unrecognized'],
      ['/taken/_rollover/x', { conditions: { min_docs: 5 } }, 'at least one max_*'],
    ] as const) {
      expect(await reason('POST', path, body)).toEqual([400, expect.stringContaining(text)]);
    }
    expect(Object.keys((await call('GET', '/_alias/taken')).body)).toEqual(['taken-1']);
  });
});

describe('settings of an index', () => {
  it('are shown by name, with defaults, and preserved', async () => {
    await call('PUT', '/s', { settings: { refresh_interval: '5s', number_of_replicas: 0 } });
    expect((await call('GET', '/s/_settings/index.refresh*?flat_settings')).body).toEqual({
      s: { settings: { 'index.refresh_interval': '5s' } },
    });
    expect((await call('GET', '/s/_settings/index.number_of_*')).body.s.settings).toEqual({
      index: { number_of_shards: '1', number_of_replicas: '0' },
    });
    const all = (await call('GET', '/s/_settings?include_defaults&flat_settings')).body.s;
    expect(all.defaults['index.max_result_window']).toBe('10000');
    expect(all.defaults['index.refresh_interval']).toBeUndefined();
    const kept = { 'index.refresh_interval': '9s', 'index.number_of_replicas': 3, 'index.max_result_window': 50 };
    expect((await call('PUT', '/s/_settings?preserve_existing', kept)).status).toBe(200);
    expect((await call('GET', '/s/_settings')).body.s.settings.index).toMatchObject({
      refresh_interval: '5s',
      number_of_replicas: '0',
      max_result_window: '50',
    });
  });

  it.each([
    [{ 'index.foo': 1 }, 'unknown setting [index.foo] please check that any required plugins are installed'],
    [{ 'index.sort.field': 'a' }, 'setting [index.sort.field] is not supported by this server'],
    [{ 'index.lifecycle.name': 'p' }, 'setting [index.lifecycle.name] is not supported by this server'],
    [{ 'index.mapping.depth.limit': 0 }, 'must be >= 1'],
  ])('refuse %j', async (settings, text) => {
    const [status, why] = await reason('PUT', '/refused', { settings });
    expect([status, why]).toEqual([400, expect.stringContaining(text)]);
    expect((await call('HEAD', '/refused')).status).toBe(404);
  });

  it('bound the mapping', async () => {
    const limits = { 'index.mapping.depth.limit': 2, 'index.mapping.field_name_length.limit': 5 };
    const deep = { properties: { a: { properties: { b: { properties: { c: { type: 'long' } } } } } } };
    expect(await reason('PUT', '/bounded', { settings: limits, mappings: deep })).toEqual([
      400,
      'Limit of mapping depth [2] has been exceeded due to object field [a.b]',
    ]);
    await call('PUT', '/bounded', { settings: limits });
    expect(await reason('PUT', '/bounded/_mapping', { properties: { abcdef: { type: 'long' } } })).toEqual([
      400,
      'Field name [abcdef] is longer than the limit of [5] characters',
    ]);
    expect((await call('PUT', '/bounded/_doc/1', { abcdef: 1 })).text).toContain('is longer than the limit of [5]');
    expect((await call('GET', '/bounded/_mapping')).body.bounded.mappings).toEqual({});
  });
});

describe('mappings', () => {
  it('make new fields from templates', async () => {
    const mappings = {
      dynamic_date_formats: ['dd.MM.yyyy'],
      dynamic_templates: [
        { codes: { match: '*_code', match_mapping_type: 'string', mapping: { type: 'keyword' } } },
        { named: { match: 'odd', mapping: { type: 'text', analyzer: '{name}' } } },
      ],
    };
    expect((await call('PUT', '/dynamic', { mappings })).status).toBe(200);
    await call('PUT', '/dynamic/_doc/1?refresh', { post_code: '0123', day: '24.12.2024', n: 1 });
    const shown = (await call('GET', '/dynamic/_mapping')).body.dynamic.mappings;
    expect(shown.dynamic_templates).toEqual(mappings.dynamic_templates);
    expect(shown.properties).toEqual({
      post_code: { type: 'keyword' },
      day: { type: 'date', format: 'dd.MM.yyyy' },
      n: { type: 'long' },
    });
    expect((await call('PUT', '/dynamic/_doc/2', { odd: 'x' })).body.error.caused_by?.reason ?? '').toContain('[odd]');
    expect((await call('GET', '/dynamic/_mapping')).body.dynamic.mappings).toEqual(shown);
    const bad = [{ x: { match_mapping_type: 'words', mapping: {} } }];
    expect((await reason('PUT', '/dynamic/_mapping', { dynamic_templates: bad }))[1]).toContain(
      'No field type matched on [words]',
    );
    for (const refused of [{ dynamic: 'runtime' }, { runtime: { a: { type: 'long' } } }]) {
      expect((await reason('PUT', '/dynamic/_mapping', refused))[1]).toContain('not supported by this server');
    }
  });

  it('have constants, wildcards and binaries', async () => {
    const properties = {
      c: { type: 'constant_keyword', value: 'always' },
      w: { type: 'wildcard', ignore_above: 20 },
      b: { type: 'binary' },
    };
    await call('PUT', '/kinds', { mappings: { properties } });
    expect((await call('GET', '/kinds/_mapping')).body.kinds.mappings.properties).toEqual(properties);
    await call('PUT', '/kinds/_doc/1', { w: 'hello world', b: 'aGk=' });
    await call('PUT', '/kinds/_doc/2?refresh', { c: 'always' });
    const hits = async (query: object): Promise<number> =>
      (await call('POST', '/kinds/_search', { query })).body.hits.total.value;
    expect(await hits({ term: { c: 'always' } })).toBe(2);
    expect(await hits({ wildcard: { w: { value: '*o w*' } } })).toBe(1);
    expect((await call('PUT', '/kinds/_doc/3', { c: 'never' })).text).toContain(
      'only accepts values that are equal to the value defined in the mappings [always], but got [never]',
    );
    expect((await call('PUT', '/kinds/_doc/3', { b: 'no base64!' })).status).toBe(400);
    expect((await call('PUT', '/kinds/_doc/3', { b: 5 })).status).toBe(400);
    const { fields } = (await call('GET', '/kinds/_field_caps?fields=*')).body;
    expect(Object.keys(fields.c)).toEqual(['keyword']);
    expect(fields.b.binary).toMatchObject({ searchable: false, aggregatable: false });
  });
});
