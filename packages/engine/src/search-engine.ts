/**
 * Every operation an engine answers. The HTTP layer's route table maps methods and paths to these names; the Rust engine
 * dispatches on them.
 */
export const OPERATIONS = [
  'create_index',
  'get_index',
  'exists_index',
  'delete_index',
  'get_mapping',
  'put_mapping',
  'get_settings',
  'put_settings',
  'analyze',
  'refresh',
  'flush',
  'count',
  'explain',
  'cat_indices',
  'cat_aliases',
  'cat_help',
  'cat_health',
  'cat_count',
  'cat_shards',
  'cat_segments',
  'cat_master',
  'cat_nodes',
  'cat_allocation',
  'cat_pending_tasks',
  'cat_plugins',
  'cat_templates',
  'cat_component_templates',
  'close_index',
  'open_index',
  'add_block',
  'remove_block',
  'force_merge',
  'clear_cache',
  'resolve_index',
  'get_data_stream',
  'create_data_stream',
  'delete_data_stream',
  'rollover',
  'clone_index',
  'shrink_index',
  'split_index',
  'put_index_template',
  'get_index_template',
  'delete_index_template',
  'simulate_index_template',
  'put_component_template',
  'get_component_template',
  'delete_component_template',
  'put_template',
  'get_template',
  'delete_template',
  'update_aliases',
  'put_alias',
  'get_alias',
  'delete_alias',
  'cluster_health',
  'cluster_state',
  'cluster_figures',
  'instruments',
  'get_cluster_settings',
  'put_cluster_settings',
  'pending_tasks',
  'remote_info',
  'index_stats',
  'index_segments',
  'recovery',
  'node_indices',
  'cat_tasks',
  'cat_thread_pool',
  'cat_recovery',
  'cat_fielddata',
  'cat_nodeattrs',
  'cat_repositories',
  'cat_snapshots',
  'put_repository',
  'get_repository',
  'delete_repository',
  'verify_repository',
  'cleanup_repository',
  'create_snapshot',
  'get_snapshot',
  'snapshot_status',
  'clone_snapshot',
  'delete_snapshot',
  'snapshot_keys',
  'restore_snapshot',
  'cat_trained_models',
  'index_doc',
  'create_doc',
  'get_doc',
  'exists_doc',
  'get_source',
  'delete_doc',
  'update_doc',
  'mget',
  'bulk',
  'search',
  'knn_search',
  'field_caps',
  'terms_enum',
  'validate_query',
  'search_shards',
  'get_field_mapping',
  'term_vectors',
  'multi_term_vectors',
  'msearch',
  'rank_eval',
  'scroll',
  'clear_scroll',
  'open_point_in_time',
  'close_point_in_time',
  'put_pipeline',
  'get_pipeline',
  'delete_pipeline',
  'simulate_pipeline',
  'get_trained_models',
  'ml_info',
  'put_trained_model',
  'delete_trained_model',
  'put_trained_model_definition_part',
  'put_trained_model_vocabulary',
  'put_trained_model_alias',
  'delete_trained_model_alias',
  'start_deployment',
  'stop_deployment',
  'update_deployment',
  'trained_model_stats',
  'infer_trained_model',
  'put_inference',
  'get_inference',
  'delete_inference',
  'update_inference',
  'infer',
  'infer_stream',
  'reindex',
  'update_by_query',
  'delete_by_query',
  'get_task',
  'list_tasks',
  'cancel_task',
  'cancel_tasks',
  'rethrottle',
  'upgrade_index',
  'upgrade_assistance',
  'get_field_models',
  'change_model',
  'switch_model',
  'roll_back_model',
  'drop_model',
] as const;

/** The name of an operation. */
export type Operation = (typeof OPERATIONS)[number];

/** One request to an engine: what to do and with which parameters. The body travels beside it, as bytes. */
export interface EngineRequest {
  /** What to do. */
  readonly op: Operation;
  /** Values taken from the path: `index`, `id`, `pipeline`, `task`, `model`, `inference_id`. */
  readonly path: Readonly<Record<string, string>>;
  /** The query string's parameters that the operation knows. */
  readonly query: Readonly<Record<string, string>>;
  /** The caller's `X-Opaque-Id`, kept in the headers of a task that the request starts. */
  readonly opaqueId?: string | undefined;
  /** The number of the request, which stands in what the engine logs for it. */
  readonly requestId?: string | undefined;
  /** The trace that the request is part of, which stands there too. */
  readonly traceId?: string | undefined;
  /** The action on indices that the operation is, where the caller is restricted. */
  readonly action?: string | undefined;
  /** What a restricted caller may do to which indices, as JSON that the engine reads. Absent: everything. */
  readonly rights?: string | undefined;
  /**
   * Told the indices and aliases that the request came to, its body too, before it is answered or refused: up to 64 names, after
   * date math, patterns as they are.
   */
  readonly named?: ((names: readonly string[]) => void) | undefined;
  /**
   * Whether others are about to ask too. They would have to wait if the engine answered on this thread, as it may do otherwise when
   * a read is short.
   */
  readonly concurrent?: boolean | undefined;
}

/** An engine's answer. The body is ready to be sent. */
export interface EngineReply {
  /** The HTTP status. */
  readonly status: number;
  /** The answer, in JSON or as plain text. */
  readonly body: Uint8Array;
  /** Whether the body is plain text; else it is JSON. */
  readonly text?: boolean;
  /** Sentences about deprecated forms that the request used. */
  readonly warnings?: readonly string[] | undefined;
}

/**
 * Lets a caller stop a request: called once with a function that stops it, which may be used at any time until the function
 * that comes back is called. (An `AbortSignal` costs more than the way of a request to the engine and back.)
 */
export type Cancel = (stop: () => void) => () => void;

/**
 * What the HTTP layer needs of an engine. {@link NativeSearchEngine} is the first implementation; no route knows which one
 * it talks to.
 */
export interface SearchEngine {
  /**
   * Carries out one request. `body` must not be changed until the promise settles. What `cancel` is given asks the engine
   * to stop the work, not only to stop waiting for it.
   *
   * @throws {EngineError} when the engine refuses the request.
   */
  execute(request: EngineRequest, body?: Uint8Array, cancel?: Cancel): Promise<EngineReply>;

  /**
   * Bytes that the process may still allocate by the limit of the settings, not counting bodies and answers on their way; absent
   * where the work is done in another process.
   */
  room?(): number;

  /** Is told how many bytes of bodies are kept for requests now, also for those that have not come whole. */
  keepBodies?(bytes: number): void;

  /** Makes everything durable and releases what the engine holds. */
  close(): Promise<void>;
}
