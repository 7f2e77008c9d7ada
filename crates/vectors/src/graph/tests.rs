use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::builder::VectorsBuilder;
use crate::element::{Element, Metric};
use crate::error::VectorsError;
use crate::merge::{DROPPED, MergeSource, merge_vectors};
use crate::nearest::{Effort, Method};
use crate::quantise::{Codes, Int8, Short};
use crate::reader::VectorsReader;
use crate::similarity::Similarity;
use crate::top_k::TopKRequest;
use crate::top_k::tests::bits;

type Reader = VectorsReader<Vec<u8>>;
type Graph = GraphReader<Vec<u8>>;

/// Random vectors around a few centres; of unit length where floats are compared by dot product.
fn vectors(metric: Metric, count: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut random = StdRng::seed_from_u64(seed);
    let components = metric.element.components(metric.dims);
    let mut of_centres = StdRng::seed_from_u64(0);
    let centres: Vec<Vec<f32>> =
        (0..20).map(|_| (0..components).map(|_| of_centres.random_range(-1.0..1.0)).collect()).collect();
    (0..count)
        .map(|number| {
            let around = |centre: &f32, random: &mut StdRng| centre + random.random_range(-0.5..0.5);
            let mut vector: Vec<f32> =
                centres[number % centres.len()].iter().map(|centre| around(centre, &mut random)).collect();
            if metric.element == Element::Float {
                let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
                vector.iter_mut().for_each(|x| *x /= length);
            } else {
                vector.iter_mut().for_each(|x| *x = (*x * 80.0).round());
            }
            vector
        })
        .collect()
}

const INT8: Option<Codes> = Some(Codes::INT8);
const INT4: Option<Codes> = Some(Codes::Short(Short::Int4));
const BIT: Option<Codes> = Some(Codes::Short(Short::Bit));

/// Codes that some vectors have, to be made for others.
fn codes_of(reader: &Reader) -> Option<Codes> {
    reader.has_codes().then(|| reader.short_codes().map_or(Codes::INT8, Codes::Short))
}

fn reader(metric: Metric, vectors: &[Vec<f32>], codes: bool) -> Reader {
    reader_with(metric, vectors, INT8.filter(|_| codes))
}

fn reader_with(metric: Metric, vectors: &[Vec<f32>], codes: Option<Codes>) -> Reader {
    let mut builder = VectorsBuilder::new(metric);
    for (doc, vector) in vectors.iter().enumerate() {
        builder.add(doc as u32, vector).unwrap();
    }
    VectorsReader::open(builder.finish(vectors.len() as u32, codes).unwrap()).unwrap()
}

fn graph_bytes(reader: &Reader, max_block: usize) -> Vec<u8> {
    let doc_map: Arc<[u32]> = (0..reader.num_docs()).collect();
    let sources = vec![GraphSource { reader: reader.clone(), doc_map }];
    let mut bytes = Vec::new();
    assert!(
        write_graph(
            &sources,
            codes_of(reader),
            GraphOptions::default(),
            max_block,
            &AtomicBool::new(false),
            &mut bytes
        )
        .unwrap()
    );
    bytes
}

struct Search<'a> {
    reader: &'a Reader,
    graph: Option<&'a Graph>,
    live: Option<Vec<u64>>,
    filter: Option<Vec<u64>>,
}

impl Search<'_> {
    fn run(&self, query: &[f32], num_candidates: usize) -> (Vec<(u32, f32)>, Method) {
        let request = TopKRequest {
            query,
            k: 10,
            live: self.live.as_deref(),
            filter: self.filter.as_deref(),
            min_score: None,
            tie: &|doc| u64::from(doc),
            cancel: None,
        };
        self.reader.nearest(self.graph, &request, Effort { num_candidates, oversample: 1.0 }).unwrap()
    }

    /// Share of the true ten nearest neighbours that are found, and how often a graph was used.
    fn recall(&self, queries: &[Vec<f32>], num_candidates: usize) -> (f64, usize) {
        let (mut found, mut wanted, mut walked) = (0, 0, 0);
        for query in queries {
            let exact = Search { graph: None, live: self.live.clone(), filter: self.filter.clone(), ..*self };
            let best = exact.reader.top_k(&TopKRequest {
                query,
                k: 10,
                live: exact.live.as_deref(),
                filter: exact.filter.as_deref(),
                min_score: None,
                tie: &|doc| u64::from(doc),
                cancel: None,
            });
            let best = best.unwrap();
            let (nearest, method) = self.run(query, num_candidates);
            walked += usize::from(method == Method::Graph);
            assert_eq!(nearest.len(), best.len());
            for (doc, score) in &nearest {
                assert_eq!(self.reader.score(query, *doc).unwrap(), Some(*score), "scores are exact");
            }
            wanted += best.len();
            found += best.iter().filter(|hit| nearest.contains(hit)).count();
        }
        (found as f64 / wanted as f64, walked)
    }
}

