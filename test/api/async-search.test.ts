// Searches that nobody waits for: their answers in Elasticsearch's shape, whose they are, how they end, and how many may be kept.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

import { serve } from '@hono/node-server';
import { type Cancel, EngineError, type EngineReply, type EngineRequest } from '@sparrow-search/engine';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { fakeApp } from '../support/app.js';
import { type Answer, type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
let keys: Record<'reader' | 'other' | 'stranger', string>;

const call = (method: string, path: string, body?: unknown, apiKey?: string): Promise<Answer> =>
  server.request(method, path, body, apiKey === undefined ? {} : { apiKey });
const KEPT = 'keep_on_completion=true';
const all = { query: { match_all: {} } };

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  for (const index of ['mine', 'other']) {
    await call('PUT', `/${index}/_doc/1?refresh=true`, { tag: 'red', n: 9_007_199_254_740_992 });
  }
  const key = async (role: object): Promise<string> =>
    (await call('POST', '/_security/api_key', { name: 'k', role_descriptors: { role } })).body.encoded as string;
  keys = {
    reader: await key({ indices: [{ names: ['mine'], privileges: ['read'] }] }),
    other: await key({ indices: [{ names: ['mine'], privileges: ['read'] }] }),
    stranger: await key({ cluster: ['manage'] }),
  };
});

afterAll(async () => {
  await server.stop();
});

describe('an asynchronous search', () => {
  it('that ends in time is answered at once, and not kept', async () => {
    const { status, body, text } = await call('POST', '/mine/_async_search', all);
    expect(status, text).toBe(200);
    expect(body).toMatchObject({ is_partial: false, is_running: false, response: { timed_out: false } });
    expect(Object.keys(body)).toEqual([
      ...['is_partial', 'is_running', 'start_time_in_millis', 'expiration_time_in_millis'],
      ...['completion_time_in_millis', 'response'],
    ]);
    expect(body.expiration_time_in_millis - body.start_time_in_millis).toBe(5 * 24 * 60 * 60 * 1000);
    const direct = await call('POST', '/mine/_search', all);
    expect(body.response.hits).toEqual(direct.body.hits);
  });

  it('is kept where that is asked for, shown, and deleted', async () => {
    const begun = await call('POST', `/mine/_async_search?${KEPT}&keep_alive=1h&rest_total_hits_as_int=true`, all);
    const { id } = begun.body;
    expect(id).toMatch(/^[\w-]{32}$/);
    expect(begun.body.response.hits.total).toBe(1);
    const shown = await call('GET', `/_async_search/${id}?wait_for_completion_timeout=1s`);
    expect(shown.body).toEqual(begun.body);
    // The digits of a document are those that were written, and the answer can have another shape.
    expect(shown.text).toContain('9007199254740992');
    expect((await call('GET', `/_async_search/${id}?filter_path=response.hits.total`)).body).toEqual({
      response: { hits: { total: 1 } },
    });
    const { response, ...head } = begun.body;
    const status = await call('GET', `/_async_search/status/${id}`);
    expect(status.body).toEqual({ ...head, _shards: response._shards, completion_status: 200 });
    const longer = await call('GET', `/_async_search/${id}?keep_alive=2d`);
    expect(longer.body.expiration_time_in_millis).toBeGreaterThan(begun.body.expiration_time_in_millis);
    expect((await call('DELETE', `/_async_search/${id}`)).body).toEqual({ acknowledged: true });
    for (const [method, path] of [
      ['GET', `/_async_search/${id}`],
      ['GET', `/_async_search/status/${id}`],
      ['DELETE', `/_async_search/${id}`],
      ['GET', '/_async_search/__proto__'],
    ] as const) {
      const gone = await call(method, path);
      expect([gone.status, gone.body.error.type]).toEqual([404, 'resource_not_found_exception']);
    }
  });

  it('ends with its time', async () => {
    const { id } = (await call('POST', `/mine/_async_search?${KEPT}&keep_alive=1s`, all)).body;
    expect((await call('GET', `/_async_search/${id}`)).status).toBe(200);
    await expect.poll(async () => (await call('GET', `/_async_search/${id}`)).status).toBe(404);
  });

  it.each([
    ['/gone/_async_search', all, 404, 'index_not_found_exception'],
    ['/mine/_async_search', { quary: {} }, 400, 'quary'],
    [`/mine/_async_search?${KEPT}`, { query: { nope: {} } }, 400, 'nope'],
    ['/mine/_async_search?scroll=1m', all, 400, 'unrecognized parameter: [scroll]'],
    ['/mine/_async_search?keep_alive=0', all, 400, '[keep_alive] must be from [1s] to [30d], got: 0'],
    ['/mine/_async_search?keep_alive=-1', all, 400, '[keep_alive] must be'],
    ['/mine/_async_search?keep_alive=31d', all, 400, '[keep_alive] must be'],
    ['/mine/_async_search?keep_alive=soon', all, 400, '[keep_alive]'],
    ['/mine/_async_search?wait_for_completion_timeout=5', all, 400, '[wait_for_completion_timeout]'],
    ['/mine/_async_search?keep_on_completion=maybe', all, 400, 'only [true] or [false]'],
  ])('that fails at once is refused as a search: %s', async (path, body, status, reason) => {
    const answer = await call('POST', path, body);
    expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(reason)]);
  });
});

