//! Tables about the only node: its properties, resources, threads and tasks.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Map;
use sparrow_runtime::work;

use crate::cat::VERSION;
use crate::cat::table::{Cell, Column, Table, number, text};
use crate::lanes::LaneStats;
use crate::stats;
use sparrow_catalog::Node;
use sparrow_request::HOST;
use sparrow_request::NODE_NAME;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::CAT;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_wire::glob;

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("cat_nodes", Action::NodesStats, Lane::Look, cat_nodes)
        .about("The node with its use of memory and processors.")
        .takes(&[CAT, "full_id include_unloaded_segments"])
        .text(),
    Operation::new("cat_allocation", Action::NodesStats, Lane::Look, cat_allocation)
        .about("A table of disk space.")
        .takes(&[CAT])
        .text(),
    Operation::new("cat_pending_tasks", Action::Main, Lane::Look, cat_nothing)
        .about("An empty table: changes of metadata do not wait.")
        .takes(&[CAT])
        .text(),
    Operation::new("cat_plugins", Action::Main, Lane::Look, cat_nothing)
        .about("An empty table: there are no plugins.")
        .takes(&[CAT, "include_bootstrap"])
        .text(),
    Operation::new("cat_nodeattrs", Action::NodesStats, Lane::Look, cat_nothing)
        .about("An empty table: the node has no attributes.")
        .takes(&[CAT])
        .text(),
    Operation::new("cat_fielddata", Action::NodesStats, Lane::Look, cat_fielddata)
        .about("A table of the fields of texts with `fielddata`.")
        .takes(&[CAT, "fields"])
        .text(),
    Operation::new("cat_tasks", Action::ListTasks, Lane::Look, cat_tasks)
        .about("A table of tasks.")
        .takes(&[CAT, "actions detailed nodes parent_task_id timeout wait_for_completion"])
        .text()
        .unlisted(),
];

/// Measurements of the process and the machine by the HTTP layer, which passes them as the body of requests that need
/// them. Those that the operating system does not provide are absent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Machine {
    pid: u64,
    http_address: Option<String>,
    heap_used: u64,
    heap_max: u64,
    ram_used: u64,
    ram_total: u64,
    cpu_percent: Option<u64>,
    load: Option<[f64; 3]>,
    file_descriptors: Option<u64>,
    file_descriptors_max: Option<u64>,
    disk_available: Option<u64>,
    disk_total: Option<u64>,
    uptime_millis: u64,
}

impl Machine {
    fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    fn disk_used(&self) -> Option<u64> {
        Some(self.disk_total?.saturating_sub(self.disk_available?))
    }
}

fn percent(part: u64, whole: u64) -> Cell {
    (part * 100).checked_div(whole).map_or(Cell::Nothing, Cell::from)
}

fn bytes(size: Option<u64>) -> Cell {
    size.map_or(Cell::Nothing, Cell::Bytes)
}

