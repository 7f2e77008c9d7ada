import {
  type Schemas,
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
  scalar,
  text,
} from './schema.js';

const flag = { type: ['boolean', 'string'] };
const setting = { type: ['string', 'number', 'boolean', 'null', 'array', 'object'] };

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
