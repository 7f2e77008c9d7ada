//! The kinds of query. Each has a module, alone or with its family: its parameters, how its JSON is read, and what it says of itself
//! ([`Clause`]). Field names are full dotted paths as users write them, multi-fields included (`title.raw`). What a kind means in an
//! index is in a module of `crates/tantivy-index/src/query/kinds`, which has the same name unless a family is divided there.
//!
//! A new kind has its row in [`NAMED`], its variant of [`QueryKind`], and its arm in [`of_kind`](crate::of_kind).

mod compound;
mod constants;
mod decay;
pub mod dsl;
mod features;
mod function_score;
pub mod geo;
mod intervals;
mod knn;
mod more_like_this;
mod multi_match;
mod nested;
mod patterns;
mod pinned;
mod query_string;
mod rewrite;
mod script_score;
mod semantic;
mod shape;
mod sparse;
mod term;
mod terms_set;
mod text;
mod wrapper;

use std::fmt;

use dsl::Context;
use shape::{Named, Shape, one_member};

use sparrow_wire::BodyError;
use sparrow_wire::json::Node;
use sparrow_wire::suggest::suggestions;

pub use compound::*;
pub use constants::{MatchAllQuery, MatchNoneQuery};
pub use decay::{DecayCurve, DecayFunction, MultiValue};
pub use features::{DistanceFeatureQuery, RankFeatureQuery, RankFunction};
pub use function_score::*;
pub use geo::{GeoArea, GeoQuery};
pub use intervals::*;
pub use knn::*;
pub use more_like_this::*;
pub use multi_match::*;
pub use nested::{NestedQuery, NestedScore};
pub use patterns::*;
pub use query_string::*;
pub use rewrite::Rewrite;
pub use script_score::{ScriptQuery, ScriptScoreQuery};
pub use semantic::{SemanticQuery, VectorKind};
pub use sparse::*;
pub use term::*;
pub use terms_set::{TermsSetMinimum, TermsSetQuery};
pub use text::*;

/// Reads the body of a query.
type Read = fn(&Node, Context) -> Result<Query, BodyError>;

/// Says what the body of a query holds.
type Shows = fn() -> Shape;

/// The names of all queries that are answered, ascending, what reads each, and what it may hold.
const NAMED: &[(&str, Read, Shows)] = &[
    ("bool", compound::boolean, compound::bool_shape),
    ("boosting", compound::boosting, compound::boosting_shape),
    ("combined_fields", multi_match::combined_fields, multi_match::combined_fields_shape),
    ("constant_score", compound::constant_score, compound::constant_score_shape),
    ("dis_max", compound::dis_max, compound::dis_max_shape),
    ("distance_feature", features::distance_feature, features::distance_feature_shape),
    ("exists", term::exists, term::exists_shape),
    ("function_score", function_score::function_score, function_score::function_score_shape),
    ("fuzzy", patterns::fuzzy, patterns::fuzzy_shape),
    ("geo_bounding_box", geo::geo_bounding_box, geo::geo_bounding_box_shape),
    ("geo_distance", geo::geo_distance, geo::geo_distance_shape),
    ("ids", term::ids, term::ids_shape),
    ("intervals", intervals::intervals, intervals::intervals_shape),
    ("knn", knn::query, knn::knn_shape),
    ("match", text::match_query, text::match_shape),
    ("match_all", constants::match_all, constants::constant_shape),
    ("match_bool_prefix", text::match_bool_prefix, text::match_bool_prefix_shape),
    ("match_none", constants::match_none, constants::constant_shape),
    ("match_phrase", text::match_phrase, text::match_phrase_shape),
    ("match_phrase_prefix", text::match_phrase_prefix, text::match_phrase_prefix_shape),
    ("more_like_this", more_like_this::more_like_this, more_like_this::more_like_this_shape),
    ("multi_match", multi_match::multi_match, multi_match::multi_match_shape),
    ("nested", nested::nested, nested::nested_shape),
    ("pinned", pinned::pinned, pinned::pinned_shape),
    ("prefix", patterns::prefix, patterns::prefix_shape),
    ("query_string", query_string::query_string, query_string::query_string_shape),
    ("range", term::range, term::range_shape),
    ("rank_feature", features::rank_feature, features::rank_feature_shape),
    ("regexp", patterns::regexp, patterns::regexp_shape),
    ("script", script_score::script, script_score::script_query_shape),
    ("script_score", script_score::script_score, script_score::script_score_shape),
    ("semantic", semantic::semantic, semantic::semantic_shape),
    ("simple_query_string", query_string::simple_query_string, query_string::simple_query_string_shape),
    ("sparse_vector", sparse::sparse_vector, sparse::sparse_vector_shape),
    ("term", term::term, term::term_shape),
    ("terms", term::terms, term::terms_shape),
    ("terms_set", terms_set::terms_set, terms_set::terms_set_shape),
    ("text_expansion", sparse::text_expansion, sparse::text_expansion_shape),
    ("weighted_tokens", sparse::weighted_tokens, sparse::weighted_tokens_shape),
    ("wildcard", patterns::wildcard, patterns::wildcard_shape),
    ("wrapper", wrapper::wrapper, wrapper::wrapper_shape),
];

