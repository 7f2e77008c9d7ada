//! Encoding texts with an inference endpoint.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::api::existing;
use super::endpoint::{Endpoint, RerankSettings, SPARSE_ENDPOINT, TaskType};
use super::problems::status;
use super::{hybrid, rerank, settings};
use crate::service::ModelService;
use crate::{MOST_TEXTS, Purpose};
use sparrow_encoder::Output;
use sparrow_inference::{vector_to_json, weight_to_json};
use sparrow_request::body::{parse_object, token};
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_wire::shape::{Shape, flag, nullable, object, one, open, several, text};

pub(crate) const OPERATIONS: &[Operation<ModelService>] = &[
    Operation::new("infer", Action::Infer, Lane::Infer, infer)
        .about("Encodes texts, or scores them for a question.")
        .holds("InferenceRequest", shape)
        .short()
        .takes(&["timeout"])
        .stops(),
    Operation::new("infer_stream", Action::Infer, Lane::Write, infer_stream)
        .about("Refused: no model here answers bit by bit.")
        .holds("InferenceRequest", shape)
        .takes(&["timeout"]),
    Operation::new("embed_sparse", Action::Infer, Lane::Infer, embed_sparse)
        .about("Sparse vectors of texts, in the form of text-embeddings-inference.")
        .holds("SparseRequest", sparse_shape)
        .takes(&["timeout"])
        .stops(),
];

/// Time that a request waits for its vectors.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Values of the parameter `input_type`.
const INPUT_TYPES: [&str; 6] =
    ["classification", "clustering", "ingest", "internal_ingest", "internal_search", "search"];

/// `POST /_inference[/{task_type}]/{inference_id}`
fn infer(
    service: &ModelService,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = request.part("inference_id");
    let mut asked = read(body)?;
    let timeout = request.params().duration("timeout")?.unwrap_or(TIMEOUT);
    let endpoint = existing(service, id)?;
    match_task(request.part("task_type"), endpoint.task_type)?;
    asked.fits(&endpoint)?;
    if let Some(question) = asked.query.take() {
        let settings = asked.rerank_settings()?;
        let texts: Vec<&str> = asked.input.iter().map(String::as_str).collect();
        return rerank::answer(&service.models, &endpoint, &question, &texts, settings, cancel, timeout);
    }
    let texts: Vec<&str> = asked.input.iter().map(String::as_str).collect();
    let purpose = if asked.for_search { Purpose::Query } else { Purpose::Direct };
    let encode = |id: &str| {
        service.models.encode_within(id, &texts, purpose, Some(cancel.flag().as_ref()), Some(timeout))
    };
    if endpoint.hybrid.is_some() {
        let encoders = service.models.encoders(id);
        let lists = encoders.iter().map(|name| encode(name)).collect::<Result<Vec<_>, _>>()?;
        let of_text = |at| hybrid::vectors_to_json(lists.iter().filter_map(move |list| list.get(at)));
        let both: Vec<Value> = (0..texts.len()).map(of_text).collect();
        let tokens = lists.iter().flatten().map(|encoded| encoded.token_count).sum();
        return Ok(Reply::ok(&json!({endpoint.task_type.name(): both})).with_tokens(tokens));
    }
    let encoded = encode(id)?;
    let results: Vec<Value> = encoded
        .iter()
        .map(|encoded| {
            let vector = vector_to_json(&encoded.output);
            match endpoint.task_type {
                TaskType::SparseEmbedding => {
                    json!({"is_truncated": encoded.truncated_tokens > 0, "embedding": vector})
                }
                TaskType::TextEmbedding | TaskType::HybridEmbedding | TaskType::Rerank => {
                    json!({"embedding": vector})
                }
            }
        })
        .collect();
    let tokens = encoded.iter().map(|encoded| encoded.token_count).sum();
    Ok(Reply::ok(&json!({endpoint.task_type.name(): results})).with_tokens(tokens))
}

fn sparse_shape() -> Shape {
    object([("inputs", several(text())), ("truncate", nullable(flag())), ("model", text())])
        .and([("truncation_direction", one(&["Right", "right"]))])
        .and([("prompt_name", nullable(text()).about("only `null`"))])
        .needs(&["inputs"])
}

/// The body of a request to `/embed_sparse`. There is no model in text-embeddings-inference, whose servers have one each.
struct SparseTexts {
    texts: Vec<String>,
    /// Whether what is too long for the model is left out, instead of being refused.
    truncates: bool,
    model: Option<String>,
}

