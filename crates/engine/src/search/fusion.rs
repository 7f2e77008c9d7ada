//! Reciprocal rank fusion: one list out of several ranked ones.
//!
//! A document scores `Σ 1 / (rank_constant + rank)` over the lists that hold it, ranks counted from 1.
//! Only ranks count, so scores of different kinds need no common scale.
//! Source: Cormack, Clarke, Büttcher, "Reciprocal Rank Fusion outperforms Condorcet" (SIGIR 2009).

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// A document of the fused list.
#[derive(Debug, Clone, PartialEq)]
pub struct Fused<D> {
    /// The document.
    pub doc: D,
    /// Its fused score.
    pub score: f32,
    /// Its rank in each list, from 1; `None` where a list does not hold it.
    pub ranks: Vec<Option<u32>>,
}

/// Fuses `lists`, each best first and without repeats.
///
/// Equal scores are ordered by the better rank in the earliest list that tells them apart, then by the
/// document itself, so that the result depends on nothing but the lists.
pub fn reciprocal_rank_fusion<D>(lists: &[Vec<D>], rank_constant: u32) -> Vec<Fused<D>>
where
    D: Copy + Eq + Hash + Ord,
{
    let mut places: FxHashMap<D, usize> = FxHashMap::default();
    let mut fused: Vec<Fused<D>> = Vec::new();
    for (number, list) in lists.iter().enumerate() {
        for (index, doc) in list.iter().enumerate() {
            let place = *places.entry(*doc).or_insert_with(|| {
                fused.push(Fused { doc: *doc, score: 0.0, ranks: vec![None; lists.len()] });
                fused.len() - 1
            });
            let rank = index as u32 + 1;
            fused[place].ranks[number] = Some(rank);
            fused[place].score += 1.0 / (rank_constant as f32 + rank as f32);
        }
    }
    fused.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| rank_order(&a.ranks).cmp(rank_order(&b.ranks)))
            .then_with(|| a.doc.cmp(&b.doc))
    });
    fused
}

fn rank_order(ranks: &[Option<u32>]) -> impl Iterator<Item = u32> {
    ranks.iter().map(|rank| rank.unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::reciprocal_rank_fusion;

    #[test]
    fn the_worked_example_of_the_documentation() {
        let fused = reciprocal_rank_fusion(&[vec![4, 3, 2, 1], vec![3, 2, 1, 5]], 1);
        let expected = [(3, 0.833_333_4), (2, 0.583_333_4), (4, 0.5), (1, 0.45), (5, 0.2)];
        assert_eq!(fused.len(), expected.len());
        for (hit, (doc, score)) in fused.iter().zip(expected) {
            assert_eq!(hit.doc, doc);
            assert!((hit.score - score).abs() < 1e-6, "{} is not {score}", hit.score);
        }
        assert_eq!(fused[0].ranks, [Some(2), Some(1)]);
        assert_eq!(fused[2].ranks, [Some(1), None]);
    }

    #[test]
    fn ties_prefer_the_earlier_list_then_the_smaller_document() {
        let fused = reciprocal_rank_fusion(&[vec![9], vec![1]], 60);
        assert_eq!(fused.iter().map(|hit| hit.doc).collect::<Vec<_>>(), [9, 1]);
        let swapped = reciprocal_rank_fusion(&[vec![2, 1], vec![1, 2]], 60);
        assert_eq!(swapped[0].score, swapped[1].score);
        assert_eq!(swapped.iter().map(|hit| hit.doc).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn empty_lists_fuse_to_nothing() {
        assert!(reciprocal_rank_fusion::<u32>(&[vec![], vec![]], 60).is_empty());
    }
}
