import { type Endpoint, engine } from './types.js';

/** Single documents, several at once, and bulk loads. */
export const DOCUMENT_ENDPOINTS: readonly Endpoint[] = [
  ...engine('index_doc', ['PUT|POST /{index}/_doc/{id}', 'POST /{index}/_doc']),
  ...engine('create_doc', ['PUT|POST /{index}/_create/{id}']),
  ...engine('get_doc', ['GET /{index}/_doc/{id}']),
  ...engine('exists_doc', ['HEAD /{index}/_doc/{id}']),
  ...engine('get_source', ['GET|HEAD /{index}/_source/{id}']),
  ...engine('delete_doc', ['DELETE /{index}/_doc/{id}']),
  ...engine('update_doc', ['POST /{index}/_update/{id}']),
  ...engine('mget', ['GET|POST /_mget', 'GET|POST /{index}/_mget']),
  ...engine('term_vectors', ['GET|POST /{index}/_termvectors/{id}', 'GET|POST /{index}/_termvectors']),
  ...engine('multi_term_vectors', ['GET|POST /_mtermvectors', 'GET|POST /{index}/_mtermvectors']),
  ...engine('bulk', ['POST|PUT /_bulk', 'POST|PUT /{index}/_bulk']),
];
