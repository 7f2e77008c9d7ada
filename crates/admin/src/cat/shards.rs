//! Tables of shards, segments and recoveries.

use crate::cat::table::{Cell, Column, Table, number, text};
use crate::{index, stats};
use sparrow_catalog::Node;
use sparrow_catalog::ResolveOptions;
use sparrow_request::HOST;
use sparrow_request::NODE_NAME;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::{CAT, INDICES};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("cat_shards", Action::Stats, Lane::Look, cat_shards)
        .about("A table of shards.")
        .takes(&[CAT, INDICES])
        .text(),
    Operation::new("cat_segments", Action::Stats, Lane::Look, cat_segments)
        .about("A table of segments.")
        .takes(&[CAT, INDICES])
        .text(),
    Operation::new("cat_recovery", Action::Recovery, Lane::Look, cat_recovery)
        .about("A table of how indices came up.")
        .takes(&[CAT, "active_only detailed expand_wildcards ignore_unavailable allow_no_indices index"])
        .text(),
    Operation::new("cat_trained_models", Action::GetTrainedModels, Lane::Look, cat_trained_models)
        .about("A table of models.")
        .takes(&[CAT, "allow_no_match from size"])
        .text(),
];

const SHARDS: &[Column] = &[
    text("index", &["i", "idx"], "index name"),
    text("shard", &["s", "sh"], "shard name"),
    text("prirep", &["p", "pr", "primaryOrReplica"], "primary or replica"),
    text("state", &["st"], "shard state"),
    number("docs", &["d", "dc"], "number of docs in shard"),
    number("store", &["sto"], "store size of shard (how much disk it uses)"),
    number("dataset", &["dataset.size"], "total size of dataset"),
    text("ip", &[], "ip of node where it lives"),
    text("id", &[], "unique id of node where it lives").on_request(),
    text("node", &["n"], "name of node where it lives"),
    text("unassigned.reason", &["ur"], "reason shard became unassigned").on_request(),
    text("unassigned.at", &["ua"], "time shard became unassigned (UTC)").on_request(),
    text("unassigned.for", &["uf"], "time has been unassigned").on_request(),
    text("unassigned.details", &["ud"], "additional details as to why the shard became unassigned").on_request(),
    text("recoverysource.type", &["rs"], "recovery source type").on_request(),
    number("completion.size", &["cs", "completionSize"], "size of completion").on_request(),
    number("fielddata.memory_size", &["fm", "fielddataMemory"], "used fielddata cache").on_request(),
    number("fielddata.evictions", &["fe", "fielddataEvictions"], "fielddata evictions").on_request(),
    number("query_cache.memory_size", &["qcm", "queryCacheMemory"], "used query cache").on_request(),
    number("query_cache.evictions", &["qce", "queryCacheEvictions"], "query cache evictions").on_request(),
    number("flush.total", &["ft", "flushTotal"], "number of flushes").on_request(),
    number("flush.total_time", &["ftt", "flushTotalTime"], "time spent in flush").on_request(),
    number("get.current", &["gc", "getCurrent"], "number of current get ops").on_request(),
    number("get.time", &["gti", "getTime"], "time spent in get").on_request(),
    number("get.total", &["gto", "getTotal"], "number of get ops").on_request(),
    number("get.exists_time", &["geti", "getExistsTime"], "time spent in successful gets").on_request(),
    number("get.exists_total", &["geto", "getExistsTotal"], "number of successful gets").on_request(),
    number("get.missing_time", &["gmti", "getMissingTime"], "time spent in failed gets").on_request(),
    number("get.missing_total", &["gmto", "getMissingTotal"], "number of failed gets").on_request(),
    number("indexing.delete_current", &["idc", "indexingDeleteCurrent"], "number of current deletions").on_request(),
    number("indexing.delete_time", &["idti", "indexingDeleteTime"], "time spent in deletions").on_request(),
    number("indexing.delete_total", &["idto", "indexingDeleteTotal"], "number of delete ops").on_request(),
    number("indexing.index_current", &["iic", "indexingIndexCurrent"], "number of current indexing ops").on_request(),
    number("indexing.index_time", &["iiti", "indexingIndexTime"], "time spent in indexing").on_request(),
    number("indexing.index_total", &["iito", "indexingIndexTotal"], "number of indexing ops").on_request(),
    number("indexing.index_failed", &["iif", "indexingIndexFailed"], "number of failed indexing ops").on_request(),
    number("merges.current", &["mc", "mergesCurrent"], "number of current merges").on_request(),
    number("merges.current_docs", &["mcd", "mergesCurrentDocs"], "number of current merging docs").on_request(),
    number("merges.current_size", &["mcs", "mergesCurrentSize"], "size of current merges").on_request(),
    number("merges.total", &["mt", "mergesTotal"], "number of completed merge ops").on_request(),
    number("merges.total_docs", &["mtd", "mergesTotalDocs"], "docs merged").on_request(),
    number("merges.total_size", &["mts", "mergesTotalSize"], "size merged").on_request(),
    number("merges.total_time", &["mtt", "mergesTotalTime"], "time spent in merges").on_request(),
    number("refresh.total", &["rto", "refreshTotal"], "total refreshes").on_request(),
    number("refresh.time", &["rti", "refreshTime"], "time spent in refreshes").on_request(),
    number("refresh.external_total", &["rto", "refreshTotal"], "total external refreshes").on_request(),
    number("refresh.external_time", &["rti", "refreshTime"], "time spent in external refreshes").on_request(),
    number("refresh.listeners", &["rli", "refreshListeners"], "number of pending refresh listeners").on_request(),
    number("search.fetch_current", &["sfc", "searchFetchCurrent"], "current fetch phase ops").on_request(),
    number("search.fetch_time", &["sfti", "searchFetchTime"], "time spent in fetch phase").on_request(),
    number("search.fetch_total", &["sfto", "searchFetchTotal"], "total fetch ops").on_request(),
    number("search.open_contexts", &["so", "searchOpenContexts"], "open search contexts").on_request(),
    number("search.query_current", &["sqc", "searchQueryCurrent"], "current query phase ops").on_request(),
    number("search.query_time", &["sqti", "searchQueryTime"], "time spent in query phase").on_request(),
    number("search.query_total", &["sqto", "searchQueryTotal"], "total query phase ops").on_request(),
    number("search.scroll_current", &["scc", "searchScrollCurrent"], "open scroll contexts").on_request(),
    number("search.scroll_time", &["scti", "searchScrollTime"], "time scroll contexts held open").on_request(),
    number("search.scroll_total", &["scto", "searchScrollTotal"], "completed scroll contexts").on_request(),
    number("segments.count", &["sc", "segmentsCount"], "number of segments").on_request(),
    number("segments.memory", &["sm", "segmentsMemory"], "memory used by segments").on_request(),
    number("segments.index_writer_memory", &["siwm", "segmentsIndexWriterMemory"], "memory used by index writer").on_request(),
    number("segments.version_map_memory", &["svmm", "segmentsVersionMapMemory"], "memory used by version map").on_request(),
    number("segments.fixed_bitset_memory", &["sfbm", "fixedBitsetMemory"], "memory used by fixed bit sets for nested object field types and export type filters for types referred in _parent fields").on_request(),
    number("seq_no.max", &["sqm", "maxSeqNo"], "max sequence number").on_request(),
    number("seq_no.local_checkpoint", &["sql", "localCheckpoint"], "local checkpoint").on_request(),
    number("seq_no.global_checkpoint", &["sqg", "globalCheckpoint"], "global checkpoint").on_request(),
    number("warmer.current", &["wc", "warmerCurrent"], "current warmer ops").on_request(),
    number("warmer.total", &["wto", "warmerTotal"], "total warmer ops").on_request(),
    number("warmer.total_time", &["wtt", "warmerTotalTime"], "time spent in warmers").on_request(),
    text("path.data", &["pd", "dataPath"], "shard data path").on_request(),
    text("path.state", &["ps", "statsPath"], "shard state path").on_request(),
];

