//! Encodes the passages for the documents of a batch of writes.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use rustc_hash::FxHashMap;
use serde_json::Value;
use sparrow_encoder::{Encoded, Output};
use sparrow_mapping::passages::{self, FieldPassages, MAX_PASSAGES, Passage, PassageVector};
use sparrow_mapping::{Chunking, Copies, Mapping, SemanticText, Slot, field_of};

use super::super::op::{Embedded, WriteKind, WriteOp};
use super::super::texts::{no_scalar_at, values_at};
use super::chunk;
use sparrow_models::{ModelError, Models, Purpose, TextEncoder, encode_documents};
use sparrow_request::body::parse_source;
use sparrow_request::error::{EngineError, Exception};

/// Most texts of one call to the encoder when it is not paced, as for the inference processor.
const CALL: usize = 128;

/// A passage to encode.
struct Job {
    op: usize,
    /// Position of the passage's field among the write's fields.
    field: usize,
    source: u16,
    /// Byte range of the passage in the source's values, which are joined with one byte between them.
    range: Range<usize>,
    /// Whether the passage is cut in two if it has more tokens than the model takes.
    may_split: bool,
    text: String,
}

/// The passages of one write, while they are being made.
struct Draft {
    fields: Vec<FieldPassages>,
    waiting: usize,
    truncated: u64,
}

/// The result of encoding the texts of a batch.
#[derive(Debug, Default)]
pub struct Embedding {
    /// For each write the reason why it has to be refused; none if it is not.
    pub refused: Vec<Option<EngineError>>,
    /// Number of passages that were encoded, and of the tokens in them.
    pub texts: u64,
    pub tokens: u64,
    /// Number of passages of which only the first tokens were read, and of the tokens that were not read.
    pub truncated: u64,
    pub truncated_tokens: u64,
}

impl Embedding {
    /// Counts a passage, encoded by each of its models.
    fn count(&mut self, encoded: &[Encoded]) {
        let cut = encoded.iter().map(|encoded| u64::from(encoded.truncated_tokens)).max().unwrap_or(0);
        self.texts += 1;
        self.tokens += encoded.iter().map(|encoded| u64::from(encoded.token_count)).sum::<u64>();
        self.truncated += u64::from(cut > 0);
        self.truncated_tokens += cut;
    }
}

