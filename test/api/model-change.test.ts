// The change of the model of a field, against the real engine and its models.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { DENSE, SPARSE, all, fieldOf, fill, found, textOf, until } from '../support/model-change.js';
import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown) => server.request(method, path, body);
const change = (index: string, body: object, params = '') =>
  call('POST', `/${index}/_ext/model/_change${params}`, { field: 'body', ...body });
const step = async (index: string, name: string): Promise<string> => {
  const { status, body } = await call('POST', `/${index}/_ext/model/_${name}`);
  return status === 200 ? String(body.state) : `${String(status)} ${String(body.error.reason)}`;
};
const semantic = (query: string) => ({ query: { semantic: { field: 'body', query } } });
const shownModel = async (index: string): Promise<string> =>
  (await call('GET', `/${index}/_mapping`)).body[index].mappings.properties.body.inference_id;

beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server.stop();
});

describe('a change of a model', () => {
  it('is the same for counts, explanations and jobs by query as for searches while models go back and forth', async () => {
    await fill(server, 'swinging', 40);
    const answer = await change('swinging', { inference_id: DENSE, switch: 'manual' });
    expect(answer.body.state, answer.text).toBe('ready');
    let running = true;
    let asked = 0;
    const ask = async (path: string, check: (body: any) => void, more: object = {}): Promise<void> => {
      for (let n = 0; running; n += 1) {
        const answer = await call('POST', `/swinging/${path}`, { ...semantic(`${textOf(n)} ${n}`), ...more });
        expect(answer.status, answer.text).toBe(200);
        check(answer.body);
        asked += 1;
      }
    };
    const load = Promise.all([
      ask('_count', (body) => {
        expect(body._shards.failed).toBe(0);
        expect(body.count).toBeGreaterThan(0);
      }),
      ask('_explain/1', (body) => {
        expect(body._id).toBe('1');
      }),
      ask('_validate/query?explain=true', (body) => {
        expect(body.valid, JSON.stringify(body)).toBe(true);
      }),
      // One of the documents at most, which is written again as it is.
      ask('_update_by_query?conflicts=proceed&max_docs=1', (body) => {
        expect(body.total, JSON.stringify(body)).toBe(1);
        expect(body.failures).toEqual([]);
      }),
    ]);
    // A failure ends the test where the load is waited for.
    load.catch(() => {
      running = false;
    });
    for (let turn = 0; running && (turn < 60 || asked < 200); turn += 1) {
      expect(await step('swinging', 'switch')).toBe('switched');
      expect(await step('swinging', 'rollback')).toBe('ready');
    }
    running = false;
    await load;
  });

  it('goes on under writes and searches, none of which fails, and leaves every document with the new model', async () => {
    const count = 400;
    await fill(server, 'busy', count);
    const started = await change('busy', { inference_id: DENSE }, '?wait_for_completion=false&requests_per_second=150');
    expect(started.status, started.text).toBe(200);
    let running = true;
    let searches = 0;
    const deleted = new Set<string>();
    const written = new Map<string, string>();
    const search = async (): Promise<void> => {
      for (let n = 0; running; n += 1) {
        const answer = await call('POST', '/busy/_search', semantic(textOf(n)));
        expect(answer.status, answer.text).toBe(200);
        expect(answer.body._shards.failed, answer.text).toBe(0);
        expect(answer.body.hits.hits.length, answer.text).toBe(10);
        searches += 1;
      }
    };
    const write = async (): Promise<void> => {
      for (let n = 0; running; n += 1) {
        // Of every ten a new document, one that is replaced, one that goes.
        const [fresh, again, gone] = [`new-${n}`, String((n * 37) % count), String((n * 37 + 11) % count)];
        for (const id of [fresh, again]) {
          const body = `${textOf(n)} It was said of ${id}.`;
          const answer = await call('PUT', `/busy/_doc/${id}`, { n, body });
          expect(answer.status, answer.text).toBeLessThan(300);
          written.set(id, body);
          deleted.delete(id);
        }
        const answer = await call('DELETE', `/busy/_doc/${gone}`);
        expect([200, 404], answer.text).toContain(answer.status);
        deleted.add(gone);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const load = Promise.all([search(), search(), write()]);
    const field = await until(server, 'busy', 'switched');
    // After the change as before it, and on a busy machine until there is something to look at.
    do await new Promise((resolve) => setTimeout(resolve, 500));
    while (Math.min(searches, written.size) <= 20);
    running = false;
    await load;
    expect(field).toMatchObject({ inference_id: DENSE, task_type: 'text_embedding' });
    expect(field.change).toMatchObject({ from: { inference_id: SPARSE }, can_be_rolled_back: true, switch: 'auto' });
    expect(await shownModel('busy')).toBe(DENSE);
    const ids = await all(server, 'busy');
    for (const id of deleted) expect(ids).not.toContain(id);
    expect(await found(server, 'busy', 'dense')).toEqual(ids);
    // What nobody wrote has the version that it had.
    const untouched = ids.find((id) => !written.has(id)) ?? '';
    expect((await call('GET', `/busy/_doc/${untouched}`)).body._version).toBe(1);
    const task = (await call('GET', `/_tasks/${String(started.body.task)}?wait_for_completion=true`)).body;
    expect(task.response).toMatchObject({ field: 'body', state: 'switched' });

    // Back, with what was written since; forth, and for good.
    expect(await step('busy', 'switch')).toMatch(/^409 the change of the model of field \[body\] is \[switched\]/);
    expect(await step('busy', 'rollback')).toBe('ready');
    await call('PUT', '/busy/_doc/late?refresh=true', { n: 0, body: textOf(7) });
    expect(await found(server, 'busy', 'sparse')).toEqual(await all(server, 'busy'));
    expect(await shownModel('busy')).toBe(SPARSE);
    expect(await step('busy', 'switch')).toBe('switched');
    expect(await found(server, 'busy', 'dense')).toEqual(await all(server, 'busy'));
    expect(await step('busy', 'drop')).toBe('dropped');
    expect(await step('busy', 'rollback')).toMatch(/^404 no model of index \[busy\] is being changed/);
    expect((await fieldOf(server, 'busy')).change).toBeUndefined();
    await call('POST', '/busy/_forcemerge?max_num_segments=1');
    expect(await found(server, 'busy', 'dense')).toEqual(await all(server, 'busy'));
    const sparse = await call('POST', '/busy/_search', { query: { sparse_vector: { field: 'body', query: 'whale' } } });
    expect(sparse.status).toBe(400);
  }, 120_000);

  it('is compared, switched by hand, and taken to both kinds of vectors', async () => {
    await fill(server, 'calm', 60);
    const queries = ['The whale sleeps', 'coins of a baker', 'rain'];
    const answer = await change('calm', { inference_id: '.hybrid', switch: 'manual', compare: { queries, size: 5 } });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toMatchObject({ state: 'ready', total: 60, filled: 60, version_conflicts: 0 });
    expect(answer.body.compared).toMatchObject({ queries: 3, size: 5 });
    expect(answer.body.compared.overlap).toBeGreaterThan(0.2);
    expect(answer.body.compared.overlap).toBeLessThanOrEqual(1);
    expect(answer.body.compared.least_alike[0]).toMatchObject({ query: expect.any(String) as unknown });
    // Who may change a model may not always read documents.
    expect(Object.keys(answer.body.compared.least_alike[0]).sort()).toEqual(['overlap', 'query', 'rank_correlation']);
    const before = (await call('POST', '/calm/_search', semantic('The whale sleeps'))).body.hits.hits;
    expect(await shownModel('calm')).toBe(SPARSE);
    expect((await fieldOf(server, 'calm')).change).toMatchObject({ state: 'ready', to: { inference_id: '.hybrid' } });
    expect(await step('calm', 'switch')).toBe('switched');
    const after = (await call('POST', '/calm/_search', semantic('The whale sleeps'))).body.hits.hits;
    expect(after[0]._score).toBeGreaterThan(before[0]._score);
    for (const kind of ['sparse', 'dense'] as const) {
      expect(await found(server, 'calm', kind)).toEqual(await all(server, 'calm'));
    }
    // Passages are those of the model that is searched.
    const highlight = { highlight: { fields: { body: {} } }, size: 1 };
    const shown = (await call('POST', '/calm/_search', { ...semantic('whale'), ...highlight })).body.hits.hits[0];
    expect(shown.highlight.body[0]).toContain('whale');
    // A copy has the vectors that are searched, and no change under way needs them to be encoded again.
    await call('PUT', '/copy', {
      mappings: { properties: { body: { type: 'semantic_text', inference_id: '.hybrid' } } },
    });
    const copied = await call('POST', '/_reindex?refresh=true', { source: { index: 'calm' }, dest: { index: 'copy' } });
    expect(copied.body.created, copied.text).toBe(60);
    expect(await found(server, 'copy', 'dense')).toEqual(await all(server, 'calm'));
    // An index that is closed and opened again is where it was.
    await call('POST', '/calm/_close');
    await call('POST', '/calm/_open');
    expect(await step('calm', 'rollback')).toBe('ready');
    expect(await step('calm', 'drop')).toBe('dropped');
    expect(await shownModel('calm')).toBe(SPARSE);
    expect(await found(server, 'calm', 'sparse')).toEqual(await all(server, 'calm'));
  }, 60_000);

  it('samples queries of the documents, and does not show them', async () => {
    await fill(server, 'sampled', 30);
    const { body } = await change('sampled', { inference_id: DENSE, compare: { sample: 7, size: 3 } });
    expect(body.compared).toMatchObject({ queries: 7, size: 3, overlap: expect.any(Number) as unknown });
    expect(JSON.stringify(body)).not.toContain('time.');
    expect(body.compared.least_alike).toBeUndefined();
  });

  it('keeps the old model where it is cancelled, and lets nobody else begin', async () => {
    await fill(server, 'slow', 80);
    const wanted = { inference_id: DENSE };
    const started = await change('slow', wanted, '?wait_for_completion=false&requests_per_second=5');
    await until(server, 'slow', 'filling');
    const other = await change('slow', { inference_id: '.hybrid' });
    expect([other.status, other.body.error.reason]).toEqual([
      409,
      `a model of index [slow] is being changed by task [${String(started.body.task)}]`,
    ]);
    expect(await step('slow', 'switch')).toMatch(/^409 .*is \[filling\]/);
    expect(await step('slow', 'drop')).toMatch(/^409 .*cancel the task/);
    const status = (await call('GET', `/_tasks/${String(started.body.task)}`)).body.task;
    expect(status).toMatchObject({ action: 'indices:admin/ext/model/change', cancellable: true });
    expect(status.status).toMatchObject({ total: 80, requests_per_second: 5 });
    await call('POST', `/_tasks/${String(started.body.task)}/_cancel`);
    const ended = await call('GET', `/_tasks/${String(started.body.task)}?wait_for_completion=true`);
    expect(ended.body.response, ended.text).toMatchObject({ state: 'cancelled' });
    expect((await fieldOf(server, 'slow')).change).toBeUndefined();
    expect(await found(server, 'slow', 'sparse')).toEqual(await all(server, 'slow'));
    // What an abandoned change left is not taken for vectors of the next one.
    expect((await change('slow', { inference_id: '.hybrid' })).body).toMatchObject({ state: 'switched', filled: 80 });
    expect(await found(server, 'slow', 'dense')).toEqual(await all(server, 'slow'));
  }, 60_000);

  it('ends with the index', async () => {
    await fill(server, 'going', 80);
    const started = await change('going', { inference_id: DENSE }, '?wait_for_completion=false&requests_per_second=5');
    await until(server, 'going', 'filling');
    expect((await call('DELETE', '/going')).status).toBe(200);
    const ended = await call('GET', `/_tasks/${String(started.body.task)}?wait_for_completion=true&timeout=30s`);
    expect(ended.body, ended.text).toMatchObject({ completed: true, error: { type: 'index_not_found_exception' } });
  }, 60_000);

  it('stops where documents cannot be written, and goes on when it is asked for again', async () => {
    await fill(server, 'blocked', 20);
    await call('PUT', '/blocked/_settings', { 'index.blocks.write': true });
    const stopped = await change('blocked', { inference_id: DENSE });
    expect([stopped.status, stopped.body.error.reason], stopped.text).toEqual([
      403,
      expect.stringMatching(/^a document cannot be given vectors of the new model of field \[body\]: (?!.*\.\.)/),
    ]);
    expect((await fieldOf(server, 'blocked')).change).toMatchObject({
      state: 'stopped',
      failure: expect.stringContaining('cannot be given vectors') as unknown,
    });
    const other = await change('blocked', { inference_id: '.hybrid' });
    expect(other.status, other.text).toBe(409);
    await call('PUT', '/blocked/_settings', { 'index.blocks.write': null });
    expect((await change('blocked', { inference_id: DENSE })).body).toMatchObject({ state: 'switched', filled: 20 });
  });

  it('is refused with a sentence where it makes no sense', async () => {
    await fill(server, 'odd', 1);
    const properties = {
      tokens: { type: 'sparse_vector' },
      body: { type: 'semantic_text', inference_id: SPARSE },
    };
    await call('PUT', '/partly', { mappings: { _source: { excludes: ['x'] }, properties } });
    const refused: [string, object, number, string][] = [
      ['odd', { inference_id: 'nobody' }, 404, 'Inference endpoint not found [nobody]'],
      ['odd', { inference_id: SPARSE }, 400, 'field [body] has the model [.elser-2-elasticsearch] already'],
      [
        'odd',
        { field: 'n', inference_id: DENSE },
        400,
        'field [n] is of type [integer], which holds no vectors of a model',
      ],
      ['odd', { field: 'zip', inference_id: DENSE }, 400, 'index [odd] has no field [zip]'],
      ['odd', { inference_id: DENSE, search_inference_id: SPARSE }, 400, 'they cannot be compared'],
      [
        'odd',
        { inference_id: DENSE, index_options: { sparse_vector: {} } },
        400,
        'Invalid task type for index options',
      ],
      [
        'partly',
        { field: 'tokens', source_field: 'body', inference_id: SPARSE },
        400,
        'although [source_field] is given',
      ],
      ['partly', { inference_id: DENSE }, 400, 'index [partly] does not store documents whole ([_source])'],
      ['odd,partly', { inference_id: DENSE }, 400, 'models are changed one index at a time'],
      ['none', { inference_id: DENSE }, 404, 'no such index [none]'],
    ];
    for (const [index, body, status, reason] of refused) {
      const answer = await change(index, body);
      expect([answer.status, answer.body.error.reason]).toEqual([status, expect.stringContaining(reason)]);
    }
    expect((await fieldOf(server, 'odd')).change).toBeUndefined();
    // An endpoint that a change needs cannot be deleted.
    await call('PUT', '/_inference/sparse_embedding/mine', {
      service: 'elasticsearch',
      service_settings: { model_id: '.elser_model_2', num_threads: 1, num_allocations: 1 },
    });
    expect((await change('odd', { inference_id: 'mine', switch: 'manual' })).body.state).toBe('ready');
    expect((await call('DELETE', '/_inference/mine')).status).toBe(409);
    expect(await step('odd', 'drop')).toBe('dropped');
    expect((await call('DELETE', '/_inference/mine')).status).toBe(200);
  });
});
