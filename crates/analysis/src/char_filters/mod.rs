//! Char filters, which change a text before it is split into tokens and keep track of the original offsets.

mod entities;
mod filter;
mod html;
mod mapping;
mod normalize;
mod pattern;

use std::sync::Arc;

use super::error::AnalysisError;
use super::params::Params;
pub(super) use filter::{CharFilter, OffsetMap};
use html::HtmlStrip;
use mapping::Mapping;
use normalize::Persian;
use pattern::PatternReplace;

/// Builds a char filter of the given type; `None` if there is no such type.
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

/// Types of char filters that can be used by name, as they need no parameters.
pub(super) const BUILT_IN: &[&str] = &["html_strip", "htmlStrip", "persian"];

/// The char filter of the `persian` analyzer, which replaces zero-width non-joiners by spaces.
pub(super) fn persian() -> Arc<dyn CharFilter> {
    Arc::new(Persian)
}
