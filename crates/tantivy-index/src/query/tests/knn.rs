//! Tests of kNN against a naive evaluator, and of graphs through merges, reopening and damage.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Fixture;
use crate::{IndexError, IndexOptions, SparrowIndex};
use sparrow_query::{KnnQuery, Query, QueryKind, TermsQuery};
use sparrow_segments::plugins::EXTENSION;

fn score(element: &str, similarity: &str, q: &[f64], v: &[f64]) -> f64 {
    let dot: f64 = q.iter().zip(v).map(|(a, b)| a * b).sum();
    let length = |x: &[f64]| x.iter().map(|a| a * a).sum::<f64>().sqrt();
    match (element, similarity) {
        ("bit", _) => {
            let differ: u32 = q.iter().zip(v).map(|(a, b)| (*a as i8 ^ *b as i8).count_ones()).sum();
            1.0 - f64::from(differ) / (q.len() * 8) as f64
        }
        (_, "cosine") => (1.0 + dot / (length(q) * length(v))) / 2.0,
        ("byte", "dot_product") => 0.5 + dot / (32_768.0 * q.len() as f64),
        (_, "dot_product") => (1.0 + dot) / 2.0,
        (_, "l2_norm") => 1.0 / (1.0 + q.iter().zip(v).map(|(a, b)| (a - b).powi(2)).sum::<f64>()),
        _ if dot < 0.0 => 1.0 / (1.0 - dot),
        _ => dot + 1.0,
    }
}

/// A filter for documents whose integer is below `limit`.
fn below(limit: i64) -> Query {
    Query::new(QueryKind::Terms(TermsQuery {
        field: "n".into(),
        values: (0..limit).map(Value::from).collect(),
    }))
}

const DIMS: usize = 4;
const MANY_DIMS: usize = 64;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn knn_is_what_a_naive_evaluator_finds(
        kind in proptest::sample::select(vec![
            ("float", "cosine"), ("float", "dot_product"), ("float", "l2_norm"), ("float", "max_inner_product"),
            ("byte", "cosine"), ("byte", "dot_product"), ("byte", "l2_norm"), ("byte", "max_inner_product"),
            ("bit", "l2_norm"),
        ]),
        options in proptest::sample::select(vec![
            "hnsw", "int8_hnsw", "int4_hnsw", "bbq_hnsw", "flat", "int8_flat", "int4_flat", "bbq_flat",
        ]),
        docs in proptest::collection::vec((proptest::collection::vec(-9i32..9, DIMS), 0i64..6, any::<bool>()), 1..60),
        batches in 1usize..4,
        deleted in proptest::collection::vec(0usize..60, 0..12),
        query in proptest::collection::vec(-9i32..9, DIMS),
        k in 1usize..12,
        limit in 0i64..8,
        merge in any::<bool>(),
    ) {
        let (element, similarity) = kind;
        let unit = element == "float" && similarity == "dot_product";
        let make = |raw: &[i32]| -> Vec<f64> {
            let mut raw: Vec<f64> = raw.iter().map(|x| f64::from(*x)).collect();
            if raw.iter().all(|x| *x == 0.0) { raw[0] = 1.0; }
            let length = raw.iter().map(|x| x * x).sum::<f64>().sqrt();
            if unit { raw.iter_mut().for_each(|x| *x /= length); }
            // Codes of one bit want more components.
            if options.starts_with("bbq") {
                let times = MANY_DIMS / DIMS;
                let shrink = if unit { (times as f64).sqrt() } else { 1.0 };
                raw = raw.iter().map(|x| x / shrink).collect::<Vec<f64>>().repeat(times);
            }
            raw
        };
        let mut field = json!({"type": "dense_vector", "element_type": element, "similarity": similarity});
        if element == "float" || options == "hnsw" || options == "flat" {
            field["index_options"] = json!({ "type": options });
        }
        let mut fixture = Fixture::with_options(
            json!({"v": field, "n": {"type": "integer"}}),
            IndexOptions { min_graph_vectors: 1, ..IndexOptions::default() },
        );
        let sources: Vec<(String, Value)> = docs.iter().enumerate().map(|(id, (raw, n, has))| {
            let mut source = json!({ "n": n });
            if *has { source["v"] = json!(make(raw)); }
            (id.to_string(), source)
        }).collect();
        for batch in sources.chunks(sources.len().div_ceil(batches)) {
            let batch: Vec<(&str, Value)> = batch.iter().map(|(id, source)| (id.as_str(), source.clone())).collect();
            fixture.batch(&batch);
        }
        for id in &deleted {
            fixture.delete(&id.to_string());
        }
        if merge {
            fixture.index.merge_all().unwrap();
        }
        let query = make(&query);
        let filter = if limit < 6 { vec![below(limit)] } else { Vec::new() };
        let found = fixture.hits(QueryKind::Knn(KnnQuery {
            field: "v".into(), vector: query.iter().map(|x| *x as f32).collect(), k, num_candidates: k.max(5),
            filter, ..KnnQuery::default()
        }));
        let mut expected: Vec<(f64, usize)> = docs.iter().enumerate()
            .filter(|(id, (_, n, has))| *has && !deleted.contains(id) && (limit >= 6 || *n < limit))
            .map(|(id, (raw, ..))| (score(element, similarity, &query, &make(raw)), id))
            .collect();
        expected.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        expected.truncate(k);
        prop_assert_eq!(found.len(), expected.len());
        for ((id, found), (wanted, _)) in found.iter().zip(&expected) {
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-5 * (1.0 + b.abs());
            prop_assert!(close(f64::from(*found), *wanted), "{} {}", found, wanted);
            let own = score(element, similarity, &query, &make(&docs[id.parse::<usize>().unwrap()].0));
            prop_assert!(close(f64::from(*found), own), "{} {}", found, own);
        }
        for pair in found.windows(2) {
            let number = |id: &str| id.parse::<usize>().unwrap();
            prop_assert!(pair[0].1 > pair[1].1 || (pair[0].1 == pair[1].1 && number(&pair[0].0) < number(&pair[1].0)));
        }
    }
}

