//! Packed weights in a file: made once, then mapped, so that they are memory that the system can take back, and a start reads
//! no graph and packs nothing.
//!
//! ```text
//! 0    magic, format, CRC of what follows; place, length and CRC of the index   (little-endian, 40 bytes)
//! 64   sections, each at a cache line: numbers as kernels read them, in this machine's order of bytes
//! …    the index, JSON: what the weights were made of, their shape, place and CRC of each section
//! ```
//!
//! A file is used only if all of it is as it was written, and it was made for this process's kernels of the files that are there
//! now: same names, lengths and times. Anything else is made anew. The file is written under another name, synced and renamed:
//! a process that maps it sees all of it, and goes on with the old one when it is replaced.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::fixed::Fixed;
use crate::numbers::{AlignedSlice, Mapping, Plain};

mod identity;
mod write;

pub(crate) use identity::Identity;
pub(crate) use write::Packer;

/// Raised whenever packing changes: what a section holds, how numbers are ordered, what is quantised and how.
const FORMAT: u32 = 6;
const MAGIC: [u8; 8] = *b"SPRWPACK";
const HEADER: usize = 40;
/// Longest index: one takes about 100 bytes for each section.
const LONGEST_INDEX: u64 = 1 << 24;

/// Facts about a model that the index keeps, so that they can be read without the weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// Fingerprint of the model's files; see [`crate::ModelInfo`].
    pub(crate) fingerprint: String,
    /// Sum of the lengths of the model's files, in bytes.
    pub(crate) size_bytes: u64,
    pub(crate) bert: BertShape,
    pub(crate) head: Option<HeadShape>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BertShape {
    pub(crate) width: usize,
    pub(crate) heads: usize,
    pub(crate) layers: usize,
    pub(crate) transform: bool,
    /// The word embeddings are the decoder's rows.
    pub(crate) tied: bool,
    /// Whether the encoder has an embedding for tokens of the second type that differs from the first type's.
    pub(crate) types: bool,
    /// Whether weights are of 8 bits; they are of 20 bits otherwise.
    pub(crate) int8: bool,
    /// What only ModernBERT has; `None` for other architectures.
    pub(crate) modern: Option<ModernShape>,
}

/// How far attention reaches in the layers of a ModernBERT encoder, and the bases of its rotary positions.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModernShape {
    /// Number of tokens to each side that a token of a local layer attends to.
    pub(crate) window: usize,
    /// A bit for each layer, set if the layer is local; layers 0 to 63 are in the first number.
    pub(crate) local: [u64; 2],
    /// The bases of the rotary positions, as the bits of an f32: that of global layers and that of local layers.
    pub(crate) bases: [u32; 2],
    /// Tokens of the longest text.
    pub(crate) positions: usize,
}

