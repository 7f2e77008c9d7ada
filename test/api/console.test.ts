// The console's requests against the real server: every way to search that it offers is answered.
import { readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

interface Way {
  readonly id: string;
  readonly type: string;
}
type Field = readonly [name: string, type: string];

/** What `requests.js` declares. */
interface Requests {
  leaves(properties: unknown): Field[];
  waysToSearch(fields: Field[]): Way[];
  modelKind(way: Way): string | null;
  searchBody(way: Way, text: string, options?: object): object;
  modelsByKind(configs: unknown[]): Record<string, string[]>;
}

const SCRIPT = readFileSync(new URL('../../packages/server/assets/console/requests.js', import.meta.url), 'utf8');
const requests = runInNewContext(
  `${SCRIPT}; ({ leaves, waysToSearch, modelKind, searchBody, modelsByKind })`,
) as Requests;

const SPARSE = '.sparse_encoder_model_2';
const DENSE = '.all-minilm-l6-v2';
const TEXTS = ['A person who collects postage stamps.', 'The fear of open spaces.', 'A loaf that is baked from flour.'];
const PROPERTIES = {
  gloss: { type: 'text', fields: { raw: { type: 'keyword' } } },
  about: { properties: { title: { type: 'text' }, when: { type: 'date' } } },
  tokens: { type: 'sparse_vector' },
  features: { type: 'rank_features' },
  numbers: { type: 'dense_vector', dims: 384 },
  body: { type: 'semantic_text' },
};

let server: RunningServer;
beforeAll(async () => {
  server = await startServer();
  const call = async (method: string, path: string, body?: unknown) => {
    const answer = await server.request(method, path, body);
    expect(answer.status, answer.text).toBeLessThan(300);
  };
  await call('POST', `/_ml/trained_models/${DENSE}/deployment/_start?wait_for=started`);
  await call('PUT', '/words', { mappings: { properties: PROPERTIES } });
  const embed = (model_id: string, output_field: string) => ({
    inference: { model_id, input_output: [{ input_field: 'gloss', output_field }] },
  });
  await call('PUT', '/_ingest/pipeline/all', {
    processors: [embed(SPARSE, 'tokens'), embed(SPARSE, 'features'), embed(DENSE, 'numbers')],
  });
  for (const [id, text] of TEXTS.entries()) {
    const source = { gloss: text, body: text, about: { title: `number ${String(id)}` } };
    await call('PUT', `/words/_doc/${String(id)}?pipeline=all&refresh=true`, source);
  }
});
afterAll(async () => {
  await server.stop();
});

const WAYS = requests.waysToSearch(requests.leaves(PROPERTIES));

describe('the console', () => {
  it('offers what the mapping can be searched by, the best first', () => {
    expect(WAYS.map(({ id }) => id)).toEqual([
      'meaning:body',
      'meaning:tokens',
      'meaning:features',
      'meaning:numbers',
      'fused',
      'words',
      'words:gloss',
      'words:about.title',
    ]);
    expect(requests.waysToSearch([['n', 'long']])).toEqual([]);
    expect(requests.waysToSearch([['t', 'text']]).map(({ id }) => id)).toEqual(['words:t']);
  });

  it('knows the models of each kind', async () => {
    const { body } = await server.request('GET', '/_ml/trained_models?size=1000');
    const models = requests.modelsByKind(body.trained_model_configs);
    expect(models['text_expansion']?.[0]).toBe(SPARSE);
    expect(models['text_embedding']).toEqual([DENSE]);
    expect(requests.modelsByKind([])).toEqual({ text_expansion: [SPARSE], text_embedding: [DENSE] });
  });

  it.each(WAYS.map((way) => [way.id, way] as const))('searches by %s', async (_, way) => {
    const kind = requests.modelKind(way);
    const model = kind === null ? undefined : { text_expansion: SPARSE, text_embedding: DENSE }[kind];
    const question = way.id === 'words:about.title' ? 'number 0' : 'stamps collected by a philatelist';
    const options = { model, marked: ['gloss', 'body'], explain: true, profile: true };
    const answer = await server.request('POST', '/words/_search', requests.searchBody(way, question, options));
    expect(answer.status, answer.text).toBe(200);
    const [first] = answer.body.hits.hits;
    expect(first._id).toBe('0');
    expect(first._explanation.value).toBeGreaterThan(0);
    expect(answer.body.profile.phases.search_in_nanos).toBeGreaterThan(0);
    const next = await server.request(
      'POST',
      '/words/_search',
      requests.searchBody(way, question, { model, from: 10 }),
    );
    expect(next.status, next.text).toBe(200);
    expect(next.body.hits.hits).toEqual([]);
  });

  it('asks for the passages of its fields', async () => {
    const way = WAYS.find(({ id }) => id === 'words:gloss')!;
    const body = requests.searchBody(way, 'stamps', { marked: ['gloss'] });
    const answer = await server.request('POST', '/words/_search', body);
    expect(answer.body.hits.hits[0].highlight.gloss).toEqual(['A person who collects postage <em>stamps</em>.']);
  });
});
