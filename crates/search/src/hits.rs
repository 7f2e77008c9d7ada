//! Loads what the hits of a response contain: source, fields and matching named clauses of each document, and further hits of its
//! group.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sparrow_query::{Query, QueryKind};
use sparrow_runtime::work;
use sparrow_tantivy_index::OpenDocument;
use sparrow_tantivy_index::query::sorted::SortValue;
use sparrow_tantivy_index::query::{QueryError, TotalHits};

use super::deadline::{Deadline, is_cancelled};
use super::error::SearchError;
use super::execute::{self, Outcome};
use super::explain;
use super::fields::FieldSource;
use super::highlight::{Highlighter, Prepared};
use super::profile::{self, Profile};
use super::response::{self, ShownHit};
use super::script_fields::ScriptFields;
use super::target::{Hit, Target};
use crate::service::SearchService;
use sparrow_mapping::SourceSelection;
use sparrow_query::walk;
use sparrow_request::error::EngineError;
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::nested_hits::NestedHits;
use sparrow_search_body::retriever::Fusion;
use sparrow_search_body::uri::Presentation;

/// Loads what hits contain, and the hits inside them.
pub struct Reader<'a> {
    service: &'a SearchService,
    shown: Presentation,
    /// The flag that is set when reading has to stop.
    cancel: &'a Arc<AtomicBool>,
    /// The time limit of the search. Reading goes on when it is over, but without what takes long.
    deadline: Option<&'a Deadline>,
    /// The document of the object that was read last.
    open: Option<OpenDocument>,
}

/// The hits of one search.
pub struct Read<'a> {
    /// What is shown of each: of all, or of the first ones.
    pub hits: Vec<ShownHit<'a>>,
    /// Whether the time was over before everything that they show was there: they are without highlights and explanations, or the others are
    /// left out.
    pub timed_out: bool,
}

impl<'a> Reader<'a> {
    /// A reader for one request, which stops when `cancel` is set.
    pub fn new(service: &'a SearchService, shown: Presentation, cancel: &'a Arc<AtomicBool>) -> Self {
        Self { service, shown, cancel, deadline: None, open: None }
    }

