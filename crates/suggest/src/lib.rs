//! Suggesters: how a search asks for them, and the inputs of documents that complete a text.
//!
//! The terms near the words of a text, which the `term` suggester shows, come from the snapshot itself
//! ([`sparrow_tantivy_index::Snapshot::suggest_terms`]).

mod complete;
mod completion;
mod near_prefix;
mod section;
mod term;
mod values;

pub use complete::{Completed, Completion, CompletionWay, complete};
pub use completion::CompletionSuggester;
pub use near_prefix::FuzzyOptions;
pub use section::{Kind, Suggester, parse, shape};
pub use term::TermSuggester;
