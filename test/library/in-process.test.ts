// The REST interface and the official client over an engine in this process: no server, no socket.
import { type AddressInfo, Socket } from 'node:net';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { createRequire } from 'node:module';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { Client, errors } from '@elastic/elasticsearch';
import { serve } from '@hono/node-server';
import { Sparrow } from '@sparrow-search/engine';
import { Rest, openapi } from '@sparrow-search/server';
// eslint-disable-next-line no-restricted-imports -- the one entry beside the main one
import { connectionTo } from '@sparrow-search/server/elasticsearch';
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

const require = createRequire(import.meta.url);

let sparrow: Sparrow;
beforeAll(async () => {
  sparrow = await Sparrow.open();
});
afterAll(async () => {
  await sparrow.close();
});

describe('the REST interface', () => {
  let rest: Rest;
  beforeAll(async () => {
    rest = await Rest.over(sparrow);
  });

  it('answers as over HTTP: status, headers, shapes, errors', async () => {
    const info = await rest.request({ method: 'GET', path: '/' });
    expect(info).toMatchObject({ status: 200, body: { tagline: 'You Know, for Search' } });
    expect(info.headers).toMatchObject({ 'x-elastic-product': 'Elasticsearch', 'content-type': 'application/json' });
    const written = await rest.request({
      method: 'PUT',
      path: '/books/_doc/a%2Fb%20c',
      query: { refresh: true },
      body: { title: 'Emma' },
    });
    expect(written).toMatchObject({ status: 201, body: { _id: 'a/b c', result: 'created' } });
    expect(written.headers['location']).toBe('/books/_doc/a%2Fb%20c');
    const found = await rest.request({
      method: 'GET',
      path: '/books/_search?filter_path=hits.hits._id',
      body: { size: 1 },
    });
    expect(found.text).toBe('{"hits":{"hits":[{"_id":"a/b c"}]}}');
    const head = await rest.request({ method: 'HEAD', path: '/books/_doc/a%2Fb%20c' });
    expect([head.status, head.text]).toEqual([200, '']);
    const table = await rest.request({ method: 'GET', path: '/_cat/indices', query: { h: 'index' } });
    expect(table.body).toBe('books\n');
    expect(await rest.request({ method: 'GET', path: '/nowhere/_doc/1' })).toMatchObject({
      status: 404,
      body: { error: { type: 'index_not_found_exception', reason: 'no such index [nowhere]' } },
    });
    for (const [path, status] of [
      ['/_no_such_thing', 400],
      ['/books/_doc/%zz', 400],
      ['/books/_doc/..', 400],
      ['/books/_search?sizes=1', 400],
    ] as const) {
      expect((await rest.request({ method: 'GET', path })).status, path).toBe(status);
    }
    expect((await rest.request({ method: 'PUT', path: '/_cluster/health' })).status).toBe(405);
  });

  it('takes lists as lines, and strings as they are', async () => {
    const lines = [{ index: { _id: '1' } }, { n: 1 }, { delete: { _id: '9' } }];
    const list = await rest.request({ method: 'POST', path: '/lines/_bulk', body: lines });
    expect(list.body).toMatchObject({
      errors: false,
      items: [{ index: { status: 201 } }, { delete: { status: 404 } }],
    });
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    expect((await rest.request({ method: 'POST', path: '/lines/_bulk', body: text })).body).toMatchObject({
      errors: false,
    });
    const many = await rest.request({ method: 'POST', path: '/_msearch', body: [{ index: 'lines' }, { size: 0 }] });
    expect(many.body).toMatchObject({ responses: [{ status: 200 }] });
  });

  it('is the owner without a key, and who a key says with one', async () => {
    const me = await rest.request({ method: 'GET', path: '/_security/_authenticate' });
    expect(me.body).toMatchObject({ username: 'owner' });
    const made = await rest.request({
      method: 'POST',
      path: '/_security/api_key',
      body: { name: 'reader', role_descriptors: { r: { indices: [{ names: ['books'], privileges: ['read'] }] } } },
    });
    const { encoded } = made.body as { encoded: string };
    const headers = { authorization: `ApiKey ${encoded}` };
    expect((await rest.request({ method: 'GET', path: '/books/_count', headers })).status).toBe(200);
    expect((await rest.request({ method: 'GET', path: '/lines/_count', headers })).status).toBe(403);
    const wrong = { authorization: `ApiKey ${Buffer.from('a:b').toString('base64')}` };
    expect((await rest.request({ method: 'GET', path: '/books/_count', headers: wrong })).status).toBe(401);
  });

  it('ends a request with its signal', async () => {
    const signal = AbortSignal.timeout(100);
    const body = { index: 'books', query: { regexp: { title: '.*' } } };
    await expect(
      rest.request({ method: 'GET', path: '/', signal: AbortSignal.abort(new Error('no')) }),
    ).rejects.toThrow('no');
    const inputs = Array.from({ length: 1000 }, (_, n) => `${'a text that takes its time '.repeat(60)} ${String(n)}`);
    const path = '/_inference/.elser-2-elasticsearch';
    await expect(rest.request({ method: 'POST', path, body: { input: inputs }, signal })).rejects.toThrow('timeout');
    expect(body).toBeDefined();
  });

  it('wants an engine of this process', async () => {
    await expect(Rest.over(Sparrow.over(sparrow.engine))).rejects.toThrow('no data directory');
  });
});

