// Data streams of a cluster, which the native engine does not have: what is written to them and searched has Sparrow's own fields.
import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { CLUSTER, IS_ELASTICSEARCH, OVER_CLUSTER } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

// The Elasticsearch of the peers lacks their module.
describe.skipIf(CLUSTER === undefined || IS_ELASTICSEARCH)('data streams of a cluster', () => {
  const run = randomBytes(4).toString('hex');
  const of = (what: string): string => `streams-${run}-${what}`;
  const [logs, pipeline] = [of('logs'), of('pipeline')];
  let server: RunningServer;

  async function ask(method: string, path: string, body?: unknown, apiKey?: string, status?: number): Promise<any> {
    const answer = await server.request(method, path, body, apiKey === undefined ? {} : { apiKey });
    if (status === undefined) expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300);
    else expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
    return answer.body;
  }
  const found = async (body: object, apiKey?: string): Promise<unknown[]> =>
    (await ask('POST', `/${logs}/_search`, body, apiKey)).hits.hits.map((hit: any) => hit._source.n).sort();
  const meaning = { query: { semantic: { field: 'body', query: 'animals of the sea' } } };

  beforeAll(async () => {
    server = await OVER_CLUSTER.start();
    await ask('PUT', `/_ingest/pipeline/${pipeline}`, { processors: [{ set: { field: 'seen', value: true } }] });
    await ask('PUT', `/_index_template/${of('template')}`, {
      index_patterns: [`${of('')}*`],
      priority: 902,
      data_stream: {},
      template: {
        settings: { 'index.default_pipeline': pipeline, 'index.final_pipeline': pipeline },
        mappings: {
          properties: {
            body: { type: 'semantic_text', inference_id: '.sparse_encoder_model_2' },
            v: { type: 'dense_vector', dims: 2 },
          },
        },
      },
    });
  });
  afterAll(async () => {
    await server.request('DELETE', `/_data_stream/${of('*')}`);
    await server.request('DELETE', `/_index_template/${of('template')}`);
    await server.request('DELETE', `/_ingest/pipeline/${pipeline}`);
    await server.stop();
  });

  it('are made by the first write, with passages and vectors, and shown', async () => {
    const { index_templates: templates } = await ask('GET', `/_index_template/${of('template')}`);
    expect(templates[0].index_template).toMatchObject({ data_stream: {} });
    const at = '2026-11-30T10:00:00Z';
    await ask('POST', `/${logs}/_doc?refresh=true`, { '@timestamp': at, n: 1, body: 'a whale swims', v: [1, 0] });
    const lines = [{ create: {} }, { '@timestamp': at, n: 2, body: 'a spoon', v: [0, 1] }];
    await ask('POST', `/${logs}/_bulk?refresh=true`, lines.map((it) => `${JSON.stringify(it)}\n`).join(''));
    const { data_streams: streams } = await ask('GET', `/_data_stream/${logs}`);
    expect(streams).toMatchObject([{ name: logs, generation: 1, template: of('template') }]);
    expect((await ask('GET', '/_data_stream')).data_streams.map((it: any) => it.name)).toContain(logs);
    expect(await found(meaning)).toContain(1);
    expect(await found({ knn: { field: 'v', query_vector: [0, 1], k: 1 } })).toEqual([2]);
    expect(await found({ query: { term: { seen: true } } })).toEqual([1, 2]);
    const [mapping] = Object.values(await ask('GET', `/${logs}/_mapping`)) as any[];
    expect(mapping.mappings.properties).toMatchObject({ body: { type: 'semantic_text' }, v: { type: 'dense_vector' } });
    expect(mapping.mappings.properties).not.toHaveProperty('_sparrow');
  });

  it('are written to and searched behind a rollover, too', async () => {
    await ask('POST', `/${logs}/_rollover`);
    const { data_streams: streams } = await ask('GET', `/_data_stream/${logs}`);
    expect(streams[0].indices).toHaveLength(2);
    await ask('POST', `/${logs}/_doc?refresh=true`, { '@timestamp': '2026-11-30T11:00:00Z', n: 3, body: 'a shark' });
    expect(await found(meaning)).toEqual(expect.arrayContaining([1, 3]));
    expect(await found({ query: { term: { seen: true } } })).toEqual([1, 2, 3]);
    const retriever = { rrf: { query: 'shark', fields: ['body'] } };
    expect(await found({ retriever })).toContain(3);
  });

  it('are made by name, and a key sees and uses its own', async () => {
    await ask('PUT', `/_data_stream/${of('made')}`);
    const indices = [{ names: [logs], privileges: ['all'] }];
    const { encoded } = await ask('POST', '/_security/api_key', { name: run, role_descriptors: { r: { indices } } });
    const seen = await ask('GET', '/_data_stream/*', undefined, encoded);
    expect(seen.data_streams.map((it: any) => it.name)).toEqual([logs]);
    await ask('DELETE', `/_data_stream/${of('made')}`, undefined, encoded, 403);
    expect(await found(meaning, encoded)).toContain(3);
    await ask('DELETE', `/_data_stream/${of('made')}`);
    await ask('GET', `/_data_stream/${of('made')}`, undefined, undefined, 404);
  });
});
