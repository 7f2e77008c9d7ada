//! Groups of `collapse`, read from the columns of one segment.

use tantivy::columnar::StrColumn;
use tantivy::{DocId, SegmentReader};

use super::columns::NumberReader;
use super::{ColumnKey, ColumnKind, SortValue};
use sparrow_scoring::fields::keyword_column;

/// Reads the collapse group of documents, as a number that is only valid in the segment; `None` for documents
/// without a value.
pub(super) enum GroupReader {
    Number(NumberReader),
    Keyword(Option<StrColumn>),
}

/// Error: a document has several values where only one is allowed.
pub(super) struct SeveralValues;

impl GroupReader {
    pub(super) fn open(reader: &SegmentReader, key: &ColumnKey) -> tantivy::Result<Self> {
        Ok(match key.kind {
            ColumnKind::Keyword => {
                GroupReader::Keyword(reader.fast_fields().str(&keyword_column(&key.path))?)
            }
            _ => GroupReader::Number(NumberReader::open(reader, key, false)?),
        })
    }

    pub(super) fn group(&self, doc: DocId) -> Result<Option<u64>, SeveralValues> {
        match self {
            GroupReader::Number(column) if column.single => Ok(column.first(doc)),
            GroupReader::Number(column) => {
                let mut values = Vec::new();
                column.all(doc, &mut values);
                values.sort_unstable();
                values.dedup();
                match &values[..] {
                    [] => Ok(None),
                    [one] => Ok(Some(*one)),
                    _ => Err(SeveralValues),
                }
            }
            GroupReader::Keyword(None) => Ok(None),
            GroupReader::Keyword(Some(column)) => {
                let mut ords = column.term_ords(doc);
                let first = ords.next();
                match ords.any(|other| Some(other) != first) {
                    true => Err(SeveralValues),
                    false => Ok(first),
                }
            }
        }
    }

    pub(super) fn value_of(&self, group: Option<u64>) -> tantivy::Result<SortValue> {
        let Some(group) = group else { return Ok(SortValue::Null) };
        Ok(match self {
            GroupReader::Number(column) => column.decode(group),
            GroupReader::Keyword(column) => {
                let mut text = String::new();
                if let Some(column) = column {
                    column.ord_to_str(group, &mut text)?;
                }
                SortValue::Text(text.into())
            }
        })
    }
}
