// Every numbered rule and table row of the user's specification, one test each. docs/specification.md is the table of
// contents of this file, and `specification-table.test.ts` keeps the two together.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const MODEL = '.sparse_encoder_model_2';

let server: RunningServer;

const PASSAGES = [
  ['muscle', 'Sore muscles after a long run recover faster with rest, water and gentle stretching.'],
  ['stamps', 'A philatelist is a person who collects and studies postage stamps.'],
  ['open', 'Agoraphobia is the fear of open spaces and crowded public places.'],
  ['walk', 'To stroll is to walk in a leisurely way, without hurry.'],
  ['bread', 'Sourdough bread rises slowly because wild yeast works at its own pace.'],
  ['part', 'The replacement filter has the part number XJ-4471-B.'],
  ['volcano', 'Lava flows from a volcano when molten rock reaches the surface of the earth.'],
  ['bank', 'The bank raised its interest rate for savings accounts by half a percent.'],
  ['whale', 'The blue whale is the largest animal that has ever lived.'],
  ['opera', 'An opera tells a story with singing, an orchestra and a stage.'],
  ['vaccine', 'A vaccine teaches the immune system to recognise a virus.'],
  ['bicycle', 'The bicycle has two wheels, a chain and a pair of pedals.'],
] as const;

/** `POST /{index}/_search` that has to succeed. */
async function search(index: string, body: unknown) {
  const answer = await server.request('POST', `/${index}/_search`, body);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body;
}

const ids = (answer: { hits: { hits: { _id: string }[] } }) => answer.hits.hits.map((hit) => hit._id);
const expansion = (field: string, text: string, more: object = {}) => ({
  text_expansion: { [field]: { model_id: MODEL, model_text: text, ...more } },
});

async function waitForTask(task: string) {
  for (let attempt = 0; attempt < 300; attempt++) {
    const { body } = await server.request('GET', `/_tasks/${task}?detailed=true`);
    if (body.completed) return body;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`task ${task} did not finish`);
}

beforeAll(async () => {
  server = await startServer();
  await server.request('PUT', '/source', {
    mappings: { properties: { content: { type: 'text' }, id: { type: 'keyword' } } },
  });
  const lines = PASSAGES.map(
    ([id, content]) => `${JSON.stringify({ index: { _id: id } })}\n${JSON.stringify({ id, content })}\n`,
  );
  await server.request('POST', '/source/_bulk?refresh=true', lines.join(''));
  await server.request('PUT', '/semantic', {
    mappings: { properties: { content_embedding: { type: 'sparse_vector' }, content: { type: 'text' } } },
  });
  await server.request('PUT', '/_ingest/pipeline/embed', {
    description: 'token-weight pairs of the content',
    processors: [
      { inference: { model_id: MODEL, input_output: [{ input_field: 'content', output_field: 'content_embedding' }] } },
    ],
  });
  const answer = await server.request('POST', '/_reindex?wait_for_completion=true&refresh=true', {
    source: { index: 'source', size: 5 },
    dest: { index: 'semantic', pipeline: 'embed' },
  });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
}, 120_000);

afterAll(() => server.stop());

