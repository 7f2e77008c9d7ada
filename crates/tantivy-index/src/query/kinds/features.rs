//! Clauses that score by features of documents: `rank_feature` and `distance_feature`.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tantivy::index::SegmentId;
use tantivy::query::{EmptyScorer, Explanation, Scorer, Weight};
use tantivy::schema::Field;
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED};

use crate::query::compile::Compiler;
use crate::query::kinds::decay::span_millis;
use crate::query::kinds::term::scalar_text;
use crate::query::kinds::{Meaning, no_words};
use sparrow_mapping::{FieldType, GeoPoint, geo};
use sparrow_postings::SparseCursor;
use sparrow_query::{DistanceFeatureQuery, ExistsQuery, QueryKind, RankFeatureQuery, RankFunction};
use sparrow_scoring::columns::{NumericColumns, Reading};
use sparrow_scoring::dates::DateRequest;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::weights;
use sparrow_segments::plugins::SegmentPlugins;

impl Compiler<'_> {
    pub(crate) fn rank_feature(
        &mut self,
        query: &RankFeatureQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        let RankFeatureQuery { field, function } = query;
        let (mut source, positive) = match self.snapshot.mapping().field(field) {
            Some(FieldType::RankFeature { positive_score_impact }) => {
                (Source::Column(self.column_docs(field)?), *positive_score_impact)
            }
            Some(other) => return Err(QueryError::RankFeatureType { actual: other.name() }),
            None => {
                let Some((parent, feature)) = self.parent_of_feature(field) else {
                    return Ok(weights::none());
                };
                let segments = self.searcher().segment_readers().iter().zip(self.snapshot.segments());
                let segments = segments
                    .map(|(reader, segment)| (reader.segment_id(), segment.shared_plugins().clone()))
                    .collect();
                let tokens = vec![(feature.into_boxed_str(), 1.0)];
                (Source::Postings { field: parent, tokens, segments }, true)
            }
        };
        let function = match *function {
            RankFunction::Log { .. } if !positive => {
                return Err(QueryError::Invalid {
                    reason: "Cannot use the [log] function with a field that has a negative score impact as it would \
                             trigger negative scores"
                        .to_owned(),
                });
            }
            RankFunction::Saturation { pivot: None } => {
                let pivot = if scoring { self.mean_feature(&mut source)? } else { 1.0 };
                Function::Saturation(pivot)
            }
            // The feature of such a field is the reciprocal of its value.
            RankFunction::Saturation { pivot: Some(pivot) } => {
                Function::Saturation(if positive { pivot } else { 1.0 / pivot })
            }
            RankFunction::Sigmoid { pivot, exponent } => {
                let pivot = if positive { pivot } else { 1.0 / pivot };
                Function::Sigmoid { pivot: pivot.powf(exponent), exponent }
            }
            RankFunction::Log { scaling_factor } => Function::Log(scaling_factor),
            RankFunction::Linear => Function::Linear,
        };
        Ok(Box::new(FeatureWeight { source, function }))
    }

    /// Splits the path of a feature into the field of token weights that it begins with, and the feature's
    /// name.
    fn parent_of_feature(&self, path: &str) -> Option<(Field, String)> {
        for (dot, _) in path.match_indices('.') {
            let (parent, feature) = (&path[..dot], &path[dot + 1..]);
            if self.snapshot.mapping().field(parent).is_some_and(FieldType::is_sparse) {
                let field = self.snapshot.schema().sparse(&self.snapshot.mapping().concrete(parent))?;
                return Some((field, feature.to_owned()));
            }
        }
        None
    }

    /// The documents that have a value in a numeric field, and the column to read it from.
    fn column_docs(&mut self, field: &str) -> Result<ColumnSource, QueryError> {
        let exists =
            self.compile(&QueryKind::Exists(ExistsQuery { field: field.to_owned() }).into(), false)?;
        let path = self.snapshot.mapping().concrete(field).into_owned();
        let reading = Reading::of(self.snapshot.mapping().field(field));
        Ok(ColumnSource { exists, path, reading })
    }

    /// Approximate geometric mean of a feature over all documents, computed as Lucene does, from the highest
    /// bits of the values.
    fn mean_feature(&self, source: &mut Source) -> Result<f32, QueryError> {
        let (mut sum, mut count) = (0.0, 0.0);
        for reader in self.searcher().segment_readers() {
            self.check_cancelled()?;
            let mut features = source.open(reader, 1.0)?;
            while features.doc() != TERMINATED {
                sum += f64::from(features.value().to_bits() >> 15);
                count += 1.0;
                features.advance();
            }
        }
        if count == 0.0 {
            return Ok(1.0);
        }
        Ok(f32::from_bits(((sum / count) as u32) << 15))
    }

    pub(crate) fn distance_feature(
        &mut self,
        query: &DistanceFeatureQuery,
    ) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        let DistanceFeatureQuery { field, origin, pivot } = query;
        let formats = match self.snapshot.mapping().field(field) {
            None => return Ok(weights::none()),
            Some(FieldType::Date { formats } | FieldType::DateNanos { formats }) => formats,
            Some(FieldType::GeoPoint) => return self.distance_from_point(query),
            Some(other) => return Err(QueryError::DistanceFeatureType { actual: other.name() }),
        };
        let request = DateRequest::new(formats, self.now, None)?;
        let origin = request.parse(&scalar_text(field, origin)?, false, false)? as f64;
        let pivot = span_millis(pivot).ok_or_else(|| QueryError::TimeValue {
            setting: "distance_feature.pivot".to_owned(),
            value: pivot.clone(),
        })?;
        if pivot <= 0 {
            return Err(QueryError::Invalid { reason: format!("pivotDistance must be > 0, got {pivot}") });
        }
        let source = Source::Column(self.column_docs(field)?);
        Ok(Box::new(FeatureWeight { source, function: Function::Near { origin, pivot: pivot as f64 } }))
    }

    /// Scores documents by how far their nearest point is from the origin.
    fn distance_from_point(&mut self, query: &DistanceFeatureQuery) -> Result<Box<dyn Weight>, QueryError> {
        let DistanceFeatureQuery { field, origin, pivot } = query;
        let invalid = |reason: String| QueryError::Invalid { reason };
        let center = GeoPoint::on_earth(origin, "[origin]").map_err(invalid)?;
        let meters = geo::meters(pivot, "m").map_err(invalid)?;
        if meters.is_nan() || meters <= 0.0 {
            return Err(invalid(format!("pivotDistance must be > 0, got {meters:?}")));
        }
        let source = ColumnSource { reading: Reading::Meters(center), ..self.column_docs(field)? };
        // The values are distances already.
        let function = Function::Near { origin: 0.0, pivot: meters };
        Ok(Box::new(FeatureWeight { source: Source::Column(source), function }))
    }
}

