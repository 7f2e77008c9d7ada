//! Searches for the words of a text: any of them, all of them, or as a phrase. They are run by
//! `sparrow-lexical`, which reads posting lists itself.
//!
//! Scores are those of the weights that [`Compiler`] makes of the same clauses, to the last bit; queries that
//! these searches do not support are left to those.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use tantivy::postings::TermInfo;
use tantivy::{DocAddress, DocId, Term};

use crate::query::compile::Compiler;
use crate::query::kinds::required_should;
use crate::query::search::is_over;
use crate::query::search::top_docs::TopCollector;
use crate::query::{ScoredDoc, SearchOptions, TopDocs, TotalHits};
use crate::segment_snapshot::SegmentSnapshot;
use crate::snapshot::Snapshot;
use sparrow_lexical::TextField;
use sparrow_lexical::all::{self, Hits, Place};
use sparrow_lexical::any::{self, Clause};
use sparrow_mapping::{FieldType, TextIndexOptions};
use sparrow_query::{MatchPhraseQuery, MatchQuery, Operator, Query, QueryKind, ZeroTerms};
use sparrow_scoring::analyzed::QueryToken;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::fields::StringTerms;
use sparrow_scoring::minimum::minimum_should_match;
use sparrow_scoring::statistics::{FieldStatistics, bm25_factor};
use sparrow_segments::segment_docs::SegmentDocs;

/// Lowest weight for which scores are still normal floating-point numbers.
const LEAST_WEIGHT: f32 = 1e-20;

/// A term of a text field, with its posting lists.
pub(crate) struct Word {
    field: Arc<TextField>,
    /// Location of the term's posting list in each segment; `None` where no document has it.
    infos: Vec<Option<TermInfo>>,
    /// BM25 weight of the term: idf, `k1 + 1` and boost multiplied.
    weight: f32,
}

impl Word {
    /// A term of a field that [`Compiler::text_field`] knows, and its document frequency. `None` if more
    /// documents have the term than have a length, or if its weight is too small or not finite.
    pub(crate) fn find(
        field: &Arc<TextField>,
        term: &Term,
        statistics: FieldStatistics,
        boost: f32,
    ) -> Result<Option<(Self, u64)>, QueryError> {
        let (infos, doc_freq) = field.term(term)?;
        // A text without a single token leaves a field name but no length.
        if doc_freq > statistics.docs {
            return Ok(None);
        }
        let weight = if doc_freq == 0 { 0.0 } else { bm25_factor(&[doc_freq], statistics.docs, boost) };
        let usable = doc_freq == 0 || (LEAST_WEIGHT..f32::INFINITY).contains(&weight);
        Ok(usable.then(|| (Self { field: Arc::clone(field), infos, weight }, doc_freq)))
    }

    /// Length of the term's posting lists in all segments.
    fn postings(&self) -> u64 {
        self.infos.iter().flatten().map(|info| u64::from(info.doc_freq)).sum()
    }

    /// The term's clause in a segment; `None` if no document there has the term.
    fn clause(&self, ord: u32, weight: f32) -> Option<Clause<'_>> {
        let info = self.infos[ord as usize].as_ref()?;
        let field = self.field.segment(ord)?;
        Some(Clause { list: field.list(info), field, factors: self.field.factors(), weight })
    }
}

/// Finds the best documents by several texts, any of whose words may match. A document's score is the highest that
/// any of the texts gives it.
pub(crate) struct BestOfTexts<'w> {
    /// The words of each text, with the best documents by it alone.
    texts: Vec<(Vec<&'w Word>, TopCollector)>,
}

impl<'w> BestOfTexts<'w> {
    /// # Arguments
    /// * `size`: number of documents to find.
    pub(crate) fn new(mut texts: Vec<Vec<&'w Word>>, size: usize) -> Self {
        // The scores that cheap texts find spare those after them work.
        texts.sort_by_key(|words| words.iter().map(|word| word.postings()).sum::<u64>());
        Self { texts: texts.into_iter().map(|words| (words, TopCollector::new(size))).collect() }
    }

