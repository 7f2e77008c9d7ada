import { illegal, notOverCluster, unparsable } from './errors.js';
import type { Use } from './field-models.js';
import {
  type Edit,
  type Member,
  type Span,
  edited,
  elements,
  kindAt,
  members,
  parseRequest,
  rawOf,
  valueOf,
  whole,
} from './json.js';
import { foreignIndices } from './foreign-indices.js';
import { QueryTranslation, type Reading, type Text, type Tokens } from './queries.js';
import { type Fusion, type Node, readRetriever, readRank } from './retrievers.js';

/** Sections that a fused search has a meaning for, besides those that make its lists. */
const BESIDE_FUSION: ReadonlySet<string> = new Set([
  ...['from', 'size', 'min_score', 'track_total_hits', '_source', 'fields', 'docvalue_fields', 'stored_fields'],
  ...['highlight', 'aggs', 'aggregations', 'timeout', 'version', 'seq_no_primary_term'],
]);

/** Sections that make the lists of a fusion. */
const OF_FUSION: ReadonlySet<string> = new Set(['query', 'sub_searches', 'rank', 'retriever', 'post_filter']);

/** Sections that reach nothing but the documents that are searched; a cluster knows others. */
const HARMLESS: ReadonlySet<string> = new Set([
  ...BESIDE_FUSION,
  ...['sort', 'search_after', 'collapse', 'rescore', 'explain', 'profile', 'suggest', 'track_scores', 'indices_boost'],
  ...['terminate_after', 'stats', 'slice', 'max_docs', 'conflicts'],
]);

