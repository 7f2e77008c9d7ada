// API keys in snapshots: `feature_states: ["security"]`, against the real engine.
import { mkdtemp, readFile, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

const WAIT = '?wait_for_completion=true';
const WITH_KEYS = { feature_states: ['security'] };

interface Issued {
  readonly id: string;
  readonly encoded: string;
}

let repositories: string;
let server: RunningServer;

async function start(): Promise<RunningServer> {
  const started = await startServer({ args: ['--deploy-at-start', 'false', '--repo-path', repositories] });
  const settings = { location: 'keys' };
  expect((await started.request('PUT', '/_snapshot/keys', { type: 'fs', settings })).status).toBe(200);
  return started;
}

async function issue(on: RunningServer, name: string, more: object = {}): Promise<Issued> {
  const { status, body, text } = await on.request('POST', '/_security/api_key', { name, ...more });
  expect(status, text).toBe(200);
  return body as Issued;
}

const by = (on: RunningServer, key: Issued, method: string, path: string, body?: unknown): Promise<Answer> =>
  on.request(method, path, body, { apiKey: key.encoded });

const READER = { read: { indices: [{ names: ['books'], privileges: ['read'] }] } };

beforeAll(async () => {
  repositories = await mkdtemp(join(tmpdir(), 'sparrow-repositories-'));
  server = await start();
  await server.request('PUT', '/books/_doc/1?refresh=true', { title: 'Emma' });
  await server.request('PUT', '/films/_doc/1?refresh=true', { title: 'Alien' });
});

afterAll(async () => {
  await server.stop();
});

describe('API keys in snapshots', () => {
  it('come back in an empty server with the rights that they had, the owner key apart', async () => {
    const reader = await issue(server, 'reader', { role_descriptors: READER });
    const ended = await issue(server, 'ended');
    expect((await server.request('DELETE', '/_security/api_key', { ids: [ended.id] })).status).toBe(200);
    const taken = await server.request('PUT', `/_snapshot/keys/all${WAIT}`, WITH_KEYS);
    expect(taken.body.snapshot.feature_states, taken.text).toEqual([{ feature_name: 'security', indices: [] }]);
    const listed = await server.request('GET', '/_snapshot/keys/all');
    expect(listed.body.snapshots[0].feature_states).toEqual([{ feature_name: 'security', indices: [] }]);

    const other = await start();
    try {
      expect((await by(other, reader, 'GET', '/books/_search')).status).toBe(401);
      // Without the feature state none comes.
      await other.request('POST', `/_snapshot/keys/all/_restore${WAIT}`, { indices: 'films' });
      expect((await by(other, reader, 'GET', '/books/_search')).status).toBe(401);
      const restored = await other.request('POST', `/_snapshot/keys/all/_restore${WAIT}`, {
        indices: 'books',
        ...WITH_KEYS,
      });
      expect(restored.status, restored.text).toBe(200);
      expect((await by(other, reader, 'GET', '/books/_search')).body.hits.total.value).toBe(1);
      expect((await by(other, reader, 'GET', '/films/_search')).status).toBe(403);
      expect((await by(other, ended, 'GET', '/')).status).toBe(401);
      const owner = { id: '', encoded: server.apiKey };
      expect((await by(other, owner, 'GET', '/')).status).toBe(401);
      // A key that was ended here stays so, though the snapshot says that it holds.
      await other.request('DELETE', '/_security/api_key', { ids: [reader.id] });
      const again = { indices: 'films', rename_pattern: '(.+)', rename_replacement: 'again-$1', ...WITH_KEYS };
      expect((await other.request('POST', `/_snapshot/keys/all/_restore${WAIT}`, again)).status).toBe(200);
      expect((await by(other, reader, 'GET', '/books/_search')).status).toBe(401);
      // They are on the disk.
      const kept = await readFile(join(other.data, 'security', 'api_keys.json'), 'utf8');
      expect(kept).toContain(reader.id);
    } finally {
      await other.stop();
    }
  });

  it('are never there without being asked for, and never with their secrets', async () => {
    const secret = await issue(server, 'secret');
    await server.request('PUT', `/_snapshot/keys/without${WAIT}`, {});
    await server.request('PUT', `/_snapshot/keys/with${WAIT}`, WITH_KEYS);
    const without = await server.request('POST', `/_snapshot/keys/without/_restore${WAIT}`, {
      indices: '-*',
      ...WITH_KEYS,
    });
    expect([without.status, without.body.error.reason]).toEqual([
      500,
      expect.stringContaining('the snapshot does not contain the feature state [security]'),
    ]);
    const text = Buffer.from(secret.encoded, 'base64').toString().split(':')[1] ?? 'no secret';
    const folder = join(repositories, 'keys');
    let files = 0;
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      files += 1;
      expect(await readFile(join(entry.parentPath, entry.name), 'latin1'), entry.name).not.toContain(text);
    }
    expect(files).toBeGreaterThan(3);
  });

  it('are only for a key that may do everything', async () => {
    const some = await issue(server, 'some', {
      role_descriptors: { it: { cluster: ['all'], indices: [{ names: ['books'], privileges: ['all'] }] } },
    });
    // He may do everything to indices, and all but look after keys.
    const operator = await issue(server, 'operator', {
      role_descriptors: { it: { cluster: ['manage'], indices: [{ names: ['*'], privileges: ['all'] }] } },
    });
    for (const key of [some, operator])
      for (const [method, path] of [
        ['PUT', `/_snapshot/keys/by-operator${WAIT}`],
        ['POST', `/_snapshot/keys/all/_restore${WAIT}`],
      ] as const) {
        const refused = await by(server, key, method, path, { indices: 'nothing-*', ...WITH_KEYS });
        expect([refused.status, refused.body.error.type], refused.text).toEqual([403, 'security_exception']);
        expect(refused.body.error.reason).toContain('/security] is unauthorized for API key id [');
      }
    // Without keys it is his to do.
    const made = await by(server, operator, 'PUT', `/_snapshot/keys/by-operator${WAIT}`, { indices: 'books' });
    expect(made.status, made.text).toBe(200);
  });

  it('are the only feature', async () => {
    const refused = await server.request('PUT', '/_snapshot/keys/other', { feature_states: ['kibana'] });
    expect([refused.status, refused.body.error.reason]).toEqual([
      400,
      '[feature_states] must be empty, [none] or [security], as there are no other features with a state here, but was [kibana]',
    ]);
  });
});
