// Reads files into documents: JSON, JSON lines, CSV, and plain text.
import { CsvProblem, CsvReader } from '../../../cli/src/documents/csv-rows';
import {
  type Column,
  type ColumnNote,
  Sample,
  textColumns,
  typedDocument,
} from '../../../cli/src/documents/file-mapping';
import { asIndexName } from '../../../cli/src/documents/index-name';
import { exactValue, mayHoldLong, parseJson } from '../../../endpoints/src/json-text';
import { isBulkAction, listInside } from '../../../cli/src/documents/json-documents';
import { NO_TEXT_NAME, SPREADSHEET } from '../../../cli/src/documents/no-text';
import { MEANING_OF_PART, TextParts } from '../../../cli/src/documents/text-parts';
import { plural } from '../lib/format';
import type { Document } from './bulk';

export type Format = 'JSON' | 'JSON lines' | 'CSV' | 'text';

export interface Table {
  readonly format: Format;
  readonly documents: readonly Document[];
  readonly columns: readonly Column[];
  /** The columns that are searched by meaning unless somebody says which. */
  readonly meaning: readonly string[];
  /** What was left out, in words. */
  readonly left: readonly string[];
  /** What else is to be known about the file, as a sentence without its full stop. */
  readonly note: string | undefined;
  /** What is to be known about columns, where the index does not have them yet. */
  readonly columnNotes: readonly ColumnNote[];
}

/** The name of a text that is from no file. */
export const PASTED = 'pasted';
const ID_COLUMNS = ['_id', 'id'];
/** Bytes of an id, as in Elasticsearch. */
const LONGEST_ID = 512;
/** Characters by which a file is judged to be a text. */
const LOOKED_AT = 100_000;
/** Largest share of characters that no text in UTF-8 has. */
const MOST_FOREIGN = 0.02;
/** Levels of lists and objects that are written without running out of stack; the server takes fewer. */
const DEEPEST = 1000;
const TOO_DEEP = `This file is nested too deeply: there are more than ${DEEPEST} lists and objects inside each other.`;
const NO_TEXT =
  'This is not a text in UTF-8. Save a spreadsheet as CSV in UTF-8, or a PDF or other document as plain text, and drop that.';

/** A file and what it says. */
export interface FileText {
  readonly name: string;
  readonly text: string;
}

/** @throws Error, in words for people, if there is nothing in the file that could be a document */
export function readFile(name: string, text: string): Table {
  return readFiles([{ name, text }]);
}

/**
 * The documents of files of one format, such as the notes of a folder, one file after another.
 *
 * @throws Error, in words for people, if one of the files holds no document, or is of another format than the first
 */
export function readFiles(files: readonly FileText[]): Table {
  const read = files.map(({ name, text }) => {
    try {
      return sourcesOf(name, text);
    } catch (error) {
      if (files.length === 1) throw error;
      throw new Error(`${name}: ${(error as Error).message}`, { cause: error });
    }
  });
  const format = read[0]?.format ?? 'text';
  const other = read.findIndex((one) => one.format !== format);
  if (other >= 0)
    throw new Error(
      `${files[0]?.name ?? ''} is ${format}, and ${files[other]?.name ?? ''} is ${read[other]?.format ?? ''}: add these one after the other.`,
    );
  const sources = read.flatMap((one) => one.sources);
  const sample = sampleOf(sources, format === 'CSV');
  const columns = sample.columns();
  const typed = format === 'CSV' ? sources.map((source) => typedDocument(source, columns)) : sources;
  const meaning = format === 'text' ? [MEANING_OF_PART] : textColumns(columns);
  const [note, columnNotes] = [sample.decimalCommas(), sample.notes()];
  const left = read.flatMap((one) => one.left);
  return { format, documents: withIds(typed), columns, meaning, left, note, columnNotes };
}

/** What one file holds. */
interface Sources {
  readonly format: Format;
  readonly sources: readonly Source[];
  readonly left: readonly string[];
}

function sourcesOf(name: string, text: string): Sources {
  const plain = text.replace(/^\uFEFF/, '');
  if (SPREADSHEET.test(name) || NO_TEXT_NAME.test(name) || plain.startsWith('%PDF-')) throw new Error(NO_TEXT);
  if (plain.trim() === '') throw new Error('The file is empty.');
  const foreign = countForeign(plain);
  const format = formatOf(name, plain);
  const left: string[] =
    foreign > 0 ? [`${plural(foreign, 'letter')} not in UTF-8: save the file as UTF-8 to keep them`] : [];
  const sources = { JSON: fromJson, 'JSON lines': fromLines, CSV: fromCsv, text: fromText }[format](plain, left, name);
  if (sources.length === 0) throw new Error(`There is no document in this ${format} file.`);
  if (sources.some((source) => isDeeper(source, DEEPEST))) throw new Error(TOO_DEEP);
  return { format, sources, left };
}

type Source = Record<string, unknown>;

/**
 * How many characters stand for bytes of something else than a text in UTF-8.
 *
 * @throws Error if there are too many of them, at the beginning or in all, or a NUL, which is enough to be sure
 */