impl SparseTexts {
    /// # Errors
    /// Illegal argument for members that are not known or cannot be followed.
    fn read(body: &[u8]) -> Result<Self, EngineError> {
        let refuse =
            |name: &str, reason: &str| Err(EngineError::illegal_argument(format!("`{name}`: {reason}")));
        let mut asked = Self { texts: Vec::new(), truncates: false, model: None };
        for (name, value) in parse_object(body)? {
            match (name.as_str(), value) {
                (_, Value::Null) => {}
                ("inputs", Value::String(text)) => asked.texts = vec![text],
                ("inputs", Value::Array(list)) => {
                    for text in list {
                        match text {
                            Value::String(text) => asked.texts.push(text),
                            _ => return refuse(&name, "a text or a list of texts is expected"),
                        }
                    }
                }
                ("truncate", Value::Bool(truncates)) => asked.truncates = truncates,
                ("truncation_direction", Value::String(end)) if end.eq_ignore_ascii_case("right") => {}
                ("truncation_direction", _) => {
                    return refuse(&name, "models here leave out the end of a text");
                }
                ("prompt_name", _) => return refuse(&name, "models here have no prompts"),
                ("model", Value::String(model)) => asked.model = Some(model),
                ("inputs", _) => return refuse(&name, "a text or a list of texts is expected"),
                ("truncate", _) => return refuse(&name, "one of [true, false] is expected"),
                ("model", _) => return refuse(&name, "a text is expected"),
                _ => {
                    let near = sparse_shape().near(&name);
                    return refuse(&name, &format!("there is no such member{near}"));
                }
            }
        }
        if asked.texts.is_empty() || asked.texts.iter().any(String::is_empty) {
            return refuse("inputs", "it is required, and no text in it may be empty");
        }
        if asked.texts.len() > MOST_TEXTS {
            return refuse("inputs", &format!("at most [{MOST_TEXTS}] texts are encoded at once"));
        }
        Ok(asked)
    }
}

/// `POST /embed_sparse`
fn embed_sparse(
    service: &ModelService,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let asked = SparseTexts::read(body)?;
    let timeout = request.params().duration("timeout")?.unwrap_or(TIMEOUT);
    let id = asked.model.as_deref().unwrap_or(SPARSE_ENDPOINT);
    let texts: Vec<&str> = asked.texts.iter().map(String::as_str).collect();
    let (model, encoded) = service.models.encode_with_model(
        id,
        &texts,
        Purpose::Direct,
        Some(cancel.flag().as_ref()),
        Some(timeout),
    )?;
    let mut vectors = Vec::with_capacity(encoded.len());
    for text in &encoded {
        if text.truncated_tokens > 0 && !asked.truncates {
            return Err(status(
                413,
                format!(
                    "`inputs`: a text has [{}] tokens, [{}] more than the model reads: shorten it, or set `truncate`",
                    text.token_count + text.truncated_tokens,
                    text.truncated_tokens
                ),
            ));
        }
        let Output::Sparse(tokens) = &text.output else {
            return Err(EngineError::illegal_argument(format!(
                "`model`: [{id}] makes dense vectors, use POST /v1/embeddings"
            )));
        };
        let weights = tokens.pairs().iter();
        let mut vector: Vec<_> =
            weights.filter_map(|(token, weight)| Some((model.token_id(token)?, *weight))).collect();
        vector.sort_unstable_by_key(|(index, _)| *index);
        let shown = vector
            .into_iter()
            .map(|(index, weight)| json!({"index": index, "value": weight_to_json(weight)}));
        vectors.push(Value::Array(shown.collect()));
    }
    let tokens = encoded.iter().map(|encoded| encoded.token_count).sum();
    Ok(Reply::ok(&Value::Array(vectors)).with_tokens(tokens))
}

/// `POST /_inference[/{task_type}]/{inference_id}/_stream`
fn infer_stream(
    service: &ModelService,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let endpoint = existing(service, request.part("inference_id"))?;
    match_task(request.part("task_type"), endpoint.task_type)?;
    Err(status(
        405,
        format!(
            "Streaming is not allowed for service [{}] and task [{}]",
            endpoint.service,
            endpoint.task_type.name()
        ),
    ))
}

/// What a request holds.
fn shape() -> Shape {
    object([("input", several(text())), ("query", text().about("for `rerank`: the question"))])
        .and([("input_type", one(&INPUT_TYPES)), ("task_settings", open())])
        .and(RerankSettings::members())
        .needs(&["input"])
}

