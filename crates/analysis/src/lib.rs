//! Text analysis after Lucene's: char filters, tokenizers and token filters, and the analyzers made of them.
//!
//! [`Analysis`] is what one index knows; [`Analyzer::tokens`] is the one way from a text to its terms, for
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

/// tantivy's tokenizers, with an analyzer under each name that the schema of an index may have. They are for documents alone, and take
/// what [`Analyzer::packed`] makes of a text where it makes something.
pub fn tokenizers(analysis: &Arc<Analysis>, used: impl Iterator<Item = String>) -> TokenizerManager {
    let manager = TokenizerManager::default();
    for name in used {
        if let Some(analyzer) = analysis.analyzer(&name) {
            manager.register(&tokenizer_name(&name), tokenizer(analyzer));
        }
    }
    manager
}

/// Name under which tantivy knows an analyzer. tantivy has tokenizers of its own, which keep their names.
pub fn tokenizer_name(analyzer: &str) -> String {
    match analyzer {
        "standard" | "english" => analyzer.to_owned(),
        other => format!("a:{other}"),
    }
}

/// The analyzer as a tantivy tokenizer of what [`Analyzer::packed`] makes, or of a text where it makes nothing.
fn tokenizer(analyzer: Arc<Analyzer>) -> TextAnalyzer {
    TextAnalyzer::builder(fast::IndexTokenizer::new(analyzer)).build()
}

#[cfg(test)]
mod tests;
