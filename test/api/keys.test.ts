import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { KeyStore } from '@sparrow-search/server';
import { describe, expect, it, vi } from 'vitest';

import { fakeApp } from '../support/app.js';

const CHALLENGES = ['Basic realm="security" charset="UTF-8"', 'Bearer realm="security"', 'ApiKey'];

type App = Awaited<ReturnType<typeof fakeApp>>;

/** Makes a key and returns a function that calls with it. */
async function callAs({ call }: App, role_descriptors: object, more: object = {}) {
  const response = await call('POST', '/_security/api_key', { name: 'some', role_descriptors, ...more });
  expect(response.status).toBe(200);
  const key = (await response.json()) as { id: string; encoded: string };
  const as = (method: string, path: string, body?: object | string): Promise<Response> =>
    call(method, path, body, { authorization: `ApiKey ${key.encoded}` });
  return { key, as };
}

function indexRole(names: string[], privileges: string[]): object {
  return { role: { indices: [{ names, privileges }] } };
}

describe('requests without a valid key', () => {
  it.each([
    ['/books/_search?size=1', 'GET'],
    ['/_nope/x/y', 'GET'],
    ['/', 'GET'],
    ['/books', 'PATCH'],
  ])('to %s are refused with the documented body', async (path, method) => {
    const { app, engine } = await fakeApp();
    const response = await app.request(path, { method });
    const cause = {
      type: 'security_exception',
      // The same for every server: it says nothing of this one.
      reason: `missing authentication credentials for REST request [${path}]: send [Authorization: ApiKey <key>]; the first key of a server is in the file [owner.key] of its data directory, [data] unless told otherwise`,
      header: { 'WWW-Authenticate': CHALLENGES },
    };
    expect(response.status).toBe(401);
    expect(await response.json()).toEqual({ error: { root_cause: [cause], ...cause }, status: 401 });
    expect(response.headers.get('www-authenticate')).toBe(CHALLENGES.join(', '));
    expect(engine.asked).toEqual([]);
  });

  it('of any other kind are refused too', async () => {
    const { app, owner, engine } = await fakeApp();
    const wrong = Buffer.from(`${owner.key.id}:wrong`).toString('base64');
    for (const authorization of [
      `Digest ${owner.encoded}`,
      `Bearer ${wrong}`,
      `Basic ${wrong}`,
      `Basic ${owner.key.id}:${owner.encoded}`,
      `Bearer${owner.encoded}`,
      owner.encoded,
      `ApiKey ${wrong}`,
      'ApiKey',
      'ApiKey !',
    ]) {
      const response = await app.request('/books', { headers: { authorization } });
      expect(response.status, authorization).toBe(401);
      expect(await response.text()).toContain('unable to authenticate with provided credentials');
    }
    expect(engine.asked).toEqual([]);
  });

  it.each(['Bearer abc', 'basic abc', 'Basic dXNlcjo=', 'secret', 'ApiKey !'])(
    'like [%s] are told how a key is sent',
    async (authorization) => {
      const { app } = await fakeApp();
      const response = await app.request('/books', { headers: { authorization } });
      const { error } = (await response.json()) as { error: { reason: string } };
      expect(error.reason).toBe(
        'unable to authenticate with provided credentials and anonymous access is not allowed for this request: ' +
          '[ApiKey <key>], [Bearer <key>] or [Basic <key>] is expected in the header [Authorization], with base64 of [id:api_key] ' +
          'as the key',
      );
    },
  );

  it('like a user and a password are told that there are only keys, whether or not the user is the id of one', async () => {
    const { app, owner } = await fakeApp();
    for (const user of ['elastic', owner.key.id]) {
      const authorization = `Basic ${Buffer.from(`${user}:changeme`).toString('base64')}`;
      const response = await app.request('/books', { headers: { authorization } });
      const { error } = (await response.json()) as { error: { reason: string } };
      expect(error.reason).toBe(
        'unable to authenticate with provided credentials and anonymous access is not allowed for this request: ' +
          'there are no users and passwords here; as [Basic], send the id of an API key as the user and its secret as the password',
      );
    }
  });

  it('that look like a key, but are none, are not told whether its id is known', async () => {
    const { app, owner } = await fakeApp();
    const reasons = await Promise.all(
      [`${owner.key.id}:wrong`, 'nobody:wrong'].map(async (key) => {
        const authorization = `ApiKey ${Buffer.from(key).toString('base64')}`;
        return (await app.request('/books', { headers: { authorization } })).json();
      }),
    );
    expect(reasons[0]).toEqual(reasons[1]);
    expect(JSON.stringify(reasons[0])).not.toContain('is expected');
  });
});

