import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { basename, isAbsolute } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';

import { fileProblem } from '@sparrow-search/engine';

import { CsvProblem, CsvReader, type CsvRow } from './documents/csv-rows.js';
import { isBulkAction, listInside, placeOf } from './documents/json-documents.js';
import { type PlacedPart, TextParts } from './documents/text-parts.js';
import { type Encoding, inUtf8 } from './encoding.js';
import { CommandError } from './errors.js';
import { type JsonText, jsonValues } from './json-values.js';
import { linesOf } from './lines.js';
import { number } from './terminal.js';

export const FORMATS = ['jsonl', 'json', 'csv', 'tsv', 'text'] as const;

/** How a file is written. */
export type Format = (typeof FORMATS)[number];

/** Whether a file of this format has a line of names and rows below it. */
export function hasColumns(format: Format): format is 'csv' | 'tsv' {
  return format === 'csv' || format === 'tsv';
}

/** One document of a file, or why there is no document. */
export interface Record_ {
  /** Its place among the documents of the file, from 1. */
  readonly n: number;
  /** The line of the file in which it begins, from 1. */
  readonly line: number;
  /** Members by their names; of a file of columns all values are texts. */
  readonly document: Readonly<Record<string, unknown>> | undefined;
  /** The text of the document, where the file has it as JSON. */
  readonly text: string | undefined;
  readonly problem: string | undefined;
}

/** How a file is read. */
export interface ReadOptions {
  readonly format: Format;
  readonly encoding: Encoding;
  /** Whether to wait for more at the end. */
  readonly follow: boolean;
  /** Ends the waiting, and the reading. */
  readonly signal: AbortSignal;
  /** Told how many bytes of the file are read. */
  readonly onRead?: (bytes: number) => void;
}

/** How often a file that is followed is looked at. */
const LOOK_MS = 300;

/** Longest document in a file: what the server takes in one request. */
const MOST_BYTES = 100 * 1024 * 1024;

/** The format that the name of a file says; undefined if it says none. */
export function formatOf(file: string): Format | undefined {
  const name = file.toLowerCase().replace(/\.gz$/, '');
  if (/\.(?:jsonl|ndjson|jsonlines)$/.test(name)) return 'jsonl';
  if (name.endsWith('.json')) return 'json';
  if (/\.(?:txt|text|md|markdown)$/.test(name)) return 'text';
  return name.endsWith('.csv') ? 'csv' : /\.(?:tsv|tab)$/.test(name) ? 'tsv' : undefined;
}

/** The documents of a file, one after another; `-` is standard input. A file whose name ends with `.gz` is unpacked. */
export function readRecords(file: string, options: ReadOptions): AsyncGenerator<Record_> {
  const raw = bytesOf(file, options);
  const stream = inUtf8(file.endsWith('.gz') ? unzipped(raw, options.signal) : raw, options.encoding);
  switch (options.format) {
    case 'jsonl':
      return fromLines(stream);
    case 'json':
      return fromValues(stream);
    case 'text':
      return fromText(stream, file === '-' ? undefined : isAbsolute(file) ? basename(file) : file);
    default:
      return fromColumns(stream, options.format, options.signal);
  }
}

async function* bytesOf(file: string, { follow, signal, onRead }: ReadOptions): AsyncGenerator<Buffer> {
  let at = 0;
  try {
    const stream = file === '-' ? process.stdin : createReadStream(file, { signal });
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      at += chunk.length;
      onRead?.(at);
      yield chunk;
    }
    while (follow) {
      await sleep(LOOK_MS, undefined, { signal });
      const { size } = await stat(file);
      if (size < at)
        throw new CommandError(`${file} has become shorter: it was replaced; run this again to read the new one`);
      if (size === at) continue;
      const handle = await open(file);
      try {
        const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(size - at, 1 << 20)), 0, undefined, at);
        at += bytesRead;
        onRead?.(at);
        yield buffer.subarray(0, bytesRead);
      } finally {
        await handle.close();
      }
    }
  } catch (error) {
    // The end that was asked for; what has come by then is used.
    if (signal.aborted) return;
    const { code } = error as NodeJS.ErrnoException;
    throw code === undefined ? error : new CommandError(`cannot read ${file}: ${fileProblem(error)}`, { cause: error });
  }
}

