//! Values of `sparse_vector`, `rank_features` and `dense_vector` fields. Everything the segment plugin
//! could stumble over is refused here: an error in its writer would cost a whole batch of documents.

use serde_json::Value;
use sparrow_vectors::Similarity;

use super::super::error::{DocumentError, DocumentErrorKind};
use super::super::location::Step;
use super::super::types::FieldType;
use super::super::values::{self, java_float, token_name};
use super::super::{LeafNode, Node, print};
use super::Reader;
use super::leaf::{MAX_DIMS, MAX_TERM};

impl Reader<'_> {
    /// Token weights: an object, or several whose weights are joined.
    pub(super) fn sparse(&mut self, leaf: &LeafNode, path: &str, value: &Value) -> Result<(), DocumentError> {
        let type_name = leaf.field_type.name();
        match value {
            Value::Null => Ok(()),
            Value::Array(values) => self.each(values, |reader, value| reader.sparse(leaf, path, value)),
            Value::Object(map) => {
                let at = match self.out.sparse.iter().position(|(known, _)| known == path) {
                    Some(at) => at,
                    None => {
                        self.out.sparse.push((path.to_owned(), Vec::with_capacity(map.len())));
                        self.out.sparse.len() - 1
                    }
                };
                // A second object of the same field is rare: only then are repeats looked for.
                let repeats_possible = !self.out.sparse[at].1.is_empty();
                for (feature, value) in map {
                    let weight = self.feature(leaf, path, feature, value)?;
                    let Some(weight) = weight else { continue };
                    let tokens = &mut self.out.sparse[at].1;
                    let known = if repeats_possible {
                        tokens.iter().position(|(token, _)| **token == **feature)
                    } else {
                        None
                    };
                    match known {
                        None => tokens.push((feature.as_str().into(), weight)),
                        Some(known) if matches!(leaf.field_type, FieldType::SparseVector) => {
                            tokens[known].1 = tokens[known].1.max(weight);
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
                if self.out.sparse[at].1.is_empty() {
                    self.out.sparse.remove(at);
                } else {
                    self.seen(path);
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

    pub(super) fn dense(&mut self, leaf: &LeafNode, path: &str, value: &Value) -> Result<(), DocumentError> {
        let FieldType::DenseVector { dims, similarity, index } = &leaf.field_type else { return Ok(()) };
        let list = match value {
            Value::Null => return Ok(()),
            Value::Array(list) => list,
            other => {
                return Err(self.fail(DocumentErrorKind::Failed {
                    causes: vec![(
                        "parsing_exception",
                        format!(
                            "Failed to parse object: expecting token of type [START_ARRAY] but found [{}]",
                            token_name(other).replace("_FLOAT", "")
                        ),
                    )],
                }));
            }
        };
        if self.out.dense.iter().any(|(known, _)| known == path) {
            return Err(self.illegal(format!(
                "Field [{path}] of type [dense_vector] doesn't support indexing multiple values for the same field in the same document"
            )));
        }
        let mut vector = Vec::with_capacity(list.len());
        for (at, value) in list.iter().enumerate() {
            self.steps.push(Step::Index(at));
            if dims.is_some_and(|dims| at >= dims) {
                return Err(self.illegal(format!(
                    "The [dense_vector] field [{path}] in doc [document with id '{}'] has more dimensions than \
                     defined in the mapping [{}]",
                    self.id,
                    dims.unwrap_or_default()
                )));
            }
            let component = match value {
                Value::Number(number) => number.as_f64().map(|float| float as f32),
                Value::String(text) => values::parse_double(text).map(|float| float as f32),
                _ => None,
            };
            match component {
                Some(component) if component.is_finite() => vector.push(component),
                Some(component) => {
                    return Err(self.illegal(format!(
                        "element_type [float] vectors do not support NaN or infinite values but found [{}] at dim [{at}];",
                        java_float(component)
                    )));
                }
                None => {
                    return Err(self.fail(DocumentErrorKind::Failed {
                        causes: vec![(
                            "parsing_exception",
                            format!(
                                "Failed to parse object: expecting token of type [VALUE_NUMBER] but found [{}]",
                                token_name(value)
                            ),
                        )],
                    }));
                }
            }
            self.steps.pop();
        }
        self.steps.push(Step::End);
        match dims {
            Some(dims) if vector.len() != *dims => {
                return Err(self.illegal(format!(
                    "The [dense_vector] field [{path}] in doc [document with id '{}'] has a different number of \
                     dimensions [{}] than defined in the mapping [{dims}]",
                    self.id,
                    vector.len()
                )));
            }
            Some(_) => {}
            None if vector.is_empty() || vector.len() > MAX_DIMS => {
                return Err(self.illegal(format!(
                    "The number of dimensions should be in the range [1, {MAX_DIMS}] but was [{}]",
                    vector.len()
                )));
            }
            None => {
                let mut known = leaf.clone();
                if let FieldType::DenseVector { dims, .. } = &mut known.field_type {
                    *dims = Some(vector.len());
                }
                known.params.insert("dims".to_owned(), vector.len().into());
                self.added.insert(path.to_owned(), Node::Leaf(known));
            }
        }
        self.check_magnitude(*similarity, *index, &vector)?;
        self.steps.pop();
        if *index {
            self.seen(path);
            self.out.dense.push((path.to_owned(), vector));
        }
        Ok(())
    }

    fn check_magnitude(
        &self,
        similarity: Similarity,
        index: bool,
        vector: &[f32],
    ) -> Result<(), DocumentError> {
        if !index {
            return Ok(());
        }
        let squared: f64 = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let problem = match similarity {
            Similarity::Cosine if squared == 0.0 => "does not support vectors with zero magnitude",
            Similarity::DotProduct if (squared - 1.0).abs() > 1e-3 => {
                "can only be used with unit-length vectors"
            }
            _ => return Ok(()),
        };
        let preview: Vec<String> = vector.iter().take(5).map(|&component| java_float(component)).collect();
        let more = if vector.len() > 5 { ", ..." } else { "" };
        Err(self.illegal(format!(
            "The [{}] similarity {problem}. Preview of invalid vector: [{}{more}]",
            print::similarity_name(similarity),
            preview.join(", ")
        )))
    }
}
