// What users of this kind of server have reported, and its neighbours.
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
});

afterAll(async () => {
  await server.stop();
});

describe('a byte order mark before a body', () => {
  const MARK = '\ufeff';

  it.each([
    ['PUT', '/marked', '{"mappings":{"properties":{"t":{"type":"text"}}}}'],
    ['PUT', '/marked/_doc/1?refresh=true', '{"t":"red fox"}'],
    ['POST', '/marked/_search', '{"query":{"match":{"t":"fox"}}}'],
    ['POST', '/_msearch', '{"index":"marked"}\n{}\n'],
    ['POST', '/_bulk', '{"index":{"_index":"marked","_id":"2"}}\n{"t":"dog"}\n'],
    ['POST', '/_analyze', '{"text":"red fox"}'],
    ['POST', '/marked/_search', ''],
  ])('is skipped by %s %s', async (method, path, body) => {
    const answer = await server.request(method, path, MARK + body);
    expect(answer.status, answer.text).toBeLessThan(300);
    expect(answer.text).not.toContain('"error"');
  });

  it('is skipped only once, and not within a body', async () => {
    expect((await server.request('POST', '/marked/_search', `${MARK}${MARK}{}`)).status).toBe(400);
    expect((await server.request('POST', '/marked/_search', `{}${MARK}`)).status).toBe(400);
  });
});

describe('a request of HTTP/1.0 without a host', () => {
  it.each(['/', '/_cluster/health', '/_cat/indices', '/_search?size=0'])('%s is answered', async (path) => {
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname);
    socket.write(`GET ${path} HTTP/1.0\r\nAuthorization: ApiKey ${server.apiKey}\r\n\r\n`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 OK\r\n/u);
  });
});

describe('a comment in a body', () => {
  it.each([
    ['/_search', '{ /* all */ "size": 1 }'],
    ['/_search', '// all\n{ "size": 1 }'],
    ['/commented/_doc', '{ "t": 1 // one\n}'],
    ['/_analyze', '{ "text": "a" # one\n}'],
  ])('is named by what %s answers', async (path, body) => {
    const answer = await server.request('POST', path, body);
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('Comments are no part of JSON');
  });
});

describe('what an excluded path leaves', () => {
  it('is as it was where the path is not there', async () => {
    const source = { a: {}, b: [{}], c: [], d: { e: {} } };
    await server.request('PUT', '/empty/_doc/1?refresh=true', source);
    for (const path of ['a.x', 'b.x', 'c.x', 'd.e.x', 'no']) {
      const { body } = await server.request('GET', `/empty/_doc/1?_source_excludes=${path}`);
      expect(body._source, path).toEqual(source);
      const found = await server.request('POST', '/empty/_search', { _source: { excludes: [path] } });
      expect(found.body.hits.hits[0]._source, path).toEqual(source);
    }
  });
});

describe('ignore_above', () => {
  it('counts UTF-16 code units', async () => {
    await server.request('PUT', '/above', { mappings: { properties: { k: { type: 'keyword', ignore_above: 4 } } } });
    // A face is two of them.
    for (const [id, k] of [
      ['1', '😀😀'],
      ['2', '😀😀a'],
      ['3', 'abcd'],
      ['4', 'ééééé'],
    ] as const) {
      await server.request('PUT', `/above/_doc/${id}?refresh=true`, { k });
    }
    const { body } = await server.request('POST', '/above/_search', {
      query: { exists: { field: 'k' } },
      fields: ['k'],
      sort: 'k',
    });
    expect(body.hits.hits.map(({ _id }: { _id: string }) => _id)).toEqual(['3', '1']);
    expect(body.hits.hits.map(({ fields }: { fields: { k: string[] } }) => fields.k)).toEqual([['abcd'], ['😀😀']]);
  });
});

describe('query_string', () => {
  it('reads an escaped pair of surrogates as one character', async () => {
    await server.request('PUT', '/faces/_doc/1?refresh=true', { k: '😀' });
    const search = (query: string) =>
      server.request('POST', '/faces/_search', { query: { query_string: { query, default_field: 'k.keyword' } } });
    expect((await search('\\uD83D\\uDE00')).body.hits.total.value).toBe(1);
    for (const broken of ['\\uD83D', '\\uDE00\\uD83D', '\\uD83Dx']) {
      const { status, text: answer } = await search(broken);
      expect(status, answer).toBe(400);
    }
  });
});

describe('names of fields', () => {
  it('are refused by every mapping that reads them, or by none', async () => {
    for (const dynamic of [true, false, 'strict']) {
      await server.request('PUT', `/names-${String(dynamic)}`, { mappings: { dynamic, properties: {} } });
    }
    const bad = [
      { '': 1 },
      { ' ': 1 },
      { '.': 1 },
      { 'a..b': 1 },
      { 'a.': 1 },
      { a: { '': 1 } },
      { 'a.b': [{ 'c. ': 1 }] },
    ];
    for (const document of bad) {
      for (const dynamic of [true, false, 'strict']) {
        const { status, text: answer } = await server.request('POST', `/names-${String(dynamic)}/_doc`, document);
        expect(status, `${JSON.stringify(document)} ${String(dynamic)} ${answer}`).toBe(400);
      }
    }
    for (const document of [{ 'a.b': 1 }, { a: { 'b.c': [{ d: 1 }] } }, { 'a b': 1 }]) {
      const { status } = await server.request('POST', '/names-false/_doc', document);
      expect(status).toBe(201);
    }
  });
});

describe('Retry-After', () => {
  it('is not said to a request that is too large whenever it comes', async () => {
    const limit = (bytes: string | null) =>
      server.request('PUT', '/_cluster/settings', { transient: { 'indices.breaker.request.limit': bytes } });
    await server.request('PUT', '/later/_doc/1', {});
    await limit('20mb');
    const {
      status,
      headers,
      text: answer,
    } = await server.request('POST', '/later/_mget', {
      ids: Array(200_000).fill('1'),
    });
    await limit(null);
    expect([status, headers['retry-after']], answer).toEqual([429, undefined]);
    expect(answer).toContain('[request] Data too large');
  });
});

describe('a document without an id that its fields cannot take', () => {
  it('is named by one id in the answer to a bulk', async () => {
    await server.request('PUT', '/counted', { mappings: { properties: { n: { type: 'integer' } } } });
    const { body } = await server.request('POST', '/_bulk', '{"index":{"_index":"counted"}}\n{"n":"many"}\n');
    const { _id: id, error } = body.items[0].index;
    expect(error.reason).toContain(`document with id '${id}'`);
  });
});
