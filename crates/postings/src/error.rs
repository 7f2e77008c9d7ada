//! Errors of the sparse index.

/// Reason why bytes cannot be read as sparse postings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PostingsError {
    /// Fewer bytes than header and footer need, or not as many as the footer says.
    #[error("sparse postings have {actual} bytes, {expected} are needed")]
    Truncated {
        /// Number of bytes that the layout requires.
        expected: u64,
        /// Number of bytes present.
        actual: u64,
    },
    /// The magic number at the start or the end is wrong.
    #[error("not sparse postings: wrong magic number")]
    BadMagic,
    /// Written by a newer release, or by a build between releases.
    #[error("sparse postings have format version {version}, versions 1 and 3 are known")]
    UnknownVersion {
        /// Version number in the file's header.
        version: u32,
    },
    /// The checksum of a section does not match its bytes.
    #[error("sparse postings: checksum of the {section} is {actual:#010x}, expected {expected:#010x}")]
    Checksum {
        /// Name of the damaged section.
        section: &'static str,
        /// Checksum stored in the file.
        expected: u32,
        /// Checksum computed from the bytes.
        actual: u32,
    },
    /// A section or count in the footer contradicts the rest.
    #[error("sparse postings: invalid {section}")]
    Invalid {
        /// Name of the invalid section or count.
        section: &'static str,
    },
    /// A term's record points outside the postings or contradicts itself.
    #[error("sparse postings: the record of term {term} is invalid")]
    InvalidTerm {
        /// Id of the term.
        term: u32,
    },
}
