//! Clauses over points on the earth: `geo_distance` and `geo_bounding_box`.
//!
//! The points of each document that has any are held against the area: a filter's documents are cached for each segment, so that
//! this is done once.

use sparrow_lexical::computed::{ComputeScore, ComputedScorer};
use sparrow_mapping::FieldType;
use sparrow_query::geo::Circle;
use sparrow_query::{ExistsQuery, GeoArea, GeoQuery, QueryKind};
use sparrow_runtime::work;
use tantivy::query::{Explanation, Scorer, Weight};
use tantivy::{DocId, Score, SegmentReader};

use crate::query::compile::Compiler;
use crate::query::filters::key::Key;
use crate::query::kinds::{Meaning, no_words};
use sparrow_scoring::columns::NumericColumns;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::weights;

struct GeoWeight {
    /// The documents that have points.
    documents: Box<dyn Weight>,
    query: GeoQuery,
}

impl Weight for GeoWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let points = NumericColumns::open(reader, &self.query.field)?;
        let inside = Inside { points, area: self.query.area };
        let documents = self.documents.scorer(reader, boost)?;
        Ok(Box::new(ComputedScorer::new(documents, inside, Some(0.0))))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        weights::explain(self.scorer(reader, 1.0), doc, "geo query")
    }
}

/// Whether documents have a point in an area.
struct Inside {
    points: NumericColumns,
    area: GeoArea,
}

impl ComputeScore for Inside {
    fn is_over(&self) -> bool {
        work::is_stopped()
    }

    fn compute(&self, inner: &mut dyn Scorer) -> Score {
        let is_inside = self.points.points(inner.doc()).any(|point| self.area.contains(point));
        if is_inside { inner.score() } else { -1.0 }
    }
}

impl Meaning for GeoQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.count_clause()?;
        let clause = match self.area {
            GeoArea::Circle(_) => "geo_distance",
            GeoArea::Box { .. } => "geo_bounding_box",
        };
        match compiler.snapshot.mapping().field(&self.field) {
            Some(FieldType::GeoPoint) => {}
            None if self.ignore_unmapped => return Ok(weights::none()),
            None => {
                return Err(QueryError::Invalid {
                    reason: format!("failed to find geo field [{}]", self.field),
                });
            }
            Some(other) => {
                return Err(QueryError::Invalid {
                    reason: format!(
                        "Field [{}] is of unsupported type [{}] for [{clause}] query",
                        self.field,
                        other.name()
                    ),
                });
            }
        }
        let exists = QueryKind::Exists(ExistsQuery { field: self.field.clone() });
        let documents = compiler.compile(&exists.into(), false)?;
        let field = compiler.snapshot.mapping().concrete(&self.field).into_owned();
        let found = Box::new(GeoWeight { documents, query: GeoQuery { field, ..self.clone() } });
        Ok(weights::constant(found, 1.0, scoring))
    }

    fn filter_key(&self, key: &mut Key) -> Option<()> {
        key.tag(10).text(&self.field);
        match self.area {
            GeoArea::Circle(Circle { center, meters, .. }) => {
                key.tag(0).number(center.lat.to_bits()).number(center.lon.to_bits()).number(meters.to_bits());
            }
            GeoArea::Box { top, left, bottom, right } => {
                key.tag(1);
                for edge in [top, left, bottom, right] {
                    key.number(edge.to_bits());
                }
            }
        }
        Some(())
    }

    no_words!();
}
