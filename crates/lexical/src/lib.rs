//! Word searches in one segment: for any of several terms ([`any`]), all of them, or a phrase ([`all`]); and scores that are
//! computed for each document ([`computed`]).
//!
//! They read posting lists themselves ([`list`]), and their BM25 scores equal tantivy's bit for bit. What a query
//! means, which documents are live and which pass its filters is decided above, in `sparrow-tantivy-index`, whose tests
//! compare these searches with tantivy's own and with the scores of all documents.

pub mod all;
pub mod any;
mod clause;
pub mod computed;
mod field;
#[cfg(test)]
mod fuzz;
mod kernels;
pub mod list;
mod positions;
pub mod sloppy;
mod varint;

pub use field::{B, Factors, K1, SegmentField, TextField};
pub use positions::Positions;

/// Largest relative difference between sums of the same scores in different orders.
const ROUNDING: f32 = 1e-5;

/// Lowest partial sum that can still reach `threshold` if at most `bound` is added, allowing for rounding.
pub fn least_score(threshold: f32, bound: f32) -> f32 {
    if threshold == f32::INFINITY {
        // Sums that are too large for a number are equal, and less a bound they would be no number.
        return f32::MAX;
    }
    threshold - bound - ROUNDING * (threshold.abs() + bound)
}
