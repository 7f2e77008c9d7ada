//! Queries over analysed text in several fields: `multi_match`, `combined_fields`.

use std::fmt;

use rustc_hash::FxHashMap;

use super::dsl::{Common, Context, members, not_supported, value};
use super::shape::{Shape, clause, either, int, list, num, one, scalar, text};
use super::text::{
    default_match, match_options, minimum, operator, operator_shape, query_text, slop, synonyms,
    take_match_option, zero_terms, zero_terms_shape,
};
use super::{no_children, separated, unboosted};
use crate::{Clause, MatchQuery, Operator, Query, QueryKind, ZeroTerms};
use sparrow_wire::json::Node;
use sparrow_wire::{BodyError, glob};

/// How a text is matched in several fields, and how their scores are combined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MultiMatchType {
    /// The score of the best field, plus the tie breaker's share of the others.
    #[default]
    BestFields,
    /// The sum of all fields' scores.
    MostFields,
    /// Each term may be in any of the fields; those with the same analyzer share their statistics.
    CrossFields,
    /// As best fields, each field matched as a phrase.
    Phrase,
    /// As best fields, each field matched as a phrase whose last term is a prefix.
    PhrasePrefix,
    /// As most fields, the last term of the text a prefix.
    BoolPrefix,
}

impl MultiMatchType {
    /// Default share of the other fields' scores, from 0 to 1.
    pub fn tie_breaker(self) -> f32 {
        match self {
            MultiMatchType::MostFields | MultiMatchType::BoolPrefix => 1.0,
            MultiMatchType::BestFields
            | MultiMatchType::CrossFields
            | MultiMatchType::Phrase
            | MultiMatchType::PhrasePrefix => 0.0,
        }
    }
}

/// A `multi_match` query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MultiMatchQuery {
    /// Fields with boosts; names may hold `*`.
    pub fields: Vec<(String, f32)>,
    /// How the text is matched in the fields, and how their scores are combined.
    pub kind: MultiMatchType,
    /// Share of the other fields' scores; by default [`MultiMatchType::tie_breaker`].
    pub tie_breaker: Option<f32>,
    /// The text and the options that apply in each field; its `field` is ignored.
    pub template: MatchQuery,
    /// Number of positions by which the terms of a phrase may be moved.
    pub slop: u32,
    /// Whether `semantic_text` fields are left out instead of being an error.
    pub words_only: bool,
}

/// A `combined_fields` query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CombinedFieldsQuery {
    /// Text fields with boosts of at least 1; names may hold `*`.
    pub fields: Vec<(String, f32)>,
    /// The text to analyse.
    pub text: String,
    /// Whether any or all of the text's terms have to match.
    pub operator: Operator,
    /// As [`MatchQuery::minimum_should_match`].
    pub minimum_should_match: Option<String>,
    /// What the query matches if no term of the text is left after analysis.
    pub zero_terms_query: ZeroTerms,
    /// As [`MatchQuery::without_synonym_phrases`].
    pub without_synonym_phrases: bool,
}

/// What the body of a `multi_match` query holds.
pub(super) fn multi_match_shape() -> Shape {
    let own = [
        ("query", scalar()),
        ("fields", fields_shape()),
        ("type", type_shape()),
        ("tie_breaker", tie_breaker()),
        ("slop", int()),
    ];
    clause(match_options().into_iter().chain(own)).needs(&["query"])
}

/// Names of fields, with weights.
pub(super) fn fields_shape() -> Shape {
    either([text(), list(text().about("name or pattern, with a weight as `title^2`"))])
}

/// The `type` of a query over several fields.
pub(super) fn type_shape() -> Shape {
    let types =
        ["best_fields", "most_fields", "cross_fields", "phrase", "phrase_prefix", "bool_prefix", "boolean"];
    one(&types).about("how the scores of the fields come together").preset("best_fields")
}

/// The `tie_breaker` of several scores.
pub(super) fn tie_breaker() -> Shape {
    num().about("share of the scores of the other fields or clauses: 0 for the best alone, 1 for the sum")
}

/// Reads a `multi_match` query.
pub(super) fn multi_match(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "multi_match";
    let mut common = Common::default();
    let mut query = MultiMatchQuery { template: default_match(""), ..Default::default() };
    let mut text = None;
    let (mut lenient, mut slop_given) = (None, false);
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match &*member.name {
            "query" => text = query_text(CLAUSE, member)?,
            "fields" => query.fields = boosted_fields(node)?,
            "type" => query.kind = multi_match_type(CLAUSE, node)?,
            "tie_breaker" => query.tie_breaker = Some(value::float(node)?),
            "slop" => {
                query.slop = slop(CLAUSE, node)?;
                slop_given = query.slop > 0;
            }
            "lenient" => lenient = Some(value::boolean(node)?),
            _ if take_match_option(CLAUSE, &mut query.template, member)? => {}
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(not_supported(CLAUSE, member)),
        }
    }
    query.template.text =
        text.ok_or_else(|| BodyError::parsing(body.end, "No text specified for multi_match query"))?;
    let name = match query.kind {
        MultiMatchType::CrossFields => "cross_fields",
        MultiMatchType::Phrase => "phrase",
        MultiMatchType::PhrasePrefix => "phrase_prefix",
        MultiMatchType::BoolPrefix => "bool_prefix",
        MultiMatchType::BestFields | MultiMatchType::MostFields => "",
    };
    if query.template.fuzziness.is_some() && matches!(name, "cross_fields" | "phrase" | "phrase_prefix") {
        return Err(BodyError::parsing(body.end, format!("Fuzziness not allowed for type [{name}]")));
    }
    if slop_given && name == "bool_prefix" {
        return Err(BodyError::parsing(body.end, format!("[slop] not allowed for type [{name}]")));
    }
    // Over every field, values of the wrong type are no matches instead of errors.
    let everything = query.fields.is_empty() || query.fields.iter().any(|(field, _)| field == "*");
    query.template.lenient = lenient.unwrap_or(everything);
    Ok(common.query(QueryKind::MultiMatch(query)))
}

