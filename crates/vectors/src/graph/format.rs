//! Layout of the bytes, version 5. Numbers are u32 unless said otherwise, little endian.
//!
//! ```text
//! magic       8 bytes  "SPRHNSW" and the version
//! count       vectors of the segment
//! blocks      number of blocks
//! m · ef_construction, both u16
//! code_bytes  bytes of the codes that each vector has here; 0 when graphs are walked by what the vectors have
//! header_crc  over everything before it
//! block*      graphs of their own, over consecutive vectors:
//!   first · count     the vectors
//!   levels            at least 1
//!   entry             number in the block of the vector where a search starts, on the highest level
//!   body_len u64      bytes of the body
//!   body_crc · block_crc (over this head without itself)
//!   body              level 0:  offsets × (count + 1), neighbours × offsets[count]
//!                     above:    n, vectors × n ascending, offsets × (n + 1), neighbours × offsets[n]
//!                     neighbours have as many bits as count − 1, the lowest first, without gaps; three bytes of 0 follow
//!   codes_crc         over what follows; this and the rest only with codes
//!   scales            f32 × count: what one code of a vector stands for
//!   codes             i8 × code_bytes × count
//! ```
//!
//! Neighbours are numbers in the block. Blocks bound the memory that building takes. Codes only choose what is compared exactly, so they are
//! not read when a graph is opened; [`GraphReader::verify`] does. Version 1 had no codes, and no `code_bytes`. Version 2 had
//! the same layout, but many equal vectors could cut off the others. Version 3 had it too, but large components may be clipped in
//! its codes. Up to version 4 neighbours were u32, and nothing followed them.

use std::ops::{Deref, Range};

use crate::error::VectorsError;
use crate::format::{f32_at, u32_at};
use crate::kernels::{Rows, prefetch};
use crate::reader::VectorsReader;

pub(super) const VERSION: u8 = 5;
/// Version from which on neighbours have as many bits as they need.
const PACKED: u8 = 5;
/// Version from which on codes stand for each component within half a step.
const WHOLE_CODES: u8 = 4;
/// Version from which on graphs are as good as those that this build writes, but for the bound of their codes' error.
const AS_GOOD: u8 = 3;
/// Header size in version 1, in bytes; later versions have another u32.
const HEADER_1: usize = 24;
pub(super) const HEADER: usize = 28;
pub(super) const BLOCK_HEADER: usize = 32;
const MAGIC: [u8; 7] = *b"SPRHNSW";

/// Parameters of HNSW construction, which a graph carries in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GraphOptions {
    /// Most neighbours of a vector on each level but the lowest, which has twice as many.
    pub m: u16,
    /// Number of candidates from which the neighbours of a new vector are chosen.
    pub ef_construction: u16,
}

impl Default for GraphOptions {
    fn default() -> Self {
        Self { m: 16, ef_construction: 100 }
    }
}

pub(super) fn header(count: u32, blocks: u32, options: GraphOptions, code_bytes: u32) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..7].copy_from_slice(&MAGIC);
    bytes[7] = VERSION;
    bytes[8..12].copy_from_slice(&count.to_le_bytes());
    bytes[12..16].copy_from_slice(&blocks.to_le_bytes());
    bytes[16..18].copy_from_slice(&options.m.to_le_bytes());
    bytes[18..20].copy_from_slice(&options.ef_construction.to_le_bytes());
    bytes[20..24].copy_from_slice(&code_bytes.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..HEADER - 4]);
    bytes[HEADER - 4..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Header of a block over the vectors `first..first + count`.
pub(super) struct BlockHeader {
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) levels: u32,
    pub(super) entry: u32,
}

