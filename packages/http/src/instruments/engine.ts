import type { Exposition } from './exposition.js';

type Figures = Readonly<Record<string, number>>;

/** A lane of the engine's workers. */
export interface LaneFigures {
  readonly name: string;
  readonly workers: number;
  readonly active: number;
  readonly waiting: number;
  readonly capacity: number;
  readonly rejected: number;
  readonly completed: number;
  readonly largest: number;
}

/** What the engine says about itself: `crates/admin/src/cluster/instruments.rs`. */
export interface EngineFigures {
  /** By section and name of `_stats`. */
  readonly indices: Figures;
  readonly counts: Figures;
  /** Work that nobody asks for: how often it failed, and for how many indices it fails now. */
  readonly background: readonly { readonly task: string; readonly failures: number; readonly failing: number }[];
  readonly snapshots: Figures;
  readonly lanes: readonly LaneFigures[];
  readonly encoder: Figures;
  readonly filter_cache: Figures;
  readonly memory: Figures;
}

/** What indices did: the name here, the name in `_stats`, and what it counts. Times come in milliseconds. */
const COUNTERS: readonly (readonly [string, string, string])[] = [
  ['indexed_documents_total', 'indexing.index_total', 'Documents indexed.'],
  ['indexing_failures_total', 'indexing.index_failed', 'Documents that could not be indexed.'],
  ['deleted_documents_total', 'indexing.delete_total', 'Documents deleted.'],
  ['indexing_seconds_total', 'indexing.index_time_in_millis', 'Time spent indexing documents.'],
  ['write_batches_total', 'bulk.total_operations', 'Batches of writes, single writes included.'],
  ['write_batch_seconds_total', 'bulk.total_time_in_millis', 'Time spent on batches of writes.'],
  ['write_batch_bytes_total', 'bulk.total_size_in_bytes', 'Bytes of the documents in batches of writes.'],
  ['gets_total', 'get.total', 'Documents looked up by id.'],
  ['get_seconds_total', 'get.time_in_millis', 'Time spent looking documents up by id.'],
  ['search_queries_total', 'search.query_total', 'Searches of one index each, finding hits.'],
  ['search_query_seconds_total', 'search.query_time_in_millis', 'Time spent finding hits.'],
  ['search_query_failures_total', 'search.query_failure', 'Searches of one index that failed.'],
  ['search_fetches_total', 'search.fetch_total', 'Searches of one index that read documents.'],
  ['search_fetch_seconds_total', 'search.fetch_time_in_millis', 'Time spent reading documents.'],
  ['scrolls_total', 'search.scroll_total', 'Scrolls that ended.'],
  ['refreshes_total', 'refresh.total', 'Refreshes.'],
  ['refresh_seconds_total', 'refresh.total_time_in_millis', 'Time spent in refreshes.'],
  ['flushes_total', 'flush.total', 'Flushes.'],
  ['flush_seconds_total', 'flush.total_time_in_millis', 'Time spent in flushes.'],
  ['merges_total', 'merges.total', 'Merges that ended.'],
  ['merge_seconds_total', 'merges.total_time_in_millis', 'Time spent in merges.'],
  ['merged_documents_total', 'merges.total_docs', 'Documents that were merged.'],
  ['merged_bytes_total', 'merges.total_size_in_bytes', 'Bytes that merges read.'],
];

const GAUGES: readonly (readonly [string, string, string])[] = [
  ['documents', 'docs.count', 'Documents that searches see.'],
  ['deleted_documents', 'docs.deleted', 'Documents deleted or replaced that no merge has removed yet.'],
  ['store_bytes', 'store.size_in_bytes', 'Bytes of the files of indices.'],
  ['segments', 'segments.count', 'Segments.'],
  ['unrefreshed_bytes', 'segments.version_map_memory_in_bytes', 'Memory of writes that searches do not see yet.'],
  ['log_operations', 'translog.operations', 'Writes that are in the log and in no durable commit.'],
  ['log_bytes', 'translog.size_in_bytes', 'Bytes of the write-ahead logs.'],
  ['open_search_contexts', 'search.open_contexts', 'Scrolls and points in time that are open, by index.'],
  ['searches_active', 'search.query_current', 'Searches of one index each that are finding hits.'],
  ['merges_active', 'merges.current', 'Merges that run.'],
  ['merging_bytes', 'merges.current_size_in_bytes', 'Bytes that the running merges read.'],
  ['dense_vectors', 'dense_vector.value_count', 'Dense vectors.'],
  ['sparse_vectors', 'sparse_vector.value_count', 'Sparse vectors.'],
  [
    'refresh_lag_seconds',
    'refresh_lag_seconds',
    'Longest time since the last refresh of an index that has writes which searches do not see.',
  ],
];

