/**
 * What the nodes of an explanation say. The interface gives them as sentences, which are those of Elasticsearch and, over a cluster, of
 * Lucene. Here is the one place that reads them; it has no imports, as it runs in browsers too.
 */

/** A node of the tree by which a score is explained. */
export interface Explanation {
  readonly value: number;
  readonly description: string;
  readonly details?: readonly Explanation[];
}

/** What a node stands for. */
export type Reason =
  /** One of the lists of a fusion, by its place among them; its weight where the scores are probabilities. */
  | { readonly kind: 'list'; readonly at: number; readonly weight?: number }
  /** A word of a text. */
  | { readonly kind: 'word'; readonly field: string; readonly word: string }
  | Token
  /** Several clauses, of which only the best counts. */
  | { readonly kind: 'best' };

/** A token of a sparse vector. */
export interface Token {
  readonly kind: 'token';
  readonly field: string;
  readonly token: string;
  /** How a token is read that is no word itself, such as `-ing` for `##ing`. */
  readonly readable?: string;
  /** The weight of the token in the query, and that in the document. */
  readonly weights: readonly [number, number];
  /** The word of the document that it comes from, if the answer says it. */
  readonly word?: string;
}

const WEIGHTED = /^weighted score: \[[\d.eE+-]+\](?:, result not found)? in query at index \[(\d+)\]/;
const CALIBRATED = /score in query at index \[(\d+)\] with weight \[([\d.]+)\]/;
const TOKEN = /^Linear function on the (.+?) field for the (.+?) feature(?: \((.+?)\))?, computed/s;
const WORD = /^weight\((Synonym\()?(.+?):(.*?)\)? in \d+\)/s;
const SOURCE = /^encoded from the word \[(.*?)\] of field \[/s;

/** What a node stands for; undefined for those that only bring others together. */
export function reasonOf({ description, details = [] }: Explanation): Reason | undefined {
  const weighted = WEIGHTED.exec(description);
  if (weighted !== null) return { kind: 'list', at: Number(weighted[1]) };
  const calibrated = CALIBRATED.exec(description);
  if (calibrated !== null) return { kind: 'list', at: Number(calibrated[1]), weight: Number(calibrated[2]) };
  const token = TOKEN.exec(description);
  if (token !== null) return tokenOf(token, details);
  const word = WORD.exec(description);
  if (word !== null) return { kind: 'word', field: word[2] ?? '', word: word[3] ?? '' };
  return description.startsWith('max of') ? { kind: 'best' } : undefined;
}

function tokenOf([, field = '', token = '', readable]: RegExpExecArray, details: readonly Explanation[]): Token {
  const word = details.map(sourceOf).find((found) => found !== undefined);
  return {
    ...{ kind: 'token', field, token },
    ...(readable === undefined ? {} : { readable }),
    weights: [details[0]?.value ?? 0, details[1]?.value ?? 0],
    ...(word === undefined ? {} : { word }),
  };
}

/** The word of the document that a token was made of. */
function sourceOf({ description, details = [] }: Explanation): string | undefined {
  return SOURCE.exec(description)?.[1] ?? details.map(sourceOf).find((found) => found !== undefined);
}