describe('what the service does', () => {
  it('1 stores JSON documents in indices and searches them', async () => {
    const stored = await server.request('GET', '/source/_doc/whale');
    expect(stored.body._source).toEqual({ id: 'whale', content: PASSAGES[8][1] });
    expect(ids(await search('source', { query: { match: { content: 'whale' } } }))).toEqual(['whale']);
  });

  it('2 retrieves by meaning where words do not match', async () => {
    const query = 'immunization against disease';
    expect(ids(await search('source', { query: { match: { content: query } } }))).toEqual([]);
    expect(ids(await search('semantic', { query: expansion('content_embedding', query) }))[0]).toBe('vaccine');
  });

  it('3 turns the query into an embedding with the model that the documents had', async () => {
    const { body } = await server.request('POST', `/_ml/trained_models/${MODEL}/_infer`, {
      docs: [{ text_field: 'blue whale' }],
    });
    const tokens = body.inference_results[0].predicted_value;
    const byText = await search('semantic', { query: expansion('content_embedding', 'blue whale') });
    const byTokens = await search('semantic', { query: { weighted_tokens: { content_embedding: { tokens } } } });
    expect(ids(byText)).toEqual(ids(byTokens));
    expect(byTokens.hits.max_score).toBeCloseTo(byText.hits.max_score, 3);
  });

  it('4 gives sparse token-weight pairs, with related terms that the text does not hold', async () => {
    const { body } = await server.request('POST', `/_ml/trained_models/${MODEL}/_infer`, {
      docs: [{ text_field: 'someone who collects stamps' }],
    });
    const tokens = body.inference_results[0].predicted_value as Record<string, number>;
    const weights = Object.values(tokens);
    expect(weights.length).toBeGreaterThan(5);
    expect(weights.length).toBeLessThan(300);
    expect(weights.every((weight) => weight > 0)).toBe(true);
    expect(Object.keys(tokens).some((token) => !'someone who collects stamps'.includes(token))).toBe(true);
  });

  it('5 uses dense vectors in a kNN search', async () => {
    await server.request('PUT', '/dense', {
      mappings: { properties: { v: { type: 'dense_vector', dims: 2, similarity: 'cosine' } } },
    });
    await server.request('PUT', '/dense/_doc/a?refresh=true', { v: [1, 0] });
    await server.request('PUT', '/dense/_doc/b?refresh=true', { v: [0, 1] });
    const answer = await search('dense', { knn: { field: 'v', query_vector: [1, 0.1], k: 1, num_candidates: 10 } });
    expect(ids(answer)).toEqual(['a']);
  });

  it('6 has the whole workflow: deploy, index, pipeline, reindex, search', async () => {
    const { body } = await server.request('GET', '/semantic/_count');
    expect(body.count).toBe(PASSAGES.length);
    const answer = await search('semantic', { query: expansion('content_embedding', 'fear of open spaces') });
    expect(ids(answer)[0]).toBe('open');
  });

  it('7 fuses lexical and semantic search by reciprocal rank', async () => {
    const answer = await search('semantic', {
      sub_searches: [
        { query: { match: { content: 'XJ-4471-B' } } },
        { query: expansion('content_embedding', 'spare part for an air cleaner') },
      ],
      rank: { rrf: {} },
    });
    expect(ids(answer)[0]).toBe('part');
  });

  it('8 upgrades an index to the current format', async () => {
    const answer = await server.request('POST', '/_ext/migration/upgrade/source');
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ total: 0, updated: 0, failures: [] });
  });

  it('9 refuses inference without a deployed model', async () => {
    expect((await server.request('POST', `/_ml/trained_models/${MODEL}/deployment/_stop?force=true`)).status).toBe(200);
    const refused = await server.request('POST', '/semantic/_search', { query: expansion('content_embedding', 'x') });
    expect(refused.status).toBe(409);
    expect(JSON.stringify(refused.body)).toContain(
      `Model [${MODEL}] must be deployed to use. Please deploy with the start trained model deployment API.`,
    );
    const ingest = await server.request('PUT', '/semantic/_doc/late?pipeline=embed', { content: 'late' });
    expect(ingest.status).toBeGreaterThanOrEqual(400);
    expect(JSON.stringify(ingest.body)).toContain('must be deployed to use');
    expect((await server.request('GET', '/semantic/_doc/late')).status).toBe(404);
    expect(
      (await server.request('POST', `/_ml/trained_models/${MODEL}/deployment/_start?wait_for=started`)).status,
    ).toBe(200);
  });
});

