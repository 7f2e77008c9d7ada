//! Sums of clauses whose highest scores are known: terms of a text, constant clauses, joined by `should`.
//!
//! Scores are added in the order of the query, whichever clause finds a document, so that a document's score
//! is always the same. [`DocumentAtATime`] skips documents that cannot reach a given score (the MaxScore
//! algorithm): clauses whose highest scores together stay below it are only looked at for documents that
//! others lead to.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tantivy::postings::BlockSegmentPostings;
use tantivy::query::{Scorer, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, Searcher, SegmentReader, Term};

use crate::query::compile::Compiler;
use crate::query::kinds::{meaning, query_string, required_should, simple_query_string};
use crate::query::search::document_at_a_time::{CANCEL_INTERVAL, DocumentAtATime};
use crate::query::search::window_at_a_time::{Source, TermSource};
use crate::query::search::words::Word;
use sparrow_mapping::FieldType;
use sparrow_query::{
    MatchQuery, Operator, PrefixQuery, Query, QueryKind, RegexpQuery, Rewrite, TermQuery, WildcardQuery,
    ZeroTerms,
};
use sparrow_scoring::bm25::term_weight;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::fields::StringTerms;
use sparrow_scoring::minimum::minimum_should_match;
use sparrow_scoring::scored::{Bm25, lengths};
use sparrow_scoring::statistics::{FieldStatistics, bm25_bound};
use sparrow_scoring::weights;
use sparrow_segments::doc_bits::DocBits;
use sparrow_segments::schema::ID;
use sparrow_segments::segment_docs::SegmentDocs;

/// Highest number of parts of a sum. With more, documents are scored one by one: the accumulated rounding
/// error would come near [`ROUNDING`].
const MAX_PARTS: usize = 64;
/// Relative margin by which bounds are raised and wanted scores lowered, since a sum of single-precision
/// numbers depends on their order.
pub(crate) const ROUNDING: f32 = 1e-5;

/// One clause in a sum of clauses.
struct Part {
    matches: Matches,
    boost: f32,
    /// Upper bound on the part's score, boost included.
    bound: f32,
    /// The term that the clause looks for and its document frequency, if the clause is a single term.
    term: Option<(Term, u64)>,
    /// BM25 parameters of that term, boost not included.
    bm25: Option<Bm25>,
    /// The term for searches that read posting lists directly; `None` if they cannot.
    word: Option<Word>,
}

impl Part {
    /// A clause with the same score, its boost, for all documents that it matches.
    fn constant(weight: Box<dyn Weight>, boost: f32) -> Self {
        let (matches, bound) = (Matches::Weight(weight), boost * (1.0 + ROUNDING));
        Self { matches, boost, bound, term: None, bm25: None, word: None }
    }

    /// Whether the clause is a term that no document has.
    fn is_absent(&self) -> bool {
        self.term.as_ref().is_some_and(|(_, docs)| *docs == 0)
    }
}

/// The documents that a clause matches.
enum Matches {
    Weight(Box<dyn Weight>),
    /// The documents that hold a term. Its weight is only made on demand: that takes longer than many a
    /// search that reads posting lists directly.
    Term {
        searcher: Searcher,
        statistics: FieldStatistics,
        terms: Arc<StringTerms>,
        text: String,
        doc_freq: u64,
        /// The term's weight, made when it is first needed.
        weight: OnceCell<Box<dyn Weight>>,
    },
}

impl Matches {
    fn scorer(&self, reader: &SegmentReader, boost: f32) -> Result<Box<dyn Scorer>, QueryError> {
        match self {
            Self::Weight(weight) => Ok(weight.scorer(reader, boost)?),
            Self::Term { searcher, statistics, terms, text, doc_freq, weight } => {
                if weight.get().is_none() {
                    let made = term_weight(searcher, Some(*statistics), terms, text, Some(*doc_freq))?;
                    let _ = weight.set(made);
                }
                match weight.get() {
                    Some(weight) => Ok(weight.scorer(reader, boost)?),
                    None => Ok(weights::none().scorer(reader, boost)?),
                }
            }
        }
    }
}

/// A sum of clauses: their scores add up.
pub(crate) struct MaxScoreDisjunction {
    parts: Vec<Part>,
    /// For each `must`, the range of parts of which at least one must match.
    required: Vec<Range<usize>>,
}

