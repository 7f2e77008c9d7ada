//! Compares the search results of the two models of a change: the same queries over both sets of vectors, in one
//! snapshot.

use serde_json::{Value, json};
use sparrow_catalog::IndexHandle;
use sparrow_catalog::model_change::ModelChange;
use sparrow_catalog::semantic::embed::vector;
use sparrow_catalog::texts::values_at;
use sparrow_mapping::Mapping;
use sparrow_models::{Purpose, TextEncoder};
use sparrow_query::{Query, QueryKind, SemanticQuery, default_candidates};
use sparrow_request::body::stored_tree;
use sparrow_request::error::EngineError;
use sparrow_request::request::CancelFlag;
use sparrow_runtime::work::{self, Work};
use sparrow_search::SearchService;
use sparrow_tantivy_index::query::{SearchOptions, TotalHits};
use sparrow_tantivy_index::{DocAddress, Snapshot};
use sparrow_tasks::TaskContext;

use super::request::LONGEST_QUERY;

/// Words of a query that is made of a document.
const WORDS: usize = 12;
/// Number of queries shown in the result: those whose results overlap least.
const SHOWN: usize = 5;

/// Names of the two sets of vectors of a field while its model is changed: the one that is searched, and the one beside it.
///
/// # Errors
/// If there is no second set.
pub(super) fn both_slots(mapping: &Mapping, field: &str) -> Result<(String, String), EngineError> {
    let searched = mapping.searched_slot(field).map(|(name, _)| name.into_owned());
    let both = searched.zip(mapping.slot_beside(field));
    both.ok_or_else(|| EngineError::internal("the second set of vectors is gone"))
}

/// The queries that a request asks to compare, by the `compare` of its change; `None` if documents are to be taken for queries.
pub(super) fn given(compare: &Value) -> Option<Vec<String>> {
    let queries = compare["queries"].as_array()?;
    Some(queries.iter().filter_map(|query| Some(query.as_str()?.to_owned())).collect())
}

/// The number of documents that each model finds for a query, by the `compare` of a change.
pub(super) fn size(compare: &Value) -> usize {
    compare["size"].as_u64().unwrap_or(10) as usize
}

/// What the result of a comparison shows of the lists that both models find for queries, each of at most `size` documents.
///
/// # Errors
/// When `cancel` is set.
pub(super) fn of_lists<T: PartialEq>(
    lists: Vec<(String, Vec<T>, Vec<T>)>,
    size: usize,
    with_queries: bool,
    cancel: &CancelFlag,
) -> Result<Option<Value>, EngineError> {
    let mut pairs = Vec::with_capacity(lists.len());
    for (query, old, new) in lists {
        if cancel.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        pairs.push(Pair::of(query, &old, &new));
    }
    Ok((!pairs.is_empty()).then(|| shown(&mut pairs, size, with_queries)))
}

/// One query, and how much the results of both models agree.
struct Pair {
    query: String,
    overlap: f64,
    /// Kendall's τ of the documents in both results; `None` if there are fewer than two.
    correlation: Option<f64>,
}

impl Pair {
    fn of<T: PartialEq>(query: String, old: &[T], new: &[T]) -> Self {
        Self { query, overlap: overlap(old, new), correlation: kendall(old, new) }
    }
}