describe('index', () => {
  it('rule 1: sparse_vector and rank_features receive the output, other types pass the field limit', async () => {
    for (const type of ['sparse_vector', 'rank_features']) {
      await server.request('PUT', `/rule1-${type}`, { mappings: { properties: { content_embedding: { type } } } });
      const written = await server.request('PUT', `/rule1-${type}/_doc/1?pipeline=embed&refresh=true`, {
        content: 'fear of open spaces',
      });
      expect(written.status, JSON.stringify(written.body)).toBe(201);
      expect(ids(await search(`rule1-${type}`, { query: expansion('content_embedding', 'open spaces') }))).toEqual([
        '1',
      ]);
    }
    await server.request('PUT', '/rule1-wrong', { settings: { 'index.mapping.total_fields.limit': 20 } });
    const refused = await server.request('PUT', '/rule1-wrong/_doc/1?pipeline=embed', { content: PASSAGES[0][1] });
    expect(refused.status).toBe(400);
    expect(refused.body.error.reason).toMatch(
      /Limit of total fields \[20\] has been exceeded while adding new fields \[\d+\]/,
    );
  });

  it('rule 2: the input field is of type text', async () => {
    const { body } = await server.request('GET', '/semantic/_mapping');
    expect(body.semantic.mappings.properties.content).toEqual({ type: 'text' });
  });

  it('rule 3: an excluded output field is searchable, absent from the source, and lost to a reindex', async () => {
    await server.request('PUT', '/slim', {
      mappings: {
        _source: { excludes: ['content_embedding'] },
        properties: { content_embedding: { type: 'sparse_vector' }, content: { type: 'text' } },
      },
    });
    await server.request('POST', '/_reindex?refresh=true', {
      source: { index: 'source' },
      dest: { index: 'slim', pipeline: 'embed' },
    });
    const answer = await search('slim', { query: expansion('content_embedding', 'stamp collector') });
    expect(ids(answer)[0]).toBe('stamps');
    expect(answer.hits.hits[0]._source).toEqual({ id: 'stamps', content: PASSAGES[1][1], model_id: MODEL });
    await server.request('PUT', '/slim-copy', {
      mappings: { properties: { content_embedding: { type: 'sparse_vector' } } },
    });
    await server.request('POST', '/_reindex?refresh=true', { source: { index: 'slim' }, dest: { index: 'slim-copy' } });
    expect(ids(await search('slim-copy', { query: expansion('content_embedding', 'stamp collector') }))).toEqual([]);
  });

  it('rule 4: other field types of Elasticsearch 8 work as there', async () => {
    const properties = { k: { type: 'keyword' }, n: { type: 'long' }, d: { type: 'date' }, b: { type: 'boolean' } };
    await server.request('PUT', '/types', { mappings: { properties } });
    await server.request('PUT', '/types/_doc/1?refresh=true', { k: 'a', n: 5, d: '2024-05-01', b: true });
    const filter = [
      { term: { k: 'a' } },
      { range: { n: { gte: 5 } } },
      { range: { d: { lt: '2024-06-01' } } },
      { term: { b: true } },
    ];
    expect(ids(await search('types', { query: { bool: { filter } } }))).toEqual(['1']);
  });
});

describe('ingest pipeline', () => {
  it('fields: description, processors in order, inference with model_id and input_output', async () => {
    const pipeline = {
      description: 'in order',
      processors: [
        { set: { field: 'content', value: 'fear of open spaces' } },
        { inference: { model_id: MODEL, input_output: [{ input_field: 'content', output_field: 'tokens' }] } },
      ],
    };
    expect((await server.request('PUT', '/_ingest/pipeline/ordered', pipeline)).body).toEqual({ acknowledged: true });
    expect((await server.request('GET', '/_ingest/pipeline/ordered')).body).toEqual({ ordered: pipeline });
    const { body } = await server.request('POST', '/_ingest/pipeline/ordered/_simulate', {
      docs: [{ _source: { content: 'bread' } }],
    });
    const source = body.docs[0].doc._source;
    expect(source.content).toBe('fear of open spaces');
    expect(Object.keys(source.tokens)).toContain('fear');
  });

  it('required parts: processors, model_id, input_output, input_field, output_field', async () => {
    const refused = async (definition: unknown, property: string) => {
      const { status, body } = await server.request('PUT', '/_ingest/pipeline/bad', definition);
      expect(status, JSON.stringify(body)).toBe(400);
      expect(JSON.stringify(body)).toContain(`[${property}] required property is missing`);
    };
    await refused({}, 'processors');
    await refused({ processors: [{ inference: { input_output: [] } }] }, 'model_id');
    await refused(
      { processors: [{ inference: { model_id: MODEL, input_output: [{ output_field: 'o' }] } }] },
      'input_field',
    );
    await refused(
      { processors: [{ inference: { model_id: MODEL, input_output: [{ input_field: 'i' }] } }] },
      'output_field',
    );
    expect((await server.request('GET', '/_ingest/pipeline/bad')).status).toBe(404);
  });
});

