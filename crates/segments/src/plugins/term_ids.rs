//! Caches the numbers that tokens of queries have in one segment's dictionary.

use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use sparrow_runtime::TermId;

use super::container::SparseReader;

/// Most cached tokens; when exceeded, the cache is cleared. More tokens than this are unlikely to be a
/// vocabulary.
const MOST_TOKENS: usize = 1 << 16;

/// Cache of dictionary look-ups. Without it, the binary searches for a query of 23 tokens take 4 µs per
/// segment. Its memory grows with the distinct tokens of queries.
#[derive(Default)]
pub struct TermIds {
    known: RwLock<FxHashMap<Box<str>, Option<TermId>>>,
}

impl TermIds {
    /// Term ids of the tokens that the segment has, with their weights times `boost`.
    pub fn resolve(
        &self,
        reader: &SparseReader,
        tokens: &[(Box<str>, f32)],
        boost: f32,
    ) -> Vec<(TermId, f32)> {
        let terms = self.terms(reader, tokens).into_iter().zip(tokens);
        terms.filter_map(|(term, (_, weight))| Some((term?, weight * boost))).collect()
    }

    /// Term id of each token in the segment; `None` for one that it lacks.
    pub fn terms(&self, reader: &SparseReader, tokens: &[(Box<str>, f32)]) -> Vec<Option<TermId>> {
        let mut terms = Vec::with_capacity(tokens.len());
        let mut new = Vec::new();
        let known = self.known.read();
        for (token, _) in tokens {
            terms.push(match known.get(token) {
                Some(term) => *term,
                None => {
                    let term = reader.term(token);
                    new.push((token.clone(), term));
                    term
                }
            });
        }
        drop(known);
        if !new.is_empty() {
            let mut known = self.known.write();
            if known.len() + new.len() > MOST_TOKENS {
                known.clear();
            }
            // Of a query that is longer than that, the first.
            known.extend(new.into_iter().take(MOST_TOKENS));
        }
        terms
    }
}

#[cfg(test)]
mod tests {
    use sparrow_postings::{Format, PostingsBuilder, PostingsReader};
    use tantivy::directory::OwnedBytes;

    use super::*;

    #[test]
    fn a_repeated_look_up_finds_the_same() {
        let mut builder = PostingsBuilder::new();
        builder.add(0, [("b", 1.0), ("a", 2.0)]);
        let reader = PostingsReader::open(OwnedBytes::new(builder.finish(1, Format::V3))).unwrap();
        let ids = TermIds::default();
        let query: Vec<(Box<str>, f32)> = vec![("b".into(), 1.0), ("x".into(), 1.0), ("a".into(), 0.5)];
        for _ in 0..2 {
            assert_eq!(ids.resolve(&reader, &query, 2.0), [(1, 2.0), (0, 1.0)]);
        }
        assert_eq!(ids.known.read().len(), 3);
    }

    #[test]
    fn it_does_not_grow_without_bound() {
        let mut builder = PostingsBuilder::new();
        builder.add(0, [("a", 2.0)]);
        let reader = PostingsReader::open(OwnedBytes::new(builder.finish(1, Format::V3))).unwrap();
        let ids = TermIds::default();
        for part in 0..10_u32 {
            let query: Vec<(Box<str>, f32)> =
                (0..10_000).map(|token| (format!("{part}-{token}").into(), 1.0)).collect();
            assert!(ids.resolve(&reader, &query, 1.0).is_empty());
            assert!(ids.known.read().len() <= MOST_TOKENS);
        }
    }
}
