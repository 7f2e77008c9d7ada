//! `_reindex?dry_run=true`: what a reindex would do and cost, without writing anything.
//!
//! The documents are counted exactly. A sample of them, spread evenly, goes through the pipelines and is read against the
//! destination's mapping; what that shows is scaled up to all documents, unless the sample is all of them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};
use sparrow_encoder::Encoded;
use sparrow_mapping::passages;
use sparrow_mapping::{Limits, Mapping, ParsedDocument};

use super::counters::time_in_words;
use super::plan::{Position, Source};
use super::prepare::{NO_PIPELINE, parse_stored};
use super::run;
use super::spec::{Destination, Spec};
use sparrow_catalog::semantic::embed::embed;
use sparrow_catalog::{self as indices, WriteOp, templates};
use sparrow_ingest::{IngestDoc, IngestMode, IngestOutcome};
use sparrow_models::{ModelError, Models, Purpose, TextEncoder};
use sparrow_request::error::EngineError;
use sparrow_request::request::{CancelFlag, Reply};
use sparrow_request::rights::Right;
use sparrow_search::SearchService;
use sparrow_wire::json::WrittenNumbers;
use sparrow_wire::size::human_bytes;

/// Most documents of the sample.
const SAMPLE: usize = 256;
/// Documents that go through the pipelines together.
const CHUNK: usize = 32;
/// Time after which no further chunk of the sample is begun.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most failures that are shown.
const SHOWN_FAILURES: usize = 10;
/// Approximate bytes that a token of a sparse vector takes in the postings.
const BYTES_PER_TOKEN: f64 = 4.0;
/// Approximate bytes that a dense vector takes in addition to its numbers: its edges in the graph.
const BYTES_PER_VECTOR: f64 = 160.0;

/// Carries out a dry run.
///
/// # Errors
/// The same that would prevent the reindex from starting.
pub(super) fn run(
    service: &Arc<SearchService>,
    mut spec: Spec,
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let began = Instant::now();
    spec.check_destination(service)?;
    let sources = run::sources(service, &spec)?;
    let positions = run::positions(service, &mut spec, &sources, None, cancel)?;
    let Some(destination) = spec.destination() else {
        return Err(EngineError::internal("only a copy has a dry run"));
    };
    if destination.script.is_some() {
        // The sample does not go through the script, so the figures would ignore what it changes, skips and deletes.
        let reason = "[script] of a reindex with [dry_run] is not supported by this server";
        return Err(EngineError::illegal_argument(reason));
    }
    let most = spec.max_docs.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    let positions = &positions[..positions.len().min(most)];
    let target = Target::of(service, destination, spec.right_to_write())?;
    let mut sample = Sample::default();
    let chosen = spread(positions, SAMPLE);
    for chunk in chosen.chunks(CHUNK) {
        if cancel.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        if sample.documents > 0 && began.elapsed() > PATIENCE {
            break;
        }
        sample.take(service, &sources, chunk, destination, &target, cancel)?;
    }
    Ok(Reply::ok(&sample.shown(&spec, &sources, positions.len(), began)))
}

/// At most `most` of the elements, evenly spaced.
fn spread(positions: &[Position], most: usize) -> Vec<Position> {
    let number = positions.len().min(most);
    (0..number).map(|at| positions[at * positions.len() / number]).collect()
}

/// The destination as it is, or as it would be made.
struct Target {
    name: String,
    mapping: Mapping,
    limits: Limits,
    /// The pipelines that a document would go through.
    pipelines: Vec<String>,
}

impl Target {
    fn of(service: &SearchService, destination: &Destination, right: Right<'_>) -> Result<Self, EngineError> {
        let (name, mapping, settings) = match service.indices.write_target(&destination.index, right) {
            Ok(handle) => (handle.name.clone(), handle.mapping().as_ref().clone(), handle.settings()),
            Err(EngineError::IndexNotFound { .. }) => {
                let planned = service.indices.planned(&destination.index, &templates::Body::default())?;
                (planned.provided_name, planned.mapping, planned.settings)
            }
            Err(error) => return Err(error),
        };
        let first = destination.pipeline.as_deref().or_else(|| settings.default_pipeline());
        let first = first.filter(|name| *name != NO_PIPELINE);
        let pipelines = first.into_iter().chain(settings.final_pipeline()).map(str::to_owned).collect();
        let limits = settings.limits();
        Ok(Self { name, mapping, limits, pipelines })
    }

