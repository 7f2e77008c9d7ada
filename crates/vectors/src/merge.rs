//! Merges the vectors of segments without holding them in memory.

use std::io::{self, Write};
use std::ops::Deref;

use sparrow_types::DocId;

use crate::builder::decode;
use crate::element::Element;
use crate::format::{Header, VERSION};
use crate::quantise::Int8;
use crate::reader::VectorsReader;

/// Entry of [`MergeSource::doc_map`] for a document that is not carried over.
pub const DROPPED: DocId = DocId::MAX;

/// One segment to be merged, with the new numbers of its documents.
pub struct MergeSource<'a, B> {
    /// Vectors of the segment.
    pub reader: &'a VectorsReader<B>,
    /// New number of each of the segment's documents, ascending, or [`DROPPED`]. Documents without an entry
    /// are dropped.
    pub doc_map: &'a [DocId],
}

impl<B: Deref<Target = [u8]>> MergeSource<'_, B> {
    /// New document number and old vector number of each vector that is carried over.
    fn kept(&self) -> impl Iterator<Item = (DocId, usize)> {
        (0..self.reader.len()).filter_map(|ord| {
            let target = *self.doc_map.get(self.reader.doc(ord) as usize)?;
            (target != DROPPED).then_some((target, ord))
        })
    }
}

