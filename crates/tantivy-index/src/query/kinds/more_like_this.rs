//! `more_like_this`: the most characteristic words of example texts and documents, any of which may match.
//!
//! A word is the more characteristic, the more often it occurs in the examples and the fewer documents have
//! it (tf · idf). The words of a document are counted field by field; the words of a text are analysed as in
//! the first field, and each is searched in the field where most documents have it. Which words these are
//! depends on the index, so that the clause is rewritten for each.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use tantivy::query::Weight;

use crate::query::compile::Compiler;
use crate::query::highlight::WantedWords;
use crate::query::kinds::Meaning;
use sparrow_mapping::{FieldType, values_at};
use sparrow_query::wildcard::Wildcard;
use sparrow_query::{
    BoolQuery, IdsQuery, LikeDocument, LikeExample, MoreLikeThisQuery, Query, QueryKind, TermQuery,
};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::minimum::minimum_should_match;
use sparrow_segments::schema::ID;

const CLAUSE: &str = "more_like_this";
/// Highest number of words of an example that are examined.
const MAX_TOKENS: usize = 200_000;

/// Number of occurrences of each word in the examples.
type Counts = FxHashMap<String, usize>;

/// Rewrites the clause into a `bool` of `term` clauses for one index.
///
/// # Errors
/// For fields of other types, analyzers that do not exist, and documents that the engine has not read.
pub(crate) fn rewrite(query: &MoreLikeThisQuery, compiler: &Compiler<'_>) -> Result<Query, QueryError> {
    let fields = fields(query, compiler)?;
    if fields.is_empty() {
        return Ok(QueryKind::MatchNone.into());
    }
    let mut selection = Selection {
        query,
        compiler,
        stop_words: query.stop_words.iter().map(String::as_str).collect(),
        skipped: FxHashSet::default(),
    };
    selection.skipped = selection.unlike(&fields)?;
    let mut clauses = Vec::new();
    let documents = documents(&query.like);
    if !documents.is_empty() {
        let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
        for document in &documents {
            selection.count_document(document, &fields, &mut counts)?;
        }
        let mut terms = Vec::new();
        for (field, counts) in counts {
            terms.extend(selection.select(counts, &[field])?);
        }
        clauses.push(any_of(terms, query)?);
    }
    let mut counts = Counts::default();
    for example in &query.like {
        if let LikeExample::Text(text) = example {
            selection.count(&fields[0], text, query.analyzer.as_deref(), &mut counts)?;
        }
    }
    if !counts.is_empty() {
        let terms = selection.select(counts, &fields)?;
        clauses.push(any_of(terms, query)?);
    }
    let itself: Vec<String> = match query.include {
        true => Vec::new(),
        false => documents
            .iter()
            .filter(|document| document.index.as_deref().is_none_or(|index| index == compiler.name()))
            .filter_map(|document| document.id.clone())
            .collect(),
    };
    Ok(match (clauses.len(), itself.is_empty()) {
        (0, _) => QueryKind::MatchNone.into(),
        (1, true) => clauses.remove(0),
        (_, no_ids) => {
            let ids = Query::new(QueryKind::Ids(IdsQuery { values: itself }));
            let must_not = if no_ids { Vec::new() } else { vec![ids] };
            QueryKind::Bool(BoolQuery { should: clauses, must_not, ..BoolQuery::default() }).into()
        }
    })
}

/// The fields that the query names, or all fields that have terms.
fn fields(query: &MoreLikeThisQuery, compiler: &Compiler<'_>) -> Result<Vec<String>, QueryError> {
    let has_terms = |path: &str| path != ID && compiler.string_terms(path).is_some();
    let Some(named) = &query.fields else {
        let all = compiler.expand_fields(&[("*".to_owned(), 1.0)])?.into_iter().map(|(path, _, _)| path);
        let mut all: Vec<String> = all.filter(|path| has_terms(path)).collect();
        // Words of texts are those of a text field, if there is any.
        all.sort_by_key(|path| !matches!(compiler.field_type(path), Some(FieldType::Text { .. })));
        return Ok(all);
    };
    let mut fields = Vec::with_capacity(named.len());
    for path in named {
        match compiler.field_type(path) {
            _ if has_terms(path) => fields.push(path.clone()),
            Some(_) if query.fail_on_unsupported_field => {
                let reason = format!("{CLAUSE} only supports text/keyword fields: [{path}]");
                return Err(QueryError::Invalid { reason });
            }
            _ => {}
        }
    }
    Ok(fields)
}

