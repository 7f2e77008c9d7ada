//! Keys of filter clauses under which a segment caches their results.

use serde_json::Value;

use crate::query::kinds::meaning;
use sparrow_query::Query;

/// A key that is equal only for clauses that match the same documents of any segment under the same mapping.
/// `None` for clauses that are not worth caching, or whose matches depend on something else: the current time
/// (`now`) or other segments (fuzzy terms, nearest neighbours, pruned tokens).
///
/// Boosts and names are left out, since a filter has no score. Compound clauses have no key: their parts
/// have.
pub(crate) fn filter_key(query: &Query, mapping_epoch: u64) -> Option<Vec<u8>> {
    let mut key = Key(Vec::with_capacity(64));
    key.0.extend(mapping_epoch.to_le_bytes());
    meaning(&query.kind).filter_key(&mut key)?;
    Some(key.0)
}

/// Whether the text is date math that depends on the time.
fn is_relative(text: &str) -> bool {
    text.starts_with("now")
}

/// The bytes of a key.
pub(crate) struct Key(Vec<u8>);

impl Key {
    pub(crate) fn tag(&mut self, tag: u8) -> &mut Self {
        self.0.push(tag);
        self
    }

    pub(crate) fn flag(&mut self, flag: bool) -> &mut Self {
        self.tag(u8::from(flag))
    }

    /// Appends a text preceded by its length, so that adjacent texts stay distinct.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.0.extend(text.len().to_le_bytes());
        self.0.extend(text.as_bytes());
        self
    }

    /// As [`Key::text`]; `None` for date math that depends on the time.
    pub(crate) fn text_value(&mut self, text: &str) -> Option<&mut Self> {
        if is_relative(text) { None } else { Some(self.text(text)) }
    }

    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    pub(crate) fn option(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            None => self.flag(false),
            Some(text) => self.flag(true).text(text),
        }
    }

    pub(crate) fn value(&mut self, value: Option<&Value>) -> Option<&mut Self> {
        Some(match value {
            None => self.tag(0),
            Some(Value::String(text)) if is_relative(text) => return None,
            Some(Value::String(text)) => self.tag(1).text(text),
            Some(Value::Number(number)) => self.tag(2).text(&number.to_string()),
            Some(Value::Bool(flag)) => self.tag(3).flag(*flag),
            Some(Value::Null) => self.tag(4),
            // An error, which is found when the clause is compiled.
            Some(Value::Array(_) | Value::Object(_)) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use sparrow_query::{ExistsQuery, MatchQuery, QueryKind, RangeQuery, TermQuery, TermsQuery};

    fn term(field: &str, value: Value) -> Query {
        QueryKind::Term(TermQuery { field: field.to_owned(), value, case_insensitive: false }).into()
    }

    fn range(gte: Option<Value>, lte: Option<Value>) -> Query {
        QueryKind::Range(RangeQuery { field: "n".to_owned(), gte, lte, ..RangeQuery::default() }).into()
    }

    #[test]
    fn clauses_with_other_documents_have_other_keys() {
        let terms = |field: &str, values: &[&str]| -> Query {
            let values = values.iter().map(|value| json!(value)).collect();
            QueryKind::Terms(TermsQuery { field: field.to_owned(), values }).into()
        };
        let different = [
            term("a", json!("b")),
            term("ab", json!("")),
            term("a", json!("bc")),
            term("a", json!(1)),
            term("a", json!("1")),
            term("a", json!(true)),
            terms("a", &["b"]),
            terms("a", &["b", "c"]),
            terms("a", &["bc"]),
            range(Some(json!(1)), None),
            range(None, Some(json!(1))),
            range(Some(json!(1)), Some(json!(1))),
            QueryKind::Exists(ExistsQuery { field: "a".to_owned() }).into(),
        ];
        let keys: Vec<_> = different.iter().map(|query| filter_key(query, 0).unwrap()).collect();
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{:?}", different[at]);
        }
        assert_ne!(filter_key(&different[0], 1), filter_key(&different[0], 0));
    }

    #[test]
    fn boosts_and_names_do_not_count() {
        let mut named = term("a", json!("b")).with_boost(3.0);
        named.name = Some("filter".to_owned());
        assert_eq!(filter_key(&named, 7), filter_key(&term("a", json!("b")), 7));
    }

    #[test]
    fn what_depends_on_the_time_has_no_key() {
        assert!(filter_key(&range(Some(json!("now-1d")), None), 0).is_none());
        assert!(filter_key(&term("day", json!("now/d")), 0).is_none());
        let text = MatchQuery { field: "day".to_owned(), text: "now".to_owned(), ..MatchQuery::default() };
        assert!(filter_key(&QueryKind::Match(text).into(), 0).is_none());
    }
}
