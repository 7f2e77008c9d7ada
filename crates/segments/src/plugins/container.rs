//! The one file our segment plugin adds to a segment (extension `spw`).
//!
//! ```text
//! part*        bytes of sparrow-postings or sparrow-vectors, each starting at a multiple of 64
//! entry*       field u32, kind u32 (1 sparse, 2 dense, 3 graph over 2, 4 passages), offset u64, length u64
//! trailer      entry count u32, version u32, CRC-32 of the entries and these two numbers u32,
//!              reserved u32 (0), magic "SPRWSEG1"
//! ```
//!
//! All numbers are little endian. The directory is at the end so that parts are written as they are
//! built. Parts carry their own version and checksum; a missing field means no document has a value.
//! tantivy fixes the file extensions of an index when it is created, hence one container for all.

use std::io::{self, Write};

use sparrow_postings::PostingsReader;
use sparrow_vectors::{GraphReader, VectorsReader};
use tantivy::directory::OwnedBytes;

/// Version of the container layout.
pub const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"SPRWSEG1";
const TRAILER: usize = 24;
const ENTRY: usize = 24;
const ALIGN: u64 = 64;

/// Kind of data in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    Sparse,
    Dense,
    /// HNSW graphs over the dense vectors of the same field.
    Graph,
    /// Map between passages and documents; the other parts of the field are then numbered by passage.
    Passages,
}

/// Reader of a [`PartKind::Sparse`] part: the sparse postings of one field in one segment.
pub type SparseReader = PostingsReader<OwnedBytes>;
/// Reader of a [`PartKind::Dense`] part: the dense vectors of one field in one segment.
pub type DenseReader = VectorsReader<OwnedBytes>;
/// Reader of a [`PartKind::Graph`] part: HNSW graphs over the dense vectors of one field in one segment.
pub type DenseGraph = GraphReader<OwnedBytes>;

impl PartKind {
    fn code(self) -> u32 {
        match self {
            PartKind::Sparse => 1,
            PartKind::Dense => 2,
            PartKind::Graph => 3,
            PartKind::Passages => 4,
        }
    }
}

/// Why a container cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContainerError {
    #[error("file of {len} bytes is too short for a segment container")]
    TooShort { len: usize },
    #[error("not a segment container")]
    Magic,
    #[error("container version {found}, this build reads {VERSION}")]
    Version { found: u32 },
    #[error("container directory checksum mismatch")]
    Checksum,
    #[error("part of field {field} lies outside the file")]
    Bounds { field: u32 },
    #[error("unknown part kind {kind} of field {field}")]
    Kind { field: u32, kind: u32 },
}

/// Writes parts one after the other, then the directory.
pub struct ContainerWriter<W: Write> {
    out: W,
    offset: u64,
    directory: Vec<u8>,
    count: u32,
}

impl<W: Write> ContainerWriter<W> {
    pub fn new(out: W) -> Self {
        Self { out, offset: 0, directory: Vec::new(), count: 0 }
    }

    /// Appends the part of one field.
    pub fn part(&mut self, field: u32, kind: PartKind, bytes: &[u8]) -> io::Result<()> {
        self.part_with(field, kind, &mut |out| out.write_all(bytes))
    }

    /// Appends the part of one field, whose bytes `write` writes incrementally.
    pub fn part_with(
        &mut self,
        field: u32,
        kind: PartKind,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let padding = self.offset.next_multiple_of(ALIGN) - self.offset;
        self.out.write_all(&[0; ALIGN as usize][..padding as usize])?;
        self.offset += padding;
        self.directory.extend(field.to_le_bytes());
        self.directory.extend(kind.code().to_le_bytes());
        self.directory.extend(self.offset.to_le_bytes());
        self.count += 1;
        let mut counted = CountingWriter { out: &mut self.out, len: 0 };
        write(&mut counted)?;
        let len = counted.len;
        self.directory.extend(len.to_le_bytes());
        self.offset += len;
        Ok(())
    }

