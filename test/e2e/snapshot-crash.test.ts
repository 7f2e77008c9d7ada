// A server killed while it makes or restores a snapshot leaves a repository that can be read, and no half of anything.
import { mkdtemp, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const WAIT = '?wait_for_completion=true';
const DOCUMENTS = 400;
let server: RunningServer | undefined;

afterEach(async () => {
  await server?.kill();
});

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function files(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
}

const register = (it: RunningServer, settings: object = {}): Promise<unknown> =>
  it.request('PUT', '/_snapshot/r', { type: 'fs', settings: { location: 'r', ...settings } });

it('kill -9 in the middle of snapshots and restores', async () => {
  const repositories = await mkdtemp(join(tmpdir(), 'sparrow-repositories-'));
  const args = ['--deploy-at-start', 'false', '--repo-path', repositories];
  server = await startServer({ args });
  const { data } = server;
  await server.request('PUT', '/books', {
    mappings: { properties: { n: { type: 'integer' }, v: { type: 'sparse_vector' } } },
  });
  const lines = Array.from({ length: DOCUMENTS }, (_, n) => {
    const document = { n, text: `number ${String(n)}`, v: { [`t${String(n % 50)}`]: 1 + (n % 3) } };
    return `{"index":{"_id":"${String(n)}"}}\n${JSON.stringify(document)}\n`;
  });
  await server.request('POST', '/books/_bulk', lines.join(''));
  await register(server, { max_snapshot_bytes_per_sec: '40kb', max_restore_bytes_per_sec: '40kb' });

  // Each kill comes later than the one before, and blobs of the earlier ones are used again.
  let last = 0;
  for (const wait of [50, 250, 450]) {
    await server.request('PUT', '/_snapshot/r/one', { indices: 'books' });
    await pause(wait);
    await server.kill();
    server = await startServer({ data, args });
    const listed = await server.request('GET', '/_snapshot/r/_all');
    expect(listed.status, listed.text).toBe(200);
    expect(listed.body.snapshots).toMatchObject([
      { snapshot: 'one', state: 'FAILED', reason: 'the server ended before the snapshot was complete' },
    ]);
    const blobs = (await files(join(repositories, 'r', 'blobs'))).length;
    expect(blobs).toBeGreaterThanOrEqual(last);
    last = blobs;
    expect(await readdir(data)).not.toContain('staging');
  }
  expect(last).toBeGreaterThan(0);
  expect((await server.request('GET', '/books/_count')).body.count).toBe(DOCUMENTS);

  // What the kills left and the index no longer has goes with the next snapshot that is made.
  await register(server, { max_restore_bytes_per_sec: '4kb' });
  await server.request('DELETE', '/books/_doc/0?refresh=true');
  const made = await server.request('PUT', `/_snapshot/r/one${WAIT}`, { indices: 'books' });
  expect(made.status, made.text).toBe(200);
  expect((await server.request('POST', '/_snapshot/r/_cleanup')).body.results.deleted_blobs).toBe(0);
  expect(await files(join(repositories, 'r', 'temporary'))).toEqual([]);

  await server.request('POST', '/books/_close');
  const folders = (await readdir(join(data, 'indices'))).length;
  for (const wait of [50, 300]) {
    await server.request('POST', '/_snapshot/r/one/_restore');
    await server.request('POST', '/_snapshot/r/one/_restore', { rename_pattern: 'books', rename_replacement: 'copy' });
    await pause(wait);
    await server.kill();
    server = await startServer({ data, args });
    // The closed index is still the one it was, and nothing else is there.
    expect((await server.request('GET', '/_cat/indices?h=index,status&expand_wildcards=all')).text.trim()).toBe(
      'books close',
    );
    expect((await readdir(join(data, 'indices'))).length).toBe(folders);
  }
  await register(server, { max_restore_bytes_per_sec: '-1' });
  const restored = await server.request('POST', `/_snapshot/r/one/_restore${WAIT}`);
  expect(restored.status, restored.text).toBe(200);
  await server.kill();
  server = await startServer({ data, args });
  expect((await server.request('GET', '/books/_count')).body.count).toBe(DOCUMENTS - 1);
  expect((await readdir(join(data, 'indices'))).length).toBe(folders);
}, 120_000);
