//! What happens to a text before it is cut into tokens, and where its characters were before.

mod entities;
mod html;
mod mapping;
mod normalize;
mod pattern;

use std::fmt::Debug;
use std::sync::Arc;

use super::error::AnalysisError;
use super::params::Params;
use html::HtmlStrip;
use mapping::Mapping;
use normalize::Persian;
use pattern::PatternReplace;

/// Changes a text and keeps account of its offsets.
pub(super) trait CharFilter: Debug + Send + Sync {
    /// What comes back is of no use when `is_stopped` says yes meanwhile: then it does not go on.
    fn filter(&self, text: &str, is_stopped: &dyn Fn() -> bool) -> Filtered;

    /// Whether it works on single characters, so that a normalizer may have it.
    fn normalizes(&self) -> bool {
        false
    }
}

/// A changed text.
#[derive(Debug)]
pub(super) struct Filtered {
    pub text: String,
    pub offsets: OffsetMap,
}

/// From offsets in a changed text to offsets in the one before, in bytes.
#[derive(Debug, Default)]
pub(super) struct OffsetMap(Vec<Anchor>);

#[derive(Debug, Clone, Copy)]
struct Anchor {
    /// Offset in the changed text from which it holds.
    at: usize,
    /// Offset in the text before.
    before: usize,
    /// Whether later offsets move along, up to the next anchor.
    moves: bool,
}

impl OffsetMap {
    /// Where `offset` was before the change.
    pub fn correct(&self, offset: usize) -> usize {
        match self.0.partition_point(|anchor| anchor.at <= offset).checked_sub(1).map(|at| self.0[at]) {
            None => offset,
            Some(Anchor { at, before, moves: true }) => before + (offset - at),
            Some(Anchor { before, .. }) => before,
        }
    }

    /// Bytes that the notes take.
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Anchor>()
    }

    /// Notes that bytes of `before` became `length` bytes at `at`. Notes come in the order of the text.
    fn replaced(&mut self, at: usize, length: usize, before: std::ops::Range<usize>, last: usize) {
        if length == before.len() {
            return;
        }
        if length > before.len() {
            // What is more than was there points to the last character that was.
            self.0.push(Anchor { at: at + before.len(), before: before.end - last, moves: false });
        }
        self.0.push(Anchor { at: at + length, before: before.end, moves: true });
    }
}

/// Length of the last character of `text[range]`, 0 for an empty range.
fn last_len(text: &str, range: &std::ops::Range<usize>) -> usize {
    text[range.clone()].chars().next_back().map_or(0, char::len_utf8)
}

/// The char filter that a definition without parameters names, or that `type` names with them.
pub(super) fn build(kind: &str, params: &Params<'_>) -> Result<Option<Arc<dyn CharFilter>>, AnalysisError> {
    let filter: Arc<dyn CharFilter> = match kind {
        "html_strip" | "htmlStrip" => Arc::new(HtmlStrip::new(params)?),
        "mapping" => Arc::new(Mapping::new(params)?),
        "pattern_replace" => Arc::new(PatternReplace::new(params)?),
        "persian" => Arc::new(Persian),
        _ => return Ok(None),
    };
    params.finish()?;
    Ok(Some(filter))
}

/// Char filters that need no parameters and so are there by name.
pub(super) const BUILT_IN: &[&str] = &["html_strip", "htmlStrip", "persian"];

/// The char filter of the `persian` analyzer.
pub(super) fn persian() -> Arc<dyn CharFilter> {
    Arc::new(Persian)
}
