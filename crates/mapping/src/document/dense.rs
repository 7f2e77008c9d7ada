//! Values of `dense_vector` fields: arrays of numbers, or strings ([`encoded`]).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::dense::problems::{component_problem, magnitude_problem};
use super::super::dense::{DenseVector, MAX_DIMS};
use super::super::dynamic::MatchType;
use super::super::encoded;
use super::super::error::{DocumentError, DocumentErrorKind};
use super::super::java::token_name;
use super::super::location::Step;
use super::super::types::FieldType;
use super::super::values;
use super::super::{LeafNode, LeafOptions, Node};
use super::Reader;

/// Least length at which an array of fractional numbers in an unmapped field is mapped as a dense vector.
const MIN_DYNAMIC_DIMS: usize = 128;

impl Reader<'_> {
    /// The field of vectors that an unmapped list becomes, if it does: a list is one value to such a field, and several to all others.
    pub(super) fn dynamic_vector(
        &self,
        name: &str,
        path: &str,
        values: &[Value],
    ) -> Result<Option<Box<LeafNode>>, DocumentError> {
        Ok(match self.template(name, path, MatchType::Object, None)? {
            Some(Node::Leaf(leaf)) if matches!(leaf.field_type, FieldType::DenseVector(_)) => Some(leaf),
            _ if looks_dense(values) && self.template(name, path, MatchType::Double, None)?.is_none() => {
                Some(Box::new(dense_leaf(values.len())))
            }
            _ => None,
        })
    }

    pub(super) fn dense(
        &mut self,
        leaf: &LeafNode,
        field: &DenseVector,
        path: &str,
        value: &Value,
    ) -> Result<(), DocumentError> {
        if value.is_null() {
            return Ok(());
        }
        if self.values.out.dense.iter().any(|(other, _)| other == path) {
            return Err(self.illegal(format!(
                "Field [{path}] of type [dense_vector] doesn't support indexing multiple values for the same field \
                 in the same document"
            )));
        }
        let vector = match value {
            Value::Array(list) => self.components(field, path, list)?,
            Value::String(text) => {
                let vector = encoded::vector(text, field.element, field.dims)
                    .map_err(|reason| self.illegal(reason))?;
                self.check_room(field, path, vector.len())?;
                let problems = vector.iter().enumerate();
                let mut problems =
                    problems.filter_map(|(at, &component)| component_problem(field.element, component, at));
                if let Some(problem) = problems.next() {
                    return Err(self.illegal(problem));
                }
                vector
            }
            other => return Err(self.unexpected("START_ARRAY", token_name(other).replace("_FLOAT", ""))),
        };
        self.steps.push(Step::End);
        self.check_dims(leaf, field, path, vector.len())?;
        if field.index {
            self.check_magnitude(field, &vector)?;
        }
        self.steps.pop();
        self.values.seen(path);
        // Scripts compare vectors of fields that are not searched, too.
        self.values.out.dense.push((path.to_owned(), vector));
        Ok(())
    }

    fn components(
        &mut self,
        field: &DenseVector,
        path: &str,
        list: &[Value],
    ) -> Result<Vec<f32>, DocumentError> {
        let mut vector = Vec::with_capacity(list.len());
        for (at, value) in list.iter().enumerate() {
            self.steps.push(Step::Index(at));
            self.check_room(field, path, at + 1)?;
            let component = match value {
                Value::Number(number) => number.as_f64().map(|float| float as f32),
                Value::String(text) => values::parse_double(text).map(|float| float as f32),
                _ => None,
            };
            let Some(component) = component else {
                return Err(self.unexpected("VALUE_NUMBER", token_name(value).to_owned()));
            };
            if let Some(problem) = component_problem(field.element, component, at) {
                return Err(self.illegal(problem));
            }
            vector.push(component);
            self.steps.pop();
        }
        Ok(vector)
    }

    fn unexpected(&self, wanted: &str, found: String) -> DocumentError {
        self.fail(DocumentErrorKind::Failed {
            causes: vec![(
                "parsing_exception",
                format!("Failed to parse object: expecting token of type [{wanted}] but found [{found}]"),
            )],
        })
    }

    fn check_room(&self, field: &DenseVector, path: &str, components: usize) -> Result<(), DocumentError> {
        match field.dims {
            Some(dims) if field.dims_of(components) > dims => Err(self.illegal(format!(
                "The [dense_vector] field [{path}] in doc [document with id '{}'] has more dimensions than defined in \
                 the mapping [{dims}]",
                self.id,
            ))),
            _ => Ok(()),
        }
    }

    /// Checks the number of dimensions of a vector; for a field that has none set yet, sets it to that number.
    fn check_dims(
        &mut self,
        leaf: &LeafNode,
        field: &DenseVector,
        path: &str,
        components: usize,
    ) -> Result<(), DocumentError> {
        let dims_given = field.dims_of(components);
        match field.dims {
            Some(dims) if dims_given != dims => Err(self.illegal(format!(
                "The [dense_vector] field [{path}] in doc [document with id '{}'] has a different number of \
                 dimensions [{dims_given}] than defined in the mapping [{dims}]",
                self.id,
            ))),
            Some(_) => Ok(()),
            None if components == 0 || components > MAX_DIMS => Err(self.illegal(format!(
                "The number of dimensions should be in the range [1, {}] but was [{dims_given}]",
                field.dims_of(MAX_DIMS)
            ))),
            None => {
                if let Some(problem) = field.options.dims_problem(dims_given) {
                    return Err(self.illegal(problem));
                }
                let mut with_dims = leaf.clone();
                if let FieldType::DenseVector(field) = &mut with_dims.field_type {
                    field.dims = Some(dims_given);
                }
                self.added.insert(path.to_owned(), with_dims.into());
                Ok(())
            }
        }
    }

    fn check_magnitude(&self, field: &DenseVector, vector: &[f32]) -> Result<(), DocumentError> {
        match magnitude_problem(field, vector) {
            Some(problem) => Err(self.illegal(problem)),
            None => Ok(()),
        }
    }
}

fn looks_dense(values: &[Value]) -> bool {
    (MIN_DYNAMIC_DIMS..=MAX_DIMS).contains(&values.len()) && values.iter().all(|value| value.is_f64())
}

fn dense_leaf(dims: usize) -> LeafNode {
    LeafNode {
        field_type: FieldType::DenseVector(Box::new(DenseVector {
            dims: Some(dims),
            ..DenseVector::default()
        })),
        options: LeafOptions::default(),
        params: Map::new(),
        fields: BTreeMap::new(),
    }
}
