//! Shared vocabulary of Sparrow: identifiers, sparse vectors, token weights, and what the processors are busy with. The only I/O reads
//! what the system says of the process.

pub mod attempt;
mod executor;
pub mod niceness;
mod packed_tokens;
pub mod processors;
pub mod time_slice;
pub mod work;

pub use executor::{Executor, ExecutorLog, Executors};
pub use packed_tokens::{PackedTokens, TokenIter};

/// Dense number of a document inside one segment.
pub type DocId = u32;

/// Vocabulary entry of an encoder, or of one segment's token dictionary: one sparse dimension.
pub type TermId = u32;

/// Relevance of a document: for a sparse clause the dot product of query and stored weights.
pub type Score = f32;

/// Number of a write in one index, strictly increasing; breaks ties between equal scores.
pub type SeqNo = u64;

/// Token-weight pairs as users see them: readable tokens, finite positive weights.
///
/// Sorted by weight, highest first, equal weights by token; no token appears twice.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenWeights(Vec<(Box<str>, f32)>);

impl TokenWeights {
    /// Builds token weights from pairs in any order. Of a repeated token the highest weight stays;
    /// pairs whose weight is not finite and positive are dropped.
    pub fn from_pairs(mut pairs: Vec<(Box<str>, f32)>) -> Self {
        pairs.retain(|(_, weight)| weight.is_finite() && *weight > 0.0);
        pairs.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        pairs.dedup_by(|later, first| later.0 == first.0);
        pairs.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Self(pairs)
    }

    /// Builds token weights from pairs that are in order already; others are put in order as by
    /// [`TokenWeights::from_pairs`]. No token may appear twice.
    pub fn from_ordered(pairs: Vec<(Box<str>, f32)>) -> Self {
        let positive = pairs.iter().all(|(_, weight)| weight.is_finite() && *weight > 0.0);
        let ordered = pairs.is_sorted_by(|a, b| a.1 > b.1 || (a.1 == b.1 && a.0 < b.0));
        if positive && ordered { Self(pairs) } else { Self::from_pairs(pairs) }
    }

    /// The pairs, highest weight first.
    pub fn pairs(&self) -> &[(Box<str>, f32)] {
        &self.0
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no token carries weight.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::TokenWeights;

    #[test]
    fn pairs_are_sorted_deduplicated_and_positive() {
        let weights = TokenWeights::from_pairs(vec![
            ("b".into(), 1.0),
            ("a".into(), 1.0),
            ("b".into(), 2.0),
            ("zero".into(), 0.0),
            ("negative".into(), -1.0),
            ("nan".into(), f32::NAN),
        ]);
        assert_eq!(weights.pairs(), &[("b".into(), 2.0), ("a".into(), 1.0)]);
    }

    #[test]
    fn ordered_pairs_stay_and_others_are_ordered() {
        let pairs =
            |list: &[(&str, f32)]| list.iter().map(|(token, weight)| ((*token).into(), *weight)).collect();
        let ordered = TokenWeights::from_pairs(pairs(&[("b", 2.0), ("a", 1.0), ("c", 1.0)]));
        for list in [[("b", 2.0), ("a", 1.0), ("c", 1.0)], [("c", 1.0), ("a", 1.0), ("b", 2.0)]] {
            assert_eq!(TokenWeights::from_ordered(pairs(&list)), ordered);
        }
        assert!(TokenWeights::from_ordered(pairs(&[("a", f32::NAN), ("b", -1.0)])).is_empty());
    }
}
