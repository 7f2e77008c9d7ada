//! Sparse inverted index over borrowed bytes, exact top-k with SIMD.
//!
//! One [`PostingsReader`] holds one sparse field of one segment. It is written either by a
//! [`PostingsBuilder`] (documents one by one) or by [`merge_postings`] (from older readers, one
//! term at a time), and answers [`PostingsReader::top_k`] with exactly the documents and scores
//! that scoring every document would give.
//!
//! What is absent: files, tantivy, models, threads. The crate reads `&[u8]` and writes
//! `&mut dyn Write`.
//!
//! | module | subject |
//! |---|---|
//! | `frame` | what both formats share: header, footer, checksums, term records |
//! | `dictionary` | sorted tokens |
//! | `quantize` | half-precision weights as 8-bit impact + 8-bit residual |
//! | `term` | the postings of one term, in every layout |
//! | `writer`, `builder`, `term_table`, `merge` | making bytes |
//! | `reader`, `cursor`, `top_k` | reading them |
//! | `kernels` | SIMD, the only unsafe code |

mod block_max_bounds;
mod builder;
mod bytes;
mod cursor;
mod dictionary;
mod error;
mod frame;
mod kernels;
mod layout;
mod merge;
mod quantize;
mod reader;
mod record;
mod resolved;
mod term;
mod term_table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod top_k;
mod trace;
mod writer;

pub use builder::PostingsBuilder;
pub use cursor::{SparseCursor, TERMINATED};
pub use error::PostingsError;
pub use frame::Format;
pub use kernels::implementation_name;
#[doc(hidden)]
pub use kernels::kernel_cases;
pub use merge::{DROPPED, MergeSource, merge_postings};
pub use quantize::stored_weight;
pub use reader::{LookUp, PostingsReader};
pub use resolved::{QueryTerms, ResolvedTerm, SegmentTerm};
pub use top_k::{ScoreBounds, SegmentSearch, SharedThreshold, TopK, TopKRequest, top_k_of_segments};
#[cfg(feature = "trace")]
#[doc(hidden)]
pub use trace::take_lines;
