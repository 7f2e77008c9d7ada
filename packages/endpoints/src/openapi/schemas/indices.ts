import { type Schemas, bool, int, list, map, num, object, one, open, ref, text } from './schema.js';

const acknowledged = { acknowledged: bool() };
const token = object({
  ...{ token: text(), start_offset: int(), end_offset: int(), type: text(), position: int(), positionLength: int() },
});
const detail = { type: 'object', properties: { name: text(), tokens: list({ ...token, additionalProperties: true }) } };

export const INDEX_SCHEMAS: Schemas = {
  Acknowledged: object({ ...acknowledged, errors: bool(), action_results: list(open()) }, ['acknowledged']),
  ShardsAcknowledged: object({ ...acknowledged, shards_acknowledged: bool(), index: text() }, ['acknowledged']),
  BroadcastAnswer: object({ _shards: ref('ShardStatistics') }, ['_shards']),
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
  IndexTemplates: object({ index_templates: list(object({ name: text(), index_template: ref('IndexTemplate') })) }, [
    'index_templates',
  ]),
  SimulatedTemplate: object({
    template: object({ settings: open(), mappings: ref('Mapping'), aliases: map(ref('Alias')) }),
    overlapping: list(object({ name: text(), index_patterns: list(text()) })),
  }),
  ComponentTemplates: object(
    { component_templates: list(object({ name: text(), component_template: ref('ComponentTemplate') })) },
    ['component_templates'],
  ),
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