const COUNT: usize = 6000;

#[test]
fn recall_has_a_floor_for_every_kind_of_vector() {
    let float = |similarity| Metric { element: Element::Float, similarity, dims: 24 };
    let byte = |similarity| Metric { element: Element::Byte, similarity, dims: 24 };
    let cases = [
        (float(Similarity::Cosine), INT8),
        (float(Similarity::Cosine), None),
        (float(Similarity::DotProduct), INT8),
        (float(Similarity::L2Norm), INT8),
        (float(Similarity::L2Norm), None),
        (float(Similarity::MaxInnerProduct), None),
        (float(Similarity::L2Norm), INT4),
        (float(Similarity::MaxInnerProduct), INT4),
        (Metric { dims: 160, ..float(Similarity::Cosine) }, BIT),
        (Metric { dims: 160, ..float(Similarity::L2Norm) }, BIT),
        (byte(Similarity::Cosine), None),
        (byte(Similarity::DotProduct), None),
        (byte(Similarity::L2Norm), None),
        (Metric { element: Element::Bit, similarity: Similarity::L2Norm, dims: 512 }, None),
    ];
    for (metric, codes) in cases {
        let reader = reader_with(metric, &vectors(metric, COUNT, 1), codes);
        let graph = GraphReader::open(graph_bytes(&reader, MAX_BLOCK)).unwrap();
        let queries = vectors(metric, 20, 2);
        let search = Search { reader: &reader, graph: Some(&graph), live: None, filter: None };
        let (recall, walked) = search.recall(&queries, 60);
        assert!(walked > 0, "{metric:?}: no graph was walked");
        // Vectors of a centre are about equally far from one another here, which one bit tells apart only roughly.
        let floor = if codes == BIT { 0.5 } else { 0.9 };
        assert!(recall >= floor, "{metric:?} {codes:?}: {recall}");
        let all = search.recall(&queries, COUNT);
        assert_eq!(all, (1.0, 0), "{metric:?}: as many candidates as vectors are an exact search");
    }
}

const COSINE: Metric = Metric { element: Element::Float, similarity: Similarity::Cosine, dims: 24 };

#[test]
fn more_candidates_find_more() {
    let reader = reader(COSINE, &vectors(COSINE, COUNT, 3), false);
    let graph = GraphReader::open(graph_bytes(&reader, MAX_BLOCK)).unwrap();
    let search = Search { reader: &reader, graph: Some(&graph), live: None, filter: None };
    let queries = vectors(COSINE, 50, 4);
    let (few, many) = (search.recall(&queries, 10), search.recall(&queries, 80));
    assert!(many.0 > few.0, "{few:?} {many:?}");
    assert!(many.0 > 0.97, "{many:?}");
}

#[test]
fn filters_and_deletions_hold() {
    let many = Metric { dims: 160, ..COSINE };
    for (metric, codes, floor) in [(COSINE, INT8, 0.85), (COSINE, INT4, 0.8), (many, BIT, 0.3)] {
        filters_and_deletions(metric, codes, floor);
    }
}

