// Update and delete by query over HTTP: parameters, keys, tasks, and the helpers of the official client.
import { Client } from '@elastic/elasticsearch';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  await server.request('PUT', '/_ingest/pipeline/tag', { processors: [{ set: { field: 'tag', value: 'x' } }] });
});

afterAll(async () => {
  await server.stop();
});

beforeEach(async () => {
  await server.request('DELETE', '/books?ignore_unavailable=true');
  const lines = Array.from({ length: 20 }, (_, n) => `{"index":{"_id":"${String(n)}"}}\n{"n":${String(n)}}\n`);
  expect((await server.request('POST', '/books/_bulk?refresh=true', lines.join(''))).body.errors).toBe(false);
});

const count = async (query = ''): Promise<number> =>
  (await server.request('GET', `/books/_count${query}`)).body.count as number;

const finished = async (task: string): Promise<any> => {
  const { body } = await server.request('GET', `/_tasks/${task}?wait_for_completion=true&timeout=60s`);
  return body;
};

describe('by query', () => {
  it('updates and deletes with every documented parameter', async () => {
    const common =
      'allow_no_indices=true&expand_wildcards=open&ignore_unavailable=false&conflicts=proceed&scroll=1m&scroll_size=3' +
      '&search_type=query_then_fetch&search_timeout=10s&requests_per_second=-1&slices=1&refresh=true&timeout=1m' +
      '&wait_for_active_shards=1&wait_for_completion=true&routing=a&preference=_local&request_cache=false&stats=x' +
      '&version=true&terminate_after=100&max_docs=8&q=n:>4&df=n&default_operator=OR&analyzer=standard' +
      '&analyze_wildcard=false&lenient=false';
    const updated = await server.request(
      'POST',
      `/books/_update_by_query?${common}&pipeline=tag&version_type=internal`,
    );
    expect(updated.status, updated.text).toBe(200);
    expect(updated.body).toMatchObject({ timed_out: false, total: 8, updated: 8, batches: 3, failures: [] });
    expect(await count('?q=tag:x')).toBe(8);
    const deleted = await server.request('POST', `/bo*/_delete_by_query?${common}`);
    expect(deleted.status, deleted.text).toBe(200);
    expect(deleted.body).toMatchObject({ total: 8, deleted: 8, version_conflicts: 0, failures: [] });
    expect(await count()).toBe(12);
  });

  it.each([
    ['_update_by_query', 'pipeline=none&nope=1', {}, 400, 'unrecognized parameter: [nope]'],
    ['_delete_by_query', 'pipeline=tag', { query: { match_all: {} } }, 400, 'unrecognized parameter: [pipeline]'],
    ['_delete_by_query', '', {}, 400, 'query is missing'],
    ['_delete_by_query', 'scroll_size=asdf', { query: { match_all: {} } }, 400, '[scroll_size] with value [asdf]'],
    ['_delete_by_query', 'scroll_size=0', { query: { match_all: {} } }, 400, 'must be greater than 0, found [0]'],
    ['_delete_by_query', 'from=1', { query: { match_all: {} } }, 400, 'from is not supported in this context'],
    ['_update_by_query', 'requests_per_second=0', {}, 400, '[requests_per_second] must be a float greater than 0'],
    ['_update_by_query', 'slices=junk', {}, 400, '[slices] must be a positive integer or the string \\"auto\\"'],
    ['_update_by_query', 'conflicts=cat', {}, 400, 'but was [cat]'],
    ['_update_by_query', 'version_type=external', {}, 400, 'does not support [version_type]'],
    ['_update_by_query', 'max_docs=5', { max_docs: 4 }, 400, 'set to two different values [4] and [5]'],
    ['_update_by_query', '', { script: { source: 'ctx._source.n +' } }, 400, 'compile error'],
    ['_update_by_query', '', { min_score: 1 }, 400, 'min_score is not supported in this context'],
    ['_update_by_query', '', { aggs: { a: { nope: {} } } }, 400, '[nope]'],
    ['_update_by_query', '', { _source: ['n'] }, 400, '_source is not supported in this context'],
    ['_update_by_query', '', { ext: {} }, 400, '[ext] is not supported by this server'],
    ['_update_by_query', '', { indices_boost: 1 }, 400, 'indices_boost'],
    ['_update_by_query', '', { junk: {} }, 400, 'Unknown key for a START_OBJECT in [junk].'],
    ['_update_by_query', '', { slice: { id: 2, max: 2 } }, 400, 'max must be greater than id'],
  ])('refuses %s?%s %j', async (endpoint, query, body, status, reason) => {
    const answer = await server.request('POST', `/books/${endpoint}?${query}`, body);
    expect(answer.text).toContain(reason);
    expect(answer.status).toBe(status);
    expect(await count('?q=tag:x')).toBe(0);
    expect(await count()).toBe(20);
  });

  it.each(['_update_by_query', '_delete_by_query', '_reindex'])('paces and cancels a running %s', async (endpoint) => {
    const path = endpoint === '_reindex' ? '/_reindex' : `/books/${endpoint}`;
    const query = { match_all: {} };
    const body =
      endpoint === '_reindex' ? { source: { index: 'books', query, size: 2 }, dest: { index: 'copy' } } : { query };
    const size = endpoint === '_reindex' ? '' : '&scroll_size=2';
    const started = await server.request(
      'POST',
      `${path}?wait_for_completion=false&requests_per_second=0.5${size}`,
      body,
    );
    expect(Object.keys(started.body), started.text).toEqual(['task']);
    const { task } = started.body;
    const node = task.split(':')[0];
    // A job that is cancelled before it has counted the documents of its query says [total: 0] in its answer.
    await vi.waitFor(async () => {
      expect((await server.request('GET', `/_tasks/${task}`)).body.task.status.total).toBe(20);
    }, 20_000);
    const slower = await server.request('POST', `/${endpoint}/${task}/_rethrottle?requests_per_second=0.25`);
    expect(slower.body.nodes[node].tasks[task].status.requests_per_second).toBe(0.25);
    const refused = await server.request('POST', `/${endpoint}/${task}/_rethrottle?requests_per_second=-7`);
    expect([refused.status, refused.body.error.type]).toEqual([400, 'illegal_argument_exception']);
    const listed = await server.request('GET', `/_tasks?actions=*reindex,*byquery&detailed`);
    expect(Object.keys(listed.body.nodes[node].tasks)).toEqual([task]);
    const cancelled = await server.request('POST', `/_tasks/${task}/_cancel?wait_for_completion=true`);
    expect(cancelled.body.nodes[node].tasks[task].cancelled).toBe(true);
    expect((await finished(task)).response).toMatchObject({ canceled: 'by user request', total: 20 });
  });

  it('shows, lists and cancels reindexes in a form of their own', async () => {
    const begin = async (slow: string): Promise<string> => {
      const body = { source: { index: 'books', size: 2 }, dest: { index: 'copied' } };
      return (await server.request('POST', `/_reindex?wait_for_completion=false${slow}`, body)).body.task as string;
    };
    const done = await begin('');
    const whole = await server.request('GET', `/_reindex/${done}?wait_for_completion=true`);
    expect(whole.body, whole.text).toMatchObject({ completed: true, id: done, cancelled: false });
    expect(whole.body).toMatchObject({ description: expect.stringContaining('[copied]'), response: { total: 20 } });
    const slow = await begin('&requests_per_second=0.5');
    const byQuery = await server.request('POST', '/books/_update_by_query?wait_for_completion=false', {});
    const { body } = await server.request('GET', '/_reindex');
    expect(body.reindex.map(({ id, status }: { id: string; status?: object }) => [id, status])).toEqual([
      [slow, undefined],
    ]);
    const detailed = await server.request('GET', '/_reindex?detailed=true');
    expect(detailed.body.reindex[0].status).toMatchObject({ requests_per_second: 0.5 });
    expect((await server.request('GET', `/_reindex/${slow}`)).body).toMatchObject({ completed: false, id: slow });
    const ended = await server.request('POST', `/_reindex/${slow}/_cancel`);
    expect(ended.body, ended.text).toMatchObject({
      completed: true,
      cancelled: true,
      response: { canceled: 'by user request' },
    });
    for (const [method, path, reason] of [
      ['POST', `/_reindex/${slow}/_cancel`, `reindex task [${slow}] either not found or completed`],
      ['GET', `/_reindex/${byQuery.body.task}`, `Reindex operation [${byQuery.body.task}] not found`],
      ['GET', '/_reindex/other:1', 'Reindex operation [other:1] not found'],
    ] as const) {
      const none = await server.request(method, path);
      expect([none.status, none.body.error.reason]).toEqual([404, reason]);
    }
  });

  it('warns of deprecated forms', async () => {
    const answer = await server.request('POST', '/_reindex', {
      size: 1,
      source: { index: 'books', sort: { n: 'desc' } },
      dest: { index: 'sorted' },
    });
    expect(answer.body).toMatchObject({ total: 1, created: 1 });
    const warnings = String(answer.headers['warning']);
    expect(warnings).toContain('Deprecated field [size] used, expected [max_docs] instead');
    expect(warnings).toContain('The sort option in reindex is deprecated. Instead consider using query filtering');
    expect((await server.request('GET', '/sorted/_doc/19')).status).toBe(200);
  });

  it('is what the official client expects', async () => {
    const client = new Client({ node: server.url, auth: { apiKey: server.apiKey } });
    const updated = await client.updateByQuery({ index: 'books', pipeline: 'tag', slices: 2, refresh: true });
    expect([updated.updated, updated.total, updated.failures]).toEqual([20, 20, []]);
    const { task } = await client.deleteByQuery({
      index: 'books',
      query: { range: { n: { gte: 5 } } },
      wait_for_completion: false,
      requests_per_second: 5,
      scroll_size: 5,
      refresh: true,
    });
    await client.deleteByQueryRethrottle({ task_id: String(task), requests_per_second: -1 });
    const done = await client.tasks.get({ task_id: String(task), wait_for_completion: true });
    expect(done.completed).toBe(true);
    expect(await count()).toBe(5);
    const dry = await client.transport.request<{ documents: { total: number } }>({
      method: 'POST',
      path: '/_reindex',
      querystring: { dry_run: true },
      body: { source: { index: 'books' }, dest: { index: 'other' } },
    });
    expect(dry.documents).toEqual({ total: 5, to_write: 5, dropped: 0, failed: 0 });
    expect((await server.request('HEAD', '/other')).status).toBe(404);
    await client.close();
  });

  it('leaves places for the jobs of other keys, however many one key begins', async () => {
    const keyFor = async (name: string): Promise<string> => {
      const role_descriptors = { r: { indices: [{ names: ['books'], privileges: ['all'] }], cluster: ['manage'] } };
      return (await server.request('POST', '/_security/api_key', { name, role_descriptors })).body.encoded as string;
    };
    const [greedy, other] = [await keyFor('greedy'), await keyFor('other')];
    // One document each, and then a wait for hours.
    const slow =
      '/books/_update_by_query?wait_for_completion=false&requests_per_second=0.001&scroll_size=1&conflicts=proceed';
    const begun: string[] = [];
    const refused: number[] = [];
    for (let job = 0; job < 40; job += 1) {
      const { status, body } = await server.request('POST', slow, undefined, { apiKey: greedy });
      if (status === 200) begun.push(body.task as string);
      else refused.push(status);
    }
    expect([begun.length, new Set(refused)]).toEqual([32, new Set([429])]);
    const fine = await server.request('POST', '/books/_update_by_query?conflicts=proceed', undefined, {
      apiKey: other,
    });
    expect([fine.status, fine.text]).toEqual([200, expect.stringContaining('"total":20')]);
    expect((await server.request('POST', '/books/_update_by_query?conflicts=proceed')).status).toBe(200);
    for (const task of begun) await server.request('POST', `/_tasks/${task}/_cancel`);
    for (const task of begun) await finished(task);
    expect((await server.request('POST', slow, undefined, { apiKey: greedy })).status).toBe(200);
    await server.request('POST', '/_tasks/_cancel?actions=*byquery*');
  }, 120_000);
});
