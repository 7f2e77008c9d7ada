// What commands say to somebody who names what is not there, or another thing than the command takes.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';
import { type Ended, sparrow } from './support.js';

let server: RunningServer;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparrow-mistakes-'));
  server = await startServer({ args: ['--repo-path', join(folder, 'snapshots')] });
  await server.request('PUT', '/articles/_doc/1?refresh=true', { title: 'Blue whales' });
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

function run(...args: string[]): Promise<Ended> {
  return sparrow([...args, '--url', server.url, '--data', server.data]);
}

describe('a request that cannot be sent', () => {
  const search = (body: string): Promise<Ended> => run('search', '--index', 'articles', '--body', body);

  it('is told with the option or the file, and with what was probably meant', async () => {
    const file = join(folder, 'request.json');
    await writeFile(file, '{"query":');
    const absent = join(folder, 'absent.json');
    const example = 'a request looks like {"query": {"match_all": {}}}';
    for (const [body, sentence] of [
      ['{"query":', /^--body is not JSON \(.*\); EXAMPLE$/],
      ['[1]', /^--body is not a JSON object; EXAMPLE$/],
      [`@${file}`, /^--body \[FILE\] is not JSON \(.*\); EXAMPLE$/],
      [file, /^--body is not JSON \(.*\); did you mean the file, --body @FILE\?$/],
      [`@${absent}`, /^--body: cannot read the file \[ABSENT\] named after the @: there is nothing of that name$/],
    ] as const) {
      const { code, stdout, stderr } = await search(body);
      expect([code, stdout], body).toEqual([2, '']);
      const told = stderr.replace(absent, 'ABSENT').replaceAll(file, 'FILE').replace(example, 'EXAMPLE');
      expect(told).toMatch(/^sparrow: .*\n$/);
      expect(told.slice('sparrow: '.length, -1)).toMatch(sentence);
    }
  });
});

it('a model or a task that is not there is told with what there is', async () => {
  const model = await run('models', 'start', 'nope');
  expect([model.code, model.stderr]).toEqual([
    1,
    expect.stringMatching(/^sparrow: there is no model \[nope\]: there are .*\.all-minilm-l6-v2.*\n$/),
  ]);
  const env = { npm_lifecycle_event: 'start', npm_package_name: 'sparrow' };
  for (const [environment, command] of [
    [{ npm_lifecycle_event: '' }, 'sparrow'],
    [env, 'npm start --'],
  ] as const) {
    const args = ['tasks', 'show', '999', '--url', server.url, '--data', server.data];
    const { code, stderr } = await sparrow(args, environment);
    expect([code, stderr]).toEqual([
      2,
      `sparrow: [999] is not the id of a task, which is written as NODE:NUMBER: \`${command} tasks list --all\` shows them\n`,
    ]);
  }
});

describe('a snapshot or a repository that is not there', () => {
  const restored = (...args: string[]): Promise<Ended> => run('snapshot', 'restore', ...args);
  const deleted = (...args: string[]): Promise<Ended> => run('snapshot', 'delete', ...args);

  it('is told in the same way by every command, with those that are there', async () => {
    const missing = 'sparrow: there is no snapshot [monday] in the repository [backups]:';
    for (const command of [restored, deleted]) {
      const { code, stderr } = await command('monday');
      expect([code, stderr]).toEqual([
        1,
        `${missing} there are none in [backups], a folder under the server's --repo-path (by default [snapshots], next to its data directory); \`sparrow snapshot create\` makes one\n`,
      ]);
    }
    for (const name of ['tuesday', 'wednesday']) expect((await run('snapshot', 'create', name)).code).toBe(0);
    for (const command of [restored, deleted]) {
      const { code, stderr } = await command('monday');
      expect([code, stderr]).toEqual([1, `${missing} it has tuesday, wednesday\n`]);
    }
    const list = (...args: string[]): Promise<Ended> => run('snapshot', 'list', ...args);
    for (const command of [list, restored, deleted]) {
      const { code, stderr } = await command(...(command === list ? [] : ['monday']), '--repository', 'nowhere');
      expect([code, stderr]).toEqual([
        1,
        'sparrow: there is no snapshot repository [nowhere]; there is only [backups]\n',
      ]);
    }
    // What else fails is told as the server tells it.
    const open = await restored('tuesday');
    expect([open.code, open.stderr]).toEqual([1, expect.stringContaining('cannot restore index [articles]')]);
  });

  it('may be in a folder of the one that is to be checked', async () => {
    expect((await run('snapshot', 'create')).code).toBe(0);
    const parent = join(folder, 'snapshots');
    const check = async (): Promise<string> => {
      const { code, stdout, stderr } = await sparrow(['check', '--repository', parent]);
      expect([code, stdout]).toEqual([1, '']);
      return stderr;
    };
    const none = `sparrow: ${parent} is not a snapshot repository;`;
    expect(await check()).toBe(`${none} did you mean ${join(parent, 'backups')}?\n`);
    expect((await run('snapshot', 'create', '--repository', 'weekly')).code).toBe(0);
    expect(await check()).toBe(
      `${none} choose one of its repositories: ${join(parent, 'backups')}, ${join(parent, 'weekly')}\n`,
    );
    expect((await sparrow(['check', '--repository', join(parent, 'weekly')])).code).toBe(0);
    await mkdir(join(folder, 'empty'));
    const empty = await sparrow(['check', '--repository', join(folder, 'empty')]);
    expect([empty.code, empty.stderr]).toEqual([1, expect.stringContaining('neither repository.json nor snapshots')]);
  });
});
