//! What is told of a damaged file.

use serde::Serialize;

/// A file that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedFile {
    /// Path of the file below the data directory.
    pub file: String,
    pub reason: String,
    /// What cannot be used without the file, in words: `index [a]`, `the store [keys]`.
    pub affected: String,
}
