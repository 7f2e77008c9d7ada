//! The terms of a field that begin with a given prefix, for `_terms_enum`.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::atomic::AtomicBool;

use crate::Snapshot;
use crate::query::compile::Compiler;
use sparrow_mapping::FieldType;
use sparrow_runtime::work;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::multi_term::{TermFilter, scan_terms};

impl Snapshot {
    /// The first `limit` terms of a `keyword` field that begin with `prefix`, behind `after`, in byte order;
    /// none of a field of another type. Also returns whether all were looked at before `cancel` was set.
    /// Terms of deleted documents are included until their segment is merged.
    ///
    /// # Errors
    /// [`QueryError::TooMuchEffort`] when too many terms are examined, [`QueryError::TooMuchMemory`] when the
    /// terms take too much memory, or when the index cannot be read.
    pub fn first_keywords(
        &self,
        path: &str,
        prefix: &str,
        case_insensitive: bool,
        after: Option<&str>,
        limit: usize,
        cancel: &AtomicBool,
    ) -> Result<(BTreeSet<String>, bool), QueryError> {
        let mut keywords = BTreeSet::new();
        if limit == 0 || !matches!(self.mapping().field(path), Some(FieldType::Keyword { .. })) {
            return Ok((keywords, true));
        }
        let Some(terms) = Compiler::new(self, None).string_terms(path) else { return Ok((keywords, true)) };
        let prefix = self.normalized(path, prefix);
        let lower = match after {
            Some(after) if case_insensitive || after >= &*prefix => Bound::Excluded(after.to_owned()),
            _ if case_insensitive => Bound::Unbounded,
            _ => Bound::Included(prefix.clone().into_owned()),
        };
        let begins = TermFilter::Prefix(prefix.into_owned());
        let range = TermFilter::Range(lower, Bound::Unbounded);
        let (mut last, mut of_segment) = (String::new(), 0);
        let scanned = scan_terms(self.searcher(), &terms, &range, false, Some(cancel), &mut |value, _| {
            // A dictionary that starts over is the next segment's.
            if value <= last.as_str() {
                of_segment = 0;
            }
            value.clone_into(&mut last);
            if begins.accepts(value, case_insensitive) {
                of_segment += 1;
                if keywords.insert(value.to_owned()) && keywords.len() > limit {
                    keywords.pop_last();
                }
                if work::is_stopped() {
                    return false;
                }
            } else if !case_insensitive {
                return false;
            }
            of_segment < limit
        });
        match scanned.and_then(|()| Ok(work::check()?)) {
            Ok(()) => Ok((keywords, true)),
            Err(QueryError::Cancelled) => Ok((keywords, false)),
            Err(error) => Err(error),
        }
    }
}
