// What documents with `semantic_text` fields owe and keep: passages through mappings that change, jobs, crashes and full
// queues, and what is told about it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown) => server.request(method, path, body);
const ok = async (method: string, path: string, body?: unknown): Promise<any> => {
  const answer = await call(method, path, body);
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.body;
};
const ndjson = (...lines: unknown[]): string => `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`;
const ids = async (index: string, query: unknown): Promise<string[]> => {
  const { hits } = await ok('POST', `/${index}/_search`, { query, size: 100 });
  return hits.hits.map((hit: { _id: string }) => hit._id).sort();
};
const withPassages = (index: string, field: string) => ids(index, { exists: { field } });
const semantic = (field: string, query: string) => ({ semantic: { field, query } });
/** A text of so many sentences that nothing else says. */
const sentences = (count: number, about: string): string =>
  Array.from({ length: count }, (_, n) => `Sentence ${String(n)} of ${about} speaks of number ${String(n * 7)}.`).join(
    ' ',
  );
const WORD = { strategy: 'word', max_chunk_size: 10, overlap: 1 };
const field = (more: object = {}) => ({ type: 'semantic_text', ...more });
const create = (index: string, properties: object, more: object = {}) =>
  ok('PUT', `/${index}`, { mappings: { properties, ...more } });

beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => {
  await server.stop();
});

