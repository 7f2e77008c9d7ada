// The embedded model's tokens, as they are spelled in vectors.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { MODEL } from './corpus.mjs';

/** @returns {string[]} the token of each column */
export function readVocabulary() {
  const { model } = JSON.parse(readFileSync(join(MODEL, 'tokenizer.json'), 'utf8'));
  const tokens = [];
  for (const [token, column] of Object.entries(model.vocab)) tokens[column] = token.replaceAll('.', '__');
  return tokens;
}
