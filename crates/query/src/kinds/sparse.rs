//! Queries by weighted tokens: `sparse_vector`, `text_expansion`, `weighted_tokens`.

use std::fmt;

use super::dsl::{Common, Context, members, no_text, not_supported, single_field, value};
use super::shape::{Shape, clause, either, flag, list, map, num, object, of_field, text};
use super::{no_children, separated};
use crate::{Clause, PruningConfig, Query, QueryKind, TextToEncode};
use sparrow_wire::java_float::f32_text;
use sparrow_wire::json::{Json, Node};
use sparrow_wire::{BodyError, deprecation};

/// A query for documents by weighted tokens.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SparseQuery {
    /// Path of a `sparse_vector` or `rank_features` field.
    pub field: String,
    /// Tokens and weights from the request or the encoder. The weights of a repeated token add up.
    pub tokens: Vec<(Box<str>, f32)>,
    /// Whether tokens that are frequent and have low weights are left out.
    pub pruning: Pruning,
    /// The kind of query in the request, for the wording of errors.
    pub origin: SparseOrigin,
}

/// Which query a sparse clause came from: Elasticsearch words the errors of each differently.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SparseOrigin {
    /// A `sparse_vector` query.
    #[default]
    SparseVector,
    /// A `weighted_tokens` query.
    WeightedTokens,
    /// A `text_expansion` query.
    TextExpansion,
}

/// Whether a sparse clause leaves out tokens, as far as the request says so.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Pruning {
    /// Every token is scored.
    #[default]
    Off,
    /// Tokens are left out by this configuration, else by the field's, else by the default one.
    On(Option<PruningConfig>),
    /// Tokens are left out if the field's `index_options` say so, which they do not by default; this configuration replaces the
    /// field's.
    ByField(Option<PruningConfig>),
}

/// A text that the encoder turns into a sparse clause before the search.
#[derive(Debug, Clone, PartialEq)]
pub struct TextExpansionQuery {
    /// Path of a `sparse_vector` or `rank_features` field.
    pub field: String,
    /// Id of a model or an inference endpoint.
    pub model_id: String,
    /// The text to encode.
    pub model_text: String,
    /// As [`SparseQuery::pruning`].
    pub pruning: Pruning,
    /// As [`SparseQuery::origin`].
    pub origin: SparseOrigin,
}

/// What the body of a `sparse_vector` query holds.
pub(super) fn sparse_vector_shape() -> Shape {
    clause([
        ("field", text().about("a `sparse_vector`, or a `semantic_text` with sparse vectors")),
        ("query_vector", weights_shape()),
        (
            "inference_id",
            text().about("endpoint or model that encodes `query`; that of the field if nothing is said"),
        ),
        ("query", text().about("text that becomes the vector")),
        ("prune", flag().preset(true)),
        ("pruning_config", pruning_shape()),
    ])
    .needs(&["field"])
}

fn weights_shape() -> Shape {
    map(num()).about("tokens with their weights")
}

fn tokens_shape() -> Shape {
    either([weights_shape(), list(map(num()))])
}

fn pruning_shape() -> Shape {
    let frequent = "tokens that are so much more frequent than the average are left out";
    let light = "tokens of less than this share of the greatest weight are left out";
    let again = "the tokens that are left out score the first hits again";
    object([
        ("tokens_freq_ratio_threshold", num().about(frequent).preset(5)),
        ("tokens_weight_threshold", num().about(light).preset(0.4)),
        ("only_score_pruned_tokens", flag().about(again).preset(false)),
    ])
    .about("leaves frequent tokens of little weight out of the search")
}