const NODES: &[Column] = &[
    text("id", &["id", "nodeId"], "unique node id").on_request(),
    text("pid", &["p"], "process id").on_request(),
    text("ip", &["i"], "ip address"),
    text("port", &["po"], "bound transport port").on_request(),
    text("http_address", &["http"], "bound http address").on_request(),
    text("version", &["v"], "es version").on_request(),
    text("flavor", &["f"], "es distribution flavor").on_request(),
    text("type", &["t"], "es distribution type").on_request(),
    text("build", &["b"], "es build hash").on_request(),
    number("disk.total", &["dt", "diskTotal"], "total disk space").on_request(),
    number("disk.used", &["du", "diskUsed"], "used disk space").on_request(),
    number("disk.avail", &["d", "da", "disk", "diskAvail"], "available disk space").on_request(),
    number("disk.used_percent", &["dup", "diskUsedPercent"], "used disk space percentage").on_request(),
    number("heap.current", &["hc", "heapCurrent"], "used heap").on_request(),
    number("heap.percent", &["hp", "heapPercent"], "used heap ratio"),
    number("heap.max", &["hm", "heapMax"], "max configured heap").on_request(),
    number("ram.current", &["rc", "ramCurrent"], "used machine memory").on_request(),
    number("ram.percent", &["rp", "ramPercent"], "used machine memory ratio"),
    number("ram.max", &["rn", "ramMax"], "total machine memory").on_request(),
    number("file_desc.current", &["fdc", "fileDescriptorCurrent"], "used file descriptors").on_request(),
    number("file_desc.percent", &["fdp", "fileDescriptorPercent"], "used file descriptor ratio").on_request(),
    number("file_desc.max", &["fdm", "fileDescriptorMax"], "max file descriptors").on_request(),
    number("cpu", &["cpu"], "recent cpu usage"),
    number("load_1m", &["l"], "1m load avg"),
    number("load_5m", &["l"], "5m load avg"),
    number("load_15m", &["l"], "15m load avg"),
    number("available_processors", &["ap"], "number of available processors to JVM").on_request(),
    text("uptime", &["u"], "node uptime").on_request(),
    text(
        "node.role",
        &["r", "role", "nodeRole"],
        "m:master eligible node, d:data node, i:ingest node, l:machine learning node, -:coordinating node only",
    ),
    text("master", &["m"], "*:current master"),
    text("name", &["n"], "node name"),
    number("get.time", &["gti", "getTime"], "time spent in get").on_request(),
    number("get.total", &["gto", "getTotal"], "number of get ops").on_request(),
    number("indexing.index_time", &["iiti", "indexingIndexTime"], "time spent in indexing").on_request(),
    number("indexing.index_total", &["iito", "indexingIndexTotal"], "number of indexing ops").on_request(),
    number("indexing.delete_total", &["idto", "indexingDeleteTotal"], "number of delete ops").on_request(),
    number("merges.total", &["mt", "mergesTotal"], "number of completed merge ops").on_request(),
    number("refresh.total", &["rto", "refreshTotal"], "total refreshes").on_request(),
    number("search.query_time", &["sqti", "searchQueryTime"], "time spent in query phase").on_request(),
    number("search.query_total", &["sqto", "searchQueryTotal"], "total query phase ops").on_request(),
    number("search.fetch_total", &["sfto", "searchFetchTotal"], "total fetch phase ops").on_request(),
    number("search.open_contexts", &["so", "searchOpenContexts"], "open search contexts").on_request(),
    number("segments.count", &["sc", "segmentsCount"], "number of segments").on_request(),
    number("shard_stats.total_count", &["sstc", "shards"], "number of shards assigned").on_request(),
];