impl ModernShape {
    /// Whether the tokens of a layer attend only to their neighbours.
    pub(crate) fn is_local(&self, layer: usize) -> bool {
        self.local.get(layer / 64).is_some_and(|bits| bits >> (layer % 64) & 1 == 1)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeadShape {
    pub(crate) terms: usize,
    pub(crate) dims: usize,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Index {
    identity: Identity,
    facts: Facts,
    sections: BTreeMap<String, Section>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Section {
    start: usize,
    length: usize,
    checksum: u32,
}

/// The reason why a file of packed weights is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("it is not there")]
    Missing,
    #[error("it is of another format, other files or another processor")]
    Stale,
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// An open file of packed weights, whose sections are mapped.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) facts: Facts,
    sections: BTreeMap<String, Section>,
    file: Arc<Mapping>,
}

impl Packed {
    /// Opens a file of packed weights and verifies the checksums of all its sections.
    ///
    /// # Errors
    /// Why it is not used.
    pub(crate) fn open(path: &Path, identity: &Identity) -> Result<Self, Unusable> {
        let (mut file, index) = read_index(path, identity)?;
        verify(&mut file, &index.sections)?;
        let mapping = Mapping::new(&file)?;
        Ok(Self { facts: index.facts, sections: index.sections, file: mapping })
    }

    /// Reads the facts about the model from the index; the sections are not read.
    ///
    /// # Errors
    /// As [`Packed::open`].
    pub(crate) fn facts(path: &Path, identity: &Identity) -> Result<Facts, Unusable> {
        Ok(read_index(path, identity)?.1.facts)
    }

    /// Whether there is a section of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.sections.contains_key(name)
    }

    /// The numbers of a section.
    ///
    /// # Errors
    /// [`Unusable::Damaged`] if there is no section of this name with numbers of this type.
    pub(crate) fn get<T: Plain>(&self, name: &str) -> Result<AlignedSlice<T>, Unusable> {
        let section = self.sections.get(name).ok_or(Unusable::Damaged("a section is missing"))?;
        AlignedSlice::mapped(&self.file, section.start, section.length)
            .ok_or(Unusable::Damaged("a section is not in the file"))
    }

    /// The numbers that [`Packer::put_fixed`] wrote.
    ///
    /// # Errors
    /// [`Unusable::Damaged`] if they are missing, or if there are not `length` of them.
    pub(crate) fn get_fixed(&self, name: &str, length: usize) -> Result<Fixed, Unusable> {
        let (high, low) = (self.get(&format!("{name}.high"))?, self.get(&format!("{name}.low"))?);
        Fixed::of(high, low, length).ok_or(Unusable::Damaged("a section is of another length"))
    }
}

fn read_index(path: &Path, identity: &Identity) -> Result<(File, Index), Unusable> {
    let unread = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Unusable::Missing,
        _ => Unusable::Io(error),
    };
    // Opening a pipe would wait for somebody who writes into it.
    if !std::fs::metadata(path).map_err(unread)?.is_file() {
        return Err(Unusable::Damaged("it is not a regular file"));
    }
    let mut file = File::open(path).map_err(unread)?;
    let total = file.metadata()?.len();
    let mut header = [0; HEADER];
    file.read_exact(&mut header).map_err(|_| Unusable::Damaged("it is too short"))?;
    let four = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let eight = |at: usize| u64::from(four(at)) | u64::from(four(at + 4)) << 32;
    if header[..8] != MAGIC || four(12) != crc32fast::hash(&header[16..]) {
        return Err(Unusable::Damaged("its beginning is not as it was written"));
    }
    if four(8) != FORMAT {
        return Err(Unusable::Stale);
    }
    let (start, length, checksum) = (eight(16), eight(24), four(32));
    if length > LONGEST_INDEX || start.checked_add(length) != Some(total) {
        return Err(Unusable::Damaged("it is of another length"));
    }
    let mut bytes = vec![0; length as usize];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut bytes)?;
    if crc32fast::hash(&bytes) != checksum {
        return Err(Unusable::Damaged("its index is not as it was written"));
    }
    // One of another version of this program may have other keys.
    let index: Index = serde_json::from_slice(&bytes).map_err(|_| Unusable::Stale)?;
    if index.identity != *identity {
        return Err(Unusable::Stale);
    }
    Ok((file, index))
}

/// Verifies the checksums of all sections. They are read from the file and not through the mapping, so that only those that are used count
/// as memory of the process.
fn verify(file: &mut File, sections: &BTreeMap<String, Section>) -> Result<(), Unusable> {
    let mut sections: Vec<&Section> = sections.values().collect();
    sections.sort_by_key(|section| section.start);
    let mut buffer = vec![0; 1 << 18];
    for section in sections {
        file.seek(SeekFrom::Start(section.start as u64))?;
        let (mut hasher, mut left) = (crc32fast::Hasher::new(), section.length);
        while left > 0 {
            let piece = &mut buffer[..left.min(1 << 18)];
            file.read_exact(piece)?;
            hasher.update(piece);
            left -= piece.len();
        }
        if hasher.finalize() != section.checksum {
            return Err(Unusable::Damaged("a section is not as it was written"));
        }
    }
    Ok(())
}
