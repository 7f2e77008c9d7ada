import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';

import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';

import { HttpError } from '../errors.js';

/** What `@hono/node-server` puts into the context; absent under `app.request()`. */
export interface ServerEnv {
  Bindings: Partial<HttpBindings>;
  Variables: { requestId: string };
}

const unzip = promisify(gunzip);

/** Node's request and response, where there are any. */
export function nodeBindings(context: Context<ServerEnv>): Partial<HttpBindings> {
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- undefined under `app.request()`
  return context.env ?? {};
}

/**
 * The bytes of a request's body, or undefined if it has none. They are read from Node's request: a Fetch `Request` has no
 * body with GET, and the documented search is a GET with a body.
 *
 * @throws {HttpError} 413 when the body, or what it unzips to, is longer than `limit`
 */
export async function readBody(context: Context<ServerEnv>, limit: number): Promise<Uint8Array | undefined> {
  const declared = Number(context.req.header('content-length') ?? 0);
  if (declared > limit) throw tooLarge(declared, limit);
  const { incoming } = nodeBindings(context);
  const bytes =
    incoming === undefined ? await readFetchBody(context.req.raw, limit) : await readIncoming(incoming, limit);
  if (bytes.length === 0) return undefined;
  const encoding = context.req.header('content-encoding')?.trim().toLowerCase();
  if (encoding === undefined || encoding === 'identity') return bytes;
  if (encoding !== 'gzip') {
    throw new HttpError('illegal_argument', `Content-Encoding header [${encoding}] is not supported`);
  }
  return unzipBody(bytes, limit);
}

async function readIncoming(incoming: AsyncIterable<unknown>, limit: number): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming) {
    const bytes = chunk as Buffer;
    length += bytes.length;
    if (length > limit) throw tooLarge(length, limit);
    chunks.push(bytes);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, length);
}

async function readFetchBody(request: Request, limit: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(await request.arrayBuffer());
  if (bytes.length > limit) throw tooLarge(bytes.length, limit);
  return bytes;
}

async function unzipBody(bytes: Uint8Array, limit: number): Promise<Uint8Array> {
  try {
    return await unzip(bytes, { maxOutputLength: limit });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(undefined, limit);
    throw new HttpError('illegal_argument', 'the body is not in the gzip format');
  }
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