/// Names of Elasticsearch's queries that this server does not support.
const UNSUPPORTED: &[&str] = &[
    "field_masking_span",
    "geo_grid",
    "geo_polygon",
    "geo_shape",
    "has_child",
    "has_parent",
    "parent_id",
    "percolate",
    "rule",
    "shape",
    "span_containing",
    "span_first",
    "span_multi",
    "span_near",
    "span_not",
    "span_or",
    "span_term",
    "span_within",
];

/// Reads the body of the query of this name.
///
/// # Errors
/// When there is no such query, or its content is wrong.
pub(crate) fn read(name: &str, body: &Node, context: Context) -> Result<Query, BodyError> {
    match NAMED.binary_search_by_key(&name, |(named, ..)| named) {
        Ok(place) => NAMED[place].1(body, context),
        Err(_) if UNSUPPORTED.contains(&name) => {
            Err(BodyError::parsing(body.at, format!("[{name}] query is not supported by Sparrow")))
        }
        Err(_) => {
            let known: Vec<&str> =
                NAMED.iter().map(|(named, ..)| *named).chain(UNSUPPORTED.iter().copied()).collect();
            Err(BodyError::UnknownName {
                what: "query",
                name: name.to_owned(),
                suggestions: suggestions(name, &known),
                at: body.at,
            })
        }
    }
}

/// Whether a query of this name is answered.
pub fn is_query(name: &str) -> bool {
    NAMED.iter().any(|(named, ..)| *named == name)
}

/// What bodies of queries hold, as JSON Schema, by the names in the OpenAPI document.
pub fn schemas() -> [Named; 5] {
    let kinds = one_member(NAMED.iter().map(|(name, _, shows)| (*name, shows())));
    [
        ("Query", kinds.about("One query: an object with one member, whose name says which.")),
        ("IntervalsRule", intervals::rule_shape()),
        ("Knn", knn::knn_shape().about("The nearest neighbours of a vector.")),
        ("QueryVectorBuilder", knn::builder_shape()),
        ("Script", script_score::script_shape()),
    ]
}

/// What a clause says of itself, whatever index it is asked in.
pub trait Clause {
    /// Name of Lucene's query for it, or of one that Lucene would have.
    fn lucene_name(&self) -> &'static str;

    /// Writes it as Lucene prints it, close enough to recognise it.
    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// The clauses directly inside it.
    fn children(&self) -> Vec<&Query>;

    /// As [`Clause::children`], to change them.
    fn children_mut(&mut self) -> Vec<&mut Query>;

    /// Whether it names documents that have to be read before a search.
    fn names_documents(&self) -> bool {
        false
    }

    /// The text of which a model has to make a vector before a search.
    fn text_to_encode(&self) -> Option<TextToEncode<'_>> {
        None
    }

    /// Makes it search these fields if it names none (the index's `index.query.default_field`).
    fn set_default_fields(&mut self, _fields: &[String]) {}

    /// Sets the numbers of neighbours and candidates that the request leaves open, for a list of `hits`.
    fn fit(&mut self, _hits: usize) {}
}