fn documents(examples: &[LikeExample]) -> Vec<&LikeDocument> {
    let documents = examples.iter().filter_map(|example| match example {
        LikeExample::Document(document) => Some(document),
        LikeExample::Text(_) => None,
    });
    documents.collect()
}

/// A characteristic word, with the field to search it in and its tf · idf score.
struct Telling {
    field: String,
    word: String,
    score: f32,
}

/// A clause that matches documents with at least `minimum_should_match` of the words.
fn any_of(terms: Vec<Telling>, query: &MoreLikeThisQuery) -> Result<Query, QueryError> {
    if terms.is_empty() {
        return Ok(QueryKind::MatchNone.into());
    }
    let least = minimum_should_match(terms.len(), &query.minimum_should_match)?.max(1);
    let lowest = terms.iter().map(|term| term.score).fold(f32::INFINITY, f32::min);
    let should = terms
        .into_iter()
        .map(|Telling { field, word, score }| {
            let boost = if query.boost_terms > 0.0 { query.boost_terms * score / lowest } else { 1.0 };
            Query::new(QueryKind::Term(TermQuery { field, value: word.into(), case_insensitive: false }))
                .with_boost(boost)
        })
        .collect();
    let minimum_should_match = Some(least.to_string());
    Ok(QueryKind::Bool(BoolQuery { should, minimum_should_match, ..BoolQuery::default() }).into())
}

struct Selection<'a> {
    query: &'a MoreLikeThisQuery,
    compiler: &'a Compiler<'a>,
    stop_words: FxHashSet<&'a str>,
    /// Words to be ignored because they occur in `unlike` examples, each with its field.
    skipped: FxHashSet<(String, String)>,
}

