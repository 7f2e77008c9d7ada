//! The `index_options` of `dense_vector` fields: graphs, codes, and what a field may change from and to.

use serde_json::{Map, Value, json};
use sparrow_vectors::{Codes, Element, GraphOptions, Int8, Short};
use sparrow_wire::shape::{Shape, flag, int, num, object, one};

use super::super::error::MappingError;
use super::super::java::java_string;
use super::super::parameters;
use super::values::{bad, element_name, float, integer, malformed};

/// Largest allowed value of `m`, the same limit as in Lucene; that of `ef_construction` follows.
const MAX_M: i64 = 512;
const MAX_EF_CONSTRUCTION: i64 = 3200;
/// Fewest dimensions of a vector with codes of one bit, as in Elasticsearch: the errors of fewer do not cancel out.
const MIN_BIT_DIMS: usize = 64;
/// `rescore_vector.oversample` of codes of one bit, unless the mapping sets it.
const BIT_OVERSAMPLE: f32 = 3.0;

/// The codes that vectors get beside their components.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Coded {
    No,
    Int8,
    Int4,
    Bit,
}

/// The `type`s of `index_options`: with or without a graph, and their codes.
const TYPES: [(&str, bool, Coded); 8] = [
    ("hnsw", true, Coded::No),
    ("int8_hnsw", true, Coded::Int8),
    ("int4_hnsw", true, Coded::Int4),
    ("bbq_hnsw", true, Coded::Bit),
    ("flat", false, Coded::No),
    ("int8_flat", false, Coded::Int8),
    ("int4_flat", false, Coded::Int4),
    ("bbq_flat", false, Coded::Bit),
];

/// The `index_options` of a `dense_vector` field.
#[derive(Debug, Clone, Copy)]
pub struct VectorOptions {
    /// Whether large segments get HNSW graphs (`hnsw`, `int8_hnsw`, `int4_hnsw`, `bbq_hnsw`).
    pub graph: Option<GraphOptions>,
    coded: Coded,
    /// Share of a vector's components that codes of 8 bits represent without clipping; `None` and 0 leave it to the field.
    confidence_interval: Option<f32>,
    /// `rescore_vector.oversample`: candidates by their codes of which the best by exact scores are hits, as a multiple of `k`.
    pub oversample: Option<f32>,
    /// `on_disk_rescore`. Vectors are always read from mapped files, so it changes nothing.
    on_disk_rescore: bool,
    /// Whether the mapping sets `index_options` itself. Ignored when options are compared.
    pub(super) given: bool,
}

impl PartialEq for VectorOptions {
    fn eq(&self, other: &Self) -> bool {
        let parts = |options: &Self| {
            let Self { graph, coded, confidence_interval, oversample, on_disk_rescore, given: _ } = *options;
            (graph, coded, confidence_interval, oversample, on_disk_rescore)
        };
        parts(self) == parts(other)
    }
}

impl VectorOptions {
    /// Options of a field whose mapping sets none: `int8_hnsw` for float elements, `hnsw` otherwise.
    pub fn default_for(element: Element) -> Self {
        let coded = if element == Element::Float { Coded::Int8 } else { Coded::No };
        Self { graph: Some(GraphOptions::default()), coded, ..Self::stored_only() }
    }

    /// Vectors alone, without codes or graphs: those of a field that is not searched.
    pub fn stored_only() -> Self {
        Self {
            graph: None,
            coded: Coded::No,
            confidence_interval: None,
            oversample: None,
            on_disk_rescore: false,
            given: false,
        }
    }

    /// The codes that vectors get, if any.
    pub fn codes(&self) -> Option<Codes> {
        let share = self.confidence_interval.filter(|share| *share > 0.0);
        match self.coded {
            Coded::No => None,
            Coded::Int8 => Some(Codes::Int8(Int8 { confidence_interval: share.unwrap_or(1.0) })),
            Coded::Int4 => Some(Codes::Short(Short::Int4)),
            Coded::Bit => Some(Codes::Short(Short::Bit)),
        }
    }

