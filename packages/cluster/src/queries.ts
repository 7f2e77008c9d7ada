import { illegal, notOverCluster, refusal, unparsable } from './errors.js';
import type { Use } from './field-models.js';
import { type Json, type Member, type Span, elements, isObject, kindAt, members, textOf, valueOf } from './json.js';
import { type Knn, knnOfElasticsearch, readKnn, vectorAsked } from './knn.js';
import { bestOf, pinnedDocuments } from './pinned.js';
import type { Product } from './product.js';
import { Replacements } from './replacements.js';
import { scriptScore } from './script-score.js';
import type { SemanticIndices } from './semantic-fields.js';
import {
  type BoundClause,
  type SemanticAsk,
  around,
  hasSemantic,
  passagesExist,
  passagesKnn,
  passagesSparse,
  refuseOther,
  semanticAsk,
} from './semantic-queries.js';
import { type Sparse, readSparse } from './sparse-clauses.js';
import { type Tokens, sparseQuery } from './sparse-queries.js';

/** A text that a model has to read. */
export interface Text {
  /** The model's own name, or that of an inference endpoint. */
  readonly id: string;
  readonly text: string;
  /** What becomes of it: tokens with weights, or a dense vector. */
  readonly wants: 'tokens' | 'vector';
}

/** What models made of texts. */
export interface Encoded {
  readonly tokens: (text: Text) => Tokens;
  readonly vector: (text: Text) => readonly number[];
  /** Whether a text holds no word: it finds nothing, whatever the model makes of it. */
  readonly isBlank: (text: Text) => boolean;
}

/** Where a sparse clause of a request stands, and what it asks. */
type SparseClause = Span & Sparse;

/** Clauses that hold others, and where. */
export const INSIDE: ReadonlyMap<string, readonly string[]> = new Map([
  ['bool', ['must', 'should', 'filter', 'must_not']],
  ['boosting', ['positive', 'negative']],
  ['constant_score', ['filter']],
  ['dis_max', ['queries']],
  ['function_score', ['query', 'functions']],
  ['has_child', ['query']],
  ['has_parent', ['query']],
  ['nested', ['query']],
  ['pinned', ['organic']],
  ['script_score', ['query']],
]);

/** Whether a query, or one inside it, is about nested objects. */
export function hasNested(query: unknown): boolean {
  if (Array.isArray(query)) return query.some((it) => hasNested(it));
  if (!isObject(query)) return false;
  return Object.entries(query).some(([name, clause]) => {
    if (name === 'nested') return true;
    const within = name === 'knn' ? ['filter'] : (INSIDE.get(name) ?? []);
    const parts = isObject(clause) ? within.map((part) => [part, clause[part]] as const) : [];
    return parts.some(([part, within]) =>
      hasNested(part === 'functions' ? [within].flat().map((it) => (isObject(it) ? it['filter'] : undefined)) : within),
    );
  });
}

/** Clauses of Elasticsearch that a cluster would read in its own way, with its own models, or not at all. */
const REFUSED: ReadonlySet<string> = new Set(['rule']);

/** Clauses that look for passages where their field is a `semantic_text`. */
const OF_PASSAGES: ReadonlySet<string> = new Set(['semantic', 'match', 'sparse_vector', 'text_expansion', 'knn']);

/** Deepest nesting of clauses; the cluster has bounds of its own. */
const MAX_DEPTH = 200;
/** Most clauses in a body. The native engine allows so many for each query. */
export const MAX_CLAUSES = 16_384;
/** Most queries by vectors or passages: the clauses of a query that a cluster allows. */
const MAX_NEAR = 1024;

/** How much of a request's bodies a caller's rights leave to be understood. */
export interface Reading {
  readonly product: Product;
  /** Whether the caller may use some indices only: then no clause may name another one. */
  readonly restricted: boolean;
  /** Hits that the address of a search asks for, which comes before what its body says. */
  readonly size?: number | undefined;
  /** Whether the answer is a page of hits, whose number can still be changed. */
  readonly pages?: boolean;
  /** The indices that are searched, as far as they have `semantic_text` fields. */
  readonly semantic?: SemanticIndices | undefined;
}