impl Compiler<'_> {
    /// Splits a `bool` of `must` and `should` into parts; `None` when it has a clause whose upper bound is
    /// not known.
    pub(crate) fn max_score(&mut self, query: &Query) -> Result<Option<MaxScoreDisjunction>, QueryError> {
        let QueryKind::Bool(tree) = &query.kind else { return Ok(None) };
        let before = self.clauses();
        let mut sum = MaxScoreDisjunction { parts: Vec::new(), required: Vec::new() };
        for clause in &tree.must {
            let start = sum.parts.len();
            if !self.parts(clause, query.boost, &mut sum.parts)? {
                self.restore_clauses(before);
                return Ok(None);
            }
            sum.required.push(start..sum.parts.len());
        }
        for clause in &tree.should {
            if !self.parts(clause, query.boost, &mut sum.parts)? {
                self.restore_clauses(before);
                return Ok(None);
            }
        }
        if sum.parts.len() > MAX_PARTS {
            self.restore_clauses(before);
            return Ok(None);
        }
        Ok(Some(sum))
    }

    /// Appends the parts whose sum a query is; returns false if it is not such a sum.
    fn parts(&mut self, query: &Query, boost: f32, parts: &mut Vec<Part>) -> Result<bool, QueryError> {
        self.check_cancelled()?;
        let boost = boost * query.boost;
        if meaning(&query.kind).of_index(self.snapshot.name()).is_some() {
            return Ok(false);
        }
        match &query.kind {
            QueryKind::MatchNone => {}
            QueryKind::Match(text) => return self.words(text, boost, parts),
            QueryKind::Term(TermQuery { field, value, case_insensitive: false }) if field != ID => {
                let Some(terms) = self.string_terms(field) else { return Ok(false) };
                let terms = Arc::new(terms);
                self.count_clause()?;
                let text = self.term_text(field, value)?;
                parts.push(self.word(&terms, &text, boost)?);
            }
            QueryKind::Bool(tree)
                if tree.must.is_empty() && tree.filter.is_empty() && tree.must_not.is_empty() =>
            {
                if tree.should.is_empty() || required_should(tree)? != 1 {
                    return Ok(false);
                }
                self.count_clause()?;
                for clause in &tree.should {
                    if !self.parts(clause, boost, parts)? {
                        return Ok(false);
                    }
                }
            }
            QueryKind::QueryString(query) => {
                let tree = query_string::rewrite(query, &*self)?;
                return self.parts(&tree, boost, parts);
            }
            QueryKind::SimpleQueryString(query) => {
                let tree = simple_query_string::rewrite(query, &*self)?;
                return self.parts(&tree, boost, parts);
            }
            QueryKind::Lenient(clause) => {
                let before = parts.len();
                match self.parts(&clause.query, boost, parts) {
                    Err(error) if error.is_about_a_value() => parts.truncate(before),
                    found => return found,
                }
            }
            QueryKind::MatchAll
            | QueryKind::Terms(_)
            | QueryKind::Range(_)
            | QueryKind::Exists(_)
            | QueryKind::Ids(_)
            | QueryKind::Prefix(PrefixQuery { rewrite: Rewrite::Constant, .. })
            | QueryKind::Wildcard(WildcardQuery { rewrite: Rewrite::Constant, .. })
            | QueryKind::Regexp(RegexpQuery { rewrite: Rewrite::Constant, .. }) => {
                let weight = self.compile(&query.kind.clone().into(), true)?;
                parts.push(Part::constant(weight, boost));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Appends the terms of a text of which any may match; returns false if the text is not of that kind.
    fn words(&mut self, query: &MatchQuery, boost: f32, parts: &mut Vec<Part>) -> Result<bool, QueryError> {
        let Some(terms) = self.string_terms(&query.field) else { return self.value(query, boost, parts) };
        if query.fuzziness.is_some() || query.zero_terms_query != ZeroTerms::None {
            return Ok(false);
        }
        let tokens = self.analyze(&terms, &query.text, query.analyzer.as_deref(), "match")?;
        if tokens.iter().any(|token| token.length > 1)
            || tokens.windows(2).any(|pair| pair[0].position == pair[1].position)
        {
            // Synonyms: several tokens are one clause.
            return Ok(false);
        }
        let minimum = match (query.operator, &query.minimum_should_match) {
            _ if tokens.len() <= 1 => 1,
            (Operator::And, _) => tokens.len(),
            (Operator::Or, None) => 1,
            (Operator::Or, Some(spec)) => minimum_should_match(tokens.len(), spec)?.max(1),
        };
        if minimum > 1 || parts.len() + tokens.len() > MAX_PARTS {
            return Ok(false);
        }
        let terms = Arc::new(terms);
        for token in &tokens {
            self.count_clause()?;
            parts.push(self.word(&terms, &token.text, boost)?);
        }
        Ok(true)
    }

    /// Appends a text that is the value of a number, a date or the like: every document that has it gets the same
    /// score. Returns false for a token of sparse vectors.
    fn value(&mut self, query: &MatchQuery, boost: f32, parts: &mut Vec<Part>) -> Result<bool, QueryError> {
        let is_sparse = self.snapshot.mapping().field(&query.field).is_some_and(FieldType::is_sparse);
        if is_sparse && !query.lenient {
            return Ok(false);
        }
        if let Some(found) = self.match_value(&query.field, &query.text, query.lenient)? {
            parts.push(Part::constant(weights::constant(found, 1.0, true), boost));
        }
        Ok(true)
    }

    fn word(&mut self, terms: &Arc<StringTerms>, text: &str, boost: f32) -> Result<Part, QueryError> {
        let statistics = self.statistics(terms, true)?;
        let term = terms.term(text);
        let field = match statistics {
            Some(statistics) => self.text_field(terms, statistics)?,
            None => None,
        };
        let looked_up = match (&field, statistics) {
            (Some(field), Some(statistics)) => Word::find(field, &term, statistics, boost)?,
            _ => None,
        };
        let (word, doc_freq) = match looked_up {
            Some((word, doc_freq)) => (Some(word), doc_freq),
            None => (None, self.searcher().doc_freq(&term)?),
        };
        let Some(statistics) = statistics.filter(|_| doc_freq > 0) else {
            let (matches, term) = (Matches::Weight(weights::none()), Some((term, 0)));
            return Ok(Part { matches, boost, bound: 0.0, term, bm25: None, word });
        };
        let bound = bm25_bound(statistics, doc_freq) * boost * (1.0 + ROUNDING);
        let bm25 = Some(Bm25::new(statistics, &[doc_freq]));
        let matches = Matches::Term {
            searcher: self.searcher().clone(),
            statistics,
            terms: Arc::clone(terms),
            text: text.to_owned(),
            doc_freq,
            weight: OnceCell::new(),
        };
        Ok(Part { matches, boost, bound, term: Some((term, doc_freq)), bm25, word })
    }
}

impl MaxScoreDisjunction {
    /// Whether a document must match some of the parts.
    pub(crate) fn has_required(&self) -> bool {
        !self.required.is_empty()
    }

    /// The words of a text if any of them may match; `None` when there are other clauses, or some that must
    /// match.
    pub(crate) fn words(&self) -> Option<impl Iterator<Item = &Word>> {
        let any = match &self.required[..] {
            [] => true,
            [range] => *range == (0..self.parts.len()),
            _ => false,
        };
        let are_words = any && self.parts.iter().all(|part| part.word.is_some() || part.is_absent());
        are_words.then(|| self.parts.iter().filter_map(|part| part.word.as_ref()))
    }

    /// Whether no document can match any of the parts.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.iter().all(Part::is_absent)
    }

    /// Whether the sum has two or more terms: with a single one no document can be skipped.
    pub(crate) fn has_several_terms(&self) -> bool {
        self.parts.iter().filter(|part| part.term.is_some()).count() > 1
    }

    /// Whether each required clause matches a large share of all documents, so that marking all its documents
    /// costs more than checking those that other clauses find.
    pub(crate) fn is_broad(&self, num_docs: u64) -> bool {
        let frequent = |part: &Part| part.term.as_ref().is_some_and(|(_, docs)| *docs >= num_docs / 4);
        self.required.iter().all(|range| self.parts[range.clone()].iter().any(frequent))
    }

    /// Documents of a segment that match every required clause.
    pub(crate) fn required_docs(&self, reader: &SegmentReader) -> Result<SegmentDocs, QueryError> {
        let mut docs = SegmentDocs::All;
        for range in &self.required {
            let marked = self.marks(range.clone(), reader)?.all();
            docs.intersect(SegmentDocs::of(marked.into()));
        }
        Ok(docs)
    }

    /// Documents of a segment that match any clause of any of the given sums.
    pub(crate) fn any_docs(sums: &[Self], reader: &SegmentReader) -> Result<SegmentDocs, QueryError> {
        let marked = Self::any_bitset(sums, reader)?.all();
        Ok(SegmentDocs::of(marked.into()))
    }

    fn any_bitset(sums: &[Self], reader: &SegmentReader) -> Result<ClauseBitset, QueryError> {
        let mut marks = ClauseBitset { docs: DocBits::empty(reader.max_doc()), postings: Vec::new() };
        for sum in sums {
            sum.mark(0..sum.parts.len(), reader, &mut marks)?;
        }
        Ok(marks)
    }

    /// Starts a bitmap, filled on demand, of the documents that match every required clause.
    pub(crate) fn required_marks(&self, reader: &SegmentReader) -> Result<RequiredBitsets, QueryError> {
        let groups: Result<_, _> =
            self.required.iter().map(|range| self.marks(range.clone(), reader)).collect();
        Ok(RequiredBitsets { groups: groups? })
    }

    fn marks(&self, range: Range<usize>, reader: &SegmentReader) -> Result<ClauseBitset, QueryError> {
        let mut marks = ClauseBitset { docs: DocBits::empty(reader.max_doc()), postings: Vec::new() };
        self.mark(range, reader, &mut marks)?;
        Ok(marks)
    }

    /// Adds the documents that match any part in `range` to `marks`.
    fn mark(
        &self,
        range: Range<usize>,
        reader: &SegmentReader,
        marks: &mut ClauseBitset,
    ) -> Result<(), QueryError> {
        for part in &self.parts[range] {
            match &part.term {
                Some((term, _)) => {
                    let inverted = reader.inverted_index(term.field())?;
                    let postings = inverted.read_block_postings(term, IndexRecordOption::Basic);
                    marks.postings.extend(postings.map_err(tantivy::TantivyError::from)?);
                }
                None => marks.docs.insert_all(&mut part.matches.scorer(reader, 1.0)?),
            }
        }
        Ok(())
    }

    /// Source of a part's scores in a segment.
    pub(crate) fn source(&self, part: usize, reader: &SegmentReader) -> Result<Source, QueryError> {
        let part = &self.parts[part];
        let Some((term, _)) = &part.term else {
            return Ok(Source::Constant { scorer: part.matches.scorer(reader, 1.0)?, score: part.bound });
        };
        let Some(bm25) = &part.bm25 else { return Ok(Source::None) };
        let inverted = reader.inverted_index(term.field())?;
        let postings = inverted
            .read_block_postings(term, IndexRecordOption::WithFreqs)
            .map_err(tantivy::TantivyError::from)?;
        let lengths = lengths(reader, term.field());
        Ok(postings.map_or(Source::None, |postings| {
            Source::Term(Box::new(TermSource::new(postings, lengths, bm25, part.boost)))
        }))
    }

    /// Starts a walk over the documents of a segment. It ends soon after `cancel` is set.
    pub(crate) fn walk<'c>(
        &self,
        reader: &SegmentReader,
        cancel: Option<&'c AtomicBool>,
    ) -> Result<DocumentAtATime<'c>, QueryError> {
        let mut order: Vec<usize> = (0..self.parts.len()).collect();
        order.sort_by(|a, b| self.parts[*a].bound.total_cmp(&self.parts[*b].bound));
        let mut places = vec![0; order.len()];
        let mut scorers = Vec::with_capacity(order.len());
        let mut below = Vec::with_capacity(order.len());
        let mut sum = 0.0;
        for (place, &number) in order.iter().enumerate() {
            let part = &self.parts[number];
            places[number] = place;
            scorers.push(part.matches.scorer(reader, part.boost)?);
            sum += part.bound;
            below.push(sum);
        }
        let heads = scorers.iter().map(|scorer| scorer.doc()).collect();
        let required = self.required.clone();
        let scores = vec![0.0; places.len()];
        let until_poll = CANCEL_INTERVAL;
        Ok(DocumentAtATime {
            scorers,
            heads,
            scores,
            below,
            places,
            order,
            required,
            essential: 0,
            cancel,
            until_poll,
        })
    }
}

