import { isUtf8 } from 'node:buffer';

import { hasControls } from './documents/no-text.js';
import { CommandError } from './errors.js';
import { number } from './terminal.js';

export const ENCODINGS = ['utf-8', 'latin1'] as const;

/** How the letters of a file are written: `latin1` is what older programs write, with the signs that Windows added to it. */
export type Encoding = (typeof ENCODINGS)[number];

const LINE_FEED = 10;

/**
 * The bytes of a file as UTF-8.
 *
 * @throws {CommandError} naming the line, where they are said to be UTF-8 and are not: what is read as U+FFFD is lost
 */
export function inUtf8(stream: AsyncIterable<Buffer>, encoding: Encoding): AsyncIterable<Buffer> {
  return encoding === 'latin1' ? fromLatin1(stream) : checked(stream);
}

async function* fromLatin1(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  // Of this name, and with the signs of Windows-1252 between 0x80 and 0x9f: as the web reads it, and spreadsheets write it.
  const decoder = new TextDecoder('latin1');
  for await (const chunk of stream) {
    if (hasControls(chunk)) throw new CommandError('this is not a text in Latin-1: it has bytes that no text has');
    yield Buffer.from(decoder.decode(chunk, { stream: true }));
  }
}

async function* checked(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let begun = Buffer.alloc(0);
  let line = 1;
  for await (const chunk of stream) {
    const bytes = begun.length === 0 ? chunk : Buffer.concat([begun, chunk]);
    const whole = bytes.subarray(0, bytes.length - unfinished(bytes));
    if (!isUtf8(whole)) throw notUtf8(line + linesBefore(whole), whole.includes(0));
    line += linesIn(whole);
    begun = Buffer.from(bytes.subarray(whole.length));
    yield whole;
  }
  if (begun.length > 0) throw notUtf8(line, false);
}

function notUtf8(line: number, isBinary: boolean): CommandError {
  if (isBinary)
    return new CommandError('this is not a text: save what it says as text or Markdown in UTF-8, and import that');
  return new CommandError(
    `line ${number(line)} is not UTF-8: save the file as UTF-8, or add --encoding latin1 if it is Latin-1, as older spreadsheet programs write it`,
  );
}

/** Bytes at the end that begin a character, whose others are still to come. */
function unfinished(bytes: Buffer): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return length > back ? back : 0;
  }
  return 0;
}

function linesIn(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(LINE_FEED); at >= 0; at = bytes.indexOf(LINE_FEED, at + 1)) count += 1;
  return count;
}

/** How many lines come before the first one that is not UTF-8. */
function linesBefore(bytes: Buffer): number {
  let from = 0;
  for (let count = 0; ; count += 1) {
    const end = bytes.indexOf(LINE_FEED, from);
    if (end < 0 || !isUtf8(bytes.subarray(from, end))) return count;
    from = end + 1;
  }
}
