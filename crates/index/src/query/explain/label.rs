//! Clauses as Lucene prints them, and what the weight of each kind of clause gives as explanation.

use serde_json::Value;
use tantivy::query::{Explanation, Scorer, Weight};
use tantivy::{DocId, Score, SegmentReader};

use super::convert::CONSTANT_TAG;
use crate::query::{error, weights};
use sparrow_query::{BoolQuery, FuzzyQuery, Query, QueryKind, RangeQuery, RegexpQuery, Rewrite};
use sparrow_types::work;

/// Source of a clause's explanation.
enum Who {
    /// The weight of the clause itself.
    Itself,
    /// A fixed sentence, for a clause that gives all documents the same score.
    Constant(String),
    /// A fixed sentence; scores may differ between documents.
    Sentence(&'static str),
}

/// Wraps the weight of a clause so that it gives the explanation of its kind.
pub(in crate::query) fn labelled(
    kind: &QueryKind,
    weight: Box<dyn Weight>,
    scoring: bool,
) -> Box<dyn Weight> {
    let who = match scoring {
        true => who(kind),
        // Where nothing is scored, all that matches counts 1.
        false => Who::Constant(text(kind)),
    };
    match who {
        Who::Itself => weight,
        Who::Constant(text) => Box::new(Labelled { inner: weight, text, constant: true, scoring }),
        Who::Sentence(text) => {
            Box::new(Labelled { inner: weight, text: text.to_owned(), constant: false, scoring })
        }
    }
}

fn who(kind: &QueryKind) -> Who {
    match kind {
        QueryKind::Match(_)
        | QueryKind::MatchPhrase(_)
        | QueryKind::MatchPhrasePrefix(_)
        | QueryKind::MatchBoolPrefix(_)
        | QueryKind::MultiMatch(_)
        | QueryKind::CombinedFields(_)
        | QueryKind::TermsSet(_)
        | QueryKind::Fuzzy(_)
        | QueryKind::QueryString(_)
        | QueryKind::SimpleQueryString(_)
        | QueryKind::Boosting(_)
        | QueryKind::FunctionScore(_)
        | QueryKind::ScriptScore(_)
        | QueryKind::RankFeature(_)
        | QueryKind::DistanceFeature(_)
        | QueryKind::Intervals(_)
        | QueryKind::MoreLikeThis(_)
        | QueryKind::Nested { .. }
        | QueryKind::TermsLookup(_)
        | QueryKind::Bool(_)
        | QueryKind::DisMax { .. }
        | QueryKind::Lenient(_)
        | QueryKind::Term { .. }
        | QueryKind::Sparse(_)
        | QueryKind::Semantic(_)
        | QueryKind::TextExpansion(_)
        | QueryKind::KnnBuilder(_)
        | QueryKind::MatchNone => Who::Itself,
        QueryKind::Prefix { rewrite, .. }
        | QueryKind::Wildcard { rewrite, .. }
        | QueryKind::Regexp(RegexpQuery { rewrite, .. })
            if *rewrite != Rewrite::Constant =>
        {
            Who::Itself
        }
        QueryKind::MatchAll
        | QueryKind::Terms { .. }
        | QueryKind::Range(_)
        | QueryKind::Exists { .. }
        | QueryKind::Ids { .. }
        | QueryKind::Prefix { .. }
        | QueryKind::Wildcard { .. }
        | QueryKind::Regexp(_)
        | QueryKind::ConstantScore { .. } => Who::Constant(text(kind)),
        QueryKind::Knn(_) => Who::Sentence("within top k documents"),
    }
}

/// A clause in the way Lucene prints it, close enough to recognise it.
pub(super) fn text(kind: &QueryKind) -> String {
    let field = |field: &str, value: &str| format!("{field}:{value}");
    match kind {
        QueryKind::MatchAll => "*:*".to_owned(),
        QueryKind::MatchNone => "MatchNoDocsQuery(\"\")".to_owned(),
        QueryKind::Match(query) => field(&query.field, &query.text),
        QueryKind::MatchPhrase(query) => format!("{}:\"{}\"", query.field, query.text),
        QueryKind::MultiMatch(query) => {
            let fields: Vec<String> =
                query.fields.iter().map(|(name, _)| field(name, &query.template.text)).collect();
            format!("({})", fields.join(" | "))
        }
        QueryKind::Term { field: name, value, .. } => field(name, &scalar(value)),
        QueryKind::Terms { field: name, values } => {
            format!("{name}:({})", values.iter().map(scalar).collect::<Vec<_>>().join(" "))
        }
        QueryKind::Range(query) => range(query),
        QueryKind::Exists { field } => format!("ConstantScore(FieldExistsQuery [field={field}])"),
        QueryKind::Ids { values } => format!("_id:({})", values.join(" ")),
        QueryKind::Prefix { field, value, .. } => format!("{field}:{value}*"),
        QueryKind::Wildcard { field: name, value, .. } => field(name, value),
        QueryKind::Regexp(RegexpQuery { field, value, .. }) => format!("{field}:/{value}/"),
        QueryKind::Fuzzy(FuzzyQuery { field, value, .. }) => format!("{field}:{value}~"),
        QueryKind::MatchPhrasePrefix(query) => format!("{}:\"{}*\"", query.phrase.field, query.phrase.text),
        QueryKind::MatchBoolPrefix(query) => format!("{}:{}*", query.field, query.text),
        QueryKind::CombinedFields(query) => {
            let fields: Vec<&str> = query.fields.iter().map(|(name, _)| name.as_str()).collect();
            format!("CombinedFieldQuery(({}):({}))", fields.join(" "), query.text)
        }
        QueryKind::TermsSet(query) => {
            format!("{}:({})", query.field, query.values.iter().map(scalar).collect::<Vec<_>>().join(" "))
        }
        QueryKind::TermsLookup(query) => format!("{}:({}/{})", query.field, query.index, query.id),
        QueryKind::QueryString(query) => query.query.clone(),
        QueryKind::SimpleQueryString(query) => query.query.clone(),
        QueryKind::Boosting(query) => {
            format!("FunctionScoreQuery({}, scored by boost)", boosted(&query.positive))
        }
        QueryKind::FunctionScore(query) => format!("function score ({})", boosted(&query.query)),
        QueryKind::ScriptScore(query) => {
            format!("script_score ({}, script: {})", boosted(&query.query), query.script.source)
        }
        QueryKind::RankFeature(query) => format!("FeatureQuery(field={})", query.field),
        QueryKind::DistanceFeature(query) => format!("LongDistanceFeatureQuery(field={})", query.field),
        QueryKind::Intervals(query) => format!("intervals({})", query.field),
        QueryKind::MoreLikeThis(query) => {
            format!("like:{}", query.fields.as_deref().unwrap_or_default().join(","))
        }
        QueryKind::Nested { path, .. } => format!("nested({path})"),
        QueryKind::Bool(query) => boolean(query),
        QueryKind::ConstantScore { filter } => format!("ConstantScore({})", boosted(filter)),
        QueryKind::DisMax { queries, .. } => {
            format!("({})", queries.iter().map(boosted).collect::<Vec<_>>().join(" | "))
        }
        QueryKind::Lenient(query) => boosted(query),
        QueryKind::Sparse(query) => format!("sparse_vector({})", query.field),
        QueryKind::Semantic(query) => format!("semantic({}:{})", query.field, query.text),
        QueryKind::TextExpansion(query) => format!("text_expansion({})", query.field),
        QueryKind::Knn(query) => format!("KnnFloatVectorQuery:{}[{}]", query.field, query.k),
        QueryKind::KnnBuilder(query) => format!("KnnFloatVectorQuery:{}[{}]", query.knn.field, query.knn.k),
    }
}

fn boosted(query: &Query) -> String {
    match query.boost {
        1.0 => text(&query.kind),
        boost => format!("({})^{boost:?}", text(&query.kind)),
    }
}

fn boolean(query: &BoolQuery) -> String {
    let groups = [("+", &query.must), ("", &query.should), ("#", &query.filter), ("-", &query.must_not)];
    let clauses: Vec<String> = groups
        .iter()
        .flat_map(|(sign, clauses)| {
            clauses.iter().map(move |clause| match clause.kind {
                QueryKind::Bool(_) => format!("{sign}({})", boosted(clause)),
                _ => format!("{sign}{}", boosted(clause)),
            })
        })
        .collect();
    clauses.join(" ")
}

fn range(query: &RangeQuery) -> String {
    let (open, low) = match (&query.gte, &query.gt) {
        (Some(value), _) => ('[', scalar(value)),
        (None, Some(value)) => ('{', scalar(value)),
        (None, None) => ('[', "*".to_owned()),
    };
    let (high, close) = match (&query.lte, &query.lt) {
        (Some(value), _) => (scalar(value), ']'),
        (None, Some(value)) => (scalar(value), '}'),
        (None, None) => ("*".to_owned(), ']'),
    };
    format!("{}:{open}{low} TO {high}{close}", query.field)
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The explanation of a document that does not match a query.
pub(super) fn no_match(query: &Query, doc: DocId) -> String {
    match &query.kind {
        QueryKind::Bool(clause)
            if !(clause.must.is_empty() && clause.filter.is_empty() && clause.must_not.is_empty()) =>
        {
            "Failure to meet condition(s) of required/prohibited clause(s)".to_owned()
        }
        QueryKind::Bool(_) | QueryKind::Sparse(_) | QueryKind::Semantic(_) => {
            "No matching clauses".to_owned()
        }
        QueryKind::DisMax { .. } | QueryKind::MultiMatch(_) => "No matching clause".to_owned(),
        QueryKind::Knn(_) => "not in top k documents".to_owned(),
        kind => match who(kind) {
            Who::Constant(text) => format!("{text} doesn't match id {doc}"),
            Who::Itself | Who::Sentence(_) => "no matching term".to_owned(),
        },
    }
}

struct Labelled {
    inner: Box<dyn Weight>,
    text: String,
    constant: bool,
    scoring: bool,
}

impl Weight for Labelled {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        self.inner.scorer(reader, boost)
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        // A query may have thousands of clauses, each of which is opened anew for each document.
        work::check().map_err(|_| error::stopped())?;
        let score = weights::explain(self.scorer(reader, 1.0), doc, "")?.value();
        let score = if self.scoring { score } else { 1.0 };
        let mut explanation = Explanation::new_with_string(self.text.clone(), score);
        if self.constant {
            explanation.add_context(CONSTANT_TAG.to_owned());
        }
        Ok(explanation)
    }

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        self.inner.count(reader)
    }
}

