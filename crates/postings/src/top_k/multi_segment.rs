//! The search over the segments, several of them at once.
//!
//! Small segments searched one by one would each pay for finding a threshold and for looking up documents that the
//! others' exclude. Together they share units, threshold and candidates.

use std::ops::{Deref, Range};

use sparrow_runtime::DocId;
use sparrow_runtime::processors::Busy;

use super::candidates::Errors;
use super::collect::Collector;
use super::parallel;
use super::search::{Clause, Search};
use super::{ScoreBounds, SegmentSearch, TopK, TopKRequest, exhaustive, filter_driven, filtered};
use crate::frame::Format;
use crate::reader::PostingsReader;
use crate::record::{Kind, Record};
use crate::resolved::ResolvedTerm;

/// Most query terms for which estimates are used; with more, the error bounds become as large as the
/// estimates.
const MAX_TERMS: usize = 4096;
/// Most documents of segments that are searched together. Larger segments have relatively small fixed costs,
/// and sums take 2 bytes a document.
const MAX_DOCS: u32 = 1 << 20;
/// Documents per part of a larger segment: what a search writes for each of them stays in the caches, and
/// processors can share the parts. A multiple of windows, chunks and regions.
const PART_DOCS: u32 = if cfg!(test) { 1 << 16 } else { 1 << 20 };
/// Most query terms, over all segments, that are searched together; each takes a few hundred bytes during the
/// search.
const MAX_CLAUSES: usize = 4096;

/// Searches runs of consecutive segments together, up to [`MAX_CLAUSES`] terms each.
pub(super) fn top_k<B>(segments: Vec<SegmentSearch<'_, B>>) -> Vec<TopK>
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    let _busy = Busy::begin();
    let mut tops: Vec<TopK> = segments.iter().map(|_| TopK::default()).collect();
    let mut matched = 0;
    let mut start = 0;
    let mut remaining = segments.into_iter().peekable();
    while remaining.peek().is_some() {
        let mut clauses = 0;
        let mut group: Vec<SegmentSearch<'_, B>> = Vec::new();
        while let Some(segment) = remaining.next_if(|segment| {
            clauses += segment.request.query.len();
            group.is_empty() || clauses <= MAX_CLAUSES
        }) {
            group.push(segment);
        }
        let end = start + group.len();
        search(group, &mut matched, &mut tops[start..end]);
        start = end;
    }
    tops
}

/// A segment that is searched together with others, or a part of a large one.
struct Pending<'a, 'r> {
    /// Index of the segment among all segments.
    place: usize,
    /// Number of the part's first document in the segment; `num_docs` is the part's length.
    first: DocId,
    num_docs: u32,
    window_size: u32,
    request: TopKRequest<'r>,
    bounds: Option<&'a mut ScoreBounds>,
    /// Range of its clauses among the clauses of all segments.
    clauses: Range<usize>,
}

