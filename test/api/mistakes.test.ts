// Mistakes of people who begin: each answer says in words what is wrong, and names what they wrote.
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const SPARSE = '.sparse_encoder_model_2';
const DENSE = '.all-minilm-l6-v2';

let server: RunningServer;
beforeAll(async () => {
  server = await startServer();
  await server.request('PUT', '/a', {
    mappings: {
      properties: {
        tokens: { type: 'sparse_vector' },
        content: { type: 'text' },
        word: { type: 'keyword' },
        vector: { type: 'dense_vector', dims: 3 },
      },
    },
  });
  const embed = (output_field: string) => ({
    processors: [{ inference: { model_id: SPARSE, input_output: [{ input_field: 'content', output_field }] } }],
  });
  await server.request('PUT', '/_ingest/pipeline/embed', embed('tokens'));
  await server.request('PUT', '/_ingest/pipeline/into-keyword', embed('word'));
  const written = await server.request('PUT', '/a/_doc/1?pipeline=embed&refresh=true', { content: 'hello world' });
  expect(written.status, written.text).toBe(201);
});
afterAll(async () => {
  await server.stop();
});

const search = (query: object) => ['POST', '/a/_search', { query }] as const;
const question = { inference_id: SPARSE, query: 'greetings' };

it.each([
  [
    'a model that is not there',
    ...search({ sparse_vector: { ...question, field: 'tokens', inference_id: 'nope' } }),
    'nope',
  ],
  [
    'a model that did not make the vectors',
    ...search({ sparse_vector: { ...question, field: 'tokens', inference_id: DENSE } }),
    `field [tokens] holds the output of model [${SPARSE}] and cannot be searched with model [${DENSE}]`,
  ],
  [
    'a field of another type',
    ...search({ text_expansion: { content: { model_id: SPARSE, model_text: 'x' } } }),
    '[text] is not an appropriate field type for this query. Allowed field types are [sparse_vector, rank_features].',
  ],
  [
    'a text field taken for semantic_text',
    ...search({ semantic: { field: 'content', query: 'x' } }),
    'Field [content] of type [text]',
  ],
  [
    'a vector of another length',
    ...search({ knn: { field: 'vector', query_vector: [1, 2], k: 1 } }),
    'number of dimensions [2] than the document vectors [3]',
  ],
  ['a query written wrongly', ...search({ mach: { content: 'x' } }), 'unknown query [mach] did you mean [match]?'],
  [
    'a key of a query written wrongly',
    ...search({ bool: { musst: [] } }),
    '[bool] unknown field [musst] did you mean any of [must, mustNot]?',
  ],
  ['a query at the top of the body', 'POST', '/a/_search', { match: { content: 'x' } }, 'in [match]'],
  [
    'a syntax error in a query string',
    ...search({ query_string: { query: 'hello AND (' } }),
    "Cannot parse 'hello AND (': Encountered",
  ],
  ['a parameter written wrongly', 'PUT', '/a/_doc/2?pipline=embed', {}, '[pipline] -> did you mean [pipeline]?'],
  [
    'a document without the field of its pipeline',
    'PUT',
    '/a/_doc/2?pipeline=embed',
    { title: 'x' },
    'field [content] not present as part of path [content]',
  ],
  [
    'tokens for a keyword field',
    'PUT',
    '/a/_doc/2?pipeline=into-keyword',
    { content: 'x' },
    'failed to parse field [word] of type [keyword]',
  ],
  ['a pipeline that is not there', 'PUT', '/a/_doc/2?pipeline=nope', {}, 'pipeline with id [nope] does not exist'],
  [
    'a processor that is not there',
    'PUT',
    '/_ingest/pipeline/p',
    { processors: [{ inferrence: {} }] },
    'No processor type exists with name [inferrence] did you mean [inference]?',
  ],
  [
    'a script with a name that is not there',
    'POST',
    '/a/_update/1',
    { script: { source: 'ctx._source.a = x' } },
    'cannot resolve symbol [x]',
  ],
  [
    'a type of field written wrongly',
    'PUT',
    '/b',
    { mappings: { properties: { t: { type: 'semantictext' } } } },
    'Did you mean [semantic_text]? There are [alias, binary, ',
  ],
  [
    'a type of field that only Elasticsearch has',
    'PUT',
    '/b',
    { mappings: { properties: { t: { type: 'join' } } } },
    'This server has no such type. There are [alias, binary, ',
  ],
  [
    'an analyzer written wrongly',
    'PUT',
    '/b',
    { mappings: { properties: { t: { type: 'text', analyzer: 'englsh' } } } },
    'analyzer [englsh] has not been configured in mappings: did you mean [english]? There are [arabic, bulgarian, ',
  ],
  [
    'an analyzer that is not there',
    'POST',
    '/_analyze',
    { analyzer: 'smartcn', text: 'x' },
    'failed to find global analyzer [smartcn]: there are [arabic, ',
  ],
  [
    'a service written wrongly',
    'PUT',
    '/_inference/sparse_embedding/x',
    { service: 'elastcsearch', service_settings: { model_id: 'x', num_threads: 1, num_allocations: 1 } },
    'Unknown service [elastcsearch]: did you mean [elasticsearch]? There are [elasticsearch, elser]',
  ],
  [
    'a model of Elasticsearch',
    'POST',
    '/_ml/trained_models/.elser/_infer',
    { docs: [{ text_field: 'x' }] },
    `Could not find trained model [.elser]: there are [${DENSE}, ${SPARSE}`,
  ],
  [
    'an inference endpoint written wrongly',
    'POST',
    '/_inference/.elser-2-elasticsaerch',
    { input: 'x' },
    'Inference endpoint not found [.elser-2-elasticsaerch]: did you mean any of [.elser-2-elasticsearch, ',
  ],
  [
    'an inference endpoint of a package that is not installed',
    'POST',
    '/_inference/.hybrid-bge-small-en',
    { input: 'x' },
    'Inference endpoint not found [.hybrid-bge-small-en]: its package is not installed, run [npm install @sparrow-search/model-bge-small-en] beside the server and start anew',
  ],
  [
    'the endpoint of the multilingual model, whose package is not installed',
    'POST',
    '/_inference/.multilingual-e5-small-elasticsearch',
    { input: 'x' },
    ': its package is not installed, run [npm install @sparrow-search/model-multilingual-e5-small] beside the server and start anew',
  ],
  [
    'a model of a package that is not installed',
    'POST',
    '/_ml/trained_models/.bge-small-en/_infer',
    { docs: [{ text_field: 'x' }] },
    'Could not find trained model [.bge-small-en]: its package is not installed, run [npm install @sparrow-search/model-bge-small-en] ',
  ],
  ['sorting by text', 'POST', '/a/_search', { sort: ['content'] }, 'Please use a keyword field instead'],
  ['an uppercase name', 'PUT', '/A', {}, 'Invalid index name [A], must be lowercase'],
] as const)('%s: %s %s', async (_, method, path, body, sentence) => {
  const answer = await server.request(method, path, body);
  expect(answer.status, answer.text).toBeGreaterThanOrEqual(400);
  expect(answer.status).toBeLessThan(500);
  expect(answer.body.error.type).toBeTypeOf('string');
  const words = JSON.stringify(answer.body.error).replaceAll('\\"', '"');
  expect(words).toContain(sentence);
});

it('names no endpoint of somebody else where one is not found', async () => {
  const settings = { model_id: SPARSE, num_threads: 1, num_allocations: 1 };
  const made = { service: 'elasticsearch', service_settings: settings };
  const put = await server.request('PUT', '/_inference/sparse_embedding/customer-secret', made);
  expect(put.status, put.text).toBe(200);
  const query = { sparse_vector: { field: 'tokens', inference_id: 'customer-secre', query: 'x' } };
  for (const [path, body] of [
    ['/a/_search', { query }],
    ['/_inference/customer-secre', { input: 'x' }],
    ['/_ml/trained_models/customer-secre/_infer', { docs: [{ text_field: 'x' }] }],
  ] as const) {
    const { text } = await server.request('POST', path, body);
    expect(text, path).toContain('there are [');
    expect(text, path).not.toContain('customer-secret');
  }
});
