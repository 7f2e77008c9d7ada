import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

/** What stands in the documents that no restricted key of these tests may see. */
const CANARY = 'canary-7f3a';

let server: RunningServer;
let made = 0;

beforeAll(async () => {
  server = await startServer();
  for (const index of ['2024', 'true', 'secret']) {
    await put(`/${index}/_doc/1?refresh=true`, { word: CANARY, words: [CANARY, 'x'], n: 1 });
  }
  await put('/mine/_doc/1?refresh=true', { word: 'mine', n: 1 });
  await put('/_ingest/pipeline/elsewhere', { processors: [{ set: { field: '_index', value: 'secret' } }] });
  await put('/_ingest/pipeline/first', { processors: [{ set: { field: '_id', value: '1' } }] });
});

afterAll(async () => {
  await server.stop();
});

async function put(path: string, body: object): Promise<void> {
  const { status, text } = await server.request('PUT', path, body);
  expect(status, text).toBeLessThan(300);
}

type Call = (method: string, path: string, body?: unknown) => Promise<Answer>;

async function keyWith(role_descriptors: object | string): Promise<Call> {
  const body =
    typeof role_descriptors === 'string'
      ? Buffer.from(`{"name":"k${String(made++)}","role_descriptors":${role_descriptors}}`)
      : { name: `k${String(made++)}`, role_descriptors };
  const { body: key, status, text } = await server.request('POST', '/_security/api_key', body);
  expect(status, text).toBe(200);
  const { encoded } = key as { encoded: string };
  return (method, path, sent) => server.request(method, path, sent, { apiKey: encoded });
}

const on = (names: string[], privileges: string[]): object => ({ r: { indices: [{ names, privileges }] } });
const nothing = { none: {} };

async function unchanged(index: string): Promise<void> {
  const { body } = await server.request('GET', `/${index}/_doc/1`);
  expect(body).toMatchObject({ found: true, _version: 1, _source: { word: CANARY } });
}

describe('names that are not strings', () => {
  it.each([
    [2024, '2024'],
    [true, 'true'],
  ])('in bulk: %j', async (name, index) => {
    const bulk =
      `{"index":{"_index":${String(name)},"_id":"1"}}\n{"word":"gone"}\n` +
      `{"delete":{"_index":${String(name)},"_id":"1"}}\n{"update":{"_index":${String(name)},"_id":1}}\n{"doc":{"word":"gone"}}\n`;
    const none = await (await keyWith(nothing))('POST', '/_bulk', bulk);
    expect(none.status).toBe(403);
    const { status, body } = await (await keyWith(on(['mine'], ['all'])))('POST', '/_bulk', bulk);
    expect(status).toBe(200);
    const items = body.items.flatMap(Object.values) as { status: number; error: { type: string; reason: string } }[];
    expect(items.map((item) => item.status)).toEqual([403, 403, 403]);
    for (const { error } of items) {
      expect(error.type).toBe('security_exception');
      expect(error.reason).toContain(`on indices [${index}]`);
    }
    await unchanged(index);
  });

  it('in _mget and _mtermvectors', async () => {
    const as = await keyWith(on(['mine'], ['all']));
    for (const path of ['/_mget', '/_mtermvectors']) {
      const { text, body } = await as(
        'POST',
        path,
        Buffer.from('{"docs":[{"_index":2024,"_id":1},{"_index":"mine","_id":"1"}]}'),
      );
      expect(text).not.toContain(CANARY);
      if (path === '/_mget') {
        expect(body.docs[0].error.type).toBe('security_exception');
        expect(body.docs[1].found).toBe(true);
      }
    }
  });
});