function countForeign(text: string): number {
  const begin = text.slice(0, LOOKED_AT);
  let count = 0;
  let early = 0;
  for (let at = text.indexOf('\uFFFD'); at !== -1; at = text.indexOf('\uFFFD', at + 1)) {
    count += 1;
    if (at < LOOKED_AT) early += 1;
  }
  if (begin.includes('\0') || Math.max(early / begin.length, count / text.length) > MOST_FOREIGN) {
    throw new Error(NO_TEXT);
  }
  return count;
}

/** Whether lists and objects are nested in more than so many levels. */
function isDeeper(value: unknown, levels: number): boolean {
  if (value === null || typeof value !== 'object') return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

function formatOf(name: string, text: string): Format {
  const ending = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? '';
  if (['jsonl', 'ndjson'].includes(ending)) return 'JSON lines';
  if (['csv', 'tsv', 'tab'].includes(ending)) return 'CSV';
  if (ending === 'json' || /^\s*[[{]/.test(text)) return isLines(text) ? 'JSON lines' : 'JSON';
  return 'text';
}

/** Whether the first line is a whole JSON object, and another one follows. */
function isLines(text: string): boolean {
  const lines = text.split('\n', 3).filter((line) => line.trim() !== '');
  return lines.length > 1 && lines.slice(0, 2).every((line) => isObject(json(line)));
}

function json(text: string): unknown {
  try {
    const value = JSON.parse(text) as unknown;
    // The page writes what it has read, and must not round the ids of others.
    return mayHoldLong(text) ? exactValue(parseJson(text)) : value;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Source {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

function fromJson(text: string): Source[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // Some browsers run out of stack here.
    if (!(error instanceof SyntaxError)) throw new Error(TOO_DEEP, { cause: error });
    throw new Error(`This is not valid JSON: ${error.message}`, { cause: error });
  }
  const list = Array.isArray(value) ? value : isObject(value) ? (listInside(value)?.list ?? [value]) : [];
  return list.map((one) => (isObject(one) ? one : { text: one }));
}

function fromLines(text: string, left: string[]): Source[] {
  const sources: Source[] = [];
  let actions = 0;
  for (const [at, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const value = json(line);
    if (!isObject(value)) left.push(`line ${at + 1} is not a JSON object`);
    else if (isBulkAction(value)) actions += 1;
    else sources.push(value);
  }
  if (actions > 0) left.push(`${actions} lines that say how to write the next one (it looks like a body of _bulk)`);
  return sources;
}

function fromCsv(text: string, left: string[], name: string): Source[] {
  const reader = new CsvReader(/\.(?:tsv|tab)$/i.test(name) ? 'tsv' : 'csv');
  try {
    return [...reader.add(text), ...reader.end()].flatMap(({ line, values, problem }) => {
      if (problem !== undefined) left.push(`line ${line}: ${problem}`);
      return values === undefined ? [] : [values];
    });
  } catch (error) {
    if (!(error instanceof CsvProblem)) throw error;
    throw new Error(`This file cannot be read: ${error.message}.`, { cause: error });
  }
}

/** Paragraphs of a text, small ones together, with the last heading as their title. */
function fromText(text: string, _left: string[], name: string): Source[] {
  const parts = new TextParts(name === PASTED ? undefined : name);
  const all = [...text.split('\n').flatMap((line) => parts.add(line)), ...parts.end()];
  return all.map(({ document }) => ({ ...document }));
}

/** The columns by which the documents can be told apart: each has another value in each document. */
export function idColumns(documents: readonly Document[]): string[] {
  const names = Object.keys(documents[0]?.source ?? {});
  return names.filter((name) => isUnique(documents.map(({ source }) => source[name])));
}

/** The documents with the values of a column as their ids; with none of their own where no column is named. */
export function withIdsOf(documents: readonly Document[], column: string | undefined): Document[] {
  return documents.map(({ source }) => ({ id: column === undefined ? undefined : String(source[column]), source }));
}

function isUnique(values: readonly unknown[]): boolean {
  const isId = (value: unknown): boolean =>
    typeof value === 'number' || (typeof value === 'string' && value !== '' && bytesOf(value) <= LONGEST_ID);
  return values.every(isId) && new Set(values.map(String)).size === values.length;
}

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

/** Takes the ids out of the sources, if a column has a different one for each document. */
function withIds(sources: readonly Source[]): Document[] {
  const column = ID_COLUMNS.find((name) => isUnique(sources.map((source) => source[name])));
  return sources.map((source) => {
    const { _id: own, ...rest } = source;
    return { id: column === undefined ? undefined : String(column === '_id' ? own : source[column]), source: rest };
  });
}

function sampleOf(sources: readonly Source[], hasCells: boolean): Sample {
  const sample = new Sample(hasCells);
  for (const source of sources) {
    sample.add(source);
    if (sample.isFull) break;
  }
  return sample;
}

/** What a field of a form accepts as the name of an index: letters of every script, but no capital ones. */
export const INDEX_NAME = String.raw`[\p{Ll}\p{Lo}\p{Lm}\p{N}][\p{Ll}\p{Lo}\p{Lm}\p{M}\p{N}._\-]*`;

/** The index that is proposed for a file. */
export function indexName(file: string): string {
  const name = asIndexName(file.replace(/\.\w+$/, '')).replace(/^[^\p{L}\p{N}]+|-+$/gu, '');
  return name === '' ? 'my-data' : name;
}
