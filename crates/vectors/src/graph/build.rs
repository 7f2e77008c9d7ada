//! Building graphs while segments merge.

use std::io::{self, Write};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sparrow_types::DocId;
use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use super::format::{block_header, header};
use crate::error::VectorsError;
use crate::kernels::stored::set_metric;
use crate::merge::DROPPED;
use crate::reader::VectorsReader;
use crate::scorer::distance;

/// Most vectors of one graph. While it is built a vector takes about 350 bytes of memory besides itself, so this
/// bounds a merge at some 90 MB; numbers below 2^24 are exact as f32, which the builder relies on.
pub const MAX_BLOCK: usize = 250_000;

/// Vectors added between two looks at the cancel flag.
const CANCEL_INTERVAL: usize = 64;

/// How graphs are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GraphOptions {
    /// Neighbours of a vector on each level but the lowest, which has twice as many.
    pub m: u16,
    /// Candidates for the neighbours of a new vector.
    pub ef_construction: u16,
}

impl Default for GraphOptions {
    fn default() -> Self {
        Self { m: 16, ef_construction: 100 }
    }
}

/// Vectors of one old segment for a new graph. Owned, as the graph library keeps them while it works.
pub struct GraphSource<B> {
    /// The vectors.
    pub reader: VectorsReader<B>,
    /// As in [`crate::MergeSource`]; only tells which vectors stay.
    pub doc_map: Arc<[DocId]>,
}

/// Writes graphs over the vectors that [`crate::merge_vectors`] makes of the same sources. Always the same bytes for
/// the same vectors. Reads the sources' vectors in no particular order, and holds one block's graph in memory.
///
/// Returns `false`, having written nothing that may be used, when `cancel` was set.
///
/// # Errors
/// `InvalidInput` when the sources differ in their metric, `Other` when the library fails; those of `out`.
pub fn write_graph<B>(
    sources: Vec<GraphSource<B>>,
    options: GraphOptions,
    max_block: usize,
    cancel: &AtomicBool,
    out: &mut dyn Write,
) -> io::Result<bool>
where
    B: Deref<Target = [u8]> + Send + Sync + 'static,
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
    let blocks = kept.len().div_ceil(max_block.clamp(1, MAX_BLOCK));
    let size = kept.len().div_ceil(blocks.max(1));
    out.write_all(&header(kept.len() as u32, blocks as u32, options.m, options.ef_construction))?;
    let sources: Arc<[GraphSource<B>]> = sources.into();
    let kept: Arc<[(u32, u32)]> = kept.into();
    for block in 0..blocks {
        let vectors = block * size..((block + 1) * size).min(kept.len());
        let graph =
            Graph::build(&sources, &kept, vectors.clone(), options, cancel).map_err(io::Error::other)?;
        let Some(graph) = graph else { return Ok(false) };
        let body = graph.body();
        let head = block_header(
            vectors.start as u32,
            vectors.len() as u32,
            graph.levels.len() as u32,
            graph.entry,
            &body,
        );
        out.write_all(&head)?;
        out.write_all(&body)?;
    }
    Ok(true)
}

/// Vectors on one level, ascending, with the ends of their lists of neighbours.
#[derive(Default)]
struct Level {
    nodes: Vec<u32>,
    ends: Vec<u32>,
    neighbours: Vec<u32>,
}

struct Graph {
    levels: Vec<Level>,
    entry: u32,
}

impl Graph {
    fn build<B>(
        sources: &Arc<[GraphSource<B>]>,
        kept: &Arc<[(u32, u32)]>,
        vectors: std::ops::Range<usize>,
        options: GraphOptions,
        cancel: &AtomicBool,
    ) -> Result<Option<Self>, VectorsError>
    where
        B: Deref<Target = [u8]> + Send + Sync + 'static,
    {
        // The library sees vectors of one component, their number, and asks back for distances: so it copies nothing.
        let mut index = Index::new(&IndexOptions {
            dimensions: 1,
            metric: MetricKind::L2sq,
            quantization: ScalarKind::F32,
            connectivity: usize::from(options.m),
            expansion_add: usize::from(options.ef_construction),
            expansion_search: 1,
            multi: false,
        })
        .map_err(failed)?;
        let (of_metric, kept_of_metric, first) = (sources.clone(), kept.clone(), vectors.start);
        let metric = sources.first().map(|source| source.reader.metric());
        set_metric(&mut index, move |a, b| {
            let vector = |number: usize| {
                let (source, ord) = kept_of_metric[first + number];
                (&of_metric[source as usize].reader, ord as usize)
            };
            metric.map_or(0.0, |metric| distance(metric, vector(a), vector(b)))
        });
        // One thread: the graph then depends on nothing but the vectors.
        index.reserve_capacity_and_threads(vectors.len(), 1).map_err(failed)?;
        for number in 0..vectors.len() {
            if number % CANCEL_INTERVAL == 0 && cancel.load(Relaxed) {
                return Ok(None);
            }
            index.add(number as u64, &[number as f32]).map_err(failed)?;
        }
        Ok(Some(Self::take(&index, vectors.len())))
    }

    /// Reads the neighbours out of the library's index.
    fn take(index: &Index, count: usize) -> Self {
        let mut graph = Self { levels: vec![Level::default()], entry: 0 };
        let mut list = vec![0; index.connectivity() * 4 + 16];
        for number in 0..count {
            let highest = index.level_of_key(number as u64);
            if highest >= graph.levels.len() {
                graph.levels.resize_with(highest + 1, Level::default);
                graph.entry = number as u32;
            }
            for (at, level) in graph.levels.iter_mut().enumerate().take(highest + 1) {
                let mut neighbours = index.neighbors(number as u64, at);
                if neighbours.total() > list.len() {
                    list.resize(neighbours.total(), 0);
                }
                let found = neighbours.drain_into(&mut list);
                level.nodes.push(number as u32);
                level.neighbours.extend(list[..found].iter().map(|key| *key as u32));
                level.ends.push(level.neighbours.len() as u32);
            }
        }
        graph
    }

    fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for (at, level) in self.levels.iter().enumerate() {
            if at > 0 {
                body.extend((level.nodes.len() as u32).to_le_bytes());
                body.extend(level.nodes.iter().flat_map(|number| number.to_le_bytes()));
            }
            body.extend(0_u32.to_le_bytes());
            body.extend(level.ends.iter().flat_map(|number| number.to_le_bytes()));
            body.extend(level.neighbours.iter().flat_map(|number| number.to_le_bytes()));
        }
        body
    }
}

fn failed(error: impl std::fmt::Display) -> VectorsError {
    VectorsError::Graph { reason: error.to_string() }
}