/** A clause on a `semantic_text` field, and what comes in its place. */
export interface SemanticClause {
  readonly ask: SemanticAsk;
  readonly span: Span;
  readonly filters: readonly Span[];
  /** Whether it asks about nested objects, which have no such field. */
  readonly isOfObjects: boolean;
  /** What it comes to, once its text is encoded and neighbours are found. */
  build: () => string;
}

/** A `knn` that the cluster gets in another form, and what of the body it takes the place of. */
export interface Near {
  readonly knn: Knn;
  readonly replaces: Span;
  /** The vector that is looked for, once models have read the texts. */
  vector: readonly number[];
  /** Whether it is the vector of a text without any word. */
  findsNothing: boolean;
  /** The clause that finds the neighbours in the cluster, once they are known. */
  text: string;
}

/** Clauses of a text that the cluster does not know, gathered clause by clause, and what comes in their place. */
export class QueryTranslation {
  readonly #text: string;
  readonly #reading: Reading;
  readonly #sparse: SparseClause[] = [];
  readonly #near: Near[] = [];
  readonly #semantic: SemanticClause[] = [];
  /** Texts in place of vectors where the cluster has the clause itself. */
  readonly #builders: { readonly span: Span; readonly field: string; readonly asks: Knn['asks'] }[] = [];
  readonly #rebuilt: Replacements;
  /** Number of clauses that were looked through. */
  #clauses = 0;
  readonly #warnings = new Set<string>();
  /** Hits before the page that is asked for: a `match` on passages finds them, too, as natively. */
  before = 0;
  /** The nested objects that the clauses which are looked through are about. */
  #nestedPath: string | undefined;
  #encoded: Encoded = { tokens: () => ({}), vector: () => [], isBlank: () => false };

  constructor(text: string, reading: Reading) {
    this.#text = text;
    this.#reading = reading;
    this.#rebuilt = new Replacements(text);
  }

