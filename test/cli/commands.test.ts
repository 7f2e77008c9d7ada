// Commands about what a server holds, against a real one: its state, keys, models, tasks, and measuring it.
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { describe, expect, it } from 'vitest';

import { startServer } from '../support/server.js';
import { isFirstTier } from '../tiers.mjs';
import { serve } from './served.js';
import { sparrow, told } from './support.js';

const { server, folder, run, json, said } = await serve();

it('status tells what there is', async () => {
  const status = await json('status');
  expect(status).toMatchObject({ url: server.url, status: 'ready', models: ['.sparse_encoder_model_2'] });
  expect(status.indices).toContainEqual(expect.objectContaining({ name: 'articles', documents: 3 }));
  const told = await said('status');
  expect(told).toMatch(/^articles +3 +[\d.]+ kB +open$/m);
  expect(told).toMatch(/^cluster health is yellow, which is normal for a single server: \d+ ind.* for replicas, and/m);
});

it('status says where writes are refused for want of room', async () => {
  const block = (value: boolean | null): Promise<unknown> =>
    server.request('PUT', '/articles/_settings', { 'index.blocks.read_only_allow_delete': value });
  expect(await said('status')).not.toContain('nearly full');
  await block(true);
  expect(await said('status')).toContain('the disk is nearly full, so writes are refused to articles: make room');
  const path = join(folder, 'more.jsonl');
  await writeFile(path, '{"title":"one"}\n{"title":"two"}\n');
  const { code, stderr } = await run('import', path, '--index', 'articles', '--no-semantic');
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining(
      'more.jsonl: the disk of the server is nearly full, so it takes no documents: make room there',
    ),
  ]);
  await block(null);
});

describe('key', () => {
  it('makes keys that may do what was said, lists and ends them', async () => {
    const made = await run('key', 'new', 'shop', '--index', 'articles', '--expires', '90d');
    expect([made.code, made.stderr]).toEqual([0, expect.stringContaining('shown this once')]);
    const apiKey = made.stdout.trim();
    expect((await server.request('GET', '/articles/_count', undefined, { apiKey })).status).toBe(200);
    expect((await server.request('DELETE', '/articles', undefined, { apiKey })).status).toBe(403);
    const [shop] = (await json('key', 'list')).filter((key: any) => key.name === 'shop');
    const listed = await said('key', 'list');
    expect(listed).toMatch(/^\S+ +shop +\d{4}-\d\d-\d\d +\d{4}-\d\d-\d\d +valid +articles: read$/m);
    expect(listed).toMatch(/ owner .* valid +everything$/m);
    expect(await said('key', 'revoke', shop.id)).toBe(`${shop.id as string} is revoked\n`);
    expect((await server.request('GET', '/articles/_count', undefined, { apiKey })).status).toBe(401);
    expect(await said('key', 'list')).not.toContain('shop');
    expect(await said('key', 'list', '--all')).toMatch(/shop .* revoked/);
    const again = await run('key', 'revoke', 'shop', '--name');
    expect([again.code, again.stderr]).toEqual([
      1,
      'sparrow: no valid key that can be revoked has the name shop; the owner key is replaced by `sparrow key reset-owner`\n',
    ]);
  });

  it('says of an index that is not there that the key is for none yet', async () => {
    const { code, stderr } = await run('key', 'new', 'slip', '--index', 'artikles', 'art*', 'articles');
    expect(code).toBe(0);
    expect(stderr).toMatch(/^there is no index \[artikles\] yet: .*\nkey .* shown this once:\n$/);
  });

  it('shows how a time is written where one is not', async () => {
    for (const time of ['soon', '-1', '1w', '90 d']) {
      const { code, stderr } = await run('key', 'new', 'late', '--index', 'articles', `--expires=${time}`);
      expect([code, stderr]).toEqual([2, expect.stringContaining('a number with a unit, such as 90d, 12h or 30m')]);
    }
  });

  it('refuses to reset the owner key under a running server', async () => {
    const { code, stderr } = await sparrow(['key', 'reset-owner', '--data', server.data]);
    expect([code, stderr]).toEqual([1, expect.stringContaining('in use by another process: stop the server')]);
    const nowhere = await sparrow(['key', 'reset-owner', '--data', folder]);
    expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining('there is no owner key in')]);
  });

  it('resets the owner key while no server runs', async () => {
    const args = ['--deploy-at-start', 'false'];
    const before = await startServer({ args });
    await before.stop();
    const { code, stdout } = await sparrow(['key', 'reset-owner', '--data', before.data, '--json']);
    expect(code).toBe(0);
    const { encoded } = JSON.parse(stdout);
    expect((await readFile(join(before.data, 'owner.key'), 'utf8')).trim()).toBe(encoded);
    const after = await startServer({ data: before.data, args });
    try {
      expect((await after.request('GET', '/', undefined, { apiKey: encoded })).status).toBe(200);
      expect((await after.request('GET', '/', undefined, { apiKey: before.apiKey })).status).toBe(401);
    } finally {
      await after.stop();
    }
  });
});

it('models lists, starts and stops', async () => {
  const text = await said('models');
  expect(text).toMatch(/^\.sparse_encoder_model_2 +sparse .* started /m);
  expect(text).toMatch(/^\.all-minilm-l6-v2 +dense .* not started /m);
  expect(await said('models', 'start', '.all-minilm-l6-v2', '--workers', '1')).toBe('.all-minilm-l6-v2 is started\n');
  const [dense] = (await json('models', 'list')).filter((model: any) => model.kind === 'dense');
  expect(dense.deployments).toMatchObject([{ state: 'started', number_of_allocations: 1 }]);
  expect(await said('models', 'stop', '.all-minilm-l6-v2')).toBe('.all-minilm-l6-v2 is stopped\n');
  expect(await said('models', 'stop', '.all-minilm-l6-v2')).toBe('.all-minilm-l6-v2 was not started\n');
  const unknown = await run('models', 'start', 'no-such-model');
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('no-such-model')]);
});

