//! `intervals`: words by their positions. Documents that hold the words are found first, then their positions
//! are examined document by document.

mod node;

use std::ops::Bound;
use std::sync::Arc;

use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::{Explanation, Scorer, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED};

use crate::query::compile::Compiler;
use crate::query::highlight::WantedWords;
use crate::query::kinds::Meaning;
use sparrow_mapping::{FieldType, TextIndexOptions};
use sparrow_query::regexp::Automaton;
use sparrow_query::wildcard::Wildcard;
use sparrow_query::{
    IntervalsOrder, IntervalsQuery, IntervalsRelation, IntervalsRule, IntervalsSource, IntervalsWords,
    MatchQuery, RegexpQuery,
};
use sparrow_runtime::work;
use sparrow_scoring::analyzed::{Section, sections};
use sparrow_scoring::error::{self, QueryError};
use sparrow_scoring::fields::StringTerms;
use sparrow_scoring::fuzzy::{Fuzzy, expand_fuzzy};
use sparrow_scoring::intervals::{Interval, all_of, any_of, related, repeated};
use sparrow_scoring::multi_term::Expansion;
use sparrow_scoring::multi_term::{TermFilter, first_terms};
use sparrow_scoring::stoppable::stops_after;
use sparrow_scoring::weights;
use sparrow_segments::doc_bits::DocBits;

use node::{MOST_PARTS, Node};

/// Highest number of words that a prefix, a wildcard pattern or a fuzzy word expands to.
const MAX_EXPANSIONS: usize = 128;

