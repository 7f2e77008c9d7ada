// The tasks that have ended, which the engine shows only to who knows their ids.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server.stop();
});

const history = async (): Promise<any[]> => (await server.request('GET', '/_ext/tasks')).body.tasks;

async function ended(task: string): Promise<void> {
  const { status } = await server.request('GET', `/_tasks/${task}?wait_for_completion=true&timeout=30s`);
  expect(status).toBe(200);
}

it('lists tasks that have ended with what they did, also after a restart', async () => {
  expect(await history()).toEqual([]);
  for (const n of [1, 2]) await server.request('PUT', `/a/_doc/${String(n)}?refresh=true`, { n });
  const started: string[] = [];
  for (const [path, body] of [
    ['/_reindex', { source: { index: 'a' }, dest: { index: 'b' } }],
    ['/a/_update_by_query', {}],
  ] as const) {
    const { body: answer } = await server.request('POST', `${path}?wait_for_completion=false`, body);
    started.unshift(answer.task as string);
    await ended(answer.task as string);
  }
  // What is waited for has no id that anybody could ask for.
  await server.request('POST', '/a/_delete_by_query?refresh=true', { query: { term: { n: 1 } } });
  const listed = await history();
  expect(listed.map(({ task }) => `${task.node}:${task.id}`)).toEqual(started);
  expect(listed[1]).toMatchObject({ completed: true, response: { total: 2, created: 2 } });
  await server.stop();
  server = await startServer({ data: server.data });
  expect((await history()).map(({ response }) => response)).toEqual(listed.map(({ response }) => response));
});

it('begins anew where its file cannot be read, and says so', async () => {
  await server.stop();
  await writeFile(join(server.data, 'task-history.json'), '{"format":1,"tasks":"none"}');
  server = await startServer({ data: server.data });
  expect(await history()).toEqual([]);
  expect(server.output()).toContain('the history of tasks cannot be read; a new one is begun');
});