/// An index with vectors in some segments, each large enough for a graph if it has a thousand of them, and these vectors.
fn with_vectors(count: usize, segments: usize) -> (Fixture, Vec<Vec<f64>>) {
    with_vectors_of(json!({"type": "dense_vector", "dims": 8, "similarity": "l2_norm"}), 8, count, segments)
}

/// As [`with_vectors`], of a field that is mapped so.
fn with_vectors_of(field: Value, dims: usize, count: usize, segments: usize) -> (Fixture, Vec<Vec<f64>>) {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / 16_777_216.0 - 0.5
    };
    let vectors: Vec<Vec<f64>> = (0..count).map(|_| (0..dims).map(|_| next()).collect()).collect();
    let mut fixture = Fixture::with_options(
        json!({"v": field, "n": {"type": "integer"}}),
        IndexOptions { min_graph_vectors: 1000, ..IndexOptions::default() },
    );
    for (batch, vectors) in vectors.chunks(count / segments).enumerate() {
        let named: Vec<(String, Value)> = vectors
            .iter()
            .enumerate()
            .map(|(at, vector)| {
                let id = batch * (count / segments) + at;
                (id.to_string(), json!({"v": vector, "n": id % 4}))
            })
            .collect();
        let batch: Vec<(&str, Value)> =
            named.iter().map(|(id, source)| (id.as_str(), source.clone())).collect();
        fixture.batch(&batch);
    }
    (fixture, vectors)
}

fn graphs(fixture: &Fixture) -> Vec<usize> {
    let snapshot = fixture.snapshot();
    let field = snapshot.schema().dense("v").unwrap();
    let segments = snapshot.segments().iter();
    segments.filter_map(|segment| segment.graph(field).map(|graph| graph.len())).collect()
}

fn nearest(fixture: &Fixture, query: &[f64], filter: Vec<Query>) -> Vec<usize> {
    let hits = fixture.hits(QueryKind::Knn(KnnQuery {
        field: "v".into(),
        vector: query.iter().map(|x| *x as f32).collect(),
        k: 10,
        num_candidates: 40,
        filter,
        ..KnnQuery::default()
    }));
    hits.iter().map(|(id, _)| id.parse().unwrap()).collect()
}

#[test]
fn a_forced_merge_builds_the_graph_of_a_lone_segment_that_was_never_merged() {
    let (fixture, _) = with_vectors(1500, 1);
    assert_eq!(graphs(&fixture), [] as [usize; 0]);
    assert!(fixture.index.lacks_graphs());
    fixture.index.merge_all().unwrap();
    assert_eq!(graphs(&fixture), [1500]);
    assert!(!fixture.index.lacks_graphs());
    let (too_few, _) = with_vectors(999, 1);
    assert!(!too_few.index.lacks_graphs());
}

