import { SparrowError } from '@sparrow-search/engine';
import { z } from 'zod';

import { shortly } from './indices.js';
import { type RestInterface, ToolError, pathOf } from './rest-interface.js';
import { sourceOf } from './search.js';
import { ID, INDEX, OBJECT, tool } from './tool.js';
import { type JsonObject, slice } from './values.js';

/** Characters of each text of a document that are shown at once, and of all of them. */
const LONGEST_TEXT = 8000;
const LONGEST_DOCUMENT = 40_000;
const MOST_FIELDS = 50;
/** Documents that are written or deleted at once. */
const MOST_DOCUMENTS = 100;
/** Failures that are told: further ones are mostly the same. */
const MOST_FAILURES = 10;
const DEEPEST = 20;

export const GET_DOCUMENT = tool({
  name: 'get_document',
  title: 'Read a document',
  description:
    'Shows a whole document by its id, such as that of a hit. Long texts are shown in parts: ask again with the offset that the answer names.',
  effect: 'read',
  input: z.strictObject({
    index: INDEX,
    id: ID,
    fields: z.array(z.string().min(1).max(500)).max(MOST_FIELDS).optional().describe('Only these fields'),
    offset: z.int().min(0).default(0).describe('The character of each text to begin with'),
  }),
  output: z.object({
    index: z.string(),
    id: z.string(),
    fields: OBJECT,
    next_offset: z.number().optional().describe('The offset to go on with; absent if the texts end here'),
    left_out: z.array(z.string()).optional().describe('Fields that did not fit: ask for them by name'),
  }),
  run: async ({ index, id, fields = [], offset }, { rest, signal }) => {
    const source = await sourceOf(rest, index, id, fields, signal);
    if (Object.keys(source).length === 0 && fields.length > 0) {
      const all = Object.keys(await sourceOf(rest, index, id, [], signal)).slice(0, MOST_FIELDS);
      throw new ToolError(
        `The document [${id}] has none of the fields ${fields.join(', ')}. It has ${all.join(', ')}.`,
      );
    }
    return { index, id, ...part(source, offset) };
  },
});

/** The part of a document's texts that begins with an offset; other values are shown with the first one. */
function part(source: JsonObject, offset: number): { fields: JsonObject; next_offset?: number; left_out?: string[] } {
  // Whether a text goes on behind what is shown.
  const seen = { isLonger: false };
  // Each value takes a character of what is shown at least.
  let values = LONGEST_DOCUMENT;
  const shown = (value: unknown, depth: number): unknown => {
    values -= 1;
    if (typeof value === 'string') {
      seen.isLonger ||= value.length > offset + LONGEST_TEXT;
      return slice(value, offset, LONGEST_TEXT);
    }
    if (typeof value !== 'object' || value === null) return value;
    if (depth > DEEPEST || values < 0) return '…';
    if (Array.isArray(value)) return value.map((one) => shown(one, depth + 1));
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shown(one, depth + 1)]));
  };
  const fields: Record<string, unknown> = {};
  const leftOut: string[] = [];
  let left = LONGEST_DOCUMENT;
  for (const [name, value] of Object.entries(source)) {
    // A text that ended before has been read.
    if (typeof value === 'string' && offset > 0 && value.length <= offset) continue;
    const { isLonger } = seen;
    values = LONGEST_DOCUMENT;
    const one = shown(value, 1);
    const { length } = JSON.stringify(one);
    if (length > left && Object.keys(fields).length + leftOut.length > 0) {
      // Only texts that are shown can be read on from an offset, so one that is left out does not count as cut.
      seen.isLonger = isLonger;
      leftOut.push(name);
      continue;
    }
    left -= length;
    // One value alone that is longer than everything may be is a list or an object, of which the beginning is shown as a text.
    fields[name] = length > LONGEST_DOCUMENT ? `${slice(JSON.stringify(one), 0, LONGEST_DOCUMENT)}…` : one;
  }
  return {
    fields,
    ...(seen.isLonger ? { next_offset: offset + LONGEST_TEXT } : {}),
    ...(leftOut.length === 0 ? {} : { left_out: leftOut.slice(0, MOST_FIELDS) }),
  };
}

const KINDS = ['semantic', 'text', 'keyword', 'integer', 'number', 'boolean', 'date'] as const;

/** The mapping of each kind of field that an index can be made with. */
const MAPPINGS: Readonly<Record<(typeof KINDS)[number], object>> = {
  semantic: { type: 'text', fields: { semantic: { type: 'semantic_text', inference_id: '.hybrid' } } },
  text: { type: 'text' },
  keyword: { type: 'keyword' },
  integer: { type: 'long' },
  number: { type: 'double' },
  boolean: { type: 'boolean' },
  date: { type: 'date' },
};

