import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

/** A meaning that English has words for, out of WordNet. */
export interface Meaning {
  readonly _id: string;
  readonly words: readonly string[];
  readonly gloss: string;
  readonly part_of_speech: string;
}

export interface Question {
  readonly text: string;
  /** The words that somebody who asks this looks for. */
  readonly wanted: readonly string[];
}

export interface Dictionary {
  readonly questions: readonly Question[];
  readonly meanings: readonly Meaning[];
}

/** Written by scripts/lib/demo-data.mjs; the same from `src`, where tests are, as from `dist`. */
const FILE = new URL('../dist/demo/dictionary.json.gz', import.meta.url);

/** The dictionary of `sparrow demo`, which is in the package. */
export function dictionary(): Dictionary {
  return JSON.parse(gunzipSync(readFileSync(FILE)).toString()) as Dictionary;
}
