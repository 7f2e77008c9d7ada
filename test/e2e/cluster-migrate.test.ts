// Indices that move from a data directory into a cluster and back, by the command, with their vectors.
import { randomBytes } from 'node:crypto';
import { cp, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { begin, sparrow } from '../cli/support.js';
import { CLUSTER, NO_CLUSTER, NODE, OVER_CLUSTER } from '../support/engines.js';
import { type RunningServer, startServer } from '../support/server.js';

const MODEL = '.sparse_encoder_model_2';
/** A model that the command does not have: it could encode nothing. */
const OWN_MODEL = fileURLToPath(new URL('../../crates/encoder/tests/fixtures/checkpoint-bert', import.meta.url));
const run = randomBytes(4).toString('hex');
const of = (name: string) => `moving-${run}-${name}`;
const DOCUMENTS = 400;
const THINGS = ['whale', 'volcano', 'glacier', 'bakery', 'violin', 'harbour'];

type Hit = { _id: string; _score: number; _source: any; _routing?: string; highlight?: unknown };

async function ask(server: RunningServer, method: string, path: string, body?: unknown): Promise<any> {
  const answer = await server.request(method, path, body);
  expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300);
  return answer.body;
}

async function cluster(method: string, path: string): Promise<any> {
  return (await fetch(`${NODE}${path}`, { method })).json();
}

async function questions(server: RunningServer): Promise<Hit[][]> {
  const all = [];
  for (const thing of THINGS) {
    const query = { text_expansion: { tokens: { model_id: MODEL, model_text: `a ${thing}` } } };
    all.push((await ask(server, 'POST', `/${of('a')}/_search`, { query, size: 20 })).hits.hits as Hit[]);
  }
  const knn = { field: 'vector', query_vector: [200.4, 1], k: 20, num_candidates: 400 };
  all.push((await ask(server, 'POST', `/${of('a')}/_search`, { knn, size: 20 })).hits.hits as Hit[]);
  return all;
}

/** How vectors are mapped, which both sides show. */
const VECTOR = {
  type: 'dense_vector',
  dims: 2,
  index: true,
  similarity: 'l2_norm',
  index_options: { type: 'hnsw', m: 16, ef_construction: 100 },
};

/** What is found by meaning, with its passages. */
async function meanings(server: RunningServer): Promise<Hit[][]> {
  const all = [];
  for (const field of ['dense', 'inner.sparse']) {
    const query = { semantic: { field, query: 'red coin' } };
    const highlight = { fields: { [field]: {} } };
    all.push((await ask(server, 'POST', `/${of('passages')}/_search`, { query, highlight })).hits.hits as Hit[]);
  }
  return all;
}
const found = (answers: Hit[][]) => answers.map((hits) => hits.map(({ _id, highlight }) => [_id, highlight]));

/** Scores in order: equal ones may change places. */
const TEXTS = [
  'The red coin lies on the table near the window of the old house by the sea.',
  'A blue whale is the largest animal that has ever lived on this planet of ours.',
  'Bread rises slowly, because yeast works at its own pace and needs warmth to live.',
];
const scores = (answers: Hit[][]) => answers.map((hits) => hits.map(({ _score }) => _score));