/// What the body of a `combined_fields` query holds.
pub(super) fn combined_fields_shape() -> Shape {
    clause([
        ("query", scalar()),
        ("fields", fields_shape()),
        ("operator", operator_shape()),
        ("minimum_should_match", minimum()),
        ("zero_terms_query", zero_terms_shape()),
        ("auto_generate_synonyms_phrase_query", synonyms()),
    ])
    .needs(&["query", "fields"])
}

/// Reads a `combined_fields` query.
pub(super) fn combined_fields(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "combined_fields";
    let mut common = Common::default();
    let mut query = CombinedFieldsQuery::default();
    let mut text = None;
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match &*member.name {
            "query" => text = query_text(CLAUSE, member)?,
            "fields" => query.fields = boosted_fields(node)?,
            "operator" => query.operator = operator(node)?,
            "minimum_should_match" => query.minimum_should_match = value::optional_text(node)?,
            "zero_terms_query" => query.zero_terms_query = zero_terms(member)?,
            "auto_generate_synonyms_phrase_query" => query.without_synonym_phrases = !value::boolean(node)?,
            _ if common.take(CLAUSE, member)? => {}
            _ => return Err(BodyError::unknown_field(CLAUSE, member, combined_fields_shape().names())),
        }
    }
    query.text = text.ok_or(BodyError::Required { field: "query" })?;
    if query.fields.is_empty() {
        return Err(BodyError::Required { field: "fields" });
    }
    if let Some((field, boost)) = query.fields.iter().find(|(_, boost)| *boost < 1.0) {
        return Err(BodyError::illegal(format!(
            "[combined_fields] requires field boosts to be >= 1.0, got [{boost:?}] for [{field}]"
        )));
    }
    Ok(common.query(QueryKind::CombinedFields(query)))
}

/// Reads the `type` of a query over several fields.
pub(super) fn multi_match_type(clause: &str, node: &Node) -> Result<MultiMatchType, BodyError> {
    let name = value::text(node)?;
    Ok(match name.as_str() {
        "best_fields" | "boolean" => MultiMatchType::BestFields,
        "most_fields" => MultiMatchType::MostFields,
        "cross_fields" => MultiMatchType::CrossFields,
        "phrase" => MultiMatchType::Phrase,
        "phrase_prefix" => MultiMatchType::PhrasePrefix,
        "bool_prefix" => MultiMatchType::BoolPrefix,
        _ => {
            return Err(BodyError::Parse {
                reason: format!("failed to parse [{clause}] query type [{name}]. unknown type."),
            });
        }
    })
}

/// Reads fields with boosts: `"title^2"` or an array of such. Of several boosts for a name the last counts, as in
/// Elasticsearch.
pub(super) fn boosted_fields(node: &Node) -> Result<Vec<(String, f32)>, BodyError> {
    let mut fields: Vec<(String, f32)> = Vec::new();
    let mut places: FxHashMap<String, usize> = FxHashMap::default();
    for text in value::texts(node)? {
        let (name, boost) = match text.rsplit_once('^') {
            Some((name, boost)) => {
                let boost: f32 = boost
                    .parse()
                    .ok()
                    .filter(|boost: &f32| boost.is_finite() && *boost >= 0.0)
                    .ok_or_else(|| BodyError::NumberFormat { input: boost.to_owned() })?;
                (name.to_owned(), boost)
            }
            None => (text, 1.0),
        };
        match places.get(&name) {
            Some(place) => fields[*place].1 = boost,
            None => {
                places.insert(name.clone(), fields.len());
                fields.push((name, boost));
            }
        }
    }
    glob::check_patterns("fields", fields.len())?;
    Ok(fields)
}

impl Clause for MultiMatchQuery {
    fn lucene_name(&self) -> &'static str {
        "MultiMatchQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("(")?;
        let text = &self.template.text;
        separated(out, " | ", self.fields.iter().map(|(field, _)| format!("{field}:{text}")))?;
        out.write_str(")")
    }

    no_children!();

    fn set_default_fields(&mut self, fields: &[String]) {
        if self.fields.is_empty() {
            self.fields = unboosted(fields);
        }
    }
}

impl Clause for CombinedFieldsQuery {
    fn lucene_name(&self) -> &'static str {
        "CombinedFieldsQuery"
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("CombinedFieldQuery((")?;
        separated(out, " ", self.fields.iter().map(|(field, _)| field))?;
        write!(out, "):({}))", self.text)
    }

    no_children!();
}
