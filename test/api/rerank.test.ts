// Cross-encoders through HTTP: a model directory, `rerank` endpoints, `_infer`, and `text_similarity_reranker`. The model has random
// weights; its scores are those that Transformers computes (crates/encoder/tests/fixtures).
import { cpSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RunningServer, startServer } from '../support/server.js';

interface Case {
  readonly question: string;
  readonly text: string;
  readonly score: number;
}
interface Entry {
  readonly index: number;
  readonly relevance_score: number;
  readonly text?: string;
}
interface Found {
  readonly _id: string;
  readonly _score: number;
}

const FIXTURES = fileURLToPath(new URL('../../crates/encoder/tests/fixtures', import.meta.url));
const expected = (
  JSON.parse(readFileSync(join(FIXTURES, 'expected-checkpoints.json'), 'utf8')) as Record<string, Case[]>
)['cross-bert'] as Case[];
const QUESTION = 'red stamps';
const TEXTS = ['old blue coin. new', 'green coin', 'red stamp', '', 'new new new blue', 'old green stamps. red'];
const SETTINGS = {
  service: 'elasticsearch',
  service_settings: { num_allocations: 1, num_threads: 1, model_id: 'cross' },
};
const RERANK = '/_inference/rerank/ranker';

let server: RunningServer;
const call = (method: string, path: string, body?: object): Promise<Answer> => server.request(method, path, body);
const done = async (method: string, path: string, body?: object): Promise<Answer['body']> => {
  const answer = await call(method, path, body);
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};
const refused = async (method: string, path: string, body: object, status: number, reason: string): Promise<void> => {
  const answer = await call(method, path, body);
  expect([answer.status, answer.text], path).toEqual([status, expect.stringContaining(reason)]);
};
const ranked = async (body: object): Promise<Entry[]> => (await done('POST', RERANK, body)).rerank as Entry[];
const found = async (body: object, query = ''): Promise<Found[]> =>
  (await done('POST', `/docs/_search${query}`, body)).hits.hits as Found[];
/** As Elasticsearch makes scores of hits of a model's. */
const positive = (score: number): number => Math.max(score, 0) + Math.min(Math.exp(score), 1);

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sparrow-rerank-'));
  cpSync(join(FIXTURES, 'cross-bert'), join(folder, 'cross'), { recursive: true });
  server = await startServer({ args: ['--models', folder] });
  await done('PUT', '/docs', {
    settings: { number_of_replicas: 0 },
    mappings: { properties: { body: { type: 'text' }, n: { type: 'integer' } } },
  });
  const lines = TEXTS.flatMap((body, n) => [
    JSON.stringify({ index: { _id: String(n) } }),
    JSON.stringify(body === '' ? { n } : { body, n, title: [`no ${String(n)}`] }),
  ]);
  expect((await call('POST', '/docs/_bulk?refresh=true', `${lines.join('\n')}\n` as never)).status).toBe(200);
});

afterAll(async () => {
  await server.stop();
});

