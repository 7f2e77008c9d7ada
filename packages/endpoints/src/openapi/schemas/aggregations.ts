import { type Schemas, any, either, int, list, map, open, ref, text } from './schema.js';

export const AGGREGATION_SCHEMAS: Schemas = {
  AggregationResults: {
    ...map(ref('AggregationResult')),
    description: 'What each aggregation found, by its name; with `typed_keys` behind its type, as `terms#tags`.',
  },
  AggregationResult: {
    type: 'object',
    description:
      'Members depend on the aggregation; those below it stand beside them, or in each bucket, by their names.',
    additionalProperties: true,
    properties: {
      buckets: either(list(ref('Bucket')), map(ref('Bucket'))),
      doc_count: int(),
      doc_count_error_upper_bound: int(),
      sum_other_doc_count: int(),
      after_key: open(),
      value: { type: ['number', 'null', 'object', 'string', 'boolean', 'array'] },
      value_as_string: text(),
      values: any(),
      hits: ref('Hits'),
      meta: open(),
    },
  },
  Bucket: {
    type: 'object',
    required: ['doc_count'],
    additionalProperties: true,
    properties: { key: any(), key_as_string: text(), doc_count: int(), from: any(), to: any() },
  },
};
