//! The `suggest` section of a search: terms of the index that are similar to the words of a text.

use sparrow_wire::BodyError;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value, json};
use sparrow_index::query::{StringDistance, SuggestMode, SuggestedWord, TermSuggest};

use super::error::SearchError;
use super::target::Target;
use sparrow_query::dsl::value;
use sparrow_wire::json::{Json, Node};
use sparrow_wire::suggest::suggestions;

const PARSER: &str = "term";
const KEYS: &[&str] = &[
    "text",
    "field",
    "analyzer",
    "size",
    "shard_size",
    "sort",
    "suggest_mode",
    "accuracy",
    "string_distance",
    "max_edits",
    "max_inspections",
    "max_term_freq",
    "prefix_length",
    "min_word_length",
    "min_doc_freq",
];
/// Suggesters of Elasticsearch that this server does not support.
const ELSEWHERE: &[&str] = &["completion", "phrase"];
/// Highest number of suggesters in a search (and, below, of suggestions for a word): each suggester costs a
/// pass over the terms of its field.
const MAX_SUGGESTERS: usize = 100;
const MAX_SIZE: usize = 1_000;

/// One named suggester of a `suggest` section.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggester {
    name: String,
    request: TermSuggest,
    /// Number of suggestions shown for each word; the indices may make more.
    size: usize,
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
    let mut text = None;
    let mut options = None;
    for member in node.as_object().unwrap_or_default() {
        match (&*member.name, &member.value.json) {
            // Of the other suggesters, which begin where a text ends.
            ("text" | "prefix" | "regex", Json::String(_) | Json::Number(_) | Json::Bool(_)) => {
                text = Some(value::text(&member.value)?);
            }
            (PARSER, Json::Object(_)) => options = Some(&member.value),
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
                    suggestions: suggestions(kind, &[PARSER, "completion", "phrase"]),
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
    let Some(options) = options else {
        return Err(BodyError::parsing(node.end, format!("missing suggestion object of [{name}]")));
    };
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
            return Err(BodyError::UnknownField {
                parser: PARSER,
                field: member.name.to_string(),
                suggestions: suggestions(&member.name, KEYS),
                at: member.at,
            });
        }
    }
    if request.field.is_empty() {
        return Err(BodyError::parsing(options.end, "the required field option [field] is missing"));
    }
    let Some(text) = text.or_else(|| common.map(str::to_owned)) else {
        return Err(BodyError::illegal("The required text option is missing"));
    };
    let size = size.unwrap_or(5);
    request.text = text;
    request.size = shard_size.unwrap_or_else(|| size.max(5));
    Ok(Suggester { name, request, size })
}

fn positive(node: &Node, name: &str) -> Result<usize, BodyError> {
    match value::int(node)? {
        number @ 1.. if number as usize <= MAX_SIZE => Ok(number as usize),
        1.. => Err(BodyError::illegal(format!("{name} must be at most {MAX_SIZE}"))),
        _ => Err(BodyError::illegal(format!("{name} must be positive"))),
    }
}

fn not_negative(node: &Node, name: &str) -> Result<usize, BodyError> {
    usize::try_from(value::int(node)?).map_err(|_| BodyError::illegal(format!("{name} must be positive")))
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

/// Runs `suggesters` on every index and makes the response's `suggest` member.
///
/// # Errors
/// When no index has the field, or an index cannot make suggestions.
pub fn run(
    targets: &[Target],
    suggesters: &[Suggester],
    typed_keys: bool,
    cancel: &Arc<AtomicBool>,
) -> Result<Value, SearchError> {
    let mut out = Map::new();
    for Suggester { name, request, size } in suggesters {
        let mut words: Vec<SuggestedWord> = Vec::new();
        let mut mapped = targets.is_empty();
        for target in targets {
            let suggested = target
                .snapshot
                .suggest_terms(request, cancel)
                .map_err(|source| SearchError::Query { shard: target.shard.clone(), source })?;
            mapped |= suggested.is_some();
            suggested.into_iter().flatten().for_each(|word| merge(&mut words, word));
        }
        if !mapped {
            return Err(SearchError::illegal(format!("no mapping found for field [{}]", request.field)));
        }
        // The words of an index whose analyzer is another one stand among the rest.
        words.sort_by_key(|word| (word.range.start, word.range.end));
        let entries: Vec<Value> = words
            .into_iter()
            .map(|mut word| {
                request.sort(&mut word.options);
                word.options.truncate(*size);
                entry(&request.text, &word)
            })
            .collect();
        let key = if typed_keys { format!("{PARSER}#{name}") } else { name.clone() };
        out.insert(key, Value::Array(entries));
    }
    Ok(Value::Object(out))
}

/// Merges an index's suggestions for a word into those of the other indices; document frequencies add up.
fn merge(words: &mut Vec<SuggestedWord>, word: SuggestedWord) {
    let same = |other: &&mut SuggestedWord| other.range == word.range && other.word == word.word;
    let Some(merged) = words.iter_mut().find(same) else {
        words.push(word);
        return;
    };
    for option in word.options {
        match merged.options.iter_mut().find(|other| other.term == option.term) {
            Some(other) => {
                other.score = other.score.max(option.score);
                other.doc_freq += option.doc_freq;
            }
            None => merged.options.push(option),
        }
    }
}

fn entry(text: &str, word: &SuggestedWord) -> Value {
    // Offsets count UTF-16 units, as Java's do.
    let units = |part: Option<&str>| part.map_or(0, |part| part.encode_utf16().count());
    let options: Vec<Value> = word
        .options
        .iter()
        .map(|option| json!({"text": option.term, "score": option.score, "freq": option.doc_freq}))
        .collect();
    json!({
        "text": word.word,
        "offset": units(text.get(..word.range.start)),
        "length": units(text.get(word.range.clone())),
        "options": options,
    })
}
