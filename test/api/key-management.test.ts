// Updating, querying and deriving keys, failed attempts, and the audit log.
import { mkdtemp, readFile, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, logLines, startServer } from '../support/server.js';

interface Key {
  readonly id: string;
  readonly encoded: string;
}

let server: RunningServer;
let auditLog: string;

beforeAll(async () => {
  auditLog = join(await mkdtemp(join(tmpdir(), 'sparrow-audit-')), 'audit.jsonl');
  server = await startServer({ args: ['--deploy-at-start', 'false', '--audit-log', auditLog] });
  for (const index of ['logs-1', 'logs-2', 'books'])
    await server.request('PUT', `/${index}/_doc/1?refresh=true`, { a: 1 });
});

afterAll(async () => {
  await server.stop();
});

const on = (names: string[], privileges: string[], cluster: string[] = []): object => ({
  r: { cluster, indices: [{ names, privileges }] },
});

it('a key is the same in each of the ways to send it, also for the audit log', async () => {
  const key = await make(on(['books'], ['read']));
  for (const scheme of ['ApiKey', 'Basic', 'Bearer']) {
    const send = (authorization: string): Promise<Answer> =>
      server.request('GET', '/books/_doc/1', undefined, { apiKey: null, headers: { authorization } });
    expect((await send(`${scheme} ${key.encoded}`)).body.found).toBe(true);
    const wrong = Buffer.from(`${key.id}:wrong`).toString('base64');
    expect((await send(`${scheme} ${wrong}`)).status).toBe(401);
  }
  const lines = async (): Promise<string[]> => {
    const text = await readFile(auditLog, 'utf8');
    return text.split('\n').filter((line) => line.includes(key.id) && line.includes('/books/_doc/1'));
  };
  await expect.poll(async () => (await lines()).length).toBe(6);
  const told = (await lines()).map((line) => JSON.parse(line) as Record<string, unknown>);
  const rest = told.map((line) => ({ ...line, time: '', request_id: '' }));
  for (const at of [0, 1]) expect([rest[at + 2], rest[at + 4]]).toEqual([rest[at], rest[at]]);
  expect((await lines()).join()).not.toContain(key.encoded);
});

async function make(role_descriptors: object | undefined, more: object = {}, by = server.apiKey): Promise<Key> {
  const body = { name: 'some', ...(role_descriptors === undefined ? {} : { role_descriptors }), ...more };
  const { status, text, body: key } = await server.request('POST', '/_security/api_key', body, { apiKey: by });
  expect(status, text).toBe(200);
  return key as Key;
}

const as = (key: Key, method: string, path: string, body?: unknown): Promise<Answer> =>
  server.request(method, path, body, { apiKey: key.encoded });

async function reads(key: Key): Promise<string[]> {
  const names = ['logs-1', 'logs-2', 'books'];
  const statuses = await Promise.all(names.map(async (name) => (await as(key, 'GET', `/${name}/_doc/1`)).status));
  return names.filter((_, at) => statuses[at] === 200);
}

