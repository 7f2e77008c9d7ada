//! What a search needs of a term before its postings, for who asks for the same terms again.

use crate::record::{CODES, Record};

/// A term of one segment, found and checked: 40 bytes.
///
/// In the file that are two places, each on a page of its own that hardly anything else is read from: the record,
/// and what the levels of a frequent term stand for. With 23 terms in each of five segments, waiting for them is a
/// fifth of a search. Whoever searches the same segments again keeps what [`PostingsReader::resolve`] gave for a
/// token in all of them side by side, and hands it to [`SegmentSearch::terms`].
///
/// [`PostingsReader::resolve`]: crate::PostingsReader::resolve
/// [`SegmentSearch::terms`]: crate::SegmentSearch::terms
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedTerm {
    pub(crate) record: Record,
    /// Of a dense term.
    pub(crate) codes: [u8; CODES],
}
