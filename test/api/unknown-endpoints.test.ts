// A mapping that names an inference endpoint that is not there: accepted, as in Elasticsearch, and warned of.
import { Sparrow } from '@sparrow-search/engine';
import { Rest } from '@sparrow-search/server';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { startServer } from '../support/server.js';

let sparrow: Sparrow;
let rest: Rest;
beforeAll(async () => {
  sparrow = await Sparrow.open();
  rest = await Rest.over(sparrow);
});
afterAll(async () => {
  await sparrow.close();
});

const warnedOf = async (method: string, path: string, body: object): Promise<string> => {
  const { status, headers } = await rest.request({ method, path, body });
  expect(status).toBe(200);
  return headers['warning'] ?? '';
};
const field = (settings: object): object => ({ properties: { text: { type: 'semantic_text', ...settings } } });
const WARNING =
  '"the field [text] names the inference endpoint [.hybird], which does not exist: its texts are refused until it does; did you mean [.hybrid]?"';

it('is warned of, wherever a mapping is given', async () => {
  const mappings = field({ inference_id: '.hybird' });
  expect(await warnedOf('PUT', '/a', { mappings })).toMatch(/^299 Elasticsearch-\S+ "the field/);
  for (const [path, body] of [
    ['/c', { mappings: { properties: { outer: mappings } } }],
    ['/a/_mapping', { properties: { other: { type: 'text', fields: (mappings as any).properties } } }],
    ['/_index_template/t', { index_patterns: ['t*'], template: { mappings } }],
    ['/_component_template/t', { template: { mappings } }],
    ['/d', { mappings: field({ inference_id: '.hybrid', search_inference_id: '.hybird' }) }],
  ] as const) {
    expect(await warnedOf('PUT', path, body), path).toContain(WARNING);
  }
});

it('is not warned of where it is an endpoint, a model, a deployment, or another field of that name', async () => {
  for (const [at, id] of [
    '.hybrid',
    '.elser-2-elasticsearch',
    '.all-minilm-l6-v2',
    '.sparse_encoder_model_2',
  ].entries()) {
    expect(await warnedOf('PUT', `/known-${String(at)}`, { mappings: field({ inference_id: id }) })).toBe('');
  }
  const properties = { inference_id: { type: 'keyword' }, x: { type: 'keyword', meta: { inference_id: 'nobody' } } };
  expect(await warnedOf('PUT', '/named', { mappings: { properties } })).toBe('');
  expect(await warnedOf('PUT', '/default', { mappings: field({}) })).toBe('');
});

it('names no endpoint to a key that may not list them, and says no more than headers hold', async () => {
  const server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const asked = { name: 'mine', role_descriptors: { mine: { indices: [{ names: ['mine*'], privileges: ['all'] }] } } };
  const { body: key } = await server.request('POST', '/_security/api_key', asked);
  const warned = async (index: string, id: string, apiKey?: string): Promise<string> => {
    const body = { mappings: field({ inference_id: id }) };
    const answer = await server.request('PUT', `/${index}`, body, apiKey === undefined ? {} : { apiKey });
    expect(answer.status).toBe(200);
    return String(answer.headers['warning'] ?? '');
  };
  expect(await warned('mine-a', '.hybird')).toContain('did you mean [.hybrid]?');
  const said = await warned('mine-b', '.hybird', key.encoded);
  expect(said).toContain('[.hybird], which does not exist');
  expect(said).not.toContain('[.hybrid]');
  expect(await warned('mine-c', 'x'.repeat(250_000))).toBe('');
  await server.stop();
});
