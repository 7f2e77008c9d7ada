//! Clauses `range`, `term` and `match` on fields whose values are ranges themselves.

use std::ops::RangeInclusive;

use serde_json::Value;
use tantivy::query::Weight;

use crate::query::compile::Compiler;
use crate::query::kinds::term::scalar_text;
use crate::query::values::addresses::address;
use crate::query::values::numeric::{number, whole_bounds, whole_interval};
use sparrow_mapping::{FieldType, NumberValue, range};
use sparrow_query::{RangeQuery, Relation};
use sparrow_scoring::error::QueryError;
use sparrow_scoring::fields::StringTerms;
use sparrow_scoring::multi_term::{TermFilter, multi_term};
use sparrow_scoring::weights;

impl Compiler<'_> {
    /// Compiles to the documents with a range of values of the type `of` that is related to the asked one; without scores.
    pub(crate) fn range_of_ranges(
        &mut self,
        query: &RangeQuery,
        of: &FieldType,
        in_range: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let all = range::bounds(of);
        let Some((lower, upper)) = self.asked(query, of, in_range)? else { return Ok(weights::none()) };
        let (begins, ends) = match query.relation {
            Relation::Intersects => (*all.start()..=upper, lower..=*all.end()),
            Relation::Contains => (*all.start()..=lower, upper..=*all.end()),
            Relation::Within => (lower..=*all.end(), *all.start()..=upper),
        };
        let digits =
            |ranks: RangeInclusive<u128>| range::digits(of, *ranks.start())..=range::digits(of, *ranks.end());
        let path = self.snapshot.mapping().concrete(&query.field);
        let terms = StringTerms::keyword(self.snapshot.schema(), &path);
        Ok(multi_term(terms, TermFilter::Halves(digits(begins), digits(ends)), false))
    }

    /// The places of the smallest and the largest value that the query asks for; `None` if no value can match.
    fn asked(
        &self,
        query: &RangeQuery,
        of: &FieldType,
        in_range: bool,
    ) -> Result<Option<(u128, u128)>, QueryError> {
        let (least, most) = range::bounds(of).into_inner();
        let place = |value: i128| range::rank(of, NumberValue::I64(value as i64));
        let whole = |lower: i128, upper: i128, bounds: RangeInclusive<i128>| {
            let (lower, upper) = (lower.max(*bounds.start()), upper.min(*bounds.end()));
            (lower <= upper).then(|| (place(lower), place(upper)))
        };
        let places = match of {
            FieldType::Date { .. } => {
                let dates = self.date_bounds(query, in_range)?;
                return Ok(dates.and_then(|(lower, upper)| {
                    whole(lower, upper, i128::from(i64::MIN)..=i128::from(i64::MAX))
                }));
            }
            whole_number if whole_number.is_integer() => {
                let (lower, upper) = whole_interval(query)?;
                return Ok(whole(lower, upper, whole_bounds(of)));
            }
            FieldType::Ip => |text: &str| Ok(range::rank_of_address(address(text)?)),
            FieldType::Float => {
                |text: &str| Ok(range::rank(&FieldType::Float, NumberValue::F64(number(text)?)))
            }
            _ => |text: &str| Ok(range::rank(&FieldType::Double, NumberValue::F64(number(text)?))),
        } as fn(&str) -> Result<u128, QueryError>;
        let bound = |value: &Option<Value>| -> Result<Option<u128>, QueryError> {
            match value {
                None | Some(Value::Null) => Ok(None),
                Some(value) => places(&scalar_text(&query.field, value)?).map(Some),
            }
        };
        let lower = match (bound(&query.gt)?, bound(&query.gte)?) {
            (Some(after), _) => after.checked_add(1),
            (None, from) => Some(from.unwrap_or(least)),
        };
        let upper = match (bound(&query.lt)?, bound(&query.lte)?) {
            (Some(before), _) => before.checked_sub(1),
            (None, to) => Some(to.unwrap_or(most)),
        };
        Ok(lower.zip(upper).filter(|(lower, upper)| lower <= upper))
    }
}