describe('passages', () => {
  it('are cut at the separators that a field or an endpoint names', async () => {
    const chunking_settings = { strategy: 'recursive', max_chunk_size: 10, separators: ['(?<!\\n)\\n\\n(?!\\n)', ';'] };
    await create('cut', { s: field({ chunking_settings }) });
    await ok('PUT', '/_inference/sparse_embedding/markdown', {
      service: 'elasticsearch',
      service_settings: { num_allocations: 1, num_threads: 1, model_id: '.elser_model_2' },
      chunking_settings: { strategy: 'recursive', max_chunk_size: 10, separator_group: 'markdown' },
    });
    await create('cut-markdown', { s: field({ inference_id: 'markdown' }) });
    const passages = async (index: string, s: string): Promise<string[]> => {
      await ok('PUT', `/${index}/_doc/1?refresh=true`, { s });
      const highlight = { fields: { s: { number_of_fragments: 10 } } };
      return (await ok('POST', `/${index}/_search`, { query: { match_all: {} }, highlight })).hits.hits[0].highlight.s;
    };
    expect(await passages('cut', 'One two three four five six.\n\nA b c d e f; g h i j k l m.')).toEqual([
      'One two three four five six.',
      '\n\nA b c d e f',
      '; g h i j k l m.',
    ]);
    expect((await ok('GET', '/cut/_mapping')).cut.mappings.properties.s.chunking_settings).toEqual(chunking_settings);
    const text = 'Intro of some words that come first.\n# Whales\nThey live in the sea.\n# Bread\nIt is baked.';
    expect(await passages('cut-markdown', text)).toEqual([
      'Intro of some words that come first.',
      '\n# Whales\nThey live in the sea.\n# Bread\nIt is baked.',
    ]);
    await ok('DELETE', '/cut-markdown');
    await ok('DELETE', '/_inference/markdown');
  });

  it('are made for fields that a template or an update of the mapping adds while documents come', async () => {
    await create('templated', {}, { dynamic_templates: [{ s: { match: '*_meant', mapping: field() } }] });
    const lines = [
      { index: { _id: '1' } },
      { x: 1 },
      { index: { _id: '2' } },
      { a_meant: 'blue whales', b_meant: 'bread' },
    ];
    const more = [{ index: { _id: '3' } }, { a_meant: 'hot lava' }, { delete: { _id: '1' } }];
    const done = await ok('POST', '/templated/_bulk?refresh=true', ndjson(...lines, ...more));
    expect(done.items.map((item: any) => (item.index ?? item.delete).result)).toEqual([
      'created',
      'created',
      'created',
      'deleted',
    ]);
    expect(await withPassages('templated', 'a_meant')).toEqual(['2', '3']);
    expect(await withPassages('templated', 'b_meant')).toEqual(['2']);

    // The mapping changes while the texts of the first field are being encoded: of more of them, where that is over too soon.
    let raced = false;
    for (const count of [150, 600, 2400]) {
      const index = `racing-${count}`;
      await create(index, { slow: field({ chunking_settings: WORD }) }, { dynamic: false });
      let ended = false;
      const writing = call(
        'POST',
        `/${index}/_bulk?refresh=true`,
        ndjson(
          { index: { _id: '1' } },
          { slow: sentences(count, index), late: 'whales' },
          { index: { _id: '2' } },
          { late: 'bread' },
        ),
      ).finally(() => (ended = true));
      await new Promise((resolve) => setTimeout(resolve, 30));
      await ok('PUT', `/${index}/_mapping`, { properties: { late: field() } });
      const inTime = !ended;
      const written = await writing;
      expect(written.body.errors, written.text).toBe(false);
      const late = await withPassages(index, 'late');
      // The answer can still be on its way when the documents were written already, before the change.
      raced = inTime && late.length > 0;
      if (!raced) continue;
      expect(late).toEqual(['1', '2']);
      expect(await withPassages(index, 'slow')).toEqual(['1']);
      break;
    }
    expect(raced).toBe(true);
  });

  it('stay through a crash, an update, a merge and a clone, and go with their text', async () => {
    const own = await startServer();
    try {
      const send = async (method: string, path: string, body?: unknown): Promise<any> => {
        const answer = await current.request(method, path, body);
        expect(answer.status, answer.text).toBeLessThan(300);
        return answer.body;
      };
      let current = own;
      await send('PUT', '/kept', {
        mappings: { properties: { s: field(), d: field({ inference_id: '.all-minilm-l6-v2-elasticsearch' }) } },
      });
      const whales = { s: `${sentences(60, 'kept')} Whales sing.`, d: 'Whales sing in the ocean.', n: 1 };
      await send(
        'POST',
        '/kept/_bulk',
        ndjson({ index: { _id: '1' } }, whales, { index: { _id: '2' } }, { s: 'bread', d: 'bread' }),
      );
      await send('POST', '/kept/_update/1', { doc: { n: 2 } });
      await current.kill();
      current = await startServer({ data: own.data });
      const stats = async (): Promise<number> => {
        const { trained_model_stats } = await send('GET', '/_ml/trained_models/_stats');
        return trained_model_stats.reduce(
          (sum: number, of: any) => sum + (of.deployment_stats?.inference_count ?? 0),
          0,
        );
      };
      await send('POST', '/kept/_refresh');
      await send('POST', '/kept/_forcemerge?max_num_segments=1');
      await send('POST', '/kept/_update_by_query?refresh=true');
      await send('PUT', '/kept/_settings', { 'index.blocks.write': true });
      await send('POST', '/kept/_clone/cloned');
      // A replay, a merge, a clone and documents that are written again as they are need no model.
      expect(await stats()).toBe(0);
      for (const index of ['kept', 'cloned']) {
        for (const name of ['s', 'd']) {
          const found = await send('POST', `/${index}/_search`, { query: semantic(name, 'singing whales') });
          expect(found.hits.hits[0]).toMatchObject({ _id: '1', _source: { ...whales, n: 2 } });
        }
      }
      await send('PUT', '/kept/_settings', { 'index.blocks.write': false });
      await send('POST', '/kept/_update/1?refresh=true', { doc: { s: null, d: 'A bakery.' } });
      const exists = await send('POST', '/kept/_search', { query: { exists: { field: 's' } } });
      expect(exists.hits.hits.map((hit: any) => hit._id)).toEqual(['2']);
      await current.stop();
    } finally {
      await own.kill();
    }
  });

  it('follow a reindex, also where a pipeline sends documents elsewhere', async () => {
    await create('from', { s: field({ chunking_settings: WORD }) });
    await create('elsewhere', { s: field({ chunking_settings: { strategy: 'none' } }) });
    await create('to', { s: field({ chunking_settings: WORD }) });
    const lines = Array.from({ length: 40 }, (_, n) => [
      { index: { _id: String(n) } },
      { s: sentences(4, `from ${String(n)}`) },
    ]);
    await ok('POST', '/from/_bulk?refresh=true', ndjson(...lines.flat()));
    await ok('PUT', '/_ingest/pipeline/away', { processors: [{ set: { field: '_index', value: 'elsewhere' } }] });
    const moved = await ok('POST', '/_reindex?refresh=true', {
      source: { index: 'from' },
      dest: { index: 'to', pipeline: 'away' },
    });
    expect(moved).toMatchObject({ total: 40, created: 40, failures: [] });
    await ok('POST', '/elsewhere/_refresh');
    expect(await withPassages('elsewhere', 's')).toHaveLength(40);
  });
});

