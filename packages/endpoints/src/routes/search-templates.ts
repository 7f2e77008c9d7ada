import { OPERATIONS } from '@sparrow-search/engine';

import { type Endpoint, local } from './types.js';

/** Longest body, in bytes: it is read on the event loop. */
const MOST_BYTES = 1024 * 1024;

const { search, msearch } = OPERATIONS;
const BODY = { body: true, mostBytes: MOST_BYTES };

export const SEARCH_TEMPLATE_ENDPOINTS: readonly Endpoint[] = [
  ...local(
    'search_template',
    'indices:data/read/search/template',
    ['GET|POST /_search/template', 'GET|POST /{index}/_search/template'],
    {
      ...BODY,
      ...{ params: search.parameters, cancellable: true, leadsTo: 'search' },
    },
  ),
  ...local(
    'msearch_template',
    'indices:data/read/msearch/template',
    ['GET|POST /_msearch/template', 'GET|POST /{index}/_msearch/template'],
    {
      ...BODY,
      params: msearch.parameters,
      ndjson: true,
      cancellable: true,
      leadsTo: 'msearch',
    },
  ),
  ...local(
    'render_template',
    'indices:data/read/search/template',
    ['GET|POST /_render/template', 'GET|POST /_render/template/{id}'],
    { ...BODY, cancellable: true },
  ),
  ...local('put_script', 'cluster:admin/script/put', ['PUT|POST /_scripts/{id}', 'PUT|POST /_scripts/{id}/{context}'], {
    body: true,
    params: ['context', 'master_timeout', 'timeout'],
  }),
  ...local('script_contexts', 'cluster:admin/script/get', ['GET /_script_context'], {}),
  ...local('script_languages', 'cluster:admin/script/get', ['GET /_script_language'], {}),
  ...local('get_script', 'cluster:admin/script/get', ['GET /_scripts/{id}'], { params: ['master_timeout'] }),
  ...local('delete_script', 'cluster:admin/script/delete', ['DELETE /_scripts/{id}'], {
    params: ['master_timeout', 'timeout'],
  }),
];
