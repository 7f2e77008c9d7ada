// What made a hit's score, by its explanation.
import { isFunctionWord } from '../../../cli/src/documents/language';
import { type Explanation, reasonOf } from '../../../endpoints/src/explanations';
import type { Kind } from './fields';

export type { Explanation };

/** What one token, word or list added to a score. */
export interface Part {
  readonly label: string;
  readonly value: number;
  /** Weight in the question and in the document, of sparse tokens. */
  readonly weights?: readonly [number, number];
  /** The word of the document that the token comes from. */
  readonly word?: string;
  readonly field?: string;
  /** Of a fused list: which one. */
  readonly kind?: Kind;
}

const LETTER = /[\p{L}\p{N}]/u;
/**
 * The parts of an explanation, the greatest first.
 *
 * @param lists what the lists of a fused search are, in their order
 */
export function partsOf(explanation: Explanation, lists: readonly Kind[] = []): Part[] {
  const fused = (explanation.details ?? []).map((one) => listPart(one, lists));
  const found = fused.length > 0 && fused.every((part) => part !== undefined) ? fused : [...walk(explanation)];
  return merge(found).sort((a, b) => b.value - a.value);
}

/** The tokens and words at the leaves of an explanation, those of all lists of a fused search. */
export function tokensOf(explanation: Explanation): Part[] {
  return merge([...walk(explanation)]).sort((a, b) => b.value - a.value);
}

function listPart(node: Explanation, lists: readonly Kind[]): Part | undefined {
  const reason = reasonOf(node);
  if (reason?.kind !== 'list' || reason.weight !== undefined) return undefined;
  const kind = lists[reason.at];
  return {
    label: kind ?? `list ${reason.at + 1}`,
    value: node.value,
    ...(kind === undefined ? {} : { kind }),
  };
}

function* walk(node: Explanation): Generator<Part> {
  const { value, details = [] } = node;
  const reason = reasonOf(node);
  if (reason?.kind === 'token') {
    const { token, field, weights, word } = reason;
    yield { label: token, value, field, weights, ...(word === undefined ? {} : { word }) };
    return;
  }
  if (reason?.kind === 'word') {
    yield { label: reason.word, value, field: reason.field, word: reason.word };
    return;
  }
  // Of the fields of a `multi_match` only the best one counts.
  const chosen = reason?.kind === 'best' ? [...details].sort((a, b) => b.value - a.value).slice(0, 1) : details;
  for (const inner of chosen) yield* walk(inner);
}

function merge(parts: readonly Part[]): Part[] {
  const byLabel = new Map<string, Part>();
  for (const part of parts) {
    const known = byLabel.get(part.label);
    byLabel.set(part.label, known === undefined ? part : { ...known, value: known.value + part.value });
  }
  return [...byLabel.values()];
}

/** Parts that say what a hit is about: neither signs nor words that every text has, unless it has no others. */
export function telling(parts: readonly Part[]): readonly Part[] {
  const told = parts.filter(({ label }) => LETTER.test(label) && !isFunctionWord(label));
  return told.length > 0 ? told : parts;
}

/** Share of the greatest part below which a token's word is not marked. */
const FAINT = 0.05;

/** Words of the document that a hit was found by, to be marked where it is shown whole. */
export function wordsOf(parts: readonly Part[]): string[] {
  const faint = FAINT * Math.max(0, ...parts.map(({ value }) => value));
  const words = telling(parts)
    .filter(({ value }) => value >= faint)
    .flatMap(({ word, label, weights }) => (word !== undefined ? [word] : weights !== undefined ? [plain(label)] : []));
  return [...new Set(words)].filter((word) => word.length > 1 && !isFunctionWord(word));
}

/** A passage without the marks of signs and of words that every text has. */
export function withoutEmptyMarks(text: string): string {
  return text.replace(/<em>([^<]*)<\/em>/g, (mark, word: string) =>
    LETTER.test(word) && !isFunctionWord(word) ? mark : word,
  );
}

/** A token without the sign that it continues a word: `##ing (-ing)`. */
function plain(label: string): string {
  return label.startsWith('##') ? '' : label;
}

/** Most characters before the first marked word that a card begins with. */
const LEAD = 90;

/** A text from the sentence on that has the first of `words`, if that comes late. */
export function fromFirstWord(text: string, words: readonly string[]): string {
  const [before = ''] = markWords(text, words);
  if (before.length <= LEAD || before.length === text.length) return text;
  const begin = Math.max(before.lastIndexOf('. '), before.lastIndexOf('\n')) + 1;
  const cut = before.length - begin <= LEAD ? begin : before.indexOf(' ', before.length - LEAD);
  return `… ${text.slice(Math.max(cut, begin)).trim()}`;
}

/** A text cut into pieces, every other one of which is one of `words`, whole, in whatever case. */
export function markWords(text: string, words: readonly string[]): string[] {
  const wanted = words.map((word) => word.toLowerCase()).filter((word) => LETTER.test(word));
  if (wanted.length === 0) return [text];
  const escaped = [...wanted]
    .sort((a, b) => b.length - a.length)
    .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(${escaped.join('|')})(?![\\p{L}\\p{N}])`, 'giu');
  return text.split(pattern);
}

/** `##ing (-ing)` is a piece that ends a word; dots are no letters of a feature's name, and stand as `__`. */
export function readable(label: string): string {
  if (label === '__') return '.';
  return /^##\S+ \((-.+)\)$/.exec(label)?.[1] ?? label.replace(/^##/, '-');
}

/** Letters of a stem that its words begin with at least. */
const FEWEST = 3;

/** A part as a reader of the text knows it: a stem (`muscl`) and the end of a word (`##ing`) as the word that they come from. */
export function saidAs({ label, word, weights }: Part, text: string): string {
  if (weights !== undefined) return label.startsWith('##') && word !== undefined ? word : readable(label);
  // An analyzer writes `happi` for happy and happiness.
  const root = label.length > FEWEST ? label.replace(/[iy]$/, '') : label;
  const words: readonly string[] = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  if (words.includes(label)) return label;
  return words.filter((one) => one.startsWith(root)).sort((a, b) => a.length - b.length)[0] ?? label;
}
