//! `_cluster/health`: the state of all indices in a colour, and waiting for a better one.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use sparrow_catalog::Node;
use sparrow_catalog::ResolveOptions;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::{INDICES, TIMEOUTS};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::params::Params;
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::{Action, Right};
use sparrow_request::waits::waiting;

pub(crate) const OPERATIONS: &[Operation<Node>] =
    &[Operation::new("cluster_health", Action::Health, Lane::Health, cluster_health)
        .about("Whether the cluster is green, yellow or red; can wait until it is so.")
        .takes(&[
            TIMEOUTS,
            INDICES,
            "level local wait_for_status wait_for_nodes wait_for_events wait_for_active_shards",
            "wait_for_no_relocating_shards wait_for_no_initializing_shards",
            "return_200_for_cluster_health_timeout",
        ])
        .unlisted()];

/// Interval at which the condition of a waiting request is checked.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);
/// Longest time that a request waits, by default.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);
const COLOURS: [&str; 3] = ["green", "yellow", "red"];

/// Shards of an index or of all.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Shards {
    #[serde(rename = "active_shards")]
    active: usize,
    /// Always 0, as shards of a single node never move; so is `initializing_shards`.
    relocating_shards: usize,
    initializing_shards: usize,
    #[serde(rename = "unassigned_shards")]
    unassigned: usize,
    #[serde(rename = "unassigned_primary_shards")]
    unassigned_primaries: usize,
    /// Shards that accept no writes because of disk errors, or whose refreshes, flushes or merges fail; they can still
    /// be read.
    #[serde(skip)]
    troubled: usize,
}

impl Shards {
    /// Index in [`COLOURS`] of the health of these shards.
    fn colour(self) -> usize {
        match self {
            Self { unassigned_primaries: 0, unassigned: 0, troubled: 0, .. } => 0,
            Self { unassigned_primaries: 0, .. } => 1,
            Self { .. } => 2,
        }
    }
}

/// The response, with indices and shards if `level` asks for them.
#[derive(Serialize)]
struct ClusterHealth<'a> {
    cluster_name: &'static str,
    status: &'static str,
    timed_out: bool,
    number_of_nodes: usize,
    number_of_data_nodes: usize,
    active_primary_shards: usize,
    #[serde(flatten)]
    shards: Shards,
    delayed_unassigned_shards: usize,
    number_of_pending_tasks: usize,
    number_of_in_flight_fetch: usize,
    task_max_waiting_in_queue_millis: usize,
    active_shards_percent_as_number: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    indices: Option<BTreeMap<&'a str, IndexHealth>>,
}

#[derive(Serialize)]
struct IndexHealth {
    status: &'static str,
    number_of_shards: usize,
    number_of_replicas: usize,
    active_primary_shards: usize,
    #[serde(flatten)]
    all: Shards,
    /// Health by the number of the shard, which is always 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    shards: Option<BTreeMap<&'static str, ShardHealth>>,
}

#[derive(Serialize)]
struct ShardHealth {
    status: &'static str,
    primary_active: bool,
    #[serde(flatten)]
    shards: Shards,
}

/// The health of the indices of one moment.
#[derive(Default)]
struct Health {
    all: Shards,
    indices: Vec<(String, usize, Shards)>,
    /// Whether the request names an index that does not exist.
    missing: bool,
}

impl Health {
    fn of(node: &Node, expression: &str, options: &ResolveOptions) -> Self {
        let names = node.indices.names();
        let mut health = Self::default();
        let Ok(indices) = names.index_names(expression, options, Right::unlimited()) else {
            return Self { missing: true, ..health };
        };
        for name in indices {
            let (replicas, shards) = match names.indices.get(&name) {
                Some(handle) => {
                    let replicas = handle.settings().replicas();
                    let troubled = usize::from(handle.is_troubled());
                    (replicas, Shards { active: 1, unassigned: replicas, troubled, ..Shards::default() })
                }
                None => (0, Shards { unassigned: 1, unassigned_primaries: 1, ..Shards::default() }),
            };
            health.all.active += shards.active;
            health.all.unassigned += shards.unassigned;
            health.all.unassigned_primaries += shards.unassigned_primaries;
            health.all.troubled += shards.troubled;
            health.indices.push((name, replicas, shards));
        }
        health
    }

