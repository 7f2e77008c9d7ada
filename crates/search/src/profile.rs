//! `profile`: how long the parts of a search take.
//!
//! The format is Elasticsearch's. Where it is more detailed than this server's measurements, values are 0, as clients require the
//! keys. `debug`, `phases` and `models` are this server's own. Nothing is measured unless the request asks for it.

use std::time::{Duration, Instant};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use sparrow_encoder::Timings;
use sparrow_query::{BoolQuery, Query, QueryKind};
use sparrow_types::Executors;

use super::error::Shard;

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
    kind: String,
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
        let (kind, description) = describe(query);
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

/// Longest description of a query, in bytes; a clause may contain thousands of terms.
const MAX_DESCRIPTION: usize = 1000;

/// Type and text of a query for a profile, with Lucene's name of the type if there is one.
pub fn describe(query: &Query) -> (String, String) {
    let mut text = String::new();
    let kind = name(&query.kind);
    write(query, &mut text);
    if text.len() > MAX_DESCRIPTION {
        let end = (0..=MAX_DESCRIPTION).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    (kind, text)
}

fn name(kind: &QueryKind) -> String {
    match kind {
        QueryKind::MatchAll => "MatchAllDocsQuery".into(),
        QueryKind::MatchNone => "MatchNoDocsQuery".into(),
        QueryKind::Bool(_) => "BooleanQuery".into(),
        QueryKind::ConstantScore { .. } => "ConstantScoreQuery".into(),
        QueryKind::DisMax { .. } => "DisjunctionMaxQuery".into(),
        QueryKind::Sparse(_) => "SparseVectorQuery".into(),
        QueryKind::Knn(_) => "KnnVectorQuery".into(),
        // The name of the variant: `Term { field: … }`.
        other => {
            let text = format!("{other:.0?}");
            let name: String = text.chars().take_while(char::is_ascii_alphanumeric).collect();
            format!("{name}Query")
        }
    }
}

fn write(query: &Query, out: &mut String) {
    if out.len() > MAX_DESCRIPTION {
        return;
    }
    match &query.kind {
        QueryKind::MatchAll => out.push_str("*:*"),
        QueryKind::MatchNone => out.push_str("MatchNoDocsQuery(\"\")"),
        QueryKind::Term { field, value, .. } => match value.as_str() {
            Some(text) => out.push_str(&format!("{field}:{text}")),
            None => out.push_str(&format!("{field}:{value}")),
        },
        QueryKind::Match(clause) => out.push_str(&format!("{}:{}", clause.field, clause.text)),
        QueryKind::MatchPhrase(clause) => out.push_str(&format!("{}:\"{}\"", clause.field, clause.text)),
        QueryKind::Sparse(clause) => {
            for (number, (token, weight)) in clause.tokens.iter().enumerate() {
                let space = if number == 0 { "" } else { " " };
                out.push_str(&format!("{space}{}:{token}^{weight}", clause.field));
                if out.len() > MAX_DESCRIPTION {
                    return;
                }
            }
        }
        QueryKind::Knn(clause) => {
            out.push_str(&format!("{}[{} dims][k={}]", clause.field, clause.vector.len(), clause.k));
        }
        QueryKind::ConstantScore { filter } => {
            out.push_str("ConstantScore(");
            write(filter, out);
            out.push(')');
        }
        QueryKind::DisMax { queries, .. } => join(queries, "(", " | ", ")", out),
        QueryKind::Bool(BoolQuery { must, should, filter, must_not, .. }) => {
            for (sign, clauses) in [("+", must), ("", should), ("#", filter), ("-", must_not)] {
                for clause in clauses {
                    if !out.is_empty() && !out.ends_with('(') {
                        out.push(' ');
                    }
                    out.push_str(sign);
                    match clause.kind {
                        QueryKind::Bool(_) => join(std::slice::from_ref(clause), "(", "", ")", out),
                        _ => write(clause, out),
                    }
                }
            }
        }
        other => out.push_str(&name(other)),
    }
    if query.boost != 1.0 {
        out.push_str(&format!("^{:?}", query.boost));
    }
}

fn join(queries: &[Query], open: &str, between: &str, close: &str, out: &mut String) {
    out.push_str(open);
    for (number, query) in queries.iter().enumerate() {
        if number > 0 {
            out.push_str(between);
        }
        write(query, out);
    }
    out.push_str(close);
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sparrow_query::{BoolQuery, Query, QueryKind};

    use super::{MAX_DESCRIPTION, describe};

    fn term(field: &str, value: serde_json::Value) -> Query {
        QueryKind::Term { field: field.into(), value, case_insensitive: false }.into()
    }

    #[test]
    fn queries_are_described_as_lucene_writes_them() {
        let tree = BoolQuery {
            must: vec![term("a", json!("x"))],
            should: vec![term("n", json!(3)).with_boost(2.0)],
            filter: vec![Query::match_all()],
            must_not: vec![
                QueryKind::Bool(BoolQuery { must: vec![term("b", json!("y"))], ..Default::default() }).into(),
            ],
            ..Default::default()
        };
        let (kind, text) = describe(&QueryKind::Bool(tree).into());
        assert_eq!((kind.as_str(), text.as_str()), ("BooleanQuery", "+a:x n:3^2.0 #*:* -(+b:y)"));
        assert_eq!(describe(&term("a", json!("x"))).0, "TermQuery");
        assert_eq!(describe(&Query::match_all()), ("MatchAllDocsQuery".into(), "*:*".into()));
    }

    #[test]
    fn long_descriptions_are_cut() {
        let (_, text) = describe(&term("a", json!("ä".repeat(3000))));
        assert!(text.len() <= MAX_DESCRIPTION + 4 && text.ends_with('…'));
    }
}
