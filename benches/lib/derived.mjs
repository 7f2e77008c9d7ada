// Any number of documents made of the vectors of fewer passages: 60% of one passage's terms and 40% of another's that has the same heaviest
// term, so that lists of postings grow as those of real documents do. Which terms is drawn by a seed: the first documents are the
// passages themselves, and no later one is another's copy. Nothing is kept of a document, as ten million would take gigabytes.

/** The share of its terms that a document has of its own passage, and of the other one. */
const SHARES = [0.6, 0.4];
const [OPEN, CLOSE, COMMA] = Buffer.from('{},');

export class DerivedDocuments {
  #vectors;
  #weights;
  /** The pairs of all passages as JSON writes them, each with a comma behind it, and where each begins: copying bytes is ten times as fast
   * as adding up strings. */
  #text;
  #starts;
  /** For each passage, those with the same heaviest term. */
  #alike;
  /** Documents drawn so far, and for each term the last of them that has it: none has a term twice. */
  #drawn = 0;
  #seen;

  /**
   * @param {import('./vectors.mjs').Vectors} vectors of the passages
   * @param {string[]} tokens the token of each column
   */
  constructor(vectors, tokens) {
    this.#vectors = vectors;
    this.#weights = Float64Array.from(vectors.val, shortest);
    const names = tokens.map((token) => JSON.stringify(token));
    this.#starts = new Uint32Array(vectors.idx.length + 1);
    const parts = [];
    for (let row = 0; row < vectors.rows; row += 1) {
      let text = '';
      for (let at = vectors.ptr[row]; at < vectors.ptr[row + 1]; at += 1) {
        const pair = `${names[vectors.idx[at]]}:${this.#weights[at]},`;
        this.#starts[at + 1] = this.#starts[at] + Buffer.byteLength(pair);
        text += pair;
      }
      parts.push(Buffer.from(text));
    }
    this.#text = Buffer.concat(parts);
    this.#seen = new Uint32Array(tokens.length);
    this.#alike = alike(vectors);
  }

  /**
   * Writes the tokens of a document as one JSON object.
   *
   * @param {number} number of the document, from 0
   * @param {Buffer} target
   * @param {number} from where in it to begin
   * @returns {number} where in it the object ends
   */
  write(number, target, from) {
    const [text, starts] = [this.#text, this.#starts];
    let end = from;
    target[end++] = OPEN;
    this.#each(number, (at) => {
      for (let byte = starts[at]; byte < starts[at + 1]; byte += 1) target[end++] = text[byte];
    });
    // In place of the last comma.
    if (target[end - 1] === COMMA) end -= 1;
    target[end++] = CLOSE;
    return end;
  }

  /** Calls back with each column and weight of a document. */
  each(number, callback) {
    this.#each(number, (at) => callback(this.#vectors.idx[at], this.#weights[at]));
  }

  /**
   * The two passages that a document is made of; in the first round, one of them twice.
   *
   * @param {number} number of the document
   * @returns {[own: number, other: number]}
   */
  passagesOf(number) {
    const { rows } = this.#vectors;
    const own = number % rows;
    return [own, number < rows ? own : this.#otherOf(own, generator(number))];
  }

  /** What is drawn first for a document. */
  #otherOf(own, random) {
    const group = this.#alike[own];
    return group[Math.floor(random() * group.length)];
  }

  #each(number, callback) {
    const { ptr, idx, rows } = this.#vectors;
    const own = number % rows;
    const round = Math.floor(number / rows);
    if (round === 0) {
      for (let at = ptr[own]; at < ptr[own + 1]; at += 1) callback(at);
      return;
    }
    const random = generator(number);
    const other = this.#otherOf(own, random);
    this.#drawn += 1;
    const [seen, mark] = [this.#seen, this.#drawn];
    for (const [at, passage] of [own, other].entries()) {
      const share = SHARES[at];
      for (let pair = ptr[passage]; pair < ptr[passage + 1]; pair += 1) {
        if (random() >= share || seen[idx[pair]] === mark) continue;
        seen[idx[pair]] = mark;
        callback(pair);
      }
    }
  }
}

/** How far a derived dense vector is from the mix of the two that it is made of, which are of length 1. */
const NOISE = 0.5;
/** Vectors are written with as many decimals: a number of 32 bits near 0.05 has them. */
const DECIMALS = 1e8;

/**
 * The dense vector of a derived document, of length 1: that of its passages in the same shares, and some noise drawn by its number, so that no
 * vector is another's copy.
 *
 * @param {number[][]} vectors of the passages
 * @param {number} number of the document
 * @param {[own: number, other: number]} passages
 * @returns {number[]}
 */
export function derivedVector(vectors, number, [own, other]) {
  const [mine, others] = [vectors[own], vectors[other]];
  if (number < vectors.length) return mine;
  const random = generator(number);
  // Numbers between -1 and 1 have a mean square of a third.
  const scale = NOISE * Math.sqrt(3 / mine.length);
  const mixed = mine.map((value, at) => SHARES[0] * value + SHARES[1] * others[at] + scale * (2 * random() - 1));
  const length = Math.hypot(...mixed);
  return mixed.map((value) => Math.round((value / length) * DECIMALS) / DECIMALS);
}

/** For each row, the rows with the same heaviest column, itself among them. */
function alike({ ptr, idx, val, rows }) {
  const byColumn = new Map();
  return Array.from({ length: rows }, (_, row) => {
    let heaviest = ptr[row];
    for (let at = ptr[row]; at < ptr[row + 1]; at += 1) if (val[at] > val[heaviest]) heaviest = at;
    const column = idx[heaviest];
    if (!byColumn.has(column)) byColumn.set(column, []);
    byColumn.get(column).push(row);
    return byColumn.get(column);
  });
}

/** Uniform numbers from 0 to 1, drawn by xorshift32 from a seed of which neighbours have nothing in common. */
function generator(seed) {
  let state = Math.imul(seed + 1, 0x9e3779b1) | 1;
  state ^= state >>> 15;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 4294967296;
  };
}

/** The shortest decimal that is the same f32. */
export function shortest(weight) {
  for (let digits = 6; digits < 10; digits += 1) {
    const short = Number(weight.toPrecision(digits));
    if (Math.fround(short) === weight) return short;
  }
  return weight;
}