/// Searches a few segments, each on its own or all together. Adds the matching documents to `matched`.
fn search<B>(segments: Vec<SegmentSearch<'_, B>>, matched: &mut u64, tops: &mut [TopK])
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    let resolved = resolve(&segments);
    let mut resolved = &resolved[..];
    // In one piece of memory, as all that there is per term: small segments are searched for less than allocations add up to.
    let mut clauses = Vec::with_capacity(segments.iter().map(|segment| segment.request.query.len()).sum());
    let mut pending = Vec::with_capacity(segments.len());
    let mut whole_segments = Vec::with_capacity(segments.len());
    let mut divided = Vec::new();
    for (place, segment) in segments.into_iter().enumerate() {
        let are_resolved = segment.terms_are_known();
        let SegmentSearch { reader, request: whole, bounds, terms } = segment;
        let looked_up;
        (looked_up, resolved) = resolved.split_at(if are_resolved { 0 } else { whole.query.len() });
        let mut request = whole;
        request.count_limit = request.count_limit.saturating_sub(*matched);
        if request.k == 0 && request.count_limit == 0 {
            continue;
        }
        if reader.format() == Format::V1 || !are_bounded(request.query) {
            tops[place] = exhaustive::top_k(reader, &request);
            *matched += tops[place].matched;
            continue;
        }
        let first = clauses.len();
        if are_resolved {
            clauses.extend(
                request.query.iter().zip(terms).map(|(term, resolved)| clause(reader, *term, resolved)),
            );
        } else {
            let has = request
                .query
                .iter()
                .zip(looked_up)
                .filter_map(|(term, resolved)| Some((term, resolved.as_ref()?)));
            clauses.extend(has.map(|(term, resolved)| clause(reader, *term, resolved)));
        }
        if clauses.len() == first {
            continue;
        }
        if filter_driven::is_cheaper(reader.num_docs(), &request, &clauses[first..]) {
            tops[place] = filter_driven::top_k(reader.num_docs(), &request, &clauses[first..]);
            *matched += tops[place].matched;
            clauses.truncate(first);
            continue;
        }
        // What the others before it match is not known yet: its limit is lowered when it is searched.
        let (docs, window_size) = (reader.num_docs(), reader.window());
        let pending_of = |first: DocId, num_docs, request, clauses| Pending {
            place,
            first,
            num_docs,
            window_size,
            request,
            bounds: None,
            clauses,
        };
        if docs <= PART_DOCS || bounds.is_some() || !PART_DOCS.is_multiple_of(window_size) {
            pending.push(Pending { bounds, ..pending_of(0, docs, whole, first..clauses.len()) });
        } else {
            divided.push((place, whole));
            // The clauses of the segment become those of its first part, and are repeated for the others.
            let of_segment = first..clauses.len();
            for start in (0..docs).step_by(PART_DOCS as usize) {
                let at = if start == 0 { first } else { clauses.len() };
                if start > 0 {
                    let part = of_segment.clone().map(|at| clauses[at].from(start));
                    clauses.extend(part.collect::<Vec<_>>());
                }
                let request = whole.from(start);
                pending.push(pending_of(start, PART_DOCS.min(docs - start), request, at..clauses.len()));
            }
        }
        whole_segments.push((place, reader, whole));
    }
    let Some(errors) = scale(&mut clauses, &pending) else {
        for (place, reader, mut request) in whole_segments {
            request.count_limit = request.count_limit.saturating_sub(*matched);
            tops[place] = exhaustive::top_k(reader, &request);
            *matched += tops[place].matched;
        }
        return;
    };
    let mut order: Vec<usize> = Vec::with_capacity(clauses.len());
    let mut keys = Vec::with_capacity(clauses.len());
    let dense = pending.iter().map(|of| order_clauses(&clauses[of.clauses.clone()], &mut keys, &mut order));
    let dense: Vec<usize> = dense.collect();
    let places: Vec<usize> = pending.iter().map(|pending| pending.place).collect();
    let searches = pending.into_iter().zip(dense).map(|(pending, dense)| {
        let Pending { first, num_docs, window_size, request, bounds, clauses: range, .. } = pending;
        let (dense, others) = order[range.clone()].split_at(dense);
        Search {
            segment: 0,
            first,
            num_docs,
            window_size,
            request,
            clauses: &clauses[range],
            dense,
            others,
            bounds,
            sums_at: 0,
            matched: 0,
            passed: filtered::passed(num_docs, &request),
        }
    });
    let searched = parallel::run(grouped(searches), errors, matched);
    for (place, top) in places.into_iter().zip(searched) {
        tops[place].matched += top.matched;
        tops[place].hits.extend(top.hits);
        tops[place].executors.extend(top.executors);
    }
    // Each part of a divided segment has given its own best hits: of those the best are kept.
    for (place, request) in divided {
        let mut all = Collector::new(request.k, request.floor());
        tops[place].hits.drain(..).for_each(|(doc, score)| all.push(doc, score));
        tops[place].hits = all.into_hits(&request);
    }
}

/// Groups of searches that are run together: each part of a large segment alone, other segments up to
/// [`MAX_DOCS`] documents.
fn grouped<'s, 'a, 'r>(searches: impl Iterator<Item = Search<'s, 'a, 'r>>) -> Vec<Vec<Search<'s, 'a, 'r>>> {
    let mut groups: Vec<Vec<Search<'s, 'a, 'r>>> = Vec::new();
    let mut docs = 0_u32;
    for mut search in searches {
        docs = docs.saturating_add(search.num_docs);
        match groups.last_mut() {
            Some(group) if search.first == 0 && docs <= MAX_DOCS => {
                search.segment = group.len();
                group.push(search);
            }
            _ => {
                docs = search.num_docs;
                groups.push(vec![search]);
            }
        }
    }
    groups
}