    /// The `type` of these options, such as `int8_hnsw`.
    fn name(&self) -> &'static str {
        let is =
            |(_, graph, coded): &(&str, bool, Coded)| (*graph, *coded) == (self.graph.is_some(), self.coded);
        TYPES.into_iter().find(is).map_or("hnsw", |(name, ..)| name)
    }

    /// Why vectors with as many dimensions cannot have these codes; `None` if they can.
    pub(crate) fn dims_problem(&self, dims: usize) -> Option<String> {
        let name = self.name();
        match self.coded {
            Coded::Int4 if !dims.is_multiple_of(2) => {
                Some(format!("{name} only supports even dimensions; provided={dims}"))
            }
            Coded::Bit if dims < MIN_BIT_DIMS => {
                Some(format!("{name} does not support dimensions fewer than {MIN_BIT_DIMS}; provided={dims}"))
            }
            _ => None,
        }
    }

    /// The options as JSON, in the form of mappings.
    pub(super) fn to_json(self) -> Value {
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
        if self.on_disk_rescore {
            out.insert("on_disk_rescore".to_owned(), true.into());
        }
        if let Some(factor) = self.oversample {
            out.insert("rescore_vector".to_owned(), json!({"oversample": number(factor)}));
        }
        Value::Object(out)
    }

    /// Whether a field may go from these options to others, as in Elasticsearch: to shorter codes and to a graph, not back.
    pub(super) fn may_become(&self, new: &Self) -> bool {
        let shorter = self.coded <= new.coded;
        match (self.graph, new.graph) {
            (None, None) => shorter,
            // A graph finds what a scan of codes does, except for the shortest, which nothing else replaces.
            (None, Some(_)) => shorter || self.coded != Coded::Bit,
            (Some(_), None) => false,
            (Some(old), Some(wanted)) => wanted.m >= old.m && shorter,
        }
    }
}

pub(crate) fn options_shape() -> Shape {
    object([
        ("type", one(&TYPES.map(|(name, ..)| name))),
        ("m", int()),
        ("ef_construction", int()),
        ("confidence_interval", num()),
        ("rescore_vector", object([("oversample", num())]).needs(&["oversample"])),
        ("on_disk_rescore", flag()),
    ])
    .needs(&["type"])
}

/// Reads the `index_options` of a field with such elements.
pub(super) fn index_options(
    field: &str,
    value: &Value,
    element: Element,
) -> Result<VectorOptions, MappingError> {
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
    let known = TYPES.into_iter().find(|(name, ..)| *name == kind);
    let Some((_, graph, coded)) = known else {
        return Err(malformed(if kind == "bbq_disk" {
            format!(
                "vector index options type [{kind}] for field [{field}] is not supported on this server; use one of \
                 [{}]",
                TYPES.map(|(name, ..)| name).join(", ")
            )
        } else {
            format!("Unknown vector index options type [{kind}] for field [{field}]")
        }));
    };
    if coded != Coded::No && element != Element::Float {
        return Err(bad(format!(
            "[element_type] cannot be [{}] when using index type [{kind}]",
            element_name(element)
        )));
    }
    let mut options = VectorOptions {
        graph: graph.then(GraphOptions::default),
        coded,
        // Shown by codes of four bits whether it was given or not, as in Elasticsearch.
        confidence_interval: (coded == Coded::Int4).then_some(0.0),
        oversample: (coded == Coded::Bit).then_some(BIT_OVERSAMPLE),
        given: true,
        ..VectorOptions::stored_only()
    };
    let mut unknown = Vec::new();
    for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
        match (key.as_str(), &mut options.graph) {
            ("type", _) => {}
            ("m", Some(graph)) => graph.m = bounded(key, "maxConn", value, MAX_M)?,
            ("ef_construction", Some(graph)) => {
                graph.ef_construction = bounded(key, "beamWidth", value, MAX_EF_CONSTRUCTION)?;
            }
            ("confidence_interval", _) if matches!(coded, Coded::Int8 | Coded::Int4) => {
                options.confidence_interval = Some(confidence(value)?);
            }
            ("rescore_vector", _) if coded != Coded::No => options.oversample = Some(oversample(value)?),
            ("on_disk_rescore", _) => {
                options.on_disk_rescore = parameters::boolean(key, value)?;
                if options.on_disk_rescore && !(graph && coded != Coded::No) {
                    return Err(bad(
                        "on_disk_rescore is only supported for indexed and quantized vector types".to_owned(),
                    ));
                }
            }
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
    let Some(map) = value.as_object().filter(|map| map.keys().all(|key| key == "oversample")) else {
        let found = java_string(value);
        return Err(bad(format!(
            "[rescore_vector] must hold [oversample] and nothing else, found [{found}]"
        )));
    };
    let Some(given) = map.get("oversample").filter(|value| !value.is_null()) else {
        return Err(bad("Invalid rescore_vector value. Missing required field oversample".to_owned()));
    };
    match float(given) {
        Some(factor) if factor == 0.0 || (1.0..=10.0).contains(&factor) => Ok(factor),
        Some(factor) if factor > 10.0 => Err(bad("oversample must be less than or equal to 10".to_owned())),
        Some(_) => Err(bad("oversample must be greater than 1 or exactly 0".to_owned())),
        None => {
            Err(bad(format!("Failed to parse value [{}] for parameter [oversample]", java_string(given))))
        }
    }
}
