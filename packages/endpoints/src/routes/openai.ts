import { MOST_BYTES, SPARSE_PATH } from './openai-paths.js';
import { type Endpoint, engine, local } from './types.js';

const INFER = 'cluster:monitor/xpack/inference/post';
const SEE = 'cluster:monitor/xpack/inference/get';
const BODY = { body: true, cancellable: true, mostBytes: MOST_BYTES, params: ['timeout'] };

/** The interfaces of OpenAI, Cohere, Jina and text-embeddings-inference, over the same models and inference endpoints. */
export const OPENAI_ENDPOINTS: readonly Endpoint[] = [
  ...local('openai_embeddings', INFER, ['POST /v1/embeddings'], BODY),
  ...local('openai_models', SEE, ['GET /v1/models']),
  ...local('openai_model', SEE, ['GET /v1/models/{model}']),
  ...local('cohere_rerank', INFER, ['POST /v1/rerank', 'POST /v2/rerank'], BODY),
  ...engine('embed_sparse', [`POST ${SPARSE_PATH}`]),
];