/// The unit of a figure.
#[derive(Clone, Copy)]
enum Unit {
    Count,
    Bytes,
    Millis,
}

/// Section, name and unit of the statistics in the columns from `completion.size` on, in the order of the columns.
const FIGURES: &[(&str, &str, Unit)] = &[
    ("completion", "size_in_bytes", Unit::Bytes),
    ("fielddata", "memory_size_in_bytes", Unit::Bytes),
    ("fielddata", "evictions", Unit::Count),
    ("query_cache", "memory_size_in_bytes", Unit::Bytes),
    ("query_cache", "evictions", Unit::Count),
    ("flush", "total", Unit::Count),
    ("flush", "total_time_in_millis", Unit::Millis),
    ("get", "current", Unit::Count),
    ("get", "time_in_millis", Unit::Millis),
    ("get", "total", Unit::Count),
    ("get", "exists_time_in_millis", Unit::Millis),
    ("get", "exists_total", Unit::Count),
    ("get", "missing_time_in_millis", Unit::Millis),
    ("get", "missing_total", Unit::Count),
    ("indexing", "delete_current", Unit::Count),
    ("indexing", "delete_time_in_millis", Unit::Millis),
    ("indexing", "delete_total", Unit::Count),
    ("indexing", "index_current", Unit::Count),
    ("indexing", "index_time_in_millis", Unit::Millis),
    ("indexing", "index_total", Unit::Count),
    ("indexing", "index_failed", Unit::Count),
    ("merges", "current", Unit::Count),
    ("merges", "current_docs", Unit::Count),
    ("merges", "current_size_in_bytes", Unit::Bytes),
    ("merges", "total", Unit::Count),
    ("merges", "total_docs", Unit::Count),
    ("merges", "total_size_in_bytes", Unit::Bytes),
    ("merges", "total_time_in_millis", Unit::Millis),
    ("refresh", "total", Unit::Count),
    ("refresh", "total_time_in_millis", Unit::Millis),
    ("refresh", "external_total", Unit::Count),
    ("refresh", "external_total_time_in_millis", Unit::Millis),
    ("refresh", "listeners", Unit::Count),
    ("search", "fetch_current", Unit::Count),
    ("search", "fetch_time_in_millis", Unit::Millis),
    ("search", "fetch_total", Unit::Count),
    ("search", "open_contexts", Unit::Count),
    ("search", "query_current", Unit::Count),
    ("search", "query_time_in_millis", Unit::Millis),
    ("search", "query_total", Unit::Count),
    ("search", "scroll_current", Unit::Count),
    ("search", "scroll_time_in_millis", Unit::Millis),
    ("search", "scroll_total", Unit::Count),
    ("segments", "count", Unit::Count),
    ("segments", "memory_in_bytes", Unit::Bytes),
    ("segments", "index_writer_memory_in_bytes", Unit::Bytes),
    ("segments", "version_map_memory_in_bytes", Unit::Bytes),
    ("segments", "fixed_bit_set_memory_in_bytes", Unit::Bytes),
    ("", "seq_no", Unit::Count),
    ("", "seq_no", Unit::Count),
    ("", "seq_no", Unit::Count),
    ("warmer", "current", Unit::Count),
    ("warmer", "total", Unit::Count),
    ("warmer", "total_time_in_millis", Unit::Millis),
];

