import type { IncomingMessage } from 'node:http';

import { HttpError } from '@sparrow-search/endpoints';

import type { Exchange } from './exchange.js';
import { Gathered } from './gathered.js';
import type { Hold } from './in-flight.js';
import { StalledBodies } from './stalled-bodies.js';

/**
 * The bytes of a request's body, decoded and without a byte order mark, or undefined if it has none.
 *
 * @param hold what the request holds: its body, from the first piece on
 * @throws {HttpError} 413 when the body, or what it decodes to, is longer than `limit`; 429 when all bodies together are too
 *   long, 408 when it stops coming
 */
export async function readBody(exchange: Exchange, limit: number, hold: Hold): Promise<Uint8Array | undefined> {
  const declared = Number(exchange.header('content-length') ?? 0);
  if (declared > limit) throw tooLarge(declared, limit);
  const bytes = await exchange.readBody(limit, hold);
  if (bytes.length === 0) return undefined;
  const encoding = exchange.header('content-encoding');
  if (encoding === undefined) return withoutMark(bytes);
  // Only requests with an encoding load the codecs.
  const { decode } = await import('./encodings.js');
  const take = (length: number): void => {
    hold.take(length);
  };
  const decoded = await decode(bytes, encoding, limit, () => tooLarge(undefined, limit), take);
  return withoutMark(decoded);
}

/** What follows the byte order mark that editors and PowerShell on Windows put before a text in UTF-8; undefined if that is nothing. */
function withoutMark(bytes: Uint8Array): Uint8Array | undefined {
  const isMarked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  const rest = isMarked ? bytes.subarray(3) : bytes;
  return rest.length === 0 ? undefined : rest;
}

/** Bodies of which nothing came for so many milliseconds. */
const stalledBodies = new StalledBodies(30_000);

/**
 * Reads the body of a request of Node's. By events, as iterating over it costs several times as much.
 *
 * @throws {HttpError} 413 when it is longer than `limit`, 429 when there is no room, 408 when it stops coming
 */
export function readIncoming(incoming: IncomingMessage, limit: number, hold: Hold): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const gathered = new Gathered(Number(incoming.headers['content-length'] ?? 0), limit);
    const fail = (error: unknown): void => {
      reading.over();
      incoming.pause();
      reject(error instanceof Error ? error : new Error(String(error)));
    };
    const reading = stalledBodies.watch(() => {
      fail(new HttpError('timeout', 'the body of the request stopped coming', { headers: [['Connection', 'close']] }));
    });
    incoming.on('data', (chunk: Buffer) => {
      reading.came();
      try {
        const length = gathered.length + chunk.length;
        if (length > limit) throw tooLarge(length, limit);
        hold.take(chunk.length);
        gathered.add(chunk);
      } catch (error) {
        fail(error);
      }
    });
    incoming.on('end', () => {
      reading.over();
      resolve(gathered.bytes());
    });
    // That the client hung up is no fault of the server, and nobody is left to read an answer.
    const gone = (): void => {
      fail(new HttpError('timeout', 'the connection closed before all of the body was there'));
    };
    incoming.on('error', gone);
    incoming.on('close', () => {
      if (!incoming.complete) gone();
    });
  });
}

/** Reads the body of a Fetch request, which has none with GET. */
export async function readFetchBody(request: Request, limit: number, hold: Hold): Promise<Uint8Array> {
  const bytes = new Uint8Array(await request.arrayBuffer());
  hold.take(bytes.length);
  if (bytes.length > limit) throw tooLarge(bytes.length, limit);
  return bytes;
}

/** The refusal of a body that is longer than `limit` bytes. */
export function tooLarge(length: number | undefined, limit: number): HttpError {
  const size = length === undefined ? '' : ` [${String(length)}]`;
  // The rest of the body is not read, so the connection cannot be used again.
  return new HttpError(
    'body_too_large',
    `entity content is too long${size} for the configured buffer limit [${String(limit)}]`,
    { headers: [['Connection', 'close']] },
  );
}