    /// Has it leave out highlights, explanations, and hits for whose scripts or inner hits there is no time.
    pub fn until(self, deadline: &'a Deadline) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Loads everything that the hits contain.
    ///
    /// # Errors
    /// When a document cannot be read, or a requested field cannot be returned.
    pub fn read<'t>(
        &mut self,
        targets: &'t [Target],
        body: &SearchBody,
        outcome: &Outcome,
        profile: Option<&mut Profile>,
    ) -> Result<Read<'t>, EngineError> {
        self.read_prepared(targets, body, outcome, profile, &mut Prepared::default())
    }

    /// Does the same with what was prepared for the hits of the same search, such as those of another bucket.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn read_prepared<'t>(
        &mut self,
        targets: &'t [Target],
        body: &SearchBody,
        outcome: &Outcome,
        mut profile: Option<&mut Profile>,
        prepared: &mut Prepared,
    ) -> Result<Read<'t>, EngineError> {
        let deadline = self.deadline;
        let stop = deadline.map_or(self.cancel, Deadline::flag);
        let wants_fields =
            !body.fields.is_empty() || !body.docvalue_fields.is_empty() || body.stored_fields.is_some();
        let mut highlighter = match &body.highlight {
            Some(highlight) => {
                let clock = profile.as_deref_mut().map(|profile| &mut profile.highlight);
                Some(profile::timed(clock, || {
                    Highlighter::new(
                        self.service,
                        targets,
                        body.matching_queries(),
                        highlight,
                        prepared,
                        stop,
                    )
                })?)
            }
            None => None,
        };
        let mut script_fields = ScriptFields::new(&body.script_fields);
        let nested_hits = body.nested_hits().map_err(SearchError::from)?;
        let mut without_vectors: Vec<Option<SourceSelection>> = vec![None; targets.len()];
        let mut hits = Vec::with_capacity(outcome.hits.len());
        let mut timed_out = false;
        for (number, hit) in outcome.hits.iter().enumerate() {
            work::check()?;
            let target = &targets[hit.target];
            let clock = profile.as_deref_mut().map(|profile| profile.fetched(hit.target));
            let mut stored =
                profile::timed(clock, || target.snapshot.fetch_within(hit.addr, &mut self.open))?;
            let failed = |source| SearchError::Query { shard: target.shard.clone(), source };
            let ignored = target.snapshot.ignored_fields(hit.addr).map_err(failed)?;
            let mut fields = serde_json::Map::new();
            if wants_fields {
                let source = FieldSource {
                    snapshot: &target.snapshot,
                    shard: &target.shard,
                    addr: hit.addr,
                    id: &stored.id,
                    seq_no: stored.seq_no,
                    version: stored.version,
                    source: &stored.source,
                };
                let read = || {
                    let read = source.read(&body.fields, &body.docvalue_fields, body.stored_fields.as_ref());
                    read.map_err(Into::into)
                };
                match in_time(deadline, read)? {
                    Some(read) => fields = read,
                    None => {
                        timed_out = true;
                        break;
                    }
                }
            }
            if !body.script_fields.is_empty() {
                let read =
                    || script_fields.read(targets, hit, &stored.source, &mut fields).map_err(Into::into);
                if in_time(deadline, read)?.is_none() {
                    timed_out = true;
                    break;
                }
            }
            let mut highlight = Vec::new();
            if let Some(highlighter) = &mut highlighter {
                let clock = profile.as_deref_mut().map(|profile| &mut profile.highlight);
                let highlighted = || profile::timed(clock, || highlighter.highlight(hit, &stored.source));
                match in_time(deadline, highlighted)? {
                    Some(fragments) => highlight = fragments,
                    None => timed_out = true,
                }
            }
            if let (Some(collapse), Some(group)) = (&body.collapse, outcome.groups.get(number))
                && let Some(value) = json_of(group)
            {
                fields.insert(collapse.field.clone(), serde_json::Value::Array(vec![value]));
            }
            let place = target.snapshot.place_of(hit.addr);
            // The objects of a bucket are shown without what the documents of the search would show.
            let is_of_search = place.is_empty() || target.snapshot.scope().is_some();
            let nested = if is_of_search { &nested_hits[..] } else { &[] };
            let Some(inner_hits) =
                self.inner_in_time(targets, body, nested, hit, outcome.groups.get(number))?
            else {
                timed_out = true;
                break;
            };
            let fields = (!fields.is_empty()).then(|| serde_json::Value::Object(fields).to_string());
            // Fields and fragments are read from the whole source.
            if body.excludes_vectors.unwrap_or(target.excludes_vectors) {
                let selection = without_vectors[hit.target]
                    .get_or_insert_with(|| SourceSelection::without_vectors(target.snapshot.mapping()));
                stored.source = selection.of(&stored.source);
            }
            work::check()?;
            hits.push(ShownHit {
                hit: *hit,
                index: &target.shard.index,
                stored,
                ignored,
                matched: Vec::new(),
                highlight,
                explained: None,
                fields,
                nested: place,
                inner_hits,
            });
        }
        name(targets, body, &mut hits)?;
        if body.explain {
            let clock = profile.map(|profile| &mut profile.explain);
            let explained =
                || profile::timed(clock, || explain::hits(self.service, targets, body, outcome, stop));
            let explanations = in_time(deadline, explained)?;
            timed_out |= explanations.is_none();
            for (hit, explanation) in hits.iter_mut().zip(explanations.unwrap_or_default()) {
                hit.explained = Some((&*targets[hit.hit.target].shard, explanation));
            }
        }
        Ok(Read { hits, timed_out })
    }

    /// What is shown inside a hit, if there is time for it.
    fn inner_in_time(
        &mut self,
        targets: &[Target],
        body: &SearchBody,
        nested: &[NestedHits<'_>],
        hit: &Hit,
        group: Option<&SortValue>,
    ) -> Result<Option<Option<Vec<u8>>>, EngineError> {
        if nested.is_empty() && body.collapse.as_ref().is_none_or(|collapse| collapse.inner_hits.is_empty()) {
            return Ok(Some(None));
        }
        // Only a whole hit is left out, not one inside it.
        let Some(deadline) = self.deadline.take() else {
            return self.inner(targets, body, nested, hit, group).map(Some);
        };
        let cancel = std::mem::replace(&mut self.cancel, deadline.flag());
        let inner = in_time(Some(deadline), || self.inner(targets, body, nested, hit, group));
        self.cancel = cancel;
        self.deadline = Some(deadline);
        inner
    }

    /// What is shown inside a hit: the further hits of its group, and the objects in it that match nested clauses.
    fn inner(
        &mut self,
        targets: &[Target],
        body: &SearchBody,
        nested: &[NestedHits<'_>],
        hit: &Hit,
        group: Option<&SortValue>,
    ) -> Result<Option<Vec<u8>>, EngineError> {
        let mut out = Vec::new();
        if let (Some(collapse), Some(group)) = (&body.collapse, group) {
            for inner in &collapse.inner_hits {
                let mut search = (*inner.body).clone();
                let any = body.fusion.as_ref().map(Fusion::any);
                search.query = Some(collapse.group_query(any.as_ref().or(body.query.as_ref()), group));
                search.post_filter.clone_from(&body.post_filter);
                search.min_score = body.min_score;
                self.search(&mut out, &inner.name, targets, search)?;
            }
        }
        for nested in nested {
            let target = &targets[hit.target];
            let mapping = target.snapshot.mapping().clone();
            let Some(path) = nested.path(&mapping) else {
                return Err(EngineError::invalid(
                    "[inner_hits] of [knn] needs a field inside a [nested] one",
                ));
            };
            let objects = Arc::new(target.snapshot.inside_of(hit.addr, path));
            let target = Target { snapshot: objects, ..target.clone() };
            let search = SearchBody {
                query: Some(nested.query.clone()),
                of_bucket: true,
                ..(*nested.hits.body).clone()
            };
            self.search(&mut out, nested.name(path), &[target], search)?;
        }
        if out.is_empty() {
            return Ok(None);
        }
        out.push(b'}');
        Ok(Some(out))
    }

    /// Adds the hits of one search to the `inner_hits` member of a hit.
    fn search(
        &mut self,
        out: &mut Vec<u8>,
        name: &str,
        targets: &[Target],
        search: SearchBody,
    ) -> Result<(), EngineError> {
        work::check()?;
        let search = SearchBody { track_total_hits: Some(TotalHits::Exact), ..search };
        let outcome = execute::execute(targets, &search, self.cancel).map_err(EngineError::from)?;
        let Read { hits, .. } = self.read(targets, &search, &outcome, None)?;
        out.push(if out.is_empty() { b'{' } else { b',' });
        out.extend_from_slice(serde_json::Value::from(name).to_string().as_bytes());
        out.extend_from_slice(b":{\"hits\":");
        response::write_hits(out, &search, self.shown, targets.len(), &outcome, &hits)?;
        out.push(b'}');
        Ok(())
    }
}

/// Does what takes long; `None` when the time is over before it is done.
fn in_time<T>(
    deadline: Option<&Deadline>,
    read: impl FnOnce() -> Result<T, EngineError>,
) -> Result<Option<T>, EngineError> {
    let Some(deadline) = deadline else { return read().map(Some) };
    if deadline.is_over() {
        return Ok(None);
    }
    let _until_over = work::stopped_by(deadline.flag());
    match read() {
        Err(error) if deadline.is_over() && is_cancelled(&error) => Ok(None),
        read => read.map(Some),
    }
}

fn json_of(value: &SortValue) -> Option<serde_json::Value> {
    match value {
        SortValue::Null => None,
        SortValue::Long(number) => Some((*number).into()),
        SortValue::Unsigned(number) => Some((*number).into()),
        SortValue::Double(number) => Some((*number).into()),
        SortValue::Text(text) => Some((&**text).into()),
    }
}

/// Collects the named clauses of a query. Those about objects of nested fields are named by the inner hits.
fn collect_named<'q>(query: &'q Query, named: &mut Vec<(&'q str, &'q Query)>) {
    named.extend(query.name.as_deref().map(|name| (name, query)));
    if !matches!(query.kind, QueryKind::Nested(_)) {
        walk::children(&query.kind).into_iter().for_each(|child| collect_named(child, named));
    }
}