describe('texts past the model’s length', () => {
  const LONG = sentences(200, 'a long text');

  it('are told where nothing may be cut, by bulk, reindex and update by query', async () => {
    await create('whole', { s: field({ chunking_settings: { strategy: 'none' } }) });
    await create('copy', { s: field({ chunking_settings: { strategy: 'none' } }) });
    const bulk = await ok(
      'POST',
      '/whole/_bulk?refresh=true',
      ndjson({ index: {} }, { s: LONG }, { index: {} }, { s: 'short' }),
    );
    expect(bulk).toMatchObject({ errors: false, truncated_texts: 1 });
    await ok('PUT', '/_ingest/pipeline/longer', { processors: [{ set: { field: 's', value: `${LONG} {{_id}}` } }] });
    const body = { source: { index: 'whole' }, dest: { index: 'copy', pipeline: 'longer' } };
    expect(await ok('POST', '/_reindex?refresh=true&slices=2', body)).toMatchObject({ created: 2, truncated_texts: 2 });
    const again = await ok('POST', '/copy/_update_by_query?pipeline=longer');
    expect(again.updated).toBe(2);
    // The same texts as before: nothing was encoded, so nothing was cut.
    expect(again.truncated_texts).toBeUndefined();
  });

  it('are counted by a dry run as the real one then does', async () => {
    await create('plain', { s: { type: 'text' } });
    await create('real', {
      s: field({ chunking_settings: WORD }),
      t: field({ chunking_settings: { strategy: 'none' } }),
    });
    const lines = Array.from({ length: 60 }, (_, n) => [
      { index: {} },
      { s: sentences(3, `dry ${String(n)}`), t: n < 5 ? `${LONG} ${String(n)}` : `short ${String(n)}` },
    ]);
    const bad = [{ index: { _id: 'bad' } }, { t: { not: 'a text' } }];
    await ok('PUT', '/plain/_mapping', { properties: { t: { type: 'object', enabled: false } } });
    await ok('POST', '/plain/_bulk?refresh=true', ndjson(...lines.flat(), ...bad));
    const body = { conflicts: 'proceed', source: { index: 'plain' }, dest: { index: 'real' } };
    const inferences = async (): Promise<number> => {
      const { trained_model_stats } = await ok('GET', '/_ml/trained_models/.elser_model_2/_stats');
      const all = trained_model_stats.map((of: any) => of.deployment_stats);
      return all.reduce((sum: number, of: any) => sum + of.inference_count, 0);
    };
    const before = await inferences();
    const dry = await ok('POST', '/_reindex?dry_run=true', body);
    const tried = (await inferences()) - before;
    expect(dry.documents).toEqual({ total: 61, to_write: 60, dropped: 0, failed: 1 });
    expect(dry.failures[0]).toMatchObject({ id: 'bad', status: 400 });
    expect(dry.texts.truncated).toBe(5);
    // Three passages of each `s` and one of each `t`; some may have been remembered.
    expect(dry.texts.total).toBeGreaterThanOrEqual(60 * 3);
    expect(dry.texts.total).toBeLessThanOrEqual(tried);
    expect(dry.tokens.total).toBeGreaterThan(5 * 512);
    expect(dry.tokens.truncated).toBeGreaterThan(0);
    expect(dry.disk.bytes).toBeGreaterThan(0);
    expect((await call('GET', '/real/_count')).body.count).toBe(0);
    const real = await call('POST', '/_reindex?refresh=true', body);
    expect(real.body).toMatchObject({ created: 60, truncated_texts: 5 });
    expect(real.body.failures).toHaveLength(1);
    const passages = await ok('POST', '/real/_search', {
      query: { match_all: {} },
      size: 100,
      highlight: { fields: { s: { number_of_fragments: 100 }, t: { number_of_fragments: 100 } } },
    });
    const counted = passages.hits.hits.flatMap((hit: any) => [...hit.highlight.s, ...hit.highlight.t]).length;
    expect(dry.texts.total).toBe(counted);
    // A copy between the same fields takes the passages along, and the dry run knows it.
    await create('same', {
      s: field({ chunking_settings: WORD }),
      t: field({ chunking_settings: { strategy: 'none' } }),
    });
    const kept = await ok('POST', '/_reindex?dry_run=true', { source: { index: 'real' }, dest: { index: 'same' } });
    expect(kept.texts).toEqual({ total: 0, truncated: 0 });
  });
});