    fn colour(&self) -> usize {
        if self.missing { 2 } else { self.all.colour() }
    }

    fn percent(&self) -> f64 {
        let all = self.all.active + self.all.unassigned;
        if all == 0 { 100.0 } else { self.all.active as f64 * 100.0 / all as f64 }
    }

    fn indices(&self, with_shards: bool) -> BTreeMap<&str, IndexHealth> {
        let shown = self.indices.iter().map(|(name, replicas, shards)| {
            let status = COLOURS[shards.colour()];
            let shard = ShardHealth { status, primary_active: shards.active > 0, shards: *shards };
            let index = IndexHealth {
                status,
                number_of_shards: 1,
                number_of_replicas: *replicas,
                active_primary_shards: shards.active,
                all: *shards,
                shards: with_shards.then(|| BTreeMap::from([("0", shard)])),
            };
            (name.as_str(), index)
        });
        shown.collect()
    }
}

/// What a request waits for.
struct Wait {
    colour: Option<usize>,
    nodes: Option<String>,
    active: Option<Active>,
}

#[derive(Clone, Copy)]
enum Active {
    All,
    AtLeast(usize),
}

impl Wait {
    fn parse(params: &Params<'_>) -> Result<Self, EngineError> {
        let colour = match params.get("wait_for_status").filter(|text| !text.is_empty()) {
            None => None,
            Some(text) => Some(
                COLOURS.iter().position(|colour| colour.eq_ignore_ascii_case(text)).ok_or_else(|| {
                    EngineError::illegal_argument(format!(
                        "No enum constant org.elasticsearch.cluster.health.ClusterHealthStatus.{}",
                        text.to_uppercase()
                    ))
                })?,
            ),
        };
        let active = match params.get("wait_for_active_shards") {
            None => None,
            Some("all") => Some(Active::All),
            Some(text) => match text.parse::<i64>() {
                Ok(count) => Some(Active::AtLeast(usize::try_from(count).map_err(|_| {
                    EngineError::illegal_argument(format!(
                        "wait_for_active_shards must be a positive number, but was [{count}]"
                    ))
                })?)),
                Err(_) => {
                    return Err(EngineError::illegal_argument(format!(
                        "cannot parse ActiveShardCount[{text}]"
                    )));
                }
            },
        };
        // Nothing ever moves or starts here, so these hold at once.
        params.bool("wait_for_no_relocating_shards", false)?;
        params.bool("wait_for_no_initializing_shards", false)?;
        params.bool("local", false)?;
        if let Some(priority) = params.get("wait_for_events")
            && !["immediate", "urgent", "high", "normal", "low", "languid"]
                .contains(&priority.to_ascii_lowercase().as_str())
        {
            return Err(EngineError::illegal_argument(format!(
                "No enum constant org.elasticsearch.common.Priority.{}",
                priority.to_uppercase()
            )));
        }
        let nodes = params.get("wait_for_nodes").filter(|text| !text.is_empty()).map(str::to_owned);
        if let Some(nodes) = &nodes {
            nodes_fit(nodes)?;
        }
        Ok(Self { colour, nodes, active })
    }

    fn is_over(&self, health: &Health) -> Result<bool, EngineError> {
        let colour = self.colour.is_none_or(|wanted| health.colour() <= wanted);
        let active = match self.active {
            None => true,
            Some(Active::All) => health.all.unassigned == 0,
            Some(Active::AtLeast(count)) => health.all.active >= count,
        };
        let nodes = self.nodes.as_deref().map_or(Ok(true), nodes_fit)?;
        Ok(!health.missing && colour && active && nodes)
    }
}

