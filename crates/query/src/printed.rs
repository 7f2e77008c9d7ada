//! Queries as texts of bounded length, for explanations and profiles.

use std::fmt::{self, Write};

/// Most bytes of a printed query: a clause may contain thousands of terms.
pub const MOST_PRINTED: usize = 1_000;

/// Prints a clause or a query, with an ellipsis after the first [`MOST_PRINTED`] bytes.
pub fn printed(query: &(impl fmt::Display + ?Sized)) -> String {
    let mut text = Bounded(String::new());
    if write!(text, "{query}").is_err() {
        text.0.push('…');
    }
    text.0
}

/// Fails where it would get too long, so that nobody goes on printing.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = MOST_PRINTED - self.0.len();
        if part.len() <= room {
            self.0.push_str(part);
            return Ok(());
        }
        let end = (0..=room).rev().find(|end| part.is_char_boundary(*end)).unwrap_or(0);
        self.0.push_str(&part[..end]);
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{BoolQuery, Query, QueryKind, TermQuery};

    fn term(field: &str, value: serde_json::Value) -> Query {
        QueryKind::Term(TermQuery { field: field.into(), value, case_insensitive: false }).into()
    }

    #[test]
    fn queries_are_printed_as_lucene_writes_them() {
        let inner = BoolQuery { must: vec![term("b", json!("y"))], ..Default::default() };
        let tree = BoolQuery {
            must: vec![term("a", json!("x"))],
            should: vec![term("n", json!(3)).with_boost(2.0)],
            filter: vec![Query::match_all()],
            must_not: vec![QueryKind::Bool(inner).into()],
            ..Default::default()
        };
        assert_eq!(printed(&Query::new(QueryKind::Bool(tree))), "+a:x (n:3)^2.0 #*:* -(+b:y)");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = printed(&term("a", json!("ä".repeat(3000))));
        assert_eq!(text.len(), 1_000 + '…'.len_utf8());
        assert!(text.ends_with("ä…"));
        assert_eq!(printed(&term("a", json!("x".repeat(998)))).len(), 1_000);
    }
}
