//! The configuration of a model that `PUT _ml/trained_models` sets: parsing and checking it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sparrow_encoder::{MOST_PREFIX, ModelKind};

use sparrow_request::error::{EngineError, Exception};
use sparrow_wire::shape::{
    Shape, alike, flag, int, list, object as object_shape, one, one_member, open, text as text_shape,
};

/// Highest number of tokens to which a text may be truncated.
const MOST_TOKENS: u64 = 512;
/// Tasks of Elasticsearch that no model here does.
const FOREIGN_TASKS: [&str; 9] = [
    "classification",
    "fill_mask",
    "learning_to_rank",
    "ner",
    "pass_through",
    "question_answering",
    "regression",
    "text_classification",
    "zero_shot_classification",
];
/// Tasks that models here do.
pub(super) const TASKS: [&str; 3] = ["text_expansion", "text_embedding", "text_similarity"];
/// Tokenizers of Elasticsearch that a vocabulary alone does not give here.
const FOREIGN_TOKENIZERS: [&str; 6] =
    ["bert_ja", "deberta_v2", "mpnet", "roberta", "xlm_roberta", "wordpiece"];

/// What the body of a `PUT` holds.
pub(super) fn shape() -> Shape {
    object_shape(alike("model_id description platform_architecture", text_shape()))
        .and([("tags", list(text_shape())), ("metadata", open()), ("input", input_shape())])
        .and([("inference_config", inference_shape()), ("model_type", one(&["pytorch"]))])
        .and([
            ("model_size_bytes", int()),
            ("prefix_strings", prefixes_shape()),
            ("location", location_shape()),
        ])
}

fn inference_shape() -> Shape {
    one_member(TASKS.map(|task| (task, task_shape(task))))
}

fn task_shape(task: &str) -> Shape {
    let tokenization = one_member([("bert", bert_shape())]);
    let all = object_shape([("tokenization", tokenization), ("results_field", text_shape())]);
    if task == "text_embedding" { all.and([("embedding_size", int())]) } else { all }
}

fn bert_shape() -> Shape {
    object_shape(alike("do_lower_case with_special_tokens", flag().preset(true)))
        .and([("max_sequence_length", int().preset(MOST_TOKENS)), ("span", int().preset(-1))])
        .and([("truncate", one(&["first"]).preset("first"))])
}

fn location_shape() -> Shape {
    object_shape([("directory", text_shape().about("name of a model directory"))]).needs(&["directory"])
}

fn input_shape() -> Shape {
    object_shape([("field_names", list(text_shape()).about("the one field that the text is in"))])
        .needs(&["field_names"])
}

fn prefixes_shape() -> Shape {
    object_shape(alike("ingest search", text_shape()))
}

/// Prefixes that are put before documents (`ingest`) and before queries (`search`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefixes {
    #[serde(default, rename = "ingest", skip_serializing_if = "Option::is_none")]
    pub ingest: Option<String>,
    #[serde(default, rename = "search", skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
}

/// The configuration of a model, as a request set it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ModelConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// Name of the field that `_infer` reads.
    pub input: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform_architecture: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_strings: Option<Prefixes>,
    /// The task with its options, defaults filled in; `None` for a model directory, which is described by its own
    /// files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference_config: Option<Map<String, Value>>,
}

/// The parsed body of a `PUT` request: the configuration, and what is not part of it.
#[derive(Debug)]
pub(super) struct ParsedConfig {
    pub config: ModelConfig,
    /// A model directory under the configured folder.
    pub directory: Option<String>,
}

impl ModelConfig {
    /// The configuration of a model that no request has configured.
    pub fn plain() -> Self {
        Self { input: "text_field".into(), ..Self::default() }
    }

