// Deep nesting wherever a client can send it: 4xx or an answer, never the end of the process.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const made = await server.request('PUT', '/base', {
    mappings: {
      dynamic_templates: [{ t: { match: 't', match_mapping_type: 'object', mapping: { type: 'sparse_vector' } } }],
      properties: { f: { type: 'text' }, k: { type: 'keyword' }, v: { type: 'dense_vector', dims: 1 } },
    },
  });
  expect(made.status).toBe(200);
  await server.request('PUT', '/loose', {
    mappings: {
      dynamic: false,
      _source: { excludes: ['x.*'] },
      properties: { off: { type: 'object', enabled: false } },
    },
  });
  await server.request('PUT', '/base/_doc/2?refresh=true', { f: 'a b', k: 'a', v: [1] });
});
afterAll(async () => {
  await server.stop();
});

const nest = (n: number, open: string, inner: string, close: string): string =>
  open.repeat(n) + inner + close.repeat(n);
const dots = (n: number): string => Array(n).fill('a').join('.');

type Request = [method: string, path: string, body: string];
/** Where nesting can stand, and what makes it. */
const PLACES: Record<string, (n: number) => Request> = {
  ...dotted('mapping', (name) => ['PUT', '/new', `{"mappings":{"properties":{"${name}":{"type":"keyword"}}}}`]),
  ...dotted('put mapping', (name) => ['PUT', '/base/_mapping', `{"properties":{"${name}":{"type":"keyword"}}}`]),
  ...dotted('dynamic template', (name) => [
    'PUT',
    '/new',
    `{"mappings":{"dynamic_templates":[{"x":{"match":"x","mapping":{"properties":{"${name}":{"type":"keyword"}}}}}]}}`,
  ]),
  ...dotted('index template', (name) => [
    'PUT',
    '/_index_template/t',
    `{"index_patterns":["zz*"],"template":{"mappings":{"properties":{"${name}":{"type":"keyword"}}}}}`,
  ]),
  ...dotted('component template', (name) => [
    'PUT',
    '/_component_template/t',
    `{"template":{"mappings":{"properties":{"${name}":{"type":"keyword"}}}}}`,
  ]),
  ...dotted('old template', (name) => [
    'PUT',
    '/_template/t',
    `{"index_patterns":["zz*"],"mappings":{"properties":{"${name}":{"type":"keyword"}}}}`,
  ]),
  ...dotted('settings', (name) => ['PUT', '/new', `{"settings":{"analysis.analyzer.${name}":"standard"}}`]),
  ...dotted('similarity', (name) => ['PUT', '/new', `{"settings":{"similarity.${name}":"BM25"}}`]),
  ...dotted('cluster settings', (name) => ['PUT', '/_cluster/settings', `{"persistent":{"${name}":1}}`]),
  ...dotted('document', (name) => ['PUT', '/base/_doc/1', `{"${name}":1}`]),
  ...dotted('document, templated field', (name) => ['PUT', '/base/_doc/1', `{"t.${name}":1}`]),
  ...dotted('document, not dynamic', (name) => ['PUT', '/loose/_doc/1', `{"${name}":1,"off":{"${name}":1}}`]),
  ...dotted('update', (name) => ['POST', '/base/_update/2', `{"doc":{"${name}":1}}`]),
  ...dotted('bulk', (name) => ['POST', '/base/_bulk', `{"index":{}}\n{"${name}":1}\n`]),
  ...dotted('_source', (name) => ['POST', '/base/_search', `{"_source":["${name}","*.${name}"]}`]),
  ...dotted('fields', (name) => ['POST', '/base/_search', `{"fields":["${name}","*.${name}"]}`]),
  ...dotted('term', (name) => ['POST', '/base/_search', `{"query":{"term":{"${name}":1}}}`]),
  ...dotted('set', (name) => simulated(`{"set":{"field":"${name}","value":1}}`)),
  ...dotted('append', (name) => simulated(`{"append":{"field":"${name}","value":1}}`)),
  ...dotted('rename', (name) => simulated(`{"rename":{"field":"x","target_field":"${name}"}}`)),
  ...dotted('dot_expander', (name) => simulated('{"dot_expander":{"field":"*"}}', `{"${name}":1}`)),
  ...dotted('kv', (name) => simulated('{"kv":{"field":"x","field_split":" ","value_split":"="}}', `{"x":"${name}=1"}`)),
  ...dotted('field of a template', (name) => simulated('{"set":{"field":"{{x}}","value":1}}', `{"x":"${name}"}`)),
  ...deep('document, objects', '{"a":', '1', '}', (it) => ['PUT', '/base/_doc/1', it]),
  ...deep('document, lists', '[', '1', ']', (it) => ['PUT', '/base/_doc/1', `{"a":${it}}`]),
  ...deep('document, not enabled', '{"a":', '1', '}', (it) => ['PUT', '/loose/_doc/1', `{"off":${it}}`]),
  ...deep('mapping, objects', '{"properties":{"a":', '{"type":"keyword"}', '}}', (it) => [
    'PUT',
    '/new',
    `{"mappings":${it}}`,
  ]),
  ...deep('mapping, _meta', '{"a":', '1', '}', (it) => ['PUT', '/new', `{"mappings":{"_meta":${it}}}`]),
  ...deep('component template, _meta', '{"a":', '1', '}', (it) => [
    'PUT',
    '/_component_template/t',
    `{"template":{},"_meta":${it}}`,
  ]),
  ...deep('bool', '{"bool":{"must":', '{"match_all":{}}', '}}', searched),
  ...deep('constant_score', '{"constant_score":{"filter":', '{"match_all":{}}', '}}', searched),
  ...deep('function_score', '{"function_score":{"query":', '{"match_all":{}}', '}}', searched),
  ...deep('intervals', '{"all_of":{"intervals":[', '{"match":{"query":"a"}}', ']}}', (it) =>
    searched(`{"intervals":{"f":${it}}}`),
  ),
  ...deep('knn filter', '{"bool":{"must":', '{"match_all":{}}', '}}', (it) => [
    'POST',
    '/base/_search',
    `{"knn":{"field":"v","query_vector":[1],"k":1,"num_candidates":1,"filter":${it}}}`,
  ]),
  ...deep('aggs', '{"a":{"filter":{"match_all":{}},"aggs":', '{}', '}}', (it) => [
    'POST',
    '/base/_search',
    `{"aggs":${it}}`,
  ]),
  ...deep('retriever', '{"rrf":{"retrievers":[', '{"standard":{}}', ',{"standard":{}}]}}', (it) => [
    'POST',
    '/base/_search',
    `{"retriever":${it}}`,
  ]),
  ...deep('query_string', '(', 'a', ')', (it) => searched(`{"query_string":{"query":"${it}"}}`)),
  ...deep('query_string, NOT', 'NOT ', 'a', '', (it) => searched(`{"query_string":{"query":"${it}"}}`)),
  ...deep('simple_query_string', '(', 'a', ')', (it) => searched(`{"simple_query_string":{"query":"${it}"}}`)),
  ...deep('simple_query_string, open', 'a +(', 'a', '', (it) => searched(`{"simple_query_string":{"query":"${it}"}}`)),
  ...deep('simple_query_string, turns', 'a + b | ', 'a', '', (it) =>
    searched(`{"simple_query_string":{"query":"${it}","fields":["f"]}}`),
  ),
  ...deep('regexp', '(', 'a', ')', (it) => searched(`{"regexp":{"k":"${it}"}}`)),
  ...deep('gsub', '(?:', 'a', ')*', (it) => simulated(`{"gsub":{"field":"x","pattern":"${it}","replacement":""}}`)),
  ...deep('json', '[', '', ']', (it) => simulated('{"json":{"field":"x"}}', `{"x":"${it}"}`)),
  ...deep('foreach', '{"foreach":{"field":"x","processor":', '{"drop":{}}', '}}', (it) => simulated(it)),
  ...deep('_analyze', '[', '"a"', ']', (it) => ['POST', '/_analyze', `{"text":${it}}`]),
  ...deep('_mget', '[', '', ']', (it) => ['POST', '/_mget', `{"docs":${it}}`]),
  ...deep('alias', '{"bool":{"must":', '{"match_all":{}}', '}}', (it) => ['PUT', '/base/_alias/a', `{"filter":${it}}`]),
  ...deep('reindex', '{"bool":{"must":', '{"match_all":{}}', '}}', (it) => [
    'POST',
    '/_reindex',
    `{"source":{"index":"base","query":${it}},"dest":{"index":"other"}}`,
  ]),
};

