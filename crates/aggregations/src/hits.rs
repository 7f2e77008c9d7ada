//! Hits in aggregation results: the interface for loading their documents, and their sort values.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::ast::{HitOrderBy, TopHits};
use super::error::AggregationError;
use super::fields::{Kind, Resolved};
use super::key::Key;
use super::partial::{TopHit, TopList};

/// Reads documents for `top_hits`.
pub trait HitWriter {
    /// The `hits` object of the response for one bucket; `sort` holds the JSON sort values of each hit.
    ///
    /// # Errors
    /// If a document cannot be read.
    fn write(
        &mut self,
        top: &TopHits,
        list: &TopList,
        sort: &[Vec<Value>],
    ) -> Result<Value, AggregationError>;
}

/// The sort values of a hit, as JSON.
pub fn sort_values(top: &TopHits, hit: &TopHit, fields: &FxHashMap<usize, &Resolved>) -> Vec<Value> {
    let mut values = Vec::with_capacity(top.sort.len());
    for (key, value) in top.sort.iter().zip(&hit.sort) {
        values.push(match (&key.by, value) {
            (HitOrderBy::Score, _) => {
                // The digits of a float, not those of the double that equals it.
                hit.score.to_string().parse::<f64>().map_or(Value::Null, Value::from)
            }
            (HitOrderBy::Doc, _) => hit.seq_no.into(),
            (HitOrderBy::Field(_), Key::Text(text)) => match fields.get(&key.id) {
                Some(field) => Value::from(&*field.format.keyword(text)),
                None => Value::from(&**text),
            },
            (HitOrderBy::Field(_), Key::Long(value)) => match fields.get(&key.id).map(|field| field.kind) {
                Some(Kind::Boolean) => Value::Bool(*value != 0),
                _ => (*value).into(),
            },
            (HitOrderBy::Field(_), Key::Unsigned(value)) => (*value).into(),
            (HitOrderBy::Field(_), Key::Double(bits)) => f64::from_bits(*bits).into(),
            (HitOrderBy::Field(_), _) => Value::Null,
        });
    }
    values
}