impl Compiler<'_> {
    pub(crate) fn intervals(
        &mut self,
        query: &IntervalsQuery,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        match self.snapshot.mapping().field(&query.field) {
            None | Some(FieldType::Object { .. }) => return Ok(weights::none()),
            Some(_) => {}
        }
        let node = self.interval_rule(&query.rule, &query.field)?;
        let parts = node.parts();
        if parts > MOST_PARTS {
            return Err(QueryError::Invalid {
                reason: format!(
                    "[intervals] has [{parts}] words and rules, at most [{MOST_PARTS}] are possible on this server"
                ),
            });
        }
        let shortest = node.shortest();
        Ok(Box::new(IntervalsWeight { node: Arc::new(node), shortest, scoring }))
    }

    fn interval_rule(&mut self, rule: &IntervalsRule, field: &str) -> Result<Node, QueryError> {
        self.count_clause()?;
        let node = match &rule.source {
            IntervalsSource::Match { text, order, words } => {
                self.interval_text(text, *order, words, field)?
            }
            IntervalsSource::Prefix(prefix, words) => {
                let terms = self.interval_terms(words, field)?;
                let prefix = self.interval_normalized(prefix, words, &terms);
                self.interval_expanded(&terms, &TermFilter::Prefix(prefix))?
            }
            IntervalsSource::Wildcard(pattern, words) => {
                let terms = self.interval_terms(words, field)?;
                let pattern = self.interval_normalized(pattern, words, &terms);
                self.interval_expanded(&terms, &TermFilter::Wildcard(Wildcard::new(&pattern)))?
            }
            IntervalsSource::Regexp(pattern, words) => {
                let terms = self.interval_terms(words, field)?;
                let pattern = self.interval_normalized(pattern, words, &terms);
                let automaton = Automaton::new(&RegexpQuery::new(terms.path.as_str(), pattern))?;
                self.interval_expanded(&terms, &TermFilter::Regexp(automaton.into()))?
            }
            IntervalsSource::Range(lower, upper, words) => {
                let terms = self.interval_terms(words, field)?;
                let bound = |end: &Bound<String>| {
                    end.as_ref().map(|text| self.interval_normalized(text, words, &terms))
                };
                let range = TermFilter::Range(bound(lower), bound(upper));
                self.interval_expanded(&terms, &range)?
            }
            IntervalsSource::Fuzzy { term, fuzziness, prefix_length, without_transpositions, words } => {
                let terms = self.interval_terms(words, field)?;
                let term = self.interval_normalized(term, words, &terms);
                let fuzzy = Fuzzy::new(&term, fuzziness, *prefix_length, MAX_EXPANSIONS)?
                    .with_transpositions(!without_transpositions);
                let expansions = expand_fuzzy(self.searcher(), &terms, &fuzzy, self.cancel())?;
                self.interval_words(&terms, &expansions)?
            }
            IntervalsSource::AllOf(rules, order) => Node::all(self.interval_rules(rules, field)?, *order),
            IntervalsSource::AnyOf(rules) => Node::Any(self.interval_rules(rules, field)?),
        };
        let Some(filter) = &rule.filter else { return Ok(node) };
        let other = Box::new(self.interval_rule(&filter.rule, field)?);
        Ok(Node::Filtered { inner: Box::new(node), relation: filter.relation, other })
    }

    fn interval_rules(&mut self, rules: &[IntervalsRule], field: &str) -> Result<Vec<Node>, QueryError> {
        rules.iter().map(|rule| self.interval_rule(rule, field)).collect()
    }

    /// Terms of the field that a rule applies to.
    fn interval_terms(&self, words: &IntervalsWords, field: &str) -> Result<StringTerms, QueryError> {
        let field = words.use_field.as_deref().unwrap_or(field);
        let has_positions = match self.snapshot.mapping().field(field) {
            Some(FieldType::Text { options }) => options.index_options == TextIndexOptions::Positions,
            _ => false,
        };
        match self.string_terms(field) {
            Some(terms) if has_positions => Ok(terms),
            _ => Err(QueryError::Invalid {
                reason: format!("Cannot create intervals over field [{field}] with no positions indexed"),
            }),
        }
    }

    fn interval_normalized(&self, text: &str, words: &IntervalsWords, terms: &StringTerms) -> String {
        let analyzer = match &words.analyzer {
            Some(name) => self.snapshot.analysis().analyzer(name),
            None => self.snapshot.search_analyzer(&terms.path, false),
        };
        analyzer.map_or_else(|| text.to_owned(), |analyzer| analyzer.normalize(text))
    }

    fn interval_expanded(&mut self, terms: &StringTerms, filter: &TermFilter) -> Result<Node, QueryError> {
        let expansions =
            first_terms(self.searcher(), terms, filter, false, MAX_EXPANSIONS + 1, self.cancel())?;
        if expansions.len() > MAX_EXPANSIONS {
            return Err(QueryError::Invalid {
                reason: format!("Automaton expanded to too many terms (limit {MAX_EXPANSIONS})"),
            });
        }
        self.interval_words(terms, &expansions)
    }

    fn interval_words(&mut self, terms: &StringTerms, expansions: &[Expansion]) -> Result<Node, QueryError> {
        self.count_clauses(expansions.len())?;
        let terms = expansions.iter().map(|expansion| terms.term(&expansion.value)).collect();
        Ok(Node::Words { terms, before: 0 })
    }

    fn interval_text(
        &mut self,
        text: &str,
        order: IntervalsOrder,
        words: &IntervalsWords,
        field: &str,
    ) -> Result<Node, QueryError> {
        let terms = self.interval_terms(words, field)?;
        let tokens = self.analyze(&terms, text, words.analyzer.as_deref(), "intervals")?;
        let mut parts = Vec::new();
        // Where the next word is expected; one that comes later has positions without words before it.
        let mut expected = None;
        let words_of = |values: &[String], before: u32| Node::Words {
            terms: values.iter().map(|value| terms.term(value)).collect(),
            before,
        };
        for section in sections(tokens)? {
            match section {
                Section::Terms { at, terms: values } => {
                    self.count_clauses(values.len())?;
                    let before = expected.map_or(0, |expected| at.saturating_sub(expected)) as u32;
                    parts.push(words_of(&values, before));
                    expected = Some(at + 1);
                }
                Section::Paths(paths) => {
                    let mut ways = Vec::with_capacity(paths.len());
                    for path in &paths {
                        self.count_clauses(path.len())?;
                        let parts = path.iter().map(|word| words_of(std::slice::from_ref(word), 0)).collect();
                        let order = IntervalsOrder { max_gaps: Some(0), ordered: true };
                        ways.push(Node::all(parts, order));
                    }
                    parts.push(Node::Any(ways));
                    expected = None;
                }
            }
        }
        match parts.len() {
            1 => Ok(parts.remove(0)),
            _ => Ok(Node::all(parts, order)),
        }
    }
}