/// Encodes the passages that `mapping` asks for, for the writes that have none yet. `models` describes the inference endpoints,
/// `encoder` encodes.
pub fn embed(
    models: &Models,
    encoder: &dyn TextEncoder,
    mapping: &Mapping,
    ops: &mut [WriteOp],
    purpose: Purpose,
    cancel: Option<&AtomicBool>,
) -> Embedding {
    let mut out = Embedding { refused: ops.iter().map(|_| None).collect(), ..Embedding::default() };
    let copies = mapping.copies();
    let fields: Vec<Field<'_>> =
        mapping.slots().map(|slot| Field::of(models, mapping, &copies, slot)).collect();
    let key = mapping.semantic_key();
    let has_second = mapping.slots().count() > mapping.semantic_fields().len();
    let mut drafts: Vec<Option<Draft>> = Vec::with_capacity(ops.len());
    let mut jobs: Vec<(usize, Job)> = Vec::new();
    for (at, op) in ops.iter_mut().enumerate() {
        let outdated = op.passages.take_if(|outdated| outdated.key != key);
        if op.kind == WriteKind::Delete || op.passages.is_some() {
            drafts.push(None);
            continue;
        }
        if let Some(outdated) = outdated.filter(|outdated| !outdated.payload.is_empty()) {
            // The mapping has changed since: what is still right stays.
            op.previous = Some((op.source.raw.clone(), outdated.payload));
        }
        if op.source.value.is_none() {
            // Writing reads it as well, and says what is wrong with it.
            op.source.value = parse_source(&op.source.raw).ok();
        }
        let Some(value) = &op.source.value else {
            drafts.push(None);
            continue;
        };
        let previous = op.previous.as_ref().and_then(|(source, payload)| {
            Some((serde_json::from_slice::<Value>(source).ok()?, passages::decode(payload)?))
        });
        let mut draft = Draft { fields: Vec::new(), waiting: 0, truncated: 0 };
        for (number, field) in fields.iter().enumerate() {
            let place = draft.fields.len();
            if let Some(earlier) =
                previous.as_ref().and_then(|(old, earlier)| field.carried(value, old, earlier))
            {
                draft.fields.push(earlier);
                continue;
            }
            if let Some(type_name) = no_scalar_at(value, field.path) {
                let reason = format!(
                    "Invalid format for field [{}], expected [String|Number|Boolean] got [{type_name}]",
                    field.path
                );
                out.refused[at] = Some(EngineError::api(400, Exception::new("status_exception", reason)));
                jobs.retain(|(_, job)| job.op != at);
                break;
            }
            let texts = field.texts(value);
            if let Some(stored) = field.made_by_other.filter(|_| !texts.is_empty()) {
                if field.has_second {
                    // Nothing makes the old vectors any more, and no search can read them: the new ones are what the document needs.
                    continue;
                }
                let id = &field.settings.inference_id;
                out.refused[at] = Some(super::other_model(Some(models), field.path, id, stored));
                jobs.retain(|(_, job)| job.op != at);
                break;
            }
            let made = jobs.len();
            for (source, range, text) in texts {
                let may_split = field.chunking != Chunking::None;
                jobs.push((number, Job { op: at, field: place, source, range, may_split, text }));
            }
            draft.waiting += jobs.len() - made;
            if jobs.len() > made {
                draft.fields.push(field.empty());
            }
        }
        let count = draft.waiting + draft.fields.iter().map(|field| field.chunks.len()).sum::<usize>();
        // While a model is changed a document has the passages of both.
        let limit = MAX_PASSAGES * if has_second { 2 } else { 1 };
        if count > limit {
            out.refused[at] = Some(EngineError::illegal_argument(format!(
                "the [semantic_text] fields of the document have {count} passages, more than the limit of {limit}"
            )));
            jobs.retain(|(_, job)| job.op != at);
        }
        drafts.push(Some(draft));
    }
    // Texts for one model go together, whichever field they are from.
    let mut by_model: FxHashMap<&[String], Vec<(usize, Job)>> = FxHashMap::default();
    for (number, job) in jobs {
        by_model.entry(&fields[number].model_ids).or_default().push((number, job));
    }
    for (model_ids, jobs) in by_model {
        let step = if purpose == Purpose::PacedIngest { jobs.len() } else { CALL };
        let mut waiting = jobs.into_iter().peekable();
        while waiting.peek().is_some() {
            let mut call: Vec<(usize, Job)> = waiting.by_ref().take(step.max(1)).collect();
            // A document that is refused already needs no vectors.
            call.retain(|(_, job)| out.refused[job.op].is_none());
            let encoder = Call { encoder, model_ids, purpose, cancel, fields: &fields };
            encoder.run(call, &mut drafts, &mut out);
        }
    }
    for ((op, draft), refused) in ops.iter_mut().zip(drafts).zip(&out.refused) {
        let Some(mut draft) = draft.filter(|_| refused.is_none()) else { continue };
        for field in &mut draft.fields {
            field.chunks.sort_by_key(|chunk| (chunk.source, chunk.start, chunk.end));
        }
        draft.fields.retain(|field| !field.chunks.is_empty());
        let payload = match draft.fields.is_empty() {
            true => Vec::new(),
            false => passages::encode(&draft.fields),
        };
        op.passages = Some(Embedded { payload, truncated: draft.truncated, key });
    }
    out
}

/// One slot of a `semantic_text` field of the index: the vectors of one model.
struct Field<'m> {
    path: &'m str,
    /// Name under which the slot's passages are stored.
    slot: Cow<'m, str>,
    settings: &'m SemanticText,
    /// Names of the models that encode ([`Models::encoders`]).
    model_ids: Vec<String>,
    /// Fingerprint of the endpoint's model; `None` if a model is missing.
    fingerprint: Option<String>,
    /// Fingerprint of the vectors in the slot, if they cannot be compared with those of the endpoint's model.
    made_by_other: Option<&'m str>,
    /// Whether the field has another slot.
    has_second: bool,
    chunking: Chunking,
    /// Whether the chunking was set by the field or its endpoint; otherwise it is the default, as the endpoint that may set another
    /// is missing.
    is_known: bool,
    sources: Vec<String>,
}

impl<'m> Field<'m> {
    fn of(models: &Models, mapping: &'m Mapping, copies: &Copies, slot: Slot<'m>) -> Self {
        let Slot { name, path, settings } = slot;
        let target = models.inference_target(&settings.inference_id);
        let fingerprint = models.fingerprint(&settings.inference_id);
        let stored = settings.fingerprint.as_deref();
        let differs = |stored: &&str| models.compares_with(&settings.inference_id, stored) == Some(false);
        // What the field says comes before what its endpoint says.
        let said = settings.chunking.clone().or(target.map(|target| target.chunking));
        let is_known = said.is_some();
        let chunking = said.unwrap_or_default();
        Self {
            path,
            slot: name,
            settings,
            model_ids: models.encoders(&settings.inference_id),
            fingerprint,
            made_by_other: stored.filter(differs),
            has_second: mapping.slot_beside(path).is_some(),
            chunking,
            is_known,
            sources: copies.sources_of(mapping, path),
        }
    }

