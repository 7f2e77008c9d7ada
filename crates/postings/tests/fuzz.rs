//! Feeds damaged bytes to the reader of sparse postings, which must refuse them or read them without a panic.

use sparrow_fuzzing::{Campaign, Random, mutated};
use sparrow_postings::{Format, PostingsBuilder, PostingsReader, SparseCursor, TERMINATED};

const FOOTER: usize = 112;

fn seed(format: Format, docs: u32, terms: usize) -> Vec<u8> {
    let mut builder = PostingsBuilder::new();
    let names: Vec<String> = (0..terms).map(|term| format!("t{term}")).collect();
    for doc in (0..docs).filter(|doc| doc % 3 != 1) {
        let own =
            names.iter().enumerate().filter(|(term, _)| !(doc as usize + term).is_multiple_of(term % 5 + 2));
        let mut tokens =
            own.map(|(term, name)| (name.as_str(), 0.1 + (term as f32) + (doc % 7) as f32 / 3.0));
        builder.add(doc, &mut tokens);
    }
    builder.finish(docs, format)
}

/// Corrects the checksums of damaged bytes, so that the reader gets past them.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let Some(start) = bytes.len().checked_sub(FOOTER) else { return bytes };
    let section = |bytes: &[u8], at: usize| -> usize {
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[start + at..start + at + 8]);
        usize::try_from(u64::from_le_bytes(number)).unwrap_or(usize::MAX)
    };
    let presence = section(&bytes, 48);
    for (at, range) in [(20, (0, presence)), (24, (presence, start))] {
        if let Some(part) = bytes.get(range.0..range.1) {
            let crc = crc32fast::hash(part);
            bytes[start + at..start + at + 4].copy_from_slice(&crc.to_le_bytes());
        }
    }
    let crc = crc32fast::hash(&bytes[start..start + FOOTER - 8]);
    bytes[start + FOOTER - 8..start + FOOTER - 4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Runs the operations of a search and a merge on the bytes of a segment.
fn read(bytes: &[u8]) {
    let Ok(reader) = PostingsReader::open(bytes) else { return };
    // As in an index: what a checksum does not vouch for is not searched.
    if reader.verify().is_err() {
        return;
    }
    let terms: Vec<_> =
        (0..8).filter_map(|term| reader.term(&format!("t{term}"))).map(|term| (term, 1.5)).collect();
    let mut out = Vec::new();
    for doc in 0..reader.num_docs().min(50) {
        reader.has_value(doc);
        out.clear();
        reader.doc_tokens(doc, &mut out);
    }
    let mut cursor = SparseCursor::new(&reader, &terms);
    for _ in 0..200 {
        if cursor.doc() == TERMINATED {
            break;
        }
        cursor.score();
        let next = cursor.doc().saturating_add(2);
        cursor.seek(next);
    }
}

#[test]
fn damaged_postings() {
    let seeds: Vec<Vec<u8>> = [Format::V1, Format::V3]
        .into_iter()
        .flat_map(|format| {
            [seed(format, 1, 1), seed(format, 70, 8), seed(format, 300, 3), seed(format, 0, 0)]
        })
        .collect();
    for bytes in &seeds {
        PostingsReader::open(bytes.as_slice()).unwrap();
        PostingsReader::open(sealed(bytes.clone())).unwrap().verify().unwrap();
    }
    Campaign::new(env!("CARGO_MANIFEST_DIR"), "postings").run(
        |random: &mut Random| {
            let bytes = mutated(random, &seeds, &[b"SPRWSPRS", b"SPRF"]);
            if random.once_in(4) { bytes } else { sealed(bytes) }
        },
        read,
    );
}
