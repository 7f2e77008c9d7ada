//! Aggregations bound to one index: fields resolved, filter queries evaluated, bounds parsed.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use sparrow_runtime::work;
use sparrow_tantivy_index::Snapshot;

use super::ast::{Aggregation, AggregationKind, Group, HitOrderBy, MultiTerms, StatsKind, ValueSource};
use super::error::AggregationError;
use super::fields::{Accepts, Fields, Kind, Resolved, unsupported};
use super::format::ValueFormat;
use sparrow_mapping::{FieldType, normalize_float};
use sparrow_query::Query;

/// Documents that a query matches, as a bitset of 64-bit words for each segment.
pub type Matches = Vec<Vec<u64>>;

/// What the values of an aggregation are compared with in one index.
pub struct Scope {
    /// The documents that the search could see.
    pub snapshot: Arc<Snapshot>,
    /// Those that are the background; `None` for all.
    pub within: Option<Matches>,
}

/// Everything that a request's aggregations need from one index, by the ids of aggregations and sources.
#[derive(Default)]
pub struct Bound {
    /// Fields whose values are aggregated. That of a weight is in `weights`, under the id of its aggregation.
    pub fields: FxHashMap<usize, Resolved>,
    /// Fields that hold the weights of weighted averages.
    pub weights: FxHashMap<usize, Resolved>,
    /// What the values of aggregations that look for significant ones are compared with.
    pub scopes: FxHashMap<usize, Scope>,
    /// Documents that match each query of a filtering aggregation.
    pub filters: FxHashMap<usize, Vec<Matches>>,
    /// The view that `nested` and `reverse_nested` aggregations lead to; `None` for the documents of the index.
    pub views: FxHashMap<usize, Option<Arc<Snapshot>>>,
    /// Ends of each range of a `range` aggregation: the lower inclusive, the upper exclusive.
    pub ranges: FxHashMap<usize, Vec<(f64, f64)>>,
    /// First and last date that the buckets of a date histogram have to cover, in milliseconds since the epoch.
    pub extended: FxHashMap<usize, (Option<i64>, Option<i64>)>,
    /// First and last date that a date histogram counts, in milliseconds since the epoch.
    pub hard: FxHashMap<usize, (Option<i64>, Option<i64>)>,
}

impl Bound {
    /// The field bound to the aggregation or source with this id.
    ///
    /// # Errors
    /// If it has none.
    pub fn field_of(&self, id: usize) -> Result<&Resolved, AggregationError> {
        let field = self.fields.get(&id);
        field.ok_or_else(|| AggregationError::Execution(format!("aggregation number {id} was not bound")))
    }

    /// Binds aggregations and their sub-aggregations to an index.
    ///
    /// # Errors
    /// If a field, query or bound does not fit the index.
    pub fn new(fields: &Fields<'_>, aggregations: &[Aggregation]) -> Result<Self, AggregationError> {
        let mut bound = Self::default();
        bound.add_all(fields, aggregations)?;
        Ok(bound)
    }

