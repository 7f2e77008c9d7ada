//! The `pattern_replace` char filter.

use fancy_regex::Regex;

use super::filter::{CharFilter, Filtered, OffsetMap, last_len};
use crate::error::AnalysisError;
use crate::params::Params;
use crate::pattern::{Replacement, compile};

/// Number of matches between two checks of whether the analysis has been stopped.
const MATCHES_BETWEEN: usize = 256;

#[derive(Debug)]
pub(super) struct PatternReplace {
    regex: Regex,
    replacement: Replacement,
}

impl PatternReplace {
    pub fn new(params: &Params<'_>) -> Result<Self, AnalysisError> {
        let pattern = params.text("pattern")?.filter(|pattern| !pattern.is_empty()).ok_or_else(|| {
            AnalysisError::illegal(format!(
                "pattern is missing for [{}] char filter of type 'pattern_replace'",
                params.name
            ))
        })?;
        let regex = compile(&pattern, &params.text("flags")?.unwrap_or_default())?;
        let replacement = Replacement::parse(&params.text("replacement")?.unwrap_or_default(), &regex)?;
        Ok(Self { regex, replacement })
    }
}

impl CharFilter for PatternReplace {
    fn filter(&self, text: &str, is_stopped: &dyn Fn() -> bool) -> Filtered {
        let mut offsets = OffsetMap::default();
        // Length of the output before a match, as the input moves along.
        let mut shift = 0isize;
        let mut matches = 0usize;
        let text = self.replacement.apply(&self.regex, text, |range, length| {
            let at = range.start.saturating_add_signed(shift);
            shift += length as isize - range.len() as isize;
            let last = last_len(text, &range);
            offsets.replaced(at, length, range, last);
            matches += 1;
            !matches.is_multiple_of(MATCHES_BETWEEN) || !is_stopped()
        });
        Filtered { text, offsets }
    }

    fn normalizes(&self) -> bool {
        true
    }
}
