import { OPERATIONS } from '@sparrow-search/engine';

import { type Endpoint, local } from './types.js';

/** Longest body, in bytes: it is read on the event loop. */
const MOST_BYTES = 1024 * 1024;

const { search, msearch } = OPERATIONS;
/** The engine declares no actions on scripts; the same privileges allow to change settings. */
const SCRIPTS = 'cluster:admin/settings/update';
const BODY = { body: true, mostBytes: MOST_BYTES };

export const SEARCH_TEMPLATE_ENDPOINTS: readonly Endpoint[] = [
  ...local('search_template', search.action, ['GET|POST /_search/template', 'GET|POST /{index}/_search/template'], {
    ...BODY,
    ...{ params: search.parameters, cancellable: true, leadsTo: 'search' },
  }),
  ...local('msearch_template', msearch.action, ['GET|POST /_msearch/template', 'GET|POST /{index}/_msearch/template'], {
    ...BODY,
    params: msearch.parameters,
    ndjson: true,
    cancellable: true,
    leadsTo: 'msearch',
  }),
  ...local('render_template', search.action, ['GET|POST /_render/template', 'GET|POST /_render/template/{id}'], BODY),
  ...local('put_script', SCRIPTS, ['PUT|POST /_scripts/{id}', 'PUT|POST /_scripts/{id}/{context}'], {
    body: true,
    params: ['context', 'master_timeout', 'timeout'],
  }),
  ...local('get_script', SCRIPTS, ['GET /_scripts/{id}'], { params: ['master_timeout'] }),
  ...local('delete_script', SCRIPTS, ['DELETE /_scripts/{id}'], { params: ['master_timeout', 'timeout'] }),
];
