// Generated from the declarations in crates by scripts/lib/declarations.mjs: do not edit.
import type { DeclaredAction, DeclaredOperation } from './operations.js';

/** The name of an operation. */
export type Operation =
  | "add_block"
  | "analyze"
  | "best_passages"
  | "bind_semantic"
  | "bulk"
  | "calibrate_lists"
  | "cancel_reindex"
  | "cancel_task"
  | "cancel_tasks"
  | "cat_aliases"
  | "cat_allocation"
  | "cat_component_templates"
  | "cat_count"
  | "cat_fielddata"
  | "cat_health"
  | "cat_help"
  | "cat_indices"
  | "cat_master"
  | "cat_nodeattrs"
  | "cat_nodes"
  | "cat_pending_tasks"
  | "cat_plugins"
  | "cat_recovery"
  | "cat_repositories"
  | "cat_segments"
  | "cat_shards"
  | "cat_snapshots"
  | "cat_tasks"
  | "cat_templates"
  | "cat_thread_pool"
  | "cat_trained_models"
  | "change_model"
  | "choose_different"
  | "cleanup_repository"
  | "clear_cache"
  | "clear_scroll"
  | "clone_index"
  | "clone_snapshot"
  | "close_index"
  | "close_point_in_time"
  | "cluster_figures"
  | "cluster_health"
  | "cluster_state"
  | "count"
  | "create_data_stream"
  | "create_doc"
  | "create_index"
  | "create_snapshot"
  | "delete_alias"
  | "delete_by_query"
  | "delete_component_template"
  | "delete_data_stream"
  | "delete_doc"
  | "delete_index"
  | "delete_index_template"
  | "delete_inference"
  | "delete_pipeline"
  | "delete_repository"
  | "delete_snapshot"
  | "delete_template"
  | "delete_trained_model"
  | "delete_trained_model_alias"
  | "drop_model"
  | "embed_sparse"
  | "encode_texts"
  | "exists_doc"
  | "exists_index"
  | "explain"
  | "field_caps"
  | "flush"
  | "force_merge"
  | "get_alias"
  | "get_cluster_settings"
  | "get_component_template"
  | "get_data_stream"
  | "get_doc"
  | "get_field_mapping"
  | "get_field_models"
  | "get_index"
  | "get_index_template"
  | "get_inference"
  | "get_mapping"
  | "get_pipeline"
  | "get_reindex"
  | "get_repository"
  | "get_settings"
  | "get_snapshot"
  | "get_source"
  | "get_task"
  | "get_template"
  | "get_trained_models"
  | "index_doc"
  | "index_segments"
  | "index_stats"
  | "infer"
  | "infer_stream"
  | "infer_trained_model"
  | "instruments"
  | "knn_search"
  | "list_reindex"
  | "list_tasks"
  | "make_passages"
  | "mget"
  | "ml_info"
  | "msearch"
  | "multi_term_vectors"
  | "node_indices"
  | "open_index"
  | "open_point_in_time"
  | "pending_tasks"
  | "put_alias"
  | "put_cluster_settings"
  | "put_component_template"
  | "put_index_template"
  | "put_inference"
  | "put_mapping"
  | "put_pipeline"
  | "put_repository"
  | "put_settings"
  | "put_template"
  | "put_trained_model"
  | "put_trained_model_alias"
  | "put_trained_model_definition_part"
  | "put_trained_model_vocabulary"
  | "rank_eval"
  | "recovery"
  | "refresh"
  | "reindex"
  | "remote_info"
  | "remove_block"
  | "resolve_index"
  | "restore_snapshot"
  | "rethrottle"
  | "roll_back_model"
  | "rollover"
  | "score_texts"
  | "scroll"
  | "search"
  | "search_shards"
  | "shrink_index"
  | "simulate_index_template"
  | "simulate_pipeline"
  | "snapshot_keys"
  | "snapshot_status"
  | "split_index"
  | "start_deployment"
  | "step_model_change"
  | "stop_deployment"
  | "stored_passages"
  | "switch_model"
  | "term_vectors"
  | "terms_enum"
  | "trained_model_stats"
  | "update_aliases"
  | "update_by_query"
  | "update_deployment"
  | "update_doc"
  | "update_inference"
  | "upgrade_assistance"
  | "upgrade_index"
  | "validate_query"
  | "verify_repository"
  | "write_passages";

/** The name of an action that privileges are granted for, as the sentence of a refusal gives it. */
export type Action =
  | "indices:admin/create"
  | "indices:admin/auto_create"
  | "indices:admin/get"
  | "indices:admin/delete"
  | "indices:admin/mappings/get"
  | "indices:admin/mapping/put"
  | "indices:monitor/settings/get"
  | "indices:admin/settings/update"
  | "indices:admin/analyze"
  | "indices:admin/aliases"
  | "indices:admin/aliases/get"
  | "indices:admin/close"
  | "indices:admin/open"
  | "indices:admin/block/add"
  | "indices:admin/block/remove"
  | "indices:admin/forcemerge"
  | "indices:admin/cache/clear"
  | "indices:admin/resolve/index"
  | "indices:admin/data_stream/get"
  | "indices:admin/data_stream/create"
  | "indices:admin/data_stream/delete"
  | "indices:admin/rollover"
  | "indices:admin/resize"
  | "indices:admin/ext/model/change"
  | "indices:admin/ext/model/get"
  | "indices:admin/refresh"
  | "indices:admin/flush"
  | "indices:monitor/segments"
  | "indices:monitor/recovery"
  | "indices:monitor/stats"
  | "indices:data/read/search"
  | "indices:data/read/explain"
  | "indices:data/read/msearch"
  | "indices:data/read/rank_eval"
  | "indices:data/read/search/template"
  | "indices:data/read/msearch/template"
  | "indices:data/read/async_search/submit"
  | "indices:data/read/async_search/get"
  | "indices:data/read/async_search/delete"
  | "indices:data/read/scroll"
  | "indices:data/read/scroll/clear"
  | "indices:data/read/open_point_in_time"
  | "indices:data/read/close_point_in_time"
  | "indices:data/read/field_caps"
  | "indices:data/read/xpack/termsenum/list"
  | "indices:data/read/tv"
  | "indices:data/read/mtv"
  | "indices:admin/validate/query"
  | "indices:admin/shards/search_shards"
  | "indices:admin/mappings/fields/get"
  | "indices:data/read/get"
  | "indices:data/read/mget"
  | "indices:data/write/index"
  | "indices:data/write/index:op_type/create"
  | "indices:data/write/index:op_type/index"
  | "indices:data/write/update"
  | "indices:data/write/delete"
  | "indices:data/write/bulk"
  | "indices:data/write/reindex"
  | "indices:data/write/update/byquery"
  | "indices:data/write/delete/byquery"
  | "cluster:monitor/main"
  | "cluster:monitor/health"
  | "cluster:monitor/nodes/stats"
  | "cluster:monitor/nodes/info"
  | "cluster:monitor/nodes/hot_threads"
  | "cluster:monitor/state"
  | "cluster:monitor/stats"
  | "cluster:monitor/settings"
  | "cluster:monitor/task"
  | "cluster:monitor/health_api"
  | "cluster:monitor/xpack/info"
  | "cluster:monitor/xpack/license/get"
  | "cluster:monitor/remote/info"
  | "cluster:admin/script/get"
  | "cluster:admin/script/put"
  | "cluster:admin/script/delete"
  | "cluster:admin/settings/update"
  | "cluster:monitor/task/get"
  | "cluster:monitor/tasks/lists"
  | "cluster:admin/tasks/cancel"
  | "cluster:admin/reindex/rethrottle"
  | "cluster:admin/ingest/pipeline/put"
  | "cluster:admin/ingest/pipeline/get"
  | "cluster:admin/ingest/pipeline/delete"
  | "cluster:admin/ingest/pipeline/simulate"
  | "cluster:monitor/xpack/ml/info/get"
  | "cluster:monitor/xpack/ml/inference/get"
  | "cluster:monitor/xpack/ml/inference/stats/get"
  | "cluster:monitor/xpack/ml/inference/infer"
  | "cluster:admin/xpack/ml/trained_models/deployment/start"
  | "cluster:admin/xpack/ml/trained_models/deployment/stop"
  | "cluster:admin/xpack/ml/trained_models/deployment/update"
  | "cluster:admin/xpack/ml/inference/put"
  | "cluster:admin/xpack/ml/inference/delete"
  | "cluster:admin/xpack/ml/trained_models/part/put"
  | "cluster:admin/xpack/ml/trained_models/vocabulary/put"
  | "cluster:admin/xpack/ml/inference/model_aliases/put"
  | "cluster:admin/xpack/ml/inference/model_aliases/delete"
  | "cluster:admin/xpack/inference/put"
  | "cluster:admin/xpack/inference/update"
  | "cluster:admin/xpack/inference/delete"
  | "cluster:monitor/xpack/inference/get"
  | "cluster:monitor/xpack/inference/post"
  | "indices:admin/index_template/put"
  | "indices:admin/index_template/get"
  | "indices:admin/index_template/delete"
  | "indices:admin/index_template/simulate_index"
  | "cluster:admin/component_template/put"
  | "cluster:admin/component_template/get"
  | "cluster:admin/component_template/delete"
  | "indices:admin/template/put"
  | "indices:admin/template/get"
  | "indices:admin/template/delete"
  | "cluster:admin/repository/get"
  | "cluster:admin/repository/put"
  | "cluster:admin/repository/delete"
  | "cluster:admin/repository/verify"
  | "cluster:admin/repository/_cleanup"
  | "cluster:admin/snapshot/get"
  | "cluster:admin/snapshot/status"
  | "cluster:admin/snapshot/create"
  | "cluster:admin/snapshot/clone"
  | "cluster:admin/snapshot/delete"
  | "cluster:admin/snapshot/restore"
  | "cluster:admin/xpack/upgrade"
  | "cluster:monitor/xpack/upgrade/info"
  | "cluster:admin/xpack/security/api_key/create"
  | "cluster:admin/xpack/security/api_key/get"
  | "cluster:admin/xpack/security/api_key/invalidate"
  | "cluster:admin/xpack/security/api_key/query"
  | "cluster:admin/xpack/security/api_key/update"
  | "cluster:admin/xpack/security/api_key/bulk_update";

