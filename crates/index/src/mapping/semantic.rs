//! `semantic_text` fields: their parameters, and what a model's first vectors fix of them.

use serde_json::{Map, Value, json};

use super::dense::{self, DenseVector};
use super::error::MappingError;
use super::parse::leaf::Params;
use super::sparse_options::SparseIndexOptions;
use super::types::{FieldType, ParsedDocument};
use super::values::java_string;
use super::{LeafNode, Mapping, Node, ObjectNode};
use crate::passages::{FieldPassages, PassageVector};

/// The endpoint of fields that name none.
pub const DEFAULT_INFERENCE_ID: &str = ".elser-2-elasticsearch";

/// A `semantic_text` field: text that is cut into passages, each encoded by a model.
#[derive(Debug, Clone, PartialEq)]
pub struct SemanticText {
    /// The endpoint that encodes documents.
    pub inference_id: String,
    /// The endpoint that encodes queries, if it is another one.
    pub search_inference_id: Option<String>,
    /// How texts are cut, if the mapping says it.
    pub chunking: Option<Chunking>,
    /// What the endpoint makes; unknown until the first document if the mapping does not say it.
    pub model: Option<SemanticModel>,
    /// How dense passages are laid out and compared; `None` unless the model makes dense vectors.
    pub dense: Option<Box<DenseVector>>,
}

impl Default for SemanticText {
    fn default() -> Self {
        Self {
            inference_id: DEFAULT_INFERENCE_ID.to_owned(),
            search_inference_id: None,
            chunking: None,
            model: None,
            dense: None,
        }
    }
}

impl SemanticText {
    /// The endpoint that encodes queries.
    pub fn search_id(&self) -> &str {
        self.search_inference_id.as_deref().unwrap_or(&self.inference_id)
    }
}

/// What an endpoint makes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SemanticModel {
    /// Token weights.
    Sparse,
    /// Dense vectors of so many dimensions.
    Dense { dims: usize },
}

impl SemanticModel {
    /// What made a vector.
    pub fn of(vector: &PassageVector) -> Self {
        match vector {
            PassageVector::Sparse(_) => Self::Sparse,
            PassageVector::Dense(vector) => Self::Dense { dims: vector.len() },
        }
    }

    /// As mappings show it.
    fn to_json(self) -> Value {
        match self {
            Self::Sparse => json!({"service": "elasticsearch", "task_type": "sparse_embedding"}),
            Self::Dense { dims } => json!({
                "service": "elasticsearch", "task_type": "text_embedding", "dimensions": dims,
                "similarity": "cosine", "element_type": "float"
            }),
        }
    }
}

/// `chunking_settings`: how a text is cut. Sizes are in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunking {
    /// So many words, the last `overlap` of which begin the next passage as well.
    Word { max_chunk_size: usize, overlap: usize },
    /// Whole sentences of together at most so many words; the last one begins the next passage as well if
    /// `sentence_overlap` is 1.
    Sentence { max_chunk_size: usize, sentence_overlap: usize },
    /// Each value is a passage.
    None,
}

impl Default for Chunking {
    fn default() -> Self {
        Self::Sentence { max_chunk_size: 250, sentence_overlap: 1 }
    }
}

