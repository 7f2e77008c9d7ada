// `sparrow snapshot` against a real server.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { startServer } from '../support/server.js';
import { serve } from './served.js';
import { type Ended, sparrow } from './support.js';

const { server, folder, run, json, said } = await serve();

it('snapshot makes backups and brings them back', async () => {
  expect(await said('snapshot', 'list')).toBe(
    "no snapshots in [backups], a folder under the server's --repo-path (by default [snapshots], next to its data directory): `sparrow snapshot create` makes one\n",
  );
  expect(await json('snapshot', 'list')).toEqual([]);
  const nowhere = await run('snapshot', 'list', '--repository', 'nowhere');
  expect([nowhere.code, nowhere.stderr]).toEqual([1, 'sparrow: there is no snapshot repository [nowhere]\n']);
  expect(await said('snapshot', 'create', 'monday', '--index', 'articles')).toMatch(/^monday: 1 index in \d/);
  const empty = await run('snapshot', 'create', 'empty', '--index', 'artikles*');
  expect([empty.code, empty.stderr]).toEqual([
    0,
    'warning: there is no index artikles*, so nothing is in this snapshot\n',
  ]);
  await said('snapshot', 'delete', 'empty');
  const whole = await json('snapshot', 'create');
  expect(whole.snapshot).toMatch(/^\d{8}-\d{6}$/);
  expect(await said('snapshot', 'list')).toMatch(/^monday +SUCCESS .* articles$/m);
  expect(await said('snapshot', 'restore', 'monday', '--suffix', '-old')).toBe(
    'restored: articles-old (without aliases; --aliases restores them too)\n',
  );
  expect((await server.request('GET', '/articles-old/_count')).body.count).toBe(3);
  const open = await run('snapshot', 'restore', 'monday');
  expect([open.code, open.stderr]).toEqual([1, expect.stringContaining('articles')]);
  expect(await said('snapshot', 'delete', 'monday')).toBe('monday is deleted\n');
  expect((await json('snapshot')).map((one: any) => one.snapshot)).toEqual([whole.snapshot]);
  expect(existsSync(join(folder, 'snapshots', 'backups'))).toBe(true);
});

it('snapshot restores beside what is there, and says with which option', async () => {
  await server.request('PUT', '/logs-1', { aliases: { logs: { is_write_index: true } } });
  await said('snapshot', 'create', 'logged', '--index', 'logs-1');
  const there = await run('snapshot', 'restore', 'logged');
  expect([there.code, there.stderr]).toEqual([1, expect.stringContaining(': add --suffix -restored to restore it')]);
  await server.request('POST', '/logs/_rollover');
  const twice = await run('snapshot', 'restore', 'logged', '--suffix', '-restored', '--aliases');
  expect([twice.code, twice.stderr]).toEqual([
    1,
    expect.stringMatching(/more than one write index.*: add --no-aliases/),
  ]);
  const restored = 'restored: logs-1-restored';
  const suffixed = ['snapshot', 'restore', 'logged', '--suffix', '-restored'];
  const aliasesOf = async (): Promise<unknown> =>
    (await server.request('GET', '/logs-1-restored/_alias')).body['logs-1-restored'].aliases;
  for (const [options, leftOut] of [
    [[], ' (without aliases; --aliases restores them too)'],
    [['--no-aliases'], ''],
  ] as const) {
    expect(await said(...suffixed, ...options)).toBe(`${restored}${leftOut}\n`);
    expect(await aliasesOf()).toEqual({});
    await server.request('DELETE', '/logs-1-restored');
  }
  await server.request('POST', '/_aliases', { actions: [{ remove: { index: '*', alias: 'logs' } }] });
  expect(await said(...suffixed, '--aliases')).toBe(`${restored}\n`);
  expect(await aliasesOf()).toEqual({ logs: { is_write_index: true } });
  await said('snapshot', 'delete', 'logged');
  await server.request('DELETE', '/logs-1,logs-000002,logs-1-restored');
});

it('snapshot list and restore find what another server backed up', async () => {
  await said('snapshot', 'create', 'shared', '--index', 'articles');
  const other = await startServer({ args: ['--repo-path', join(folder, 'snapshots')] });
  try {
    const there = (...args: string[]): Promise<Ended> =>
      sparrow(['snapshot', ...args, '--url', other.url, '--data', other.data]);
    const listed = await there('list');
    expect([listed.code, listed.stdout]).toEqual([0, expect.stringMatching(/^shared +SUCCESS .* articles$/m)]);
    const missing = await there('restore', 'nothing');
    expect(missing.stderr).toMatch(
      /there is no snapshot \[nothing\] in the repository \[backups\]: it has .*shared\n$/,
    );
    const deleted = await there('delete', 'shared');
    expect(deleted.stderr).toBe(
      'sparrow: the repository [backups] is not registered on this server: `sparrow snapshot create` registers it\n',
    );
    const restored = await there('restore', 'shared');
    expect([restored.code, restored.stdout]).toEqual([0, 'restored: articles\n']);
    expect((await other.request('GET', '/articles/_count')).body.count).toBe(3);
    // It was registered only while it was read, and not to be written into.
    expect((await other.request('GET', '/_snapshot')).body).toEqual({});
    const { body: key } = await other.request('POST', '/_security/api_key', {
      name: 'watcher',
      role_descriptors: { watcher: { cluster: ['monitor', 'monitor_snapshot'] } },
    });
    const refused = await there('list', '--key', key.encoded);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('; this key may not register it\n')]);
    expect((await there('create', 'own')).code).toBe(0);
    expect((await there('delete', 'own')).code).toBe(0);
  } finally {
    await other.stop();
    await said('snapshot', 'delete', 'shared');
  }
});
