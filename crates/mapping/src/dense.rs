//! Parameters of `dense_vector` fields: reading, printing and changing them.

mod options;
pub(crate) mod problems;
mod values;

use serde_json::{Map, Value};
use sparrow_vectors::{Element, Metric, Similarity};
use sparrow_wire::shape::{Named, int, one, switch};

use super::error::MappingError;
use super::java::java_string;
pub use options::VectorOptions;
use options::index_options;
pub(super) use options::options_shape;
pub(crate) use values::element_name;
use values::{bad, integer, malformed};

/// Most dimensions of a vector with float or byte elements; bit vectors may have eight times as many.
pub(crate) const MAX_DIMS: usize = 4096;

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

    /// Checks that vectors with as many dimensions as the field has, if any, can have its codes.
    pub(super) fn check_dims(&self) -> Result<(), MappingError> {
        self.dims.and_then(|dims| self.options.dims_problem(dims)).map_or(Ok(()), |problem| Err(bad(problem)))
    }

    /// Number of dimensions of a vector with the given number of components: eight per component for bit vectors.
    pub fn dims_of(&self, components: usize) -> usize {
        if self.element == Element::Bit { components * 8 } else { components }
    }
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
    field.check_dims()?;
    Ok(field)
}

/// The parameters that [`parse`] reads.
pub(super) fn members() -> Vec<Named> {
    let elements = [Element::Float, Element::Byte, Element::Bit].map(element_name);
    vec![
        ("dims", int().about("length of the vectors; that of the first one if nothing is said")),
        ("element_type", one(&elements).preset("float")),
        ("index", switch().preset(true)),
        ("similarity", one(&SIMILARITIES.map(similarity_name))),
        ("index_options", options_shape()),
    ]
}

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

const SIMILARITIES: [Similarity; 4] =
    [Similarity::Cosine, Similarity::DotProduct, Similarity::L2Norm, Similarity::MaxInnerProduct];

fn similarity(value: &Value) -> Result<Similarity, MappingError> {
    SIMILARITIES.into_iter().find(|similarity| value.as_str() == Some(similarity_name(*similarity))).ok_or_else(|| {
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
    if !old.options.may_become(&update.options) {
        return refused("index_options", old.options.to_json(), update.options.to_json());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
