//! Which operations run on which lane of worker threads.

use sparrow_call::request::Request;

/// Which threads run an operation, so that a bulk load does not starve searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Searches, reads of documents and inference.
    Read,
    /// Writes of documents, and every operation that belongs to no other lane.
    Write,
    /// Requests for metadata, settings and counts: they wait for no write, and no write waits for them.
    Look,
    /// Simulations of pipelines and index templates, and `_analyze`: they may take long and change nothing.
    Trial,
    /// Requests that show, list or cancel tasks, and the metrics of the process: answered however many long operations there are.
    Watch,
    /// `_cluster/health`: answered however busy the other lanes are.
    Health,
    /// Operations that may wait for minutes.
    Long,
}

/// Most bytes of the body of a short operation.
const SHORT_BODY: usize = 8 << 10;

/// How the keys of queries begin that name a model, and what it is to encode.
const MODEL: &[u8] = b"\"model_";

/// Whether an operation may be as short as its way to a worker and back: it reads, leaves nothing behind that is
/// open, waits for no refresh, and names no model that would have to encode a text.
pub(crate) fn is_short(request: &Request, body: &[u8]) -> bool {
    let reads = matches!(request.op.as_str(), "search" | "count" | "get_doc" | "exists_doc" | "get_source");
    let has = |name| request.query.contains_key(name);
    let names_model = || body.windows(MODEL.len()).any(|part| part == MODEL);
    reads && body.len() <= SHORT_BODY && !has("scroll") && !has("refresh") && !names_model()
}

/// Whether `_tasks` lists a request while it runs. Jobs register their own tasks, and requests that look at tasks are not listed.
pub(crate) fn is_shown_as_task(request: &Request) -> bool {
    match lane_of(request) {
        Lane::Read | Lane::Write | Lane::Look | Lane::Trial => request.op != "cat_tasks",
        Lane::Watch | Lane::Health => false,
        Lane::Long => !matches!(
            request.op.as_str(),
            "get_task"
                | "list_tasks"
                | "cancel_tasks"
                | "cancel_task"
                | "reindex"
                | "update_by_query"
                | "delete_by_query"
                | "upgrade_index"
                | "force_merge"
                | "change_model"
                | "create_snapshot"
                | "delete_snapshot"
                | "restore_snapshot"
        ),
    }
}

/// Whether an operation changes no data, so that it can be stopped, or its answer refused, at any time.
pub(crate) fn only_reads(request: &Request) -> bool {
    matches!(lane_of(request), Lane::Read | Lane::Look | Lane::Trial | Lane::Watch | Lane::Health)
}

/// The lane of an operation.
pub(crate) fn lane_of(request: &Request) -> Lane {
    match request.op.as_str() {
        "cluster_health" => Lane::Health,
        "instruments" => Lane::Watch,
        "get_task" | "list_tasks" | "cancel_tasks" | "cancel_task" => {
            let waits = request.query.get("wait_for_completion").is_some_and(|text| text != "false");
            if waits { Lane::Long } else { Lane::Watch }
        }
        "simulate_pipeline" | "simulate_index_template" | "analyze" => Lane::Trial,
        "get_index"
        | "exists_index"
        | "get_mapping"
        | "get_field_mapping"
        | "get_settings"
        | "get_alias"
        | "exists_alias"
        | "resolve_index"
        | "get_data_stream"
        | "get_index_template"
        | "get_component_template"
        | "get_template"
        | "get_pipeline"
        | "get_cluster_settings"
        | "cluster_state"
        | "cluster_figures"
        | "node_indices"
        | "index_stats"
        | "index_segments"
        | "recovery"
        | "pending_tasks"
        | "remote_info"
        | "upgrade_assistance"
        | "get_field_models"
        | "ml_info"
        | "get_trained_models"
        | "trained_model_stats"
        | "get_inference" => Lane::Look,
        "reindex" | "update_by_query" | "delete_by_query" | "upgrade_index" | "force_merge"
        | "change_model" | "start_deployment" | "stop_deployment" | "update_deployment" | "clone_index"
        | "shrink_index" | "split_index" | "put_repository" | "get_repository" | "delete_repository"
        | "verify_repository" | "cleanup_repository" | "create_snapshot" | "get_snapshot"
        | "snapshot_status" | "clone_snapshot" | "delete_snapshot" | "snapshot_keys" | "restore_snapshot"
        | "cat_snapshots" => Lane::Long,
        "search"
        | "knn_search"
        | "explain"
        | "msearch"
        | "rank_eval"
        | "scroll"
        | "clear_scroll"
        | "open_point_in_time"
        | "close_point_in_time"
        | "field_caps"
        | "terms_enum"
        | "validate_query"
        | "search_shards"
        | "count"
        | "cat_count"
        | "get_doc"
        | "exists_doc"
        | "get_source"
        | "mget"
        | "term_vectors"
        | "multi_term_vectors"
        | "infer_trained_model"
        | "infer" => Lane::Read,
        op if op.starts_with("cat_") => Lane::Look,
        _ => Lane::Write,
    }
}
