//! `profile`: how long the parts of a search take.
//!
//! The format is Elasticsearch's. Where it is more detailed than this server's measurements, values are 0, as clients require the
//! keys. `debug`, `phases` and `models` are this server's own. Nothing is measured unless the request asks for it.

use std::time::{Duration, Instant};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::error::Shard;
use sparrow_encoder::Timings;
use sparrow_query::{Query, printed};
use sparrow_runtime::Executors;

/// What was measured of one search.
#[derive(Debug, Default)]
pub struct Profile {
    /// Id of each model that was called, with how long its phases took.
    pub models: Vec<(String, Timings)>,
    /// The measurements of each index, in the order of the targets.
    pub shards: Vec<ShardProfile>,
    /// Time that combining the lists took.
    pub fuse: Duration,
    /// Time that highlighting the hits took.
    pub highlight: Duration,
    /// Time that explaining the scores of hits took, including texts that were encoded for it.
    pub explain: Duration,
}

/// What was measured in one index.
#[derive(Debug, Default)]
pub struct ShardProfile {
    /// The index.
    shard: Shard,
    /// The queries that the index ran.
    pub queries: Vec<QueryProfile>,
    /// Time that reading the documents of hits took.
    pub fetch: Duration,
    /// Number of documents that were read.
    pub fetched: usize,
}

/// The measurements of one query in an index.
#[derive(Debug, Serialize)]
pub struct QueryProfile {
    #[serde(rename = "type")]
    kind: &'static str,
    description: String,
    #[serde(rename = "time_in_nanos", serialize_with = "in_nanos")]
    took: Duration,
    breakdown: Map<String, Value>,
    debug: QueryDebug,
}

/// The part of a query's profile whose content Elasticsearch leaves to the implementation.
#[derive(Debug, Serialize)]
struct QueryDebug {
    /// Names of the algorithms that found the hits; none if the query failed.
    executors: Vec<&'static str>,
}

impl QueryProfile {
    /// The profile of a query that took this long and was run by these algorithms.
    pub fn new(query: &Query, took: Duration, executors: Executors) -> Self {
        let (kind, description) = (query.kind.clause().lucene_name(), printed(query));
        let debug = QueryDebug { executors: executors.names().collect() };
        Self { kind, description, took, breakdown: unmeasured(&QUERY_BREAKDOWN), debug }
    }
}

impl Profile {
    /// An empty profile for a search of these indices.
    pub fn new<'a>(shards: impl Iterator<Item = &'a Shard>) -> Self {
        let of = |shard: &Shard| ShardProfile { shard: shard.clone(), ..ShardProfile::default() };
        Self { shards: shards.map(of).collect(), ..Self::default() }
    }

    /// Counts a document that is read from an index; gives the clock to which its time has to be added.
    pub fn fetched(&mut self, target: usize) -> &mut Duration {
        let shard = &mut self.shards[target];
        shard.fetched += 1;
        &mut shard.fetch
    }

    /// The `profile` section of a response.
    pub fn to_json(&self) -> Value {
        let shards: Vec<Value> = self.shards.iter().map(ShardProfile::to_json).collect();
        let total = |of: &dyn Fn(&Timings) -> Duration| -> u64 {
            nanos(self.models.iter().map(|(_, timings)| of(timings)).sum())
        };
        let search: Duration =
            self.shards.iter().flat_map(|shard| &shard.queries).map(|query| query.took).sum();
        let models: Vec<Value> = self
            .models
            .iter()
            .map(|(id, timings)| {
                json!({
                    "model_id": id,
                    "texts": timings.texts,
                    "cache_hits": timings.cached,
                    "tokenize_in_nanos": nanos(timings.tokenize),
                    "queue_in_nanos": nanos(timings.queue),
                    "infer_in_nanos": nanos(timings.infer),
                })
            })
            .collect();
        json!({
            "shards": shards,
            "phases": {
                "tokenize_in_nanos": total(&|timings| timings.tokenize),
                "queue_in_nanos": total(&|timings| timings.queue),
                "infer_in_nanos": total(&|timings| timings.infer),
                "search_in_nanos": nanos(search),
                "fuse_in_nanos": nanos(self.fuse),
                "fetch_in_nanos": nanos(self.shards.iter().map(|shard| shard.fetch).sum()),
                "highlight_in_nanos": nanos(self.highlight),
                "explain_in_nanos": nanos(self.explain),
            },
            "models": models,
        })
    }
}

impl ShardProfile {
    fn to_json(&self) -> Value {
        let shard = &self.shard;
        let mut breakdown = unmeasured(&FETCH_BREAKDOWN);
        breakdown.insert("load_stored_fields".into(), nanos(self.fetch).into());
        breakdown.insert("load_stored_fields_count".into(), self.fetched.into());
        json!({
            "id": format!("[{}][{}][0]", shard.node, shard.index),
            "node_id": shard.node,
            "shard_id": 0,
            "index": shard.index,
            "cluster": "(local)",
            "searches": [{
                "query": self.queries,
                "rewrite_time": 0,
                "collector": [{"name": "QueryPhaseCollector", "reason": "search_query_phase", "time_in_nanos": 0}],
            }],
            "aggregations": [],
            "fetch": {
                "type": "fetch",
                "description": "",
                "time_in_nanos": nanos(self.fetch),
                "breakdown": breakdown,
                "debug": {"stored_fields": ["_id", "_source"]},
            },
        })
    }
}

/// Runs `work` and adds the time it took to `clock`, if there is one.
pub fn timed<T>(clock: Option<&mut Duration>, work: impl FnOnce() -> T) -> T {
    let Some(clock) = clock else { return work() };
    let started = Instant::now();
    let done = work();
    *clock += started.elapsed();
    done
}

const QUERY_BREAKDOWN: [&str; 9] = [
    "advance",
    "build_scorer",
    "compute_max_score",
    "count_weight",
    "create_weight",
    "match",
    "next_doc",
    "score",
    "set_min_competitive_score",
];
const FETCH_BREAKDOWN: [&str; 3] = ["load_source", "load_stored_fields", "next_reader"];

/// The keys of a breakdown, each with the value 0 and a count of 0.
fn unmeasured(keys: &[&str]) -> Map<String, Value> {
    let shallow = keys.contains(&"advance").then_some("shallow_advance");
    keys.iter()
        .copied()
        .chain(shallow)
        .flat_map(|key| [(key.to_owned(), json!(0)), (format!("{key}_count"), json!(0))])
        .collect()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn in_nanos<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(nanos(*duration))
}