/// `GET /_cat/nodes`
fn cat_nodes(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let machine = Machine::read(body);
    let id = node.id();
    let id = if params.bool("full_id", false)? { id } else { id.get(..4).unwrap_or(id) };
    let mut figures = Map::new();
    for handle in stats::open_indices(node) {
        if let Some(sections) = handle.unless_gone(request, stats::sections(&handle))? {
            stats::add(&mut figures, &sections);
        }
    }
    let figures = serde_json::Value::Object(figures);
    let figure = |section: &str, name: &str| -> Cell { figures[section][name].as_u64().unwrap_or(0).into() };
    let time = |section: &str, name: &str| Cell::Millis(figures[section][name].as_u64().unwrap_or(0));
    let fixed = |load: f64| Cell::Text(format!("{load:.2}"));
    let load =
        machine.load.map(|load| load.map(fixed)).unwrap_or([Cell::Nothing, Cell::Nothing, Cell::Nothing]);
    let [minute, five, fifteen] = load;
    let disk_share = match (machine.disk_used(), machine.disk_total) {
        (Some(used), Some(total)) if total > 0 => format!("{:.2}", used as f64 * 100.0 / total as f64).into(),
        _ => Cell::Nothing,
    };
    let descriptors = match (machine.file_descriptors, machine.file_descriptors_max) {
        (Some(used), Some(most)) => percent(used, most),
        _ => Cell::Nothing,
    };
    let mut table = Table::new(NODES);
    table.row(vec![
        id.into(),
        machine.pid.to_string().into(),
        HOST.into(),
        "9300".into(),
        machine.http_address.clone().into(),
        VERSION.into(),
        "default".into(),
        "sparrow".into(),
        env!("CARGO_PKG_VERSION").into(),
        bytes(machine.disk_total),
        bytes(machine.disk_used()),
        bytes(machine.disk_available),
        disk_share,
        Cell::Bytes(machine.heap_used),
        percent(machine.heap_used, machine.heap_max),
        Cell::Bytes(machine.heap_max),
        Cell::Bytes(machine.ram_used),
        percent(machine.ram_used, machine.ram_total),
        Cell::Bytes(machine.ram_total),
        machine.file_descriptors.into(),
        descriptors,
        machine.file_descriptors_max.into(),
        machine.cpu_percent.into(),
        minute,
        five,
        fifteen,
        std::thread::available_parallelism().map_or(1, usize::from).into(),
        Cell::Millis(machine.uptime_millis),
        "dilm".into(),
        "*".into(),
        NODE_NAME.into(),
        time("get", "time_in_millis"),
        figure("get", "total"),
        time("indexing", "index_time_in_millis"),
        figure("indexing", "index_total"),
        figure("indexing", "delete_total"),
        figure("merges", "total"),
        figure("refresh", "total"),
        time("search", "query_time_in_millis"),
        figure("search", "query_total"),
        figure("search", "fetch_total"),
        figure("search", "open_contexts"),
        figure("segments", "count"),
        figure("shard_stats", "total_count"),
    ]);
    table.reply(&params)
}

const ALLOCATION: &[Column] = &[
    number("shards", &["s"], "number of shards on node"),
    number(
        "shards.undesired",
        &[],
        "number of shards that are scheduled to be moved elsewhere in the cluster",
    ),
    number("write_load.forecast", &["wlf", "writeLoadForecast"], "sum of index write load forecasts"),
    number("disk.indices.forecast", &["dif", "diskIndicesForecast"], "sum of shard size forecasts"),
    number("disk.indices", &["di", "diskIndices"], "disk used by ES indices"),
    number("disk.used", &["du", "diskUsed"], "disk used (total, not just ES)"),
    number("disk.avail", &["da", "diskAvail"], "disk available"),
    number("disk.total", &["dt", "diskTotal"], "total capacity of all volumes"),
    number("disk.percent", &["dp", "diskPercent"], "percent disk used"),
    text("host", &["h"], "host of node"),
    text("ip", &[], "ip of node"),
    text("node", &["n"], "name of node"),
    text("node.role", &["r", "role", "nodeRole"], "node roles"),
];

/// Whether a list of nodes in a path has this one in it.
fn here(node: &Node, list: &str) -> bool {
    list.is_empty()
        || list.split(',').map(str::trim).any(|name| {
            ["_all", "_local", "_master", node.id(), HOST, "master:true", "data:true"].contains(&name)
                || sparrow_wire::glob::matches(name, NODE_NAME)
        })
}

/// `GET /_cat/allocation[/{node_id}]`
fn cat_allocation(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let machine = Machine::read(body);
    let names = node.indices.names();
    let (mut size, mut replicas) = (0, names.broken.len());
    for handle in names.indices.values() {
        let Some(stats) = handle.unless_gone(request, handle.index().stats())? else { continue };
        size += stats.bytes;
        replicas += handle.settings().replicas();
    }
    let mut table = Table::new(ALLOCATION);
    if here(node, request.part("node_id")) {
        table.row(vec![
            names.indices.len().into(),
            0usize.into(),
            "0.0".into(),
            Cell::Bytes(size),
            Cell::Bytes(size),
            bytes(machine.disk_used()),
            bytes(machine.disk_available),
            bytes(machine.disk_total),
            percent(machine.disk_used().unwrap_or_default(), machine.disk_total.unwrap_or_default()),
            HOST.into(),
            HOST.into(),
            NODE_NAME.into(),
            "dilm".into(),
        ]);
        if replicas > 0 {
            let mut row = vec![Cell::from(replicas)];
            row.resize(11, Cell::Nothing);
            row.push("UNASSIGNED".into());
            table.row(row);
        }
    }
    table.reply(&request.params())
}

