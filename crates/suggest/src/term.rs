//! The options of the `term` suggester.

use sparrow_wire::BodyError;

use sparrow_tantivy_index::query::{StringDistance, SuggestMode, TermSuggest};

use super::values::{not_negative, positive, required_field};
use sparrow_query::dsl::value;
use sparrow_wire::json::Node;
use sparrow_wire::shape::{Shape, int, num, object, one, text};

pub const PARSER: &str = "term";

/// What the options hold.
pub fn shape() -> Shape {
    let distances = ["internal", "damerau_levenshtein", "levenshtein", "jaro_winkler", "ngram"];
    let whole = ["shard_size", "max_edits", "max_inspections", "prefix_length", "min_word_length"];
    object([
        ("size", int().preset(5)),
        ("sort", one(&["score", "frequency"])),
        ("suggest_mode", one(&["missing", "popular", "always"]).preset("missing")),
        ("accuracy", num().preset(0.5)),
        ("string_distance", one(&distances)),
        ("max_term_freq", num()),
        ("min_doc_freq", num()),
    ])
    .and(["text", "field", "analyzer"].map(|name| (name, text())))
    .and(whole.map(|name| (name, int())))
    .needs(&["field"])
}

/// What a `term` suggester is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct TermSuggester {
    pub request: TermSuggest,
    /// Number of suggestions shown for each word; the indices may make more.
    pub size: usize,
}

/// Reads the options of a `term` suggester for a text, which they may name too.
///
/// # Errors
/// When there is an unknown key or an invalid value, or no text.
pub fn parse(options: &Node, mut text: Option<String>) -> Result<TermSuggester, BodyError> {
    let mut request = TermSuggest::default();
    let (mut size, mut shard_size) = (None, None);
    for member in options.as_object().unwrap_or_default() {
        let node = &member.value;
        let mut read = || -> Result<bool, BodyError> {
            match &*member.name {
                "text" => text = Some(value::text(node)?),
                "field" => request.field = value::text(node)?,
                "analyzer" => request.analyzer = Some(value::text(node)?),
                "size" => size = Some(positive(node, "size")?),
                "shard_size" => shard_size = Some(positive(node, "shardSize")?),
                "sort" => {
                    request.by_frequency = match &*value::text(node)?.to_lowercase() {
                        "score" => false,
                        "frequency" => true,
                        _ => return Err(no_constant("SortBy", node)),
                    };
                }
                "suggest_mode" => {
                    request.mode = match &*value::text(node)?.to_lowercase() {
                        "missing" => SuggestMode::Missing,
                        "popular" => SuggestMode::Popular,
                        "always" => SuggestMode::Always,
                        _ => return Err(no_constant("SuggestMode", node)),
                    };
                }
                "accuracy" => request.accuracy = share(node, "accuracy")?,
                "string_distance" => request.distance = string_distance(node)?,
                "max_edits" => {
                    request.max_edits = match value::int(node)? {
                        edits @ (1 | 2) => edits as usize,
                        _ => return Err(BodyError::illegal("maxEdits must be between 1 and 2")),
                    };
                }
                "max_inspections" => request.max_inspections = not_negative(node, "maxInspections")?,
                "max_term_freq" => request.max_term_freq = frequency(node, "maxTermFreq")?,
                "prefix_length" => request.prefix_length = not_negative(node, "prefixLength")?,
                "min_word_length" => request.min_word_length = positive(node, "minWordLength")?,
                "min_doc_freq" => request.min_doc_freq = frequency(node, "minDocFreq")?,
                _ => return Ok(false),
            }
            Ok(true)
        };
        if !read()? {
            return Err(BodyError::unknown_field(PARSER, member, shape().names()));
        }
    }
    required_field(&request.field, options)?;
    let size = size.unwrap_or(5);
    request.text = text.ok_or_else(|| BodyError::illegal("The required text option is missing"))?;
    request.size = shard_size.unwrap_or_else(|| size.max(5));
    Ok(TermSuggester { request, size })
}

fn share(node: &Node, name: &str) -> Result<f32, BodyError> {
    let share = value::float(node)?;
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => Err(BodyError::illegal(format!("{name} must be between 0 and 1"))),
    }
}

/// Reads a frequency: a share of all documents (0 to 1), or an absolute number of documents (a whole number
/// above 1).
fn frequency(node: &Node, name: &str) -> Result<f32, BodyError> {
    let number = value::float(node)?;
    if number < 0.0 {
        return Err(BodyError::illegal(format!("{name} must be positive")));
    }
    if number > 1.0 && number.fract() != 0.0 {
        return Err(BodyError::illegal(format!("if {name} is greater than 1, it must not be a fraction")));
    }
    Ok(number)
}

fn string_distance(node: &Node) -> Result<StringDistance, BodyError> {
    Ok(match &*value::text(node)?.to_lowercase() {
        "internal" | "damerau_levenshtein" => StringDistance::DamerauLevenshtein,
        "levenshtein" => StringDistance::Levenshtein,
        "jaro_winkler" => StringDistance::JaroWinkler,
        "ngram" => StringDistance::Ngram,
        _ => return Err(no_constant("StringDistanceImpl", node)),
    })
}

fn no_constant(of: &str, node: &Node) -> BodyError {
    let name = value::text(node).unwrap_or_default().to_uppercase();
    BodyError::illegal(format!("No enum constant org.elasticsearch.search.suggest.{of}.{name}"))
}