describe('documents that queries name', () => {
  const lookup = { terms: { word: { index: 'secret', id: '1', path: 'words' } } };
  const like = {
    more_like_this: { fields: ['word'], like: [{ _index: 'secret', _id: '1' }], min_term_freq: 1, min_doc_freq: 1 },
  };
  const wrapped = (query: object, tail = ''): object => ({
    wrapper: { query: Buffer.from(JSON.stringify(query) + tail).toString('base64') },
  });
  it.each([
    lookup,
    like,
    wrapped(lookup),
    wrapped(lookup, ' }'),
    wrapped(lookup, '\n{}'),
    wrapped(wrapped(lookup, ' ]')),
    { bool: { filter: [wrapped(lookup, ' x')] } },
    { terms: { word: { index: 2024, id: '1', path: 'words' } } },
  ])('%j is refused wherever a query may stand', async (query) => {
    const as = await keyWith(on(['mine'], ['all']));
    for (const [method, path, body] of [
      ['POST', '/mine/_search', { query }],
      ['POST', '/mine/_search', { query: { match_all: {} }, post_filter: query }],
      ['POST', '/mine/_search', { query: { match_all: {} }, aggs: { a: { filter: query } } }],
      ['POST', '/mine/_count', { query }],
      ['POST', '/mine/_explain/1', { query }],
      ['POST', '/mine/_validate/query?explain=true', { query }],
      ['POST', '/mine/_msearch', `{}\n${JSON.stringify({ query })}\n`],
      ['POST', '/mine/_delete_by_query', { query }],
      ['POST', '/mine/_update_by_query', { query }],
      ['POST', '/_reindex', { source: { index: 'mine', query }, dest: { index: 'mine-copy' } }],
      ['POST', '/mine/_field_caps?fields=*', { index_filter: query }],
      ['POST', '/mine/_pit?keep_alive=1m', { index_filter: query }],
    ] as const) {
      const { text } = await as(method, path, body);
      expect(text, `${path} ${JSON.stringify(body)}`).not.toContain(CANARY);
      expect(text, `${path} ${JSON.stringify(body)}`).toMatch(/security_exception|parsing_exception|parse_exception/);
    }
    expect((await as('GET', '/mine/_count')).body.count).toBe(1);
  });
});

describe('_field_caps with an [index_filter]', () => {
  const filter = (prefix: string): object => ({ index_filter: { prefix: { words: prefix } } });

  it('tells nobody what is in an index who may not read it', async () => {
    const as = await keyWith(on(['secret'], ['view_index_metadata']));
    expect((await as('POST', '/secret/_field_caps?fields=*')).status).toBe(200);
    const guesses = [CANARY.slice(0, 2), 'not it'].map((text) =>
      as('POST', '/secret/_field_caps?fields=*', filter(text)),
    );
    for (const { status, body } of await Promise.all(guesses)) {
      expect(status).toBe(403);
      expect(body.error.reason).toContain('action [indices:data/read/search] is unauthorized');
    }
    const pattern = await as('POST', '/secre*/_field_caps?fields=*', filter(CANARY.slice(0, 2)));
    expect(pattern.body.indices ?? []).toEqual([]);
  });

  it('is for who may read it, by an alias too', async () => {
    await put('/secret/_alias/disclosed', {});
    const as = await keyWith(on(['disclosed'], ['read', 'view_index_metadata']));
    const { status, body } = await as('POST', '/disclosed/_field_caps?fields=*', { index_filter: { match_all: {} } });
    expect([status, body.indices]).toEqual([200, ['secret']]);
    await server.request('DELETE', '/secret/_alias/disclosed');
  });
});

