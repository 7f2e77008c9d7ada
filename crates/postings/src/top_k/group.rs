//! The search of segments or parts that share units, threshold and candidates.

use sparrow_runtime::{DocId, Executor, Executors};

use super::candidates::{Errors, TopKCandidates};
use super::collect::Collector;
use super::exact::for_each_candidate;
use super::scratch::Scratch;
use super::search::Search;
use super::{TopK, TopKRequest, blocks, count};

/// Searches segments or parts that share units and threshold, and returns a result for each. Adds the matching
/// documents to `matched`.
pub(super) fn run(
    mut searches: Vec<Search<'_, '_, '_>>,
    errors: Errors,
    matched: &mut u64,
    scratch: &mut Scratch,
) -> Vec<TopK> {
    let Some(request) = searches.first().map(|search| search.request) else { return Vec::new() };
    let mut candidates = TopKCandidates::new(&request, errors, std::mem::take(&mut scratch.candidates));
    let useful = blocks::are_useful(&searches);
    let by_documents = useful && searches.iter().all(Search::is_strict);
    let by_blocks = useful && !by_documents && blocks::collect(&mut searches, &mut candidates, scratch);
    let wanted = request.count_limit.saturating_sub(*matched);
    if by_blocks && wanted > 0 && wanted < u64::from(u32::MAX) {
        count::count_frequent(&mut searches, wanted, scratch);
    }
    let mut executors = Executors::default();
    for search in &mut searches {
        search.request.count_limit = search.request.count_limit.saturating_sub(*matched);
        executors.insert(if by_blocks {
            search.count(scratch);
            Executor::SparseBlockMax
        } else if by_documents && search.collect_by_documents(&mut candidates, scratch) {
            Executor::SparseDocumentBounds
        } else {
            search.scan(&mut candidates, scratch);
            Executor::SparseWindowAtATime
        });
        *matched += search.matched;
    }
    let top = if request.is_cancelled() {
        // One for each search all the same, as the caller tells by their order whose they are.
        searches.iter().map(|_| TopK::default()).collect()
    } else {
        finish(&searches, &request, executors, &mut candidates)
    };
    scratch.candidates = candidates.into_scratch();
    top
}

/// Computes the exact scores of the candidates of all segments and ranks them.
fn finish(
    searches: &[Search<'_, '_, '_>],
    request: &TopKRequest<'_>,
    executors: Executors,
    candidates: &mut TopKCandidates<'_>,
) -> Vec<TopK> {
    candidates.raise_to_score(request.floor());
    let candidates = candidates.candidates();
    let docs: Vec<DocId> = candidates.iter().map(|candidate| candidate.doc).collect();
    let mut start = 0;
    let wanted = searches.iter().enumerate().map(|(segment, search)| {
        let first = start;
        start += candidates[first..].partition_point(|candidate| candidate.segment <= segment);
        (segment, search.clauses, &docs[first..start])
    });
    let wanted: Vec<_> = wanted.collect();
    let collectors =
        wanted.iter().map(|(_, _, docs)| Collector::with_room(request.k, request.floor(), docs.len()));
    let mut collectors: Vec<Collector> = collectors.collect();
    let searched = searches.iter().map(|search| u64::from(search.num_docs)).sum();
    for_each_candidate(wanted.into_iter(), searched, |segment, doc, score| {
        collectors[segment].push(searches[segment].first + doc, score)
    });
    let tops = searches.iter().zip(collectors).map(|(search, collector)| TopK {
        hits: collector.into_hits(&search.request),
        matched: search.matched,
        executors,
    });
    let tops: Vec<TopK> = tops.collect();
    if tops.len() > 1 {
        let mut scores: Vec<f32> = tops.iter().flat_map(|top| &top.hits).map(|hit| hit.1).collect();
        if let Some(place) = scores.len().checked_sub(request.k)
            && request.k > 0
        {
            let (_, kth, _) = scores.select_nth_unstable_by(place, f32::total_cmp);
            request.threshold.raise(*kth);
        }
    }
    tops
}