impl fmt::Display for dyn Clause + '_ {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.print(out)
    }
}

/// What a clause that contains no others says of them: every kind has to say whether it does.
macro_rules! no_children {
    () => {
        fn children(&self) -> Vec<&crate::Query> {
            Vec::new()
        }

        fn children_mut(&mut self) -> Vec<&mut crate::Query> {
            Vec::new()
        }
    };
}

use no_children;

/// A text of which a model makes a vector, to compare it with those of a field.
#[derive(Debug, Clone, Copy)]
pub struct TextToEncode<'a> {
    /// Path of the field.
    pub field: &'a str,
    /// Id of a model or an inference endpoint; empty for the field's own.
    pub model_id: &'a str,
    /// The text.
    pub text: &'a str,
}

/// One clause of a query: what it matches, the boost of its score, and its `_name`.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The kind of the clause, with its parameters.
    pub kind: QueryKind,
    /// Multiplies the score of the clause; not negative.
    pub boost: f32,
    /// The `_name` under which a hit may report this clause in `matched_queries`.
    pub name: Option<String>,
}

impl Query {
    /// A clause with boost 1 and no name.
    pub fn new(kind: QueryKind) -> Self {
        Self { kind, boost: 1.0, name: None }
    }

    /// Every document, score 1.
    pub fn match_all() -> Self {
        Self::new(QueryKind::MatchAll)
    }

    /// A copy of the clause with another boost.
    #[must_use]
    pub fn with_boost(mut self, boost: f32) -> Self {
        self.boost = boost;
        self
    }
}

impl From<QueryKind> for Query {
    fn from(kind: QueryKind) -> Self {
        Self::new(kind)
    }
}

impl fmt::Display for Query {
    /// Writes the clause as Lucene prints it, close enough to recognise it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.boost {
            1.0 => self.kind.clause().print(out),
            boost => write!(out, "({})^{boost:?}", self.kind.clause()),
        }
    }
}

