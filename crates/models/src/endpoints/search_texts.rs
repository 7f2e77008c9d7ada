//! The texts of a search that a cluster carries out: the tokens or vectors that it searches with instead.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use sparrow_encoder::Output;
use sparrow_inference::{ModelError, TextEncoder, is_blank, vector_to_json};
use sparrow_query::VectorKind;
use sparrow_request::body::parse_json;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;

use crate::MOST_TEXTS;
use crate::service::ModelService;

pub(crate) const OPERATIONS: &[Operation<ModelService>] =
    &[Operation::new("encode_texts", Action::Infer, Lane::Infer, encode_texts)
        .about("What models make of the texts of a search in indices that are kept elsewhere.")
        .json()
        .stops()
        .unlisted()];

/// What a search needs of a text.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Wanted {
    Tokens,
    Vector,
}

/// Texts that the same model reads.
#[derive(Deserialize)]
struct Texts {
    /// Id of a model or an inference endpoint.
    model: String,
    wants: Wanted,
    texts: Vec<String>,
}

impl Texts {
    /// What the model made of a text, as JSON, and whether the text matches nothing, whatever that is.
    fn shown(&self, text: &str, made: &Output) -> Result<Value, ModelError> {
        let wrong = |made, wanted| ModelError::WrongKind { id: self.model.clone(), made, wanted };
        match (self.wants, made) {
            (Wanted::Tokens, Output::Sparse(_)) | (Wanted::Vector, Output::Dense(_)) => {
                Ok(json!({ "made": vector_to_json(made), "blank": is_blank(text) }))
            }
            (Wanted::Tokens, _) => Err(wrong("dense", "sparse")),
            (Wanted::Vector, _) => Err(wrong("sparse", "dense")),
        }
    }
}

fn encode_texts(
    service: &ModelService,
    _: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let asked: Vec<Texts> = serde_json::from_value(parse_json(body)?)
        .map_err(|error| EngineError::illegal_argument(format!("failed to parse: {error}")))?;
    if let Some(Texts { model, texts, .. }) = asked.iter().find(|one| one.texts.len() > MOST_TEXTS) {
        return Err(EngineError::illegal_argument(format!(
            "model [{model}] is to read [{}] texts of a search, at most [{MOST_TEXTS}] are encoded at once",
            texts.len()
        )));
    }
    let named = asked.iter().map(|Texts { model, wants, .. }| {
        let kind = match wants {
            Wanted::Tokens => VectorKind::Sparse,
            Wanted::Vector => VectorKind::Dense,
        };
        let parts = service.models.hybrid_parts(model);
        parts.map_or_else(|| model.clone(), |parts| parts.of(kind).to_owned())
    });
    let named: Vec<String> = named.collect();
    let lists: Vec<(&str, Vec<&str>)> = named
        .iter()
        .zip(&asked)
        .map(|(model, Texts { texts, .. })| (model.as_str(), texts.iter().map(String::as_str).collect()))
        .collect();
    let results = service.models.encode_queries(&lists, Some(cancel.flag()), false)?;
    let mut encoded = Vec::with_capacity(asked.len());
    for (of_model, (made, _)) in asked.iter().zip(&results) {
        let shown = of_model.texts.iter().zip(made).map(|(text, made)| of_model.shown(text, &made.output));
        encoded.push(Value::Array(shown.collect::<Result<_, ModelError>>()?));
    }
    let answer = Map::from_iter([("encoded".to_owned(), Value::Array(encoded))]);
    Ok(Reply::ok(&Value::Object(answer)))
}
