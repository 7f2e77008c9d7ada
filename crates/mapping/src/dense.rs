//! Parameters of `dense_vector` fields: reading, printing and changing them.

pub(crate) mod problems;

use serde_json::{Map, Value, json};
use sparrow_vectors::{Element, GraphOptions, Int8, Metric, Similarity};

use super::error::MappingError;
use super::java::java_string;

/// Most dimensions of a vector with float or byte elements; bit vectors may have eight times as many.
pub(crate) const MAX_DIMS: usize = 4096;
/// Largest allowed value of `m`, the same limit as in Lucene; that of `ef_construction` follows.
const MAX_M: i64 = 512;
const MAX_EF_CONSTRUCTION: i64 = 3200;

/// Parameters of a `dense_vector` field.
#[derive(Debug, Clone, PartialEq)]
pub struct DenseVector {
    /// Number of dimensions; if the mapping does not set it, unknown until the first document has a vector.
    pub dims: Option<usize>,
    pub element: Element,
    pub similarity: Similarity,
    /// Whether vectors are indexed for search; with `index: false` they are only stored.
    pub index: bool,
    pub options: VectorOptions,
}

impl Default for DenseVector {
    fn default() -> Self {
        Self {
            dims: None,
            element: Element::Float,
            similarity: Similarity::Cosine,
            index: true,
            options: VectorOptions::default_for(Element::Float),
        }
    }
}

impl DenseVector {
    /// Whether a search scores unit-length vectors as `(1 + cos) / 2`.
    pub fn scores_cosine(&self) -> bool {
        match self.similarity {
            Similarity::Cosine => true,
            Similarity::DotProduct => self.element == Element::Float,
            Similarity::L2Norm | Similarity::MaxInnerProduct => false,
        }
    }

    /// How vectors with `dims` dimensions are compared.
    pub fn metric(&self, dims: usize) -> Metric {
        // What is not searched is compared in no way, and may have any length.
        let similarity = if self.index { self.similarity } else { Similarity::L2Norm };
        Metric { element: self.element, similarity, dims }
    }

    /// Number of dimensions of a vector with the given number of components: eight per component for bit vectors.
    pub fn dims_of(&self, components: usize) -> usize {
        if self.element == Element::Bit { components * 8 } else { components }
    }
}

/// The `index_options` of a `dense_vector` field.
#[derive(Debug, Clone, Copy)]
pub struct VectorOptions {
    /// Whether large segments get HNSW graphs (`hnsw`, `int8_hnsw`).
    pub graph: Option<GraphOptions>,
    /// Whether vectors also get 8-bit codes (`int8_hnsw`, `int8_flat`).
    pub int8: bool,
    /// Share of a vector's components that codes represent without clipping; `None` and 0 leave it to the field.
    pub confidence_interval: Option<f32>,
    /// `rescore_vector.oversample`: candidates by their codes of which the best by exact scores are hits, as a multiple of `k`.
    pub oversample: Option<f32>,
    /// Whether the mapping sets `index_options` itself. Ignored when options are compared.
    given: bool,
}

impl PartialEq for VectorOptions {
    fn eq(&self, other: &Self) -> bool {
        let parts =
            |options: &Self| (options.graph, options.int8, options.confidence_interval, options.oversample);
        parts(self) == parts(other)
    }
}

impl VectorOptions {
    /// Options of a field whose mapping sets none: `int8_hnsw` for float elements, `hnsw` otherwise.
    pub fn default_for(element: Element) -> Self {
        Self {
            graph: Some(GraphOptions::default()),
            int8: element == Element::Float,
            confidence_interval: None,
            oversample: None,
            given: false,
        }
    }

    /// Vectors alone, without codes or graphs: those of a field that is not searched.
    pub fn stored_only() -> Self {
        Self { graph: None, int8: false, confidence_interval: None, oversample: None, given: false }
    }

    /// How 8-bit codes are computed, if there are any.
    pub fn codes(&self) -> Option<Int8> {
        let share = self.confidence_interval.filter(|share| *share > 0.0);
        self.int8.then(|| Int8 { confidence_interval: share.unwrap_or(1.0) })
    }