struct IntervalsWeight {
    node: Arc<Node>,
    shortest: u32,
    scoring: bool,
}

impl Weight for IntervalsWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let (bound, docs) = BoundRule::new(&self.node, reader)?;
        let mut scorer = IntervalsScorer {
            bound,
            docs,
            doc: 0,
            intervals: Vec::new(),
            shortest: self.shortest,
            boost,
            scoring: self.scoring,
        };
        scorer.find(0);
        Ok(Box::new(scorer))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        weights::explain(self.scorer(reader, 1.0), doc, "intervals")
    }
}

/// A rule with the postings of one segment.
enum BoundRule {
    Words { postings: Vec<SegmentPostings>, before: u32 },
    All { parts: Vec<BoundRule>, order: IntervalsOrder },
    Any(Vec<BoundRule>),
    Repeated { part: Box<BoundRule>, times: usize },
    Filtered { inner: Box<BoundRule>, relation: IntervalsRelation, other: Box<BoundRule> },
}

impl BoundRule {
    /// Opens the postings of a rule in a segment; also returns the documents that hold its words.
    fn new(node: &Node, reader: &SegmentReader) -> tantivy::Result<(Self, DocBits)> {
        Ok(match node {
            Node::Words { terms, before } => {
                let mut docs = weights::empty_docs(reader)?;
                let mut postings = Vec::new();
                for term in terms {
                    work::check().map_err(|_| error::stopped())?;
                    let inverted = reader.inverted_index(term.field())?;
                    if let Some(mut blocks) = inverted.read_block_postings(term, IndexRecordOption::Basic)? {
                        docs.insert_postings(&mut blocks);
                    }
                    postings.extend(inverted.read_postings(term, IndexRecordOption::WithFreqsAndPositions)?);
                }
                (BoundRule::Words { postings, before: *before }, docs)
            }
            Node::All { parts, order } => {
                let mut docs: Option<DocBits> = None;
                let mut bound = Vec::with_capacity(parts.len());
                for part in parts {
                    let (part, of_part) = BoundRule::new(part, reader)?;
                    match &mut docs {
                        None => docs = Some(of_part),
                        Some(docs) => docs.intersect(&of_part),
                    }
                    bound.push(part);
                }
                (
                    BoundRule::All { parts: bound, order: *order },
                    docs.map_or_else(|| weights::empty_docs(reader), Ok)?,
                )
            }
            Node::Any(parts) => {
                let mut docs = weights::empty_docs(reader)?;
                let mut bound = Vec::with_capacity(parts.len());
                for part in parts {
                    let (part, of_part) = BoundRule::new(part, reader)?;
                    docs.unite(&of_part);
                    bound.push(part);
                }
                (BoundRule::Any(bound), docs)
            }
            Node::Repeated { part, times } => {
                let (part, docs) = BoundRule::new(part, reader)?;
                (BoundRule::Repeated { part: Box::new(part), times: *times }, docs)
            }
            Node::Filtered { inner, relation, other } => {
                let (inner, docs) = BoundRule::new(inner, reader)?;
                let (other, _) = BoundRule::new(other, reader)?;
                (
                    BoundRule::Filtered {
                        inner: Box::new(inner),
                        relation: *relation,
                        other: Box::new(other),
                    },
                    docs,
                )
            }
        })
    }

    /// The intervals of a document that match the rule. Documents must ascend from call to call.
    fn intervals(&mut self, doc: DocId, scratch: &mut Vec<u32>) -> Vec<Interval> {
        match self {
            BoundRule::Words { postings, before } => any_of(postings.iter_mut().map(|postings| {
                if postings.doc() < doc {
                    postings.seek(doc);
                }
                if postings.doc() != doc {
                    return Vec::new();
                }
                postings.positions(scratch);
                let of = |&at: &u32| Interval::new(at.saturating_sub(*before), at, 0);
                scratch.iter().map(of).collect()
            })),
            BoundRule::All { parts, order } => {
                let mut lists = Vec::with_capacity(parts.len());
                for part in parts {
                    lists.push(part.intervals(doc, scratch));
                    // An interval of all parts contains one of each, so without an interval of this part there is nothing to find.
                    if lists.last().is_none_or(Vec::is_empty) {
                        return Vec::new();
                    }
                }
                all_of(&lists, *order)
            }
            BoundRule::Repeated { part, times } => repeated(&part.intervals(doc, scratch), *times),
            BoundRule::Any(parts) => any_of(parts.iter_mut().map(|part| part.intervals(doc, scratch))),
            BoundRule::Filtered { inner, relation, other } => {
                let list = inner.intervals(doc, scratch);
                match list.is_empty() {
                    true => list,
                    false => related(list, *relation, &other.intervals(doc, scratch)),
                }
            }
        }
    }
}

