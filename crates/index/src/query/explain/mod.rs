//! Why a document has its score: a tree of values with descriptions, worded and shaped as Lucene's.
//!
//! The weights of a query explain themselves ([`tantivy::query::Weight::explain`]); [`convert`] turns what they say
//! into the documented form, boosts pushed down to the leaves. Nothing of it is done for a plain search.

mod bm25;
mod convert;
mod label;

use std::sync::atomic::AtomicBool;

use tantivy::DocAddress;

use crate::query::compile::Compiler;
use crate::query::error::QueryError;
use crate::snapshot::Snapshot;
use sparrow_query::Query;
use sparrow_types::work;

pub(super) use bm25::explained as explained_bm25;
pub(super) use convert::TOKEN_TAG;
pub(super) use label::{described, labelled};

/// One step of the computation of a score.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Result of the step.
    pub value: f32,
    /// Words for what was computed.
    pub description: String,
    /// Steps that the result was computed from: the parts of a sum or the factors of a product.
    pub details: Vec<Explanation>,
    /// Field and token of a stored weight that was read, so that the caller can say which words it comes
    /// from.
    pub token: Option<(String, String)>,
    /// Whether the document does not match; the value is then meaningless.
    pub no_match: bool,
}

impl Explanation {
    /// A step without details.
    pub fn new(value: f32, description: impl Into<String>) -> Self {
        Self { value, description: description.into(), details: Vec::new(), token: None, no_match: false }
    }

    /// A step with its details.
    pub fn of(value: f32, description: impl Into<String>, details: Vec<Explanation>) -> Self {
        Self { details, ..Self::new(value, description) }
    }

    /// The explanation of a document that does not match.
    pub fn no_match(description: impl Into<String>) -> Self {
        Self { no_match: true, ..Self::new(0.0, description) }
    }

    /// Sets the value to the score that a search found, which may differ in the last bit because a sum was
    /// added up in another order.
    pub fn settle(&mut self, score: f32) {
        self.value = score;
        if let ("weight(", [inner]) = (self.description.get(..7).unwrap_or_default(), &mut self.details[..]) {
            inner.value = score;
        }
    }
}

/// Steps of the request's effort that explaining one clause for one document counts as. Each is opened anew for each document,
/// which takes 25 to 50 microseconds; so a request may have a quarter of a million of them.
const EXPLAINED: u64 = 512;

impl Snapshot {
    /// Explains the scores that a query gives some documents, in the order of `docs`.
    ///
    /// # Errors
    /// As [`Snapshot::search`].
    pub fn explain(
        &self,
        query: &Query,
        docs: &[DocAddress],
        cancel: Option<&AtomicBool>,
    ) -> Result<Vec<Explanation>, QueryError> {
        let mut compiler = Compiler::explaining(self, cancel);
        let weight = compiler.compile(query, true)?;
        work::spend(EXPLAINED * compiler.clauses().max(1) as u64 * docs.len() as u64)?;
        let mut explanations = Vec::with_capacity(docs.len());
        for addr in docs {
            compiler.check_cancelled()?;
            let reader = self.searcher().segment_reader(addr.segment_ord);
            let explained = weight.explain(reader, addr.doc_id);
            // When a request is stopped, tantivy reports the same kind of error as for a document that does not match.
            compiler.check_cancelled()?;
            explanations.push(match explained {
                Ok(raw) => convert::convert(&raw, query.boost == 0.0),
                // How tantivy says that a document does not match.
                Err(tantivy::TantivyError::InvalidArgument(_)) => {
                    Explanation::no_match(label::no_match(query, addr.doc_id))
                }
                Err(error) => return Err(error.into()),
            });
        }
        Ok(explanations)
    }
}
