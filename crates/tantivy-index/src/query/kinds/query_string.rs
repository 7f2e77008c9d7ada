//! `query_string`: rewrites Lucene's query syntax into the clauses that it stands for.

use std::cell::Cell;

use serde_json::Value;
use tantivy::query::Weight;

use crate::query::compile::Compiler;
use crate::query::filters::Docs;
use crate::query::highlight::WantedWords;
use crate::query::kinds::Meaning;
use sparrow_query::lucene::{self, Clause, Conjunction, Leaf, Modifier, Syntax};
use sparrow_query::{
    BoolQuery, DisMaxQuery, ExistsQuery, FuzzyQuery, LenientQuery, MAX_CLAUSES, MatchBoolPrefixQuery,
    MatchPhrasePrefixQuery, MatchPhraseQuery, MatchQuery, MultiMatchQuery, MultiMatchType, Operator,
    PrefixQuery, Query, QueryKind, QueryStringQuery, RangeQuery, RegexpQuery, TermQuery, WildcardQuery,
};
use sparrow_scoring::error::QueryError;

/// What the rewriting has to know about the fields of the index.
pub(crate) trait Fields {
    /// The fields with their boosts, each pattern replaced by the fields that match it; the flag marks fields
    /// that came from a pattern.
    fn expand(&self, fields: &[(String, f32)]) -> Result<Vec<(String, f32, bool)>, QueryError>;
    /// Fails if the request must stop.
    fn check(&self) -> Result<(), QueryError>;
    /// Terms that analysis makes of a text; the text itself for fields that are not analysed.
    fn terms(&self, field: &str, text: &str, analyzer: Option<&str>) -> Result<Vec<String>, QueryError>;
    /// Whether analysis of a text yields any term.
    fn has_terms(&self, field: &str, text: &str, analyzer: Option<&str>) -> Result<bool, QueryError> {
        Ok(!self.terms(field, text, analyzer)?.is_empty())
    }
    /// Whether the field's texts are analysed.
    fn is_text(&self, field: &str) -> bool;
    /// Whether the mapping has such a field.
    fn is_mapped(&self, field: &str) -> bool;
    /// A term that is not analysed, in the form in which the index holds it: lowercased for text fields.
    fn normalize(&self, field: &str, text: &str) -> String;
}

/// Parses a query text and rewrites it to a query tree.
///
/// # Errors
/// [`QueryError::Syntax`] when the text cannot be read.
pub(crate) fn rewrite(query: &QueryStringQuery, fields: &dyn Fields) -> Result<Query, QueryError> {
    let text = if query.escape { escape(&query.query) } else { query.query.clone() };
    let syntax_error = |detail: String| QueryError::Syntax { query: query.query.clone(), detail };
    let stated: Vec<(String, f32)> = if query.fields.is_empty() {
        vec![split_boost(query.default_field.as_deref().unwrap_or("*"), 1.0)]
    } else {
        query.fields.iter().map(|(name, boost)| split_boost(name, *boost)).collect()
    };
    let defaults = fields.expand(&stated)?;
    let everything = stated.iter().any(|(name, _)| name == "*");
    let syntax = lucene::parse(&text, defaults.len() > 1).map_err(syntax_error)?;
    let rewriter = Rewriter { query, fields, defaults, everything, clauses: Clauses::default() };
    let rewritten = rewriter.syntax(&syntax, true)?;
    Ok(rewritten.unwrap_or_else(|| Query::new(QueryKind::MatchNone)))
}

/// The field in which a quoted text is searched: the one with the suffix if it is mapped, otherwise the field
/// itself.
pub(crate) fn quoted_field(fields: &dyn Fields, field: &str, suffix: Option<&str>) -> String {
    suffix
        .map(|suffix| format!("{field}{suffix}"))
        .filter(|quoted| fields.is_mapped(quoted))
        .unwrap_or_else(|| field.to_owned())
}

/// Splits `title^2` into field name and boost, which multiplies `boost`.
fn split_boost(name: &str, boost: f32) -> (String, f32) {
    match name.rsplit_once('^').and_then(|(name, own)| Some((name, own.parse::<f32>().ok()?))) {
        Some((name, own)) => (name.to_owned(), boost * own),
        None => (name.to_owned(), boost),
    }
}

/// Escapes every character that has a meaning in the syntax.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\+-!():^[]\"{}~*?|&/".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

struct Rewriter<'a> {
    query: &'a QueryStringQuery,
    fields: &'a dyn Fields,
    defaults: Vec<(String, f32, bool)>,
    /// Whether the default fields are all fields.
    everything: bool,
    clauses: Clauses,
}