describe('create_doc', () => {
  it('adds and never overwrites', async () => {
    await put('/feed/_doc/1', { a: 1 });
    const as = await keyWith(on(['feed'], ['create_doc']));
    expect((await as('PUT', '/feed/_doc/1', { a: 2 })).status).toBe(403);
    expect((await as('PUT', '/feed/_doc/new', { a: 2 })).status).toBe(403);
    expect((await as('PUT', '/feed/_create/2', { a: 2 })).status).toBe(201);
    expect((await as('PUT', '/feed/_create/1', { a: 2 })).status).toBe(409);
    expect((await as('PUT', '/feed/_doc/3?op_type=create', { a: 2 })).status).toBe(201);
    expect((await as('POST', '/feed/_doc', { a: 2 })).status).toBe(201);
    // A pipeline that gives the document the id of one that is there.
    expect((await as('POST', '/feed/_doc?pipeline=first', { a: 2 })).status).toBe(403);
    expect((await as('POST', '/feed/_update/1', { doc: { a: 2 } })).status).toBe(403);
    expect((await as('DELETE', '/feed/_doc/1')).status).toBe(403);
    const bulk =
      '{"index":{"_id":"1"}}\n{"a":2}\n{"index":{}}\n{"a":2}\n{"create":{"_id":"4"}}\n{"a":2}\n' +
      '{"index":{"_id":"5","op_type":"create"}}\n{"a":2}\n{"update":{"_id":"1"}}\n{"doc":{"a":2}}\n{"delete":{"_id":"1"}}\n';
    const { body } = await as('POST', '/feed/_bulk', bulk);
    expect(body.items.flatMap(Object.values).map((item: { status: number }) => item.status)).toEqual([
      403, 201, 201, 201, 403, 403,
    ]);
    expect((await server.request('GET', '/feed/_source/1')).body).toEqual({ a: 1 });
  });

  it('of create and index may overwrite, as in Elasticsearch', async () => {
    await put('/feeds/_doc/1', { a: 1 });
    for (const privilege of ['create', 'index', 'write']) {
      expect((await (await keyWith(on(['feeds'], [privilege])))('PUT', '/feeds/_doc/1', { a: 2 })).status).toBe(200);
    }
  });

  it('makes no index, which is another privilege', async () => {
    const as = await keyWith(on(['fresh*'], ['create_doc']));
    const refused = await as('POST', '/fresh-1/_doc', {});
    expect(refused.status).toBe(403);
    expect(refused.text).toContain('action [indices:admin/auto_create]');
    for (const privilege of ['auto_configure', 'create_index', 'manage']) {
      const both = await keyWith(on(['fresh*'], ['create_doc', privilege]));
      expect((await both('POST', `/fresh-${privilege}/_doc`, {})).status).toBe(201);
    }
  });
});

describe('roles and documents with the names of built-in properties', () => {
  it('give no more than they say', async () => {
    const as = await keyWith(
      '{"__proto__":{"cluster":["monitor"],"indices":[{"names":["mine"],"privileges":["read"]}]}}',
    );
    expect((await as('GET', '/mine/_doc/1')).status).toBe(200);
    expect((await as('GET', '/secret/_doc/1')).status).toBe(403);
    expect((await as('DELETE', '/mine')).status).toBe(403);
    expect((await as('GET', '/_ingest/pipeline')).status).toBe(403);
    const empty = await keyWith('{"__proto__":{}}');
    expect((await empty('GET', '/mine/_doc/1')).status).toBe(403);
  });

  it.each(['constructor', 'delete', '__proto__', 'toString', 'index'])('a document with [%s]', async (name) => {
    const as = await keyWith(on(['mine'], ['write', 'read']));
    const { status, body } = await as(
      'POST',
      '/mine/_bulk',
      `{"index":{"_id":"p"}}\n{"${name}":{"_index":"secret","_id":"1"}}\n`,
    );
    expect([status, body.errors], JSON.stringify(body)).toEqual([200, false]);
    await as('POST', '/mine/_bulk?refresh=true', '{"delete":{"_id":"p"}}\n');
    await unchanged('secret');
  });
});

