//! The options of the `completion` suggester.

use serde_json::{Map, Value};
use sparrow_query::dsl::value;
use sparrow_query::{RegexpQuery, regexp_option};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};
use sparrow_wire::shape::{Shape, count, either, flag, int, object, open, text};

use super::complete::{Completion, CompletionWay};
use super::near_prefix::FuzzyOptions;
use super::values::{Texts, positive, required_field};

pub const PARSER: &str = "completion";
/// Length that `AUTO` counts with: as in Elasticsearch, a fuzziness says nothing about the text here.
const AUTO_LENGTH: u64 = 5;

/// What the options hold.
pub fn shape() -> Shape {
    let contexts = "categories and places that inputs have to be in one of";
    object([
        ("field", text().about("a field of type `completion`")),
        ("analyzer", text()),
        ("size", int().preset(5)),
        ("shard_size", int()),
        ("skip_duplicates", flag().preset(false)),
        ("fuzzy", either([flag(), fuzzy_shape()])),
        ("regex", regex_shape()),
        ("contexts", open().about(contexts)),
    ])
    .needs(&["field"])
}

fn fuzzy_shape() -> Shape {
    object([
        ("fuzziness", count().preset(1)),
        ("transpositions", flag().preset(true)),
        ("min_length", int().preset(3)),
        ("prefix_length", int().preset(1)),
        ("unicode_aware", flag().preset(false)),
        ("max_determinized_states", int()),
    ])
}

fn regex_shape() -> Shape {
    object([("flags", text()), ("flags_value", int()), ("max_determinized_states", int())])
}

/// What a `completion` suggester is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionSuggester {
    pub request: Completion,
    /// The text that the answer shows.
    pub shown: String,
}

/// Reads the options of a `completion` suggester for the texts that stand beside them.
///
/// # Errors
/// When there is an unknown key or an invalid value, or no text.
pub fn parse(options: &Node, texts: Texts, common: Option<&str>) -> Result<CompletionSuggester, BodyError> {
    let mut request = Completion {
        field: String::new(),
        text: String::new(),
        way: CompletionWay::Prefix,
        analyzer: None,
        size: 5,
        skip_duplicates: false,
        contexts: Map::new(),
    };
    let (mut fuzzy, mut regexp) = (None, None);
    for member in options.as_object().unwrap_or_default() {
        let node = &member.value;
        match &*member.name {
            "field" => request.field = value::text(node)?,
            "analyzer" => request.analyzer = Some(value::text(node)?),
            "size" => request.size = positive(node, "size")?,
            // An index is not divided.
            "shard_size" => {
                positive(node, "shardSize")?;
            }
            "skip_duplicates" => request.skip_duplicates = value::boolean(node)?,
            "fuzzy" => fuzzy = fuzzy_options(node)?,
            "regex" => regexp = Some(regexp_options(node)?),
            "contexts" | "context" => {
                let Value::Object(contexts) = node.to_value() else {
                    return Err(BodyError::parsing(node.at, "[contexts] of a completion takes an object"));
                };
                request.contexts = contexts;
            }
            _ => return Err(BodyError::unknown_field(PARSER, member, shape().names())),
        }
    }
    required_field(&request.field, options)?;
    if texts.regex.is_some() && (texts.prefix.is_some() || texts.text.is_some()) {
        return Err(BodyError::illegal("[regex] cannot stand beside [prefix] or [text]"));
    }
    let is_regexp = texts.regex.is_some();
    let prefix = texts.prefix.clone();
    let shown =
        texts.any(common).ok_or_else(|| BodyError::illegal("'prefix/text' or 'regex' must be defined"))?;
    request.text = prefix.unwrap_or_else(|| shown.clone());
    request.way = match (is_regexp, fuzzy) {
        (true, Some(_)) => return Err(BodyError::illegal("can not use 'fuzzy' options with 'regex")),
        (true, None) => CompletionWay::Regexp(regexp.unwrap_or_else(|| RegexpQuery::new("", ""))),
        (false, Some(options)) => CompletionWay::Fuzzy(options),
        (false, None) => CompletionWay::Prefix,
    };
    Ok(CompletionSuggester { request, shown })
}

/// Reads `fuzzy`: options, or whether there are those by default.
fn fuzzy_options(node: &Node) -> Result<Option<FuzzyOptions>, BodyError> {
    let mut options = FuzzyOptions::default();
    let Json::Object(members) = &node.json else {
        return Ok(value::boolean(node)?.then_some(options));
    };
    let not_negative = |node: &Node, name: &str| {
        usize::try_from(value::int(node)?)
            .map_err(|_| BodyError::illegal(format!("{name} must not be negative")))
    };
    for member in members {
        let node = &member.value;
        match &*member.name {
            "fuzziness" => options.edits = edits(&value::text(node)?)?,
            "transpositions" => options.transpositions = value::boolean(node)?,
            "min_length" => options.min_length = not_negative(node, "fuzzyMinLength")?,
            "prefix_length" => options.prefix_length = not_negative(node, "fuzzyPrefixLength")?,
            "unicode_aware" => options.unicode_aware = value::boolean(node)?,
            // No automaton is made of it.
            "max_determinized_states" => {
                not_negative(node, "maxDeterminizedStates")?;
            }
            _ => return Err(BodyError::unknown_field("fuzzy", member, fuzzy_shape().names())),
        }
    }
    Ok(Some(options))
}

/// Number of edits that a fuzziness allows.
fn edits(fuzziness: &str) -> Result<usize, BodyError> {
    let refused =
        || BodyError::illegal(format!("fuzziness must be between 0 and 2 or AUTO, but was [{fuzziness}]"));
    let upper = fuzziness.trim().to_uppercase();
    let Some(bounds) = upper.strip_prefix("AUTO") else {
        let edits: f32 = upper.parse().map_err(|_| refused())?;
        return if (0.0..=2.0).contains(&edits) { Ok(edits as usize) } else { Err(refused()) };
    };
    if bounds.is_empty() {
        return Ok(1);
    }
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| refused());
    let (low, high) =
        bounds.strip_prefix(':').and_then(|bounds| bounds.split_once(',')).ok_or_else(refused)?;
    Ok(usize::from(AUTO_LENGTH >= number(low)?) + usize::from(AUTO_LENGTH >= number(high)?))
}

/// Reads the options of a regular expression.
fn regexp_options(node: &Node) -> Result<RegexpQuery, BodyError> {
    let mut query = RegexpQuery::new("", "");
    let Json::Object(members) = &node.json else {
        return Err(BodyError::parsing(node.at, "[regex] of a completion takes an object"));
    };
    for member in members {
        if !regexp_option(&mut query, member)? {
            return Err(BodyError::unknown_field("regex", member, regex_shape().names()));
        }
    }
    Ok(query)
}