/// Compares the results of both models; `None` if there are no queries.
///
/// # Errors
/// When a model fails, the index is gone or the task is cancelled.
pub(super) fn run(
    service: &SearchService,
    handle: &IndexHandle,
    change: &ModelChange,
    context: &TaskContext,
) -> Result<Option<Value>, EngineError> {
    let size = size(&change.compare);
    let snapshot = handle.snapshot();
    let given = given(&change.compare);
    let with_queries = given.is_some();
    let queries = match given {
        Some(queries) => queries,
        None => {
            let sample = change.compare["sample"].as_u64().unwrap_or(0) as usize;
            let cancel = std::sync::Arc::clone(context.cancel_flag());
            let memory = std::sync::Arc::clone(&service.memory);
            let _limits = work::enter(Some(Work::new(cancel, memory, "<change_model>")));
            sampled(&snapshot, &change.field, sample)?
        }
    };
    if queries.is_empty() {
        return Ok(None);
    }
    let (before, after) = both_slots(snapshot.mapping(), &change.field)?;
    let noted = snapshot
        .mapping()
        .slot(&before)
        .and_then(|slot| Some((slot.search_id(), slot.fingerprint.as_ref()?)));
    if noted.is_some_and(|(id, stored)| service.models.compares_with(id, stored) != Some(true)) {
        // Nothing makes queries for the old vectors any more.
        return Ok(None);
    }
    let mut pairs = Vec::with_capacity(queries.len());
    for query in queries {
        if context.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        let find = |slot: &str| -> Result<Vec<DocAddress>, EngineError> {
            let clause = clause(service, &snapshot, &change.field, slot, &query, size, context)?;
            let options = SearchOptions {
                size,
                min_score: None,
                track_total_hits: TotalHits::Off,
                cancel: Some(std::sync::Arc::clone(context.cancel_flag())),
                partial: false,
                post_filter: None,
            };
            let top = snapshot
                .search(&clause, &options)
                .map_err(|error| sparrow_search::query_error(service, handle, error))?;
            Ok(top.hits.iter().map(|hit| hit.addr).collect())
        };
        let (old, new) = (find(&before)?, find(&after)?);
        pairs.push(Pair::of(query, &old, &new));
    }
    // A key that may change models may not be allowed to read documents, so neither queries made of documents nor hits are shown.
    Ok(Some(shown(&mut pairs, size, with_queries)))
}

fn shown(pairs: &mut [Pair], size: usize, with_queries: bool) -> Value {
    let mean = |values: &[f64]| match values {
        [] => Value::Null,
        values => json!(round(values.iter().sum::<f64>() / values.len() as f64)),
    };
    let overlaps: Vec<f64> = pairs.iter().map(|pair| pair.overlap).collect();
    let correlations: Vec<f64> = pairs.iter().filter_map(|pair| pair.correlation).collect();
    let mut shown = json!({
        "queries": pairs.len(),
        "size": size,
        "overlap": mean(&overlaps),
        "least_overlap": round(overlaps.iter().copied().fold(1.0, f64::min)),
        "rank_correlation": mean(&correlations),
    });
    if with_queries {
        pairs.sort_by(|one, other| one.overlap.total_cmp(&other.overlap));
        let least = pairs.iter().take(SHOWN).map(|pair| {
            json!({"query": pair.query, "overlap": round(pair.overlap), "rank_correlation": pair.correlation.map(round)})
        });
        shown["least_alike"] = least.collect();
    }
    shown
}

