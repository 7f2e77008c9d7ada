// The pipeline that runs last on whatever is written to an index: one suite for every engine behind the routes.
import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ENGINES, NODE } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

describe.each(ENGINES)('a final pipeline over the $name engine', ({ name, start }) => {
  const run = randomBytes(4).toString('hex');
  const of = (what: string): string => `final-${run}-${what}`;
  let server: RunningServer;

  async function ask(method: string, path: string, body?: unknown, status?: number): Promise<any> {
    const answer = await server.request(method, path, body);
    if (status === undefined) expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300);
    else expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
    return answer.body;
  }
  const source = async (index: string, id: string): Promise<unknown> =>
    (await ask('GET', `/${index}/_doc/${id}`))._source;
  const pipeline = (id: string, ...processors: object[]): Promise<unknown> =>
    ask('PUT', `/_ingest/pipeline/${of(id)}`, { processors });

  beforeAll(async () => {
    server = await start();
    const drop = { drop: { if: "ctx.text == 'none'" } };
    const order = (step: string): object => ({ append: { field: 'ran', value: step } });
    await pipeline('last', drop, order('last'));
    await pipeline('other', order('other'));
    await pipeline('first', order('first'));
    await pipeline('sends', order('sends'), { set: { field: '_index', value: of('other') } });
    await ask('PUT', `/${of('plain')}`, { settings: { index: { final_pipeline: of('last'), number_of_replicas: 0 } } });
    await ask('PUT', `/${of('both')}`, {
      settings: { 'index.final_pipeline': of('last'), default_pipeline: of('first') },
    });
    await ask('PUT', `/${of('other')}`, { settings: { final_pipeline: of('other') } });
    const text = { type: 'semantic_text', inference_id: '.sparse_encoder_model_2' };
    await ask('PUT', `/${of('meaning')}`, {
      settings: { 'index.final_pipeline': of('last') },
      mappings: { properties: { text } },
    });
  });
  afterAll(async () => {
    await server.request('DELETE', `/${of('*')}`);
    await server.request('DELETE', `/_index_template/${of('template')}`);
    await server.request('DELETE', `/_ingest/pipeline/${of('*')}`);
    await server.stop();
  });

  it('runs on documents, and behind the pipeline that the request or the index names', async () => {
    await ask('PUT', `/${of('plain')}/_doc/1`, { n: 1 });
    expect(await source(of('plain'), '1')).toEqual({ n: 1, ran: ['last'] });
    await ask('PUT', `/${of('plain')}/_doc/2?pipeline=${of('first')}`, {});
    expect(await source(of('plain'), '2')).toEqual({ ran: ['first', 'last'] });
    await ask('PUT', `/${of('both')}/_create/1`, {});
    expect(await source(of('both'), '1')).toEqual({ ran: ['first', 'last'] });
    await ask('PUT', `/${of('both')}/_doc/2?pipeline=_none`, {});
    expect(await source(of('both'), '2')).toEqual({ ran: ['last'] });
    expect((await ask('PUT', `/${of('plain')}/_doc/3`, { text: 'none' })).result).toBe('noop');
    await ask('GET', `/${of('plain')}/_doc/3`, undefined, 404);
  });

  it('is that of the index to which another pipeline sends a document', async () => {
    await ask('PUT', `/${of('plain')}/_doc/moved?pipeline=${of('sends')}`, {});
    expect(await source(of('other'), 'moved')).toEqual({ ran: ['sends', 'other'] });
    const lines = [{ index: { _id: 'moved-2', pipeline: of('sends') } }, {}, { index: { _id: 'stays' } }, {}];
    await ask('POST', `/${of('plain')}/_bulk`, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    expect(await source(of('other'), 'moved-2')).toEqual({ ran: ['sends', 'other'] });
    expect(await source(of('plain'), 'stays')).toEqual({ ran: ['last'] });
  });

  it('runs on the items of a bulk request, each by itself', async () => {
    const lines = [
      [{ index: { _index: of('plain'), _id: 'a' } }, { n: 1 }],
      [{ create: { _index: of('both'), _id: 'a' } }, { n: 2 }],
      [{ index: { _index: of('plain'), _id: 'gone' } }, { text: 'none' }],
      [{ update: { _index: of('plain'), _id: 'b' } }, { doc: { n: 3 }, upsert: { n: 4 } }],
      [{ update: { _index: of('plain'), _id: 'a' } }, { doc: { n: 5 } }],
    ];
    const body = lines.flat().map((line) => `${JSON.stringify(line)}\n`);
    const { items, errors } = await ask('POST', '/_bulk', body.join(''));
    expect(errors).toBe(false);
    expect(items.map((item: object) => Object.values(item)[0].result)).toEqual([
      ...['created', 'created', 'noop', 'created', 'updated'],
    ]);
    expect(await source(of('plain'), 'a')).toEqual({ n: 5, ran: ['last'] });
    expect(await source(of('both'), 'a')).toEqual({ n: 2, ran: ['first', 'last'] });
    expect(await source(of('plain'), 'b')).toEqual({ n: 4, ran: ['last'] });
  });

  it('runs on what an update may add', async () => {
    await ask('POST', `/${of('plain')}/_update/added`, { doc: { n: 1 }, doc_as_upsert: true });
    expect(await source(of('plain'), 'added')).toEqual({ n: 1, ran: ['last'] });
    await ask('POST', `/${of('plain')}/_update/added`, { doc: { n: 2 } });
    expect(await source(of('plain'), 'added')).toEqual({ n: 2, ran: ['last'] });
  });

  it('runs after the first one on what an update may add, whether the document is there or not', async () => {
    for (const n of [1, 2]) {
      await ask('POST', `/${of('both')}/_update/twice`, { doc: { n }, doc_as_upsert: true });
      expect(await source(of('both'), 'twice')).toEqual({ n, ran: ['first', 'last'] });
    }
  });

  it('runs on copies, and on documents that a query updates', async () => {
    await ask('PUT', `/${of('from')}/_doc/1?refresh=true`, { text: 'a whale' });
    const to = async (dest: object): Promise<void> => {
      await ask('POST', '/_reindex?refresh=true', { source: { index: of('from') }, dest });
    };
    await to({ index: of('meaning') });
    expect(await source(of('meaning'), '1')).toEqual({ text: 'a whale', ran: ['last'] });
    await to({ index: of('both') });
    expect(await source(of('both'), '1')).toEqual({ text: 'a whale', ran: ['first', 'last'] });
    await ask('POST', `/${of('meaning')}/_update_by_query?refresh=true`);
    expect(await source(of('meaning'), '1')).toEqual({ text: 'a whale', ran: ['last', 'last'] });
    const { hits } = await ask('POST', `/${of('meaning')}/_search`, {
      query: { semantic: { field: 'text', query: 'an animal of the sea' } },
    });
    expect(hits.hits).toHaveLength(1);
    await ask('PUT', `/${of('plain')}/_doc/again?refresh=true`, {});
    await ask('POST', `/${of('plain')}/_update_by_query?refresh=true`, { query: { ids: { values: ['again'] } } });
    expect(await source(of('plain'), 'again')).toEqual({ ran: ['last', 'last'] });
  });

  it('is shown as it was put, changed, and taken away', async () => {
    const shown = async (query: string): Promise<any> =>
      (await ask('GET', `/${of('plain')}/_settings${query}`))[of('plain')]?.settings;
    expect((await shown('')).index).toMatchObject({ final_pipeline: of('last'), number_of_replicas: '0' });
    expect(await shown('?flat_settings=true')).toMatchObject({ 'index.final_pipeline': of('last') });
    expect(await shown('/index.final_pipeline')).toEqual({ index: { final_pipeline: of('last') } });
    expect((await shown('/index.number_of_replicas')).index).toEqual({ number_of_replicas: '0' });
    const whole = (await ask('GET', `/${of('plain')}`))[of('plain')];
    expect(whole.settings.index.final_pipeline).toBe(of('last'));
    expect(whole.mappings._meta).toBeUndefined();
    // What a mapping has of Sparrow's stays when a field comes to it.
    await ask('PUT', `/${of('plain')}/_mapping`, { properties: { word: { type: 'keyword' } } });
    await ask('PUT', `/${of('plain')}/_doc/still`, {});
    expect(await source(of('plain'), 'still')).toEqual({ ran: ['last'] });
    await ask('PUT', `/${of('plain')}/_settings`, {
      'index.final_pipeline': of('other'),
      'index.refresh_interval': '2s',
    });
    expect((await shown('')).index).toMatchObject({ final_pipeline: of('other'), refresh_interval: '2s' });
    await ask('PUT', `/${of('plain')}/_doc/changed`, {});
    expect(await source(of('plain'), 'changed')).toEqual({ ran: ['other'] });
    await ask('PUT', `/${of('plain')}/_settings`, { index: { final_pipeline: null } });
    expect((await shown('')).index).not.toHaveProperty('final_pipeline');
    await ask('PUT', `/${of('plain')}/_doc/none`, { a: 1 });
    expect(await source(of('plain'), 'none')).toEqual({ a: 1 });
    await ask('PUT', `/${of('missing')}/_settings`, { 'index.final_pipeline': of('other') }, 404);
  });

  it('comes by a template, also to an index that a write makes', async () => {
    const template = { settings: { index: { final_pipeline: of('last') } } };
    await ask('PUT', `/_index_template/${of('template')}`, { index_patterns: [of('made-*')], priority: 900, template });
    const { index_templates: found } = await ask('GET', `/_index_template/${of('template')}`);
    expect(found[0].index_template.template).toMatchObject(template);
    expect(found[0].index_template.template).not.toHaveProperty('mappings');
    await ask('PUT', `/${of('made-1')}/_doc/1`, {});
    expect(await source(of('made-1'), '1')).toEqual({ ran: ['last'] });
    await ask('PUT', `/${of('made-2')}`, { settings: { 'index.final_pipeline': '_none' } });
    await ask('PUT', `/${of('made-2')}/_doc/1`, {});
    expect(await source(of('made-2'), '1')).toEqual({});
  });

  it.runIf(name === 'cluster')('is no business of the cluster, which would run it itself', async () => {
    const answer = await fetch(`${NODE}/${of('both')}/_settings`);
    expect(await answer.text()).not.toContain('final_pipeline');
  });
});
