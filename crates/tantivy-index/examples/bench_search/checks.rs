//! Checks of results: every document is scored, and filters are evaluated on the corpus.

use sparrow_postings::{SharedThreshold, TopKRequest};
use sparrow_tantivy_index::Snapshot;
use sparrow_tantivy_index::query::{ScoredDoc, TopDocs};

/// The best `k` documents for a sparse question among those whose sequence number is `wanted`, and the number
/// of all matches; computed by scoring every document.
pub fn exhaustive(
    snapshot: &Snapshot,
    tokens: &[(String, f32)],
    k: usize,
    wanted: &dyn Fn(u64) -> bool,
) -> (Vec<(u64, f32)>, u64) {
    let (mut hits, mut matched) = (Vec::new(), 0);
    for (ord, segment) in snapshot.segments().iter().enumerate() {
        let Some(postings) = snapshot.sparse_reader(ord as u32, "v") else { continue };
        let query: Vec<(u32, f32)> =
            tokens.iter().filter_map(|(token, weight)| Some((postings.term(token)?, *weight))).collect();
        let mut filter = vec![0_u64; postings.num_docs().div_ceil(64) as usize];
        for doc in 0..postings.num_docs() {
            filter[doc as usize / 64] |= u64::from(wanted(segment.seq_no(doc))) << (doc % 64);
        }
        let found = postings.top_k_exhaustive(&TopKRequest {
            query: &query,
            k,
            min_score: None,
            threshold: &SharedThreshold::new(),
            live: segment.live(),
            filter: Some(&filter),
            count_limit: u64::MAX,
            tie: &|doc| segment.seq_no(doc),
            cancel: None,
        });
        matched += found.matched;
        hits.extend(found.hits.into_iter().map(|(doc, score)| (segment.seq_no(doc), score)));
    }
    hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    hits.truncate(k);
    (hits, matched)
}

/// Sequence number and score of each hit.
pub fn named(hits: &[ScoredDoc]) -> Vec<(u64, f32)> {
    hits.iter().map(|hit| (hit.seq_no, hit.score)).collect()
}

/// Checks the result of a sparse question against scoring every document; it must be equal to the bit.
pub fn check(
    snapshot: &Snapshot,
    tokens: &[(String, f32)],
    found: &TopDocs,
    wanted: &dyn Fn(u64) -> bool,
    what: &str,
) -> Result<(), String> {
    let (expected, matched) = exhaustive(snapshot, tokens, 10, wanted);
    if named(&found.hits) != expected {
        return Err(format!("{what}: {:?} instead of {expected:?}", named(&found.hits)));
    }
    if found.total != matched.min(10_000) {
        return Err(format!("{what}: {} hits counted instead of {matched}", found.total));
    }
    Ok(())
}

/// Checks the result of a sum of clauses against the sum of their scores, which may differ by rounding
/// because single-precision sums depend on their order.
pub fn check_sum(found: &TopDocs, expected: &[(u64, f32)], what: &str) -> Result<(), String> {
    let close = |a: f32, b: f32| (a - b).abs() <= 2e-6 * a.abs().max(b.abs());
    let agrees = found.hits.len() == expected.len().min(10)
        && found.hits.iter().zip(expected).all(|(hit, (seq_no, score))| {
            close(hit.score, *score)
                && (hit.seq_no == *seq_no
                    || expected.iter().any(|other| other.0 == hit.seq_no && close(other.1, hit.score)))
        });
    if agrees {
        Ok(())
    } else {
        let expected = &expected[..expected.len().min(10)];
        Err(format!("{what}: {:?} instead of {expected:?}", named(&found.hits)))
    }
}