/// Searches with filters of which some let so few pass that all are compared, and with 20 candidates of the others.
fn filters_and_deletions(metric: Metric, codes: Option<Codes>, floor: f64) {
    let reader = reader_with(metric, &vectors(metric, COUNT, 5), codes);
    let graph = GraphReader::open(graph_bytes(&reader, 2500)).unwrap();
    let queries = vectors(metric, 20, 6);
    let live: Vec<bool> = (0..COUNT).map(|doc| doc % 7 != 0).collect();
    for (every, walks) in [(2, true), (100, false), (COUNT, false)] {
        let filter: Vec<bool> = (0..COUNT).map(|doc| doc % every == 1).collect();
        let search = Search {
            reader: &reader,
            graph: Some(&graph),
            live: Some(bits(&live)),
            filter: Some(bits(&filter)),
        };
        for query in &queries {
            let (found, _) = search.run(query, 20);
            let possible = (0..COUNT).filter(|doc| live[*doc] && filter[*doc]).count();
            assert_eq!(found.len(), possible.min(10));
            assert!(found.iter().all(|(doc, _)| live[*doc as usize] && filter[*doc as usize]));
        }
        let (recall, walked) = search.recall(&queries, 20);
        assert_eq!(walked > 0, walks, "one of {every}");
        assert!(recall >= if walks { floor } else { 1.0 }, "{codes:?}, one of {every}: {recall}");
    }
}

/// Vectors of which `share` percent are copies of a few others, spread over all of them, and which those are.
fn with_copies(metric: Metric, share: usize, copied: &[Vec<f32>], seed: u64) -> (Vec<Vec<f32>>, Vec<bool>) {
    let is_copy: Vec<bool> = (0..COUNT).map(|doc| doc * share % 100 < share).collect();
    let mut copies = copied.iter().cycle();
    let mut all = vectors(metric, COUNT, seed);
    for (vector, _) in all.iter_mut().zip(&is_copy).filter(|(_, is_copy)| **is_copy) {
        vector.clone_from(copies.next().unwrap());
    }
    (all, is_copy)
}

#[test]
fn equal_vectors_do_not_cut_off_the_others() {
    let float = |similarity| Metric { element: Element::Float, similarity, dims: 24 };
    let byte = |similarity| Metric { element: Element::Byte, similarity, dims: 24 };
    let bit = Metric { element: Element::Bit, similarity: Similarity::L2Norm, dims: 512 };
    let mut cases = vec![
        (float(Similarity::DotProduct), None, 50, 1),
        (float(Similarity::L2Norm), INT8, 25, 1),
        (float(Similarity::L2Norm), None, 50, 3),
        (float(Similarity::L2Norm), INT4, 50, 3),
        (float(Similarity::MaxInnerProduct), None, 25, 2),
        (byte(Similarity::Cosine), None, 50, 1),
        (byte(Similarity::DotProduct), None, 25, 3),
        (byte(Similarity::L2Norm), None, 50, 10),
        (bit, None, 50, 2),
    ];
    let of_cosine = [(5, 1), (5, 10), (25, 10), (50, 1), (50, 10)];
    cases.extend(of_cosine.map(|(share, distinct)| (float(Similarity::Cosine), INT8, share, distinct)));
    for (metric, codes, share, distinct) in cases {
        let copied = vectors(metric, distinct, 21);
        let (all, is_copy) = with_copies(metric, share, &copied, 20);
        let reader = reader_with(metric, &all, codes);
        let graph = GraphReader::open(graph_bytes(&reader, MAX_BLOCK)).unwrap();
        let queries = vectors(metric, 100, 30);
        let others = bits(&is_copy.iter().map(|is_copy| !is_copy).collect::<Vec<_>>());
        let search = |filter| Search { reader: &reader, graph: Some(&graph), live: None, filter };
        let found = [
            search(None).recall(&queries, 30),
            search(Some(others)).recall(&queries, 30),
            search(None).recall(&copied, 30),
        ];
        // Distances of bits are often equal, so that other documents than the exact ones are as good.
        let floor = if metric.element == Element::Bit { 0.7 } else { 0.88 };
        assert!(
            found.iter().all(|(recall, walked)| *recall >= floor && *walked > 0),
            "{metric:?}, {share} % are copies of {distinct}: {found:?}"
        );
    }
}

/// A graph in which nothing leads from the first vector to the others.
fn graph_without_links(count: u32) -> Vec<u8> {
    let body = vec![0; (count as usize + 1) * 4 + 3];
    let head = format::BlockHeader { first: 0, count, levels: 1, entry: 0 }.to_bytes(&body);
    [&format::header(count, 1, GraphOptions::default(), 0)[..], &head, &body].concat()
}