/// A bitmap of the documents that match any of several clauses, filled from posting lists as far as needed.
struct ClauseBitset {
    docs: DocBits,
    postings: Vec<BlockSegmentPostings>,
}

impl ClauseBitset {
    fn fill_below(&mut self, end: DocId) {
        for postings in &mut self.postings {
            while postings.docs().first().is_some_and(|first| *first < end) {
                self.docs.insert_sorted(postings.docs());
                postings.advance();
            }
        }
    }

    fn all(mut self) -> DocBits {
        self.fill_below(DocId::MAX);
        self.docs
    }
}

/// A bitmap of the documents that match every required clause, computed one stretch at a time.
pub(crate) struct RequiredBitsets {
    groups: Vec<ClauseBitset>,
}

impl RequiredBitsets {
    /// A bitmap of the documents that match any clause of any of the given sums; of all documents if there
    /// are no sums.
    pub(crate) fn of_any(sums: &[MaxScoreDisjunction], reader: &SegmentReader) -> Result<Self, QueryError> {
        if sums.is_empty() {
            return Ok(Self { groups: Vec::new() });
        }
        Ok(Self { groups: vec![MaxScoreDisjunction::any_bitset(sums, reader)?] })
    }

    /// The bitmap's words for a range of documents, which must start at a multiple of 64. Ranges must ascend.
    pub(crate) fn stretch(&mut self, docs: Range<DocId>) -> impl Iterator<Item = u64> + '_ {
        for marks in &mut self.groups {
            marks.fill_below(docs.end);
        }
        let groups = &self.groups;
        ((docs.start / 64) as usize..docs.end.div_ceil(64) as usize).map(move |word| {
            let of = |marks: &ClauseBitset| marks.docs.words().get(word).copied().unwrap_or(0);
            groups.iter().fold(u64::MAX, |bits, marks| bits & of(marks))
        })
    }
}