describe('a key', () => {
  it.each(['ApiKey', 'Basic', 'Bearer', 'apikey', 'BASIC', 'bearer'])('is the same as %s', async (scheme) => {
    const { app, owner } = await fakeApp();
    const response = await app.request('/_security/_authenticate', {
      headers: { authorization: `${scheme} ${owner.encoded}` },
    });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ api_key: { id: owner.key.id } });
  });

  it.each(['ApiKey', 'Basic', 'Bearer'])(
    'that is wrong counts as an attempt, and is logged by its id, as %s',
    async (scheme) => {
      const lines: string[] = [];
      const { app, owner } = await fakeApp({ log: (line) => lines.push(line), level: 'warn' });
      const wrong = Buffer.from(`${owner.key.id}:wrong`).toString('base64');
      const ask = (key: string): Promise<Response> =>
        Promise.resolve(app.request('/books', { headers: { authorization: `${scheme} ${key}` } }));
      const statuses: number[] = [];
      for (let n = 0; n < 21; n += 1) statuses.push((await ask(wrong)).status);
      expect(statuses).toEqual([...Array<number>(20).fill(401), 429]);
      expect(lines.filter((line) => line.includes(`"key_id":"${owner.key.id}"`))).toHaveLength(20);
      expect(lines.join()).not.toContain(wrong);
      expect((await ask(owner.encoded)).status).toBe(200);
    },
  );

  it.each([
    [{ 'sec-fetch-site': 'cross-site' }, false],
    [{ 'sec-fetch-site': 'same-site' }, false],
    [{ 'sec-fetch-site': 'same-origin' }, true],
    [{ 'sec-fetch-site': 'none' }, true],
    [{ origin: 'https://elsewhere.example', host: 'localhost:9200' }, false],
    [{ origin: 'null', host: 'localhost:9200' }, false],
    [{ origin: 'http://localhost:9200', host: 'localhost:9200' }, true],
    [{}, true],
  ])('that a browser sends by itself is not taken from other pages: %j', async (headers, taken) => {
    const { app, owner, engine } = await fakeApp();
    const send = (scheme: string): Promise<Response> =>
      Promise.resolve(
        app.request('/books/_delete_by_query?q=*', {
          method: 'POST',
          headers: { authorization: `${scheme} ${owner.encoded}`, ...(headers as Record<string, string>) },
        }),
      );
    const basic = await send('Basic');
    expect(basic.status).toBe(taken ? 200 : 401);
    if (!taken) expect(await basic.text()).toContain('is not taken from the page of another site');
    expect(engine.asked).toHaveLength(taken ? 1 : 0);
    // A page has to know these by heart, and then it may send them.
    for (const scheme of ['ApiKey', 'Bearer']) expect((await send(scheme)).status).toBe(200);
  });
});

