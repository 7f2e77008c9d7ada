// A server that is killed at random moments of a change of a model: the old model or the new one, never half of either.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { DENSE, SPARSE, all, fieldOf, fill, found, textOf, until } from '../support/model-change.js';
import { type RunningServer, startServer } from '../support/server.js';

const DOCUMENTS = 200;
const ROUNDS = Number(process.env['MODEL_CHANGE_ROUNDS'] ?? 5);
const seed = Number(process.env['MODEL_CHANGE_SEED'] ?? Math.floor(Math.random() * 1e9));

/** Numbers between 0 and 1, always the same ones for a seed. */
function* random(): Generator<number, never> {
  for (let state = seed >>> 0; ;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

/** The texts of all documents. */
async function textsOf(server: RunningServer): Promise<Map<string, string>> {
  const { body } = await server.request('POST', '/killed/_search', { query: { match_all: {} }, size: 5000 });
  return new Map(body.hits.hits.map((hit: any) => [hit._id, hit._source.body]));
}

/** How near the dense vector of a document is to that of a text: 1 if they are the same. */
async function scoreOf(server: RunningServer, id: string, text: string): Promise<number | undefined> {
  const query_vector_builder = { text_embedding: { model_text: text } };
  const knn = { field: 'body', k: 1, num_candidates: 10, filter: { ids: { values: [id] } }, query_vector_builder };
  const answer = await server.request('POST', '/killed/_search', { query: { knn }, _source: false });
  expect(answer.status, answer.text).toBe(200);
  return answer.body.hits.hits[0]?._score;
}

it(`survives kills in the middle of a change (seed ${String(seed)})`, async () => {
  const next = random();
  const outcomes: string[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const data = await mkdtemp(join(tmpdir(), 'sparrow-model-change-'));
    let server = await startServer({ data });
    await fill(server, 'killed', DOCUMENTS);
    // What was acknowledged last of each document, a text or that it is gone, and the change after that which was not answered.
    const acknowledged = new Map(numbers(DOCUMENTS).map((n) => [String(n), textOf(n) as string | null]));
    const unanswered = new Map<string, string | null>();
    // Writes that are acknowledged before they are in the log may be lost; what the change says of the documents may not be.
    const isAsync = round % 2 === 1;
    if (isAsync) {
      const settings = { index: { translog: { durability: 'async', sync_interval: '60s' } } };
      const set = await server.request('PUT', '/killed/_settings', settings);
      expect(set.status, set.text).toBe(200);
    }
    const path = '/killed/_ext/model/_change?wait_for_completion=false&requests_per_second=400';
    const started = server.request('POST', path, { field: 'body', inference_id: DENSE, compare: { sample: 2 } });
    let writing = true;
    const send = async (id: string, text: string | null): Promise<boolean> => {
      unanswered.set(id, text);
      const [method, body] =
        text === null ? (['DELETE', undefined] as const) : (['PUT', { n: 0, body: text }] as const);
      const answer = await server.request(method, `/killed/_doc/${id}`, body).catch(() => undefined);
      if (answer === undefined) return false;
      if (answer.status >= 300 && answer.status !== 404) return true;
      unanswered.delete(id);
      acknowledged.set(id, text);
      return true;
    };
    // New documents, others that are replaced, and others that go. No two of them write the same one.
    const writers = [
      (n: number) => send(`late-${String(n)}`, textOf(n)),
      (n: number) => send(String((n * 2) % DOCUMENTS), `${textOf(n)} It was said again.`),
      (n: number) => send(String((n * 10 + 1) % DOCUMENTS), null),
    ].map(async (write) => {
      for (let n = 0; writing && (await write(n)); n += 1);
    });
    const writer = Promise.all(writers);
    let task = '';
    // A moment in the change, twice: the second kill comes into what goes on after the first.
    for (let kill = 0; kill < 2; kill += 1) {
      if (kill === 0) {
        const answer = await started;
        expect(answer.status, answer.text).toBe(200);
        task = answer.body.task;
      }
      await new Promise((resolve) => setTimeout(resolve, next.next().value * 900));
      writing = false;
      await server.kill();
      await writer;
      server = await startServer({ data });
      // Searched by one model, whichever it is, it finds everything. The change goes on meanwhile: what falls into the switch is asked again.
      for (;;) {
        const field = await fieldOf(server, 'killed');
        const isNew = field.change.state === 'switched';
        expect(field.inference_id).toBe(isNew ? DENSE : SPARSE);
        const hits = await found(server, 'killed', isNew ? 'dense' : 'sparse').catch((error: unknown) => error);
        if ((await fieldOf(server, 'killed')).change.state !== field.change.state) continue;
        expect(hits).toEqual(await all(server, 'killed'));
        outcomes.push(String(field.change.state));
        break;
      }
    }
    await until(server, 'killed', 'switched');
    const kept = await all(server, 'killed');
    const texts = await textsOf(server);
    const after = [...acknowledged].map(([id, text]) => {
      const last = unanswered.get(id);
      return [id, last !== undefined && texts.get(id) === (last ?? undefined) ? last : text] as const;
    });
    if (!isAsync) for (const [id, text] of after) expect([id, texts.get(id) ?? null]).toEqual([id, text]);
    // Each has the vector of the text that it has now, and of no earlier one.
    for (const id of kept.filter((_, place) => place % 10 === 0)) {
      expect([id, await scoreOf(server, id, texts.get(id) ?? '')]).toEqual([id, expect.closeTo(1, 2)]);
    }
    expect(await found(server, 'killed', 'dense')).toEqual(kept);
    const ended = await server.request('GET', `/_tasks/${task}?wait_for_completion=true&timeout=30s`);
    expect(ended.body, ended.text).toMatchObject({ completed: true, response: { state: 'switched' } });
    expect((await server.request('POST', '/killed/_ext/model/_rollback')).body.state).toBe('ready');
    expect(await found(server, 'killed', 'sparse')).toEqual(kept);
    await server.kill();
    server = await startServer({ data });
    expect(await fieldOf(server, 'killed')).toMatchObject({ inference_id: SPARSE, change: { state: 'ready' } });
    await server.stop();
    await rm(data, { recursive: true, force: true });
  }
  console.log(`states after the kills: ${outcomes.join(', ')}`);
}, 400_000);
