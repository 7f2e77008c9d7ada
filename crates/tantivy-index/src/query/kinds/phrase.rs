//! Compiles `match_phrase` and `match_phrase_prefix`.

use tantivy::query::{EnableScoring, PhraseQuery, Query as _, Weight};

use crate::query::compile::Compiler;
use crate::query::filters::key::Key;
use crate::query::highlight::WantedWords;
use crate::query::kinds::Meaning;
use crate::query::kinds::text::any;
use sparrow_mapping::{FieldType, TextIndexOptions};
use sparrow_query::{MatchPhrasePrefixQuery, MatchPhraseQuery, ZeroTerms};
use sparrow_scoring::analyzed::{all_paths, sections};
use sparrow_scoring::bm25::{bm25_weight, term_weight};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::fields::StringTerms;
use sparrow_scoring::fuzzy::DEFAULT_EXPANSIONS;
use sparrow_scoring::multi_term::{TermFilter, first_terms};
use sparrow_scoring::scored::{Bm25, PhraseWeight};
use sparrow_scoring::weights;

/// Words of a request's phrases up to which tantivy's own scorer finds them. It is the faster one, but it never looks whether its request is
/// to stop, and more words than these take it seconds in a large segment.
const FEW_WORDS: usize = 16;

impl Compiler<'_> {
    pub(crate) fn match_phrase(
        &mut self,
        query: &MatchPhraseQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let Some(terms) = self.string_terms(&query.field) else {
            return self.match_other(&query.field, &query.text, false, scoring);
        };
        let tokens = self.analyze(&terms, &query.text, query.analyzer.as_deref(), "match_phrase")?;
        let paths = all_paths(&sections(tokens)?)?;
        let mut ways = Vec::with_capacity(paths.len());
        for path in &paths {
            ways.push(match &path[..] {
                [] if query.zero_terms_query == ZeroTerms::All => weights::all(1.0, scoring),
                [] => weights::none(),
                [(_, values)] => {
                    self.count_clause()?;
                    self.synonyms(&terms, values, scoring)?
                }
                places => self.phrase(&terms, places, query.slop, scoring)?,
            });
        }
        Ok(any(ways, scoring))
    }

    pub(crate) fn match_phrase_prefix(
        &mut self,
        query: &MatchPhrasePrefixQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        const CLAUSE: &str = "match_phrase_prefix";
        let MatchPhrasePrefixQuery { phrase, max_expansions } = query;
        let terms = match self.snapshot.mapping().field(&phrase.field) {
            Some(FieldType::Text { .. }) => self.string_terms(&phrase.field),
            Some(FieldType::Keyword { .. }) => {
                let actual = "keyword";
                return Err(QueryError::Unsupported {
                    field: phrase.field.clone(),
                    actual,
                    clause: "phrase prefix",
                });
            }
            _ => None,
        };
        let Some(terms) = terms else { return self.unsupported(&phrase.field, "phrase prefix") };
        let tokens = self.analyze(&terms, &phrase.text, phrase.analyzer.as_deref(), CLAUSE)?;
        let sections = sections(tokens)?;
        let limit = if *max_expansions == 0 { DEFAULT_EXPANSIONS } else { *max_expansions };
        let mut ways = Vec::new();
        for mut places in all_paths(&sections)? {
            let Some((at, starts)) = places.pop() else {
                return Ok(match phrase.zero_terms_query {
                    ZeroTerms::All => weights::all(1.0, scoring),
                    ZeroTerms::None => weights::none(),
                });
            };
            let mut ends: Vec<String> = Vec::new();
            for start in starts {
                let filter = TermFilter::Prefix(start);
                for expansion in first_terms(self.searcher(), &terms, &filter, false, limit, self.cancel())? {
                    if ends.len() < limit && !ends.contains(&expansion.value) {
                        ends.push(expansion.value);
                    }
                }
            }
            // The words of a phrase are counted with it.
            self.count_clauses(if places.is_empty() { ends.len().max(1) } else { 1 })?;
            if ends.is_empty() {
                continue;
            }
            if places.is_empty() {
                let statistics = self.statistics(&terms, scoring)?;
                for end in &ends {
                    ways.push(term_weight(self.searcher(), statistics, &terms, end, None)?);
                }
                continue;
            }
            places.push((at, ends));
            ways.push(self.phrase(&terms, &places, phrase.slop, scoring)?);
        }
        Ok(any(ways, scoring))
    }

    /// A phrase of two or more places, each with the terms that may stand there.
    pub(crate) fn phrase(
        &mut self,
        terms: &StringTerms,
        places: &[(usize, Vec<String>)],
        slop: u32,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        // Each word has postings of its own, so each counts, as in Lucene.
        self.count_clauses(places.iter().map(|(_, values)| values.len()).sum())?;
        if !matches!(self.snapshot.mapping().field(&terms.path), Some(FieldType::Text { .. })) {
            let actual = self.snapshot.mapping().field(&terms.path).map_or("_id", FieldType::name);
            return Err(QueryError::Unsupported { field: terms.path.clone(), actual, clause: "phrase" });
        }
        if let Some(FieldType::Text { options }) = self.snapshot.mapping().field(&terms.path)
            && options.index_options != TextIndexOptions::Positions
        {
            return Err(QueryError::Invalid {
                reason: format!(
                    "field:[{}] was indexed without position data; cannot run PhraseQuery",
                    terms.path
                ),
            });
        }
        let statistics = self.statistics(terms, scoring)?;
        let single: Option<Vec<_>> = places
            .iter()
            .map(|(at, values)| match &values[..] {
                [value] if slop == 0 && self.clauses() <= FEW_WORDS => Some((*at, terms.term(value))),
                _ => None,
            })
            .collect();
        if let Some(offsets) = single {
            let all: Vec<_> = offsets.iter().map(|(_, term)| term.clone()).collect();
            let phrase = PhraseQuery::new_with_offset(offsets);
            return match statistics {
                Some(statistics) => bm25_weight(self.searcher(), statistics, &phrase, &all, None),
                None => Ok(phrase.weight(EnableScoring::disabled_from_searcher(self.searcher()))?),
            };
        }
        let mut frequencies = Vec::new();
        let mut parts = Vec::with_capacity(places.len());
        let first = places.first().map_or(0, |(at, _)| *at);
        for (at, values) in places {
            let mut here = Vec::with_capacity(values.len());
            for value in values {
                let term = terms.term(value);
                let doc_freq = self.searcher().doc_freq(&term)?;
                if doc_freq > 0 {
                    frequencies.push(doc_freq);
                    here.push(term);
                }
            }
            if here.is_empty() {
                return Ok(weights::none());
            }
            parts.push(((at - first) as u32, here));
        }
        let bm25 = statistics.map(|statistics| Bm25::new(statistics, &frequencies));
        Ok(Box::new(PhraseWeight::new(terms.field, parts, slop, bm25)))
    }
}

impl Meaning for MatchPhraseQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.match_phrase(self, scoring)
    }

    fn filter_key(&self, key: &mut Key) -> Option<()> {
        let MatchPhraseQuery { field, text, slop, analyzer, zero_terms_query } = self;
        key.tag(9).text(field).text_value(text)?.option(analyzer.as_deref());
        key.number(u64::from(*slop)).flag(*zero_terms_query == ZeroTerms::All);
        Some(())
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.phrase(self, false)
    }
}

impl Meaning for MatchPhrasePrefixQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.match_phrase_prefix(self, scoring)
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.phrase(&self.phrase, true)
    }
}
