// Files of a folder and of the folders in it.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** @returns {string[]} their paths */
export function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, path = parentPath, name }) => join(path, name));
}
