//! Parameters of `text` and `keyword` fields.

use std::sync::Arc;

use serde_json::Value;
use sparrow_wire::shape::{Named, any, int, nullable, object, one, open, switch, text as text_shape};

use super::super::error::MappingError;
use super::super::java::java_string;
use super::super::parameters::{Params, bad};
use super::super::types::{DEFAULT_ANALYZER, DEFAULT_SHINGLE_SIZE, TextIndexOptions, TextKind, TextOptions};

pub(super) fn text_members() -> Vec<Named> {
    let prefixes = object([("min_chars", int().preset(2)), ("max_chars", int().preset(5))]);
    vec![
        ("analyzer", text_shape()),
        ("search_analyzer", text_shape()),
        ("search_quote_analyzer", text_shape()),
        ("index", switch().preset(true)),
        ("store", switch()),
        ("norms", switch().preset(true)),
        ("similarity", text_shape()),
        ("index_options", one(INDEX_OPTIONS)),
        ("index_prefixes", nullable(prefixes)),
        ("index_phrases", switch()),
        ("position_increment_gap", int()),
        ("term_vector", one(TERM_VECTORS)),
        ("fielddata", switch()),
        ("fielddata_frequency_filter", open()),
        ("eager_global_ordinals", switch()),
    ]
}

const INDEX_OPTIONS: &[&str] = &["positions", "docs", "freqs", "offsets"];

const TERM_VECTORS: &[&str] = &[
    "no",
    "yes",
    "with_positions",
    "with_offsets",
    "with_positions_offsets",
    "with_positions_payloads",
    "with_positions_offsets_payloads",
];

pub(super) fn text(params: &mut Params<'_>) -> Result<TextOptions, MappingError> {
    let mut options = TextOptions::default();
    let analyzer = name(params, "analyzer")?;
    options.search_analyzer = name(params, "search_analyzer")?;
    options.search_quote_analyzer = name(params, "search_quote_analyzer")?;
    let field = params.field;
    if analyzer.is_none() && options.search_analyzer.is_some() {
        return Err(MappingError::Malformed {
            reason: format!("analyzer on field [{field}] must be set when search_analyzer is set"),
        });
    }
    if options.search_analyzer.is_none() && options.search_quote_analyzer.is_some() {
        return Err(MappingError::Malformed {
            reason: format!(
                "analyzer and search_analyzer on field [{field}] must be set when search_quote_analyzer is set"
            ),
        });
    }
    options.analyzer = analyzer.unwrap_or_else(|| DEFAULT_ANALYZER.to_owned());
    options.norms = params.flag("norms", true)?;
    options.index_options = index_options(params)?;
    options.similarity = name(params, "similarity")?.filter(|name| name != "BM25");
    if let Some(gap) = params.take("position_increment_gap").cloned() {
        let gap = gap.as_i64().or_else(|| gap.as_str()?.parse().ok()).ok_or_else(|| {
            bad(format!(
                "Failed to parse value [{}] for parameter [position_increment_gap] on field [{field}]",
                java_string(&gap)
            ))
        })?;
        let gap = u32::try_from(gap).ok().filter(|gap| *gap <= 1 << 20).ok_or_else(|| {
            bad("[position_increment_gap] must be positive, got [GAP]".replace("GAP", &gap.to_string()))
        })?;
        if options.index_options != TextIndexOptions::Positions {
            return Err(bad(format!(
                "Cannot set position_increment_gap on field [{field}] without positions enabled"
            )));
        }
        options.position_increment_gap = Some(gap as usize);
        params.kept.insert("position_increment_gap".to_owned(), gap.into());
    }
    params.flag("store", false)?;
    // An update that says nothing of it is not one that switches it off.
    options.fielddata = params.given_flag("fielddata")?.unwrap_or_default();
    params.flag("eager_global_ordinals", false)?;
    // Phrases and prefixes give the same results without these, by other means.
    params.flag("index_phrases", false)?;
    index_prefixes(params)?;
    one_of(params, "term_vector", TERM_VECTORS)?;
    params.keep("fielddata_frequency_filter");
    Ok(options)
}

pub(super) fn as_you_type_members() -> Vec<Named> {
    let own = [("doc_values", switch()), ("max_shingle_size", int().preset(DEFAULT_SHINGLE_SIZE))];
    text_members().into_iter().chain(own).collect()
}

