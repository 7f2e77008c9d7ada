// Tests wait for the disk more than for anything else: what they write is read within seconds and deleted. Where the system has a file
// system in memory, the first tier keeps its files there. The second tier keeps them on the disk, as a server does.
import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

/** Linux keeps shared memory here, in a file system of half the machine's memory; containers often have 64 MiB of it. */
const SHARED_MEMORY = '/dev/shm';

/** Free bytes from which on it is used: some times what the first tier ever holds at once. */
const LEAST_FREE = 4 * 2 ** 30;

/**
 * The environment of tests whose temporary files lie in memory, or none where there is no such place. The folder is deleted when this
 * process ends.
 *
 * @returns {{ TMPDIR?: string }}
 */
export function memoryFolder() {
  let folder;
  try {
    const { bavail, bsize } = statfsSync(SHARED_MEMORY);
    if (bavail * bsize < LEAST_FREE) return {};
    folder = mkdtempSync(join(SHARED_MEMORY, 'sparrow-tests-'));
  } catch {
    return {};
  }
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));
  return { TMPDIR: folder };
}
