//! Overviews for people: `_cat/indices` and `_cluster/health`.

use serde_json::{Map, Value, json};

use super::{IndexHandle, ResolveOptions};
use crate::Engine;
use crate::error::EngineError;
use crate::request::{CancelFlag, Reply, Request};

struct Column {
    name: &'static str,
    aliases: &'static [&'static str],
    /// Numbers stand at the right.
    right: bool,
}

const COLUMNS: [Column; 11] = [
    Column { name: "health", aliases: &["h"], right: false },
    Column { name: "status", aliases: &["s"], right: false },
    Column { name: "index", aliases: &["i", "idx"], right: false },
    Column { name: "uuid", aliases: &["id"], right: false },
    Column { name: "pri", aliases: &["p", "shards.primary"], right: true },
    Column { name: "rep", aliases: &["r", "shards.replica"], right: true },
    Column { name: "docs.count", aliases: &["dc", "docsCount"], right: true },
    Column { name: "docs.deleted", aliases: &["dd", "docsDeleted"], right: true },
    Column { name: "store.size", aliases: &["ss", "storeSize"], right: true },
    Column { name: "pri.store.size", aliases: &[], right: true },
    Column { name: "dataset.size", aliases: &[], right: true },
];

/// `GET /_cat/indices`
pub(crate) fn cat_indices(
    engine: &Engine,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    let columns: Vec<&Column> = match params.get("h") {
        None => COLUMNS.iter().collect(),
        Some(list) => list.split(',').filter_map(|name| column(name.trim())).collect(),
    };
    let handles = engine.indices.resolve(request.part("index"), ResolveOptions::from_params(&params)?)?;
    let in_bytes = params.get("bytes").is_some();
    let mut rows = Vec::with_capacity(handles.len());
    for handle in &handles {
        let row = row(handle, in_bytes)?;
        let position = |wanted: &Column| COLUMNS.iter().position(|column| column.name == wanted.name);
        rows.push(
            columns.iter().filter_map(|column| Some(row[position(column)?].clone())).collect::<Vec<_>>(),
        );
    }
    if params.get("format") == Some("json") {
        let objects = rows.into_iter().map(|row| {
            let members = columns.iter().zip(row).map(|(column, text)| (column.name.to_owned(), text.into()));
            Value::Object(members.collect::<Map<_, _>>())
        });
        return Ok(Reply::ok(&Value::Array(objects.collect())));
    }
    Ok(Reply::text(table(&columns, rows, params.bool("v", false)?)))
}

fn column(name: &str) -> Option<&'static Column> {
    COLUMNS.iter().find(|column| column.name == name || column.aliases.contains(&name))
}

fn row(handle: &IndexHandle, in_bytes: bool) -> Result<[String; 11], EngineError> {
    let stats = handle.index().stats()?;
    let size = if in_bytes { stats.bytes.to_string() } else { human_bytes(stats.bytes) };
    let replicas = handle.settings().replicas();
    Ok([
        health(replicas).to_owned(),
        "open".to_owned(),
        handle.name.clone(),
        handle.uuid.clone(),
        "1".to_owned(),
        replicas.to_string(),
        stats.docs.to_string(),
        stats.deleted.to_string(),
        size.clone(),
        size.clone(),
        size,
    ])
}

fn table(columns: &[&Column], rows: Vec<Vec<String>>, with_head: bool) -> String {
    let mut lines = Vec::new();
    if with_head {
        lines.push(columns.iter().map(|column| column.name.to_owned()).collect());
    }
    lines.extend(rows);
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| lines.iter().map(|line: &Vec<String>| line[at].chars().count()).max().unwrap_or_default())
        .collect();
    let mut text = String::new();
    for line in lines {
        let cells: Vec<String> = line
            .iter()
            .enumerate()
            .map(|(at, cell)| {
                let width = widths[at];
                // The last column needs no padding behind it.
                if columns[at].right {
                    format!("{cell:>width$}")
                } else if at + 1 == columns.len() {
                    cell.clone()
                } else {
                    format!("{cell:<width$}")
                }
            })
            .collect();
        text.push_str(&cells.join(" "));
        text.push('\n');
    }
    text
}

/// `6.6kb`, as Elasticsearch writes sizes.
fn human_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["b", "kb", "mb", "gb", "tb"] {
        if value < 1024.0 || unit == "tb" {
            let tenths = (value * 10.0).floor() / 10.0;
            return if tenths.fract() == 0.0 {
                format!("{tenths:.0}{unit}")
            } else {
                format!("{tenths:.1}{unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{bytes}b")
}

/// One node holds no replicas: an index that asks for some is yellow.
fn health(replicas: usize) -> &'static str {
    if replicas == 0 { "green" } else { "yellow" }
}

/// `GET /_cluster/health[/{index}]`
pub(crate) fn cluster_health(
    engine: &Engine,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let found = engine.indices.resolve(request.part("index"), ResolveOptions::default());
    let (status, http_status, handles) = match found {
        Err(_) => ("red", 408, Vec::new()),
        Ok(handles) => {
            let yellow = handles.iter().any(|handle| handle.settings().replicas() > 0);
            (if yellow { "yellow" } else { "green" }, 200, handles)
        }
    };
    let unassigned: usize = handles.iter().map(|handle| handle.settings().replicas()).sum();
    let active = handles.len();
    let percent =
        if active + unassigned == 0 { 100.0 } else { active as f64 * 100.0 / (active + unassigned) as f64 };
    Ok(Reply::json(
        http_status,
        &json!({
            "cluster_name": "sparrow",
            "status": status,
            "timed_out": http_status == 408,
            "number_of_nodes": 1,
            "number_of_data_nodes": 1,
            "active_primary_shards": active,
            "active_shards": active,
            "relocating_shards": 0,
            "initializing_shards": 0,
            "unassigned_shards": unassigned,
            "unassigned_primary_shards": 0,
            "delayed_unassigned_shards": 0,
            "number_of_pending_tasks": 0,
            "number_of_in_flight_fetch": 0,
            "task_max_waiting_in_queue_millis": 0,
            "active_shards_percent_as_number": percent,
        }),
    ))
}

#[cfg(test)]
mod tests {
    use super::human_bytes;

    #[test]
    fn sizes_read_as_elasticsearch_writes_them() {
        for (bytes, text) in [(0, "0b"), (227, "227b"), (1024, "1kb"), (6800, "6.6kb"), (5 << 30, "5gb")] {
            assert_eq!(human_bytes(bytes), text);
        }
    }
}