    /// The `type` of these options, such as `int8_hnsw`.
    fn name(&self) -> &'static str {
        match (self.graph, self.int8) {
            (Some(_), true) => "int8_hnsw",
            (Some(_), false) => "hnsw",
            (None, true) => "int8_flat",
            (None, false) => "flat",
        }
    }

    /// The options as JSON, in the form of mappings.
    fn to_json(self) -> Value {
        let mut out = Map::new();
        out.insert("type".to_owned(), self.name().into());
        if let Some(graph) = self.graph {
            out.insert("m".to_owned(), graph.m.into());
            out.insert("ef_construction".to_owned(), graph.ef_construction.into());
        }
        // Through text, so that 0.9 stays 0.9 and does not become the double next to the float.
        let number = |value: f32| value.to_string().parse::<f64>().map_or(Value::Null, Value::from);
        if let Some(share) = self.confidence_interval {
            out.insert("confidence_interval".to_owned(), number(share));
        }
        if let Some(factor) = self.oversample {
            out.insert("rescore_vector".to_owned(), json!({"oversample": number(factor)}));
        }
        Value::Object(out)
    }

    /// Whether a field may go from these options to others: to more structure and not to less.
    fn may_become(&self, new: &Self) -> bool {
        if self == new {
            return true;
        }
        match (self.graph, new.graph) {
            (None, None) => !self.int8 || new.int8,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (Some(old), Some(wanted)) => wanted.m >= old.m && (!self.int8 || new.int8),
        }
    }
}

fn malformed(reason: String) -> MappingError {
    MappingError::Malformed { reason }
}

fn bad(reason: String) -> MappingError {
    MappingError::BadValue { reason }
}

/// Reads the parameters of the field `name`, but for `meta`.
pub(super) fn parse(name: &str, map: &Map<String, Value>) -> Result<DenseVector, MappingError> {
    let given = |key: &str| map.get(key).filter(|value| !value.is_null());
    let mut field = DenseVector { element: element(given("element_type"))?, ..DenseVector::default() };
    if let Some(value) = given("dims") {
        field.dims = Some(dims(value, field.element)?);
    }
    if let Some(value) = given("index") {
        field.index = super::parameters::boolean("index", value)?;
    }
    if field.element == Element::Bit {
        field.similarity = Similarity::L2Norm;
    }
    if let Some(value) = given("similarity") {
        field.similarity = similarity(value)?;
        only_indexed("similarity", field.index)?;
        if field.element == Element::Bit && field.similarity != Similarity::L2Norm {
            return Err(bad(format!(
                "The [{}] similarity is not supported for [bit] vectors, only [l2_norm] is",
                similarity_name(field.similarity)
            )));
        }
    }
    field.options = match given("index_options") {
        Some(value) => {
            let options = index_options(name, value, field.element)?;
            only_indexed("index_options", field.index)?;
            options
        }
        None => VectorOptions::default_for(field.element),
    };
    Ok(field)
}

/// Names of the parameters [`parse`] reads.
pub(super) const PARAMETERS: [&str; 5] = ["dims", "element_type", "index", "similarity", "index_options"];

fn only_indexed(parameter: &str, indexed: bool) -> Result<(), MappingError> {
    if indexed {
        return Ok(());
    }
    Err(malformed(format!(
        "Field [{parameter}] can only be specified for a field of type [dense_vector] when it is indexed"
    )))
}

fn element(value: Option<&Value>) -> Result<Element, MappingError> {
    let Some(value) = value else { return Ok(Element::Float) };
    match value.as_str() {
        Some("float") => Ok(Element::Float),
        Some("byte") => Ok(Element::Byte),
        Some("bit") => Ok(Element::Bit),
        _ => Err(malformed(format!(
            "invalid element_type [{}]; available types are [byte, float, bit]",
            java_string(value)
        ))),
    }
}

