import { known, named, object } from './arguments.js';
import { type BulkOptions, type BulkResult, refreshParameter, writeInBatches } from './bulk.js';
import type { CallOptions, Caller } from './caller.js';
import { SparrowError } from './error.js';
import type { CreateIndexRequest as IndexDefinition, Query, SearchRequest } from './requests.generated.js';
import type { Hit, Json, Refresh, SearchResponse, Written } from './types.js';

/** What a change of one document takes. */
export interface ChangeOptions extends CallOptions {
  /** When the write can be found by searches. */
  readonly refresh?: Refresh;
}

/** What a write of one document takes. */
export interface WriteOptions extends ChangeOptions {
  /** The ingest pipeline that the document goes through. */
  readonly pipeline?: string;
}

/** What a walk through documents takes. */
export interface WalkOptions extends CallOptions {
  /** Only documents that match; all of them if nothing is said. */
  readonly query?: Query;
  /** Documents that are read at a time, 1000 if nothing is said. */
  readonly batch?: number;
  /** Which parts of the documents are read. */
  readonly _source?: SearchRequest['_source'];
}

const CALL_OPTIONS: Readonly<Record<keyof CallOptions, true>> = { signal: true };

const WRITE_OPTIONS: Readonly<Record<keyof WriteOptions, true>> = { refresh: true, pipeline: true, signal: true };

/** Changes and deletions go through no pipeline. */
const CHANGE_OPTIONS: Readonly<Record<keyof ChangeOptions, true>> = { refresh: true, signal: true };

const WALK_OPTIONS: Readonly<Record<keyof WalkOptions, true>> = {
  query: true,
  batch: true,
  _source: true,
  signal: true,
};

/** How long a walk may rest between two batches. */
const KEEP_ALIVE = '5m';

const BATCH = 1000;

/**
 * An index whose documents are of one type. Nothing is asked of the engine before a method is called, and nothing checks that what
 * lies in the index is of that type.
 */
export class Index<Doc extends object = Json> {
  readonly #caller: Caller;

  /** @internal */
  constructor(
    caller: Caller,
    /** The name that the index, or an alias of it, has in the engine. */
    readonly name: string,
  ) {
    this.#caller = caller;
  }

  /**
   * Makes the index.
   *
   * @throws {SparrowError} 400 when there is one of that name, or the definition is wrong
   */
  async create(definition: IndexDefinition = {}, options: CallOptions = {}): Promise<void> {
    const { signal } = known('create', options, CALL_OPTIONS);
    await this.#caller.call('create_index', { path: this.#path(), body: definition, signal });
  }

  /** Makes the index unless there is one of that name; says whether it was made. An index that is there stays as it is. */
  async ensure(definition: IndexDefinition = {}, options: CallOptions = {}): Promise<boolean> {
    try {
      await this.create(definition, options);
      return true;
    } catch (error) {
      if (error instanceof SparrowError && error.type === 'resource_already_exists_exception') return false;
      throw error;
    }
  }

  /** Says whether there is an index of that name. */
  async exists(options: CallOptions = {}): Promise<boolean> {
    const { signal } = known('exists', options, CALL_OPTIONS);
    try {
      await this.#caller.call('get_index', { path: this.#path(), signal });
      return true;
    } catch (error) {
      if (error instanceof SparrowError && error.status === 404) return false;
      throw error;
    }
  }

  /** Deletes the index with all its documents; says whether there was one. */
  async drop(options: CallOptions = {}): Promise<boolean> {
    const { signal } = known('drop', options, CALL_OPTIONS);
    try {
      await this.#caller.call('delete_index', { path: this.#path(), signal });
      return true;
    } catch (error) {
      if (error instanceof SparrowError && error.type === 'index_not_found_exception') return false;
      throw error;
    }
  }

  /** Writes a document under an id, in place of one that is there. */
  async put(id: string, document: Doc, options: WriteOptions = {}): Promise<Written> {
    const { refresh, pipeline, signal } = known('put', options, WRITE_OPTIONS);
    const query = { refresh: refreshParameter(refresh), pipeline };
    return this.#caller.call('index_doc', { path: this.#pathTo(id), query, body: document, signal });
  }

  /** Writes a document under an id that the index makes. */
  async add(document: Doc, options: WriteOptions = {}): Promise<Written> {
    const { refresh, pipeline, signal } = known('add', options, WRITE_OPTIONS);
    const query = { refresh: refreshParameter(refresh), pipeline };
    return this.#caller.call('index_doc', { path: this.#path(), query, body: document, signal });
  }

  /**
   * Changes members of a document.
   *
   * @throws {SparrowError} 404 when no document has that id
   */
  async update(id: string, changes: Partial<Doc>, options: ChangeOptions = {}): Promise<Written> {
    const { refresh, signal } = known('update', options, CHANGE_OPTIONS);
    const query = { refresh: refreshParameter(refresh) };
    return this.#caller.call('update_doc', { path: this.#pathTo(id), query, body: { doc: changes }, signal });
  }

