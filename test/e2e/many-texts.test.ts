// Many long texts in one request to a model: what it takes, who else is answered meanwhile, and how it ends.
import { readFileSync, rmSync } from 'node:fs';
import { type Socket, connect } from 'node:net';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { untilIdle } from '../load/idle.mjs';
import { largeCrossEncoder } from '../support/cross-encoder.js';
import { type RunningServer, startServer } from '../support/server.js';

const RERANK = '/_inference/rerank/ranker';
const ACTION = 'cluster:monitor/xpack/inference/post';
/** Texts of a request at most, and what one of them is here. */
const MOST = 1024;
const BYTES = 20_000;
const WORDS = ['old ', 'red ', 'stamp. ', 'green ', 'coin ', 'new ', 'blue '];

let models: string;
let server: RunningServer;
/** Texts that no model has read before: every request has others. */
let read = 0;
const textOf = (number: number): string =>
  Array.from({ length: 60 }, (_, at) => WORDS[Math.floor(number / WORDS.length ** (at % 6)) % WORDS.length]).join('') +
  'new coin '.repeat(BYTES / 9);
const body = (): object => ({ query: 'red stamps', input: Array.from({ length: MOST }, () => textOf((read += 1))) });
const pid = (): number => server.process.pid ?? 0;
const call = (method: string, path: string, sent?: unknown) => server.request(method, path, sent);

/** Sends a request on a connection of its own, and waits until its task is there. */
async function begin(path: string, sent: object): Promise<{ socket: Socket; task: string; answer: Promise<string> }> {
  const { hostname, port } = new URL(server.url);
  const text = JSON.stringify(sent);
  const socket = connect(Number(port), hostname);
  let said = '';
  socket.on('data', (chunk) => (said += chunk.toString()));
  const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ApiKey ${server.apiKey}\r\n`;
  socket.write(`${head}Content-Type: application/json\r\nContent-Length: ${String(Buffer.byteLength(text))}\r\n\r\n`);
  socket.write(text);
  const answer = new Promise<string>((resolve) => {
    socket.on('error', () => undefined);
    socket.on('close', () => {
      resolve(said);
    });
  });
  let task = '';
  await expect
    .poll(
      async () => {
        const { nodes } = (await call('GET', `/_tasks?actions=${ACTION}`)).body;
        const [found] = Object.values<any>(nodes).flatMap((node) => Object.entries<any>(node.tasks));
        task = found?.[0] ?? '';
        return found?.[1].cancellable as boolean | undefined;
      },
      { timeout: 20_000 },
    )
    .toBe(true);
  return { socket, task, answer };
}

/** The most that the process has had resident, in MiB. */
function peak(): number {
  return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${String(pid())}/status`, 'utf8'))?.[1]) / 1024;
}

beforeAll(async () => {
  models = largeCrossEncoder();
  server = await startServer({ args: ['--models', models, '--deploy-at-start', 'false'] });
  const settings = { num_allocations: 1, num_threads: 1, model_id: 'large' };
  const made = await call('PUT', RERANK, { service: 'elasticsearch', service_settings: settings });
  expect(made.status, made.text).toBe(200);
  await call('PUT', '/docs/_doc/1?refresh=true', { text: 'red fox' });
});
afterAll(async () => {
  await server.stop();
  rmSync(models, { recursive: true, force: true });
});

/** A machine that others use too takes some times as long. */
const SOON_MS = 15_000;

