// Searches by words, tokens and vectors at once: one suite for every engine behind the routes, as in engines.test.ts.
import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ENGINES } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

const DENSE = '.all-minilm-l6-v2';
const SPARSE = '.sparse_encoder_model_2';

type Hit = { _id: string; _score: number; fields?: any };

describe.each(ENGINES)('hybrid searches over the $name engine', ({ start }) => {
  const run = randomBytes(4).toString('hex');
  const of = (index: string) => `hybrid-${run}-${index}`;
  let server: RunningServer;

  async function ask(method: string, path: string, body?: unknown, status = 200): Promise<any> {
    const answer = await server.request(method, path, body);
    expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
    return answer.body;
  }

  const PASSAGES: Readonly<Record<string, string>> = {
    muscle: 'Sore muscles after a long run recover faster with rest, water and gentle stretching.',
    stamps: 'A philatelist is a person who collects and studies postage stamps.',
    open: 'Agoraphobia is the fear of open spaces and crowded public places.',
    bread: 'Sourdough bread rises slowly because wild yeast works at its own pace.',
    whale: 'The blue whale is the largest animal that has ever lived.',
  };
  const builder = (text: string, id = DENSE) => ({
    query_vector_builder: { text_embedding: { model_id: id, model_text: text } },
  });

  beforeAll(async () => {
    server = await start();
    await ask('PUT', `/_ingest/pipeline/${of('embed')}`, {
      processors: [
        { inference: { model_id: SPARSE, input_output: [{ input_field: 'content', output_field: 'tokens' }] } },
        { inference: { model_id: DENSE, input_output: [{ input_field: 'content', output_field: 'vector' }] } },
      ],
    });
    await ask('PUT', `/${of('texts')}`, {
      settings: { default_pipeline: of('embed') },
      mappings: {
        properties: {
          content: { type: 'text' },
          kind: { type: 'keyword' },
          tokens: { type: 'sparse_vector' },
          vector: { type: 'dense_vector', dims: 384 },
        },
      },
    });
    const lines = Object.entries(PASSAGES).map(
      ([_id, content], at) =>
        `${JSON.stringify({ index: { _id } })}\n${JSON.stringify({ content, kind: at % 2 === 0 ? 'even' : 'odd' })}\n`,
    );
    const written = await ask('POST', `/${of('texts')}/_bulk?refresh=true`, lines.join(''));
    expect(written.errors, JSON.stringify(written)).toBe(false);
  }, 120_000);

  afterAll(async () => {
    await server.request('DELETE', `/${of('texts')}`);
    await server.request('DELETE', `/_ingest/pipeline/${of('embed')}`);
    await server.stop();
  });

  const found = async (body: unknown): Promise<Hit[]> => (await ask('POST', `/${of('texts')}/_search`, body)).hits.hits;
  const ids = (hits: readonly Hit[]) => hits.map(({ _id }) => _id);

  it('finds a text by its meaning, by the name of a model or of an endpoint', async () => {
    const body = { docs: [{ text_field: 'afraid of crowds' }] };
    const { inference_results: results } = await ask('POST', `/_ml/trained_models/${DENSE}/_infer`, body);
    const given = await found({ knn: { field: 'vector', query_vector: results[0].predicted_value, k: 5 } });
    for (const id of [DENSE, '.all-minilm-l6-v2-elasticsearch']) {
      const hits = await found({
        knn: { field: 'vector', k: 5, num_candidates: 10, ...builder('afraid of crowds', id) },
      });
      expect(hits[0]?._id).toBe('open');
      expect(ids(hits)).toEqual(ids(given));
      hits.forEach(({ _score }, at) => expect(_score).toBeCloseTo(given[at]?._score ?? 0, 5));
    }
    const clause = await found({ query: { knn: { field: 'vector', k: 2, ...builder('afraid of crowds') } } });
    expect(ids(clause)).toEqual(ids(given).slice(0, 2));
    const retriever = { knn: { field: 'vector', k: 2, num_candidates: 10, ...builder('afraid of crowds') } };
    expect(ids(await found({ retriever }))).toEqual(ids(given).slice(0, 2));
  });

  it('takes the part that a clause needs of an endpoint that makes both kinds of vectors', async () => {
    const tokens = (id: string) => ({
      query: { sparse_vector: { field: 'tokens', inference_id: id, query: 'a sea animal' } },
    });
    const near = (id: string) => ({
      knn: { field: 'vector', k: 5, num_candidates: 10, ...builder('a sea animal', id) },
    });
    expect(await found(tokens('.hybrid'))).toEqual(await found(tokens(SPARSE)));
    expect(await found(near('.hybrid'))).toEqual(await found(near(DENSE)));
  });

  it('finds nothing by a blank text, and refuses a model that makes another kind of vectors', async () => {
    const clause = (id: string, text: string) => ({
      query: { text_expansion: { tokens: { model_id: id, model_text: text } } },
    });
    expect(await found(clause(SPARSE, ' \n'))).toEqual([]);
    const near = { field: 'vector', k: 5, num_candidates: 10, ...builder('\t') };
    const filter = { term: { kind: 'odd' } };
    for (const body of [{ knn: near }, { query: { knn: { ...near, filter } } }, { retriever: { knn: near } }])
      expect(await found(body), JSON.stringify(body)).toEqual([]);
    const path = `/${of('texts')}/_search`;
    const other = { query: { text_expansion: { unfilled: { model_id: DENSE, model_text: 'a sea animal' } } } };
    const { error } = await ask('POST', path, other, 400);
    expect(error.reason).toBe(`model [${DENSE}] makes dense vectors, but sparse vectors are needed here`);
  });

  it('reads half a character that stands alone as one that nobody knows', async () => {
    const clause = (text: string) => ({
      query: { sparse_vector: { field: 'tokens', inference_id: SPARSE, query: text } },
    });
    expect(await found(clause('a sea \ud800animal \\ud800'))).toEqual(
      await found(clause('a sea \ufffdanimal \\ud800')),
    );
    expect(await found({ knn: { field: 'vector', k: 5, num_candidates: 10, ...builder('a \udc00 whale') } })).toEqual(
      await found({ knn: { field: 'vector', k: 5, num_candidates: 10, ...builder('a \ufffd whale') } }),
    );
  });

  it('warns of a text that a model of English cannot read', async () => {
    const body = (model_text: string) => ({ query: { text_expansion: { tokens: { model_id: SPARSE, model_text } } } });
    const warned = async (text: string) => {
      const { status, headers } = await server.request('POST', `/${of('texts')}/_search`, body(text));
      expect(status).toBe(200);
      return [headers['warning'] ?? ''].flat().join();
    };
    const said = `the model [${SPARSE}] reads only English`;
    expect(await warned('Wie kann ich nach dem Sport die Schmerzen lindern?')).toContain(said);
    expect(await warned('how do I ease the pain after sports')).not.toContain(said);
  });

  const words = { standard: { query: { match: { content: 'stamps or whales' } } } };
  const meaning = {
    standard: { query: { text_expansion: { tokens: { model_id: SPARSE, model_text: 'a sea animal' } } } },
  };
  const near = { knn: { field: 'vector', k: 5, num_candidates: 10, ...builder('a huge animal of the sea') } };

  it('fuses words, tokens and vectors', async () => {
    const rrf = { retrievers: [words, meaning, near], rank_constant: 1, rank_window_size: 10 };
    const whole = await ask('POST', `/${of('texts')}/_search`, {
      retriever: { rrf },
      aggs: { kinds: { terms: { field: 'kind' } } },
    });
    const lists = await Promise.all([
      found({ query: words.standard.query }),
      found({ query: meaning.standard.query }),
      found(near),
    ]);
    const sums = new Map<string, number>();
    for (const list of lists) ids(list).forEach((id, at) => sums.set(id, (sums.get(id) ?? 0) + 1 / (2 + at)));
    const expected = [...sums].sort((a, b) => b[1] - a[1]);
    expect(whole.hits.hits).toHaveLength(expected.length);
    (whole.hits.hits as Hit[]).forEach(({ _id, _score }) => {
      expect(_score, _id).toBeCloseTo(sums.get(_id) ?? 0, 5);
    });
    expect(whole.hits.total.value).toBe(5);
    const filtered = await found({ retriever: { rrf: { ...rrf, filter: { term: { kind: 'odd' } } } } });
    expect(ids(filtered).sort()).toEqual(['bread', 'stamps']);
    const sections = {
      rank: { rrf: { rank_constant: 1, rank_window_size: 10 } },
      query: words.standard.query,
      knn: near.knn,
    };
    const ranks = await found(sections);
    expect(ranks).toHaveLength(5);
    const expectedRanks = new Map<string, number>();
    for (const list of [lists[0] ?? [], lists[2] ?? []])
      ids(list).forEach((id, at) => expectedRanks.set(id, (expectedRanks.get(id) ?? 0) + 1 / (2 + at)));
    for (const { _id, _score } of ranks) expect(_score, _id).toBeCloseTo(expectedRanks.get(_id) ?? 0, 5);
  });

  it('adds normalized scores of neighbours', async () => {
    const scores = (await found(near)).map(({ _id, _score }) => [_id, _score] as const);
    const values = scores.map(([, score]) => score);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    const deviation = Math.sqrt(values.reduce((sum, it) => sum + (it - mean) ** 2, 0) / values.length);
    for (const [normalizer, scale] of [
      ['minmax', (score: number) => (score - least) / (most - least)],
      ['zscore', (score: number) => Math.max(0, (score - mean) / deviation)],
      ['none', (score: number) => score],
    ] as const) {
      const linear = { retrievers: [{ retriever: near, weight: 2, normalizer }], rank_window_size: 10 };
      const hits = await found({ retriever: { linear } });
      const expected = new Map(scores);
      for (const { _id, _score } of hits)
        expect(_score, `${normalizer} ${_id}`).toBeCloseTo(2 * scale(expected.get(_id) ?? 0), 3);
      expect(hits[0]?._id).toBe(scores[0]?.[0]);
    }
  });

  it('takes the length of a list of neighbours from the fusion around it', async () => {
    const open = { knn: { field: 'vector', ...builder('a huge animal of the sea') } };
    const rrf = { retrievers: [open], rank_window_size: 3 };
    expect(await found({ retriever: { rrf }, size: 3 })).toHaveLength(3);
  });

  it('searches words by the one-line form where no field is a semantic_text', async () => {
    const short = { query: 'stamps whale', fields: ['content^2', 'kind'] };
    const lists = await found({ query: { multi_match: { ...short, type: 'most_fields' } } });
    const hits = await found({ retriever: { rrf: { ...short, filter: { term: { kind: 'even' } } } } });
    expect(ids(hits)).toEqual(ids(lists).filter((id) => id === 'whale'));
    expect(hits[0]?._score).toBeCloseTo(1 / 61, 6);
    const plain = await found({ retriever: { linear: short } });
    expect(plain).toEqual(await found({ retriever: { linear: { ...short, normalizer: 'zscore' } } }));
    const linear = await found({ retriever: { linear: { ...short, normalizer: 'minmax' } } });
    expect(linear[0]?._score).toBeCloseTo(1, 5);
    expect(ids(linear)).toEqual(ids(lists));
  });

  it('filters and groups the hits of a fusion behind it', async () => {
    const rrf = { retrievers: [words, meaning, near], rank_window_size: 10 };
    const all = ids(await found({ retriever: { rrf } }));
    const body = { retriever: { rrf }, aggs: { kinds: { terms: { field: 'kind' } } } };
    const filtered = await ask('POST', `/${of('texts')}/_search`, { ...body, post_filter: { term: { kind: 'odd' } } });
    const odd = all.filter((id) => ['stamps', 'bread'].includes(id));
    expect(ids(filtered.hits.hits)).toEqual(odd);
    expect(filtered.hits.total.value).toBe(2);
    expect(filtered.aggregations.kinds.buckets).toHaveLength(2);
    const grouped = await ask('POST', `/${of('texts')}/_search`, { ...body, collapse: { field: 'kind' } });
    const second = all.find((id) => odd.includes(id) !== odd.includes(all[0] ?? ''));
    expect(ids(grouped.hits.hits)).toEqual([all[0], second]);
    expect(grouped.hits.total.value).toBe(5);
    const kindOf = (id = '') => [odd.includes(id) ? 'odd' : 'even'];
    expect(grouped.hits.hits.map((hit: Hit) => hit.fields.kind)).toEqual([kindOf(all[0]), kindOf(second)]);
    const paged = await found({ ...body, collapse: { field: 'kind' }, from: 1, size: 1 });
    expect(ids(paged)).toEqual([second]);
  });
});
