//! Feeds damaged bytes to the readers of vectors and graphs: they must refuse them, or search them without a
//! panic.

use std::sync::atomic::AtomicBool;

use sparrow_fuzzing::{Campaign, Random, mutated};
use sparrow_vectors::{
    Codes, Effort, Element, GraphOptions, GraphReader, GraphSource, MAX_BLOCK, Metric, Short, Similarity,
    TopKRequest, VectorsBuilder, VectorsReader, write_graph,
};

const INT8: Option<Codes> = Some(Codes::INT8);
const SHORT: [Option<Codes>; 2] = [Some(Codes::Short(Short::Int4)), Some(Codes::Short(Short::Bit))];

fn vectors(similarity: Similarity, element: Element, count: u32, codes: Option<Codes>) -> Vec<u8> {
    let metric = Metric { element, similarity, dims: 8 };
    let mut builder = VectorsBuilder::new(metric);
    for doc in 0..count {
        let components = if element == Element::Bit { 1 } else { 8 };
        let vector: Vec<f32> =
            (0..components).map(|place| ((doc * 7 + place * 3) % 11) as f32 - 5.0).collect();
        let _ = builder.add(doc * 2, &vector);
    }
    builder.finish(count * 2, codes).unwrap_or_default()
}

/// Corrects the checksums of damaged vectors.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() >= 32 {
        let body = crc32fast::hash(&bytes[32..]);
        bytes[24..28].copy_from_slice(&body.to_le_bytes());
        let head = crc32fast::hash(&bytes[..28]);
        bytes[28..32].copy_from_slice(&head.to_le_bytes());
    }
    bytes
}

/// Corrects the checksums of damaged graphs.
fn sealed_graph(mut bytes: Vec<u8>) -> Vec<u8> {
    let header = if bytes.get(7) == Some(&1) { 24 } else { 28 };
    if bytes.len() < header {
        return bytes;
    }
    let head = crc32fast::hash(&bytes[..header - 4]);
    bytes[header - 4..header].copy_from_slice(&head.to_le_bytes());
    let number = |bytes: &[u8], at: usize| {
        let mut number = [0; 4];
        number.copy_from_slice(&bytes[at..at + 4]);
        u32::from_le_bytes(number) as usize
    };
    let code_bytes = if header == 28 { number(&bytes, 20) } else { 0 };
    let mut at = header;
    while bytes.len() >= at + 32 {
        let (length, high) = (number(&bytes, at + 16), number(&bytes, at + 20));
        let end = (at + 32).saturating_add(length);
        if high > 0 || end > bytes.len() {
            return bytes;
        }
        let body = crc32fast::hash(&bytes[at + 32..end]);
        bytes[at + 24..at + 28].copy_from_slice(&body.to_le_bytes());
        let head = crc32fast::hash(&bytes[at..at + 28]);
        bytes[at + 28..at + 32].copy_from_slice(&head.to_le_bytes());
        let codes = number(&bytes, at + 4).saturating_mul(code_bytes + 4).saturating_add(4);
        at = end.saturating_add(if code_bytes > 0 { codes } else { 0 });
        if code_bytes > 0 && at <= bytes.len() {
            let sum = crc32fast::hash(&bytes[end + 4..at]);
            bytes[end..end + 4].copy_from_slice(&sum.to_le_bytes());
        }
    }
    bytes
}

#[test]
fn damaged_vectors() {
    let mut seeds = vec![vectors(Similarity::Cosine, Element::Float, 0, None)];
    // Many enough for a graph to be walked by their codes.
    seeds.extend(SHORT.map(|codes| vectors(Similarity::L2Norm, Element::Float, 60, codes)));
    let graph = graph_over(&VectorsReader::open(seeds[1].clone()).unwrap(), SHORT[0]);
    let graph = GraphReader::open(&graph[..]).unwrap();
    for similarity in [Similarity::Cosine, Similarity::DotProduct, Similarity::L2Norm] {
        for (element, codes) in
            [(Element::Float, None), (Element::Float, INT8), (Element::Byte, None), (Element::Bit, None)]
        {
            seeds.push(vectors(similarity, element, 9, codes));
        }
        seeds.extend(SHORT.map(|codes| vectors(similarity, Element::Float, 9, codes)));
    }
    seeds.retain(|seed| !seed.is_empty());
    assert!(seeds.len() > 5 && seeds.iter().all(|seed| &sealed(seed.clone()) == seed));
    Campaign::new(env!("CARGO_MANIFEST_DIR"), "vectors").run(
        |random: &mut Random| {
            let bytes = mutated(random, &seeds, &[b"SPRVEC\0\x02", b"SPRVEC\0\x01", b"SPRVEC\0\x03"]);
            if random.once_in(4) { bytes } else { sealed(bytes) }
        },
        |bytes| {
            let Ok(reader) = VectorsReader::open(bytes) else { return };
            if reader.verify().is_err() || reader.dims() > 4096 {
                return;
            }
            let query = vec![0.5; reader.dims()];
            for doc in 0..reader.num_docs().min(40) {
                reader.vector(doc);
                let _ = reader.score(&query, doc);
            }
            // Components and codes may be anything here, and a search comes to its end all the same.
            let graph = (reader.dims() == 8).then_some(&graph);
            let query = if reader.metric().element == Element::Float { &query[..] } else { &[] };
            let request = TopKRequest { query, ..request(&[]) };
            let _ = reader.nearest(graph, &request, Effort { num_candidates: 1, oversample: 1.0 });
        },
    );
}

fn request(query: &[f32]) -> TopKRequest<'_> {
    TopKRequest {
        query,
        k: 5,
        live: None,
        filter: None,
        min_score: None,
        tie: &|doc| u64::from(doc),
        cancel: None,
    }
}

/// A graph over vectors that have these codes.
fn graph_over(reader: &VectorsReader<Vec<u8>>, codes: Option<Codes>) -> Vec<u8> {
    let doc_map = (0..reader.num_docs()).collect();
    let mut graph = Vec::new();
    let options = GraphOptions { m: 4, ef_construction: 16 };
    let never = AtomicBool::new(false);
    let source = GraphSource { reader: reader.clone(), doc_map };
    write_graph(&[source], codes, options, MAX_BLOCK, &never, &mut graph).unwrap();
    graph
}

#[test]
fn damaged_graphs() {
    let seeds = [INT8, None].map(|codes| {
        let reader = VectorsReader::open(vectors(Similarity::Cosine, Element::Float, 60, codes)).unwrap();
        let graph = graph_over(&reader, codes);
        assert_eq!(sealed_graph(graph.clone()), graph);
        graph
    });
    let bytes = vectors(Similarity::Cosine, Element::Float, 60, None);
    let reader = VectorsReader::open(&bytes[..]).unwrap();
    let query = [1.0, -1.0, 0.5, 2.0, 0.0, 0.0, 3.0, -4.0];
    Campaign::new(env!("CARGO_MANIFEST_DIR"), "graphs").run(
        |random: &mut Random| {
            let bytes = mutated(random, &seeds, &[b"SPRHNSW\x01", b"SPRHNSW\x02", b"SPRHNSW\x04"]);
            if random.once_in(4) { bytes } else { sealed_graph(bytes) }
        },
        |bytes| {
            let Ok(graph) = GraphReader::open(bytes) else { return };
            assert!(graph.len() < 1 << 32);
            let _ = graph.verify();
            let request = request(&query);
            let effort = Effort { num_candidates: 1, oversample: 1.0 };
            assert!(reader.nearest(Some(&graph), &request, effort).unwrap().0.len() <= 5);
        },
    );
}
