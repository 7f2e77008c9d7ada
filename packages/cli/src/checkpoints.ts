import { createHash } from 'node:crypto';
import { open, realpath, stat } from 'node:fs/promises';

import { fileProblem } from '@sparrow-search/engine';

import type { Context } from './context.js';
import { CommandError } from './errors.js';
import { forbidden, mappingOf, putMapping } from './mappings.js';

/** What a file is known by: one that begins otherwise, or ends otherwise where it ended, is another one. */
export interface KnownFile {
  readonly file: string;
  readonly size: number;
  readonly modified: number;
  readonly head: string;
  readonly headBytes: number;
  /** The hash of as many bytes as that of the head is of, at the end of the file. */
  readonly tail: string;
}

/** How far the import of a file is: kept with the index, so that it goes where the documents go. */
interface Checkpoint extends KnownFile {
  /** Documents of the file that are done. */
  readonly records: number;
  /** Whether the file was read to its end. */
  readonly done: boolean;
  /** The options on which ids and fields of its documents depend, as they are written on a command line. */
  readonly options: string;
}

/** Bytes by which a file is known again, at either end. */
const MARK_BYTES = 64 * 1024;
/** Imports that an index remembers. */
const MOST_CHECKPOINTS = 100;
/** How many bytes a byte of a packed file can become. */
const MOST_PACKED = 1032;

/** What a file is now. */
export async function lookAt(file: string): Promise<KnownFile> {
  try {
    const path = await realpath(file);
    const found = await stat(path);
    // Checked before it is opened: opening a pipe would wait until a program writes into it.
    if (!found.isFile())
      throw new CommandError(
        `${file} is not a regular file; - reads standard input, such as what comes through a pipe`,
      );
    const { size, mtimeMs: modified } = found;
    const headBytes = Math.min(size, MARK_BYTES);
    return { file: path, size, modified, headBytes, ...(await marksOf(path, size)) };
  } catch (cause) {
    if (cause instanceof CommandError) throw cause;
    throw new CommandError(`cannot read ${file}: ${fileProblem(cause)}`, { cause });
  }
}

/** What a file is called in ids and among the checkpoints. */
export function keyOf({ file }: KnownFile): string {
  return hash(file).slice(0, 10);
}

/** Where an earlier import of the same file stopped. Undefined also where the file has changed other than by growing. */
export async function checkpointOf(context: Context, index: string, file: KnownFile): Promise<Checkpoint | undefined> {
  const before = all(await mappingOf(context, index))[keyOf(file)];
  // Anybody who may change the mapping may have written it.
  if (!isCheckpoint(before, file)) return undefined;
  // What changes in the middle alone is seen by its time only.
  if (before.size === file.size && before.modified !== file.modified) return undefined;
  const { head, tail } = before.size === file.size ? file : await marksOf(file.file, before.size);
  return head === before.head && tail === before.tail ? before : undefined;
}

/** Whether this can be a checkpoint of a file, which may have grown. */
function isCheckpoint(value: unknown, { file, size: now }: KnownFile): value is Checkpoint {
  if (typeof value !== 'object' || value === null) return false;
  const { file: path, size, modified, head, headBytes, tail, records, done, options } = value as Partial<Checkpoint>;
  const isWhole = (found: unknown, most: number): found is number =>
    Number.isSafeInteger(found) && (found as number) > 0 && (found as number) <= most;
  return (
    path === file &&
    isWhole(size, now) &&
    headBytes === Math.min(size, MARK_BYTES) &&
    // Every document takes a byte at least.
    isWhole(records, now * (file.endsWith('.gz') ? MOST_PACKED : 1)) &&
    typeof modified === 'number' &&
    typeof head === 'string' &&
    typeof tail === 'string' &&
    typeof done === 'boolean' &&
    typeof options === 'string'
  );
}

/** Remembers how far the import of a file is. */
export async function saveCheckpoint(context: Context, index: string, checkpoint: Checkpoint): Promise<void> {
  try {
    const mapping = await mappingOf(context, index);
    const others = Object.entries(all(mapping)).filter(([key]) => key !== keyOf(checkpoint));
    const own: readonly [string, unknown] = [keyOf(checkpoint), checkpoint];
    const kept = [...others.slice(-(MOST_CHECKPOINTS - 1)), own];
    const _meta = { ...mapping._meta, sparrow_import: Object.fromEntries(kept) };
    await putMapping(context, index, { _meta });
  } catch (error) {
    // Without it the next run begins at the start, and writes the same documents under the same ids.
    forbidden(error);
  }
}

function all({ _meta: meta }: { readonly _meta?: Readonly<Record<string, unknown>> }): Record<string, unknown> {
  const found = meta?.['sparrow_import'];
  return typeof found === 'object' && found !== null && !Array.isArray(found) ? { ...found } : {};
}

/** What a file is known by at both ends, as if it were so many bytes long. */
async function marksOf(path: string, size: number): Promise<{ readonly head: string; readonly tail: string }> {
  const length = Math.min(size, MARK_BYTES);
  const handle = await open(path);
  try {
    const at = async (position: number): Promise<string> => {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position);
      return hash(buffer.subarray(0, bytesRead));
    };
    return { head: await at(0), tail: await at(size - length) };
  } finally {
    await handle.close();
  }
}

function hash(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('base64url');
}