describe('document after inference', () => {
  it('has the token map, the original text, model_id and the user’s own id field', async () => {
    const { body } = await server.request('GET', '/semantic/_doc/open');
    const source = body._source;
    expect(source.content).toBe(PASSAGES[2][1]);
    expect(source.model_id).toBe(MODEL);
    expect(source.id).toBe('open');
    const weights = Object.entries(source.content_embedding as Record<string, number>);
    expect(weights.length).toBeGreaterThan(10);
    expect(weights.every(([token, weight]) => token.length > 0 && typeof weight === 'number' && weight > 0)).toBe(true);
  });
});

describe('search hit response', () => {
  it('has hits.total, max_score and sorted hits with _index, _id, _score and _source', async () => {
    const answer = await search('semantic', { query: expansion('content_embedding', 'walk slowly') });
    expect(answer.hits.total.relation).toBe('eq');
    expect(answer.hits.total.value).toBeGreaterThanOrEqual(answer.hits.hits.length);
    const scores = answer.hits.hits.map((hit: { _score: number }) => hit._score);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
    expect(answer.hits.max_score).toBe(scores[0]);
    expect(answer.hits.hits[0]).toMatchObject({
      _index: 'semantic',
      _id: 'walk',
      _source: { content_embedding: expect.any(Object) },
    });
  });

  it('says gte where the count is a lower bound', async () => {
    const answer = await search('source', { query: { match_all: {} }, track_total_hits: 5 });
    expect(answer.hits.total).toEqual({ value: 5, relation: 'gte' });
  });
});

describe('task', () => {
  it('has node, id, type, action, description, times, cancellable, and a response when it finished', async () => {
    await server.request('PUT', '/watched', {
      mappings: { properties: { content_embedding: { type: 'sparse_vector' } } },
    });
    const started = await server.request('POST', '/_reindex?wait_for_completion=false', {
      source: { index: 'source', size: 2 },
      dest: { index: 'watched', pipeline: 'embed' },
    });
    expect(Object.keys(started.body)).toEqual(['task']);
    expect(started.body.task).toMatch(/^[\w-]+:\d+$/);
    const done = await waitForTask(started.body.task);
    const [node, number] = started.body.task.split(':');
    expect(done.task).toMatchObject({
      node,
      id: Number(number),
      type: 'transport',
      action: 'indices:data/write/reindex',
      description: 'reindex from [source] to [watched]',
      cancellable: true,
    });
    expect(done.task.start_time_in_millis).toBeGreaterThan(1_600_000_000_000);
    expect(done.task.running_time_in_nanos).toBeGreaterThan(0);
    expect(done.response).toMatchObject({
      total: PASSAGES.length,
      created: PASSAGES.length,
      batches: PASSAGES.length / 2,
      failures: [],
    });
  });

  it('completed: false while it runs, true with a response when it has finished', async () => {
    await server.request('PUT', '/slow', {
      mappings: { properties: { content_embedding: { type: 'sparse_vector' } } },
    });
    const { body } = await server.request('POST', '/_reindex?wait_for_completion=false&requests_per_second=0.5', {
      source: { index: 'source', size: 4 },
      dest: { index: 'slow', pipeline: 'embed' },
    });
    const running = await server.request('GET', `/_tasks/${body.task}`);
    expect(running.body.completed).toBe(false);
    expect(running.body.response).toBeUndefined();
    await server.request('POST', `/_reindex/${body.task}/_rethrottle?requests_per_second=-1`);
    expect((await waitForTask(body.task)).response.total).toBe(PASSAGES.length);
  });
});