/// The body of a request.
struct InferenceRequest {
    input: Vec<String>,
    query: Option<String>,
    for_search: bool,
    task_settings: Map<String, Value>,
    /// `return_documents` and `top_n` beside the input, where newer clients write them.
    beside: Map<String, Value>,
}

impl InferenceRequest {
    fn fits(&self, endpoint: &Endpoint) -> Result<(), EngineError> {
        let task = endpoint.task_type;
        if task == TaskType::Rerank {
            let problem = match &self.query {
                None => "null",
                Some(query) if query.is_empty() => "empty",
                Some(_) => "",
            };
            if !problem.is_empty() {
                let reason = format!("Field [query] cannot be {problem} for task type [{}]", task.name());
                return Err(EngineError::invalid(reason));
            }
        } else {
            let foreign = self.query.is_some().then_some("query");
            if let Some(name) = foreign.or_else(|| self.beside.keys().next().map(String::as_str)) {
                let reason = format!("Field [{name}] cannot be specified for task type [{}]", task.name());
                return Err(EngineError::invalid(reason));
            }
            if let Some(unknown) = self.task_settings.keys().next() {
                return refuse(format!("[task_settings] unknown field [{unknown}]"));
            }
        }
        if self.input.len() > MOST_TEXTS {
            return Err(EngineError::illegal_argument(format!(
                "[input] holds [{}] texts, at most [{MOST_TEXTS}] are encoded at once",
                self.input.len()
            )));
        }
        Ok(())
    }

    /// The settings of a `rerank` request: members next to `input` take precedence over those in `task_settings`.
    fn rerank_settings(&mut self) -> Result<RerankSettings, EngineError> {
        let in_settings = RerankSettings::take(&mut self.task_settings)?;
        if let Some(other) = self.task_settings.keys().next() {
            return refuse(format!("[task_settings] {}", object(RerankSettings::members()).unknown(other)));
        }
        Ok(RerankSettings::take(&mut self.beside)?.or(in_settings))
    }
}

fn refuse<T>(reason: String) -> Result<T, EngineError> {
    const PARSER: &str = "cluster:internal/xpack/inference";
    Err(EngineError::api(400, Exception::new("x_content_parse_exception", format!("[{PARSER}] {reason}"))))
}

fn read(body: &[u8]) -> Result<InferenceRequest, EngineError> {
    let mut asked = InferenceRequest {
        input: Vec::new(),
        query: None,
        for_search: false,
        task_settings: Map::new(),
        beside: Map::new(),
    };
    let body: Map<String, Value> = parse_object(body)?;
    let mut has_input = false;
    for (name, value) in body {
        match (name.as_str(), value) {
            (_, Value::Null) if name != "input" => {}
            ("input", Value::Null) => {}
            ("input", Value::String(text)) => {
                has_input = true;
                asked.input.push(text);
            }
            ("input", Value::Array(texts)) => {
                has_input = true;
                for text in texts {
                    match text {
                        Value::String(text) => asked.input.push(text),
                        other => {
                            return refuse(format!(
                                "failed to parse field [input]: [{other}] is not a string"
                            ));
                        }
                    }
                }
            }
            ("query", Value::String(query)) => asked.query = Some(query),
            ("input_type", Value::String(kind)) => {
                let lower = kind.to_ascii_lowercase();
                if !INPUT_TYPES.contains(&lower.as_str()) {
                    return Err(EngineError::invalid(format!(
                        "Invalid value [{kind}] received. [input_type] must be one of [{}]",
                        INPUT_TYPES.join(", ")
                    )));
                }
                asked.for_search = lower.ends_with("search");
            }
            ("task_settings", Value::Object(settings)) => asked.task_settings = settings,
            ("return_documents" | "top_n", value) => {
                asked.beside.insert(name, value);
            }
            ("timeout", Value::String(_)) => {
                return refuse("[timeout] is a parameter of the request, not a field".into());
            }
            ("input" | "query" | "input_type" | "task_settings", other) => {
                return refuse(format!("{name} doesn't support values of type: {}", token(&other)));
            }
            _ => return refuse(shape().unknown(&name)),
        }
    }
    if !has_input {
        return Err(EngineError::invalid("Field [input] cannot be null"));
    }
    if asked.input.is_empty() {
        return Err(EngineError::invalid("Field [input] cannot be an empty array"));
    }
    Ok(asked)
}

fn match_task(requested: &str, actual: TaskType) -> Result<(), EngineError> {
    if settings::allows(requested, actual)? {
        return Ok(());
    }
    Err(status(
        400,
        format!(
            "Incompatible task_type, the requested type [{requested}] does not match the model type [{}]",
            actual.name()
        ),
    ))
}
