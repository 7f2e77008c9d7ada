//! Merging segments without holding their vectors in memory.

use std::io::{self, Write};
use std::ops::Deref;

use sparrow_types::DocId;

use crate::format::Header;
use crate::reader::VectorsReader;

/// Entry of [`MergeSource::doc_map`] for a document that is not carried over.
pub const DROPPED: DocId = DocId::MAX;

/// One old segment.
pub struct MergeSource<'a, B> {
    /// Its vectors.
    pub reader: &'a VectorsReader<B>,
    /// New number of each of its documents, ascending, or [`DROPPED`]. Missing entries are dropped.
    pub doc_map: &'a [DocId],
}

impl<B: Deref<Target = [u8]>> MergeSource<'_, B> {
    /// New document and old vector number of each vector that stays.
    fn kept(&self) -> impl Iterator<Item = (DocId, usize)> {
        (0..self.reader.len()).filter_map(|ord| {
            let target = *self.doc_map.get(self.reader.doc(ord) as usize)?;
            (target != DROPPED).then_some((target, ord))
        })
    }
}

/// Writes the union of `sources`, whose new document numbers ascend from source to source, for a segment of
/// `num_docs` documents. The header has the checksum of what follows, so the sources are read twice.
///
/// # Errors
/// `InvalidInput` without sources, when they differ in dimensions or similarity, or when document numbers
/// do not ascend below `num_docs`; those of `out`.
pub fn merge_vectors<B>(sources: &[MergeSource<'_, B>], num_docs: u32, out: &mut dyn Write) -> io::Result<()>
where
    B: Deref<Target = [u8]>,
{
    let invalid = |reason: &str| io::Error::new(io::ErrorKind::InvalidInput, reason.to_owned());
    let Some(first) = sources.first() else { return Err(invalid("no vectors to merge")) };
    let (dims, similarity) = (first.reader.dims(), first.reader.similarity());
    if sources.iter().any(|source| source.reader.dims() != dims || source.reader.similarity() != similarity) {
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
    let mut header = Header { similarity, dims: dims as u32, num_docs, count, body_checksum: 0 };
    let mut checksum = Checksum(crc32fast::Hasher::new());
    write_body(sources, header, &mut checksum)?;
    header.body_checksum = checksum.0.finalize();
    out.write_all(&header.to_bytes())?;
    write_body(sources, header, out)
}

fn write_body<B>(sources: &[MergeSource<'_, B>], header: Header, out: &mut dyn Write) -> io::Result<()>
where
    B: Deref<Target = [u8]>,
{
    if !header.is_complete() {
        for (target, _) in sources.iter().flat_map(MergeSource::kept) {
            out.write_all(&target.to_le_bytes())?;
        }
    }
    for source in sources {
        for (_, ord) in source.kept() {
            out.write_all(&source.reader.inverse_length(ord).to_le_bytes())?;
        }
    }
    for source in sources {
        for (_, ord) in source.kept() {
            out.write_all(source.reader.row(ord))?;
        }
    }
    Ok(())
}

/// Takes a checksum of what is written.
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
    use crate::{Similarity, VectorsBuilder};

    fn reader(vectors: &[(DocId, [f32; 2])], num_docs: u32) -> VectorsReader<Vec<u8>> {
        let mut builder = VectorsBuilder::new(2, Similarity::Cosine);
        for (doc, vector) in vectors {
            builder.add(*doc, vector).unwrap();
        }
        VectorsReader::open(builder.finish(num_docs).unwrap()).unwrap()
    }

    #[test]
    fn a_merge_equals_building_anew() {
        let first = reader(&[(0, [1.0, 2.0]), (2, [3.0, 4.0])], 4);
        let second = reader(&[(0, [5.0, 6.0]), (1, [7.0, 0.0])], 2);
        let check = |maps: [&[DocId]; 2], num_docs: u32, expected: &[(DocId, [f32; 2])]| {
            let sources = [
                MergeSource { reader: &first, doc_map: maps[0] },
                MergeSource { reader: &second, doc_map: maps[1] },
            ];
            let mut merged = Vec::new();
            merge_vectors(&sources, num_docs, &mut merged).unwrap();
            let mut builder = VectorsBuilder::new(2, Similarity::Cosine);
            for (doc, vector) in expected {
                builder.add(*doc, vector).unwrap();
            }
            assert_eq!(merged, builder.finish(num_docs).unwrap());
            VectorsReader::open(merged).unwrap().verify().unwrap();
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
        assert!(merge_vectors(&sources, 4, &mut Vec::new()).is_err());
    }
}
