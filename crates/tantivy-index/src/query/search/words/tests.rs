//! Tests of searches that read posting lists directly, against tantivy's readers and against the scores of
//! all documents.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::json;
use tantivy::postings::Postings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED, Term};

use super::Word;
use crate::Snapshot;
use crate::query::compile::Compiler;
use crate::query::tests::Fixture;
use crate::query::{SearchOptions, TotalHits};
use sparrow_lexical::all::{self, Hits, Place};
use sparrow_lexical::list::Cursor;
use sparrow_query::{
    BoolQuery, DisMaxQuery, MatchPhraseQuery, MatchQuery, Operator, Query, QueryKind, RangeQuery, ZeroTerms,
};

/// A generator of pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// An index of documents of a few words and a title, in which words with low numbers are frequent; some documents
/// have no text, and some are deleted.
fn index(seed: u64, docs: usize, segments: usize, field: &serde_json::Value, deleted: usize) -> Fixture {
    let mut numbers = Numbers(seed);
    let title = json!({"type": "text"});
    let mut fixture = Fixture::new(json!({"text": field, "title": title, "n": {"type": "integer"}}));
    let rows: Vec<(String, serde_json::Value)> = (0..docs)
        .map(|id| {
            let words: Vec<String> = (0..numbers.below(14))
                .map(|_| format!("w{}", numbers.below(9) * numbers.below(9) / 4))
                .collect();
            let n = numbers.below(4);
            let title = words[..words.len().min(numbers.below(4) as usize)].join(" w1 ");
            let source = match numbers.below(10) {
                0 => json!({ "n": n }),
                1 => json!({ "n": n, "title": title }),
                _ => json!({ "n": n, "title": title, "text": words.join(" ") }),
            };
            (id.to_string(), source)
        })
        .collect();
    let rows: Vec<(&str, serde_json::Value)> = rows.iter().map(|(id, row)| (&**id, row.clone())).collect();
    for rows in rows.chunks(docs.div_ceil(segments)) {
        fixture.batch(rows);
    }
    for _ in 0..deleted {
        fixture.delete(&numbers.below(docs as u64).to_string());
    }
    fixture
}

fn words(numbers: &[u8]) -> String {
    numbers.iter().map(|number| format!("w{number}")).collect::<Vec<_>>().join(" ")
}

