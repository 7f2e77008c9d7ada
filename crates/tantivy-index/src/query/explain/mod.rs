//! Why a document has its score: a tree of values with descriptions, worded and shaped as Lucene's.
//!
//! The weights of a query explain themselves ([`tantivy::query::Weight::explain`]); [`convert`] turns what they say
//! into the documented form, boosts pushed down to the leaves. Nothing of it is done for a plain search.

mod convert;
mod explanation;
mod label;

use std::sync::atomic::AtomicBool;

use tantivy::DocAddress;

use crate::query::compile::Compiler;
use crate::snapshot::Snapshot;
use sparrow_query::Query;
use sparrow_runtime::work;
use sparrow_scoring::error::QueryError;

pub(super) use convert::TOKEN_TAG;
pub use explanation::Explanation;
pub(super) use label::{described, labelled};

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
