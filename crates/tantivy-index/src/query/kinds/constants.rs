//! The queries that match everything or nothing: `match_all`, `match_none`.

use tantivy::query::Weight;

use super::{Explained, Meaning, no_words};
use crate::query::compile::Compiler;
use crate::query::filters::Docs;
use sparrow_query::{MatchAllQuery, MatchNoneQuery};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::weights;
use sparrow_segments::segment_docs::SegmentDocs;

impl Meaning for MatchAllQuery {
    fn compile(&self, _: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        Ok(weights::all(1.0, scoring))
    }

    fn documents(&self, compiler: &mut Compiler<'_>) -> Result<Option<Docs>, QueryError> {
        Ok(Some(compiler.every(SegmentDocs::All)))
    }

    fn explained(&self) -> Explained {
        Explained::Constant
    }

    no_words!();
}

impl Meaning for MatchNoneQuery {
    fn compile(&self, _: &mut Compiler<'_>, _: bool) -> Result<Box<dyn Weight>, QueryError> {
        Ok(weights::none())
    }

    fn documents(&self, compiler: &mut Compiler<'_>) -> Result<Option<Docs>, QueryError> {
        Ok(Some(compiler.every(SegmentDocs::None)))
    }

    no_words!();
}
