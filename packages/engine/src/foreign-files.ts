import { mkdir, readdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** What only a data directory has. */
const OURS = ['indices', 'identity.json', 'owner.key'];
/** What one has too that was left while it was made. */
const BEGUN = ['store', 'security', 'lock'];
/** What a file system of its own begins with. */
const NOBODYS = ['lost+found'];

/**
 * Whether a folder holds somebody's own files, and nothing of Sparrow's: as a data directory it would get others among them.
 *
 * @throws what the system says of a folder that cannot be read; one that is not there holds nothing
 */
export async function holdsForeignFiles(data: string): Promise<boolean> {
  const there = await readdir(data).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  });
  const files = there.filter((name) => !name.startsWith('.') && !NOBODYS.includes(name));
  return !files.every((name) => BEGUN.includes(name)) && !files.some((name) => OURS.includes(name));
}

/**
 * Makes a folder unless it is there, and those above it, for this user alone.
 *
 * Node's own `recursive` never ends on a file system that takes no new folders and answers `ENOENT` to every attempt, as `/proc` does.
 *
 * @throws what the system says; `EEXIST` for what is there and is not a folder
 */
export async function makePrivateFolder(folder: string): Promise<void> {
  try {
    await makeOne(folder);
  } catch (error) {
    const above = dirname(folder);
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || above === folder) throw error;
    await makePrivateFolder(above);
    await makeOne(folder);
  }
}

async function makeOne(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    // Of a folder that is there, some systems say only that it cannot be made.
    if ((await stat(folder).catch(() => undefined))?.isDirectory() !== true) throw error;
  }
}
