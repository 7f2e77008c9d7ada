/** Words of documents: which are there, how near they are to others, and what they score by BM25. */
import type { Corpus, Doc } from './corpus.js';

/** `undefined` for no match; not a number where a document matches with a score that is not worked out. */
export type Score = number | undefined;

/** The terms of a field in a document, in their order. Analysis is for the words of the tests no more than this. */
export function termsOf(doc: Doc, field: string): readonly string[] {
  if (field === 'kw') return doc.source.kw ?? [];
  const text = field === 't' ? doc.source.t : field === 't2' ? doc.source.t2 : undefined;
  return text?.split(' ') ?? [];
}

function idf(docFreq: number, docs: number): number {
  return Math.log(1 + (docs - docFreq + 0.5) / (docFreq + 0.5));
}

function bm25(weight: number, frequency: number, length: number, average: number): number {
  return (2.2 * weight * frequency) / (frequency + 1.2 * (0.25 + (0.75 * length) / average));
}

/** Documents with the field, and its terms in all of them. */
function size(corpus: Corpus, field: string): { docs: number; average: number } {
  const lengths = corpus.docs.map((doc) => termsOf(doc, field).length).filter((length) => length > 0);
  return { docs: lengths.length, average: lengths.reduce((sum, length) => sum + length, 0) / lengths.length };
}

export function docFreq(corpus: Corpus, field: string, term: string): number {
  return corpus.docs.filter((doc) => termsOf(doc, field).includes(term)).length;
}

/** The score of one term; `freq` is what it counts as in place of its own number of documents. */
export function termScore(doc: Doc, corpus: Corpus, field: string, term: string, freq?: number): Score {
  const terms = termsOf(doc, field);
  const frequency = terms.filter((found) => found === term).length;
  if (frequency === 0) return undefined;
  if (!corpus.exact) return NaN;
  const { docs, average } = size(corpus, field);
  // A keyword has no length.
  const length = field === 'kw' ? 1 : terms.length;
  return bm25(idf(freq ?? docFreq(corpus, field, term), docs), frequency, length, average);
}

/** Words that stand one after the other; each place takes any of several. */
export function phraseScore(doc: Doc, corpus: Corpus, field: string, places: readonly (readonly string[])[]): Score {
  const terms = termsOf(doc, field);
  const found = terms.filter((_, start) => places.every((place, n) => place.includes(terms[start + n] ?? '')));
  if (found.length === 0) return undefined;
  if (!corpus.exact) return NaN;
  const { docs, average } = size(corpus, field);
  const freqs = places.flat().map((term) => docFreq(corpus, field, term));
  const weight = freqs.filter((freq) => freq > 0).reduce((sum, freq) => sum + idf(freq, docs), 0);
  return bm25(weight, found.length, terms.length, average);
}

/** Terms of the field that are anywhere, in order. */
export function vocabulary(corpus: Corpus, field: string): string[] {
  return [...new Set(corpus.docs.flatMap((doc) => termsOf(doc, field)))].sort();
}

/** Edits between two words; a swap of neighbours is one unless told otherwise. */
export function distance(left: string, right: string, swaps = true): number {
  const table: number[][] = [];
  const at = (i: number, j: number): number => table[i]?.[j] ?? 0;
  for (let i = 0; i <= left.length; i++) {
    table.push([]);
    for (let j = 0; j <= right.length; j++) {
      let cost = i === 0 || j === 0 ? i + j : Infinity;
      if (i > 0 && j > 0) {
        const differs = left[i - 1] === right[j - 1] ? 0 : 1;
        cost = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + differs);
        const swapped = i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
        if (swaps && swapped) cost = Math.min(cost, at(i - 2, j - 2) + 1);
      }
      table[i]?.push(cost);
    }
  }
  return at(left.length, right.length);
}

/** `AUTO`, `AUTO:3,6` or a number, for a word. */
export function edits(fuzziness: string | number, word: string): number {
  const text = String(fuzziness);
  if (!text.startsWith('AUTO')) return Number(text);
  const [low = 3, high = 6] = text.includes(':') ? text.slice(5).split(',').map(Number) : [];
  return word.length < low ? 0 : word.length < high ? 1 : 2;
}

export interface Fuzzy {
  readonly fuzziness?: string | number;
  readonly prefix_length?: number;
  readonly transpositions?: boolean;
}

/** Whether a term is as near to a word as a fuzzy query wants. */
export function isNear(word: string, term: string, options: Fuzzy): boolean {
  const prefix = options.prefix_length ?? 0;
  if (word.slice(0, prefix) !== term.slice(0, prefix)) return false;
  const found = distance(word, term, options.transpositions ?? true);
  if (found > edits(options.fuzziness ?? 'AUTO', word)) return false;
  return found === 0 || found < Math.min(word.length, term.length);
}

export function fuzzyScore(doc: Doc, corpus: Corpus, field: string, word: string, options: Fuzzy): Score {
  const near = vocabulary(corpus, field).filter((term) => isNear(word, term, options));
  const most = Math.max(...near.map((term) => docFreq(corpus, field, term)));
  return sum(
    near.map((term) => {
      const score = termScore(doc, corpus, field, term, most);
      const share = 1 - distance(word, term, options.transpositions ?? true) / Math.min(word.length, term.length);
      return score === undefined ? undefined : score * share;
    }),
  );
}

/** The scores that are there together, if at least so many are. */
export function sum(scores: readonly Score[], least = 1): Score {
  const found = scores.filter((score) => score !== undefined);
  return found.length >= Math.max(least, 1) ? found.reduce((all, score) => all + score, 0) : undefined;
}

/** The best score, and a share of the others. */
export function best(scores: readonly Score[], tieBreaker: number): Score {
  const found = scores.filter((score) => score !== undefined);
  if (found.length === 0) return undefined;
  const most = Math.max(...found);
  return most + tieBreaker * (found.reduce((all, score) => all + score, 0) - most);
}

/** `minimum_should_match` by its documentation. */
export function minimum(optional: number, spec: string | number): number {
  const text = String(spec);
  if (text.includes('<')) {
    const holding = text.split(' ').filter((part) => optional > Number(part.split('<')[0]));
    const last = holding.at(-1);
    return last === undefined ? optional : minimum(optional, last.split('<')[1] ?? '');
  }
  const number = parseInt(text, 10);
  const share = text.endsWith('%') ? Math.trunc((optional * Math.abs(number)) / 100) : Math.abs(number);
  return Math.max(text.startsWith('-') ? optional - share : share, 0);
}
