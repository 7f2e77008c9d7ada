// The pictures of the console that its test writes into docs/images.
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** What that test calls them. Others in the folder are made by hand. */
const WRITTEN = /^console-.*\.webp$/;

/** Removes the pictures that the test writes, so that none stays of a screen that is no more. */
export function removePictures(folder) {
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) if (WRITTEN.test(name)) rmSync(join(folder, name));
}
