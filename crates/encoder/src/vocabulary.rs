//! Readable tokens by id, and the order in which equal weights are listed.

use sparrow_runtime::TokenWeights;

/// The vocabulary of a sparse model: the string of each token id.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    tokens: Vec<Option<Box<str>>>,
    /// Rank of each token id in alphabetical order of the tokens; ids with the same string have successive ranks.
    /// `u32::MAX` for an id without a token.
    ranks: Vec<u32>,
    /// Whether two token ids have the same string.
    ambiguous: bool,
}

impl Vocabulary {
    /// Builds the vocabulary from the token string of each id; `None` for an id without a token.
    pub(crate) fn new(tokens: Vec<Option<Box<str>>>) -> Self {
        let mut order: Vec<u32> =
            (0..tokens.len() as u32).filter(|id| tokens[*id as usize].is_some()).collect();
        order.sort_unstable_by(|a, b| tokens[*a as usize].cmp(&tokens[*b as usize]));
        let ambiguous = order.windows(2).any(|two| tokens[two[0] as usize] == tokens[two[1] as usize]);
        let mut ranks = vec![u32::MAX; tokens.len()];
        for (rank, id) in (0..).zip(order) {
            ranks[id as usize] = rank;
        }
        Self { tokens, ranks, ambiguous }
    }

    /// The token string of an id; `None` if the id has none.
    pub(crate) fn token(&self, id: u32) -> Option<&str> {
        self.tokens.get(id as usize)?.as_deref()
    }

    /// Turns pairs of token id and weight into a map from token string to weight. Ids without a token are left out.
    pub(crate) fn readable(&self, pairs: &[(u32, f32)]) -> TokenWeights {
        let spelled = |&(id, weight): &(u32, f32)| Some((self.token(id)?.into(), weight));
        if self.ambiguous {
            return TokenWeights::from_pairs(pairs.iter().filter_map(spelled).collect());
        }
        // Numbers are sorted instead of strings: higher weights first, then by rank.
        let mut keyed: Vec<(u64, u32)> = (0..)
            .zip(pairs)
            .map(|(place, (id, weight))| {
                let rank = self.ranks.get(*id as usize).copied().unwrap_or(u32::MAX);
                (u64::from(!weight.to_bits()) << 32 | u64::from(rank), place)
            })
            .collect();
        keyed.sort_unstable();
        TokenWeights::from_ordered(
            keyed.into_iter().filter_map(|(_, place)| spelled(&pairs[place as usize])).collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use sparrow_runtime::TokenWeights;

    use super::Vocabulary;

    fn vocabulary(tokens: &[&str]) -> Vocabulary {
        Vocabulary::new(tokens.iter().map(|token| (!token.is_empty()).then(|| (*token).into())).collect())
    }

    #[test]
    fn weights_are_listed_as_from_strings() {
        for tokens in [["b", "", "a", "c"], ["b", "", "a", "a"]] {
            let vocabulary = vocabulary(&tokens);
            for pairs in [
                [(0, 1.0), (2, 1.0), (3, 2.5)],
                [(0, 3.0), (2, 0.5), (3, 0.25)],
                [(1, 1.0), (2, 2.0), (9, 1.0)],
            ] {
                let spelled =
                    pairs.iter().filter_map(|(id, weight)| Some((vocabulary.token(*id)?.into(), *weight)));
                assert_eq!(vocabulary.readable(&pairs), TokenWeights::from_pairs(spelled.collect()));
            }
        }
    }
}