describe('a rerank endpoint', () => {
  it('is made of a model directory, and shown', async () => {
    const model = (await done('GET', '/_ml/trained_models/cross')).trained_model_configs[0];
    expect(Object.keys(model.inference_config as object)).toEqual(['text_similarity']);
    const shown = {
      inference_id: 'ranker',
      task_type: 'rerank',
      service: 'elasticsearch',
      service_settings: SETTINGS.service_settings,
      task_settings: { return_documents: true },
    };
    expect(await done('PUT', RERANK, SETTINGS)).toEqual(shown);
    expect(await done('GET', '/_inference/rerank/_all')).toEqual({ endpoints: [shown] });
  });

  it('answers the scores of the model, best first', async () => {
    for (const { question, text, score } of expected.filter((one) => one.question !== '')) {
      const [entry, second] = await ranked({ query: question, input: [text] });
      expect(second).toBeUndefined();
      expect(entry).toEqual({ index: 0, relevance_score: expect.closeTo(score, 4) as number, text });
    }
    const entries = await ranked({ query: QUESTION, input: TEXTS });
    expect(entries.map(({ index }) => index).sort()).toEqual([0, 1, 2, 3, 4, 5]);
    const scores = entries.map((entry) => entry.relevance_score);
    expect(scores).toEqual(scores.toSorted((a, b) => b - a));
    expect(entries.every(({ index, text }) => text === TEXTS[index])).toBe(true);
    expect(Object.keys(entries[0] as object)).toEqual(['index', 'relevance_score', 'text']);
    // Two texts are no reason to answer otherwise than for one, nor is the type of the task in the path.
    const alone = await done('POST', '/_inference/ranker', { query: QUESTION, input: TEXTS[2] });
    expect(alone.rerank[0].relevance_score).toBe(entries.find(({ index }) => index === 2)?.relevance_score);
  });

  it('answers as many texts as asked for, or none of them, by the request or the endpoint', async () => {
    const best = await ranked({ query: QUESTION, input: TEXTS });
    for (const body of [{ top_n: 2 }, { task_settings: { top_n: 2 } }, { top_n: 2, task_settings: { top_n: 3 } }]) {
      expect(await ranked({ query: QUESTION, input: TEXTS, ...body })).toEqual(best.slice(0, 2));
    }
    const bare = best.map(({ index, relevance_score }) => ({ index, relevance_score }));
    expect(await ranked({ query: QUESTION, input: TEXTS, return_documents: false })).toEqual(bare);
    const changed = await done('PUT', `${RERANK}/_update`, { task_settings: { return_documents: false, top_n: 1 } });
    expect(changed.task_settings).toEqual({ return_documents: false, top_n: 1 });
    expect(await ranked({ query: QUESTION, input: TEXTS })).toEqual(bare.slice(0, 1));
    expect(await ranked({ query: QUESTION, input: TEXTS, return_documents: true, top_n: 9 })).toEqual(best);
    await done('PUT', `${RERANK}/_update`, { task_settings: { return_documents: true, top_n: 100 } });
  });

  it('is _infer with text_similarity', async () => {
    const inference_config = { text_similarity: { text: QUESTION } };
    const body = { docs: [{ text_field: TEXTS[0] }, { text_field: 'green '.repeat(30) }], inference_config };
    const { inference_results: results } = await done('POST', '/_ml/trained_models/ranker/_infer', body);
    expect(results).toEqual([
      { predicted_value: expect.closeTo((expected[0] as Case).score, 4) },
      { predicted_value: expect.any(Number), is_truncated: true },
    ]);
    const required = { text_similarity: {} };
    await refused(
      'POST',
      '/_ml/trained_models/ranker/_infer',
      { ...body, inference_config: required },
      400,
      'Required [text]',
    );
    const other = { text_expansion: {} };
    await refused(
      'POST',
      '/_ml/trained_models/ranker/_infer',
      { ...body, inference_config: other },
      403,
      'text_similarity',
    );
    await refused('POST', '/_ml/trained_models/ranker/_infer', { docs: body.docs }, 400, 'is for the task [rerank]');
  });

  it('refuses what it cannot do', async () => {
    const input = ['a'];
    for (const [body, reason] of [
      [{ input }, 'Field [query] cannot be null for task type [rerank]'],
      [{ query: '', input }, 'Field [query] cannot be empty for task type [rerank]'],
      [{ query: 'a' }, 'Field [input] cannot be null'],
      [{ query: 'a', input: [] }, 'Field [input] cannot be an empty array'],
      [{ query: 'a', input: [1] }, 'is not a string'],
      [{ query: 'a', input: Array.from({ length: 1025 }, () => 'a') }, 'at most [1024] are encoded at once'],
      [{ query: 'a', input, top_n: 0 }, '[top_n] must be a positive integer'],
      [{ query: 'a', input, return_documents: 'yes' }, 'cannot be converted to a [Boolean]'],
      [{ query: 'a', input, task_settings: { top_k: 1 } }, '[task_settings] unknown field [top_k]'],
    ] as const) {
      await refused('POST', RERANK, body, 400, reason);
    }
    const sparse = '/_inference/sparse_embedding/.elser-2-elasticsearch';
    await refused(
      'POST',
      sparse,
      { query: 'a', input },
      400,
      'Field [query] cannot be specified for task type [sparse',
    );
    await refused('POST', sparse, { top_n: 1, input }, 400, 'Field [top_n] cannot be specified for task type [sparse');
    await refused('PUT', '/_inference/text_embedding/x', SETTINGS, 400, 'which makes [rerank]');
    const cut = { ...SETTINGS, chunking_settings: { strategy: 'none' } };
    await refused('PUT', '/_inference/rerank/x', cut, 400, 'settings [{chunking_settings={strategy=none}}] unknown');
    await refused(
      'PUT',
      '/_inference/rerank/x',
      { ...SETTINGS, task_settings: { a: 1 } },
      400,
      'settings [{a=1}] unknown',
    );
    const hybrid = { sparse_inference_id: 'ranker', dense_inference_id: 'ranker' };
    const both = { service: 'elasticsearch', service_settings: hybrid };
    await refused(
      'PUT',
      '/_inference/hybrid_embedding/x',
      both,
      400,
      '[ranker] makes [rerank], but [sparse_embedding]',
    );
  });

  it('stands nowhere where vectors are wanted', async () => {
    const query = { sparse_vector: { field: 'body', inference_id: 'ranker', query: 'a' } };
    await refused('POST', '/docs/_search', { query }, 400, 'makes no vectors; it is for the task [rerank]');
    await done('PUT', '/semantic', {
      mappings: { properties: { body: { type: 'semantic_text', inference_id: 'ranker' } } },
    });
    await refused('PUT', '/semantic/_doc/1', { body: 'red' }, 400, 'makes no vectors; it is for the task [rerank]');
  });

  it('takes long texts and many of them in their time, and no more', async () => {
    const long = `${'red '.repeat(1 << 20)}${'x'.repeat(1 << 22)}`;
    const entries = await ranked({ query: long, input: [long, 'blue', long], return_documents: false });
    expect(entries).toHaveLength(3);
    const input = Array.from({ length: 1024 }, (_, n) => `red ${'blue '.repeat(n)}`);
    const late = await call('POST', `${RERANK}?timeout=1ms`, { query: QUESTION, input });
    expect([late.status, late.body.error.reason]).toEqual([408, 'timeout [1ms] waiting for inference result']);
  });
});

