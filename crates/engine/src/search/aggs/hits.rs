//! The hits of `top_hits`.

use serde_json::{Map, Value, json};
use sparrow_index::aggregations::{AggregationError, HitWriter, TopHits, TopList};

use crate::search::execute::Target;
use crate::search::java_float::f32_text;
use crate::search::source_filter::SourceSelection;

/// What a hit shows.
#[derive(Debug, Clone, PartialEq)]
pub struct HitOptions {
    /// The part of its source.
    pub source: SourceSelection,
    /// Its version.
    pub version: bool,
    /// Its sequence number and primary term.
    pub seq_no_primary_term: bool,
    /// Its score although something else orders the hits.
    pub track_scores: bool,
}

impl Default for HitOptions {
    fn default() -> Self {
        Self {
            source: SourceSelection::Whole,
            version: false,
            seq_no_primary_term: false,
            track_scores: false,
        }
    }
}

/// Reads documents of the indices that were searched.
pub struct Hits<'a> {
    /// The indices.
    pub targets: &'a [Target],
    /// What hits show, for each `top_hits` of the request.
    pub options: &'a [HitOptions],
}

/// A score, with as many digits as tell it from its neighbours.
fn score_value(score: Option<f32>) -> Value {
    score
        .filter(|score| score.is_finite())
        .and_then(|score| f32_text(score).parse::<f64>().ok())
        .and_then(serde_json::Number::from_f64)
        .map_or(Value::Null, Value::Number)
}

impl HitWriter for Hits<'_> {
    fn write(
        &mut self,
        top: &TopHits,
        list: &TopList,
        sort: &[Vec<Value>],
    ) -> Result<Value, AggregationError> {
        let default = HitOptions::default();
        let options = self.options.get(top.options).unwrap_or(&default);
        let scored = top.scores_shown() || options.track_scores;
        let mut hits = Vec::new();
        for (hit, sort) in list.hits.iter().zip(sort).skip(top.from).take(top.size) {
            let target = &self.targets[hit.target];
            let stored = target
                .snapshot
                .fetch(hit.addr)
                .map_err(|error| AggregationError::Execution(error.to_string()))?;
            let mut shown = Map::new();
            shown.insert("_index".to_owned(), target.shard.index.as_str().into());
            shown.insert("_id".to_owned(), stored.id.into());
            if options.version {
                shown.insert("_version".to_owned(), stored.version.into());
            }
            if options.seq_no_primary_term {
                shown.insert("_seq_no".to_owned(), stored.seq_no.into());
                shown.insert("_primary_term".to_owned(), 1.into());
            }
            shown.insert("_score".to_owned(), score_value(Some(hit.score).filter(|_| scored)));
            let mut source = Vec::new();
            if options.source.write(&stored.source, &mut source)
                && let Ok(source) = serde_json::from_slice(&source)
            {
                shown.insert("_source".to_owned(), source);
            }
            if !top.sort.is_empty() {
                shown.insert("sort".to_owned(), Value::Array(sort.clone()));
            }
            hits.push(Value::Object(shown));
        }
        Ok(json!({
            "total": {"value": list.total, "relation": "eq"},
            "max_score": score_value(list.max_score.filter(|_| scored && !hits.is_empty())),
            "hits": hits,
        }))
    }
}
