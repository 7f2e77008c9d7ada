//! Parses and checks the request for a change of a model.

use serde_json::{Map, Value, json};
use sparrow_catalog::model_change::{ChangeState, ModelChange};
use sparrow_mapping::{FieldType, HYBRID_TASK, Mapping, SemanticModel};
use sparrow_models::{Purpose, TextEncoder};
use sparrow_request::body::parse_object;
use sparrow_request::error::EngineError;
use sparrow_request::request::CancelFlag;
use sparrow_search::SearchService;
use sparrow_wire::shape::{Shape, alike, int, list, named, object, one, open, text as text_shape};

/// Parameters of a `semantic_text` field that may be different for the new model.
const PARAMETERS: [&str; 4] = ["inference_id", "search_inference_id", "chunking_settings", "index_options"];
/// Most queries of a comparison.
const MOST_QUERIES: usize = 1000;
/// Longest query of a comparison, in bytes.
pub(super) const LONGEST_QUERY: usize = 10_000;
/// Most documents that are compared for each query.
const MOST_COMPARED: u64 = 1000;
/// Default numbers of queries that are sampled from documents, and of hits that are compared for each.
const DEFAULT_QUERIES: usize = 20;
const DEFAULT_COMPARED: u64 = 10;
/// The text that is encoded before a change begins, to see whether the new model works.
const PROBE: &str = "a";

/// What a request holds.
pub(super) fn shape() -> Shape {
    object(alike("field search_inference_id", text_shape()))
        .and([("inference_id", text_shape().about("the endpoint, deployment or model to change to"))])
        .and([("model_id", text_shape().about("another name of `inference_id`"))])
        .and([("chunking_settings", named("ChunkingSettings")), ("index_options", open())])
        .and([("switch", one(&["auto", "manual"]).preset("auto")), ("compare", compare_shape())])
        .needs(&["field"])
}

fn compare_shape() -> Shape {
    object([("queries", list(text_shape())), ("sample", int().preset(DEFAULT_QUERIES))])
        .and([("size", int().preset(DEFAULT_COMPARED))])
}

/// A request for a change.
pub(super) struct ChangeRequest {
    pub field: String,
    /// Whether searches switch to the new vectors automatically.
    pub automatic: bool,
    /// The field and its new parameters, by which equal requests are recognised.
    pub saved: Value,
    /// How results are compared: members `queries` or `sample`, and `size`.
    pub compare: Value,
    parameters: Map<String, Value>,
    /// Whether the request has parameters that only make sense for a field that a pipeline fills.
    names_source: bool,
}

impl ChangeRequest {
    /// Whether it requests exactly the change that is under way.
    pub fn is(&self, change: &ModelChange) -> bool {
        (&change.wanted, &change.compare, change.automatic) == (&self.saved, &self.compare, self.automatic)
    }

    pub fn parse(body: &[u8]) -> Result<Self, EngineError> {
        let mut given = parse_object(body)?;
        let field = text(&mut given, "field")?.ok_or_else(|| {
            EngineError::illegal_argument("[field] is missing: the field whose model is changed")
        })?;
        let model = text(&mut given, "model_id")?;
        let endpoint = text(&mut given, "inference_id")?;
        let inference_id = match (endpoint, model) {
            (Some(id), None) | (None, Some(id)) => id,
            (None, None) => {
                return Err(EngineError::illegal_argument(
                    "[inference_id] is missing: the inference endpoint, deployment or model to change to",
                ));
            }
            (Some(_), Some(_)) => {
                return Err(EngineError::illegal_argument(
                    "[inference_id] and [model_id] mean the same, give one",
                ));
            }
        };
        let automatic = match text(&mut given, "switch")?.as_deref() {
            None | Some("auto") => true,
            Some("manual") => false,
            Some(other) => {
                return Err(EngineError::illegal_argument(format!(
                    "[switch] must be [auto] or [manual], got [{other}]"
                )));
            }
        };
        let compare = compare(given.remove("compare").unwrap_or_default())?;
        let mut parameters = Map::new();
        for name in &PARAMETERS[1..] {
            if let Some(value) = given.remove(*name) {
                parameters.insert((*name).to_owned(), value);
            }
        }
        parameters.insert("inference_id".to_owned(), inference_id.as_str().into());
        let names_source = given.remove("source_field").is_some();
        if let Some(unknown) = given.keys().next() {
            return Err(EngineError::illegal_argument(format!(
                "unknown member [{unknown}] of a change of a model{}",
                shape().near(unknown)
            )));
        }
        let mut saved = Value::Object(parameters.clone());
        saved["field"] = field.as_str().into();
        Ok(Self { field, automatic, saved, compare, parameters, names_source })
    }

    /// The change that a request begins, in documents per second.
    pub fn begun(self, pace: f64) -> ModelChange {
        ModelChange {
            field: self.field,
            state: ChangeState::Filling,
            automatic: self.automatic,
            wanted: self.saved,
            compare: self.compare,
            compared: None,
            requests_per_second: Some(pace).filter(|pace| pace.is_finite()),
            failure: None,
        }
    }