impl BlockHeader {
    pub(super) fn to_bytes(&self, body: &[u8]) -> [u8; BLOCK_HEADER] {
        let mut bytes = [0; BLOCK_HEADER];
        for (at, number) in [self.first, self.count, self.levels, self.entry].into_iter().enumerate() {
            bytes[at * 4..at * 4 + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes[16..24].copy_from_slice(&(body.len() as u64).to_le_bytes());
        bytes[24..28].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

/// Bits of a neighbour's number among `count` vectors.
pub(super) fn neighbour_bits(count: usize) -> u32 {
    (usize::BITS - count.saturating_sub(1).leading_zeros()).max(1)
}

/// Bits of a neighbour's number where all have a whole number of bytes.
const WHOLE: u32 = u32::BITS;
/// Bytes after packed neighbours, so that the last one can be read as part of a u32.
const PADDING: usize = 3;
/// Most bits of a packed neighbour that are certain to lie in one u32, at whichever bit of a byte they start.
const MOST_BITS: u32 = WHOLE - 7;

/// Bytes of `count` neighbours of so many bits; `None` on overflow.
fn neighbours_bytes(count: usize, bits: u32) -> Option<usize> {
    let bytes = count.checked_mul(bits as usize)?.div_ceil(8);
    if bits == WHOLE { Some(bytes) } else { bytes.checked_add(PADDING) }
}

/// Appends neighbours of so many bits, fewer than [`WHOLE`].
pub(super) fn pack_neighbours(neighbours: impl Iterator<Item = u32>, bits: u32, out: &mut Vec<u8>) {
    let (mut word, mut filled) = (0_u64, 0);
    for neighbour in neighbours {
        word |= u64::from(neighbour) << filled;
        filled += bits;
        while filled >= 8 {
            out.push(word as u8);
            word >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        out.push(word as u8);
    }
    out.extend([0; PADDING]);
}

/// Consecutive neighbours in the bytes of a level, which starts at `start`.
#[derive(Clone, Copy)]
struct Neighbours<'a> {
    bytes: &'a [u8],
    start: usize,
    bits: u32,
}

impl Neighbours<'_> {
    fn get(&self, at: usize) -> u32 {
        let bit = at * self.bits as usize;
        u32_at(self.bytes, self.start + bit / 8) >> (bit % 8) & (u32::MAX >> (WHOLE - self.bits))
    }
}

/// Offsets in the file of the lists of one level.
#[derive(Debug, Clone)]
pub(super) struct Level {
    /// Offset of the list of the level's vectors; `None` on level 0, which has all.
    nodes: Option<usize>,
    /// Number of vectors on the level.
    count: usize,
    offsets: usize,
    neighbours: usize,
    /// Bits of a neighbour's number.
    bits: u32,
}

/// One graph, over a range of consecutive vectors.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// Range of the vectors in the segment.
    pub(super) vectors: Range<usize>,
    /// Levels of the graph, from 0 upwards.
    pub(super) levels: Vec<Level>,
    /// Number, in the block, of the vector where searches start.
    pub(super) entry: u32,
    /// Offset of the codes' checksum; `None` if the block has no codes.
    codes: Option<usize>,
}

/// The codes that a graph stores of its vectors.
#[derive(Clone, Copy)]
pub(crate) struct GraphCodes<'a> {
    scales: &'a [u8],
    pub(crate) rows: Rows<'a>,
}

impl GraphCodes<'_> {
    /// Factor by which the codes of a vector must be multiplied; `vector` is its number in the block.
    pub(crate) fn scale(&self, vector: u32) -> f32 {
        f32_at(self.scales, vector as usize * 4)
    }
}

/// Graphs over bytes with another owner, such as a memory map.
#[derive(Debug, Clone)]
pub struct GraphReader<B> {
    bytes: B,
    version: u8,
    code_bytes: usize,
    count: usize,
    m: u16,
    ef_construction: u16,
    pub(super) blocks: Vec<Block>,
}

impl<B: Deref<Target = [u8]>> GraphReader<B> {
    /// Opens bytes written by [`crate::write_graph`] and checks everything but the codes, because a search
    /// follows the numbers in them.
    ///
    /// # Errors
    /// [`VectorsError::NotVectors`], [`VectorsError::NewerFormat`], [`VectorsError::Corrupt`].
    pub fn open(bytes: B) -> Result<Self, VectorsError> {
        let corrupt = |detail| VectorsError::Corrupt { detail };
        let head = bytes.get(..HEADER_1).ok_or(VectorsError::NotVectors)?;
        if head[..7] != MAGIC {
            return Err(VectorsError::NotVectors);
        }
        if head[7] > VERSION {
            return Err(VectorsError::NewerFormat { found: head[7], supported: VERSION });
        }
        let length = if head[7] < 2 { HEADER_1 } else { HEADER };
        let head = bytes.get(..length).ok_or(VectorsError::NotVectors)?;
        if u32_at(head, length - 4) != crc32fast::hash(&head[..length - 4]) {
            return Err(corrupt("graph header checksum"));
        }
        let code_bytes = if length == HEADER { u32_at(head, 20) as usize } else { 0 };
        let count = u32_at(head, 8) as usize;
        let (m, ef_construction) =
            (u16::from_le_bytes([head[16], head[17]]), u16::from_le_bytes([head[18], head[19]]));
        let version = head[7];
        let mut blocks = Vec::new();
        let (mut at, mut next) = (length, 0);
        for _ in 0..u32_at(head, 12) {
            let (mut block, mut end) = read_block(&bytes, at, version)?;
            if code_bytes > 0 {
                let length = code_bytes.checked_add(4).and_then(|each| each.checked_mul(block.vectors.len()));
                block.codes = Some(end);
                end = length.and_then(|length| end.checked_add(4)?.checked_add(length)).unwrap_or(usize::MAX);
                if end > bytes.len() {
                    return Err(corrupt("graph length"));
                }
            }
            if block.vectors.start != next {
                return Err(corrupt("graph blocks"));
            }
            (at, next) = (end, block.vectors.end);
            blocks.push(block);
        }
        if next != count || at != bytes.len() {
            return Err(corrupt("graph length"));
        }
        Ok(Self { bytes, version, code_bytes, count, m, ef_construction, blocks })
    }

