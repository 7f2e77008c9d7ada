import { type Endpoint, engine } from './types.js';

const MODELS = '/_ml/trained_models';
const INFERENCE = '/_inference';

/** Models, their deployments, and the inference endpoints that stand for them. */
export const ML_ENDPOINTS: readonly Endpoint[] = [
  ...engine('ml_info', ['GET /_ml/info']),
  ...engine('get_trained_models', [`GET ${MODELS}`, `GET ${MODELS}/{model}`]),
  ...engine('put_trained_model', [`PUT ${MODELS}/{model}`]),
  ...engine('delete_trained_model', [`DELETE ${MODELS}/{model}`]),
  ...engine('put_trained_model_definition_part', [`PUT ${MODELS}/{model}/definition/{part}`]),
  ...engine('put_trained_model_vocabulary', [`PUT ${MODELS}/{model}/vocabulary`]),
  ...engine('put_trained_model_alias', [`PUT ${MODELS}/{model}/model_aliases/{model_alias}`]),
  ...engine('delete_trained_model_alias', [`DELETE ${MODELS}/{model}/model_aliases/{model_alias}`]),
  ...engine('trained_model_stats', [`GET ${MODELS}/_stats`, `GET ${MODELS}/{model}/_stats`]),
  ...engine('start_deployment', [`POST ${MODELS}/{model}/deployment/_start`]),
  ...engine('stop_deployment', [`POST ${MODELS}/{model}/deployment/_stop`]),
  ...engine('update_deployment', [`POST ${MODELS}/{model}/deployment/_update`]),
  ...engine('infer_trained_model', [`POST ${MODELS}/{model}/_infer`, `POST ${MODELS}/{model}/deployment/_infer`]),
  ...engine('put_inference', endpoints('PUT')),
  ...engine('get_inference', [
    `GET ${INFERENCE}`,
    `GET ${INFERENCE}/_all`,
    `GET ${INFERENCE}/{task_type}/_all`,
    ...endpoints('GET'),
  ]),
  ...engine('delete_inference', endpoints('DELETE')),
  ...engine('update_inference', endpoints('PUT', '/_update')),
  ...engine('infer', endpoints('POST')),
  ...engine('infer_stream', endpoints('POST', '/_stream')),
];

/** The two paths of an inference endpoint: with and without the type of its task. */
function endpoints(method: string, rest = ''): string[] {
  return [`${method} ${INFERENCE}/{inference_id}${rest}`, `${method} ${INFERENCE}/{task_type}/{inference_id}${rest}`];
}
