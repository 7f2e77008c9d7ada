import { SparrowError } from '@sparrow-search/engine';
import { z } from 'zod';

import { type Field, Fields } from './fields.js';
import { MOST_INDICES, listIndices } from './indices.js';
import { type RestInterface, pathOf } from './rest-interface.js';
import { INDEX, tool } from './tool.js';
import { slice } from './values.js';

/** Fields that are shown, those whose values are, and values of each. */
const MOST_FIELDS = 100;
const MOST_WITH_VALUES = 25;
const MOST_VALUES = 12;
const LONGEST_VALUE = 100;

/** Types of which every value may be counted. */
const COUNTED: ReadonlySet<string> = new Set(['keyword', 'constant_keyword', 'boolean', 'ip', 'version']);

/** Types of which the least and the greatest value are shown. */
const RANGES: ReadonlySet<string> = new Set([
  ...['long', 'integer', 'short', 'byte', 'unsigned_long'],
  ...['double', 'float', 'half_float', 'scaled_float', 'date'],
]);

export const LIST_INDICES = tool({
  name: 'list_indices',
  title: 'List the indices',
  description:
    'Shows the indices that can be searched, and how many documents each has. Begin here if you do not know the name of an index.',
  effect: 'read',
  input: z.strictObject({}),
  output: z.object({
    indices: z.array(z.object({ name: z.string(), documents: z.number().optional(), aliases: z.array(z.string()) })),
    left_out: z.number().optional().describe('Indices that are not shown, because there are too many'),
  }),
  run: async (_args, { rest, signal }) => {
    const all = await listIndices(rest, { signal });
    const indices = all.slice(0, MOST_INDICES).map((one) => ({ ...one, aliases: [...one.aliases] }));
    return { indices, ...(all.length > indices.length ? { left_out: all.length - indices.length } : {}) };
  },
});

const FIELD = z.object({
  name: z.string(),
  type: z.string(),
  searched_by: z
    .enum(['words', 'meaning'])
    .optional()
    .describe('How search looks into it: by its words, or by what it means; absent for fields that are for filters'),
  filter: z.boolean().describe('Whether filters may name it'),
  note: z.string().optional().describe('How filters name it, where that is not its name alone'),
  values: z
    .array(z.object({ value: z.union([z.string(), z.number(), z.boolean()]), documents: z.number() }))
    .optional()
    .describe('Its most frequent values'),
  has_more_values: z.boolean().optional(),
  from: z.union([z.string(), z.number()]).optional().describe('Its least value'),
  to: z.union([z.string(), z.number()]).optional().describe('Its greatest value'),
});

export const DESCRIBE_INDEX = tool({
  name: 'describe_index',
  title: 'Describe an index',
  description:
    'Shows the fields of an index: which are searched by words or by meaning, which can be filtered by, and what values they have. Use it before you search with filters.',
  effect: 'read',
  input: z.strictObject({ index: INDEX }),
  output: z.object({
    index: z.string(),
    documents: z.number(),
    fields: z.array(FIELD),
    left_out: z.number().optional().describe('Fields that are not shown, because there are too many'),
    note: z.string().optional(),
  }),
  run: async ({ index }, { rest, signal }) => {
    const fields = await Fields.of(rest, index, signal);
    const shown = fields.all.slice(0, MOST_FIELDS);
    const { documents, found } = await valuesOf(rest, index, shown, signal);
    return {
      index,
      documents,
      fields: shown.map((field) => described(field, fields, found)),
      ...(fields.all.length > shown.length ? { left_out: fields.all.length - shown.length } : {}),
      ...(fields.isMapping
        ? {}
        : {
            note: 'The key may not see the mapping (view_index_metadata), so fields that are searched by meaning look like texts.',
          }),
    };
  },
});

/** What the server answers about the values of one field. */
interface Values {
  readonly buckets?: readonly { readonly key: string | number; readonly key_as_string?: string; doc_count: number }[];
  readonly sum_other_doc_count?: number;
  readonly value?: number | null;
  readonly value_as_string?: string;
}

type Found = Readonly<Record<string, Values | undefined>>;

async function valuesOf(
  rest: RestInterface,
  index: string,
  fields: readonly Field[],
  signal: AbortSignal,
): Promise<{ readonly documents: number; readonly found: Found }> {
  const counted = fields.filter(({ type }) => COUNTED.has(type)).slice(0, MOST_WITH_VALUES);
  const ranges = fields.filter(({ type }) => RANGES.has(type)).slice(0, MOST_WITH_VALUES);
  const aggs: Record<string, object> = {};
  for (const { name } of counted) aggs[`values ${name}`] = { terms: { field: name, size: MOST_VALUES } };
  for (const { name } of ranges) {
    aggs[`from ${name}`] = { min: { field: name } };
    aggs[`to ${name}`] = { max: { field: name } };
  }
  const ask = async (body: object): Promise<{ documents: number; found: Found }> => {
    const answer = await rest.request<{ hits: { total: { value: number } }; aggregations?: Found }>(
      'POST',
      pathOf(index, '_search'),
      { body: { size: 0, track_total_hits: true, ...body }, signal },
    );
    return { documents: answer.hits.total.value, found: answer.aggregations ?? {} };
  };
  try {
    return await ask(Object.keys(aggs).length === 0 ? {} : { aggs });
  } catch (error) {
    // Fields without columns, or of different types in several indices, cannot be counted: the rest is still worth telling.
    if (!(error instanceof SparrowError) || error.status !== 400) throw error;
    return ask({});
  }
}

function described(field: Field, fields: Fields, found: Found): z.input<typeof FIELD> {
  const { name, type } = field;
  const values = found[`values ${name}`];
  const from = endOf(found[`from ${name}`]);
  const to = endOf(found[`to ${name}`]);
  return {
    name,
    type,
    ...(type === 'semantic_text'
      ? { searched_by: 'meaning' as const }
      : fields.filterable(field) === 'words'
        ? { searched_by: 'words' as const }
        : {}),
    filter: fields.filterable(field) !== undefined,
    ...(type === 'flattened' ? { note: `Filters name its keys with a dot: ${name}.KEY` } : {}),
    ...(values?.buckets === undefined
      ? {}
      : { values: values.buckets.map((bucket) => ({ value: valueOf(bucket, type), documents: bucket.doc_count })) }),
    ...((values?.sum_other_doc_count ?? 0) > 0 ? { has_more_values: true } : {}),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  };
}

function valueOf(
  { key, key_as_string: text }: { key: string | number; key_as_string?: string },
  type: string,
): string | number | boolean {
  if (type === 'boolean') return text === 'true';
  return typeof key === 'string' ? slice(key, 0, LONGEST_VALUE) : key;
}

function endOf(end: Values | undefined): string | number | undefined {
  return end?.value_as_string ?? end?.value ?? undefined;
}