/// Reads a `sparse_vector` query.
pub(super) fn sparse_vector(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "sparse_vector";
    let mut common = Common::default();
    let (mut field, mut vector, mut inference_id, mut text) = (None, None, None, None);
    let (mut prune, mut config) = (None, None);
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        let mut read = || -> Result<(), BodyError> {
            match &*member.name {
                "field" => field = Some(string(CLAUSE, "field", node)?),
                "query_vector" => vector = Some(tokens(CLAUSE, node)?),
                "inference_id" => inference_id = Some(string(CLAUSE, "inference_id", node)?),
                "query" => text = Some(string(CLAUSE, "query", node)?),
                "prune" => prune = Some(value::boolean(node)?),
                "pruning_config" => config = Some(pruning_config(node)?),
                _ if common.take(CLAUSE, member)? => {}
                _ => return Err(BodyError::unknown_field(CLAUSE, member, sparse_vector_shape().names())),
            }
            Ok(())
        };
        read().map_err(|error| match error {
            BodyError::UnknownField { .. } | BodyError::ValueType { .. } => error,
            other => other.within(CLAUSE, &member.name, node.at),
        })?;
    }
    let Some(field) = field else {
        return Err(BodyError::Required { field: "field" });
    };
    let build = |reason: &str| BodyError::Build { parser: CLAUSE, reason: reason.to_owned(), at: body.end };
    let pruning = match prune {
        Some(true) => Pruning::On(config),
        Some(false) => Pruning::Off,
        None => Pruning::ByField(config),
    };
    let kind = match (vector, inference_id, text) {
        (Some(tokens), None, None) => {
            QueryKind::Sparse(SparseQuery { field, tokens, pruning, origin: SparseOrigin::SparseVector })
        }
        (None, Some(model_id), Some(model_text)) => QueryKind::TextExpansion(TextExpansionQuery {
            field,
            model_id,
            model_text,
            pruning,
            origin: SparseOrigin::SparseVector,
        }),
        // The field's own endpoint, if it has one.
        (None, None, Some(model_text)) => QueryKind::TextExpansion(TextExpansionQuery {
            field,
            model_id: String::new(),
            model_text,
            pruning,
            origin: SparseOrigin::SparseVector,
        }),
        (None, Some(_), None) => {
            return Err(build(
                "[sparse_vector] requires [query] to be specified when [inference_id] is given",
            ));
        }
        (Some(_), None, Some(_)) => {
            return Err(build("[sparse_vector] requires one of [query_vector] or [query]"));
        }
        (Some(_), Some(_), _) | (None, None, None) => {
            return Err(build(
                "[sparse_vector] requires one of [query_vector] or [inference_id] for \
                 sparse_vector fields",
            ));
        }
    };
    Ok(common.query(kind))
}

/// What the body of a `text_expansion` query holds.
pub(super) fn text_expansion_shape() -> Shape {
    of_field(
        clause([("model_id", text()), ("model_text", text()), ("pruning_config", pruning_shape())])
            .needs(&["model_id", "model_text"]),
    )
}