    fn add_all(&mut self, fields: &Fields<'_>, all: &[Aggregation]) -> Result<(), AggregationError> {
        for aggregation in all {
            work::check()?;
            self.add(fields, aggregation)?;
            match self.views.get(&aggregation.id).cloned() {
                None => self.add_all(fields, &aggregation.subs)?,
                Some(view) => {
                    let snapshot = view.as_ref().unwrap_or(fields.root);
                    self.add_all(&Fields { snapshot, ..*fields }, &aggregation.subs)?;
                }
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        fields: &Fields<'_>,
        id: usize,
        source: &ValueSource,
        name: &str,
        accepts: Accepts,
    ) -> Result<&Resolved, AggregationError> {
        let resolved = fields.resolve(source, name, accepts)?;
        Ok(self.fields.entry(id).or_insert(resolved))
    }

    /// Has the values of a field shown in another way than its type says.
    fn formatted(&mut self, id: usize, format: ValueFormat) {
        if let Some(resolved) = self.fields.get_mut(&id) {
            resolved.format = format;
        }
    }

    fn add(&mut self, fields: &Fields<'_>, aggregation: &Aggregation) -> Result<(), AggregationError> {
        let (id, name) = (aggregation.id, aggregation.type_name());
        match &aggregation.kind {
            AggregationKind::Terms(terms) => {
                self.field(fields, id, &terms.source, name, Accepts::Any)?;
            }
            AggregationKind::Significant(asked) => {
                match asked.text {
                    None => self.field(fields, id, &asked.source, name, Accepts::Any).map(|_| ())?,
                    Some(_) => fields.analyzed(&asked.source.field, name)?,
                }
                let within = asked.background.as_ref().map(|query| matching(fields, query)).transpose()?;
                self.scopes.insert(id, Scope { snapshot: fields.snapshot.clone(), within });
            }
            AggregationKind::Grid(grid) => {
                self.field(fields, id, &grid.source, name, Accepts::Any)?;
                self.formatted(id, ValueFormat::Cell(grid.cells));
            }
            AggregationKind::AutoDates(asked) => {
                self.field(fields, id, &asked.source, name, Accepts::Dates)?;
            }
            AggregationKind::VariableWidths(asked) => {
                self.field(fields, id, &asked.source, name, Accepts::OnlyNumbers)?;
            }
            AggregationKind::Missing(source) => {
                self.field(fields, id, source, name, Accepts::Any)?;
            }
            AggregationKind::Cardinality { source, .. } => {
                self.field(fields, id, source, name, Accepts::Any)?;
            }
            AggregationKind::Stats(kind, source) => {
                let accepts = match kind {
                    StatsKind::ValueCount => Accepts::Any,
                    _ => Accepts::Numbers,
                };
                self.field(fields, id, source, name, accepts)?;
            }
            AggregationKind::StringStats { source, .. } => {
                self.field(fields, id, source, name, Accepts::OnlyTexts)?;
            }
            AggregationKind::MedianAbsoluteDeviation(source) | AggregationKind::Boxplot(source) => {
                self.field(fields, id, source, name, Accepts::OnlyNumbers)?;
            }
            AggregationKind::Percentiles(percentiles) | AggregationKind::PercentileRanks(percentiles) => {
                self.field(fields, id, &percentiles.source, name, Accepts::Numbers)?;
            }
            AggregationKind::WeightedAvg { value, weight, .. } => {
                self.field(fields, id, value, name, Accepts::OnlyNumbers)?;
                let weight = fields.resolve(weight, name, Accepts::OnlyNumbers)?;
                self.weights.insert(id, weight);
            }
            AggregationKind::Histogram(histogram) => {
                self.field(fields, id, &histogram.source, name, Accepts::Numbers)?;
            }
            AggregationKind::DateHistogram(histogram) => {
                let now = fields.now;
                let resolved = self.field(fields, id, &histogram.source, name, Accepts::Dates)?.clone();
                let read = |bounds: &(Option<_>, Option<_>)| -> Result<_, AggregationError> {
                    let date = |value: &Option<_>| {
                        value.as_ref().map(|value| resolved.date(value, now, false)).transpose()
                    };
                    Ok((date(&bounds.0)?, date(&bounds.1)?))
                };
                if let Some(bounds) = &histogram.extended_bounds {
                    self.extended.insert(id, read(bounds)?);
                }
                if let Some(bounds) = &histogram.hard_bounds {
                    self.hard.insert(id, read(bounds)?);
                }
            }
            AggregationKind::Range(range) => {
                let now = fields.now;
                let accepts = if range.dates { Accepts::Dates } else { Accepts::Numbers };
                let resolved = self.field(fields, id, &range.source, name, accepts)?.clone();
                let mut ends = Vec::with_capacity(range.ranges.len());
                let field_type = fields.snapshot.mapping().field(&range.source.field);
                for bucket in &range.ranges {
                    let end = |value: &Option<serde_json::Value>, open: f64| match value {
                        None => Ok(open),
                        Some(value) if resolved.kind == Kind::Date => {
                            resolved.date(value, now, false).map(|millis| millis as f64)
                        }
                        Some(value) => {
                            let text = sparrow_mapping::java_string(value);
                            let number = text
                                .trim()
                                .parse::<f64>()
                                .map_err(|_| AggregationError::NumberFormat(text.clone()))?;
                            // A `float` holds 0.04 as another double than the request.
                            Ok(field_type.map_or(number, |field_type| normalize_float(field_type, number)))
                        }
                    };
                    ends.push((end(&bucket.from, f64::NEG_INFINITY)?, end(&bucket.to, f64::INFINITY)?));
                }
                self.ranges.insert(id, ends);
            }
            AggregationKind::Filter(query) => {
                self.filters.insert(id, vec![matching(fields, query)?]);
            }
            AggregationKind::AddressRanges(asked) => {
                let mapping = fields.snapshot.mapping();
                if let Some(other) =
                    mapping.field(&asked.field).filter(|field| !matches!(field, FieldType::Ip))
                {
                    return Err(unsupported(&asked.field, other.name(), name));
                }
                let mut sets = Vec::with_capacity(asked.ranges.len());
                for range in &asked.ranges {
                    sets.push(matching(fields, &range.query)?);
                }
                self.filters.insert(id, sets);
            }
            AggregationKind::Filters(filters) => {
                let mut sets = Vec::with_capacity(filters.filters.len());
                for (_, query) in &filters.filters {
                    sets.push(matching(fields, query)?);
                }
                self.filters.insert(id, sets);
            }
            AggregationKind::Adjacency(adjacency) => {
                let mut sets = Vec::with_capacity(adjacency.filters.len());
                for (_, query) in &adjacency.filters {
                    sets.push(matching(fields, query)?);
                }
                self.filters.insert(id, sets);
            }
            AggregationKind::Composite(composite)
            | AggregationKind::MultiTerms(MultiTerms { key: composite, .. }) => {
                for source in &composite.sources {
                    let (accepts, name) = match &source.group {
                        Group::Value => (Accepts::Any, name),
                        Group::Interval(_) => (Accepts::Numbers, name),
                        Group::Date(_) => (Accepts::Dates, name),
                        Group::Cells(..) => (Accepts::Any, "geotile_grid"),
                    };
                    self.field(fields, source.id, &source.source, name, accepts)?;
                    if let Group::Cells(cells, _) = source.group {
                        self.formatted(source.id, ValueFormat::Cell(cells));
                    }
                }
            }
            AggregationKind::TopHits(top) => {
                for key in &top.sort {
                    if let HitOrderBy::Field(source) = &key.by {
                        let resolved = fields.resolve(source, name, Accepts::Any)?;
                        self.fields.entry(key.id).or_insert(resolved.sorted());
                    }
                }
            }
            AggregationKind::Nested(path) => {
                let view = inside(fields.snapshot, path)?;
                self.views.insert(id, Some(view));
            }
            AggregationKind::ReverseNested(path) => {
                let view = around(fields, &aggregation.name, path.as_deref())?;
                self.views.insert(id, view);
            }
            AggregationKind::Global | AggregationKind::Sampler(_) | AggregationKind::Pipeline(_) => {}
        }
        Ok(())
    }
}

/// The documents that match a filter, one bitset for each segment.
fn matching(fields: &Fields<'_>, query: &Query) -> Result<Vec<Vec<u64>>, AggregationError> {
    work::check()?;
    Ok(fields.snapshot.matching(query)?)
}

/// The view of the objects of a nested field, without any where the path is not mapped.
///
/// # Errors
/// If the field is not nested.
fn inside(snapshot: &Snapshot, path: &str) -> Result<Arc<Snapshot>, AggregationError> {
    match snapshot.mapping().field(path) {
        None | Some(FieldType::Object { nested: true, .. }) => Ok(snapshot.inside(path)),
        Some(_) => Err(AggregationError::Execution(format!("[nested] nested path [{path}] is not nested"))),
    }
}

/// The view of what is around objects; `None` for the documents of the index.
///
/// # Errors
/// If no objects are aggregated, or the field is not one around them.
fn around(
    fields: &Fields<'_>,
    name: &str,
    path: Option<&str>,
) -> Result<Option<Arc<Snapshot>>, AggregationError> {
    let Some(scope) = fields.snapshot.scope() else {
        return Err(AggregationError::IllegalArgument(format!(
            "Reverse nested aggregation [{name}] can only be used inside a [nested] aggregation"
        )));
    };
    let Some(path) = path else { return Ok(None) };
    match fields.root.mapping().field(path) {
        Some(FieldType::Object { nested: true, .. })
            if scope.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')) =>
        {
            Ok(Some(fields.root.inside(path)))
        }
        Some(FieldType::Object { nested: true, .. }) => Err(AggregationError::Execution(format!(
            "[reverse_nested] nested path [{path}] is not around [{scope}]"
        ))),
        _ => Err(AggregationError::Execution(format!("[reverse_nested] nested path [{path}] is not nested"))),
    }
}
