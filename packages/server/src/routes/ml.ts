import { type Endpoint, engine } from './types.js';

const MODELS = '/_ml/trained_models';
const INFERENCE = '/_inference';
const PAGE = ['allow_no_match', 'from', 'size'];

/** Models, their deployments, and the inference endpoints that stand for them. */
export const ML_ENDPOINTS: readonly Endpoint[] = [
  ...engine('ml_info', 'cluster:monitor/xpack/ml/info/get', ['GET /_ml/info']),
  ...engine(
    'get_trained_models',
    'cluster:monitor/xpack/ml/inference/get',
    [`GET ${MODELS}`, `GET ${MODELS}/{model}`],
    { params: [...PAGE, 'decompress_definition', 'exclude_generated', 'include', 'tags'] },
  ),
  ...engine('put_trained_model', 'cluster:admin/xpack/ml/inference/put', [`PUT ${MODELS}/{model}`], {
    body: true,
    params: ['defer_definition_decompression', 'wait_for_completion'],
  }),
  ...engine('delete_trained_model', 'cluster:admin/xpack/ml/inference/delete', [`DELETE ${MODELS}/{model}`], {
    params: ['force', 'timeout'],
  }),
  ...engine(
    'put_trained_model_definition_part',
    'cluster:admin/xpack/ml/trained_models/part/put',
    [`PUT ${MODELS}/{model}/definition/{part}`],
    { body: true },
  ),
  ...engine(
    'put_trained_model_vocabulary',
    'cluster:admin/xpack/ml/trained_models/vocabulary/put',
    [`PUT ${MODELS}/{model}/vocabulary`],
    { body: true },
  ),
  ...engine(
    'put_trained_model_alias',
    'cluster:admin/xpack/ml/inference/model_aliases/put',
    [`PUT ${MODELS}/{model}/model_aliases/{model_alias}`],
    { params: ['reassign'] },
  ),
  ...engine('delete_trained_model_alias', 'cluster:admin/xpack/ml/inference/model_aliases/delete', [
    `DELETE ${MODELS}/{model}/model_aliases/{model_alias}`,
  ]),
  ...engine(
    'trained_model_stats',
    'cluster:monitor/xpack/ml/inference/stats/get',
    [`GET ${MODELS}/_stats`, `GET ${MODELS}/{model}/_stats`],
    { params: PAGE },
  ),
  ...engine(
    'start_deployment',
    'cluster:admin/xpack/ml/trained_models/deployment/start',
    [`POST ${MODELS}/{model}/deployment/_start`],
    {
      body: true,
      params: [
        ...['number_of_allocations', 'threads_per_allocation', 'queue_capacity', 'cache_size', 'priority'],
        ...['deployment_id', 'timeout', 'wait_for'],
      ],
    },
  ),
  ...engine(
    'stop_deployment',
    'cluster:admin/xpack/ml/trained_models/deployment/stop',
    [`POST ${MODELS}/{model}/deployment/_stop`],
    { body: true, params: ['allow_no_match', 'force', 'timeout', 'finish_pending_work'] },
  ),
  ...engine(
    'update_deployment',
    'cluster:admin/xpack/ml/trained_models/deployment/update',
    [`POST ${MODELS}/{model}/deployment/_update`],
    { body: true, params: ['number_of_allocations', 'timeout'] },
  ),
  ...engine(
    'infer_trained_model',
    'cluster:monitor/xpack/ml/inference/infer',
    [`POST ${MODELS}/{model}/_infer`, `POST ${MODELS}/{model}/deployment/_infer`],
    { body: true, cancellable: true, params: ['timeout'] },
  ),
  ...engine('put_inference', 'cluster:admin/xpack/inference/put', endpoints('PUT'), {
    body: true,
    params: ['timeout'],
  }),
  ...engine('get_inference', 'cluster:monitor/xpack/inference/get', [
    `GET ${INFERENCE}`,
    `GET ${INFERENCE}/_all`,
    `GET ${INFERENCE}/{task_type}/_all`,
    ...endpoints('GET'),
  ]),
  ...engine('delete_inference', 'cluster:admin/xpack/inference/delete', endpoints('DELETE'), {
    params: ['dry_run', 'force'],
  }),
  ...engine('update_inference', 'cluster:admin/xpack/inference/update', endpoints('PUT', '/_update'), { body: true }),
  ...engine('infer', 'cluster:monitor/xpack/inference/post', endpoints('POST'), {
    body: true,
    cancellable: true,
    params: ['timeout'],
  }),
  ...engine('infer_stream', 'cluster:monitor/xpack/inference/post', endpoints('POST', '/_stream'), {
    body: true,
    params: ['timeout'],
  }),
];

/** The two paths of an inference endpoint: with and without the type of its task. */
function endpoints(method: string, rest = ''): string[] {
  return [`${method} ${INFERENCE}/{inference_id}${rest}`, `${method} ${INFERENCE}/{task_type}/{inference_id}${rest}`];
}