impl Selection<'_> {
    /// All words of the `unlike` examples, each with its field.
    fn unlike(&self, fields: &[String]) -> Result<FxHashSet<(String, String)>, QueryError> {
        let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
        for example in &self.query.unlike {
            match example {
                LikeExample::Document(document) => self.count_document(document, fields, &mut counts)?,
                LikeExample::Text(text) => {
                    for field in fields {
                        let analyzer = self.query.analyzer.as_deref();
                        self.count(field, text, analyzer, counts.entry(field.clone()).or_default())?;
                    }
                }
            }
        }
        let words = counts.into_iter().flat_map(|(field, words)| {
            words.into_keys().map(move |word| (field.clone(), word)).collect::<Vec<_>>()
        });
        Ok(words.collect())
    }

    /// Adds the words of a document to the counts, field by field.
    fn count_document(
        &self,
        document: &LikeDocument,
        fields: &[String],
        counts: &mut BTreeMap<String, Counts>,
    ) -> Result<(), QueryError> {
        let Some(sources) = &document.sources else {
            return Err(QueryError::NotLookedUp { field: CLAUSE.to_owned() });
        };
        let requested_fields: Option<Vec<String>> =
            document.fields.as_ref().map(|patterns| self.matching(patterns)).transpose()?;
        for (index, source) in sources {
            if index.as_deref().is_some_and(|index| index != self.compiler.name()) {
                continue;
            }
            for field in requested_fields.as_deref().unwrap_or(fields) {
                self.compiler.check_cancelled()?;
                let analyzer = document.analyzers.get(field).or(self.query.analyzer.as_ref());
                let mut values = Vec::new();
                let mapping = self.compiler.snapshot.mapping();
                values_at(source, &mapping.source_path(field), &mut values);
                for value in values {
                    let text = match value {
                        Value::String(text) => text.clone(),
                        Value::Number(number) => number.to_string(),
                        Value::Bool(flag) => flag.to_string(),
                        Value::Null | Value::Array(_) | Value::Object(_) => continue,
                    };
                    let counts = counts.entry(field.clone()).or_default();
                    self.count(field, &text, analyzer.map(String::as_str), counts)?;
                }
            }
        }
        Ok(())
    }

    /// Fields with terms that match the patterns of a document's own `fields` list.
    fn matching(&self, patterns: &[String]) -> Result<Vec<String>, QueryError> {
        let patterns: Vec<Wildcard> = patterns.iter().map(|pattern| Wildcard::new(pattern)).collect();
        let mut matching = Vec::new();
        for (path, _) in self.compiler.snapshot.mapping().named_fields() {
            self.compiler.check_cancelled()?;
            let is_wanted = patterns.iter().any(|pattern| pattern.matches(path, false));
            if is_wanted && self.compiler.string_terms(path).is_some() {
                matching.push(path.to_owned());
            }
        }
        Ok(matching)
    }

    /// Adds the words of a field's text to `counts`.
    fn count(
        &self,
        field: &str,
        text: &str,
        analyzer: Option<&str>,
        counts: &mut Counts,
    ) -> Result<(), QueryError> {
        self.compiler.check_cancelled()?;
        let snapshot = self.compiler.snapshot;
        let analyzer = match analyzer {
            Some(name) => match snapshot.analysis().analyzer(name) {
                Some(analyzer) => Some(analyzer),
                None => return Err(QueryError::UnknownAnalyzer { clause: CLAUSE, name: name.to_owned() }),
            },
            None => snapshot.index_analyzer(field),
        };
        let mut add = |word: String| {
            if self.counts(field, &word) {
                *counts.entry(word).or_default() += 1;
            }
        };
        match analyzer {
            None => add(text.to_owned()),
            Some(analyzer) => analyzer.tokens(text).take(MAX_TOKENS).for_each(|token| add(token.text)),
        }
        Ok(())
    }

    /// Whether a word may be selected: it is of the right length and neither a stop word nor ignored.
    fn counts(&self, field: &str, word: &str) -> bool {
        let MoreLikeThisQuery { min_word_length, max_word_length, .. } = *self.query;
        let length = word.chars().count();
        length >= min_word_length
            && (max_word_length == 0 || length <= max_word_length)
            && !self.stop_words.contains(word)
            && (self.skipped.is_empty() || !self.skipped.contains(&(field.to_owned(), word.to_owned())))
    }

    /// The words with the highest tf · idf, each with the field in which most documents have it.
    fn select(&self, counts: Counts, fields: &[String]) -> Result<Vec<Telling>, QueryError> {
        let searcher = self.compiler.searcher();
        let docs = searcher.num_docs();
        let mut selected = Vec::new();
        for (word, count) in counts {
            if count < self.query.min_term_freq {
                continue;
            }
            self.compiler.check_cancelled()?;
            let mut most = (0, &fields[0]);
            for field in fields {
                let Some(terms) = self.compiler.string_terms(field) else { continue };
                let doc_freq = searcher.doc_freq(&terms.term(&word))?;
                if doc_freq > most.0 {
                    most = (doc_freq, field);
                }
            }
            let (doc_freq, field) = most;
            if doc_freq == 0 || doc_freq < self.query.min_doc_freq || doc_freq > self.query.max_doc_freq {
                continue;
            }
            let idf = ((docs + 1) as f64 / (doc_freq + 1) as f64).ln() + 1.0;
            selected.push(Telling { field: field.clone(), word, score: count as f32 * idf as f32 });
        }
        selected.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.word.cmp(&b.word)));
        selected.truncate(self.query.max_query_terms);
        Ok(selected)
    }
}

impl Meaning for MoreLikeThisQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        let tree = rewrite(self, &*compiler)?;
        compiler.compile(&tree, scoring)
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        let tree = rewrite(self, &wanted.compiler)?;
        wanted.of(&tree)
    }
}