/// Whether a single node satisfies the condition `wanted`: `1`, `>=1`, `ge(1)`, …
fn nodes_fit(wanted: &str) -> Result<bool, EngineError> {
    type Fits = fn(i64) -> bool;
    const FORMS: [(&str, &str, Fits); 8] = [
        (">=", "", |count| 1 >= count),
        ("<=", "", |count| 1 <= count),
        ("ge(", ")", |count| 1 >= count),
        ("le(", ")", |count| 1 <= count),
        ("gt(", ")", |count| 1 > count),
        ("lt(", ")", |count| 1 < count),
        (">", "", |count| 1 > count),
        ("<", "", |count| 1 < count),
    ];
    let form = FORMS
        .iter()
        .find_map(|(start, end, fits)| Some((wanted.strip_prefix(start)?.strip_suffix(end)?, *fits)));
    let (number, fits): (&str, Fits) = form.unwrap_or((wanted, |count| count == 1));
    match number.trim().parse() {
        Ok(count) => Ok(fits(count)),
        Err(_) => Err(EngineError::api(
            400,
            sparrow_request::error::Exception::new(
                "number_format_exception",
                format!("For input string: \"{number}\""),
            ),
        )),
    }
}

/// `GET /_cluster/health[/{index}]`, on a thread that may wait.
fn cluster_health(
    node: &Node,
    request: &Request,
    _: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let since = Instant::now();
    loop {
        if let Some(reply) = look(node, request, since)? {
            return Ok(reply);
        }
        if cancel.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        waiting(|| thread::sleep(PATIENCE));
    }
}

/// The response, if the conditions of the request are met or its time is up; `since` is the moment when it began to
/// wait.
///
/// # Errors
/// If the request is malformed.
pub fn look(node: &Node, request: &Request, since: Instant) -> Result<Option<Reply>, EngineError> {
    let params = request.params();
    let options = ResolveOptions::everything().with(&params)?;
    let wait = Wait::parse(&params)?;
    let level = match params.get("level").unwrap_or("cluster") {
        level @ ("cluster" | "indices" | "shards") => level,
        other => {
            return Err(EngineError::illegal_argument(format!(
                "level parameter must be one of [cluster] or [indices] or [shards] but was [{other}]"
            )));
        }
    };
    let timeout = params.duration("timeout")?.unwrap_or(DEFAULT_WAIT);
    let status = if params.bool("return_200_for_cluster_health_timeout", false)? { 200 } else { 408 };
    let expression = request.part("index");
    let health = Health::of(node, expression, &options);
    let timed_out = !wait.is_over(&health)?;
    if timed_out && since.elapsed() < timeout {
        return Ok(None);
    }
    let body = ClusterHealth {
        cluster_name: super::info::CLUSTER_NAME,
        status: COLOURS[health.colour()],
        timed_out,
        number_of_nodes: 1,
        number_of_data_nodes: 1,
        active_primary_shards: health.all.active,
        shards: health.all,
        delayed_unassigned_shards: 0,
        number_of_pending_tasks: 0,
        number_of_in_flight_fetch: 0,
        task_max_waiting_in_queue_millis: 0,
        active_shards_percent_as_number: health.percent(),
        indices: (level != "cluster").then(|| health.indices(level == "shards")),
    };
    Ok(Some(Reply::json(if timed_out { status } else { 200 }, &body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_is_compared() {
        for (wanted, fits) in [
            ("1", true),
            (">=1", true),
            (">1", false),
            ("ge(2)", false),
            ("le(2)", true),
            ("<2", true),
            ("10", false),
        ] {
            assert_eq!(nodes_fit(wanted).unwrap(), fits, "{wanted}");
        }
        assert!(nodes_fit(">=x").is_err());
    }
}
