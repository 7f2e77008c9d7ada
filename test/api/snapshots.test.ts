// Snapshots and restores against the real engine.
import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { readPage, valueOf } from '../support/prometheus.js';
import { type Answer, type RunningServer, logLines, startServer } from '../support/server.js';

const ARGS = ['--deploy-at-start', 'false'];
const WAIT = '?wait_for_completion=true';
let repositories: string;
let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);
const reason = ({ status, body }: Answer): [number, string] => [status, body.error?.reason as string];

const start = (): Promise<RunningServer> => startServer({ args: [...ARGS, '--repo-path', repositories] });

async function register(name: string, settings: object = {}, on = server): Promise<void> {
  const answer = await on.request('PUT', `/_snapshot/${name}`, {
    type: 'fs',
    settings: { location: name, ...settings },
  });
  expect(answer.status, answer.text).toBe(200);
}

async function snapshot(path: string, body: object = {}): Promise<any> {
  const answer = await call('PUT', `/_snapshot/${path}${WAIT}`, body);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.snapshot;
}

/** Files below a folder, as paths. */
async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

async function load(index: string, from: number, count: number): Promise<void> {
  const words = ['red', 'green', 'blue', 'night', 'river'];
  const lines = Array.from({ length: count }, (_, at) => {
    const n = from + at;
    const text = [words[n % 5], words[(n * 3 + 1) % 5], `w${String(n % 17)}`].join(' ');
    const document = {
      text,
      n,
      kind: `k${String(n % 3)}`,
      sparse: { a: 1 + (n % 7), [`t${String(n % 11)}`]: 2 },
      dense: [n % 5, 1, n % 3],
    };
    return `{"index":{"_id":"${String(n)}"}}\n${JSON.stringify(document)}\n`;
  });
  const answer = await call('POST', `/${index}/_bulk`, lines.join(''));
  expect(answer.body.errors, answer.text).toBe(false);
}

const MAPPINGS = {
  properties: {
    text: { type: 'text', analyzer: 'own' },
    n: { type: 'integer' },
    kind: { type: 'keyword' },
    sparse: { type: 'sparse_vector' },
    dense: { type: 'dense_vector', dims: 3, similarity: 'l2_norm' },
  },
};
const SETTINGS = {
  number_of_replicas: 0,
  analysis: { analyzer: { own: { type: 'custom', tokenizer: 'standard', filter: ['lowercase'] } } },
};
const SEARCHES = [
  { query: { match: { text: 'red night w3' } }, size: 50 },
  { query: { sparse_vector: { field: 'sparse', query_vector: { a: 0.5, t3: 2 } } }, size: 50 },
  { query: { weighted_tokens: { sparse: { tokens: { a: 0.5, t4: 1 } } } }, size: 50 },
  { knn: { field: 'dense', query_vector: [3, 1, 2], k: 20, num_candidates: 100 }, size: 20 },
  { size: 0, aggs: { kinds: { terms: { field: 'kind' }, aggs: { sum: { sum: { field: 'n' } } } } } },
  { query: { range: { n: { gte: 40 } } }, sort: [{ n: 'desc' }], size: 100 },
];

/** What an index answers: each document, and the results of searches. */
async function answersOf(on: RunningServer, index: string): Promise<unknown> {
  const answers: unknown[] = [];
  const all = await on.request('POST', `/${index}/_search`, {
    query: { match_all: {} },
    sort: [{ n: 'asc' }],
    size: 10_000,
    seq_no_primary_term: true,
    version: true,
  });
  expect(all.status, all.text).toBe(200);
  for (const body of SEARCHES) {
    const answer = await on.request('POST', `/${index}/_search`, body);
    expect(answer.status, answer.text).toBe(200);
    answers.push([answer.body.hits, answer.body.aggregations ?? null]);
  }
  return [all.body.hits, answers];
}

beforeAll(async () => {
  repositories = await mkdtemp(join(tmpdir(), 'sparrow-repositories-'));
  server = await start();
});

afterAll(async () => {
  await server.stop();
});