impl Chunking {
    /// Reads the settings; `None` for empty ones.
    ///
    /// # Errors
    /// Everything that is wrong with them, in Elasticsearch's words.
    pub fn parse(value: &Value) -> Result<Option<Self>, MappingError> {
        let map = match value {
            Value::Null => return Ok(None),
            Value::Object(map) if map.is_empty() => return Ok(None),
            Value::Object(map) => map,
            other => {
                return Err(bad(format!("[chunking_settings] must be a map, got [{}]", java_string(other))));
            }
        };
        let strategy = match map.get("strategy") {
            None => return Err(invalid(&["Settings must contain field [strategy]".to_owned()])),
            Some(strategy) => java_string(strategy),
        };
        let mut problems = Vec::new();
        let (label, keys): (&str, &[&str]) = match strategy.to_ascii_lowercase().as_str() {
            "word" => ("Word based chunking settings", &["strategy", "max_chunk_size", "overlap"]),
            "sentence" => {
                ("Sentence based chunking settings", &["strategy", "max_chunk_size", "sentence_overlap"])
            }
            "none" => ("When chunking is disabled (none), settings", &["strategy"]),
            "recursive" => {
                return Err(bad(
                    "chunking strategy [recursive] is not supported, use [sentence], [word] or [none]"
                        .to_owned(),
                ));
            }
            _ => return Err(bad(format!("Invalid chunkingStrategy {strategy}"))),
        };
        let unknown: Vec<&str> = map.keys().map(String::as_str).filter(|key| !keys.contains(key)).collect();
        if !unknown.is_empty() {
            problems.push(format!("{label} can not have the following settings: [{}]", unknown.join(", ")));
        }
        let chunking = match label.as_bytes()[0] {
            b'S' => {
                let size = number(map, "max_chunk_size", 20, usize::MAX, &mut problems);
                let overlap = match map.get("sentence_overlap") {
                    None | Some(Value::Null) => 1,
                    Some(value) => match value.as_u64() {
                        Some(overlap @ (0 | 1)) => overlap as usize,
                        _ => {
                            problems.push(format!(
                                "[chunking_settings] Invalid value [{}]. [sentence_overlap] must be either 0 or 1",
                                java_string(value)
                            ));
                            0
                        }
                    },
                };
                Self::Sentence { max_chunk_size: size.unwrap_or(20), sentence_overlap: overlap }
            }
            b'W' if label.starts_with("Word") => {
                let size = number(map, "max_chunk_size", 10, usize::MAX, &mut problems);
                let overlap =
                    size.and_then(|size| number(map, "overlap", 0, size / 2, &mut problems)).unwrap_or(0);
                Self::Word { max_chunk_size: size.unwrap_or(10), overlap }
            }
            _ => Self::None,
        };
        if problems.is_empty() { Ok(Some(chunking)) } else { Err(invalid(&problems)) }
    }

    /// As mappings show it.
    pub fn to_json(self) -> Value {
        match self {
            Self::Word { max_chunk_size, overlap } => {
                json!({"strategy": "word", "max_chunk_size": max_chunk_size, "overlap": overlap})
            }
            Self::Sentence { max_chunk_size, sentence_overlap } => {
                json!({"strategy": "sentence", "max_chunk_size": max_chunk_size, "sentence_overlap": sentence_overlap})
            }
            Self::None => json!({"strategy": "none"}),
        }
    }
}

/// A required whole number.
fn number(
    map: &Map<String, Value>,
    name: &str,
    least: usize,
    most: usize,
    problems: &mut Vec<String>,
) -> Option<usize> {
    let Some(value) = map.get(name).filter(|value| !value.is_null()) else {
        problems.push(format!("[chunking_settings] does not contain the required setting [{name}]"));
        return None;
    };
    let shown = java_string(value);
    let Some(number) = value.as_i64().filter(|number| i32::try_from(*number).is_ok()) else {
        problems.push(format!(
            "field [{name}] is not of the expected type. The value [{shown}] cannot be converted to a [Integer]"
        ));
        return None;
    };
    let problem = match usize::try_from(number) {
        Ok(number) if (least..=most).contains(&number) => return Some(number),
        Ok(number) if number > most => format!("[{name}] must be a less than or equal to [{most}.0]"),
        _ if number <= 0 && least > 0 => format!("[{name}] must be a positive integer"),
        _ => format!("[{name}] must be a greater than or equal to [{least}.0]"),
    };
    problems.push(format!("[chunking_settings] Invalid value [{shown}]. {problem}"));
    None
}

