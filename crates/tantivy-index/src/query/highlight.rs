//! Finds the words of a text that match a query, for highlighting.
//!
//! A [`TextMatcher`] is what a query looks for in one field. The text is tokenized by the field's own
//! analyzer, so that whatever a search finds is marked, however it is written.

use std::ops::Range;

use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::query::compile::Compiler;
use crate::query::kinds::meaning;
use crate::query::kinds::term::scalar_text;
use crate::snapshot::Snapshot;
use sparrow_mapping::FieldType;
use sparrow_query::{MatchPhraseQuery, MatchQuery, Query};
use sparrow_runtime::work;
use sparrow_scoring::analyzed::{all_paths, sections};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::fuzzy::{Fuzzy, expand_fuzzy};
use sparrow_scoring::multi_term::TermFilter;

/// Highest number of tokens of a text that are examined.
const MAX_TOKENS: usize = 200_000;

/// The terms, patterns and phrases that a query looks for in one field.
#[derive(Default)]
pub struct TextMatcher {
    terms: FxHashMap<String, ()>,
    patterns: Vec<(TermFilter, bool)>,
    phrases: Vec<Phrase>,
}

struct Phrase {
    /// Position of each place in the phrase, and the terms that may stand there.
    terms: Vec<(usize, Vec<String>)>,
    slop: u32,
    /// Whether the last term is only the start of a term.
    prefix: bool,
}

/// A stretch of a text that matches a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextMatch {
    /// Byte range in the text.
    pub range: Range<usize>,
    /// The term, or the terms of a phrase, as the index holds them.
    pub term: String,
}

/// The tokens of a text, and which of them match.
#[derive(Debug, Default)]
pub struct MatchedText {
    /// Byte range of each token, ascending.
    pub tokens: Vec<Range<usize>>,
    /// Matching words, one by one, ascending.
    pub words: Vec<TextMatch>,
    /// Matching stretches, with each phrase as one, ascending and disjoint.
    pub spans: Vec<TextMatch>,
}

impl MatchedText {
    /// Adds the matches of another field that holds the same text.
    pub fn add(&mut self, other: MatchedText) {
        for (merged, more) in [(&mut self.words, other.words), (&mut self.spans, other.spans)] {
            merged.extend(more);
            merged.sort_by_key(|place| (place.range.start, std::cmp::Reverse(place.range.end)));
            *merged = disjoint(std::mem::take(merged));
        }
        if self.tokens.is_empty() {
            self.tokens = other.tokens;
        }
    }
}

impl TextMatcher {
    /// Whether the query looks for nothing in this field.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.patterns.is_empty() && self.phrases.is_empty()
    }

    fn accepts(&self, token: &str) -> bool {
        self.terms.contains_key(token)
            || self.patterns.iter().any(|(filter, fold)| filter.accepts(token, *fold))
    }
}

struct TextToken {
    text: String,
    position: usize,
    range: Range<usize>,
}

impl Snapshot {
    /// Collects what queries look for in a field; with `any_field` also what they look for in other fields.
    ///
    /// # Errors
    /// As [`Snapshot::search`].
    pub fn text_matcher(
        &self,
        queries: &[&Query],
        field: &str,
        any_field: bool,
    ) -> Result<TextMatcher, QueryError> {
        let mut wanted = WantedWords {
            compiler: Compiler::new(self, None),
            field: &self.mapping().concrete(field),
            any_field,
            matcher: TextMatcher::default(),
        };
        for query in queries {
            wanted.of(query)?;
        }
        Ok(wanted.matcher)
    }

