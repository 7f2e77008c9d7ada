//! Remembers where the tokens of earlier sparse queries are in the segments of a snapshot.

use std::hash::Hasher;

use parking_lot::RwLock;
use rustc_hash::{FxHashMap, FxHasher};
use tantivy::schema::Field;

use crate::segment_snapshot::SegmentSnapshot;
use sparrow_postings::{QueryTerms, SegmentTerm};

/// Highest number of entries (tokens times segments) that are kept, about 10 MB; when it is exceeded all are
/// dropped.
const MOST_TERMS: usize = 1 << 17;
/// Length of a token's key in bytes: up to one less for the token, and one for its length.
const NAME: usize = 32;

/// Caches the terms of tokens in every segment, for the lifetime of the snapshot.
#[derive(Default)]
pub(crate) struct TermRuns {
    fields: RwLock<FxHashMap<Field, FieldRuns>>,
}

impl TermRuns {
    /// The query terms of the tokens in each of `segments`, with their weights times `boost`.
    pub(crate) fn bind(
        &self,
        segments: &[SegmentSnapshot],
        field: Field,
        tokens: &[(Box<str>, f32)],
        boost: f32,
    ) -> QueryTerms {
        let count = segments.len();
        if let Some(bound) = self.fields.read().get(&field).and_then(|runs| runs.bind(tokens, boost, count)) {
            return bound;
        }
        let runs = look_up(segments, field, tokens);
        let bound = bind(runs.chunks(count.max(1)), tokens, boost, count);
        let mut fields = self.fields.write();
        let kept: usize = fields.values().map(|runs| runs.terms.len()).sum();
        if kept + runs.len() > MOST_TERMS {
            fields.clear();
        }
        if runs.len() <= MOST_TERMS {
            fields.entry(field).or_default().keep(tokens, &runs, count);
        }
        bound
    }
}

/// Known tokens of one field. The data is laid out so that each step can be fetched for all tokens of a query
/// at once: a number by hash, then the name to compare, then the terms in all segments.
#[derive(Default)]
struct FieldRuns {
    numbers: FxHashMap<u64, u32>,
    names: Vec<[u8; NAME]>,
    /// The terms of each token in all segments, token after token. One vector per segment would mean a cache
    /// miss for each segment instead of one for each token.
    terms: Vec<SegmentTerm>,
}

impl FieldRuns {
    /// The query terms of the tokens, if all are known; else `None`.
    fn bind(&self, tokens: &[(Box<str>, f32)], boost: f32, segments: usize) -> Option<QueryTerms> {
        let number =
            |(token, _): &(Box<str>, f32)| self.numbers.get(&hash(token)).map(|number| *number as usize);
        let numbers = tokens.iter().map(number).collect::<Option<Vec<usize>>>()?;
        let is_named = |(number, (token, _)): (&usize, &(Box<str>, f32))| {
            name(token).is_some_and(|name| self.names.get(*number) == Some(&name))
        };
        if !numbers.iter().zip(tokens).all(is_named) {
            return None;
        }
        let run = |number: &usize| self.terms.get(number * segments..(number + 1) * segments).unwrap_or(&[]);
        Some(bind(numbers.iter().map(run), tokens, boost, segments))
    }

    /// Stores the terms of tokens in all segments. Of tokens with the same hash only the first is kept.
    fn keep(&mut self, tokens: &[(Box<str>, f32)], runs: &[SegmentTerm], segments: usize) {
        for ((token, _), run) in tokens.iter().zip(runs.chunks(segments.max(1))) {
            let Some(name) = name(token) else { continue };
            let number = self.names.len() as u32;
            if *self.numbers.entry(hash(token)).or_insert(number) == number {
                self.names.push(name);
                self.terms.extend_from_slice(run);
            }
        }
    }
}

fn hash(token: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(token.as_bytes());
    hasher.finish()
}

/// A token's key: its bytes padded with zeros, with the length at the end; `None` when it is too long.
fn name(token: &str) -> Option<[u8; NAME]> {
    let mut name = [0; NAME];
    name[..NAME - 1].get_mut(..token.len())?.copy_from_slice(token.as_bytes());
    name[NAME - 1] = token.len() as u8;
    Some(name)
}

/// Looks up tokens in all segments; returns the terms of each token in all segments, token after token.
fn look_up(segments: &[SegmentSnapshot], field: Field, tokens: &[(Box<str>, f32)]) -> Vec<SegmentTerm> {
    let mut runs = vec![None; tokens.len() * segments.len()];
    for (place, segment) in segments.iter().enumerate() {
        let Some((reader, ids)) = segment.plugins().sparse_with_ids(field) else { continue };
        for (run, term) in runs.chunks_mut(segments.len()).zip(ids.terms(reader, tokens)) {
            run[place] = term.and_then(|term| Some((term, reader.resolve(term)?)));
        }
    }
    runs
}

/// Combines the terms of tokens in all segments with the tokens' weights times `boost`.
fn bind<'r>(
    runs: impl Iterator<Item = &'r [SegmentTerm]> + Clone,
    tokens: &[(Box<str>, f32)],
    boost: f32,
    segments: usize,
) -> QueryTerms {
    QueryTerms::new(runs.zip(tokens).map(|(run, (_, weight))| (run, weight * boost)), segments)
}

#[cfg(test)]
mod tests {
    use sparrow_postings::{Format, PostingsBuilder, PostingsReader};

    use super::*;

    fn tokens(names: &[&str]) -> Vec<(Box<str>, f32)> {
        names.iter().zip(1_u8..).map(|(name, weight)| ((*name).into(), f32::from(weight))).collect()
    }

    #[test]
    fn a_token_is_kept_for_all_segments_at_once() {
        let mut builder = PostingsBuilder::new();
        builder.add(0, [("a", 1.0), ("b", 2.0)]);
        let bytes = builder.finish(1, Format::CURRENT);
        let reader = PostingsReader::open(&bytes[..]).unwrap();
        let term = |name| {
            let term = reader.term(name)?;
            Some((term, reader.resolve(term)?))
        };
        let runs = [term("a"), None, term("b"), term("b"), None, None];
        let mut known = FieldRuns::default();
        assert_eq!(known.bind(&tokens(&["a"]), 1.0, 2), None);
        known.keep(&tokens(&["a", "b", "x"]), &runs, 2);
        known.keep(&tokens(&["a"]), &[None, None], 2);
        let bound = known.bind(&tokens(&["b", "x", "a"]), 2.0, 2).unwrap();
        let (query, resolved) = bound.of_segment(0);
        assert_eq!(query, [(1, 2.0), (0, 6.0)]);
        assert_eq!(resolved, [term("b").unwrap().1, term("a").unwrap().1]);
        assert_eq!(bound.of_segment(1).0, [(1, 2.0)]);
        assert!(bound.of_segment(2).0.is_empty());
        assert_eq!(known.bind(&tokens(&["a", "y"]), 1.0, 2), None);
    }

    #[test]
    fn another_token_with_the_same_hash_or_a_long_one_is_not_mistaken() {
        let mut known = FieldRuns::default();
        known.keep(&tokens(&["a"]), &[None], 1);
        known.numbers.insert(hash("b"), 0);
        assert_eq!(known.bind(&tokens(&["b"]), 1.0, 1), None);
        let long = "x".repeat(NAME);
        known.keep(&tokens(&[&long]), &[None], 1);
        assert_eq!(known.bind(&tokens(&[&long]), 1.0, 1), None);
        let longest = &long[1..];
        known.keep(&tokens(&[longest]), &[None], 1);
        assert!(known.bind(&tokens(&[longest]), 1.0, 1).is_some());
    }
}
