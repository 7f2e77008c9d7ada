// A server over a cluster is killed while it writes documents with semantic_text: nothing that was acknowledged is lost, and no document
// is found by a text that it does not have any more.
import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { CLUSTER, NO_CLUSTER, OVER_CLUSTER } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

const TEXTS = [
  'Sore muscles after a long run recover faster with rest, water and gentle stretching.',
  'A philatelist is a person who collects and studies postage stamps.',
  'Agoraphobia is the fear of open spaces and crowded public places.',
  'Sourdough bread rises slowly because wild yeast works at its own pace.',
  'The blue whale is the largest animal that has ever lived.',
];
/** Words that every one of the texts is found by. */
const QUESTION = 'muscles, stamps, crowds, bread and whales';
const WRITERS = 4;
const OWN = 10;
const ROUNDS = 12;

const run = randomBytes(4).toString('hex');
const of = (name: string) => `passages-${run}-${name}`;
const textOf = (at: number) => TEXTS[at % TEXTS.length] ?? '';

describe.skipIf(CLUSTER === undefined)(
  `documents with semantic_text, when a server is killed${CLUSTER === undefined ? ` (${NO_CLUSTER})` : ''}`,
  () => {
    let one: RunningServer;
    let two: RunningServer;

    async function ask(method: string, path: string, body?: unknown, status = 200): Promise<any> {
      const answer = await two.request(method, path, body);
      expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
      return answer.body;
    }

    beforeAll(async () => {
      [one, two] = await Promise.all([OVER_CLUSTER.start(), OVER_CLUSTER.start()]);
    }, 120_000);

    afterAll(async () => {
      for (const index of ['load', 'source', 'copied', 'again']) await two.request('DELETE', `/${of(index)}`);
      await Promise.all([one.stop(), two.stop()]);
    });

    const make = (index: string) =>
      ask('PUT', `/${of(index)}`, {
        mappings: { properties: { body: { type: 'semantic_text', inference_id: '.hybrid' }, n: { type: 'integer' } } },
      });
    const lines = (all: readonly object[]) => all.map((it) => `${JSON.stringify(it)}\n`).join('');

    /** What each document may say: what was acknowledged last, or what was sent since and not answered. */
    type Allowed = Map<string, Set<string>>;

    /** Writes documents again and again, each of its own; through both servers while both are there. */
    async function write(index: string, writer: number, allowed: Allowed, done?: () => void, rounds = ROUNDS) {
      for (let round = 0; round < rounds; round += 1) {
        const server = (round + writer) % 2 === 0 ? one : two;
        const own = Array.from({ length: OWN }, (_, at) => ({ id: `${writer}-${at}`, body: textOf(round + at) }));
        for (const { id, body } of own) allowed.set(id, new Set([...(allowed.get(id) ?? []), body]));
        const isUpdate = round % 2 === 1;
        const sent = own.flatMap(({ id, body }): object[] =>
          isUpdate
            ? [{ update: { _id: id, retry_on_conflict: 20 } }, { doc: { body }, doc_as_upsert: true }]
            : [{ index: { _id: id } }, { body, n: round }],
        );
        const answer = await server.request('POST', `/${of(index)}/_bulk`, lines(sent)).catch(() => undefined);
        if (answer === undefined) continue;
        expect(answer.status, answer.text).toBe(200);
        answer.body.items.forEach((item: any, at: number) => {
          const { status } = Object.values(item)[0] as any;
          const { id, body } = own[at] ?? { id: '', body: '' };
          if (status === 200 || status === 201) allowed.set(id, new Set([body]));
        });
        done?.();
      }
    }

    /** Compares all documents with fresh ones of the same texts: by tokens, by vectors, and by what passages are shown. */
    async function areTrue(index: string, allowed?: Allowed): Promise<void> {
      const fresh = TEXTS.flatMap((body, at) => [{ index: { _id: `fresh-${at}` } }, { body }]);
      expect((await ask('POST', `/${of(index)}/_bulk?refresh=true`, lines(fresh))).errors).toBe(false);
      const search = async (body: object): Promise<any[]> =>
        (await ask('POST', `/${of(index)}/_search`, { size: 1000, ...body })).hits.hits;
      const documents = new Map((await search({})).map(({ _id, _source }) => [_id, _source.body as string]));
      for (const [id, texts] of allowed ?? []) expect([...texts], id).toContain(documents.get(id));
      const byModel = { query_vector_builder: { text_embedding: { model_text: QUESTION } } };
      for (const query of [
        { sparse_vector: { field: 'body', query: QUESTION } },
        { knn: { field: 'body', k: 1000, num_candidates: 1000, ...byModel } },
      ]) {
        const scores = new Map(
          (await search({ query, _source: false })).map(({ _id, _score }) => [_id, _score as number]),
        );
        for (const [id, text] of documents) {
          const expected = scores.get(`fresh-${TEXTS.indexOf(text)}`);
          expect(expected, text).toBeGreaterThan(0);
          // Elasticsearch keeps 8 bits of each number of a vector, in each segment other ones.
          expect(scores.get(id), `${id}: ${text}`).toBeCloseTo(expected ?? NaN, 'knn' in query ? 2 : 4);
        }
      }
      const highlight = { fields: { body: { number_of_fragments: 1 } } };
      for (const { _id, highlight: shown } of await search({ query: { match: { body: QUESTION } }, highlight }))
        expect(shown.body, _id).toEqual([documents.get(_id)]);
    }

    async function completed(task: string): Promise<any> {
      for (const end = Date.now() + 120_000; Date.now() < end;) {
        const found = await ask('GET', `/_tasks/${task}`);
        if (found.completed === true) return found.response;
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
      throw new Error(`${task} does not end`);
    }

    /** Kills the first server once a task has got somewhere, and waits until the other one has carried it to its end. */
    async function killedIn(task: string, progress: (status: any) => number): Promise<any> {
      for (let done = 0; done < 40;) {
        done = progress((await ask('GET', `/_tasks/${task}`)).task.status);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      await one.kill();
      expect((await ask('GET', `/_tasks/${task}`)).completed).toBe(false);
      const response = await completed(task);
      one = await OVER_CLUSTER.start();
      return response;
    }

    it('has what was acknowledged of a load, and finds nothing by an old text', async () => {
      await make('load');
      const allowed: Allowed = new Map();
      let answered = 0;
      let killed: Promise<void> | undefined;
      const done = () => {
        answered += 1;
        if (answered === (WRITERS * ROUNDS) / 2) killed ??= one.kill();
      };
      await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write('load', writer, allowed, done)));
      expect(killed, 'the load was over before the server was killed').toBeDefined();
      await killed;
      one = await OVER_CLUSTER.start();
      await areTrue('load', allowed);
    }, 240_000);

    it('carries a copy into the field to its end', async () => {
      const total = 200;
      await ask('PUT', `/${of('source')}`, { mappings: { properties: { body: { type: 'text' } } } });
      const documents = Array.from({ length: total }, (_, at) => [
        { index: { _id: `${at}` } },
        { body: textOf(at), n: at },
      ]);
      await ask('POST', `/${of('source')}/_bulk?refresh=true`, lines(documents.flat()));
      await make('copied');
      const body = { source: { index: of('source'), size: 20 }, dest: { index: of('copied') } };
      const path = '/_reindex?wait_for_completion=false&refresh=true&requests_per_second=60';
      const { task } = (await one.request('POST', path, body)).body;
      const response = await killedIn(task, ({ created }) => created);
      expect(response).toMatchObject({ total, failures: [] });
      expect(response.created + response.updated).toBe(total);
      expect((await ask('GET', `/${of('copied')}/_count`)).count).toBe(total);
      await areTrue('copied', new Map(Array.from({ length: total }, (_, at) => [`${at}`, new Set([textOf(at)])])));
    }, 240_000);

    it('writes documents again by a query, beside others who write them', async () => {
      await make('again');
      const still = Array.from({ length: 160 }, (_, at) => [
        { index: { _id: `still-${at}` } },
        { body: textOf(at), n: 0 },
      ]);
      const moving = Array.from({ length: WRITERS * OWN }, (_, at) => [
        { index: { _id: `${at % WRITERS}-${Math.floor(at / WRITERS)}` } },
        { body: textOf(at), n: 0 },
      ]);
      await ask('POST', `/${of('again')}/_bulk?refresh=true`, lines([...still.flat(), ...moving.flat()]));
      const path = `/${of('again')}/_update_by_query?wait_for_completion=false&conflicts=proceed&requests_per_second=60&scroll_size=20`;
      const { task } = (await one.request('POST', path, { query: { match_all: {} } })).body;
      const allowed: Allowed = new Map(still.map((_, at) => [`still-${at}`, new Set([textOf(at)])]));
      const writing = (rounds?: number) =>
        Promise.all(Array.from({ length: WRITERS }, (_, writer) => write('again', writer, allowed, undefined, rounds)));
      const [response] = await Promise.all([killedIn(task, ({ updated }) => updated), writing()]);
      expect(response.failures).toEqual([]);
      // The server that goes on reads neither what it wrote itself nor what others have written since the task began.
      const handled = response.updated + response.version_conflicts;
      expect(handled).toBeGreaterThanOrEqual(still.length);
      expect(handled).toBeLessThanOrEqual(still.length + moving.length);
      await areTrue('again', allowed);
      // Now the documents that others write come last: they are other ones than those that were read when it began.
      await writing(1);
      await ask('POST', `/${of('again')}/_refresh`);
      const next = (await two.request('POST', path, { query: { match_all: {} } })).body.task as string;
      await writing(2);
      const { failures, version_conflicts: conflicts } = await completed(next);
      expect(failures).toEqual([]);
      expect(conflicts).toBeGreaterThan(0);
      await areTrue('again', allowed);
    }, 240_000);
  },
);
