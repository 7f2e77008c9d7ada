//! Clauses `term` and `range` on `ip` fields: IP addresses and networks are compiled to keywords and ranges
//! of them.

use std::net::IpAddr;
use std::ops::Bound;

use serde_json::Value;
use tantivy::query::Weight;

use crate::query::compile::Compiler;
use crate::query::kinds::term::scalar_text;
use sparrow_mapping::ip;
use sparrow_query::RangeQuery;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::fields::StringTerms;
use sparrow_scoring::multi_term::{TermFilter, multi_term};

impl Compiler<'_> {
    /// Compiles to the documents with an IP address, or with any address of a network (`10.0.0.0/8`); without
    /// scores.
    ///
    /// # Errors
    /// [`QueryError::Address`] for other text.
    pub(crate) fn address_term(&mut self, field: &str, text: &str) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        let filter = match text.contains('/') {
            true => {
                let (first, last) = ip::network(text).map_err(|reason| QueryError::Address { reason })?;
                TermFilter::Range(Bound::Included(first), Bound::Included(last))
            }
            false => TermFilter::Set(vec![keyword(text)?]),
        };
        Ok(multi_term(self.addresses(field), filter, false))
    }

    /// Compiles to the documents with an IP address between two bounds; without scores.
    ///
    /// # Errors
    /// As [`Compiler::address_term`].
    pub(crate) fn address_range(&mut self, query: &RangeQuery) -> Result<Box<dyn Weight>, QueryError> {
        let bound =
            |excluded: &Option<Value>, included: &Option<Value>| -> Result<Bound<String>, QueryError> {
                let given = |value: &Option<Value>| match value {
                    None | Some(Value::Null) => Ok(None),
                    Some(value) => keyword(&scalar_text(&query.field, value)?).map(Some),
                };
                Ok(match (given(excluded)?, given(included)?) {
                    (Some(keyword), _) => Bound::Excluded(keyword),
                    (None, Some(keyword)) => Bound::Included(keyword),
                    (None, None) => Bound::Unbounded,
                })
            };
        let filter = TermFilter::Range(bound(&query.gt, &query.gte)?, bound(&query.lt, &query.lte)?);
        Ok(multi_term(self.addresses(&query.field), filter, false))
    }

    /// The terms of an address field, or of the one that `field` is an alias of.
    fn addresses(&self, field: &str) -> StringTerms {
        StringTerms::keyword(self.snapshot.schema(), &self.snapshot.mapping().concrete(field))
    }
}

fn keyword(text: &str) -> Result<String, QueryError> {
    address(text).map(ip::keyword)
}

pub(crate) fn address(text: &str) -> Result<IpAddr, QueryError> {
    ip::parse(text).ok_or_else(|| QueryError::Address { reason: ip::not_an_address(text) })
}
