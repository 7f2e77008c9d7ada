import { describe, expect, it } from 'vitest';

import { fakeApp } from '../support/app.js';

const VENDORED = 'application/vnd.elasticsearch+json; compatible-with=8';
const VENDORED_9 = 'application/vnd.elasticsearch+json; compatible-with=9';

describe('answers', () => {
  it('carry the product header, the opaque id and a request id', async () => {
    const { call } = await fakeApp();
    const response = await call('GET', '/books', undefined, { 'x-opaque-id': 'my-id-1' });
    expect(response.headers.get('x-elastic-product')).toBe('Elasticsearch');
    expect(response.headers.get('x-opaque-id')).toBe('my-id-1');
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('send an error body of the engine as it is', async () => {
    const { call, engine } = await fakeApp();
    const body = { error: { type: 'index_not_found_exception', reason: 'no such index [x]' }, status: 404 };
    engine.fail(404, body);
    const response = await call('GET', '/x');
    expect(response.status).toBe(404);
    expect(await response.json()).toEqual(body);
    expect(response.headers.get('x-elastic-product')).toBe('Elasticsearch');
  });

  it('keep an unexpected fault to the log', async () => {
    const lines: string[] = [];
    const { call, engine } = await fakeApp({ log: (line?: string) => void lines.push(line ?? '') });
    engine.failure = new Error('the secret cause');
    const response = await call('GET', '/x');
    expect(response.status).toBe(500);
    const text = await response.text();
    expect(text).not.toContain('secret');
    expect(JSON.parse(text)).toMatchObject({ error: { type: 'exception' }, status: 500 });
    expect(lines.join('')).toContain('the secret cause');
  });

  it('have no body under HEAD', async () => {
    const { call, engine } = await fakeApp();
    engine.answer(404, '{"x":1}');
    const response = await call('HEAD', '/books');
    expect(engine.last?.op).toBe('exists_index');
    expect(response.status).toBe(404);
    expect(await response.text()).toBe('');
  });

  it('say where a created document is', async () => {
    const { call, engine } = await fakeApp();
    engine.answer(201, '{"_index":"books","_id":"a b"}');
    engine.reply = { ...engine.reply, created: ['books', 'a b'] };
    const response = await call('POST', '/books/_doc', {});
    expect(response.headers.get('location')).toBe('/books/_doc/a%20b');
  });

  it('are laid out and thinned out on request, with numbers untouched', async () => {
    const { call, engine } = await fakeApp();
    engine.answer(200, '{"took":1,"score":1.0}');
    expect(await (await call('GET', '/books/_search?pretty')).text()).toBe('{\n  "took" : 1,\n  "score" : 1.0\n}\n');
    expect(await (await call('GET', '/books/_search?filter_path=score')).text()).toBe('{"score":1.0}');
    expect(await (await call('GET', '/books/_search?pretty=false')).text()).toBe('{"took":1,"score":1.0}');
  });

  it('are text for _cat, JSON when that is asked for', async () => {
    const { call, engine } = await fakeApp();
    engine.answer(200, 'green open books\n', true);
    const table = await call('GET', '/_cat/indices');
    expect(table.headers.get('content-type')).toBe('text/plain; charset=UTF-8');
    expect(engine.last?.query).toEqual({});
    engine.answer(200, '[]');
    const json = await call('GET', '/_cat/indices', undefined, { accept: 'application/json' });
    expect(json.headers.get('content-type')).toBe('application/json');
    expect(engine.last?.query).toEqual({ format: 'json' });
    await call('GET', '/_cat/indices', undefined, { accept: `${VENDORED},text/plain` });
    expect(engine.last?.query).toEqual({});
  });
});

describe('media types', () => {
  it.each([
    [{}, 'application/json'],
    [{ accept: 'application/json' }, 'application/json'],
    [{ accept: 'text/html' }, 'application/json'],
    [{ accept: VENDORED }, 'application/vnd.elasticsearch+json;compatible-with=8'],
    [
      { accept: 'application/vnd.elasticsearch+json;compatible-with=7' },
      'application/vnd.elasticsearch+json;compatible-with=7',
    ],
    [
      { accept: 'application/vnd.elasticsearch+json;compatible-with=9' },
      'application/vnd.elasticsearch+json;compatible-with=9',
    ],
    [{ accept: `${VENDORED},text/plain` }, 'application/vnd.elasticsearch+json;compatible-with=8'],
    [{ accept: `${VENDORED_9},text/plain` }, 'application/vnd.elasticsearch+json;compatible-with=9'],
  ])('answer %j in %s', async (headers, expected) => {
    const { call } = await fakeApp();
    expect((await call('GET', '/books', undefined, headers)).headers.get('content-type')).toBe(expected);
  });

  it.each([
    'application/json; charset=utf-8',
    VENDORED,
    'application/x-ndjson',
    'application/vnd.elasticsearch+x-ndjson;compatible-with=8',
    VENDORED_9,
    'application/vnd.elasticsearch+x-ndjson;compatible-with=9',
  ])('read a body in %s', async (type) => {
    const { call, engine } = await fakeApp();
    const response = await call('POST', '/_bulk', '{}\n', { 'content-type': type });
    expect(response.status).toBe(200);
    expect(engine.last?.body).toBe('{}\n');
    const version = /compatible-with=(\d)/.exec(type)?.[1];
    const json =
      version === undefined ? 'application/json' : `application/vnd.elasticsearch+json;compatible-with=${version}`;
    expect(response.headers.get('content-type')).toBe(json);
  });

  it.each(['text/plain', 'application/cbor', ''])('refuse a body in [%s]', async (type) => {
    const { call, engine } = await fakeApp();
    const response = await call('PUT', '/books/_doc/5', '{}', { 'content-type': type });
    expect(response.status).toBe(406);
    expect(await response.json()).toEqual({ error: `Content-Type header [${type}] is not supported`, status: 406 });
    expect(engine.asked).toEqual([]);
  });

  it.each(['10', '6', '0', '09', ''])('refuse the version [%s], which is not spoken', async (version) => {
    const { call } = await fakeApp();
    const accept = `application/vnd.elasticsearch+json;compatible-with=${version}`;
    const response = await call('GET', '/books', undefined, { accept });
    const reason = 'Invalid media-type value on headers [Content-Type, Accept]';
    expect(response.status).toBe(400);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toEqual({
      error: {
        root_cause: [{ type: 'media_type_header_exception', reason }],
        type: 'media_type_header_exception',
        reason,
        caused_by: {
          type: 'status_exception',
          reason: `Accept version must be either version 9, 8 or 7, but found ${version}. Accept=${accept}`,
        },
      },
      status: 400,
    });
  });
});

describe('bounds', () => {
  it('refuses a body over the limit with 413', async () => {
    const { call, engine } = await fakeApp({ maxBodyBytes: 10 });
    const response = await call('POST', '/_bulk', 'x'.repeat(11));
    expect(response.status).toBe(413);
    const { error } = (await response.json()) as { error: { reason: string } };
    expect(error.reason).toBe(
      'entity content is too long [11] for the configured buffer limit [10]; send less in one request, or start the server with a larger [--max-body-bytes] (SPARROW_MAX_BODY_BYTES)',
    );
    // The limit of an endpoint is no setting.
    const long = await (
      await fakeApp({ maxBodyBytes: 1_000_000 })
    ).call('POST', '/_security/api_key', { name: 'x'.repeat(300_000) });
    expect([long.status, await long.text()]).toEqual([413, expect.not.stringContaining('max-body-bytes')]);
    expect((await call('POST', '/_bulk', 'x'.repeat(10))).status).toBe(200);
    expect(engine.asked).toHaveLength(1);
  });
});

describe('before the engine is open', () => {
  it('readiness says so without a key, and everything else is refused', async () => {
    const logged: string[] = [];
    const { app, call } = await fakeApp({ ready: false, log: (line) => void logged.push(line) });
    const health = await app.request('/_health');
    expect([health.status, await health.json()]).toEqual([503, { status: 'starting' }]);
    const response = await call('GET', '/books');
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: { type: 'cluster_block_exception' }, status: 503 });
    // A client that waits for a start asks again and again: nothing is wrong with that.
    expect(logged).toEqual([]);
  });

  it('readiness is 200 afterwards', async () => {
    const { app } = await fakeApp();
    const health = await app.request('/_health');
    expect([health.status, await health.json()]).toEqual([200, { status: 'ready' }]);
  });
});

