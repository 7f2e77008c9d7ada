//! Framing of log files and records.
//!
//! ```text
//! file    = magic "SPRWAL\0" · format version u8 · generation u64 · crc32 of all of them u32 · record*
//! record  = magic u32 · length u32 · durable u64 · crc32 of (length, durable, payload) u32 · payload
//! ```
//!
//! All numbers are little endian. `durable` is the byte offset up to which this file was known to be synced
//! when the record was framed. It tells a torn tail (no later record vouches for the damaged place) from
//! damage to acknowledged records (a later record does).

const FILE_MAGIC: [u8; 7] = *b"SPRWAL\0";
/// Format version of the files that are written; older ones are read. In version 2 a document may have a routing behind its JSON,
/// which a build that knows only version 1 would show as a part of the source.
pub(super) const VERSION: u8 = 2;
pub(super) const FILE_HEADER: usize = 8 + 8 + 4;
pub(super) const RECORD_HEADER: usize = 4 + 4 + 8 + 4;
pub(super) const RECORD_MAGIC: u32 = 0x5EC0_12D5;
pub(super) const MAX_PAYLOAD: usize = 1 << 30;

pub(super) fn file_header(generation: u64) -> [u8; FILE_HEADER] {
    let mut header = [0; FILE_HEADER];
    header[..7].copy_from_slice(&FILE_MAGIC);
    header[7] = VERSION;
    header[8..16].copy_from_slice(&generation.to_le_bytes());
    let checksum = crc32fast::hash(&header[..16]);
    header[16..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Format version in a file header; `None` if the header is damaged.
pub(super) fn version_of(header: &[u8; FILE_HEADER]) -> Option<u8> {
    let whole = header[16..] == crc32fast::hash(&header[..16]).to_le_bytes();
    (whole && header[..7] == FILE_MAGIC).then_some(header[7])
}

/// Appends one framed record to `buffer`, whose payload is the parts one after another.
pub(super) fn frame(buffer: &mut Vec<u8>, durable: u64, parts: &[&[u8]]) {
    let length = parts.iter().map(|part| part.len()).sum::<usize>() as u32;
    buffer.reserve(RECORD_HEADER + length as usize);
    buffer.extend_from_slice(&RECORD_MAGIC.to_le_bytes());
    buffer.extend_from_slice(&length.to_le_bytes());
    buffer.extend_from_slice(&durable.to_le_bytes());
    buffer.extend_from_slice(&checksum(length, durable, parts).to_le_bytes());
    parts.iter().for_each(|part| buffer.extend_from_slice(part));
}

fn checksum(length: u32, durable: u64, parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(&durable.to_le_bytes());
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// Appends the payloads of whole framed records to `payloads`.
pub(super) fn payloads(mut framed: &[u8], payloads: &mut Vec<Vec<u8>>) {
    while let Some((header, rest)) = framed.split_first_chunk::<RECORD_HEADER>()
        && let Some(header) = RecordHeader::parse(header)
        && let Some((payload, rest)) = rest.split_at_checked(header.length)
    {
        payloads.push(payload.to_vec());
        framed = rest;
    }
}

/// Header of one record.
pub(super) struct RecordHeader {
    pub(super) length: usize,
    pub(super) durable: u64,
    checksum: u32,
}

impl RecordHeader {
    /// Parses a record header; `None` if the bytes cannot be one.
    pub(super) fn parse(bytes: &[u8; RECORD_HEADER]) -> Option<Self> {
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let length = u32_at(4) as usize;
        if u32_at(0) != RECORD_MAGIC || length > MAX_PAYLOAD {
            return None;
        }
        let mut durable = [0; 8];
        durable.copy_from_slice(&bytes[8..16]);
        Some(Self { length, durable: u64::from_le_bytes(durable), checksum: u32_at(16) })
    }

    pub(super) fn matches(&self, payload: &[u8]) -> bool {
        checksum(self.length as u32, self.durable, &[payload]) == self.checksum
    }
}