/// Sequence numbers and scores of the best live documents, computed from the score of each document.
fn best(
    snapshot: &Snapshot,
    size: usize,
    least: Option<f32>,
    mut score: impl FnMut(u32, u32) -> Option<f32>,
) -> (Vec<(u64, u32)>, u64) {
    let mut all = Vec::new();
    for (ord, reader) in (0..).zip(snapshot.searcher().segment_readers()) {
        let segment = snapshot.segment(ord);
        for doc in (0..reader.max_doc()).filter(|doc| segment.is_live(*doc)) {
            if let Some(score) = score(ord, doc)
                && least.is_none_or(|least| score >= least)
            {
                all.push((score, segment.seq_no(doc)));
            }
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let matched = all.len() as u64;
    (all.iter().take(size).map(|(score, seq_no)| (*seq_no, score.to_bits())).collect(), matched)
}

fn text_fields() -> impl Strategy<Value = serde_json::Value> {
    prop_oneof![
        4 => Just(json!({"type": "text"})),
        1 => Just(json!({"type": "text", "norms": false})),
        1 => Just(json!({"type": "text", "index_options": "freqs"})),
        1 => Just(json!({"type": "text", "index_options": "docs"})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn lists_are_read_as_tantivy_reads_them(
        seed in any::<u64>(),
        docs in 1usize..900,
        field in text_fields(),
        steps in proptest::collection::vec(1u32..300, 1..40),
    ) {
        let fixture = index(seed, docs, 1, &field, 0);
        compare_lists(&fixture, &steps, field == json!({"type": "text"}))?;
    }

    #[test]
    fn the_best_of_any_words_are_those_of_all_scores(
        seed in any::<u64>(),
        docs in prop_oneof![3 => 1usize..900, 1 => 5_000usize..9_000],
        segments in 1usize..4,
        field in text_fields(),
        numbers in proptest::collection::vec(0u8..20, 1..7),
        size in 1usize..40,
        boost in 1u8..4,
        filtered in any::<bool>(),
        deleted in 0usize..40,
    ) {
        let fixture = index(seed, docs, segments, &field, deleted);
        let query = any_of("text", &numbers).with_boost(f32::from(boost));
        compare_any(&fixture, &query, size, filtered)?;
    }

    #[test]
    fn the_best_by_the_best_of_several_fields_are_those_of_all_scores(
        seed in any::<u64>(),
        docs in prop_oneof![3 => 1usize..900, 1 => 5_000usize..9_000],
        segments in 1usize..4,
        field in text_fields(),
        numbers in proptest::collection::vec(0u8..20, 1..7),
        size in 1usize..40,
        boosts in (1u8..6, 1u8..6, 1u8..3),
        filtered in any::<bool>(),
        deleted in 0usize..40,
    ) {
        let fixture = index(seed, docs, segments, &field, deleted);
        let of = |field: &str, boost: u8| any_of(field, &numbers).with_boost(f32::from(boost) / 2.0);
        let queries = vec![of("text", boosts.0), of("title", boosts.1), of("other", 1)];
        let query: Query = QueryKind::DisMax(DisMaxQuery { queries, tie_breaker: 0.0 }).into();
        compare_any(&fixture, &query.with_boost(f32::from(boosts.2)), size, filtered)?;
    }

    #[test]
    fn the_best_of_all_words_and_of_phrases_are_those_of_all_scores(
        seed in any::<u64>(),
        docs in prop_oneof![3 => 1usize..900, 1 => 5_000usize..9_000],
        segments in 1usize..4,
        norms in any::<bool>(),
        numbers in proptest::collection::vec(0u8..14, 2..5),
        phrase in any::<bool>(),
        size in 1usize..40,
        boost in 1u8..4,
        restricted in 0usize..4,
        track in 0usize..3,
        deleted in 0usize..40,
        least in proptest::option::weighted(0.3, 0u8..60),
    ) {
        let fixture = index(seed, docs, segments, &json!({"type": "text", "norms": norms}), deleted);
        let snapshot = fixture.snapshot();
        let (field, text) = ("text".to_owned(), words(&numbers));
        let kind = if phrase {
            QueryKind::MatchPhrase(MatchPhraseQuery {
                field, text, analyzer: None, slop: 0, zero_terms_query: ZeroTerms::None,
            })
        } else {
            QueryKind::Match(MatchQuery { field, text, operator: Operator::And, ..MatchQuery::default() })
        };
        let mut query = Query::from(kind).with_boost(f32::from(boost));
        if restricted > 1 {
            let (filter, must_not) = match restricted {
                2 => (vec![number_at_most(1)], vec![]),
                _ => (vec![], vec![number_at_most(1)]),
            };
            let tree = BoolQuery { must: vec![query], filter, must_not, ..BoolQuery::default() };
            query = Query::from(QueryKind::Bool(tree)).with_boost(1.5);
        }
        let least = least.map(|least| f32::from(least) / 4.0);
        let track = [TotalHits::Off, TotalHits::UpTo(5), TotalHits::Exact][track];
        let options = options(size, track, restricted == 1, least);
        let filter = (restricted == 1).then(|| snapshot.all_scores(&number_at_most(2), None).unwrap());
        let scores = snapshot.all_scores(&query, None).unwrap();
        let (expected, matched) = best(&snapshot, size, least, |ord, doc| {
            let (ord, at) = (ord as usize, doc as usize);
            let passes = filter.as_ref().is_none_or(|scores| !scores[ord][at].is_nan());
            Some(scores[ord][at]).filter(|score| !score.is_nan() && passes)
        });
        let mut compiler = Compiler::new(&snapshot, None);
        prop_assert!(snapshot.search_words(&query, &mut compiler, &options).unwrap().is_some());
        let found = snapshot.search(&query, &options).unwrap();
        let hits: Vec<(u64, u32)> = found.hits.iter().map(|hit| (hit.seq_no, hit.score.to_bits())).collect();
        prop_assert_eq!(hits, expected);
        match track {
            TotalHits::Off => {}
            TotalHits::UpTo(limit) => prop_assert_eq!(found.total, matched.min(limit)),
            TotalHits::Exact => prop_assert_eq!(found.total, matched),
        }
    }
}

fn any_of(field: &str, numbers: &[u8]) -> Query {
    let text = MatchQuery { field: field.to_owned(), text: words(numbers), ..MatchQuery::default() };
    QueryKind::Match(text).into()
}

/// Compares the posting lists of all words in an index of one segment with tantivy's: at every document, and
/// at some only.
fn compare_lists(fixture: &Fixture, steps: &[u32], positions_too: bool) -> TestCaseResult {
    let snapshot = fixture.snapshot();
    let compiler = Compiler::new(&snapshot, None);
    let terms = compiler.string_terms("text").unwrap();
    let statistics = compiler.statistics(&terms, true).unwrap().unwrap();
    let opened = compiler.text_field(&terms, statistics).unwrap().unwrap();
    for number in 0..18 {
        let term = Term::from_field_text(terms.field, &format!("w{number}"));
        let (infos, doc_freq) = opened.term(&term).unwrap();
        prop_assert_eq!(doc_freq, snapshot.searcher().doc_freq(&term).unwrap());
        for (reader, info) in snapshot.searcher().segment_readers().iter().zip(&infos) {
            let Some(info) = info else { continue };
            let inverted = reader.inverted_index(terms.field).unwrap();
            let read =
                || inverted.read_postings_from_terminfo(info, IndexRecordOption::WithFreqsAndPositions);
            let segment = opened.segment(0).unwrap();
            let every = std::iter::repeat(&1_u32);
            for steps in [Box::new(every) as Box<dyn Iterator<Item = &u32>>, Box::new(steps.iter().cycle())] {
                let mut known = read().unwrap();
                let mut cursor = Cursor::new(segment.list(info));
                let mut positions = segment.positions(info);
                let (mut expected, mut found) = (Vec::new(), Vec::new());
                let mut target = 0;
                for step in steps {
                    let doc = if known.doc() < target { known.seek(target) } else { known.doc() };
                    prop_assert_eq!(cursor.seek(target), doc);
                    if doc == TERMINATED {
                        break;
                    }
                    prop_assert_eq!(cursor.count(), known.term_freq());
                    if positions_too {
                        known.positions(&mut expected);
                        positions.read(cursor.positions_before(), cursor.count(), 0, &mut found);
                        prop_assert_eq!(&found, &expected);
                    }
                    target = doc + step;
                }
            }
        }
    }
    Ok(())
}

/// Checks the best documents for any of the words in a query against the scores of all documents.
fn compare_any(fixture: &Fixture, query: &Query, size: usize, filtered: bool) -> TestCaseResult {
    let snapshot = fixture.snapshot();
    let options = options(size, TotalHits::Exact, filtered, None);
    let filter = filtered.then(|| snapshot.all_scores(&number_at_most(2), None).unwrap());
    let mut compiler = Compiler::new(&snapshot, None);
    let must = BoolQuery { must: vec![query.clone()], ..BoolQuery::default() };
    let Some(sums) = compiler.dis_max_of_sums(&QueryKind::Bool(must).into()).unwrap() else {
        prop_assert!(snapshot.search(query, &options).unwrap().hits.is_empty());
        return Ok(());
    };
    prop_assert!(sums.words().is_some());
    let readers = snapshot.searcher().segment_readers();
    let mut walks: Vec<_> = readers.iter().map(|reader| sums.look_up(reader, None).unwrap()).collect();
    let (expected, matched) = best(&snapshot, size, None, |ord, doc| {
        let (ord, at) = (ord as usize, doc as usize);
        let passes = filter.as_ref().is_none_or(|scores| !scores[ord][at].is_nan());
        walks[ord].score(doc).filter(|_| passes)
    });
    let found = snapshot.search(query, &options).unwrap();
    let hits: Vec<(u64, u32)> = found.hits.iter().map(|hit| (hit.seq_no, hit.score.to_bits())).collect();
    prop_assert_eq!(hits, expected);
    prop_assert_eq!(found.total, matched);
    let unknown =
        snapshot.search(query, &SearchOptions { track_total_hits: TotalHits::Off, ..options }).unwrap();
    prop_assert_eq!(unknown.hits, found.hits);
    Ok(())
}

/// Checks the best documents for all words or a phrase of a query against the scores of all documents.
fn compare_all(fixture: &Fixture, query: &Query, size: usize) {
    let snapshot = fixture.snapshot();
    let scores = snapshot.all_scores(query, None).unwrap();
    let (expected, _) = best(&snapshot, size, None, |ord, doc| {
        Some(scores[ord as usize][doc as usize]).filter(|score| !score.is_nan())
    });
    let options = options(size, TotalHits::Off, false, None);
    let mut compiler = Compiler::new(&snapshot, None);
    let found = snapshot.search_words(query, &mut compiler, &options).unwrap().unwrap();
    let hits: Vec<(u64, u32)> = found.hits.iter().map(|hit| (hit.seq_no, hit.score.to_bits())).collect();
    assert!(!hits.is_empty());
    assert_eq!(hits, expected);
}

fn phrase_of(numbers: &[u8]) -> Query {
    QueryKind::MatchPhrase(MatchPhraseQuery {
        field: "text".to_owned(),
        text: words(numbers),
        analyzer: None,
        slop: 0,
        zero_terms_query: ZeroTerms::None,
    })
    .into()
}

fn all_of(numbers: &[u8]) -> Query {
    let (field, text) = ("text".to_owned(), words(numbers));
    QueryKind::Match(MatchQuery { field, text, operator: Operator::And, ..MatchQuery::default() }).into()
}

/// Writes documents with one text each.
fn write(fixture: &mut Fixture, first: usize, texts: impl Iterator<Item = String>) {
    let rows: Vec<_> =
        (first..).zip(texts).map(|(id, text)| (id.to_string(), json!({ "text": text }))).collect();
    let rows: Vec<_> = rows.iter().map(|(id, row)| (&**id, row.clone())).collect();
    fixture.batch(&rows);
}

/// More windows than are picked by their bounds; with frequent words, and rare ones that only part of the
/// documents have.
#[test]
fn the_best_of_any_words_are_found_in_many_windows() {
    let mut fixture = Fixture::new(json!({"text": {"type": "text"}}));
    let mut numbers = Numbers(7);
    let texts = (0..45_000_u64).map(|id| {
        let common =
            (0..2 + numbers.below(9)).map(|_| format!("w{}", numbers.below(9) * numbers.below(9) / 8));
        let mut text: Vec<String> = common.collect();
        if numbers.below(1 + id / 500) == 0 {
            text.push(format!("w{}", 10 + numbers.below(3)));
        }
        text.join(" ")
    });
    write(&mut fixture, 0, texts);
    fixture.merge();
    assert_eq!(fixture.snapshot().segments().len(), 1);
    for numbers in
        [&[0, 1][..], &[0, 1, 2, 10], &[3, 0, 8, 11, 12], &[5, 6, 7, 4, 1, 12, 2, 0], &[10], &[8, 8, 3]]
    {
        for size in [1, 10, 300] {
            compare_any(&fixture, &any_of("text", numbers), size, false).unwrap();
        }
    }
}

/// Frequencies too high to have a code of their own in block lists, and more positions in one text than fit
/// in a block.
#[test]
fn words_that_are_very_frequent_in_a_text_are_found() {
    let mut fixture = Fixture::new(json!({"text": {"type": "text"}}));
    let mut numbers = Numbers(3);
    let texts = (0..300_u64).map(|id| {
        let often = if id.is_multiple_of(50) { 200 + id } else { numbers.below(4) };
        let mut text: Vec<String> = (0..often).map(|_| "w1".to_owned()).collect();
        text.extend((0..numbers.below(300)).map(|_| format!("w{}", numbers.below(5))));
        text.extend((0..often / 2).flat_map(|_| ["w2".to_owned(), "w1".to_owned()]));
        text.join(" ")
    });
    write(&mut fixture, 0, texts);
    compare_lists(&fixture, &[1, 7, 60], true).unwrap();
    for numbers in [&[1, 2][..], &[2, 1], &[1, 1, 1], &[3, 1, 2]] {
        compare_any(&fixture, &any_of("text", numbers), 10, false).unwrap();
        compare_all(&fixture, &all_of(numbers), 10);
        compare_all(&fixture, &phrase_of(numbers), 10);
    }
}

#[test]
fn words_of_two_fields_are_added_up() {
    let mut fixture = Fixture::new(json!({"text": {"type": "text"}, "title": {"type": "text"}}));
    let mut numbers = Numbers(11);
    let mut text = |most| {
        let words = (0..numbers.below(most)).map(|_| format!("w{}", numbers.below(6) * numbers.below(6) / 3));
        words.collect::<Vec<_>>().join(" ")
    };
    let rows: Vec<_> =
        (0..6_000).map(|id| (id.to_string(), json!({"text": text(20), "title": text(4)}))).collect();
    let rows: Vec<_> = rows.iter().map(|(id, row)| (&**id, row.clone())).collect();
    fixture.batch(&rows);
    let should = vec![any_of("text", &[0, 5, 7]), any_of("title", &[5, 1]).with_boost(2.0)];
    let query = QueryKind::Bool(BoolQuery { should, ..BoolQuery::default() }).into();
    for size in [1, 10, 100] {
        compare_any(&fixture, &query, size, false).unwrap();
    }
}

/// The blocks of a merged segment name their best documents by the segment's average length, which differs
/// from that of the index.
#[test]
fn segments_of_other_lengths_are_merged() {
    let mut fixture = Fixture::new(json!({"text": {"type": "text"}}));
    let mut numbers = Numbers(5);
    let mut texts = |docs: u64, least: u64| -> Vec<String> {
        let text = |_| {
            let words = (0..least + numbers.below(12))
                .map(|_| format!("w{}", numbers.below(7) * numbers.below(7) / 3));
            words.collect::<Vec<_>>().join(" ")
        };
        (0..docs).map(text).collect()
    };
    write(&mut fixture, 0, texts(3_000, 1).into_iter());
    write(&mut fixture, 3_000, texts(1_000, 150).into_iter());
    fixture.merge();
    assert_eq!(fixture.snapshot().segments().len(), 1);
    write(&mut fixture, 4_000, texts(800, 400).into_iter());
    for id in 0..100 {
        fixture.delete(&(id * 2).to_string());
    }
    for numbers in [&[0, 1][..], &[4, 0, 8], &[10, 2]] {
        compare_any(&fixture, &any_of("text", numbers), 10, false).unwrap();
        compare_all(&fixture, &all_of(numbers), 10);
        compare_all(&fixture, &phrase_of(numbers), 10);
    }
}

/// A collector that is asked each time whether to go on, and says no.
#[derive(Default)]
struct Cancelled {
    taken: usize,
}

impl Hits for Cancelled {
    fn wants(&self, _: u32) -> bool {
        true
    }

    fn least(&self) -> f32 {
        f32::NEG_INFINITY
    }

    fn take(&mut self, _: u32, _: f32) {
        self.taken += 1;
    }

    fn goes_on(&self) -> bool {
        false
    }
}

/// A few documents may take long: the search must stop after a limited number of positions, not of documents.
#[test]
fn a_long_phrase_of_long_texts_ends_soon_after_it_is_cancelled() {
    let mut fixture = Fixture::new(json!({"text": {"type": "text"}}));
    write(&mut fixture, 0, (0..20).map(|_| words(&[1; 2_000])));
    let snapshot = fixture.snapshot();
    let compiler = Compiler::new(&snapshot, None);
    let terms = compiler.string_terms("text").unwrap();
    let statistics = compiler.statistics(&terms, true).unwrap().unwrap();
    let field = compiler.text_field(&terms, statistics).unwrap().unwrap();
    let (word, _) = Word::find(&field, &terms.term("w1"), statistics, 1.0).unwrap().unwrap();
    let positions = || field.segment(0).unwrap().positions(word.infos[0].as_ref().unwrap());
    let place = |offset| Place { clause: word.clause(0, 1.0).unwrap(), positions: positions(), offset };
    let mut hits = Cancelled::default();
    all::phrase((0..10).map(place).collect(), &mut hits);
    assert!((1..20).contains(&hits.taken), "{} documents", hits.taken);
    let mut hits = Cancelled::default();
    all::phrase((0..100).map(place).collect(), &mut hits);
    assert_eq!(hits.taken, 0);
}

fn options(
    size: usize,
    track_total_hits: TotalHits,
    filtered: bool,
    min_score: Option<f32>,
) -> SearchOptions {
    let post_filter = filtered.then(|| number_at_most(2));
    SearchOptions { size, track_total_hits, post_filter, min_score, ..SearchOptions::default() }
}

fn number_at_most(most: u8) -> Query {
    let lte = Some(json!(most));
    QueryKind::Range(RangeQuery { field: "n".to_owned(), lte, ..RangeQuery::default() }).into()
}

/// As many documents with the same score as the list of hits is long.
#[test]
fn of_many_ties_the_first_written_are_the_best() {
    let mut fixture = Fixture::new(json!({"text": {"type": "text", "norms": false}}));
    let row = json!({"text": "w1 w2"});
    for first in (0..40_000_u32).step_by(8_000) {
        let ids: Vec<String> = (first..first + 8_000).map(|id| id.to_string()).collect();
        let rows: Vec<(&str, serde_json::Value)> = ids.iter().map(|id| (&**id, row.clone())).collect();
        fixture.batch(&rows);
    }
    let snapshot = fixture.snapshot();
    for text in ["w1", "w2 w1"] {
        let text = MatchQuery { field: "text".to_owned(), text: text.to_owned(), ..MatchQuery::default() };
        let found = snapshot
            .search(&QueryKind::Match(text).into(), &options(20, TotalHits::Off, false, None))
            .unwrap();
        let written: Vec<u64> = found.hits.iter().map(|hit| hit.seq_no).collect();
        let least = written[0];
        assert_eq!(written, (least..least + 20).collect::<Vec<_>>());
    }
}

#[test]
fn sums_that_are_too_large_for_a_number_are_found() {
    let mut fixture = Fixture::new(json!({"text": {"type": "text"}}));
    let ids: Vec<String> = (0..50).map(|id: u32| id.to_string()).collect();
    let row = |id: usize| json!({"text": if id.is_multiple_of(2) { "w1 w2" } else { "w3" }});
    let rows: Vec<(&str, serde_json::Value)> =
        ids.iter().enumerate().map(|(id, name)| (&**name, row(id))).collect();
    fixture.batch(&rows);
    let text =
        MatchQuery { field: "text".to_owned(), text: ["w1 w2"; 20].join(" "), ..MatchQuery::default() };
    let query = Query::from(QueryKind::Match(text)).with_boost(3e37);
    let found = fixture.snapshot().search(&query, &options(3, TotalHits::Off, false, None)).unwrap();
    assert_eq!(found.hits.len(), 3);
}
