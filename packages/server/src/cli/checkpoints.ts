import { createHash } from 'node:crypto';
import { open, realpath, stat } from 'node:fs/promises';

import type { Context } from './context.js';
import { CommandError } from './errors.js';
import { forbidden, mappingOf, putMapping } from './mappings.js';

/** A file by which it is known again: one that begins otherwise is another one. */
export interface KnownFile {
  readonly file: string;
  readonly size: number;
  readonly modified: number;
  readonly head: string;
  readonly headBytes: number;
}

/** How far the import of a file is: kept with the index, so that it goes where the documents go. */
interface Checkpoint extends KnownFile {
  /** Documents of the file that are done. */
  readonly records: number;
  /** Whether the file was read to its end. */
  readonly done: boolean;
}

/** Bytes by which a file is known again. */
const HEAD_BYTES = 64 * 1024;
/** Imports that an index remembers. */
const MOST_CHECKPOINTS = 100;

/** What a file is now. */
export async function lookAt(file: string): Promise<KnownFile> {
  try {
    const [path, { size, mtimeMs }] = await Promise.all([realpath(file), stat(file)]);
    const head = await headOf(path, HEAD_BYTES);
    return { file: path, size, modified: mtimeMs, head: hash(head), headBytes: head.length };
  } catch (cause) {
    throw new CommandError(`cannot read ${file} (${(cause as NodeJS.ErrnoException).code ?? String(cause)})`, {
      cause,
    });
  }
}

/** What a file is called in ids and among the checkpoints. */
export function keyOf({ file }: KnownFile): string {
  return hash(file).slice(0, 10);
}

/** Where an earlier import of the same file stopped. */
export async function checkpointOf(context: Context, index: string, file: KnownFile): Promise<Checkpoint | undefined> {
  const before = all(await mappingOf(context, index))[keyOf(file)];
  if (before === undefined || before.records === 0 || before.headBytes > file.headBytes) return undefined;
  return hash(await headOf(file.file, before.headBytes)) === before.head ? before : undefined;
}

/** Remembers how far the import of a file is. */
export async function saveCheckpoint(context: Context, index: string, checkpoint: Checkpoint): Promise<void> {
  try {
    const mapping = await mappingOf(context, index);
    const others = Object.entries(all(mapping)).filter(([key]) => key !== keyOf(checkpoint));
    const kept = [...others.slice(-(MOST_CHECKPOINTS - 1)), [keyOf(checkpoint), checkpoint] as const];
    const _meta = { ...mapping._meta, sparrow_import: Object.fromEntries(kept) };
    await putMapping(context, index, { _meta });
  } catch (error) {
    // Without it the next run begins at the start, and writes the same documents under the same ids.
    forbidden(error);
  }
}

function all({ _meta: meta }: { readonly _meta?: Readonly<Record<string, unknown>> }): Record<string, Checkpoint> {
  return (meta?.['sparrow_import'] ?? {}) as Record<string, Checkpoint>;
}

async function headOf(path: string, bytes: number): Promise<Buffer> {
  const handle = await open(path);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, 0).finally(() => handle.close());
  return buffer.subarray(0, bytesRead);
}

function hash(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('base64url');
}
