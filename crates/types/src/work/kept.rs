//! Memory of definitions that the process keeps for as long as they exist, such as the analyzers of an index and the expressions of a
//! pipeline.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::limits::{Exceeded, Memory, PARENT, TooMuch};
use super::{Stopped, Work, current, enter, mark};

/// Definitions together may keep one of so many parts of what the process may have.
const SHARE: usize = 8;

/// Bytes that all definitions keep.
static ALL: AtomicUsize = AtomicUsize::new(0);

/// Memory that a definition keeps. Dropping it takes it off the sum of all definitions.
#[derive(Debug)]
pub struct Kept {
    bytes: usize,
}

impl Kept {
    /// Makes what a definition describes, and counts what that keeps.
    ///
    /// # Errors
    /// Those of `make`; [`Stopped`] for a request whose definition would have all of them keep more than an eighth of the memory
    /// that the process may have.
    pub fn by<T, E: From<Stopped>>(make: impl FnOnce() -> Result<T, E>) -> Result<(T, Self), E> {
        Self::in_place_of(0, make)
    }

    /// Does the same for a definition in whose place another keeps so many bytes until this one is there.
    ///
    /// # Errors
    /// As [`Kept::by`].
    pub fn in_place_of<T, E: From<Stopped>>(
        replaced: usize,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<(T, Self), E> {
        // When the server starts, what was accepted before is nobody's request, but keeps as much.
        let unlimited =
            || Work::new(Arc::default(), Arc::new(Memory::new(usize::MAX, usize::MAX)), "definitions");
        let _measured = current().is_none().then(|| enter(Some(unlimited())));
        let before = mark();
        let made = make()?;
        let kept = Self { bytes: before.made() };
        let all = ALL.fetch_add(kept.bytes, Relaxed) + kept.bytes;
        if let Some(work) = current() {
            let limit = work.account.memory.total_limit.load(Relaxed) / SHARE;
            if all.saturating_sub(replaced) > limit {
                let label = "all analyzers and pipelines";
                let exceeded = Exceeded::from(TooMuch {
                    limit_of: PARENT,
                    label,
                    wanted: all as u64,
                    limit: limit as u64,
                });
                work.exceed(exceeded.clone());
                return Err(Stopped::Exceeded(exceeded).into());
            }
        }
        Ok((made, kept))
    }
}

impl Kept {
    /// How much the definition keeps.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        ALL.fetch_sub(self.bytes, Relaxed);
    }
}
