//! The identity of packed weights: the files that they were made of, and the kernels that they were packed for.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// What must be equal for packed weights to be used: kernels, byte order, and the model's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Names of the kernels whose memory layout the weights have.
    kernels: String,
    /// Whether numbers are stored in little-endian byte order.
    little_endian: bool,
    files: Vec<Stamp>,
}

/// Name, length and times of a file of a model. A change of the file shows in one of them: everyone can set the time of modification, and
/// archives set it to the same value for all files, but only the system sets the time of the last change (where there is one).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    name: String,
    length: u64,
    modified_ns: u64,
    changed_ns: u64,
}

impl Identity {
    /// The identity for the files as they are now, without reading their contents. `None` if one of them is missing.
    pub(crate) fn of(kernels: String, dir: &Path, files: &[PathBuf]) -> Option<Self> {
        let mut files = files.to_vec();
        files.sort();
        files.dedup();
        let files = files.iter().map(|path| Stamp::of(dir, path)).collect::<Option<Vec<_>>>()?;
        Some(Self { kernels, little_endian: cfg!(target_endian = "little"), files })
    }
}

impl Stamp {
    fn of(dir: &Path, path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        let since = |time: SystemTime| {
            let nanoseconds = time.duration_since(UNIX_EPOCH).map_or(0, |duration| duration.as_nanos());
            u64::try_from(nanoseconds).unwrap_or(0)
        };
        Some(Self {
            name: path.strip_prefix(dir).unwrap_or(path).to_string_lossy().into_owned(),
            length: metadata.len(),
            modified_ns: since(metadata.modified().ok()?),
            changed_ns: changed_ns(&metadata),
        })
    }
}

#[cfg(unix)]
fn changed_ns(metadata: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let (seconds, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
    u64::try_from(seconds)
        .unwrap_or(0)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(u64::try_from(nanoseconds).unwrap_or(0))
}

#[cfg(not(unix))]
fn changed_ns(metadata: &std::fs::Metadata) -> u64 {
    let made = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    made.and_then(|time| u64::try_from(time.as_nanos()).ok()).unwrap_or(0)
}