/// `GET /_cat/shards[/{index}]`
fn cat_shards(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let names = node.indices.names();
    let path = node.data.path().display().to_string();
    // Most requests show none of the figures.
    let detailed = params.get("h").is_some() || params.get("s").is_some();
    let mut table = Table::new(SHARDS);
    let options = ResolveOptions::everything().with(&params)?;
    for name in names.index_names(request.part("index"), &options, request.right())? {
        let first = |kind: &str, state: &str| -> Vec<Cell> {
            vec![name.as_str().into(), "0".into(), kind.into(), state.into()]
        };
        let unassigned = |kind: &str, reason: &str, source: &str| {
            let mut row = first(kind, "UNASSIGNED");
            row.resize(10, Cell::Nothing);
            row.extend([reason.into(), Cell::Nothing, Cell::Nothing, Cell::Nothing, source.into()]);
            row
        };
        let Some(handle) = names.indices.get(&name) else {
            table.row(unassigned("p", "ALLOCATION_FAILED", "existing_store"));
            continue;
        };
        let Some(size) = handle.unless_gone(request, handle.index().stats())? else { continue };
        let mut row = first("p", "STARTED");
        row.extend([size.docs.into(), Cell::Bytes(size.bytes), Cell::Bytes(size.bytes), HOST.into()]);
        row.extend([node.id().into(), NODE_NAME.into()]);
        row.resize(15, Cell::Nothing);
        if detailed {
            let Some(sections) = handle.unless_gone(request, stats::sections(handle))? else { continue };
            let last = handle.shard.next_seq_no() as f64 - 1.0;
            for (section, key, unit) in FIGURES {
                let figure = sections.get(*section).and_then(|of| of[*key].as_u64()).unwrap_or_default();
                row.push(match unit {
                    _ if section.is_empty() => Cell::Number(last),
                    Unit::Count => figure.into(),
                    Unit::Bytes => Cell::Bytes(figure),
                    Unit::Millis => Cell::Millis(figure),
                });
            }
            row.extend([path.as_str().into(), path.as_str().into()]);
        }
        table.row(row);
        for _ in 0..handle.settings().replicas() {
            table.row(unassigned("r", "INDEX_CREATED", "peer"));
        }
    }
    table.reply(&params)
}

