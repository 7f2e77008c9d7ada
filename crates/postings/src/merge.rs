//! Merging segments without building documents: term by term from the old postings to the new.

use std::io::{self, Write};
use std::ops::Deref;

use sparrow_runtime::{DocId, TermId};

use crate::frame::Format;
use crate::quantize::half_bits;
use crate::reader::PostingsReader;
use crate::writer::FieldWriter;

/// Entry of [`MergeSource::doc_map`] for a document that is not carried over.
pub const DROPPED: DocId = DocId::MAX;

/// One segment to be merged, with the new numbers of its documents.
pub struct MergeSource<'a, B> {
    /// Postings of the segment.
    pub reader: &'a PostingsReader<B>,
    /// New number of each of the segment's documents, ascending, or [`DROPPED`]. Documents without an entry
    /// are dropped.
    pub doc_map: &'a [DocId],
}

/// Writes the union of `sources`, whose new document numbers ascend from source to source (as tantivy
/// merges), into a field of `num_docs` documents. With a single source, rewrites it in another format.
/// Memory: the postings of one term, the dictionary and a bit per document.
///
/// # Errors
/// `InvalidInput` when document numbers do not ascend or are not below `num_docs`; errors of writing to
/// `out`.
pub fn merge_postings<B>(
    sources: &[MergeSource<'_, B>],
    num_docs: u32,
    format: Format,
    out: &mut dyn Write,
) -> io::Result<()>
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    let presence = merged_presence(sources, num_docs)?;
    let mut writer = FieldWriter::new(out, format, num_docs)?;
    let mut next: Vec<TermId> = vec![0; sources.len()];
    let (mut docs, mut weights) = (Vec::new(), Vec::new());
    loop {
        let token = sources
            .iter()
            .zip(&next)
            .filter(|(source, term)| **term < source.reader.term_count())
            .map(|(source, term)| source.reader.token(*term))
            .min();
        let Some(token) = token else { break };
        docs.clear();
        weights.clear();
        for (source, term) in sources.iter().zip(&mut next) {
            if *term < source.reader.term_count() && source.reader.token(*term) == token {
                let postings = source.reader.postings(*term);
                postings.for_range(0, source.reader.num_docs(), |doc, position| {
                    let doc = source.doc_map.get(doc as usize).copied().unwrap_or(DROPPED);
                    if doc < num_docs
                        && let Some(bits) = half_bits(postings.weight_at(position))
                    {
                        docs.push(doc);
                        weights.push(bits);
                    }
                });
                *term += 1;
            }
        }
        if !docs.is_sorted_by(|a, b| a < b) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "documents of merged segments do not ascend",
            ));
        }
        writer.add_term(token, &docs, &weights)?;
    }
    writer.finish(&presence)
}

fn merged_presence<B>(sources: &[MergeSource<'_, B>], num_docs: u32) -> io::Result<Vec<u64>>
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    let mut presence = vec![0; num_docs.div_ceil(64) as usize];
    let mut next = 0;
    for source in sources {
        for (old, new) in source.doc_map.iter().enumerate() {
            if *new == DROPPED {
                continue;
            }
            if *new < next || *new >= num_docs {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "documents of merged segments do not ascend",
                ));
            }
            next = *new + 1;
            if source.reader.has_value(old as DocId) {
                presence[*new as usize / 64] |= 1 << (new % 64);
            }
        }
    }
    Ok(presence)
}