/// The function from a feature to a score.
#[derive(Debug, Clone, Copy)]
enum Function {
    Saturation(f32),
    Log(f32),
    /// `pivot` is stored already raised to the power of `exponent`.
    Sigmoid {
        pivot: f32,
        exponent: f32,
    },
    Linear,
    Near {
        origin: f64,
        pivot: f64,
    },
}

impl Function {
    fn of(self, feature: f32) -> f32 {
        match self {
            // Written so, a feature of any size gives less than 1.
            Function::Saturation(pivot) => 1.0 - pivot / (feature + pivot),
            Function::Log(scaling_factor) => (scaling_factor + feature).ln(),
            Function::Sigmoid { pivot, exponent } => 1.0 - pivot / (feature.powf(exponent) + pivot),
            Function::Linear | Function::Near { .. } => feature,
        }
    }
}

struct ColumnSource {
    exists: Box<dyn Weight>,
    path: String,
    /// How the stored numbers become values: as they are, as milliseconds, or as distances in meters from a point.
    reading: Reading,
}

/// Where the values of a feature are stored.
enum Source {
    Column(ColumnSource),
    Postings {
        field: Field,
        tokens: Vec<(Box<str>, f32)>,
        segments: FxHashMap<SegmentId, Arc<SegmentPlugins>>,
    },
}

impl Source {
    fn open(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Features> {
        let docs = match self {
            Source::Column(source) => Docs::Column {
                docs: source.exists.scorer(reader, 1.0)?,
                numbers: NumericColumns::open(reader, &source.path)?.read_as(source.reading),
            },
            Source::Postings { field, tokens, segments } => {
                let cursor = segments.get(&reader.segment_id()).and_then(|plugins| {
                    let (postings, ids) = plugins.sparse_with_ids(*field)?;
                    let terms = ids.resolve(postings, tokens, 1.0);
                    Some(SparseCursor::new(postings, &terms))
                });
                match cursor {
                    Some(cursor) => {
                        Docs::Postings(Box::new(crate::query::kinds::sparse::SparseScorer::new(cursor)))
                    }
                    None => Docs::Postings(Box::new(EmptyScorer)),
                }
            }
        };
        Ok(Features { docs, boost, function: Function::Linear })
    }
}

struct FeatureWeight {
    source: Source,
    function: Function,
}

impl Weight for FeatureWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(Box::new(Features { function: self.function, ..self.source.open(reader, boost)? }))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        weights::explain(self.scorer(reader, 1.0), doc, "function of a feature")
    }
}

enum Docs {
    Column { docs: Box<dyn Scorer>, numbers: NumericColumns },
    Postings(Box<dyn Scorer>),
}

/// A scorer over the documents that have a feature.
struct Features {
    docs: Docs,
    boost: Score,
    function: Function,
}

impl Features {
    fn inner(&self) -> &dyn Scorer {
        match &self.docs {
            Docs::Column { docs, .. } | Docs::Postings(docs) => &**docs,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Scorer {
        match &mut self.docs {
            Docs::Column { docs, .. } | Docs::Postings(docs) => &mut **docs,
        }
    }

    /// The feature's value in the current document.
    fn value(&mut self) -> f32 {
        match &mut self.docs {
            Docs::Column { docs, numbers } => numbers.first(docs.doc()).unwrap_or(0.0) as f32,
            Docs::Postings(docs) => docs.score(),
        }
    }
}

impl DocSet for Features {
    fn advance(&mut self) -> DocId {
        self.inner_mut().advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.inner_mut().seek(target)
    }

    fn doc(&self) -> DocId {
        self.inner().doc()
    }

    fn size_hint(&self) -> u32 {
        self.inner().size_hint()
    }
}

impl Scorer for Features {
    fn score(&mut self) -> Score {
        if let (Function::Near { origin, pivot }, Docs::Column { docs, numbers }) =
            (self.function, &self.docs)
        {
            let mut nearest = f64::INFINITY;
            numbers.each(docs.doc(), |value| nearest = nearest.min((value - origin).abs()));
            return (f64::from(self.boost) * (pivot / (pivot + nearest))) as Score;
        }
        let value = self.value();
        self.boost * self.function.of(value)
    }
}

impl Meaning for RankFeatureQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.rank_feature(self, scoring)
    }

    no_words!();
}

impl Meaning for DistanceFeatureQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, _: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.distance_feature(self)
    }

    no_words!();
}
