//! Limits on what the aggregations of one request may use, and cancellation.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use sparrow_types::work::{self, TooMuch};

use super::error::AggregationError;
use sparrow_index::query::QueryError;

/// Memory limit for the intermediate aggregation results of one request, in bytes (512 MiB).
const MOST_BYTES: usize = 512 << 20;

/// Amount of memory charged to the request's account at a time, in bytes (64 KiB).
const PIECE: usize = 64 << 10;

/// Memory budget of one request's aggregations, over all of its indices, and its cancellation flag.
pub struct Budget<'a> {
    cancel: Option<&'a AtomicBool>,
    bytes: Cell<usize>,
    /// Part of `bytes` that is not yet counted as memory of the request.
    pending: Cell<usize>,
}

impl<'a> Budget<'a> {
    /// A new budget with nothing used; setting `cancel` stops the work.
    pub fn new(cancel: Option<&'a AtomicBool>) -> Self {
        Self { cancel, bytes: Cell::new(0), pending: Cell::new(0) }
    }

    /// Charges memory to the budget, for the aggregation `name`.
    ///
    /// # Errors
    /// If the budget, or the request's own account, is exceeded.
    pub(super) fn charge(&self, name: &str, bytes: usize) -> Result<(), AggregationError> {
        self.pending.set(self.pending.get() + bytes);
        self.bytes.set(self.bytes.get() + bytes);
        if self.bytes.get() > MOST_BYTES {
            return Err(AggregationError::TooMuchMemory(TooMuch {
                limit_of: "request",
                label: format!("<agg [{name}]>"),
                wanted: self.bytes.get() as u64,
                limit: MOST_BYTES as u64,
            }));
        }
        if self.pending.get() >= PIECE {
            work::take(&format!("<agg [{name}]>"), self.pending.take())?;
        }
        Ok(())
    }

    pub(super) fn check_cancelled(&self) -> Result<(), AggregationError> {
        match self.cancel {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(QueryError::Cancelled.into()),
            _ => Ok(work::check().map_err(QueryError::from)?),
        }
    }
}
