// What a real server answered about snapshots. The recording is of a second run, in which snapshots of the first were
// there, so they are made here before: each exchange is then played as it was recorded.
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';
import { differences } from './compare.js';
import { type Exchange, readExchanges } from './replay.js';

const exchanges = readExchanges(new URL('../fixtures/recorded/elasticsearch-8.19.21-snapshots.jsonl', import.meta.url));
const exchange = (name: string): Exchange => {
  const found = exchanges.find((it) => it.name === name);
  if (found === undefined) throw new Error(`no exchange ${name}`);
  return found;
};

/** Exchanges that are not answered as recorded, each with the reason. */
const OTHERWISE: Readonly<Record<string, string>> = {
  'snap-create-unknown-key': 'an unknown key is refused here, whatever the name is',
  'cat-repositories': 'a table, compared by its words below',
  'cat-snapshots': 'a table, compared by its words below',
};

/** Values that each server and each run has its own of. */
const OWN = [
  ...['uuid', 'start_time', 'end_time', 'start_time_in_millis', 'end_time_in_millis', 'duration_in_millis', 'next'],
  ...['time_in_millis', 'file_count', 'size_in_bytes', 'restoreUUID', 'stop_time_in_millis', 'total_time_in_millis'],
  ...['total_in_bytes', 'recovered_in_bytes', 'id', 'name', 'transport_address', 'creation_date', 'total', 'recovered'],
  // A clone there says that it has a global state, though its source has none.
  'include_global_state',
];

/** What is between `/` and `]` in a sentence is the uuid of a snapshot. */
const withoutUuids = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value ?? null).replaceAll(/(\[\w+:\w+\/)[\w-]{22}\]/g, '$1uuid]')) as unknown;

let server: RunningServer;
const call = (method: string, path: string, body?: unknown): Promise<Answer> => server.request(method, path, body);

/** What the first run, and what was not recorded, had done before an exchange. */
const BEFORE: Readonly<Record<string, () => Promise<void>>> = {
  'snap-create-wait': async () => {
    for (const [index, documents] of [
      ['books', ['a', 'b', 'c']],
      ['films', ['d']],
    ] as const) {
      await call('PUT', `/${index}`, { settings: { number_of_replicas: 0 } });
      for (const [n, t] of documents.entries()) await call('PUT', `/${index}/_doc/${String(n)}`, { t, n, k: t });
    }
    const wait = '?wait_for_completion=true';
    const one = { indices: 'books', include_global_state: false, metadata: { by: 'me' } };
    expect((await call('PUT', `/_snapshot/backups/one${wait}`, one)).status).toBe(200);
    expect((await call('PUT', `/_snapshot/backups/all${wait}`)).status).toBe(200);
    expect((await call('PUT', `/_snapshot/backups/four${wait}`)).status).toBe(200);
    expect((await call('PUT', '/_snapshot/backups/one/_clone/five', { indices: 'books' })).status).toBe(200);
  },
  'restore-closed-index': async () => {
    expect((await call('POST', '/books/_close')).status).toBe(200);
  },
  'restore-async': async () => {
    expect((await call('POST', '/books/_close')).status).toBe(200);
  },
  'restored-search': async () => {
    await expect.poll(async () => (await call('GET', '/books/_count')).body.count as number).toBe(3);
  },
};

beforeAll(async () => {
  const repoPath = await mkdtemp(join(tmpdir(), 'sparrow-repositories-'));
  server = await startServer({ args: ['--deploy-at-start', 'false', '--repo-path', repoPath] });
});

afterAll(async () => {
  await server.stop();
});

describe('the recorded answers of Elasticsearch 8.19.21 about snapshots', () => {
  it('are excused only where they exist', () => {
    const names = new Set(exchanges.map(({ name }) => name));
    expect(names.size).toBe(exchanges.length);
    expect([...Object.keys(OTHERWISE), ...Object.keys(BEFORE)].filter((name) => !names.has(name))).toEqual([]);
  });

  for (const { name, request, response } of exchanges.filter((it) => it.name !== 'repo-delete')) {
    if (name in OTHERWISE) continue;
    it(`${name}: ${request.method} ${request.path}`, async () => {
      await BEFORE[name]?.();
      if (name === 'repo-delete-missing') await call('DELETE', '/_snapshot/backups');
      const ours = await call(request.method, request.path, request.body);
      expect(ours.status, ours.text).toBe(response.status);
      // The one node of the answer has another name.
      const node = (body: unknown): unknown =>
        name === 'snap-verify' ? Object.values((body as { nodes: object }).nodes) : body;
      const found = differences(node(withoutUuids(response.body)), node(withoutUuids(ours.body)), {
        score: 0,
        kindOnly: OWN,
      });
      expect(found, ours.text).toEqual([]);
    });
  }

  it('forgets a repository and keeps what lies in it', async () => {
    const again = exchange('snap-put').request;
    expect((await call(again.method, again.path, again.body)).body).toEqual(exchange('snap-put').response.body);
    const { snapshots } = (await call('GET', '/_snapshot/backups/_all')).body;
    expect(snapshots.map(({ snapshot }: { snapshot: string }) => snapshot)).toContain('one');
  });

  it('shows repositories and snapshots as tables', async () => {
    const words = (text: unknown): string[] => String(text).split('\n').slice(0, 1).join('').trim().split(/\s+/);
    for (const name of ['cat-repositories', 'cat-snapshots']) {
      const { request, response } = exchange(name);
      const ours = await call(request.method, request.path);
      expect([ours.status, ours.headers['content-type']]).toEqual([200, response.headers['content-type']]);
      expect(words(ours.text)).toEqual(words(response.body));
    }
    expect((await call('GET', '/_cat/repositories?v')).text).toBe(exchange('cat-repositories').response.body);
    expect((await call('GET', '/_cat/snapshots/backups?h=id,status,indices&s=id')).text).toBe(
      'all  SUCCESS 2\nfive SUCCESS 1\nfour SUCCESS 2\none  SUCCESS 1\n',
    );
  });

  it('deletes a repository', async () => {
    const { request, response } = exchange('repo-delete');
    expect((await call(request.method, request.path)).body).toEqual(response.body);
    expect((await call('GET', '/_snapshot')).body).toEqual({});
  });
});
