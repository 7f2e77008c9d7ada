//! Converts tantivy's explanations to Lucene's form.

use serde_json::Value;

use super::explanation::Explanation;

/// Marks a step that read a stored weight: first entry of its context, followed by field and token.
pub(crate) const TOKEN_TAG: &str = "token";
/// Marks a step that is a constant: first entry of its context. A boost becomes part of its description.
pub(crate) const CONSTANT_TAG: &str = "constant";

/// Converts an explanation. Lucene has no step for a boost, so it is pushed down to the leaves. With `zero`
/// nothing scores, and all values become 0.
pub(super) fn convert(raw: &tantivy::query::Explanation, zero: bool) -> Explanation {
    // Its parts are only to be had as JSON.
    let raw = serde_json::to_value(raw).unwrap_or_default();
    step(&raw, if zero { 0.0 } else { 1.0 }, 0)
}

/// Deepest level of steps that is converted; no query nests this deeply.
const MAX_DEPTH: usize = 256;

fn step(raw: &Value, boost: f32, depth: usize) -> Explanation {
    let value = raw["value"].as_f64().unwrap_or_default() as f32;
    let description = raw["description"].as_str().unwrap_or_default();
    let details = raw["details"].as_array().map(Vec::as_slice).unwrap_or_default();
    let context: Vec<&str> =
        raw["context"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if let ([inner], Some(factor)) = (details, boost_of(description))
        && depth < MAX_DEPTH
    {
        return step(inner, boost * factor, depth + 1);
    }
    let sum = description == "BooleanClause. sum of ...";
    let boosted = value * boost;
    let inner_boost = |place: usize| {
        let first = place == 0;
        match description {
            _ if sum || description == "sum of:" || description.starts_with("max ") => boost,
            _ if description.starts_with("weight(") => boost,
            // The first factor carries the boost.
            _ if first
                && (description.starts_with("score(") || description.starts_with("Linear function")) =>
            {
                boost
            }
            _ => 1.0,
        }
    };
    let details: Vec<Explanation> = match depth < MAX_DEPTH {
        true => details
            .iter()
            .enumerate()
            .map(|(place, detail)| step(detail, inner_boost(place), depth + 1))
            .collect(),
        false => Vec::new(),
    };
    let description = match (sum, &context[..]) {
        (true, _) => "sum of:".to_owned(),
        (_, [CONSTANT_TAG, ..]) if boosted != 1.0 => format!("{description}^{boosted:?}"),
        _ => description.to_owned(),
    };
    let token = match &context[..] {
        [TOKEN_TAG, field, token] => Some(((*field).to_owned(), (*token).to_owned())),
        _ => None,
    };
    Explanation { token, ..Explanation::of(boosted, description, details) }
}

/// The factor of a step that only applies a boost; `None` for other steps.
fn boost_of(description: &str) -> Option<f32> {
    description.strip_prefix("Boost x")?.strip_suffix(" of ...")?.parse().ok()
}
