import { createHash } from 'node:crypto';

/** A file of the server's that does not hold what was written. */
export class DamagedFileError extends Error {
  override readonly name = 'DamagedFileError';
}

const TAIL = /,"checksum":"[0-9a-f]{16}"\}\n$/;

/** JSON in one line whose last member is a checksum of all that is before it. */
export function seal(members: object): string {
  const text = JSON.stringify(members).slice(0, -1);
  return `${text},"checksum":"${checksum(text)}"}\n`;
}

/**
 * The members of a sealed file, and of one that an older version wrote without a checksum: that must have `members` and no others.
 *
 * @throws {DamagedFileError}
 */
export function unseal(path: string, text: string, members: readonly string[]): Record<string, unknown> {
  const tail = TAIL.exec(text)?.[0];
  const content = tail === undefined ? text : text.slice(0, -tail.length);
  if (tail !== undefined && tail !== `,"checksum":"${checksum(content)}"}\n`) {
    throw new DamagedFileError(`${path} is damaged: its checksum does not match`);
  }
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(tail === undefined ? text : `${content}}`) as Record<string, unknown>;
  } catch (cause) {
    throw new DamagedFileError(`${path} is damaged: it is not JSON`, { cause });
  }
  // A damaged checksum is not the same as none.
  if (Object.keys(value).some((name) => !members.includes(name))) {
    throw new DamagedFileError(`${path} is damaged: its checksum is`);
  }
  return value;
}

function checksum(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
