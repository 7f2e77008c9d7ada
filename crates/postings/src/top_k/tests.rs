use proptest::prelude::*;
use sparrow_runtime::Executor;

use super::*;
use crate::Format;
use crate::testing::{Model, random_bits, random_query};

/// Request for all documents with an exact count; ties are broken by document number.
fn plain_request<'a>(query: &'a [(u32, f32)], k: usize, threshold: &'a SharedThreshold) -> TopKRequest<'a> {
    TopKRequest {
        query,
        k,
        min_score: None,
        threshold,
        live: None,
        filter: None,
        count_limit: u64::MAX,
        tie: &|doc| u64::from(doc),
        cancel: None,
    }
}

#[derive(Debug, Clone)]
struct Case {
    seed: u64,
    num_docs: usize,
    vocabulary: usize,
    k: usize,
    count_limit: u64,
    live: Option<f64>,
    filter: Option<f64>,
    /// Rank, from 0, of the hit whose score becomes the minimum score; `threshold` likewise.
    min_score: Option<usize>,
    threshold: Option<usize>,
}

fn density() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        3 => Just(None),
        1 => prop_oneof![Just(0.0), Just(0.0005), Just(0.01), Just(0.1), Just(0.5), Just(1.0)].prop_map(Some),
    ]
}

fn cases() -> impl Strategy<Value = Case> {
    // One window, several of earlier builds, several.
    let size = prop_oneof![
        60 => 1_usize..150, 30 => 150_usize..9000, 10 => 9_000_usize..40_000, 2 => 60_000_usize..140_000
    ];
    let k = prop_oneof![Just(0_usize), Just(1), Just(3), Just(10), Just(100), Just(10_000)];
    let limit = prop_oneof![Just(0_u64), Just(1), Just(50), Just(10_000), Just(u64::MAX)];
    let place = || proptest::option::weighted(0.3, 0_usize..200);
    (any::<u64>(), size, 1_usize..60, k, limit, density(), density(), place(), place()).prop_map(
        |(seed, num_docs, vocabulary, k, count_limit, live, filter, min_score, threshold)| Case {
            seed,
            num_docs,
            vocabulary,
            k,
            count_limit,
            live,
            filter,
            min_score,
            threshold,
        },
    )
}