/** Sections that Elasticsearch has and OpenSearch has in another form, or not. */
const REFUSED: ReadonlySet<string> = new Set(['knn']);

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
  readonly #standard: Extract<Node, { kind: 'leaf' }> | undefined;
  #edits: readonly Edit[] = [];

  /** @throws {EngineError} 400 for what is malformed, and for what cannot be carried out over a cluster */
  constructor(text: string, reading: Reading) {
    this.text = text;
    const value = parseRequest(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw unparsable('Expected [START_OBJECT] at the beginning of a search');
    }
    this.#sections = new Map(members(text, whole(text).start).map((member) => [member.name, member]));
    this.#translation = new QueryTranslation(text, reading);
    this.foreign = foreignIndices(value, reading.restricted);
    for (const name of this.#sections.keys()) {
      if (REFUSED.has(name) && (reading.product.name === 'OpenSearch' || reading.restricted)) {
        throw notOverCluster(`[${name}] of a search`, 'use sparse vectors');
      }
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
    return [...this.#warnings, ...this.#translation.warnings];
  }

  /** The texts that models have to read before anything can be asked. */
  get texts(): readonly Text[] {
    return this.#translation.texts;
  }

  /** The fields that are searched with texts, and by which ids their models are named. */
  get uses(): readonly Use[] {
    return this.#translation.uses;
  }

  /** Says which tokens the texts are; what is asked for after that is in the cluster's form. */
  resolve(tokensOf: (text: Text) => Tokens): void {
    this.#edits = this.#translation.edits(tokensOf);
  }

  /** A section in the cluster's form; undefined if it is not there. */
  section(name: string): string | undefined {
    const member = this.#sections.get(name);
    return member === undefined ? undefined : this.piece(member);
  }

  /** The value of a section. */
  value(name: string): unknown {
    const member = this.#sections.get(name);
    return member === undefined ? undefined : valueOf(this.text, member);
  }

  /** A piece of the body in the cluster's form. */
  piece(span: Span): string {
    const inside = this.#edits.filter(({ start, end }) => start >= span.start && end <= span.end);
    const shifted = inside.map(({ start, end, text }) => ({ start: start - span.start, end: end - span.start, text }));
    return edited(rawOf(this.text, span), shifted);
  }

  /** The whole in the cluster's form, of a body that asks for one list. */
  translated(): string {
    if (this.#standard === undefined) return edited(this.text, this.#edits);
    const { span, minScore, sections } = this.#standard;
    const parts = [`"query":${this.leafQuery(this.#standard)}`];
    if (minScore !== undefined) parts.push(`"min_score":${String(minScore)}`);
    for (const member of sections) parts.push(`${JSON.stringify(member.name)}:${this.piece(member)}`);
    for (const [name, member] of this.#sections) {
      if (member.start <= span.start && span.end <= member.end) continue;
      parts.push(`${JSON.stringify(name)}:${this.piece(member)}`);
    }
    return `{${parts.join(',')}}`;
  }

  /** The query of a list, with its filters. */
  leafQuery({ query, filters }: Extract<Node, { kind: 'leaf' }>): string {
    const asked = query === undefined ? '{"match_all":{}}' : this.piece(query);
    if (filters.length === 0) return asked;
    const all = filters.map((filter) => this.piece(filter)).join(',');
    return query === undefined ? `{"bool":{"filter":[${all}]}}` : `{"bool":{"must":[${asked}],"filter":[${all}]}}`;
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
      ];
      const given = beside.filter((name) => this.#sections.has(name));
      if (given.length > 0) throw validation(`cannot specify [retriever] and [${given.join(', ')}]`);
      return readRetriever(this.text, retriever, this.#size());
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
    if (queries.length < 2)
      throw validation(
        '[rank] requires a minimum of [2] result sets using a combination of sub searches and/or knn searches',
      );
    return readRank(this.text, rank, queries);
  }

  #size(): number {
    const size = this.value('size');
    return typeof size === 'number' ? size : 10;
  }

  #checkBeside({ form }: Fusion): void {
    for (const name of this.#sections.keys()) {
      if (form === 'retriever' && name === 'post_filter') throw notOverCluster('[post_filter] beside a retriever');
      if (!BESIDE_FUSION.has(name) && !OF_FUSION.has(name))
        throw notOverCluster(`[${name}] of a search that fuses lists`);
    }
  }

  /** Looks for clauses in each place of the body where there can be any. */
  #lookThrough(): void {
    const { text } = this;
    for (const [name, member] of this.#sections) {
      if (name === 'query' || name === 'post_filter') this.#translation.query(member);
      else if (name === 'rescore') this.#rescore(member);
      else if (name === 'highlight') this.#highlight(member);
      else if (name === 'aggs' || name === 'aggregations') this.#aggregations(member, 0);
      else if (name === 'sub_searches') {
        for (const one of elements(text, member.start))
          members(text, one.start).forEach((it) => {
            this.#translation.query(it);
          });
      }
    }
    const leaves =
      this.#standard === undefined
        ? this.fusion?.form === 'retriever'
          ? leavesOf(this.fusion)
          : []
        : [this.#standard];
    // A filter of a fusion stands in each of its lists, and once in the body.
    const seen = new Set<number>();
    for (const { query, filters } of leaves) {
      for (const span of query === undefined ? filters : [query, ...filters]) {
        if (seen.has(span.start)) continue;
        seen.add(span.start);
        this.#translation.query(span);
      }
    }
  }

  #rescore(span: Span): void {
    const { text } = this;
    for (const one of kindAt(text, span) === 'array' ? elements(text, span.start) : [span]) {
      this.#within(one, 'query', (query) => {
        this.#within(query, 'rescore_query', (it) => {
          this.#translation.query(it);
        });
      });
    }
  }

  #highlight(span: Span): void {
    const { text } = this;
    const own = (it: Span): void => {
      this.#within(it, 'highlight_query', (query) => {
        this.#translation.query(query);
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
        if (part.name === 'filter') this.#translation.query(part);
        else if (part.name === 'aggs' || part.name === 'aggregations') this.#aggregations(part, depth + 1);
        else if (part.name === 'filters' || part.name === 'adjacency_matrix') {
          this.#within(part, 'filters', (filters) => {
            const all =
              kindAt(text, filters) === 'array' ? elements(text, filters.start) : members(text, filters.start);
            all.forEach((it) => {
              this.#translation.query(it);
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
export function leavesOf(node: Node): readonly Extract<Node, { kind: 'leaf' }>[] {
  return node.kind === 'leaf' ? [node] : node.inputs.flatMap((input) => leavesOf(input.node));
}

function validation(reason: string): Error {
  return illegal(`Validation Failed: 1: ${reason};`);
}
