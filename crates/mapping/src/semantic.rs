//! `semantic_text` fields: their parameters, and what the first vectors from a model settle about a field.

use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use sparrow_wire::shape::{Named, named, object, open, text};

use super::chunking::Chunking;
use super::dense::{self, problems::magnitude_problem};
use super::error::MappingError;
use super::java::java_string;
use super::parameters::Params;
use super::semantic_text::{DEFAULT_INFERENCE_ID, HYBRID_TASK, SemanticModel, SemanticText, Slot, field_of};
use super::sparse_options::{self, SparseIndexOptions};
use super::types::{FieldType, ParsedDocument};
use super::{LeafNode, Mapping, Node, ObjectNode};
use crate::passages::FieldPassages;

fn bad(reason: String) -> MappingError {
    MappingError::BadValue { reason }
}

/// Reads the parameters of a field.
pub(super) fn semantic_members() -> Vec<Named> {
    let id = text().about("endpoint, deployment or model that encodes").preset(DEFAULT_INFERENCE_ID);
    let options = object([
        ("dense_vector", dense::options_shape()),
        ("sparse_vector", sparse_options::options_shape()),
    ]);
    vec![
        ("inference_id", id),
        ("search_inference_id", text().about("another one for queries")),
        ("chunking_settings", named("ChunkingSettings")),
        ("model_settings", open().about("what the model makes; filled in by the first document")),
        ("index_options", options),
    ]
}

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
        field.chunking = match &value {
            Value::Null => None,
            Value::Object(given) => Chunking::parse(given)?,
            other => {
                return Err(bad(format!("[chunking_settings] must be a map, got [{}]", java_string(other))));
            }
        };
        if let Some(chunking) = &field.chunking {
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

/// Reads a `semantic_text` definition outside a mapping; returns the settings, and the parameters as mappings show
/// them.
pub(super) fn parse_alone(
    path: &str,
    definition: &Value,
) -> Result<(SemanticText, Map<String, Value>), MappingError> {
    let mut definition = definition.as_object().cloned().unwrap_or_default();
    definition.insert("type".to_owned(), "semantic_text".into());
    let name = path.rsplit('.').next().unwrap_or(path);
    let mut alone = Mapping::parse(&json!({"properties": {name: definition}}))?;
    match alone.root.properties.remove(name) {
        Some(Node::Leaf(leaf)) => match leaf.field_type {
            FieldType::SemanticText(settings) => Ok((*settings, leaf.params)),
            _ => Err(bad(format!("field [{path}] is not of type [semantic_text]"))),
        },
        _ => Err(bad(format!("there is no field [{path}]"))),
    }
}

/// Works out how dense passages are laid out, from what the model makes and `index_options` say.
fn finish(field: &mut SemanticText, name: &str, params: &Map<String, Value>) -> Result<(), MappingError> {
    let model = params.get("model_settings");
    let mut definition = Map::new();
    if let Some(dims) = field.model.and_then(SemanticModel::dims) {
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
    let Some(model) = field.model else { return Ok(()) };
    let task = model.task();
    if let Some(wanted) = wanted.filter(|wanted| *wanted != task && task != HYBRID_TASK) {
        return Err(bad(format!(
            "Invalid task type for index options, required [{wanted}] but was [{task}]"
        )));
    }
    if model.dims().is_some() {
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

/// Reads the `model_settings` parameter.
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
        "text_embedding" | HYBRID_TASK => {
            for name in ["dimensions", "similarity", "element_type"] {
                if given(name).is_none() {
                    return Err(bad(format!(
                        "required [{name}] field is missing for task_type [{}]",
                        task.to_ascii_uppercase()
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
            let dims = dims as usize;
            Ok(match task == HYBRID_TASK {
                true => SemanticModel::Hybrid { dims },
                false => SemanticModel::Dense { dims },
            })
        }
        other => {
            Err(bad(format!("Wrong [task_type], expected text_embedding or sparse_embedding, got {other}")))
        }
    }
}

/// Prepares an update of a field: what the first document settled is kept unless the update sets it again.
///
/// # Errors
/// If the kept model and the update's `index_options` do not fit together.
pub(super) fn update(old: &LeafNode, update: &mut LeafNode, name: &str) -> Result<(), MappingError> {
    let (FieldType::SemanticText(before), FieldType::SemanticText(after)) =
        (&old.field_type, &mut update.field_type)
    else {
        return Ok(());
    };
    after.slots = before.slots.clone();
    after.fingerprint = before.fingerprint.clone();
    if after.model.is_none() && before.model.is_some() {
        after.model = before.model;
        if let Some(settings) = old.params.get("model_settings") {
            update.params.insert("model_settings".to_owned(), settings.clone());
        }
        finish(after, name, &update.params)?;
    }
    Ok(())
}

/// Whether an update of a `semantic_text` field may change `parameter`; for other field types, always false.
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

    /// Hash that differs between mappings whose documents need different passages: other fields, models, source texts
    /// or chunking settings. 0 if there are no `semantic_text` fields.
    pub fn semantic_key(&self) -> u64 {
        self.semantic_key
    }

    pub(super) fn hash_semantic(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        if self.semantic.is_empty() {
            return 0;
        }
        let mut hasher = rustc_hash::FxHasher::default();
        let copies = self.copies();
        let mut slots: Vec<_> = self.slots().collect();
        // Whichever of them is searched.
        slots.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        for Slot { name, path, settings } in slots {
            let chunking = settings.chunking.as_ref().map(|chunking| chunking.to_json().to_string());
            (name, &settings.inference_id, chunking, copies.sources_of(self, path)).hash(&mut hasher);
        }
        // 0 is taken.
        hasher.finish().max(1)
    }

    /// The `semantic_text` field at `path`.
    pub fn semantic_field(&self, path: &str) -> Option<&SemanticText> {
        match self.field(path)? {
            FieldType::SemanticText(field) => Some(field),
            _ => None,
        }
    }

    /// Paths of the fields whose values become passages of the `semantic_text` field at `path`: the field itself (for
    /// a multi-field, its parent field) and those with a `copy_to` to it, sorted.
    pub fn semantic_sources(&self, path: &str) -> Vec<String> {
        self.copies().sources_of(self, path)
    }

    /// All that `copy_to` says, to look up the sources of several fields.
    pub fn copies(&self) -> Copies {
        let mut copies = Copies::default();
        copies.add(&self.root, "");
        copies
    }

    /// Adds passages to a document. Returns the extended mapping that has to take effect before the document is
    /// written, if these are the field's first vectors, or the first whose model is known; `similarity` then gives
    /// the similarity for the vectors of an endpoint. Does not check whether the vectors come from the model that is
    /// already known.
    ///
    /// # Errors
    /// A message about vectors of another kind than the field's, or that the field's similarity cannot compare.
    pub fn attach_passages(
        &self,
        parsed: &mut ParsedDocument,
        fields: Vec<FieldPassages>,
        similarity: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Mapping>, String> {
        let mut wider: Option<Mapping> = None;
        for field in fields {
            let path = field_of(&field.path).to_owned();
            let Some(settings_before) = self.slot(&field.path) else { continue };
            let Some(first) = field.chunks.first() else { continue };
            let made = SemanticModel::of(&first.vector);
            if field.chunks.iter().any(|chunk| SemanticModel::of(&chunk.vector) != made)
                || settings_before.model.is_some_and(|model| model != made)
            {
                return Err(format!(
                    "Incompatible model settings for field [{}]. Check that the inference_id is not using different \
                     model settings",
                    path
                ));
            }
            let names_model = settings_before.fingerprint.is_none() && !field.fingerprint.is_empty();
            if settings_before.model.is_none() || names_model {
                let mapping = wider.get_or_insert_with(|| self.clone());
                if let Some(leaf) = leaf_mut(&mut mapping.root, &path)
                    && let Some((settings, params)) = leaf.slot_mut(&field.path)
                {
                    if settings.model.is_none() {
                        let model = made.to_json(similarity(&settings_before.inference_id));
                        params.insert("model_settings".to_owned(), model);
                        settings.model = Some(made);
                        finish(settings, &path, params).map_err(|error| error.to_string())?;
                    }
                    if names_model {
                        settings.fingerprint = Some(field.fingerprint.clone());
                    }
                }
            }
            let leaf = wider.as_mut().and_then(|wider| leaf_mut(&mut wider.root, &path));
            let widened = leaf.and_then(|leaf| leaf.slot_mut(&field.path)).map(|(settings, _)| &*settings);
            if let Some(dense) = &widened.unwrap_or(settings_before).dense {
                for chunk in &field.chunks {
                    if let Some(vector) = chunk.vector.dense()
                        && let Some(problem) = magnitude_problem(dense, vector)
                    {
                        return Err(problem);
                    }
                }
            }
            if !parsed.field_names.contains(&path) {
                parsed.field_names.push(path);
            }
            parsed.passages.push((field.path, field.chunks));
        }
        Ok(wider.map(Mapping::rebuilt))
    }
}

pub(super) fn leaf_mut<'m>(object: &'m mut ObjectNode, path: &str) -> Option<&'m mut LeafNode> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    match (object.properties.get_mut(first)?, rest) {
        (Node::Object(inner), Some(rest)) => leaf_mut(inner, rest),
        (Node::Leaf(leaf), None) => Some(leaf),
        (Node::Leaf(leaf), Some(rest)) => leaf.fields.get_mut(rest),
        (Node::Object(_), None) => None,
    }
}

/// Paths of the fields that `copy_to` copies to each field.
#[derive(Debug, Default)]
pub struct Copies(FxHashMap<String, Vec<String>>);

impl Copies {
    fn add(&mut self, object: &ObjectNode, prefix: &str) {
        for (name, node) in &object.properties {
            let path = super::join(prefix, name);
            match node {
                Node::Object(inner) => self.add(inner, &path),
                Node::Leaf(leaf) => {
                    for to in &leaf.options.copy_to {
                        let sources = self.0.entry(to.clone()).or_default();
                        // A field that names the same one twice copies to it once.
                        if sources.last() != Some(&path) {
                            sources.push(path.clone());
                        }
                    }
                }
            }
        }
    }

    /// As [`Mapping::semantic_sources`].
    pub fn sources_of(&self, mapping: &Mapping, path: &str) -> Vec<String> {
        let path = mapping.source_path(path);
        let mut sources = vec![path.as_ref().to_owned()];
        sources.extend(self.0.get(path.as_ref()).into_iter().flatten().cloned());
        sources
    }
}

#[cfg(test)]
mod tests {
    use super::super::semantic_text::DEFAULT_INFERENCE_ID;
    use super::*;
    use crate::passages::{Passage, PassageVector};

    fn mapping(field: Value) -> Result<Mapping, String> {
        Mapping::parse(&json!({"properties": {"o": {"properties": {"s": field}}}}))
            .map_err(|error| error.reason())
    }

    fn none(_: &str) -> Option<String> {
        None
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
        let wider =
            plain.attach_passages(&mut parsed, passages(PassageVector::Dense(vec![1.0; 3])), &none).unwrap();
        let wider = wider.expect("wider");
        assert_eq!((&parsed.field_names[0][..], parsed.passages.len()), ("o.s", 1));
        let shown = &wider.to_json()["properties"]["o"]["properties"]["s"]["model_settings"];
        assert_eq!(shown["dimensions"], 3);
        assert_eq!(wider.semantic_field("o.s").unwrap().dense.as_ref().unwrap().dims, Some(3));
        // What is shown can be read, and more of the same changes nothing.
        assert_eq!(Mapping::parse(&wider.to_json()).unwrap(), wider);
        let mut parsed = ParsedDocument::default();
        assert_eq!(
            wider.attach_passages(&mut parsed, passages(PassageVector::Dense(vec![0.5; 3])), &none),
            Ok(None)
        );
        assert!(
            wider.attach_passages(&mut parsed, passages(PassageVector::Sparse(Vec::new())), &none).is_err()
        );
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
    fn the_first_passages_name_the_model_that_made_them() {
        let plain = mapping(json!({"type": "semantic_text"})).unwrap();
        let made_by = |fingerprint: &str| {
            let mut made = passages(PassageVector::Dense(vec![1.0]));
            made[0].fingerprint = fingerprint.to_owned();
            made
        };
        let attach = |mapping: &Mapping, fingerprint: &str| {
            mapping.attach_passages(&mut ParsedDocument::default(), made_by(fingerprint), &none).unwrap()
        };
        // As an index of before has them: the kind is known, the model is not.
        let unnamed = attach(&plain, "").unwrap();
        assert_eq!(unnamed.semantic_field("o.s").unwrap().fingerprint, None);
        let named = attach(&unnamed, "a").unwrap();
        assert_eq!(named.semantic_field("o.s").unwrap().fingerprint.as_deref(), Some("a"));
        assert_eq!(attach(&plain, "a").unwrap(), named);
        assert_eq!((attach(&named, "a"), attach(&named, "b")), (None, None));
        // It is not one of the parameters, and is kept beside them.
        assert_eq!(named.to_json(), unnamed.to_json());
        let read = |mapping: &Mapping| {
            Mapping::parse(&mapping.to_json()).unwrap().with_slots(&mapping.slots_to_json()).unwrap()
        };
        assert_eq!(read(&named), named);
        let both = named.with_second_slot("o.s", &json!({"inference_id": "new"})).unwrap();
        let mut second = made_by("b");
        second[0].path = "o.s..1".into();
        let both = both.attach_passages(&mut ParsedDocument::default(), second, &none).unwrap().unwrap();
        assert_eq!(read(&both), both);
        let switched = both.with_slots_exchanged("o.s");
        assert_eq!(switched.semantic_field("o.s").unwrap().fingerprint.as_deref(), Some("b"));
        assert_eq!(switched.slot("o.s").unwrap().fingerprint.as_deref(), Some("a"));
        let update = json!({"properties": {"o.s": {"type": "semantic_text"}}});
        assert_eq!(named.merge_update(&update).unwrap(), named);
    }

    #[test]
    fn what_passages_depend_on_shows_in_the_key() {
        let plain = mapping(json!({"type": "semantic_text"})).unwrap();
        let key = |update: Value| plain.merge_update(&json!({"properties": update})).unwrap().semantic_key();
        let same = plain.semantic_key();
        assert_ne!(same, 0);
        assert_eq!(mapping(json!({"type": "text"})).unwrap().semantic_key(), 0);
        assert_eq!(key(json!({"t": {"type": "text"}})), same);
        assert_eq!(key(json!({"o.s": {"type": "semantic_text", "search_inference_id": "x"}})), same);
        for changed in [
            json!({"t": {"type": "text", "copy_to": "o.s"}}),
            json!({"s": {"type": "semantic_text"}}),
            json!({"o.s": {"type": "semantic_text", "inference_id": "x"}}),
            json!({"o.s": {"type": "semantic_text", "chunking_settings": {"strategy": "none"}}}),
        ] {
            assert_ne!(key(changed.clone()), same, "{changed}");
        }
        // What the first document fixes changes nothing for the next.
        let mut parsed = ParsedDocument::default();
        let wider =
            plain.attach_passages(&mut parsed, passages(PassageVector::Dense(vec![1.0])), &none).unwrap();
        assert_eq!(wider.unwrap().semantic_key(), same);
    }

    #[test]
    fn vectors_are_compared_as_their_endpoint_says() {
        let plain = mapping(json!({"type": "semantic_text", "inference_id": "unit"})).unwrap();
        let dot = |id: &str| (id == "unit").then(|| "dot_product".to_owned());
        let mut parsed = ParsedDocument::default();
        let mut attach = |vector: Vec<f32>| {
            plain.attach_passages(&mut parsed, passages(PassageVector::Dense(vector)), &dot)
        };
        let wider = attach(vec![0.6, 0.8]).unwrap().unwrap();
        assert_eq!(wider.semantic_field("o.s").unwrap().similarity(), Some("dot_product"));
        assert_eq!(Mapping::parse(&wider.to_json()).unwrap(), wider);
        assert!(attach(vec![1.0, 1.0]).unwrap_err().contains("can only be used with unit-length vectors"));
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
            (json!({"chunking_settings": 3}), "[chunking_settings] must be a map, got [3]"),
        ] {
            let mut whole = json!({"type": "semantic_text"});
            whole.as_object_mut().unwrap().extend(field.as_object().unwrap().clone());
            let found = mapping(whole).unwrap_err();
            assert!(found.contains(reason), "{found}");
        }
        let inside =
            mapping(json!({"type": "long", "fields": {"x": {"type": "semantic_text"}}})).unwrap_err();
        assert!(
            inside
                .contains("Field [x] of type [semantic_text] can't be used in multifields of a [long] field"),
            "{inside}"
        );
    }

    #[test]
    fn a_multi_field_has_the_texts_of_the_field_around_it() {
        let hybrid = json!({"type": "semantic_text", "inference_id": ".hybrid"});
        let whole = json!({"properties": {
            "title": {"type": "keyword", "copy_to": "o.s"},
            "o": {"properties": {"s": {"type": "text", "fields": {"m": hybrid}}}}
        }});
        let plain = Mapping::parse(&whole).unwrap();
        assert_eq!(plain.semantic_fields(), ["o.s.m"]);
        assert_eq!(plain.semantic_sources("o.s.m"), ["o.s", "title"]);
        let mut of_field = passages(PassageVector::Hybrid { sparse: Vec::new(), dense: vec![1.0; 3] });
        of_field[0].path = "o.s.m".into();
        let mut parsed = ParsedDocument::default();
        let wider = plain.attach_passages(&mut parsed, of_field.clone(), &none).unwrap().expect("wider");
        let field = wider.semantic_field("o.s.m").unwrap();
        assert_eq!(field.model, Some(SemanticModel::Hybrid { dims: 3 }));
        assert_eq!(field.dense.as_ref().unwrap().dims, Some(3));
        assert_eq!(Mapping::parse(&wider.to_json()).unwrap(), wider);
        assert_eq!(wider.attach_passages(&mut parsed, of_field, &none), Ok(None));
        // A later definition without the model's settings keeps them.
        assert_eq!(wider.merge_update(&whole).unwrap(), wider);
        // What such a field holds is checked by the field around it.
        let limits = crate::Limits::default();
        let (document, _) =
            wider.parse_document("1", &json!({"title": "t", "o": {"s": ["a b", 3]}}), &limits).unwrap();
        assert!(document.texts.iter().all(|(path, _)| path == "o.s"));
        // The two kinds of index options are both of use to it.
        for options in [json!({"sparse_vector": {"prune": false}}), json!({"dense_vector": {"type": "hnsw"}})]
        {
            let mut field = hybrid.clone();
            field["index_options"] = options;
            field["model_settings"] = json!({
                "task_type": "hybrid_embedding", "dimensions": 3, "similarity": "cosine", "element_type": "float"
            });
            mapping(json!({"type": "text", "fields": {"m": field}})).unwrap();
        }
    }
}