    /// The chunking settings as text, to compare them.
    fn key(&self) -> String {
        self.chunking.to_json().to_string()
    }

    fn empty(&self) -> FieldPassages {
        FieldPassages {
            path: self.slot.clone().into_owned(),
            inference_id: self.settings.inference_id.clone(),
            fingerprint: self.fingerprint.clone().unwrap_or_default(),
            chunking: self.key(),
            sources: self.sources.clone(),
            chunks: Vec::new(),
        }
    }

    /// The passages of an earlier version of the document, if encoding it again would give the same ones.
    fn carried(&self, new: &Value, old: &Value, earlier: &[FieldPassages]) -> Option<FieldPassages> {
        let same = |earlier: &&FieldPassages| {
            // In whichever slot they were: a copy of the document may go to an index whose field has others.
            field_of(&earlier.path) == self.path
                && earlier.inference_id == self.settings.inference_id
                && self.may_keep(&earlier.fingerprint)
                && (!self.is_known || earlier.chunking == self.key())
                && earlier.sources == self.sources
        };
        let earlier = earlier.iter().find(same)?;
        let unchanged = self.sources.iter().all(|source| values_at(new, source) == values_at(old, source));
        unchanged.then(|| FieldPassages { path: self.slot.clone().into_owned(), ..earlier.clone() })
    }

    /// Whether vectors of a fingerprint may stay in the slot.
    fn may_keep(&self, fingerprint: &str) -> bool {
        match (self.made_by_other, &self.fingerprint) {
            (Some(stored), _) => stored == fingerprint,
            (None, Some(current)) => {
                current == fingerprint || self.settings.fingerprint.as_deref() == Some(fingerprint)
            }
            (None, None) => self.settings.fingerprint.as_deref().is_none_or(|stored| stored == fingerprint),
        }
    }

    /// The passages of a document: number of the source field, byte range in its joined values, and text.
    fn texts(&self, document: &Value) -> Vec<(u16, Range<usize>, String)> {
        let mut out = Vec::new();
        for (source, path) in (0u16..).zip(&self.sources) {
            let mut offset = 0;
            for text in values_at(document, path) {
                for range in chunk::chunks(&text, &self.chunking) {
                    let piece = text[range.clone()].to_owned();
                    out.push((source, offset + range.start..offset + range.end, piece));
                }
                offset += text.len() + 1;
            }
        }
        out
    }
}

/// Encoding of passages that share their models, including the halves of those that are too long.
struct Call<'c> {
    encoder: &'c dyn TextEncoder,
    /// Names of the models; their vectors together are those of a passage.
    model_ids: &'c [String],
    purpose: Purpose,
    cancel: Option<&'c AtomicBool>,
    fields: &'c [Field<'c>],
}

/// A passage with the vectors that it has so far; `field` is the number of its slot.
struct EncodedPassage {
    field: usize,
    job: Job,
    encoded: Vec<Encoded>,
}