    /// Options of the BERT tokenizer: whether text is lowercased, whether special tokens are added, and the most tokens
    /// of a text.
    pub fn tokenization(&self) -> (bool, bool, u64) {
        let bert = self
            .inference_config
            .as_ref()
            .and_then(|config| config.values().next())
            .map(|options| options["tokenization"]["bert"].clone())
            .unwrap_or_default();
        (
            bert["do_lower_case"].as_bool().unwrap_or(true),
            bert["with_special_tokens"].as_bool().unwrap_or(true),
            bert["max_sequence_length"].as_u64().unwrap_or(MOST_TOKENS),
        )
    }

    /// The task of the configuration, and the length of its vectors if they are dense; `None` if it has no task.
    pub fn task(&self) -> Option<(&str, Option<u64>)> {
        let (name, options) = self.inference_config.as_ref()?.iter().next()?;
        Some((name, options["embedding_size"].as_u64()))
    }
}

/// The task of a kind of model, as `inference_config` names it.
pub(super) fn task_of(kind: ModelKind) -> &'static str {
    match kind {
        ModelKind::SparseMlm | ModelKind::SparseDocOnly => "text_expansion",
        ModelKind::Dense { .. } => "text_embedding",
        ModelKind::CrossEncoder => "text_similarity",
    }
}

/// Whether a body is the short form that installs a model which comes with the server.
pub(super) fn is_built_in_form(body: &Map<String, Value>) -> bool {
    body.keys().all(|name| name == "input")
}

/// Reads the body of a `PUT`.
///
/// # Errors
/// Status 400 that names what is wrong, missing, or not supported.
pub(super) fn parse(model_id: &str, body: &Map<String, Value>) -> Result<ParsedConfig, EngineError> {
    let refuse = |reason: String| Err(EngineError::illegal_argument(reason));
    for name in ["definition", "compressed_definition"] {
        if body.contains_key(name) {
            return refuse(format!(
                "[{name}] holds a model of trees, which does not run here; upload the ONNX graph of a text model in \
                 parts with PUT _ml/trained_models/{model_id}/definition/{{part}}"
            ));
        }
    }
    if let Some(unknown) = shape().stranger(body) {
        return Err(parser_error(format!("[trained_model_config] {unknown}")));
    }
    if let Some(id) = body.get("model_id").filter(|id| id.as_str() != Some(model_id)) {
        return refuse(format!(
            "Inconsistent model_id; '{}' specified in the body differs from '{model_id}' specified as a URL argument",
            id.as_str().map_or_else(|| id.to_string(), str::to_owned)
        ));
    }
    let directory = location(body)?;
    match text(body, "model_type")?.as_deref() {
        Some("pytorch") => {}
        None if directory.is_some() => {}
        other => {
            return Err(EngineError::invalid(format!(
                "[model_type] must be [pytorch], models of type [{}] do not run here",
                other.unwrap_or("tree_ensemble")
            )));
        }
    }
    let mut config = ModelConfig { description: text(body, "description")?, ..ModelConfig::plain() };
    config.tags = tags(body)?;
    config.metadata = object(body, "metadata")?.unwrap_or_default();
    config.input = input(body)?;
    config.platform_architecture = text(body, "platform_architecture")?;
    config.prefix_strings = prefixes(body)?;
    if let Some(size) = body.get("model_size_bytes")
        && size.as_u64().is_none()
    {
        return Err(parser_error("[trained_model_config] failed to parse field [model_size_bytes]".into()));
    }
    config.inference_config = match object(body, "inference_config")? {
        Some(given) if directory.is_none() && given.contains_key("text_similarity") => {
            return refuse(
                "inference configuration of type [text_similarity] is of model directories, named by [location]: a graph that is \
                 uploaded is not computed as a cross-encoder"
                    .into(),
            );
        }
        Some(given) => Some(inference_config(&given)?),
        None if directory.is_some() => None,
        None => {
            return Err(EngineError::invalid("[inference_config] must not be null"));
        }
    };
    Ok(ParsedConfig { config, directory })
}