    /// The definition of the field's second set of vectors, after checking that the new model works.
    pub fn definition(
        &self,
        service: &SearchService,
        index: &str,
        mapping: &Mapping,
        cancel: &CancelFlag,
    ) -> Result<Value, EngineError> {
        let path = &self.field;
        let refuse = |reason: String| Err(EngineError::illegal_argument(reason));
        let current = match mapping.field(path) {
            Some(FieldType::SemanticText(field)) => field,
            Some(other @ (FieldType::SparseVector | FieldType::RankFeatures | FieldType::DenseVector(_))) => {
                let about = if self.names_source { "although [source_field] is given, " } else { "" };
                return refuse(format!(
                    "field [{path}] is of type [{}]: {about}the model of a field that a pipeline fills cannot be \
                     changed in place, as its vectors are part of the documents; add a field for the new model, fill it \
                     with [_update_by_query?pipeline=...], and search that one, or use a [semantic_text] field",
                    other.name()
                ));
            }
            Some(other) => {
                return refuse(format!(
                    "field [{path}] is of type [{}], which holds no vectors of a model: only a [semantic_text] field has a \
                     model that can be changed, such as a sub-field of it",
                    other.name()
                ));
            }
            None => return refuse(format!("index [{index}] has no field [{path}]")),
        };
        let source = mapping.source_filter();
        if !source.enabled || !source.filter.is_empty() {
            return refuse(format!(
                "index [{index}] does not store documents whole ([_source]): they cannot be encoded again"
            ));
        }
        // An endpoint whose model was exchanged since the field was filled makes other vectors under the same id.
        let makes_others = current
            .fingerprint
            .as_ref()
            .is_some_and(|stored| service.models.compares_with(&current.inference_id, stored) == Some(false));
        let is_same = PARAMETERS.iter().all(|name| {
            let wanted = self.parameters.get(*name).filter(|value| !value.is_null());
            wanted == mapping.parameter(path, name)
                || (wanted.is_none() && matches!(*name, "chunking_settings" | "index_options"))
        });
        if is_same && !makes_others {
            return refuse(format!("field [{path}] has the model [{}] already", current.inference_id));
        }
        let model = self.probe(service, cancel)?;
        let similarity =
            service.models.inference_target(self.inference_id()).and_then(|target| target.similarity);
        let mut definition = self.parameters.clone();
        let is_of_a_kind = current.model.is_none_or(|current| current.task() == model.task());
        for (name, inherited) in [("chunking_settings", true), ("index_options", is_of_a_kind)] {
            if let Some(value) = mapping.parameter(path, name).filter(|_| inherited) {
                definition.entry(name).or_insert_with(|| value.clone());
            }
        }
        definition.retain(|_, value| !value.is_null());
        definition.insert("model_settings".to_owned(), model.settings(similarity));
        Ok(Value::Object(definition))
    }

    fn inference_id(&self) -> &str {
        self.parameters.get("inference_id").and_then(Value::as_str).unwrap_or_default()
    }

    /// Checks the new model by encoding a word with it, and returns the kind of its vectors. A model that does not work would prevent
    /// documents from being written.
    fn probe(&self, service: &SearchService, cancel: &CancelFlag) -> Result<SemanticModel, EngineError> {
        let id = self.inference_id();
        if service.models.inference_target(id).is_none() {
            return Err(service.models.no_endpoint(id));
        }
        let search = self.parameters.get("search_inference_id").and_then(Value::as_str);
        let mut kinds = Vec::new();
        for endpoint in std::iter::once(id).chain(search) {
            let mut outputs = Vec::new();
            for model in service.models.encoders(endpoint) {
                let encoded =
                    service.models.encode(&model, &[PROBE], Purpose::Direct, Some(cancel.flag().as_ref()))?;
                outputs.extend(encoded.into_iter().map(|encoded| encoded.output));
            }
            let vector = sparrow_catalog::semantic::embed::vector(&outputs).ok_or_else(|| {
                EngineError::illegal_argument(format!(
                    "the models of [{endpoint}] make no vectors that go together"
                ))
            })?;
            kinds.push(SemanticModel::of(&vector));
        }
        match kinds[..] {
            [documents, queries] if documents != queries => {
                let kind = |model: SemanticModel| match model {
                    SemanticModel::Sparse => "sparse vectors".to_owned(),
                    SemanticModel::Dense { dims } => format!("dense vectors of {dims} dimensions"),
                    SemanticModel::Hybrid { dims } => format!("{HYBRID_TASK} vectors of {dims} dimensions"),
                };
                Err(EngineError::illegal_argument(format!(
                    "[inference_id] makes {}, [search_inference_id] {}: they cannot be compared",
                    kind(documents),
                    kind(queries)
                )))
            }
            [documents, ..] => {
                let stored = service.models.model_fingerprint(id);
                let differs = |search: &str| {
                    stored.as_ref().and_then(|stored| service.models.compares_with(search, stored))
                        == Some(false)
                };
                match search.filter(|search| differs(search)) {
                    Some(search) => Err(EngineError::illegal_argument(format!(
                        "[inference_id] [{id}] and [search_inference_id] [{search}] have different models: they cannot be compared"
                    ))),
                    None => Ok(documents),
                }
            }
            [] => Err(EngineError::internal("no model was tried")),
        }
    }
}