impl Call<'_> {
    fn run(&self, jobs: Vec<(usize, Job)>, drafts: &mut [Option<Draft>], out: &mut Embedding) {
        let start =
            |(field, job)| EncodedPassage { field, job, encoded: Vec::with_capacity(self.model_ids.len()) };
        let mut jobs: Vec<EncodedPassage> = jobs.into_iter().map(start).collect();
        while !jobs.is_empty() {
            let mut again = Vec::new();
            for model_id in self.model_ids {
                jobs = self.encode(model_id, jobs, out);
                jobs = jobs.into_iter().filter_map(|made| cut(made, &mut again)).collect();
            }
            for made in jobs {
                self.keep(made, drafts, out);
            }
            // A document that is refused meanwhile needs no more vectors.
            again.retain(|made: &EncodedPassage| out.refused[made.job.op].is_none());
            jobs = again;
        }
    }

    /// Encodes passages by one model. Passages that cannot be encoded are left out, and their documents refused.
    fn encode(
        &self,
        model_id: &str,
        mut jobs: Vec<EncodedPassage>,
        out: &mut Embedding,
    ) -> Vec<EncodedPassage> {
        let texts: Vec<(usize, &str)> =
            jobs.iter().map(|made| (made.job.op, made.job.text.as_str())).collect();
        let (encoded, error) = match texts.is_empty() {
            true => return jobs,
            false => encode_documents(self.encoder, model_id, &texts, self.purpose, self.cancel),
        };
        let left = jobs.split_off(encoded.len());
        jobs.iter_mut().zip(encoded).for_each(|(made, encoded)| made.encoded.push(encoded));
        match error {
            None => {}
            // One text that the tokenizer or the runtime cannot handle fails the whole call: find it.
            Some(ModelError::Inference { .. }) if left.len() > 1 => {
                for made in left {
                    jobs.extend(self.encode(model_id, vec![made], out));
                }
            }
            Some(error) => {
                for made in &left {
                    let refuse = || self.error(&error, &self.fields[made.field]);
                    out.refused[made.job.op].get_or_insert_with(refuse);
                }
            }
        }
        jobs.retain(|made| out.refused[made.job.op].is_none());
        jobs
    }

    /// Adds a passage to its document once it has all its vectors.
    fn keep(&self, made: EncodedPassage, drafts: &mut [Option<Draft>], out: &mut Embedding) {
        let EncodedPassage { job, encoded, .. } = made;
        out.count(&encoded);
        let Some(draft) = drafts[job.op].as_mut() else { return };
        draft.truncated += u64::from(encoded.iter().any(|encoded| encoded.truncated_tokens > 0));
        let Some(field) = draft.fields.get_mut(job.field) else { return };
        if field.chunks.len() >= MAX_PASSAGES {
            out.refused[job.op].get_or_insert_with(|| {
                EngineError::illegal_argument(format!(
                    "field [{}] has more passages than the limit of {MAX_PASSAGES}",
                    field.path
                ))
            });
            return;
        }
        let Some(vector) = vector(encoded.iter().map(|encoded| &encoded.output)) else {
            out.refused[job.op].get_or_insert_with(|| {
                EngineError::illegal_argument(format!(
                    "the models of field [{}] make two vectors of one kind",
                    field.path
                ))
            });
            return;
        };
        field.chunks.push(Passage {
            source: job.source,
            start: job.range.start as u32,
            end: job.range.end as u32,
            vector,
        });
    }

    fn error(&self, error: &ModelError, field: &Field<'_>) -> EngineError {
        match error {
            ModelError::NotFoundForInference { instead, .. } => EngineError::resource_not_found(format!(
                "Inference id [{}] not found for field [{}]{instead}",
                field.settings.inference_id, field.path
            )),
            other => other.clone().into(),
        }
    }
}

/// The passage, if its last model has read it whole or it may not be cut. Otherwise its halves go to `again`, to be encoded as
/// passages of their own.
fn cut(made: EncodedPassage, again: &mut Vec<EncodedPassage>) -> Option<EncodedPassage> {
    let whole = made.encoded.last().is_none_or(|encoded| encoded.truncated_tokens == 0);
    if whole || !made.job.may_split {
        return Some(made);
    }
    let Some((first, second)) = chunk::halves(&made.job.text) else { return Some(made) };
    for half in [first, second] {
        let text = made.job.text[half.clone()].to_owned();
        let range = made.job.range.start + half.start..made.job.range.start + half.end;
        again.push(EncodedPassage {
            field: made.field,
            job: Job { text, range, ..made.job },
            encoded: Vec::new(),
        });
    }
    None
}

/// The vectors of a passage from the outputs of an endpoint's models; `None` if there are two of one kind, or none.
pub fn vector<'o>(outputs: impl IntoIterator<Item = &'o Output>) -> Option<PassageVector> {
    let (mut sparse, mut dense) = (None, None);
    for output in outputs {
        let fits = match output {
            Output::Sparse(tokens) => sparse.replace(tokens.pairs().to_vec()).is_some(),
            Output::Dense(vector) => dense.replace(vector.to_vec()).is_some(),
            Output::Hybrid { sparse: tokens, dense: vector } => {
                sparse.replace(tokens.pairs().to_vec()).is_some() | dense.replace(vector.to_vec()).is_some()
            }
        };
        if fits {
            return None;
        }
    }
    match (sparse, dense) {
        (Some(sparse), Some(dense)) => Some(PassageVector::Hybrid { sparse, dense }),
        (Some(tokens), None) => Some(PassageVector::Sparse(tokens)),
        (None, Some(vector)) => Some(PassageVector::Dense(vector)),
        (None, None) => None,
    }
}