/// Parses `inference_config`, such as `{"text_expansion": {…}}`, and fills in the defaults.
fn inference_config(given: &Map<String, Value>) -> Result<Map<String, Value>, EngineError> {
    let refuse = |reason: String| Err(EngineError::illegal_argument(reason));
    let mut entries = given.iter();
    let (Some((task, options)), None) = (entries.next(), entries.next()) else {
        return refuse(
            "inference_config must be an object with one inference type mapped to an object.".into(),
        );
    };
    if FOREIGN_TASKS.contains(&task.as_str()) {
        return refuse(format!(
            "inference configuration of type [{task}] is not supported: models here make vectors, [text_expansion] or \
             [text_embedding], or scores, [text_similarity]"
        ));
    }
    if !TASKS.contains(&task.as_str()) {
        let reason = inference_shape().unknown(task);
        return Err(EngineError::api(400, Exception::new("named_object_not_found_exception", reason)));
    }
    let Some(options) = options.as_object() else {
        return Err(parser_error(format!("[{task}] must be an object")));
    };
    let mut read = Map::new();
    let mut bert = json!({
        "do_lower_case": true,
        "with_special_tokens": true,
        "max_sequence_length": MOST_TOKENS,
        "truncate": "first",
        "span": -1,
    });
    for (name, value) in options {
        match (name.as_str(), value) {
            ("tokenization", Value::Object(kinds)) => {
                let mut kinds = kinds.iter();
                match (kinds.next(), kinds.next()) {
                    (Some((kind, Value::Object(given))), None) if kind == "bert" => {
                        for (option, value) in given {
                            tokenization(option, value)?;
                            bert[option.as_str()] = value.clone();
                        }
                    }
                    (Some((kind, _)), None) if FOREIGN_TOKENIZERS.contains(&kind.as_str()) => {
                        return refuse(format!(
                            "tokenization [{kind}] is not supported for uploaded models, only [bert]; other tokenizers \
                             come with a model directory, in its tokenizer.json"
                        ));
                    }
                    (Some((kind, _)), None) => {
                        return Err(parser_error(format!("[{task}] unknown field [tokenization.{kind}]")));
                    }
                    _ => return Err(parser_error(format!("[{task}] failed to parse field [tokenization]"))),
                }
            }
            ("results_field", Value::String(field)) if !field.is_empty() => {
                read.insert("results_field".into(), value.clone());
            }
            ("embedding_size", _)
                if task == "text_embedding" && value.as_u64().is_some_and(|size| size > 0) =>
            {
                read.insert("embedding_size".into(), value.clone());
            }
            ("embedding_size", _) if task == "text_embedding" => {
                return refuse(format!("[embedding_size] must be a positive integer; got [{value}]"));
            }
            ("results_field" | "tokenization", _) => {
                return Err(parser_error(format!("[{task}] failed to parse field [{name}]")));
            }
            _ => return Err(parser_error(format!("[{task}] {}", task_shape(task).unknown(name)))),
        }
    }
    read.insert("tokenization".into(), json!({"bert": bert}));
    Ok(std::iter::once((task.clone(), Value::Object(read))).collect())
}

fn tokenization(option: &str, value: &Value) -> Result<(), EngineError> {
    let refuse = |reason: String| Err(EngineError::illegal_argument(reason));
    match option {
        "do_lower_case" | "with_special_tokens" => match value {
            Value::Bool(_) => Ok(()),
            _ => Err(parser_error(format!("[bert_tokenization] failed to parse field [{option}]"))),
        },
        "max_sequence_length" => match value.as_u64() {
            Some(3..=MOST_TOKENS) => Ok(()),
            Some(length) if length > MOST_TOKENS => {
                refuse(format!("[max_sequence_length] must be at most [{MOST_TOKENS}] but was [{length}]"))
            }
            _ => refuse(format!("[max_sequence_length] must be greater than 2 but was [{value}]")),
        },
        "truncate" if value == "first" => Ok(()),
        "truncate" => refuse(format!("[truncate] must be [first] but was [{}]", plain(value))),
        "span" if value.as_i64() == Some(-1) => Ok(()),
        "span" => refuse(format!("[span] must be [-1] but was [{}]", plain(value))),
        _ => Err(parser_error(format!("[bert_tokenization] {}", bert_shape().unknown(option)))),
    }
}

