//! Numbers, booleans, dates and points of single documents, read from columns.

use sparrow_mapping::{FieldType, GeoPoint};
use tantivy::columnar::DynamicColumn;
use tantivy::{DocId, SegmentReader};

use crate::fields::{number_column, open_columns};

/// What the values of a field are read as.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Reading {
    #[default]
    Numbers,
    /// Points, as their distances in meters from this one.
    Meters(GeoPoint),
    /// Nanoseconds, as the milliseconds that they lie in.
    Millis,
}

impl Reading {
    /// How the numbers and dates of a field are read.
    pub fn of(field_type: Option<&FieldType>) -> Self {
        match field_type {
            Some(FieldType::DateNanos { .. }) => Self::Millis,
            _ => Self::Numbers,
        }
    }
}

/// The columns of one field in one segment. A field has several where its values are of different types.
pub struct NumericColumns {
    columns: Vec<DynamicColumn>,
    reading: Reading,
}

impl NumericColumns {
    /// Opens the columns of the field at `path`.
    pub fn open(reader: &SegmentReader, path: &str) -> tantivy::Result<Self> {
        Ok(Self { columns: open_columns(reader, &number_column(path))?, reading: Reading::Numbers })
    }

    /// Changes how the stored numbers become the values of a query.
    #[must_use]
    pub fn read_as(self, reading: Reading) -> Self {
        Self { reading, ..self }
    }

    /// The points of a document, of a `geo_point` field.
    #[inline]
    pub fn points(&self, doc: DocId) -> impl Iterator<Item = GeoPoint> {
        self.columns.iter().flat_map(move |column| {
            let column = if let DynamicColumn::I64(column) = column { Some(column) } else { None };
            column.into_iter().flat_map(move |column| column.values_for_doc(doc).map(GeoPoint::decoded))
        })
    }

    /// Calls `see` with each value of a document; booleans as 0 and 1, dates in milliseconds since the epoch, distances in meters.
    pub fn each(&self, doc: DocId, mut see: impl FnMut(f64)) {
        if let Reading::Meters(center) = self.reading {
            return self.points(doc).for_each(|point| see(point.meters_to(center)));
        }
        for column in &self.columns {
            match column {
                DynamicColumn::I64(column) if self.reading == Reading::Millis => {
                    column.values_for_doc(doc).for_each(|value| see(value.div_euclid(1_000_000) as f64));
                }
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
    #[inline]
    pub fn first(&self, doc: DocId) -> Option<f64> {
        let mut first: Option<f64> = None;
        self.each(doc, |value| first = Some(first.map_or(value, |first| first.min(value))));
        first
    }
}
