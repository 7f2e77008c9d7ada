//! The terms of fields: where they are in the index and how often, which of them a text, a pattern or a misspelling means, and how
//! they score.

pub(super) mod term_runs;
pub(super) mod term_suggest;
pub(super) mod term_vectors;
pub(super) mod terms_enum;
