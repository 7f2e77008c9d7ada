/** A piece of a request that is passed on as it is: the documentation of the REST interface says what it may hold. */
export type Json = Readonly<Record<string, unknown>>;

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