#[test]
fn a_walk_that_finds_too_few_gives_way_to_a_scan() {
    let reader = reader(COSINE, &vectors(COSINE, COUNT, 3), true);
    let graph = GraphReader::open(graph_without_links(COUNT as u32)).unwrap();
    let queries = vectors(COSINE, 5, 4);
    let second = (0..COUNT).map(|doc| doc % 2 == 1).collect::<Vec<_>>();
    for filter in [None, Some(bits(&second))] {
        let search = Search { reader: &reader, graph: Some(&graph), live: None, filter };
        assert_eq!(search.recall(&queries, 30), (1.0, 0));
    }
}

#[test]
fn the_same_vectors_make_the_same_graph() {
    let reader = reader(COSINE, &vectors(COSINE, 1500, 7), true);
    let bytes = graph_bytes(&reader, MAX_BLOCK);
    assert_eq!(bytes, graph_bytes(&reader, MAX_BLOCK));
    let graph = GraphReader::open(bytes).unwrap();
    assert_eq!((graph.len(), graph.m(), graph.ef_construction()), (1500, 16, 100));
}

#[test]
fn a_merge_makes_the_graph_of_what_stays() {
    let all = vectors(COSINE, 2000, 8);
    let old = [reader(COSINE, &all[..900], true), reader(COSINE, &all[900..], true)];
    let (mut next, mut kept) = (0, Vec::new());
    let maps: Vec<Arc<[u32]>> = old
        .iter()
        .scan(0, |first, reader| {
            let map = (0..reader.len() as u32).map(|doc| {
                if (doc + *first) % 3 == 0 {
                    return DROPPED;
                }
                kept.push(all[(doc + *first) as usize].clone());
                next += 1;
                next - 1
            });
            let map: Arc<[u32]> = map.collect();
            *first += reader.len() as u32;
            Some(map)
        })
        .collect();
    let sources: Vec<MergeSource<'_, Vec<u8>>> =
        old.iter().zip(&maps).map(|(reader, doc_map)| MergeSource { reader, doc_map }).collect();
    let mut merged = Vec::new();
    merge_vectors(&sources, next, INT8, &AtomicBool::new(false), &mut merged).unwrap();
    let merged = VectorsReader::open(merged).unwrap();
    let graph_sources: Vec<_> = old
        .iter()
        .zip(&maps)
        .map(|(reader, doc_map)| GraphSource { reader: reader.clone(), doc_map: doc_map.clone() })
        .collect();
    let mut bytes = Vec::new();
    let never = AtomicBool::new(false);
    write_graph(&graph_sources, INT8, GraphOptions::default(), MAX_BLOCK, &never, &mut bytes).unwrap();
    assert_eq!(merged.len(), kept.len());
    assert_eq!(bytes, graph_bytes(&reader(COSINE, &kept, true), MAX_BLOCK));
    assert_eq!(GraphReader::open(bytes).unwrap().len(), merged.len());
}

#[test]
fn hits_are_the_best_candidates_where_a_graph_is_built_from_clipped_codes() {
    let mut vectors = vectors(COSINE, COUNT, 16);
    // The largest tenth of the components is clipped, and this one always is.
    for (number, vector) in vectors.iter_mut().enumerate() {
        vector[0] = if number % 2 == 0 { 3.0 } else { -3.0 } * (1.0 + (number % 7) as f32);
    }
    let mut builder = VectorsBuilder::new(COSINE);
    for (doc, vector) in vectors.iter().enumerate() {
        builder.add(doc as u32, vector).unwrap();
    }
    let clips = Some(Codes::Int8(Int8 { confidence_interval: 0.9 }));
    let clipped = VectorsReader::open(builder.finish(COUNT as u32, clips).unwrap()).unwrap();
    let doc_map: Arc<[u32]> = (0..COUNT as u32).collect();
    let merged = |codes: Option<Codes>| {
        let mut bytes = Vec::new();
        let source = MergeSource { reader: &clipped, doc_map: &doc_map };
        merge_vectors(&[source], COUNT as u32, codes, &AtomicBool::new(false), &mut bytes).unwrap();
        let source = GraphSource { reader: clipped.clone(), doc_map: doc_map.clone() };
        let (never, mut graph) = (AtomicBool::new(false), Vec::new());
        write_graph(&[source], codes, GraphOptions::default(), MAX_BLOCK, &never, &mut graph).unwrap();
        (VectorsReader::open(bytes).unwrap(), GraphReader::open(graph).unwrap())
    };
    for codes in [None, INT8, clips] {
        let (reader, graph) = merged(codes);
        for query in vectors.iter().step_by(300) {
            let hits = |k: usize| {
                let request = TopKRequest {
                    query,
                    k,
                    live: None,
                    filter: None,
                    min_score: None,
                    tie: &|doc| u64::from(doc),
                    cancel: None,
                };
                let effort = Effort { num_candidates: 100, oversample: 1.0 };
                reader.nearest(Some(&graph), &request, effort).unwrap()
            };
            let ((all, method), (few, _)) = (hits(100), hits(10));
            assert_eq!((method, &all[..10]), (Method::Graph, &few[..]), "{codes:?}");
        }
    }
}

