//! Limits for the work of processors on documents: the bytes that they add, how often they run, and the time that regular expressions take.
//! Without them, a pipeline of ten processors could produce ten gigabytes, and ten pipelines that call one another could run for years.

use std::cell::Cell;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::Value;
use sparrow_runtime::work;

use super::error::ProcessorError;

/// Most bytes that processors may add to one document; bytes that they replace or remove are subtracted.
pub(crate) const MOST_ADDED: usize = 64 << 20;
/// Most bytes that processors may add to all documents of one run, and to the response of `_simulate?verbose`.
pub(crate) const MOST_ADDED_TOGETHER: usize = 512 << 20;
/// Most bytes of a text that a processor builds.
pub(crate) const MOST_TEXT: usize = 128 << 20;
/// Times that a processor may run on one document, in all pipelines together and for every element of a `foreach`. Running on a large
/// document counts more than once: see [`STEP_BYTES`].
const MOST_STEPS: u64 = 1_000_000;
/// Most runs of processors on all documents of a batch together, in addition to [`STEPS_EACH`] for each document.
const MOST_STEPS_TOGETHER: u64 = 10_000_000;
/// Steps of each document that do not count towards [`MOST_STEPS_TOGETHER`].
const STEPS_EACH: u64 = 100;
/// Number of runs after which the size of the document is measured again.
const WEIGHED_AFTER: u64 = 1000;
/// Size in bytes: for each time that a document is as large, a run on it counts once more.
const STEP_BYTES: usize = 64 << 10;
/// Most pipelines that may be nested, as in Elasticsearch.
pub(crate) const MOST_PIPELINES: usize = 100;
/// Longest time that regular expressions may take for one document.
const MATCHING: Duration = Duration::from_secs(10);
/// Longest time that regular expressions may take for all documents of one request; it does not apply to background tasks.
const MATCHING_TOGETHER: Duration = Duration::from_secs(30);
/// Number of matches after which the time is checked.
const MATCHES_BETWEEN: usize = 16;

/// Approximate size of a value in memory, in bytes.
pub(crate) fn weight(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(members) => members.iter().map(|(name, value)| name.len() + weight(value)).sum(),
            _ => 0,
        }
}

/// The runs of processors on one document, and how much the next one counts.
#[derive(Debug, Default)]
pub(crate) struct DocumentSteps {
    taken: u64,
    cost: u64,
}

/// What one run may still do to all its documents: steps, and bytes that it has added to them.
#[derive(Debug)]
pub(crate) struct RunBudget {
    added: Cell<usize>,
    steps_left: Cell<u64>,
}

impl RunBudget {
    /// Before a run of this many documents.
    pub fn new(documents: usize) -> Self {
        let each = STEPS_EACH.saturating_mul(documents as u64);
        Self { added: Cell::new(0), steps_left: Cell::new(MOST_STEPS_TOGETHER.saturating_add(each)) }
    }

    /// Counts one run of a processor on a document that takes `size` bytes.
    ///
    /// # Errors
    /// If the document, or all of them, have had enough.
    pub fn step(
        &self,
        steps: &mut DocumentSteps,
        size: impl FnOnce() -> usize,
    ) -> Result<(), ProcessorError> {
        if steps.taken.is_multiple_of(WEIGHED_AFTER) {
            steps.cost = match steps.taken {
                0 => 1,
                _ => 1 + (size() / STEP_BYTES) as u64,
            };
        }
        let taken = steps.taken + steps.cost;
        // Rounds over what is looked at only once in a while.
        steps.taken = match taken / WEIGHED_AFTER > steps.taken / WEIGHED_AFTER {
            true => taken / WEIGHED_AFTER * WEIGHED_AFTER,
            false => taken,
        };
        let left = self.steps_left.get();
        if steps.taken > MOST_STEPS || left < steps.cost {
            return Err(ProcessorError::TooManySteps { limit: MOST_STEPS });
        }
        self.steps_left.set(left - steps.cost);
        Ok(())
    }

    /// Counts the bytes added to a document, `after − before`.
    ///
    /// # Errors
    /// If more than [`MOST_ADDED_TOGETHER`] bytes have been added to all documents.
    pub fn grow(&self, before: isize, after: isize) -> Result<(), ProcessorError> {
        let added = self.added.get().saturating_add_signed(after - before);
        self.added.set(added);
        match added > MOST_ADDED_TOGETHER {
            true => Err(ProcessorError::TooMuchTogether { limit: MOST_ADDED_TOGETHER }),
            false => Ok(()),
        }
    }
}

/// The moment when matching must end, and the limit of time from which it follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub at: Instant,
    pub limit: Duration,
}

/// The time that regular expressions still have for one document.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Matching {
    spent: Duration,
}

impl Matching {
    /// Runs `matching` with the moment when it must end, and adds the time that it takes.
    ///
    /// # Errors
    /// The error of `matching`.
    pub fn until<T>(
        &mut self,
        matching: impl FnOnce(End) -> Result<T, ProcessorError>,
    ) -> Result<T, ProcessorError> {
        let now = Instant::now();
        let document = MATCHING.saturating_sub(self.spent);
        let request = MATCHING_TOGETHER.saturating_sub(work::time_spent());
        let end = match document <= request {
            true => End { at: now + document, limit: MATCHING },
            false => End { at: now + request, limit: MATCHING_TOGETHER },
        };
        let result = matching(end);
        let took = now.elapsed();
        self.spent += took;
        work::spend_time(took);
        result
    }
}