fn text(given: &mut Map<String, Value>, name: &str) -> Result<Option<String>, EngineError> {
    match given.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
        Some(other) => Err(EngineError::illegal_argument(format!(
            "[{name}] must be a string that is not empty, got [{other}]"
        ))),
    }
}

/// Parses how results are compared.
fn compare(given: Value) -> Result<Value, EngineError> {
    let refuse = |reason: String| Err(EngineError::illegal_argument(reason));
    let mut given = match given {
        Value::Null => Map::new(),
        Value::Object(members) => members,
        other => return refuse(format!("[compare] must be an object, got [{other}]")),
    };
    let size = match given.remove("size") {
        None => DEFAULT_COMPARED,
        Some(size) => match size.as_u64().filter(|size| (1..=MOST_COMPARED).contains(size)) {
            Some(size) => size,
            None => {
                return refuse(format!("[compare.size] must be between 1 and {MOST_COMPARED}, got [{size}]"));
            }
        },
    };
    let sample = match given.remove("sample") {
        None => None,
        Some(sample) => match sample.as_u64().filter(|sample| *sample <= MOST_QUERIES as u64) {
            Some(sample) => Some(sample),
            None => {
                return refuse(format!(
                    "[compare.sample] must be between 0 and {MOST_QUERIES}, got [{sample}]"
                ));
            }
        },
    };
    let queries = match given.remove("queries") {
        None => None,
        Some(Value::Array(queries)) if queries.len() <= MOST_QUERIES => {
            let is_query = |query: &Value| {
                query.as_str().is_some_and(|text| !text.trim().is_empty() && text.len() <= LONGEST_QUERY)
            };
            if !queries.iter().all(is_query) {
                return refuse(format!(
                    "[compare.queries] must be texts of at most {LONGEST_QUERY} bytes that are not empty"
                ));
            }
            Some(queries)
        }
        Some(_) => {
            return refuse(format!("[compare.queries] must be a list of at most {MOST_QUERIES} texts"));
        }
    };
    if let Some(unknown) = given.keys().next() {
        return refuse(format!("unknown member [{unknown}] of [compare]{}", compare_shape().near(unknown)));
    }
    match (queries, sample) {
        (Some(_), Some(_)) => refuse("[compare] has [queries] or [sample], not both".to_owned()),
        (Some(queries), None) => Ok(json!({"queries": queries, "size": size})),
        (None, sample) => Ok(json!({"sample": sample.unwrap_or(DEFAULT_QUERIES as u64), "size": size})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read_and_mistakes_are_named() {
        let wanted =
            ChangeRequest::parse(br#"{"field": "body", "inference_id": "new", "switch": "manual"}"#).unwrap();
        assert_eq!((wanted.field.as_str(), wanted.automatic), ("body", false));
        assert_eq!(wanted.saved, json!({"field": "body", "inference_id": "new"}));
        assert_eq!(wanted.compare, json!({"sample": 20, "size": 10}));
        for (body, reason) in [
            ("{}", "[field] is missing"),
            (r#"{"field": "a"}"#, "[inference_id] is missing"),
            (r#"{"field": 1, "inference_id": "b"}"#, "[field] must be a string"),
            (r#"{"field": "a", "inference_id": "b", "model_id": "c"}"#, "mean the same"),
            (r#"{"field": "a", "inference_id": "b", "switch": "now"}"#, "[switch] must be"),
            (r#"{"field": "a", "inference_id": "b", "swich": "auto"}"#, "unknown member [swich]"),
            (r#"{"field": "a", "inference_id": "b", "compare": 3}"#, "[compare] must be an object"),
            (r#"{"field": "a", "inference_id": "b", "compare": {"size": 0}}"#, "[compare.size]"),
            (r#"{"field": "a", "inference_id": "b", "compare": {"sample": 1001}}"#, "[compare.sample]"),
            (r#"{"field": "a", "inference_id": "b", "compare": {"queries": [" "]}}"#, "[compare.queries]"),
            (
                r#"{"field": "a", "inference_id": "b", "compare": {"queries": ["x"], "sample": 1}}"#,
                "not both",
            ),
            (r#"{"field": "a", "inference_id": "b", "compare": {"k": 1}}"#, "unknown member [k]"),
        ] {
            let error = ChangeRequest::parse(body.as_bytes()).err().expect(body).reason();
            assert!(error.contains(reason), "{body}: {error}");
        }
    }
}