function dotted(place: string, request: (name: string) => Request): Record<string, (n: number) => Request> {
  return { [`${place}: dots`]: (n) => request(dots(n)) };
}

function deep(
  place: string,
  open: string,
  inner: string,
  close: string,
  request: (it: string) => Request,
): Record<string, (n: number) => Request> {
  return { [place]: (n) => request(nest(n, open, inner, close)) };
}

function searched(query: string): Request {
  return ['POST', '/base/_search', `{"query":${query}}`];
}

function simulated(processor: string, source = '{"x":"aaa"}'): Request {
  const body = `{"pipeline":{"processors":[${processor}]},"docs":[{"_source":${source}}]}`;
  return ['POST', '/_ingest/pipeline/_simulate', body];
}

const LEVELS = [19, 60, 123, 245, 1500, 50_000, 300_000];

describe('nesting', () => {
  it.each(Object.entries(PLACES))(
    '%s',
    async (_, request) => {
      for (const levels of LEVELS) {
        const [method, path, text] = request(levels);
        const headers = path.endsWith('_bulk') ? { 'content-type': 'application/x-ndjson' } : {};
        const { status } = await server.request(method, path, Buffer.from(text), { headers });
        expect(status, `${String(levels)} levels`).toBeGreaterThanOrEqual(200);
        expect(status, `${String(levels)} levels`).toBeLessThan(500);
        if (path === '/new') await server.request('DELETE', '/new');
        expect((await server.request('GET', '/')).status).toBe(200);
      }
    },
    60_000,
  );

  it('has the sentences of Elasticsearch for mappings', async () => {
    const properties = { [dots(25)]: { type: 'keyword' } };
    const { status, body } = await server.request('PUT', '/new', { mappings: { properties } });
    expect(status).toBe(400);
    expect(body.error.reason).toContain('Limit of mapping depth [20] has been exceeded due to object field [');
  });

  it('that was accepted can be read after a restart', async () => {
    const settings = { 'mapping.depth.limit': 1000 };
    for (const [at, path] of ['/wide', '/_index_template/wide', '/_component_template/wide'].entries()) {
      for (const levels of [30, 49, 60, 123]) {
        for (const mappings of [
          { properties: { [dots(levels)]: { type: 'keyword' } } },
          { _meta: JSON.parse(nest(levels, '{"a":', '1', '}')) as object },
        ]) {
          const body = { settings, mappings };
          const wrapped = at === 0 ? body : { ...(at === 1 ? { index_patterns: ['ww*'] } : {}), template: body };
          const { status } = await server.request('PUT', at === 0 ? `${path}${String(levels)}` : path, wrapped);
          expect([200, 400]).toContain(status);
        }
      }
    }
    await server.stop();
    server = await startServer({ data: server.data, args: ['--deploy-at-start', 'false'] });
    const { body } = await server.request('GET', '/_cluster/health');
    expect(body.status).not.toBe('red');
  }, 60_000);
});
