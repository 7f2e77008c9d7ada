//! Token filters, which turn a stream of tokens into another.

pub(super) mod cjk;
mod delimiter;
mod fold;
mod grams;
mod normalize;
mod shingle;
mod simple;
mod stem;
mod stop;
mod synonym;
mod synonym_rules;
mod unique;

use std::fmt::Debug;
use std::sync::Arc;

use super::error::AnalysisError;
use super::params::Params;
use super::token::Tokens;

pub(super) use normalize::build as normalization;
pub(super) use simple::{FRENCH_ARTICLES, elision, lowercase_filter};
pub(super) use stem::{Stem, protect, remove_possessive};
pub(super) use stop::{Stop, stop_words, word_list};
pub(super) use synonym_rules::RuleAnalyzer;
pub(super) use unique::Fingerprint;

/// Whether a filter is applied to the rules of a synonym filter that comes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InRules {
    /// The filter is applied to the rules too.
    Applies,
    /// The filter is not applied to the rules.
    Skipped,
    /// The filter must not come before a synonym filter.
    Refused,
}

/// A token filter: transforms a stream of tokens.
pub(super) trait Filter: Debug + Send + Sync {
    fn apply<'a>(&'a self, tokens: Tokens<'a>) -> Tokens<'a>;

    /// Whether the filter works on single characters and so is allowed in a normalizer.
    fn normalizes(&self) -> bool {
        false
    }

    fn in_rules(&self) -> InRules {
        InRules::Applies
    }

    /// Whether it gives the same words several times, joined in different ways, so that queries do not look for paths
    /// through its tokens: each token only stands for the position at which it begins. Elasticsearch marks such a
    /// stream with its `DisableGraphAttribute`.
    fn makes_no_graph(&self) -> bool {
        false
    }
}

/// What a filter's definition may depend on besides its parameters.
pub(super) struct Context<'a> {
    /// The chain before the filter, by which synonym rules are analyzed.
    pub rules: &'a RuleAnalyzer<'a>,
    /// `index.max_ngram_diff`: largest allowed difference between `max_gram` and `min_gram`.
    pub max_ngram_diff: i64,
    /// `index.max_shingle_diff`: largest allowed difference between the sizes of shingles.
    pub max_shingle_diff: i64,
}

/// Types of filters that Elasticsearch has but that are not implemented here.
const REFUSED: &[&str] = &[
    "condition",
    "predicate_token_filter",
    "delimited_payload",
    "delimited_payload_filter",
    "dictionary_decompounder",
    "hyphenation_decompounder",
    "hunspell",
    "kstem",
    "min_hash",
    "multiplexer",
    "phonetic",
    "icu_folding",
    "icu_normalizer",
    "icu_collation",
    "icu_transform",
    "bengali_normalization",
    "hindi_normalization",
    "indic_normalization",
    "dutch_stem",
    "brazilian_stem",
    "czech_stem",
];

/// Builds a token filter of the given type; `None` if there is no such type.
pub(super) fn build(
    kind: &str,
    params: &Params<'_>,
    context: &Context<'_>,
) -> Result<Option<Arc<dyn Filter>>, AnalysisError> {
    if REFUSED.contains(&kind) {
        return Err(AnalysisError::illegal(format!(
            "token filter type [{kind}] of [{}] is not supported",
            params.name
        )));
    }
    let filter: Option<Arc<dyn Filter>> = match kind {
        "stop" => Some(Arc::new(Stop::new(params)?)),
        "keep" => Some(stop::keep(params)?),
        "keep_types" => Some(stop::keep_types(params)?),
        "asciifolding" => Some(Arc::new(fold::AsciiFolding::new(params)?)),
        "stemmer" | "snowball" | "porter_stem" | "porterStem" | "stemmer_override" | "keyword_marker"
        | "keyword_repeat" | "arabic_stem" | "german_stem" | "french_stem" | "russian_stem" => {
            Some(stem::build(kind, params)?)
        }
        "ngram" | "nGram" | "edge_ngram" | "edgeNGram" => {
            Some(Arc::new(grams::GramFilter::new(params, kind.starts_with("edge"), context.max_ngram_diff)?))
        }
        "shingle" => Some(Arc::new(shingle::Shingle::new(params, context.max_shingle_diff)?)),
        "common_grams" => Some(Arc::new(shingle::CommonGrams::new(params)?)),
        "unique" | "remove_duplicates" => Some(Arc::new(unique::Unique::new(params, kind)?)),
        "fingerprint" => Some(Arc::new(Fingerprint::new(params)?)),
        "synonym" | "synonym_graph" => {
            Some(Arc::new(synonym::Synonyms::new(params, kind == "synonym_graph", context.rules)?))
        }
        "word_delimiter" | "word_delimiter_graph" => {
            Some(Arc::new(delimiter::Delimiter::new(params, kind == "word_delimiter_graph")?))
        }
        "cjk_width" => Some(cjk::width()),
        "cjk_bigram" => Some(Arc::new(cjk::Bigrams::new(params)?)),
        _ => match normalize::build(kind) {
            Some(filter) => Some(filter),
            None => simple::build(kind, params)?,
        },
    };
    if filter.is_some() {
        params.finish()?;
    }
    Ok(filter)
}

/// Builds a filter of the given type that works on each token separately; `None` if there is no such type.
pub(super) fn simple_named(
    kind: &str,
    params: &Params<'_>,
) -> Result<Option<Arc<dyn Filter>>, AnalysisError> {
    simple::build(kind, params)
}

/// The `decimal_digit` filter.
pub(super) fn decimal_digit() -> (String, Arc<dyn Filter>) {
    ("decimal_digit".to_owned(), simple::decimal_digit())
}

/// A filter that replaces listed words by given stems and protects them from stemmers.
pub(super) fn overrides(rules: &[(&str, &str)]) -> Arc<dyn Filter> {
    stem::overrides(rules)
}

/// Types of filters that can be used by name, without a definition.
pub(super) const BUILT_IN: &[&str] = &[
    "apostrophe",
    "arabic_normalization",
    "arabic_stem",
    "asciifolding",
    "cjk_bigram",
    "cjk_width",
    "classic",
    "decimal_digit",
    "edge_ngram",
    "edgeNGram",
    "elision",
    "fingerprint",
    "flatten_graph",
    "french_stem",
    "german_normalization",
    "german_stem",
    "keyword_repeat",
    "length",
    "limit",
    "lowercase",
    "ngram",
    "nGram",
    "persian_normalization",
    "porter_stem",
    "remove_duplicates",
    "reverse",
    "russian_stem",
    "scandinavian_folding",
    "scandinavian_normalization",
    "serbian_normalization",
    "shingle",
    "snowball",
    "sorani_normalization",
    "stemmer",
    "stop",
    "trim",
    "truncate",
    "unique",
    "uppercase",
    "word_delimiter",
    "word_delimiter_graph",
];
