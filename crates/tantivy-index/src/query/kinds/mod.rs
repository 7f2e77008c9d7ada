//! What the kinds of query mean in an index. Their parameters and their JSON are in `crates/query/src/kinds`, in modules of the same
//! names; the families `text` and `query_string` are divided here.
//!
//! A new kind implements [`Meaning`]; without it, [`meaning`] does not compile.

mod compound;
mod constants;
mod decay;
mod features;
pub(super) mod function_score;
pub(super) mod geo;
pub(super) mod intervals;
pub(super) mod knn;
pub(super) mod more_like_this;
pub(super) mod multi_match;
pub(super) mod nested;
pub(super) mod patterns;
pub(super) mod phrase;
pub(super) mod query_string;
pub(super) mod script_score;
pub(super) mod semantic;
pub(super) mod simple_query_string;
pub(super) mod sparse;
pub(super) mod term;
mod terms_set;
pub(super) mod text;

use tantivy::query::Weight;

use crate::query::compile::Compiler;
use crate::query::filters::Docs;
use crate::query::filters::key::Key;
use crate::query::highlight::WantedWords;
use sparrow_query::{Clause, MatchAllQuery, MatchNoneQuery, QueryKind, of_kind};
use sparrow_scoring::error::QueryError;

pub(super) use compound::{only_scoring, required_should};

/// What a clause means in an index.
pub(super) trait Meaning: Clause {
    /// Compiles it to a weight; without `scoring` the weight only finds documents.
    ///
    /// # Errors
    /// When it does not fit its field, or the index cannot be read.
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError>;

    /// As [`Meaning::compile`] without scores, where every match will be read, if there is a faster way for that.
    fn compile_whole(&self, _compiler: &mut Compiler<'_>) -> Result<Option<Box<dyn Weight>>, QueryError> {
        Ok(None)
    }

    /// Whether it matches all documents of the index of this name (`true`) or none, as a clause on `_index` does.
    fn of_index(&self, _name: &str) -> Option<bool> {
        None
    }

    /// The documents that match it, where they follow from those of its parts; `None` where its weight has to find them.
    fn documents(&self, _compiler: &mut Compiler<'_>) -> Result<Option<Docs>, QueryError> {
        Ok(None)
    }

    /// Adds what its documents depend on to the key that they are cached under; `None` if they are not worth caching, or depend on
    /// something else than the segment and the mapping.
    fn filter_key(&self, _key: &mut Key) -> Option<()> {
        None
    }

    /// The score that its hits must have at least, boost included.
    fn min_score(&self) -> Option<f32> {
        None
    }

    /// Collects the words that it looks for in texts.
    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError>;

    /// What explains the score of a document that matches it.
    fn explained(&self) -> Explained {
        Explained::Itself
    }

    /// Why a document does not match it, where its kind has a sentence of its own.
    fn no_match(&self) -> Option<&'static str> {
        None
    }
}

/// What a clause that looks for no words in texts has for [`Meaning::words`]: every kind has to say whether it does.
macro_rules! no_words {
    () => {
        fn words(
            &self,
            _: &mut crate::query::highlight::WantedWords<'_>,
        ) -> Result<(), sparrow_scoring::error::QueryError> {
            Ok(())
        }
    };
}

use no_words;

/// The source of a clause's explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Explained {
    /// The weight of the clause itself.
    Itself,
    /// The printed clause, as it gives all documents the same score.
    Constant,
    /// A fixed sentence; scores may differ between documents.
    Sentence(&'static str),
}

/// What a clause of this kind means.
pub(super) fn meaning(kind: &QueryKind) -> &dyn Meaning {
    of_kind!(kind, query => query, all => &MatchAllQuery, none => &MatchNoneQuery)
}

/// A weight for a clause that gives all that matches the score 1.
fn constant(weight: Box<dyn Weight>, scoring: bool) -> Box<dyn Weight> {
    sparrow_scoring::weights::constant(weight, 1.0, scoring)
}
