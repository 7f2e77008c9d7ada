/** A piece of a request that is passed on as it is: the documentation of the REST interface says what it may hold. */
export type Json = Readonly<Record<string, unknown>>;

/** What an index is made with. */
export interface IndexDefinition {
  /** The fields of documents and their types. */
  readonly mappings?: Json;
  /** Analyzers and everything else that is set for the index. */
  readonly settings?: Json;
  /** Other names of the index. */
  readonly aliases?: Json;
}

/** A search, as the body of `_search`. The named members are the usual ones; all others are passed on as well. */
export interface SearchRequest {
  /** Which documents are found, and their scores. */
  readonly query?: Json;
  /** The nearest neighbours of one vector or several, beside what `query` finds. */
  readonly knn?: Json | readonly Json[];
  /** A tree of searches whose results are fused, in place of `query` and `knn`. */
  readonly retriever?: Json;
  /** Most hits of the answer, 10 if nothing is said. */
  readonly size?: number;
  /** How many of the best hits are left out, for pages. */
  readonly from?: number;
  /** What hits are sorted by, in place of their scores. */
  readonly sort?: unknown;
  /** The `sort` of the last hit of the page before. */
  readonly search_after?: readonly unknown[];
  /** What is computed over all documents that match. */
  readonly aggs?: Json;
  /** Fields whose matching words are shown in their context. */
  readonly highlight?: Json;
  /** Which parts of the documents are in the answer. */
  readonly _source?: boolean | string | readonly string[] | Json;
  /** Fields whose values are in the answer, as the mapping reads them. */
  readonly fields?: readonly (string | Json)[];
  /** The lowest score that a hit may have. */
  readonly min_score?: number;
  /** A filter of hits that aggregations do not see. */
  readonly post_filter?: Json;
  /** Whether all matches are counted, or up to which number. */
  readonly track_total_hits?: boolean | number;
  /** Whether each hit says how its score came about. */
  readonly explain?: boolean;
  /** Whether the answer says what the time was spent on. */
  readonly profile?: boolean;
  /** The time after which the search answers with what it has, such as `500ms`. */
  readonly timeout?: string;
  readonly [member: string]: unknown;
}

/** A document that a search found. */
export interface Hit<Doc> {
  /** The index that the document is in. */
  readonly _index: string;
  /** The document's id. */
  readonly _id: string;
  /** Absent under a sort, unless scores are asked for. */
  readonly _score?: number | null;
  /** The document as it was written; undefined where the search leaves it out. */
  readonly _source: Doc;
  /** The values that the hit is sorted by, for `search_after`. */
  readonly sort?: readonly unknown[];
  /** Values of the fields that were asked for. */
  readonly fields?: Readonly<Record<string, readonly unknown[]>>;
  /** Pieces of text with the words that match, by field. */
  readonly highlight?: Readonly<Record<string, readonly string[]>>;
  readonly [member: string]: unknown;
}

/** The answer to a search. */
export interface SearchResponse<Doc> {
  /** Milliseconds that it took in the engine. */
  readonly took: number;
  /** Whether the time was over before all documents were looked at. */
  readonly timed_out: boolean;
  /** The best matches, and how many there are. */
  readonly hits: {
    /** How many documents match: exactly with `eq`, at least so many with `gte`. Absent without `track_total_hits`. */
    readonly total?: {
      /** The number of documents. */
      readonly value: number;
      /** Whether the number is exact, or a lower bound. */
      readonly relation: 'eq' | 'gte';
    };
    /** The best score, or null where there are no scores. */
    readonly max_score: number | null;
    /** The matches, best first. */
    readonly hits: readonly Hit<Doc>[];
  };
  /** What was computed, by the names of the request. */
  readonly aggregations?: Readonly<Record<string, Json>>;
  readonly [member: string]: unknown;
}

/** What a write answers. */
export interface Written {
  /** The index that was written to. */
  readonly _index: string;
  /** The document's id. */
  readonly _id: string;
  /** The version of the document, one more with each write. */
  readonly _version: number;
  /** What the write did. */
  readonly result: 'created' | 'updated' | 'deleted' | 'noop' | 'not_found';
  /** The number of the write in its index, for `if_seq_no`. */
  readonly _seq_no: number;
  /** The number that goes with `_seq_no`, for `if_primary_term`. */
  readonly _primary_term: number;
}

/** Whether a write can be searched when its call is over: at once, after the next refresh (a second at most), or some time later. */
export type Refresh = boolean | 'wait_for';
