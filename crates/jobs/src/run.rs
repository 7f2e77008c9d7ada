//! Runs a job: selects its documents, divides them into slices, and writes the checkpoints from which it is resumed.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sparrow_runtime::work::{self, Work};
use sparrow_tantivy_index::{DocAddress, Snapshot};

use super::counters::{Form, Progressed, Slices};
use super::plan::{Position, Source};
use super::slice::{Semaphore, Slice};
use super::spec::{Slices as RequestedSlices, Spec};
use sparrow_catalog::{IndexHandle, Resolved};
use sparrow_request::error::EngineError;
use sparrow_request::request::CancelFlag;
use sparrow_search::Order;
use sparrow_search::SearchService;
use sparrow_tasks::TaskContext;
use sparrow_tasks::TaskSpec;

/// Most slices of `slices: auto`.
const MOST_AUTOMATIC: usize = 20;

/// Most documents of a job with a `sort`: their sort values are held in memory.
const MOST_ORDERED: usize = 100_000;

/// For each index, the highest sequence number of the job's documents; documents that were written later are not part of the job.
pub(super) type Until = BTreeMap<String, u64>;

/// The checkpoint of a job: its progress, and everything needed to resume it.
#[derive(Serialize, Deserialize)]
struct Checkpoint {
    request: Value,
    /// The progress of each slice, a single element if the job is not divided; empty before its documents have been selected.
    slices: Vec<Progressed>,
    until: Option<Until>,
    /// The current throttle in documents per second; `None` for no throttle.
    pace: Option<f64>,
}

/// The progress of an earlier run that was interrupted.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// The progress of each slice; empty if documents had not been selected yet.
    pub slices: Vec<Progressed>,
    pub until: Option<Until>,
}

/// The checkpoint of a job as JSON; `pace` is its throttle in documents per second.
pub(super) fn checkpoint(spec: &Spec, slices: &[Progressed], until: Option<&Until>, pace: f64) -> Value {
    let checkpoint = Checkpoint {
        request: spec.to_saved(),
        slices: slices.to_vec(),
        until: until.cloned(),
        pace: pace.is_finite().then_some(pace),
    };
    // Numbers, strings and maps of strings always serialise.
    serde_json::to_value(checkpoint).unwrap_or_default()
}

/// Parses a checkpoint that [`checkpoint`] built.
///
/// # Errors
/// If the checkpoint is malformed.
pub(super) fn from_checkpoint(saved: &Value) -> Result<(Spec, Earlier), EngineError> {
    let Checkpoint { request, slices, until, pace } = serde_json::from_value(saved.clone())
        .map_err(|error| EngineError::internal(format!("checkpoint of a job: {error}")))?;
    let mut spec = Spec::from_saved(&request)?;
    spec.requests_per_second = pace.unwrap_or(f64::INFINITY);
    Ok((spec, Earlier { slices, until }))
}

/// A running job.
pub(super) struct Run<'a> {
    service: &'a Arc<SearchService>,
    context: &'a TaskContext,
    spec: Spec,
    slices: Arc<Slices>,
    /// Lock that is held while a checkpoint is written.
    writing: Mutex<()>,
}

impl<'a> Run<'a> {
    pub fn new(
        service: &'a Arc<SearchService>,
        context: &'a TaskContext,
        spec: Spec,
        slices: Arc<Slices>,
    ) -> Self {
        Self { service, context, spec, slices, writing: Mutex::new(()) }
    }

    /// Processes all documents; the result is the response, which includes failures of single documents.
    ///
    /// # Errors
    /// What keeps the job from starting; [`EngineError::Cancelled`] if the server stops.
    pub fn run(mut self, earlier: Earlier) -> Result<Value, EngineError> {
        let Earlier { slices: earlier, until } = earlier;
        // A user cancelled it before the server was restarted.
        if self.context.is_cancelled() && !self.context.is_closing() {
            return Ok(self.response_of(earlier));
        }
        let sources = sources(self.service, &self.spec)?;
        self.spec.check_destination(self.service)?;
        let cancel = CancelFlag::from(Arc::clone(self.context.cancel_flag()));
        let positions = match positions(self.service, &mut self.spec, &sources, until.as_ref(), &cancel) {
            // A query that is broken off says so in its own way. It goes on after the next start.
            Err(_) if self.context.is_closing() => return Err(EngineError::Cancelled),
            // Before it was known which documents it is about: no further one was touched.
            Err(_) if self.context.is_cancelled() => return Ok(self.response_of(earlier)),
            found => found?,
        };
        let until = self.until(&sources, &positions, until);
        let number = match earlier.len() {
            0 => self.number_of_slices(&sources),
            number => number,
        };
        if !positions.is_empty() || !earlier.is_empty() {
            if number > 1 {
                self.divided(&sources, positions, earlier, until.as_ref(), number)?;
            } else {
                self.undivided(&sources, positions, until.as_ref())?;
            }
        } else if number > 1 {
            self.slices.divide(vec![Progressed { ended: true, ..Progressed::default() }; number]);
        }
        let cancelled = self.context.is_cancelled();
        if cancelled && self.context.is_closing() {
            return Err(EngineError::Cancelled);
        }
        if self.spec.refresh {
            self.refresh(&sources)?;
        }
        Ok(self.response(cancelled))
    }