    /// Writes the directory and returns the underlying writer, to be closed.
    pub fn finish(mut self) -> io::Result<W> {
        self.directory.extend(self.count.to_le_bytes());
        self.directory.extend(VERSION.to_le_bytes());
        let checksum = crc32fast::hash(&self.directory);
        self.directory.extend(checksum.to_le_bytes());
        self.directory.extend(0u32.to_le_bytes());
        self.directory.extend(MAGIC);
        self.out.write_all(&self.directory)?;
        Ok(self.out)
    }
}

/// Writer that counts the bytes written through it.
struct CountingWriter<'a, W: Write> {
    out: &'a mut W,
    len: u64,
}

impl<W: Write> Write for CountingWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// One part of a container.
#[derive(Clone)]
pub struct Part {
    pub field: u32,
    pub kind: PartKind,
    pub bytes: OwnedBytes,
}

/// Reads the directory and slices the parts, without copying.
pub fn read_parts(bytes: &OwnedBytes) -> Result<Vec<Part>, ContainerError> {
    let len = bytes.len();
    let entries_end = len.checked_sub(TRAILER).ok_or(ContainerError::TooShort { len })?;
    let trailer = &bytes[entries_end..];
    if &trailer[16..] != MAGIC {
        return Err(ContainerError::Magic);
    }
    let version = u32_at(trailer, 4);
    if version != VERSION {
        return Err(ContainerError::Version { found: version });
    }
    let count = u32_at(trailer, 0) as usize;
    let entries_start = count
        .checked_mul(ENTRY)
        .and_then(|size| entries_end.checked_sub(size))
        .ok_or(ContainerError::TooShort { len })?;
    if crc32fast::hash(&bytes[entries_start..entries_end + 8]) != u32_at(trailer, 8) {
        return Err(ContainerError::Checksum);
    }
    bytes[entries_start..entries_end]
        .chunks_exact(ENTRY)
        .map(|entry| {
            let field = u32_at(entry, 0);
            let kind = match u32_at(entry, 4) {
                1 => PartKind::Sparse,
                2 => PartKind::Dense,
                3 => PartKind::Graph,
                4 => PartKind::Passages,
                kind => return Err(ContainerError::Kind { field, kind }),
            };
            let start = u64_at(entry, 8);
            let end = start.checked_add(u64_at(entry, 16));
            let end = end.filter(|&end| end <= entries_start as u64);
            let end = end.ok_or(ContainerError::Bounds { field })?;
            Ok(Part { field, kind, bytes: bytes.slice(start as usize..end as usize) })
        })
        .collect()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut buffer = [0; 4];
    buffer.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(buffer)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut buffer = [0; 8];
    buffer.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut writer = ContainerWriter::new(Vec::new());
        writer.part(7, PartKind::Sparse, b"sparse part").unwrap();
        writer.part(9, PartKind::Dense, &[1; 100]).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn parts_come_back_aligned() {
        let bytes = OwnedBytes::new(sample());
        let parts = read_parts(&bytes).unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!((parts[0].field, parts[0].kind), (7, PartKind::Sparse));
        assert_eq!(&parts[0].bytes[..], b"sparse part");
        assert_eq!((parts[1].field, parts[1].kind), (9, PartKind::Dense));
        assert_eq!(&parts[1].bytes[..], &[1; 100]);
        assert_eq!((parts[1].bytes.as_ptr() as usize - bytes.as_ptr() as usize) % 64, 0);
    }

    #[test]
    fn empty_container_has_no_parts() {
        let bytes = ContainerWriter::new(Vec::new()).finish().unwrap();
        assert!(read_parts(&OwnedBytes::new(bytes)).unwrap().is_empty());
    }

    #[test]
    fn every_damaged_directory_byte_is_noticed() {
        let good = sample();
        let directory = good.len() - TRAILER - 2 * ENTRY;
        for at in directory..good.len() {
            // The reserved number is not covered by the checksum.
            if (good.len() - 12..good.len() - 8).contains(&at) {
                continue;
            }
            let mut bad = good.clone();
            bad[at] ^= 0x41;
            assert!(read_parts(&OwnedBytes::new(bad)).is_err(), "byte {at}");
        }
        for len in 0..TRAILER {
            assert!(read_parts(&OwnedBytes::new(good[..len].to_vec())).is_err());
        }
    }
}
