import { chmod, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { UnusablePathError } from '@sparrow-search/endpoints';
import { holdsForeignFiles, makePrivateFolder } from '@sparrow-search/engine';

import type { Logger } from './log.js';
import { KeyStore } from './security/key-store.js';

/**
 * Refuses a folder of somebody's own files: a server would put its own among them, and close it to everybody else.
 *
 * @throws {UnusablePathError} with the way to insist
 */
async function refuseForeign(data: string): Promise<void> {
  const isForeign = await holdsForeignFiles(data).catch(async (error: unknown) => {
    const isFile = (await stat(data).catch(() => undefined))?.isDirectory() === false;
    throw isFile ? new UnusablePathError(`--data: ${data} is a file, not a folder`, { cause: error }) : error;
  });
  if (!isForeign) return;
  throw new UnusablePathError(
    `--data: ${data} contains other files and is not a data directory of Sparrow, so nothing was written: name an empty or a new folder; to use this one anyway, create the folder ${join(data, 'indices')}`,
  );
}

/** Rights of others than the owner. */
const OTHERS = 0o077;

/**
 * Makes the data directory if it is not there, and closes it to all users but this one: it holds whatever was indexed, and the
 * owner key. One that was open to others until now is closed and the log says so. Windows has no such rights; there the
 * directory has those of its parent.
 */
export async function makePrivate(data: string, log: Logger): Promise<void> {
  await refuseForeign(data);
  await makePrivateFolder(data);
  if (process.platform === 'win32') return;
  for (const path of [data, KeyStore.ownerKeyFile(data), join(data, 'security')]) {
    try {
      const rights = (await stat(path)).mode & 0o777;
      if ((rights & OTHERS) === 0) continue;
      await chmod(path, rights & ~OTHERS);
      log.warn('other users could read this file or folder; now only its owner can', {
        path,
        rights: rights.toString(8).padStart(4, '0'),
      });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
      // Somebody else's directory, or a file system without rights: not ours to forbid.
      log.warn('the permissions of this file or folder cannot be changed; other users may be able to read it', {
        path,
        error: String(error),
      });
    }
  }
}
