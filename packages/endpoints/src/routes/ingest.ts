import { type Endpoint, engine } from './types.js';

export const INGEST_ENDPOINTS: readonly Endpoint[] = [
  ...engine('put_pipeline', ['PUT /_ingest/pipeline/{pipeline}']),
  ...engine('get_pipeline', ['GET /_ingest/pipeline/{pipeline}', 'GET /_ingest/pipeline']),
  ...engine('delete_pipeline', ['DELETE /_ingest/pipeline/{pipeline}']),
  ...engine('simulate_pipeline', [
    'GET|POST /_ingest/pipeline/_simulate',
    'GET|POST /_ingest/pipeline/{pipeline}/_simulate',
  ]),
];
