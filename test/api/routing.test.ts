import { ENDPOINTS } from '@sparrow-search/server';
import { OPERATIONS, type Operation } from '@sparrow-search/engine';
import { describe, expect, it } from 'vitest';

import { fakeApp } from '../support/app.js';

describe('the route table', () => {
  it('reaches every operation of the engine', () => {
    const reached = new Set(ENDPOINTS.map(({ handler }) => ('engine' in handler ? handler.engine : undefined)));
    // What the answers about nodes and the cluster are put together from, what comes before a restore, and what the engine over a
    // cluster asks of this one.
    const ofCluster = [
      ...[
        'best_passages',
        'bind_semantic',
        'calibrate_lists',
        'choose_different',
        'score_texts',
        'encode_texts',
        'make_passages',
        'step_model_change',
      ],
      ...['stored_passages', 'write_passages'],
    ];
    const parts = [...ofCluster, 'cluster_figures', 'instruments', 'node_indices', 'snapshot_keys'].sort();
    expect(Object.keys(OPERATIONS).filter((operation) => !reached.has(operation as Operation))).toEqual(parts);
  });

  it.each(ENDPOINTS.filter(({ handler }) => 'engine' in handler))('routes $method $path', async (endpoint) => {
    const { call, engine } = await fakeApp();
    const response = await call(endpoint.method, endpoint.path.replaceAll(/\{(\w+)\}/g, 'the-$1'));
    expect(response.status).toBe(200);
    const names = [...endpoint.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
    expect(engine.last).toMatchObject({
      op: (endpoint.handler as { engine: string }).engine,
      path: Object.fromEntries(names.map((name) => [name, `the-${name}`])),
    });
  });

  it('leaves an index of the name of a path of the server what that path does not take', async () => {
    const { call, engine } = await fakeApp();
    for (const [method, path, op, index] of [
      ['PUT', '/metrics', 'create_index', 'metrics'],
      ['HEAD', '/metrics', 'exists_index', 'metrics'],
      ['DELETE', '/metrics', 'delete_index', 'metrics'],
      ['GET', '/metrics/_mapping', 'get_mapping', 'metrics'],
      ['POST', '/metrics/_search', 'search', 'metrics'],
      ['PUT', '/embed_sparse', 'create_index', 'embed_sparse'],
      // Is refused there, by a sentence about the name.
      ['PUT', '/mcp', 'create_index', 'mcp'],
    ] as const) {
      expect((await call(method, path)).status, path).toBe(200);
      expect(engine.last, `${method} ${path}`).toMatchObject({ op, path: { index } });
    }
    expect((await call('GET', '/metrics')).headers.get('content-type')).toContain('text/plain');
    for (const method of ['GET', 'DELETE', 'OPTIONS']) {
      const { status, headers } = await call(method, '/mcp');
      expect([status, headers.get('allow')], method).toEqual([method === 'OPTIONS' ? 200 : 405, 'POST']);
    }
  });

  it.each([
    ['/b/_doc/a%2Fb', 'a/b'],
    ['/b/_doc/a%25b', 'a%b'],
    ['/b/_doc/%C3%BC', 'ü'],
    ['/b/_doc/a%20b', 'a b'],
    ['/b/_doc/a+b', 'a+b'],
  ])('decodes the id in %s', async (path, id) => {
    const { call, engine } = await fakeApp();
    await call('GET', path);
    expect(engine.last?.path['id']).toBe(id);
  });

  it('hands over the query string and the body as they came', async () => {
    const { call, engine } = await fakeApp({ maxBodyBytes: 100 });
    await call('POST', '/books/_search?size=3&_source=a,b&pretty', '{"query" : {}}', { 'x-opaque-id': 'me' });
    expect(engine.last).toEqual({
      op: 'search',
      path: { index: 'books' },
      query: { size: '3', _source: 'a,b' },
      opaqueId: 'me',
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      version: 8,
      // Without a connection nobody knows who else asks.
      concurrent: true,
      body: '{"query" : {}}',
    });
  });

  it('takes a body from the source parameter', async () => {
    const { call, engine } = await fakeApp();
    await call('GET', '/books/_search?source=%7B%7D&source_content_type=application/json');
    expect(engine.last).toMatchObject({ body: '{}', query: {} });
  });
});

describe('what no route answers', () => {
  it.each([
    ['PATCH', '/books', 'GET, PUT, DELETE, HEAD', 'PUT,GET,DELETE,HEAD'],
    ['PUT', '/books/_search', 'GET, POST', 'GET,POST'],
    ['POST', '/books', 'GET, PUT, DELETE, HEAD', 'PUT,GET,DELETE,HEAD'],
  ])('%s %s is a 405 that says what is allowed', async (method, path, allowed, header) => {
    const { call, engine } = await fakeApp();
    const response = await call(method, path);
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe(header);
    expect(await response.json()).toEqual({
      error: `Incorrect HTTP method for uri [${path}] and method [${method}], allowed: [${allowed}]`,
      status: 405,
    });
    expect(engine.asked).toEqual([]);
  });

  it.each([
    ['POST', '/books/_nope'],
    ['GET', '/a/b/c/d'],
  ])('%s %s has no handler', async (method, path) => {
    const { call } = await fakeApp();
    const response = await call(method, path);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: `no handler found for uri [${path}] and method [${method}]` });
  });

  it('OPTIONS names the methods, without a key', async () => {
    const { app } = await fakeApp();
    const response = await app.request('/books', { method: 'OPTIONS' });
    expect(response.status).toBe(200);
    expect(response.headers.get('allow')).toBe('PUT,GET,DELETE,HEAD');
    expect(response.headers.get('content-type')).toBe('text/plain; charset=UTF-8');
  });

  it.each([
    ['nope=1', 'parameter: [nope]'],
    ['a=1&b=2', 'parameters: [a], [b]'],
    ['include_type_name=true', 'parameter: [include_type_name]'],
  ])('refuses the query string %s', async (query, sentence) => {
    const { call, engine } = await fakeApp();
    const response = await call('POST', `/books/_search?${query}`, {});
    const reason = `request [/books/_search] contains unrecognized ${sentence}`;
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      error: {
        root_cause: [{ type: 'illegal_argument_exception', reason }],
        type: 'illegal_argument_exception',
        reason,
      },
      status: 400,
    });
    expect(engine.asked).toEqual([]);
  });

  it('refuses a body where none belongs', async () => {
    const { call, engine } = await fakeApp();
    const response = await call('DELETE', '/books', {});
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('request [DELETE /books] does not support having a body');
    expect(engine.asked).toEqual([]);
  });
});
