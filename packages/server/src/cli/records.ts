import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';

import { type CsvError, parse } from 'csv-parse';

import { CommandError } from './errors.js';

export const FORMATS = ['jsonl', 'csv', 'tsv'] as const;

/** How a file is written. */
export type Format = (typeof FORMATS)[number];

/** One document of a file, or why there is none. */
export interface Record_ {
  /** Its place among the documents of the file, from 1. */
  readonly n: number;
  /** Members by their names; of a file of columns all values are texts. */
  readonly document: Readonly<Record<string, unknown>> | undefined;
  /** The text of the document, where the file has it as JSON. */
  readonly text: string | undefined;
  readonly problem: string | undefined;
}

/** How a file is read. */
export interface ReadOptions {
  readonly format: Format;
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
  return name.endsWith('.csv') ? 'csv' : /\.(?:tsv|tab)$/.test(name) ? 'tsv' : undefined;
}

/** The documents of a file, one after another; `-` is standard input. A file whose name ends with `.gz` is unpacked. */
export function readRecords(file: string, options: ReadOptions): AsyncGenerator<Record_> {
  const raw = bytesOf(file, options);
  const stream = file.endsWith('.gz') ? unzipped(raw, options.signal) : raw;
  return options.format === 'jsonl' ? fromLines(stream) : fromColumns(stream, options.format, options.signal);
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
    throw code === undefined ? error : new CommandError(`cannot read ${file} (${code})`, { cause: error });
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
  let begun: Buffer[] = [];
  let length = 0;
  const record = (line: Buffer): Record_ | undefined => {
    const text = line
      .toString()
      .replace(/^\ufeff/, '')
      .trim();
    return text === '' ? undefined : parsed((n += 1), text);
  };
  for await (const chunk of stream) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const line =
        begun.length === 0 ? chunk.subarray(from, end) : Buffer.concat([...begun, chunk.subarray(from, end)]);
      begun = [];
      length = 0;
      from = end + 1;
      const found = record(line);
      if (found !== undefined) yield found;
    }
    if (from < chunk.length) begun.push(chunk.subarray(from));
    length += chunk.length - from;
    if (length > MOST_BYTES)
      throw new CommandError(`document ${String(n + 1)} is longer than 100 MB: is this a file of lines?`);
  }
  const last = record(Buffer.concat(begun));
  if (last !== undefined) yield last;
}

function parsed(n: number, text: string): Record_ {
  try {
    const document = JSON.parse(text) as unknown;
    if (typeof document === 'object' && document !== null && !Array.isArray(document)) {
      return { n, document: document as Readonly<Record<string, unknown>>, text, problem: undefined };
    }
    return { n, document: undefined, text: undefined, problem: 'it is no JSON object' };
  } catch (error) {
    const problem = `it is no JSON (${error instanceof Error ? error.message : String(error)})`;
    return { n, document: undefined, text: undefined, problem };
  }
}

async function* fromColumns(
  stream: AsyncIterable<Buffer>,
  format: 'csv' | 'tsv',
  signal: AbortSignal,
): AsyncGenerator<Record_> {
  const parser = parse({
    bom: true,
    columns: (names: string[]) => checkedNames(names),
    delimiter: format === 'csv' ? ',' : '\t',
    // In a file of tabs, quotes are characters like others.
    quote: format === 'csv' ? '"' : false,
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: MOST_BYTES,
    info: true,
  });
  const source = Readable.from(stream);
  source.on('error', (error) => parser.destroy(error));
  let n = 0;
  try {
    for await (const { record, info } of source.pipe(parser) as AsyncIterable<{
      record: Readonly<Record<string, string>>;
      info: { readonly error?: CsvError };
    }>) {
      n += 1;
      const problem = info.error === undefined ? undefined : `it has another number of columns than the first line`;
      yield { n, document: problem === undefined ? record : undefined, text: undefined, problem };
    }
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof CommandError || !(error instanceof Error)) throw error;
    throw new CommandError(`behind document ${String(n)}: ${error.message}`, { cause: error });
  }
}

function checkedNames(names: readonly string[]): string[] {
  const trimmed = names.map((name) => name.trim());
  const twice = trimmed.find((name, at) => trimmed.indexOf(name) !== at);
  if (twice !== undefined) throw new CommandError(`its first line has the column [${twice}] twice`);
  if (trimmed.includes('')) throw new CommandError('its first line has a column without a name');
  return trimmed;
}
