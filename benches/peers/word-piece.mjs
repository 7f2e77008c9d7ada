// BERT's WordPiece in plain JavaScript, uncased: what a Node user gets from a tokenizer library, without its cost.
// The suite holds its tokens against Sparrow's through the vectors.
import { readFileSync } from 'node:fs';

const PUNCTUATION = /[\p{P}$+<=>^`|~]/u;
const CJK =
  /[\u4E00-\u9FFF\u3400-\u4DBF\uF900-\uFAFF\u{20000}-\u{2A6DF}\u{2A700}-\u{2B81F}\u{2B820}-\u{2CEAF}\u{2F800}-\u{2FA1F}]/u;
const PLAIN = /^[\x20-\x7E]*$/;

export class WordPiece {
  constructor(path, limit = 512) {
    const { model } = JSON.parse(readFileSync(path, 'utf8'));
    this.vocabulary = new Map(Object.entries(model.vocab));
    this.unknown = this.vocabulary.get('[UNK]');
    this.first = this.vocabulary.get('[CLS]');
    this.last = this.vocabulary.get('[SEP]');
    this.limit = limit;
    this.words = new Map();
  }

  encode(text) {
    const ids = [this.first];
    for (const word of split(clean(text))) {
      for (const id of this.pieces(word)) ids.push(id);
      if (ids.length >= this.limit) break;
    }
    if (ids.length >= this.limit) ids.length = this.limit - 1;
    ids.push(this.last);
    return ids;
  }

  // Words repeat: remembering their pieces makes this twice as fast.
  pieces(word) {
    let found = this.words.get(word);
    if (found) return found;
    found = this.longestFirst([...word]);
    if (this.words.size > 100_000) this.words.clear();
    this.words.set(word, found);
    return found;
  }

  longestFirst(characters) {
    if (characters.length > 100) return [this.unknown];
    const ids = [];
    for (let start = 0; start < characters.length;) {
      let end = characters.length;
      let id;
      for (; end > start; end -= 1) {
        id = this.vocabulary.get((start > 0 ? '##' : '') + characters.slice(start, end).join(''));
        if (id !== undefined) break;
      }
      if (id === undefined) return [this.unknown];
      ids.push(id);
      start = end;
    }
    return ids;
  }
}

function clean(text) {
  if (PLAIN.test(text)) return text.toLowerCase();
  let out = '';
  for (const character of text) {
    if (/[\t\n\r]/.test(character) || /\p{Zs}/u.test(character)) out += ' ';
    else if (character === '\uFFFD' || /\p{C}/u.test(character)) continue;
    else if (CJK.test(character)) out += ` ${character} `;
    else out += character;
  }
  return out
    .normalize('NFD')
    .replace(/\p{Mn}/gu, '')
    .toLowerCase();
}

function split(text) {
  const words = [];
  let word = '';
  for (const character of text) {
    const punctuation = PUNCTUATION.test(character);
    if (punctuation || character === ' ') {
      if (word) words.push(word);
      word = '';
      if (punctuation) words.push(character);
    } else word += character;
  }
  if (word) words.push(word);
  return words;
}