describe("Elastic's client", () => {
  interface Book {
    readonly title: string;
    readonly n: number;
  }
  let client: Client;
  beforeAll(() => {
    client = new Client({ node: 'http://sparrow', Connection: connectionTo(sparrow) });
  });
  afterAll(async () => {
    await client.close();
  });

  it('writes and searches, with its own types, and opens no socket', async () => {
    const connect = vi.spyOn(Socket.prototype, 'connect');
    await client.indices.create({
      index: 'typed',
      mappings: { properties: { body: { type: 'semantic_text' }, title: { type: 'text' }, n: { type: 'integer' } } },
    });
    await client.index<Book & { body: string }>({
      index: 'typed',
      id: '1',
      document: { title: 'Whales', body: 'Blue whales are the largest animals that ever lived.', n: 1 },
      refresh: true,
    });
    const { hits } = await client.search<Book>({
      index: 'typed',
      query: { semantic: { field: 'body', query: 'big creatures' } },
    });
    expect(hits.hits[0]?._source?.title).toBe('Whales');
    expect(await client.exists({ index: 'typed', id: '1' })).toBe(true);
    expect(await client.exists({ index: 'typed', id: '2' })).toBe(false);
    expect(await client.cat.count({ index: 'typed' })).toMatch(/ 1\n$/);
    expect(connect).not.toHaveBeenCalled();
    connect.mockRestore();
  });

  it('has its helpers: bulk, scroll, search as a stream', async () => {
    const datasource = Array.from({ length: 250 }, (_, n) => ({ title: `Volume ${String(n)}`, n }));
    const result = await client.helpers.bulk<Book>({
      datasource,
      flushBytes: 2000,
      refreshOnCompletion: 'volumes',
      onDocument: ({ n }) => ({ index: { _index: 'volumes', _id: String(n) } }),
    });
    expect(result).toMatchObject({ total: 250, successful: 250, failed: 0 });
    const seen = new Set<number>();
    for await (const book of client.helpers.scrollDocuments<Book>({ index: 'volumes', size: 60 })) seen.add(book.n);
    expect(seen.size).toBe(250);
    const stream = await client.search({ index: 'volumes' }, { asStream: true });
    let text = '';
    for await (const chunk of stream as unknown as AsyncIterable<Buffer>) text += chunk.toString();
    expect(JSON.parse(text).hits.total.value).toBe(250);
  });

  it('throws its own errors', async () => {
    const missing = await client.get({ index: 'nowhere', id: '1' }).catch((error: unknown) => error);
    expect(missing).toBeInstanceOf(errors.ResponseError);
    expect(missing).toMatchObject({ statusCode: 404 });
    const controller = new AbortController();
    const search = client.search({ index: 'volumes' }, { signal: controller.signal });
    controller.abort();
    await expect(search).rejects.toBeInstanceOf(errors.RequestAbortedError);
    const input = Array.from(
      { length: 1000 },
      (_, n) => `${'another text that takes its time '.repeat(60)} ${String(n)}`,
    );
    const slow = client.inference.inference(
      { inference_id: '.elser-2-elasticsearch', input },
      { requestTimeout: 50, maxRetries: 0 },
    );
    await expect(slow).rejects.toBeInstanceOf(errors.TimeoutError);
  });

  it.each([2 ** 31, 2 ** 40, Infinity])('takes a timeout of %d ms, which is more than a timer can', async (timeout) => {
    const input = Array.from({ length: 20 }, (_, n) => `${'a text that takes its time '.repeat(40)} ${String(n)}`);
    const read = await client.inference.inference(
      { inference_id: '.elser-2-elasticsearch', input },
      { requestTimeout: timeout, maxRetries: 0 },
    );
    expect(read.sparse_embedding).toHaveLength(20);
  });

  it('goes on when another client is closed, and takes a key', async () => {
    const made = await client.security.createApiKey({
      name: 'volumes',
      role_descriptors: { r: { indices: [{ names: ['volumes'], privileges: ['read'] }] } },
    });
    const reader = new Client({
      node: 'http://sparrow',
      Connection: connectionTo(sparrow),
      auth: { apiKey: made.encoded },
    });
    expect((await reader.count({ index: 'volumes' })).count).toBe(250);
    await expect(reader.count({ index: 'typed' })).rejects.toMatchObject({ statusCode: 403 });
    await reader.close();
    expect((await client.count({ index: 'typed' })).count).toBe(1);
  });
});

