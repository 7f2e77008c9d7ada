//! Lines of a repository's JSON files: each is a value with its checksum and format version.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use sparrow_file_system::File;

use sparrow_write_ahead_log::io_reason;

use sparrow_request::body::tree_bytes;
use sparrow_request::error::EngineError;
use sparrow_runtime::work::{self, Stopped};

/// Format version of a line that this version writes, and the newest one that it reads.
pub(super) const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    format: u32,
    sha256: String,
    #[serde(borrow)]
    value: &'a RawValue,
}

/// Why a file of a repository cannot be used.
pub(super) enum Unusable {
    Io(io::Error),
    Newer(u32),
    Damaged(String),
    /// The request that reads it must stop: it was cancelled, or the file would take more memory than there is for it.
    Stopped(Stopped),
}

impl Unusable {
    /// The reason as text that does not name the file.
    pub fn reason(&self) -> String {
        match self {
            Self::Io(error) => format!("it cannot be read: {}", io_reason(error)),
            Self::Newer(format) => {
                format!("it has format version {format}, this version reads up to {FORMAT}")
            }
            Self::Damaged(detail) => detail.clone(),
            Self::Stopped(stopped) => EngineError::from(stopped.clone()).reason(),
        }
    }
}

/// Most bytes of a file, and of its first line, which a listing reads of each snapshot. More of them would let
/// anybody who can write to the repository take all memory.
pub(super) const MOST: u64 = 256 << 20;
pub(super) const MOST_FIRST: u64 = 16 << 20;

/// Reads a whole file, or only its first line.
///
/// # Errors
/// When the file cannot be read, is not a regular one, or is larger than any that this server writes; opening a pipe would block
/// until somebody writes to it.
pub(super) fn read(path: &Path, first_line_only: bool) -> Result<Vec<u8>, Unusable> {
    if !path.metadata().map_err(Unusable::Io)?.is_file() {
        return Err(Unusable::Damaged("it is not a regular file".to_owned()));
    }
    let file = File::open(path).map_err(Unusable::Io)?;
    let mut bytes = Vec::new();
    let most = if first_line_only { MOST_FIRST } else { MOST };
    let too_long = || {
        let part = if first_line_only { "its first line is" } else { "it is" };
        Unusable::Damaged(format!("{part} longer than {} MiB", most >> 20))
    };
    if !first_line_only && file.metadata().map_err(Unusable::Io)?.len() > most {
        return Err(too_long());
    }
    let mut file = BufReader::new(file).take(most + 1);
    match first_line_only {
        true => file.read_until(b'\n', &mut bytes),
        false => file.read_to_end(&mut bytes),
    }
    .map_err(Unusable::Io)?;
    if bytes.len() as u64 > most { Err(too_long()) } else { Ok(bytes) }
}

/// Encodes a value as a line with checksum, format version and newline.
pub(super) fn written(value: &impl Serialize) -> Result<String, EngineError> {
    let internal =
        |error: serde_json::Error| EngineError::internal(format!("a snapshot cannot be written: {error}"));
    let value = serde_json::value::to_raw_value(value).map_err(internal)?;
    let line = Line { format: FORMAT, sha256: hex(&Sha256::digest(value.get())), value: &value };
    Ok(serde_json::to_string(&line).map_err(internal)? + "\n")
}

/// Decodes the first line of `bytes`, if there is memory for its values: in two bytes of text, a forged file can have a value of fifty.
pub(super) fn read_line<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unusable> {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let damaged = |error: serde_json::Error| Unusable::Damaged(error.to_string());
    work::room_for(tree_bytes(line)).map_err(Unusable::Stopped)?;
    let line: Line<'_> = serde_json::from_slice(line).map_err(|error| match newer(line) {
        Some(format) => Unusable::Newer(format),
        None => damaged(error),
    })?;
    if line.format > FORMAT {
        return Err(Unusable::Newer(line.format));
    }
    if hex(&Sha256::digest(line.value.get())) != line.sha256 {
        return Err(Unusable::Damaged("its checksum does not match".to_owned()));
    }
    serde_json::from_str(line.value.get()).map_err(damaged)
}

/// Format version of a line, if it is newer than this version of the server reads.
fn newer(line: &[u8]) -> Option<u32> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    value["format"].as_u64().and_then(|format| u32::try_from(format).ok()).filter(|format| *format > FORMAT)
}

/// Lower-case hexadecimal digits of bytes.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