describe('snapshots', () => {
  it('come back in an empty server: documents, searches, mappings, settings, aliases, global state', async () => {
    await call('PUT', '/books', {
      mappings: MAPPINGS,
      settings: SETTINGS,
      aliases: { few: { filter: { term: { kind: 'k1' } } } },
    });
    await load('books', 0, 100);
    await call('POST', '/books/_flush');
    await load('books', 60, 100);
    await call('DELETE', '/books/_doc/7');
    await call('PUT', '/books/_mapping', { properties: { late: { type: 'text' } } });
    await call('PUT', '/books/_doc/late', { late: 'a late field', n: 1000 });
    await call('POST', '/books/_refresh');
    await call('PUT', '/_ingest/pipeline/p', { processors: [{ set: { field: 'x', value: 1 } }] });
    await call('PUT', '/_component_template/c', { template: { settings: { number_of_replicas: 0 } } });
    await call('PUT', '/_index_template/t', { index_patterns: ['t-*'], composed_of: ['c'] });
    await call('PUT', '/_template/old', { index_patterns: ['old-*'] });
    await call('PUT', '/_cluster/settings', { persistent: { 'search.max_buckets': 100 } });
    await register('moved');
    const made = await snapshot('moved/one', { metadata: { why: 'test' } });
    expect(made).toMatchObject({ state: 'SUCCESS', indices: ['books'], metadata: { why: 'test' } });

    const other = await start();
    try {
      await register('moved', { readonly: true }, other);
      const listed = await other.request('GET', '/_snapshot/moved/_all');
      expect(listed.body.snapshots).toEqual([made]);
      expect((await other.request('PUT', '/_snapshot/moved/two')).body.error.reason).toContain('readonly');
      expect((await other.request('DELETE', '/_snapshot/moved/one')).body.error.reason).toContain('readonly');
      const restored = await other.request('POST', `/_snapshot/moved/one/_restore${WAIT}`, {
        include_global_state: true,
      });
      expect(restored.body).toEqual({
        snapshot: { snapshot: 'one', indices: ['books'], shards: { total: 1, failed: 0, successful: 1 } },
      });
      expect(await answersOf(other, 'books')).toEqual(await answersOf(server, 'books'));
      for (const path of [
        '/books/_mapping',
        '/books/_alias',
        '/_ingest/pipeline',
        '/_index_template',
        '/_component_template',
        '/_template',
        '/_cluster/settings',
      ]) {
        expect((await other.request('GET', path)).body, path).toEqual((await call('GET', path)).body);
      }
      const settings = (answer: Answer): any => answer.body.books.settings.index;
      const [ours, theirs] = [
        settings(await call('GET', '/books/_settings')),
        settings(await other.request('GET', '/books/_settings')),
      ];
      expect(theirs.uuid).not.toBe(ours.uuid);
      expect({ ...theirs, uuid: '' }).toEqual({ ...ours, uuid: '' });
      const recovery = (await other.request('GET', '/books/_recovery')).body.books.shards[0];
      expect(recovery).toMatchObject({
        type: 'SNAPSHOT',
        source: { repository: 'moved', snapshot: 'one', index: 'books' },
      });
      // It is an index like any other: it takes writes, and is there after a restart.
      await other.request('PUT', '/books/_doc/new?refresh=true', { text: 'new', n: 1001 });
      await other.kill();
      const again = await startServer({ data: other.data, args: ARGS });
      expect((await again.request('GET', '/books/_count')).body.count).toBe(161);
      await again.stop();
    } finally {
      await other.kill();
    }
  });

  it('writes only what is new, and deletes only what no other snapshot has', async () => {
    await call('PUT', '/grow', { mappings: MAPPINGS, settings: SETTINGS });
    await load('grow', 0, 200);
    await register('grow');
    const blobs = async (): Promise<string[]> => filesBelow(join(repositories, 'grow', 'blobs'));
    const status = async (name: string): Promise<any> =>
      (await call('GET', `/_snapshot/grow/${name}/_status`)).body.snapshots[0].stats;
    await snapshot('grow/one', { indices: 'grow' });
    const first = await blobs();
    expect((await status('one')).incremental).toEqual((await status('one')).total);

    await snapshot('grow/same', { indices: 'grow' });
    expect(await blobs()).toEqual(first);
    expect((await status('same')).incremental).toEqual({ file_count: 0, size_in_bytes: 0 });

    await load('grow', 200, 10);
    await snapshot('grow/more', { indices: 'grow' });
    const { incremental, total } = await status('more');
    expect(incremental.file_count).toBeGreaterThan(0);
    expect(incremental.size_in_bytes).toBeLessThan(total.size_in_bytes);
    expect((await blobs()).length).toBe(first.length + (incremental.file_count as number));

    expect((await call('PUT', '/_snapshot/grow/one/_clone/twin', { indices: 'grow' })).body).toEqual({
      acknowledged: true,
    });
    const named = async (query: string): Promise<string[]> =>
      (await call('GET', `/_snapshot/grow/${query}`)).body.snapshots.map((it: any) => it.snapshot);
    expect(await named('_all?sort=name')).toEqual(['more', 'one', 'same', 'twin']);
    expect(await named('*,-*e?sort=name')).toEqual(
      ['more', 'one', 'same', 'twin'].filter((name) => !name.endsWith('e')),
    );
    expect((await call('GET', '/_snapshot/grow/_all?slm_policy_filter=*')).body.error.reason).toContain(
      'slm_policy_filter',
    );
    const page = (await call('GET', '/_snapshot/grow/_all?sort=name&size=3')).body;
    expect(await named(`_all?sort=name&size=3&after=${encodeURIComponent(page.next as string)}`)).toEqual(['twin']);

    expect((await call('DELETE', '/_snapshot/grow/one,same')).body).toEqual({ acknowledged: true });
    expect((await call('POST', '/_snapshot/grow/_cleanup')).body.results.deleted_blobs).toBe(0);
    for (const name of ['twin', 'more']) {
      const body = { rename_pattern: '(.+)', rename_replacement: `$1-${name}` };
      const answer = await call('POST', `/_snapshot/grow/${name}/_restore${WAIT}`, body);
      expect(answer.status, answer.text).toBe(200);
    }
    expect((await call('GET', '/grow-twin/_count')).body.count).toBe(200);
    expect(await answersOf(server, 'grow-more')).toEqual(
      JSON.parse(JSON.stringify(await answersOf(server, 'grow')).replaceAll('"_index":"grow"', '"_index":"grow-more"')),
    );
    await call('DELETE', '/_snapshot/grow/*');
    expect(await blobs()).toEqual([]);
    await mkdir(join(repositories, 'grow', 'blobs', 'aa'), { recursive: true });
    await writeFile(join(repositories, 'grow', 'blobs', 'aa', 'a'.repeat(64)), 'orphan');
    expect((await call('POST', '/_snapshot/grow/_cleanup')).body.results).toEqual({
      deleted_bytes: 6,
      deleted_blobs: 1,
    });
    expect(Object.keys((await call('POST', '/_snapshot/grow/_verify')).body.nodes as object)).toHaveLength(1);
  });

  it('has every write that was acknowledged before it was asked for', async () => {
    await call('PUT', '/busy', { mappings: { properties: { n: { type: 'integer' } } } });
    await register('busy');
    let acknowledged = 0;
    let stop = false;
    const write = async (worker: number): Promise<void> => {
      for (let n = 0; !stop; n += 1) {
        const id = `${String(worker)}-${String(n)}`;
        const lines = `{"index":{"_id":"${id}"}}\n{"n":${String(n)}}\n`;
        const answer = await call('POST', '/busy/_bulk', lines);
        expect(answer.body.errors).toBe(false);
        acknowledged += 1;
      }
    };
    const writers = [write(0), write(1), write(2)];
    const before: number[] = [];
    for (const round of [0, 1, 2]) {
      while (acknowledged < (round + 1) * 60) await new Promise((resolve) => setTimeout(resolve, 5));
      before.push(acknowledged);
      await snapshot(`busy/s${String(round)}`, { indices: 'busy' });
    }
    stop = true;
    await Promise.all(writers);
    for (const [round, count] of before.entries()) {
      const body = { rename_pattern: 'busy', rename_replacement: `busy${String(round)}` };
      expect((await call('POST', `/_snapshot/busy/s${String(round)}/_restore${WAIT}`, body)).status).toBe(200);
      const found = (await call('GET', `/busy${String(round)}/_count`)).body.count as number;
      expect(found).toBeGreaterThanOrEqual(count);
      expect(found).toBeLessThanOrEqual(acknowledged);
      // What is there is gapless: no write without those before it of the same writer.
      const hits = await call('POST', `/busy${String(round)}/_search`, { size: 10_000, _source: false });
      const ids = new Set<string>(hits.body.hits.hits.map((hit: any) => hit._id as string));
      for (const id of ids) {
        const [worker = '', n = ''] = id.split('-');
        if (n !== '0') expect(ids.has(`${worker}-${String(Number(n) - 1)}`), id).toBe(true);
      }
    }
  });

  it('restores under other names, in place of closed indices, with other settings', async () => {
    await call('PUT', '/a1', { aliases: { both: {} } });
    await call('PUT', '/a2', { aliases: { both: {} } });
    await call('PUT', '/a1/_doc/1?refresh=true', { v: 1 });
    await register('names');
    await snapshot('names/one', { indices: 'a*' });
    await call('PUT', '/a1/_doc/2?refresh=true', { v: 2 });
    const restore = (body: object): Promise<Answer> => call('POST', `/_snapshot/names/one/_restore${WAIT}`, body);

    expect(reason(await restore({ indices: 'a1' }))[1]).toContain('an open index with same name already exists');
    const taken = { indices: 'a1', rename_pattern: 'a1', rename_replacement: 'both' };
    expect(reason(await restore(taken))[1]).toContain('conflict with an alias with the same name');
    const same = { indices: 'a*', rename_pattern: 'a.', rename_replacement: 'b' };
    expect(reason(await restore(same))[1]).toContain('are renamed into the same index [b]');
    expect(reason(await restore({ indices: 'a1', rename_pattern: 'a1', rename_replacement: '../x' }))[0]).toBe(400);
    expect(reason(await restore({ indices: 'x' }))).toEqual([404, 'no such index [x]']);
    expect(reason(await restore({ nope: 1 }))[1]).toContain('unknown field [nope]');
    const settings = { indices: 'a1', rename_pattern: 'a', rename_replacement: 'c' };
    expect(reason(await restore({ ...settings, index_settings: { number_of_shards: 2 } }))[1]).toContain(
      'cannot modify setting [index.number_of_shards] on restore',
    );
    const done = await restore({
      ...settings,
      include_aliases: false,
      index_settings: { 'index.refresh_interval': '7s' },
      ignore_index_settings: ['index.max_*'],
    });
    expect(done.body.snapshot.indices).toEqual(['c1']);
    expect((await call('GET', '/c1/_settings')).body.c1.settings.index.refresh_interval).toBe('7s');
    expect((await call('GET', '/c1/_alias')).body.c1.aliases).toEqual({});

    const old = (await call('GET', '/a1/_settings')).body.a1.settings.index.uuid as string;
    await call('POST', '/a1/_close');
    expect((await restore({ indices: 'a1' })).status).toBe(200);
    expect((await call('GET', '/a1/_count')).body.count).toBe(1);
    expect((await call('GET', '/a1/_alias')).body.a1.aliases).toEqual({ both: {} });
    expect(await readdir(join(server.data, 'indices'))).not.toContain(old);
  });

  it('names a damaged or missing blob, and leaves nothing of a restore behind', async () => {
    await call('PUT', '/frail', { mappings: MAPPINGS, settings: SETTINGS });
    await load('frail', 0, 50);
    await call('PUT', '/sound/_doc/1?refresh=true', { v: 1 });
    await register('frail');
    await snapshot('frail/one', { indices: 'frail,sound' });
    await call('DELETE', '/frail,sound');
    const before = (await readdir(join(server.data, 'indices'))).sort();
    const blobs = await filesBelow(join(repositories, 'frail', 'blobs'));
    expect(blobs.length).toBeGreaterThan(8);
    const restore = (): Promise<Answer> => call('POST', `/_snapshot/frail/one/_restore${WAIT}`);
    for (const blob of blobs) {
      const bytes = await readFile(blob);
      const damaged = Buffer.from(bytes);
      const at = Math.floor(bytes.length / 2);
      damaged[at] = (damaged[at] ?? 0) ^ 1;
      for (const wrong of [damaged, bytes.subarray(0, bytes.length - 1), undefined]) {
        await (wrong === undefined ? rm(`${blob}.damaged`, { force: true }) : writeFile(blob, wrong));
        const [status, sentence] = reason(await restore());
        expect(status).toBe(500);
        expect(sentence).toMatch(
          /^\[frail:one\] file \[[\w.]+\] cannot be restored: blob \[blobs\/.*\] is (damaged|missing)/,
        );
        expect(sentence).not.toContain(repositories);
        // One that is damaged is set aside.
        expect(await filesBelow(join(repositories, 'frail', 'blobs'))).not.toContain(blob);
      }
      await writeFile(blob, bytes);
    }
    expect((await readdir(join(server.data, 'indices'))).sort()).toEqual(before);
    expect((await call('HEAD', '/frail')).status + (await call('HEAD', '/sound')).status).toBe(808);
    expect((await restore()).status).toBe(200);
    expect((await call('GET', '/frail/_count')).body.count).toBe(50);

    // The file of the snapshot itself.
    const [file = ''] = await filesBelow(join(repositories, 'frail', 'snapshots'));
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replace('"one"', '"two"'));
    expect(reason(await call('GET', '/_snapshot/frail/_all'))[1]).toMatch(/is damaged: its checksum does not match/);
    expect((await call('GET', '/_snapshot/frail/_all?ignore_unavailable=true')).body.snapshots).toEqual([]);
    expect(reason(await call('POST', '/_snapshot/frail/_cleanup'))[1]).toContain('damaged');
    await writeFile(file, text.replace('"format":1', '"format":9'));
    expect(reason(await call('GET', '/_snapshot/frail/_all'))[1]).toContain('has format version 9, this version');
    await writeFile(file, text);
    expect((await filesBelow(join(repositories, 'frail', 'blobs'))).length).toBe(blobs.length);
  });

  it('shows a snapshot that nobody waits for and that fails, with the reason', async () => {
    await load('doomed', 0, 10);
    await register('doomed');
    await snapshot('doomed/first', { indices: 'doomed' });
    const blobs = await filesBelow(join(repositories, 'doomed', 'blobs'));
    await call('DELETE', '/_snapshot/doomed/first');
    // Folders have the names that its files are to get.
    for (const blob of blobs) await mkdir(join(blob, 'in-the-way'), { recursive: true });
    const ends = async (end: string): Promise<number> =>
      valueOf(readPage((await call('GET', '/metrics')).text), 'sparrow_snapshots_total', { end });
    const before = await ends('failed');
    expect((await call('PUT', '/_snapshot/doomed/night', { indices: 'doomed' })).body).toEqual({ accepted: true });
    const shown = async (): Promise<any> => (await call('GET', '/_snapshot/doomed/night')).body.snapshots[0];
    await expect.poll(async () => (await shown()).state as string).toBe('FAILED');
    expect(await shown()).toMatchObject({
      reason: expect.stringContaining('cannot be written'),
      indices: ['doomed'],
      shards: { total: 1, failed: 1, successful: 0 },
    });
    expect((await call('GET', '/_snapshot/doomed/night/_status')).body.snapshots[0]).toMatchObject({
      state: 'FAILED',
      shards_stats: { done: 0, failed: 1, total: 1 },
    });
    expect(await ends('failed')).toBe(before + 1);
    await expect.poll(() => server.output()).toContain('a snapshot was not made');
    for (const blob of blobs) await rm(blob, { recursive: true });
    await snapshot('doomed/night', { indices: 'doomed' });
    expect((await shown()).state).toBe('SUCCESS');
  });

  it('stops a running snapshot that is deleted', async () => {
    await call('PUT', '/slow', { mappings: MAPPINGS, settings: SETTINGS });
    await load('slow', 0, 300);
    await register('slow', { max_snapshot_bytes_per_sec: '4kb' });
    const running = call('PUT', `/_snapshot/slow/one${WAIT}`, { indices: 'slow' });
    await expect
      .poll(async () => (await call('GET', '/_snapshot/slow/_current')).body.snapshots[0]?.state as string)
      .toBe('IN_PROGRESS');
    expect((await call('GET', '/_snapshot/_status')).body.snapshots[0]).toMatchObject({
      snapshot: 'one',
      state: 'STARTED',
    });
    const { tasks } = Object.values(
      (await call('GET', '/_tasks?actions=cluster:admin/snapshot/*')).body.nodes as object,
    )[0];
    expect(Object.values(tasks as object)).toHaveLength(1);
    expect(reason(await call('PUT', '/_snapshot/slow/one', {}))).toEqual([
      400,
      '[slow:one] Invalid snapshot name [one], snapshot with the same name is already in-progress',
    ]);
    expect(reason(await call('DELETE', '/_snapshot/slow'))[0]).toBe(409);
    // Writes and searches go on.
    expect((await call('PUT', '/slow/_doc/x?refresh=true', { n: 1 })).status).toBe(201);
    expect((await call('DELETE', '/_snapshot/slow/one')).status).toBe(200);
    expect(reason(await running)).toEqual([500, expect.stringContaining('Snapshot was aborted by deletion')]);
    expect((await call('GET', '/_snapshot/slow/_all')).body.snapshots).toEqual([]);
    expect((await call('POST', '/_snapshot/slow/_cleanup')).status).toBe(200);
    expect(await filesBelow(join(repositories, 'slow', 'blobs'))).toEqual([]);
    expect(await readdir(join(server.data, 'staging'))).toEqual([]);
  });

  it('refuses hostile names and locations', async () => {
    await symlink(tmpdir(), join(repositories, 'out'));
    for (const location of ['..', '../x', 'a/../../x', '/etc', 'out', 'out/x', 'a\0b', `${repositories}/../x`]) {
      const answer = await call('PUT', '/_snapshot/bad', { type: 'fs', settings: { location } });
      expect([answer.status, answer.body.error.root_cause[0].reason], location).toEqual([
        500,
        `[bad] location [${location}] doesn't match any of the locations specified by path.repo`,
      ]);
    }
    const inside = { type: 'fs', settings: { location: join(repositories, 'inside', 'deep') } };
    expect((await call('PUT', '/_snapshot/inside', inside)).status).toBe(200);
    expect(
      reason(await call('PUT', '/_snapshot/bad', { type: 'fs', settings: { location: 'x', chunk_size: '1mb' } }))[1],
    ).toContain('[chunk_size]');
    for (const name of ['a%2Fb', '..%2Fx', 'a%23b', 'a*b', 'a%22b', 'a%00b']) {
      expect((await call('PUT', `/_snapshot/${name}`, inside)).status, name).toBeGreaterThanOrEqual(400);
      expect((await call('PUT', `/_snapshot/inside/${name}${WAIT}`)).body.error.type, name).toBe(
        'invalid_snapshot_name_exception',
      );
    }
    // What looks like a path and is a name never becomes one.
    const before = await readdir(repositories);
    expect((await call('PUT', `/_snapshot/inside/...${WAIT}`, { indices: 'none*' })).status).toBe(200);
    expect(await readdir(repositories)).toEqual(before);
    expect((await call('DELETE', '/_snapshot/inside')).body).toEqual({ acknowledged: true });
    expect((await call('GET', '/_snapshot/inside')).status).toBe(404);
  });

  it('is allowed by the privileges that Elasticsearch names', async () => {
    await register('allowed');
    const key = async (cluster: string[]): Promise<string> =>
      (await call('POST', '/_security/api_key', { name: 'k', role_descriptors: { r: { cluster, indices: [] } } })).body
        .encoded;
    const [monitor, create] = [await key(['monitor_snapshot']), await key(['create_snapshot'])];
    const status = async (apiKey: string, method: string, path: string): Promise<number> =>
      (await server.request(method, path, undefined, { apiKey })).status;
    expect(await status(monitor, 'GET', '/_snapshot/allowed/_all')).toBe(200);
    expect(await status(monitor, 'PUT', '/_snapshot/allowed/one')).toBe(403);
    expect(await status(create, 'PUT', `/_snapshot/allowed/one${WAIT}`)).toBe(200);
    expect(await status(create, 'DELETE', '/_snapshot/allowed/one')).toBe(403);
    expect(await status(create, 'POST', '/_snapshot/allowed/one/_restore')).toBe(403);
    expect(await status(create, 'DELETE', '/_snapshot/allowed')).toBe(403);
  });

  it('logs what a caller did wrong once, and not as an error of the server', async () => {
    await register('wrong');
    await call('PUT', '/stays-open');
    await snapshot('wrong/one', { indices: 'stays-open' });
    const before = server.output().length;
    const statuses = [
      await call('POST', `/_snapshot/wrong/one/_restore${WAIT}`, { indices: 'stays-open' }),
      await call('PUT', '/_snapshot/wrong-type', { type: 'nope', settings: {} }),
      await call('PUT', '/_snapshot/outside', { type: 'fs', settings: { location: '/etc' } }),
    ].map(({ status }) => status);
    expect(statuses).toEqual([500, 500, 500]);
    const logged = (): string[] => logLines(server, before).map(({ level, msg }) => `${level} ${msg}`);
    await expect.poll(logged, { timeout: 10_000 }).toEqual(Array(3).fill('warn request failed'));
    await call('DELETE', '/stays-open');
  });
});