    /// Parses a document against the destination's mapping, as writing it would.
    fn read(&self, op: &WriteOp) -> Result<ParsedDocument, EngineError> {
        let (id, value) = (op.id.as_deref().unwrap_or_default(), op.source.value.as_ref());
        indices::check_routing(&self.mapping, &self.name, id, op.routing.as_deref())?;
        let value = value.unwrap_or(&Value::Null);
        let numbers = WrittenNumbers::of(&op.source.raw);
        let read = self.mapping.parse_written_document(id, value, numbers.as_ref(), &self.limits);
        let (mut parsed, _) = read.map_err(|error| error.locate(&op.source.raw))?;
        let payload = op.passages.as_ref().map(|passages| passages.payload.as_slice());
        if let Some(fields) = payload.and_then(passages::decode) {
            self.mapping
                .attach_passages(&mut parsed, fields, &|_| None)
                .map_err(EngineError::illegal_argument)?;
        }
        Ok(parsed)
    }
}

/// Figures of the documents that were tried.
#[derive(Default)]
struct Sample {
    documents: u64,
    dropped: u64,
    failed: u64,
    failures: Vec<Value>,
    encoding: Encoding,
    took: Duration,
    /// Bytes of the documents as the source stores them.
    bytes_before: u64,
    /// Bytes of the documents as the destination would store them.
    bytes_after: u64,
    sparse_tokens: u64,
    dense_numbers: u64,
    dense_vectors: u64,
    /// Bytes of the passages that would be stored with the documents.
    passage_bytes: u64,
}

impl Sample {
    fn take(
        &mut self,
        service: &SearchService,
        sources: &[Source],
        positions: &[Position],
        destination: &Destination,
        target: &Target,
        cancel: &CancelFlag,
    ) -> Result<(), EngineError> {
        let began = Instant::now();
        let mut documents = Vec::with_capacity(positions.len());
        let mut earlier = Vec::with_capacity(positions.len());
        let mut selected = Vec::new();
        for (source, _, addr) in positions {
            let Source { handle, snapshot } = &sources[*source as usize];
            let stored = snapshot.fetch(*addr)?;
            self.bytes_before += stored.source.len() as u64;
            selected.clear();
            destination.selection.write(&stored.source, &mut selected);
            let value = parse_stored(&selected, handle, &stored.id)?;
            earlier.push(stored.passages.map(|passages| (stored.source, passages)));
            let mut taken = IngestDoc::new(target.name.clone(), Some(stored.id), value).written_as(&selected);
            taken.set_routing(destination.routing.of_copy(stored.routing));
            documents.push(taken);
        }
        let meter = Meter { models: &service.models, counted: Mutex::default() };
        for pipeline in &target.pipelines {
            let mode = IngestMode { paced: true, cancel: Some(cancel.flag()) };
            service.pipelines.run(&meter, pipeline, &mut documents, mode)?;
        }
        self.encoding.add(&meter.counted.into_inner());
        let mut writes = Vec::with_capacity(documents.len());
        for (document, previous) in documents.into_iter().zip(earlier) {
            self.documents += 1;
            match document.outcome {
                IngestOutcome::Dropped => self.dropped += 1,
                IngestOutcome::Failed(error) => self.fail(target, document.id, &error.into()),
                IngestOutcome::Ok => {
                    let routing = match service.indices.routing(&destination.index, document.routing()) {
                        Ok(routing) => routing,
                        Err(error) => {
                            self.fail(target, document.id, &error);
                            continue;
                        }
                    };
                    let source =
                        indices::Source::written(document.source, document.numbers.as_ref().as_slice());
                    let mut op = WriteOp::index(document.id, source);
                    op.routing = routing;
                    op.previous = previous;
                    writes.push(op);
                }
            }
        }
        for (op, refused) in self.embed(service, target, writes, cancel) {
            match refused.map_or_else(|| target.read(&op), Err) {
                Ok(parsed) => self.measure(&op, &parsed),
                Err(error) => self.fail(target, op.id, &error),
            }
        }
        self.took += began.elapsed();
        Ok(())
    }

    fn fail(&mut self, target: &Target, id: Option<String>, error: &EngineError) {
        self.failed += 1;
        if self.failures.len() < SHOWN_FAILURES {
            self.failures.push(json!({
                "index": target.name, "id": id, "cause": error.to_json(), "status": error.status(),
            }));
        }
    }

