//! Clauses on `_index`, which match all documents of an index or none.

use serde_json::Value;

use super::multi_term::Wildcard;
use sparrow_query::{MatchQuery, QueryKind};

/// Whether a clause on `_index` matches the index of this name; `None` if the clause is on another field, or
/// of a kind that `_index` does not support.
pub(super) fn matches(kind: &QueryKind, name: &str) -> Option<bool> {
    let equal = |value: &Value, folded: bool| match value {
        Value::String(text) if folded => text.eq_ignore_ascii_case(name),
        Value::String(text) => text == name,
        _ => false,
    };
    Some(match kind {
        QueryKind::Term { field, value, case_insensitive } if field == INDEX => {
            equal(value, *case_insensitive)
        }
        QueryKind::Terms { field, values } if field == INDEX => {
            values.iter().any(|value| equal(value, false))
        }
        QueryKind::Match(MatchQuery { field, text, .. }) if field == INDEX => text == name,
        QueryKind::Prefix { field, value, case_insensitive, .. } if field == INDEX => {
            match name.get(..value.len()) {
                Some(start) if *case_insensitive => start.eq_ignore_ascii_case(value),
                Some(start) => start == value,
                None => false,
            }
        }
        QueryKind::Wildcard { field, value, case_insensitive, .. } if field == INDEX => {
            Wildcard::new(value).matches(name, *case_insensitive)
        }
        _ => return None,
    })
}

const INDEX: &str = "_index";
