import { createHash } from 'node:crypto';

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
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