    /// Encodes the texts of `semantic_text` fields; returns each write with the error that would refuse it, if any.
    fn embed(
        &mut self,
        service: &SearchService,
        target: &Target,
        mut writes: Vec<WriteOp>,
        cancel: &CancelFlag,
    ) -> Vec<(WriteOp, Option<EngineError>)> {
        if target.mapping.semantic_fields().is_empty() {
            return writes.into_iter().map(|op| (op, None)).collect();
        }
        let meter = Meter { models: &service.models, counted: Mutex::default() };
        let made = embed(
            &service.models,
            &meter,
            &target.mapping,
            &mut writes,
            Purpose::PacedIngest,
            Some(cancel.flag().as_ref()),
        );
        // A passage that is too long was tried, and then cut: that took time, and is no text more.
        self.encoding.add(&Encoding {
            texts: made.texts,
            truncated: made.truncated,
            tokens: made.tokens,
            truncated_tokens: made.truncated_tokens,
            ..meter.counted.into_inner()
        });
        writes.into_iter().zip(made.refused).collect()
    }

    fn measure(&mut self, op: &WriteOp, parsed: &ParsedDocument) {
        let stored = parsed.stored_source.as_ref().map_or(op.source.raw.len(), Vec::len);
        self.bytes_after += stored as u64;
        self.passage_bytes += op.passages.as_ref().map_or(0, |passages| passages.payload.len() as u64);
        self.sparse_tokens += parsed.sparse.iter().map(|(_, tokens)| tokens.len() as u64).sum::<u64>();
        self.dense_vectors += parsed.dense.len() as u64;
        self.dense_numbers += parsed.dense.iter().map(|(_, vector)| vector.len() as u64).sum::<u64>();
        for passage in parsed.passages.iter().flat_map(|(_, passages)| passages) {
            if let Some(tokens) = passage.vector.sparse() {
                self.sparse_tokens += tokens.len() as u64;
            }
            if let Some(vector) = passage.vector.dense() {
                self.dense_vectors += 1;
                self.dense_numbers += vector.len() as u64;
            }
        }
    }

    fn shown(&self, spec: &Spec, sources: &[Source], total: usize, began: Instant) -> Value {
        let scale = if self.documents == 0 { 0.0 } else { total as f64 / self.documents as f64 };
        let all = |count: u64| (count as f64 * scale).round() as u64;
        let is_everything = self.documents as usize == total;
        let mut millis = self.millis_uncached() * scale + self.encoding.waking.as_secs_f64() * 1000.0;
        if spec.requests_per_second.is_finite() {
            millis = millis.max(total as f64 / spec.requests_per_second * 1000.0);
        }
        let per_byte = bytes_on_disk_per_byte(sources, self.bytes_before as f64 * scale);
        let disk = self.bytes_after as f64 * per_byte
            + self.sparse_tokens as f64 * BYTES_PER_TOKEN
            + self.dense_numbers as f64 * 4.0
            + self.passage_bytes as f64
            + self.dense_vectors as f64 * BYTES_PER_VECTOR;
        let disk = (disk * scale).round() as u64;
        let failed = all(self.failed);
        let dropped = all(self.dropped);
        let (mut exact, mut estimated) = (vec!["documents.total"], vec!["time", "disk"]);
        let counted = ["documents.to_write", "documents.dropped", "documents.failed", "texts", "tokens"];
        (if is_everything { &mut exact } else { &mut estimated }).extend(counted);
        json!({
            "took": began.elapsed().as_millis() as u64,
            "dry_run": true,
            "documents": {
                "total": total,
                "to_write": (total as u64).saturating_sub(failed + dropped),
                "dropped": dropped,
                "failed": failed,
            },
            "texts": {"total": all(self.encoding.texts), "truncated": all(self.encoding.truncated)},
            "tokens": {"total": all(self.encoding.tokens), "truncated": all(self.encoding.truncated_tokens)},
            "time": {"estimate": time_in_words(millis), "millis": millis.round() as u64},
            "disk": {"estimate": human_bytes(disk), "bytes": disk},
            "exact": exact,
            "estimated": estimated,
            "sample": {
                "documents": self.documents,
                "texts": self.encoding.texts,
                "tokens": self.encoding.tokens,
                "took_millis": self.took.as_millis() as u64,
            },
            "failures": self.failures,
        })
    }

    /// Estimated time for the sample in milliseconds if none of its vectors had been cached, as the texts of a whole index are new to the
    /// cache.
    fn millis_uncached(&self) -> f64 {
        let Encoding { encoded: texts, remembered, busy, worker_millis, waking, .. } = self.encoding;
        let took = self.took.saturating_sub(waking).as_secs_f64() * 1000.0;
        let encoding = busy.as_secs_f64() * 1000.0;
        let new = texts.saturating_sub(remembered);
        let full = if new * 2 >= texts {
            encoding * texts as f64 / new.max(1) as f64
        } else {
            // Too few were measured: the mean of the deployment.
            worker_millis * texts as f64
        };
        (took - encoding).max(0.0) + full.max(encoding)
    }
}

