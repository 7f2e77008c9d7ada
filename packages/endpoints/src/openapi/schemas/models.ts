import {
  type Schemas,
  any,
  bool,
  either,
  int,
  list,
  map,
  num,
  object,
  one,
  open,
  preset,
  ref,
  several,
  text,
  scalar,
} from './schema.js';

const adaptive = object({
  enabled: bool(),
  min_number_of_allocations: int(),
  max_number_of_allocations: int(),
});
const settings = object({
  ...{ model_id: text(), deployment_id: text(), num_allocations: int(), num_threads: preset(int(), 1) },
  adaptive_allocations: adaptive,
  ...{ similarity: text(), dimensions: int(), element_type: text() },
  ...{ sparse_inference_id: text(), dense_inference_id: text(), rate_limit: open() },
});
const endpoint = {
  ...{ service: text(), service_settings: settings, task_settings: open(), chunking_settings: ref('ChunkingSettings') },
};
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
  SimulateRequest: object(
    {
      docs: list(
        object(
          {
            _index: text(),
            _id: scalar,
            _routing: text(),
            _source: open(),
            _version: any(),
            _version_type: any(),
            _score: any(),
            _type: any(),
          },
          ['_source'],
        ),
      ),
      pipeline: ref('Pipeline'),
    },
    ['docs'],
  ),
  SimulateAnswer: object(
    {
      docs: list(
        object({
          doc: open('the document as it left the pipeline'),
          error: ref('Cause'),
          processor_results: list(open()),
        }),
      ),
    },
    ['docs'],
  ),
  InferenceEndpointRequest: object(endpoint, ['service']),
  InferenceEndpoint: object(
    {
      inference_id: text(),
      task_type: one(['sparse_embedding', 'text_embedding', 'hybrid_embedding', 'rerank']),
      ...endpoint,
    },
    ['inference_id', 'task_type', 'service'],
  ),
  InferenceEndpoints: object({ endpoints: list(ref('InferenceEndpoint')) }, ['endpoints']),
  InferenceRequest: object(
    {
      ...{ input: several(text()), query: text('for `rerank`: the question'), input_type: text() },
      ...{ task_settings: open(), top_n: int('for `rerank`'), return_documents: bool() },
    },
    ['input'],
  ),
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
  TrainedModelRequest: object({
    ...{
      input: object({ field_names: list(text()) }),
      inference_config: open(),
      description: text(),
      metadata: open(),
    },
    ...{ tags: list(text()), model_type: text(), model_size_bytes: int(), platform_architecture: text() },
    ...{ prefix_strings: open(), definition: open(), compressed_definition: text(), location: open() },
  }),
  Deployment: object({ assignment }, ['assignment']),
  InferTrainedModelRequest: object({ docs: list(map(any())), inference_config: open() }, ['docs']),
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

const role = object({
  cluster: list(text()),
  indices: list(
    object({
      ...{ names: several(text()), privileges: list(text()), field_security: open(), query: any() },
      allow_restricted_indices: bool(),
    }),
  ),
  ...{
    index: list(open()),
    applications: list(open()),
    run_as: list(text()),
    metadata: open(),
    transient_metadata: open(),
  },
  ...{
    restriction: open(),
    global: any(),
    remote_indices: list(open()),
    remote_cluster: list(open()),
    description: text(),
  },
});
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
  RoleDescriptor: role,
  ApiKeyRequest: object({
    ...{ name: text(), expiration: text('such as `90d`; never, if nothing is said') },
    ...{ role_descriptors: map(ref('RoleDescriptor')), metadata: open() },
  }),
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
  InvalidateApiKeysRequest: object({
    ...{ ids: list(text()), id: text(), name: text(), owner: bool(), username: text(), realm_name: text() },
  }),
  InvalidatedApiKeys: object(
    { invalidated_api_keys: list(text()), previously_invalidated_api_keys: list(text()), ...failures },
    ['invalidated_api_keys', 'previously_invalidated_api_keys', 'error_count'],
  ),
  BulkUpdatedApiKeys: object({
    updated: list(text()),
    noops: list(text()),
    errors: object({ count: int(), details: map(ref('Cause')) }),
  }),
  Repository: object(
    { type: text('`fs`, a folder'), uuid: text(), settings: open('`location`: where it lies, below `--repo-path`') },
    ['type', 'settings'],
  ),
  SnapshotRequest: object({
    ...{ indices: several(text()), ignore_unavailable: bool(), include_global_state: preset(bool(), true) },
    ...{
      partial: preset(bool(), false),
      metadata: open(),
      include_models: bool(),
      feature_states: list(text()),
      expand_wildcards: text(),
    },
  }),
  RestoreRequest: object({
    ...{ indices: several(text()), ignore_unavailable: bool(), include_global_state: preset(bool(), false) },
    ...{ include_aliases: preset(bool(), true), partial: bool(), include_models: bool(), feature_states: list(text()) },
    rename_pattern: text('regular expression over the names of the indices'),
    rename_replacement: text('what takes the place of what it matches'),
    ...{ index_settings: ref('Settings'), ignore_index_settings: several(text()) },
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
