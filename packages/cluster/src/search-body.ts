import { illegal, notOverCluster, unparsable } from './errors.js';
import type { Use } from './field-models.js';
import { foreignIndices } from './foreign-indices.js';
import {
  type Json,
  type Member,
  type Span,
  elements,
  isObject,
  kindAt,
  members,
  parseRequest,
  valueOf,
  whole,
} from './json.js';
import { type Knn, readKnn } from './knn.js';
import { type Encoded, type Near, QueryTranslation, type Reading, type SemanticClause, type Text } from './queries.js';
import { type Fusion, type Leaf, type Node, readRank, readRetriever, rescoresOf } from './retrievers.js';
import { type Highlighting, highlighting } from './semantic-highlight.js';
import { type BoundClause, type SemanticAsk, around, hasSemantic } from './semantic-queries.js';

/** Sections that a fused search has a meaning for, besides those that make its lists. */
const BESIDE_FUSION: ReadonlySet<string> = new Set([
  ...['from', 'size', 'min_score', 'track_total_hits', '_source', 'fields', 'docvalue_fields', 'stored_fields'],
  'script_fields',
  ...['highlight', 'aggs', 'aggregations', 'timeout', 'version', 'seq_no_primary_term', 'explain', 'profile'],
  // Whether the caller may use a point in time is decided before its search is read.
  ...['suggest', 'indices_boost', 'pit'],
]);

/** Sections that make the lists of a fusion. */
const OF_FUSION: ReadonlySet<string> = new Set(['query', 'knn', 'sub_searches', 'rank', 'retriever', 'post_filter']);

/** Sections that reach nothing but the documents that are searched; a cluster knows others. */
const HARMLESS: ReadonlySet<string> = new Set([
  ...BESIDE_FUSION,
  ...['sort', 'search_after', 'collapse', 'rescore', 'track_scores'],
  ...['terminate_after', 'stats', 'slice', 'max_docs', 'conflicts'],
]);

/** Sections of a search that do not depend on which hits there are behind its page. */
const OF_PAGE: ReadonlySet<string> = new Set([
  ...['knn', 'retriever', 'from', 'size', '_source', 'fields', 'docvalue_fields', 'stored_fields', 'timeout'],
  ...['version', 'seq_no_primary_term', 'track_total_hits'],
]);

/** Up to which character a text is highlighted, which the two products call differently. */
const MAX_OFFSET = { elasticsearch: 'max_analyzed_offset', openSearch: 'max_analyzer_offset' } as const;

/** Hits of a search that does not say how many it wants. */
const DEFAULT_SIZE = 10;

/** The body of a search, looked through for what the cluster does not know. */
export class SearchBody {
  readonly text: string;
  readonly #sections: ReadonlyMap<string, Member>;
  readonly #translation: QueryTranslation;
  readonly #warnings: string[] = [];
  /** The lists to fuse, if the body asks for several. */
  readonly fusion: Fusion | undefined;
  /** Indices that clauses read documents of: who sends the body has to have a right to them, and nobody has one to Sparrow's own. */
  readonly foreign: ReadonlySet<string>;
  /** A lone retriever, which stands for sections of a search. */
  readonly #standard: Leaf | undefined;
  readonly #reading: Reading;
  /** Neighbours that sections or retrievers ask for, as they stand in the body. */
  readonly #near = new Map<Knn, () => string>();
  /** Lists by the passages of a field, which stand nowhere in the body. */
  readonly #passages = new Map<Leaf, SemanticClause>();
  /** How long making vectors of its texts took, in milliseconds. */
  inferred = 0;
  #mostHits: number | undefined;
  #highlighting: Highlighting | undefined;

  /** @throws {EngineError} 400 for what is malformed, and for what cannot be carried out over a cluster */
  constructor(text: string, reading: Reading) {
    this.text = text;
    this.#reading = reading;
    const value = parseRequest(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw unparsable('Expected [START_OBJECT] at the beginning of a search');
    }
    this.#sections = new Map(members(text, whole(text).start).map((member) => [member.name, member]));
    this.#translation = new QueryTranslation(text, reading);
    this.foreign = foreignIndices(value, reading.restricted);
    for (const name of this.#sections.keys()) {
      if (reading.restricted && !HARMLESS.has(name) && !OF_FUSION.has(name)) {
        throw notOverCluster(`[${name}] of a search, for a key that may use some indices only,`);
      }
    }
    const node = this.#lists();
    if (node?.kind === 'fused') {
      this.fusion = node;
      this.#checkBeside(node);
    } else {
      this.#standard = node;
    }
    this.#lookThrough();
  }

