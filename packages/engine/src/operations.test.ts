import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';

import { FILES } from '../../../scripts/lib/declarations.mjs';
import { findBinding, loadAddon } from './binding.js';

it.each(FILES)('is what the addon declares: $file', async ({ file, textOf }) => {
  expect(await readFile(file, 'utf8')).toBe(textOf(loadAddon(findBinding()).declared()));
});