struct IntervalsScorer {
    bound: BoundRule,
    docs: DocBits,
    doc: DocId,
    intervals: Vec<Interval>,
    shortest: u32,
    boost: Score,
    scoring: bool,
}

impl IntervalsScorer {
    /// Advances to the first document at or after `from` that has a matching interval.
    fn find(&mut self, from: DocId) -> DocId {
        let mut scratch = Vec::new();
        self.doc = self.docs.next(from);
        while self.doc != TERMINATED {
            if stops_after(1) {
                self.doc = TERMINATED;
                break;
            }
            self.intervals = self.bound.intervals(self.doc, &mut scratch);
            if !self.intervals.is_empty() {
                break;
            }
            self.doc = self.docs.next(self.doc + 1);
        }
        self.doc
    }
}

impl DocSet for IntervalsScorer {
    fn advance(&mut self) -> DocId {
        if self.doc == TERMINATED {
            return TERMINATED;
        }
        self.find(self.doc + 1)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if target <= self.doc { self.doc } else { self.find(target) }
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.docs.count()
    }
}

impl Scorer for IntervalsScorer {
    /// Score of the current document: the closer to the boost, the shorter and the more numerous its
    /// intervals are.
    fn score(&mut self) -> Score {
        if !self.scoring {
            return self.boost;
        }
        let one = |interval: &Interval| {
            let longer = (interval.end - interval.start + 1).saturating_sub(self.shortest) + 1;
            1.0 / longer as f32
        };
        let frequency: f32 = self.intervals.iter().map(one).sum();
        self.boost * frequency / (frequency + 1.0)
    }
}

impl Meaning for IntervalsQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.intervals(self, scoring)
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted_words(wanted, &self.field, &self.rule)
    }
}

/// Collects all words of a rule, regardless of their positions.
fn wanted_words(wanted: &mut WantedWords<'_>, field: &str, rule: &IntervalsRule) -> Result<(), QueryError> {
    let of = |words: &IntervalsWords| words.use_field.clone().unwrap_or_else(|| field.to_owned());
    match &rule.source {
        IntervalsSource::Match { text, words, .. } => {
            let (text, analyzer) = (text.clone(), words.analyzer.clone());
            wanted.text(&MatchQuery { field: of(words), text, analyzer, ..MatchQuery::default() }, false)
        }
        IntervalsSource::Prefix(prefix, words) => {
            wanted.pattern(&of(words), TermFilter::Prefix(prefix.clone()), false);
            Ok(())
        }
        IntervalsSource::Wildcard(pattern, words) => {
            wanted.pattern(&of(words), TermFilter::Wildcard(Wildcard::new(pattern)), false);
            Ok(())
        }
        IntervalsSource::Regexp(pattern, words) => {
            let field = of(words);
            let automaton = Automaton::new(&RegexpQuery::new(field.as_str(), pattern.as_str()))?;
            wanted.pattern(&field, TermFilter::Regexp(automaton.into()), false);
            Ok(())
        }
        IntervalsSource::Range(lower, upper, words) => {
            wanted.pattern(&of(words), TermFilter::Range(lower.clone(), upper.clone()), false);
            Ok(())
        }
        IntervalsSource::Fuzzy { term, fuzziness, prefix_length, without_transpositions, words } => {
            let field = of(words);
            if !wanted.is_wanted(&field) {
                return Ok(());
            }
            let fuzzy = Fuzzy::new(term, fuzziness, *prefix_length, 0)?;
            wanted.fuzzy(&field, &fuzzy.with_transpositions(!without_transpositions))
        }
        IntervalsSource::AllOf(rules, _) | IntervalsSource::AnyOf(rules) => {
            rules.iter().try_for_each(|rule| wanted_words(wanted, field, rule))
        }
    }
}
