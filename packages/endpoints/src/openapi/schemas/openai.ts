import {
  type Schema,
  type Schemas,
  bool,
  either,
  int,
  list,
  nullable,
  num,
  object,
  one,
  ref,
  several,
  text,
} from './schema.js';

const model = object(
  { id: text('id of an inference endpoint or of a model'), object: one(['model']), created: int(), owned_by: text() },
  ['id', 'object', 'created', 'owned_by'],
);
const documented = either(text(), object({ text: text() }, ['text']));
const index = int('place in the request');

/** Types of the interfaces of OpenAI, Cohere and Jina. */
export const OPENAI_SCHEMAS: Schemas = {
  OpenAiError: object(
    {
      error: object(
        { message: text(), type: text(), param: nullable(text('where it is in the body')), code: nullable(text()) },
        ['message', 'type', 'param', 'code'],
      ),
    },
    ['error'],
  ),
  SparseError: object({ error: text(), error_type: one(['validation', 'overloaded', 'backend']) }, [
    'error',
    'error_type',
  ]),
  OpenAiModel: model,
  EmbeddingsRequest: object(
    {
      input: several(text()),
      model: text('id of an inference endpoint or of a model'),
      encoding_format: one(['float', 'base64'], '`base64`: numbers of 32 bits, the lowest byte first'),
      dimensions: int('for models that can be cut'),
      user: text('read, and left'),
    },
    ['input', 'model'],
  ),
  EmbeddingsAnswer: object(
    {
      object: one(['list']),
      data: list(
        object({ object: one(['embedding']), index, embedding: either(list(num()), text()) }, [
          ...['object', 'index', 'embedding'],
        ]),
      ),
      model: text(),
      usage: object({ prompt_tokens: int('tokens that the model has read'), total_tokens: int() }),
    },
    ['object', 'data', 'model', 'usage'],
  ),
  CohereRerankRequest: object(
    {
      model: text('id of an inference endpoint for `rerank`, or of a cross-encoder'),
      query: text(),
      documents: list(documented),
      top_n: int('how many results there are; all, if nothing is said'),
      return_documents: bool('whether results have their texts'),
    },
    ['model', 'query', 'documents'],
  ),
  CohereRerankAnswer: object(
    {
      id: text(),
      model: text(),
      results: list(
        object({ index, relevance_score: num('from 0 to 1'), document: object({ text: text() }) }, [
          ...['index', 'relevance_score'],
        ]),
        'the best first',
      ),
      usage: object({ total_tokens: int('tokens that the model has read, for each text those of the question too') }),
      meta: object({ api_version: object({ version: text() }), tokens: object({ input_tokens: int() }) }),
    },
    ['id', 'model', 'results'],
  ),
};

/** What the document says of these operations. */
export const OPENAI_OPERATIONS = {
  openai_embeddings: {
    about: 'Makes dense vectors of texts, as OpenAI’s interface does.',
    request: ref('EmbeddingsRequest'),
    answer: ref('EmbeddingsAnswer'),
  },
  openai_models: {
    about: 'Inference endpoints and models that the interfaces of OpenAI and Cohere may name.',
    answer: object({ object: one(['list']), data: list(ref('OpenAiModel')) }, ['object', 'data']),
  },
  openai_model: { about: 'One inference endpoint or model.', answer: ref('OpenAiModel') },
  cohere_rerank: {
    about: 'Sorts texts by how well they answer a question, as Cohere’s and Jina’s interfaces do.',
    request: ref('CohereRerankRequest'),
    answer: ref('CohereRerankAnswer'),
  },
  embed_sparse: {
    answer: list(list(object({ index: int(), value: num() }, ['index', 'value']))),
  },
} satisfies Readonly<Record<string, { about?: string; request?: Schema; answer: Schema }>>;