describe.runIf(process.platform === 'linux')('1,024 long texts to be ranked', { timeout: 90_000 }, () => {
  const isStopped = async (): Promise<void> => {
    // A server that gets no processor for a while looks idle, whatever it has to do.
    const tasks = async (): Promise<string> => (await call('GET', `/_tasks?actions=${ACTION}`)).text;
    await expect.poll(tasks, { timeout: SOON_MS }).not.toContain(ACTION);
    expect(await untilIdle(pid(), SOON_MS)).toBeLessThan(SOON_MS);
    // The model has room for others again.
    const { status, text } = await call('POST', RERANK, { query: 'red', input: ['red stamp', 'coin'] });
    expect(status, text).toBe(200);
  };

  it('keep nobody from a search, take some times their own size, and stop when the client leaves', async () => {
    const before = peak();
    const { socket } = await begin(RERANK, body());
    for (let times = 0; times < 10; times += 1) {
      const { status, text } = await call('POST', '/docs/_search', { query: { match: { text: 'fox' } } });
      expect(status, text).toBe(200);
    }
    socket.destroy();
    await isStopped();
    // They have 21 MB, and are there as bytes, as texts and as the tokens that are read of each.
    expect(peak() - before).toBeLessThan(400);
  });

  it('stop when their task is cancelled', async () => {
    const { task, answer } = await begin(RERANK, body());
    expect((await call('POST', `/_tasks/${task}/_cancel`)).status).toBe(200);
    expect(await answer).toMatch(/^HTTP\/1\.1 4\d\d .*task_cancelled_exception/s);
    await isStopped();
  });

  it('stop when their time is over', async () => {
    const { status, body: answer } = await call('POST', `${RERANK}?timeout=1s`, body());
    expect([status, answer.error.reason]).toEqual([408, 'timeout [1s] waiting for inference result']);
    await isStopped();
  });

  it('are refused where one more comes, or where a request may not take as much', async () => {
    const many = await call('POST', RERANK, { query: 'red', input: Array.from({ length: MOST + 1 }, () => 'x') });
    expect([many.status, many.body.error.reason]).toEqual([
      400,
      '[input] holds [1025] texts, at most [1024] are encoded at once',
    ]);
    const limit = async (value: string | null): Promise<void> => {
      const set = await call('PUT', '/_cluster/settings', { persistent: { 'indices.breaker.request.limit': value } });
      expect(set.status, set.text).toBe(200);
    };
    await limit('16mb');
    const large = await call('POST', RERANK, body());
    expect([large.status, large.body.error.type]).toEqual([429, 'circuit_breaking_exception']);
    await limit(null);
    await isStopped();
  });
});

describe('a text that another key has had encoded', () => {
  it('is answered in the same form, and counts are for who may monitor', async () => {
    const cluster = ['monitor_inference'];
    const issue = async (name: string): Promise<string> =>
      (await call('POST', '/_security/api_key', { name, role_descriptors: { uses: { cluster, indices: [] } } })).body
        .encoded as string;
    const [first, second] = [await issue('first'), await issue('second')];
    const ask = (apiKey: string, text: string) =>
      server.request('POST', RERANK, { query: 'red stamps', input: [text] }, { apiKey });
    const secret = textOf((read += 1));
    const [known, fresh] = [await ask(first, secret), await ask(second, textOf((read += 1)))];
    const again = await ask(second, secret);
    expect([known.status, fresh.status, again.status]).toEqual([200, 200, 200]);
    expect(again.body).toEqual(known.body);
    const names = ({ headers }: { headers: object }): string[] => Object.keys(headers).sort();
    expect(names(again)).toEqual(names(fresh));
    expect(names(again).filter((name) => /cache(?!-control)|hit|took|tim/.test(name))).toEqual([]);
    for (const path of ['/_ml/trained_models/_stats', '/_nodes/stats', '/metrics', '/_cluster/stats']) {
      expect((await server.request('GET', path, undefined, { apiKey: second })).status, path).toBe(403);
    }
  });

  it('is in no cache where the deployment has none', async () => {
    const path = '/_ml/trained_models/large/deployment';
    const started = await call('POST', `${path}/_start?deployment_id=apart&cache_size=0b&wait_for=started`);
    expect(started.status, started.text).toBe(200);
    const config = { text_similarity: { text: 'red stamps' } };
    const text = textOf((read += 1));
    for (let times = 0; times < 3; times += 1) {
      const answer = await call('POST', '/_ml/trained_models/apart/_infer', {
        docs: [{ text_field: text }],
        inference_config: config,
      });
      expect(answer.status, answer.text).toBe(200);
    }
    const { trained_model_stats: stats } = (await call('GET', '/_ml/trained_models/large/_stats')).body;
    const apart = stats.find((one: any) => one.deployment_stats?.deployment_id === 'apart').deployment_stats;
    expect(apart.nodes[0]).toMatchObject({ inference_count: 3, inference_cache_hit_count: 0 });
    expect((await call('POST', '/_ml/trained_models/apart/deployment/_stop?force=true')).status).toBe(200);
  });
});