describe('text_similarity_reranker', () => {
  const all = { standard: { query: { match_all: {} }, sort: [{ n: 'asc' }] } };
  const reranker = (more: object = {}): object => ({
    text_similarity_reranker: {
      retriever: all,
      inference_id: 'ranker',
      inference_text: QUESTION,
      field: 'body',
      ...more,
    },
  });
  const order = async (): Promise<Entry[]> => ranked({ query: QUESTION, input: TEXTS, top_n: 100 });

  it('text_similarity_reranker ranks the hits of a retriever by the texts of a field', async () => {
    const hits = await found({ retriever: reranker() });
    const entries = await order();
    expect(hits.map(({ _id }) => Number(_id))).toEqual(entries.map(({ index }) => index));
    const scores = entries.map((entry) => expect.closeTo(positive(entry.relevance_score), 4) as number);
    expect(hits.map(({ _score }) => _score)).toEqual(scores);
    const names = await found({ retriever: reranker({ field: 'title' }) });
    expect(names).toHaveLength(6);
  });

  it('has a window, a filter and a lowest score', async () => {
    const entries = await order();
    const first = entries.filter(({ index }) => index < 3).map(({ index }) => String(index));
    const windowed = await found({ retriever: reranker({ rank_window_size: 3 }), size: 3 });
    expect(windowed.map(({ _id }) => _id)).toEqual(first);
    const filter = { range: { n: { gte: 4 } } };
    const last = entries.filter(({ index }) => index >= 4).map(({ index }) => String(index));
    expect((await found({ retriever: reranker({ filter }) })).map(({ _id }) => _id)).toEqual(last);
    const least = (entries[1] as Entry).relevance_score;
    const best = await done('POST', '/docs/_search', { retriever: reranker({ min_score: least - 1e-6 }) });
    expect(best.hits.hits).toHaveLength(2);
    expect(best.hits.total.value).toBe(2);
  });

  it('shows pages that go together, over several windows', async () => {
    const words = ['red', 'blue', 'green', 'coin', 'stamp', 'stamps', 'old', 'new'];
    const lines = Array.from({ length: 35 }, (_, n) => {
      const body = `${words[n % 8] ?? ''} ${words[(n * 3) % 7] ?? ''} ${words[(n * 5) % 8] ?? ''}`;
      return `${JSON.stringify({ index: { _id: String(n) } })}\n${JSON.stringify({ body, n })}\n`;
    });
    expect((await call('POST', '/pages/_bulk?refresh=true', lines.join('') as never)).status).toBe(200);
    const page = async (from: number, size: number): Promise<Found[]> =>
      (await done('POST', '/pages/_search', { retriever: reranker(), from, size })).hits.hits as Found[];
    const paged: Found[] = [];
    for (let from = 0; from < 35; from += 4) paged.push(...(await page(from, 4)));
    expect(new Set(paged.map(({ _id }) => _id)).size).toBe(35);
    // The first window is the list's first ten, and the hits behind it follow, whichever page asks for them.
    expect(
      paged
        .slice(0, 10)
        .map(({ _id }) => Number(_id))
        .sort((a, b) => a - b),
    ).toEqual(Array.from({ length: 10 }, (_, n) => n));
    expect(await page(0, 10)).toEqual(paged.slice(0, 10));
    expect(await page(8, 6)).toEqual(paged.slice(8, 14));
    const scores = paged.map(({ _score }) => _score);
    expect(scores).toEqual(scores.toSorted((a, b) => b - a));
    const explained = await done('POST', '/pages/_search', { retriever: reranker(), from: 10, explain: true });
    for (const { _score, _explanation } of explained.hits.hits) expect(_explanation.value).toBe(_score);
    const capped = explained.hits.hits.filter((hit: { _explanation: { description: string } }) =>
      hit._explanation.description.includes('no higher than the hit before'),
    );
    expect(capped.length).toBeGreaterThan(0);
    expect(capped[0]._explanation.details[0].value).toBeGreaterThan(capped[0]._score);
  });

  it('is not read on where groups leave out hits, as the model would read all of the texts', async () => {
    const properties = { body: { type: 'text' }, group: { type: 'keyword' } };
    await done('PUT', '/grouped', { settings: { number_of_replicas: 0 }, mappings: { properties } });
    const lines = Array.from({ length: 60 }, (_, n) =>
      [{ index: {} }, { body: `red coin ${String(n)}`, group: String(n % 2) }].map((line) => JSON.stringify(line)),
    ).flat();
    expect((await call('POST', '/grouped/_bulk?refresh=true', `${lines.join('\n')}\n` as never)).status).toBe(200);
    const read = async (): Promise<number> => {
      const { trained_model_stats: stats } = await done('GET', '/_ml/trained_models/cross/_stats');
      return stats[0].inference_stats.inference_count as number;
    };
    const standard = { query: { match: { body: 'red' } } };
    const reranker = { field: 'body', inference_id: 'ranker', inference_text: QUESTION, retriever: { standard } };
    const before = await read();
    const retriever = { text_similarity_reranker: reranker };
    const { hits } = await done('POST', '/grouped/_search', { retriever, collapse: { field: 'group' } });
    expect(hits.hits.length).toBeLessThanOrEqual(2);
    expect((await read()) - before).toBe(10);
  });

  it('aggregates and explains', async () => {
    const { hits, aggregations } = await done('POST', '/docs/_search', {
      retriever: reranker(),
      explain: true,
      aggs: { sum: { sum: { field: 'n' } } },
    });
    expect(aggregations.sum.value).toBe(15);
    expect(hits.hits[0]._explanation.description).toContain('inference endpoint: [ranker] on document field: [body]');
    expect(hits.hits[0]._explanation.value).toBe(hits.hits[0]._score);
  });

  it('reads the best parts of long texts in their place', async () => {
    const coins = `${'green coin '.repeat(5).trim()}\n`;
    expect((await call('PUT', '/parts/_doc/1?refresh=true', { body: `${coins}${coins}red stamp`, n: 1 })).status).toBe(
      201,
    );
    const chunking_settings = { strategy: 'recursive', max_chunk_size: 10, separators: ['\n'] };
    const scoreOf = async (size?: number): Promise<number | undefined> => {
      const chunk_rescorer = { chunking_settings, ...(size === undefined ? {} : { size }) };
      const { hits } = await done('POST', '/parts/_search', { retriever: reranker({ chunk_rescorer }) });
      return hits.hits[0]?._score as number | undefined;
    };
    const [part, other] = ['red stamp', coins.trim()];
    const scores = await ranked({ query: QUESTION, input: [part, other], return_documents: false });
    const score = (at: number): number => positive(scores.find(({ index }) => index === at)?.relevance_score ?? NaN);
    expect(await scoreOf()).toBeCloseTo(score(0), 4);
    expect(await scoreOf(2)).toBeCloseTo(Math.max(score(0), score(1)), 4);
    for (const [chunk_rescorer, reason] of [
      [{ size: 0 }, '[size] of [chunk_rescorer] must be from [1] to [10], was [0]'],
      [{ sizes: 1 }, 'unknown field [sizes]'],
      [{ chunking_settings: { strategy: 'word' } }, 'Validation Failed'],
    ] as const) {
      await refused('POST', '/parts/_search', { retriever: reranker({ chunk_rescorer }) }, 400, reason);
    }
  });

  it('needs no inference id where one endpoint reranks', async () => {
    const unnamed = { retriever: reranker({ inference_id: undefined }) };
    expect(await found(unnamed)).toEqual(await found({ retriever: reranker() }));
    const { service, service_settings: settings } = (await done('GET', RERANK)).endpoints[0];
    await done('PUT', '/_inference/rerank/another', { service, service_settings: settings });
    const reason = '[inference_id] is missing, and several inference endpoints rerank: [another, ranker]';
    await refused('POST', '/docs/_search', unnamed, 400, reason);
    await done('DELETE', '/_inference/rerank/another');
    expect(await found(unnamed)).toHaveLength(6);
  });

  it('stands below and above other retrievers', async () => {
    const fused = { rrf: { retrievers: [{ standard: { query: { match: { body: 'red' } } } }, reranker()] } };
    expect(await found({ retriever: fused })).toHaveLength(6);
    const over = {
      linear: { retrievers: [{ retriever: all }, { retriever: { standard: { query: { match: { body: 'red' } } } } }] },
    };
    expect(await found({ retriever: reranker({ retriever: over }) })).toHaveLength(6);
    const lines = [{ index: 'docs' }, { retriever: reranker(), size: 1 }].map((line) => JSON.stringify(line));
    const several = await call('POST', '/_msearch', `${lines.join('\n')}\n` as never);
    expect(several.body.responses[0].hits.hits).toEqual(await found({ retriever: reranker(), size: 1 }));
  });

  it('refuses what is missing or wrong, by name', async () => {
    for (const [body, status, reason] of [
      [{ inference_id: 'gone' }, 404, 'Inference endpoint not found [gone]'],
      [
        { inference_id: '.elser-2-elasticsearch' },
        400,
        'makes sparse vectors and cannot be used for the task [rerank]',
      ],
      [{ inference_id: '.all-minilm-l6-v2-elasticsearch' }, 400, 'makes dense vectors and cannot be used'],
      [{ inference_id: '.hybrid' }, 400, 'but [rerank] is needed here'],
      [{ inference_text: '' }, 400, '[inference_text] cannot be empty'],
      [{ inference_text: undefined }, 400, 'Required [inference_text]'],
      [{ retriever: undefined, field: undefined }, 400, 'Required [retriever, field]'],
      [{ rank_window_size: 0 }, 400, '[rank_window_size] must be greater or equal to [1]'],
      [{ rank_window_size: 10_001 }, 400, '[rank_window_size] must be less than or equal to [10000]'],
      [{ rank_window_size: 101 }, 400, 'is configured to return the top [100] results, but rank_window_size is [101]'],
    ] as const) {
      await refused('POST', '/docs/_search', { retriever: reranker(body) }, status, reason);
    }
    await refused(
      'POST',
      '/docs/_search',
      { retriever: reranker({ rank_window_size: 3 }), size: 4 },
      400,
      'greater than or equal to [size: 4]',
    );
  });

  it('ends when its time is over', async () => {
    const texts = Array.from({ length: 2000 }, (_, n) => [
      { index: {} },
      { body: `red ${'blue '.repeat(12)}${String(n)}` },
    ]);
    const lines = texts.flat().map((line) => JSON.stringify(line));
    await call('POST', '/many/_bulk?refresh=true', `${lines.join('\n')}\n` as never);
    await done('PUT', `${RERANK}/_update`, { task_settings: { top_n: 10_000 } });
    const retriever = reranker({ rank_window_size: 2000, retriever: { standard: { query: { match_all: {} } } } });
    const late = await done('POST', '/many/_search', { retriever, timeout: '1ms' });
    expect(late.timed_out).toBe(true);
    const whole = await done('POST', '/many/_search', { retriever, size: 3 });
    expect([whole.timed_out, whole.hits.hits.length]).toEqual([false, 3]);
  });

  it('ends with what the endpoint ranks, on later pages too', async () => {
    const retriever = reranker({ rank_window_size: undefined, retriever: { standard: { query: { match_all: {} } } } });
    const page = async (from: number): Promise<number> =>
      (await done('POST', '/many/_search', { retriever, from })).hits.hits.length;
    await done('PUT', `${RERANK}/_update`, { task_settings: { top_n: 12 } });
    expect([await page(0), await page(10), await page(20)]).toEqual([10, 2, 0]);
    await done('PUT', `${RERANK}/_update`, { task_settings: { top_n: 10_000 } });
    expect([await page(10), await page(20)]).toEqual([10, 10]);
  });
});