describe('the life of a key', () => {
  it('is created, shown without its secret, used, invalidated', async () => {
    const app = await fakeApp();
    const created = await app.call('PUT', '/_security/api_key', {
      name: 'reader',
      expiration: '1d',
      metadata: { team: 'a' },
      role_descriptors: indexRole(['books'], ['read']),
    });
    const key = (await created.json()) as Record<string, string>;
    expect(Object.keys(key)).toEqual(['id', 'name', 'expiration', 'api_key', 'encoded']);
    expect(Buffer.from(key['encoded'] ?? '', 'base64').toString()).toBe(`${key['id']}:${key['api_key']}`);

    const shown = await (await app.call('GET', `/_security/api_key?id=${key['id']}`)).text();
    expect(shown).not.toContain(key['api_key']);
    expect(JSON.parse(shown)).toMatchObject({
      api_keys: [
        { id: key['id'], name: 'reader', type: 'rest', invalidated: false, username: 'owner', metadata: { team: 'a' } },
      ],
    });

    const authorization = `ApiKey ${key['encoded']}`;
    const me = await app.call('GET', '/_security/_authenticate', undefined, { authorization });
    expect(await me.json()).toMatchObject({
      username: 'owner',
      roles: [],
      authentication_realm: { name: '_es_api_key', type: '_es_api_key' },
      api_key: { id: key['id'], name: 'reader' },
    });

    const ended = await app.call('DELETE', '/_security/api_key', { ids: [key['id'], 'nobody'] });
    expect(await ended.json()).toMatchObject({
      invalidated_api_keys: [key['id']],
      previously_invalidated_api_keys: [],
      error_count: 1,
    });
    const again = await app.call('DELETE', '/_security/api_key', { ids: [key['id']] });
    expect(await again.json()).toEqual({
      invalidated_api_keys: [],
      previously_invalidated_api_keys: [key['id']],
      error_count: 0,
    });
    expect((await app.call('GET', '/books/_search', undefined, { authorization })).status).toBe(401);
  });

  it('ends when it expires', async () => {
    const app = await fakeApp();
    const { as } = await callAs(app, indexRole(['*'], ['read']), { expiration: '1h' });
    expect((await as('GET', '/books/_search')).status).toBe(200);
    vi.useFakeTimers({ now: Date.now() + 3_600_001, toFake: ['Date'] });
    try {
      expect((await as('GET', '/books/_search')).status).toBe(401);
    } finally {
      vi.useRealTimers();
    }
  });

  it.each(['manage_own_api_key', 'manage_api_key', 'all'])(
    'is not extended by the key itself, with [%s]',
    async (held) => {
      const app = await fakeApp();
      const { key, as } = await callAs(app, { r: { cluster: [held] } }, { expiration: '1h' });
      const end = (): number | undefined => app.keys.get(key.id)?.expiration;
      const [path, before] = [`/_security/api_key/${key.id}`, end()];
      const refused = await as('PUT', path, { expiration: '2h', metadata: { team: 'b' } });
      expect([refused.status, await refused.text()]).toEqual([
        400,
        expect.stringContaining(`API key [${key.id}] cannot extend its own expiration`),
      ]);
      const several = await as('POST', '/_security/api_key/_bulk_update', { ids: [key.id], expiration: '2h' });
      expect(await several.json()).toMatchObject({ updated: [], errors: { count: 1 } });
      expect([end(), app.keys.get(key.id)?.metadata]).toEqual([before, {}]);
      // It may end sooner, and keep what it has with everything else that it changes.
      expect((await as('PUT', path, { metadata: { team: 'b' } })).status).toBe(200);
      expect((await as('PUT', path, { expiration: '30m' })).status).toBe(200);
      expect(end()).toBeLessThan(before ?? 0);
      // Somebody else may.
      expect((await app.call('PUT', path, { expiration: '2h' })).status).toBe(200);
      expect(end()).toBeGreaterThan(before ?? Infinity);
    },
  );

  it('survives a restart, hashed, in a file of this user alone', async () => {
    const { data, owner } = await fakeApp();
    const path = join(data, 'security', 'api_keys.json');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(KeyStore.ownerKeyFile(data))).mode & 0o777).toBe(0o600);
    expect(await readFile(path, 'utf8')).not.toContain(owner.secret);
    const again = await KeyStore.open(data);
    expect(again.verify(owner.key.id, owner.secret, Date.now())?.owner).toBe(true);
    expect(again.verify(owner.key.id, `${owner.secret}x`, Date.now())).toBeUndefined();
  });

  it('takes an owner key from outside in place of its own', async () => {
    const { data, owner, keys } = await fakeApp();
    expect(await keys.setOwner(data, 'mine', 'secret', Date.now(), false)).toBe(false);
    expect(await keys.setOwner(data, 'mine', 'secret', Date.now(), true)).toBe(true);
    expect(keys.verify('mine', 'secret', Date.now())?.owner).toBe(true);
    expect(keys.verify(owner.key.id, owner.secret, Date.now())).toBeUndefined();
    await expect(readFile(KeyStore.ownerKeyFile(data))).rejects.toThrow('ENOENT');
  });

  it.each([
    [{}, 'api key name is required'],
    [{ name: '' }, 'api key name must not be empty'],
    [{ name: 'x', nope: 1 }, 'unknown field [nope]'],
    [{ name: 'x', expiration: 'soon' }, 'failed to parse setting [expiration]'],
    [{ name: 'x', expiration: '90 days' }, 'a whole number and one of [ms, s, m, h, d] is expected, such as [90d]'],
    [{ name: 'x', role_descriptors: { r: { cluster: ['nope'] } } }, 'unknown cluster privilege [nope]'],
    [{ name: 'x', role_descriptors: indexRole(['a'], ['nope']) }, 'unknown index privilege [nope]'],
    [{ name: 'x', role_descriptors: { r: { nope: [] } } }, 'unexpected field [nope]'],
    [{ name: 'x', role_descriptors: { r: { indices: [{ names: ['a'] }] } } }, 'missing required [privileges] field'],
    [
      { name: 'x', role_descriptors: { r: { indices: [{ names: ['a'], privileges: ['read'], query: '{}' }] } } },
      'field [query] is not supported: give each group of readers an index of its own, or an alias with a filter',
    ],
  ])('does not begin with %j', async (body, reason) => {
    const { call, keys } = await fakeApp();
    const response = await call('POST', '/_security/api_key', body);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(reason);
    expect(keys.all()).toHaveLength(1);
  });

  it('is not found by an unknown id', async () => {
    const { call } = await fakeApp();
    const response = await call('GET', '/_security/api_key?id=nobody');
    expect([response.status, await response.json()]).toEqual([404, { api_keys: [] }]);
  });
});

