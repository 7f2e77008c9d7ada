import { readdir } from 'node:fs/promises';

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
