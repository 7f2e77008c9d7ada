//! Merges the vectors of segments without holding them in memory.

use std::io::{self, Write};
use std::ops::Deref;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use sparrow_runtime::DocId;

use crate::builder::decode;
use crate::element::Element;
use crate::format::Header;
use crate::quantise::{Codes, Int8};
use crate::reader::VectorsReader;
use crate::short::{self, Centre};

/// Vectors whose short codes are made between two looks at whether to go on.
const LOOK_EVERY: usize = 256;

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
/// `num_docs` documents; with codes beside floats if any are given. Those of 8 bits that a source has are copied, unless they
/// may be clipped and those wanted are not; shorter ones depend on the mean of all vectors, and are made anew. The header
/// contains the checksum of the body, so the sources are read twice, and once more for their mean. Returns the number of vectors.
///
/// # Errors
/// `InvalidInput` when there are no sources, when their metrics differ, or when document numbers do not
/// ascend or are not below `num_docs`; `Interrupted` when `cancel` was set; errors of writing to `out`.
pub fn merge_vectors<B>(
    sources: &[MergeSource<'_, B>],
    num_docs: u32,
    codes: Option<Codes>,
    cancel: &AtomicBool,
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
    let codes = codes.filter(|_| metric.element == Element::Float);
    let mut header = Header::new(metric, codes, num_docs, count);
    let mut coder = match codes {
        None => None,
        Some(Codes::Int8(int8)) => {
            Some(Coder::Int8(Int8Coder { int8, vector: Vec::new(), codes: Vec::new() }))
        }
        Some(Codes::Short(short)) => {
            let mut centre = Centre::new(metric);
            kept(sources).for_each(|(reader, ord)| centre.add(reader.row(ord), reader.inverse_length(ord)));
            Some(Coder::Short(short::Coder::new(short, metric, centre.mean())))
        }
    };
    let mut checksum = Checksum(crc32fast::Hasher::new());
    write_body(sources, header, coder.as_mut(), cancel, &mut checksum)?;
    header.body_checksum = checksum.0.finalize();
    out.write_all(&header.to_bytes())?;
    write_body(sources, header, coder.as_mut(), cancel, out)?;
    Ok(count as usize)
}

fn write_body<B>(
    sources: &[MergeSource<'_, B>],
    header: Header,
    mut coder: Option<&mut Coder>,
    cancel: &AtomicBool,
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
    for (reader, ord) in kept(sources) {
        match header.metric.element {
            Element::Float => out.write_all(&reader.inverse_length(ord).to_le_bytes())?,
            Element::Byte => out.write_all(&reader.squared_length(ord).to_le_bytes())?,
            Element::Bit => {}
        }
    }
    match &mut coder {
        None => {}
        Some(Coder::Int8(coder)) => {
            for (reader, ord) in kept(sources) {
                let scale = if reader.has_codes_for(coder.int8) {
                    reader.scale(ord)
                } else {
                    coder.encode(reader.row(ord))
                };
                out.write_all(&scale.to_le_bytes())?;
            }
        }
        Some(Coder::Short(coder)) => out.write_all(&coder.centre().collect::<Vec<u8>>())?,
    }
    for (reader, ord) in kept(sources) {
        out.write_all(reader.row(ord))?;
    }
    match coder {
        None => {}
        Some(Coder::Int8(coder)) => {
            for (reader, ord) in kept(sources) {
                if reader.has_codes_for(coder.int8) {
                    out.write_all(reader.codes(ord))?;
                } else {
                    coder.encode(reader.row(ord));
                    out.write_all(&coder.codes)?;
                }
            }
        }
        Some(Coder::Short(coder)) => {
            let mut row = Vec::new();
            for (number, (reader, ord)) in kept(sources).enumerate() {
                // Codes of four bits take microseconds each to choose.
                if number % LOOK_EVERY == 0 && cancel.load(Relaxed) {
                    return Err(io::Error::new(io::ErrorKind::Interrupted, "the merge was cancelled"));
                }
                row.clear();
                coder.encode(reader.row(ord), reader.inverse_length(ord), &mut row);
                out.write_all(&row)?;
            }
        }
    }
    Ok(())
}

/// The vectors that are carried over, each by its reader and its number there.
fn kept<'a, B: Deref<Target = [u8]>>(
    sources: &'a [MergeSource<'a, B>],
) -> impl Iterator<Item = (&'a VectorsReader<B>, usize)> {
    sources.iter().flat_map(|source| source.kept().map(|(_, ord)| (source.reader, ord)))
}