/// Counts the clauses that a rewriting makes. Each keeps its words, and there is one for each word and each field, so that a text of
/// a few kilobytes would make gigabytes of them before anybody compiles and counts the first.
#[derive(Default)]
pub(crate) struct Clauses(Cell<usize>);

impl Clauses {
    /// Counts one more.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn count(&self) -> Result<(), QueryError> {
        self.0.set(self.0.get() + 1);
        if self.0.get() > MAX_CLAUSES {
            return Err(QueryError::TooManyClauses { limit: MAX_CLAUSES });
        }
        Ok(())
    }
}

impl Rewriter<'_> {
    /// Rewrites a syntax tree; `None` when analysis leaves nothing of it, so that the clause is dropped.
    fn syntax(&self, syntax: &Syntax, top: bool) -> Result<Option<Query>, QueryError> {
        match syntax {
            Syntax::Group(clauses) => self.group(clauses, top),
            Syntax::Leaf { field, leaf } => self.leaf(field.as_deref(), leaf),
            Syntax::Boost(inner, boost) => Ok(self.syntax(inner, false)?.map(|query| {
                let boost = query.boost * boost;
                query.with_boost(boost)
            })),
        }
    }

    /// Combines clauses by Lucene's classic reading of operators: `AND` also makes the clause before it
    /// required.
    fn group(&self, clauses: &[Clause], top: bool) -> Result<Option<Query>, QueryError> {
        let all = self.query.default_operator == Operator::And;
        let mut kept: Vec<(Modifier, Query)> = Vec::new();
        let mut plain_first = false;
        for clause in clauses {
            if let Some((modifier @ (Modifier::None | Modifier::Required), _)) = kept.last_mut() {
                match clause.conjunction {
                    Conjunction::And => *modifier = Modifier::Required,
                    Conjunction::Or if all => *modifier = Modifier::None,
                    Conjunction::Or | Conjunction::None => {}
                }
            }
            let Some(query) = self.syntax(&clause.syntax, false)? else { continue };
            plain_first |= kept.is_empty() && clause.modifier == Modifier::None;
            let required = if all {
                clause.conjunction != Conjunction::Or
            } else {
                clause.conjunction == Conjunction::And
            };
            let modifier = match clause.modifier {
                Modifier::None if required => Modifier::Required,
                stated => stated,
            };
            kept.push((modifier, query));
        }
        if kept.is_empty() {
            return Ok(None);
        }
        if kept.len() == 1 && plain_first {
            return Ok(kept.pop().map(|(_, query)| query));
        }
        let mut tree = BoolQuery::default();
        for (modifier, query) in kept {
            match modifier {
                Modifier::None => tree.should.push(query),
                Modifier::Required => tree.must.push(query),
                Modifier::Prohibited => tree.must_not.push(query),
            }
        }
        if top {
            tree.minimum_should_match = self.query.minimum_should_match.clone();
        }
        Ok(Some(Query::new(QueryKind::Bool(tree))))
    }

    fn leaf(&self, field: Option<&str>, leaf: &Leaf) -> Result<Option<Query>, QueryError> {
        match (field, leaf) {
            (Some("_exists_"), Leaf::Text(name) | Leaf::Wildcard(name)) => {
                let field = name.clone();
                return Ok(Some(Query::new(QueryKind::Exists(ExistsQuery { field }))));
            }
            (Some("_exists_"), Leaf::Prefix(start)) => {
                let field = format!("{start}*");
                return Ok(Some(Query::new(QueryKind::Exists(ExistsQuery { field }))));
            }
            (Some("*"), Leaf::Any) => return Ok(Some(Query::match_all())),
            (None, Leaf::Any) if self.everything => return Ok(Some(Query::match_all())),
            _ => {}
        }
        let expanded;
        let targets = match field {
            Some(name) => {
                expanded = self.fields.expand(&[(name.to_owned(), 1.0)])?;
                &expanded
            }
            None => &self.defaults,
        };
        if let (MultiMatchType::CrossFields, Leaf::Text(text), [first, _, ..]) =
            (self.query.kind, leaf, &targets[..])
        {
            if !self.fields.has_terms(&first.0, text, self.query.analyzer.as_deref())? {
                return Ok(None);
            }
            // Each word is looked for in each field.
            for _ in targets {
                self.clauses.count()?;
            }
            self.fields.check()?;
            let fields = targets.iter().map(|(name, boost, _)| (name.clone(), *boost)).collect();
            return Ok(Some(Query::new(QueryKind::MultiMatch(MultiMatchQuery {
                fields,
                kind: MultiMatchType::CrossFields,
                tie_breaker: self.query.tie_breaker,
                template: self.text_in("", text),
                ..MultiMatchQuery::default()
            }))));
        }
        let mut queries = Vec::with_capacity(targets.len());
        let mut analysed_away = !targets.is_empty();
        for (name, boost, by_pattern) in targets {
            self.fields.check()?;
            if let Some(kind) = self.in_field(name, field.is_some(), leaf)? {
                analysed_away = false;
                self.clauses.count()?;
                let mut query = Query::new(kind);
                if self.query.lenient || *by_pattern {
                    query = Query::new(QueryKind::Lenient(LenientQuery::new(query)));
                }
                queries.push(query.with_boost(*boost));
            }
        }
        if analysed_away {
            return Ok(None);
        }
        Ok(Some(match queries.len() {
            0 => Query::new(QueryKind::MatchNone),
            1 => queries.remove(0),
            _ => {
                let tie_breaker = self.query.tie_breaker.unwrap_or(self.query.kind.tie_breaker());
                Query::new(QueryKind::DisMax(DisMaxQuery { queries, tie_breaker }))
            }
        }))
    }

    /// A `match` clause for a text in one field.
    fn text_in(&self, field: &str, text: &str) -> MatchQuery {
        MatchQuery {
            field: field.to_owned(),
            text: text.to_owned(),
            operator: self.query.default_operator,
            analyzer: self.query.analyzer.clone(),
            lenient: self.query.lenient,
            without_synonym_phrases: self.query.without_synonym_phrases,
            ..MatchQuery::default()
        }
    }

    /// A clause for the beginning of a term in one field. If analysis makes several terms of it, all but the
    /// last must match as a whole.
    fn prefix(&self, field: &str, text: &str) -> Result<QueryKind, QueryError> {
        let start = |value: String| {
            QueryKind::Prefix(PrefixQuery {
                field: field.to_owned(),
                value,
                case_insensitive: false,
                rewrite: self.query.rewrite,
            })
        };
        if !self.query.analyze_wildcard || !self.fields.is_text(field) {
            return Ok(start(self.fields.normalize(field, text)));
        }
        let mut terms = self.fields.terms(field, text, self.query.analyzer.as_deref())?;
        let Some(last) = terms.pop() else { return Ok(start(self.fields.normalize(field, text))) };
        if terms.is_empty() {
            return Ok(start(last));
        }
        let whole = |value: String| {
            QueryKind::Term(TermQuery {
                field: field.to_owned(),
                value: Value::String(value),
                case_insensitive: false,
            })
        };
        let mut parts: Vec<Query> = terms.into_iter().map(|term| whole(term).into()).collect();
        parts.push(start(last).into());
        Ok(QueryKind::Bool(match self.query.default_operator {
            Operator::And => BoolQuery { must: parts, ..BoolQuery::default() },
            Operator::Or => BoolQuery { should: parts, ..BoolQuery::default() },
        }))
    }

    /// The clause for one leaf in one field; `None` when analysis leaves nothing of it. `explicit` says that
    /// the query text names the field, in which case `>`, `>=`, `<` and `<=` are comparisons.
    fn in_field(&self, field: &str, explicit: bool, leaf: &Leaf) -> Result<Option<QueryKind>, QueryError> {
        let owned = field.to_owned();
        let query = self.query;
        let analyzer = query.analyzer.clone();
        let kind = match leaf {
            Leaf::Text(text) => {
                if let Some(range) = explicit.then(|| comparison(text)).flatten() {
                    let time_zone = query.time_zone.clone();
                    return Ok(Some(QueryKind::Range(RangeQuery { field: owned, time_zone, ..range })));
                }
                if !self.fields.has_terms(field, text, analyzer.as_deref())? {
                    return Ok(None);
                }
                let phrase = || MatchPhraseQuery {
                    field: field.to_owned(),
                    text: text.clone(),
                    slop: query.phrase_slop,
                    analyzer: analyzer.clone(),
                    ..MatchPhraseQuery::default()
                };
                match query.kind {
                    MultiMatchType::Phrase => QueryKind::MatchPhrase(phrase()),
                    MultiMatchType::PhrasePrefix if self.fields.is_text(field) => {
                        QueryKind::MatchPhrasePrefix(MatchPhrasePrefixQuery {
                            phrase: phrase(),
                            max_expansions: 0,
                        })
                    }
                    MultiMatchType::BoolPrefix => {
                        QueryKind::MatchBoolPrefix(MatchBoolPrefixQuery(self.text_in(field, text)))
                    }
                    _ => QueryKind::Match(self.text_in(field, text)),
                }
            }
            Leaf::Phrase(text, slop) => {
                let field = quoted_field(self.fields, field, query.quote_field_suffix.as_deref());
                let analyzer = query.quote_analyzer.clone().or(analyzer);
                if !self.fields.has_terms(&field, text, analyzer.as_deref())? {
                    return Ok(None);
                }
                QueryKind::MatchPhrase(MatchPhraseQuery {
                    field,
                    text: text.clone(),
                    slop: slop.unwrap_or(query.phrase_slop),
                    analyzer,
                    ..MatchPhraseQuery::default()
                })
            }
            Leaf::Any => QueryKind::Exists(ExistsQuery { field: owned }),
            Leaf::Prefix(text) => self.prefix(field, text)?,
            Leaf::Wildcard(pattern) => {
                if !query.allow_leading_wildcard && pattern.starts_with(['*', '?']) {
                    return Err(QueryError::Syntax {
                        query: query.query.clone(),
                        detail: "'*' or '?' not allowed as first character in WildcardQuery".into(),
                    });
                }
                QueryKind::Wildcard(WildcardQuery {
                    value: self.fields.normalize(field, pattern),
                    field: owned,
                    case_insensitive: false,
                    rewrite: query.rewrite,
                })
            }
            Leaf::Fuzzy(text, edits) => {
                let fuzziness = match edits {
                    None => query.fuzziness.clone().unwrap_or_else(|| "AUTO".into()),
                    Some(edits) if *edits >= 1.0 && edits.fract() != 0.0 => {
                        return Err(QueryError::Syntax {
                            query: query.query.clone(),
                            detail: "Fractional edit distances are not allowed!".into(),
                        });
                    }
                    Some(edits) if *edits >= 1.0 => edits.min(2.0).to_string(),
                    // The old form: a share of the term that must stay.
                    Some(share) => {
                        let length = text.chars().count() as f32;
                        ((1.0 - share) * length).floor().min(2.0).to_string()
                    }
                };
                QueryKind::Fuzzy(FuzzyQuery {
                    value: self.fields.normalize(field, text),
                    field: owned,
                    fuzziness,
                    prefix_length: query.fuzzy_prefix_length,
                    max_expansions: query.fuzzy_max_expansions,
                    without_transpositions: query.without_transpositions,
                    rewrite: query.fuzzy_rewrite,
                })
            }
            Leaf::Regexp(pattern) => QueryKind::Regexp(RegexpQuery {
                max_determinized_states: query.max_determinized_states,
                rewrite: query.rewrite,
                ..RegexpQuery::new(owned, pattern.clone())
            }),
            Leaf::Range { lower, upper, with_lower, with_upper } => {
                let bound = |text: &Option<String>, wanted: bool| {
                    text.as_ref()
                        .filter(|_| wanted)
                        .map(|text| Value::String(self.fields.normalize(field, text)))
                };
                QueryKind::Range(RangeQuery {
                    gte: bound(lower, *with_lower),
                    gt: bound(lower, !with_lower),
                    lte: bound(upper, *with_upper),
                    lt: bound(upper, !with_upper),
                    field: owned,
                    time_zone: query.time_zone.clone(),
                    ..RangeQuery::default()
                })
            }
        };
        Ok(Some(kind))
    }
}

/// Parses a comparison such as `>=5` to a range whose field is still empty.
fn comparison(text: &str) -> Option<RangeQuery> {
    let mut range = RangeQuery::default();
    let bound = |value: &str| (!value.is_empty()).then(|| Value::String(value.to_owned()));
    if let Some(value) = text.strip_prefix(">=") {
        range.gte = Some(bound(value)?);
    } else if let Some(value) = text.strip_prefix('>') {
        range.gt = Some(bound(value)?);
    } else if let Some(value) = text.strip_prefix("<=") {
        range.lte = Some(bound(value)?);
    } else if let Some(value) = text.strip_prefix('<') {
        range.lt = Some(bound(value)?);
    } else {
        return None;
    }
    Some(range)
}

impl Meaning for QueryStringQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        let tree = rewrite(self, &*compiler)?;
        compiler.compile(&tree, scoring)
    }

    fn documents(&self, compiler: &mut Compiler<'_>) -> Result<Option<Docs>, QueryError> {
        let tree = rewrite(self, &*compiler)?;
        compiler.matching_docs(&tree).map(Some)
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        let tree = rewrite(self, &wanted.compiler)?;
        wanted.of(&tree)
    }
}