const SEGMENTS: &[Column] = &[
    text("index", &["i", "idx"], "index name"),
    text("shard", &["s", "sh"], "shard name"),
    text("prirep", &["p", "pr", "primaryOrReplica"], "primary or replica"),
    text("ip", &[], "ip of node where it lives"),
    text("id", &[], "unique id of node where it lives").on_request(),
    text("segment", &["seg"], "segment name"),
    number("generation", &["g", "gen"], "segment generation"),
    number("docs.count", &["dc", "docsCount"], "number of docs in segment"),
    number("docs.deleted", &["dd", "docsDeleted"], "number of deleted docs in segment"),
    number("size", &["si"], "segment size in bytes"),
    number("size.memory", &["sm", "sizeMemory"], "segment memory in bytes"),
    text("committed", &["ic", "isCommitted"], "is segment committed"),
    text("searchable", &["is", "isSearchable"], "is segment searched"),
    text("version", &["v", "ver"], "version"),
    text("compound", &["ico", "isCompound"], "is segment compound"),
];

/// `GET /_cat/segments[/{index}]`
fn cat_segments(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let mut table = Table::new(SEGMENTS);
    for handle in index::targets(node, request, ResolveOptions::default())? {
        let durable = handle.durable_segments.lock().clone();
        let Some(segments) = handle.unless_gone(request, handle.index().segment_stats())? else { continue };
        for (number, one) in segments.into_iter().enumerate() {
            table.row(vec![
                handle.name.as_str().into(),
                "0".into(),
                "p".into(),
                HOST.into(),
                node.id().into(),
                format!("_{number}").into(),
                number.into(),
                one.docs.into(),
                one.deleted.into(),
                Cell::Bytes(one.bytes),
                0usize.into(),
                durable.contains(&one.id).to_string().into(),
                "true".into(),
                stats::LUCENE.into(),
                "false".into(),
            ]);
        }
    }
    table.reply(&request.params())
}

const RECOVERY: &[Column] = &[
    text("index", &["i", "idx"], "index name"),
    text("shard", &["s", "sh"], "shard name"),
    text("start_time", &["start"], "recovery start time").on_request(),
    text("start_time_millis", &["start_millis"], "recovery start time in epoch milliseconds").on_request(),
    text("stop_time", &["stop"], "recovery stop time").on_request(),
    text("stop_time_millis", &["stop_millis"], "recovery stop time in epoch milliseconds").on_request(),
    text("time", &["t", "ti"], "recovery time"),
    text("type", &["ty"], "recovery type"),
    text("stage", &["st"], "recovery stage"),
    text("source_host", &["shost"], "source host"),
    text("source_node", &["snode"], "source node name"),
    text("target_host", &["thost"], "target host"),
    text("target_node", &["tnode"], "target node name"),
    text("repository", &["rep"], "repository"),
    text("snapshot", &["snap"], "snapshot"),
    number("files", &["f"], "number of files to recover"),
    number("files_recovered", &["fr"], "files recovered"),
    text("files_percent", &["fp"], "percent of files recovered"),
    number("files_total", &["tf"], "total number of files"),
    number("bytes", &["b"], "number of bytes to recover"),
    number("bytes_recovered", &["br"], "bytes recovered"),
    text("bytes_percent", &["bp"], "percent of bytes recovered"),
    number("bytes_total", &["tb"], "total number of bytes"),
    number("translog_ops", &["to"], "number of translog ops to recover"),
    number("translog_ops_recovered", &["tor"], "translog ops recovered"),
    text("translog_ops_percent", &["top"], "percent of translog ops recovered"),
];