describe('names that nobody wrote into the path', () => {
  it('of pipelines, aliases, copies and searches are checked', async () => {
    const as = await keyWith(on(['mine*'], ['all']));
    const refused: [string, string, unknown][] = [
      ['PUT', '/mine/_doc/9?pipeline=elsewhere', { a: 1 }],
      ['POST', '/_aliases', { actions: [{ add: { index: 'secret', alias: 'mine-a' } }] }],
      ['POST', '/_aliases', { actions: [{ add: { indices: ['mine', 'secret'], alias: 'mine-a' } }] }],
      ['POST', '/_aliases', { actions: [{ add: { index: 'mine', alias: 'other' } }] }],
      ['POST', '/_aliases', { actions: [{ remove_index: { index: 'secret' } }] }],
      ['PUT', '/_alias', { index: 'secret', alias: 'mine-a' }],
      ['PUT', '/mine-new', { aliases: { secrets: {} } }],
      ['PUT', '/mine/_clone/other', {}],
      ['PUT', '/secret/_clone/mine-copy', {}],
      ['POST', '/_reindex', { source: { index: 'secret' }, dest: { index: 'mine' } }],
      ['POST', '/_reindex', { source: { index: 'mine' }, dest: { index: 'secret' } }],
      ['POST', '/_reindex', { source: { index: ['mine', '<{secret}>'] }, dest: { index: 'mine-2' } }],
      ['POST', '/mine/_search', { query: { match_all: {} }, indices_boost: [{ secret: 2 }] }],
      ['GET', '/mine,secret/_search', undefined],
      ['GET', '/m*,secret/_search', undefined],
      ['GET', '/%3Csecret-%7Bnow%2Fd%7D%3E/_search', undefined],
      ['GET', '/_cat/indices/secret', undefined],
      ['GET', '/_cat/aliases/other', undefined],
      ['GET', '/_resolve/index/secret', undefined],
      ['GET', '/secret/_stats', undefined],
      ['GET', '/secret/_segments', undefined],
      ['GET', '/secret/_recovery', undefined],
      ['GET', '/secret/_search_shards', undefined],
      ['GET', '/secret/_analyze', { text: 'a' }],
      ['HEAD', '/secret', undefined],
    ];
    for (const [method, path, body] of refused) {
      const { status, text } = await as(method, path, body);
      expect(status, `${method} ${path} ${text}`).toBe(path === '/_reindex' && text.includes('{secret}') ? 400 : 403);
    }
    // Date math is checked by the name that it comes to, which is not there.
    expect((await as('GET', '/%3Cmine-%7Bnow%2Fd%7D%3E/_search')).status).toBe(404);
    await unchanged('secret');
    const moved = await as('POST', '/_bulk', '{"index":{"_index":"mine","pipeline":"elsewhere"}}\n{}\n');
    expect(moved.body.items[0].index.status).toBe(403);
    const searches = await as('POST', '/_msearch', '{"index":"secret"}\n{}\n{"index":["mine"]}\n{}\n{}\n{}\n');
    expect(searches.body.responses.map(({ status }: { status: number }) => status)).toEqual([403, 200, 200]);
    expect(searches.text).not.toContain(CANARY);
  });

  it('of wildcards stand for what a key may see', async () => {
    const as = await keyWith(on(['mine'], ['all']));
    for (const path of [
      '/_search',
      '/*/_search',
      '/_all/_search',
      '/*,-mine2/_search',
      '/s*,mi*/_search',
      '/_cat/indices?h=index',
      '/_stats',
      '/_mapping',
      '/_alias',
      '/_resolve/index/*',
      '/_recovery',
      '/_segments',
      '/_cat/shards',
      '/_cat/recovery',
      '/_settings',
      '/_field_caps?fields=*',
    ]) {
      const { status, text } = await as('GET', path);
      expect(status, text).toBe(200);
      expect(text, path).not.toMatch(/secret|2024|canary/);
    }
    expect((await as('GET', '/_search')).body.hits.total.value).toBe(1);
    // By query, what is read has to be writable too.
    const mixed = await keyWith({
      r: {
        indices: [
          { names: ['*'], privileges: ['read'] },
          { names: ['mine'], privileges: ['delete'] },
        ],
      },
    });
    const { body } = await mixed('POST', '/*/_delete_by_query', { query: { term: { 'word.keyword': CANARY } } });
    expect(body.deleted).toBe(0);
    await unchanged('secret');
  });
});

