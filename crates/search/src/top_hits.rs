//! Reduces aggregations to their final results; the hits of `top_hits` are read and written like those of a
//! search.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value};
use sparrow_aggregations::{AggregationError, Collected, HitWriter, ReduceOptions, TopHits, TopList};

use crate::aggs::Aggregations;
use crate::body::SearchBody;
use crate::error::SearchError;
use crate::execute::Outcome;
use crate::hits::Reader;
use crate::response;
use crate::retriever::Fusion;
use crate::service::SearchService;
use crate::target::{Hit, Target};
use crate::uri::Presentation;
use sparrow_call::error::EngineError;
use sparrow_query::walk;

/// Combines what the indices collected for each aggregation, in at most `search.max_buckets` buckets.
///
/// # Errors
/// When the parts do not fit together, or there are too many buckets.
pub fn reduce(
    aggregations: &Aggregations,
    service: &SearchService,
    collected: Vec<Collected>,
    targets: &[Target],
    search: &SearchBody,
    shown: Presentation,
    cancel: &Arc<AtomicBool>,
) -> Result<Map<String, Value>, EngineError> {
    let options = ReduceOptions { typed_keys: shown.typed_keys, max_buckets: service.cluster.max_buckets() };
    let mut hits = Hits::new(service, targets, &aggregations.hits, search, shown, cancel);
    sparrow_aggregations::reduce(&aggregations.tree, collected, options, &mut hits)
        .map_err(|source| hits.error.take().unwrap_or_else(|| SearchError::Reduce { source }.into()))
}

/// Reads the documents of `top_hits` from the indices that were searched.
struct Hits<'a> {
    reader: Reader<'a>,
    targets: &'a [Target],
    /// The search sections (`_source`, `highlight` and so on) that say what hits show, one for each
    /// `top_hits` of the request.
    bodies: Vec<SearchBody>,
    shown: Presentation,
    /// The first error of reading a document, to be reported like that of a search.
    error: Option<EngineError>,
}

impl<'a> Hits<'a> {
    /// A reader of aggregation hits that shows what each body in `asked` asks for; highlights and
    /// explanations come from the queries of `search`.
    fn new(
        service: &'a SearchService,
        targets: &'a [Target],
        asked: &[SearchBody],
        search: &SearchBody,
        shown: Presentation,
        cancel: &'a Arc<AtomicBool>,
    ) -> Self {
        let any = search.fusion.as_ref().map(Fusion::any);
        let named = search.queries().any(walk::has_names);
        let body = |asked: &SearchBody| {
            let mut body = asked.clone();
            body.of_bucket = true;
            body.named_scores = search.named_scores;
            if body.highlight.is_some() || body.explain || named {
                body.query = any.clone().or_else(|| search.query.clone());
                body.knn.clone_from(&search.knn);
                body.sub_searches.clone_from(&search.sub_searches);
                body.indices_boost.clone_from(&search.indices_boost);
            }
            if body.fields.is_empty() {
                // As Elasticsearch has it, they show the fields of the search itself.
                body.fields.clone_from(&search.fields);
            }
            body
        };
        let shown = Presentation { total_as_int: false, ..shown };
        let reader = Reader::new(service, shown, cancel);
        Self { reader, targets, bodies: asked.iter().map(body).collect(), shown, error: None }
    }

    fn written(
        &mut self,
        body: &SearchBody,
        top: &TopHits,
        list: &TopList,
        sort: &[Vec<Value>],
    ) -> Result<Value, EngineError> {
        let scored = top.scores_shown() || body.track_scores;
        let page = list.hits.iter().zip(sort).skip(top.from).take(top.size);
        let mut outcome = Outcome { total: Some((list.total, true)), ..Outcome::default() };
        for (hit, sort) in page {
            outcome.hits.push(Hit {
                target: hit.target,
                addr: hit.addr,
                seq_no: hit.seq_no,
                score: if scored { hit.score } else { f32::NAN },
                rank: None,
            });
            if !top.sort.is_empty() {
                outcome.sort.push(Value::Array(sort.clone()).to_string().into());
            }
        }
        outcome.max_score = list.max_score.filter(|_| scored && !outcome.hits.is_empty());
        let read = self.reader.read(self.targets, body, &outcome, None)?;
        let mut out = Vec::new();
        response::write_hits(&mut out, body, self.shown, self.targets.len(), &outcome, &read.hits)?;
        serde_json::from_slice(&out)
            .map_err(|error| EngineError::internal(format!("hits are not JSON: {error}")))
    }
}

impl HitWriter for Hits<'_> {
    fn write(
        &mut self,
        top: &TopHits,
        list: &TopList,
        sort: &[Vec<Value>],
    ) -> Result<Value, AggregationError> {
        // Taken out while it is read with.
        let body = self.bodies.get_mut(top.options).map(std::mem::take).unwrap_or_default();
        let written = self.written(&body, top, list, sort);
        if let Some(place) = self.bodies.get_mut(top.options) {
            *place = body;
        }
        written.map_err(|error| {
            let reason = error.reason();
            self.error = Some(error);
            AggregationError::Execution(reason)
        })
    }
}
