/** A piece of a request that is passed on as it is: the documentation of the REST interface says what it may hold. */
export type Json = Readonly<Record<string, unknown>>;

/** What an index is made with. */
export interface IndexDefinition {
  readonly mappings?: Json;
  readonly settings?: Json;
  readonly aliases?: Json;
}

/** A search, as the body of `_search`. The named members are the usual ones; all others are passed on as well. */
export interface SearchRequest {
  readonly query?: Json;
  readonly knn?: Json | readonly Json[];
  readonly retriever?: Json;
  readonly size?: number;
  readonly from?: number;
  readonly sort?: unknown;
  readonly search_after?: readonly unknown[];
  readonly aggs?: Json;
  readonly highlight?: Json;
  readonly _source?: boolean | string | readonly string[] | Json;
  readonly fields?: readonly (string | Json)[];
  readonly min_score?: number;
  readonly post_filter?: Json;
  readonly track_total_hits?: boolean | number;
  readonly explain?: boolean;
  readonly profile?: boolean;
  readonly timeout?: string;
  readonly [member: string]: unknown;
}

/** A document that a search found. */
export interface Hit<Doc> {
  readonly _index: string;
  readonly _id: string;
  /** Absent under a sort, unless scores are asked for. */
  readonly _score?: number | null;
  /** The document as it was written; undefined where the search leaves it out. */
  readonly _source: Doc;
  readonly sort?: readonly unknown[];
  readonly fields?: Readonly<Record<string, readonly unknown[]>>;
  readonly highlight?: Readonly<Record<string, readonly string[]>>;
  readonly [member: string]: unknown;
}

/** The answer to a search. */
export interface SearchResponse<Doc> {
  /** Milliseconds that it took in the engine. */
  readonly took: number;
  readonly timed_out: boolean;
  readonly hits: {
    /** How many documents match: exactly with `eq`, at least so many with `gte`. Absent without `track_total_hits`. */
    readonly total?: { readonly value: number; readonly relation: 'eq' | 'gte' };
    readonly max_score: number | null;
    readonly hits: readonly Hit<Doc>[];
  };
  readonly aggregations?: Readonly<Record<string, Json>>;
  readonly [member: string]: unknown;
}

/** What a write answers. */
export interface Written {
  readonly _index: string;
  readonly _id: string;
  readonly _version: number;
  readonly result: 'created' | 'updated' | 'deleted' | 'noop' | 'not_found';
  readonly _seq_no: number;
  readonly _primary_term: number;
}

/** Whether a write can be searched when its call is over: at once, after the next refresh (a second at most), or some time later. */
export type Refresh = boolean | 'wait_for';