/// Ties are broken against document order, to see that the key decides.
fn tie(doc: DocId) -> u64 {
    u64::from(doc) ^ 0x2a
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn pruned_equals_exhaustive(case in cases()) {
        let model = Model::random(case.seed, case.num_docs, case.vocabulary);
        let reader = model.reader(Format::V3);
        let plain = model.reader(Format::V1);
        let former = model.former_reader();
        let live = case.live.map(|density| random_bits(case.seed ^ 1, case.num_docs, density));
        let filter = case.filter.map(|density| random_bits(case.seed ^ 2, case.num_docs, density));
        for round in 0..6 {
            let query = random_query(case.seed.wrapping_add(round), &reader);
            let request = |threshold| TopKRequest {
                query: &query,
                k: case.k,
                min_score: None,
                threshold,
                live: live.as_deref(),
                filter: filter.as_deref(),
                count_limit: case.count_limit,
                tie: &tie,
                cancel: None,
            };
            let none = SharedThreshold::new();
            let ranking = reader.top_k_exhaustive(&TopKRequest { k: usize::MAX, ..request(&none) }).hits;
            // Both ways share the collector, so its order is checked by itself.
            prop_assert!(ranking.is_sorted_by(|a, b| a.1 > b.1 || (a.1 == b.1 && tie(a.0) < tie(b.0))));
            let at = |place: Option<usize>| Some(ranking.get(place?)?.1);
            let (first, second, third) = (SharedThreshold::new(), SharedThreshold::new(), SharedThreshold::new());
            for threshold in [&first, &second, &third] {
                threshold.raise(at(case.threshold).unwrap_or(0.0));
            }
            let finish = |mut found: TopK| {
                found.matched = found.matched.min(case.count_limit);
                found.executors = Executors::default();
                found
            };
            let min_score = at(case.min_score);
            let expected = finish(reader.top_k_exhaustive(&TopKRequest { min_score, ..request(&first) }));
            let pruned = finish(reader.top_k(&TopKRequest { min_score, ..request(&second) }));
            prop_assert_eq!(&pruned, &expected, "query {:?}", query);
            if expected.hits.len() == case.k {
                prop_assert_eq!(second.get(), first.get());
            }
            // The bounds on the side change nothing, and hold for every document that is wanted.
            let fourth = SharedThreshold::new();
            fourth.raise(at(case.threshold).unwrap_or(0.0));
            let (bounded, bounds) = reader.top_k_bounded(&TopKRequest { min_score, ..request(&fourth) });
            prop_assert_eq!(&finish(bounded), &expected);
            for (doc, score) in &ranking {
                prop_assert!(bounds.most(*doc) >= *score, "{} of {doc} above {}", score, bounds.most(*doc));
            }
            let fifth = SharedThreshold::new();
            fifth.raise(at(case.threshold).unwrap_or(0.0));
            if let Some(former) = &former {
                prop_assert_eq!(&finish(former.top_k(&TopKRequest { min_score, ..request(&fifth) })), &expected);
            }
            // The other format gives the same bits: an upgrade changes no score.
            let plain = finish(plain.top_k(&TopKRequest { min_score, ..request(&third) }));
            prop_assert_eq!(&plain, &expected);
            // The reference against the ranking it came from.
            let wanted: Vec<_> = ranking
                .iter()
                .filter(|hit| min_score.is_none_or(|minimum| hit.1 >= minimum))
                .filter(|hit| at(case.threshold).is_none_or(|threshold| hit.1 >= threshold))
                .take(case.k)
                .copied()
                .collect();
            prop_assert_eq!(expected.hits, wanted);
        }
    }

    /// Filters that leave some windows and chunks without a document, and others nearly whole.
    #[test]
    fn filters_of_runs_of_documents_are_exact(
        seed in any::<u64>(), num_docs in 3000_usize..50_000, runs in proptest::collection::vec((0.0..1.0, 1_usize..3000), 1..6),
        density in prop_oneof![Just(0.01), Just(0.3), Just(1.0)], deleted in any::<bool>(), k in 1_usize..30,
        place in proptest::option::of(0_usize..30), limit in prop_oneof![Just(0_u64), Just(100), Just(u64::MAX)],
    ) {
        let reader = Model::random(seed, num_docs, 25).reader(Format::V3);
        let mut filter = vec![0; num_docs.div_ceil(64)];
        for (start, len) in runs {
            let start = (start * num_docs as f64) as usize;
            (start..num_docs.min(start + len)).for_each(|doc| filter[doc / 64] |= 1 << (doc % 64));
        }
        filter.iter_mut().zip(random_bits(seed, num_docs, density)).for_each(|(word, bits)| *word &= bits);
        let live = deleted.then(|| random_bits(seed ^ 1, num_docs, 0.8));
        for round in 0..4 {
            let query = random_query(seed.wrapping_add(round), &reader);
            let (none, first, second) = (SharedThreshold::new(), SharedThreshold::new(), SharedThreshold::new());
            let request = |threshold| TopKRequest {
                live: live.as_deref(), filter: Some(&filter), count_limit: limit, ..plain_request(&query, k, threshold)
            };
            let ranking = reader.top_k_exhaustive(&TopKRequest { k: 100, ..request(&none) }).hits;
            let known = place.and_then(|place| ranking.get(place)).map_or(0.0, |hit| hit.1);
            [&first, &second].iter().for_each(|threshold| threshold.raise(known));
            let expected = reader.top_k_exhaustive(&request(&first));
            let (found, bounds) = reader.top_k_bounded(&request(&second));
            prop_assert_eq!(&found.hits, &expected.hits);
            prop_assert_eq!(found.matched.min(limit), expected.matched.min(limit));
            for (doc, score) in &ranking {
                prop_assert!(bounds.most(*doc) >= *score);
            }
        }
    }

    #[test]
    fn segments_with_a_shared_threshold_equal_one_segment(
        seed in any::<u64>(), cuts in proptest::collection::vec(1_usize..6000, 1..5), k in 1_usize..30,
    ) {
        let whole = Model::random(seed, cuts.iter().sum(), 30);
        let reader = whole.reader(Format::V3);
        let query = random_query(seed, &reader);
        let expected = reader.top_k_exhaustive(&plain_request(&query, k, &SharedThreshold::new())).hits;
        let threshold = SharedThreshold::new();
        let mut found = Vec::new();
        let mut base = 0;
        for size in cuts {
            let part = Model { docs: whole.docs[base..base + size].to_vec() }.reader(Format::V3);
            let terms: Vec<_> =
                query.iter().filter_map(|(term, weight)| Some((part.term(reader.token(*term))?, *weight))).collect();
            let hits = part.top_k(&plain_request(&terms, k, &threshold)).hits;
            found.extend(hits.into_iter().map(|(doc, score)| (doc + base as u32, score)));
            base += size;
        }
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(k);
        prop_assert_eq!(found, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn segments_searched_together_equal_one_segment(
        seed in any::<u64>(),
        cuts in proptest::collection::vec(prop_oneof![3 => 1_usize..200, 2 => 200_usize..4000, 1 => 4000_usize..20_000], 1..6),
        k in prop_oneof![Just(0_usize), 1_usize..30, Just(300), Just(10_000)],
        count_limit in prop_oneof![Just(0_u64), 1_u64..2000, Just(u64::MAX)],
        (live, filter, old) in (density(), density(), proptest::option::weighted(0.2, 0_usize..6)),
        min_score in proptest::option::weighted(0.2, 0_usize..200),
    ) {
        let whole = Model::random(seed, cuts.iter().sum(), 30);
        let reader = whole.reader(Format::V3);
        // Words of their own for every part.
        let bits = |seed: u64, density: Option<f64>| -> Vec<Option<Vec<u64>>> {
            let of = |(part, size): (usize, &usize)| Some(random_bits(seed ^ part as u64, *size, density?));
            cuts.iter().enumerate().map(of).collect()
        };
        let (live, filters) = (bits(seed ^ 0x100, live), bits(seed ^ 0x200, filter));
        let is_wanted = |part: usize, doc: usize| {
            [&live[part], &filters[part]].into_iter().flatten().all(|bits| bits[doc / 64] >> (doc % 64) & 1 == 1)
        };
        let (mut readers, mut starts, mut wanted) = (Vec::new(), Vec::new(), vec![0_u64; whole.docs.len().div_ceil(64)]);
        let mut base = 0;
        for (part, size) in cuts.iter().enumerate() {
            let format = if old == Some(part) { Format::V1 } else { Format::V3 };
            readers.push(Model { docs: whole.docs[base..base + size].to_vec() }.reader(format));
            starts.push(base);
            for doc in (0..*size).filter(|doc| is_wanted(part, *doc)) {
                wanted[(base + doc) / 64] |= 1 << ((base + doc) % 64);
            }
            base += size;
        }
        for round in 0..4 {
            let query = random_query(seed.wrapping_add(round), &reader);
            let none = SharedThreshold::new();
            let all = TopKRequest { filter: Some(&wanted), ..plain_request(&query, usize::MAX, &none) };
            let ranking = reader.top_k_exhaustive(&all).hits;
            let min_score = min_score.and_then(|place| Some(ranking.get(place)?.1));
            let expected: Vec<_> =
                ranking.iter().copied().filter(|hit| min_score.is_none_or(|least| hit.1 >= least)).collect();
            let queries: Vec<Vec<_>> = readers
                .iter()
                .map(|part| query.iter().filter_map(|(term, weight)| Some((part.term(reader.token(*term))?, *weight))).collect())
                .collect();
            let threshold = SharedThreshold::new();
            let mut bounds: Vec<ScoreBounds> = readers.iter().map(|_| ScoreBounds::default()).collect();
            // Some of the segments' terms are at hand.
            let terms: Vec<Vec<ResolvedTerm>> = readers
                .iter()
                .zip(&queries)
                .enumerate()
                .map(|(part, (reader, query))| {
                    let wanted = query.iter().filter(|_| !seed.wrapping_add(round + part as u64).is_multiple_of(3));
                    wanted.filter_map(|(term, _)| reader.resolve(*term)).collect()
                })
                .collect();
            let segments = readers.iter().zip(&queries).zip(&terms).zip(&mut bounds).enumerate();
            let segments = segments.map(|(part, (((reader, query), terms), bounds))| SegmentSearch {
                reader,
                terms,
                request: TopKRequest {
                    query,
                    min_score,
                    live: live[part].as_deref(),
                    filter: filters[part].as_deref(),
                    count_limit,
                    ..plain_request(query, k, &threshold)
                },
                bounds: (round % 2 == 0).then_some(bounds),
            });
            let parts = top_k_of_segments(segments.collect());
            let mut found = Vec::new();
            let matched: u64 = parts.iter().map(|part| part.matched).sum();
            for (part, start) in parts.into_iter().zip(&starts) {
                found.extend(part.hits.into_iter().map(|(doc, score)| (doc + *start as u32, score)));
            }
            found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            found.truncate(k);
            prop_assert_eq!(&found[..], &expected[..k.min(expected.len())], "query {:?}", query);
            prop_assert_eq!(matched.min(count_limit), (expected.len() as u64).min(count_limit));
            for (doc, score) in &ranking {
                let part = starts.partition_point(|start| start <= &(*doc as usize)) - 1;
                let most = bounds[part].most(doc - starts[part] as u32);
                prop_assert!(most >= *score, "{score} of {doc} above {most}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Searches a large segment beside a small one, with several searches at once, some of which get idle
    /// threads to help.
    #[test]
    fn a_segment_searched_in_parts_equals_all_of_it(
        seed in any::<u64>(),
        num_docs in 130_000_usize..330_000,
        k in prop_oneof![Just(1_usize), Just(10), Just(200), Just(5000)],
        count_limit in prop_oneof![Just(0_u64), Just(50), Just(10_000), Just(u64::MAX)],
        (live, filter) in (density(), density()),
        min_score in proptest::option::weighted(0.2, 0_usize..200),
    ) {
        let model = Model::random(seed, num_docs, 25);
        let (reader, former) = (model.reader(Format::V3), model.former_reader());
        let small = Model::random(seed ^ 7, 3000, 25).reader(Format::V3);
        let live = live.map(|density| random_bits(seed ^ 1, num_docs, density));
        let filter = filter.map(|density| random_bits(seed ^ 2, num_docs, density));
        let check = |round: u64| -> Result<(), TestCaseError> {
            let query = random_query(seed.wrapping_add(round), &reader);
            let none = SharedThreshold::new();
            macro_rules! of_large {
                ($threshold:expr, $k:expr) => {
                    TopKRequest {
                        live: live.as_deref(),
                        filter: filter.as_deref(),
                        tie: &tie,
                        ..plain_request(&query, $k, $threshold)
                    }
                };
            }
            let mut ranking = reader.top_k_exhaustive(&of_large!(&none, usize::MAX)).hits;
            let min_score = min_score.and_then(|place| Some(ranking.get(place)?.1));
            ranking.retain(|hit| min_score.is_none_or(|least| hit.1 >= least));
            let alone = SharedThreshold::new();
            let request = TopKRequest { min_score, count_limit, ..of_large!(&alone, k) };
            let found = reader.top_k(&request);
            prop_assert_eq!(&found.hits[..], &ranking[..k.min(ranking.len())], "query {:?}", query);
            prop_assert_eq!(found.matched.min(count_limit), (ranking.len() as u64).min(count_limit));
            if ranking.len() >= k {
                prop_assert_eq!(alone.get(), ranking[k - 1].1);
            }
            if let Some(former) = &former {
                let alone = SharedThreshold::new();
                let request = TopKRequest { min_score, count_limit, ..of_large!(&alone, k) };
                prop_assert_eq!(&former.top_k(&request).hits, &found.hits);
            }
            let of_small: Vec<_> =
                query.iter().filter_map(|(term, weight)| Some((small.term(reader.token(*term))?, *weight))).collect();
            let beside = SharedThreshold::new();
            let segments = vec![
                SegmentSearch { reader: &small, request: TopKRequest { min_score, ..plain_request(&of_small, k, &beside) }, terms: &[], bounds: None },
                SegmentSearch { reader: &reader, request: TopKRequest { min_score, ..of_large!(&beside, k) }, terms: &[], bounds: None },
            ];
            let parts = top_k_of_segments(segments);
            let none = SharedThreshold::new();
            let others = small.top_k_exhaustive(&TopKRequest { min_score, ..plain_request(&of_small, k, &none) }).hits;
            let mut expected: Vec<f32> = ranking.iter().chain(&others).map(|hit| hit.1).collect();
            expected.sort_by(|a, b| b.total_cmp(a));
            expected.truncate(k);
            let mut scores: Vec<f32> = parts.iter().flat_map(|part| &part.hits).map(|hit| hit.1).collect();
            scores.sort_by(|a, b| b.total_cmp(a));
            scores.truncate(k);
            prop_assert_eq!(scores, expected);
            Ok(())
        };
        check(0)?;
        let results: Vec<_> = std::thread::scope(|scope| {
            let checks: Vec<_> = (1..5).map(|round| scope.spawn(move || check(round))).collect();
            checks.into_iter().map(|check| check.join()).collect()
        });
        for result in results {
            result.expect("no search panics")?;
        }
    }
}

/// A search for more hits than block bounds are used for, with an initial threshold and terms of little
/// weight beside a heavy one.
#[test]
fn terms_that_scans_defer_are_looked_up_for_all_documents_that_need_them() {
    let docs = (0..5000_u32).map(|doc| {
        let low = (0..6_u32).filter(|term| !(doc / 7 + term).is_multiple_of(term + 2));
        let low = low.map(|term| (format!("low{term}"), 0.1 + (doc * (term + 3) % 97) as f32 / 97.0));
        let high = std::iter::once(("high".to_owned(), 20.0 + (doc * 31 % 1009) as f32 / 100.0));
        Some(high.chain(low).collect())
    });
    let reader = Model { docs: docs.collect() }.reader(Format::V3);
    let weight = |term| if reader.token(term) == "high" { 1.0 } else { 0.6 + term as f32 / 100.0 };
    let query: Vec<_> = (0..reader.term_count()).map(|term| (term, weight(term))).collect();
    for k in [10, 800, 2000] {
        let none = SharedThreshold::new();
        let expected = reader.top_k_exhaustive(&plain_request(&query, k, &none)).hits;
        let threshold = SharedThreshold::new();
        threshold.raise(expected[k - 1].1);
        let uncounted = TopKRequest { count_limit: 0, ..plain_request(&query, k, &threshold) };
        assert_eq!(reader.top_k(&uncounted).hits, expected);
    }
}

#[test]
fn more_segments_than_are_searched_at_once_are_searched_in_turns() {
    let reader = Model::random(9, 40, 200).reader(Format::V3);
    let query: Vec<_> = (0..reader.term_count()).map(|term| (term, 1.0 + term as f32)).collect();
    let threshold = SharedThreshold::new();
    let request = TopKRequest { count_limit: 1000, ..plain_request(&query, 3, &threshold) };
    let alone = reader.top_k(&TopKRequest { threshold: &SharedThreshold::new(), ..request });
    let segments = (0..100).map(|_| SegmentSearch { reader: &reader, request, terms: &[], bounds: None });
    let found = top_k_of_segments(segments.collect());
    assert_eq!(threshold.get(), alone.hits[0].1);
    assert!(found.iter().filter(|found| found.hits.first() == alone.hits.first()).count() >= 3);
    assert!((1000..1000 + alone.matched).contains(&found.iter().map(|found| found.matched).sum()));
}

#[test]
fn a_frequent_term_that_the_wanted_documents_lack_is_not_counted() {
    // Half of the documents have the frequent term, and those that are wanted have the other, 30 of them.
    let token = |doc: usize| match doc {
        _ if doc.is_multiple_of(2) => Some(("a".to_owned(), 1.0 + (doc % 7) as f32)),
        _ if doc.is_multiple_of(67) => Some(("b".to_owned(), 1.0)),
        _ => None,
    };
    let docs: Vec<_> = (0..4000).map(|doc| token(doc).map(|token| vec![token])).collect();
    let reader = Model { docs }.reader(Format::V3);
    let (odd, all) = (vec![0xAAAA_AAAA_AAAA_AAAA_u64; 63], vec![u64::MAX; 63]);
    let query = [(0, 1.0), (1, 1.0)];
    let top = |live: &[u64], filter: Option<&[u64]>, count_limit| {
        let threshold = SharedThreshold::new();
        let plain = plain_request(&query, 10, &threshold);
        reader.top_k(&TopKRequest { live: Some(live), filter, count_limit, ..plain }).matched
    };
    for (live, filter) in [(&odd, None), (&all, Some(&odd[..])), (&odd, Some(&all[..]))] {
        assert_eq!(top(live, filter, 100), 30);
        assert_eq!(top(live, filter, 20).min(20), 20);
    }
    assert!((100..2030).contains(&top(&all, Some(&all), 100)));
}

#[test]
fn weights_beyond_bounds_are_still_exact() {
    let model = Model::random(5, 500, 20);
    let reader = model.reader(Format::V3);
    for query in [vec![(0, -1.0), (1, 2.0)], vec![(0, 0.0), (1, 1e-45)], vec![(0, 3e38), (1, 3e38)]] {
        let expected = reader.top_k_exhaustive(&plain_request(&query, 20, &SharedThreshold::new()));
        assert_eq!(reader.top_k(&plain_request(&query, 20, &SharedThreshold::new())), expected);
        assert!(!expected.hits.is_empty());
    }
}

#[test]
fn a_search_names_the_algorithm_that_its_request_makes_the_cheapest() {
    let num_docs = 20_000;
    let reader = Model::random(3, num_docs, 30).reader(Format::V3);
    let query: Vec<_> = (0..reader.term_count()).map(|term| (term, 1.0 + term as f32)).collect();
    let lowered = [(0, -1.0), (1, 2.0)];
    let random = |density| Some(random_bits(11, num_docs, density));
    for (query, k, filter, expected) in [
        (&query[..], 10, None, Executor::SparseBlockMax),
        (&query, 2000, None, Executor::SparseWindowAtATime),
        // Few enough for the kernels of each processor, which differ in what a document's bound costs.
        (&query, 10, random(0.015), Executor::SparseDocumentBounds),
        (&query, 10, Some(vec![0b111]), Executor::SparseFilterDriven),
        (&lowered, 10, None, Executor::SparseExhaustive),
    ] {
        let threshold = SharedThreshold::new();
        let request = TopKRequest { filter: filter.as_deref(), ..plain_request(query, k, &threshold) };
        assert_eq!(reader.top_k(&request).executors, expected.into());
    }
}

#[test]
fn a_cancelled_search_stops() {
    let reader = Model::random(6, 500, 20).reader(Format::V3);
    let cancel = AtomicBool::new(true);
    let threshold = SharedThreshold::new();
    let found =
        reader.top_k(&TopKRequest { cancel: Some(&cancel), ..plain_request(&[(0, 1.0)], 20, &threshold) });
    assert_eq!(found, TopK::default());
}

#[test]
fn a_cancelled_part_does_not_shift_the_hits_of_others() {
    // Each of the two is searched in parts of 65,536 documents. The last one of the first segment and the first one
    // of the second are searched together, and stop together.
    let segments = [7, 8].map(|seed| Model::random(seed, 140_000, 20).reader(Format::V3));
    let cancel = AtomicBool::new(true);
    let threshold = SharedThreshold::new();
    let request = plain_request(&[(0, 1.0), (1, 0.5)], 20, &threshold);
    let all = TopKRequest { k: usize::MAX, threshold: &SharedThreshold::new(), ..request };
    let mut expected = segments[1].top_k(&all).hits;
    expected.retain(|hit| hit.0 >= 1 << 16);
    let requests = [TopKRequest { cancel: Some(&cancel), ..request }, request];
    let searches = segments.iter().zip(requests);
    let found = top_k_of_segments(
        searches
            .map(|(reader, request)| SegmentSearch { reader, request, terms: &[], bounds: None })
            .collect(),
    );
    assert_eq!(found[0].hits, []);
    assert_eq!(found[1].hits, expected[..20]);
}

#[test]
fn thresholds_only_rise() {
    let threshold = SharedThreshold::new();
    for (raised, expected) in [(1.0, 1.0), (0.5, 1.0), (-3.0, 1.0), (f32::NAN, 1.0), (2.5, 2.5)] {
        threshold.raise(raised);
        assert_eq!(threshold.get(), expected);
    }
}

proptest! {
    #[test]
    fn allowed_words_are_those_asked_for_one_by_one(
        filter in proptest::option::of(proptest::collection::vec(any::<u64>(), 0..6)),
        live in proptest::option::of(proptest::collection::vec(any::<u64>(), 0..6)),
        docs in 0_usize..400,
        start in 0_usize..8,
        groups in 0_usize..8,
    ) {
        let threshold = SharedThreshold::new();
        let request =
            TopKRequest { filter: filter.as_deref(), live: live.as_deref(), ..plain_request(&[], 1, &threshold) };
        let (mut words, mut bytes) = (vec![7_u64; groups], vec![[7_u8; 8]; groups]);
        request.write_allowed(docs, start, &mut words);
        request.write_allowed(docs, start, &mut bytes);
        let allowed = |word: usize| {
            let inside = (0..64).filter(|bit| word * 64 + bit < docs).map(|bit| 1_u64 << bit).sum::<u64>();
            request.allowed_word(word) & inside
        };
        prop_assert_eq!(&words, &(start..start + groups).map(allowed).collect::<Vec<_>>());
        prop_assert_eq!(bytes, words.into_iter().map(u64::to_le_bytes).collect::<Vec<_>>());
    }
}
