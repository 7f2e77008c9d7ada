//! Limits on the work that a request may cause with names of indices and aliases: clients can send long lists of
//! patterns, and each is compared with many names.

use sparrow_runtime::work;
use sparrow_wire::glob::Pattern;

use crate::error::EngineError;

/// Limit on the steps for names in one request; a step is a piece of a pattern searched for in a name. Takes less
/// than a second of CPU time.
pub const MOST_STEPS: u64 = 1 << 24;

/// Weight of one step in the request's effort account, which covers patterns of all kinds.
const WEIGHT: u64 = work::MOST_EFFORT / MOST_STEPS;

/// Number of steps counted together, between two checks of whether the request has been stopped.
const AT_ONCE: u64 = 256;

/// Counter for the steps of a loop over names, which also checks from time to time whether the request has been
/// stopped.
#[derive(Debug, Default)]
pub struct NameSteps {
    pending: u64,
}

impl NameSteps {
    /// Counts steps.
    ///
    /// # Errors
    /// If the request has been stopped, or has taken too many steps.
    #[inline]
    pub fn add(&mut self, steps: u64) -> Result<(), EngineError> {
        self.pending += steps;
        if self.pending < AT_ONCE { Ok(()) } else { self.settle() }
    }

    fn settle(&mut self) -> Result<(), EngineError> {
        work::check()?;
        spend(std::mem::take(&mut self.pending))
    }
}

impl Drop for NameSteps {
    fn drop(&mut self) {
        count(self.pending);
    }
}

/// Whether a name may stand for several: a pattern with `*`, or `_all`.
pub fn is_pattern(name: &str) -> bool {
    name == "_all" || name.contains('*')
}

/// A name or pattern (`_all` matches every name), prepared for matching against many names, with its cost counted.
#[derive(Debug, Clone, Copy)]
pub struct NamePattern<'p> {
    pattern: Pattern<'p>,
    /// Number of pieces of the pattern that are searched for in each name, at least 1.
    pieces: u64,
}

impl<'p> NamePattern<'p> {
    /// Prepares a name or pattern for matching.
    pub fn new(given: &'p str) -> Self {
        let given = if given == "_all" { "*" } else { given };
        let stars = given.bytes().filter(|byte| *byte == b'*').count();
        Self { pattern: Pattern::new(given), pieces: stars.max(1) as u64 }
    }

    /// Prefix shared by all names that match.
    pub fn beginning(&self) -> &'p str {
        self.pattern.beginning()
    }

    /// Whether it is a plain name, which matches only itself.
    pub fn is_name(&self) -> bool {
        self.pattern.is_name()
    }

    /// Whether a name matches.
    ///
    /// # Errors
    /// As [`NameSteps::add`].
    #[inline]
    pub fn matches(&self, name: &str, steps: &mut NameSteps) -> Result<bool, EngineError> {
        steps.add(self.pieces * (1 + name.len() as u64 / 64))?;
        Ok(self.pattern.matches(name))
    }
}

/// Checks whether this thread's request has taken too many steps or been stopped, for places that ignored errors
/// before.
///
/// # Errors
/// As [`NameSteps::add`].
pub fn check() -> Result<(), EngineError> {
    work::check()?;
    spend(0)
}

/// Counts steps that cannot be refused any more: if they are too many, the next [`NameSteps::add`] fails.
pub(crate) fn count(steps: u64) {
    let _ = work::spend(steps.saturating_mul(WEIGHT));
}

fn spend(steps: u64) -> Result<(), EngineError> {
    work::spend(steps.saturating_mul(WEIGHT)).map_err(|_| {
        EngineError::illegal_argument(format!(
            "the patterns of one request may be held against names of indices and aliases in [{MOST_STEPS}] steps in all: \
             a shorter list of patterns, or names in place of patterns, take fewer"
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use sparrow_runtime::work::{Memory, Work};

    use super::*;

    #[test]
    fn steps_have_a_limit_over_all_loops_of_a_request() {
        let stop = Arc::new(AtomicBool::new(false));
        let _entered =
            work::enter(Some(Work::new(stop.clone(), Arc::new(Memory::new(1000, 1000)), "<test>")));
        NameSteps::default().add(MOST_STEPS - 300).expect("as many as there may be");
        // Those of a loop that ends early count too.
        (0..3).for_each(|_| NameSteps::default().add(50).expect("a few"));
        assert!(check().is_ok());
        let error = NameSteps::default().add(256).expect_err("too many");
        assert_eq!(error.status(), 400);
        assert!(error.reason().contains("[16777216]"), "{}", error.reason());
        assert!(check().is_err(), "and it stays so");
        stop.store(true, Relaxed);
        assert!(matches!(check(), Err(EngineError::Cancelled)));
        assert!(matches!(NameSteps::default().add(256), Err(EngineError::Cancelled)));
    }

    #[test]
    fn a_pattern_has_as_many_pieces_as_stars() {
        assert_eq!(["*", "a*", "*a*", "a", "_all"].map(|one| NamePattern::new(one).pieces), [1, 1, 2, 1, 1]);
    }
}