    /// The response of a job that is cancelled before this run has done anything, with the counters of earlier runs.
    fn response_of(&self, earlier: Vec<Progressed>) -> Value {
        if earlier.len() > 1 {
            self.slices.divide(earlier);
        }
        self.response(true)
    }

    fn response(&self, cancelled: bool) -> Value {
        let stored = self.context.is_persistent();
        self.slices.response(Form { kind: self.spec.kind(), stored, cancelled })
    }

    /// The bound of a job that writes into the indices that it reads: a document that it has written must not be taken for one that is
    /// still to be processed. `None` for a copy, which reads all it can: a document that has changed since is copied as it is now rather
    /// than left out.
    fn until(&self, sources: &[Source], positions: &[Position], resumed: Option<Until>) -> Option<Until> {
        if self.spec.destination().is_some() {
            return None;
        }
        resumed.or_else(|| {
            let mut until = Until::new();
            for (source, seq_no, _) in positions {
                until.insert(sources[*source as usize].handle.name.clone(), *seq_no);
            }
            Some(until)
        })
    }

    fn number_of_slices(&self, sources: &[Source]) -> usize {
        match self.spec.slices {
            RequestedSlices::Number(number) => number as usize,
            RequestedSlices::Auto => {
                let shards = sources.iter().map(|source| source.handle.settings().shards()).min();
                shards.unwrap_or(1).min(MOST_AUTOMATIC)
            }
        }
    }

    fn undivided(
        &self,
        sources: &[Source],
        positions: Vec<Position>,
        until: Option<&Until>,
    ) -> Result<(), EngineError> {
        let counters_of_slices = self.slices.counters_of_slices();
        let Some(counters) = counters_of_slices.first() else { return Ok(()) };
        let slice = Slice {
            service: self.service,
            context: self.context,
            spec: &self.spec,
            sources,
            targets: self.targets(sources)?,
            counters,
            max_docs: self.spec.max_docs,
            semaphore: None,
            checkpoint: &|| self.checkpoint(until),
        };
        slice.run(positions)
    }

    /// Runs each slice as a task and a thread of its own.
    fn divided(
        &self,
        sources: &[Source],
        positions: Vec<Position>,
        earlier: Vec<Progressed>,
        until: Option<&Until>,
        number: usize,
    ) -> Result<(), EngineError> {
        // A job that goes on after a restart has its slices again, however many there are by now.
        let owner = self.spec.caller.holder().filter(|_| earlier.is_empty());
        let earlier = if earlier.is_empty() { vec![Progressed::default(); number] } else { earlier };
        let counters_of_slices = self.slices.divide(earlier);
        let mut parts: Vec<Vec<Position>> = Vec::new();
        parts.resize_with(number, Vec::new);
        for position in positions {
            // A sequence number stays what it is, so that a restart divides the rest in the same way.
            let part = usize::try_from(position.1 % number as u64).unwrap_or(0);
            parts[part].push(position);
        }
        let targets = self.targets(sources)?;
        let semaphore = Semaphore::new();
        let checkpoint = || self.checkpoint(until);
        // All tasks first: where one is too many, nothing has begun.
        let mut begun = Vec::with_capacity(number);
        for (counters, part) in counters_of_slices.iter().zip(parts) {
            if counters.has_ended() {
                continue;
            }
            let task = TaskSpec::new(self.spec.kind().action(), self.spec.description())
                .cancellable()
                .part_of(self.context.number())
                .opaque_id(self.context.opaque_id())
                .owned_by(owner)
                .progress(counters.clone());
            begun.push((self.service.tasks.enter(task)?, counters, part));
        }
        let stop = || self.service.tasks.cancel_parts(self.context.number());
        if self.context.is_cancelled() {
            // Asked for before the parts were there to be asked.
            stop();
        }
        std::thread::scope(|scope| {
            let mut running = Vec::with_capacity(number);
            for (guard, counters, part) in begun {
                let (targets, semaphore, checkpoint) = (targets.clone(), &semaphore, &checkpoint);
                let work = move || {
                    let context = guard.context(&self.service.tasks);
                    let slice = Slice {
                        service: self.service,
                        context: &context,
                        spec: &self.spec,
                        sources,
                        targets,
                        counters,
                        max_docs: self.spec.max_docs.map(|most| most / number as u64),
                        semaphore: Some(semaphore),
                        checkpoint,
                    };
                    // What keeps one slice from going on ends the job.
                    slice.run(part).inspect_err(|_| stop())
                };
                let thread = std::thread::Builder::new().name("sparrow-slice".into());
                running.push(thread.spawn_scoped(scope, work).map_err(|error| {
                    stop();
                    EngineError::internal(format!("a thread for a slice cannot start: {error}"))
                })?);
            }
            let mut result = Ok(());
            for thread in running {
                let ended = thread.join().unwrap_or_else(|_| Err(EngineError::internal("a slice panicked")));
                result = result.and(ended);
            }
            result
        })
    }

