// One request over HTTP. Not by `fetch`, which gives up after five minutes without an answer, whatever its caller says: a server may
// encode a book for longer.
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

export interface Sent {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
  readonly signal: AbortSignal;
}

export interface Answered {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** The bytes, unpacked. The reader bounds how many they may be. */
  readonly body: Readable;
}

/**
 * Sends a request and waits for the head of its answer, for as long as the signal lets it.
 *
 * @throws {Error} with the `code` of what went wrong with the connection; also where the server leads elsewhere, as a key is for the
 *   server that was named
 */
export async function exchange(url: string, { method, headers, body, signal }: Sent): Promise<Answered> {
  const message = await new Promise<IncomingMessage>((resolve, reject) => {
    const { request } = url.startsWith('https:') ? https : http;
    // Node leaves out the length of a DELETE's body, and the server would take the body for the next request.
    const length = body === undefined ? {} : { 'content-length': String(body.length) };
    const all = { ...headers, ...length, 'accept-encoding': 'gzip' };
    const sent = request(url, { method, headers: all, signal }, resolve);
    sent.on('error', reject);
    sent.end(body);
  });
  const { statusCode: status = 0, headers: answered } = message;
  if (status >= 300 && status < 400 && answered.location !== undefined) {
    message.destroy();
    throw new Error('unexpected redirect');
  }
  return { status, headers: answered, body: unpacked(message) };
}

function unpacked(message: IncomingMessage): Readable {
  const decoder = {
    gzip: createGunzip,
    'x-gzip': createGunzip,
    br: createBrotliDecompress,
    deflate: createInflate,
  }[message.headers['content-encoding'] ?? ''];
  if (decoder === undefined) return message;
  const unpacking = decoder();
  message.on('error', (error) => unpacking.destroy(error));
  unpacking.on('close', () => message.destroy());
  return message.pipe(unpacking);
}
