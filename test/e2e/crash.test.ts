// A server killed in the middle of work loses nothing that it acknowledged. Slow machines and the moment of the kill make
// each run different, so the number of acknowledged writes is checked, not assumed.
import { afterEach, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const MODEL = '.sparse_encoder_model_2';

let server: RunningServer | undefined;

afterEach(async () => {
  await server?.kill();
});

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Every id of an index, page by page. */
async function idsOf(running: RunningServer, index: string): Promise<Set<string>> {
  await running.request('POST', `/${index}/_refresh`);
  const ids = new Set<string>();
  for (let from = 0; ; from += 1000) {
    const { body } = await running.request('POST', `/${index}/_search`, { from, size: 1000, _source: false });
    for (const hit of body.hits.hits) ids.add(hit._id);
    if (body.hits.hits.length < 1000) return ids;
  }
}

describe('kill -9', () => {
  it('during a bulk load loses nothing that was acknowledged', async () => {
    server = await startServer({ args: ['--deploy-at-start', 'false'] });
    await server.request('PUT', '/books', { mappings: { properties: { title: { type: 'text' } } } });
    const acknowledged: string[] = [];
    const load = async (worker: number): Promise<void> => {
      for (let batch = 0; ; batch += 1) {
        const ids = Array.from({ length: 20 }, (_, index) => `${String(worker)}-${String(batch)}-${String(index)}`);
        const lines = ids.map((id) => `{"index":{"_id":"${id}"}}\n{"title":"number ${id}"}\n`).join('');
        const answer = await server?.request('POST', '/books/_bulk', lines);
        if (answer?.status !== 200 || answer.body.errors !== false) throw new Error(answer?.text);
        acknowledged.push(...ids);
      }
    };
    const loading = Promise.allSettled([load(0), load(1), load(2)]);
    while (acknowledged.length < 600) await pause(20);
    await server.kill();
    await loading;
    expect(acknowledged.length).toBeGreaterThanOrEqual(600);
    expect(acknowledged.length).toBeLessThan(9000);

    server = await startServer({ data: server.data, args: ['--deploy-at-start', 'false'] });
    const present = await idsOf(server, 'books');
    expect(acknowledged.filter((id) => !present.has(id))).toEqual([]);
  });

  it('during a long reindex through a model repeats nothing that the model has done', async () => {
    // Small texts, so that they take seconds.
    const total = 20_000;
    server = await startServer();
    for (let from = 0; from < total; from += 1000) {
      const lines = Array.from({ length: 1000 }, (_, n) => {
        const id = String(from + n);
        return `{"index":{"_id":"${id}"}}\n{"content":"bird ${id}"}\n`;
      });
      expect((await server.request('POST', '/source/_bulk', lines.join(''))).body.errors).toBe(false);
    }
    await server.request('PUT', '/target', { mappings: { properties: { v: { type: 'sparse_vector' } } } });
    await server.request('PUT', '/_ingest/pipeline/p', {
      processors: [{ inference: { model_id: MODEL, input_output: [{ input_field: 'content', output_field: 'v' }] } }],
    });
    const inferences = async (): Promise<number> => {
      const answer = await server?.request('GET', `/_ml/trained_models/${MODEL}/_stats`);
      return answer?.body.trained_model_stats[0].deployment_stats.inference_count as number;
    };
    const { body: started } = await server.request('POST', '/_reindex?wait_for_completion=false', {
      source: { index: 'source' },
      dest: { index: 'target', pipeline: 'p', op_type: 'create' },
    });
    let created = 0;
    while (created < total / 2) {
      created = (await server.request('GET', `/_tasks/${started.task}`)).body.task.status.created;
      await pause(5);
    }
    const before = await inferences();
    await server.kill();
    expect(created).toBeLessThan(total);

    server = await startServer({ data: server.data });
    let task = await server.request('GET', `/_tasks/${started.task}`);
    while (task.status === 200 && task.body.completed === false) {
      await pause(50);
      task = await server.request('GET', `/_tasks/${started.task}`);
    }
    expect(task.status, task.text).toBe(200);
    // Each document was created once, and the second run began behind what the first had written.
    expect(task.body.response).toMatchObject({ total, created: total, version_conflicts: 0, failures: [] });
    const after = await inferences();
    // The last chunk of 250 documents may have been written and counted, and not set down.
    expect(after).toBeLessThanOrEqual(total - created + 250);
    expect(after).toBeGreaterThan(0);
    // Only what was encoded and not written yet was encoded again: four chunks of 250 documents at most.
    expect(before + after).toBeLessThanOrEqual(total + 1000);
    await server.request('POST', '/target/_refresh');
    const { body: counted } = await server.request('POST', '/target/_count', { query: { exists: { field: 'v' } } });
    expect(counted.count).toBe(total);
  }, 300_000);

  it('during a reindex through a model resumes and ends with every document', async () => {
    const total = 300;
    server = await startServer();
    const ids = Array.from({ length: total }, (_, index) => String(index));
    const lines = ids.map((id) => `{"index":{"_id":"${id}"}}\n{"content":"passage number ${id} about birds"}\n`);
    expect((await server.request('POST', '/source/_bulk?refresh=true', lines.join(''))).body.errors).toBe(false);
    await server.request('PUT', '/target', { mappings: { properties: { v: { type: 'sparse_vector' } } } });
    await server.request('PUT', '/_ingest/pipeline/p', {
      processors: [{ inference: { model_id: MODEL, input_output: [{ input_field: 'content', output_field: 'v' }] } }],
    });
    const { body: started } = await server.request(
      'POST',
      '/_reindex?wait_for_completion=false&requests_per_second=100',
      {
        source: { index: 'source', size: 20 },
        dest: { index: 'target', pipeline: 'p' },
      },
    );
    let created = 0;
    while (created < 40) {
      created = (await server.request('GET', `/_tasks/${started.task}`)).body.task.status.created;
      await pause(20);
    }
    expect(created).toBeLessThan(total);
    await server.kill();

    server = await startServer({ data: server.data });
    const survived = await idsOf(server, 'target');
    expect(survived.size).toBeGreaterThanOrEqual(created);
    await server.request('POST', `/_reindex/${started.task}/_rethrottle?requests_per_second=-1`);
    let task = await server.request('GET', `/_tasks/${started.task}`);
    while (task.status === 200 && task.body.completed === false) {
      await pause(50);
      task = await server.request('GET', `/_tasks/${started.task}`);
    }
    expect(task.status, task.text).toBe(200);
    expect(task.body.response, task.text).toMatchObject({ failures: [] });
    expect([...(await idsOf(server, 'target'))].sort()).toEqual([...ids].sort());
  }, 120_000);
});