fn dims(value: &Value, element: Element) -> Result<usize, MappingError> {
    let count = integer(value)
        .ok_or_else(|| bad(format!("Failed to parse value [{}] for parameter [dims]", java_string(value))))?;
    let limit = if element == Element::Bit { MAX_DIMS * 8 } else { MAX_DIMS };
    match usize::try_from(count) {
        Ok(count) if (1..=limit).contains(&count) => {
            if element == Element::Bit && count % 8 != 0 {
                return Err(malformed(format!(
                    "The number of dimensions should be a multiple of 8 for [bit] vectors but was [{count}]"
                )));
            }
            Ok(count)
        }
        _ => Err(malformed(format!(
            "The number of dimensions should be in the range [1, {limit}] but was [{count}]"
        ))),
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn float(value: &Value) -> Option<f32> {
    match value {
        Value::Number(number) => number.as_f64().map(|number| number as f32),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
    .filter(|number| number.is_finite())
}

fn similarity(value: &Value) -> Result<Similarity, MappingError> {
    const ALL: [Similarity; 4] =
        [Similarity::Cosine, Similarity::DotProduct, Similarity::L2Norm, Similarity::MaxInnerProduct];
    ALL.into_iter().find(|similarity| value.as_str() == Some(similarity_name(*similarity))).ok_or_else(|| {
        malformed(format!(
            "Unknown value [{}] for field [similarity] - accepted values are [cosine, dot_product, l2_norm, \
             max_inner_product]",
            java_string(value)
        ))
    })
}

/// Name of a similarity in mappings and errors.
pub(super) fn similarity_name(similarity: Similarity) -> &'static str {
    match similarity {
        Similarity::Cosine => "cosine",
        Similarity::DotProduct => "dot_product",
        Similarity::L2Norm => "l2_norm",
        Similarity::MaxInnerProduct => "max_inner_product",
    }
}

/// Name of an element type in mappings and errors.
pub(crate) fn element_name(element: Element) -> &'static str {
    match element {
        Element::Float => "float",
        Element::Byte => "byte",
        Element::Bit => "bit",
    }
}

fn index_options(field: &str, value: &Value, element: Element) -> Result<VectorOptions, MappingError> {
    let Value::Object(map) = value else {
        return Err(malformed(format!(
            "[index_options] of field [{field}] must be an object, found [{}]",
            java_string(value)
        )));
    };
    let Some(kind) = map.get("type").filter(|kind| !kind.is_null()) else {
        return Err(malformed("[index_options] requires field [type] to be configured".to_owned()));
    };
    let kind = java_string(kind);
    let (hnsw, int8) = match kind.as_str() {
        "hnsw" => (true, false),
        "int8_hnsw" => (true, true),
        "flat" => (false, false),
        "int8_flat" => (false, true),
        "int4_hnsw" | "int4_flat" | "bbq_hnsw" | "bbq_flat" | "bbq_disk" if element == Element::Float => {
            return Err(malformed(format!(
                "vector index options type [{kind}] for field [{field}] is not supported on this server; use one \
                 of [hnsw, int8_hnsw, flat, int8_flat]"
            )));
        }
        "int4_hnsw" | "int4_flat" | "bbq_hnsw" | "bbq_flat" | "bbq_disk" => (false, true),
        _ => {
            return Err(malformed(format!("Unknown vector index options type [{kind}] for field [{field}]")));
        }
    };
    if int8 && element != Element::Float {
        return Err(bad(format!(
            "[element_type] cannot be [{}] when using index type [{kind}]",
            element_name(element)
        )));
    }
    let mut options = VectorOptions {
        graph: hnsw.then(GraphOptions::default),
        int8,
        confidence_interval: None,
        oversample: None,
        given: true,
    };
    let mut unknown = Vec::new();
    for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
        match (key.as_str(), &mut options.graph) {
            ("type", _) => {}
            ("m", Some(graph)) => graph.m = bounded(key, "maxConn", value, MAX_M)?,
            ("ef_construction", Some(graph)) => {
                graph.ef_construction = bounded(key, "beamWidth", value, MAX_EF_CONSTRUCTION)?;
            }
            ("confidence_interval", _) if int8 => options.confidence_interval = Some(confidence(value)?),
            ("rescore_vector", _) if int8 => options.oversample = Some(oversample(value)?),
            _ => unknown.push(format!(" [{key} : {}]", java_string(value))),
        }
    }
    if unknown.is_empty() {
        return Ok(options);
    }
    Err(MappingError::UnsupportedParameters {
        scope: format!("Mapping definition for [{field}]"),
        remaining: unknown.concat(),
    })
}