/// Reads how many neighbouring words a `search_as_you_type` field joins at most.
pub(super) fn as_you_type(params: &mut Params<'_>, default: u8) -> Result<TextKind, MappingError> {
    // Elasticsearch writes it with every such field.
    params.only("doc_values", &[Value::Bool(false)])?;
    let size = params.unsigned("max_shingle_size")?;
    let max_shingle_size = match size.map(u8::try_from) {
        None => default,
        Some(Ok(size @ 2..=4)) => size,
        Some(_) => {
            return Err(bad(format!(
                "[max_shingle_size] must be at least [2] and at most [4], got [{}]",
                size.unwrap_or_default()
            )));
        }
    };
    Ok(TextKind::AsYouType { max_shingle_size })
}

pub(super) fn keyword_members() -> Vec<Named> {
    vec![
        ("ignore_above", int()),
        ("null_value", any()),
        ("norms", switch()),
        ("normalizer", text_shape()),
        ("time_series_dimension", switch()),
        ("eager_global_ordinals", switch()),
        ("split_queries_on_whitespace", switch()),
        ("similarity", text_shape()),
        ("index_options", text_shape()),
    ]
}

/// Reads the parameters of a keyword field; returns the name of its normalizer.
pub(super) fn keyword(params: &mut Params<'_>) -> Result<Option<Arc<str>>, MappingError> {
    params.flag("norms", false)?;
    let normalizer = name(params, "normalizer")?;
    params.only("script", &[])?;
    params.only("on_script_error", &[])?;
    params.only("time_series_dimension", &[Value::Bool(false)])?;
    params.flag("eager_global_ordinals", false)?;
    params.flag("split_queries_on_whitespace", false)?;
    params.only("similarity", &["BM25".into()])?;
    params.only("index_options", &["docs".into()])?;
    Ok(normalizer.map(Arc::from))
}

fn name(params: &mut Params<'_>, key: &'static str) -> Result<Option<String>, MappingError> {
    let Some(value) = params.take(key).cloned() else { return Ok(None) };
    let name = java_string(&value);
    params.kept.insert(key.to_owned(), name.as_str().into());
    Ok(Some(name))
}

fn index_options(params: &mut Params<'_>) -> Result<TextIndexOptions, MappingError> {
    let text = one_of(params, "index_options", INDEX_OPTIONS)?;
    Ok(match text.as_deref() {
        Some("docs") => TextIndexOptions::Docs,
        Some("freqs") => TextIndexOptions::Freqs,
        // Offsets are found again where they are needed.
        _ => TextIndexOptions::Positions,
    })
}

/// Reads a parameter that has to be one of the `allowed` values, the first of which is the default.
fn one_of(
    params: &mut Params<'_>,
    key: &'static str,
    allowed: &[&str],
) -> Result<Option<String>, MappingError> {
    let Some(value) = params.take(key).cloned() else { return Ok(None) };
    let text = java_string(&value);
    if !allowed.contains(&text.as_str()) {
        return Err(MappingError::Malformed {
            reason: format!(
                "Unknown value [{text}] for field [{key}] - accepted values are [{}]",
                allowed.join(", ")
            ),
        });
    }
    if text != allowed[0] {
        params.kept.insert(key.to_owned(), text.as_str().into());
    }
    Ok(Some(text))
}

fn index_prefixes(params: &mut Params<'_>) -> Result<(), MappingError> {
    let Some(value) = params.take("index_prefixes").cloned() else { return Ok(()) };
    let field = params.field;
    let Value::Object(map) = &value else {
        return Err(bad(format!("[index_prefixes] of field [{field}] must be an object")));
    };
    if let Some(key) = map.keys().find(|key| !matches!(key.as_str(), "min_chars" | "max_chars")) {
        return Err(MappingError::Malformed {
            reason: format!("unknown parameter [{key}] in [index_prefixes] of field [{field}]"),
        });
    }
    let number = |key: &str, default: i64| match map.get(key) {
        None => Some(default),
        Some(value) => value.as_i64().or_else(|| value.as_str()?.parse().ok()),
    };
    let (Some(min), Some(max)) = (number("min_chars", 2), number("max_chars", 5)) else {
        return Err(bad(format!("[index_prefixes] of field [{field}] takes numbers")));
    };
    if min > max {
        return Err(bad(format!("min_chars [{min}] must be less than max_chars [{max}]")));
    }
    if min < 1 {
        return Err(bad(format!("min_chars [{min}] must be greater than zero")));
    }
    if max >= 20 {
        return Err(bad(format!("max_chars [{max}] must be less than 20")));
    }
    params.kept.insert("index_prefixes".to_owned(), serde_json::json!({"min_chars": min, "max_chars": max}));
    Ok(())
}
