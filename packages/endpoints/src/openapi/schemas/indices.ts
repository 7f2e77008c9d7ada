import {
  type Schema,
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

const flag = { type: ['boolean', 'string'] };
const setting = { type: ['string', 'number', 'boolean', 'null', 'array', 'object'] };

/** Parameters that fields of every type have. */
const COMMON: Schemas = {
  meta: map(text()),
  copy_to: several(text()),
  fields: { ...map(ref('Property')), description: 'the same value, indexed in other ways' },
};
const field = (types: readonly string[], properties: Schemas, description: string): Schema =>
  object({ type: { type: 'string', enum: types }, ...COMMON, ...properties }, ['type'], description);
const indexed = { index: preset(flag, true), doc_values: preset(flag, true), store: flag };
const tolerant = {
  ignore_malformed: preset(flag, false),
  null_value: any(),
  script: any(),
  time_series_dimension: flag,
};
const nothing: Schemas = { on_script_error: text(), eager_global_ordinals: flag };
const quantised = [
  'hnsw',
  'int8_hnsw',
  'int4_hnsw',
  'bbq_hnsw',
  'flat',
  'int8_flat',
  'int4_flat',
  'bbq_flat',
  'bbq_disk',
];
const dense = object({
  type: one(quantised),
  ...{ m: int(), ef_construction: int(), confidence_interval: num(), rescore_vector: open() },
  on_disk_rescore: bool(),
});
const sparse = object({ prune: bool(), pruning_config: open() });
const chunking = object({
  strategy: one(['sentence', 'word', 'recursive', 'none']),
  max_chunk_size: preset(int('words of a passage'), 250),
  sentence_overlap: preset(int(), 1),
  ...{ overlap: int(), separator_group: text(), separators: list(text()) },
});

const FIELDS = [
  field(
    ['text', 'match_only_text', 'search_as_you_type'],
    {
      max_shingle_size: preset(int(), 3),
      ...{ analyzer: text(), search_analyzer: text(), search_quote_analyzer: text() },
      ...{ index: preset(flag, true), store: flag, norms: preset(flag, true), similarity: text() },
      index_options: one(['positions', 'docs', 'freqs', 'offsets']),
      index_prefixes: { type: ['object', 'null'], properties: { min_chars: int(), max_chars: int() } },
      ...{ index_phrases: flag, position_increment_gap: int(), term_vector: text() },
      ...{ fielddata: flag, fielddata_frequency_filter: open(), eager_global_ordinals: flag },
    },
    'A text, searched by its words.',
  ),
  field(
    ['keyword', 'wildcard', 'constant_keyword'],
    {
      ...{ ...indexed, ...tolerant, ...nothing, ignore_above: int(), norms: flag, normalizer: text() },
      ...{ value: any(), similarity: text(), index_options: text(), split_queries_on_whitespace: flag },
    },
    'A value that is compared as a whole.',
  ),
  field(
    ['geo_point'],
    { ...indexed, ...tolerant, ...nothing, ignore_z_value: preset(flag, true) },
    'A point on the earth.',
  ),
  field(
    ['integer_range', 'long_range', 'float_range', 'double_range', 'date_range', 'ip_range'],
    { ...indexed, coerce: preset(flag, true), format: text(), locale: text() },
    'Ranges of values.',
  ),
  field(
    ['token_count'],
    { ...indexed, analyzer: text(), enable_position_increments: preset(flag, true) },
    'The number of words of a text.',
  ),
  field(
    ['flattened'],
    {
      ...{ ...indexed, null_value: any(), depth_limit: preset(int(), 20), ignore_above: int(), index_options: text() },
      ...{ eager_global_ordinals: flag, similarity: text(), split_queries_on_whitespace: flag },
    },
    'An object of any keys, each of whose values is compared as a whole.',
  ),
  field(
    ['completion'],
    {
      ...{ analyzer: preset(text(), 'simple'), search_analyzer: text() },
      ...{ preserve_separators: preset(flag, true), preserve_position_increments: preset(flag, true) },
      max_input_length: preset(int('characters of an input that are kept'), 50),
      contexts: either(list(open()), open()),
    },
    'Texts with weights that the suggester of this name completes.',
  ),
  field(
    ['alias'],
    { path: text('the field that requests find under this name as well') },
    'A second name of a field, for requests alone.',
  ),
  field(
    ['long', 'integer', 'short', 'byte', 'unsigned_long', 'double', 'float', 'half_float', 'scaled_float'],
    {
      ...indexed,
      ...tolerant,
      ...nothing,
      coerce: preset(flag, true),
      scaling_factor: num(),
      time_series_metric: text(),
    },
    'A number.',
  ),
  field(
    ['date', 'date_nanos'],
    {
      ...indexed,
      ...tolerant,
      ...nothing,
      format: preset(text(), 'strict_date_optional_time||epoch_millis'),
      locale: text(),
    },
    'A date.',
  ),
  field(['boolean', 'ip'], { ...indexed, ...tolerant, ...nothing }, 'True or false; an address of the Internet.'),
  field(['binary'], { doc_values: flag, store: flag }, 'Bytes in base64, which cannot be searched.'),
  field(
    ['sparse_vector', 'rank_features', 'rank_feature'],
    { store: flag, index_options: sparse, positive_score_impact: preset(flag, true) },
    'Tokens with weights, or features.',
  ),
  field(
    ['dense_vector'],
    {
      dims: int('length of the vectors; that of the first one if nothing is said'),
      element_type: preset(one(['float', 'byte', 'bit', 'bfloat16']), 'float'),
      similarity: one(['cosine', 'dot_product', 'l2_norm', 'max_inner_product']),
      index: preset(flag, true),
      index_options: dense,
    },
    'A vector, searched by its neighbours.',
  ),
  field(
    ['semantic_text'],
    {
      inference_id: preset(text('endpoint, deployment or model that encodes'), '.elser-2-elasticsearch'),
      search_inference_id: text('another one for queries'),
      chunking_settings: chunking,
      index_options: object({ dense_vector: dense, sparse_vector: sparse }),
      model_settings: { ...open(), description: 'what the model makes; filled in by the first document' },
    },
    'A text of any length, split into passages and searched by meaning.',
  ),
  object(
    {
      type: one(['object', 'nested']),
      properties: ref('Properties'),
      dynamic: ref('Dynamic'),
      enabled: preset(flag, true),
      ...{ subobjects: flag, include_in_parent: flag, include_in_root: flag },
    },
    [],
    'An object with fields of its own.',
  ),
];

const blocks = { type: ['object', 'string'] };
const alias = object({
  filter: ref('Query'),
  is_write_index: flag,
  is_hidden: flag,
  ...{ routing: text(), index_routing: text(), search_routing: text() },
});
const target = {
  index: text(),
  indices: several(text()),
  alias: text(),
  aliases: several(text()),
  must_exist: bool(),
};
const acknowledged = { acknowledged: bool() };
const template = object({
  settings: ref('Settings'),
  mappings: ref('Mapping'),
  aliases: map(ref('Alias')),
  lifecycle: open(),
});
const indexTemplate = object({
  ...{ index_patterns: several(text()), template, priority: int(), version: int(), _meta: open() },
  ...{ composed_of: list(text()), ignore_missing_component_templates: list(text()) },
  ...{ data_stream: open(), allow_auto_create: bool(), deprecated: bool() },
});
const oldTemplate = object({
  ...{ index_patterns: several(text()), settings: ref('Settings'), mappings: ref('Mapping') },
  ...{ aliases: map(ref('Alias')), order: preset(int(), 0), version: int() },
});
const copy = object({ settings: ref('Settings'), aliases: map(ref('Alias')), max_primary_shard_size: text() });
const conditions = object({
  ...{ max_docs: int(), max_age: text(), max_size: text(), max_primary_shard_size: text() },
  ...{ max_primary_shard_docs: int(), min_docs: int(), min_age: text(), min_size: text() },
  ...{ min_primary_shard_size: text(), min_primary_shard_docs: int() },
});
const token = object({
  ...{ token: text(), start_offset: int(), end_offset: int(), type: text(), position: int(), positionLength: int() },
});
const detail = { type: 'object', properties: { name: text(), tokens: list({ ...token, additionalProperties: true }) } };
const analysis = either(text(), open());

export const INDEX_SCHEMAS: Schemas = {
  Acknowledged: object({ ...acknowledged, errors: bool(), action_results: list(open()) }, ['acknowledged']),
  ShardsAcknowledged: object({ ...acknowledged, shards_acknowledged: bool(), index: text() }, ['acknowledged']),
  BroadcastAnswer: object({ _shards: ref('ShardStatistics') }, ['_shards']),
  Dynamic: {
    type: ['boolean', 'string'],
    description: '`true`, `false` or `strict`: what becomes of fields that nobody named',
  },
  Properties: map(ref('Property'), 'Fields by their names.'),
  Property: {
    anyOf: FIELDS,
    description: 'A field. Its type says which parameters it has.',
  },
  Mapping: object({
    properties: ref('Properties'),
    dynamic: ref('Dynamic'),
    dynamic_templates: list(map(open())),
    ...{ date_detection: flag, numeric_detection: flag, dynamic_date_formats: list(text()) },
    _source: object({ enabled: flag, includes: list(text()), excludes: list(text()), mode: text() }),
    _meta: open('what you like'),
    ...{ _routing: open(), _size: open(), _data_stream_timestamp: open(), runtime: open(), date_formats: list(text()) },
    ...{ _field_names: open(), subobjects: flag },
  }),
  Settings: {
    type: 'object',
    additionalProperties: setting,
    description: 'Settings of an index by their names, with or without `index.` in front, as they are or in objects.',
    properties: {
      number_of_shards: { ...scalar, description: 'always 1 on one server' },
      number_of_replicas: { ...scalar, default: 1 },
      refresh_interval: { ...scalar, default: '1s', description: 'time until a write is searchable; `-1` for never' },
      blocks,
      index: { type: 'object', additionalProperties: setting },
      analysis: open('analyzers, tokenizers and filters of your own'),
    },
  },
  Alias: alias,
  CreateIndexRequest: object({ settings: ref('Settings'), mappings: ref('Mapping'), aliases: map(ref('Alias')) }),
  IndexState: object({
    aliases: map(ref('Alias')),
    mappings: ref('Mapping'),
    settings: open(),
    defaults: open(),
    data_stream: text(),
  }),
  IndexMapping: object({ mappings: ref('Mapping') }, ['mappings']),
  IndexSettings: object({ settings: open(), defaults: open() }, ['settings']),
  IndexAliases: object({ aliases: map(ref('Alias')) }, ['aliases']),
  UpdateAliasesRequest: object(
    {
      actions: list({
        ...object({
          add: object({
            ...target,
            ...{ filter: ref('Query'), is_write_index: flag, is_hidden: flag },
            ...{ routing: text(), index_routing: text(), search_routing: text() },
          }),
          remove: object(target),
          remove_index: object(target),
        }),
        minProperties: 1,
        maxProperties: 1,
      }),
    },
    ['actions'],
  ),
  AnalyzeRequest: object({
    ...{ text: several(text()), analyzer: text(), field: text(), normalizer: text(), tokenizer: analysis },
    ...{ filter: several(analysis), char_filter: several(analysis), explain: bool(), attributes: list(text()) },
  }),
  AnalyzeAnswer: object({
    tokens: list(token),
    detail: object({
      custom_analyzer: bool(),
      analyzer: detail,
      tokenizer: detail,
      charfilters: list(open()),
      tokenfilters: list(detail),
    }),
  }),
  CopyIndexRequest: copy,
  RolloverRequest: object({
    conditions,
    settings: ref('Settings'),
    mappings: ref('Mapping'),
    aliases: map(ref('Alias')),
  }),
  RolloverAnswer: object(
    {
      ...{ ...acknowledged, shards_acknowledged: bool(), old_index: text(), new_index: text(), rolled_over: bool() },
      ...{ dry_run: bool(), lazy: bool(), conditions: map(bool()) },
    },
    ['acknowledged', 'old_index', 'new_index', 'rolled_over'],
  ),
  BlockAnswer: object({
    ...{ ...acknowledged, shards_acknowledged: bool() },
    indices: list(object({ name: text(), blocked: bool() })),
  }),
  UnblockAnswer: object({ ...acknowledged, indices: list(object({ name: text(), unblocked: bool() })) }),
  CloseAnswer: object({ ...acknowledged, shards_acknowledged: bool(), indices: map(object({ closed: bool() })) }),
  IndexTemplate: indexTemplate,
  IndexTemplates: object({ index_templates: list(object({ name: text(), index_template: ref('IndexTemplate') })) }, [
    'index_templates',
  ]),
  SimulatedTemplate: object({
    template: object({ settings: open(), mappings: ref('Mapping'), aliases: map(ref('Alias')) }),
    overlapping: list(object({ name: text(), index_patterns: list(text()) })),
  }),
  ComponentTemplate: object({ template, version: int(), _meta: open(), deprecated: bool(), allow_auto_create: bool() }),
  ComponentTemplates: object(
    { component_templates: list(object({ name: text(), component_template: ref('ComponentTemplate') })) },
    ['component_templates'],
  ),
  OldTemplate: oldTemplate,
  ResolvedNames: object({
    indices: list(
      object({ name: text(), attributes: list(text()), aliases: list(text()), data_stream: text(), mode: text() }),
    ),
    aliases: list(object({ name: text(), indices: list(text()) })),
    data_streams: list(open()),
  }),
  ClusterHealth: object(
    {
      cluster_name: text(),
      status: one(['green', 'yellow', 'red']),
      ...{ timed_out: bool(), number_of_nodes: int(), number_of_data_nodes: int(), active_primary_shards: int() },
      ...{ active_shards: int(), relocating_shards: int(), initializing_shards: int(), unassigned_shards: int() },
      ...{ unassigned_primary_shards: int(), delayed_unassigned_shards: int(), number_of_pending_tasks: int() },
      ...{ number_of_in_flight_fetch: int(), task_max_waiting_in_queue_millis: int() },
      active_shards_percent_as_number: num(),
      active_shards_percent: text(),
      task_max_waiting_in_queue: text(),
      indices: map(open()),
    },
    ['cluster_name', 'status', 'timed_out'],
  ),
  ClusterSettings: object({
    acknowledged: bool(),
    persistent: open(),
    transient: open(),
    defaults: open(),
  }),
};