/// Reads `m` or `ef_construction`, which must lie in 1 to `limit`; `name` is Lucene's name of the parameter, for the
/// message.
fn bounded(key: &str, name: &str, value: &Value, limit: i64) -> Result<u16, MappingError> {
    let number = integer(value).ok_or_else(|| {
        bad(format!("Failed to parse value [{}] for parameter [{key}]", java_string(value)))
    })?;
    match u16::try_from(number) {
        Ok(fits) if (1..=limit).contains(&number) => Ok(fits),
        _ => Err(bad(format!(
            "[{key}]: {name} must be positive and less than or equal to {limit}; {name}={number}"
        ))),
    }
}

fn confidence(value: &Value) -> Result<f32, MappingError> {
    match float(value) {
        Some(share) if share == 0.0 || (0.9..=1.0).contains(&share) => Ok(share),
        _ => Err(bad(format!(
            "confidenceInterval must be between 0.9 and 1.0 or 0; confidenceInterval={}",
            java_string(value)
        ))),
    }
}

fn oversample(value: &Value) -> Result<f32, MappingError> {
    let fail = |reason: &str| Err(bad(format!("[rescore_vector] {reason}, found [{}]", java_string(value))));
    let Some(map) = value.as_object().filter(|map| map.len() == 1) else {
        return fail("must hold [oversample] and nothing else");
    };
    match map.get("oversample").and_then(float) {
        Some(factor) if factor == 0.0 || (1.0..10.0).contains(&factor) => Ok(factor),
        _ => fail("[oversample] must be >= 1.0 and < 10.0, or 0"),
    }
}

/// Adds the parameters to a field's definition as mappings show it.
pub(super) fn print(field: &DenseVector, out: &mut Map<String, Value>) {
    if field.element != Element::Float {
        out.insert("element_type".to_owned(), element_name(field.element).into());
    }
    if let Some(dims) = field.dims {
        out.insert("dims".to_owned(), dims.into());
    }
    out.insert("index".to_owned(), field.index.into());
    if field.index {
        out.insert("similarity".to_owned(), similarity_name(field.similarity).into());
        // The default of floats is shown, that of bytes and bits is not.
        if field.options.given || field.element == Element::Float {
            out.insert("index_options".to_owned(), field.options.to_json());
        }
    }
}

/// Parameter, old and new value of the first change that is not allowed.
pub(super) type Refused = (&'static str, Value, Value);

/// Takes over what `update` leaves open and checks what it changes.
pub(super) fn update(old: &DenseVector, update: &mut DenseVector) -> Result<(), Box<Refused>> {
    let refused = |parameter, from: Value, to: Value| Err(Box::new((parameter, from, to)));
    match (old.dims, update.dims) {
        (Some(from), Some(to)) if from != to => return refused("dims", from.into(), to.into()),
        // A definition without dimensions keeps those the first document gave.
        (Some(dims), None) => update.dims = Some(dims),
        _ => {}
    }
    if old.element != update.element {
        let (from, to) = (element_name(old.element), element_name(update.element));
        return refused("element_type", from.into(), to.into());
    }
    if old.index != update.index {
        return refused("index", old.index.into(), update.index.into());
    }
    if old.similarity != update.similarity {
        let (from, to) = (similarity_name(old.similarity), similarity_name(update.similarity));
        return refused("similarity", from.into(), to.into());
    }
    if !update.options.given {
        update.options = old.options;
    }
    if old.options.may_become(&update.options) {
        Ok(())
    } else {
        refused("index_options", old.options.to_json(), update.options.to_json())
    }
}

#[cfg(test)]
mod tests;