fn invalid(problems: &[String]) -> MappingError {
    let listed: String =
        problems.iter().enumerate().map(|(at, problem)| format!("{}: {problem};", at + 1)).collect();
    MappingError::Nested { causes: vec![("validation_exception", format!("Validation Failed: {listed}"))] }
}

fn bad(reason: String) -> MappingError {
    MappingError::BadValue { reason }
}

/// Reads the parameters of a field.
pub(super) fn parse(params: &mut Params<'_>) -> Result<SemanticText, MappingError> {
    let mut field = SemanticText::default();
    let id = |params: &mut Params<'_>, name: &'static str| -> Result<Option<String>, MappingError> {
        let given = params.take(name).cloned();
        let owner = params.field;
        match given {
            None => Ok(None),
            Some(Value::String(id)) if !id.trim().is_empty() => {
                params.kept.insert(name.to_owned(), Value::String(id.clone()));
                Ok(Some(id))
            }
            Some(Value::String(_)) => {
                Err(bad(format!("[{name}] on mapper [{owner}] of type [semantic_text] must not be empty")))
            }
            Some(other) => Err(bad(format!(
                "[{name}] on mapper [{owner}] of type [semantic_text] must be a string, got [{}]",
                java_string(&other)
            ))),
        }
    };
    if let Some(given) = id(params, "inference_id")? {
        field.inference_id = given;
    }
    // Shown whether it was said or not, as Elasticsearch does.
    params.kept.insert("inference_id".to_owned(), field.inference_id.clone().into());
    field.search_inference_id = id(params, "search_inference_id")?;
    if let Some(value) = params.take("chunking_settings").cloned() {
        field.chunking = Chunking::parse(&value)?;
        if let Some(chunking) = field.chunking {
            params.kept.insert("chunking_settings".to_owned(), chunking.to_json());
        }
    }
    if let Some(value) = params.take("model_settings").cloned() {
        field.model = Some(model(&value)?);
        params.kept.insert("model_settings".to_owned(), value);
    }
    let options = params.take("index_options").cloned();
    if let Some(options) = &options {
        params.kept.insert("index_options".to_owned(), options.clone());
    }
    finish(&mut field, params.field, &params.kept)?;
    Ok(field)
}

/// Works out how dense passages are laid out, from what the model makes and `index_options` say.
fn finish(field: &mut SemanticText, name: &str, params: &Map<String, Value>) -> Result<(), MappingError> {
    let model = params.get("model_settings");
    let mut definition = Map::new();
    if let Some(SemanticModel::Dense { dims }) = field.model {
        definition.insert("dims".to_owned(), dims.into());
    }
    for (from, to) in [("similarity", "similarity"), ("element_type", "element_type")] {
        if let Some(value) = model.and_then(|model| model.get(from)).filter(|value| !value.is_null()) {
            definition.insert(to.to_owned(), value.clone());
        }
    }
    let mut wanted = None;
    match params.get("index_options") {
        None => {}
        Some(Value::Object(options)) if options.len() == 1 => {
            let (kind, options) = options.iter().next().unwrap_or_else(|| unreachable!("one member"));
            match kind.as_str() {
                "dense_vector" => {
                    definition.insert("index_options".to_owned(), options.clone());
                    // Read now, so that a mistake is found before the first document.
                    dense::parse(name, &definition)?;
                    wanted = Some("text_embedding");
                }
                "sparse_vector" => {
                    SparseIndexOptions::parse(options)?;
                    wanted = Some("sparse_embedding");
                }
                other => return Err(bad(format!("Unsupported index options type {other}"))),
            }
        }
        Some(_) => {
            return Err(bad(format!("Too many index options provided, found [{}]", count(params))));
        }
    }
    let task = match field.model {
        None => return Ok(()),
        Some(SemanticModel::Sparse) => "sparse_embedding",
        Some(SemanticModel::Dense { .. }) => "text_embedding",
    };
    if let Some(wanted) = wanted.filter(|wanted| *wanted != task) {
        return Err(bad(format!(
            "Invalid task type for index options, required [{wanted}] but was [{task}]"
        )));
    }
    if task == "text_embedding" {
        field.dense = Some(Box::new(dense::parse(name, &definition)?));
    }
    Ok(())
}

