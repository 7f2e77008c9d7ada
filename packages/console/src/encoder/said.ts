// Which tokens of an encoded text come from its words, and which ones the model added.

/** Fewest pieces by which one sees that a word was split; a beginning alone is also another word, as `walk` of `walking`. */
const FEWEST_PIECES = 2;

/**
 * The tokens that a text itself says: its words, and the pieces of words that the model knows only in pieces (`ago`, `##ob` and `##ia` of
 * Agoraphobia). Only the tokens tell how a word was split, and pieces without weight are not among them.
 */
export function tokensSaid(text: string, tokens: readonly string[]): Set<string> {
  const known = new Set(tokens);
  const plain = text.toLowerCase().normalize('NFD').replace(/\p{M}/gu, '');
  const words = new Set(plain.match(/[\p{L}\p{N}]+/gu) ?? []);
  const said = new Set<string>();
  for (const word of words) for (const token of known.has(word) ? [word] : piecesOf(word, known)) said.add(token);
  return said;
}

interface Cover {
  readonly covered: number;
  readonly pieces: readonly string[];
}

/** The tokens that a word falls into, those that leave out the fewest of its letters; none if they leave out most of it. */
function piecesOf(word: string, known: ReadonlySet<string>): readonly string[] {
  // The best cover of what begins at a letter, from the last one on.
  const best: Cover[] = [{ covered: 0, pieces: [] }];
  for (let at = word.length - 1; at >= 0; at -= 1) {
    const rest = (end: number): Cover => best[word.length - end] ?? { covered: 0, pieces: [] };
    let found = rest(at + 1);
    for (let end = word.length; end > at; end -= 1) {
      const piece = `${at === 0 ? '' : '##'}${word.slice(at, end)}`;
      if (!known.has(piece)) continue;
      const { covered, pieces } = rest(end);
      const cover = { covered: covered + end - at, pieces: [piece, ...pieces] };
      const isBetter =
        cover.covered === found.covered ? cover.pieces.length < found.pieces.length : cover.covered > found.covered;
      if (isBetter) found = cover;
    }
    best.push(found);
  }
  const whole = best[word.length];
  if (whole === undefined || whole.pieces.length < FEWEST_PIECES || whole.covered * 2 < word.length) return [];
  return whole.pieces;
}
