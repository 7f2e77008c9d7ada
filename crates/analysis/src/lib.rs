//! Text analysis modelled on Lucene: char filters, tokenizers and token filters, and the analyzers composed of them.
//!
//! [`Analysis`] holds what one index defines; [`Analyzer::tokens`] is the only way from a text to its terms, for
//! documents and queries alike.

mod built_in;
mod chain;
mod char_filters;
mod error;
mod fast;
mod filters;
mod languages;
mod light;
mod params;
mod pattern;
mod porter;
mod registry;
mod similarity;
mod token;
mod tokenizers;
mod trial;
mod unicode;
mod words;

use std::sync::Arc;

use tantivy::tokenizer::{TextAnalyzer, TokenizerManager};

pub use chain::{Analyzer, Detail, POSITION_INCREMENT_GAP, Step};
pub use error::AnalysisError;
pub use pattern::JavaPattern;
pub use registry::{Analysis, AnalysisLimits, CustomAnalyzer};
pub use similarity::{StringDistance, edit_distance};
pub use token::{Token, Tokens};
pub use trial::{Trial, Unfinished};

/// Tokenizers for tantivy, one for each analyzer that the index's schema may name in `used`. They serve only the
/// indexing of documents, and expect the output of [`Analyzer::packed`] where an analyzer has one.
pub fn tokenizers(analysis: &Arc<Analysis>, used: impl Iterator<Item = String>) -> TokenizerManager {
    let manager = TokenizerManager::default();
    for name in used {
        if let Some(analyzer) = analysis.analyzer(&name) {
            manager.register(&tokenizer_name(&name), tokenizer(analyzer));
        }
    }
    manager
}

/// Name under which an analyzer is registered with tantivy; prefixed, as tantivy has tokenizers of its own.
pub fn tokenizer_name(analyzer: &str) -> String {
    match analyzer {
        "standard" | "english" => analyzer.to_owned(),
        other => format!("a:{other}"),
    }
}

/// Wraps an analyzer as a tantivy tokenizer, which takes the output of [`Analyzer::packed`] if the analyzer has one,
/// and otherwise the text itself.
fn tokenizer(analyzer: Arc<Analyzer>) -> TextAnalyzer {
    TextAnalyzer::builder(fast::IndexTokenizer::new(analyzer)).build()
}

#[cfg(test)]
mod tests;