    /// Reads the codes, which [`GraphReader::open`] does not, and checks them against their checksums.
    ///
    /// # Errors
    /// [`VectorsError::Corrupt`].
    pub fn verify(&self) -> Result<(), VectorsError> {
        for block in &self.blocks {
            let Some(at) = block.codes else { continue };
            let end = at + 4 + block.vectors.len() * (self.code_bytes + 4);
            if crc32fast::hash(&self.bytes[at + 4..end]) != u32_at(&self.bytes, at) {
                return Err(VectorsError::Corrupt { detail: "checksum of the graph's codes" });
            }
        }
        Ok(())
    }

    /// Whether nothing is to be gained by building the graph anew but a few exact comparisons that each search is spared.
    pub fn is_current(&self) -> bool {
        self.version >= AS_GOOD
    }

    /// Codes of a block's vectors; `None` if the graph has none.
    pub(super) fn codes(&self, block: &Block) -> Option<GraphCodes<'_>> {
        let scales = block.codes? + 4;
        let rows = scales + block.vectors.len() * 4;
        let end = rows + block.vectors.len() * self.code_bytes;
        Some(GraphCodes {
            scales: &self.bytes[scales..rows],
            rows: Rows::new(&self.bytes[rows..end], self.code_bytes),
        })
    }

    /// Factor by which the graph's codes of a vector must be multiplied, given its number in the segment; `None` if the graph
    /// has none, or if they may be clipped.
    pub(crate) fn whole_scale(&self, ord: usize) -> Option<f32> {
        if self.version < WHOLE_CODES {
            return None;
        }
        let block = &self.blocks[self.blocks.partition_point(|block| block.vectors.end <= ord)];
        Some(self.codes(block)?.scale((ord - block.vectors.start) as u32))
    }

    /// Whether the graph fits these vectors by their number and dimensions.
    pub(crate) fn is_of<R: Deref<Target = [u8]>>(&self, reader: &VectorsReader<R>) -> bool {
        self.count == reader.len() && (self.code_bytes == 0 || self.code_bytes == reader.dims())
    }

    /// Size of a vector's codes in bytes; 0 if the graph has none.
    pub(crate) fn code_bytes(&self) -> usize {
        self.code_bytes
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the graphs contain no vector.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Most neighbours of a vector on each level but the lowest, which has twice as many.
    pub fn m(&self) -> u16 {
        self.m
    }

    /// Number of candidates per vector with which the graph was built.
    pub fn ef_construction(&self) -> u16 {
        self.ef_construction
    }

    /// Neighbours of a vector on a level, by their numbers in the block; none if the vector is not on that
    /// level.
    pub(super) fn neighbours(&self, level: &Level, vector: u32) -> impl Iterator<Item = u32> + '_ {
        let neighbours = Neighbours { bytes: &self.bytes, start: level.neighbours, bits: level.bits };
        self.list(level, vector).map(move |at| neighbours.get(at))
    }

    /// Prefetches the list of neighbours of a vector.
    pub(super) fn prefetch(&self, level: &Level, vector: u32) {
        let Range { start, end } = self.list(level, vector);
        let [first, last] = [start, end].map(|at| level.neighbours + at * level.bits as usize / 8);
        prefetch(&self.bytes[first..last]);
    }

    #[cfg(test)]
    pub(super) fn is_on(&self, level: &Level, vector: u32) -> bool {
        level.nodes.is_none_or(|nodes| search(&self.bytes, nodes, level.count, vector).is_some())
    }

    /// Which of a level's neighbours are those of a vector.
    fn list(&self, level: &Level, vector: u32) -> Range<usize> {
        let at = match level.nodes {
            None => Some(vector as usize),
            Some(nodes) => search(&self.bytes, nodes, level.count, vector),
        };
        at.map_or(0..0, |at| {
            let offset = |at: usize| u32_at(&self.bytes, level.offsets + at * 4) as usize;
            offset(at)..offset(at + 1)
        })
    }
}