/// Computes the codes of merged vectors.
enum Coder {
    Int8(Int8Coder),
    Short(short::Coder),
}

/// Computes 8-bit codes for stored vectors that have none, or not those wanted.
struct Int8Coder {
    int8: Int8,
    vector: Vec<f32>,
    codes: Vec<u8>,
}

impl Int8Coder {
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
    use crate::{Metric, Short, Similarity, VectorsBuilder};

    static GOES_ON: AtomicBool = AtomicBool::new(false);
    const METRIC: Metric = Metric { element: Element::Float, similarity: Similarity::Cosine, dims: 2 };

    fn reader(vectors: &[(DocId, [f32; 2])], num_docs: u32, codes: Option<Codes>) -> VectorsReader<Vec<u8>> {
        let mut builder = VectorsBuilder::new(METRIC);
        for (doc, vector) in vectors {
            builder.add(*doc, vector).unwrap();
        }
        VectorsReader::open(builder.finish(num_docs, codes).unwrap()).unwrap()
    }

    #[test]
    fn a_merge_that_makes_short_codes_can_be_cancelled() {
        let source = reader(&[(0, [1.0, 2.0]), (1, [3.0, 4.0])], 2, None);
        let sources = [MergeSource { reader: &source, doc_map: &[0, 1] }];
        let cancel = AtomicBool::new(true);
        let merge = |codes| merge_vectors(&sources, 2, Some(codes), &cancel, &mut Vec::new());
        let error = merge(Codes::Short(Short::Int4)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        cancel.store(false, Relaxed);
        assert_eq!(merge(Codes::Short(Short::Int4)).unwrap(), 2);
    }

    #[test]
    fn a_merge_equals_building_anew() {
        let first = reader(&[(0, [1.0, 2.0]), (2, [3.0, 4.0])], 4, None);
        // Codes are made, taken over or dropped as the merge wants them.
        let second = reader(&[(0, [5.0, 6.0]), (1, [7.0, 0.0])], 2, Some(Codes::INT8));
        let check = |maps: [&[DocId]; 2], num_docs: u32, expected: &[(DocId, [f32; 2])]| {
            let sources = [
                MergeSource { reader: &first, doc_map: maps[0] },
                MergeSource { reader: &second, doc_map: maps[1] },
            ];
            let short = [Short::Int4, Short::Bit].map(|short| Some(Codes::Short(short)));
            for codes in [None, Some(Codes::INT8)].into_iter().chain(short) {
                let mut merged = Vec::new();
                merge_vectors(&sources, num_docs, codes, &GOES_ON, &mut merged).unwrap();
                let mut builder = VectorsBuilder::new(METRIC);
                for (doc, vector) in expected {
                    builder.add(*doc, vector).unwrap();
                }
                assert_eq!(merged, builder.finish(num_docs, codes).unwrap());
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
        assert!(merge_vectors(&sources, 4, None, &GOES_ON, &mut Vec::new()).is_err());
    }

    #[test]
    fn codes_that_may_be_clipped_are_made_anew_where_those_wanted_are_not() {
        let clipped = Int8 { confidence_interval: 0.5 };
        let vectors = [(0, [1.0, 9.0]), (1, [3.0, 4.0])];
        let source = reader(&vectors, 2, Some(Codes::Int8(clipped)));
        for wanted in [Int8::default(), clipped] {
            let mut merged = Vec::new();
            let sources = [MergeSource { reader: &source, doc_map: &[0, 1] }];
            merge_vectors(&sources, 2, Some(Codes::Int8(wanted)), &GOES_ON, &mut merged).unwrap();
            let merged = VectorsReader::open(merged).unwrap();
            let anew = reader(&vectors, 2, Some(Codes::Int8(wanted)));
            assert_eq!(merged.has_whole_codes(), wanted.is_whole());
            assert!(
                (0..2)
                    .all(|ord| merged.codes(ord) == anew.codes(ord) && merged.scale(ord) == anew.scale(ord))
            );
        }
    }
}
