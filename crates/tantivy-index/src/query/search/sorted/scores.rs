//! Scores and column values of given documents, for hits that have been found already.

use tantivy::{DocAddress, TERMINATED, Term};

use super::columns::NumberReader;
use super::{ColumnKey, ColumnKind, Missing, SortMode, SortValue};
use crate::query::compile::Compiler;
use crate::snapshot::Snapshot;
use sparrow_mapping::IGNORED;
use sparrow_query::Query;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::fields::keyword_column;

impl Snapshot {
    /// Score of each of `docs` for a query, in their order; `None` where it does not match.
    ///
    /// # Errors
    /// As [`Snapshot::search`]; [`QueryError::Cancelled`] also if the time of the request is over.
    pub fn score_docs(&self, query: &Query, docs: &[DocAddress]) -> Result<Vec<Option<f32>>, QueryError> {
        let mut compiler = Compiler::new(self, None);
        let weight = compiler.compile(query, true)?;
        let mut order: Vec<usize> = (0..docs.len()).collect();
        order.sort_unstable_by_key(|&place| (docs[place].segment_ord, docs[place].doc_id));
        let mut scores = vec![None; docs.len()];
        let mut rest = &order[..];
        while let Some(&first) = rest.first() {
            let ord = docs[first].segment_ord;
            let count = rest.iter().take_while(|&&place| docs[place].segment_ord == ord).count();
            let (segment, following) = rest.split_at(count);
            rest = following;
            let mut scorer = weight.scorer(self.searcher().segment_reader(ord), 1.0)?;
            let mut at = scorer.doc();
            for &place in segment {
                let wanted = docs[place].doc_id;
                // Some scorers cannot be sent to where they are already.
                if at < wanted {
                    at = scorer.seek(wanted);
                }
                if at == wanted {
                    scores[place] = Some(scorer.score());
                }
                if at == TERMINATED {
                    break;
                }
            }
        }
        // A clause that ended early matches nothing any more.
        compiler.check_cancelled()?;
        Ok(scores)
    }

    /// Names of a document's fields with values that the index ignored (`_ignored`).
    ///
    /// # Errors
    /// When a column cannot be read.
    pub fn ignored_fields(&self, addr: DocAddress) -> Result<Vec<String>, QueryError> {
        // Most indices have no such document, and look up nothing.
        let any = || {
            let term = Term::from_field_text(self.schema().field_names, IGNORED);
            Ok(self.searcher().doc_freq(&term)? > 0)
        };
        if !self.cache().ignores(any)? {
            return Ok(Vec::new());
        }
        let (path, kind) = (IGNORED.to_owned(), ColumnKind::Keyword);
        let key = ColumnKey { path, kind, mode: SortMode::Min, missing: Missing::Last, nested: Vec::new() };
        let texts = self.column_values(addr, &key)?.into_iter().filter_map(|value| match value {
            SortValue::Text(text) => Some(text.to_string()),
            _ => None,
        });
        Ok(texts.collect())
    }

    /// The values of a document in a column: keywords in order and without duplicates, numbers in order.
    ///
    /// # Errors
    /// When the column cannot be read.
    pub fn column_values(&self, addr: DocAddress, key: &ColumnKey) -> Result<Vec<SortValue>, QueryError> {
        let reader = self.searcher().segment_reader(addr.segment_ord);
        if key.kind == ColumnKind::Keyword {
            let Some(column) = reader.fast_fields().str(&keyword_column(&key.path))? else {
                return Ok(Vec::new());
            };
            let mut ords: Vec<u64> = column.term_ords(addr.doc_id).collect();
            ords.sort_unstable();
            ords.dedup();
            let mut values = Vec::with_capacity(ords.len());
            for ord in ords {
                let mut text = String::new();
                column.ord_to_str(ord, &mut text)?;
                values.push(SortValue::Text(text.into()));
            }
            return Ok(values);
        }
        let numbers = NumberReader::open(reader, key, false)?;
        let mut keys = Vec::new();
        numbers.all(addr.doc_id, &mut keys);
        keys.sort_unstable();
        Ok(keys.into_iter().map(|key| numbers.decode(key)).collect())
    }
}
