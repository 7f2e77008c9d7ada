import { type Span, edited, rawOf } from './json.js';

/** A piece of a text in whose place another one comes, made of what is known when it is asked for. */
export interface Replacement extends Span {
  readonly build: () => string;
}

/** Pieces of a text that are replaced. They may stand in each other, and do not overlap otherwise. */
export class Replacements {
  readonly #text: string;
  readonly #all: Replacement[] = [];
  /** Whether they are in the order in which they stand, outer ones first. */
  #isSorted = true;

  constructor(text: string) {
    this.#text = text;
  }

  add(one: Replacement): void {
    this.#all.push(one);
    this.#isSorted = false;
  }

  /** A piece of the text with the outermost replacements in it: what stands in these, they make themselves. */
  piece(span: Span): string {
    const edits = [];
    const all = this.#sorted();
    for (let at = firstFrom(all, span.start); at < all.length;) {
      const one = all[at];
      if (one === undefined || one.start >= span.end) break;
      if (one.end > span.end) {
        at += 1;
        continue;
      }
      const after = firstFrom(all, one.end);
      const next = all[at + 1];
      // Of two clauses in one object, the cluster says what is wrong.
      const isMalformed = next?.start === one.start && next.end === one.end;
      if (!isMalformed) edits.push({ start: one.start - span.start, end: one.end - span.start, text: one.build() });
      at = after;
    }
    return edited(rawOf(this.#text, span), edits);
  }

  #sorted(): readonly Replacement[] {
    if (!this.#isSorted) this.#all.sort((a, b) => a.start - b.start || b.end - a.end);
    this.#isSorted = true;
    return this.#all;
  }
}

/** Place, in a list that is in the order of its pieces' beginnings, of the first that begins at this place of the text or behind it. */
export function firstFrom(sorted: readonly Span[], start: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle]?.start ?? 0) < start) low = middle + 1;
    else high = middle;
  }
  return low;
}
