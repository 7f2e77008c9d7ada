//! How the terms that a pattern or a misspelling matches are scored: the option `rewrite`.

use super::dsl::value;
use super::shape::{Shape, text};
use sparrow_wire::BodyError;
use sparrow_wire::json::Node;

/// How the terms that a pattern matches are scored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rewrite {
    /// Every match scores 1.
    #[default]
    Constant,
    /// The scores of all matching terms add up; more than 1024 terms are an error.
    ScoringBoolean,
    /// The scores of the first terms, at most this many, add up.
    TopTerms(usize),
    /// Each of the first terms, at most this many, adds 1, or less for a fuzzy term with more edits.
    TopTermsBoost(usize),
    /// As `TopTerms`, but all terms are scored with the document frequency of the most frequent one.
    TopTermsBlended(usize),
}

/// The `rewrite` parameter.
pub(super) fn rewrite_shape() -> Shape {
    text().about("how the terms that match are scored, such as `constant_score`")
}

/// Reads the `rewrite` parameter, which says how the matching terms are scored; `None` for null.
pub(super) fn rewrite(node: &Node) -> Result<Option<Rewrite>, BodyError> {
    let Some(name) = value::optional_text(node)? else { return Ok(None) };
    let count = |prefix: &str| name.strip_prefix(prefix).and_then(|count| count.parse::<usize>().ok());
    Ok(Some(match name.as_str() {
        "constant_score"
        | "constant_score_boolean"
        | "constant_score_blended"
        | "constant_score_auto"
        | "constant_score_filter" => Rewrite::Constant,
        "scoring_boolean" => Rewrite::ScoringBoolean,
        _ => {
            if let Some(count) = count("top_terms_boost_") {
                Rewrite::TopTermsBoost(count)
            } else if let Some(count) = count("top_terms_blended_freqs_") {
                Rewrite::TopTermsBlended(count)
            } else if let Some(count) = count("top_terms_") {
                Rewrite::TopTerms(count)
            } else {
                return Err(BodyError::illegal(format!("Failed to parse rewrite_method [{name}]")));
            }
        }
    }))
}