#[test]
fn graphs_come_with_merges_and_leave_out_what_is_deleted() {
    let (mut fixture, vectors) = with_vectors(3000, 2);
    assert_eq!(graphs(&fixture), [] as [usize; 0], "a refresh builds none");
    for id in (0..3000).step_by(3) {
        fixture.index.delete(&id.to_string()).unwrap();
    }
    fixture.index.refresh().unwrap();
    fixture.index.merge_all().unwrap();
    assert_eq!(graphs(&fixture), [2000]);
    for id in (1..3000).step_by(60) {
        fixture.delete(&id.to_string());
    }
    let gone = |id: usize| id.is_multiple_of(3) || id % 60 == 1;
    let mut right = 0;
    for query in vectors.iter().step_by(100) {
        let found = nearest(&fixture, query, Vec::new());
        assert!(found.len() == 10 && !found.iter().any(|id| gone(*id)), "{found:?}");
        let mut best: Vec<usize> = (0..3000).filter(|id| !gone(*id)).collect();
        let distance = |id: &usize| vectors[*id].iter().zip(query).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        best.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
        right += best[..10].iter().filter(|id| found.contains(id)).count();
        let filtered = nearest(&fixture, query, vec![below(2)]);
        assert!(filtered.len() == 10 && filtered.iter().all(|id| id % 4 < 2 && !gone(*id)));
    }
    assert!(right >= 270, "{right} of 300");
}

#[test]
fn graphs_are_there_after_reopening() {
    let (fixture, vectors) = with_vectors(3000, 2);
    fixture.index.merge_all().unwrap();
    fixture.index.flush(Some(1)).unwrap();
    let before = nearest(&fixture, &vectors[7], Vec::new());
    let (dir, mapping) = (fixture.index.dir().to_path_buf(), fixture.index.mapping());
    // What is not flushed is lost, as in a crash.
    fixture.index.delete("7").unwrap();
    let Fixture { _dir, index, .. } = fixture;
    drop(index);
    let options = IndexOptions { memory_budget: 15_000_000, ..IndexOptions::default() };
    let (index, covered) = SparrowIndex::open(&dir, &mapping, &options).unwrap();
    assert_eq!(covered, Some(1));
    let fixture = Fixture { _dir, index, next_seq_no: 0 };
    assert_eq!(graphs(&fixture), [3000]);
    assert_eq!(nearest(&fixture, &vectors[7], Vec::new()), before);
}

/// Bytes of the vectors and graphs of all segments.
fn bytes(fixture: &Fixture) -> u64 {
    fixture.snapshot().segments().iter().map(|segment| segment.plugins().bytes()).sum()
}

#[test]
fn a_field_may_change_to_shorter_codes_which_merges_write() {
    let field = |kind: &str| json!({"type": "dense_vector", "dims": MANY_DIMS, "similarity": "l2_norm", "index_options": {"type": kind}});
    let (mut fixture, vectors) = with_vectors_of(field("int8_hnsw"), MANY_DIMS, 2400, 2);
    fixture.index.merge_all().unwrap();
    let mut before = bytes(&fixture);
    // A graph of 8 bits finds the neighbours of these evenly spread vectors best.
    for (kind, code_bytes, floor) in
        [("int4_hnsw", MANY_DIMS as u64 / 2 + 8, 0.7), ("bbq_hnsw", MANY_DIMS as u64 / 8 + 8, 0.4)]
    {
        let mapping =
            fixture.index.mapping().merge_update(&json!({"properties": {"v": field(kind)}})).unwrap();
        fixture.index.update_mapping(&mapping).unwrap();
        // Something to merge with.
        let more: Vec<f64> = vectors[0].iter().map(|x| x + 10.0).collect();
        fixture.batch(&[("more", json!({"v": more, "n": 9}))]);
        fixture.index.merge_all().unwrap();
        assert_eq!(graphs(&fixture), [2401]);
        let after = bytes(&fixture);
        let shown = fixture.index.mapping().to_json();
        assert_eq!(shown["properties"]["v"]["index_options"]["type"], kind);
        assert!(after + 2400 * (code_bytes / 2) < before, "{kind}: {before} {after}");
        before = after;
        let (mut right, mut wanted) = (0, 0);
        for query in vectors.iter().step_by(60) {
            let found = nearest(&fixture, query, Vec::new());
            let distance =
                |id: &usize| vectors[*id].iter().zip(query).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            let mut best: Vec<usize> = (0..2400).collect();
            best.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
            assert_eq!(found[0], best[0], "{kind}: a vector is nearest to itself");
            right += best[..10].iter().filter(|id| found.contains(id)).count();
            wanted += 10;
            let filtered = nearest(&fixture, query, vec![below(2)]);
            assert!(filtered.len() == 10 && filtered.iter().all(|id| id % 4 < 2), "{kind}: {filtered:?}");
        }
        assert!(right as f64 >= floor * f64::from(wanted), "{kind}: {right} of {wanted}");
    }
    fixture.index.flush(Some(1)).unwrap();
    let found = nearest(&fixture, &vectors[7], Vec::new());
    let (dir, mapping) = (fixture.index.dir().to_path_buf(), fixture.index.mapping());
    let Fixture { _dir, index, .. } = fixture;
    drop(index);
    let options = IndexOptions { memory_budget: 15_000_000, ..IndexOptions::default() };
    let (index, _) = SparrowIndex::open(&dir, &mapping, &options).unwrap();
    let fixture = Fixture { _dir, index, next_seq_no: 0 };
    assert_eq!((graphs(&fixture), nearest(&fixture, &vectors[7], Vec::new())), (vec![2401], found));
}

