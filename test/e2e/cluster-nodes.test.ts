// The documented workflow on a cluster of three OpenSearch processes through two servers, either of which is killed in the middle.
import { createHash } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Found, startCluster, whyNone } from '../support/cluster/start.js';
import { type Answer, type RunningServer, startServer } from '../support/server.js';

const MODEL = '.sparse_encoder_model_2';
const DOCUMENTS = 900;
const BATCH = 30;
/** Documents a second: slow enough to be in the middle of it. */
const PACE = 60;

const why = process.env['SPARROW_TEST_CLUSTER'] === 'none' ? 'SPARROW_TEST_CLUSTER is none' : whyNone();

const THINGS = ['whale', 'volcano', 'glacier', 'bakery', 'violin', 'harbour', 'orchard', 'lantern', 'compass'];
const text = (at: number) => `Document ${at} tells of a ${THINGS[at % THINGS.length] ?? ''} and of nothing else.`;

describe.skipIf(why !== undefined)(
  `two servers over three nodes${why === undefined ? '' : ` (skipped: ${why})`}`,
  () => {
    const key = Buffer.from(`owner:${createHash('sha256').update(String(process.pid)).digest('base64url')}`).toString(
      'base64',
    );
    let nodes: string[] = [];
    let servers: RunningServer[] = [];

    const start = (): Promise<RunningServer> =>
      startServer({ args: ['--cluster', nodes.join(',')], env: { SPARROW_API_KEY: key } });

    async function ask(server: RunningServer, method: string, path: string, body?: unknown, status = 200) {
      const answer = await server.request(method, path, body);
      expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
      return answer.body;
    }

    /** Asks as a load balancer does: another server where one does not answer. */
    async function balanced(at: number, method: string, path: string, body: unknown): Promise<Answer> {
      let failure: unknown;
      for (let attempt = 0; attempt < 20; attempt += 1) {
        const server = servers[(at + attempt) % servers.length];
        try {
          if (server !== undefined) return await server.request(method, path, body);
        } catch (error) {
          failure = error;
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      }
      throw failure;
    }

    /** Asks the cluster itself. */
    async function cluster(method: string, path: string, body?: object): Promise<any> {
      const answer = await fetch(`${nodes[0] ?? ''}${path}`, {
        method,
        ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      });
      return answer.json();
    }

    beforeAll(async () => {
      const found: Found = await startCluster('opensearch-2-three-nodes');
      if (!('addresses' in found)) throw new Error(found.missing);
      nodes = found.addresses.split(',');
      servers = await Promise.all([start(), start()]);
      const [one] = servers as [RunningServer];
      const settings = { number_of_shards: 3, number_of_replicas: 1 };
      await ask(one, 'PUT', '/source', { settings, mappings: { properties: { content: { type: 'text' } } } });
      const properties = { content: { type: 'text' }, tokens: { type: 'sparse_vector' } };
      for (const index of ['dest-0', 'dest-1'])
        await ask(one, 'PUT', `/${index}`, { settings, mappings: { properties } });
      await ask(one, 'PUT', '/written', {
        settings: { ...settings, default_pipeline: 'embed' },
        mappings: { properties },
      });
      await ask(one, 'PUT', '/_ingest/pipeline/embed', {
        processors: [
          { inference: { model_id: MODEL, input_output: [{ input_field: 'content', output_field: 'tokens' }] } },
        ],
      });
      const lines = Array.from(
        { length: DOCUMENTS },
        (_, at) => `{"index":{"_id":"${at}"}}\n${JSON.stringify({ content: text(at) })}\n`,
      );
      expect((await ask(one, 'POST', '/source/_bulk?refresh=true', lines.join(''))).errors).toBe(false);
    }, 500_000);

    afterAll(async () => {
      await Promise.all(servers.map((server) => server.stop()));
    });

    it.each([0, 1])(
      'lose nothing, double nothing and end the copy when server %i is killed under load',
      async (victim) => {
        const dest = `dest-${victim}`;
        const doomed = servers[victim] as RunningServer;
        const other = servers[1 - victim] as RunningServer;
        const { task } = await ask(
          doomed,
          'POST',
          `/_reindex?wait_for_completion=false&refresh=true&requests_per_second=${PACE}`,
          { source: { index: 'source', size: BATCH }, dest: { index: dest, pipeline: 'embed' } },
        );

        let isOver = false;
        const acknowledged: string[] = [];
        const searched = { answered: 0, wrong: [] as string[] };
        const searching = async (worker: number): Promise<void> => {
          for (let at = worker; !isOver; at += 1) {
            const thing = THINGS[at % THINGS.length] ?? '';
            const query = { text_expansion: { tokens: { model_id: MODEL, model_text: `a ${thing}` } } };
            const answer = await balanced(at, 'POST', '/written/_search', { query, size: 3 });
            if (answer.status === 200) searched.answered += 1;
            else searched.wrong.push(answer.text);
          }
        };
        const writing = async (worker: number): Promise<void> => {
          for (let at = 0; !isOver; at += 1) {
            const id = `${victim}-${worker}-${at}`;
            const answer = await balanced(at, 'PUT', `/written/_doc/${id}`, { content: text(at) });
            if (answer.status < 300) acknowledged.push(id);
            else searched.wrong.push(answer.text);
          }
        };
        const load = Promise.all([searching(0), searching(1), writing(0), writing(1)]);

        for (let created = 0; created < DOCUMENTS / 4;) {
          created = (await ask(other, 'GET', `/_tasks/${task}`)).task.status.created;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        await doomed.kill();
        // What the dead server has set down; the other one takes the task over when the lease is over.
        const number = (task as string).split(':')[1] ?? '';
        const kept = JSON.parse((await cluster('GET', `/.sparrow-tasks/_doc/${number}`))._source.record);
        expect(kept.end).toBeUndefined();
        const setDown = new Set<string>();
        for (const { shard, after } of kept.shards as { shard: number; after?: number }[]) {
          const hits = await cluster('POST', `/source/_search?preference=_shards:${shard}`, {
            size: DOCUMENTS,
            _source: false,
            query: { range: { _seq_no: { lte: after ?? -1 } } },
          });
          for (const { _id } of hits.hits.hits) setDown.add(_id);
        }
        expect(setDown.size).toBeGreaterThan(DOCUMENTS / 5);
        expect(setDown.size).toBeLessThan(DOCUMENTS);

        let done = await ask(other, 'GET', `/_tasks/${task}`);
        for (const end = Date.now() + 120_000; !done.completed && Date.now() < end;) {
          await new Promise((resolve) => setTimeout(resolve, 250));
          done = await ask(other, 'GET', `/_tasks/${task}`);
        }
        isOver = true;
        await load;
        servers[victim] = await start();

        expect(done).toMatchObject({ completed: true, response: { total: DOCUMENTS, failures: [] } });
        expect(done.response.created + done.response.updated).toBe(DOCUMENTS);
        expect(done.response.updated).toBeLessThanOrEqual(BATCH);
        const copied = await cluster('POST', `/${dest}/_search`, { size: DOCUMENTS + 1, version: true });
        expect(copied.hits.hits.map((hit: any) => Number(hit._id)).sort((a: number, b: number) => a - b)).toEqual(
          Array.from({ length: DOCUMENTS }, (_, at) => at),
        );
        expect(copied.hits.hits.every((hit: any) => Object.keys(hit._source.tokens).length > 0)).toBe(true);
        // A document that was set down was written once, so it was encoded once.
        const twice = copied.hits.hits.filter((hit: any) => hit._version > 1).map((hit: any) => hit._id);
        expect(twice.filter((id: string) => setDown.has(id))).toEqual([]);

        expect(searched.wrong).toEqual([]);
        expect(searched.answered).toBeGreaterThan(20);
        expect(acknowledged.length).toBeGreaterThan(20);
        await cluster('POST', '/written/_refresh');
        const written = await cluster('POST', '/written/_search', {
          size: 10_000,
          _source: false,
        });
        const there = new Set(written.hits.hits.map((hit: any) => hit._id));
        expect(acknowledged.filter((id) => !there.has(id))).toEqual([]);
        expect(there.size).toBe(written.hits.hits.length);
      },
      300_000,
    );

    // The last one: the cluster has two nodes from here on.
    it('have each document with its passages, or neither, when a node of the cluster is killed while they are written', async () => {
      const [one, two] = servers as [RunningServer, RunningServer];
      await ask(one, 'PUT', '/meant', {
        settings: { number_of_shards: 3, number_of_replicas: 1 },
        mappings: { properties: { content: { type: 'semantic_text', inference_id: '.hybrid' } } },
      });
      await cluster('GET', '/_cluster/health/meant?wait_for_status=green&timeout=60s');
      const shards = await cluster('GET', '/_cat/shards/meant?format=json&h=prirep,node');
      const { nodes: processes } = await cluster('GET', '/_nodes/process');
      const doomed = Object.values<any>(processes).find(
        ({ name }) => name !== 'node-0' && shards.some((it: any) => it.prirep === 'p' && it.node === name),
      );
      expect(doomed, JSON.stringify(shards)).toBeDefined();

      const acknowledged = new Map<string, string>();
      let isOver = false;
      const writing = async (worker: number): Promise<void> => {
        for (let at = 0; !isOver; at += 1) {
          const documents = [0, 1, 2].map((more) => [`${worker}-${at}-${more}`, text(3 * at + more)] as const);
          const lines = documents.map(
            ([_id, content]) => `{"index":{"_id":"${_id}"}}\n${JSON.stringify({ content })}\n`,
          );
          const answer = await (worker === 0 ? one : two).request('POST', '/meant/_bulk', lines.join(''));
          // A write that may have been carried out is not sent to another node, and its sender is told so.
          if (answer.status !== 200) continue;
          answer.body.items.forEach(({ index: { _id: id, status } }: any) => {
            if (status === 201) acknowledged.set(id, documents.find(([it]) => it === id)?.[1] ?? '');
          });
        }
      };
      const load = Promise.all([writing(0), writing(1)]);
      load.catch(() => (isOver = true));
      await expect.poll(() => acknowledged.size, { timeout: 60_000 }).toBeGreaterThan(30);
      process.kill(doomed.process.id, 'SIGKILL');
      const before = acknowledged.size;
      await expect.poll(() => acknowledged.size, { timeout: 120_000 }).toBeGreaterThan(before + 60);
      isOver = true;
      await load;
      await cluster('GET', '/_cluster/health/meant?wait_for_status=yellow&wait_for_nodes=2&timeout=60s');
      await cluster('POST', '/meant/_refresh');

      const found = async (query: object): Promise<Map<string, string>> => {
        const { hits, _shards } = await ask(two, 'POST', '/meant/_search', { size: 10_000, query });
        expect(_shards).toMatchObject({ total: 3, failed: 0 });
        return new Map(hits.hits.map(({ _id, _source }: any) => [_id, _source.content]));
      };
      const there = await found({ match_all: {} });
      for (const [id, content] of acknowledged) expect(there.get(id), id).toBe(content);
      const asked = 'a document that tells of something';
      const tokens = await found({ sparse_vector: { field: 'content', query: asked } });
      const vectors = await found({
        knn: {
          field: 'content',
          k: there.size,
          num_candidates: 10_000,
          query_vector_builder: { text_embedding: { model_text: asked } },
        },
      });
      expect([...tokens.keys()].sort()).toEqual([...there.keys()].sort());
      expect([...vectors.keys()].sort()).toEqual([...there.keys()].sort());
    }, 300_000);
  },
);
