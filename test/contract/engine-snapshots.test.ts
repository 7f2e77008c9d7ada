// Backups and their way back: one suite for every engine behind the routes, as in engines.test.ts. A cluster needs a folder for them.
import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ENGINES, NODE } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

const WAIT = 'wait_for_completion=true';

describe.each(ENGINES)('snapshots over the $name engine', ({ name: engine, start }) => {
  const run = randomBytes(4).toString('hex');
  const [index, pipeline, repository, key] = ['index', 'pipeline', 'repository', 'key'].map(
    (of) => `backup-${run}-${of}`,
  );
  let server: RunningServer;
  let hasFolder = false;

  async function ask(method: string, path: string, body?: unknown, status = 200): Promise<any> {
    const answer = await server.request(method, path, body);
    expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
    return answer.body;
  }
  const found = async (): Promise<unknown> => {
    const query = { semantic: { field: 'content', query: 'the largest animal' } };
    const { hits } = await ask('POST', `/${index}/_search`, { query });
    return hits.hits.map(({ _id, _source }: any) => [_id, _source]);
  };

  beforeAll(async () => {
    server = await start({ args: ['--repo-path', mkdtempSync(join(tmpdir(), 'sparrow-backups-'))] });
    const made = await server.request('PUT', `/_snapshot/${repository}`, {
      type: 'fs',
      settings: { location: repository },
    });
    hasFolder = made.status === 200;
    // A cluster that nobody gave a folder for repositories says so.
    if (!hasFolder) expect(made.text).toContain('path.repo');
    await ask('PUT', `/${index}`, {
      mappings: { properties: { content: { type: 'semantic_text', inference_id: '.sparse_encoder_model_2' } } },
    });
    const content = 'Blue whales are larger than anything else alive.';
    await ask('PUT', `/${index}/_doc/whale?refresh=true`, { content }, 201);
    await ask('PUT', `/_ingest/pipeline/${pipeline}`, { processors: [{ set: { field: 'a', value: 1 } }] });
  }, 180_000);
  afterAll(async () => {
    await server.request('DELETE', `/${index},${index}-copy?ignore_unavailable=true`);
    await server.request('DELETE', `/_ingest/pipeline/${pipeline}`);
    await server.request('DELETE', `/_snapshot/${repository}/*`);
    await server.request('DELETE', `/_snapshot/${repository}`);
    await server.stop();
  });

  it('bring an index with its passages back, also under another name', async (context) => {
    if (!hasFolder) context.skip();
    const before = await found();
    const { snapshot } = await ask('PUT', `/_snapshot/${repository}/one?${WAIT}`, {
      indices: index,
      include_global_state: false,
    });
    expect(snapshot).toMatchObject({ snapshot: 'one', state: 'SUCCESS', indices: [index] });
    const renamed = { rename_pattern: '(.+)', rename_replacement: '$1-copy' };
    await ask('POST', `/_snapshot/${repository}/one/_restore?${WAIT}`, renamed);
    expect((await ask('GET', `/${index}-copy/_count`)).count).toBeGreaterThan(0);
    await ask('DELETE', `/${index}`);
    const { snapshot: restored } = await ask('POST', `/_snapshot/${repository}/one/_restore?${WAIT}`);
    expect(restored.indices).toEqual([index]);
    expect(await found()).toEqual(before);
    // Another index has had the name until a moment ago.
    await ask('DELETE', `/${index}`);
    await ask('PUT', `/${index}`, { mappings: { properties: { content: { type: 'text' } } } });
    await ask('PUT', `/${index}/_doc/plain?refresh=true`, { content: 'Blue' }, 201);
    const query = { semantic: { field: 'content', query: 'the largest animal' } };
    await ask('POST', `/${index}/_search`, { query }, 400);
    await ask('POST', `/${index}/_close`);
    await ask('POST', `/_snapshot/${repository}/one/_restore?${WAIT}`);
    expect(await found()).toEqual(before);
  }, 180_000);

  it('bring pipelines and endpoints back with the global state, and keys where they are asked for', async (context) => {
    if (!hasFolder) context.skip();
    const loseNewKeys = await sharedKeys();
    const made = await ask('POST', '/_security/api_key', { name: key });
    const everything = { indices: `${index}`, include_global_state: true, feature_states: ['security'] };
    const { snapshot } = await ask('PUT', `/_snapshot/${repository}/two?${WAIT}`, everything);
    expect(snapshot).toMatchObject({ indices: [index], feature_states: [{ feature_name: 'security' }] });
    const { snapshots } = await ask('GET', `/_snapshot/${repository}/_all`);
    expect(snapshots.map((one: any) => [one.snapshot, one.indices])).toEqual([
      ['one', [index]],
      ['two', [index]],
    ]);
    await ask('DELETE', `/_ingest/pipeline/${pipeline}`);
    await ask('DELETE', `/${index}`);
    const answered = async (): Promise<number> =>
      (await server.request('GET', '/', undefined, { apiKey: made.encoded })).status;
    await loseNewKeys?.();
    await expect.poll(answered).toBe(loseNewKeys === undefined ? 200 : 401);
    await ask('POST', `/_snapshot/${repository}/two/_restore?${WAIT}`, everything);
    expect(Object.keys(await ask('GET', `/_ingest/pipeline/${pipeline}`))).toEqual([pipeline]);
    await expect.poll(answered).toBe(200);
    // Nothing of how it was done is left.
    const left = await ask('GET', '/_cat/indices?format=json&expand_wildcards=all');
    expect(left.filter(({ index: name }: any) => name.includes('restored'))).toEqual([]);
  });

  it('restore none of the hidden indices by an exclusion, and none under their names', async (context) => {
    if (!hasFolder) context.skip();
    await ask('PUT', `/_snapshot/${repository}/all?${WAIT}`, { indices: index, include_global_state: true });
    // All others than what is excluded would be Sparrow's own as well.
    const others = await server.request('POST', `/_snapshot/${repository}/all/_restore?${WAIT}`, {
      ...{ indices: '-nothing', include_global_state: false },
      ...{ rename_pattern: '(.+)', rename_replacement: '$1-rest' },
    });
    expect([others.status, others.body.error.type]).toEqual([404, 'index_not_found_exception']);
    await ask('DELETE', `/_snapshot/${repository}/all`);
    if (engine === 'native') return;
    const hidden = { indices: index, rename_pattern: '.+', rename_replacement: '.sparrow-mine' };
    const refused = await server.request('POST', `/_snapshot/${repository}/one/_restore?${WAIT}`, hidden);
    expect(refused.status).toBe(400);
  });

  it('say what is wrong', async (context) => {
    if (!hasFolder) context.skip();
    const missing = await server.request('GET', `/_snapshot/${repository}/nowhere`);
    expect([missing.status, missing.body.error.type]).toEqual([404, 'snapshot_missing_exception']);
    const other = await server.request('PUT', `/_snapshot/${repository}/three`, { feature_states: ['kibana'] });
    expect([other.status, other.body.error.reason]).toEqual([400, expect.stringContaining('kibana')]);
    const taken = await server.request('POST', `/_snapshot/${repository}/one/_restore?${WAIT}`);
    expect(taken.status).toBeGreaterThanOrEqual(400);
    expect(taken.text).toContain('open index with same name already exists');
  });

  /** The list of keys that the servers of a cluster share, and what puts it back: the keys that came later are lost then. */
  async function sharedKeys(): Promise<(() => Promise<void>) | undefined> {
    if (engine === 'native') return undefined;
    const place = `${NODE}/.sparrow-keys/_doc/api_keys`;
    const { _source } = (await (await fetch(place)).json()) as { _source: object };
    return async () => {
      const headers = { 'content-type': 'application/json' };
      const put = await fetch(place, { method: 'PUT', headers, body: JSON.stringify(_source) });
      expect(put.ok).toBe(true);
    };
  }
});
