import { type Endpoint, engine } from './types.js';

export const INGEST_ENDPOINTS: readonly Endpoint[] = [
  ...engine('put_pipeline', 'cluster:admin/ingest/pipeline/put', ['PUT /_ingest/pipeline/{pipeline}'], {
    body: true,
    params: ['timeout', 'master_timeout', 'if_version'],
  }),
  ...engine(
    'get_pipeline',
    'cluster:admin/ingest/pipeline/get',
    ['GET /_ingest/pipeline/{pipeline}', 'GET /_ingest/pipeline'],
    { params: ['master_timeout', 'summary'] },
  ),
  ...engine('delete_pipeline', 'cluster:admin/ingest/pipeline/delete', ['DELETE /_ingest/pipeline/{pipeline}'], {
    params: ['timeout', 'master_timeout'],
  }),
  ...engine(
    'simulate_pipeline',
    'cluster:admin/ingest/pipeline/simulate',
    ['GET|POST /_ingest/pipeline/_simulate', 'GET|POST /_ingest/pipeline/{pipeline}/_simulate'],
    { body: true, cancellable: true, params: ['verbose'] },
  ),
];
