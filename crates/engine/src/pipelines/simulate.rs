//! `_simulate`: what a pipeline would do to documents, step by step if asked.

use serde_json::{Map, Value, json};

use super::chain::{self, Item, Pipeline, Runtime, State};
use super::document::Document;
use super::effort::Together;
use super::error::ProcessorError;
use super::{IngestSummary, Pipelines, timestamp};
use crate::models::{Purpose, TextEncoder};

/// An error of a processor as a body: type, reason and root cause.
pub(super) fn error_body(error: &ProcessorError) -> Value {
    let cause = json!({"type": error.es_type(), "reason": error.to_string()});
    json!({"root_cause": [cause], "type": error.es_type(), "reason": error.to_string()})
}

/// Runs documents (objects with `_source` and perhaps `_index` and `_id`) and shows what became of them.
pub(super) fn run(
    pipelines: &Pipelines,
    encoder: &dyn TextEncoder,
    pipeline: &Pipeline,
    documents: Vec<Map<String, Value>>,
    verbose: bool,
) -> Value {
    let now = timestamp();
    let all = pipelines.all();
    let together = Together::new(documents.len());
    let runtime = Runtime { pipelines: &all, encoder, purpose: Purpose::Direct, cancel: None, together };
    let mut items: Vec<Item> =
        documents.into_iter().map(|given| Item::new(document(given, &now), verbose)).collect();
    let who: Vec<usize> = (0..items.len()).collect();
    chain::run_pipeline(&runtime, pipeline, &mut items, &who, &mut IngestSummary::default());
    let shown: Vec<Value> = items
        .into_iter()
        .map(|item| match (item.trace, item.state) {
            (Some(trace), _) => json!({"processor_results": trace}),
            (None, State::Live | State::Terminated) => json!({"doc": item.document.to_simulated(false)}),
            (None, State::Dropped) => Value::Null,
            (None, State::Failed(failure)) => json!({"error": error_body(&failure.error)}),
        })
        .collect();
    json!({"docs": shown})
}

fn document(mut given: Map<String, Value>, now: &str) -> Document {
    let source = match given.shift_remove("_source") {
        Some(Value::Object(source)) => source,
        _ => Map::new(),
    };
    let mut document = Document { source, ..Document::default() };
    for (name, default) in [("_index", "_index"), ("_id", "_id")] {
        let value = given.shift_remove(name).unwrap_or_else(|| Value::String(default.into()));
        document.metadata.insert(name.into(), value);
    }
    // What Elasticsearch shows for a document that was never stored.
    let version = given.shift_remove("_version").unwrap_or_else(|| Value::from(-3));
    document.metadata.insert("_version".into(), Value::String(version.to_string()));
    document.metadata.extend(given);
    document.ingest.insert("timestamp".into(), Value::String(now.to_owned()));
    document
}
