// Spans of OpenTelemetry, as a server makes them for the tracer provider that its user brings.
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, logLines, startServer } from '../support/server.js';

const importing = (name: string): Readonly<Record<string, string>> => ({
  NODE_OPTIONS: `--import ${fileURLToPath(new URL(`../support/tracing/${name}`, import.meta.url))}`,
});

const INTERNAL = 0;
const SERVER = 1;
const QUESTION = { query: 'how to avoid pain after running' };

describe('with a tracer provider', () => {
  let server: RunningServer;
  let bare: RunningServer;
  beforeAll(async () => {
    [server, bare] = [await startServer({ env: importing('otel.mjs') }), await startServer()];
    for (const { request } of [server, bare]) {
      await request('PUT', '/notes', {
        mappings: { properties: { text: { type: 'semantic_text', inference_id: '.hybrid' } } },
      });
      await request('PUT', '/notes/_doc/1?refresh=true', { text: 'Stretching helps sore muscles.', n: 1 });
    }
  });
  afterAll(async () => {
    await server.stop();
    await bare.stop();
  });

  /** What was asked, and the spans of it, the request's own first. Lines come over another pipe than answers. */
  async function traced(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<{ body: any; spans: Record<string, any>[] }> {
    const from = server.output().length;
    const answer = await server.request(method, path, body, { headers });
    for (;;) {
      const spans = logLines(server, from).filter(({ span }) => span !== undefined);
      const root = spans.find(({ attributes }) => attributes['http.request.method'] === method);
      if (root !== undefined) return { body: answer.body, spans: [root, ...spans.filter((span) => span !== root)] };
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  it('makes a span of a request, and of its encoding, search and fusion, each in the one around it', async () => {
    const { spans } = await traced('POST', '/notes/_search', { retriever: { linear: QUESTION } });
    const [request, ...parts] = spans;
    expect(request).toMatchObject({
      span: 'POST /{index}/_search',
      kind: SERVER,
      attributes: {
        'http.route': '/{index}/_search',
        'url.path': '/notes/_search',
        'http.response.status_code': 200,
      },
    });
    const engine = parts.find(({ span }) => span === 'engine search');
    expect(engine).toMatchObject({ kind: INTERNAL, parent: request?.['spanId'] });
    const inner = parts.filter(({ span }) => span !== 'engine search');
    const names = inner.map(({ span }) => span);
    expect(names).toEqual(['encode', 'encode', 'search', 'fuse', 'fetch']);
    expect(new Set(inner.map(({ parent }) => parent))).toEqual(new Set([engine?.['spanId']]));
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    for (const [at, { begun, ended }] of inner.entries()) {
      expect(ended).toBeGreaterThan(begun);
      if (at > 0) expect(begun).toBeGreaterThanOrEqual(inner[at - 1]?.['ended'] - 1);
    }
    expect(inner[0]?.['attributes']).toMatchObject({ 'sparrow.texts': 1, 'sparrow.cache_hits': 0 });
  });

  it.each([
    ['a body', '/notes/_search', { query: { match: { text: 'muscles' } }, _source: ['n'] }],
    ['no body', '/notes/_search?q=n:1', undefined],
    ['an empty body', '/notes/_search?filter_path=hits,took', {}],
    ['a profile of its own', '/notes/_search?filter_path=profile.phases.fuse_in_nanos', { profile: true }],
    ['no profile', '/notes/_search', { profile: false }],
    ['a mistake at the end', '/notes/_search', { size: 1, nonsense: true }],
    ['no object', '/notes/_search', '[1]\n'],
  ])('answers a search with %s as without it', async (_, path, body) => {
    const took = (answer: any): any => JSON.parse(JSON.stringify(answer).replace(/"took":\d+/, '"took":0'));
    const { body: plain } = await bare.request('POST', path, body);
    expect(took((await traced('POST', path, body)).body)).toEqual(took(plain));
  });

  it('goes on with the trace of a caller, in spans and in the log', async () => {
    const trace = '0af7651916cd43dd8448eb211c80319c';
    const traceparent = `00-${trace}-b7ad6b7169203331-01`;
    const { spans } = await traced('GET', '/nowhere/_doc/1', undefined, { traceparent });
    expect(spans[0]).toMatchObject({
      span: 'GET /{index}/_doc/{id}',
      traceId: trace,
      parent: 'b7ad6b7169203331',
      attributes: { 'http.response.status_code': 404 },
      status: 0,
    });
    expect(spans[1]).toMatchObject({ span: 'engine get_doc', status: 0 });
    const unsampled = traceparent.replace(/1$/, '0');
    const from = server.output().length;
    await server.request('GET', '/notes/_doc/1', undefined, { headers: { traceparent: unsampled } });
    await traced('GET', '/notes/_doc/1');
    expect(logLines(server, from).filter(({ traceId }) => traceId === trace)).toEqual([]);
  });
});

it('loads nothing of OpenTelemetry without one', async () => {
  const server = await startServer({ env: importing('loaded.mjs') });
  await server.request('GET', '/');
  await server.stop();
  expect(logLines(server).find(({ loaded }) => loaded !== undefined)).toEqual({ loaded: [] });
});