/// The kind of a clause, which says what it matches, with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryKind {
    /// Every document; score 1.
    MatchAll,
    /// No document.
    MatchNone,
    /// Analysed text against one field.
    Match(MatchQuery),
    /// Analysed text as a phrase.
    MatchPhrase(MatchPhraseQuery),
    /// Analysed text as a phrase whose last term is a prefix.
    MatchPhrasePrefix(MatchPhrasePrefixQuery),
    /// Analysed text against one field, its last term a prefix.
    MatchBoolPrefix(MatchBoolPrefixQuery),
    /// Analysed text against several fields.
    MultiMatch(MultiMatchQuery),
    /// Analysed text against several fields as if they were one.
    CombinedFields(CombinedFieldsQuery),
    /// Documents with one exact value in a field.
    Term(TermQuery),
    /// Any of several exact values; score 1.
    Terms(TermsQuery),
    /// `terms` with the values of another document: the engine replaces it by [`QueryKind::Terms`] before a
    /// search; an index answers it with an error.
    TermsLookup(TermsLookupQuery),
    /// Documents with several exact values, of which each document says how many it needs.
    TermsSet(TermsSetQuery),
    /// Documents with a value between bounds; score 1.
    Range(RangeQuery),
    /// Documents with a value in the field; score 1.
    Exists(ExistsQuery),
    /// Documents by `_id`; score 1.
    Ids(IdsQuery),
    /// Keywords or terms that start with a prefix; score 1.
    Prefix(PrefixQuery),
    /// Keywords or terms that match a pattern of `*` and `?`; score 1.
    Wildcard(WildcardQuery),
    /// Keywords or terms that a regular expression matches as a whole; score 1.
    Regexp(RegexpQuery),
    /// Keywords or terms within an edit distance of a given one.
    Fuzzy(FuzzyQuery),
    /// A query string in Lucene's syntax.
    QueryString(QueryStringQuery),
    /// A query string in a simple syntax for search boxes, in which every text is valid.
    SimpleQueryString(SimpleQueryStringQuery),
    /// Clauses joined by `must`, `should`, `filter` and `must_not`.
    Bool(BoolQuery),
    /// A query in filter context; score 1.
    ConstantScore(ConstantScoreQuery),
    /// Documents that match any of several clauses, with the score of the best one.
    DisMax(DisMaxQuery),
    /// A query whose hits score less if they also match another one.
    Boosting(BoostingQuery),
    /// A query whose scores are changed by functions of the document.
    FunctionScore(FunctionScoreQuery),
    /// A query whose scores are computed by a script.
    ScriptScore(ScriptScoreQuery),
    /// The documents on which a script is true; score 1.
    Script(ScriptQuery),
    /// Documents scored by a function of a numeric feature.
    RankFeature(RankFeatureQuery),
    /// Documents scored by the distance of a date: the nearer, the higher.
    DistanceFeature(DistanceFeatureQuery),
    /// Documents by where their points lie; score 1.
    Geo(GeoQuery),
    /// Documents by the objects of a nested field that match a query.
    Nested(NestedQuery),
    /// Documents by the positions and order of words in a text.
    Intervals(IntervalsQuery),
    /// Documents with the most characteristic words of example documents, which the engine reads before a search.
    MoreLikeThis(MoreLikeThisQuery),
    /// A query that matches nothing, instead of failing, where a value does not fit its field.
    Lenient(LenientQuery),
    /// Documents scored by the dot product of query weights and stored token weights.
    Sparse(SparseQuery),
    /// Documents with the nearest dense vectors.
    Knn(KnnQuery),
    /// `text_expansion` or `sparse_vector` with text: the engine replaces it by [`QueryKind::Sparse`]
    /// before a search; an index answers it with an error.
    TextExpansion(TextExpansionQuery),
    /// A text against the passages of a `semantic_text` field.
    Semantic(SemanticQuery),
    /// kNN with a text: the engine replaces it by [`QueryKind::Knn`] before a search; an index
    /// answers it with an error.
    KnnBuilder(KnnBuilderQuery),
}

/// Evaluates an expression with the parameters of a clause's kind, or one of two others for the kinds without parameters.
#[macro_export]
macro_rules! of_kind {
    ($kind:expr, $query:ident => $out:expr, all => $all:expr, none => $none:expr) => {
        match $kind {
            $crate::QueryKind::MatchAll => $all,
            $crate::QueryKind::MatchNone => $none,
            $crate::QueryKind::Match($query) => $out,
            $crate::QueryKind::MatchPhrase($query) => $out,
            $crate::QueryKind::MatchPhrasePrefix($query) => $out,
            $crate::QueryKind::MatchBoolPrefix($query) => $out,
            $crate::QueryKind::MultiMatch($query) => $out,
            $crate::QueryKind::CombinedFields($query) => $out,
            $crate::QueryKind::Term($query) => $out,
            $crate::QueryKind::Terms($query) => $out,
            $crate::QueryKind::TermsLookup($query) => $out,
            $crate::QueryKind::TermsSet($query) => $out,
            $crate::QueryKind::Range($query) => $out,
            $crate::QueryKind::Exists($query) => $out,
            $crate::QueryKind::Ids($query) => $out,
            $crate::QueryKind::Prefix($query) => $out,
            $crate::QueryKind::Wildcard($query) => $out,
            $crate::QueryKind::Regexp($query) => $out,
            $crate::QueryKind::Fuzzy($query) => $out,
            $crate::QueryKind::QueryString($query) => $out,
            $crate::QueryKind::SimpleQueryString($query) => $out,
            $crate::QueryKind::Bool($query) => $out,
            $crate::QueryKind::ConstantScore($query) => $out,
            $crate::QueryKind::DisMax($query) => $out,
            $crate::QueryKind::Boosting($query) => $out,
            $crate::QueryKind::FunctionScore($query) => $out,
            $crate::QueryKind::ScriptScore($query) => $out,
            $crate::QueryKind::Script($query) => $out,
            $crate::QueryKind::RankFeature($query) => $out,
            $crate::QueryKind::DistanceFeature($query) => $out,
            $crate::QueryKind::Geo($query) => $out,
            $crate::QueryKind::Nested($query) => $out,
            $crate::QueryKind::Intervals($query) => $out,
            $crate::QueryKind::MoreLikeThis($query) => $out,
            $crate::QueryKind::Lenient($query) => $out,
            $crate::QueryKind::Sparse($query) => $out,
            $crate::QueryKind::Knn($query) => $out,
            $crate::QueryKind::TextExpansion($query) => $out,
            $crate::QueryKind::Semantic($query) => $out,
            $crate::QueryKind::KnnBuilder($query) => $out,
        }
    };
}

