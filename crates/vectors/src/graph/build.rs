//! Builds graphs while segments are merged.

use std::io::{self, Write};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sparrow_runtime::DocId;

use super::format::{BlockHeader, GraphOptions, header};
use super::insert::{Graph, Inserter, lowest_list_bytes};
use super::packed::Packed;
use crate::element::{Element, Metric};
use crate::merge::DROPPED;
use crate::quantise::{Codes, Int8};
use crate::reader::VectorsReader;

/// Most vectors in one graph.
pub const MAX_BLOCK: usize = 250_000;

/// Most bytes that the construction of one graph takes, so that merges have a limit for any `m` and number of
/// dimensions. Enough for [`MAX_BLOCK`] vectors of 768 dimensions with the default `m`.
const MAX_BYTES: usize = 288 << 20;

/// Vectors of one source segment of a merge.
pub struct GraphSource<B> {
    /// Vectors of the source segment.
    pub reader: VectorsReader<B>,
    /// Same as in [`crate::MergeSource`]; only tells which vectors are carried over.
    pub doc_map: Arc<[DocId]>,
}

/// Writes graphs over the vectors that [`crate::merge_vectors`] makes of the same sources. The bytes depend
/// on nothing but the vectors and options. Reads each source once, in order, and holds one block's graph and
/// codes in memory. `codes` are those of the merged vectors; a graph over floats without any has its own.
///
/// Returns `false` when `cancel` was set; what was written must not be used then.
///
/// # Errors
/// `InvalidInput` when the metrics of the sources differ; errors of writing to `out`.
pub fn write_graph<B>(
    sources: &[GraphSource<B>],
    codes: Option<Codes>,
    options: GraphOptions,
    max_block: usize,
    cancel: &AtomicBool,
    out: &mut dyn Write,
) -> io::Result<bool>
where
    B: Deref<Target = [u8]>,
{
    let mut kept: Vec<(u32, u32)> = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        if source.reader.metric() != sources[0].reader.metric() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "vectors of different kinds"));
        }
        let stays = |doc: DocId| source.doc_map.get(doc as usize).is_some_and(|new| *new != DROPPED);
        let ords = (0..source.reader.len()).filter(|ord| stays(source.reader.doc(*ord)));
        kept.extend(ords.map(|ord| (number as u32, ord as u32)));
    }
    let metric = sources.first().map(|source| source.reader.metric());
    let width = metric.map_or(0, |metric| metric.element.components(metric.dims));
    let own_codes = codes.is_none() && metric.is_some_and(|metric| metric.element == Element::Float);
    // Shorter codes are too coarse for choosing neighbours: graphs over them are built as those over floats alone.
    let int8 = codes.and_then(Codes::int8).unwrap_or_default();
    let max_block = max_block.min(MAX_BYTES / bytes_per_vector(width, options)).clamp(1, MAX_BLOCK);
    let blocks = kept.len().div_ceil(max_block);
    let size = kept.len().div_ceil(blocks.max(1));
    let code_bytes = if own_codes { width as u32 } else { 0 };
    out.write_all(&header(kept.len() as u32, blocks as u32, options, code_bytes))?;
    for (block, kept) in kept.chunks(size.max(1)).enumerate() {
        let Some(metric) = metric else { break };
        let packed = pack(metric, sources, kept, int8);
        let Some(graph) = build(&packed, options, cancel) else { return Ok(false) };
        let body = graph.body();
        let head = BlockHeader {
            first: (block * size) as u32,
            count: kept.len() as u32,
            levels: graph.levels() as u32,
            entry: graph.entry(),
        };
        out.write_all(&head.to_bytes(&body))?;
        out.write_all(&body)?;
        if own_codes {
            let scales: Vec<u8> = packed.scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
            let mut checksum = crc32fast::Hasher::new();
            checksum.update(&scales);
            checksum.update(&packed.rows);
            out.write_all(&checksum.finalize().to_le_bytes())?;
            out.write_all(&scales)?;
            out.write_all(&packed.rows)?;
        }
    }
    Ok(true)
}

/// Bytes that construction takes for each vector, given the size of its codes: codes, links, and the links once
/// more in the form in which they are written.
fn bytes_per_vector(width: usize, options: GraphOptions) -> usize {
    // What packed vectors have beside their codes, the list of copies, offsets of the written links, and the
    // links of the higher levels, on each of which is one of m vectors.
    const OTHERS: usize = 64;
    width + 2 * lowest_list_bytes(options) + OTHERS
}

fn pack<B>(metric: Metric, sources: &[GraphSource<B>], kept: &[(u32, u32)], int8: Int8) -> Packed
where
    B: Deref<Target = [u8]>,
{
    let mut packed = Packed::new(metric, kept.len(), int8);
    let mut floats = Vec::new();
    for (source, ord) in kept {
        packed.push(&sources[*source as usize].reader, *ord as usize, &mut floats);
    }
    packed
}

/// Builds the graph in one thread, so that it depends on nothing but the vectors; `None` if `cancel` was set.
fn build(packed: &Packed, options: GraphOptions, cancel: &AtomicBool) -> Option<Graph> {
    let mut inserter = Inserter::new(packed, options, cancel);
    for number in 0..packed.len() {
        inserter.insert(number as u32);
        if cancel.load(Relaxed) {
            return None;
        }
    }
    Some(inserter.finish())
}
