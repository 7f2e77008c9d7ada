//! Collecting documents in pieces, so that no list of their values gets long.

use super::error::AggregationError;
use super::segment_context::SegmentContext;
use sparrow_runtime::work;

/// What collects documents, each with the number of its bucket in `parents`.
pub trait InPieces {
    /// Number of the first documents whose values are few enough to be listed at a time, at least 1.
    fn piece(&self, docs: &[u32]) -> usize;

    /// Collects so few documents that their values may be listed.
    ///
    /// # Errors
    /// When there is no memory for what is found, or the request must stop.
    fn collect_piece(
        &mut self,
        docs: &[u32],
        parents: &[u32],
        context: &SegmentContext<'_>,
    ) -> Result<(), AggregationError>;

    /// Collects documents, piece after piece.
    ///
    /// # Errors
    /// As [`InPieces::collect_piece`].
    fn collect_in_pieces(
        &mut self,
        mut docs: &[u32],
        mut parents: &[u32],
        context: &SegmentContext<'_>,
    ) -> Result<(), AggregationError> {
        while !docs.is_empty() {
            work::check()?;
            let piece = self.piece(docs);
            self.collect_piece(&docs[..piece], &parents[..piece], context)?;
            (docs, parents) = (&docs[piece..], &parents[piece..]);
        }
        Ok(())
    }
}
