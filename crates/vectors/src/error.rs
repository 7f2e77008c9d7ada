//! Errors of vectors and of their encoded form.

use thiserror::Error;

/// Error for a vector that cannot be stored or searched, or for bytes that the builder did not write.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum VectorsError {
    /// The bytes do not start with the magic of a vectors or graph file.
    #[error("not a vectors file")]
    NotVectors,
    /// The bytes were written by a newer version.
    #[error("vectors format {found} is newer than {supported}")]
    NewerFormat { found: u8, supported: u8 },
    /// A checksum or a length is wrong.
    #[error("vectors are damaged: {detail}")]
    Corrupt { detail: &'static str },
    /// A vector has the wrong number of components.
    #[error("vector has {found} dimensions instead of {expected}")]
    Dimensions { expected: usize, found: usize },
    /// A component is infinite, NaN, or for byte and bit vectors not an integer from −128 to 127.
    #[error("vector holds a component that cannot be stored")]
    Component,
    /// A document was added out of ascending order, or twice.
    #[error("document {doc} was added after document {previous}")]
    OutOfOrder { doc: u32, previous: u32 },
}