describe('a document without a model', () => {
  const deployment = '/_ml/trained_models/frail';
  const start = (query = '') =>
    ok('POST', `/_ml/trained_models/.elser_model_2/deployment/_start?deployment_id=frail&wait_for=started${query}`);

  it('is refused in every way of writing, and what was there stays', async () => {
    await start('&queue_capacity=2');
    await create('frail', { s: field({ inference_id: 'frail', chunking_settings: WORD }), n: { type: 'integer' } });
    // More passages than the queue has places.
    await ok('PUT', '/frail/_doc/1?refresh=true', { s: sentences(12, 'frail'), n: 1 });
    await ok('POST', `${deployment}/deployment/_stop?force=true`);
    const refused = 'Model [frail] must be deployed to use. Please deploy with the start trained model deployment API.';
    const missing = 'Inference id [frail] not found for field [s]';
    const why = async (method: string, path: string, body: unknown): Promise<string> =>
      ((await call(method, path, body)).body.error as { reason: string }).reason;
    for (const [method, path, body] of [
      ['PUT', '/frail/_doc/2', { s: 'new' }],
      ['PUT', '/frail/_create/2', { s: 'new' }],
      ['POST', '/frail/_update/1', { doc: { s: 'changed' } }],
      ['POST', '/frail/_update/2', { doc: { s: 'new' }, doc_as_upsert: true }],
      ['POST', '/frail/_update/2', { doc: {}, upsert: { s: 'new' } }],
    ] as const) {
      const reason = await why(method, path, body);
      expect(reason === refused || reason.startsWith(missing), reason).toBe(true);
    }
    const bulk = await ok(
      'POST',
      '/frail/_bulk?refresh=true',
      ndjson({ index: { _id: '2' } }, { s: 'new' }, { index: { _id: '3' } }, { n: 3 }),
    );
    expect(bulk.items.map((item: any) => item.index.status)).toEqual([expect.any(Number), 201]);
    expect(bulk.items[0].index.status).toBeGreaterThanOrEqual(400);
    // Documents whose texts stay need no model.
    expect(await ok('POST', '/frail/_update/1?refresh=true', { doc: { n: 2 } })).toMatchObject({ result: 'updated' });
    expect(await ok('POST', '/frail/_update_by_query?refresh=true')).toMatchObject({ updated: 2, failures: [] });
    expect((await call('GET', '/frail/_doc/2')).status).toBe(404);
    expect(await withPassages('frail', 's')).toEqual(['1']);
    // A copy that has to encode fails, and writes nothing without passages.
    await create('frail-copy', { s: field({ inference_id: 'frail', chunking_settings: { strategy: 'none' } }) });
    const copied = await call('POST', '/_reindex?refresh=true', {
      source: { index: 'frail' },
      dest: { index: 'frail-copy' },
    });
    expect(copied.body.failures.map((failure: any) => failure.id)).toEqual(['1']);
    expect((await ok('GET', '/frail-copy/_count')).count).toBe(1);
    await start();
    expect(await ok('POST', '/frail/_update/1?refresh=true', { doc: { s: 'changed' } })).toMatchObject({
      result: 'updated',
    });
    await ok('POST', `${deployment}/deployment/_stop?force=true`);
  });
});