/// Writes the union of `sources`, whose new document numbers ascend from source to source, for a segment of
/// `num_docs` documents; with 8-bit codes beside floats if `int8` is given. Codes that a source has are
/// copied, unless they may be clipped and those wanted are not. The header contains the checksum of the body, so the sources are read twice. Returns the number of
/// vectors.
///
/// # Errors
/// `InvalidInput` when there are no sources, when their metrics differ, or when document numbers do not
/// ascend or are not below `num_docs`; errors of writing to `out`.
pub fn merge_vectors<B>(
    sources: &[MergeSource<'_, B>],
    num_docs: u32,
    int8: Option<Int8>,
    out: &mut dyn Write,
) -> io::Result<usize>
where
    B: Deref<Target = [u8]>,
{
    let invalid = |reason: &str| io::Error::new(io::ErrorKind::InvalidInput, reason.to_owned());
    let Some(first) = sources.first() else { return Err(invalid("no vectors to merge")) };
    let metric = first.reader.metric();
    if sources.iter().any(|source| source.reader.metric() != metric) {
        return Err(invalid("vectors of different kinds"));
    }
    let mut count = 0;
    let mut next: DocId = 0;
    for (target, _) in sources.iter().flat_map(MergeSource::kept) {
        if target < next || target >= num_docs {
            return Err(invalid("documents of merged vectors do not ascend"));
        }
        next = target + 1;
        count += 1;
    }
    let int8 = int8.filter(|_| metric.element == Element::Float);
    let mut header = Header {
        version: VERSION,
        metric,
        codes: int8.is_some(),
        whole_codes: int8.is_some_and(Int8::is_whole),
        num_docs,
        count,
        body_checksum: 0,
    };
    let mut checksum = Checksum(crc32fast::Hasher::new());
    write_body(sources, header, int8, &mut checksum)?;
    header.body_checksum = checksum.0.finalize();
    out.write_all(&header.to_bytes())?;
    write_body(sources, header, int8, out)?;
    Ok(count as usize)
}

fn write_body<B>(
    sources: &[MergeSource<'_, B>],
    header: Header,
    int8: Option<Int8>,
    out: &mut dyn Write,
) -> io::Result<()>
where
    B: Deref<Target = [u8]>,
{
    if !header.is_complete() {
        for (target, _) in sources.iter().flat_map(MergeSource::kept) {
            out.write_all(&target.to_le_bytes())?;
        }
    }
    let kept = || sources.iter().flat_map(|source| source.kept().map(|(_, ord)| (source.reader, ord)));
    for (reader, ord) in kept() {
        match header.metric.element {
            Element::Float => out.write_all(&reader.inverse_length(ord).to_le_bytes())?,
            Element::Byte => out.write_all(&reader.squared_length(ord).to_le_bytes())?,
            Element::Bit => {}
        }
    }
    let mut coder = int8.map(|int8| Coder { int8, vector: Vec::new(), codes: Vec::new() });
    if let Some(coder) = &mut coder {
        for (reader, ord) in kept() {
            let scale = if reader.has_codes_for(coder.int8) {
                reader.scale(ord)
            } else {
                coder.encode(reader.row(ord))
            };
            out.write_all(&scale.to_le_bytes())?;
        }
    }
    for (reader, ord) in kept() {
        out.write_all(reader.row(ord))?;
    }
    if let Some(coder) = &mut coder {
        for (reader, ord) in kept() {
            if reader.has_codes_for(coder.int8) {
                out.write_all(reader.codes(ord))?;
            } else {
                coder.encode(reader.row(ord));
                out.write_all(&coder.codes)?;
            }
        }
    }
    Ok(())
}

/// Computes codes for stored vectors that have none, or not those wanted.
struct Coder {
    int8: Int8,
    vector: Vec<f32>,
    codes: Vec<u8>,
}

impl Coder {
    /// Computes the codes of an encoded vector; returns their scale.
    fn encode(&mut self, row: &[u8]) -> f32 {
        self.vector.clear();
        self.codes.clear();
        decode(Element::Float, row, &mut self.vector);
        self.int8.encode(&self.vector, &mut self.codes)
    }
}

/// Writer that computes the CRC-32 of the bytes and discards them.
struct Checksum(crc32fast::Hasher);

impl Write for Checksum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metric, Similarity, VectorsBuilder};

    const METRIC: Metric = Metric { element: Element::Float, similarity: Similarity::Cosine, dims: 2 };

    fn reader(vectors: &[(DocId, [f32; 2])], num_docs: u32, int8: Option<Int8>) -> VectorsReader<Vec<u8>> {
        let mut builder = VectorsBuilder::new(METRIC);
        for (doc, vector) in vectors {
            builder.add(*doc, vector).unwrap();
        }
        VectorsReader::open(builder.finish(num_docs, int8).unwrap()).unwrap()
    }

    #[test]
    fn a_merge_equals_building_anew() {
        let first = reader(&[(0, [1.0, 2.0]), (2, [3.0, 4.0])], 4, None);
        // Codes are made, taken over or dropped as the merge wants them.
        let second = reader(&[(0, [5.0, 6.0]), (1, [7.0, 0.0])], 2, Some(Int8::default()));
        let check = |maps: [&[DocId]; 2], num_docs: u32, expected: &[(DocId, [f32; 2])]| {
            let sources = [
                MergeSource { reader: &first, doc_map: maps[0] },
                MergeSource { reader: &second, doc_map: maps[1] },
            ];
            for int8 in [None, Some(Int8::default())] {
                let mut merged = Vec::new();
                merge_vectors(&sources, num_docs, int8, &mut merged).unwrap();
                let mut builder = VectorsBuilder::new(METRIC);
                for (doc, vector) in expected {
                    builder.add(*doc, vector).unwrap();
                }
                assert_eq!(merged, builder.finish(num_docs, int8).unwrap());
                VectorsReader::open(merged).unwrap().verify().unwrap();
            }
        };
        check(
            [&[0, 1, 2, 3], &[4, 5]],
            6,
            &[(0, [1.0, 2.0]), (2, [3.0, 4.0]), (4, [5.0, 6.0]), (5, [7.0, 0.0])],
        );
        // Deleted documents; everything that is left has a vector.
        check([&[DROPPED, DROPPED, 0, DROPPED], &[DROPPED, 1]], 2, &[(0, [3.0, 4.0]), (1, [7.0, 0.0])]);
        check([&[DROPPED; 4], &[DROPPED; 2]], 0, &[]);
        let sources = [MergeSource { reader: &first, doc_map: &[3, 2, 1, 0] }];
        assert!(merge_vectors(&sources, 4, None, &mut Vec::new()).is_err());
    }

    #[test]
    fn codes_that_may_be_clipped_are_made_anew_where_those_wanted_are_not() {
        let clipped = Int8 { confidence_interval: 0.5 };
        let vectors = [(0, [1.0, 9.0]), (1, [3.0, 4.0])];
        let source = reader(&vectors, 2, Some(clipped));
        for wanted in [Int8::default(), clipped] {
            let mut merged = Vec::new();
            let sources = [MergeSource { reader: &source, doc_map: &[0, 1] }];
            merge_vectors(&sources, 2, Some(wanted), &mut merged).unwrap();
            let merged = VectorsReader::open(merged).unwrap();
            let anew = reader(&vectors, 2, Some(wanted));
            assert_eq!(merged.has_whole_codes(), wanted.is_whole());
            assert!(
                (0..2)
                    .all(|ord| merged.codes(ord) == anew.codes(ord) && merged.scale(ord) == anew.scale(ord))
            );
        }
    }
}