/// A weight whose explanation has another description, such as `max of:`.
pub(in crate::query) fn described(inner: Box<dyn Weight>, description: String) -> Box<dyn Weight> {
    Box::new(Described { inner, description })
}

struct Described {
    inner: Box<dyn Weight>,
    description: String,
}

impl Weight for Described {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        self.inner.scorer(reader, boost)
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.inner.explain(reader, doc).map(|inner| renamed(&inner, &self.description))
    }

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        self.inner.count(reader)
    }
}

/// A copy of an explanation with another description; its details can only be read by way of JSON.
fn renamed(inner: &Explanation, description: &str) -> Explanation {
    fn rebuilt(raw: &Value, description: Option<&str>) -> Explanation {
        let text = description.or(raw["description"].as_str()).unwrap_or_default();
        let mut out =
            Explanation::new_with_string(text.to_owned(), raw["value"].as_f64().unwrap_or_default() as f32);
        for detail in raw["details"].as_array().into_iter().flatten() {
            out.add_detail(rebuilt(detail, None));
        }
        for context in raw["context"].as_array().into_iter().flatten() {
            out.add_context(context.as_str().unwrap_or_default().to_owned());
        }
        out
    }
    rebuilt(&serde_json::to_value(inner).unwrap_or_default(), Some(description))
}
