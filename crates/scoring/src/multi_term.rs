//! Clauses that match many terms of one field: prefix, wildcard, regular expression, string range.

use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::query::Weight;
use tantivy::schema::IndexRecordOption;
use tantivy::termdict::TermStreamer;
use tantivy::{InvertedIndexReader, Searcher, SegmentReader};

use crate::error::{self, QueryError};
use crate::fields::StringTerms;
use crate::weights;
use sparrow_query::regexp::Automaton;
use sparrow_query::wildcard::Wildcard;
use sparrow_runtime::work;
use sparrow_segments::doc_bits::DocBits;

/// Selects terms of a field.
pub enum TermFilter {
    /// Terms that begin with a prefix.
    Prefix(String),
    /// Terms that match a wildcard pattern.
    Wildcard(Wildcard),
    /// Terms that a regular expression matches as a whole.
    Regexp(Arc<Automaton>),
    /// Terms between two others, in byte order.
    Range(Bound<String>, Bound<String>),
    /// Terms whose first and second half are each between two others.
    Halves(RangeInclusive<String>, RangeInclusive<String>),
    /// Terms in a list.
    Set(Vec<String>),
}

/// A term that a clause expands to.
#[derive(Debug, Clone, PartialEq)]
pub struct Expansion {
    /// The term as the index holds it.
    pub value: String,
    /// Factor on the term's score: 1 for the same term, lower the more edits it takes.
    pub boost: f32,
    /// Number of documents that hold the term.
    pub doc_freq: u64,
}

/// A weight for the documents that hold any of the selected terms, each with score 1.
pub fn multi_term(terms: StringTerms, filter: TermFilter, case_insensitive: bool) -> Box<dyn Weight> {
    weights::bits(move |reader| matching_docs(reader, &terms, &filter, case_insensitive))
}

fn matching_docs(
    reader: &SegmentReader,
    terms: &StringTerms,
    filter: &TermFilter,
    case_insensitive: bool,
) -> tantivy::Result<DocBits> {
    let mut docs = weights::empty_docs(reader)?;
    let inverted = reader.inverted_index(terms.field)?;
    if let (TermFilter::Set(values), false) = (filter, case_insensitive) {
        for value in values {
            if let Some(mut postings) =
                inverted.read_block_postings(&terms.term(value), IndexRecordOption::Basic)?
            {
                docs.insert_postings(&mut postings);
            }
        }
        return Ok(docs);
    }
    let prefix = terms.key_prefix();
    let mut stream = key_stream(&inverted, &prefix, filter, case_insensitive)?;
    let mut effort = Effort::of(filter);
    while stream.advance() {
        if effort.look(stream.key()) {
            effort.spend().map_err(error::over)?;
            // The documents found so far are never answered: the search checks the same flag once more before it answers.
            if work::is_stopped() {
                break;
            }
        }
        let Some(value) = stream.key().strip_prefix(&prefix[..]) else { continue };
        let Ok(value) = std::str::from_utf8(value) else { continue };
        if filter.accepts(value, case_insensitive) {
            let mut postings =
                inverted.read_block_postings_from_terminfo(stream.value(), IndexRecordOption::Basic)?;
            docs.insert_postings(&mut postings);
        }
    }
    effort.spend().map_err(error::over)?;
    Ok(docs)
}

/// Counts the effort of comparing terms with a filter, in steps, and charges it to the request in batches.
pub struct Effort {
    /// Number of steps for 16 bytes of a term.
    weight: u64,
    pending: u64,
}

impl Effort {
    /// Number of steps that are charged at a time.
    const PIECE: u64 = 1024;

    pub fn of(filter: &TermFilter) -> Self {
        let weight = match filter {
            TermFilter::Wildcard(pattern) => 1 + pattern.pieces() as u64 / 64,
            _ => 1,
        };
        Self { weight, pending: 0 }
    }

    /// Counts the comparison of a term; returns whether a batch is full.
    fn look(&mut self, key: &[u8]) -> bool {
        self.pending += self.weight * (1 + key.len() as u64 / 16);
        self.pending >= Self::PIECE
    }

    /// Counts further steps for a term, and charges a full batch.
    pub fn add(&mut self, steps: u64) -> Result<(), work::TooMuchEffort> {
        self.pending += steps;
        if self.pending >= Self::PIECE { self.spend() } else { Ok(()) }
    }

    /// Charges the steps counted so far to the request.
    ///
    /// # Errors
    /// When the request has used up the effort it may make.
    fn spend(&mut self) -> Result<(), work::TooMuchEffort> {
        work::spend(std::mem::take(&mut self.pending))
    }
}

/// A stream over the part of a dictionary in which all selected terms lie.
fn key_stream<'a>(
    inverted: &'a InvertedIndexReader,
    prefix: &[u8],
    filter: &TermFilter,
    case_insensitive: bool,
) -> tantivy::Result<TermStreamer<'a>> {
    let (lower, upper) = key_range(prefix, filter, case_insensitive);
    let mut range = inverted.terms().range();
    range = match &lower {
        Bound::Included(key) => range.ge(key),
        Bound::Excluded(key) => range.gt(key),
        Bound::Unbounded => range,
    };
    range = match &upper {
        Bound::Included(key) => range.le(key),
        Bound::Excluded(key) => range.lt(key),
        Bound::Unbounded => range,
    };
    Ok(range.into_stream()?)
}