describe('aliases of an index', () => {
  const aliases = { 'seen-a': {}, 'seen-hidden': { is_hidden: true }, 'unseen-a': {} };

  beforeAll(async () => {
    await put('/seen', { aliases });
  });

  it.each([
    ['names', ['seen'], []],
    ['a wildcard', ['seen*'], ['seen-a', 'seen-hidden']],
    ['everything', ['*'], Object.keys(aliases)],
  ])('are shown to a key for %s as far as it knows them', async (_, names, known) => {
    const as = await keyWith(on(names, ['view_index_metadata']));
    const { body } = await as('GET', '/seen');
    expect(Object.keys(body.seen.aliases as object)).toEqual(known);
    const shown = known.filter((alias) => alias !== 'seen-hidden');
    for (const path of ['/_resolve/index/seen', '/_resolve/index/*?expand_wildcards=open']) {
      const { body: resolved } = await as('GET', path);
      const index = (resolved.indices as { name: string; aliases?: string[] }[]).find(({ name }) => name === 'seen');
      expect(index?.aliases ?? [], path).toEqual(shown);
    }
    for (const expand of ['all', 'open,hidden']) {
      const { body: resolved } = await as('GET', `/_resolve/index/seen*?expand_wildcards=${expand}`);
      expect(resolved.indices[0].aliases ?? []).toEqual(known);
      expect(resolved.aliases.map(({ name }: { name: string }) => name)).toEqual(
        known.filter((alias) => alias.startsWith('seen')),
      );
    }
  });

  it('may be known by any right that a key has on them', async () => {
    const as = await keyWith({
      r: {
        indices: [
          { names: ['seen'], privileges: ['view_index_metadata'] },
          { names: ['unseen-a'], privileges: ['create_doc'] },
        ],
      },
    });
    expect((await as('GET', '/seen')).body.seen.aliases).toEqual({ 'unseen-a': {} });
    expect((await as('GET', '/_resolve/index/seen')).body.indices[0].aliases).toEqual(['unseen-a']);
  });
});