/// Checks the time, and whether the request was cancelled, at every [`MATCHES_BETWEEN`]th match.
fn check_time(matches: usize, end: End) -> Result<(), ProcessorError> {
    if !matches.is_multiple_of(MATCHES_BETWEEN) {
        return Ok(());
    }
    work::check()?;
    match Instant::now() > end.at {
        true => Err(ProcessorError::Matching { milliseconds: end.limit.as_millis() as u64 }),
        false => Ok(()),
    }
}

/// Replaces all matches of a regular expression in a text.
///
/// # Errors
/// If it would be too long, or it takes too long.
pub(crate) fn replace_all(
    regex: &Regex,
    text: &str,
    replacement: &str,
    end: End,
) -> Result<String, ProcessorError> {
    let references = replacement.matches('$').count();
    let mut out = String::new();
    let mut last = 0;
    for (number, captures) in regex.captures_iter(text).enumerate() {
        check_time(number, end)?;
        let Some(whole) = captures.get(0) else { continue };
        out.push_str(&text[last..whole.start()]);
        // No group is longer than the whole match.
        room(out.len(), references.saturating_mul(whole.len()).saturating_add(replacement.len()))?;
        captures.expand(replacement, &mut out);
        last = whole.end();
    }
    room(out.len(), text.len() - last)?;
    out.push_str(&text[last..]);
    Ok(out)
}

/// Splits a text at the matches of a regular expression.
///
/// # Errors
/// If there are too many, or it takes too long.
pub(crate) fn split<'t>(regex: &Regex, text: &'t str, end: End) -> Result<Vec<&'t str>, ProcessorError> {
    let mut parts = Vec::new();
    for (number, part) in regex.split(text).enumerate() {
        check_time(number, end)?;
        room(number.saturating_mul(size_of::<Value>()), 0)?;
        parts.push(part);
    }
    Ok(parts)
}

/// Whether a text of `length` bytes may have `more`.
///
/// # Errors
/// If it would be longer than [`MOST_TEXT`], or the request has no memory for so many more.
pub(crate) fn room(length: usize, more: usize) -> Result<(), ProcessorError> {
    if length.saturating_add(more) > MOST_TEXT {
        return Err(ProcessorError::TooLong { limit: MOST_TEXT });
    }
    Ok(work::room_for(more)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_documents_take_more_steps() {
        let budget = RunBudget::new(1);
        let run = |size: usize| {
            let mut steps = DocumentSteps::default();
            (0..).take_while(|_| budget.step(&mut steps, || size).is_ok()).count()
        };
        assert_eq!(run(0), MOST_STEPS as usize);
        let large = run(64 << 20);
        assert!((1000..4000).contains(&large), "{large}");
    }

    #[test]
    fn a_run_has_an_end_for_all_its_documents_together() {
        let budget = RunBudget::new(3);
        let mut taken = 0;
        for _ in 0..20 {
            let mut steps = DocumentSteps::default();
            taken += (0..).take_while(|_| budget.step(&mut steps, || 0).is_ok()).count();
        }
        assert_eq!(taken as u64, MOST_STEPS_TOGETHER + 3 * STEPS_EACH);
    }

    #[test]
    fn expressions_have_a_time_for_all_documents_of_a_request() {
        let regex = Regex::new(".").unwrap();
        let split_one =
            || Matching::default().until(|end| split(&regex, "abc", end).map(|parts| parts.len()));
        let memory = std::sync::Arc::new(work::Memory::new(usize::MAX, usize::MAX));
        let _entered = work::enter(Some(work::Work::new(std::sync::Arc::default(), memory, "<test>")));
        work::spend_time(MATCHING_TOGETHER - Duration::from_secs(1));
        assert_eq!(split_one().unwrap(), 4);
        work::spend_time(Duration::from_secs(1));
        // A document of its own would have ten seconds more.
        assert!(matches!(split_one(), Err(ProcessorError::Matching { milliseconds: 30_000 })));
    }

    #[test]
    fn replacing_stops_where_a_text_becomes_too_long() {
        let regex = Regex::new(".").unwrap();
        let end = End { at: Instant::now() + Duration::from_secs(60), limit: MATCHING };
        assert_eq!(replace_all(&regex, "abc", "<$0$0>", end).unwrap(), "<aa><bb><cc>");
        let error = replace_all(&regex, &"a".repeat(1000), &"x".repeat(1 << 20), end).unwrap_err();
        assert!(matches!(error, ProcessorError::TooLong { .. }));
        let late = End { at: Instant::now() - Duration::from_secs(1), limit: MATCHING };
        assert!(matches!(replace_all(&regex, "a", "b", late), Err(ProcessorError::Matching { .. })));
        assert!(matches!(split(&regex, "a", late), Err(ProcessorError::Matching { .. })));
        // Nobody waits for it any more.
        let memory = std::sync::Arc::new(work::Memory::new(usize::MAX, usize::MAX));
        let stop = std::sync::Arc::new(true.into());
        let _entered = work::enter(Some(work::Work::new(stop, memory, "<test>")));
        let stopped = replace_all(&regex, "a", "b", end);
        assert!(matches!(stopped, Err(ProcessorError::Model(sparrow_inference::ModelError::Cancelled))));
    }
}
