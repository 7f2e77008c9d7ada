//! `sampler`: the best documents of a search, as one bucket.

use sparrow_runtime::work;
use sparrow_tantivy_index::{DocAddress, Snapshot};

use super::bind::Matches;
use super::collect::each_block;
use super::error::AggregationError;

/// The `most` best of the documents of a search in one index, as a bitset for each segment. Those written first come first among
/// equals, so that the sample does not depend on how documents lie in segments.
///
/// # Errors
/// When there is no memory, or the request must stop.
pub fn sample(
    snapshot: &Snapshot,
    matching: &[Vec<u64>],
    scores: Option<&[Vec<f32>]>,
    most: usize,
) -> Result<Matches, AggregationError> {
    let score = |ord: usize, doc: u32| {
        let score = scores.and_then(|scores| scores.get(ord)?.get(doc as usize).copied());
        score.filter(|score| !score.is_nan()).unwrap_or(0.0)
    };
    let total: usize = matching.iter().flatten().map(|word| word.count_ones() as usize).sum();
    if total <= most {
        return Ok(matching.to_vec());
    }
    work::room_for(total * size_of::<f32>())?;
    let mut sorted: Vec<f32> = Vec::with_capacity(total);
    for (ord, words) in matching.iter().enumerate() {
        each_block(words.iter().copied(), |docs| {
            sorted.extend(docs.iter().map(|doc| score(ord, *doc)));
            Ok(())
        })?;
    }
    // The score of the last one; what is better is in the sample, and of what is as good, the first.
    let (_, least, _) = sorted.select_nth_unstable_by(most.saturating_sub(1), |a, b| b.total_cmp(a));
    let least = *least;
    drop(sorted);
    let (mut best, mut equal) = (Matches::new(), Matches::new());
    let mut found = 0;
    for (ord, words) in matching.iter().enumerate() {
        best.push(vec![0; words.len()]);
        equal.push(vec![0; words.len()]);
        each_block(words.iter().copied(), |docs| {
            for &doc in docs {
                let score = score(ord, doc);
                let set = if score > least { &mut best } else { &mut equal };
                if score >= least {
                    set[ord][doc as usize / 64] |= 1 << (doc % 64);
                }
                found += usize::from(score > least);
            }
            Ok(())
        })?;
    }
    let first = most.saturating_sub(found);
    // What they are chosen from grows to twice its size.
    work::room_for(2 * first.min(total) * size_of::<(u64, DocAddress)>())?;
    for (_, addr) in snapshot.scan_matching(Some(&equal), None, first) {
        best[addr.segment_ord as usize][addr.doc_id as usize / 64] |= 1 << (addr.doc_id % 64);
    }
    Ok(best)
}
