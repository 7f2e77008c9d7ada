//! Report of a damaged file.

use serde::Serialize;

/// A file that differs from what was written, and what depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedFile {
    /// Path of the file, relative to the data directory.
    pub file: String,
    pub reason: String,
    /// What cannot be used without the file, in words: `index [a]`, `the store [keys]`.
    pub affected: String,
}