describe.skipIf(CLUSTER === undefined)(`indices that move${CLUSTER === undefined ? ` (${NO_CLUSTER})` : ''}`, () => {
  let data: string;
  let before: Hit[][];
  let models: string;
  let meant: Hit[][];
  const migrate = (...args: string[]) => sparrow(['migrate', '--json', ...args]);

  beforeAll(async () => {
    models = await mkdtemp(join(tmpdir(), 'sparrow-models-'));
    await cp(OWN_MODEL, join(models, 'own'), { recursive: true });
    const server = await startServer({ args: ['--models', models] });
    ({ data } = server);
    await ask(server, 'PUT', `/_ingest/pipeline/${of('embed')}`, {
      processors: [
        { inference: { model_id: MODEL, input_output: [{ input_field: 'content', output_field: 'tokens' }] } },
      ],
    });
    for (const index of ['a', 'b']) {
      await ask(server, 'PUT', `/${of(index)}`, {
        settings: { default_pipeline: of('embed') },
        mappings: {
          _meta: { mine: 1 },
          properties: {
            content: { type: 'text' },
            tokens: { type: 'sparse_vector' },
            n: { type: 'long' },
            vector: VECTOR,
          },
        },
        aliases: { [of(`alias-${index}`)]: { filter: { term: { n: 3 } } } },
      });
    }
    const lines = Array.from({ length: DOCUMENTS }, (_, at) => {
      const action = { _index: of('a'), _id: String(at), ...(at % 7 === 0 ? { routing: `r${at % 3}` } : {}) };
      const content = `Document ${at} tells of a ${THINGS[at % THINGS.length] ?? ''}.`;
      const n = at === 5 ? '9007199254740993' : at;
      return `${JSON.stringify({ index: action })}\n{"content":"${content}","n":${n},"vector":[${at},1]}\n`;
    });
    expect((await ask(server, 'POST', '/_bulk?refresh=true', lines.join(''))).errors).toBe(false);
    await ask(server, 'PUT', `/${of('b')}/_doc/only?refresh=true`, { content: 'one', n: 1 });
    // Sequence numbers with gaps.
    for (const id of ['1', '2']) await ask(server, 'DELETE', `/${of('a')}/_doc/${id}`);
    await ask(server, 'PUT', `/${of('a')}/_doc/3?refresh=true`, { content: 'A whale once more.', n: 3 });
    await makeEndpoint(server);
    const chunking_settings = { strategy: 'word', max_chunk_size: 10, overlap: 5 };
    await ask(server, 'PUT', `/${of('passages')}`, {
      mappings: {
        properties: {
          dense: { type: 'semantic_text', inference_id: of('own'), chunking_settings },
          inner: { properties: { sparse: { type: 'semantic_text', inference_id: MODEL, chunking_settings } } },
        },
      },
    });
    for (const [at, text] of TEXTS.entries()) {
      const path = `/${of('passages')}/_doc/${at}?refresh=true${at === 1 ? '&routing=r' : ''}`;
      await ask(server, 'PUT', path, { n: at, dense: text, inner: { sparse: [text, 'and another one'] } });
    }
    await ask(server, 'PUT', `/${of('passages')}/_doc/none?refresh=true`, { n: 9 });
    meant = await meanings(server);
    expect(meant.map((hits) => hits.length)).toEqual([TEXTS.length, expect.any(Number)]);
    await ask(server, 'PUT', `/${of('partial')}`, { mappings: { _source: { excludes: ['tokens'] } } });
    before = await questions(server);
    expect(before[0]?.length).toBeGreaterThan(10);
    expect(await server.stop()).toBe(0);
  }, 300_000);

  afterAll(async () => {
    for (const index of ['a', 'b', 'passages']) await cluster('DELETE', `/${of(index)}`);
  });

  const makeEndpoint = (server: RunningServer): Promise<unknown> =>
    ask(server, 'PUT', `/_inference/text_embedding/${of('own')}`, {
      service: 'elasticsearch',
      service_settings: { num_allocations: 1, num_threads: 1, model_id: 'own' },
    });

  it('refuse what makes no sense, and what cannot be moved, before anything is', async () => {
    const place = CLUSTER ?? '';
    expect(await migrate('--from', data, '--to', data)).toMatchObject({ code: 2 });
    expect((await migrate('--from', '/no/such/place', '--to', place)).stderr).toContain('there is no data directory');
    const unreachable = await migrate('--from', data, '--to', 'http://127.0.0.1:1');
    expect(unreachable).toMatchObject({ code: 1, stdout: '' });
    expect(unreachable.stderr).toContain('the cluster cannot be used: no node of the cluster answers');
    const passages = await migrate('--from', data, '--to', place, '--index', of('passages'));
    expect(passages.code).toBe(1);
    expect(passages.stderr).toContain(`inference endpoint [${of('own')}] cannot be made there: `);
    expect(passages.stderr).toContain('make it first, by a server that has its model');
    const partial = await migrate('--from', data, '--to', place, '--index', of('*'));
    expect(partial.stderr).toContain(`index [${of('partial')}] keeps a part of its _source only`);
    expect((await cluster('GET', `/${of('*')}`)) as object).toEqual({});
  }, 120_000);

  it('go into a cluster, also after an interruption, with everything once and nothing encoded', async () => {
    const args = ['--from', data, '--to', CLUSTER ?? '', '--index', of('a'), of('b'), '--shards', '2', '--batch', '5'];
    const first = begin(['migrate', '--json', ...args]);
    for (let there = 0; there === 0;) {
      const { count = 0 } = await cluster('GET', `/${of('a')}/_count`).catch(() => ({}));
      there = count;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    first.process.kill('SIGINT');
    const interrupted = await first.ended;
    expect(interrupted.code, interrupted.stderr).toBe(130);
    const [{ documents }] = JSON.parse(interrupted.stdout);
    expect(documents).toBeGreaterThan(0);
    expect(documents).toBeLessThan(DOCUMENTS - 2);
    const second = await migrate(...args);
    expect(second.code, second.stderr).toBe(0);
    expect(JSON.parse(second.stdout)).toMatchObject([
      {
        index: of('a'),
        documents: DOCUMENTS - 2,
        interrupted: false,
        compared: { documents: 20, searches: 20, differences: [] },
      },
      { index: of('b'), documents: 1, compared: { differences: [] } },
    ]);
    const found = await cluster('GET', `/${of('a')}/_search?size=1000&version=true`);
    expect(found.hits.hits).toHaveLength(DOCUMENTS - 2);
    expect(found.hits.hits.filter((hit: any) => hit._version !== 1)).toEqual([]);

    const server = await OVER_CLUSTER.start();
    try {
      const shown = (await ask(server, 'GET', `/${of('a')}`))[of('a')];
      expect(shown.mappings._meta).toEqual({ mine: 1 });
      expect(shown.mappings).toMatchObject({
        properties: {
          content: { type: 'text' },
          tokens: { type: 'sparse_vector' },
          n: { type: 'long' },
          vector: VECTOR,
        },
      });
      expect(shown.aliases[of('alias-a')].filter).toEqual({ term: { n: 3 } });
      expect(shown.settings.index.default_pipeline).toBe(of('embed'));
      const after = scores(await questions(server));
      scores(before).forEach((list, question) => {
        list.forEach((score, place) => {
          const other = after[question]?.[place] ?? 0;
          expect(other).toBeLessThanOrEqual(score * (1 + 1e-4));
          expect(other).toBeGreaterThanOrEqual(score * (1 - 2 ** -8));
        });
      });
      const five = await server.request('GET', `/${of('a')}/_doc/5`);
      expect(five.text).toContain('9007199254740993');
      // With two shards a document is found only by the routing that it has kept.
      expect((await ask(server, 'GET', `/${of('a')}/_doc/7?routing=r1`))._routing).toBe('r1');
      // A second run has nothing to go on with.
      expect((await migrate(...args)).stderr).toContain('is there already: delete it');
    } finally {
      await server.stop();
    }
  }, 300_000);

  it('come back as they were', async () => {
    const place = await mkdtemp(join(tmpdir(), 'sparrow-back-'));
    const back = await migrate('--from', CLUSTER ?? '', '--to', place, '--index', of('a'), of('b'));
    expect(back.code, back.stderr).toBe(0);
    expect(JSON.parse(back.stdout)).toMatchObject([
      { index: of('a'), documents: DOCUMENTS - 2, compared: { differences: [] } },
      { index: of('b'), documents: 1 },
    ]);
    const server = await startServer({ data: place });
    try {
      expect(scores(await questions(server))).toEqual(scores(before));
      expect((await server.request('GET', `/${of('a')}/_doc/5`)).text).toContain('9007199254740993');
      expect((await ask(server, 'POST', `/${of('alias-a')}/_search`)).hits.hits.map((it: Hit) => it._id)).toEqual([
        '3',
      ]);
    } finally {
      await server.stop();
    }
  }, 300_000);

  it('take semantic_text with them in both directions, with nothing encoded', async () => {
    const server = await OVER_CLUSTER.start({ args: ['--models', models] });
    try {
      await makeEndpoint(server);
      const into = await migrate('--from', data, '--to', CLUSTER ?? '', '--index', of('passages'), '--batch', '2');
      expect(into.code, into.stderr).toBe(0);
      const compared = { documents: expect.any(Number) as unknown, differences: [] };
      const moved = { index: of('passages'), documents: TEXTS.length + 1, compared };
      expect(JSON.parse(into.stdout)).toMatchObject([moved]);
      const shown = (await ask(server, 'GET', `/${of('passages')}/_mapping`))[of('passages')].mappings.properties;
      expect(shown.dense).toMatchObject({ inference_id: of('own'), model_settings: { task_type: 'text_embedding' } });
      expect(found(await meanings(server))).toEqual(found(meant));
      // A text that is as it was is not encoded when another one changes.
      await ask(server, 'POST', `/${of('passages')}/_update/0`, { doc: { n: 10 } });

      const place = await mkdtemp(join(tmpdir(), 'sparrow-back-'));
      const refused = await migrate('--from', CLUSTER ?? '', '--to', place, '--index', of('passages'));
      expect(refused.stderr).toContain(`inference endpoint [${of('own')}] cannot be made there: `);
      const first = await startServer({ data: place, args: ['--models', models] });
      await makeEndpoint(first);
      expect(await first.stop()).toBe(0);
      const back = await migrate('--from', CLUSTER ?? '', '--to', place, '--index', of('passages'));
      expect(back.code, back.stderr).toBe(0);
      expect(JSON.parse(back.stdout)).toMatchObject([moved]);
      const native = await startServer({ data: place, args: ['--models', models] });
      try {
        const again = await meanings(native);
        expect(found(again)).toEqual(found(meant));
        expect(scores(again)).toEqual(scores(meant));
      } finally {
        await native.stop();
      }
    } finally {
      await server.request('DELETE', `/_inference/${of('own')}?force=true`);
      await server.stop();
    }
  }, 300_000);
});