export const CREATE_INDEX = tool({
  name: 'create_index',
  title: 'Create an index',
  description:
    'Makes an empty index with the fields that its documents will have. Choose semantic for texts that are to be found by meaning, keyword for names and categories to filter by.',
  effect: 'add',
  input: z.strictObject({
    index: INDEX.describe('Its name, in lower case'),
    fields: z
      .record(z.string().min(1).max(500), z.enum(KINDS))
      .describe(
        'The kind of each field: {"title": "text", "body": "semantic", "author": "keyword", "year": "integer"}',
      ),
  }),
  output: z.object({ index: z.string(), fields: z.record(z.string(), z.enum(KINDS)) }),
  run: async ({ index, fields }, { rest, signal }) => {
    const properties = Object.fromEntries(Object.entries(fields).map(([name, kind]) => [name, MAPPINGS[kind]]));
    try {
      await rest.request('PUT', pathOf(index), { body: { mappings: { properties } }, signal });
    } catch (error) {
      if (!(error instanceof SparrowError) || error.type !== 'resource_already_exists_exception') throw error;
      throw new ToolError(
        `There is an index [${index}] already. Look at it with describe_index, and write to it with add_documents, or choose another name.`,
      );
    }
    return { index, fields };
  },
});

/** What the REST interface says of one action of a bulk. */
interface Written {
  readonly _id: string;
  readonly status: number;
  readonly result?: string;
  readonly error?: { readonly reason?: string };
}

const FAILURES = z.array(z.object({ position: z.number(), id: z.string(), reason: z.string() }));

export const ADD_DOCUMENTS = tool({
  name: 'add_documents',
  title: 'Add documents',
  description:
    'Writes documents to an index. A document with the id of one that is there replaces it. They can be found when the answer comes.',
  effect: 'change',
  input: z.strictObject({
    index: INDEX,
    documents: z
      .array(z.strictObject({ id: ID.optional().describe('Made by the server if left out'), fields: OBJECT }))
      .min(1)
      .max(MOST_DOCUMENTS),
  }),
  output: z.object({
    created: z.number(),
    replaced: z.number(),
    ids: z.array(z.string()).describe('The ids of the documents that were written, in their order'),
    failures: FAILURES.describe('Documents that were refused, with their position in the list, from 0'),
  }),
  run: async ({ index, documents }, { rest, signal }) => {
    await mustBeThere(rest, index, signal);
    const lines = documents.flatMap(({ id, fields }) => [{ index: id === undefined ? {} : { _id: id } }, fields]);
    const items = await bulk(rest, index, lines, signal);
    return {
      created: items.filter(({ result }) => result === 'created').length,
      replaced: items.filter(({ result }) => result === 'updated').length,
      ids: items.filter(({ error }) => error === undefined).map(({ _id: id }) => id),
      failures: failuresOf(items),
    };
  },
});

export const DELETE_DOCUMENTS = tool({
  name: 'delete_documents',
  title: 'Delete documents',
  description: 'Deletes documents of an index by their ids, for good.',
  effect: 'change',
  input: z.strictObject({ index: INDEX, ids: z.array(ID).min(1).max(MOST_DOCUMENTS) }),
  output: z.object({ deleted: z.number(), not_found: z.array(z.string()), failures: FAILURES }),
  run: async ({ index, ids }, { rest, signal }) => {
    await mustBeThere(rest, index, signal);
    const items = await bulk(
      rest,
      index,
      ids.map((id) => ({ delete: { _id: id } })),
      signal,
    );
    return {
      deleted: items.filter(({ result }) => result === 'deleted').length,
      not_found: items.filter(({ result }) => result === 'not_found').map(({ _id: id }) => id),
      failures: failuresOf(items),
    };
  },
});

/** A mistyped name would make an index of that name. */
async function mustBeThere(rest: RestInterface, index: string, signal: AbortSignal): Promise<void> {
  try {
    await rest.request('GET', pathOf(index, '_mapping'), { signal });
  } catch (error) {
    // A key may write where it may not see what there is.
    if (!(error instanceof SparrowError) || error.status !== 403) throw error;
  }
}

async function bulk(
  rest: RestInterface,
  index: string,
  lines: readonly object[],
  signal: AbortSignal,
): Promise<readonly Written[]> {
  const { items } = await rest.request<{ items: readonly Readonly<Record<string, Written>>[] }>(
    'POST',
    pathOf(index, '_bulk'),
    // An agent that writes a document usually searches for it next.
    { query: { refresh: 'wait_for' }, body: lines, signal },
  );
  return items.flatMap((item) => Object.values(item));
}

function failuresOf(items: readonly Written[]): z.output<typeof FAILURES> {
  const failed = items.flatMap(({ _id: id, error }, position) =>
    error === undefined ? [] : [{ position, id, reason: shortly(error.reason ?? 'unknown') }],
  );
  return failed.slice(0, MOST_FAILURES);
}
