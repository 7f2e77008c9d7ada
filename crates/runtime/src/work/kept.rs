//! Memory of definitions that the process keeps for as long as they exist, such as the analyzers of an index and the expressions of a
//! pipeline.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use super::limits::{Exceeded, Memory, PARENT, TooMuch};
use super::{Stopped, Work, current, enter, mark, owner};

/// Definitions together may keep one of so many parts of what the process may have.
const SHARE: usize = 8;

/// Bytes that definitions keep, by who made them: one that leaves less than it takes leaves others too little.
static KEPT: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

/// Memory that a definition keeps. Dropping it takes it off the sum of all definitions.
#[derive(Debug)]
pub struct Kept {
    bytes: usize,
    owner: u64,
}

impl Kept {
    /// Makes what a definition describes, and counts what that keeps.
    ///
    /// # Errors
    /// Those of `make`; [`Stopped`] for a request whose definition would have all of them keep more than an eighth of the memory
    /// that the process may have, or those of its sender more than they leave of that.
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
        let kept = Self { bytes: before.made(), owner: owner() };
        let (own, all) = kept.add();
        if let Some(work) = current() {
            let limit = work.account.memory.total_limit.load(Relaxed) / SHARE;
            let (own, all) = (own.saturating_sub(replaced), all.saturating_sub(replaced));
            let left = limit.saturating_sub(all);
            let too_much = |label, wanted: usize, limit: usize| TooMuch {
                limit_of: PARENT,
                label,
                wanted: wanted as u64,
                limit: limit as u64,
            };
            let exceeded = match (all > limit, own > left) {
                (true, _) => Some(too_much("all analyzers and pipelines", all, limit)),
                (_, true) => Some(too_much("the analyzers and pipelines of one key", own, left)),
                _ => None,
            };
            if let Some(exceeded) = exceeded.map(Exceeded::from) {
                work.exceed(exceeded.clone());
                return Err(Stopped::Exceeded(exceeded).into());
            }
        }
        Ok((made, kept))
    }

    /// How much the definition keeps.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds it to what its owner, and all together, keep; these sums.
    fn add(&self) -> (usize, usize) {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let own = kept.entry(self.owner).or_default();
        *own += self.bytes;
        (*own, kept.values().sum())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = kept.get_mut(&self.owner) {
            *own -= self.bytes;
            if *own == 0 {
                kept.remove(&self.owner);
            }
        }
    }
}