fn count(params: &Map<String, Value>) -> String {
    match params.get("index_options") {
        Some(Value::Object(options)) => options.keys().cloned().collect::<Vec<_>>().join(", "),
        other => other.map(java_string).unwrap_or_default(),
    }
}

/// Reads `model_settings`.
fn model(value: &Value) -> Result<SemanticModel, MappingError> {
    let Value::Object(map) = value else {
        return Err(bad(format!("[model_settings] must be a map, got [{}]", java_string(value))));
    };
    const KNOWN: [&str; 5] = ["service", "task_type", "dimensions", "similarity", "element_type"];
    if let Some(unknown) = map.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(bad(format!("[model_settings] unknown field [{unknown}]")));
    }
    let given = |name: &str| map.get(name).filter(|value| !value.is_null());
    let Some(task) = given("task_type").map(java_string) else {
        return Err(bad("Required [task_type]".to_owned()));
    };
    match task.as_str() {
        "sparse_embedding" => {
            match ["dimensions", "similarity", "element_type"].iter().find(|name| given(name).is_some()) {
                Some(name) => Err(bad(format!("[{name}] is not allowed for task_type [SPARSE_EMBEDDING]"))),
                None => Ok(SemanticModel::Sparse),
            }
        }
        "text_embedding" => {
            for name in ["dimensions", "similarity", "element_type"] {
                if given(name).is_none() {
                    return Err(bad(format!(
                        "required [{name}] field is missing for task_type [TEXT_EMBEDDING]"
                    )));
                }
            }
            let dims = given("dimensions").and_then(Value::as_u64).filter(|dims| (1..=4096).contains(dims));
            let Some(dims) = dims else {
                return Err(bad(format!(
                    "[dimensions] must be a positive integer, got [{}]",
                    given("dimensions").map(java_string).unwrap_or_default()
                )));
            };
            if given("element_type").map(java_string).as_deref() != Some("float") {
                return Err(bad(format!(
                    "[element_type] [{}] is not supported, the models of this server make [float] vectors",
                    given("element_type").map(java_string).unwrap_or_default()
                )));
            }
            Ok(SemanticModel::Dense { dims: dims as usize })
        }
        other => {
            Err(bad(format!("Wrong [task_type], expected text_embedding or sparse_embedding, got {other}")))
        }
    }
}

/// Prepares an update of a field: what the first document fixed stays unless it is said again.
///
/// # Errors
/// When the two do not go together.
pub(super) fn update(old: &LeafNode, update: &mut LeafNode, name: &str) -> Result<(), MappingError> {
    let (FieldType::SemanticText(before), FieldType::SemanticText(after)) =
        (&old.field_type, &mut update.field_type)
    else {
        return Ok(());
    };
    if after.model.is_none() && before.model.is_some() {
        after.model = before.model;
        if let Some(settings) = old.params.get("model_settings") {
            update.params.insert("model_settings".to_owned(), settings.clone());
        }
        finish(after, name, &update.params)?;
    }
    Ok(())
}

/// Whether an update of a field may change a parameter that others may not.
pub(super) fn may_change(old: &LeafNode, parameter: &str) -> bool {
    let FieldType::SemanticText(field) = &old.field_type else { return false };
    match parameter {
        "inference_id" | "model_settings" => field.model.is_none(),
        "search_inference_id" | "chunking_settings" => true,
        _ => false,
    }
}

impl Mapping {
    /// Paths of the `semantic_text` fields, sorted.
    pub fn semantic_fields(&self) -> &[String] {
        &self.semantic
    }

