//! Checks what tantivy believes of a file of stored documents, and ends the process by if it is wrong: the number of layers of its skip
//! index, for which it allocates. Checksums do not help against a file that somebody has made.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use sparrow_file_system::File;

/// How the names of these files end.
pub(crate) const EXTENSION: &str = ".store";

/// Bytes before tantivy's footer: the version (4), the offset of the skip index (8), the compressor (1), and 15 that are reserved.
const END: usize = 28;
const VERSION: u32 = 2;
/// Numbers that stand for a compressor: none, LZ4, Zstandard.
const COMPRESSORS: [u8; 3] = [0, 1, 4];
/// Most layers of a skip index: each has an eighth of the entries of the one below, and a segment has fewer than 2^32 documents.
const MOST_LAYERS: u64 = 12;

/// Why tantivy must not read a file of stored documents of whose bytes the first `body` come before tantivy's footer; `None` if it may.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn problem(path: &Path, body: u64) -> io::Result<Option<&'static str>> {
    let mut file = File::open(path)?;
    let Some(end) = body.checked_sub(END as u64) else { return Ok(Some("it is too short")) };
    let mut tail = [0; END];
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut tail)?;
    let [a, b, c, d, offset @ .., compressor] = *tail.first_chunk::<13>().unwrap_or(&[0; 13]);
    let offset = u64::from_le_bytes(offset);
    if u32::from_le_bytes([a, b, c, d]) > VERSION || !COMPRESSORS.contains(&compressor) {
        return Ok(Some("its version or compressor is unknown"));
    }
    let Some(length) = end.checked_sub(offset) else {
        return Ok(Some("its skip index begins behind its end"));
    };
    // The number of layers and where each ends take at most ten bytes each.
    let mut list = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    file.take(length.min(10 * (MOST_LAYERS + 1))).read_to_end(&mut list)?;
    Ok((!is_list_of_layers(&list, length)).then_some("its skip index has layers that are not there"))
}

/// Whether a skip index of `length` bytes, which begins with `list`, has all of its layers.
fn is_list_of_layers(list: &[u8], length: u64) -> bool {
    let mut rest = list;
    let Some(layers) = number(&mut rest).filter(|layers| *layers <= MOST_LAYERS) else { return false };
    let ends: Option<Vec<u64>> = (0..layers).map(|_| number(&mut rest)).collect();
    let left = length - (list.len() - rest.len()) as u64;
    ends.is_some_and(|ends| ends.is_sorted() && ends.last().is_none_or(|last| *last <= left))
}

/// Reads a number in groups of seven bits, the lowest first and the last one marked.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0_u64, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 != 0 {
            return Some(value);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u32, offset: u64, compressor: u8, list: &[u8]) -> Option<&'static str> {
        let mut bytes = b"documents".to_vec();
        bytes.extend_from_slice(list);
        bytes.extend_from_slice(&version.to_le_bytes());
        bytes.extend_from_slice(&offset.to_le_bytes());
        bytes.push(compressor);
        bytes.extend_from_slice(&[0; 15]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.store");
        std::fs::write(&path, &bytes).unwrap();
        problem(&path, bytes.len() as u64).unwrap()
    }

    #[test]
    fn what_tantivy_would_allocate_for_is_looked_at_first() {
        // Two layers that end after 1 and 3 bytes.
        let whole = [0x82, 0x81, 0x83, 1, 2, 3];
        assert_eq!(file(2, 9, 1, &whole), None);
        assert_eq!(file(2, 9, 4, &[0x80]), None);
        for (version, offset, compressor, list) in [
            (3, 9, 1, &whole[..]),
            (2, 9, 2, &whole),
            (2, 99, 1, &whole),
            (2, u64::MAX, 1, &whole),
            (2, 9, 1, &[]),
            (2, 9, 1, &[0x81]),
            (2, 9, 1, &[0x82, 0x83, 0x81, 1, 2, 3]),
            (2, 9, 1, &[0x82, 0x81, 0x84, 1, 2, 3]),
            (2, 9, 1, &[0, 0, 0, 0, 0, 0, 0, 0, 0x84]),
            (2, 9, 1, &[0x7f; 40]),
        ] {
            assert!(
                file(version, offset, compressor, list).is_some(),
                "{version} {offset} {compressor} {list:?}"
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.store");
        std::fs::write(&path, b"short").unwrap();
        assert!(problem(&path, 5).unwrap().is_some());
    }
}