describe('aliases that templates give', () => {
  const role = (cluster: string, names: string[], privileges: string[]): object => ({
    r: { cluster: [cluster], indices: [{ names, privileges }] },
  });
  const template = (alias: string, more: object = {}): object => ({
    index_patterns: ['tpl-*'],
    priority: 900,
    template: { aliases: { [alias]: {} } },
    ...more,
  });

  it('are those that the writer of the template may change', async () => {
    await put('/tpl-prod-1', { aliases: { 'tpl-prod': { is_write_index: true } } });
    await put('/_component_template/tpl-part', { template: { aliases: { 'tpl-prod': {} } } });
    await put('/_component_template/tpl-mine-part', { template: { aliases: { 'tpl-mine': {} } } });
    await put('/_component_template/tpl-used', { template: {} });
    const using = { composed_of: ['tpl-used', 'tpl-soon'], ignore_missing_component_templates: ['tpl-soon'] };
    await put('/_index_template/tpl-payroll', { index_patterns: ['payroll-*'], ...using });
    const as = await keyWith(role('manage_index_templates', ['tpl-x*', 'tpl-mine'], ['all']));
    const none = { index_patterns: ['tpl-*'], priority: 900 };
    const refused: [string, object, string][] = [
      ['/_index_template/tpl', template('tpl-prod'), 'tpl-*,tpl-prod'],
      // Its own alias, for indices of others: it would read, write and delete them by it.
      ['/_index_template/tpl', template('tpl-mine'), 'tpl-*'],
      ['/_index_template/tpl', template('tpl-x-{index}'), 'tpl-*'],
      ['/_index_template/tpl', template('tpl-mine', { index_patterns: ['tpl-x*', 'payroll'] }), 'payroll'],
      ['/_index_template/tpl', { ...none, composed_of: ['tpl-mine-part'] }, 'tpl-*'],
      ['/_index_template/tpl', { ...none, template: { settings: { default_pipeline: 'p' } } }, 'tpl-*'],
      ['/_index_template/tpl', { ...none, template: { settings: { 'index.final_pipeline': 'p' } } }, 'tpl-*'],
      ['/_component_template/tpl-used', { template: { aliases: { 'tpl-mine': {} } } }, 'payroll-*'],
      ['/_component_template/tpl-used', { template: { settings: { final_pipeline: 'p' } } }, 'payroll-*'],
      ['/_component_template/tpl-soon', { template: { aliases: { 'tpl-mine': {} } } }, 'payroll-*'],
      ['/_template/tpl', { index_patterns: ['payroll-*'], aliases: { 'tpl-mine': {} } }, 'payroll-*'],
      ['/_template/tpl', { index_patterns: ['payroll-*'], settings: { default_pipeline: 'p' } }, 'payroll-*'],
      // Whatever the index is called.
      ['/_index_template/tpl', template('{index}'), 'tpl-*'],
      ['/_index_template/tpl', template('tpl-{index}', { index_patterns: ['prod'] }), 'prod,tpl-prod'],
      ['/_index_template/tpl', template('<tpl-{now/d}>'), 'tpl-*'],
      ['/_index_template/tpl', { ...none, composed_of: ['tpl-part'] }, 'tpl-*,tpl-prod'],
      ['/_component_template/tpl-own', { template: { aliases: { '{index}-x': {} } } }, '*-x'],
      ['/_component_template/tpl-own', { template: { aliases: { 'tpl-prod': {} } } }, 'tpl-prod'],
      ['/_template/tpl', { index_patterns: ['tpl-x*'], aliases: { 'tpl-prod': {} } }, 'tpl-prod'],
      ['/_template/tpl', { index_patterns: ['tpl-*'], aliases: { '{index}': {} } }, 'tpl-*'],
    ];
    for (const [path, body, names] of refused) {
      const { status, text } = await as('PUT', path, body);
      expect(status, `${path} ${JSON.stringify(body)} ${text}`).toBe(403);
      expect(text).toContain(`action [indices:admin/aliases] is unauthorized`);
      expect(text).toContain(`on indices [${names}]`);
    }
    expect((await as('PUT', '/tpl-x1', {})).status).toBe(200);
    expect((await server.request('GET', '/_alias/tpl-prod')).body).toEqual({
      'tpl-prod-1': { aliases: { 'tpl-prod': { is_write_index: true } } },
    });
    const allowed: [string, object][] = [
      ['/_index_template/tpl', none],
      ['/_index_template/tpl', template('tpl-mine', { index_patterns: ['tpl-x*'] })],
      ['/_index_template/tpl', template('{index}-all', { index_patterns: ['tpl-x*'] })],
      ['/_component_template/tpl-own', { template: { aliases: { 'tpl-x{index}': {} } } }],
      ['/_template/tpl', { index_patterns: ['tpl-x*'], aliases: { '{index}-old': {} } }],
    ];
    for (const [path, body] of allowed) expect((await as('PUT', path, body)).status, JSON.stringify(body)).toBe(200);
    expect((await as('PUT', '/tpl-x2', {})).status).toBe(200);
    expect((await as('GET', '/_alias/tpl-x2-all')).body).toEqual({ 'tpl-x2': { aliases: { 'tpl-x2-all': {} } } });
  });

  it.each(['manage', 'all'])(
    'are any for a key that has [%s] on the cluster, and are given to a key that makes an index',
    async (held) => {
      const manager = await keyWith(role(held, [], []));
      expect((await manager('PUT', '/_index_template/tpl', template(`tpl-${held}`))).status).toBe(200);
      const maker = await keyWith(on([`tpl-by-${held}`], ['create_index']));
      expect((await maker('PUT', `/tpl-by-${held}`)).status).toBe(200);
      expect((await server.request('GET', `/_alias/tpl-${held}`)).status).toBe(200);
    },
  );

  it('are checked by the name that an index gets, where a request gives them', async () => {
    const as = await keyWith(on(['mine*', '{*'], ['all']));
    expect((await as('PUT', '/mine-braces', { aliases: { '{index}-b': {} } })).status).toBe(200);
    expect((await as('PUT', '/mine-more', { aliases: { 'x-{index}': {} } })).status).toBe(403);
    const braces = await keyWith({ r: { indices: [{ names: ['mine-some', '{*'], privileges: ['all'] }] } });
    expect((await braces('PUT', '/mine-some', { aliases: { '{index}-b': {} } })).status).toBe(403);
    expect((await braces('PUT', '/mine-some', { aliases: { ['{index}'.repeat(30)]: {} } })).status).toBe(400);
  });
});
