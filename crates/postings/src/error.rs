//! Errors of the sparse index.

/// Why bytes are not a readable sparse index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PostingsError {
    /// Fewer bytes than header and footer need, or not as many as the footer says.
    #[error("sparse postings have {actual} bytes, {expected} are needed")]
    Truncated {
        /// What the layout needs.
        expected: u64,
        /// What there is.
        actual: u64,
    },
    /// The bytes do not start or end as sparse postings do.
    #[error("not sparse postings: wrong magic number")]
    BadMagic,
    /// Written by a newer release, or by a build between releases.
    #[error("sparse postings have format version {version}, versions 1 and 3 are known")]
    UnknownVersion {
        /// The version found.
        version: u32,
    },
    /// A checksum does not fit.
    #[error("sparse postings: checksum of the {section} is {actual:#010x}, expected {expected:#010x}")]
    Checksum {
        /// Which part.
        section: &'static str,
        /// Stored.
        expected: u32,
        /// Computed.
        actual: u32,
    },
    /// A section or count in the footer contradicts the rest.
    #[error("sparse postings: invalid {section}")]
    Invalid {
        /// Which part.
        section: &'static str,
    },
    /// A term's record points outside the postings or contradicts itself.
    #[error("sparse postings: the record of term {term} is invalid")]
    InvalidTerm {
        /// The term's number.
        term: u32,
    },
}