    /// The `semantic_text` field at `path`.
    pub fn semantic_field(&self, path: &str) -> Option<&SemanticText> {
        match self.field(path)? {
            FieldType::SemanticText(field) => Some(field),
            _ => None,
        }
    }

    /// Fields whose values become passages of the `semantic_text` field at `path`: itself, and those that are copied
    /// to it, sorted.
    pub fn semantic_sources(&self, path: &str) -> Vec<String> {
        let mut sources = Vec::new();
        copied_to(&self.root, "", path, &mut sources);
        sources.insert(0, path.to_owned());
        sources
    }

    /// Gives a document its passages. Returns the wider mapping to put in force before it is written, if these are
    /// the first vectors of a field.
    ///
    /// # Errors
    /// A sentence about vectors that are of another kind than the field's.
    pub fn attach_passages(
        &self,
        parsed: &mut ParsedDocument,
        fields: Vec<FieldPassages>,
    ) -> Result<Option<Mapping>, String> {
        let mut wider: Option<Mapping> = None;
        for field in fields {
            let Some(known) = self.semantic_field(&field.path) else { continue };
            let Some(first) = field.chunks.first() else { continue };
            let made = SemanticModel::of(&first.vector);
            if field.chunks.iter().any(|chunk| SemanticModel::of(&chunk.vector) != made)
                || known.model.is_some_and(|model| model != made)
            {
                return Err(format!(
                    "Incompatible model settings for field [{}]. Check that the inference_id is not using different \
                     model settings",
                    field.path
                ));
            }
            if known.model.is_none() {
                let mapping = wider.get_or_insert_with(|| self.clone());
                if let Some(leaf) = leaf_mut(&mut mapping.root, &field.path) {
                    leaf.params.insert("model_settings".to_owned(), made.to_json());
                    if let FieldType::SemanticText(settings) = &mut leaf.field_type {
                        settings.model = Some(made);
                        finish(settings, &field.path, &leaf.params).map_err(|error| error.to_string())?;
                    }
                }
            }
            parsed.field_names.push(field.path.clone());
            parsed.passages.push((field.path, field.chunks));
        }
        Ok(wider.map(Mapping::rebuilt))
    }
}

fn leaf_mut<'m>(object: &'m mut ObjectNode, path: &str) -> Option<&'m mut LeafNode> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    match (object.properties.get_mut(first)?, rest) {
        (Node::Object(inner), Some(rest)) => leaf_mut(inner, rest),
        (Node::Leaf(leaf), None) => Some(leaf),
        _ => None,
    }
}