/** Begins a request with half of its body; the result ends it and says the status of the answer. */
async function begin(key: Key, method: string, path: string, body: unknown): Promise<() => Promise<number>> {
  const { hostname, port } = new URL(server.url);
  const text = JSON.stringify(body);
  const half = text.length >> 1;
  const socket = connect(Number(port), hostname);
  const answer = new Promise<number>((resolve, reject) => {
    socket.once('data', (data) => {
      resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(data.toString())?.[1]));
      socket.destroy();
    });
    socket.once('error', reject);
  });
  const head = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${hostname}`,
    `Authorization: ApiKey ${key.encoded}`,
    'Content-Type: application/json',
    `Content-Length: ${String(text.length)}`,
  ];
  await new Promise<void>((resolve) =>
    socket.write(`${head.join('\r\n')}\r\n\r\n${text.slice(0, half)}`, () => {
      resolve();
    }),
  );
  // An answer to another request says that the server has read the head of this one.
  await server.request('GET', '/');
  return () => {
    socket.write(text.slice(half));
    return answer;
  };
}

describe('a key whose request is on its way', () => {
  it('may do nothing with it when it was ended meanwhile', async () => {
    const key = await make(on(['logs-*'], ['all'], ['manage_own_api_key']));
    const requests = await Promise.all([
      begin(key, 'POST', '/_security/api_key', { name: 'successor' }),
      begin(key, 'PUT', `/_security/api_key/${key.id}`, { metadata: { a: 1 } }),
      begin(key, 'DELETE', '/_security/api_key', { ids: [key.id], owner: true }),
      begin(key, 'PUT', '/logs-1/_doc/from-an-ended-key', { a: 1 }),
      begin(key, 'POST', '/logs-1/_search', { query: { match_all: {} } }),
    ]);
    expect((await server.request('DELETE', '/_security/api_key', { ids: [key.id] })).status).toBe(200);
    expect(await Promise.all(requests.map((finish) => finish()))).toEqual([401, 401, 401, 401, 401]);
    expect((await server.request('GET', '/logs-1/_doc/from-an-ended-key')).status).toBe(404);
  });

  it('may do with it what it may do then', async () => {
    const key = await make(on(['logs-*'], ['all']));
    const write = await begin(key, 'PUT', '/logs-1/_doc/from-a-lowered-key', { a: 1 });
    const search = await begin(key, 'POST', '/logs-1/_search', { query: { match_all: {} } });
    const lowered = { role_descriptors: on(['logs-*'], ['read']) };
    expect((await server.request('PUT', `/_security/api_key/${key.id}`, lowered)).status).toBe(200);
    expect([await write(), await search()]).toEqual([403, 200]);
  });
});

describe('a key that is made by a key', () => {
  it('may do no more than its maker, through all generations', async () => {
    const maker = await make(on(['logs-*'], ['read'], ['manage_own_api_key']));
    const child = await make(on(['*-1', 'books'], ['all'], ['all']), {}, maker.encoded);
    expect(await reads(child)).toEqual(['logs-1']);
    expect((await as(child, 'DELETE', '/logs-1/_doc/1')).status).toBe(403);
    expect((await as(child, 'GET', '/')).status).toBe(403);
    // It holds [all], its maker may make keys.
    const grandchild = await make(on(['logs-*', 'books'], ['all']), {}, child.encoded);
    expect(await reads(grandchild)).toEqual(['logs-1']);
    expect((await as(grandchild, 'GET', '/_search')).body.hits.total.value).toBe(1);
    const same = await make(undefined, {}, maker.encoded);
    expect(await reads(same)).toEqual(['logs-1', 'logs-2']);
    const none = await make({ none: {} }, {}, maker.encoded);
    expect(await reads(none)).toEqual([]);
    const shown = await server.request('GET', `/_security/api_key?id=${grandchild.id}&with_limited_by=true`);
    expect(shown.body.api_keys[0].limited_by).toHaveLength(2);
  });

  it('has a bounded number of makers', async () => {
    let key = await make(on(['*'], ['read'], ['manage_own_api_key']));
    for (let n = 0; n < 8; n += 1) {
      key = await make(on([`l*${'?'.repeat(n)}`], ['read'], ['manage_own_api_key']), {}, key.encoded);
    }
    const { status, text } = await as(key, 'POST', '/_security/api_key', {
      name: 'x',
      role_descriptors: on(['q'], ['read']),
    });
    expect(status, text).toBe(400);
    expect(text).toContain('derived from at most [8] others');
  });

  it('is limited after a restart, too', { timeout: 30_000 }, async () => {
    const own = await startServer({ args: ['--deploy-at-start', 'false'] });
    const post = async (body: object, apiKey: string): Promise<Key> =>
      (await own.request('POST', '/_security/api_key', body, { apiKey })).body as Key;
    await own.request('PUT', '/books/_doc/1', {});
    const maker = await post(
      { name: 'm', role_descriptors: on(['logs-*'], ['read'], ['manage_own_api_key']) },
      own.apiKey,
    );
    const child = await post({ name: 'c', role_descriptors: on(['*'], ['all']) }, maker.encoded);
    await own.stop();
    const again = await startServer({ data: own.data, args: ['--deploy-at-start', 'false'] });
    expect((await again.request('GET', '/books/_doc/1', undefined, { apiKey: child.encoded })).status).toBe(403);
    await again.stop();
  });
});

describe('an update', () => {
  it('changes what a key may do from the next request on', async () => {
    const key = await make(on(['logs-1'], ['read']));
    expect(await reads(key)).toEqual(['logs-1']);
    const change = { role_descriptors: on(['books'], ['read']), metadata: { team: 'b' } };
    expect((await server.request('PUT', `/_security/api_key/${key.id}`, change)).body).toEqual({ updated: true });
    expect(await reads(key)).toEqual(['books']);
    expect((await server.request('PUT', `/_security/api_key/${key.id}`, change)).body).toEqual({ updated: false });
    expect((await server.request('PUT', `/_security/api_key/${key.id}`)).body).toEqual({ updated: false });
    const shown = await server.request('GET', `/_security/api_key?id=${key.id}`);
    expect(shown.body.api_keys[0]).toMatchObject({
      metadata: { team: 'b' },
      role_descriptors: on(['books'], ['read']),
    });
  });

  it('takes away what was opened under other rights', async () => {
    const key = await make(on(['logs-*'], ['read']));
    const { body: pit } = await as(key, 'POST', '/logs-1/_pit?keep_alive=1m');
    const search = { pit: { id: pit.id } };
    expect((await as(key, 'POST', '/_search', search)).body.hits.total.value).toBe(1);
    const stranger = await make(on(['logs-*'], ['read']));
    expect((await as(stranger, 'POST', '/_search', search)).status).toBe(404);
    await server.request('PUT', `/_security/api_key/${key.id}`, { role_descriptors: on(['books'], ['read']) });
    expect((await as(key, 'POST', '/_search', search)).status).toBe(404);
  });

  it('gives nobody more than the one who makes it has', async () => {
    const self = await make(on(['logs-1'], ['read'], ['manage_own_api_key']));
    const wide = { role_descriptors: on(['*'], ['all'], ['all']) };
    expect((await as(self, 'PUT', `/_security/api_key/${self.id}`, wide)).status).toBe(200);
    expect(await reads(self)).toEqual(['logs-1']);
    const other = await make(on(['books'], ['read']));
    expect((await as(self, 'PUT', `/_security/api_key/${other.id}`, wide)).status).toBe(403);
    const manager = await make(on(['logs-2'], ['read'], ['manage_api_key']));
    expect((await as(manager, 'PUT', `/_security/api_key/${other.id}`, wide)).status).toBe(200);
    expect(await reads(other)).toEqual(['logs-2']);
  });

  it('refuses what cannot be updated', async () => {
    const owner = (await server.request('GET', '/_security/_authenticate')).body.api_key.id as string;
    const ended = await make({});
    await server.request('DELETE', '/_security/api_key', { ids: [ended.id] });
    const update = (id: string, body: object = {}): Promise<Answer> =>
      server.request('PUT', `/_security/api_key/${id}`, body);
    expect((await update('nobody')).status).toBe(404);
    expect((await update(ended.id)).text).toContain(`cannot update invalidated API key [${ended.id}]`);
    expect((await update(owner, { role_descriptors: { none: {} } })).text).toContain('cannot update the owner key');
    expect((await update(ended.id, { name: 'x' })).text).toContain('unknown field [name]');
  });

  it('of several says what became of each', async () => {
    const [one, two] = [await make(on(['logs-1'], ['read'])), await make(on(['books'], ['read']))];
    const body = { ids: [one.id, two.id, 'nobody', '__proto__'], role_descriptors: on(['books'], ['read']) };
    const { status, body: answer } = await server.request('POST', '/_security/api_key/_bulk_update', body);
    expect(status).toBe(200);
    expect(answer).toMatchObject({ updated: [one.id], noops: [two.id], errors: { count: 2 } });
    expect(answer.errors.details.nobody.type).toBe('resource_not_found_exception');
    expect(await reads(one)).toEqual(['books']);
  });
});

describe('what is open between searches', () => {
  const most = async (number: number | null): Promise<void> => {
    const body = { persistent: { 'search.max_open_scroll_context': number } };
    expect((await server.request('PUT', '/_cluster/settings', body)).status).toBe(200);
  };

  it('is never taken by one key alone', async () => {
    const [one, two] = [await make(on(['logs-*'], ['read'])), await make(on(['logs-*'], ['read']))];
    const open = (key: Key): Promise<Answer> => as(key, 'POST', '/logs-1/_search?scroll=1m');
    await most(4);
    try {
      expect([(await open(one)).status, (await open(one)).status]).toEqual([200, 200]);
      const third = await open(one);
      expect([third.status, third.text]).toEqual([
        429,
        expect.stringContaining(
          'Trying to create too many scroll contexts. Must be less than or equal to: [2]. This limit can be set by changing the [search.max_open_scroll_context] setting.',
        ),
      ]);
      // Other rights make it no other key.
      await server.request('PUT', `/_security/api_key/${one.id}`, { role_descriptors: on(['logs-1'], ['read']) });
      expect((await open(one)).status).toBe(429);
      expect([(await open(two)).status, (await open(two)).status]).toEqual([200, 429]);
      expect((await server.request('POST', '/logs-1/_search?scroll=1m')).status).toBe(200);
      expect((await server.request('DELETE', '/_search/scroll/_all')).body.num_freed).toBe(4);
      expect((await open(one)).status).toBe(200);
    } finally {
      await server.request('DELETE', '/_search/scroll/_all');
      await most(null);
    }
  });
});

describe('_query/api_key', () => {
  it('finds, sorts and pages', async () => {
    for (const [n, team] of ['x', 'y', 'x', 'y', 'x'].entries()) {
      await make({}, { name: `found-${String(n)}`, metadata: { team, size: n, nested: { a: [n, 'z'] } } });
    }
    const found = async (body: object): Promise<string[]> => {
      const {
        status,
        text,
        body: answer,
      } = await server.request('POST', '/_security/_query/api_key', { sort: ['name'], ...body });
      expect(status, text).toBe(200);
      return (answer.api_keys as { name: string }[]).map(({ name }) => name.slice(6));
    };
    const named = { prefix: { name: 'found-' } };
    expect(await found({ query: named })).toEqual(['0', '1', '2', '3', '4']);
    expect(await found({ query: named, sort: [{ 'metadata.size': { order: 'desc' } }], size: 2 })).toEqual(['4', '3']);
    expect(await found({ query: named, from: 3 })).toEqual(['3', '4']);
    expect(await found({ query: named, search_after: ['found-3'] })).toEqual(['4']);
    expect(await found({ query: { bool: { must: [named], must_not: [{ term: { 'metadata.team': 'x' } }] } } })).toEqual(
      ['1', '3'],
    );
    expect(
      await found({
        query: {
          bool: {
            filter: named,
            should: [{ term: { name: 'found-1' } }, { terms: { name: ['found-4'] } }],
            minimum_should_match: 1,
          },
        },
      }),
    ).toEqual(['1', '4']);
    expect(await found({ query: { wildcard: { name: { value: 'fo*nd-?' } } }, size: 1 })).toEqual(['0']);
    expect(await found({ query: { term: { 'metadata.nested.a': { value: 3 } } } })).toEqual(['3']);
    expect(
      await found({ query: { bool: { must: [named, { range: { creation: { gt: Date.now() + 60_000 } } }] } } }),
    ).toEqual([]);
    expect(await found({ query: { bool: { must: [named, { exists: { field: 'expiration' } }] } } })).toEqual([]);
    const { body } = await server.request('GET', '/_security/_query/api_key', { query: named, size: 2, sort: 'name' });
    expect([body.total, body.count, body.api_keys[1]._sort]).toEqual([5, 2, ['found-1']]);
    expect(JSON.stringify(body)).not.toContain('hash');
  });

  it.each([
    [{ query: { match_phrase: { name: 'x' } } }, 'Query type [match_phrase] is not supported for API Key query'],
    [{ query: { term: { hash: 'x' } } }, 'Field [hash] is not allowed for API Key query'],
    [{ query: { term: { constructor: 'x' } } }, 'Field [constructor] is not allowed'],
    [{ query: {} }, 'malformed query'],
    [{ nope: 1 }, 'unknown field [nope]'],
    [{ aggs: {} }, 'unknown field [aggs]'],
    [{ size: -1 }, 'cannot be negative'],
    [{ size: 10_001 }, 'Result window is too large'],
    [{ sort: Array<string>(33).fill('name') }, 'at most [32] keys'],
    [{ query: { bool: { must: Array<object>(128).fill({ match_all: {} }) } } }, 'at most [128] clauses'],
  ])('refuses %j', async (body, reason) => {
    const { status, text } = await server.request('POST', '/_security/_query/api_key', body);
    expect([status, text]).toEqual([400, expect.stringContaining(reason)]);
  });

  it('shows a key only itself unless it may see others', async () => {
    const self = await make(on([], [], ['manage_own_api_key']));
    const { body } = await as(self, 'POST', '/_security/_query/api_key', { query: { match_all: {} } });
    expect(body.api_keys.map(({ id }: Key) => id)).toEqual([self.id]);
    expect((await as(await make({ none: {} }), 'POST', '/_security/_query/api_key', {})).status).toBe(403);
  });
});

describe('the owner key', () => {
  it('is ended by nobody else', async () => {
    const owner = (await server.request('GET', '/_security/_authenticate')).body.api_key.id as string;
    const manager = await make(on(['*'], ['all'], ['all']));
    for (const body of [{ ids: [owner] }, { id: owner }]) {
      const { body: answer } = await as(manager, 'DELETE', '/_security/api_key', body);
      expect(answer).toMatchObject({ invalidated_api_keys: [], error_count: 1 });
    }
    await as(manager, 'DELETE', '/_security/api_key', { name: 'own*' });
    expect((await server.request('GET', '/')).status).toBe(200);
  });
});

describe('keys that are named', () => {
  const many = Array.from({ length: 10_001 }, (_, n) => String(n));

  it.each([
    [{ ids: [1] }, '[ids] must be a list of strings'],
    [{ ids: [['x']] }, '[ids] must be a list of strings'],
    [{ ids: [] }, 'Field [ids] cannot be empty'],
    [{ ids: many }, 'Field [ids] has [10001] entries, it may have [10000]'],
    [{ ids: ['x'.repeat(1001)] }, 'has an id of [1001] characters, it may have [1000]'],
    [{ ids: Array<number>(60_000).fill(1) }, 'values, it may have [50000]'],
  ])('are text, and not too many (%#)', async (named, reason) => {
    const update = await server.request('POST', '/_security/api_key/_bulk_update', { ...named, metadata: {} });
    expect([update.status, update.text]).toEqual([400, expect.stringContaining(reason)]);
    // With a condition that is ignored, all keys would end.
    const end = await server.request('DELETE', '/_security/api_key', { ...named, owner: true });
    expect([end.status, end.text]).toEqual([400, expect.stringContaining(reason)]);
  });

  it.each([
    [{ id: 1 }, '[id] must be a string'],
    [{ id: 'a', ids: ['b'] }, 'Must use either [id] or [ids], not both at the same time'],
    [{ name: ['a'] }, '[name] must be a string'],
    [{ name: 'nobody', username: 5 }, '[username] must be a string'],
    [{ realm_name: {} }, '[realm_name] must be a string'],
    [{ owner: 'yes' }, '[owner] must be [true] or [false]'],
  ])('are not others because of a condition that is not understood (%#)', async (named, reason) => {
    const end = await server.request('DELETE', '/_security/api_key', named);
    expect([end.status, end.text]).toEqual([400, expect.stringContaining(reason)]);
  });
});

describe('what a key is given to keep', () => {
  const roles = {
    r: { indices: [{ names: Array.from({ length: 9000 }, (_, n) => `n-${String(n)}`), privileges: ['all'] }] },
  };

  it.each([
    [{ name: 'x', expiration: `${'9'.repeat(400)}d` }, 'as a time value'],
    [{ name: 'x', expiration: '400000d' }, 'as a time value'],
    [{ name: 'x', role_descriptors: roles }, 'an API key may have [32768]'],
    [{ name: 'x', metadata: { x: 'a'.repeat(20_000) } }, 'an API key may have [16384]'],
  ])('has bounds, so that the store can be read again (%#)', async (body, reason) => {
    const made = await server.request('POST', '/_security/api_key', body);
    expect(made.status).toBe(400);
    expect(made.text).toContain(reason);
    const { body: key } = await server.request('POST', '/_security/api_key', { name: 'bounded' });
    const change = Object.fromEntries(Object.entries(body).filter(([name]) => name !== 'name'));
    const changed = await server.request('PUT', `/_security/api_key/${String(key.id)}`, change);
    expect(changed.status).toBe(400);
    expect(changed.text).toContain(reason);
  });

  it('is not searched by patterns that take seconds', async () => {
    const wildcard = (letters: number): object => ({ wildcard: { 'metadata.x': `*${'a'.repeat(letters)}b` } });
    for (const query of [wildcard(300), { bool: { should: [wildcard(150), wildcard(150)] } }]) {
      const found = await server.request('POST', '/_security/_query/api_key', { query });
      expect([found.status, found.text]).toEqual([400, expect.stringContaining('is too long')]);
    }
  });
});

describe('failed attempts', () => {
  it('are logged and limited, and lock out nobody who has a key', { timeout: 30_000 }, async () => {
    const own = await startServer({ args: ['--deploy-at-start', 'false'] });
    const { body: fresh } = await own.request('POST', '/_security/api_key', { name: 'fresh' });
    const guess = Buffer.from('somebody:wrong').toString('base64');
    const statuses: number[] = [];
    for (let n = 0; n < 25; n += 1) statuses.push((await own.request('GET', '/', undefined, { apiKey: guess })).status);
    expect(statuses).toEqual([...Array<number>(20).fill(401), ...Array<number>(5).fill(429)]);
    const refused = await own.request('GET', '/_nowhere', undefined, { apiKey: guess });
    expect(refused.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(refused.body.error.type).toBe('security_exception');
    // The right secret is let in, also of a key that nobody used yet: others behind the same proxy do not lock it out.
    expect((await own.request('GET', '/', undefined, { apiKey: fresh.encoded })).status).toBe(200);
    expect((await own.request('GET', '/')).status).toBe(200);
    // Without a key nothing is tried.
    expect((await own.request('GET', '/', undefined, { apiKey: null })).status).toBe(401);
    await own.stop();
    const lines = own
      .output()
      .split('\n')
      .filter((line) => line.includes('authentication failed'));
    expect(lines).toHaveLength(20);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      level: 'warn',
      from: '127.0.0.1',
      key_id: 'somebody',
      failures: 1,
      reason: 'unknown key',
      request_id: expect.stringMatching(/^[\da-f-]{36}$/),
    });
    expect(own.output()).not.toContain(guess);
  });

  it('are logged with the reason and the request, and never with the secret', async () => {
    const own = await startServer({ args: ['--deploy-at-start', 'false'] });
    const { body: revoked } = await own.request('POST', '/_security/api_key', { name: 'revoked' });
    const { body: expired } = await own.request('POST', '/_security/api_key', { name: 'expired', expiration: '1ms' });
    await own.request('DELETE', '/_security/api_key', { ids: [revoked.id] });
    const wrong = Buffer.from(`${String(expired.id)}:a-secret`).toString('base64');
    for (const apiKey of [revoked.encoded, expired.encoded, wrong, 'nonsense']) {
      expect((await own.request('GET', '/', undefined, { apiKey })).status).toBe(401);
    }
    await own.stop();
    const lines = logLines(own).filter(({ msg }) => msg === 'authentication failed');
    expect(lines.map(({ reason, key_id: id }) => [reason, id])).toEqual([
      ['revoked', revoked.id],
      ['expired', expired.id],
      ['wrong secret', expired.id],
      ['no key in the header', undefined],
    ]);
    expect(new Set(lines.map(({ request_id: id }) => id)).size).toBe(4);
    for (const secret of [revoked.api_key, expired.api_key, 'a-secret', 'nonsense']) {
      expect(own.output()).not.toContain(secret);
    }
  });
});

describe('the audit log', () => {
  it('says who did what from where, and whether it was allowed', async () => {
    const key = await make(on(['logs-*'], ['read', 'write']), { name: 'audited' });
    await as(key, 'GET', '/logs-1,logs-2/_search?q=hidden');
    await as(key, 'GET', '/books/_search');
    await as(
      key,
      'POST',
      '/_bulk',
      '{"delete":{"_index":"books","_id":"1"}}\n{"delete":{"_index":"logs-1","_id":"9"}}\n',
    );
    await as(key, 'POST', '/_mget', {
      docs: [
        { _index: 'logs-2', _id: '1' },
        { _index: 'books', _id: '1' },
      ],
    });
    await as(key, 'POST', '/_msearch', '{"index":"logs-1"}\n{}\n{"index":["b*","l*"]}\n{}\n');
    await as(key, 'POST', '/_reindex', { source: { index: 'logs-1' }, dest: { index: 'books' } });
    await as(key, 'POST', '/logs-1/_bulk', '{"delete":{"_id":"9"}}\n');
    // A block has the status of a missing right, and is none.
    await server.request('PUT', '/logs-1/_settings', { 'index.blocks.write': true });
    await as(key, 'POST', '/logs-1/_bulk', '{"delete":{"_id":"9"}}\n');
    await server.request('PUT', '/logs-1/_settings', { 'index.blocks.write': false });
    await server.request('GET', '/logs-1/_search', undefined, {
      apiKey: Buffer.from(`${key.id}:wrong`).toString('base64'),
    });
    await server.request('GET', '/_health', undefined, { apiKey: null });
    const lines = async (): Promise<Record<string, unknown>[]> =>
      (await readFile(auditLog, 'utf8'))
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    await expect.poll(async () => (await lines()).filter(({ claimed }) => claimed === key.id)).toHaveLength(1);
    const all = await lines();
    const who = { id: key.id, name: 'audited' };
    const own = all.filter((line) => JSON.stringify(line['key']) === JSON.stringify(who));
    expect(own).toMatchObject([
      {
        action: 'indices:data/read/search',
        indices: 'logs-1,logs-2',
        method: 'GET',
        path: '/logs-1,logs-2/_search',
        status: 200,
        allowed: true,
        from: '127.0.0.1',
      },
      { action: 'indices:data/read/search', indices: 'books', status: 403, allowed: false },
      {
        action: 'indices:data/write/bulk',
        path: '/_bulk',
        named: ['books', 'logs-1'],
        status: 200,
        allowed: 'in part',
      },
      { path: '/_mget', named: ['books', 'logs-2'], allowed: 'in part' },
      { path: '/_msearch', named: ['b*', 'l*', 'logs-1'], allowed: true },
      { path: '/_reindex', named: ['books', 'logs-1'], status: 403, allowed: false },
      { path: '/logs-1/_bulk', indices: 'logs-1', status: 200, allowed: true },
      { path: '/logs-1/_bulk', indices: 'logs-1', status: 200, allowed: true },
    ]);
    expect(own.filter(({ path }) => String(path).startsWith('/logs-1')).some((line) => 'named' in line)).toBe(false);
    // What may do everything is asked for nothing, and is told of all the same.
    const actions = {
      actions: [{ add: { index: 'logs-2', alias: 'audited' } }, { remove: { index: 'logs-2', alias: 'audited' } }],
    };
    await server.request('POST', '/_aliases', actions);
    await expect
      .poll(async () => (await lines()).find(({ path }) => path === '/_aliases'))
      .toMatchObject({ key: { name: 'owner' }, named: ['audited', 'logs-2'], status: 200 });
    expect(
      own.every(({ time, request_id: id }) => typeof id === 'string' && !Number.isNaN(Date.parse(String(time)))),
    ).toBe(true);
    expect(all.find(({ claimed }) => claimed === key.id)).toMatchObject({ status: 401, allowed: false });
    expect(all.some(({ path }) => path === '/_health')).toBe(false);
    const text = await readFile(auditLog, 'utf8');
    expect(text).not.toContain(key.encoded);
    expect(text).not.toContain('hidden');
    expect((await stat(auditLog)).mode & 0o777).toBe(0o600);
  });

  it('has to be writable at the start', async () => {
    await expect(startServer({ args: ['--audit-log', '/no/such/folder/audit.jsonl'] })).rejects.toThrow(
      'there is nothing of that name',
    );
  });
});