async function* unzipped(stream: AsyncIterable<Buffer>, signal: AbortSignal): AsyncGenerator<Buffer> {
  const source = Readable.from(stream);
  const gunzip = createGunzip();
  source.on('error', (error) => gunzip.destroy(error));
  try {
    for await (const chunk of source.pipe(gunzip) as AsyncIterable<Buffer>) yield chunk;
  } catch (error) {
    // A command that was stopped ends the file wherever it is: that is no damage of the file.
    if (signal.aborted) return;
    if (error instanceof CommandError) throw error;
    throw new CommandError(`it cannot be unpacked: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

/** A document for each line. The action lines of a body of `_bulk` are not documents, but may give the id of the document after them. */
async function* fromLines(stream: AsyncIterable<Buffer>): AsyncGenerator<Record_> {
  let n = 0;
  let id: unknown;
  let at = 0;
  const tooLong = (): CommandError =>
    new CommandError(`line ${number(at + 1)} is longer than 100 MB: does each document have a line of its own?`);
  for await (const line of linesOf(stream, MOST_BYTES, tooLong)) {
    at += 1;
    const text = line.replace(/^\ufeff/, '').trim();
    if (text === '') continue;
    const record = parsed(n + 1, at, text);
    const { document } = record;
    if (document !== undefined && isBulkAction(document)) {
      id = (Object.values(document)[0] as { readonly _id?: unknown })._id;
      continue;
    }
    n += 1;
    yield id === undefined || document === undefined ? record : { ...record, document: { ...document, _id: id } };
    id = undefined;
  }
}

/**
 * Documents of a list, of the longest list in an object that is alone in its file, or documents that follow each other. A text that is one
 * becomes a document. All as in the console.
 */
async function* fromValues(stream: AsyncIterable<Buffer>): AsyncGenerator<Record_> {
  let n = 0;
  const tooLong = (line: number): CommandError =>
    new CommandError(`the document that begins in line ${number(line)} is longer than 100 MB: is this a file of JSON?`);
  const recorded = ({ text, line }: JsonText): Record_ => {
    // In one line, as it is sent: within quotes, JSON has no line breaks.
    const flat = text.replaceAll(/[\r\n]+/g, ' ');
    return parsed((n += 1), line, flat.startsWith('"') ? `{"text":${flat}}` : flat);
  };
  let before: JsonText | undefined;
  for await (const value of jsonValues(stream, MOST_BYTES, tooLong)) {
    if (before !== undefined) yield recorded(before);
    before = value;
  }
  if (before === undefined) return;
  const last = recorded(before);
  const inside = n > 1 || before.isListed || last.document === undefined ? undefined : listInside(last.document);
  if (inside === undefined) {
    yield last;
    return;
  }
  n = 0;
  const [from, to] = placeOf(inside.name, before.text);
  // The lines above it count.
  const list =
    '\n'.repeat(before.line - 1) + before.text.slice(0, from).replaceAll(/[^\n]/g, '') + before.text.slice(from, to);
  for await (const value of jsonValues(Readable.from([Buffer.from(list)]), MOST_BYTES, tooLong)) yield recorded(value);
}

/** Paragraphs of a text, small ones together, as in the console. */
async function* fromText(stream: AsyncIterable<Buffer>, file: string | undefined): AsyncGenerator<Record_> {
  const parts = new TextParts(file);
  const tooLong = (): CommandError => new CommandError('it has a paragraph longer than 100 MB: is this a text?');
  const recorded = ({ document, line }: PlacedPart): Record_ => {
    return { n: document.part, line, document: { ...document }, text: JSON.stringify(document), problem: undefined };
  };
  for await (const line of linesOf(stream, MOST_BYTES, tooLong)) {
    yield* parts.add(line.replace(/^\ufeff/, '')).map(recorded);
    if (parts.open > MOST_BYTES) throw tooLong();
  }
  yield* parts.end().map(recorded);
}

/** Objects in objects, and lists in lists, that a document may have: as in Elasticsearch. */
const MOST_DEPTH = 1000;

/** Whether a document is nested so deeply that code which walks through it runs out of stack. */
function isTooDeep(text: string): boolean {
  // So deep a document has as many brackets that open, and that close.
  if (text.length < 2 * MOST_DEPTH) return false;
  let depth = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (isQuoted) {
      if (char === '\\') at += 1;
      else if (char === '"') isQuoted = false;
    } else if (char === '"') {
      isQuoted = true;
    } else if (char === '[' || char === '{') {
      depth += 1;
      if (depth > MOST_DEPTH) return true;
    } else if (char === ']' || char === '}') {
      depth -= 1;
    }
  }
  return false;
}

function parsed(n: number, line: number, text: string): Record_ {
  if (text === '') {
    const problem = 'nothing stands between two commas, or between a comma and the bracket behind it';
    return { n, line, document: undefined, text: undefined, problem };
  }
  if (isTooDeep(text)) {
    const problem = `it is nested more than ${number(MOST_DEPTH)} levels deep`;
    return { n, line, document: undefined, text: undefined, problem };
  }
  try {
    const document = JSON.parse(text) as unknown;
    if (typeof document === 'object' && document !== null && !Array.isArray(document)) {
      return { n, line, document: document as Readonly<Record<string, unknown>>, text, problem: undefined };
    }
    return { n, line, document: undefined, text: undefined, problem: 'it is not a JSON object' };
  } catch (error) {
    const problem = `it is not JSON (${error instanceof Error ? error.message : String(error)})`;
    return { n, line, document: undefined, text: undefined, problem };
  }
}

async function* fromColumns(
  stream: AsyncIterable<Buffer>,
  format: 'csv' | 'tsv',
  signal: AbortSignal,
): AsyncGenerator<Record_> {
  const reader = new CsvReader(format);
  const decoder = new TextDecoder();
  let n = 0;
  const recorded = ({ line, values, problem }: CsvRow): Record_ => {
    return { n: (n += 1), line, document: values, text: undefined, problem };
  };
  try {
    for await (const chunk of stream) yield* reader.add(decoder.decode(chunk, { stream: true })).map(recorded);
    yield* reader.end().map(recorded);
  } catch (error) {
    if (!(error instanceof CsvProblem)) throw error;
    // A command that was stopped ends the file wherever it is: that is no damage of the file.
    if (signal.aborted) return;
    throw new CommandError(error.message, { cause: error });
  }
}
