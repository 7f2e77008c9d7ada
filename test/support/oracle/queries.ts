/**
 * Random queries of every kind, and what each means, document by document, by its documentation: slow, and sharing nothing with the
 * server. Each kind is in a file of `kinds/`, alone or with its family, and is found there. Text is scored where the corpus has exact
 * statistics.
 */
import type { Query } from './clauses.js';
import type { Corpus, Doc } from './corpus.js';
import type { Random } from './random.js';
import type { Score } from './words.js';

export interface Kind {
  /** A random body as a request states it; inside other queries it is `depth` deep. */
  readonly make: (random: Random, depth: number) => Query;
  /** The score that it gives a document, without its boost. */
  readonly score: (body: Query, doc: Doc, corpus: Corpus) => Score;
  /** Whether its options, boost included, are below the name of a field. */
  readonly optionsBelowField?: true;
  /** Whether it holds any other queries: a random one is not put inside others. */
  readonly holdsQueries?: true;
  /** Whether it applies its boost itself. */
  readonly boostsItself?: true;
}

export type Kinds = Readonly<Record<string, Kind>>;

const FILES = import.meta.glob<{ readonly kinds: Kinds }>('./kinds/*.ts', { eager: true });
const ALL: Kinds = Object.assign({}, ...Object.values(FILES).map(({ kinds }) => kinds));

export const KINDS = Object.keys(ALL);
const LEAVES = KINDS.filter((kind) => ALL[kind]?.holdsQueries !== true);

function find(name: string): Kind {
  const kind = ALL[name];
  if (!kind) throw new Error(`no file of oracle/kinds knows the query ${name}`);
  return kind;
}

/** A random query of a kind; those inside others are `depth` deep. */
export function query(random: Random, kind: string, depth = 1): Query {
  return { [kind]: find(kind).make(random, depth) };
}

/** A random query of any kind, inside one that is `depth` deep. */
export function any(random: Random, depth: number): Query {
  return query(random, random.pick(depth > 1 ? LEAVES : KINDS), depth + 1);
}

/** The score that a query gives a document. */
export function evaluate(query: Query, doc: Doc, corpus: Corpus): Score {
  const [[name, body] = ['', {}]] = Object.entries(query);
  const kind = find(name);
  const score = kind.score(body, doc, corpus);
  if (score === undefined || kind.boostsItself === true) return score;
  const inner = Object.values(body as object).find((value) => typeof value === 'object' && value !== null);
  return score * (body.boost ?? (kind.optionsBelowField === true ? inner?.boost : undefined) ?? 1);
}

/** Whether what a query finds depends on statistics of tokens, which deleted documents change until a merge. */
export function prunes(query: Query): boolean {
  const body = JSON.stringify(query);
  const hidden = [...body.matchAll(/"wrapper":\{"query":"([^"]+)"/g)].map(([, encoded = '']) =>
    Buffer.from(encoded, 'base64').toString(),
  );
  return [body, ...hidden].some((text) => text.includes('pruning_config'));
}
