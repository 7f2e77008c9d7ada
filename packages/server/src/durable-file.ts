import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Readable and writable by the owner of the process alone. */
const PRIVATE = 0o600;

/**
 * Replaces a file so that a crash leaves either the old or the new contents: written beside it, synced, renamed over it,
 * and the directory synced. Only this user can read it.
 */
export async function replaceFile(path: string, contents: string): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = `${path}.tmp`;
  const file = await open(temporary, 'w', PRIVATE);
  try {
    await file.chmod(PRIVATE);
    await file.writeFile(contents);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncDirectory(folder);
}

/** The contents of a file, or undefined if there is none. */
export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
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