const THREAD_POOL: &[Column] = &[
    text("node_name", &["nn"], "node name"),
    text("node_id", &["id"], "persistent node id").on_request(),
    text("ephemeral_node_id", &["eid"], "ephemeral node id").on_request(),
    text("pid", &["p"], "process id").on_request(),
    text("host", &["h"], "host name").on_request(),
    text("ip", &["i"], "ip address").on_request(),
    text("port", &["po"], "bound transport port").on_request(),
    text("name", &["n"], "thread pool name"),
    text("type", &["t"], "thread pool type").on_request(),
    number("active", &["a"], "number of active threads"),
    number("pool_size", &["psz"], "number of threads").on_request(),
    number("queue", &["q"], "number of tasks currently in queue"),
    number("queue_size", &["qs"], "maximum number of tasks permitted in queue").on_request(),
    number("rejected", &["r"], "number of rejected tasks"),
    number("largest", &["l"], "highest number of seen active threads").on_request(),
    number("completed", &["c"], "number of completed tasks").on_request(),
    number("core", &["cr"], "core number of threads in a scaling thread pool").on_request(),
    number("max", &["mx"], "maximum number of threads in a scaling thread pool").on_request(),
    number("size", &["sz"], "number of threads in a fixed thread pool").on_request(),
    text("keep_alive", &["ka"], "thread keep alive time").on_request(),
];

/// `GET /_cat/thread_pool[/{thread_pool_patterns}]`: the lanes of workers, under the names of Elasticsearch's pools.
pub fn cat_thread_pool(
    node: &Node,
    lanes: &[LaneStats],
    request: &Request,
    body: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let machine = Machine::read(body);
    let patterns = request.part("thread_pool_patterns");
    let wanted = |name: &str| {
        patterns.is_empty() || patterns.split(',').any(|one| sparrow_wire::glob::matches(one.trim(), name))
    };
    let mut table = Table::new(THREAD_POOL);
    for lane in lanes {
        if !wanted(lane.name) {
            continue;
        }
        table.row(vec![
            NODE_NAME.into(),
            node.id().into(),
            node.id().into(),
            machine.pid.to_string().into(),
            HOST.into(),
            HOST.into(),
            "9300".into(),
            lane.name.into(),
            "fixed".into(),
            lane.active.into(),
            lane.workers.into(),
            lane.waiting.into(),
            lane.capacity.into(),
            lane.rejected.into(),
            lane.largest.into(),
            lane.completed.into(),
            Cell::Nothing,
            Cell::Nothing,
            lane.workers.into(),
            Cell::Nothing,
        ]);
    }
    table.reply(&request.params())
}

const NODE_ATTRS: &[Column] = &[
    text("node", &["name"], "node name"),
    text("id", &["id", "nodeId"], "unique node id").on_request(),
    text("pid", &["p"], "process id").on_request(),
    text("host", &["h"], "host name"),
    text("ip", &["i"], "ip address"),
    text("port", &["po"], "bound transport port").on_request(),
    text("attr", &["attr.name"], "attribute description"),
    text("value", &["attr.value"], "attribute value"),
];
const FIELD_DATA: &[Column] = &[
    text("id", &[], "node id"),
    text("host", &["h"], "host name"),
    text("ip", &[], "ip address"),
    text("node", &["n"], "node name"),
    text("field", &["f"], "field name"),
    number("size", &["s"], "field data usage"),
];
const PENDING: &[Column] = &[
    number("insertOrder", &["o"], "task insertion order"),
    text("timeInQueue", &["t"], "how long task has been in queue"),
    text("priority", &["p"], "task priority"),
    text("source", &["s"], "task source"),
];
const PLUGINS: &[Column] = &[
    text("id", &[], "unique node id").on_request(),
    text("name", &["n"], "node name"),
    text("component", &["c"], "component"),
    text("version", &["v"], "component version"),
    text("description", &["d"], "plugin details").on_request(),
];

