//! The `term` suggester: terms of a field that are similar to the words of a text.

use std::sync::atomic::AtomicBool;

use rustc_hash::FxHashMap;

use crate::query::compile::Compiler;
use crate::snapshot::Snapshot;
use sparrow_analysis::{StringDistance, edit_distance};
use sparrow_query::{QueryKind, TermQuery};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::multi_term::{TermFilter, scan_terms};

/// Highest number of words in a text that suggestions are made for.
const MAX_WORDS: usize = 1_000;

/// Parameters of a `term` suggester.
#[derive(Debug, Clone, PartialEq)]
pub struct TermSuggest {
    /// Path of a `text` or `keyword` field.
    pub field: String,
    /// Text whose words are to be corrected.
    pub text: String,
    /// Analyzer for the text; `None` for the field's own search analyzer.
    pub analyzer: Option<String>,
    /// Highest number of suggestions for each word.
    pub size: usize,
    /// Whether suggestions are sorted by frequency first instead of by similarity.
    pub by_frequency: bool,
    /// Which words get suggestions.
    pub mode: SuggestMode,
    /// Highest number of edits between a word and a suggestion: 1 or 2.
    pub max_edits: usize,
    /// Number of leading characters that a suggestion must share with the word.
    pub prefix_length: usize,
    /// Shortest word that gets suggestions, in characters.
    pub min_word_length: usize,
    /// Number of terms examined for each suggestion wanted.
    pub max_inspections: usize,
    /// Lowest number of documents that have a suggested term; a value below 1 is a share of all documents.
    pub min_doc_freq: f32,
    /// Highest number of documents that have a word which gets suggestions; a value below 1 is a share of all
    /// documents.
    pub max_term_freq: f32,
    /// Measure of similarity between words and suggestions.
    pub distance: StringDistance,
    /// Lowest similarity of a suggestion, from 0 to 1.
    pub accuracy: f32,
}

impl Default for TermSuggest {
    fn default() -> Self {
        Self {
            field: String::new(),
            text: String::new(),
            analyzer: None,
            size: 5,
            by_frequency: false,
            mode: SuggestMode::Missing,
            max_edits: 2,
            prefix_length: 1,
            min_word_length: 4,
            max_inspections: 5,
            min_doc_freq: 0.0,
            max_term_freq: 0.01,
            distance: StringDistance::DamerauLevenshtein,
            accuracy: 0.5,
        }
    }
}

/// Which words get suggestions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SuggestMode {
    /// Only for words that no document has.
    #[default]
    Missing,
    /// Only suggestions that are in more documents than the word.
    Popular,
    /// All suggestions for all words.
    Always,
}

/// A word of a text with its suggestions, best first.
#[derive(Debug, Clone, PartialEq)]
pub struct SuggestedWord {
    /// The word in the form that the analyzer gives it.
    pub word: String,
    /// Byte range of the word in the text.
    pub range: std::ops::Range<usize>,
    /// Suggested terms, best first.
    pub options: Vec<SuggestedTerm>,
}

/// A suggested term.
#[derive(Debug, Clone, PartialEq)]
pub struct SuggestedTerm {
    /// The term as the index holds it.
    pub term: String,
    /// Similarity to the word, from 0 to 1.
    pub score: f32,
    /// Number of documents that have the term.
    pub doc_freq: u64,
}

impl TermSuggest {
    /// Sorts suggestions, best first.
    pub fn sort(&self, options: &mut [SuggestedTerm]) {
        options.sort_by(|a, b| {
            let (score, freq) = (b.score.total_cmp(&a.score), b.doc_freq.cmp(&a.doc_freq));
            let order = if self.by_frequency { freq.then(score) } else { score.then(freq) };
            order.then_with(|| a.term.cmp(&b.term))
        });
    }
}

impl Snapshot {
    /// The words of a text with terms similar to them; `None` if the field is not mapped.
    ///
    /// # Errors
    /// For fields without terms, analyzers that do not exist, and texts of more than 1,000 words.
    pub fn suggest_terms(
        &self,
        request: &TermSuggest,
        cancel: &AtomicBool,
    ) -> Result<Option<Vec<SuggestedWord>>, QueryError> {
        let compiler = Compiler::new(self, Some(cancel));
        let Some(field_type) = self.mapping().field(&request.field) else { return Ok(None) };
        let Some(terms) = compiler.string_terms(&request.field) else {
            return Err(QueryError::Unsupported {
                field: request.field.clone(),
                actual: field_type.name(),
                clause: "suggest",
            });
        };
        let mut words = words(self, request)?;
        for word in &mut words {
            let letters: Vec<char> = word.word.chars().collect();
            if letters.len() < request.min_word_length {
                continue;
            }
            let doc_freq = self.visible_docs(&request.field, &word.word)?;
            let Some(more_than) = self.least_frequency(request, doc_freq) else { continue };
            let mut near: FxHashMap<String, (usize, u64)> = FxHashMap::default();
            let shared: String = letters.iter().take(request.prefix_length).collect();
            let filter = TermFilter::Prefix(shared);
            scan_terms(self.searcher(), &terms, &filter, false, Some(cancel), &mut |term, doc_freq| {
                if term != word.word
                    && let Some(distance) = distance(&letters, term, request.max_edits)
                {
                    near.entry(term.to_owned()).or_insert((distance, 0)).1 += doc_freq;
                }
                true
            })?;
            for option in best(request, &letters, near, more_than) {
                if word.options.len() == request.size {
                    break;
                }
                let doc_freq = self.visible_docs(&request.field, &option.term)?;
                if doc_freq > more_than {
                    word.options.push(SuggestedTerm { doc_freq, ..option });
                }
            }
        }
        Ok(Some(words))
    }