    /// The indices that are written: the destination of a copy, or the sources themselves.
    fn targets(&self, sources: &[Source]) -> Result<Vec<Arc<IndexHandle>>, EngineError> {
        match self.spec.destination() {
            Some(destination) => {
                Ok(vec![self.service.indices.get_or_create(&destination.index, self.spec.right_to_write())?])
            }
            None => Ok(sources.iter().map(|source| Arc::clone(&source.handle)).collect()),
        }
    }

    fn refresh(&self, sources: &[Source]) -> Result<(), EngineError> {
        match self.spec.destination() {
            Some(destination) => {
                match self.service.indices.write_target(&destination.index, self.spec.right_to_write()) {
                    Ok(handle) => gone_is_refreshed(&handle),
                    Err(_) => Ok(()),
                }
            }
            None => sources.iter().try_for_each(|source| gone_is_refreshed(&source.handle)),
        }
    }

    fn checkpoint(&self, until: Option<&Until>) -> Result<(), EngineError> {
        // A position in an order by fields says nothing once documents have changed.
        if !self.context.is_persistent() || self.spec.order.is_some() {
            return Ok(());
        }
        let _one = self.writing.lock();
        let slices: Vec<Progressed> =
            self.slices.counters_of_slices().iter().map(|counters| counters.progressed()).collect();
        self.context.checkpoint(checkpoint(&self.spec, &slices, until, self.slices.pace()))
    }
}

/// Refreshes an index; success if it has been deleted meanwhile.
fn gone_is_refreshed(handle: &IndexHandle) -> Result<(), EngineError> {
    handle.refresh().or_else(|error| if handle.is_gone() { Ok(()) } else { Err(error) })
}

/// The indices to read. A copy refreshes them first, so that it reads everything that was written before it began. The other jobs see only
/// what a search would see; documents written later are version conflicts.
pub(super) fn sources(service: &SearchService, spec: &Spec) -> Result<Vec<Source>, EngineError> {
    let mut sources: Vec<Source> = Vec::new();
    let mut seen = HashSet::new();
    for expression in &spec.sources {
        for Resolved { handle, filter, .. } in
            service.indices.resolve_filtered(expression, &spec.resolve, spec.right_to_read())?
        {
            if !seen.insert(handle.uuid.clone()) {
                continue;
            }
            if spec.destination().is_some() {
                handle.refresh().map_err(|error| handle.explain(error))?;
            }
            let snapshot = sparrow_search::restrict(service, &handle, &handle.snapshot(), filter.as_ref())?;
            sources.push(Source { handle, snapshot });
        }
    }
    Ok(sources)
}