  /** The document of an id as it was last written, searchable already or not; undefined if no document has it. */
  async get(id: string, options: CallOptions = {}): Promise<Doc | undefined> {
    const { signal } = known('get', options, CALL_OPTIONS);
    const answer = await this.#unlessMissing<{ found?: boolean; _source?: Doc }>('get_doc', id, {}, signal);
    return answer?._source;
  }

  /** Deletes a document; says whether there was one. */
  async delete(id: string, options: ChangeOptions = {}): Promise<boolean> {
    const { refresh, signal } = known('delete', options, CHANGE_OPTIONS);
    const query = { refresh: refreshParameter(refresh) };
    const answer = await this.#unlessMissing<Written>('delete_doc', id, query, signal);
    return answer?.result === 'deleted';
  }

  /** How many documents there are, or match a query, among those that can be searched. */
  async count(query?: Query, options: CallOptions = {}): Promise<number> {
    const { signal } = known('count', options, CALL_OPTIONS);
    const body = query === undefined ? undefined : { query };
    return (await this.#caller.call<{ count: number }>('count', { path: this.#path(), body, signal })).count;
  }

  /** Lets everything that was written be searched. */
  async refresh(options: CallOptions = {}): Promise<void> {
    const { signal } = known('refresh', options, CALL_OPTIONS);
    await this.#caller.call('refresh', { path: this.#path(), signal });
  }

  /**
   * Writes all documents of a source, in batches. The source is read no faster than its documents are written. Documents that are
   * refused do not stop the others: see `rejected` and `failures` of the result, or `onRejected`.
   *
   * @throws {SparrowError} when a whole batch is refused; whatever the source throws; the reason of the signal
   */
  bulk(source: Iterable<Doc> | AsyncIterable<Doc>, options: BulkOptions<Doc> = {}): Promise<BulkResult> {
    return writeInBatches(this.#caller, this.name, source, options);
  }

  /**
   * Searches the index.
   *
   * @throws {SparrowError} when the request is wrong, or there is no such index
   */
  async search(request: SearchRequest = {}, options: CallOptions = {}): Promise<SearchResponse<Doc>> {
    const { signal } = known('search', options, CALL_OPTIONS);
    object('the request of a search', request, '{ query: { match: { title: "whales" } } }');
    return this.#caller.call('search', { path: this.#path(), body: request, signal });
  }

  /**
   * Walks through all documents, or those of a query, as they are now: what is written meanwhile is not seen. They come in no
   * particular order, as many at a time as `batch` says.
   */
  async *all(options: WalkOptions = {}): AsyncGenerator<Hit<Doc>, void> {
    const { query, batch = BATCH, _source, signal } = known('a walk', options, WALK_OPTIONS);
    const path = this.#path();
    const opened = await this.#caller.call<{ id: string }>('open_point_in_time', {
      path,
      query: { keep_alive: KEEP_ALIVE },
      signal,
    });
    let { id } = opened;
    let after: readonly unknown[] | undefined;
    try {
      for (;;) {
        const answer: SearchResponse<Doc> & { pit_id?: string } = await this.#caller.call('search', {
          body: {
            size: batch,
            query,
            _source,
            pit: { id, keep_alive: KEEP_ALIVE },
            sort: [{ _shard_doc: 'asc' }],
            search_after: after,
            track_total_hits: false,
          },
          signal,
        });
        id = answer.pit_id ?? id;
        const { hits } = answer.hits;
        yield* hits;
        if (hits.length < batch) return;
        after = hits.at(-1)?.sort;
      }
    } finally {
      // Also when the caller leaves early. If it fails, the point in time ends by itself.
      await this.#caller.call('close_point_in_time', { body: { id } }).catch(() => undefined);
    }
  }

  /** Walks through all documents: `for await (const hit of index)`. */
  [Symbol.asyncIterator](): AsyncGenerator<Hit<Doc>, void> {
    return this.all();
  }

  #path(): Readonly<Record<string, string>> {
    return { index: this.name };
  }

  #pathTo(id: string): Readonly<Record<string, string>> {
    return { index: this.name, id: named('the id of a document', id) };
  }

  /** The answer about a document, or undefined if no document has that id. A missing index is an error. */
  async #unlessMissing<T>(
    op: 'get_doc' | 'delete_doc',
    id: string,
    query: Readonly<Record<string, string | undefined>>,
    signal: AbortSignal | undefined,
  ): Promise<T | undefined> {
    try {
      return await this.#caller.call<T>(op, { path: this.#pathTo(id), query, signal });
    } catch (error) {
      if (error instanceof SparrowError && error.status === 404 && error.type === 'unknown') return undefined;
      throw error;
    }
  }
}
