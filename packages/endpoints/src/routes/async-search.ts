import { OPERATIONS } from '@sparrow-search/engine';

import { type Endpoint, local } from './types.js';

const { search } = OPERATIONS;
const PATH = '/_async_search/{id}';

/** A search with a scroll has pages, and the result of one without a request has one. */
const SEARCH_PARAMS = search.parameters.filter((name) => name !== 'scroll');

/** A key that may read something may ask for results; the owner of the search decides about the rest. */
export const ASYNC_SEARCH_ENDPOINTS: readonly Endpoint[] = [
  ...local(
    'async_search',
    'indices:data/read/async_search/submit',
    ['POST /_async_search', 'POST /{index}/_async_search'],
    {
      params: [...SEARCH_PARAMS, 'wait_for_completion_timeout', 'keep_alive', 'keep_on_completion'],
      ...{ body: true, mostBytes: Infinity, cancellable: true, leadsTo: 'search' },
    },
  ),
  ...local('get_async_search', 'indices:data/read/async_search/get', [`GET ${PATH}`], {
    params: ['wait_for_completion_timeout', 'keep_alive', 'rest_total_hits_as_int', 'typed_keys'],
    cancellable: true,
  }),
  ...local('async_search_status', 'indices:data/read/async_search/get', ['GET /_async_search/status/{id}']),
  ...local('delete_async_search', 'indices:data/read/async_search/delete', [`DELETE ${PATH}`]),
];
