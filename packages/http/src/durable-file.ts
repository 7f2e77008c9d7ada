import { constants as bufferConstants } from 'node:buffer';
import { mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

import { HttpError } from '@sparrow-search/endpoints';

import { unseal } from './sealed-file.js';

/** Readable and writable by the owner of the process alone. */
const PRIVATE = 0o600;

/** A file of the data directory that this version cannot read. */
export class StoredFileError extends Error {
  override readonly name = 'StoredFileError';

  /** @param loss what a server that starts without the file does not have, as the end of a sentence */
  static damaged(path: string, detail: string, loss: string): StoredFileError {
    return new StoredFileError(
      `${path} is damaged: ${detail}. Nothing was changed. Put the file back from a backup, or move it away to start ${loss}.`,
    );
  }

  static otherFormat(path: string, found: unknown, supported: number): StoredFileError {
    return new StoredFileError(
      `${path} has format version ${String(found)}, this version reads up to ${String(supported)}. ` +
        'Nothing was changed. Start the version that wrote it, or a newer one.',
    );
  }
}

/** What a stored file may hold. */
export interface StoredForm {
  /** Version of its layout. */
  readonly format: number;
  /** Its members, besides a checksum. */
  readonly members: readonly string[];
  /** What a server that starts without the file does not have, as the end of a sentence. */
  readonly loss: string;
}

/**
 * Reads the object of a stored file, whose member `format` says its version, and checks its checksum if it has one.
 *
 * @throws {StoredFileError} for what is no such object, or is of another version
 */
export function parseStored(path: string, text: string, form: StoredForm): Record<string, unknown> {
  const { format, members, loss } = form;
  // A later version may have members, and a seal, that this one does not know.
  const later = formatOf(text);
  if (later !== undefined && later > format) throw StoredFileError.otherFormat(path, later, format);
  let file: unknown;
  try {
    file = unseal(text, members);
  } catch (error) {
    throw StoredFileError.damaged(path, error instanceof Error ? error.message : String(error), loss);
  }
  if (typeof file !== 'object' || file === null || !('format' in file) || !Number.isInteger(file.format)) {
    throw StoredFileError.damaged(path, 'it does not say its format', loss);
  }
  if (file.format !== format) throw StoredFileError.otherFormat(path, file.format, format);
  return file as object as Record<string, unknown>;
}

/** The version that the file says it has, damaged or not. */
function formatOf(text: string): number | undefined {
  try {
    const file: unknown = JSON.parse(text);
    if (typeof file !== 'object' || file === null || !('format' in file)) return undefined;
    return typeof file.format === 'number' ? file.format : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Replaces a file so that a crash leaves either the old or the new contents: written beside it, synced, renamed over it,
 * and the directory synced, as are those that had to be made for it. Only this user can read it. A failure leaves nothing but
 * what was there.
 */
export async function replaceFile(path: string, contents: string | AsyncIterable<Uint8Array>): Promise<void> {
  const folder = dirname(path);
  const firstMade = await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = `${path}.tmp`;
  // What has the name may be a pipe, and nobody would read it.
  await rm(temporary, { force: true });
  const file = await open(temporary, 'wx', PRIVATE);
  try {
    try {
      await file.chmod(PRIVATE);
      await writeFile(file, contents);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    // On a full disk it would hold on to space. Why the file could not be replaced is what matters.
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
  await syncDirectory(folder);
  if (firstMade === undefined) return;
  // A folder is there after a power cut only if the one that it lies in says so.
  const above = dirname(resolve(firstMade));
  for (let made = resolve(folder); made !== above; made = dirname(made)) await syncDirectory(dirname(made));
}

/** Most bytes of a stored file: one that is longer could not be a text here. */
const MOST_STORED = bufferConstants.MAX_STRING_LENGTH;

/**
 * The contents of a file of the data directory, or undefined if the file does not exist.
 *
 * @param loss what a server that starts without the file does not have, as the end of a sentence
 * @throws {StoredFileError} for what is no regular file, for which it would wait without an end, and for one that is too long
 */
export async function readIfPresent(path: string, loss: string): Promise<string | undefined> {
  const damaged = (detail: string): StoredFileError => StoredFileError.damaged(path, detail, loss);
  let found;
  try {
    found = await stat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  if (!found.isFile()) throw damaged('it is not a regular file');
  if (found.size > MOST_STORED) throw damaged(`it has more than ${String(MOST_STORED)} bytes`);
  return readFile(path, 'utf8');
}

async function syncDirectory(folder: string): Promise<void> {
  // Windows cannot open a directory; its rename is durable by itself.
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * What a client is told of a file that cannot be written: that there is no space, or a quota is used up, or what else it was.
 *
 * @param what the file holds, as the sentence names it
 */
export function diskRefusal(error: unknown, what: string): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error;
  return new HttpError('disk_full', `${what} cannot be changed: no space is left where they are stored`);
}