/// Calls `see` with each selected term and the number of documents of one segment that hold it, segment after
/// segment. When `see` returns false, the rest of that segment is skipped.
pub fn scan_terms(
    searcher: &Searcher,
    terms: &StringTerms,
    filter: &TermFilter,
    case_insensitive: bool,
    cancel: Option<&AtomicBool>,
    see: &mut dyn FnMut(&str, u64) -> bool,
) -> Result<(), QueryError> {
    let prefix = terms.key_prefix();
    let mut effort = Effort::of(filter);
    for reader in searcher.segment_readers() {
        let inverted = reader.inverted_index(terms.field)?;
        let mut stream = key_stream(&inverted, &prefix, filter, case_insensitive)?;
        while stream.advance() {
            if effort.look(stream.key()) {
                effort.spend()?;
                work::check()?;
                if cancel.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                    return Err(QueryError::Cancelled);
                }
            }
            let Some(value) = stream.key().strip_prefix(&prefix[..]) else { continue };
            let Ok(value) = std::str::from_utf8(value) else { continue };
            if !see(value, u64::from(stream.value().doc_freq)) {
                break;
            }
        }
    }
    Ok(effort.spend()?)
}

/// The first terms of the index that the filter selects, in byte order.
pub fn first_terms(
    searcher: &Searcher,
    terms: &StringTerms,
    filter: &TermFilter,
    case_insensitive: bool,
    limit: usize,
    cancel: Option<&AtomicBool>,
) -> Result<Vec<Expansion>, QueryError> {
    let mut doc_freqs = std::collections::BTreeMap::<String, u64>::new();
    let mut last = String::new();
    let mut of_segment = 0;
    scan_terms(searcher, terms, filter, case_insensitive, cancel, &mut |value, doc_freq| {
        // A dictionary that starts over is the next segment's.
        if value <= last.as_str() {
            of_segment = 0;
        }
        value.clone_into(&mut last);
        if filter.accepts(value, case_insensitive) {
            *doc_freqs.entry(value.to_owned()).or_insert(0) += doc_freq;
            of_segment += 1;
        }
        of_segment < limit
    })?;
    let expansions = doc_freqs.into_iter().map(|(value, doc_freq)| Expansion { value, boost: 1.0, doc_freq });
    Ok(expansions.take(limit).collect())
}

/// Range of dictionary keys in which all selected terms lie.
fn key_range(prefix: &[u8], filter: &TermFilter, case_insensitive: bool) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let key = |value: &str| [prefix, value.as_bytes()].concat();
    let field_end = || after_prefix(prefix);
    let starts_with = |value: &str| (Bound::Included(key(value)), after_prefix(&key(value)));
    match filter {
        TermFilter::Range(lower, upper) => {
            let lower = match lower {
                Bound::Included(value) => Bound::Included(key(value)),
                Bound::Excluded(value) => Bound::Excluded(key(value)),
                Bound::Unbounded => Bound::Included(prefix.to_vec()),
            };
            let upper = match upper {
                Bound::Included(value) => Bound::Included(key(value)),
                Bound::Excluded(value) => Bound::Excluded(key(value)),
                Bound::Unbounded => field_end(),
            };
            (lower, upper)
        }
        TermFilter::Halves(first, _) => {
            (Bound::Included(key(first.start())), after_prefix(&key(first.end())))
        }
        TermFilter::Prefix(value) if !case_insensitive => starts_with(value),
        TermFilter::Wildcard(pattern) if !case_insensitive => starts_with(&pattern.literal_prefix()),
        TermFilter::Regexp(automaton) => starts_with(&automaton.literal_prefix()),
        _ => (Bound::Included(prefix.to_vec()), field_end()),
    }
}

/// The first key after all that start with `prefix`.
fn after_prefix(prefix: &[u8]) -> Bound<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Bound::Excluded(end);
        }
    }
    Bound::Unbounded
}

impl TermFilter {
    pub fn accepts(&self, value: &str, case_insensitive: bool) -> bool {
        match self {
            TermFilter::Prefix(prefix) if case_insensitive => {
                value.len() >= prefix.len()
                    && value.as_bytes()[..prefix.len()].eq_ignore_ascii_case(prefix.as_bytes())
            }
            TermFilter::Prefix(prefix) => value.starts_with(prefix.as_str()),
            TermFilter::Wildcard(pattern) => pattern.matches(value, case_insensitive),
            TermFilter::Regexp(automaton) => automaton.matches(value),
            TermFilter::Range(lower, upper) => {
                (match lower {
                    Bound::Included(lower) => value >= lower.as_str(),
                    Bound::Excluded(lower) => value > lower.as_str(),
                    Bound::Unbounded => true,
                }) && match upper {
                    Bound::Included(upper) => value <= upper.as_str(),
                    Bound::Excluded(upper) => value < upper.as_str(),
                    Bound::Unbounded => true,
                }
            }
            TermFilter::Halves(first, second) => value
                .split_at_checked(value.len() / 2)
                .is_some_and(|(one, other)| holds(first, one) && holds(second, other)),
            TermFilter::Set(values) => values.iter().any(|wanted| wanted.eq_ignore_ascii_case(value)),
        }
    }
}

fn holds(range: &RangeInclusive<String>, value: &str) -> bool {
    range.start().as_str() <= value && value <= range.end().as_str()
}