describe('privileges', () => {
  it('refuse with the documented sentence', async () => {
    const app = await fakeApp();
    const { key, as } = await callAs(app, indexRole(['books'], ['read']));
    const write = await as('PUT', '/books/_doc/1', {});
    const sentence = (action: string, on: string, scope: string, list: string): string =>
      `action [${action}] is unauthorized for API key id [${key.id}] of user [owner]${on}, ` +
      `this action is granted by the ${scope} privileges [${list}]`;
    const [action, on] = ['indices:data/write/index', ' on indices [books]'];
    // It may replace a document, which `create_doc` does not allow.
    const reason = sentence(action, on, 'index', 'create,index,write,all');
    expect(write.status).toBe(403);
    expect(await write.json()).toEqual({
      error: { root_cause: [{ type: 'security_exception', reason }], type: 'security_exception', reason },
      status: 403,
    });
    for (const [method, path] of [
      ['POST', '/books/_doc'],
      ['PUT', '/books/_create/1'],
      ['PUT', '/books/_doc/1?op_type=create'],
    ] as const) {
      const added = await (await as(method, path, {})).text();
      expect(added, path).toContain(sentence(action, on, 'index', 'create_doc,create,index,write,all'));
    }
    const info = await as('GET', '/');
    expect(info.status).toBe(403);
    expect(await info.text()).toContain(sentence('cluster:monitor/main', '', 'cluster', 'monitor,manage,all'));
    expect(app.engine.asked).toEqual([]);
  });

  it.each([
    [indexRole(['books'], ['read']), 'GET', '/books/_search', true],
    // Wildcards stand for what the key may see, so that only a key that may see nothing is refused.
    [indexRole(['books'], ['read']), 'GET', '/book*/_search', true],
    [indexRole(['bo*'], ['write']), 'GET', '/*ok/_search', false],
    [indexRole(['books'], ['write']), 'PUT', '/books/_doc/1', true],
    [indexRole(['books'], ['write']), 'GET', '/books/_doc/1', false],
    [indexRole(['books'], ['create_doc']), 'DELETE', '/books/_doc/1', false],
    [indexRole(['books'], ['all']), 'DELETE', '/books', true],
    [indexRole(['books'], ['manage']), 'GET', '/books/_search', false],
    [indexRole(['*'], ['all']), 'GET', '/_ingest/pipeline', false],
    [{ r: { cluster: ['manage_pipeline'] } }, 'GET', '/_ingest/pipeline', true],
    [{ r: { cluster: ['all'] } }, 'GET', '/books/_search', false],
    [{ r: { cluster: ['monitor_ml'] } }, 'POST', '/_ml/trained_models/m/deployment/_start', false],
  ])('of %j on %s %s: %s', async (role, method, path, allowed) => {
    const app = await fakeApp();
    const { as } = await callAs(app, role);
    const body = method === 'PUT' ? {} : undefined;
    expect((await as(method, path, body)).status).toBe(allowed ? 200 : 403);
  });

  it('let a key see itself but not the others', async () => {
    const app = await fakeApp();
    const { key, as } = await callAs(app, { r: { cluster: ['manage_own_api_key'] } });
    expect((await as('GET', '/_security/api_key')).status).toBe(403);
    const own = (await (await as('GET', '/_security/api_key?owner=true')).json()) as { api_keys: { id: string }[] };
    expect(own.api_keys.map(({ id }) => id)).toEqual([key.id]);
  });
});