/// `GET /_cat/recovery[/{index}]`
fn cat_recovery(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let active_only = params.bool("active_only", false)?;
    params.bool("detailed", false)?;
    let mut table = Table::new(RECOVERY);
    for handle in index::targets(node, request, ResolveOptions::open_and_closed())? {
        if active_only {
            continue;
        }
        let opened = &handle.opened;
        let restored = opened.restored.as_ref().filter(|_| !handle.is_closed());
        let source = |name: Option<&String>| Cell::from(name.map_or("n/a", String::as_str));
        let stop = opened.millis + opened.took.as_millis() as u64;
        let date = |millis: u64| sparrow_mapping::date::format_millis(millis as i64);
        // As in Elasticsearch, what lies where it is used needs no recovery.
        table.row(vec![
            handle.name.as_str().into(),
            "0".into(),
            date(opened.millis).into(),
            opened.millis.to_string().into(),
            date(stop).into(),
            stop.to_string().into(),
            Cell::Millis(opened.took.as_millis() as u64),
            handle.source_of_recovery().to_ascii_lowercase().into(),
            "done".into(),
            "n/a".into(),
            "n/a".into(),
            HOST.into(),
            NODE_NAME.into(),
            source(restored.map(|it| &it.repository)),
            source(restored.map(|it| &it.snapshot)),
            0usize.into(),
            0usize.into(),
            "100.0%".into(),
            opened.files.into(),
            0usize.into(),
            0usize.into(),
            "100.0%".into(),
            opened.bytes.into(),
            opened.replayed.into(),
            opened.replayed.into(),
            "100.0%".into(),
        ]);
    }
    table.reply(&params)
}

const TRAINED_MODELS: &[Column] = &[
    text("id", &[], "the trained model id"),
    text("created_by", &["c", "createdBy"], "who created the model").on_request(),
    number("heap_size", &["hs", "modelHeapSize"], "the estimated heap size to keep the model in memory"),
    number("operations", &["o", "modelOperations"], "the estimated number of operations to use the model"),
    text("license", &["l"], "The license level of the model").on_request(),
    text("create_time", &["ct"], "The time the model was created"),
    text("version", &["v"], "The version of Elasticsearch when the model was created").on_request(),
    text("description", &["d"], "The model description").on_request(),
    text("type", &["t"], "The model type"),
    number("ingest.pipelines", &["ip", "ingestPipelines"], "The number of pipelines referencing the model"),
    number("ingest.count", &["ic", "ingestCount"], "The total number of docs processed by the model"),
    number("ingest.time", &["it", "ingestTime"], "The total time spent processing docs with this model"),
    number(
        "ingest.current",
        &["icurr", "ingestCurrent"],
        "The total documents currently being handled by the model",
    ),
    number(
        "ingest.failed",
        &["if", "ingestFailed"],
        "The total count of failed ingest attempts with this model",
    ),
];

/// `GET /_cat/ml/trained_models[/{model}]`
fn cat_trained_models(
    node: &Node,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let json =
        |reply: Reply| -> serde_json::Value { serde_json::from_slice(&reply.body).unwrap_or_default() };
    let configs = json(sparrow_models::get_trained_models(&node.model_service, request, body, cancel)?);
    let figures = json(sparrow_models::trained_model_stats(&node.model_service, request, body, cancel)?);
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let mut table = Table::new(TRAINED_MODELS);
    for config in list(&configs["trained_model_configs"]) {
        let of = list(&figures["trained_model_stats"])
            .into_iter()
            .find(|one| one["model_id"] == config["model_id"]);
        let of = of.unwrap_or_default();
        let text = |name: &str| -> Cell { config[name].as_str().map(str::to_owned).into() };
        let count = |value: &serde_json::Value| -> Cell { value.as_u64().unwrap_or_default().into() };
        let inference = &of["inference_stats"];
        table.row(vec![
            text("model_id"),
            text("created_by"),
            Cell::Bytes(config["model_size_bytes"].as_u64().unwrap_or_default()),
            count(&config["estimated_operations"]),
            config["license_level"].as_str().map(str::to_ascii_uppercase).into(),
            config["create_time"]
                .as_u64()
                .map(|millis| sparrow_mapping::date::format_millis(millis as i64))
                .into(),
            text("version"),
            text("description"),
            text("model_type"),
            count(&of["pipeline_count"]),
            count(&inference["inference_count"]),
            Cell::Millis(0),
            0usize.into(),
            count(&inference["failure_count"]),
        ]);
    }
    table.reply(&request.params())
}