/// Ratio of the size of the source indices without their vectors to the bytes of their documents: the cost of storing and searching text.
fn bytes_on_disk_per_byte(sources: &[Source], bytes: f64) -> f64 {
    let mut on_disk = 0.0;
    for source in sources {
        if let Ok(stats) = source.handle.index().stats() {
            on_disk += stats.bytes.saturating_sub(stats.plugin_bytes) as f64;
        }
    }
    // Small indices are mostly overhead, and a query may choose few of the documents.
    if bytes > 0.0 && on_disk > 0.0 { (on_disk / bytes).clamp(0.4, 2.0) } else { 1.0 }
}

/// Counts and times of encoding the sample.
#[derive(Debug, Default, Clone, Copy)]
struct Encoding {
    texts: u64,
    truncated: u64,
    tokens: u64,
    truncated_tokens: u64,
    /// Number of texts that were given to the models, including chunks of texts that were split.
    encoded: u64,
    /// Number of texts whose vectors were in the cache.
    remembered: u64,
    busy: Duration,
    /// Time for starting workers of sleeping deployments, which a job spends only once.
    waking: Duration,
    /// Mean time to encode a text in the deployment, in milliseconds, over its whole life.
    worker_millis: f64,
}

impl Encoding {
    fn add(&mut self, other: &Self) {
        self.texts += other.texts;
        self.truncated += other.truncated;
        self.tokens += other.tokens;
        self.truncated_tokens += other.truncated_tokens;
        self.encoded += other.encoded;
        self.remembered += other.remembered;
        self.busy += other.busy;
        self.waking += other.waking;
        self.worker_millis = self.worker_millis.max(other.worker_millis);
    }
}

/// A text encoder that passes all texts to the models and counts them.
struct Meter<'a> {
    models: &'a Models,
    counted: Mutex<Encoding>,
}

impl TextEncoder for Meter<'_> {
    fn encode(
        &self,
        model_id: &str,
        texts: &[&str],
        purpose: Purpose,
        cancel: Option<&AtomicBool>,
    ) -> Result<Vec<Encoded>, ModelError> {
        let hits = |models: &Models| models.figures(model_id).map_or(0, |figures| figures.cache_hit_count);
        let asked = Instant::now();
        if self.models.figures(model_id).is_none_or(|figures| figures.allocations == 0) {
            self.models.encode(model_id, &["a"], purpose, cancel)?;
        }
        let waking = asked.elapsed();
        let (before, began) = (hits(self.models), Instant::now());
        let encoded = self.models.encode(model_id, texts, purpose, cancel)?;
        let busy = began.elapsed();
        let figures = self.models.figures(model_id).unwrap_or_default();
        let truncated = encoded.iter().filter(|one| one.truncated_tokens > 0).count();
        self.counted.lock().add(&Encoding {
            texts: encoded.len() as u64,
            truncated: truncated as u64,
            tokens: encoded.iter().map(|one| u64::from(one.token_count)).sum(),
            truncated_tokens: encoded.iter().map(|one| u64::from(one.truncated_tokens)).sum(),
            encoded: encoded.len() as u64,
            // Others may use the model at the same time.
            remembered: figures.cache_hit_count.saturating_sub(before).min(encoded.len() as u64),
            busy,
            waking,
            worker_millis: figures.average_inference_time_ms_excluding_cache_hits
                / figures.allocations.max(1) as f64,
        });
        Ok(encoded)
    }

    fn fingerprint(&self, model_id: &str) -> Option<String> {
        self.models.fingerprint(model_id)
    }
}

#[cfg(test)]
mod tests {
    use sparrow_tantivy_index::DocAddress;

    use super::spread;

    #[test]
    fn a_sample_is_spread_evenly() {
        let all: Vec<_> = (0..1000_u32).map(|n| (0, u64::from(n), DocAddress::new(0, n))).collect();
        let some: Vec<u64> = spread(&all, 4).into_iter().map(|(_, seq_no, _)| seq_no).collect();
        assert_eq!(some, [0, 250, 500, 750]);
        assert_eq!(spread(&all[..3], 4).len(), 3);
        assert!(spread(&[], 4).is_empty());
    }
}