/// Binary search in an ascending list of u32; returns the index of the number, or `None`.
fn search(bytes: &[u8], list: usize, count: usize, wanted: u32) -> Option<usize> {
    let Range { mut start, mut end } = 0..count;
    while start < end {
        let middle = usize::midpoint(start, end);
        match u32_at(bytes, list + middle * 4).cmp(&wanted) {
            std::cmp::Ordering::Equal => return Some(middle),
            std::cmp::Ordering::Less => start = middle + 1,
            std::cmp::Ordering::Greater => end = middle,
        }
    }
    None
}

/// Reads and checks the block at offset `at`; returns it with the offset of its end.
fn read_block(bytes: &[u8], at: usize, version: u8) -> Result<(Block, usize), VectorsError> {
    let corrupt = |detail| VectorsError::Corrupt { detail };
    let head = bytes.get(at..at + BLOCK_HEADER).ok_or(corrupt("graph length"))?;
    if u32_at(head, 28) != crc32fast::hash(&head[..28]) {
        return Err(corrupt("graph block checksum"));
    }
    let [first, count, levels, entry] = [0, 4, 8, 12].map(|at| u32_at(head, at) as usize);
    let length = u64::from(u32_at(head, 16)) | u64::from(u32_at(head, 20)) << 32;
    let start = at + BLOCK_HEADER;
    let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
    let end = end.filter(|end| *end <= bytes.len()).ok_or(corrupt("graph length"))?;
    if crc32fast::hash(&bytes[start..end]) != u32_at(head, 24) {
        return Err(corrupt("graph checksum"));
    }
    if entry >= count || levels == 0 {
        return Err(corrupt("graph entry"));
    }
    let bits = if version < PACKED { WHOLE } else { neighbour_bits(count) };
    if bits != WHOLE && bits > MOST_BITS {
        return Err(corrupt("graph size"));
    }
    let mut reader = ListReader { bytes: &bytes[..end], at: start };
    let mut parsed = Vec::new();
    for level in 0..levels {
        let (nodes, on_level) = if level == 0 {
            (None, count)
        } else {
            let on_level = reader.take(1)?.0 as usize;
            let nodes = reader.numbers(on_level, WHOLE, count)?;
            let ascending =
                (1..on_level).all(|at| u32_at(bytes, nodes + at * 4 - 4) < u32_at(bytes, nodes + at * 4));
            if !ascending {
                return Err(corrupt("graph vectors"));
            }
            (Some(nodes), on_level)
        };
        let (last, offsets) = reader.take(on_level + 1)?;
        if (1..=on_level).any(|at| u32_at(bytes, offsets + at * 4 - 4) > u32_at(bytes, offsets + at * 4)) {
            return Err(corrupt("graph offsets"));
        }
        let neighbours = reader.numbers(last as usize, bits, count)?;
        parsed.push(Level { nodes, count: on_level, offsets, neighbours, bits });
    }
    if reader.at != end {
        return Err(corrupt("graph length"));
    }
    let vectors = first..first.checked_add(count).ok_or(corrupt("graph blocks"))?;
    Ok((Block { vectors, levels: parsed, entry: entry as u32, codes: None }, end))
}

/// Reads the lists of a block's body one after another.
struct ListReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl ListReader<'_> {
    /// Reads `count` numbers; returns the last one and the offset of the first.
    fn take(&mut self, count: usize) -> Result<(u32, usize), VectorsError> {
        let start = self.skip(neighbours_bytes(count, WHOLE))?;
        Ok((if count == 0 { 0 } else { u32_at(self.bytes, self.at - 4) }, start))
    }

    /// Checks that `count` numbers of so many bits are all below `limit`; returns the offset of the first.
    fn numbers(&mut self, count: usize, bits: u32, limit: usize) -> Result<usize, VectorsError> {
        let start = self.skip(neighbours_bytes(count, bits))?;
        let numbers = Neighbours { bytes: self.bytes, start, bits };
        if (0..count).map(|at| numbers.get(at) as usize).max().is_some_and(|largest| largest >= limit) {
            return Err(VectorsError::Corrupt { detail: "graph numbers" });
        }
        Ok(start)
    }

    /// Moves on by as many bytes; returns where it was.
    fn skip(&mut self, bytes: Option<usize>) -> Result<usize, VectorsError> {
        let start = self.at;
        let end = bytes.and_then(|bytes| start.checked_add(bytes)).filter(|end| *end <= self.bytes.len());
        self.at = end.ok_or(VectorsError::Corrupt { detail: "graph length" })?;
        Ok(start)
    }
}
