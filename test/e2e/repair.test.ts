// `sparrow check` and `sparrow repair` on the files that the server itself keeps.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, stat, writeFile } from 'node:fs/promises';
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
