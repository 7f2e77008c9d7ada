import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';

import { fileProblem } from '@sparrow-search/engine';
import { CsvError, type Info, type Parser, parse } from 'csv-parse';

import { type PlacedPart, TextParts } from '../text-parts.js';
import { type Encoding, inUtf8 } from './encoding.js';
import { CommandError } from './errors.js';
import { jsonValues } from './json-values.js';
import { linesOf } from './lines.js';
import { counted, number } from './terminal.js';

export const FORMATS = ['jsonl', 'json', 'csv', 'tsv', 'text'] as const;

/** How a file is written. */
export type Format = (typeof FORMATS)[number];

/** Whether a file of this format has a line of names and rows below it. */
export function hasColumns(format: Format): format is 'csv' | 'tsv' {
  return format === 'csv' || format === 'tsv';
}

/** One document of a file, or why there is none. */
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

/** Longest line of names, and most names that it may have: an index has a thousand fields unless it is told otherwise. */
const MOST_BYTES_OF_NAMES = 8 * 1024 * 1024;
const MOST_NAMES = 10_000;

/** Most columns of a row, those without a name too: without a bound, a file without lines would be one row of any length. */
const MOST_CELLS = 1_000_000;

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const QUOTE = 34;

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
      return fromText(stream);
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
    // What was stopped in the middle ends in the middle.
    if (signal.aborted) return;
    if (error instanceof CommandError) throw error;
    throw new CommandError(`it cannot be unpacked: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

async function* fromLines(stream: AsyncIterable<Buffer>): AsyncGenerator<Record_> {
  let n = 0;
  let at = 0;
  const tooLong = (): CommandError =>
    new CommandError(`line ${number(at + 1)} is longer than 100 MB: does each document have a line of its own?`);
  for await (const line of linesOf(stream, MOST_BYTES, tooLong)) {
    at += 1;
    const text = line.replace(/^\ufeff/, '').trim();
    if (text !== '') yield parsed((n += 1), at, text);
  }
}

/** Documents of a list, or documents that follow each other. A text that is one becomes a document, as in the console. */
async function* fromValues(stream: AsyncIterable<Buffer>): AsyncGenerator<Record_> {
  let n = 0;
  const tooLong = (line: number): CommandError =>
    new CommandError(`the document that begins in line ${number(line)} is longer than 100 MB: is this a file of JSON?`);
  for await (const { text, line } of jsonValues(stream, MOST_BYTES, tooLong)) {
    // In one line, as it is sent: within quotes, JSON has no line breaks.
    const flat = text.replaceAll(/[\r\n]+/g, ' ');
    yield parsed((n += 1), line, flat.startsWith('"') ? `{"text":${flat}}` : flat);
  }
}

/** Paragraphs of a text, small ones together, as in the console. */
async function* fromText(stream: AsyncIterable<Buffer>): AsyncGenerator<Record_> {
  const parts = new TextParts();
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

/** Whether a document is nested so deeply that whoever walks through it runs out of stack. */
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
  const { delimiter, bytes } = format === 'csv' ? await separated(stream) : { delimiter: '\t', bytes: stream };
  const progress: Progress = { hasNames: false, columns: 0, rows: 0, end: { lines: 0, empty: 0 }, extra: 0 };
  // The lines in which rows begin that are parsed and not read yet.
  const lines: number[] = [];
  const parser: Parser = parse({
    bom: true,
    columns: (names: string[]) => {
      progress.hasNames = true;
      progress.columns = names.length;
      endsRow(progress, names, parser.info);
      return checkedNames(names);
    },
    delimiter,
    // In a file of tabs, quotes are characters like others.
    quote: format === 'csv' ? '"' : false,
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: MOST_BYTES,
    info: true,
    // Called while the file is parsed: rows that nobody has read yet are lost where the parser fails.
    on_record: (row: Row, info) => {
      progress.rows += 1;
      lines.push(nextLine(progress, info.empty_lines));
      endsRow(progress, Object.values(row.record), info);
      return row;
    },
  });
  const source = Readable.from(bounded(bytes, delimiter.charCodeAt(0), progress));
  source.on('error', (error) => parser.destroy(error));
  let n = 0;
  try {
    for await (const { record, info } of source.pipe(parser) as AsyncIterable<Row>) {
      n += 1;
      const problem = info.error === undefined ? undefined : unequal(info.error, progress);
      const line = lines.shift() ?? 0;
      yield { n, line, document: problem === undefined ? record : undefined, text: undefined, problem };
    }
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof CsvError)) throw error;
    throw new CommandError(unreadable(error, progress), { cause: error });
  }
}

/** A row as the parser gives it. */
interface Row {
  readonly record: Readonly<Record<string, string>>;
  readonly info: { readonly error?: CsvError };
}

/** How far the parser is. */
interface Progress {
  hasNames: boolean;
  /** Columns of the line of names. */
  columns: number;
  /** Rows behind the names. */
  rows: number;
  /** Where the last of them, or the line of names, ended: lines by the parser's count, and how many of them were empty. */
  end: { readonly lines: number; readonly empty: number };
  /** Lines that the parser has counted twice: within quotes, a carriage return with a line feed is two for it. */
  extra: number;
}

type Counted = Readonly<Pick<Info, 'lines' | 'empty_lines'>>;

function endsRow(progress: Progress, values: readonly string[], { lines, empty_lines: empty }: Counted): void {
  progress.end = { lines, empty };
  for (const value of values) if (value.includes('\r\n')) progress.extra += value.split('\r\n').length - 1;
}

/** The line in which the row behind the last one begins, from 1. `empty`: the empty lines up to there. */
function nextLine({ end, extra }: Progress, empty: number): number {
  return end.lines + 1 + (empty - end.empty) - extra;
}

/** A sentence about a row that has another number of columns than the line of names. */
function unequal({ record }: CsvError, { columns }: Progress): string {
  const own = Array.isArray(record) ? counted(record.length, 'column') : 'another number of columns';
  return `it has ${own}, and the first line has ${number(columns)}: a value with a separator in it is written in quotes`;
}

/** A sentence about CSV that the parser cannot read any further: the line in which the row begins, from 1, its column, and what is wrong. */
function unreadable(error: CsvError, progress: Progress): string {
  const { hasNames, rows } = progress;
  // Of where it fails, the parser knows more or less: a quote that is left open makes one cell of all that follows.
  const { column, empty_lines: empty } = error;
  const row = hasNames ? `the row that begins in line ${number(nextLine(progress, Number(empty)))}` : 'its first line';
  const where = typeof column === 'string' ? ` in column [${column}]` : '';
  switch (error.code) {
    case 'CSV_MAX_RECORD_SIZE':
      return `${row} is longer than 100 MB: is this a CSV or TSV file, and is every quote closed?`;
    case 'CSV_QUOTE_NOT_CLOSED':
      return `${row} opens a quote${where} that is not closed up to the end of the file`;
    case 'CSV_INVALID_CLOSING_QUOTE':
      return `${row} opens a quote${where} that ends in the middle of a value: a quote within quotes is written twice, and is every quote closed?`;
    case 'INVALID_OPENING_QUOTE':
      return `${row} has a quote${where} in the middle of a value: such a value is written in quotes, with the quotes in it written twice`;
    default:
      return `behind document ${String(rows)}: ${error.message}`;
  }
}

/**
 * What separates the columns of a CSV file: commas, or semicolons where the first line has those and no comma, as spreadsheets write
 * it in countries whose numbers have decimal commas; and the bytes of the file, of which the first were read to see that.
 */
async function separated(
  stream: AsyncIterable<Buffer>,
): Promise<{ readonly delimiter: string; readonly bytes: AsyncIterable<Buffer> }> {
  const rest = stream[Symbol.asyncIterator]();
  const first: Buffer[] = [];
  let isQuoted: boolean | undefined = false;
  for (let size = 0; size <= MOST_BYTES_OF_NAMES;) {
    const next = await rest.next();
    if (next.done === true) break;
    const chunk = next.value;
    first.push(chunk);
    size += chunk.length;
    isQuoted = endsFirstLine(chunk, isQuoted);
    if (isQuoted === undefined) break;
  }
  // Names that contain a separator or a line break are in quotes.
  const [names = ''] = Buffer.concat(first)
    .toString()
    .replaceAll(/"[^"]*(?:"|$)/g, '')
    .split(/[\r\n]/, 1);
  async function* bytes(): AsyncGenerator<Buffer> {
    yield* first;
    yield* { [Symbol.asyncIterator]: () => rest };
  }
  return { delimiter: names.includes(';') && !names.includes(',') ? ';' : ',', bytes: bytes() };
}

/** Whether a quote is open at the end of a piece of the first line; undefined if the line ends in this piece. */
function endsFirstLine(chunk: Buffer, isOpen: boolean): boolean | undefined {
  let isQuoted = isOpen;
  for (const byte of chunk) {
    if (byte === QUOTE) isQuoted = !isQuoted;
    else if (!isQuoted && (byte === LINE_FEED || byte === CARRIAGE_RETURN)) return undefined;
  }
  return isQuoted;
}

/**
 * Passes a file of columns on, as long as its first line and its rows are of a size that can be one: the parser keeps a row until it
 * ends. A line feed ends the row as far as this can tell; within quotes it is the parser that knows better, and counts bytes.
 */
async function* bounded(
  stream: AsyncIterable<Buffer>,
  delimiter: number,
  progress: { readonly hasNames: boolean; readonly rows: number },
): AsyncGenerator<Buffer> {
  let bytes = 0;
  let cells = 0;
  for await (const chunk of stream) {
    if (!progress.hasNames && (bytes += chunk.length) > MOST_BYTES_OF_NAMES)
      throw new CommandError(
        'its first line is longer than 8 MB: is this a CSV or TSV file, and is every quote closed?',
      );
    const end = Math.max(chunk.lastIndexOf(LINE_FEED), chunk.lastIndexOf(CARRIAGE_RETURN));
    if (end >= 0) cells = 0;
    for (let at = chunk.indexOf(delimiter, end + 1); at >= 0; at = chunk.indexOf(delimiter, at + 1)) cells += 1;
    if (cells > MOST_CELLS) {
      const where = progress.hasNames ? `a row behind document ${String(progress.rows)}` : 'its first line';
      throw new CommandError(`${where} has more than 1,000,000 columns: is this a CSV or TSV file?`);
    }
    yield chunk;
  }
}

function checkedNames(names: readonly string[]): string[] {
  // Spreadsheets end their lines with separators.
  const trimmed = names.map((name, at) => name.trim() || `column ${String(at + 1)}`);
  if (trimmed.length > MOST_NAMES)
    throw new CommandError(
      `its first line has ${number(trimmed.length)} columns, at most ${number(MOST_NAMES)} can be read`,
    );
  const seen = new Set<string>();
  const twice = trimmed.find((name) => seen.size === seen.add(name).size);
  if (twice !== undefined) throw new CommandError(`its first line has the column [${twice}] twice`);
  return trimmed;
}
