import { DECLARED } from './declared.generated.js';
import { KEY_REQUESTS } from './keys.js';
import {
  type Schemas,
  any,
  bool,
  either,
  int,
  list,
  map,
  nullable,
  num,
  object,
  one,
  open,
  ref,
  text,
  scalar,
} from './schema.js';

const adaptive = object({
  enabled: bool(),
  min_number_of_allocations: int(),
  max_number_of_allocations: int(),
});
const config = object({
  ...{ model_id: text(), model_type: text(), created_by: text(), version: text(), create_time: int() },
  ...{ model_size_bytes: int(), model_size: text(), estimated_operations: int(), license_level: text() },
  ...{ description: text(), inference_config: open(), fully_defined: bool(), tags: list(text()), metadata: open() },
  ...{ input: object({ field_names: list(text()) }), create_time_string: text(), platform_architecture: text() },
  ...{ prefix_strings: open(), location: open(), default_field_map: map(text()), definition: open() },
});
const assignment = object({
  task_parameters: object({
    ...{ model_id: text(), deployment_id: text(), model_bytes: int(), threads_per_allocation: int() },
    ...{ number_of_allocations: int(), queue_capacity: int(), cache_size: text(), priority: text() },
    ...{ per_deployment_memory_bytes: int(), per_allocation_memory_bytes: int() },
  }),
  routing_table: map(
    object({
      ...{ current_allocations: int(), target_allocations: int(), routing_state: text(), reason: text() },
    }),
  ),
  ...{ assignment_state: text(), start_time: text(), max_assigned_allocations: int(), reason: text() },
  adaptive_allocations: either({ type: 'null' }, adaptive),
});
const truncated = { is_truncated: bool('whether the model did not read the end') };

export const MODEL_SCHEMAS: Schemas = {
  SimulateAnswer: object(
    {
      docs: list(
        // Null stands for a document that the pipeline dropped.
        nullable(
          object({
            doc: open('the document as it left the pipeline'),
            error: ref('Cause'),
            processor_results: list(open()),
          }),
        ),
      ),
    },
    ['docs'],
  ),
  InferenceEndpoint: object(
    {
      inference_id: text(),
      task_type: one(['sparse_embedding', 'text_embedding', 'hybrid_embedding', 'rerank']),
      ...DECLARED.InferenceEndpointRequest.properties,
    },
    ['inference_id', 'task_type', 'service'],
  ),
  InferenceEndpoints: object({ endpoints: list(ref('InferenceEndpoint')) }, ['endpoints']),
  InferenceAnswer: object({
    sparse_embedding: list(object({ ...truncated, embedding: map(num(), 'tokens with their weights') })),
    text_embedding: list(object({ ...truncated, embedding: list(num()) })),
    rerank: list(object({ index: int(), relevance_score: num(), text: text() }, ['index', 'relevance_score'])),
    hybrid_embedding: list(object({ ...truncated, sparse_embedding: map(num()), text_embedding: list(num()) })),
  }),
  TrainedModel: config,
  TrainedModels: object({ count: int(), trained_model_configs: list(ref('TrainedModel')) }, [
    'count',
    'trained_model_configs',
  ]),
  Deployment: object({ assignment }, ['assignment']),
  InferTrainedModelAnswer: object({
    inference_results: list({
      type: 'object',
      additionalProperties: true,
      properties: {
        predicted_value: either(map(num()), list(num()), scalar),
        ...{ is_truncated: bool(), warning: text(), model_id: text(), error: text() },
      },
    }),
  }),
};

const key = object({
  ...{ id: text(), name: text(), type: text(), creation: int(), expiration: int(), invalidated: bool() },
  ...{ invalidation: int(), username: text(), realm: text(), realm_type: text(), metadata: open() },
  ...{
    role_descriptors: map(ref('RoleDescriptor')),
    limited_by: list(open()),
    _sort: list(any()),
    profile_uid: text(),
  },
});
const failures = { error_count: int(), error_details: list(ref('Cause')) };
const shards = object({ total: int(), failed: int(), successful: int() });

export const ADMINISTRATION_SCHEMAS: Schemas = {
  ...KEY_REQUESTS,
  CreatedApiKey: object(
    {
      ...{ id: text(), name: text(), expiration: int(), api_key: text('the secret, which is shown this once') },
      encoded: text('what goes into the header behind `ApiKey`'),
    },
    ['id', 'name', 'api_key', 'encoded'],
  ),
  ApiKey: key,
  ApiKeys: object({ api_keys: list(ref('ApiKey')) }, ['api_keys']),
  FoundApiKeys: object({ total: int(), count: int(), api_keys: list(ref('ApiKey')), aggregations: open() }, [
    'total',
    'count',
    'api_keys',
  ]),
  InvalidatedApiKeys: object(
    { invalidated_api_keys: list(text()), previously_invalidated_api_keys: list(text()), ...failures },
    ['invalidated_api_keys', 'previously_invalidated_api_keys', 'error_count'],
  ),
  BulkUpdatedApiKeys: object({
    updated: list(text()),
    noops: list(text()),
    errors: object({ count: int(), details: map(ref('Cause')) }),
  }),
  Snapshot: object(
    {
      ...{ snapshot: text(), uuid: text(), repository: text(), version_id: int(), version: text() },
      ...{ indices: list(text()), data_streams: list(any()), include_global_state: bool(), metadata: open() },
      ...{ state: text(), reason: text(), start_time: text(), start_time_in_millis: int(), end_time: text() },
      ...{ end_time_in_millis: int(), duration_in_millis: int(), duration: text(), failures: list(any()) },
      ...{ shards, feature_states: list(any()), index_details: open(), ignored: any() },
    },
    ['snapshot'],
  ),
  CreatedSnapshot: object({ snapshot: ref('Snapshot'), accepted: bool() }),
  Snapshots: object({ snapshots: list(ref('Snapshot')), total: int(), remaining: int(), next: text() }, ['snapshots']),
  RestoredSnapshot: object({
    snapshot: object({ snapshot: text(), indices: list(text()), shards }),
    accepted: bool(),
  }),
  ServerInfo: object(
    {
      ...{ name: text(), cluster_name: text(), cluster_uuid: text(), tagline: text() },
      version: object({
        ...{ number: text('version of Elasticsearch whose interface this is'), build_flavor: text() },
        ...{ build_type: text(), build_hash: text(), build_date: text(), build_snapshot: bool() },
        ...{ lucene_version: text(), minimum_wire_compatibility_version: text() },
        ...{ minimum_index_compatibility_version: text() },
      }),
    },
    ['version'],
  ),
};