/// The documents of a job, ordered by index and sequence number. The texts of its query are encoded first. The query has the limits of a
/// search request, which the job's writes do not have.
pub(super) fn positions(
    service: &SearchService,
    spec: &mut Spec,
    sources: &[Source],
    until: Option<&Until>,
    cancel: &CancelFlag,
) -> Result<Vec<Position>, EngineError> {
    let _limits =
        work::enter(Some(Work::new(Arc::clone(cancel.flag()), Arc::clone(&service.memory), "<by_query>")));
    let handles: Vec<Arc<IndexHandle>> = sources.iter().map(|source| Arc::clone(&source.handle)).collect();
    if let Some(query) = &mut spec.query {
        let mappings: Vec<_> = sources.iter().map(|source| Arc::clone(source.snapshot.mapping())).collect();
        sparrow_search::encode_query(service, &handles, &mappings, query, &spec.caller, cancel)?;
    }
    let mut positions = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        let mut documents = match &spec.query {
            None => source.snapshot.scan_all(None),
            Some(query) => {
                let query = sparrow_search::query_of_index(service, &source.handle, query)?;
                let matching = source
                    .snapshot
                    .matching_until(&query, Some(cancel.flag()))
                    .map_err(|error| sparrow_search::query_error(service, &source.handle, error))?;
                source.snapshot.scan_all(Some(&matching))
            }
        };
        work::check()?;
        if let Some(until) = until {
            let last = until.get(&source.handle.name);
            documents.retain(|(seq_no, _)| last.is_some_and(|last| seq_no <= last));
        }
        if let Some((part, parts)) = spec.part {
            let mut kept = Vec::with_capacity(documents.len() / parts as usize + 1);
            for (seq_no, addr) in documents {
                // Not by the sequence number: the other parts, which may run at the same time, change it.
                if hash(&source.snapshot.fetch(addr)?.id) % u64::from(parts) == u64::from(part) {
                    kept.push((seq_no, addr));
                }
            }
            documents = kept;
        }
        if let Some(most) = spec.terminate_after {
            documents.truncate(most);
        }
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        positions.extend(documents.into_iter().map(|(seq_no, addr)| (number, seq_no, addr)));
    }
    match &spec.order {
        None => Ok(positions),
        Some(order) => in_order(service, spec, order, sources, positions, cancel),
    }
}

/// Sorts positions as the request specifies.
fn in_order(
    service: &SearchService,
    spec: &Spec,
    order: &Order,
    sources: &[Source],
    positions: Vec<Position>,
    cancel: &CancelFlag,
) -> Result<Vec<Position>, EngineError> {
    // Documents that are left out on the way need others in their place.
    let counts = !spec.proceed && spec.part.is_none() && spec.terminate_after.is_none();
    let most = spec.max_docs.filter(|_| counts).and_then(|most| usize::try_from(most).ok());
    let most = most.unwrap_or(usize::MAX).min(positions.len());
    if most > MOST_ORDERED {
        return Err(EngineError::illegal_argument(format!(
            "[sort] of [{most}] documents is too large, it must be of [{MOST_ORDERED}] at most: use [max_docs] or a \
             query, or no sort"
        )));
    }
    let indices: Vec<(Arc<IndexHandle>, Arc<Snapshot>)> =
        sources.iter().map(|source| (Arc::clone(&source.handle), Arc::clone(&source.snapshot))).collect();
    let wanted: FxHashSet<(u32, DocAddress)> =
        positions.iter().map(|(source, _, addr)| (*source, *addr)).collect();
    let all = order.documents(service, &indices, spec.query.as_ref(), most, cancel)?;
    let ordered = all
        .into_iter()
        .map(|(source, seq_no, addr)| (u32::try_from(source).unwrap_or(u32::MAX), seq_no, addr));
    Ok(ordered.filter(|(source, _, addr)| wanted.contains(&(*source, *addr))).collect())
}

fn hash(id: &str) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = rustc_hash::FxHasher::default();
    id.hash(&mut hasher);
    // The low bits of this hash are weak.
    hasher.finish() >> 32
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Progressed, Until, checkpoint, from_checkpoint};
    use crate::spec::{Kind, Spec};
    use sparrow_request::request::Request;

    #[test]
    fn a_checkpoint_brings_the_job_back() {
        let body = json!({"source": {"index": "a", "size": 7}, "dest": {"index": "c"}}).to_string();
        let spec = Spec::parse(Kind::Reindex, &Request::default(), body.as_bytes()).unwrap();
        let slices = [
            Progressed {
                after: Some(("a".into(), 17)),
                failures: vec![json!({"id": "x"})],
                ..Progressed::default()
            },
            Progressed { ended: true, ..Progressed::default() },
        ];
        let until = Until::from([("a".to_owned(), 99)]);
        let (again, there) = from_checkpoint(&checkpoint(&spec, &slices, Some(&until), 2.5)).unwrap();
        assert_eq!((there.slices.as_slice(), there.until), (&slices[..], Some(until)));
        assert!((again.requests_per_second - 2.5).abs() < f64::EPSILON);
        let (unpaced, _) = from_checkpoint(&checkpoint(&spec, &[], None, f64::INFINITY)).unwrap();
        assert!(unpaced.requests_per_second.is_infinite());
        assert_eq!((again.sources, again.batch), (spec.sources, 7));
        assert!(from_checkpoint(&json!({"request": 1})).is_err());
    }
}
