import { exactValue, mayHoldLong, parseJson, writeJson } from '@sparrow-search/endpoints';

import { type Column, typedDocument } from './documents/file-mapping.js';
import type { Record_ } from './records.js';
import { number } from './terminal.js';

/** A document on its way. */
export interface Item {
  readonly id: string | undefined;
  readonly json: string;
  readonly record: Record_;
}

/** What documents of a file are made with. */
export interface ItemOptions {
  /** The field that holds their ids. */
  readonly idField: string | undefined;
  /** What the file is called in ids; empty for standard input, which has no place. */
  readonly key: string;
  /** The columns, of a file of columns. */
  readonly columns: readonly Column[];
}

/** Longest `_id`, as in Elasticsearch. */
const MOST_ID_BYTES = 512;

/** A document as it is sent, or why it cannot be. */
export function itemOf(record: Record_, options: ItemOptions): Item | string {
  const item = unbounded(record, options);
  if (typeof item === 'string' || item.id === undefined) return item;
  // The server refuses a whole bulk request for one id that is too long.
  const bytes = Buffer.byteLength(item.id);
  return bytes <= MOST_ID_BYTES ? item : `its id takes ${number(bytes)} bytes, more than ${number(MOST_ID_BYTES)}`;
}

function unbounded(record: Record_, { idField, key, columns }: ItemOptions): Item | string {
  const { document, text, problem, n } = record;
  if (document === undefined) return problem ?? 'it cannot be read';
  const { _id: own, ...rest } = document;
  // Only documents of CSV and TSV come without their JSON.
  const json = text === undefined ? JSON.stringify(typedDocument(rest, columns)) : withoutId(text, own, rest);
  if (idField !== undefined) {
    const value = exact(document, idField, text);
    if (typeof value !== 'string' && typeof value !== 'number') return `it has no id in [${idField}]`;
    if (value === '') return `its id in [${idField}] is empty`;
    return { record, id: String(value), json };
  }
  if (own === undefined) return { record, id: key === '' ? undefined : `${key}-${String(n)}`, json };
  if (own === '') return 'its [_id] is empty';
  if (typeof own !== 'string' && typeof own !== 'number') return 'its [_id] is neither a text nor a number';
  return { record, id: String(exact(document, '_id', text)), json };
}

/** A member of a document; a number that JavaScript rounds is the text of its digits. */
function exact(document: Readonly<Record<string, unknown>>, name: string, text: string | undefined): unknown {
  const value = document[name];
  if (typeof value !== 'number' || Number.isSafeInteger(value) || text === undefined) return value;
  return (exactValue(parseJson(text)) as Readonly<Record<string, unknown>>)[name];
}

/** A document without its `_id`, which is no field of it, as JSON; its numbers keep all their digits. */
function withoutId(text: string, id: unknown, rest: object): string {
  if (id === undefined) return text;
  if (!mayHoldLong(text)) return JSON.stringify(rest);
  const read = parseJson(text);
  if (read.kind !== 'object') return text;
  return writeJson({ ...read, entries: read.entries.filter(([key]) => (JSON.parse(key) as string) !== '_id') });
}