  /** Sentences about deprecated forms that the clauses have. */
  get warnings(): readonly string[] {
    return [...this.#warnings];
  }

  /** The texts that models have to read. */
  get texts(): readonly Text[] {
    return this.#asked.flatMap(({ asks }) => ('text' in asks ? [asks.text] : []));
  }

  /** The fields that are searched with texts, and by which ids their models are named. */
  get uses(): readonly Use[] {
    return this.#asked.flatMap(({ field, asks }) => ('text' in asks ? [{ field, id: asks.text.id }] : []));
  }

  /** Neighbours that have to be found before anything else is asked. */
  get near(): readonly Near[] {
    return this.#near;
  }

  /** The clauses on `semantic_text` fields. */
  get semantic(): readonly SemanticClause[] {
    return this.#semantic;
  }

  get #asked(): readonly { readonly field: string; readonly asks: SparseClause['asks'] | Knn['asks'] }[] {
    return [...this.#sparse, ...this.#near.map(({ knn }) => knn), ...this.#builders];
  }

  /**
   * Looks through a query or a list of queries.
   *
   * @param hits that the search wants: what the number of neighbours is taken from
   * @param inside the kind of clause around it that decides what its clauses are about, if any
   * @throws {EngineError} 400 for a clause that is malformed, and for what no cluster can carry out
   */
  query(span: Span, hits: number, depth = 0, inside = ''): void {
    if (depth > MAX_DEPTH)
      throw illegal(`The nested depth of the query exceeds the maximum nested depth [${String(MAX_DEPTH)}]`);
    if (kindAt(this.#text, span) === 'array') {
      for (const one of elements(this.#text, span.start)) this.query(one, hits, depth + 1, inside);
      return;
    }
    if (kindAt(this.#text, span) !== 'object') return;
    for (const clause of members(this.#text, span.start)) {
      const { name } = clause;
      this.#clauses += 1;
      if (this.#clauses > MAX_CLAUSES)
        throw refusal(400, 'too_many_nested_clauses', `more than ${String(MAX_CLAUSES)} clauses`);
      if (REFUSED.has(name)) throw notOverCluster(`query [${name}]`);
      if (this.#passagesClause(clause, span, hits, depth, inside)) continue;
      if (name === 'text_expansion' || name === 'weighted_tokens' || name === 'sparse_vector') {
        const read = readSparse(name, valueOf(this.#text, clause), this.#reading.product);
        if (read.warning !== undefined) this.#warnings.add(read.warning);
        this.#sparseClause({ ...read.clause, start: span.start, end: span.end });
        continue;
      }
      if (name === 'knn') {
        this.#knnClause(clause, span, hits, depth);
        continue;
      }
      if (name === 'pinned') {
        this.#pinned(clause, span, hits, depth, inside);
        continue;
      }
      if (name === 'script_score') this.#scriptScore(clause);
      const parts = INSIDE.get(name);
      if (parts === undefined || kindAt(this.#text, clause) !== 'object') continue;
      const within = name === 'nested' ? name : inside;
      const around = this.#nestedPath;
      if (name === 'nested') this.#nestedPath = pathIn(valueOf(this.#text, clause)) ?? around;
      for (const part of members(this.#text, clause.start)) {
        if (!parts.includes(part.name)) continue;
        if (part.name === 'functions') this.#functions(part, hits, depth, within);
        else this.query(part, hits, depth + 1, within);
      }
      this.#nestedPath = around;
    }
  }

  /**
   * Notes a `knn`.
   *
   * @param replaces what its clause stands in place of
   * @param filters of it that were not looked through before
   */
  knn(knn: Knn, hits: number, replaces: Span = knn.span, filters: readonly Span[] = knn.filters, depth = 0): Near {
    needsModel(knn.asks);
    this.#filters(filters, hits, depth);
    const near: Near = { knn, replaces, vector: [], findsNothing: false, text: '' };
    this.#addNear(near);
    this.#rebuilt.add({ ...replaces, build: () => near.text });
    return near;
  }

  /**
   * Notes a clause on a `semantic_text` field.
   *
   * @param filters of it, which were looked through
   */
  passages(
    ask: SemanticAsk,
    span: Span,
    filters: readonly Span[],
    isPlaced = true,
    isOfObjects = false,
  ): SemanticClause {
    this.#checkNear();
    const clause: SemanticClause = { ask, span, filters, isOfObjects, build: () => '{"match_none":{}}' };
    this.#semantic.push(clause);
    if (isPlaced) this.#rebuilt.add({ ...span, build: () => clause.build() });
    return clause;
  }

  /** Says what clauses on `semantic_text` fields come to, in their order. */
  bind(bound: readonly BoundClause[]): void {
    bound.forEach(({ boost, name, clause: made }, at) => {
      const clause = this.#semantic[at];
      if (clause === undefined || clause.isOfObjects) return;
      const { span, filters, ask } = clause;
      const rescore = rescoreIn(ask.query['knn']);
      const builder = (one: BoundClause['clause']): (() => string) => {
        if (one.kind === 'sparse') return () => passagesSparse(this.#reading.product, one);
        if (one.kind === 'dense') {
          const knn = { ...passagesKnn(this.#reading.semantic, one, span, filters), rescore };
          const near: Near = { knn, replaces: span, vector: one.vector, findsNothing: false, text: '' };
          this.#addNear(near);
          return () => near.text;
        }
        if (one.kind !== 'any') return () => '{"match_none":{}}';
        const parts = one.parts.map((part) => ({ boost: part.boost, build: builder(part.clause) }));
        return () => `{"bool":{"should":[${parts.map((part) => around(part.build(), part.boost, null)).join(',')}]}}`;
      };
      const build = builder(made);
      clause.build = () => around(build(), boost, name);
    });
  }

  /** Whether a clause is on a `semantic_text` field, and was noted. */
  #passagesClause({ name, ...clause }: Member, span: Span, hits: number, depth: number, inside: string): boolean {
    const known = this.#reading.semantic;
    const isOfObjects = inside === 'nested';
    if (name === 'exists' && known !== undefined) return this.#existsClause(clause, span, isOfObjects);
    if (!OF_PASSAGES.has(name) || (known === undefined && name !== 'semantic')) return false;
    const value = valueOf(this.#text, clause);
    const ask = semanticAsk(name, value, name === 'match' ? hits + this.before : hits);
    if (ask === undefined || !hasSemantic(known, ask.field)) {
      if (name === 'semantic') refuseOther(value);
      return false;
    }
    if (name !== 'knn') {
      this.passages(ask, span, [], true, isOfObjects);
      return true;
    }
    const knn = readKnn(this.#text, clause, members(this.#text, clause.start), 'query', hits);
    this.passagesNear(knn, span, knn.filters, hits, depth, isOfObjects);
    return true;
  }

  /** Notes a `knn` on a `semantic_text` field. */
  passagesNear(
    knn: Knn,
    span: Span,
    fresh: readonly Span[],
    hits: number,
    depth?: number,
    isOfObjects = false,
  ): SemanticClause {
    this.#filters(fresh, hits, depth ?? 0);
    const { field, asks, k, candidates, similarity, rescore, boost, name } = knn;
    const given = {
      ...{ field, k, num_candidates: candidates, similarity, rescore_vector: rescore, boost, _name: name },
      ...('text' in asks
        ? { query_vector_builder: { text_embedding: { model_id: asks.text.id, model_text: asks.text.text } } }
        : { query_vector: asks.vector }),
    };
    const query = JSON.parse(JSON.stringify({ knn: given }, (_, it: unknown) => (it === '' ? undefined : it))) as Json;
    // A section stands in no query, and its clause is put where the query is made.
    return this.passages({ field, query, hits }, span, knn.filters, depth !== undefined, isOfObjects);
  }

  /** Notes a `pinned`, which OpenSearch does not have, nor Elasticsearch without one of its modules. */
  #pinned(clause: Span, span: Span, hits: number, depth: number, inside: string): void {
    const value = valueOf(this.#text, clause);
    if (!isObject(value)) return;
    const organic = members(this.#text, clause.start).find(({ name }) => name === 'organic');
    if (organic === undefined) throw unparsable('Required [organic]');
    const documents = pinnedDocuments(value);
    this.query(organic, hits, depth + 1, inside);
    const { boost = 1, _name: name = null } = value;
    const build = (): string =>
      around(bestOf([...documents, this.piece(organic)]), Number(boost), textOf(name) ?? null);
    this.#rebuilt.add({ ...span, build });
  }

  #existsClause(clause: Span, span: Span, isOfObjects: boolean): boolean {
    const value = valueOf(this.#text, clause);
    const field = isObject(value) ? textOf(value['field']) : undefined;
    if (!isObject(value) || field === undefined || !hasSemantic(this.#reading.semantic, field)) return false;
    const { boost = 1, _name: name = null } = value;
    const found = isOfObjects ? '{"match_none":{}}' : passagesExist(this.#reading.semantic, field);
    this.replace(span, around(found, Number(boost), textOf(name) ?? null));
    return true;
  }

  /** Notes a `knn` that Elasticsearch carries out itself, but for a text in it, and a vector that is one. */
  knnOfElasticsearch(span: Span, hits: number, depth = 0): void {
    if (kindAt(this.#text, span) !== 'object') return;
    const parts = members(this.#text, span.start);
    this.#filters(
      parts.filter(({ name }) => name === 'filter'),
      hits,
      depth,
    );
    const value = valueOf(this.#text, span) as Readonly<Record<string, unknown>>;
    const isText = 'query_vector_builder' in value || typeof value['query_vector'] === 'string';
    if (!isText) return;
    const asks = vectorAsked(value['query_vector'], value['query_vector_builder']);
    needsModel(asks);
    this.#checkNear();
    this.#builders.push({ span, field: textOf(value['field']) ?? '', asks });
    const build = (): string =>
      knnOfElasticsearch(this.#text, span, this.#vector(asks), this.#findsNothing(asks), (it) => this.piece(it));
    this.#rebuilt.add({ ...span, build });
  }

  /** Puts a text in place of a piece. */
  replace(span: Span, text: string): void {
    this.#rebuilt.add({ ...span, build: () => text });
  }

  /** Says what models made of the texts. Neighbours can be looked for then. */
  resolve(encoded: Encoded): void {
    this.#encoded = encoded;
    for (const near of this.#near) {
      near.vector = this.#vector(near.knn.asks);
      near.findsNothing = this.#findsNothing(near.knn.asks);
    }
  }

  /** A piece of the text in the cluster's form, as far as its texts are encoded and its neighbours found. */
  piece(span: Span): string {
    return this.#rebuilt.piece(span);
  }

  /** Notes neighbours to be found: each is a search of its own, before the one that was sent. */
  #addNear(near: Near): void {
    this.#checkNear();
    this.#near.push(near);
  }

  /** Refuses one query by vectors or passages more than a search may have: of each, vectors are made and sent. */
  #checkNear(): void {
    if (Math.max(this.#near.length, this.#builders.length + this.#semantic.length) >= MAX_NEAR)
      throw notOverCluster(`a search with more than [${String(MAX_NEAR)}] queries by meaning`);
  }

  #vector(asks: Knn['asks']): readonly number[] {
    return 'text' in asks ? this.#encoded.vector(asks.text) : asks.vector;
  }

  #findsNothing(asks: Knn['asks']): boolean {
    return 'text' in asks && this.#encoded.isBlank(asks.text);
  }

  #sparseClause(clause: SparseClause): void {
    this.#sparse.push(clause);
    const { asks, start, end } = clause;
    const build = (): string => {
      const tokens = 'text' in asks ? this.#encoded.tokens(asks.text) : asks.tokens;
      return sparseQuery(this.#reading.product, clause, tokens);
    };
    this.#rebuilt.add({ start, end, build });
  }

  /** Looks through the filters of a `knn`, which are about documents whatever is around it. */
  #filters(filters: readonly Span[], hits: number, depth: number): void {
    const around = this.#nestedPath;
    this.#nestedPath = undefined;
    for (const filter of filters) this.query(filter, hits, depth + 1, 'knn');
    this.#nestedPath = around;
  }

  #knnClause(clause: Span, whole: Span, hits: number, depth: number): void {
    const value = valueOf(this.#text, clause);
    // OpenSearch has a clause of the same name and another form: with the name of the field.
    if (!isObject(value) || !('field' in value)) return;
    // Inside [nested], Elasticsearch would look for nested objects and passages of the filter among the objects that are compared.
    const { filter } = value;
    const mayAskOthers = filter !== undefined && (this.#reading.semantic !== undefined || hasNested(filter));
    if (this.#reading.product.name === 'Elasticsearch' && (this.#nestedPath === undefined || !mayAskOthers)) {
      this.knnOfElasticsearch(clause, hits, depth);
      return;
    }
    const knn = readKnn(this.#text, clause, members(this.#text, clause.start), 'query', hits);
    this.knn({ ...knn, nested: this.#nestedPath }, hits, whole, knn.filters, depth);
  }

  #scriptScore(clause: Span): void {
    if (this.#reading.product.name !== 'OpenSearch' || kindAt(this.#text, clause) !== 'object') return;
    const build = scriptScore(this.#reading.product, this.#text, clause, (span) => this.piece(span));
    if (build !== undefined) this.#rebuilt.add({ ...clause, build });
  }

  #functions(span: Span, hits: number, depth: number, inside: string): void {
    if (kindAt(this.#text, span) !== 'array') return;
    for (const one of elements(this.#text, span.start)) {
      if (kindAt(this.#text, one) !== 'object') continue;
      const filter = members(this.#text, one.start).find(({ name }) => name === 'filter');
      if (filter !== undefined) this.query(filter, hits, depth + 1, inside);
    }
  }
}

function rescoreIn(knn: unknown): unknown {
  return isObject(knn) ? knn['rescore_vector'] : undefined;
}

function pathIn(nested: unknown): string | undefined {
  return isObject(nested) ? textOf(nested['path']) : undefined;
}

/** @throws {EngineError} 400 for a text without a model, where its field names none */
function needsModel(asks: Knn['asks']): void {
  if ('text' in asks && asks.text.id === '') throw illegal('[model_id] must not be null.');
}
