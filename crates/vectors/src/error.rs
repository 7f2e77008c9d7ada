//! What can be wrong with vectors or their bytes.

use thiserror::Error;

/// A vector that cannot be stored or searched, or bytes that are not what the builder wrote.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum VectorsError {
    /// The bytes do not start as a vectors file does.
    #[error("not a vectors file")]
    NotVectors,
    /// The bytes were written by a newer version.
    #[error("vectors format {found} is newer than {supported}")]
    NewerFormat { found: u8, supported: u8 },
    /// A checksum or a length does not fit.
    #[error("vectors are damaged: {detail}")]
    Corrupt { detail: &'static str },
    /// A vector has another number of dimensions than its field.
    #[error("vector has {found} dimensions instead of {expected}")]
    Dimensions { expected: usize, found: usize },
    /// A component is infinite, not a number, or not a whole number of one byte where bytes are stored.
    #[error("vector holds a component that cannot be stored")]
    Component,
    /// Documents must be added in ascending order, each once.
    #[error("document {doc} was added after document {previous}")]
    OutOfOrder { doc: u32, previous: u32 },
}
