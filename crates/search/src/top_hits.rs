//! Reduces aggregations to their final results; the hits of `top_hits` are read and written like those of a
//! search.

use serde_json::{Map, Value};
use sparrow_aggregations::{AggregationError, Collected, HitWriter, ReduceOptions, TopHits, TopList};

use crate::deadline::Deadline;
use crate::error::SearchError;
use crate::execute::Outcome;
use crate::highlight::Prepared;
use crate::hits::Reader;
use crate::response;
use crate::service::SearchService;
use crate::target::{Hit, Target};
use sparrow_query::walk;
use sparrow_request::error::EngineError;
use sparrow_search_body::aggs::Aggregations;
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::retriever::Fusion;
use sparrow_search_body::uri::Presentation;

/// Combines what the indices collected for each aggregation, in at most `search.max_buckets` buckets.
///
/// Also says whether the time was over before all hits were there.
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
    deadline: &Deadline,
) -> Result<(Map<String, Value>, bool), EngineError> {
    let options = ReduceOptions { typed_keys: shown.typed_keys, max_buckets: service.cluster.max_buckets() };
    let mut hits = Hits::new(service, targets, &aggregations.hits, search, shown, deadline);
    let reduced = sparrow_aggregations::reduce(&aggregations.tree, collected, options, &mut hits)
        .map_err(|source| hits.error.take().unwrap_or_else(|| SearchError::Reduce { source }.into()))?;
    Ok((reduced, hits.timed_out))
}

/// Reads the documents of `top_hits` from the indices that were searched.
struct Hits<'a> {
    reader: Reader<'a>,
    targets: &'a [Target],
    /// The search sections (`_source`, `highlight` and so on) that say what hits show, one for each
    /// `top_hits` of the request.
    bodies: Vec<SearchBody>,
    /// For each of `bodies`, in the same order, what highlighting its hits has in common.
    prepared: Vec<Prepared>,
    shown: Presentation,
    deadline: &'a Deadline,
    timed_out: bool,
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
        deadline: &'a Deadline,
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
        Self {
            reader: Reader::new(service, shown, deadline.caller()).until(deadline),
            targets,
            bodies: asked.iter().map(body).collect(),
            prepared: asked.iter().map(|_| Prepared::default()).collect(),
            shown,
            deadline,
            timed_out: false,
            error: None,
        }
    }

    fn written(
        &mut self,
        body: &SearchBody,
        top: &TopHits,
        list: &TopList,
        sort: &[Vec<Value>],
    ) -> Result<Value, EngineError> {
        let scored = top.scores_shown() || body.track_scores;
        // Buckets for whose hits there is no time show how many there are.
        let is_over = self.deadline.is_over();
        let size = if is_over { 0 } else { top.size };
        let page = list.hits.iter().zip(sort).skip(top.from).take(size);
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
        let prepared = &mut self.prepared[top.options];
        let read = self.reader.read_prepared(self.targets, body, &outcome, None, prepared)?;
        self.timed_out |= is_over || read.timed_out;
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
