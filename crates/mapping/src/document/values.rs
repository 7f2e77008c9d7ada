//! The values of a document while it is read, without repeats.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::super::completion::Completion;
use super::super::types::ParsedDocument;
use sparrow_runtime::PackedTokens;

/// Values of a document, or of an object that is stored as one.
#[derive(Default)]
pub(super) struct Values {
    /// Path of the `nested` field; empty for the document.
    pub(super) path: String,
    pub(super) out: ParsedDocument,
    /// The field names found so far, once there are more than [`FEW`].
    seen: FxHashSet<String>,
    /// The keywords found so far, once there are more than [`FEW`].
    keywords_seen: FxHashSet<(String, String)>,
    /// Where each token is in the token weights of a sparse field that objects are merged into.
    places: HashMap<String, HashMap<Box<[u8]>, usize>>,
    /// Inputs of `completion` fields that have contexts.
    pub(super) in_contexts: Vec<InContexts>,
}

/// An input that has contexts, some of which may be the values of other fields.
pub(super) struct InContexts {
    pub(super) path: String,
    pub(super) field: Arc<Completion>,
    pub(super) input: String,
    pub(super) weight: u32,
    /// What its terms begin with.
    pub(super) starts: BTreeSet<String>,
}

/// Number of values up to which a repeated one is looked for in a list: a set would cost more.
pub(super) const FEW: usize = 16;

impl Values {
    /// Adds token weights of an object to those of the document: of two for the same token, the larger one.
    pub(super) fn merge_tokens(&mut self, path: &str, tokens: &PackedTokens) {
        let at = match self.out.sparse.iter().position(|(other, _)| other == path) {
            Some(at) => at,
            None => {
                self.out.sparse.push((path.to_owned(), PackedTokens::default()));
                self.out.sparse.len() - 1
            }
        };
        let merged = &mut self.out.sparse[at].1;
        let places = self.places.entry(path.to_owned()).or_insert_with(|| merged.places());
        for (token, weight) in tokens.iter() {
            match places.get(token) {
                Some(place) => merged.raise(*place, weight),
                None => {
                    places.insert(token.into(), places.len());
                    merged.push(std::str::from_utf8(token).unwrap_or_default(), weight);
                }
            }
        }
    }

    /// Of an object of the nested field at `path`.
    pub(super) fn of_object(path: &str) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }

    /// Adds a keyword unless the document has it already: Lucene counts a repeated keyword of one document once.
    /// Returns whether it was added.
    pub(super) fn add_keyword(&mut self, path: &str, text: Cow<'_, str>) -> bool {
        if self.keywords_seen.is_empty() && self.out.keywords.len() >= FEW {
            self.keywords_seen = self.out.keywords.iter().cloned().collect();
        }
        let keyword = (path.to_owned(), text.into_owned());
        let is_new = match self.keywords_seen.is_empty() {
            true => !self.out.keywords.contains(&keyword),
            false => self.keywords_seen.insert(keyword.clone()),
        };
        if is_new {
            self.out.keywords.push(keyword);
        }
        is_new
    }

    pub(super) fn has_seen(&self, path: &str) -> bool {
        match self.seen.is_empty() {
            true => self.out.field_names.iter().any(|seen| seen == path),
            false => self.seen.contains(path),
        }
    }

    /// Records that the field at `path` has a value.
    pub(super) fn seen(&mut self, path: &str) {
        if self.has_seen(path) {
            return;
        }
        if self.seen.is_empty() && self.out.field_names.len() >= FEW {
            self.seen = self.out.field_names.iter().cloned().collect();
        }
        if !self.seen.is_empty() {
            self.seen.insert(path.to_owned());
        }
        self.out.field_names.push(path.to_owned());
    }
}
