// New pictures of the console take the place of those that its test wrote before, and of no others.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, it } from 'vitest';

import { ROOT } from '../documentation/pages.js';

const { removePictures } = (await import(join(ROOT, 'scripts', 'lib', 'pictures.mjs'))) as {
  removePictures: (folder: string) => void;
};

it('leaves the pictures that are made by hand', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sparrow-pictures-'));
  for (const name of ['console-search-light.webp', 'console-gone-dark.webp', 'console-four-columns.png', 'logo.webp'])
    writeFileSync(join(folder, name), '');
  removePictures(folder);
  expect(readdirSync(folder).sort()).toEqual(['console-four-columns.png', 'logo.webp']);
  rmSync(folder, { recursive: true });
  // The first pictures of all.
  removePictures(folder);
  expect(readdirSync(folder)).toEqual([]);
  rmSync(folder, { recursive: true });
});
