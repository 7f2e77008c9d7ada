import type { IncomingMessage } from 'node:http';

import { HttpError } from '../errors.js';
import type { Exchange } from './exchange.js';

/**
 * The bytes of a request's body, decoded, or undefined if it has none.
 *
 * @throws {HttpError} 413 when the body, or what it decodes to, is longer than `limit`
 */
export async function readBody(exchange: Exchange, limit: number): Promise<Uint8Array | undefined> {
  const declared = Number(exchange.header('content-length') ?? 0);
  if (declared > limit) throw tooLarge(declared, limit);
  const bytes = await exchange.readBody(limit);
  if (bytes.length === 0) return undefined;
  const encoding = exchange.header('content-encoding');
  if (encoding === undefined) return bytes;
  // Only requests with an encoding load the codecs.
  const { decode } = await import('./encodings.js');
  const decoded = await decode(bytes, encoding, limit, () => tooLarge(undefined, limit));
  return decoded.length === 0 ? undefined : decoded;
}

/**
 * Reads the body of a request of Node's. By events, as iterating over it costs several times as much. Each piece goes to its
 * place as it comes: joining them all at the end would hold the event loop.
 *
 * @throws {HttpError} 413 when it is longer than `limit`
 */
export function readIncoming(incoming: IncomingMessage, limit: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const declared = Number(incoming.headers['content-length'] ?? 0);
    // The first piece itself, which is mostly all; else what has room for more.
    let bytes: Buffer = NOTHING;
    let length = 0;
    incoming.on('data', (chunk: Buffer) => {
      const before = length;
      length += chunk.length;
      if (length > limit) {
        incoming.pause();
        reject(tooLarge(length, limit));
        return;
      }
      if (before === 0) {
        bytes = chunk;
        return;
      }
      if (bytes.length < length) bytes = grown(bytes, Math.min(Math.max(declared, 2 * length), limit));
      chunk.copy(bytes, before);
    });
    incoming.on('end', () => {
      resolve(bytes.subarray(0, length));
    });
    incoming.on('error', reject);
    incoming.on('close', () => {
      if (!incoming.complete) reject(new Error('the connection closed before the body was there'));
    });
  });
}

/** The same bytes with room for more. The system gives so large a piece only as it is written to. */
function grown(bytes: Buffer, length: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(length);
  bytes.copy(larger);
  return larger;
}

const NOTHING = Buffer.alloc(0);

/** Reads the body of a Fetch request, which has none with GET. */
export async function readFetchBody(request: Request, limit: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(await request.arrayBuffer());
  if (bytes.length > limit) throw tooLarge(bytes.length, limit);
  return bytes;
}

function tooLarge(length: number | undefined, limit: number): HttpError {
  const size = length === undefined ? '' : ` [${String(length)}]`;
  // The rest of the body is not read, so the connection cannot be used again.
  return new HttpError(
    'body_too_large',
    `entity content is too long${size} for the configured buffer limit [${String(limit)}]`,
    { headers: [['Connection', 'close']] },
  );
}