describe('endpoints', () => {
  it('1 create index', async () => {
    const created = await server.request('PUT', '/created', { mappings: { properties: { t: { type: 'text' } } } });
    expect(created.body).toEqual({ acknowledged: true, shards_acknowledged: true, index: 'created' });
  });

  it('2 create ingest pipeline', async () => {
    const created = await server.request('PUT', '/_ingest/pipeline/created', {
      processors: [{ trim: { field: 'a' } }],
    });
    expect(created.body).toEqual({ acknowledged: true });
  });

  it('3 reindex through a pipeline, waiting', async () => {
    await server.request('PUT', '/waited', {
      mappings: { properties: { content_embedding: { type: 'sparse_vector' } } },
    });
    const { body } = await server.request('POST', '/_reindex?wait_for_completion=true', {
      source: { index: 'source', size: 50 },
      dest: { index: 'waited', pipeline: 'embed' },
    });
    expect(body).toMatchObject({
      timed_out: false,
      total: PASSAGES.length,
      created: PASSAGES.length,
      updated: 0,
      batches: 1,
      failures: [],
    });
  });

  it('4 get task', async () => {
    const missing = await server.request('GET', '/_tasks/abcdefghijklmnopqrstuv:1');
    expect(missing.status).toBe(404);
    expect(missing.body.error.reason).toBe(
      "task [abcdefghijklmnopqrstuv:1] belongs to the node [abcdefghijklmnopqrstuv] which isn't part of the cluster and there is no record of the task",
    );
  });

  it('5 search answers a GET with a body, top 10 by relevance', async () => {
    const answer = await server.request('GET', '/semantic/_search', { query: { match_all: {} } });
    expect(answer.status).toBe(200);
    expect(answer.body.hits.hits).toHaveLength(10);
  });

  it('5a text_expansion: model_id and model_text are required, boost multiplies', async () => {
    for (const missing of ['model_id', 'model_text']) {
      const query: Record<string, string> = { model_id: MODEL, model_text: 'x' };
      delete query[missing];
      const refused = await server.request('POST', '/semantic/_search', {
        query: { text_expansion: { content_embedding: query } },
      });
      expect(refused.status).toBe(400);
    }
    const plain = await search('semantic', { query: expansion('content_embedding', 'lava') });
    const boosted = await search('semantic', { query: expansion('content_embedding', 'lava', { boost: 2 }) });
    expect(ids(boosted)).toEqual(ids(plain));
    expect(boosted.hits.max_score).toBeCloseTo(2 * plain.hits.max_score, 4);
  });

  it('5b compound: bool should with filter, query_string, boosts and min_score', async () => {
    const should = [
      expansion('content_embedding', 'interest on savings', { boost: 1 }),
      { query_string: { query: 'interest savings', default_field: 'content', boost: 4 } },
    ];
    const both = await search('semantic', { query: { bool: { should } } });
    const [semantic, lexical] = await Promise.all(should.map((query) => search('semantic', { query })));
    expect(ids(both)[0]).toBe('bank');
    expect(both.hits.max_score).toBeCloseTo(semantic.hits.max_score + lexical.hits.max_score, 3);
    const floor = both.hits.max_score - 0.001;
    const cut = await search('semantic', { query: { bool: { should } }, min_score: floor });
    expect(ids(cut)).toEqual(['bank']);
    expect(cut.hits.total.value).toBe(1);
    const filtered = await search('semantic', {
      query: { bool: { should, filter: [{ match: { content: 'bicycle' } }] } },
    });
    expect(ids(filtered)).toEqual(['bicycle']);
  });

  it('5c hybrid: sub_searches with rank.rrf', async () => {
    const answer = await search('semantic', {
      sub_searches: [{ query: { match: { content: 'opera' } } }, { query: expansion('content_embedding', 'opera') }],
      rank: { rrf: {} },
    });
    expect(answer.hits.hits[0]).toMatchObject({ _id: 'opera', _rank: 1 });
    expect(answer.hits.hits[0]._score).toBeCloseTo(2 / 61, 6);
    expect(answer.hits.max_score).toBeNull();
  });

  it('6 upgrade index: waiting gives statistics, otherwise exactly a task', async () => {
    const waited = await server.request('POST', '/_ext/migration/upgrade/semantic?wait_for_completion=true');
    expect(Object.keys(waited.body).sort()).toEqual([
      'batches',
      'created',
      'deleted',
      'failures',
      'noops',
      'retries',
      'throttled_millis',
      'timed_out',
      'took',
      'total',
      'updated',
      'version_conflicts',
    ]);
    expect(waited.body.retries).toEqual({ bulk: 0, search: 0 });
    const started = await server.request('POST', '/_ext/migration/upgrade/semantic?wait_for_completion=false');
    expect(Object.keys(started.body)).toEqual(['task']);
    const done = await waitForTask(started.body.task);
    expect(done.task.action).toBe('cluster:admin/xpack/upgrade');
    expect(Object.keys(done.response).sort()).toEqual(Object.keys(waited.body).sort());
  });
});

