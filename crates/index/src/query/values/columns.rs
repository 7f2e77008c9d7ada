//! Numbers, booleans, dates and points of single documents, read from columns.

use sparrow_mapping::GeoPoint;
use tantivy::columnar::DynamicColumn;
use tantivy::{DocId, SegmentReader};

use crate::query::terms::fields::{number_column, open_columns};

/// The columns of one field in one segment. A field has several where its values are of different types.
pub(crate) struct NumericColumns {
    columns: Vec<DynamicColumn>,
    /// The point from which the values, which are points, are measured.
    center: Option<GeoPoint>,
}

impl NumericColumns {
    /// Opens the columns of the field at `path`.
    pub(crate) fn open(reader: &SegmentReader, path: &str) -> tantivy::Result<Self> {
        Ok(Self { columns: open_columns(reader, &number_column(path))?, center: None })
    }

    /// With a point, the values of a `geo_point` field are their distances from it.
    #[must_use]
    pub(crate) fn around(self, center: Option<GeoPoint>) -> Self {
        Self { center, ..self }
    }

    /// The points of a document, of a `geo_point` field.
    pub(crate) fn points(&self, doc: DocId) -> impl Iterator<Item = GeoPoint> {
        self.columns.iter().flat_map(move |column| {
            let column = if let DynamicColumn::I64(column) = column { Some(column) } else { None };
            column.into_iter().flat_map(move |column| column.values_for_doc(doc).map(GeoPoint::decoded))
        })
    }

    /// Calls `see` with each value of a document; booleans as 0 and 1, dates in milliseconds since the epoch, distances in meters.
    pub(crate) fn each(&self, doc: DocId, mut see: impl FnMut(f64)) {
        if let Some(center) = self.center {
            return self.points(doc).for_each(|point| see(point.meters_to(center)));
        }
        for column in &self.columns {
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
