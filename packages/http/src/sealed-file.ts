import { createHash } from 'node:crypto';

import { Turns } from '@sparrow-search/engine';

/** What is wrong with a sealed file, as the end of a sentence about it. */
export class SealError extends Error {
  override readonly name = 'SealError';
}

const TAIL = /,"checksum":"[0-9a-f]{16}"\}\n$/;

/** JSON in one line whose last member is a checksum of all that is before it. */
export function seal(members: object): string {
  const text = JSON.stringify(members).slice(0, -1);
  return `${text},"checksum":"${checksum(text)}"}\n`;
}

/** Bytes of a piece of {@link sealPieces}, or a little more. */
const PIECE_BYTES = 64 * 1024;

/**
 * What {@link seal} makes, in pieces, with turns of the event loop for others in between.
 *
 * @param texts texts that together are the JSON without its closing brace
 */
export async function* sealPieces(texts: Iterable<string>): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  const turns = new Turns();
  let piece = '';
  for (const text of texts) {
    piece += text;
    if (piece.length < PIECE_BYTES) continue;
    const bytes = Buffer.from(piece);
    piece = '';
    hash.update(bytes);
    yield bytes;
    await turns.next();
  }
  hash.update(piece);
  yield Buffer.from(`${piece},"checksum":"${shortened(hash.digest('hex'))}"}\n`);
}

/**
 * What a sealed file holds, or one that an older version wrote without a checksum: that must have `members` and no others.
 *
 * @throws {SealError}
 */
export function unseal(text: string, members: readonly string[]): unknown {
  const tail = TAIL.exec(text)?.[0];
  const content = tail === undefined ? text : text.slice(0, -tail.length);
  if (tail !== undefined && tail !== `,"checksum":"${checksum(content)}"}\n`) {
    throw new SealError('its checksum does not match');
  }
  let value: unknown;
  try {
    value = JSON.parse(tail === undefined ? text : `${content}}`);
  } catch (cause) {
    throw new SealError(cause instanceof Error ? cause.message : String(cause), { cause });
  }
  // A damaged checksum is not the same as none.
  if (tail === undefined && typeof value === 'object' && value !== null) {
    if (Object.keys(value).some((name) => !members.includes(name))) throw new SealError('its checksum is damaged');
  }
  return value;
}

function checksum(text: string): string {
  return shortened(createHash('sha256').update(text).digest('hex'));
}

function shortened(digest: string): string {
  return digest.slice(0, 16);
}