  get warnings(): readonly string[] {
    return [...new Set([...this.#warnings, ...this.#translation.warnings])];
  }

  /** Adds what the native engine warned of. */
  warn(warnings: readonly string[]): void {
    this.#warnings.push(...warnings);
  }

  /** The texts that models have to read before anything can be asked. */
  get texts(): readonly Text[] {
    return this.#translation.texts;
  }

  /** The fields that are searched with texts, and by which ids their models are named. */
  get uses(): readonly Use[] {
    return this.#translation.uses;
  }

  /** Neighbours that have to be found before anything else is asked. */
  get near(): readonly Near[] {
    return this.#translation.near;
  }

  /** The clauses on `semantic_text` fields. */
  get semantic(): readonly SemanticAsk[] {
    return this.#translation.semantic.map(({ ask }) => ask);
  }

  /** Says what these come to, in their order. */
  bind(bound: readonly BoundClause[]): void {
    this.#translation.bind(bound);
  }

  /** Says what models made of the texts; neighbours can be looked for after that, and their clauses are the last that is missing. */
  resolve(encoded: Encoded): void {
    this.#translation.resolve(encoded);
  }

  /** The `highlight` section for the passages of hits; undefined where it shows none. */
  get highlightedPassages(): Json | undefined {
    return this.#highlighting?.passages;
  }

  /** What passages are compared with: clauses on `semantic_text` fields, or all documents. */
  get highlightedBy(): readonly Pick<SemanticAsk, 'query' | 'part' | 'hits'>[] {
    const isAll = !this.#sections.has('retriever') && (this.section('query') ?? '"match_all"').includes('"match_all"');
    return [...this.semantic, ...(isAll ? [{ query: { match_all: {} }, hits: this.#size }] : [])];
  }

  /** A section in the cluster's form; undefined if it is not there. */
  section(name: string): string | undefined {
    const member = this.#sections.get(name);
    if (name === 'highlight' && member !== undefined && this.#highlighting?.passages !== undefined)
      return this.#highlightOf(member, this.#highlighting.rest);
    return member === undefined ? undefined : this.piece(member);
  }

  /** The `highlight` section as the cluster gets it, with these of its fields only; undefined if that leaves none. */
  #highlightOf(span: Span, names: readonly string[]): string | undefined {
    if (names.length === 0) return undefined;
    const wanted = new Set(names);
    const { text } = this;
    const pair = ({ nameAt, end }: Member): string => this.piece({ start: nameAt.start, end });
    const parts = members(text, span.start).map((member) => {
      if (member.name !== 'fields') return pair(member);
      const objects = kindAt(text, member) === 'array' ? elements(text, member.start) : [member];
      const fields = objects.flatMap((it) => members(text, it.start)).filter((it) => wanted.has(it.name));
      return `"fields":[${fields.map((field) => `{${pair(field)}}`).join(',')}]`;
    });
    return `{${parts.join(',')}}`;
  }

  /** The value of a section. */
  value(name: string): unknown {
    const member = this.#sections.get(name);
    return member === undefined ? undefined : valueOf(this.text, member);
  }

  /** What a `collapse` shows of the hits of its groups. */
  get innerHits(): readonly Span[] {
    const collapse = this.#sections.get('collapse');
    if (collapse === undefined || kindAt(this.text, collapse) !== 'object') return [];
    const own = members(this.text, collapse.start).filter(({ name }) => name === 'inner_hits');
    return own.flatMap((it) => (kindAt(this.text, it) === 'array' ? elements(this.text, it.start) : [it]));
  }

  /** A piece of the body in the cluster's form. */
  piece(span: Span): string {
    return this.#translation.piece(span);
  }

  /**
   * Whether a body asks for nothing but a page of the best neighbours: then more candidates do no harm, but for the number of hits, which
   * is at most {@link mostHits}.
   */
  takesBest({ knn }: Near): boolean {
    const isPage = [...this.#sections.keys()].every((name) => OF_PAGE.has(name));
    const isAlone = this.#near.has(knn) && knn.similarity === undefined && this.fusion === undefined;
    const hasRoom = this.#from + this.#size <= knn.k && this.#standard?.minScore === undefined;
    const takes = this.#reading.pages === true && isPage && isAlone && hasRoom;
    if (takes) this.#mostHits = knn.k;
    return takes;
  }

  /** How many hits the search has at most; undefined where the cluster counts them. */
  get mostHits(): number | undefined {
    return this.#mostHits;
  }

  /** The whole in the cluster's form, of a body that asks for one list. */
  translated(): string {
    const standard = this.#standard;
    if (standard === undefined && this.#near.size === 0 && this.highlightedPassages === undefined)
      return this.piece(whole(this.text));
    const hasQuery = standard !== undefined || this.#near.size > 0 || this.#sections.has('query');
    const parts = hasQuery ? [...this.#query(standard)] : [];
    if (standard?.minScore !== undefined) parts.push(`"min_score":${String(standard.minScore)}`);
    for (const member of standard?.sections ?? []) parts.push(`${JSON.stringify(member.name)}:${this.piece(member)}`);
    for (const [name, member] of this.#sections) {
      const isOfQuery =
        standard === undefined
          ? name === 'query' || name === 'knn'
          : member.start <= standard.span.start && standard.span.end <= member.end;
      const section = isOfQuery ? undefined : this.section(name);
      if (section !== undefined) parts.push(`${JSON.stringify(name)}:${section}`);
    }
    return `{${parts.join(',')}}`;
  }

  /** The query of a list, with its filters. */
  leafQuery(leaf: Leaf): string {
    const { query, knn, made, filters, name = null } = leaf;
    if (knn !== undefined) return this.#near.get(knn)?.() ?? '{"match_none":{}}';
    const asked = made ?? this.#passages.get(leaf)?.build() ?? (query === undefined ? undefined : this.piece(query));
    if (filters.length === 0) return around(asked ?? '{"match_all":{}}', 1, name);
    const all = filters.map((filter) => this.piece(filter)).join(',');
    const must = asked === undefined ? '' : `"must":[${asked}],`;
    return around(`{"bool":{${must}"filter":[${all}]}}`, 1, name);
  }

  /** The section of the query, of a body that asks for one list; Elasticsearch counts neighbours over all shards in a section only. */
  #query(standard: Leaf | undefined): readonly string[] {
    if (standard !== undefined) {
      const query = this.leafQuery(standard);
      const isSection = standard.knn !== undefined && this.#isElasticsearch && query.startsWith('{"knn":');
      return [isSection ? query.slice(1, -1) : `"query":${query}`];
    }
    const query = this.section('query');
    const should = [...(query === undefined ? [] : [query]), ...[...this.#near.values()].map((text) => text())];
    return [`"query":${should.length === 1 ? (should[0] ?? '') : `{"bool":{"should":[${should.join(',')}]}}`}`];
  }

  get #isElasticsearch(): boolean {
    return this.#reading.product.name === 'Elasticsearch';
  }

  #lists(): Node | undefined {
    const retriever = this.#sections.get('retriever');
    const rank = this.#sections.get('rank');
    const subSearches = this.#sections.get('sub_searches');
    if (retriever !== undefined) {
      const beside = [
        'query',
        'sub_searches',
        'search_after',
        'terminate_after',
        'sort',
        'rescore',
        'min_score',
        'rank',
        'knn',
      ];
      const given = beside.filter((name) => this.#sections.has(name));
      if (given.length > 0) throw validation(`cannot specify [retriever] and [${given.join(', ')}]`);
      const { distinct = [] } = this.#reading.semantic ?? {};
      return readRetriever(this.text, retriever, this.#size, this.#from + this.#size, distinct);
    }
    if (subSearches !== undefined) this.#warnings.push('Deprecated field [sub_searches] used, replaced by [retriever]');
    if (rank === undefined) {
      if (subSearches === undefined) return undefined;
      throw validation('[sub_searches] requires [rank]');
    }
    this.#warnings.push('Deprecated field [rank] used, replaced by [retriever]');
    const queries = this.#sections.has('query') ? [this.#sections.get('query') as Span] : [];
    if (subSearches !== undefined) {
      for (const one of elements(this.text, subSearches.start)) {
        if (kindAt(this.text, one) !== 'object') throw unparsable('Expected [START_OBJECT] in [sub_searches]');
        const inside = members(this.text, one.start);
        const unknown = inside.find(({ name }) => name !== 'query');
        if (unknown !== undefined) throw unparsable(`[sub_searches] unknown field [${unknown.name}]`);
        const query = inside[0];
        if (query === undefined) throw unparsable('Required [query]');
        queries.push(query);
      }
    }
    const sections = this.#knnSections();
    if (queries.length + sections.length < 2)
      throw validation(
        '[rank] requires a minimum of [2] result sets using a combination of sub searches and/or knn searches',
      );
    return readRank(this.text, rank, queries, sections, this.#from + this.#size);
  }

  get #size(): number {
    const size = this.#reading.size ?? this.value('size');
    return typeof size === 'number' && size >= 0 ? size : DEFAULT_SIZE;
  }

  get #from(): number {
    const from = this.value('from');
    return typeof from === 'number' && from >= 0 ? from : 0;
  }

  /** The objects of the section `knn`. */
  get #knnSpans(): readonly Span[] {
    const section = this.#sections.get('knn');
    if (section === undefined) return [];
    return kindAt(this.text, section) === 'array' ? elements(this.text, section.start) : [section];
  }

  #knnSections(): readonly Knn[] {
    return this.#knnSpans.map((span) => {
      if (kindAt(this.text, span) !== 'object') throw unparsable('[knn] has to be an object or an array of objects');
      return readKnn(this.text, span, members(this.text, span.start), 'section', this.#size);
    });
  }

  #checkBeside({ form }: Fusion): void {
    for (const name of this.#sections.keys()) {
      if (form === 'retriever' && name === 'collapse') continue;
      if (!BESIDE_FUSION.has(name) && !OF_FUSION.has(name))
        throw notOverCluster(`[${name}] of a search that fuses lists`);
    }
  }

  /** Looks for clauses in each place of the body where there can be any. */
  #lookThrough(): void {
    const { text } = this;
    this.#translation.before = this.fusion === undefined ? this.#from : 0;
    const look = (span: Span): void => {
      this.#translation.query(span, this.#size);
    };
    for (const [name, member] of this.#sections) {
      if (name === 'query' || name === 'post_filter') look(member);
      else if (name === 'rescore') this.#rescore(member);
      else if (name === 'highlight') this.#highlight(member);
      else if (name === 'aggs' || name === 'aggregations') this.#aggregations(member, 0);
      else if (name === 'sub_searches') {
        for (const one of elements(text, member.start)) members(text, one.start).forEach(look);
      }
    }
    if (this.fusion !== undefined) for (const section of rescoresOf(this.fusion)) this.#rescore(section);
    const leaves =
      this.fusion === undefined ? (this.#standard === undefined ? [] : [this.#standard]) : leavesOf(this.fusion);
    const isOfPassages = this.#knnSpans.some((span) => this.#ofPassages(valueOf(text, span)));
    if (leaves.length === 0 && this.#isElasticsearch && !isOfPassages) {
      for (const span of this.#knnSpans) this.#translation.knnOfElasticsearch(span, this.#size);
    } else if (leaves.length === 0) {
      for (const knn of this.#knnSections()) this.#neighbours(knn, knn.filters, this.#size);
    }
    // A filter of a fusion stands in each of its lists, and once in the body; so do the queries of `rank`.
    const seen = new Set<number>();
    const isRank = this.fusion?.form === 'rank';
    for (const leaf of leaves) {
      const { query, knn, filters, hits, passages } = leaf;
      if (knn !== undefined) {
        const fresh = knn.filters.filter(({ start }) => !seen.has(start));
        fresh.forEach(({ start }) => seen.add(start));
        this.#neighbours(knn, fresh, hits);
        continue;
      }
      if (passages !== undefined) {
        const { field, text: asked, part } = passages;
        const ask = { field, part, hits, query: { semantic: { field, query: asked } } };
        this.#passages.set(leaf, this.#translation.passages(ask, leaf.span, filters, false));
      }
      for (const span of query === undefined || isRank ? filters : [query, ...filters]) {
        if (seen.has(span.start)) continue;
        seen.add(span.start);
        this.#translation.query(span, hits);
      }
    }
  }

  /**
   * Notes neighbours that a section or a retriever asks for.
   *
   * @param fresh filters that were not looked through before
   */
  #neighbours(knn: Knn, fresh: readonly Span[], hits: number): void {
    if (hasSemantic(this.#reading.semantic, knn.field)) {
      const clause = this.#translation.passagesNear(knn, knn.span, fresh, hits);
      this.#near.set(knn, () => clause.build());
      return;
    }
    const near = this.#translation.knn(knn, hits, knn.span, fresh);
    this.#near.set(knn, () => near.text);
  }

  /** Whether an object asks for something of a `semantic_text` field. */
  #ofPassages(value: unknown): boolean {
    return isObject(value) && hasSemantic(this.#reading.semantic, String(value['field']));
  }

  #rescore(span: Span): void {
    const { text } = this;
    for (const one of kindAt(text, span) === 'array' ? elements(text, span.start) : [span]) {
      this.#within(one, 'query', (query) => {
        this.#within(query, 'rescore_query', (it) => {
          this.#translation.query(it, this.#size);
        });
      });
    }
  }

  #highlight(span: Span): void {
    const { text } = this;
    const section = valueOf(text, span);
    const known = this.#reading.semantic;
    if (known !== undefined && isObject(section)) this.#highlighting = highlighting(known, section);
    const own = (it: Span): void => {
      this.#within(it, 'highlight_query', (query) => {
        this.#translation.query(query, this.#size);
      });
      if (this.#isElasticsearch) return;
      this.#within(it, MAX_OFFSET.elasticsearch, ({ nameAt }) => {
        this.#translation.replace(nameAt, JSON.stringify(MAX_OFFSET.openSearch));
      });
    };
    own(span);
    this.#within(span, 'fields', (fields) => {
      const objects = kindAt(text, fields) === 'array' ? elements(text, fields.start) : [fields];
      for (const object of objects.filter((it) => kindAt(text, it) === 'object'))
        members(text, object.start).forEach(own);
    });
  }

  #aggregations(span: Span, depth: number): void {
    const { text } = this;
    if (kindAt(text, span) !== 'object' || depth > 50) return;
    for (const aggregation of members(text, span.start)) {
      if (kindAt(text, aggregation) !== 'object') continue;
      for (const part of members(text, aggregation.start)) {
        if (part.name === 'filter') this.#translation.query(part, this.#size);
        else if (part.name === 'aggs' || part.name === 'aggregations') this.#aggregations(part, depth + 1);
        else if (part.name === 'significant_terms' || part.name === 'significant_text') {
          this.#within(part, 'background_filter', (query) => {
            this.#translation.query(query, this.#size);
          });
        } else if (part.name === 'filters' || part.name === 'adjacency_matrix') {
          this.#within(part, 'filters', (filters) => {
            const all =
              kindAt(text, filters) === 'array' ? elements(text, filters.start) : members(text, filters.start);
            all.forEach((it) => {
              this.#translation.query(it, this.#size);
            });
          });
        }
      }
    }
  }

  #within(span: Span, name: string, use: (member: Member) => void): void {
    if (kindAt(this.text, span) !== 'object') return;
    members(this.text, span.start)
      .filter((member) => member.name === name)
      .forEach(use);
  }
}

/** The lists of a tree, from left to right. */
export function leavesOf(node: Node): readonly Leaf[] {
  return node.kind === 'leaf' ? [node] : node.inputs.flatMap((input) => leavesOf(input.node));
}

function validation(reason: string): Error {
  return illegal(`Validation Failed: 1: ${reason};`);
}
