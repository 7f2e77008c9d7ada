import { CommandError } from './errors.js';
import { number } from './terminal.js';

/** A value of a file of JSON, as it stands there. */
export interface JsonText {
  readonly text: string;
  /** The line in which it begins, from 1. */
  readonly line: number;
  /** Whether it is one of a list. */
  readonly isListed: boolean;
}

const [LINE_FEED, SPACE, QUOTE, COMMA, BACKSLASH] = [10, 32, 34, 44, 92];
const [LIST, LIST_END, OBJECT, OBJECT_END] = [91, 93, 123, 125];
/** The mark that some programs begin a file with. */
const MARK = Buffer.from('\ufeff');

/**
 * The values of a list, or values that follow each other, as they come: the file may have any size. Whether a value is JSON is for who
 * reads it.
 *
 * @throws {CommandError} at the end of a file that ends too early
 * @param most bytes that a value may have: one without end would take all memory, or be longer than a string can be
 * @param tooLong makes the error for a longer one, from the line in which it begins
 */
export async function* jsonValues(
  stream: AsyncIterable<Buffer>,
  most: number,
  tooLong: (line: number) => Error,
): AsyncGenerator<JsonText> {
  let begun: Buffer[] = [];
  let length = 0;
  let line = 1;
  // The line in which the value begins that is being read, if one is.
  let begunIn: number | undefined;
  // Brackets that are open, and how many of them are around all values: one of a list, none where values follow each other.
  let depth = 0;
  let around: number | undefined;
  let isQuoted = false;
  let isEscaped = false;
  let isFirst = true;
  let isBehindComma = false;
  const take = (rest: Buffer): JsonText[] => {
    const text = Buffer.concat([...begun, rest])
      .toString()
      .trim();
    const taken = begunIn === undefined ? [] : [{ text, line: begunIn, isListed: around === 1 }];
    [begun, length, begunIn] = [[], 0, undefined];
    return taken;
  };
  for await (const piece of stream) {
    const chunk = isFirst && piece.subarray(0, MARK.length).equals(MARK) ? piece.subarray(MARK.length) : piece;
    isFirst = false;
    let from = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      if (byte === LINE_FEED) line += 1;
      if (isQuoted) {
        if (isEscaped) isEscaped = false;
        else if (byte === BACKSLASH) isEscaped = true;
        else if (byte === QUOTE) isQuoted = false;
        continue;
      }
      if (byte <= SPACE) continue;
      if (around === undefined) {
        around = byte === LIST ? 1 : 0;
        depth = around;
        if (around === 1) {
          from = at + 1;
          continue;
        }
      }
      if (depth === around && (byte === COMMA || (around === 1 && byte === LIST_END))) {
        // A place without a value, which is no JSON: only a list without any may end so.
        if (around === 1 && begunIn === undefined && (byte === COMMA || isBehindComma)) begunIn = line;
        isBehindComma = byte === COMMA;
        yield* take(chunk.subarray(from, at));
        from = at + 1;
        if (byte === LIST_END) depth = 0;
        continue;
      }
      begunIn ??= line;
      if (byte === QUOTE) isQuoted = true;
      else if (byte === LIST || byte === OBJECT) depth += 1;
      else if (byte === LIST_END || byte === OBJECT_END) {
        depth -= 1;
        if (around === 1 || depth > 0) continue;
        yield* take(chunk.subarray(from, at + 1));
        from = at + 1;
      }
    }
    if (from < chunk.length) begun.push(chunk.subarray(from));
    length += chunk.length - from;
    if (length > most) throw tooLong(begunIn ?? line);
  }
  yield* take(Buffer.alloc(0));
  if (depth > 0)
    throw new CommandError(`it ends in line ${number(line)}, with a bracket, a brace or a quote still open`);
}