/// Reads a `text_expansion` query.
pub(super) fn text_expansion(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "text_expansion";
    deprecation::warn("text_expansion is deprecated. Use sparse_vector instead.");
    let field = single_field(body, CLAUSE)?;
    let mut common = Common::default();
    let (mut model_id, mut model_text, mut pruning) = (None, None, Pruning::Off);
    for member in members(&field.value, CLAUSE)? {
        let node = &member.value;
        match &*member.name {
            "pruning_config" => pruning = Pruning::On(Some(pruning_config(node)?)),
            _ if !node.is_scalar() => return Err(not_supported(CLAUSE, member)),
            "model_id" => model_id = value::optional_text(node)?,
            "model_text" => model_text = value::optional_text(node)?,
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    let Some(model_text) = model_text else {
        return Err(no_text(body.end));
    };
    let Some(model_id) = model_id else {
        return Err(BodyError::illegal("[text_expansion] requires a model_id value"));
    };
    Ok(common.query(QueryKind::TextExpansion(TextExpansionQuery {
        field: field.name.to_string(),
        model_id,
        model_text,
        pruning,
        origin: SparseOrigin::TextExpansion,
    })))
}

/// What the body of a `weighted_tokens` query holds.
pub(super) fn weighted_tokens_shape() -> Shape {
    of_field(clause([("tokens", tokens_shape()), ("pruning_config", pruning_shape())]).needs(&["tokens"]))
}

/// Reads a `weighted_tokens` query.
pub(super) fn weighted_tokens(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "weighted_tokens";
    deprecation::warn("weighted_tokens is deprecated and will be removed. Use sparse_vector instead.");
    let field = single_field(body, CLAUSE)?;
    let mut common = Common::default();
    let (mut found, mut pruning) = (None, Pruning::Off);
    for member in members(&field.value, CLAUSE)? {
        match &*member.name {
            "tokens" => found = Some(tokens(CLAUSE, &member.value)?),
            "pruning_config" => pruning = Pruning::On(Some(pruning_config(&member.value)?)),
            _ if member.value.is_scalar() && common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    let Some(tokens) = found else {
        return Err(BodyError::illegal("[weighted_tokens] requires a tokens value"));
    };
    Ok(common.query(QueryKind::Sparse(SparseQuery {
        field: field.name.to_string(),
        tokens,
        pruning,
        origin: SparseOrigin::WeightedTokens,
    })))
}

/// Reads tokens with their weights: one object, or an array of objects.
fn tokens(clause: &'static str, node: &Node) -> Result<Vec<(Box<str>, f32)>, BodyError> {
    let mut tokens = Vec::new();
    let mut read = |node: &Node| -> Result<(), BodyError> {
        let Json::Object(members) = &node.json else {
            return Err(BodyError::ValueType {
                parser: clause,
                field: "query_vector".to_owned(),
                token: node.token(),
                at: node.at,
            });
        };
        for member in members {
            let weight = value::float(&member.value)?;
            if weight <= 0.0 {
                return Err(BodyError::illegal(format!(
                    "[{clause}] weights must be positive numbers, got [{}] for token [{}]",
                    f32_text(weight),
                    member.name
                )));
            }
            tokens.push((Box::from(&*member.name), weight));
        }
        Ok(())
    };
    match node.as_array() {
        Some(items) if clause == "weighted_tokens" => items.iter().try_for_each(&mut read)?,
        _ => read(node)?,
    }
    Ok(tokens)
}

fn pruning_config(node: &Node) -> Result<PruningConfig, BodyError> {
    const PARSER: &str = "pruning_config";
    let mut config = PruningConfig::default();
    for member in members(node, PARSER)? {
        match &*member.name {
            "tokens_freq_ratio_threshold" => {
                // A whole number in the interface, though it arrives as one with a fraction as well.
                config.tokens_freq_ratio_threshold = value::int(&member.value)? as f32;
            }
            "tokens_weight_threshold" => {
                config.tokens_weight_threshold = value::float(&member.value)?;
            }
            "only_score_pruned_tokens" => {
                config.only_score_pruned_tokens = value::boolean(&member.value)?;
            }
            name => {
                return Err(BodyError::parsing(
                    member.value.at,
                    format!("[{PARSER}] unknown field [{name}]"),
                ));
            }
        }
    }
    if !(1.0..=100.0).contains(&config.tokens_freq_ratio_threshold) {
        return Err(BodyError::illegal(format!(
            "[tokens_freq_ratio_threshold] must be between [1] and [100], got {}",
            f32_text(config.tokens_freq_ratio_threshold)
        )));
    }
    if !(0.0..=1.0).contains(&config.tokens_weight_threshold) {
        return Err(BodyError::illegal("[tokens_weight_threshold] must be between 0 and 1"));
    }
    Ok(config)
}

fn string(parser: &'static str, field: &'static str, node: &Node) -> Result<String, BodyError> {
    match &node.json {
        Json::String(text) => Ok(text.to_string()),
        _ => Err(BodyError::ValueType { parser, field: field.to_owned(), token: node.token(), at: node.at }),
    }
}

impl Clause for SparseQuery {
    fn lucene_name(&self) -> &'static str {
        "SparseVectorQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, tokens, .. } = self;
        separated(out, " ", tokens.iter().map(|(token, weight)| format!("{field}:{token}^{weight}")))
    }

    no_children!();
}

impl Clause for TextExpansionQuery {
    fn lucene_name(&self) -> &'static str {
        "TextExpansionQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "text_expansion({})", self.field)
    }

    no_children!();

    fn text_to_encode(&self) -> Option<TextToEncode<'_>> {
        Some(TextToEncode { field: &self.field, model_id: &self.model_id, text: &self.model_text })
    }
}
