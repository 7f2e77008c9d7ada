// Any number of documents made of the vectors of fewer passages: 60% of one passage's terms and 40% of another's that has the same heaviest
// term, so that lists of postings grow as those of real documents do. Which terms is drawn by a seed: the first documents are the
// passages themselves, and no later one is another's copy. Nothing is kept of a document, as ten million would take gigabytes.

/** The share of its terms that a document has of its own passage, and of the other one. */
const SHARES = [0.6, 0.4];

export class DerivedDocuments {
  #vectors;
  /** The pair of each term and weight of the passages as JSON writes it. */
  #pairs;
  /** For each passage, those with the same heaviest term. */
  #alike;
  #weights;
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
    this.#pairs = Array.from(this.#weights, (weight, at) => `${JSON.stringify(tokens[vectors.idx[at]])}:${weight}`);
    this.#seen = new Uint32Array(tokens.length);
    this.#alike = alike(vectors);
  }

  /** The tokens of a document as one JSON object. @param {number} number of the document, from 0 */
  json(number) {
    let text = '';
    this.#each(number, (at) => {
      text += text === '' ? this.#pairs[at] : `,${this.#pairs[at]}`;
    });
    return `{${text}}`;
  }

  /** Calls back with each column and weight of a document. */
  each(number, callback) {
    this.#each(number, (at) => callback(this.#vectors.idx[at], this.#weights[at]));
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
    const group = this.#alike[own];
    const other = group[Math.floor(random() * group.length)];
    this.#drawn += 1;
    const mark = this.#drawn;
    for (const [at, passage] of [own, other].entries()) {
      const share = SHARES[at];
      for (let pair = ptr[passage]; pair < ptr[passage + 1]; pair += 1) {
        if (random() >= share || this.#seen[idx[pair]] === mark) continue;
        this.#seen[idx[pair]] = mark;
        callback(pair);
      }
    }
  }
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