    /// Finds the parts of a field's text that match.
    ///
    /// # Errors
    /// When the field has no analyzer any more.
    pub fn match_text(
        &self,
        matcher: &TextMatcher,
        field: &str,
        text: &str,
    ) -> Result<MatchedText, QueryError> {
        let tokens = Compiler::new(self, None).text_tokens(field, text)?;
        work::check()?;
        let mut matched = MatchedText {
            tokens: tokens.iter().map(|token| token.range.clone()).collect(),
            ..MatchedText::default()
        };
        let of = |token: &TextToken| TextMatch { range: token.range.clone(), term: token.text.clone() };
        let mut spans: Vec<TextMatch> =
            tokens.iter().filter(|token| matcher.accepts(&token.text)).map(of).collect();
        let mut words = spans.clone();
        let mut marked = vec![false; tokens.len()];
        for phrase in &matcher.phrases {
            phrase.find(&tokens, |members| {
                let ranges = || members.iter().map(|at| &tokens[*at].range);
                let start = ranges().map(|range| range.start).min().unwrap_or_default();
                let end = ranges().map(|range| range.end).max().unwrap_or_default();
                members.iter().for_each(|at| marked[*at] = true);
                // Occurrences that overlap become one span, which keeps the term of the first: of a word that is repeated all over, each
                // begins an occurrence, and their terms together would be as long as the text times the phrase.
                let is_later = spans.last().is_some_and(|last| {
                    let last = &last.range;
                    last.contains(&start) && !(start == last.start && end > last.end)
                });
                let term = match is_later {
                    true => String::new(),
                    false => members.iter().map(|at| tokens[*at].text.as_str()).collect::<Vec<_>>().join(" "),
                };
                spans.push(TextMatch { range: start..end, term });
            })?;
        }
        words.extend(tokens.iter().zip(&marked).filter(|(_, marked)| **marked).map(|(token, _)| of(token)));
        words.sort_by_key(|word| (word.range.start, word.range.end));
        words.dedup_by(|a, b| a.range == b.range);
        matched.words = disjoint(words);
        spans.sort_by_key(|span| (span.range.start, std::cmp::Reverse(span.range.end)));
        matched.spans = disjoint(spans);
        Ok(matched)
    }
}

/// Merges overlapping matches into one, which keeps the term of the first. `sorted` ascends.
fn disjoint(sorted: Vec<TextMatch>) -> Vec<TextMatch> {
    let mut out: Vec<TextMatch> = Vec::with_capacity(sorted.len());
    for next in sorted {
        match out.last_mut() {
            Some(last) if next.range.start < last.range.end => {
                last.range.end = last.range.end.max(next.range.end);
            }
            _ => out.push(next),
        }
    }
    out
}

impl Phrase {
    /// Hands over each occurrence of the phrase: the numbers of its tokens, ascending.
    ///
    /// # Errors
    /// When the request of the thread is over a limit.
    fn find(&self, tokens: &[TextToken], mut found: impl FnMut(&[usize])) -> Result<(), QueryError> {
        let Some(last) = self.terms.len().checked_sub(1) else { return Ok(()) };
        let fits = |number: usize, token: &TextToken| {
            self.terms[number].1.iter().any(|term| match self.prefix && number == last {
                true => token.text.starts_with(term.as_str()),
                false => token.text == *term,
            })
        };
        // Where each term stands; one that is repeated in the phrase stands where it did before.
        let mut lists: Vec<Vec<usize>> = Vec::new();
        let mut of_terms: FxHashMap<(&[String], bool), usize> = FxHashMap::default();
        let mut list_of = vec![0];
        for number in 1..self.terms.len() {
            work::check()?;
            let key = (&self.terms[number].1[..], self.prefix && number == last);
            list_of.push(*of_terms.entry(key).or_insert_with(|| {
                let fitting = tokens.iter().enumerate().filter(|(_, token)| fits(number, token));
                lists.push(fitting.map(|(at, _)| at).collect());
                lists.len() - 1
            }));
        }
        let mut members: Vec<usize> = Vec::with_capacity(self.terms.len());
        // The occurrence that each token belongs to, by its first token and one more.
        let mut taken = vec![0; tokens.len()];
        for (at, token) in tokens.iter().enumerate() {
            if !fits(0, token) {
                continue;
            }
            work::check()?;
            // Positions as if every term stood where the first one does; a match is as long as they spread.
            let adjusted = |number: usize, at: usize| {
                tokens[at].position as i64 - self.terms[number].0 as i64 + self.terms[0].0 as i64
            };
            let origin = adjusted(0, at);
            let (mut least, mut most) = (origin, origin);
            members.clear();
            members.push(at);
            taken[at] = at + 1;
            for number in 1..self.terms.len() {
                let fitting = &lists[list_of[number]];
                let after = fitting.partition_point(|other| adjusted(number, *other) < origin);
                let near = [after.checked_sub(1), Some(after)].into_iter().flatten();
                let nearest = near
                    .filter_map(|place| fitting.get(place).copied())
                    .filter(|other| taken[*other] != at + 1)
                    .min_by_key(|other| (adjusted(number, *other) - origin).abs());
                let Some(nearest) = nearest else { break };
                least = least.min(adjusted(number, nearest));
                most = most.max(adjusted(number, nearest));
                members.push(nearest);
                taken[nearest] = at + 1;
            }
            if members.len() == self.terms.len() && most - least <= i64::from(self.slop) {
                members.sort_unstable();
                found(&members);
            }
        }
        Ok(())
    }
}

/// Collects what a tree of queries looks for in one field.
pub(super) struct WantedWords<'a> {
    pub(super) compiler: Compiler<'a>,
    /// Path of the field, no alias of it.
    field: &'a str,
    any_field: bool,
    matcher: TextMatcher,
}