describe('the server about itself', () => {
  it('describes itself as clients expect it', async () => {
    const { call } = await fakeApp();
    const response = await call('GET', '/');
    expect(await response.json()).toMatchObject({
      name: 'node',
      cluster_name: 'sparrow',
      cluster_uuid: 'uuid',
      version: {
        number: expect.stringMatching(/^8\./) as string,
        build_flavor: 'default',
        lucene_version: expect.any(String) as string,
      },
      tagline: 'You Know, for Search',
    });
    expect((await call('HEAD', '/')).status).toBe(200);
  });

  it('shows the console without a key and lets it run nothing foreign', async () => {
    const { app } = await fakeApp();
    const response = await app.request('/_console');
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=UTF-8');
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toMatch(/script-src 'sha256-[^']+';/);
    expect(policy).toMatch(/style-src 'sha256-[^']+';/);
    const page = await response.text();
    // Everything was put into it, and nothing twice.
    expect(page).not.toContain('<!--');
    expect(page.match(/<script>|<style>/g)).toHaveLength(2);
    expect(page).not.toMatch(/(?:src|href)="https?:/);
    expect(page).not.toMatch(/ on\w+="| style="/);
  });

  it('leads a browser that asks for the server to the console, and nobody else', async () => {
    const { app } = await fakeApp();
    const asked = (headers: Record<string, string>, method = 'GET') => app.request('/', { method, headers });
    const browser = await asked({ accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' });
    expect(browser.status).toBe(303);
    expect(browser.headers.get('location')).toBe('/_console');
    expect(browser.headers.get('vary')).toBe('Accept');
    for (const accept of ['*/*', 'application/json', 'application/vnd.elasticsearch+json; compatible-with=8']) {
      expect((await asked({ accept })).status).toBe(401);
    }
    expect((await asked({ accept: 'text/html' }, 'HEAD')).status).toBe(401);
  });
});
