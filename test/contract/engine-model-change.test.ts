// The change of the model of a field: one suite for every engine behind the routes, as in engines.test.ts. More of it, over the native
// engine only, is in test/api/model-change.test.ts.
import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ENGINES } from '../support/engines.js';
import { DENSE, SPARSE, all, fieldOf, fill, found, textOf, until } from '../support/model-change.js';
import type { RunningServer } from '../support/server.js';

describe.each(ENGINES)('the change of a model over the $name engine', ({ name: engine, start }) => {
  const run = randomBytes(4).toString('hex');
  const of = (index: string) => `models-${run}-${index}`;
  let server: RunningServer;
  /** Over a cluster, another server than that which changes the model. */
  let other: RunningServer;

  const call = (method: string, path: string, body?: unknown) => server.request(method, path, body);
  const change = (index: string, body: object, params = '') =>
    call('POST', `/${of(index)}/_ext/model/_change${params}`, { field: 'body', ...body });
  const step = async (index: string, name: string): Promise<string> => {
    const { status, body } = await call('POST', `/${of(index)}/_ext/model/_${name}`);
    return status === 200 ? String(body.state) : `${String(status)} ${String(body.error.reason)}`;
  };
  const semantic = (query: string) => ({ query: { semantic: { field: 'body', query } } });
  const shownModel = async (index: string): Promise<string> =>
    (await call('GET', `/${of(index)}/_mapping`)).body[of(index)].mappings.properties.body.inference_id;

  beforeAll(async () => {
    server = await start();
    other = engine === 'cluster' ? await start() : server;
  }, 180_000);
  afterAll(async () => {
    for (const { index } of (await call('GET', `/_cat/indices/${of('*')}?format=json&h=index`)).body) {
      await call('DELETE', `/${String(index)}`);
    }
    await server.stop();
    if (other !== server) await other.stop();
  });

  it('goes on under writes and searches, none of which fails, and leaves every document with the new model', async () => {
    const index = of('busy');
    await fill(server, index, 150);
    const started = await change('busy', { inference_id: DENSE }, '?wait_for_completion=false&requests_per_second=60');
    expect(started.status, started.text).toBe(200);
    let running = true;
    let searches = 0;
    const deleted = new Set<string>();
    const written = new Set<string>();
    const search = async (): Promise<void> => {
      for (let n = 0; running; n += 1) {
        const answer = await other.request('POST', `/${index}/_search`, semantic(textOf(n)));
        expect(answer.status, answer.text).toBe(200);
        expect(answer.body._shards.failed, answer.text).toBe(0);
        expect(answer.body.hits.hits.length, answer.text).toBe(10);
        searches += 1;
      }
    };
    const write = async (): Promise<void> => {
      for (let n = 0; running; n += 1) {
        const [fresh, again, gone] = [`new-${n}`, String((n * 37) % 150), String((n * 37 + 11) % 150)];
        const part = { n, body: `${textOf(n)} It was said of it.` };
        for (const [method, path, body] of [
          ['PUT', `_doc/${fresh}`, part],
          ['POST', `_update/${again}?retry_on_conflict=20`, { doc: part, doc_as_upsert: true }],
        ] as const) {
          const answer = await other.request(method, `/${index}/${path}`, body);
          expect(answer.status, answer.text).toBeLessThan(300);
        }
        for (const id of [fresh, again]) {
          written.add(id);
          deleted.delete(id);
        }
        expect([200, 404]).toContain((await other.request('DELETE', `/${index}/_doc/${gone}`)).status);
        deleted.add(gone);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    };
    const load = Promise.all([search(), write()]);
    load.catch(() => (running = false));
    const field = await until(server, index, 'switched');
    do await new Promise((resolve) => setTimeout(resolve, 200));
    while (running && Math.min(searches, written.size) <= 20);
    running = false;
    await load;
    expect(field).toMatchObject({ inference_id: DENSE, task_type: 'text_embedding' });
    expect(field.change).toMatchObject({ from: { inference_id: SPARSE }, can_be_rolled_back: true, switch: 'auto' });
    expect(await shownModel('busy')).toBe(DENSE);
    const ids = await all(server, index);
    for (const id of deleted) expect(ids).not.toContain(id);
    const task = (await call('GET', `/_tasks/${String(started.body.task)}?wait_for_completion=true`)).body;
    expect(task.response).toMatchObject({ field: 'body', state: 'switched', requests_per_second: 60 });
    expect(await found(server, index, 'dense')).toEqual(ids);

    // Back, with what was written since; forth, and for good.
    expect(await step('busy', 'switch')).toMatch(/^409 the change of the model of field \[body\] is \[switched\]/);
    expect(await step('busy', 'rollback')).toBe('ready');
    await other.request('PUT', `/${index}/_doc/late?refresh=true`, { n: 0, body: textOf(7) });
    expect(await found(other, index, 'sparse')).toEqual(await all(server, index));
    expect(await shownModel('busy')).toBe(SPARSE);
    expect(await step('busy', 'switch')).toBe('switched');
    expect(await found(other, index, 'dense')).toEqual(await all(server, index));
    expect(await step('busy', 'drop')).toBe('dropped');
    expect(await step('busy', 'rollback')).toMatch(/^404 no model of index \[.*\] is being changed/);
    expect((await fieldOf(server, index)).change).toBeUndefined();
    await other.request('PUT', `/${index}/_doc/last?refresh=true`, { n: 0, body: textOf(9) });
    expect(await found(server, index, 'dense')).toEqual(await all(server, index));
    const exists = { size: 500, _source: false, query: { exists: { field: 'body' } } };
    const having = (await call('POST', `/${index}/_search`, exists)).body.hits.hits.map((hit: any) => hit._id);
    expect(having.sort()).toEqual(await all(server, index));
    const sparse = await call('POST', `/${index}/_search`, {
      query: { sparse_vector: { field: 'body', query: 'sea' } },
    });
    expect(sparse.status).toBe(400);
  }, 240_000);

  it('is compared, switched by hand, and taken to both kinds of vectors', async () => {
    const index = of('calm');
    await fill(server, index, 60);
    const queries = ['The whale sleeps', 'coins of a baker', 'rain'];
    const answer = await change('calm', { inference_id: '.hybrid', switch: 'manual', compare: { queries, size: 5 } });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toMatchObject({ state: 'ready', total: 60, filled: 60, version_conflicts: 0 });
    expect(answer.body.compared).toMatchObject({ queries: 3, size: 5 });
    expect(answer.body.compared.overlap).toBeGreaterThan(0.2);
    expect(answer.body.compared.overlap).toBeLessThanOrEqual(1);
    expect(answer.body.compared.least_alike[0]).toMatchObject({ query: expect.any(String) as unknown });
    const before = (await call('POST', `/${index}/_search`, semantic('The whale sleeps'))).body.hits.hits;
    expect(await shownModel('calm')).toBe(SPARSE);
    expect((await fieldOf(server, index)).change).toMatchObject({ state: 'ready', to: { inference_id: '.hybrid' } });
    expect(await step('calm', 'switch')).toBe('switched');
    const after = (await call('POST', `/${index}/_search`, semantic('The whale sleeps'))).body.hits.hits;
    expect(after[0]._score).toBeGreaterThan(before[0]._score);
    for (const kind of ['sparse', 'dense'] as const) {
      expect(await found(server, index, kind)).toEqual(await all(server, index));
    }
    // Passages are those of the model that is searched, and an explanation names the field.
    const more = { highlight: { fields: { body: {} } }, size: 1, explain: true };
    const shown = (await call('POST', `/${index}/_search`, { ...semantic('whale'), ...more })).body.hits.hits[0];
    expect(shown.highlight.body[0]).toContain('whale');
    expect(JSON.stringify(shown)).not.toContain('_sparrow');
    // What is put into the mapping meanwhile leaves the change as it is.
    expect((await call('PUT', `/${index}/_mapping`, { properties: { more: { type: 'keyword' } } })).status).toBe(200);
    expect((await fieldOf(server, index)).change.state).toBe('switched');
    expect(await step('calm', 'rollback')).toBe('ready');
    expect(await step('calm', 'drop')).toBe('dropped');
    expect(await shownModel('calm')).toBe(SPARSE);
    expect(await found(server, index, 'sparse')).toEqual(await all(server, index));
  }, 240_000);

  it.runIf(engine === 'cluster')(
    'gets to its end over documents that are longer together than what is written at once',
    async () => {
      const index = of('long');
      const properties = {
        body: { type: 'semantic_text', inference_id: SPARSE },
        other: { type: 'text', index: false },
      };
      expect((await call('PUT', `/${index}`, { mappings: { properties } })).status).toBe(200);
      const other = 'x'.repeat(1024 * 1024);
      for (let at = 0; at < 20; at += 1) {
        const answer = await call('PUT', `/${index}/_doc/${at}`, { body: textOf(at), other });
        expect(answer.status, answer.text).toBe(201);
      }
      await call('POST', `/${index}/_refresh`);
      const answer = await change('long', { inference_id: DENSE, compare: { sample: 3 } });
      expect(answer.body, answer.text).toMatchObject({
        state: 'switched',
        total: 20,
        filled: 20,
        version_conflicts: 0,
      });
      expect(await found(server, index, 'dense')).toHaveLength(20);
      const shown = (await call('GET', `/${index}/_doc/7`)).body._source;
      expect([shown.body, shown.other.length]).toEqual([textOf(7), other.length]);
    },
    240_000,
  );

  it('leads away from an endpoint that was deleted', async () => {
    const index = of('left');
    const endpoint = `gone-${run}`;
    const service = { model_id: '.elser_model_2', num_allocations: 1, num_threads: 1 };
    const definition = { service: 'elasticsearch', service_settings: service };
    expect((await call('PUT', `/_inference/sparse_embedding/${endpoint}`, definition)).status).toBe(200);
    const properties = { body: { type: 'semantic_text', inference_id: endpoint } };
    expect((await call('PUT', `/${index}`, { mappings: { properties } })).status).toBe(200);
    expect((await call('PUT', `/${index}/_doc/1?refresh=true`, { body: textOf(1) })).status).toBe(201);
    expect((await call('DELETE', `/_inference/${endpoint}?force=true`)).status).toBe(200);
    const answer = await change('left', { inference_id: SPARSE });
    expect(answer.body, answer.text).toMatchObject({ state: 'switched', filled: 1 });
    expect(answer.body.compared).toBeUndefined();
    expect((await call('POST', `/${index}/_search`, semantic('whale'))).status).toBe(200);
    expect(await step('left', 'drop')).toBe('dropped');
  }, 120_000);

  it('keeps the old model where it is cancelled, and lets nobody else begin', async () => {
    const index = of('slow');
    await fill(server, index, 60);
    const wanted = { inference_id: DENSE };
    const started = await change('slow', wanted, '?wait_for_completion=false&requests_per_second=5');
    await until(server, index, 'filling');
    const another = await change('slow', { inference_id: '.hybrid' });
    expect([another.status, another.body.error.reason]).toEqual([
      409,
      `a model of index [${index}] is being changed by task [${String(started.body.task)}]`,
    ]);
    expect(await step('slow', 'switch')).toMatch(/^409 .*is \[filling\]/);
    expect(await step('slow', 'drop')).toMatch(/^409 .*cancel the task/);
    const status = (await call('GET', `/_tasks/${String(started.body.task)}`)).body.task;
    expect(status).toMatchObject({ action: 'indices:admin/ext/model/change', cancellable: true });
    expect(status.status).toMatchObject({ total: 60, requests_per_second: 5 });
    await call('POST', `/_tasks/${String(started.body.task)}/_cancel`);
    const ended = await call('GET', `/_tasks/${String(started.body.task)}?wait_for_completion=true`);
    expect(ended.body.response, ended.text).toMatchObject({ state: 'cancelled' });
    expect((await fieldOf(server, index)).change).toBeUndefined();
    expect(await found(server, index, 'sparse')).toEqual(await all(server, index));
    // What an abandoned change left is not taken for vectors of the next one, whose queries are the documents' own.
    const next = (await change('slow', { inference_id: '.hybrid', compare: { sample: 7, size: 3 } })).body;
    expect(next).toMatchObject({ state: 'switched', filled: 60, compared: { queries: 7, size: 3 } });
    expect(next.compared.least_alike).toBeUndefined();
    expect(await found(server, index, 'dense')).toEqual(await all(server, index));
  }, 240_000);

  it.runIf(engine === 'cluster')(
    'is gone on with by another server where its own is killed',
    async () => {
      const index = of('handed');
      await fill(server, index, 80);
      const third = await start();
      const path = `/${index}/_ext/model/_change?wait_for_completion=false&requests_per_second=10`;
      const started = await third.request('POST', path, { field: 'body', inference_id: DENSE, compare: { sample: 0 } });
      expect(started.status, started.text).toBe(200);
      const filled = async (): Promise<number> => (await fieldOf(server, index)).change.documents?.filled ?? 0;
      await expect.poll(filled).toBeGreaterThan(10);
      await third.kill();
      const field = await until(server, index, 'switched', 120_000);
      expect(field.inference_id).toBe(DENSE);
      expect(await found(other, index, 'dense')).toEqual(await all(server, index));
      const task = (await call('GET', `/_tasks/${String(started.body.task)}?wait_for_completion=true`)).body;
      expect(task.response.state).toBe('switched');
    },
    240_000,
  );

  it('stops where documents cannot be written, goes on when it is asked for again, and refuses what makes no sense', async () => {
    const index = of('blocked');
    await fill(server, index, 20);
    await call('PUT', `/${index}/_settings`, { 'index.blocks.write': true });
    const stopped = await change('blocked', { inference_id: DENSE });
    expect([stopped.status, stopped.body.error.reason], stopped.text).toEqual([
      403,
      expect.stringMatching(/^a document cannot be given vectors of the new model of field \[body\]: /),
    ]);
    expect((await fieldOf(server, index)).change).toMatchObject({
      state: 'stopped',
      failure: expect.stringContaining('cannot be given vectors') as unknown,
    });
    expect((await change('blocked', { inference_id: '.hybrid' })).status).toBe(409);
    await call('PUT', `/${index}/_settings`, { 'index.blocks.write': null });
    expect((await change('blocked', { inference_id: DENSE })).body).toMatchObject({ state: 'switched', filled: 20 });
    expect(await step('blocked', 'drop')).toBe('dropped');
    const refused: [string, object, number, string][] = [
      [index, { inference_id: 'nobody' }, 404, 'Inference endpoint not found [nobody]'],
      [index, { inference_id: DENSE }, 400, `field [body] has the model [${DENSE}] already`],
      [index, { field: 'n', inference_id: SPARSE }, 400, 'field [n] is of type [integer], which holds no vectors'],
      [index, { field: 'zip', inference_id: SPARSE }, 400, `index [${index}] has no field [zip]`],
      [`${index},x`, { inference_id: DENSE }, 400, 'models are changed one index at a time'],
      [of('none'), { inference_id: DENSE }, 404, `no such index [${of('none')}]`],
    ];
    for (const [name, body, status, reason] of refused) {
      const answer = await call('POST', `/${name}/_ext/model/_change`, { field: 'body', ...body });
      expect([answer.status, answer.body.error.reason]).toEqual([status, expect.stringContaining(reason)]);
    }
    expect((await fieldOf(server, index)).change).toBeUndefined();
  }, 240_000);
});
