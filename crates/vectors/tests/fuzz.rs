//! Bad bytes for the readers of vectors and of graphs: they refuse them, or search them without a panic.

use std::sync::atomic::AtomicBool;

use sparrow_fuzzing::{Campaign, Random, mutated};
use sparrow_vectors::{
    Element, GraphOptions, GraphReader, GraphSource, Int8, MAX_BLOCK, Metric, Similarity, VectorsBuilder,
    VectorsReader, write_graph,
};

fn vectors(similarity: Similarity, element: Element, count: u32, codes: bool) -> Vec<u8> {
    let metric = Metric { element, similarity, dims: 8 };
    let mut builder = VectorsBuilder::new(metric);
    for doc in 0..count {
        let components = if element == Element::Bit { 1 } else { 8 };
        let vector: Vec<f32> =
            (0..components).map(|place| ((doc * 7 + place * 3) % 11) as f32 - 5.0).collect();
        let _ = builder.add(doc * 2, &vector);
    }
    builder.finish(count * 2, codes.then(Int8::default)).unwrap_or_default()
}

/// Makes the checksums of vectors true again.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() >= 32 {
        let body = crc32fast::hash(&bytes[32..]);
        bytes[24..28].copy_from_slice(&body.to_le_bytes());
        let head = crc32fast::hash(&bytes[..28]);
        bytes[28..32].copy_from_slice(&head.to_le_bytes());
    }
    bytes
}

/// Makes the checksums of graphs true again.
fn sealed_graph(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() < 24 {
        return bytes;
    }
    let head = crc32fast::hash(&bytes[..20]);
    bytes[20..24].copy_from_slice(&head.to_le_bytes());
    let mut at = 24;
    while bytes.len() >= at + 32 {
        let mut length = [0; 8];
        length.copy_from_slice(&bytes[at + 16..at + 24]);
        let end =
            usize::try_from(u64::from_le_bytes(length)).ok().and_then(|length| (at + 32).checked_add(length));
        let Some(end) = end.filter(|end| *end <= bytes.len()) else { return bytes };
        let body = crc32fast::hash(&bytes[at + 32..end]);
        bytes[at + 24..at + 28].copy_from_slice(&body.to_le_bytes());
        let head = crc32fast::hash(&bytes[at..at + 28]);
        bytes[at + 28..at + 32].copy_from_slice(&head.to_le_bytes());
        at = end;
    }
    bytes
}

#[test]
fn damaged_vectors() {
    let mut seeds = vec![vectors(Similarity::Cosine, Element::Float, 0, false)];
    for similarity in [Similarity::Cosine, Similarity::DotProduct, Similarity::L2Norm] {
        for (element, codes) in
            [(Element::Float, false), (Element::Float, true), (Element::Byte, false), (Element::Bit, false)]
        {
            seeds.push(vectors(similarity, element, 9, codes));
        }
    }
    seeds.retain(|seed| !seed.is_empty());
    assert!(seeds.len() > 5 && seeds.iter().all(|seed| &sealed(seed.clone()) == seed));
    Campaign::new(env!("CARGO_MANIFEST_DIR"), "vectors").run(
        |random: &mut Random| {
            let bytes = mutated(random, &seeds, &[b"SPRVEC\0\x02", b"SPRVEC\0\x01"]);
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
        },
    );
}

#[test]
fn damaged_graphs() {
    let bytes = vectors(Similarity::Cosine, Element::Float, 60, true);
    let reader = VectorsReader::open(bytes).unwrap();
    let doc_map = (0..reader.num_docs()).collect();
    let mut graph = Vec::new();
    let options = GraphOptions { m: 4, ef_construction: 16 };
    let never = AtomicBool::new(false);
    write_graph(vec![GraphSource { reader, doc_map }], options, MAX_BLOCK, &never, &mut graph).unwrap();
    assert_eq!(sealed_graph(graph.clone()), graph);
    let seeds = [graph];
    Campaign::new(env!("CARGO_MANIFEST_DIR"), "graphs").run(
        |random: &mut Random| {
            let bytes = mutated(random, &seeds, &[b"SPRHNSW\x01"]);
            if random.once_in(4) { bytes } else { sealed_graph(bytes) }
        },
        |bytes| {
            if let Ok(graph) = GraphReader::open(bytes) {
                assert!(graph.len() < 1 << 32);
            }
        },
    );
}
