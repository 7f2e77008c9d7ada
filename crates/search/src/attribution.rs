//! Which words of a document the tokens of its sparse fields come from.
//!
//! The text is found through the ingest pipeline whose `inference` processor fills the field, or else among the text
//! fields of the document; the model reads it once more and says where each token has its weight from. A text counts
//! only if it gives the stored weights: it may have changed since, or another model may have filled the field.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustc_hash::FxHashMap;
use serde_json::Value;
use sparrow_encoder::Attribution;
use sparrow_mapping::FieldType;
use sparrow_tantivy_index::DocAddress;
use sparrow_tantivy_index::query::Explanation;

use super::target::Target;
use sparrow_catalog::IndexHandle;
use sparrow_catalog::Node;
use sparrow_catalog::texts::texts_at;
use sparrow_request::body::stored_tree;
use sparrow_request::error::EngineError;
use sparrow_request::rights::Right;

/// Most text fields that are tried if no pipeline says which one was encoded.
const MAX_GUESSES: usize = 4;
/// Longest text, in bytes, that is encoded again.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Largest relative difference between the weight of a token and the stored one, which is kept in half precision.
const TOLERANCE: f32 = 0.02;

/// The text from which a sparse field was encoded, and the words of its tokens.
pub struct Traced {
    /// Path of the text field.
    pub input: String,
    /// Text that was encoded.
    pub text: String,
    /// For each token the word of the text that it comes from.
    pub tokens: Vec<Attribution>,
}

/// Finds the words of the text from which a document's tokens were encoded.
pub struct Attributor<'a> {
    node: &'a Node,
    /// The index as it is now, unless it was deleted since.
    handle: Option<Arc<IndexHandle>>,
    target: &'a Target,
    addr: DocAddress,
    source: Option<Value>,
    traced: FxHashMap<String, Option<Arc<Traced>>>,
}

impl<'a> Attributor<'a> {
    pub fn new(node: &'a Node, target: &'a Target, addr: DocAddress) -> Self {
        let handle = node.indices.get(&target.shard.index, Right::unlimited()).ok();
        Self { node, handle, target, addr, source: None, traced: FxHashMap::default() }
    }

    /// Adds to each stored weight in a score explanation the word that it comes from.
    ///
    /// # Errors
    /// When the request is cancelled, or the document cannot be read.
    pub fn explain(&mut self, explanation: &mut Explanation, cancel: &AtomicBool) -> Result<(), EngineError> {
        let mut needed: FxHashMap<String, Vec<(String, f32)>> = FxHashMap::default();
        collect(explanation, &mut needed);
        for (field, stored) in needed {
            self.trace(&field, &stored, cancel)?;
        }
        self.annotate(explanation);
        Ok(())
    }

    /// The text from which a sparse field was encoded, with the words of its tokens; none if no text gives these stored weights.
    ///
    /// # Errors
    /// When the request is cancelled, or the document cannot be read.
    pub fn trace(
        &mut self,
        field: &str,
        stored: &[(String, f32)],
        cancel: &AtomicBool,
    ) -> Result<Option<Arc<Traced>>, EngineError> {
        if let Some(traced) = self.traced.get(field) {
            return Ok(traced.clone());
        }
        let traced = self.find(field, stored, cancel)?.map(Arc::new);
        self.traced.insert(field.to_owned(), traced.clone());
        Ok(traced)
    }

    fn find(
        &mut self,
        field: &str,
        stored: &[(String, f32)],
        cancel: &AtomicBool,
    ) -> Result<Option<Traced>, EngineError> {
        if self.source.is_none() {
            let stored = self.target.snapshot.fetch(self.addr)?;
            self.source = Some(stored_tree(&stored.source)?);
        }
        let Some(source) = &self.source else { return Ok(None) };
        for (model, input) in self.candidates(field) {
            // A text is encoded as a whole: a list of texts has no one vector.
            let [text] = texts_at(source, &input)[..] else { continue };
            if text.len() > MAX_TEXT_BYTES || text.trim().is_empty() {
                continue;
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(EngineError::Cancelled);
            }
            // A model that is not deployed any more explains nothing, and that is no error.
            let Some(tokens) = self.node.models.attribute(&model, text) else { continue };
            if agrees(&tokens, stored) {
                return Ok(Some(Traced { text: text.to_owned(), input, tokens }));
            }
        }
        Ok(None)
    }

    /// Pairs of a model and a text field that it may have encoded, the most likely ones first.
    fn candidates(&self, field: &str) -> Vec<(String, String)> {
        let Some(handle) = &self.handle else { return Vec::new() };
        let mapping = self.target.snapshot.mapping();
        let field = &*mapping.concrete(field);
        let settings = handle.settings();
        let usual: Vec<&str> =
            [settings.default_pipeline(), settings.final_pipeline()].into_iter().flatten().collect();
        let mut candidates = self.node.pipelines.inputs_of(&usual, field);
        let mut texts: Vec<&str> = mapping
            .leaf_fields()
            .filter(|(_, field_type)| matches!(field_type, FieldType::Text { .. }))
            .map(|(path, _)| path)
            .collect();
        texts.sort_unstable();
        for model in self.node.models.running_with_attribution(handle.field_model(field).as_deref()) {
            for text in texts.iter().take(MAX_GUESSES) {
                let candidate = (model.clone(), (*text).to_owned());
                if !candidates.contains(&candidate) {
                    candidates.push(candidate);
                }
            }
        }
        candidates
    }

    fn annotate(&self, step: &mut Explanation) {
        if let Some((field, token)) = &step.token
            && let Some(Some(traced)) = self.traced.get(field)
            && let Some(traced_token) =
                traced.tokens.iter().find(|traced_token| *traced_token.token == **token)
        {
            let from = match &traced_token.word {
                Some(word) => {
                    let before = &traced.text[..word.start];
                    let word = &traced.text[word.clone()];
                    let start = before.chars().count();
                    format!(
                        "encoded from the word [{word}] of field [{}], characters {start} to {}",
                        traced.input,
                        start + word.chars().count()
                    )
                }
                None => format!("encoded from field [{}] as a whole", traced.input),
            };
            step.details.push(Explanation::new(traced_token.weight, from));
        }
        step.details.iter_mut().for_each(|detail| self.annotate(detail));
    }
}

/// Collects the stored weights that a score explanation contains, by field.
fn collect(step: &Explanation, into: &mut FxHashMap<String, Vec<(String, f32)>>) {
    if let Some((field, token)) = &step.token {
        into.entry(field.clone()).or_default().push((token.clone(), step.value));
    }
    step.details.iter().for_each(|detail| collect(detail, into));
}

/// Whether the tokens of a text have the stored weights.
fn agrees(tokens: &[Attribution], stored: &[(String, f32)]) -> bool {
    stored.iter().all(|(token, weight)| {
        tokens.iter().find(|attribution| *attribution.token == **token).is_some_and(|attribution| {
            (attribution.weight - weight).abs() <= TOLERANCE * weight.abs().max(0.1)
        })
    })
}