/// Determines which named clauses match each hit, with their scores if the request asks for these.
fn name(targets: &[Target], body: &SearchBody, hits: &mut [ShownHit<'_>]) -> Result<(), EngineError> {
    let mut named: Vec<(&str, &Query)> = Vec::new();
    body.queries().for_each(|query| collect_named(query, &mut named));
    for (name, clause) in named {
        work::check()?;
        for (number, target) in targets.iter().enumerate() {
            let of_target: Vec<usize> =
                (0..hits.len()).filter(|place| hits[*place].hit.target == number).collect();
            if of_target.is_empty() {
                continue;
            }
            let failed = |source| SearchError::Query { shard: target.shard.clone(), source };
            // The few hits of one bucket of many are looked at one by one.
            let scores: Vec<Option<f32>> = if body.named_scores || body.of_bucket {
                let docs: Vec<_> = of_target.iter().map(|place| hits[*place].hit.addr).collect();
                match target.snapshot.score_docs(clause, &docs) {
                    // Hits are shown without the names for which there was no time.
                    Err(QueryError::Cancelled) => continue,
                    scores => scores.map_err(failed)?,
                }
            } else {
                let sets = target.snapshot.matching(clause).map_err(failed)?;
                let matches = |place: &usize| {
                    let addr = hits[*place].hit.addr;
                    let words = sets.get(addr.segment_ord as usize)?;
                    let word = words.get(addr.doc_id as usize / 64)?;
                    (word >> (addr.doc_id % 64) & 1 == 1).then_some(0.0)
                };
                of_target.iter().map(matches).collect()
            };
            for (place, score) in of_target.into_iter().zip(scores) {
                let matched = &mut hits[place].matched;
                if let Some(score) = score
                    && !matched.iter().any(|(other, _)| other == name)
                {
                    matched.push((name.to_owned(), score));
                }
            }
        }
    }
    Ok(())
}
