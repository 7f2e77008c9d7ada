//! Large searches on several processors.
//!
//! The parts of a large segment, and segments that are too large to be searched together, share nothing but the threshold. So
//! threads that would otherwise idle take some of them. A search that comes meanwhile finds its processor again after the part
//! that a helper is working on: a fraction of a millisecond.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use sparrow_types::processors::{self, Busy};

use super::TopK;
use super::candidates::Errors;
use super::multi_segment;
use super::pruned::{Scratch, Search};

/// Memory of helpers, which do not live as long as it.
static SPARE: Mutex<Vec<Scratch>> = Mutex::new(Vec::new());

thread_local! {
    /// Kept between searches: clearing 128 KB costs as much as a small search.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Searches the groups, each by itself, and returns what was found in their order. `matched` counts on.
pub(super) fn run(groups: Vec<Vec<Search<'_, '_, '_>>>, errors: Errors, matched: &mut u64) -> Vec<TopK> {
    let idle = processors::idle().min(groups.len().saturating_sub(1));
    let mut scratch = SCRATCH.take().unwrap_or_else(|| Box::new(Scratch::new()));
    let tops = if idle == 0 {
        let mut tops = Vec::with_capacity(groups.iter().map(Vec::len).sum());
        for group in groups {
            tops.extend(multi_segment::run(group, errors, matched, &mut scratch));
        }
        tops
    } else {
        shared(groups, errors, matched, idle, &mut scratch)
    };
    SCRATCH.set(Some(scratch));
    tops
}

/// The same with the help of other threads.
fn shared(
    groups: Vec<Vec<Search<'_, '_, '_>>>,
    errors: Errors,
    matched: &mut u64,
    helpers: usize,
    scratch: &mut Scratch,
) -> Vec<TopK> {
    let count = groups.len();
    let work: Vec<Mutex<Option<Vec<Search<'_, '_, '_>>>>> =
        groups.into_iter().map(|group| Mutex::new(Some(group))).collect();
    let (next, all_matched) = (AtomicUsize::new(0), AtomicU64::new(*matched));
    let take = |scratch: &mut Scratch, is_helper: bool| {
        let mut found = Vec::new();
        while !(is_helper && processors::are_overloaded()) {
            let number = next.fetch_add(1, Relaxed);
            let Some(group) = work.get(number) else { break };
            let Some(group) = group.lock().unwrap_or_else(PoisonError::into_inner).take() else { break };
            let before = all_matched.load(Relaxed);
            let mut matched = before;
            found.push((number, multi_segment::run(group, errors, &mut matched, scratch)));
            all_matched.fetch_add(matched - before, Relaxed);
        }
        found
    };
    let mut found: Vec<(usize, Vec<TopK>)> = Vec::with_capacity(count);
    std::thread::scope(|scope| {
        let help = || {
            let _busy = Busy::begin();
            let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut scratch = spare.unwrap_or_else(Scratch::new);
            let found = take(&mut scratch, true);
            let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < processors::available() {
                spare.push(scratch);
            }
            found
        };
        let spawned: Vec<_> = (0..helpers)
            // Where no thread can be had, this one does all of it.
            .filter_map(|_| {
                let named = std::thread::Builder::new().name("sparrow-search-help".into());
                named.spawn_scoped(scope, help).ok()
            })
            .collect();
        found = take(scratch, false);
        for helper in spawned {
            match helper.join() {
                Ok(of_helper) => found.extend(of_helper),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    *matched = all_matched.into_inner();
    found.sort_unstable_by_key(|(number, _)| *number);
    found.into_iter().flat_map(|(_, tops)| tops).collect()
}