fn round(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// The first words of documents, spread evenly over the index.
fn sampled(snapshot: &Snapshot, field: &str, number: usize) -> Result<Vec<String>, EngineError> {
    let mut queries = Vec::new();
    if number == 0 {
        return Ok(queries);
    }
    let all = snapshot.scan_all(None);
    let sources = snapshot.mapping().semantic_sources(field);
    for (_, addr) in all.iter().step_by((all.len() / number).max(1)).take(number) {
        let stored = snapshot.fetch(*addr)?;
        queries.extend(words_of(&stored_tree(&stored.source)?, &sources));
    }
    Ok(queries)
}

/// The first words of a document in the given fields, no longer than a query may be; `None` if it has none there.
pub(super) fn words_of(source: &Value, fields: &[String]) -> Option<String> {
    let mut words: Vec<String> = Vec::with_capacity(WORDS);
    for text in fields.iter().flat_map(|path| values_at(source, path)) {
        words.extend(text.split_whitespace().take(WORDS - words.len()).map(str::to_owned));
    }
    let query = words.join(" ");
    let most = LONGEST_QUERY.min(query.len());
    let end = (0..=most).rev().find(|at| query.is_char_boundary(*at)).unwrap_or_default();
    Some(query[..end].to_owned()).filter(|query| !query.is_empty())
}

/// A clause that searches one of the two sets.
fn clause(
    service: &SearchService,
    snapshot: &Snapshot,
    field: &str,
    slot: &str,
    text: &str,
    size: usize,
    context: &TaskContext,
) -> Result<Query, EngineError> {
    let id =
        snapshot.mapping().slot(slot).map(|settings| settings.search_id().to_owned()).unwrap_or_default();
    let mut outputs = Vec::new();
    for model in service.models.encoders(&id) {
        let encoded =
            service.models.encode(&model, &[text], Purpose::Query, Some(context.cancel_flag().as_ref()))?;
        outputs.extend(encoded.into_iter().map(|encoded| encoded.output));
    }
    let vector = vector(&outputs).ok_or_else(|| {
        EngineError::internal(format!("the models of [{id}] make no vectors that go together"))
    })?;
    Ok(Query::from(QueryKind::Semantic(SemanticQuery {
        field: field.to_owned(),
        text: text.to_owned(),
        slot: Some(slot.to_owned()),
        vectors: vec![(id, vector)],
        k: size,
        num_candidates: default_candidates(size),
        ..SemanticQuery::default()
    })))
}

/// The share of the longer list that is in both lists, 0 to 1.
fn overlap<T: PartialEq>(one: &[T], other: &[T]) -> f64 {
    let longer = one.len().max(other.len());
    if longer == 0 {
        return 1.0;
    }
    one.iter().filter(|addr| other.contains(addr)).count() as f64 / longer as f64
}

/// Kendall's τ of the documents that are in both lists: 1 for the same order, -1 for the reverse.
fn kendall<T: PartialEq>(one: &[T], other: &[T]) -> Option<f64> {
    let ranks: Vec<usize> =
        one.iter().filter_map(|addr| other.iter().position(|candidate| candidate == addr)).collect();
    let pairs = ranks.len() * ranks.len().saturating_sub(1) / 2;
    if pairs == 0 {
        return None;
    }
    let mut sum = 0_i64;
    for (at, rank) in ranks.iter().enumerate() {
        sum += ranks[at + 1..].iter().map(|later| if later > rank { 1 } else { -1 }).sum::<i64>();
    }
    Some(sum as f64 / pairs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_that_is_made_of_a_document_is_no_longer_than_one_may_be() {
        let fields = ["a".to_owned(), "b".to_owned()];
        let words = |source: Value| words_of(&source, &fields);
        let many = (0..WORDS + 5).map(|number| format!("w{number} ")).collect::<String>();
        let first = (0..WORDS).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" ");
        assert_eq!(words(json!({"a": many, "b": "x"})), Some(first));
        assert_eq!(words(json!({"a": [" x ", "y"], "b": "z"})).as_deref(), Some("x y z"));
        assert_eq!(words(json!({"a": " ", "c": "x"})), None);
        // Of letters that have several bytes, only whole ones are left.
        let long = "\u{e9}".repeat(LONGEST_QUERY);
        let cut = words(json!({"a": format!("x {long} y"), "b": long})).unwrap();
        assert!(
            cut.starts_with("x \u{e9}") && (LONGEST_QUERY - 1..=LONGEST_QUERY).contains(&cut.len()),
            "{}",
            cut.len()
        );
    }

    fn list(docs: &[u32]) -> Vec<DocAddress> {
        docs.iter().map(|doc| DocAddress::new(0, *doc)).collect()
    }

    #[test]
    fn lists_are_compared_by_what_they_share_and_in_which_order() {
        let same = list(&[1, 2, 3]);
        assert_eq!((overlap(&same, &same), kendall(&same, &same)), (1.0, Some(1.0)));
        let reversed = list(&[3, 2, 1]);
        assert_eq!((overlap(&same, &reversed), kendall(&same, &reversed)), (1.0, Some(-1.0)));
        let partly = list(&[2, 9, 1, 8]);
        assert_eq!((overlap(&same, &partly), kendall(&same, &partly)), (0.5, Some(-1.0)));
        assert_eq!((overlap(&same, &list(&[7])), kendall(&same, &list(&[7]))), (0.0, None));
        assert_eq!((overlap::<u32>(&[], &[]), kendall::<u32>(&[], &[])), (1.0, None));
        let mixed = list(&[1, 3, 2]);
        assert!((kendall(&same, &mixed).unwrap() - 1.0 / 3.0).abs() < 1e-12);
    }
}
