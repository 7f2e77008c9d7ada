//! Text analysis modelled on Lucene: char filters, tokenizers and token filters, and the analyzers composed of them.
//!
//! [`Analysis`] holds what one index defines; [`Analyzer::tokens`] is the way from a text to its terms, for documents
//! and queries alike. [`Analyzer::take_terms`] gives the same terms where nothing else of a token is wanted.

mod built_in;
mod chain;
mod char_filters;
mod error;
mod fast;
mod filters;
mod languages;
mod light;
mod params;
mod parts;
mod pattern;
mod porter;
mod registry;
mod similarity;
mod token;
mod tokenizers;
mod trial;
mod unicode;
mod words;

pub use chain::{Analyzer, Detail, POSITION_INCREMENT_GAP, Step};
pub use error::AnalysisError;
pub use pattern::JavaPattern;
pub use registry::{Analysis, AnalysisLimits, CustomAnalyzer, shingles};
pub use similarity::{StringDistance, edit_distance};
pub use token::{Token, Tokens};
pub use trial::{Trial, Unfinished};

/// Name by which the schema of a tantivy index refers to an analyzer; prefixed, as tantivy has tokenizers of its own.
pub fn tokenizer_name(analyzer: &str) -> String {
    match analyzer {
        "standard" | "english" => analyzer.to_owned(),
        other => format!("a:{other}"),
    }
}

#[cfg(test)]
mod tests;