describe('authentication', () => {
  it('1 every request carries an ApiKey', async () => {
    const refused = await fetch(`${server.url}/semantic/_search`);
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toContain('ApiKey');
    expect(await refused.json()).toMatchObject({ status: 401, error: { type: 'security_exception' } });
  });

  it('2 a body needs a content type', async () => {
    const refused = await fetch(`${server.url}/source/_doc/x`, {
      method: 'PUT',
      headers: { authorization: `ApiKey ${server.apiKey}`, 'content-type': 'text/plain' },
      body: '{}',
    });
    expect(refused.status).toBe(406);
  });

  it('3 keys are issued with privileges, and a request beyond them is refused', async () => {
    const { body: key } = await server.request('POST', '/_security/api_key', {
      name: 'reader',
      role_descriptors: { read: { indices: [{ names: ['semantic'], privileges: ['read'] }] } },
    });
    const as = (method: string, path: string) =>
      fetch(server.url + path, { method, headers: { authorization: `ApiKey ${key.encoded}` } });
    expect((await as('GET', '/semantic/_count')).status).toBe(200);
    expect((await as('GET', '/source/_count')).status).toBe(403);
    expect((await as('DELETE', '/semantic')).status).toBe(403);
  });
});

describe('errors and limits', () => {
  it('errors: the token map of a wrongly mapped output field passes the limit of total fields', async () => {
    await server.request('PUT', '/explosion', {});
    const tokens = Object.fromEntries(
      Array.from({ length: 1001 }, (_, number) => [`token${number}`, 1 + number / 1000]),
    );
    const refused = await server.request('PUT', '/explosion/_doc/1', { ml: { tokens } });
    expect(refused.status).toBe(400);
    expect(refused.body.error.reason).toContain(
      'Limit of total fields [1000] has been exceeded while adding new fields [',
    );
    expect((await server.request('GET', '/explosion/_mapping')).body.explosion.mappings).toEqual({});
  });

  it('limit: tokens after the first 512 are ignored', async () => {
    const words = 'bread '.repeat(600);
    const infer = async (text: string) => {
      const { body } = await server.request('POST', `/_ml/trained_models/${MODEL}/_infer`, {
        docs: [{ text_field: text }],
      });
      return body.inference_results[0];
    };
    const long = await infer(words + 'volcano');
    expect(long.is_truncated).toBe(true);
    expect(long.predicted_value).toEqual((await infer(words)).predicted_value);
    expect((await infer('bread')).is_truncated).toBeUndefined();
  });

  it('limit: 1000 fields by default', async () => {
    const properties = Object.fromEntries(
      Array.from({ length: 1001 }, (_, number) => [`f${number}`, { type: 'long' }]),
    );
    const refused = await server.request('PUT', '/toomany', { mappings: { properties } });
    expect(refused.status).toBe(400);
    expect(refused.body.error.reason).toContain('Limit of total fields [1000] has been exceeded');
  });

  it('limit: about 30000 terms in the vocabulary', async () => {
    const { body } = await server.request('GET', `/_ml/trained_models/${MODEL}`);
    expect(body.trained_model_configs[0].model_id).toBe(MODEL);
    expect(body.trained_model_configs[0].metadata.vocabulary_size).toBe(30_522);
  });

  it('limit: one index per upgrade', async () => {
    const refused = await server.request('POST', '/_ext/migration/upgrade/source,semantic');
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.status).toBeLessThan(500);
  });

  it('limit: the model needs far less than 4 GB', async () => {
    const { body } = await server.request('GET', `/_ml/trained_models/${MODEL}/_stats`);
    expect(body.trained_model_stats[0].model_size_stats.required_native_memory_bytes).toBeLessThan(400e6);
  });

  it('versioning: queries and pipelines name the model by its id', async () => {
    const unknown = await server.request('POST', '/semantic/_search', {
      query: { text_expansion: { content_embedding: { model_id: '.sparse_encoder_model_3', model_text: 'x' } } },
    });
    expect(unknown.status).toBeGreaterThanOrEqual(400);
    expect(unknown.status).toBeLessThan(500);
    expect(JSON.stringify(unknown.body)).toContain('.sparse_encoder_model_3');
  });
});