    /// Searches the documents of a segment that are `allowed`.
    pub(crate) fn search(
        &mut self,
        snapshot: &Snapshot,
        ord: u32,
        compiler: &Compiler<'_>,
        allowed: &SegmentDocs,
    ) {
        for at in 0..self.texts.len() {
            // As many documents as are wanted reach what the last of the best by any text has.
            let least = self.texts.iter().map(|(_, top)| top.threshold()).fold(f32::NEG_INFINITY, f32::max);
            let (words, top) = &mut self.texts[at];
            best_of_any(words, snapshot, ord, compiler, allowed, least, top);
        }
    }

    /// The best documents by all texts.
    pub(crate) fn finish(mut self) -> TopCollector {
        let Some((_, last)) = self.texts.pop() else { return TopCollector::new(0) };
        if self.texts.is_empty() {
            return last;
        }
        let mut best = TopCollector::new(last.size());
        let others = self.texts.into_iter().flat_map(|(_, top)| top.into_hits());
        let mut hits: Vec<ScoredDoc> = last.into_hits().chain(others).collect();
        hits.sort_unstable_by(|a, b| a.addr.cmp(&b.addr).then(b.score.total_cmp(&a.score)));
        hits.dedup_by_key(|hit| hit.addr);
        for hit in hits {
            best.offer(hit.addr, hit.score, || hit.seq_no);
        }
        best
    }
}

/// Offers the best documents of a segment that hold any of `words` to `top`, but for those that score below
/// `least`.
fn best_of_any(
    words: &[&Word],
    snapshot: &Snapshot,
    ord: u32,
    compiler: &Compiler<'_>,
    allowed: &SegmentDocs,
    least: f32,
    top: &mut TopCollector,
) {
    let segment = snapshot.segment(ord);
    let clauses: Vec<Clause<'_>> = words.iter().filter_map(|word| word.clause(ord, word.weight)).collect();
    if clauses.is_empty() {
        return;
    }
    let max_doc = snapshot.searcher().segment_reader(ord).max_doc();
    let mut known: Vec<f32> = top.scores().map(|score| score.max(least)).collect();
    if least > f32::NEG_INFINITY {
        known.resize(top.size(), least);
    }
    let wanted = |doc| allowed.contains(doc) && segment.is_live(doc);
    any::search(clauses, max_doc, top.size(), known.into_iter(), compiler.cancel(), wanted, |doc, score| {
        top.offer(DocAddress::new(ord, doc), score, || segment.seq_no(doc));
    });
}

impl Compiler<'_> {
    /// A text field opened for reading its posting lists. `None` for fields of other types, while hits are
    /// explained, and where the field's format does not allow it.
    pub(crate) fn text_field(
        &self,
        terms: &StringTerms,
        statistics: FieldStatistics,
    ) -> Result<Option<Arc<TextField>>, QueryError> {
        let is_text = matches!(self.field_type(&terms.path), Some(FieldType::Text { .. }));
        if !is_text || self.explaining {
            return Ok(None);
        }
        // As tantivy rounds.
        let average = statistics.tokens as f32 / statistics.docs.max(1) as f32;
        let open = || Ok(TextField::open(self.searcher(), terms.field, average)?);
        self.snapshot.cache().text_field(terms.field, open)
    }
}

/// A plan for all words of a text, or for a phrase, with the clauses that restrict it.
struct WordsPlan<'q> {
    words: Words<'q>,
    boost: f32,
    filters: &'q [Query],
    excluded: &'q [Query],
}

