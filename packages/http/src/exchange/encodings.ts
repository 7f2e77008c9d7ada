import type { Transform } from 'node:stream';
import { promisify } from 'node:util';
import { type ZlibOptions, createGunzip, createInflate, createInflateRaw, deflate, gzip } from 'node:zlib';

import { HttpError } from '@sparrow-search/endpoints';
import { freeAnswer, zstdCompress, zstdPieces } from '@sparrow-search/engine';

import type { Finished } from './exchange.js';
import { Gathered } from './gathered.js';
import { MadeOnce } from './made-once.js';

/** Answers shorter than this go as they are: compressing them costs more than it saves. */
const MIN_BYTES = 1024;
/** And so do longer ones: to compress them takes seconds, which nobody can stop. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Cheap levels: an answer waits for this. */
const ZLIB_LEVEL = 1;
const ZSTD_LEVEL = 1;

const compressed = {
  gzip: promisify(gzip),
  deflate: promisify(deflate),
};
const decompressed = {
  gzip: createGunzip,
  deflate: createInflate,
  raw: createInflateRaw,
};

/** Bytes that are decompressed at once. */
const PIECE = 256 * 1024;

/** What answers are written in, the best first among those that a client likes as well. */
const OFFERED = ['zstd', 'gzip', 'deflate'] as const;
type Offered = (typeof OFFERED)[number];

/** Most header values that are remembered as read. */
const REMEMBERED = 200;
const known = new Map<string, Offered | undefined>();

/**
 * The bytes of a request's body, decoded.
 *
 * @param encoding the `Content-Encoding` header
 * @param take is told of each piece before it is kept, and throws when there is no room
 * @throws {HttpError} 413 when they are more than `limit`, 400 for another encoding or malformed bytes
 */
export async function decode(
  bytes: Uint8Array,
  encoding: string | undefined,
  limit: number,
  tooLarge: () => HttpError,
  take: (bytes: number) => void,
): Promise<Uint8Array> {
  const name = encoding?.trim().toLowerCase() ?? 'identity';
  switch (name) {
    case 'identity':
    case '':
      return bytes;
    case 'gzip':
    case 'x-gzip':
      return inflated(decompressed.gzip, bytes, 'gzip', limit, tooLarge, take);
    case 'deflate':
    case 'x-deflate':
      // The name means the zlib format, but some clients send bare deflate: the header of zlib tells them apart.
      return inflated(isZlib(bytes) ? decompressed.deflate : decompressed.raw, bytes, 'deflate', limit, tooLarge, take);
    case 'zstd':
      return unpacked(bytes, limit, tooLarge, take);
    default:
      throw new HttpError('illegal_argument', `Content-Encoding header [${encoding ?? ''}] is not supported`);
  }
}

/** The answer in the encoding that the client likes best, if that is worth it. */
export async function encode(finished: Finished, accepted: string): Promise<Finished> {
  const { body, headers, isShared } = finished;
  if (body === null || body.length < MIN_BYTES || body.length > MAX_BYTES) return finished;
  const encoding = choose(accepted);
  if (encoding === undefined) return finished;
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const packed = await (isShared === true ? packedOnce(bytes, encoding) : pack(bytes, encoding));
  if (typeof body !== 'string') freeAnswer(body);
  return {
    ...finished,
    body: packed,
    headers: [...headers, ['Content-Encoding', encoding], ['Vary', 'Accept-Encoding']],
  };
}

function pack(bytes: Uint8Array, encoding: Offered): Promise<Uint8Array> {
  return encoding === 'zstd' ? zstdCompress(bytes, ZSTD_LEVEL) : compressed[encoding](bytes, { level: ZLIB_LEVEL });
}

/** The encodings of bytes that answers share. */
const sharedPacked = new MadeOnce<Offered>();

function packedOnce(bytes: Uint8Array, encoding: Offered): Promise<Uint8Array> {
  return sharedPacked.of(bytes, encoding, async () => Buffer.from(await pack(bytes, encoding)));
}

function choose(accepted: string): Offered | undefined {
  if (known.has(accepted)) return known.get(accepted);
  const weights = new Map<string, number>();
  for (const part of accepted.toLowerCase().split(',')) {
    const [name = '', ...parameters] = part.split(';').map((piece) => piece.trim());
    const weight = Number(parameters.find((piece) => piece.startsWith('q='))?.slice(2) ?? 1);
    weights.set(name, Number.isNaN(weight) ? 0 : weight);
  }
  const weight = (name: string): number => weights.get(name) ?? weights.get('*') ?? 0;
  const best = Math.max(...OFFERED.map(weight));
  const plain = weights.get('identity') ?? 0;
  const chosen = best > 0 && best >= plain ? OFFERED.find((name) => weight(name) === best) : undefined;
  if (known.size < REMEMBERED) known.set(accepted, chosen);
  return chosen;
}

function inflated(
  start: (options: ZlibOptions) => Transform,
  bytes: Uint8Array,
  name: string,
  limit: number,
  tooLarge: () => HttpError,
  take: (bytes: number) => void,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const gathered = new Gathered(0, limit);
    const stream = start({ chunkSize: PIECE });
    stream.on('data', (piece: Buffer) => {
      if (gathered.length + piece.length > limit) {
        stream.destroy();
        reject(tooLarge());
        return;
      }
      try {
        // Before it is kept: a few kilobytes may hold a hundred megabytes.
        take(piece.length);
      } catch (error) {
        stream.destroy();
        reject(error instanceof Error ? error : new Error(String(error)));
        return;
      }
      gathered.add(piece);
    });
    stream.on('error', () => {
      reject(malformed(name));
    });
    stream.on('end', () => {
      resolve(gathered.bytes());
    });
    stream.end(bytes);
  });
}

async function unpacked(
  bytes: Uint8Array,
  limit: number,
  tooLarge: () => HttpError,
  take: (bytes: number) => void,
): Promise<Uint8Array> {
  const gathered = new Gathered(0, limit);
  try {
    for await (const piece of zstdPieces(bytes)) {
      if (gathered.length + piece.length > limit) throw tooLarge();
      // Before the next one is asked for, as with the other encodings.
      take(piece.length);
      gathered.add(piece);
    }
  } catch (error) {
    throw error instanceof HttpError ? error : malformed('zstd');
  }
  return gathered.bytes();
}

function isZlib([first = 0, second = 0]: Uint8Array): boolean {
  return (first & 0x0f) === 8 && (first * 256 + second) % 31 === 0;
}

function malformed(name: string): HttpError {
  return new HttpError('illegal_argument', `the body is not in the ${name} format`);
}
