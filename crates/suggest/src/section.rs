//! The `suggest` section of a search.

use sparrow_query::dsl::value;
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};
use sparrow_wire::shape::{Shape, object, text};
use sparrow_wire::suggest::suggestions;

use super::completion::{self, CompletionSuggester};
use super::term::{self, TermSuggester};
use super::values::Texts;

/// Suggesters of Elasticsearch that this server does not support.
const ELSEWHERE: &[&str] = &["phrase"];
/// Highest number of suggesters in a search: each suggester costs a
/// pass over the terms of its field.
const MAX_SUGGESTERS: usize = 100;

/// One named suggester of a `suggest` section.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggester {
    pub name: String,
    pub kind: Kind,
}

/// What a suggester suggests.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Term(TermSuggester),
    Completion(CompletionSuggester),
}

/// What the section holds, as JSON Schema for the OpenAPI document.
pub fn shape() -> Shape {
    let suggester = object(["text", "prefix", "regex"].map(|name| (name, text())))
        .and([(term::PARSER, term::shape()), (completion::PARSER, completion::shape())]);
    object([("text", text().about("text of the suggesters that have none"))]).by_field(suggester)
}

/// Reads a `suggest` section.
///
/// # Errors
/// When it has an unknown suggester, an unknown key or an invalid value.
pub fn parse(node: &Node) -> Result<Vec<Suggester>, BodyError> {
    let members = node.as_object().unwrap_or_default();
    let mut text = None;
    let mut suggesters = Vec::new();
    for member in members {
        match (&*member.name, &member.value.json) {
            ("text", Json::String(_) | Json::Number(_) | Json::Bool(_)) => {
                text = Some(value::text(&member.value)?)
            }
            (_, Json::Object(_)) => suggesters.push((member.name.to_string(), &member.value)),
            (name, _) => {
                return Err(BodyError::illegal(format!("[suggest] does not support [{name}]")));
            }
        }
    }
    if suggesters.len() > MAX_SUGGESTERS {
        return Err(BodyError::illegal(format!(
            "[suggest] takes at most [{MAX_SUGGESTERS}] suggesters, found [{}]",
            suggesters.len()
        )));
    }
    suggesters.into_iter().map(|(name, node)| suggester(name, node, text.as_deref())).collect()
}

fn suggester(name: String, node: &Node, common: Option<&str>) -> Result<Suggester, BodyError> {
    let mut texts = Texts::default();
    let mut asked = None;
    for member in node.as_object().unwrap_or_default() {
        match (&*member.name, &member.value.json) {
            (place @ ("text" | "prefix" | "regex"), Json::String(_) | Json::Number(_) | Json::Bool(_)) => {
                let text = Some(value::text(&member.value)?);
                match place {
                    "text" => texts.text = text,
                    "prefix" => texts.prefix = text,
                    _ => texts.regex = text,
                }
            }
            (kind @ (term::PARSER | completion::PARSER), Json::Object(_)) => {
                asked = Some((kind, &member.value));
            }
            (kind, Json::Object(_)) if ELSEWHERE.contains(&kind) => {
                return Err(BodyError::parsing(
                    member.value.at,
                    format!("suggester [{kind}] of [{name}] is not supported by this server"),
                ));
            }
            (kind, Json::Object(_)) => {
                return Err(BodyError::UnknownName {
                    what: "suggester",
                    name: kind.to_owned(),
                    suggestions: suggestions(kind, &[term::PARSER, completion::PARSER, "phrase"]),
                    at: member.value.at,
                });
            }
            (key, _) => {
                return Err(BodyError::parsing(
                    member.value.at,
                    format!("suggestion [{name}] does not support [{key}]"),
                ));
            }
        }
    }
    let kind = match asked {
        None => {
            return Err(BodyError::parsing(node.end, format!("missing suggestion object of [{name}]")));
        }
        Some((term::PARSER, options)) => Kind::Term(term::parse(options, texts.any(common))?),
        Some((_, options)) => Kind::Completion(completion::parse(options, texts, common)?),
    };
    Ok(Suggester { name, kind })
}

impl Kind {
    /// Name of the suggester.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Term(_) => term::PARSER,
            Self::Completion(_) => completion::PARSER,
        }
    }
}