impl WantedWords<'_> {
    pub(super) fn is_wanted(&self, field: &str) -> bool {
        self.any_field || self.compiler.snapshot.mapping().concrete(field) == self.field
    }

    /// Collects what a clause looks for.
    pub(super) fn of(&mut self, query: &Query) -> Result<(), QueryError> {
        meaning(&query.kind).words(self)
    }

    /// Collects the terms of a text; with `prefix` the last one is only the beginning of a term.
    pub(super) fn text(&mut self, query: &MatchQuery, prefix: bool) -> Result<(), QueryError> {
        if !self.is_wanted(&query.field) {
            return Ok(());
        }
        let Some(terms) = self.compiler.string_terms(&query.field) else { return Ok(()) };
        let tokens = self.compiler.analyze(&terms, &query.text, query.analyzer.as_deref(), "match")?;
        let last = tokens.last().map(|token| token.position);
        for token in tokens {
            match &query.fuzziness {
                _ if prefix && Some(token.position) == last => {
                    self.matcher.patterns.push((TermFilter::Prefix(token.text), false));
                }
                Some(fuzziness) => {
                    let (prefix_length, most) = (query.prefix_length, query.max_expansions);
                    let fuzzy = Fuzzy::new(&token.text, fuzziness, prefix_length, most)?
                        .with_transpositions(!query.without_transpositions);
                    self.fuzzy(&query.field, &fuzzy)?;
                }
                None => {
                    self.matcher.terms.insert(token.text, ());
                }
            }
        }
        Ok(())
    }

    pub(super) fn phrase(&mut self, query: &MatchPhraseQuery, prefix: bool) -> Result<(), QueryError> {
        if !self.is_wanted(&query.field) {
            return Ok(());
        }
        let Some(terms) = self.compiler.string_terms(&query.field) else { return Ok(()) };
        let tokens = self.compiler.analyze(&terms, &query.text, query.analyzer.as_deref(), "match_phrase")?;
        for path in all_paths(&sections(tokens)?)? {
            match &path[..] {
                [(_, terms)] if !prefix => {
                    self.matcher.terms.extend(terms.iter().map(|term| (term.clone(), ())));
                }
                _ => self.matcher.phrases.push(Phrase { terms: path, slop: query.slop, prefix }),
            }
        }
        Ok(())
    }

    pub(super) fn values(&mut self, field: &str, values: &[Value], fold: bool) -> Result<(), QueryError> {
        if !self.is_wanted(field) || self.compiler.string_terms(field).is_none() {
            return Ok(());
        }
        for value in values {
            let text = scalar_text(field, value)?;
            match fold {
                true => self.matcher.patterns.push((TermFilter::Set(vec![text]), true)),
                false => {
                    self.matcher.terms.insert(text, ());
                }
            }
        }
        Ok(())
    }

    pub(super) fn pattern(&mut self, field: &str, filter: TermFilter, fold: bool) {
        if self.is_wanted(field) && self.compiler.string_terms(field).is_some() {
            self.matcher.patterns.push((filter, fold));
        }
    }

    pub(super) fn fuzzy(&mut self, field: &str, fuzzy: &Fuzzy) -> Result<(), QueryError> {
        let Some(terms) = self.compiler.string_terms(field) else { return Ok(()) };
        let expansions = expand_fuzzy(self.compiler.searcher(), &terms, fuzzy, None)?;
        self.matcher.terms.extend(expansions.into_iter().map(|expansion| (expansion.value, ())));
        Ok(())
    }
}

impl Compiler<'_> {
    /// Tokenizes a text with the field's own analyzer; empty for fields without terms.
    fn text_tokens(&self, field: &str, text: &str) -> Result<Vec<TextToken>, QueryError> {
        let analyzer = match (self.snapshot.mapping().field(field), self.snapshot.index_analyzer(field)) {
            (_, Some(analyzer)) => analyzer,
            (Some(FieldType::Keyword { .. }), None) => {
                return Ok(vec![TextToken { text: text.to_owned(), position: 0, range: 0..text.len() }]);
            }
            _ => return Ok(Vec::new()),
        };
        let mut tokens = Vec::new();
        for token in analyzer.tokens(text).take(MAX_TOKENS) {
            let range = token.start..token.end;
            if text.get(range.clone()).is_some_and(|part| !part.is_empty()) {
                tokens.push(TextToken { text: token.text, position: token.position, range });
            }
        }
        tokens.sort_by_key(|token| (token.range.start, token.range.end));
        Ok(tokens)
    }
}
