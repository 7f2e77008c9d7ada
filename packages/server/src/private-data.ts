import { chmod, mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

import type { Logger } from './log.js';
import { KeyStore } from './security/key-store.js';

/** Rights of others than the owner. */
const OTHERS = 0o077;

/**
 * Makes the data directory if it is not there, and closes it to all users but this one: it holds whatever was indexed, and the
 * owner key. One that was open to others until now is closed and the log says so. Windows has no such rights; there the
 * directory has those of its parent.
 */
export async function makePrivate(data: string, log: Logger): Promise<void> {
  await mkdir(data, { recursive: true, mode: 0o700 });
  if (process.platform === 'win32') return;
  for (const path of [data, KeyStore.ownerKeyFile(data), join(data, 'security')]) {
    try {
      const rights = (await stat(path)).mode & 0o777;
      if ((rights & OTHERS) === 0) continue;
      await chmod(path, rights & ~OTHERS);
      log.warn('others could read this; they no longer can', { path, rights: rights.toString(8).padStart(4, '0') });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
      // Somebody else's directory, or a file system without rights: not ours to forbid.
      log.warn('its rights cannot be changed; other users may be able to read it', { path, error: String(error) });
    }
  }
}