/// Appends the indexes of a segment's clauses: the dense ones, highest bound first, then the others. Returns
/// how many are dense. `keys` is a buffer for sorting.
fn order_clauses(clauses: &[Clause<'_>], keys: &mut Vec<u64>, order: &mut Vec<usize>) -> usize {
    let numbered = |dense| {
        let of = move |(_, clause): &(usize, &Clause<'_>)| (clause.postings.kind() == Kind::Dense) == dense;
        clauses.iter().enumerate().filter(of)
    };
    // Numbers that have it all are sorted faster than clauses are looked at again and again.
    keys.clear();
    keys.extend(numbered(true).map(|(i, clause)| u64::from(!clause.bound) << 32 | i as u64));
    keys.sort_unstable();
    order.extend(keys.iter().map(|key| *key as u32 as usize));
    order.extend(numbered(false).map(|(i, _)| i));
    keys.len()
}

/// Resolves the terms of all segments whose requests have none, segment after segment. Prefetches the records
/// of all segments first, as terms are scattered over the files.
fn resolve<B>(segments: &[SegmentSearch<'_, B>]) -> Vec<Option<ResolvedTerm>>
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    let unknown = || segments.iter().filter(|segment| !segment.terms_are_known());
    for SegmentSearch { reader, request, .. } in unknown() {
        request.query.iter().for_each(|(term, _)| reader.fetch_record(*term));
    }
    let mut records: Vec<Option<Record>> = Vec::new();
    for segment @ SegmentSearch { reader, request, terms, .. } in segments {
        if segment.terms_are_known() {
            terms.iter().for_each(|term| reader.fetch_start(&term.record));
        } else {
            records.extend(request.query.iter().map(|(term, _)| {
                reader.checked_record(*term).inspect(|record| {
                    reader.fetch_start(record);
                    reader.fetch_codes(record);
                })
            }));
        }
    }
    let readers = unknown().flat_map(|segment| segment.request.query.iter().map(|_| segment.reader));
    readers.zip(records).map(|(reader, record)| record.map(|record| reader.resolved(record))).collect()
}

/// Whether the query permits bounding estimates: at most [`MAX_TERMS`] terms, all weights positive and
/// finite.
fn are_bounded(query: &[(u32, f32)]) -> bool {
    query.len() <= MAX_TERMS && query.iter().all(|(_, weight)| weight.is_finite() && *weight > 0.0)
}

/// Clause of a term that the segment has; factor and bound are not set yet.
fn clause<'a, B>(reader: &'a PostingsReader<B>, (_, weight): (u32, f32), term: &ResolvedTerm) -> Clause<'a>
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    Clause { postings: reader.postings_of(term), weight, factor: 0, bound: 0 }
}

/// Chooses the units and sets factors and bounds of all segments' clauses; `None` when estimates cannot be
/// bounded.
fn scale(clauses: &mut [Clause<'_>], segments: &[Pending<'_, '_>]) -> Option<Errors> {
    let (mut highest, mut terms) = (0_f64, 0);
    for Pending { clauses: range, .. } in segments {
        let of = |clause: &Clause<'_>| f64::from(clause.weight) * f64::from(clause.postings.scale.max);
        let sum: f64 = clauses[range.clone()].iter().map(of).sum();
        // Outside, f32 scores overflow, or lose the precision that the error bounds count on.
        if !(1e-30..1e37).contains(&sum) {
            return None;
        }
        highest = highest.max(sum);
        terms = terms.max(range.len());
    }
    let units = (65_000.0 - 3.0 * terms as f64) / highest.max(1e-30);
    // Beyond the sums: one unit for rounding here, and what summing in f32 loses.
    let slack = 1.0 + 0.01 * terms as f64;
    let mut errors = Errors { units, above: slack, below: slack, distance: 0 };
    for Pending { clauses: range, .. } in segments {
        let (mut above, mut below) = (slack, slack);
        for clause in &mut clauses[range.clone()] {
            let step = f64::from(clause.weight) * f64::from(clause.postings.scale.step) * units;
            // At least 1, so that a scattered posting never adds 0.
            let factor = (step * 256.0 + 0.5).clamp(1.0, 65_535.0) as u32;
            clause.factor = factor as u16;
            clause.bound = (255 * factor) >> 8;
            above += step * 0.501 + 1.5;
            below += step * 1.001 + 1.5;
        }
        errors.above = errors.above.max(above);
        errors.below = errors.below.max(below);
    }
    errors.distance = (errors.above + errors.below).ceil() as i64;
    Some(errors)
}
