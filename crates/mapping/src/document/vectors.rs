//! Values of `sparse_vector` and `rank_features` fields. Everything that the index's segment writer would fail on is
//! refused here, as an error there would cost a whole batch of documents.

use std::collections::HashMap;

use serde_json::Value;
use sparrow_runtime::PackedTokens;

use super::super::LeafNode;
use super::super::error::{DocumentError, DocumentErrorKind};
use super::super::java::token_name;
use super::super::location::Step;
use super::super::types::FieldType;
use super::super::values;
use super::Reader;
use super::leaf::MAX_TERM;

impl Reader<'_> {
    /// Reads token weights: an object, or a list of objects whose weights are merged.
    pub(super) fn sparse(&mut self, leaf: &LeafNode, path: &str, value: &Value) -> Result<(), DocumentError> {
        let type_name = leaf.field_type.name();
        match value {
            Value::Null => Ok(()),
            Value::Array(values) => self.each(values, |reader, value| reader.sparse(leaf, path, value)),
            Value::Object(map) => {
                let at = match self.values.out.sparse.iter().position(|(other, _)| other == path) {
                    Some(at) => at,
                    None => {
                        self.values
                            .out
                            .sparse
                            .push((path.to_owned(), PackedTokens::with_capacity(map.len())));
                        self.values.out.sparse.len() - 1
                    }
                };
                // A second object of the same field is rare: only then are repeats looked for. One object has none by itself.
                let before = &self.values.out.sparse[at].1;
                let places = if before.is_empty() { HashMap::new() } else { before.places() };
                for (feature, value) in map {
                    let weight = self.feature(leaf, path, feature, value)?;
                    let Some(weight) = weight else { continue };
                    let tokens = &mut self.values.out.sparse[at].1;
                    match places.get(feature.as_bytes()) {
                        None => tokens.push(feature, weight),
                        Some(place) if matches!(leaf.field_type, FieldType::SparseVector) => {
                            tokens.raise(*place, weight);
                        }
                        Some(_) => {
                            self.steps.push(Step::Key(feature.clone()));
                            return Err(self.illegal(format!(
                                "[rank_features] fields do not support indexing multiple values for the same rank \
                                 feature [{path}.{feature}] in the same document"
                            )));
                        }
                    }
                }
                if self.values.out.sparse[at].1.is_empty() {
                    self.values.out.sparse.remove(at);
                } else {
                    self.values.seen(path);
                }
                Ok(())
            }
            other => Err(self.illegal(format!(
                "[{type_name}] fields must be json objects, expected a START_OBJECT but got: {}",
                token_name(other).replace("_FLOAT", "")
            ))),
        }
    }

    fn feature(
        &self,
        leaf: &LeafNode,
        path: &str,
        feature: &str,
        value: &Value,
    ) -> Result<Option<f32>, DocumentError> {
        let type_name = leaf.field_type.name();
        let illegal = |step: fn(String) -> Step, reason: String| {
            let mut steps = self.steps.clone();
            steps.push(step(feature.to_owned()));
            DocumentError::illegal(reason, steps)
        };
        if matches!(leaf.field_type, FieldType::RankFeatures) && feature.contains('.') {
            return Err(illegal(
                Step::Name,
                format!("[{type_name}] fields do not support dots in feature names but found [{feature}]"),
            ));
        }
        if feature.len() > MAX_TERM {
            return Err(illegal(
                Step::Name,
                format!(
                    "[{type_name}] feature names may have at most {MAX_TERM} bytes, found {}",
                    feature.len()
                ),
            ));
        }
        if matches!(value, Value::Bool(_) | Value::Array(_) | Value::Object(_)) {
            return Err(illegal(
                Step::Key,
                format!(
                    "[{type_name}] fields take hashes that map a feature to a strictly positive float, but got \
                     unexpected token {}",
                    token_name(value)
                ),
            ));
        }
        values::weight(path, feature, value).map_err(|causes| {
            let mut steps = self.steps.clone();
            steps.push(Step::Key(feature.to_owned()));
            DocumentError::new(DocumentErrorKind::Failed { causes }, steps)
        })
    }
}