/** Puts the engine's figures on the page. No label is the name of an index or a model: those are of any number. */
export function exposeEngine(
  page: Exposition,
  { indices, counts, background, snapshots, lanes, encoder, filter_cache: filters, memory }: EngineFigures,
): void {
  page.gauge('sparrow_indices', 'Indices, by state; a broken one could not be opened.', [
    ...['open', 'closed', 'broken'].map((state) => ({ labels: { state }, value: indices[state] ?? 0 })),
  ]);
  page.gauge('sparrow_indices_refusing_writes', 'Open indices that take no writes, by reason: all is well at 0.', [
    { labels: { reason: 'disk_failed' }, value: indices['refusing_writes'] ?? 0 },
    { labels: { reason: 'flood_stage' }, value: indices['flooded'] ?? 0 },
  ]);
  page.counter(
    'sparrow_background_failures_total',
    'Failures of work on indices that nobody asks for, by task.',
    background.map(({ task, failures }) => ({ labels: { task }, value: failures })),
  );
  page.gauge(
    'sparrow_background_failing',
    'Open indices for which the task failed when it was last tried: all is well at 0.',
    background.map(({ task, failing }) => ({ labels: { task }, value: failing })),
  );
  const ended = (end: string, from: string): { labels: { end: string }; value: number } => ({
    labels: { end },
    value: snapshots[from] ?? 0,
  });
  page.counter('sparrow_snapshots_total', 'Snapshots, by what became of them.', [
    ended('success', 'made'),
    ended('partial', 'partial'),
    ended('failed', 'failed'),
  ]);
  page.counter('sparrow_restores_total', 'Restores of snapshots, by what became of them.', [
    ended('success', 'restored'),
    ended('failed', 'restores_failed'),
  ]);
  page.counter(
    'sparrow_snapshot_deletion_failures_total',
    'Deletions of snapshots that failed.',
    snapshots['deletions_failed'] ?? 0,
  );
  page.gauge('sparrow_request_memory_bytes', 'Memory that requests have taken, as it is counted.', memory['used'] ?? 0);
  page.gauge(
    'sparrow_allocated_memory_bytes',
    'Memory that the engine has allocated, for requests or not, up to the limit of all.',
    memory['allocated'],
  );
  page.gauge('sparrow_request_memory_limit_bytes', 'Most that requests may take, all together and each.', [
    { labels: { of: 'all' }, value: memory['total_limit'] ?? 0 },
    { labels: { of: 'each' }, value: memory['request_limit'] ?? 0 },
  ]);
  page.counter('sparrow_request_memory_refusals_total', 'Requests refused for want of memory, by the limit.', [
    { labels: { of: 'all' }, value: memory['total_tripped'] ?? 0 },
    { labels: { of: 'each' }, value: memory['request_tripped'] ?? 0 },
  ]);
  for (const [name, from, help] of GAUGES) page.gauge(`sparrow_${name}`, help, indices[from] ?? 0);
  for (const [name, from, help] of COUNTERS) {
    const value = counts[from] ?? 0;
    page.counter(`sparrow_${name}`, help, from.endsWith('_in_millis') ? value / 1000 : value);
  }
  const byLane = (of: (lane: LaneFigures) => number): { labels: { lane: string }; value: number }[] =>
    lanes.map((lane) => ({ labels: { lane: lane.name }, value: of(lane) }));
  page.gauge(
    'sparrow_lane_workers',
    'Workers of a lane.',
    byLane(({ workers }) => workers),
  );
  page.gauge(
    'sparrow_lane_active',
    'Workers of a lane that are busy.',
    byLane(({ active }) => active),
  );
  page.gauge(
    'sparrow_lane_queue_length',
    'Operations that wait for a worker.',
    byLane(({ waiting }) => waiting),
  );
  page.gauge(
    'sparrow_lane_queue_capacity',
    'Most operations that may wait.',
    byLane(({ capacity }) => capacity),
  );
  page.counter(
    'sparrow_lane_rejected_total',
    'Operations refused as the queue was full.',
    byLane(({ rejected }) => rejected),
  );
  page.counter(
    'sparrow_lane_completed_total',
    'Operations that workers finished.',
    byLane(({ completed }) => completed),
  );

  const of = (name: string): number => encoder[name] ?? 0;
  page.gauge('sparrow_encoder_deployments', 'Deployments of models.', of('deployments'));
  page.gauge('sparrow_encoder_allocations', 'Workers of deployments.', of('allocations'));
  page.gauge('sparrow_encoder_queue_length', 'Texts that wait for a worker.', of('pending'));
  page.gauge('sparrow_encoder_queue_capacity', 'Most texts that may wait.', of('queue_capacity'));
  page.gauge('sparrow_encoder_model_bytes', 'Size of the models that run.', of('model_bytes'));
  page.gauge('sparrow_encoder_cache_bytes', 'Memory of encodings that are kept.', of('cache_bytes'));
  page.counter('sparrow_encoder_texts_total', 'Texts answered, those from the cache included.', of('texts'));
  page.counter('sparrow_encoder_cache_hits_total', 'Texts answered from the cache.', of('cache_hits'));
  page.counter('sparrow_encoder_cache_misses_total', 'Texts that were encoded.', of('texts') - of('cache_hits'));
  page.counter('sparrow_encoder_tokens_total', 'Tokens encoded.', of('tokens'));
  page.counter('sparrow_encoder_batches_total', 'Batches that workers ran.', of('batches'));
  page.counter('sparrow_encoder_busy_seconds_total', 'Time of workers in batches.', of('busy_seconds'));
  page.counter('sparrow_encoder_failures_total', 'Texts that were not encoded, by reason.', [
    { labels: { reason: 'error' }, value: of('errors') },
    { labels: { reason: 'queue_full' }, value: of('rejected') },
    { labels: { reason: 'timeout' }, value: of('timeouts') },
  ]);
  page.counter(
    'sparrow_encoder_truncated_texts_total',
    'Texts of which only the beginning was encoded.',
    of('truncated_texts'),
  );

  page.gauge('sparrow_filter_cache_bytes', 'Memory of what filters match.', filters['bytes'] ?? 0);
  page.counter('sparrow_filter_cache_hits_total', 'Filters that were found, by segment.', filters['hits'] ?? 0);
  page.counter('sparrow_filter_cache_misses_total', 'Filters that were not found, by segment.', filters['misses'] ?? 0);
  page.counter('sparrow_filter_cache_evictions_total', 'Filters dropped for want of room.', filters['evictions'] ?? 0);
}