#[test]
fn large_lists_make_smaller_blocks() {
    let metric = Metric { element: Element::Byte, similarity: Similarity::L2Norm, dims: 8 };
    let count = 40_000;
    let reader = reader(metric, &vectors(metric, count, 15), false);
    let doc_map: Arc<[u32]> = (0..count as u32).collect();
    let options = GraphOptions { m: 512, ef_construction: 1 };
    let mut bytes = Vec::new();
    let sources = [GraphSource { reader: reader.clone(), doc_map }];
    let never = AtomicBool::new(false);
    write_graph(&sources, None, options, MAX_BLOCK, &never, &mut bytes).unwrap();
    let graph = GraphReader::open(bytes).unwrap();
    assert!(graph.is_of(&reader));
    // Two lists of 1,024 neighbours and their length for each vector, in memory and as they are written.
    let largest = graph.blocks.iter().map(|block| block.vectors.len() * 2 * 4 * 1025).max().unwrap();
    assert!(largest < 300_000_000, "{largest} bytes of lists");
}

#[test]
fn building_can_be_cancelled() {
    let reader = reader(COSINE, &vectors(COSINE, 100, 9), false);
    let sources = vec![GraphSource { reader, doc_map: (0..100).collect() }];
    let cancelled = AtomicBool::new(true);
    let written =
        write_graph(&sources, None, GraphOptions::default(), MAX_BLOCK, &cancelled, &mut Vec::new()).unwrap();
    assert!(!written);
}

#[test]
fn damaged_graphs_are_refused() {
    let reader = reader(COSINE, &vectors(COSINE, 300, 10), true);
    let good = graph_bytes(&reader, 200);
    GraphReader::open(&good[..]).unwrap();
    for at in (0..good.len()).step_by(7).chain(0..80) {
        let mut bad = good.clone();
        bad[at] ^= 0x21;
        assert!(GraphReader::open(&bad[..]).is_err(), "byte {at}");
    }
    for length in (0..good.len()).step_by(97) {
        assert!(GraphReader::open(&good[..length]).is_err());
    }
    let mut newer = good.clone();
    newer[7] = 6;
    assert_eq!(
        GraphReader::open(&newer[..]).unwrap_err(),
        VectorsError::NewerFormat { found: 6, supported: 5 }
    );
}

/// A graph as version 4 wrote it, with four bytes for each neighbour.
fn with_whole_neighbours(bytes: &[u8]) -> Vec<u8> {
    let graph = GraphReader::open(bytes).unwrap();
    let mut out = bytes[..format::HEADER].to_vec();
    out[7] = 4;
    let mut at = format::HEADER;
    for block in &graph.blocks {
        let count = block.vectors.len() as u32;
        let mut body = Vec::new();
        for (number, level) in block.levels.iter().enumerate() {
            let on_level = (0..count).filter(|vector| number == 0 || graph.is_on(level, *vector));
            let on_level: Vec<u32> = on_level.collect();
            let mut numbers = vec![0];
            for vector in &on_level {
                numbers.push(numbers[numbers.len() - 1] + graph.neighbours(level, *vector).count() as u32);
            }
            if number > 0 {
                body.extend([&[on_level.len() as u32][..], &on_level].concat());
            }
            body.extend(numbers);
            body.extend(on_level.iter().flat_map(|vector| graph.neighbours(level, *vector)));
        }
        let body: Vec<u8> = body.into_iter().flat_map(u32::to_le_bytes).collect();
        let levels = block.levels.len() as u32;
        let head =
            format::BlockHeader { first: block.vectors.start as u32, count, levels, entry: block.entry };
        out.extend(head.to_bytes(&body));
        out.extend(&body);
        let packed = u64::from_le_bytes(bytes[at + 16..at + 24].try_into().unwrap()) as usize;
        let codes = at + format::BLOCK_HEADER + packed;
        at = codes
            + if graph.code_bytes() > 0 { 4 + block.vectors.len() * (4 + graph.code_bytes()) } else { 0 };
        out.extend(&bytes[codes..at]);
    }
    with_version(&out, 4)
}