/// Parses `{"directory": "name"}`, a location that only Sparrow has: the name of a model directory.
fn location(body: &Map<String, Value>) -> Result<Option<String>, EngineError> {
    let Some(location) = object(body, "location")? else { return Ok(None) };
    if let Some(unknown) = location_shape().stranger(&location) {
        return Err(parser_error(format!(
            "[trained_model_location] {unknown}: a location is {{\"directory\": name}}"
        )));
    }
    match location.get("directory") {
        Some(Value::String(name)) => Ok(Some(name.clone())),
        _ => Err(parser_error("[trained_model_location] Required [directory], a name".into())),
    }
}

fn tags(body: &Map<String, Value>) -> Result<Vec<String>, EngineError> {
    let wrong = || parser_error("[trained_model_config] failed to parse field [tags]".into());
    match body.get("tags") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(tags)) => {
            let tags: Vec<String> = tags
                .iter()
                .map(|tag| tag.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect::<Result<_, _>>()?;
            let bad: Vec<&str> =
                tags.iter().map(String::as_str).filter(|tag| !super::id::is_valid_id(tag)).collect();
            if bad.is_empty() {
                return Ok(tags);
            }
            Err(EngineError::invalid(format!(
                "Invalid tags {bad:?}; tags must only can contain lowercase alphanumeric (a-z and 0-9), hyphens or \
                 underscores; must start and end with alphanumeric"
            )))
        }
        Some(_) => Err(wrong()),
    }
}

/// Checks the one member of the short form.
///
/// # Errors
/// Status 400 for an input that is not one field.
pub(super) fn parse_input(body: &Map<String, Value>) -> Result<(), EngineError> {
    input(body).map(|_| ())
}

fn input(body: &Map<String, Value>) -> Result<String, EngineError> {
    let Some(input) = object(body, "input")? else { return Ok("text_field".into()) };
    if let Some(unknown) = input_shape().stranger(&input) {
        return Err(parser_error(format!("[trained_model_config_input] {unknown}")));
    }
    match input.get("field_names").and_then(Value::as_array).map(Vec::as_slice) {
        Some([Value::String(name)]) if !name.is_empty() => Ok(name.clone()),
        _ => Err(EngineError::invalid("[input.field_names] must name the one field that the text is in")),
    }
}

fn prefixes(body: &Map<String, Value>) -> Result<Option<Prefixes>, EngineError> {
    let Some(given) = object(body, "prefix_strings")? else { return Ok(None) };
    if let Some(unknown) = prefixes_shape().stranger(&given) {
        return Err(parser_error(format!("[trained_model_config_prefix_strings] {unknown}")));
    }
    let prefixes = Prefixes { ingest: text(&given, "ingest")?, search: text(&given, "search")? };
    if [&prefixes.ingest, &prefixes.search].into_iter().flatten().any(|prefix| prefix.len() > MOST_PREFIX) {
        let reason = format!("[prefix_strings] may have at most [{MOST_PREFIX}] bytes each");
        return Err(EngineError::illegal_argument(reason));
    }
    Ok((prefixes != Prefixes::default()).then_some(prefixes))
}

fn text(body: &Map<String, Value>, name: &str) -> Result<Option<String>, EngineError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(parser_error(format!("[trained_model_config] failed to parse field [{name}]"))),
    }
}

fn object(body: &Map<String, Value>, name: &str) -> Result<Option<Map<String, Value>>, EngineError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(members)) => Ok(Some(members.clone())),
        Some(other) => Err(parser_error(format!(
            "[trained_model_config] {name} doesn't support values of type: {}",
            sparrow_request::body::token(other)
        ))),
    }
}

/// Status 400 in the form of a parsing error of Elasticsearch.
pub(super) fn parser_error(reason: String) -> EngineError {
    EngineError::api(400, Exception::new("x_content_parse_exception", reason))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
