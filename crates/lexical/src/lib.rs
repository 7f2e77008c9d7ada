//! Searches for the words of a text in one segment: any of them ([`any`]), all of them or a phrase ([`all`]).
//!
//! They read posting lists themselves ([`list`]), and score by BM25 as tantivy does, to the last bit. What a query means, which
//! documents are live and which pass its filters is known above, in `sparrow-index`, whose tests compare these searches with
//! tantivy's own and with the scores of all documents.

pub mod all;
pub mod any;
mod field;
mod kernels;
pub mod list;
mod positions;
mod varint;

pub use field::{B, Factors, K1, SegmentField, TextField};
pub use positions::Positions;

/// Share by which sums of scores may differ when they are added up in another order.
const ROUNDING: f32 = 1e-5;

/// The least score that a sum must have to reach `threshold` with at most `bound` from elsewhere.
pub fn least_score(threshold: f32, bound: f32) -> f32 {
    if threshold == f32::INFINITY {
        // Sums that are too large for a number are equal, and less a bound they would be no number.
        return f32::MAX;
    }
    threshold - bound - ROUNDING * (threshold.abs() + bound)
}
