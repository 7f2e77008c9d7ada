//! Large searches on several processors.
//!
//! The parts of a large segment, and segments that are too large to be searched together, share nothing but
//! the threshold. Threads that would otherwise be idle take some of them. A search that arrives meanwhile
//! waits at most for the part that a helper is working on, a fraction of a millisecond.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use sparrow_runtime::processors;

use super::TopK;
use super::candidates::Errors;
use super::group;
use super::scratch::Scratch;
use super::search::Search;

/// Search buffers of helper threads, which end with the search; at most one per processor.
static SPARE: Mutex<Vec<Scratch>> = Mutex::new(Vec::new());

thread_local! {
    /// Search buffers of this thread, kept between searches: clearing 128 KB costs as much as a small search.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Searches the groups one by one and returns their results in order. Adds the matching documents to
/// `matched`.
pub(super) fn run(groups: Vec<Vec<Search<'_, '_, '_>>>, errors: Errors, matched: &mut u64) -> Vec<TopK> {
    let helpers = processors::idle().min(groups.len().saturating_sub(1));
    if helpers > 0 {
        return shared(groups, errors, matched, helpers);
    }
    let mut scratch = take_scratch(false);
    let mut tops = Vec::with_capacity(groups.iter().map(Vec::len).sum());
    for group in groups {
        tops.extend(group::run(group, errors, matched, &mut scratch));
    }
    keep_scratch(scratch, false);
    tops
}

/// Like [`run`], with the help of up to `helpers` other threads.
fn shared(
    groups: Vec<Vec<Search<'_, '_, '_>>>,
    errors: Errors,
    matched: &mut u64,
    helpers: usize,
) -> Vec<TopK> {
    let groups: Vec<_> = groups.into_iter().map(|group| Mutex::new(Some(group))).collect();
    let (next, all_matched) = (AtomicUsize::new(0), AtomicU64::new(*matched));
    let search = |is_helper: bool| {
        let mut scratch = take_scratch(is_helper);
        let mut searched: Vec<(usize, Vec<TopK>)> = Vec::new();
        while !(is_helper && processors::are_overloaded()) {
            let number = next.fetch_add(1, Relaxed);
            let Some(group) = groups.get(number) else { break };
            let Some(group) = group.lock().unwrap_or_else(PoisonError::into_inner).take() else { break };
            let before = all_matched.load(Relaxed);
            let mut matched = before;
            searched.push((number, group::run(group, errors, &mut matched, &mut scratch)));
            all_matched.fetch_add(matched - before, Relaxed);
        }
        keep_scratch(scratch, is_helper);
        searched
    };
    let mut searched: Vec<_> = processors::share(helpers, search).into_iter().flatten().collect();
    *matched = all_matched.into_inner();
    searched.sort_unstable_by_key(|(number, _)| *number);
    searched.into_iter().flat_map(|(_, tops)| tops).collect()
}

/// Buffers left by an earlier search of this thread, or by an earlier helper; otherwise new ones.
fn take_scratch(is_helper: bool) -> Box<Scratch> {
    let kept = match is_helper {
        true => SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop().map(Box::new),
        false => SCRATCH.take(),
    };
    kept.unwrap_or_else(|| Box::new(Scratch::new()))
}

/// Keeps buffers for a later search.
fn keep_scratch(scratch: Box<Scratch>, is_helper: bool) {
    if !is_helper {
        SCRATCH.set(Some(scratch));
        return;
    }
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    if spare.len() < processors::available() {
        spare.push(*scratch);
    }
}
