//! Numbers, booleans and dates of single documents, read from columns.

use tantivy::columnar::DynamicColumn;
use tantivy::{DocId, SegmentReader};

use crate::query::terms::fields::{number_column, open_columns};

/// The columns of one field in one segment. A field has several where its values are of different types.
pub(crate) struct NumericColumns(Vec<DynamicColumn>);

impl NumericColumns {
    /// Opens the columns of the field at `path`.
    pub(crate) fn open(reader: &SegmentReader, path: &str) -> tantivy::Result<Self> {
        open_columns(reader, &number_column(path)).map(Self)
    }

    /// Calls `see` with each value of a document; booleans as 0 and 1, dates in milliseconds since the epoch.
    pub(crate) fn each(&self, doc: DocId, mut see: impl FnMut(f64)) {
        for column in &self.0 {
            match column {
                DynamicColumn::I64(column) => column.values_for_doc(doc).for_each(|value| see(value as f64)),
                DynamicColumn::U64(column) => column.values_for_doc(doc).for_each(|value| see(value as f64)),
                DynamicColumn::F64(column) => column.values_for_doc(doc).for_each(&mut see),
                DynamicColumn::Bool(column) => {
                    column.values_for_doc(doc).for_each(|value| see(f64::from(u8::from(value))));
                }
                _ => {}
            }
        }
    }

    /// The lowest value of a document, by which Elasticsearch sorts; `None` without a value.
    pub(crate) fn first(&self, doc: DocId) -> Option<f64> {
        let mut first: Option<f64> = None;
        self.each(doc, |value| first = Some(first.map_or(value, |first| first.min(value))));
        first
    }
}
