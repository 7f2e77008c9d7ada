import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';

import { operationsFile } from '../../../scripts/lib/operations.mjs';
import { findBinding, loadAddon } from './binding.js';

it('has the operations and actions that the addon declares', async () => {
  const written = await readFile(new URL('operations.generated.ts', import.meta.url), 'utf8');
  expect(written).toBe(operationsFile(loadAddon(findBinding()).declared()));
});
