//! `nested`: as there are no nested documents, it is an error that names the path, or matches nothing.

use tantivy::query::Weight;

use super::Meaning;
use crate::query::compile::Compiler;
use crate::query::error::QueryError;
use crate::query::kinds::no_words;
use crate::query::weights;
use sparrow_query::NestedQuery;

impl Meaning for NestedQuery {
    fn compile(&self, _: &mut Compiler<'_>, _: bool) -> Result<Box<dyn Weight>, QueryError> {
        match self.ignore_unmapped {
            true => Ok(weights::none()),
            false => Err(QueryError::NestedPath { path: self.path.clone() }),
        }
    }

    no_words!();
}
