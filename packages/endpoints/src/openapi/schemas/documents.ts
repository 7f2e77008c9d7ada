import {
  type Schemas,
  any,
  bool,
  either,
  int,
  list,
  map,
  num,
  nullable,
  object,
  one,
  open,
  ref,
  text,
} from './schema.js';

const WRITTEN: Schemas = {
  _index: text(),
  _id: text(),
  _version: int(),
  result: one(['created', 'updated', 'deleted', 'noop', 'not_found']),
  _shards: ref('ShardStatistics'),
  _seq_no: int(),
  _primary_term: int(),
  forced_refresh: bool('whether the write made itself searchable at once'),
  get: ref('InlineDocument'),
  truncated_texts: int('texts of which a model did not read the end'),
};
const item = ref('BulkItem');
const FOUND: Schemas = {
  ...{ _index: text(), _id: text(), _version: int(), _seq_no: int(), _primary_term: int(), _routing: text() },
  found: bool(),
  _source: open('the document'),
  fields: map(list(any())),
  _ignored: list(text()),
};
const COUNTS: Schemas = {
  ...{ total: int(), updated: int(), created: int(), deleted: int(), batches: int(), version_conflicts: int() },
  ...{ noops: int(), retries: object({ bulk: int(), search: int() }), throttled_millis: int() },
  ...{ requests_per_second: num(), throttled_until_millis: int() },
};
const slice = { slice_id: int() };

export const DOCUMENT_SCHEMAS: Schemas = {
  WriteAnswer: object(WRITTEN, ['_index', '_id', 'result']),
  InlineDocument: object({
    ...{ _seq_no: int(), _primary_term: int(), found: bool(), _source: open(), _routing: text() },
    fields: map(list(any())),
  }),
  BulkAnswer: object(
    {
      errors: bool('whether any action was refused: the answer is a 200 all the same'),
      took: int('milliseconds'),
      ingest_took: int(),
      items: list(
        { ...object({ index: item, create: item, update: item, delete: item }), minProperties: 1, maxProperties: 1 },
        'What became of each action, in their order.',
      ),
      truncated_texts: int('texts of which a model did not read the end'),
    },
    ['errors', 'took', 'items'],
  ),
  BulkItem: object(
    {
      ...WRITTEN,
      _id: nullable(text()),
      status: int(),
      error: ref('Cause'),
      executed_pipelines: list(text()),
    },
    ['_index', 'status'],
  ),
  GetAnswer: object(FOUND, ['_index', '_id', 'found']),
  MultiGetAnswer: object(
    { docs: list(either(ref('GetAnswer'), object({ _index: text(), _id: text(), error: ref('Cause') }))) },
    ['docs'],
  ),
  TermVectorsAnswer: object({
    ...{ _index: text(), _id: text(), _version: int(), found: bool(), took: int() },
    term_vectors: map(
      object({
        field_statistics: object({ sum_doc_freq: int(), doc_count: int(), sum_ttf: int() }),
        terms: map(
          object({
            ...{ term_freq: int(), doc_freq: int(), ttf: int(), score: num() },
            tokens: list(object({ position: int(), start_offset: int(), end_offset: int(), payload: text() })),
          }),
        ),
      }),
    ),
    error: ref('Cause'),
  }),
  ByQueryAnswer: object({
    took: int('milliseconds'),
    timed_out: bool(),
    ...COUNTS,
    ...{ throttled: text(), throttled_until: text() },
    failures: list(open()),
    canceled: text('why it was asked to stop'),
    task: text('id of the task, where nobody waits'),
    slices: list(any()),
    truncated_texts: int(),
  }),
  DryRunAnswer: {
    ...object(
      { took: int(), dry_run: bool(), documents: open(), texts: open(), tokens: open(), time: open(), disk: open() },
      ['dry_run', 'documents'],
      'What a job would do, with `dry_run=true`.',
    ),
    additionalProperties: true,
  },
  TaskStatus: {
    ...object({ ...COUNTS, ...slice, ...{ canceled: text(), slices: list(any()), truncated_texts: int() } }),
    additionalProperties: true,
    description: 'How far it is; members depend on the task.',
  },
  Task: object(
    {
      ...{ node: text(), id: int(), type: text(), action: text(), status: ref('TaskStatus'), description: text() },
      ...{ start_time_in_millis: int(), start_time: text(), running_time_in_nanos: int(), running_time: text() },
      ...{ cancellable: bool(), cancelled: bool(), parent_task_id: text(), headers: map(text()) },
    },
    ['node', 'id', 'action'],
  ),
  TaskAnswer: object(
    {
      completed: bool(),
      task: ref('Task'),
      response: { ...open(), description: 'The answer of the request, once it is done.' },
      error: ref('Cause'),
    },
    ['completed', 'task'],
  ),
  ReindexTask: object({
    ...{ completed: bool(), id: text(), description: text(), cancelled: bool(), status: ref('TaskStatus') },
    ...{ start_time_in_millis: int(), start_time: text(), running_time_in_nanos: int(), running_time: text() },
    ...{ response: { ...open(), description: 'The answer of the request, once it is done.' }, error: ref('Cause') },
    acknowledged: bool(),
  }),
  TaskList: object({
    nodes: map(
      object({
        ...{ name: text(), transport_address: text(), host: text(), ip: text(), roles: list(text()) },
        attributes: map(text()),
        tasks: map(ref('Task')),
      }),
    ),
    tasks: any(),
    node_failures: list(ref('Cause')),
    task_failures: list(open()),
  }),
  CountAnswer: object({ count: int(), terminated_early: bool(), _shards: ref('ShardStatistics') }, [
    'count',
    '_shards',
  ]),
  ExplainAnswer: object(
    { _index: text(), _id: text(), matched: bool(), explanation: ref('Explanation'), get: ref('InlineDocument') },
    ['_index', '_id', 'matched'],
  ),
  PointInTime: object({ id: text(), _shards: ref('ShardStatistics') }, ['id']),
  Freed: object({ succeeded: bool(), num_freed: int() }, ['succeeded', 'num_freed']),
  ValidateAnswer: object(
    {
      valid: bool(),
      _shards: ref('ShardStatistics'),
      error: text(),
      explanations: list(object({ index: text(), shard: int(), valid: bool(), explanation: text(), error: text() })),
    },
    ['valid'],
  ),
};