/**
 * Every operation an engine answers, as Rust declares it next to the function that carries it out. The HTTP layer's route table maps
 * methods and paths to these names.
 */
export const OPERATIONS: Readonly<Record<Operation, DeclaredOperation>> = {
  "add_block": {"about":"Blocks writes, reads or changes of metadata.","action":"indices:admin/block/add","body":"none","parameters":["timeout","master_timeout","expand_wildcards","allow_no_indices","ignore_unavailable"],"text":false,"stops":false,"reads":false,"shed":false},
  "analyze": {"about":"Shows what terms a text becomes.","action":"indices:admin/analyze","body":"json","parameters":[],"text":false,"stops":true,"reads":true,"shed":false,"holds":"AnalyzeRequest"},
  "best_passages": {"about":"The best passages of hits from an index that is kept elsewhere.","action":"cluster:monitor/xpack/inference/post","body":"json","parameters":[],"text":false,"stops":true,"reads":true,"shed":false},
  "bind_semantic": {"about":"What clauses on `semantic_text` fields come to in indices that are kept elsewhere.","action":"cluster:monitor/xpack/inference/post","body":"json","parameters":[],"text":false,"stops":true,"reads":true,"shed":false},
  "bulk": {"about":"Writes and deletes many documents: lines of actions, each with its document on the next line.","action":"indices:data/write/bulk","body":"lines","parameters":["_source","_source_includes","_source_excludes","pipeline","refresh","routing","timeout","require_alias","wait_for_active_shards","list_executed_pipelines","require_data_stream","include_source_on_error"],"text":false,"stops":true,"reads":false,"shed":false,"holds":"BulkAction"},
  "calibrate_lists": {"about":"How scores in indices that are kept elsewhere become probabilities of relevance.","action":"cluster:monitor/xpack/inference/post","body":"json","parameters":[],"text":false,"stops":true,"reads":true,"shed":false},
  "cancel_reindex": {"about":"Stops a reindex, and waits for its end unless asked not to.","action":"cluster:admin/tasks/cancel","body":"none","parameters":["wait_for_completion"],"text":false,"stops":true,"reads":false,"shed":false},
  "cancel_task": {"about":"Asks a task to stop.","action":"cluster:admin/tasks/cancel","body":"none","parameters":["actions","nodes","parent_task_id","group_by","detailed","timeout","wait_for_completion"],"text":false,"stops":true,"reads":true,"shed":false},
  "cancel_tasks": {"about":"Asks several tasks to stop.","action":"cluster:admin/tasks/cancel","body":"none","parameters":["actions","nodes","parent_task_id","group_by","detailed","timeout","wait_for_completion"],"text":false,"stops":true,"reads":true,"shed":false},
  "cat_aliases": {"about":"A table of aliases.","action":"indices:admin/aliases/get","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout","expand_wildcards","allow_no_indices","ignore_unavailable"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_allocation": {"about":"A table of disk space.","action":"cluster:monitor/nodes/stats","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_component_templates": {"about":"A table of component templates.","action":"cluster:admin/component_template/get","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_count": {"about":"The number of documents.","action":"indices:data/read/search","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout","expand_wildcards","allow_no_indices","ignore_unavailable"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_fielddata": {"about":"A table of the fields of texts with `fielddata`.","action":"cluster:monitor/nodes/stats","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout","fields"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_health": {"about":"Health in one line.","action":"cluster:monitor/health","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout","ts"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_help": {"about":"Names the tables.","action":"cluster:monitor/main","body":"none","parameters":["help","s"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_indices": {"about":"A table of indices.","action":"indices:monitor/stats","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout","expand_wildcards","allow_no_indices","ignore_unavailable","health","pri","include_unloaded_segments"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_master": {"about":"The node, in one line.","action":"cluster:monitor/main","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_nodeattrs": {"about":"An empty table: the node has no attributes.","action":"cluster:monitor/nodes/stats","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_nodes": {"about":"The node with its use of memory and processors.","action":"cluster:monitor/nodes/stats","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout","full_id","include_unloaded_segments"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_pending_tasks": {"about":"An empty table: changes of metadata do not wait.","action":"cluster:monitor/main","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_plugins": {"about":"An empty table: there are no plugins.","action":"cluster:monitor/main","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout","include_bootstrap"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_recovery": {"about":"A table of how indices came up.","action":"indices:monitor/recovery","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout","active_only","detailed","expand_wildcards","ignore_unavailable","allow_no_indices","index"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_repositories": {"about":"A table of snapshot repositories.","action":"cluster:admin/repository/get","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_segments": {"about":"A table of segments.","action":"indices:monitor/stats","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout","expand_wildcards","allow_no_indices","ignore_unavailable"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_shards": {"about":"A table of shards.","action":"indices:monitor/stats","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout","expand_wildcards","allow_no_indices","ignore_unavailable"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_snapshots": {"about":"A table of snapshots.","action":"cluster:admin/snapshot/get","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout","ignore_unavailable"],"text":true,"stops":false,"reads":false,"shed":false},
  "cat_tasks": {"about":"A table of tasks.","action":"cluster:monitor/tasks/lists","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout","actions","detailed","nodes","parent_task_id","timeout","wait_for_completion"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_templates": {"about":"A table of templates.","action":"indices:admin/template/get","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_thread_pool": {"about":"A table of the queues of threads.","action":"cluster:monitor/nodes/stats","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout","size"],"text":true,"stops":false,"reads":true,"shed":false},
  "cat_trained_models": {"about":"A table of models.","action":"cluster:monitor/xpack/ml/inference/get","body":"none","parameters":["format","h","help","v","s","bytes","time","local","master_timeout","allow_no_match","from","size"],"text":true,"stops":false,"reads":true,"shed":false},
  "change_model": {"about":"Changes the model of a field while the index is searched and written.","action":"indices:admin/ext/model/change","body":"json","parameters":["wait_for_completion","requests_per_second"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"ChangeModelRequest"},
  "choose_different": {"about":"Those of some hits from indices that are kept elsewhere that differ from each other.","action":"cluster:monitor/xpack/inference/post","body":"json","parameters":[],"text":false,"stops":true,"reads":true,"shed":false},
  "cleanup_repository": {"about":"Deletes files of a repository that no snapshot needs.","action":"cluster:admin/repository/_cleanup","body":"none","parameters":["master_timeout","timeout"],"text":false,"stops":false,"reads":false,"shed":false},
  "clear_cache": {"about":"Empties caches.","action":"indices:admin/cache/clear","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","fielddata","fields","query","request","index"],"text":false,"stops":false,"reads":false,"shed":false},
  "clear_scroll": {"about":"Ends scrolls.","action":"indices:data/read/scroll/clear","body":"json","parameters":["scroll_id"],"text":false,"stops":false,"reads":true,"shed":false,"holds":"ClearScrollRequest"},
  "clone_index": {"about":"Copies an index.","action":"indices:admin/resize","body":"json","parameters":["timeout","master_timeout","wait_for_active_shards","wait_for_completion","copy_settings","max_docs","dry_run","lazy"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"CopyIndexRequest"},
  "clone_snapshot": {"about":"Copies some indices of a snapshot into another one.","action":"cluster:admin/snapshot/clone","body":"json","parameters":["master_timeout","timeout"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"CloneSnapshotRequest"},
  "close_index": {"about":"Closes indices: they keep their data, and take no memory.","action":"indices:admin/close","body":"none","parameters":["timeout","master_timeout","expand_wildcards","allow_no_indices","ignore_unavailable","wait_for_active_shards"],"text":false,"stops":false,"reads":false,"shed":false},
  "close_point_in_time": {"about":"Ends a point in time.","action":"indices:data/read/close_point_in_time","body":"json","parameters":[],"text":false,"stops":false,"reads":true,"shed":false,"holds":"ClosePointInTimeRequest"},
  "cluster_figures": {"about":"Sums over all indices, for `_cluster/stats`.","action":"cluster:monitor/stats","body":"none","parameters":[],"text":false,"stops":false,"reads":true,"shed":false},
  "cluster_health": {"about":"Whether the cluster is green, yellow or red; can wait until it is so.","action":"cluster:monitor/health","body":"none","parameters":["timeout","master_timeout","expand_wildcards","allow_no_indices","ignore_unavailable","level","local","wait_for_status","wait_for_nodes","wait_for_events","wait_for_active_shards","wait_for_no_relocating_shards","wait_for_no_initializing_shards","return_200_for_cluster_health_timeout"],"text":false,"stops":false,"reads":true,"shed":false},
  "cluster_state": {"about":"All metadata.","action":"cluster:monitor/state","body":"none","parameters":["allow_no_indices","expand_wildcards","flat_settings","ignore_unavailable","local","master_timeout"],"text":false,"stops":false,"reads":true,"shed":false},
  "count": {"about":"Counts documents.","action":"indices:data/read/search","body":"json","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","ignore_throttled","q","df","default_operator","analyzer","analyze_wildcard","lenient","min_score","preference","routing","terminate_after"],"text":false,"stops":true,"reads":true,"shed":true,"holds":"QueryRequest"},
  "create_data_stream": {"about":"Refused: there are no data streams.","action":"indices:admin/data_stream/create","body":"none","parameters":["timeout","master_timeout"],"text":false,"stops":false,"reads":false,"shed":false},
  "create_doc": {"about":"Writes a document, unless its id is taken.","action":"indices:data/write/index","body":"json","parameters":["pipeline","refresh","routing","op_type","if_seq_no","if_primary_term","version","version_type","timeout","require_alias","require_data_stream","wait_for_active_shards","include_source_on_error"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"Document"},
  "create_index": {"about":"Makes an index.","action":"indices:admin/create","body":"json","parameters":["timeout","master_timeout","wait_for_active_shards"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"CreateIndexRequest"},
  "create_snapshot": {"about":"Backs up indices.","action":"cluster:admin/snapshot/create","body":"json","parameters":["master_timeout","wait_for_completion"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"SnapshotRequest"},
  "delete_alias": {"about":"Removes an alias from indices.","action":"indices:admin/aliases","body":"none","parameters":["timeout","master_timeout"],"text":false,"stops":false,"reads":false,"shed":false},
  "delete_by_query": {"about":"Deletes the documents of a query.","action":"indices:data/write/delete/byquery","body":"json","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","q","df","default_operator","analyzer","analyze_wildcard","lenient","conflicts","max_docs","size","from","sort","terminate_after","scroll","scroll_size","search_type","search_timeout","slices","requests_per_second","refresh","timeout","wait_for_active_shards","wait_for_completion","routing","preference","request_cache","stats","version"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"DeleteByQueryRequest"},
  "delete_component_template": {"about":"Deletes component templates.","action":"cluster:admin/component_template/delete","body":"none","parameters":["timeout","master_timeout"],"text":false,"stops":false,"reads":false,"shed":false},
  "delete_data_stream": {"about":"Deletes data streams; there is never one to delete.","action":"indices:admin/data_stream/delete","body":"none","parameters":["expand_wildcards","timeout","master_timeout"],"text":false,"stops":false,"reads":false,"shed":false},
  "delete_doc": {"about":"Deletes a document.","action":"indices:data/write/delete","body":"none","parameters":["refresh","routing","if_seq_no","if_primary_term","version","version_type","timeout","wait_for_active_shards"],"text":false,"stops":false,"reads":false,"shed":false},
  "delete_index": {"about":"Deletes indices with all that is in them.","action":"indices:admin/delete","body":"none","parameters":["timeout","master_timeout","expand_wildcards","allow_no_indices","ignore_unavailable"],"text":false,"stops":false,"reads":false,"shed":false},
  "delete_index_template": {"about":"Deletes index templates.","action":"indices:admin/index_template/delete","body":"none","parameters":["timeout","master_timeout"],"text":false,"stops":false,"reads":false,"shed":false},
  "delete_inference": {"about":"Deletes an inference endpoint.","action":"cluster:admin/xpack/inference/delete","body":"none","parameters":["dry_run","force"],"text":false,"stops":false,"reads":false,"shed":false},
  "delete_pipeline": {"about":"Deletes ingest pipelines.","action":"cluster:admin/ingest/pipeline/delete","body":"none","parameters":["timeout","master_timeout"],"text":false,"stops":false,"reads":false,"shed":false},
  "delete_repository": {"about":"Forgets a snapshot repository; its files stay.","action":"cluster:admin/repository/delete","body":"none","parameters":["master_timeout","timeout"],"text":false,"stops":false,"reads":false,"shed":false},
  "delete_snapshot": {"about":"Deletes snapshots.","action":"cluster:admin/snapshot/delete","body":"none","parameters":["master_timeout","wait_for_completion"],"text":false,"stops":false,"reads":false,"shed":false},
  "delete_template": {"about":"Deletes templates of the older form.","action":"indices:admin/template/delete","body":"none","parameters":["timeout","master_timeout"],"text":false,"stops":false,"reads":false,"shed":false},
  "delete_trained_model": {"about":"Deletes an uploaded model.","action":"cluster:admin/xpack/ml/inference/delete","body":"none","parameters":["force","timeout"],"text":false,"stops":false,"reads":false,"shed":false},
  "delete_trained_model_alias": {"about":"Takes another name of a model away.","action":"cluster:admin/xpack/ml/inference/model_aliases/delete","body":"none","parameters":[],"text":false,"stops":false,"reads":false,"shed":false},
  "drop_model": {"about":"Ends a change: vectors that searches do not read are dropped.","action":"indices:admin/ext/model/change","body":"none","parameters":[],"text":false,"stops":false,"reads":false,"shed":false},
  "embed_sparse": {"about":"Sparse vectors of texts, in the form of text-embeddings-inference.","action":"cluster:monitor/xpack/inference/post","body":"json","parameters":["timeout"],"text":false,"stops":true,"reads":true,"shed":false,"holds":"SparseRequest"},
  "encode_texts": {"about":"What models make of the texts of a search in indices that are kept elsewhere.","action":"cluster:monitor/xpack/inference/post","body":"json","parameters":[],"text":false,"stops":true,"reads":true,"shed":false},
  "exists_doc": {"about":"Is there such a document? 200 or 404.","action":"indices:data/read/get","body":"none","parameters":["_source","_source_includes","_source_excludes","_source_exclude_vectors","realtime","refresh","routing","preference","version","version_type","stored_fields"],"text":false,"stops":false,"reads":true,"shed":true},
  "exists_index": {"about":"Is there such an index? 200 or 404.","action":"indices:admin/get","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","flat_settings","include_defaults","local","master_timeout","features"],"text":false,"stops":false,"reads":true,"shed":false},
  "explain": {"about":"Why a document has its score.","action":"indices:data/read/explain","body":"json","parameters":["q","df","default_operator","analyzer","analyze_wildcard","lenient","_source","_source_includes","_source_excludes","stored_fields","preference","routing"],"text":false,"stops":true,"reads":true,"shed":true,"holds":"QueryRequest"},
  "field_caps": {"about":"Which fields there are, and what can be done with them.","action":"indices:data/read/field_caps","body":"json","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","ignore_throttled","fields","include_unmapped","include_empty_fields","filters","types"],"text":false,"stops":true,"reads":true,"shed":true,"holds":"FieldCapsRequest"},
  "flush": {"about":"Puts everything on the disk that was written, and trims the log.","action":"indices:admin/flush","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","force","wait_if_ongoing"],"text":false,"stops":false,"reads":false,"shed":false},
  "force_merge": {"about":"Merges segments.","action":"indices:admin/forcemerge","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","max_num_segments","only_expunge_deletes","flush","wait_for_completion"],"text":false,"stops":false,"reads":false,"shed":false},
  "get_alias": {"about":"Which aliases there are. 404 with what was found, and `error`, if one is missing.","action":"indices:admin/aliases/get","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","local","master_timeout"],"text":false,"stops":false,"reads":true,"shed":false},
  "get_cluster_settings": {"about":"Settings that can be changed while it runs.","action":"cluster:monitor/settings","body":"none","parameters":["flat_settings","include_defaults","local","master_timeout","timeout"],"text":false,"stops":false,"reads":true,"shed":false},
  "get_component_template": {"about":"Component templates.","action":"cluster:admin/component_template/get","body":"none","parameters":["flat_settings","include_defaults","local","master_timeout"],"text":false,"stops":false,"reads":true,"shed":false},
  "get_data_stream": {"about":"Lists data streams; the list is always empty.","action":"indices:admin/data_stream/get","body":"none","parameters":["expand_wildcards","include_defaults","master_timeout","verbose"],"text":false,"stops":false,"reads":true,"shed":false},
  "get_doc": {"about":"A document, as it was written last.","action":"indices:data/read/get","body":"none","parameters":["_source","_source_includes","_source_excludes","_source_exclude_vectors","realtime","refresh","routing","preference","version","version_type","stored_fields"],"text":false,"stops":false,"reads":true,"shed":true},
  "get_field_mapping": {"about":"Some fields of indices.","action":"indices:admin/mappings/fields/get","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","flat_settings","include_defaults","local","master_timeout","features"],"text":false,"stops":false,"reads":true,"shed":false},
  "get_field_models": {"about":"Which models fill the fields of an index, and how far a change of one is.","action":"indices:admin/ext/model/get","body":"none","parameters":["allow_no_indices","expand_wildcards","ignore_unavailable"],"text":false,"stops":false,"reads":true,"shed":false},
  "get_index": {"about":"Aliases, mapping and settings of indices.","action":"indices:admin/get","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","flat_settings","include_defaults","local","master_timeout","features"],"text":false,"stops":false,"reads":true,"shed":false},
  "get_index_template": {"about":"Index templates.","action":"indices:admin/index_template/get","body":"none","parameters":["flat_settings","include_defaults","local","master_timeout"],"text":false,"stops":false,"reads":true,"shed":false},
  "get_inference": {"about":"Inference endpoints.","action":"cluster:monitor/xpack/inference/get","body":"none","parameters":[],"text":false,"stops":false,"reads":true,"shed":false},
  "get_mapping": {"about":"The fields of indices.","action":"indices:admin/mappings/get","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","flat_settings","include_defaults","local","master_timeout","features"],"text":false,"stops":false,"reads":true,"shed":false},
  "get_pipeline": {"about":"Ingest pipelines.","action":"cluster:admin/ingest/pipeline/get","body":"none","parameters":["master_timeout","summary"],"text":false,"stops":false,"reads":true,"shed":false},
  "get_reindex": {"about":"How far a reindex is; waits for its end if asked to.","action":"cluster:monitor/task/get","body":"none","parameters":["wait_for_completion","timeout"],"text":false,"stops":false,"reads":true,"shed":false},
  "get_repository": {"about":"Snapshot repositories.","action":"cluster:admin/repository/get","body":"none","parameters":["local","master_timeout"],"text":false,"stops":false,"reads":false,"shed":false},
  "get_settings": {"about":"The settings of indices.","action":"indices:monitor/settings/get","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","flat_settings","include_defaults","local","master_timeout","features"],"text":false,"stops":false,"reads":true,"shed":false},
  "get_snapshot": {"about":"Snapshots.","action":"cluster:admin/snapshot/get","body":"none","parameters":["after","from_sort_value","ignore_unavailable","include_repository","index_details","index_names","master_timeout","offset","order","size","slm_policy_filter","sort","verbose"],"text":false,"stops":false,"reads":false,"shed":false},
  "get_source": {"about":"A document without anything around it.","action":"indices:data/read/get","body":"none","parameters":["_source","_source_includes","_source_excludes","_source_exclude_vectors","realtime","refresh","routing","preference","version","version_type","stored_fields"],"text":false,"stops":false,"reads":true,"shed":true},
  "get_task": {"about":"How far a task is; waits for its end if asked to.","action":"cluster:monitor/task/get","body":"none","parameters":["wait_for_completion","timeout","detailed"],"text":false,"stops":false,"reads":true,"shed":false},
  "get_template": {"about":"Templates of the older form.","action":"indices:admin/template/get","body":"none","parameters":["flat_settings","include_defaults","local","master_timeout"],"text":false,"stops":false,"reads":true,"shed":false},
  "get_trained_models": {"about":"Models.","action":"cluster:monitor/xpack/ml/inference/get","body":"none","parameters":["allow_no_match","from","size","decompress_definition","exclude_generated","include","tags"],"text":false,"stops":false,"reads":true,"shed":false},
  "index_doc": {"about":"Writes a document, in place of the one of its id.","action":"indices:data/write/index","body":"json","parameters":["pipeline","refresh","routing","op_type","if_seq_no","if_primary_term","version","version_type","timeout","require_alias","require_data_stream","wait_for_active_shards","include_source_on_error"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"Document"},
  "index_segments": {"about":"The segments of indices.","action":"indices:monitor/segments","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","verbose"],"text":false,"stops":false,"reads":true,"shed":false},
  "index_stats": {"about":"What indices hold, and what was done with them.","action":"indices:monitor/stats","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","completion_fields","fielddata_fields","fields","forbid_closed_indices","groups","include_segment_file_sizes","include_unloaded_segments","level"],"text":false,"stops":false,"reads":true,"shed":false},
  "infer": {"about":"Encodes texts, or scores them for a question.","action":"cluster:monitor/xpack/inference/post","body":"json","parameters":["timeout"],"text":false,"stops":true,"reads":true,"shed":false,"holds":"InferenceRequest"},
  "infer_stream": {"about":"Refused: no model here answers bit by bit.","action":"cluster:monitor/xpack/inference/post","body":"json","parameters":["timeout"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"InferenceRequest"},
  "infer_trained_model": {"about":"Runs a model on texts.","action":"cluster:monitor/xpack/ml/inference/infer","body":"json","parameters":["timeout"],"text":false,"stops":true,"reads":true,"shed":false,"holds":"InferTrainedModelRequest"},
  "instruments": {"about":"What the engine counts, for `_nodes/stats` and `/metrics`.","action":"cluster:monitor/nodes/stats","body":"none","parameters":[],"text":false,"stops":false,"reads":true,"shed":false},
  "knn_search": {"about":"The older form of a search for neighbours.","action":"indices:data/read/search","body":"json","parameters":["routing"],"text":false,"stops":true,"reads":true,"shed":true,"holds":"KnnSearchRequest"},
  "list_reindex": {"about":"The reindexes that run.","action":"cluster:monitor/tasks/lists","body":"none","parameters":["detailed"],"text":false,"stops":false,"reads":true,"shed":false},
  "list_tasks": {"about":"What runs.","action":"cluster:monitor/tasks/lists","body":"none","parameters":["actions","nodes","parent_task_id","group_by","detailed","timeout","wait_for_completion","master_timeout"],"text":false,"stops":false,"reads":true,"shed":false},
  "make_passages": {"about":"The passages of documents whose index is kept elsewhere.","action":"cluster:monitor/xpack/inference/post","body":"json","parameters":[],"text":false,"stops":true,"reads":false,"shed":false},
  "mget": {"about":"Several documents.","action":"indices:data/read/mget","body":"json","parameters":["_source","_source_includes","_source_excludes","realtime","refresh","routing","preference","stored_fields"],"text":false,"stops":true,"reads":true,"shed":true,"holds":"MultiGetRequest"},
  "ml_info": {"about":"What models may use.","action":"cluster:monitor/xpack/ml/info/get","body":"none","parameters":[],"text":false,"stops":false,"reads":true,"shed":false},
  "msearch": {"about":"Several searches: lines of headers, each with its search on the next line.","action":"indices:data/read/msearch","body":"lines","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","ignore_throttled","max_concurrent_searches","max_concurrent_shard_requests","pre_filter_shard_size","routing","search_type","typed_keys","rest_total_hits_as_int","ccs_minimize_roundtrips","include_named_queries_score"],"text":false,"stops":true,"reads":true,"shed":true,"holds":"SearchLine"},
  "multi_term_vectors": {"about":"The terms of several documents.","action":"indices:data/read/mtv","body":"json","parameters":["ids","fields","field_statistics","term_statistics","offsets","positions","payloads","realtime","routing","preference","version","version_type"],"text":false,"stops":true,"reads":true,"shed":false,"holds":"MultiTermVectorsRequest"},
  "node_indices": {"about":"Sums over indices, for `_nodes/stats`.","action":"cluster:monitor/nodes/stats","body":"none","parameters":[],"text":false,"stops":false,"reads":true,"shed":false},
  "open_index": {"about":"Opens closed indices.","action":"indices:admin/open","body":"none","parameters":["timeout","master_timeout","expand_wildcards","allow_no_indices","ignore_unavailable","wait_for_active_shards"],"text":false,"stops":false,"reads":false,"shed":false},
  "open_point_in_time": {"about":"Keeps what indices hold now, to be searched later.","action":"indices:data/read/open_point_in_time","body":"json","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","ignore_throttled","keep_alive","preference","routing","allow_partial_search_results","max_concurrent_shard_requests"],"text":false,"stops":false,"reads":true,"shed":false,"holds":"OpenPointInTimeRequest"},
  "pending_tasks": {"about":"Lists the changes of metadata that wait; on one server there is never one.","action":"cluster:monitor/task","body":"none","parameters":["local","master_timeout"],"text":false,"stops":false,"reads":true,"shed":false},
  "put_alias": {"about":"Adds an alias to indices.","action":"indices:admin/aliases","body":"json","parameters":["timeout","master_timeout"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"PutAliasRequest"},
  "put_cluster_settings": {"about":"Changes settings while it runs.","action":"cluster:admin/settings/update","body":"json","parameters":["flat_settings","master_timeout","timeout"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"ClusterSettingsRequest"},
  "put_component_template": {"about":"A part that index templates are made of.","action":"cluster:admin/component_template/put","body":"json","parameters":["create","cause","master_timeout","timeout"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"ComponentTemplate"},
  "put_index_template": {"about":"Defines what new indices get whose names match.","action":"indices:admin/index_template/put","body":"json","parameters":["create","cause","master_timeout"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"IndexTemplate"},
  "put_inference": {"about":"Makes an inference endpoint: a name for a model, a task, and how texts are cut.","action":"cluster:admin/xpack/inference/put","body":"json","parameters":["timeout"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"InferenceEndpointRequest"},
  "put_mapping": {"about":"Adds fields to an index.","action":"indices:admin/mapping/put","body":"json","parameters":["timeout","master_timeout","expand_wildcards","allow_no_indices","ignore_unavailable","write_index_only"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"Mapping"},
  "put_pipeline": {"about":"Makes an ingest pipeline.","action":"cluster:admin/ingest/pipeline/put","body":"json","parameters":["timeout","master_timeout","if_version"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"Pipeline"},
  "put_repository": {"about":"Makes a snapshot repository.","action":"cluster:admin/repository/put","body":"json","parameters":["master_timeout","timeout","verify"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"Repository"},
  "put_settings": {"about":"Changes the settings of indices.","action":"indices:admin/settings/update","body":"json","parameters":["timeout","master_timeout","expand_wildcards","allow_no_indices","ignore_unavailable","flat_settings","preserve_existing"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"Settings"},
  "put_template": {"about":"The older form of an index template.","action":"indices:admin/template/put","body":"json","parameters":["create","cause","master_timeout","order"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"OldTemplate"},
  "put_trained_model": {"about":"Announces a model whose parts follow.","action":"cluster:admin/xpack/ml/inference/put","body":"json","parameters":["defer_definition_decompression","wait_for_completion"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"TrainedModelRequest"},
  "put_trained_model_alias": {"about":"Gives a model another name.","action":"cluster:admin/xpack/ml/inference/model_aliases/put","body":"none","parameters":["reassign"],"text":false,"stops":false,"reads":false,"shed":false},
  "put_trained_model_definition_part": {"about":"Uploads a part of a model.","action":"cluster:admin/xpack/ml/trained_models/part/put","body":"json","parameters":[],"text":false,"stops":false,"reads":false,"shed":false,"holds":"DefinitionPartRequest"},
  "put_trained_model_vocabulary": {"about":"Uploads the words of a model.","action":"cluster:admin/xpack/ml/trained_models/vocabulary/put","body":"json","parameters":[],"text":false,"stops":false,"reads":false,"shed":false,"holds":"VocabularyRequest"},
  "rank_eval": {"about":"Measures ranked lists against ratings.","action":"indices:data/read/rank_eval","body":"json","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","ignore_throttled","search_type"],"text":false,"stops":true,"reads":true,"shed":true,"holds":"RankEvalRequest"},
  "recovery": {"about":"How indices were recovered.","action":"indices:monitor/recovery","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","active_only","detailed"],"text":false,"stops":false,"reads":true,"shed":false},
  "refresh": {"about":"Makes everything searchable that was written.","action":"indices:admin/refresh","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable"],"text":false,"stops":false,"reads":false,"shed":false},
  "reindex": {"about":"Copies documents from index to index, through a pipeline if one is named.","action":"indices:data/write/reindex","body":"json","parameters":["refresh","requests_per_second","scroll","slices","max_docs","timeout","wait_for_active_shards","wait_for_completion","require_alias","dry_run","ignore_unavailable","allow_no_indices","expand_wildcards"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"ReindexRequest"},
  "remote_info": {"about":"Lists other clusters that are connected; there is never one.","action":"cluster:monitor/remote/info","body":"none","parameters":[],"text":false,"stops":false,"reads":true,"shed":false},
  "remove_block": {"about":"Ends a block of writes, reads or changes of metadata.","action":"indices:admin/block/remove","body":"none","parameters":["timeout","master_timeout","expand_wildcards","allow_no_indices","ignore_unavailable"],"text":false,"stops":false,"reads":false,"shed":false},
  "resolve_index": {"about":"What names stand for.","action":"indices:admin/resolve/index","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable"],"text":false,"stops":false,"reads":true,"shed":false},
  "restore_snapshot": {"about":"Brings indices of a snapshot back.","action":"cluster:admin/snapshot/restore","body":"json","parameters":["master_timeout","wait_for_completion"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"RestoreRequest"},
  "rethrottle": {"about":"Lets a running job go faster or slower.","action":"cluster:admin/reindex/rethrottle","body":"none","parameters":["requests_per_second","group_by"],"text":false,"stops":false,"reads":false,"shed":false},
  "roll_back_model": {"about":"Lets searches read the vectors of the old model again.","action":"indices:admin/ext/model/change","body":"none","parameters":[],"text":false,"stops":false,"reads":false,"shed":false},
  "rollover": {"about":"Lets an alias point to a new index, if conditions hold.","action":"indices:admin/rollover","body":"json","parameters":["timeout","master_timeout","wait_for_active_shards","wait_for_completion","copy_settings","max_docs","dry_run","lazy"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"RolloverRequest"},
  "score_texts": {"about":"How a reranker scores the texts of hits from indices that are kept elsewhere.","action":"cluster:monitor/xpack/inference/post","body":"json","parameters":[],"text":false,"stops":true,"reads":true,"shed":false},
  "scroll": {"about":"The next page of a scroll.","action":"indices:data/read/scroll","body":"json","parameters":["scroll","scroll_id","rest_total_hits_as_int"],"text":false,"stops":true,"reads":true,"shed":true,"holds":"ScrollRequest"},
  "search": {"about":"Searches.","action":"indices:data/read/search","body":"json","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","ignore_throttled","q","df","default_operator","analyzer","analyze_wildcard","lenient","_source","_source_includes","_source_excludes","_source_exclude_vectors","from","size","min_score","track_total_hits","track_scores","rest_total_hits_as_int","typed_keys","preference","routing","search_type","timeout","terminate_after","allow_partial_search_results","batched_reduce_size","max_concurrent_shard_requests","pre_filter_shard_size","request_cache","ccs_minimize_roundtrips","version","seq_no_primary_term","sort","explain","stored_fields","docvalue_fields","scroll","stats","include_named_queries_score"],"text":false,"stops":true,"reads":true,"shed":true,"holds":"SearchRequest"},
  "search_shards": {"about":"Where a search would run.","action":"indices:admin/shards/search_shards","body":"none","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","ignore_throttled","local","preference","routing","master_timeout"],"text":false,"stops":false,"reads":true,"shed":false},
  "shrink_index": {"about":"Copies an index into one of fewer shards.","action":"indices:admin/resize","body":"json","parameters":["timeout","master_timeout","wait_for_active_shards","wait_for_completion","copy_settings","max_docs","dry_run","lazy"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"CopyIndexRequest"},
  "simulate_index_template": {"about":"Shows what a new index would get.","action":"indices:admin/index_template/simulate_index","body":"json","parameters":["create","cause","master_timeout","include_defaults","flat_settings"],"text":false,"stops":false,"reads":true,"shed":false,"holds":"IndexTemplate"},
  "simulate_pipeline": {"about":"Shows what a pipeline makes of documents, and writes nothing.","action":"cluster:admin/ingest/pipeline/simulate","body":"json","parameters":["verbose"],"text":false,"stops":true,"reads":true,"shed":false,"holds":"SimulateRequest"},
  "snapshot_keys": {"about":"The keys that a snapshot holds.","action":"cluster:admin/snapshot/restore","body":"json","parameters":[],"text":false,"stops":false,"reads":false,"shed":false},
  "snapshot_status": {"about":"How far snapshots are, and how large.","action":"cluster:admin/snapshot/status","body":"none","parameters":["ignore_unavailable","master_timeout"],"text":false,"stops":false,"reads":false,"shed":false},
  "split_index": {"about":"Copies an index into one of more shards.","action":"indices:admin/resize","body":"json","parameters":["timeout","master_timeout","wait_for_active_shards","wait_for_completion","copy_settings","max_docs","dry_run","lazy"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"CopyIndexRequest"},
  "start_deployment": {"about":"Deploys a model.","action":"cluster:admin/xpack/ml/trained_models/deployment/start","body":"json","parameters":["number_of_allocations","threads_per_allocation","queue_capacity","cache_size","priority","deployment_id","timeout","wait_for"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"StartDeploymentRequest"},
  "step_model_change": {"about":"A step of the change of a model in an index that is kept elsewhere.","action":"cluster:monitor/xpack/inference/post","body":"json","parameters":[],"text":false,"stops":true,"reads":false,"shed":false},
  "stop_deployment": {"about":"Stops the deployment of a model.","action":"cluster:admin/xpack/ml/trained_models/deployment/stop","body":"json","parameters":["allow_no_match","force","timeout","finish_pending_work"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"StopDeploymentRequest"},
  "stored_passages": {"about":"The passages of documents as they are stored, for an index that is kept elsewhere.","action":"indices:data/read/mget","body":"json","parameters":[],"text":false,"stops":false,"reads":true,"shed":false},
  "switch_model": {"about":"Lets searches read the vectors of the new model.","action":"indices:admin/ext/model/change","body":"none","parameters":[],"text":false,"stops":false,"reads":false,"shed":false},
  "term_vectors": {"about":"The terms of a document.","action":"indices:data/read/tv","body":"json","parameters":["fields","field_statistics","term_statistics","offsets","positions","payloads","realtime","routing","preference","version","version_type"],"text":false,"stops":true,"reads":true,"shed":false,"holds":"TermVectorsRequest"},
  "terms_enum": {"about":"The terms of a keyword field that begin with a text.","action":"indices:data/read/xpack/termsenum/list","body":"json","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","ignore_throttled"],"text":false,"stops":true,"reads":true,"shed":true,"holds":"TermsEnumRequest"},
  "trained_model_stats": {"about":"What models do: texts, queues, times.","action":"cluster:monitor/xpack/ml/inference/stats/get","body":"none","parameters":["allow_no_match","from","size"],"text":false,"stops":false,"reads":true,"shed":false},
  "update_aliases": {"about":"Changes several aliases in one step.","action":"indices:admin/aliases","body":"json","parameters":["timeout","master_timeout"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"UpdateAliasesRequest"},
  "update_by_query": {"about":"Writes the documents of a query again, through a pipeline if one is named.","action":"indices:data/write/update/byquery","body":"json","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","q","df","default_operator","analyzer","analyze_wildcard","lenient","conflicts","max_docs","size","from","sort","terminate_after","scroll","scroll_size","search_type","search_timeout","slices","requests_per_second","refresh","timeout","wait_for_active_shards","wait_for_completion","routing","preference","request_cache","stats","version","pipeline","version_type"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"UpdateByQueryRequest"},
  "update_deployment": {"about":"Changes how many texts a model reads at once.","action":"cluster:admin/xpack/ml/trained_models/deployment/update","body":"json","parameters":["number_of_allocations","timeout"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"UpdateDeploymentRequest"},
  "update_doc": {"about":"Changes members of a document.","action":"indices:data/write/update","body":"json","parameters":["_source","_source_includes","_source_excludes","refresh","routing","if_seq_no","if_primary_term","retry_on_conflict","timeout","lang","require_alias","wait_for_active_shards","include_source_on_error"],"text":false,"stops":false,"reads":false,"shed":false,"holds":"UpdateRequest"},
  "update_inference": {"about":"Changes an inference endpoint.","action":"cluster:admin/xpack/inference/update","body":"json","parameters":[],"text":false,"stops":false,"reads":false,"shed":false,"holds":"UpdateInferenceRequest"},
  "upgrade_assistance": {"about":"Which indices are of an older format.","action":"cluster:monitor/xpack/upgrade/info","body":"none","parameters":["allow_no_indices","expand_wildcards","ignore_unavailable"],"text":false,"stops":false,"reads":true,"shed":false},
  "upgrade_index": {"about":"Rewrites an index of an older format.","action":"cluster:admin/xpack/upgrade","body":"none","parameters":["wait_for_completion"],"text":false,"stops":false,"reads":false,"shed":false},
  "validate_query": {"about":"Is it a query?","action":"indices:admin/validate/query","body":"json","parameters":["expand_wildcards","allow_no_indices","ignore_unavailable","ignore_throttled","q","df","default_operator","analyzer","analyze_wildcard","lenient","explain","rewrite","all_shards"],"text":false,"stops":true,"reads":true,"shed":true,"holds":"QueryRequest"},
  "verify_repository": {"about":"Can the repository be written?","action":"cluster:admin/repository/verify","body":"none","parameters":["master_timeout","timeout"],"text":false,"stops":false,"reads":false,"shed":false},
  "write_passages": {"about":"Writes documents with passages that were made before.","action":"indices:data/write/bulk","body":"json","parameters":[],"text":false,"stops":false,"reads":false,"shed":false},
};

/** Every action that privileges are granted for. */
export const ACTIONS: Readonly<Record<Action, DeclaredAction>> = {
  "indices:admin/create": {"scope":"index","privileges":["create_index","manage","all"],"composite":false},
  "indices:admin/auto_create": {"scope":"index","privileges":["auto_configure","create_index","manage","all"],"composite":false},
  "indices:admin/get": {"scope":"index","privileges":["view_index_metadata","manage","all"],"composite":false},
  "indices:admin/delete": {"scope":"index","privileges":["delete_index","manage","all"],"composite":false},
  "indices:admin/mappings/get": {"scope":"index","privileges":["view_index_metadata","manage","all"],"composite":false},
  "indices:admin/mapping/put": {"scope":"index","privileges":["manage","all"],"composite":false},
  "indices:monitor/settings/get": {"scope":"index","privileges":["monitor","view_index_metadata","manage","all"],"composite":false},
  "indices:admin/settings/update": {"scope":"index","privileges":["manage","all"],"composite":false},
  "indices:admin/analyze": {"scope":"index","privileges":["manage","all"],"composite":false},
  "indices:admin/aliases": {"scope":"index","privileges":["manage","all"],"composite":false},
  "indices:admin/aliases/get": {"scope":"index","privileges":["view_index_metadata","manage","all"],"composite":false},
  "indices:admin/close": {"scope":"index","privileges":["manage","all"],"composite":false},
  "indices:admin/open": {"scope":"index","privileges":["manage","all"],"composite":false},
  "indices:admin/block/add": {"scope":"index","privileges":["manage","all"],"composite":false},
  "indices:admin/block/remove": {"scope":"index","privileges":["manage","all"],"composite":false},
  "indices:admin/forcemerge": {"scope":"index","privileges":["maintenance","manage","all"],"composite":false},
  "indices:admin/cache/clear": {"scope":"index","privileges":["maintenance","manage","all"],"composite":false},
  "indices:admin/resolve/index": {"scope":"index","privileges":["view_index_metadata","manage","read","all"],"composite":false},
  "indices:admin/data_stream/get": {"scope":"index","privileges":["view_index_metadata","manage","all"],"composite":false},
  "indices:admin/data_stream/create": {"scope":"index","privileges":["create_index","manage","all"],"composite":false},
  "indices:admin/data_stream/delete": {"scope":"index","privileges":["delete_index","manage","all"],"composite":false},
  "indices:admin/rollover": {"scope":"index","privileges":["manage","all"],"composite":false},
  "indices:admin/resize": {"scope":"index","privileges":["manage","all"],"composite":false},
  "indices:admin/ext/model/change": {"scope":"index","privileges":["manage","all"],"composite":false},
  "indices:admin/ext/model/get": {"scope":"index","privileges":["view_index_metadata","manage","all"],"composite":false},
  "indices:admin/refresh": {"scope":"index","privileges":["maintenance","manage","all"],"composite":false},
  "indices:admin/flush": {"scope":"index","privileges":["maintenance","manage","all"],"composite":false},
  "indices:monitor/segments": {"scope":"index","privileges":["monitor","manage","all"],"composite":false},
  "indices:monitor/recovery": {"scope":"index","privileges":["monitor","manage","all"],"composite":false},
  "indices:monitor/stats": {"scope":"index","privileges":["monitor","manage","all"],"composite":false},
  "indices:data/read/search": {"scope":"index","privileges":["read","all"],"composite":false},
  "indices:data/read/explain": {"scope":"index","privileges":["read","all"],"composite":false},
  "indices:data/read/msearch": {"scope":"index","privileges":["read","all"],"composite":true},
  "indices:data/read/rank_eval": {"scope":"index","privileges":["read","all"],"composite":false},
  "indices:data/read/search/template": {"scope":"index","privileges":["read","all"],"composite":false},
  "indices:data/read/msearch/template": {"scope":"index","privileges":["read","all"],"composite":false},
  "indices:data/read/async_search/submit": {"scope":"index","privileges":["read","all"],"composite":false},
  "indices:data/read/async_search/get": {"scope":"index","privileges":["read","all"],"composite":false},
  "indices:data/read/async_search/delete": {"scope":"index","privileges":["read","all"],"composite":false},
  "indices:data/read/scroll": {"scope":"index","privileges":["read","all"],"composite":true},
  "indices:data/read/scroll/clear": {"scope":"index","privileges":["read","all"],"composite":true},
  "indices:data/read/open_point_in_time": {"scope":"index","privileges":["read","all"],"composite":false},
  "indices:data/read/close_point_in_time": {"scope":"index","privileges":["read","all"],"composite":true},
  "indices:data/read/field_caps": {"scope":"index","privileges":["read","view_index_metadata","manage","all"],"composite":false},
  "indices:data/read/xpack/termsenum/list": {"scope":"index","privileges":["read","all"],"composite":false},
  "indices:data/read/tv": {"scope":"index","privileges":["read","all"],"composite":false},
  "indices:data/read/mtv": {"scope":"index","privileges":["read","all"],"composite":true},
  "indices:admin/validate/query": {"scope":"index","privileges":["view_index_metadata","manage","all"],"composite":false},
  "indices:admin/shards/search_shards": {"scope":"index","privileges":["view_index_metadata","manage","all"],"composite":false},
  "indices:admin/mappings/fields/get": {"scope":"index","privileges":["view_index_metadata","manage","all"],"composite":false},
  "indices:data/read/get": {"scope":"index","privileges":["read","all"],"composite":false},
  "indices:data/read/mget": {"scope":"index","privileges":["read","all"],"composite":true},
  "indices:data/write/index": {"scope":"index","privileges":["create_doc","create","index","write","all"],"composite":false},
  "indices:data/write/index:op_type/create": {"scope":"index","privileges":["create_doc","create","index","write","all"],"composite":false},
  "indices:data/write/index:op_type/index": {"scope":"index","privileges":["create","index","write","all"],"composite":false},
  "indices:data/write/update": {"scope":"index","privileges":["index","write","all"],"composite":false},
  "indices:data/write/delete": {"scope":"index","privileges":["delete","write","all"],"composite":false},
  "indices:data/write/bulk": {"scope":"index","privileges":["create_doc","create","delete","index","write","all"],"composite":true},
  "indices:data/write/reindex": {"scope":"index","privileges":["index","write","all"],"composite":true},
  "indices:data/write/update/byquery": {"scope":"index","privileges":["index","write","all"],"composite":false},
  "indices:data/write/delete/byquery": {"scope":"index","privileges":["delete","write","all"],"composite":false},
  "cluster:monitor/main": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:monitor/health": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:monitor/nodes/stats": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:monitor/nodes/info": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:monitor/nodes/hot_threads": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:monitor/state": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:monitor/stats": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:monitor/settings": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:monitor/task": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:monitor/health_api": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:monitor/xpack/info": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:monitor/xpack/license/get": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:monitor/remote/info": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:admin/script/get": {"scope":"cluster","privileges":["manage","all"],"composite":false},
  "cluster:admin/script/put": {"scope":"cluster","privileges":["manage","all"],"composite":false},
  "cluster:admin/script/delete": {"scope":"cluster","privileges":["manage","all"],"composite":false},
  "cluster:admin/settings/update": {"scope":"cluster","privileges":["manage","all"],"composite":false},
  "cluster:monitor/task/get": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:monitor/tasks/lists": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:admin/tasks/cancel": {"scope":"cluster","privileges":["manage","all"],"composite":false},
  "cluster:admin/reindex/rethrottle": {"scope":"cluster","privileges":["manage","all"],"composite":false},
  "cluster:admin/ingest/pipeline/put": {"scope":"cluster","privileges":["manage_ingest_pipelines","manage_pipeline","manage","all"],"composite":false},
  "cluster:admin/ingest/pipeline/get": {"scope":"cluster","privileges":["read_pipeline","manage_ingest_pipelines","manage_pipeline","manage","all"],"composite":false},
  "cluster:admin/ingest/pipeline/delete": {"scope":"cluster","privileges":["manage_ingest_pipelines","manage_pipeline","manage","all"],"composite":false},
  "cluster:admin/ingest/pipeline/simulate": {"scope":"cluster","privileges":["read_pipeline","manage_ingest_pipelines","manage_pipeline","manage","all"],"composite":false},
  "cluster:monitor/xpack/ml/info/get": {"scope":"cluster","privileges":["monitor_ml","manage_ml","monitor","manage","all"],"composite":false},
  "cluster:monitor/xpack/ml/inference/get": {"scope":"cluster","privileges":["monitor_ml","manage_ml","monitor","manage","all"],"composite":false},
  "cluster:monitor/xpack/ml/inference/stats/get": {"scope":"cluster","privileges":["monitor_ml","manage_ml","monitor","manage","all"],"composite":false},
  "cluster:monitor/xpack/ml/inference/infer": {"scope":"cluster","privileges":["monitor_ml","manage_ml","monitor","manage","all"],"composite":false},
  "cluster:admin/xpack/ml/trained_models/deployment/start": {"scope":"cluster","privileges":["manage_ml","manage","all"],"composite":false},
  "cluster:admin/xpack/ml/trained_models/deployment/stop": {"scope":"cluster","privileges":["manage_ml","manage","all"],"composite":false},
  "cluster:admin/xpack/ml/trained_models/deployment/update": {"scope":"cluster","privileges":["manage_ml","manage","all"],"composite":false},
  "cluster:admin/xpack/ml/inference/put": {"scope":"cluster","privileges":["manage_ml","manage","all"],"composite":false},
  "cluster:admin/xpack/ml/inference/delete": {"scope":"cluster","privileges":["manage_ml","manage","all"],"composite":false},
  "cluster:admin/xpack/ml/trained_models/part/put": {"scope":"cluster","privileges":["manage_ml","manage","all"],"composite":false},
  "cluster:admin/xpack/ml/trained_models/vocabulary/put": {"scope":"cluster","privileges":["manage_ml","manage","all"],"composite":false},
  "cluster:admin/xpack/ml/inference/model_aliases/put": {"scope":"cluster","privileges":["manage_ml","manage","all"],"composite":false},
  "cluster:admin/xpack/ml/inference/model_aliases/delete": {"scope":"cluster","privileges":["manage_ml","manage","all"],"composite":false},
  "cluster:admin/xpack/inference/put": {"scope":"cluster","privileges":["manage_inference","manage","all"],"composite":false},
  "cluster:admin/xpack/inference/update": {"scope":"cluster","privileges":["manage_inference","manage","all"],"composite":false},
  "cluster:admin/xpack/inference/delete": {"scope":"cluster","privileges":["manage_inference","manage","all"],"composite":false},
  "cluster:monitor/xpack/inference/get": {"scope":"cluster","privileges":["monitor_inference","manage_inference","monitor","manage","all"],"composite":false},
  "cluster:monitor/xpack/inference/post": {"scope":"cluster","privileges":["monitor_inference","manage_inference","monitor","manage","all"],"composite":false},
  "indices:admin/index_template/put": {"scope":"cluster","privileges":["manage_index_templates","manage","all"],"composite":false},
  "indices:admin/index_template/get": {"scope":"cluster","privileges":["manage_index_templates","manage","all"],"composite":false},
  "indices:admin/index_template/delete": {"scope":"cluster","privileges":["manage_index_templates","manage","all"],"composite":false},
  "indices:admin/index_template/simulate_index": {"scope":"cluster","privileges":["manage_index_templates","manage","all"],"composite":false},
  "cluster:admin/component_template/put": {"scope":"cluster","privileges":["manage_index_templates","manage","all"],"composite":false},
  "cluster:admin/component_template/get": {"scope":"cluster","privileges":["manage_index_templates","manage","all"],"composite":false},
  "cluster:admin/component_template/delete": {"scope":"cluster","privileges":["manage_index_templates","manage","all"],"composite":false},
  "indices:admin/template/put": {"scope":"cluster","privileges":["manage_index_templates","manage","all"],"composite":false},
  "indices:admin/template/get": {"scope":"cluster","privileges":["manage_index_templates","manage","all"],"composite":false},
  "indices:admin/template/delete": {"scope":"cluster","privileges":["manage_index_templates","manage","all"],"composite":false},
  "cluster:admin/repository/get": {"scope":"cluster","privileges":["monitor_snapshot","create_snapshot","manage","all"],"composite":false},
  "cluster:admin/repository/put": {"scope":"cluster","privileges":["manage","all"],"composite":false},
  "cluster:admin/repository/delete": {"scope":"cluster","privileges":["manage","all"],"composite":false},
  "cluster:admin/repository/verify": {"scope":"cluster","privileges":["manage","all"],"composite":false},
  "cluster:admin/repository/_cleanup": {"scope":"cluster","privileges":["manage","all"],"composite":false},
  "cluster:admin/snapshot/get": {"scope":"cluster","privileges":["monitor_snapshot","create_snapshot","manage","all"],"composite":false},
  "cluster:admin/snapshot/status": {"scope":"cluster","privileges":["monitor_snapshot","create_snapshot","manage","all"],"composite":false},
  "cluster:admin/snapshot/create": {"scope":"cluster","privileges":["create_snapshot","manage","all"],"composite":false},
  "cluster:admin/snapshot/clone": {"scope":"cluster","privileges":["manage","all"],"composite":false},
  "cluster:admin/snapshot/delete": {"scope":"cluster","privileges":["manage","all"],"composite":false},
  "cluster:admin/snapshot/restore": {"scope":"cluster","privileges":["manage","all"],"composite":false},
  "cluster:admin/xpack/upgrade": {"scope":"cluster","privileges":["manage","all"],"composite":false},
  "cluster:monitor/xpack/upgrade/info": {"scope":"cluster","privileges":["monitor","manage","all"],"composite":false},
  "cluster:admin/xpack/security/api_key/create": {"scope":"cluster","privileges":["manage_own_api_key","manage_api_key","manage_security","all"],"composite":false},
  "cluster:admin/xpack/security/api_key/get": {"scope":"cluster","privileges":["manage_own_api_key","manage_api_key","read_security","manage_security","all"],"composite":false},
  "cluster:admin/xpack/security/api_key/invalidate": {"scope":"cluster","privileges":["manage_own_api_key","manage_api_key","manage_security","all"],"composite":false},
  "cluster:admin/xpack/security/api_key/query": {"scope":"cluster","privileges":["manage_own_api_key","manage_api_key","read_security","manage_security","all"],"composite":false},
  "cluster:admin/xpack/security/api_key/update": {"scope":"cluster","privileges":["manage_own_api_key","manage_api_key","manage_security","all"],"composite":false},
  "cluster:admin/xpack/security/api_key/bulk_update": {"scope":"cluster","privileges":["manage_own_api_key","manage_api_key","manage_security","all"],"composite":false},
};