/// `GET /_cat/fielddata`
fn cat_fielddata(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let asked = Some(request.part("fields")).filter(|list| !list.is_empty()).or(params.get("fields"));
    let mut sizes = BTreeMap::new();
    for handle in stats::open_indices(node) {
        work::check()?;
        for (path, bytes) in handle.snapshot().text_column_bytes(stats::has_field_data)? {
            *sizes.entry(path).or_insert(0) += bytes;
        }
    }
    sizes.retain(|path, _| {
        asked.is_none_or(|list| list.split(',').any(|pattern| glob::matches(pattern.trim(), path)))
    });
    let mut table = Table::new(FIELD_DATA);
    for (path, bytes) in sizes {
        table.row(vec![
            node.id().into(),
            HOST.into(),
            HOST.into(),
            NODE_NAME.into(),
            path.into(),
            Cell::Bytes(bytes),
        ]);
    }
    table.reply(&params)
}

/// Tables that are always empty: attributes of nodes, pending tasks, plugins.
fn cat_nothing(_: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let columns = match request.op.as_str() {
        "cat_nodeattrs" => NODE_ATTRS,
        "cat_plugins" => PLUGINS,
        _ => PENDING,
    };
    Table::new(columns).reply(&request.params())
}

const TASKS: &[Column] = &[
    text("id", &["id"], "id of the task with the node").on_request(),
    text("action", &["ac"], "task action"),
    text("task_id", &["ti"], "unique task id"),
    text("parent_task_id", &["pti"], "parent task id"),
    text("type", &["ty"], "task type"),
    text("start_time", &["start"], "start time in ms"),
    text("timestamp", &["ts", "hms", "hhmmss"], "start time in HH:MM:SS"),
    text("running_time_ns", &["time"], "running time ns").on_request(),
    text("running_time", &["time"], "running time"),
    text("node_id", &["ni"], "unique node id").on_request(),
    text("ip", &["i"], "ip address"),
    text("port", &["po"], "bound transport port").on_request(),
    text("node", &["n"], "node name"),
    text("version", &["v"], "es version").on_request(),
    text("x_opaque_id", &["x"], "X-Opaque-ID header").on_request(),
    text("description", &["desc"], "task action").when_detailed(),
];

/// `GET /_cat/tasks`
fn cat_tasks(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let mut table = Table::new(TASKS);
    table.detailed(params.bool("detailed", false)?);
    for task in sparrow_tasks::api::listed(&node.tasks, request)? {
        let view = task.view(true);
        let text = |name: &str| view[name].as_str().unwrap_or_default().to_owned();
        let nanos = view["running_time_in_nanos"].as_u64().unwrap_or_default();
        let start = view["start_time_in_millis"].as_u64().unwrap_or_default();
        let parent = view["parent_task_id"].as_str().unwrap_or("-").to_owned();
        let opaque = view["headers"]["X-Opaque-Id"].as_str().unwrap_or("-").to_owned();
        table.row(vec![
            view["id"].to_string().into(),
            text("action").into(),
            task.id().into(),
            parent.into(),
            text("type").into(),
            start.to_string().into(),
            crate::cat::time_of_day(start / 1000).into(),
            nanos.to_string().into(),
            Cell::Nanos(nanos),
            node.id().into(),
            HOST.into(),
            "9300".into(),
            NODE_NAME.into(),
            VERSION.into(),
            opaque.into(),
            text("description").into(),
        ]);
    }
    table.reply(&params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_measured_is_absent() {
        let machine = Machine::read(br#"{"pid": 3, "disk_total": 10, "disk_available": 4}"#);
        assert_eq!((machine.pid, machine.disk_used(), machine.load), (3, Some(6), None));
        assert!(Machine::read(b"").disk_used().is_none());
        assert_eq!(percent(1, 0), Cell::Nothing);
        assert_eq!(percent(1, 3), Cell::Number(33.0));
    }
}