describe('a search of a key', () => {
  it('is there for that key only', async () => {
    const { id } = (await call('POST', `/mine/_async_search?${KEPT}`, all, keys.reader)).body;
    expect((await call('GET', `/_async_search/${id}`, undefined, keys.reader)).status).toBe(200);
    const missing = (path: string): string => path.replaceAll(id as string, 'x');
    for (const [method, path] of [
      ['GET', `/_async_search/${id}`],
      ['GET', `/_async_search/status/${id}`],
      ['DELETE', `/_async_search/${id}`],
    ] as const) {
      // The owner of the server sees none of another key's either.
      for (const apiKey of [keys.other, server.apiKey]) {
        const theirs = await call(method, path, undefined, apiKey);
        const none = await call(method, missing(path), undefined, apiKey);
        expect([theirs.status, missing(theirs.text)]).toEqual([404, none.text]);
      }
      expect((await call(method, path, undefined, keys.stranger)).status).toBe(403);
    }
    expect((await call('GET', `/_async_search/${id}`, undefined, keys.reader)).status).toBe(200);
  });

  it('sees what the key may see', async () => {
    const refused = await call('POST', '/other/_async_search', all, keys.reader);
    expect([refused.status, refused.body.error.type]).toEqual([403, 'security_exception']);
    expect((await call('POST', '/mine/_async_search', all, keys.stranger)).status).toBe(403);
    const { body } = await call('POST', '/_async_search', all, keys.reader);
    expect(body.response.hits.hits.map((hit: any) => hit._index)).toEqual(['mine']);
    const lookup = { query: { terms: { tag: { index: 'other', id: '1', path: 'tag' } } } };
    expect((await call('POST', '/mine/_async_search', lookup, keys.reader)).status).toBe(403);
  });

  it('is gone when the key may do something else', async () => {
    const role = (names: string[]): object => ({ role: { indices: [{ names, privileges: ['read'] }] } });
    const made = await call('POST', '/_security/api_key', { name: 'n', role_descriptors: role(['mine', 'other']) });
    const { id: keyId, encoded } = made.body;
    const { id } = (await call('POST', `/_async_search?${KEPT}`, all, encoded as string)).body;
    const show = (): Promise<Answer> => call('GET', `/_async_search/${id}`, undefined, encoded as string);
    expect((await show()).status).toBe(200);
    await call('PUT', `/_security/api_key/${keyId}`, { role_descriptors: role(['mine']) });
    expect((await show()).status).toBe(404);
    await call('DELETE', '/_security/api_key', { ids: [keyId] });
    expect((await show()).status).toBe(401);
  });
});

/** An application over an engine whose searches end when they are told to. */
async function held() {
  const app = await fakeApp({ maxBodyBytes: 200 * 1024 * 1024 });
  const running: { end: (body: string) => void; fail: (error: Error) => void; isStopped: boolean }[] = [];
  app.engine.execute = (_: EngineRequest, __?: Uint8Array, cancel?: Cancel): Promise<EngineReply> =>
    new Promise((resolve, reject) => {
      const one = {
        end: (body: string) => {
          resolve({ status: 200, body: Buffer.from(body) });
        },
        fail: reject,
        isStopped: false,
      };
      cancel?.(() => {
        one.isStopped = true;
        reject(new EngineError(400, Buffer.from('{"error":{"type":"task_cancelled_exception"},"status":400}')));
      });
      running.push(one);
    });
  const ask = async (method: string, path: string, body?: object): Promise<{ status: number; body: any }> => {
    const response = await app.call(method, path, body);
    return { status: response.status, body: await response.json() };
  };
  const start = async (query = ''): Promise<any> =>
    (await ask('POST', `/b/_async_search?wait_for_completion_timeout=0${query}`, {})).body;
  return { ...app, ask, start, running };
}

const RESULT =
  '{"took":1,"timed_out":false,"_shards":{"total":3,"successful":2,"skipped":0,"failed":1},"hits":{"hits":[]}}';