#[test]
fn a_damaged_graph_is_named() {
    let (fixture, _) = with_vectors(2000, 2);
    fixture.index.merge_all().unwrap();
    fixture.index.flush(Some(1)).unwrap();
    let (dir, mapping) = (fixture.index.dir().to_path_buf(), fixture.index.mapping());
    let Fixture { _dir, index, .. } = fixture;
    drop(index);
    // The last part of the container is the graph; the old segments' files may still be there.
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            let mut bytes = std::fs::read(&path).unwrap();
            let at = bytes.len() - 20_000;
            bytes[at] ^= 1;
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, bytes).unwrap();
        }
    }
    let options = IndexOptions { memory_budget: 15_000_000, ..IndexOptions::default() };
    let error = SparrowIndex::open(&dir, &mapping, &options).err().expect("damage is noticed");
    // The checksum of the whole file comes before the graph's own.
    assert!(matches!(error, IndexError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains(EXTENSION) && error.to_string().contains("crc32"), "{error}");
}

#[test]
fn vectors_of_format_1_are_read_and_upgraded() {
    let mut fixture = Fixture::new(json!({
        "v": {"type": "dense_vector", "similarity": "l2_norm", "index_options": {"type": "flat"}}
    }));
    fixture.batch(&[("0", json!({"v": [1.0, 2.0]})), ("1", json!({})), ("2", json!({"v": [3.0, 2.0]}))]);
    fixture.index.flush(Some(2)).unwrap();
    let (dir, mapping) = (fixture.index.dir().to_path_buf(), fixture.index.mapping());
    let Fixture { _dir, index, .. } = fixture;
    drop(index);
    let mut old = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            let mut bytes = std::fs::read(&path).unwrap();
            let at = bytes.windows(8).position(|window| window == b"SPRVEC\0\x02").unwrap();
            bytes[at + 7] = 1;
            let checksum = crc32fast::hash(&bytes[at..at + 28]);
            bytes[at + 28..at + 32].copy_from_slice(&checksum.to_le_bytes());
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, bytes).unwrap();
            old += 1;
        }
    }
    assert_eq!(old, 1);
    let options = IndexOptions { memory_budget: 15_000_000, ..IndexOptions::default() };
    let open = |dir: &std::path::Path| SparrowIndex::open(dir, &mapping, &options).unwrap().0;
    let current = |index: &SparrowIndex| index.searcher().segments()[0].plugins().vectors_are_current();
    let query = QueryKind::Knn(KnnQuery {
        field: "v".into(),
        vector: vec![1.0, 2.0],
        k: 2,
        num_candidates: 2,
        ..KnnQuery::default()
    });
    let fixture = Fixture { _dir, index: open(&dir), next_seq_no: 3 };
    assert!(!current(&fixture.index));
    let found = fixture.hits(query.clone());
    assert_eq!(found, [("0".to_owned(), 1.0), ("2".to_owned(), 0.2)]);
    let target = dir.with_file_name("upgraded");
    let never = std::sync::atomic::AtomicBool::new(false);
    fixture.index.rewrite(&target, fixture.index.format(), &mut |_| {}, &never).unwrap();
    let Fixture { _dir, index, .. } = fixture;
    drop(index);
    let fixture = Fixture { _dir, index: open(&target), next_seq_no: 3 };
    assert!(current(&fixture.index));
    assert_eq!(fixture.hits(query), found);
}