impl QueryKind {
    /// What the clause says of itself.
    pub fn clause(&self) -> &dyn Clause {
        of_kind!(self, query => query, all => &MatchAllQuery, none => &MatchNoneQuery)
    }

    /// As [`QueryKind::clause`], to change it; `None` for kinds that have nothing to change.
    pub fn clause_mut(&mut self) -> Option<&mut dyn Clause> {
        of_kind!(self, query => Some(query), all => None, none => None)
    }

    /// As [`Clause::fit`].
    pub fn fit(&mut self, hits: usize) {
        if let Some(clause) = self.clause_mut() {
            clause.fit(hits);
        }
    }
}

/// Writes parts with something between them.
fn separated(
    out: &mut fmt::Formatter<'_>,
    between: &str,
    parts: impl IntoIterator<Item = impl fmt::Display>,
) -> fmt::Result {
    for (number, part) in parts.into_iter().enumerate() {
        if number > 0 {
            out.write_str(between)?;
        }
        write!(out, "{part}")?;
    }
    Ok(())
}

/// Fields, each with a boost of 1.
fn unboosted(fields: &[String]) -> Vec<(String, f32)> {
    fields.iter().map(|field| (field.clone(), 1.0)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use sparrow_wire::json;

    use super::dsl::Context;
    use super::{NAMED, Read, UNSUPPORTED};

    #[test]
    fn names_ascend_as_they_are_searched_by_halving() {
        assert!(NAMED.is_sorted_by(|(one, ..), (next, ..)| one < next));
        assert!(UNSUPPORTED.iter().all(|name| NAMED.iter().all(|(named, ..)| named != name)));
    }

    /// The query or the error, as text without the member's name, that reading a body with one member gives. With `below`, the member is in
    /// an object under the name of a field.
    fn outcome(read: Read, below: bool, name: &str, value: &str) -> String {
        let member = format!(r#"{{"{name}":{value}}}"#);
        let body = if below { format!(r#"{{"f":{member}}}"#) } else { member };
        let (node, _) = json::read(body.as_bytes()).unwrap();
        let said = match read(&node, Context::new(10)) {
            Ok(query) => format!("{query:?}"),
            Err(error) => error.to_string(),
        };
        // The query may have the same name, which comes before.
        let (before, after) = said.rsplit_once(&format!("[{name}]")).unwrap_or((&said, ""));
        format!("{before}[]{after}")
    }

    #[test]
    fn what_a_body_is_said_to_hold_is_read() {
        let mut unread = Vec::new();
        for (kind, read, shows) in NAMED {
            let shape = Value::from(shows());
            let inside = &shape["additionalProperties"];
            let options = inside["anyOf"].get(1).unwrap_or(inside).get("properties");
            for (below, members) in [(false, shape.get("properties")), (true, options)] {
                for name in members.and_then(Value::as_object).into_iter().flat_map(|members| members.keys())
                {
                    let unknown = "q".repeat(name.len());
                    let is_read = ["1", "\"x\"", "true", "{}", "[]"].iter().any(|value| {
                        outcome(*read, below, name, value) != outcome(*read, below, &unknown, value)
                    });
                    if !is_read {
                        unread.push(format!("{kind}: {name}"));
                    }
                }
            }
        }
        assert!(unread.is_empty(), "{unread:?}");
    }
}