describe('a search that runs', () => {
  it('is shown as running until it has ended', async () => {
    const { ask, start, running } = await held();
    const begun = await start('&rest_total_hits_as_int=true');
    expect(begun).toMatchObject({ is_partial: true, is_running: true, response: { hits: { total: 0, hits: [] } } });
    expect(begun.completion_time_in_millis).toBeUndefined();
    const shown = (await ask('GET', `/_async_search/${begun.id}`)).body;
    expect(shown).toMatchObject({ is_running: true, response: { hits: { total: { value: 0, relation: 'gte' } } } });
    const { body: status } = await ask('GET', `/_async_search/status/${begun.id}`);
    expect(status).toMatchObject({ is_running: true, _shards: { total: 0 } });
    expect(status.completion_status).toBeUndefined();
    const waiting = ask('GET', `/_async_search/${begun.id}?wait_for_completion_timeout=1m`);
    running[0]?.end(RESULT);
    // A shard failed: there may be more than was found.
    expect((await waiting).body).toMatchObject({ is_partial: true, is_running: false, response: { took: 1 } });
    expect((await ask('GET', `/_async_search/status/${begun.id}`)).body).toMatchObject({
      is_running: false,
      _shards: { total: 3, failed: 1 },
      completion_status: 200,
    });
  });

  it('keeps the error that it ends with', async () => {
    const { ask, start, running } = await held();
    const { id } = await start();
    const error = { type: 'some_exception', reason: 'why', root_cause: [] };
    running[0]?.fail(new EngineError(503, Buffer.from(JSON.stringify({ error, status: 503 }))));
    const shown = await ask('GET', `/_async_search/${id}?wait_for_completion_timeout=1m`);
    expect(shown.status).toBe(503);
    expect(shown.body).toMatchObject({ id, is_partial: true, is_running: false, error, status: 503 });
    expect((await ask('GET', `/_async_search/status/${id}`)).body).toMatchObject({ completion_status: 503 });
  });

  it('is stopped when it is deleted, when its time is over, and when who asked goes away', async () => {
    const { ask, start, running, app, authorization } = await held();
    const { id } = await start();
    const waiting = ask('GET', `/_async_search/${id}?wait_for_completion_timeout=1m`);
    expect((await ask('DELETE', `/_async_search/${id}`)).status).toBe(200);
    expect(running[0]?.isStopped).toBe(true);
    expect((await waiting).status).toBe(404);
    await start('&keep_alive=1s');
    await expect.poll(() => running[1]?.isStopped).toBe(true);
    const listening = serve({ fetch: app.fetch, port: 0 });
    await once(listening, 'listening');
    const { port } = listening.address() as AddressInfo;
    const leaving = new AbortController();
    const url = `http://127.0.0.1:${String(port)}/b/_async_search?wait_for_completion_timeout=1m`;
    const asking = fetch(url, { method: 'POST', headers: { authorization }, signal: leaving.signal });
    await expect.poll(() => running.length).toBe(3);
    leaving.abort();
    await expect(asking).rejects.toThrow();
    await expect.poll(() => running[2]?.isStopped).toBe(true);
    listening.close();
  });

  it('is one of at most a thousand', async () => {
    const { ask, start, running } = await held();
    let last: any;
    for (let number = 0; number < 1000; number += 1) last = await start();
    expect(running).toHaveLength(1000);
    const more = await ask('POST', '/b/_async_search', {});
    expect([more.status, more.body.error.reason]).toEqual([429, expect.stringContaining('at most [1000]')]);
    await ask('DELETE', `/_async_search/${last.id}`);
    expect((await start()).is_running).toBe(true);
  });

  it('leaves as much room for others as it takes, in number and in bytes', async () => {
    const { keys: store, app, ask, start, running } = await held();
    const roles = { r: { cluster: [], indices: [{ names: ['b'], privileges: ['read'] }] } } as any;
    const { encoded } = await store.create({ name: 'k', roles, roleDescriptors: {}, metadata: {} }, Date.now());
    const headers = { authorization: `ApiKey ${encoded}` };
    const asKey = async (method: string, path: string): Promise<{ status: number; body: any }> => {
      const response = await app.request(path, { method, headers });
      return { status: response.status, body: await response.json() };
    };
    const path = '/b/_async_search?wait_for_completion_timeout=0';
    for (let number = 0; number < 500; number += 1) expect((await asKey('POST', path)).status).toBe(200);
    expect((await asKey('POST', path)).status).toBe(429);
    const long = `{"hits":"${'x'.repeat(33 * 1024 * 1024)}"}`;
    const { id } = await start();
    running[500]?.end(long);
    const kept = await ask('GET', `/_async_search/${id}?wait_for_completion_timeout=1m&filter_path=is_running`);
    expect(kept).toEqual({ status: 200, body: { is_running: false } });
    // A second one of that size is too much for all of them together.
    const second = (await start()).id as string;
    running[501]?.end(long);
    const refused = await ask('GET', `/_async_search/${second}?wait_for_completion_timeout=1m`);
    expect([refused.status, refused.body.error.type]).toEqual([429, 'es_rejected_execution_exception']);
    await ask('DELETE', `/_async_search/${id}`);
  });
});