fn with_version(bytes: &[u8], version: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[7] = version;
    let checksum = crc32fast::hash(&bytes[..24]);
    bytes[24..28].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn graphs_of_older_versions_are_walked() {
    let codes = reader(COSINE, &vectors(COSINE, COUNT, 12), true);
    let packed = graph_bytes(&codes, 2500);
    let bytes = with_whole_neighbours(&packed);
    assert!(packed.len() * 3 < bytes.len() * 2, "{} {}", packed.len(), bytes.len());
    let mut old = [&bytes[..20], &[0; 4], &bytes[28..]].concat();
    old[7] = 1;
    let checksum = crc32fast::hash(&old[..20]);
    old[20..24].copy_from_slice(&checksum.to_le_bytes());
    let second = GraphReader::open(with_version(&bytes, 2)).unwrap();
    let fourth = GraphReader::open(bytes).unwrap();
    let (old, new) = (GraphReader::open(old).unwrap(), GraphReader::open(packed).unwrap());
    assert!(fourth.is_current());
    assert!(!old.is_current() && new.is_current());
    assert!(!second.is_current() && second.len() == new.len());
    // Over floats without codes too, which are then compared themselves.
    let floats = reader(COSINE, &vectors(COSINE, COUNT, 12), false);
    let queries = vectors(COSINE, 20, 13);
    for query in &queries {
        let ask =
            |reader, graph| Search { reader, graph: Some(graph), live: None, filter: None }.run(query, 40);
        assert_eq!(ask(&codes, &old), ask(&codes, &new));
        assert_eq!(ask(&codes, &second), ask(&codes, &new));
        assert_eq!(ask(&codes, &fourth), ask(&codes, &new));
        assert_eq!(ask(&floats, &old).1, Method::Graph);
    }
    let search = Search { reader: &floats, graph: Some(&old), live: None, filter: None };
    assert!(search.recall(&queries, 40).0 >= 0.9);
    // The codes of version 3 may be clipped, so nothing is known of their error.
    let with_codes = graph_bytes(&floats, 2500);
    let third = with_version(&with_whole_neighbours(&with_codes), 3);
    let (third, new) = (GraphReader::open(third).unwrap(), GraphReader::open(with_codes).unwrap());
    assert!(third.is_current() && third.whole_scale(3000).is_none() && new.whole_scale(3000).is_some());
    let whole = reader(COSINE, &vectors(COSINE, COUNT, 12), true);
    assert!((0..COUNT).all(|ord| new.whole_scale(ord) == Some(whole.scale(ord))), "of each block");
    for query in &queries {
        let ask =
            |graph| Search { reader: &floats, graph: Some(graph), live: None, filter: None }.run(query, 40);
        assert_eq!(ask(&third), ask(&new));
    }
}

#[test]
fn damaged_codes_are_found_when_they_are_looked_for() {
    let reader = reader(COSINE, &vectors(COSINE, 300, 14), false);
    let good = graph_bytes(&reader, MAX_BLOCK);
    GraphReader::open(&good[..]).unwrap().verify().unwrap();
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 0x10;
    assert!(GraphReader::open(&bad[..]).unwrap().verify().is_err());
}

#[test]
fn no_and_few_vectors_make_graphs_too() {
    for count in [0, 1, 2, 40] {
        let reader = reader(COSINE, &vectors(COSINE, count, 11), false);
        let graph = GraphReader::open(graph_bytes(&reader, MAX_BLOCK)).unwrap();
        assert_eq!((graph.len(), graph.is_empty()), (count, count == 0));
        let search = Search { reader: &reader, graph: Some(&graph), live: None, filter: None };
        assert_eq!(search.run(&[0.5; 24], 10).0.len(), count.min(10));
    }
}
