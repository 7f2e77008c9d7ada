//! The short form of `rrf` and `linear`: a text and the fields to search instead of retrievers.

use serde_json::json;

use super::super::fusion::{Method, Normalizer};
use super::{Fusion, ShortForm, Standard};
use sparrow_query::dsl::{self, Context};
use sparrow_wire::{BodyError, json};

/// The short form's `query` and `fields` in a compound retriever.
#[derive(Debug, Default)]
pub struct Simplified {
    /// The text to search for.
    pub query: Option<String>,
    /// Fields, each with an optional weight (`title^2`); `None` for those of `index.query.default_field`.
    pub fields: Option<Vec<String>>,
}

impl Simplified {
    /// Messages about parameters that cannot be combined; empty if all is well.
    pub fn problems(&self, fusion: &Fusion, normalizer: Option<Normalizer>) -> Vec<String> {
        let kind = fusion.kind();
        let custom = !fusion.inputs.is_empty();
        let mut messages = Vec::new();
        match (&self.query, &self.fields) {
            (None, Some(_)) => {
                messages.push(format!("[{kind}] [query] must be provided when [fields] is specified"));
                return messages;
            }
            (None, None) if !custom => {
                messages.push(format!("[{kind}] must provide [retrievers] or [query]"));
            }
            (None, None) => {}
            (Some(query), fields) => {
                if query.is_empty() {
                    messages.push(format!("[{kind}] [query] cannot be empty"));
                }
                if fields.as_ref().is_some_and(Vec::is_empty) {
                    messages.push(format!("[{kind}] [fields] cannot be empty"));
                }
                if custom {
                    messages.push(format!("[{kind}] cannot combine [retrievers] and [query]"));
                }
            }
        }
        if fusion.method == Method::Linear {
            if custom && normalizer.is_some() {
                messages
                    .push(format!("[{kind}] [normalizer] cannot be provided when [retrievers] is specified"));
            }
            let calibrated =
                fusion.inputs.iter().filter(|input| input.normalizer == Normalizer::Calibrated).count();
            if calibrated > 0 && calibrated < fusion.inputs.len() {
                messages.push(format!(
                    "[{kind}] the normalizer [calibrated] must be that of all [retrievers] or of none, as probabilities \
                     have no common scale with other scores"
                ));
            }
        }
        messages
    }
}

/// The short form as a single full-text list: the text in all fields, their scores added. The further lists
/// that it stands for are added once the indices are known.
pub fn list(
    kind: &str,
    simplified: &Simplified,
    names_constant: bool,
    with_all_words: bool,
    context: Context,
) -> Result<Option<Standard>, BodyError> {
    let Some(text) = &simplified.query else { return Ok(None) };
    let mut clause = json!({"query": text, "type": "most_fields"});
    let fields: Option<Vec<(String, f32)>> =
        simplified.fields.as_ref().map(|fields| fields.iter().map(|field| weighted(field)).collect());
    if let Some(names) = &simplified.fields {
        if fields.iter().flatten().any(|(_, weight)| *weight < 0.0) {
            return Err(BodyError::illegal(format!("[{kind}] per-field weights must be non-negative")));
        }
        clause["fields"] = json!(names);
    }
    let (node, _) = json::read(json!({"multi_match": clause}).to_string().as_bytes())?;
    let query = dsl::parse_query(&node, context)?;
    let short = ShortForm { text: text.clone(), fields, names_constant, with_all_words };
    Ok(Some(Standard { short: Some(short), ..Standard::new(query) }))
}

/// Splits `name^weight` into field name and weight; the weight is 1 without a `^`.
fn weighted(field: &str) -> (String, f32) {
    let parts = field.rsplit_once('^').and_then(|(name, weight)| Some((name, weight.parse().ok()?)));
    parts.map_or_else(|| (field.to_owned(), 1.0), |(name, weight)| (name.to_owned(), weight))
}