describe('a part of an application of somebody else', () => {
  let server: ReturnType<typeof serve>;
  let authorization: string;
  beforeAll(async () => {
    const rest = await Rest.over(sparrow);
    const made = await rest.request({ method: 'POST', path: '/_security/api_key', body: { name: 'part' } });
    authorization = `ApiKey ${(made.body as { encoded: string }).encoded}`;
    const app = new Hono({ strict: false });
    app.get('/books', (context) => context.text('ours'));
    app.route('/search', rest.app());
    app.route('/of/:index/search', rest.app({ maxBodyBytes: 10 }));
    app.notFound((context) => context.text('nothing of ours', 404));
    server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 });
    await once(server, 'listening');
  });
  afterAll(() => {
    server.close();
  });

  /** Over a socket, as Fetch sends no body with GET. */
  async function ask(method: string, path: string, body?: object, headers: object = { authorization }) {
    const { port } = server.address() as AddressInfo;
    const text = body === undefined ? '' : JSON.stringify(body);
    const about = text === '' ? {} : { 'content-type': 'application/json', 'content-length': String(text.length) };
    const asked = httpRequest({ port, host: '127.0.0.1', method, path, headers: { ...headers, ...about } });
    asked.end(text);
    const [answer] = (await once(asked, 'response')) as [AsyncIterable<Buffer> & { statusCode: number; headers: any }];
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk);
    return { status: answer.statusCode, headers: answer.headers, text: Buffer.concat(chunks).toString() };
  }

  it('may be one with another copy of Hono, as npm installs where a project has its own', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sparrow-hono-'));
    try {
      const ours = dirname(require.resolve('hono')).replace(/(?<=[\\/])dist\b.*$/, '');
      cpSync(ours, join(folder, 'hono'), { recursive: true });
      const { Hono: Other } = (await import(pathToFileURL(join(folder, 'hono/dist/index.js')).href)) as {
        Hono: typeof Hono;
      };
      expect(Other).not.toBe(Hono);
      const rest = await Rest.over(sparrow);
      const app = new Other({ strict: false });
      app.route('/search', rest.app());
      app.route('/of/:index/search', rest.app());
      const other = new Other({ strict: false });
      other.route('/', rest.app());
      for (const [one, mount, id] of [
        [app, '/search', '1'],
        [app, '/of/any/search', '2'],
        [other, '', '3'],
      ] as const) {
        const init = { method: 'PUT', headers: { authorization, 'content-type': 'application/json' }, body: '{"a":1}' };
        const answer = await one.request(`${mount}/copies/_doc/${id}`, init);
        expect([mount, answer.ok, answer.headers.get('location')]).toEqual([mount, true, `${mount}/copies/_doc/${id}`]);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('has every route below its path, and says where things are there', async () => {
    const written = await ask('PUT', '/search/parts/_doc/a%2Fb?refresh=true', { title: 'Emma' });
    expect([written.status, written.headers.location]).toEqual([201, '/search/parts/_doc/a%2Fb']);
    const found = await ask('GET', '/search/parts/_search?filter_path=hits.hits._id', { size: 1 });
    expect(found.text).toBe('{"hits":{"hits":[{"_id":"a/b"}]}}');
    for (const path of ['/search', '/search/', '/search/parts/_count', '/search/parts/_count/'])
      expect((await ask('GET', path)).status, path).toBe(200);
    const head = await ask('HEAD', '/search/parts/_doc/a%2Fb');
    expect([head.status, head.text]).toEqual([200, '']);
  });

  it.each(['', '/search', '/of/anything/search'])('has an OpenAPI document that leads back to [%s]', async (mount) => {
    const path = `${mount}/_openapi.json`;
    // At the root it is the interface itself that answers.
    const text = mount === '' ? openapi() : (await ask('GET', path, undefined, {})).text;
    const { servers } = JSON.parse(text) as { servers: { url: string }[] };
    expect(servers.map(({ url }) => new URL(url, `http://127.0.0.1${path}`).pathname)).toEqual([`${mount}/`]);
  });

  it('takes names of its own path only from what is below it', async () => {
    await ask('PUT', '/search/named/_doc/1?refresh=true', { title: 'Persuasion' });
    const found = await ask('GET', '/of/parts/search/named/_search?filter_path=hits.hits._index');
    expect(found.text).toBe('{"hits":{"hits":[{"_index":"named"}]}}');
    expect((await ask('DELETE', '/of/parts/search/named')).status).toBe(200);
    expect((await ask('HEAD', '/search/parts')).status).toBe(200);
    expect((await ask('HEAD', '/search/named')).status).toBe(404);
  });

  it('answers itself for paths and callers that it does not know', async () => {
    const unknown = await ask('GET', '/search/no/such/thing/at/all?x=1');
    expect([unknown.status, JSON.parse(unknown.text)]).toEqual([
      400,
      { error: 'no handler found for uri [/no/such/thing/at/all?x=1] and method [GET]' },
    ]);
    expect((await ask('GET', '/search/parts/_count', undefined, {})).status).toBe(401);
    expect((await ask('PUT', '/search/_cluster/health')).status).toBe(405);
  });

  it('leaves the rest to the application, and takes nothing from the path before it', async () => {
    expect((await ask('GET', '/books')).text).toBe('ours');
    expect((await ask('GET', '/parts/_count')).text).toBe('nothing of ours');
    const all = await ask('GET', '/of/nowhere/search/_cat/indices?h=index');
    expect([all.status, all.text]).toEqual([200, expect.stringContaining('parts\n')]);
    expect((await ask('POST', '/of/x/search/parts/_search', { size: 1, from: 0 })).status).toBe(413);
  });
});
