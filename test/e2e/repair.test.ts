// `sparrow check` and `sparrow repair` on the files that the server itself keeps, and `sparrow check --repository`.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, readdir, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect, it } from 'vitest';

import { startServer } from '../support/server.js';

const CLI = fileURLToPath(new URL('../../packages/server/dist/cli.js', import.meta.url));
const ARGS = ['--deploy-at-start', 'false'];

function sparrow(...args: string[]): Promise<{ code: number; report: any }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [CLI, ...args, '--json'], (_, stdout) => {
      resolve({ code: child.exitCode ?? -1, report: JSON.parse(stdout) });
    });
  });
}

function said(...args: string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(process.execPath, [CLI, ...args], (_, stdout) => {
      resolve(stdout);
    });
  });
}

it('leaves out damaged keys and a damaged identity, so that a server starts on the result', async () => {
  const server = await startServer({ args: ARGS });
  await server.request('PUT', '/books/_doc/1', { title: 'Emma' });
  await server.stop();
  const files = ['identity.json', 'security/api_keys.json'];
  for (const file of files) {
    const path = join(server.data, file);
    await writeFile(path, (await readFile(path, 'utf8')).replace('"format":1', '"format":1 '));
  }
  const checked = await sparrow('check', server.data);
  const found = checked.report.problems.map(({ file }: any) => file as string).sort();
  expect([checked.code, found]).toEqual([1, files]);

  const into = join(await mkdtemp(join(tmpdir(), 'sparrow-repaired-')), 'data');
  const { code, report } = await sparrow('repair', server.data, '--into', into);
  expect([code, report.left_out.sort()]).toEqual([1, files]);
  expect(report.found.problems.map(({ file }: any) => file as string).sort()).toEqual(files);
  if (process.platform !== 'win32') {
    expect((await stat(into)).mode & 0o777).toBe(0o700);
    expect((await stat(join(into, 'owner.key'))).mode & 0o777).toBe(0o600);
  }
  const repaired = await startServer({ data: into, args: ARGS });
  expect((await repaired.request('GET', '/books/_count')).body.count).toBe(1);
  await repaired.stop();
});

it('names damaged files of a snapshot repository and the snapshots that need them, while a server uses it', async () => {
  const repositories = await mkdtemp(join(tmpdir(), 'sparrow-repositories-'));
  const server = await startServer({ args: [...ARGS, '--repo-path', repositories] });
  await server.request('PUT', '/_snapshot/r', { type: 'fs', settings: { location: 'r' } });
  const repository = join(repositories, 'r');
  for (const [index, name] of [
    ['books', 'monday'],
    ['films', 'tuesday'],
  ] as const) {
    await server.request('PUT', `/${index}/_doc/1`, { title: name });
    const made = await server.request('PUT', `/_snapshot/r/${name}?wait_for_completion=true`, { indices: index });
    expect(made.body.snapshot.state).toBe('SUCCESS');
    if (name === 'tuesday') break;
    const whole = await sparrow('check', '--repository', repository);
    expect([whole.code, whole.report.problems, whole.report.snapshots.length]).toEqual([0, [], 1]);
  }
  const monday = await sparrow('check', '--repository', repository);
  expect([monday.code, monday.report.snapshots.map(({ snapshot }: any) => snapshot as string)]).toEqual([
    0,
    ['monday', 'tuesday'],
  ]);
  const files = await readdir(join(repository, 'blobs'), { recursive: true, withFileTypes: true });
  const blobs = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
  const damaged = blobs[0] ?? '';
  await truncate(damaged, 1);
  const { code, report } = await sparrow('check', '--repository', repository);
  expect(code).toBe(1);
  expect(report.problems).toHaveLength(1);
  const [problem] = report.problems;
  expect(join(repository, problem.file)).toBe(damaged);
  const affected = report.snapshots.filter((one: any) => one.damaged).map(({ snapshot }: any) => snapshot as string);
  expect(problem.snapshots).toEqual(affected);
  expect(affected.length).toBeGreaterThan(0);
  const text = await said('check', '--repository', repository);
  expect(text).toContain(`${problem.file as string}: ${problem.reason as string} (snapshot [${affected[0] as string}]`);
  expect(text).toMatch(/1 damaged or missing file\n$/);
  await server.stop();
});