describe('names of indices', () => {
  /** What each action is granted on: each list of patterns is handed over once. */
  const handed = (rights: string | undefined): Record<string, { names: (string[] | undefined)[]; by: string }> => {
    const { lists, grants } = JSON.parse(rights ?? '') as {
      lists: string[][];
      grants: Record<string, { names: number[]; by: string }>;
    };
    return Object.fromEntries(
      Object.entries(grants).map(([action, { names, by }]) => [action, { names: names.map((at) => lists[at]), by }]),
    );
  };

  it('are the business of the engine, which is told what a restricted key may do', async () => {
    const app = await fakeApp();
    const { key, as } = await callAs(app, indexRole(['logs-*'], ['read']));
    // Whatever the body is: nobody but the engine reads it.
    expect((await as('POST', '/_msearch', 'not { JSON')).status).toBe(200);
    const { action, rights, path } = app.engine.last ?? {};
    expect([action, path]).toEqual(['indices:data/read/msearch', {}]);
    expect(JSON.parse(rights ?? '')).toMatchObject({ key: key.id, user: 'owner' });
    expect(handed(rights)['indices:data/read/search']).toEqual({ names: [['logs-*']], by: 'read,all' });
    expect(handed(rights)['indices:data/write/delete']).toEqual({ names: [[]], by: 'delete,write,all' });
    expect(rights?.match(/logs-/g)).toHaveLength(1);
    // The same text with every request, so that the engine reads it once.
    await as('GET', '/other/_search');
    expect(app.engine.last?.rights).toBe(rights);
  });

  it('are looked at by nobody for a key that may do everything', async () => {
    const app = await fakeApp();
    await app.call('POST', '/_msearch', '{}\n{}\n', { 'content-type': 'application/x-ndjson' });
    expect(app.engine.last).toMatchObject({ rights: undefined });
    const { as } = await callAs(app, indexRole(['*'], ['all']));
    await as('GET', '/books/_search');
    expect(app.engine.last).toMatchObject({ rights: undefined });
  });

  it('come with rights also to operations of the cluster, which then name no action', async () => {
    const app = await fakeApp();
    const { as } = await callAs(app, { r: { cluster: ['monitor'] } });
    await as('GET', '/_cluster/health/books');
    expect(app.engine.last).toMatchObject({ rights: expect.any(String), action: undefined });
  });

  it('do not matter to a key that may do it nowhere: its body is not read', async () => {
    const app = await fakeApp();
    const { as } = await callAs(app, indexRole(['books'], ['read']));
    // Larger than a body may be.
    const refused = await as('POST', '/_bulk', 'x'.repeat(2000));
    expect(refused.status).toBe(403);
    expect(await refused.text()).toContain('this action is granted by the index privileges [create_doc,create,delete,');
    expect(app.engine.asked).toEqual([]);
  });
});