fn copied_to(object: &ObjectNode, prefix: &str, target: &str, found: &mut Vec<String>) {
    for (name, node) in &object.properties {
        let path = super::join(prefix, name);
        match node {
            Node::Object(inner) => copied_to(inner, &path, target, found),
            Node::Leaf(leaf) if leaf.options.copy_to.iter().any(|to| to == target) => found.push(path),
            Node::Leaf(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passages::Passage;

    fn mapping(field: Value) -> Result<Mapping, String> {
        Mapping::parse(&json!({"properties": {"o": {"properties": {"s": field}}}}))
            .map_err(|error| error.reason())
    }

    fn passages(vector: PassageVector) -> Vec<FieldPassages> {
        vec![FieldPassages {
            path: "o.s".into(),
            sources: vec!["o.s".into()],
            chunks: vec![Passage { source: 0, start: 0, end: 1, vector }],
            ..FieldPassages::default()
        }]
    }

    #[test]
    fn the_first_vectors_fix_the_model() {
        let plain = mapping(json!({"type": "semantic_text"})).unwrap();
        assert_eq!(plain.semantic_fields(), ["o.s"]);
        assert_eq!(
            plain.to_json()["properties"]["o"]["properties"]["s"]["inference_id"],
            DEFAULT_INFERENCE_ID
        );
        let mut parsed = ParsedDocument::default();
        let wider = plain.attach_passages(&mut parsed, passages(PassageVector::Dense(vec![1.0; 3]))).unwrap();
        let wider = wider.expect("wider");
        assert_eq!((&parsed.field_names[0][..], parsed.passages.len()), ("o.s", 1));
        let shown = &wider.to_json()["properties"]["o"]["properties"]["s"]["model_settings"];
        assert_eq!(shown["dimensions"], 3);
        assert_eq!(wider.semantic_field("o.s").unwrap().dense.as_ref().unwrap().dims, Some(3));
        // What is shown can be read, and more of the same changes nothing.
        assert_eq!(Mapping::parse(&wider.to_json()).unwrap(), wider);
        let mut parsed = ParsedDocument::default();
        assert_eq!(
            wider.attach_passages(&mut parsed, passages(PassageVector::Dense(vec![0.5; 3]))),
            Ok(None)
        );
        assert!(wider.attach_passages(&mut parsed, passages(PassageVector::Sparse(Vec::new()))).is_err());
        // An update that says nothing of it leaves it; another endpoint is refused then and not before.
        let update = json!({"properties": {"o.s": {"type": "semantic_text"}}});
        assert_eq!(wider.merge_update(&update).unwrap(), wider);
        let update = json!({"properties": {"o.s": {"type": "semantic_text", "inference_id": "other"}}});
        assert!(
            wider
                .merge_update(&update)
                .unwrap_err()
                .reason()
                .contains("Cannot update parameter [inference_id]")
        );
        assert_eq!(plain.merge_update(&update).unwrap().semantic_field("o.s").unwrap().inference_id, "other");
    }

    #[test]
    fn bad_parameters_are_refused() {
        for (field, reason) in [
            (
                json!({"inference_id": ""}),
                "[inference_id] on mapper [s] of type [semantic_text] must not be empty",
            ),
            (json!({"nope": 1}), "unknown parameter [nope] on mapper [s] of type [semantic_text]"),
            (
                json!({"fields": {"k": {"type": "keyword"}}}),
                "semantic_text field [s] does not support multi-fields",
            ),
            (json!({"copy_to": "x"}), "semantic_text field [s] does not support [copy_to]"),
            (json!({"model_settings": {"task_type": "chat"}}), "Wrong [task_type]"),
            (
                json!({"model_settings": {"task_type": "text_embedding"}}),
                "required [dimensions] field is missing for task_type [TEXT_EMBEDDING]",
            ),
            (
                json!({"model_settings": {"task_type": "sparse_embedding", "dimensions": 3}}),
                "[dimensions] is not allowed for task_type [SPARSE_EMBEDDING]",
            ),
            (json!({"chunking_settings": {"strategy": "page"}}), "Invalid chunkingStrategy page"),
            (
                json!({"chunking_settings": {"strategy": "word"}}),
                "[chunking_settings] does not contain the required setting [max_chunk_size]",
            ),
            (
                json!({"chunking_settings": {"strategy": "word", "max_chunk_size": 10, "overlap": 6}}),
                "Invalid value [6]. [overlap] must be a less than or equal to [5.0]",
            ),
            (
                json!({"chunking_settings": {"strategy": "sentence", "max_chunk_size": 19}}),
                "Invalid value [19]. [max_chunk_size] must be a greater than or equal to [20.0]",
            ),
            (
                json!({"chunking_settings": {"strategy": "none", "extra": 1}}),
                "can not have the following settings: [extra]",
            ),
        ] {
            let mut whole = json!({"type": "semantic_text"});
            whole.as_object_mut().unwrap().extend(field.as_object().unwrap().clone());
            let found = mapping(whole).unwrap_err();
            assert!(found.contains(reason), "{found}");
        }
        let inside =
            mapping(json!({"type": "text", "fields": {"x": {"type": "semantic_text"}}})).unwrap_err();
        assert!(
            inside.contains("Field [x] of type [semantic_text] can't be used in multifields"),
            "{inside}"
        );
    }
}