    /// Number of visible documents that have a term: neither deleted nor hidden by the filter of an alias.
    fn visible_docs(&self, field: &str, term: &str) -> Result<u64, QueryError> {
        let (field, value) = (field.to_owned(), term.into());
        self.count(&QueryKind::Term(TermQuery { field, value, case_insensitive: false }).into())
    }

    /// Document frequency that suggestions for a word must exceed; `None` if the word gets no suggestions.
    fn least_frequency(&self, request: &TermSuggest, doc_freq: u64) -> Option<u64> {
        if request.mode == SuggestMode::Missing && doc_freq > 0 {
            return None;
        }
        let docs =
            self.searcher().segment_readers().iter().map(|reader| u64::from(reader.max_doc())).sum::<u64>();
        let most = match request.max_term_freq {
            number if number >= 1.0 => f64::from(number),
            share => (f64::from(share) * docs as f64).ceil(),
        };
        if doc_freq as f64 > most {
            return None;
        }
        let frequency_of_text = if request.mode == SuggestMode::Popular { doc_freq } else { 0 };
        let least = match request.min_doc_freq {
            number if number >= 1.0 => number as u64,
            share if share > 0.0 => ((f64::from(share) * docs as f64) as u64).saturating_sub(1),
            _ => 0,
        };
        Some(frequency_of_text.max(least))
    }
}

fn words(snapshot: &Snapshot, request: &TermSuggest) -> Result<Vec<SuggestedWord>, QueryError> {
    let analyzer = match &request.analyzer {
        Some(name) => Some(
            snapshot
                .analysis()
                .analyzer(name)
                .ok_or_else(|| QueryError::UnknownAnalyzer { clause: "term", name: name.clone() })?,
        ),
        None => snapshot.search_analyzer(&request.field, false),
    };
    let Some(analyzer) = analyzer else {
        let range = 0..request.text.len();
        return Ok(vec![SuggestedWord { word: request.text.clone(), range, options: Vec::new() }]);
    };
    let mut words = Vec::new();
    for token in analyzer.tokens(&request.text) {
        if words.len() >= MAX_WORDS {
            let reason = format!("suggestions are made for at most [{MAX_WORDS}] words of a text");
            return Err(QueryError::Invalid { reason });
        }
        words.push(SuggestedWord { word: token.text, range: token.start..token.end, options: Vec::new() });
    }
    Ok(words)
}

/// Number of edits between a word and a term, if at most `most`; two edits are only allowed where both begin
/// with the same letter.
fn distance(word: &[char], term: &str, most: usize) -> Option<usize> {
    edit_distance(word, term, most, true)
        .filter(|edits| *edits < 2 || term.chars().next() == word.first().copied())
}

/// The best suggestions among the terms near a word.
fn best(
    request: &TermSuggest,
    word: &[char],
    near: FxHashMap<String, (usize, u64)>,
    more_than: u64,
) -> Vec<SuggestedTerm> {
    let mut suggestions: Vec<(f32, usize, SuggestedTerm)> = near
        .into_iter()
        .filter(|(_, (_, doc_freq))| *doc_freq > more_than)
        .filter_map(|(term, (edits, doc_freq))| {
            let letters: Vec<char> = term.chars().collect();
            let score = request.distance.similarity(word, &letters);
            let nearness = 1.0 - edits as f32 / word.len().min(letters.len()).max(1) as f32;
            (score >= request.accuracy).then_some((nearness, edits, SuggestedTerm { term, score, doc_freq }))
        })
        .collect();
    let inspected = request.size.saturating_mul(request.max_inspections);
    // Terms two edits away are looked at where those one edit away are too few.
    if suggestions.iter().filter(|(_, edits, _)| *edits < 2).count() >= inspected {
        suggestions.retain(|(_, edits, _)| *edits < 2);
    }
    suggestions.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.2.term.cmp(&b.2.term)));
    suggestions.truncate(inspected);
    let mut options: Vec<SuggestedTerm> = suggestions.into_iter().map(|(_, _, option)| option).collect();
    request.sort(&mut options);
    options
}