#[derive(Clone, Copy)]
enum Words<'q> {
    All(&'q MatchQuery),
    Phrase(&'q MatchPhraseQuery),
}

impl<'q> WordsPlan<'q> {
    fn find(query: &'q Query) -> Result<Option<Self>, QueryError> {
        if let QueryKind::Bool(tree) = &query.kind {
            let ([clause], []) = (&tree.must[..], &tree.should[..]) else { return Ok(None) };
            if required_should(tree)? != 0 {
                return Ok(None);
            }
            let boost = query.boost * clause.boost;
            let (filters, excluded) = (&tree.filter[..], &tree.must_not[..]);
            return Ok(Words::find(clause).map(|words| Self { words, boost, filters, excluded }));
        }
        let words = Words::find(query);
        Ok(words.map(|words| Self { words, boost: query.boost, filters: &[], excluded: &[] }))
    }
}

impl<'q> Words<'q> {
    fn find(query: &'q Query) -> Option<Self> {
        match &query.kind {
            QueryKind::Match(text)
                if text.fuzziness.is_none()
                    && text.zero_terms_query == ZeroTerms::None
                    && (text.operator == Operator::And || text.minimum_should_match.is_some()) =>
            {
                Some(Self::All(text))
            }
            QueryKind::MatchPhrase(text) if text.slop == 0 && text.zero_terms_query == ZeroTerms::None => {
                Some(Self::Phrase(text))
            }
            _ => None,
        }
    }

    fn field(self) -> &'q str {
        match self {
            Self::All(text) => &text.field,
            Self::Phrase(text) => &text.field,
        }
    }

    /// The tokens of the text, at least two of which all have to match. `None` for other texts.
    fn tokens(
        self,
        compiler: &Compiler<'_>,
        terms: &StringTerms,
    ) -> Result<Option<Vec<QueryToken>>, QueryError> {
        let tokens = match self {
            Self::All(text) => compiler.analyze(terms, &text.text, text.analyzer.as_deref(), "match")?,
            Self::Phrase(text) => {
                compiler.analyze(terms, &text.text, text.analyzer.as_deref(), "match_phrase")?
            }
        };
        if let Self::All(text) = self
            && text.operator == Operator::Or
            && let Some(spec) = &text.minimum_should_match
            && minimum_should_match(tokens.len(), spec)? != tokens.len()
        {
            return Ok(None);
        }
        let apart = tokens.windows(2).all(|pair| pair[0].position < pair[1].position);
        let single = tokens.iter().all(|token| token.length == 1);
        Ok((tokens.len() > 1 && apart && single).then_some(tokens))
    }
}

impl Snapshot {
    /// Runs a search for all words of a text, or for a phrase; `None` for queries that it does not apply to.
    pub(crate) fn search_words(
        &self,
        query: &Query,
        compiler: &mut Compiler<'_>,
        options: &SearchOptions,
    ) -> Result<Option<TopDocs>, QueryError> {
        if options.size == 0 {
            return Ok(None);
        }
        let Some(plan) = WordsPlan::find(query)? else { return Ok(None) };
        let before = compiler.clauses();
        let Some(found) = compiler.look_up_words(&plan)? else {
            compiler.restore_clauses(before);
            return Ok(None);
        };
        let wanted = plan.filters.iter().chain(&options.post_filter);
        let allowed = compiler.filter_docs(wanted, plan.excluded)?;
        let mut hits = WordHits {
            options,
            compiler,
            top: TopCollector::new(options.size),
            matched: 0,
            ord: 0,
            segment: None,
            allowed: &SegmentDocs::None,
        };
        for (ord, allowed) in (0..).zip(&allowed) {
            if is_over(compiler, options)? {
                break;
            }
            if matches!(allowed, SegmentDocs::None) {
                continue;
            }
            (hits.ord, hits.segment, hits.allowed) = (ord, Some(self.segment(ord)), allowed);
            found.walk(ord, &mut hits);
        }
        is_over(compiler, options)?;
        Ok(Some(hits.top.finish(hits.matched, options.track_total_hits)))
    }
}

/// The words of a plan with their posting lists, in the order of the query.
struct LocatedWords {
    words: Vec<Word>,
    /// For a phrase: the offset of each word, and the factor on its score.
    phrase: Option<(Vec<u32>, f32)>,
}