it('tasks shows jobs, waits for them, and cancels them', async () => {
  const reindex = async (rate: string) => {
    const query = `wait_for_completion=false&requests_per_second=${rate}`;
    const body = { source: { index: 'articles', size: 1 }, dest: { index: 'copy' } };
    return (await server.request('POST', `/_reindex?${query}`, body)).body.task as string;
  };
  const slow = await reindex('0.01');
  await expect.poll(() => said('tasks')).toContain(`${slow}  reindex`);
  expect((await json('tasks')).map((task: any) => `${task.node as string}:${String(task.id)}`)).toContain(slow);
  expect(await said('tasks', 'show', slow)).toMatch(/running\n$/);
  expect(await said('tasks', 'cancel', slow)).toBe(`${slow} was asked to stop\n`);
  await expect.poll(() => said('tasks')).toBe('no jobs run; --all shows those that have ended\n');
  expect(await said('tasks', 'list', '--all')).toMatch(new RegExp(`^${slow} +reindex .* cancelled +reindex`, 'm'));
  const quick = await reindex('-1');
  const known = await json('tasks', 'show', quick, '--watch');
  expect(known).toMatchObject({ completed: true, response: { total: 3 } });
  expect(await said('tasks', 'list', '--all')).toMatch(
    new RegExp(`^${quick} +reindex +3 +3 .* completed +reindex`, 'm'),
  );
  await server.request('PUT', '/taught', {
    mappings: { properties: { text: { type: 'semantic_text', inference_id: '.elser-2-elasticsearch' } } },
  });
  await server.request('PUT', '/taught/_doc/1?refresh=true', { text: 'Yeast makes dough rise.' });
  const change = { field: 'text', inference_id: '.all-minilm-l6-v2-elasticsearch' };
  const changing = await server.request('POST', '/taught/_ext/model/_change?wait_for_completion=false', change);
  await run('tasks', 'show', changing.body.task, '--watch');
  expect(await said('tasks', 'list', '--all')).toMatch(
    new RegExp(`^${changing.body.task as string} +change +1 +1 .* completed`, 'm'),
  );
  await server.request('DELETE', '/taught');
  expect((await json('tasks', 'list', '--all'))[1]).toMatchObject({
    completed: true,
    task: { action: known.task.action },
  });
  expect((await run('tasks', 'list', '--all', '--watch')).code).toBe(2);
  const { code, stderr } = await run('tasks', 'show', 'a:1');
  expect([code, stderr]).toEqual([1, expect.stringContaining('a:1')]);
});

it('eval measures the ways to search', async () => {
  const directory = join(folder, 'collection');
  await promisify(execFile)('mkdir', [directory]);
  const lines = (rows: object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  await writeFile(
    join(directory, 'corpus.jsonl'),
    lines([
      { _id: 'w', title: 'Whales', text: 'Blue whales are the largest animals.' },
      { _id: 'b', title: '', text: 'Bread rises because yeast makes gas.' },
    ]),
  );
  await writeFile(
    join(directory, 'queries.jsonl'),
    lines([
      { _id: '1', text: 'largest animals' },
      { _id: '2', text: 'yeast' },
    ]),
  );
  await writeFile(join(directory, 'qrels.test.tsv'), 'query-id\tcorpus-id\tscore\n1\tw\t1\n2\tb\t2\n');
  const file = join(folder, 'report.json');
  const { code, stdout, stderr } = await run('eval', directory, '--no-dense', '--json', file);
  expect([code, stderr.split('\n')[1]]).toEqual([0, 'searching (qrels.test.tsv)']);
  expect(stdout).toMatch(/^2 documents in .*, 2 queries\n/);
  const report = JSON.parse(await readFile(file, 'utf8'));
  expect(report).toMatchObject({ documents: 2, queries: 2, judgements: 'qrels.test.tsv' });
  expect(report.table.map((row: any) => [row.search, row['nDCG@10'], row['recall@100']])).toEqual([
    ['words', 1, 1],
    ['sparse', 1, 1],
    ['words and sparse', 1, 1],
  ]);
  expect(report.command).toBe('sparrow eval DIR --no-dense --json FILE --url URL --data FOLDER');
  expect((await server.request('GET', '/sparrow-eval')).status).toBe(404);
  const empty = await run('eval', folder);
  expect([empty.code, empty.stderr]).toEqual([1, `sparrow: ${folder} holds no qrels.<split>.tsv\n`]);
});

// At the end: this leaves indices behind, and a model that is started.
const IN_JSON = [
  ['status', ['status']],
  ['models list', ['models', 'list']],
  ['demo', ['demo', 'rich person', '--index', 'demo-of-json']],
  ['import', ['import', '-', '--format', 'jsonl', '--index', 'import-of-json']],
  ['key revoke', ['key', 'revoke', 'key-of-json', '--name']],
] as const;
const FIRST_IN_JSON = IN_JSON.filter(([words]) => words !== 'demo');
it.each(isFirstTier ? FIRST_IN_JSON : IN_JSON)('--json of %s names the members that there are', async (words, args) => {
  if (words === 'key revoke') await run('key', 'new', 'key-of-json', '--index', 'articles');
  const value = await json(...args);
  const [members = ''] = /(?<=\{)[\w, ]+/.exec(await told(words)) ?? [];
  const shown = Array.isArray(value) ? value[0] : value;
  expect(members.split(', ').toSorted()).toEqual(Object.keys(shown).toSorted());
});
