//! What one request may take, and when it is to stop.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use sparrow_types::work::{self, TooMuch};

use super::error::AggregationError;
use sparrow_index::query::QueryError;

/// Bytes that the results of one request may take while they are computed.
const MOST_BYTES: usize = 512 << 20;

/// Bytes that are taken from the request's memory at once.
const PIECE: usize = 64 << 10;

/// The bounds of one request, over all of its indices.
pub struct Budget<'a> {
    cancel: Option<&'a AtomicBool>,
    bytes: Cell<usize>,
    /// Part of `bytes` that is not yet counted as memory of the request.
    pending: Cell<usize>,
}

impl<'a> Budget<'a> {
    /// A fresh budget; `cancel` ends the work.
    pub fn new(cancel: Option<&'a AtomicBool>) -> Self {
        Self { cancel, bytes: Cell::new(0), pending: Cell::new(0) }
    }

    /// Takes memory.
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