impl LocatedWords {
    fn walk(&self, ord: u32, hits: &mut WordHits<'_>) {
        match &self.phrase {
            None => {
                let clauses: Option<Vec<_>> =
                    self.words.iter().map(|word| word.clause(ord, word.weight)).collect();
                if let Some(clauses) = clauses {
                    all::anywhere(clauses, hits);
                }
            }
            Some((offsets, weight)) => {
                let places: Option<Vec<_>> = self
                    .words
                    .iter()
                    .zip(offsets)
                    .map(|(word, offset)| {
                        let positions =
                            word.field.segment(ord)?.positions(word.infos[ord as usize].as_ref()?);
                        Some(Place { clause: word.clause(ord, *weight)?, positions, offset: *offset })
                    })
                    .collect();
                if let Some(places) = places {
                    all::phrase(places, hits);
                }
            }
        }
    }
}

impl Compiler<'_> {
    fn look_up_words(&mut self, plan: &WordsPlan<'_>) -> Result<Option<LocatedWords>, QueryError> {
        self.check_cancelled()?;
        let Some(terms) = self.string_terms(plan.words.field()) else { return Ok(None) };
        if let Words::Phrase(_) = plan.words {
            let positions = match self.field_type(&terms.path) {
                Some(FieldType::Text { options }) => options.index_options == TextIndexOptions::Positions,
                _ => false,
            };
            if !positions {
                return Ok(None);
            }
        }
        let Some(statistics) = self.statistics(&terms, true)? else { return Ok(None) };
        let Some(field) = self.text_field(&terms, statistics)? else { return Ok(None) };
        let Some(tokens) = plan.words.tokens(self, &terms)? else { return Ok(None) };
        let is_phrase = matches!(plan.words, Words::Phrase(_));
        self.count_clauses(if is_phrase { 1 } else { tokens.len() })?;
        let mut words = Vec::with_capacity(tokens.len());
        let mut frequencies = Vec::with_capacity(tokens.len());
        for token in &tokens {
            let found = Word::find(&field, &terms.term(&token.text), statistics, plan.boost)?;
            let Some((word, doc_freq)) = found else { return Ok(None) };
            words.push(word);
            frequencies.push(doc_freq);
            if doc_freq == 0 {
                // Nothing matches: no need to look the others up.
                words.truncate(1);
                words[0].infos.fill(None);
                return Ok(Some(LocatedWords { words, phrase: None }));
            }
        }
        let phrase = is_phrase.then(|| {
            let offsets = tokens.iter().map(|token| token.position as u32).collect();
            (offsets, bm25_factor(&frequencies, statistics.docs, plan.boost))
        });
        Ok(Some(LocatedWords { words, phrase }))
    }
}

/// Collects the hits of a walk.
struct WordHits<'a> {
    options: &'a SearchOptions,
    compiler: &'a Compiler<'a>,
    top: TopCollector,
    matched: u64,
    ord: u32,
    segment: Option<&'a SegmentSnapshot>,
    allowed: &'a SegmentDocs,
}

impl Hits for WordHits<'_> {
    fn wants(&self, doc: DocId) -> bool {
        self.segment.is_some_and(|segment| segment.is_live(doc)) && self.allowed.contains(doc)
    }

    fn least(&self) -> f32 {
        let counts = match self.options.track_total_hits {
            TotalHits::Off => false,
            TotalHits::UpTo(limit) => self.matched <= limit,
            TotalHits::Exact => true,
        };
        let least = self.options.min_score.unwrap_or(f32::NEG_INFINITY);
        if counts { least } else { self.top.threshold().max(least) }
    }

    fn take(&mut self, doc: DocId, score: f32) {
        let Some(segment) = self.segment else { return };
        self.matched += 1;
        self.top.offer(DocAddress::new(self.ord, doc), score, || segment.seq_no(doc));
    }

    fn goes_on(&self) -> bool {
        self.compiler.check_cancelled().is_ok()
    }
}
