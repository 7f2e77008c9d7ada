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
  preset,
  ref,
  several,
  text,
  time,
  scalar,
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
const action = {
  ...{ _index: text(), _id: text(), routing: text(), version: int(), version_type: text() },
  ...{ if_seq_no: int(), if_primary_term: int(), require_alias: bool(), dynamic_templates: map(text()) },
};
const FOUND: Schemas = {
  ...{ _index: text(), _id: text(), _version: int(), _seq_no: int(), _primary_term: int(), _routing: text() },
  found: bool(),
  _source: open('the document'),
  fields: map(list(any())),
  _ignored: list(text()),
};
const statistics = {
  field_statistics: bool(),
  term_statistics: bool(),
  offsets: bool(),
  positions: bool(),
  payloads: bool(),
};
const vectorsOf = {
  ...{ _index: text(), _id: text(), doc: open(), fields: list(text()), per_field_analyzer: map(text()) },
  ...{ routing: text(), version: int(), version_type: text(), ...statistics },
  filter: object({
    ...{ max_num_terms: int(), min_term_freq: int(), max_term_freq: int(), min_doc_freq: int(), max_doc_freq: int() },
    ...{ min_word_length: int(), max_word_length: int() },
  }),
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
  BulkAction: {
    ...object({
      index: object({ ...action, pipeline: text() }),
      create: object({ ...action, pipeline: text() }),
      update: object({ ...action, retry_on_conflict: int(), _source: ref('SourceSelection') }),
      delete: object(action),
    }),
    description: 'First line of an action; its document, or for `update` a body of that kind, is the next.',
    minProperties: 1,
    maxProperties: 1,
  },
  UpdateRequest: object({
    doc: open('members that are put over those of the document'),
    doc_as_upsert: preset(bool(), false),
    upsert: open('the document, if there is none'),
    detect_noop: preset(bool(), true),
    _source: ref('SourceSelection'),
    ...{ script: ref('Script'), scripted_upsert: bool() },
  }),
  GetAnswer: object(FOUND, ['_index', '_id', 'found']),
  MultiGetRequest: object({
    docs: list(
      object(
        {
          ...{ _index: text(), _id: scalar, _source: ref('SourceSelection'), routing: text() },
          ...{ stored_fields: several(text()), version: int(), version_type: text() },
        },
        ['_id'],
      ),
    ),
    ids: list(scalar),
  }),
  MultiGetAnswer: object(
    { docs: list(either(ref('GetAnswer'), object({ _index: text(), _id: text(), error: ref('Cause') }))) },
    ['docs'],
  ),
  TermVectorsRequest: object(vectorsOf),
  MultiTermVectorsRequest: object({ docs: list(ref('TermVectorsRequest')), ids: list(text()), parameters: open() }),
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
  ScrollRequest: object({ scroll_id: text(), scroll: time('how long it is kept') }, ['scroll_id']),
};
