//! Locates a mapped field in the tantivy index: the terms of its values.

use tantivy::Term;
use tantivy::columnar::NumericalValue;
use tantivy::schema::{Field, IndexRecordOption};

use sparrow_mapping::NumberValue;
use sparrow_segments::schema::{IndexSchema, flat_key};
pub use sparrow_segments::schema::{keyword_column, number_column, open_columns};

/// The term of a number in the inverted index, where whole numbers are `i64` if they fit, whatever type they
/// were written with.
pub fn number_term(schema: &IndexSchema, path: &str, value: NumberValue) -> Term {
    let mut term = Term::from_field_json_path(schema.numbers, &flat_key(path), false);
    let value = match value {
        NumberValue::Bool(value) => {
            term.append_type_and_fast_value(value);
            return term;
        }
        NumberValue::I64(value) => NumericalValue::I64(value),
        NumberValue::U64(value) => NumericalValue::U64(value),
        NumberValue::F64(value) => NumericalValue::F64(value),
    };
    match value.normalize() {
        NumericalValue::I64(value) => term.append_type_and_fast_value(value),
        NumericalValue::U64(value) => term.append_type_and_fast_value(value),
        NumericalValue::F64(value) => term.append_type_and_fast_value(value),
    }
    term
}

/// The string terms of one mapped field: a text field's own, or a keyword's share of `_kw`.
#[derive(Debug, Clone)]
pub struct StringTerms {
    /// The tantivy field that holds the terms.
    pub field: Field,
    /// Path of the mapped field.
    pub path: String,
    pub(crate) keyword: bool,
}

impl StringTerms {
    /// The terms of a text field.
    pub fn text(field: Field, path: &str) -> Self {
        Self { field, path: path.to_owned(), keyword: false }
    }

    /// The terms of a keyword field.
    pub fn keyword(schema: &IndexSchema, path: &str) -> Self {
        Self { field: schema.keywords, path: path.to_owned(), keyword: true }
    }

    /// The term of a value in the inverted index.
    pub fn term(&self, value: &str) -> Term {
        if self.keyword {
            let mut term = Term::from_field_json_path(self.field, &flat_key(&self.path), false);
            term.append_type_and_str(value);
            term
        } else {
            Term::from_field_text(self.field, value)
        }
    }

    /// The bytes with which all keys of this field begin in the term dictionary; the value follows.
    pub fn key_prefix(&self) -> Vec<u8> {
        self.term("").serialized_value_bytes().to_vec()
    }

    /// How much of the postings is needed for scoring: a keyword needs no term frequencies.
    pub fn record_option(&self) -> IndexRecordOption {
        if self.keyword { IndexRecordOption::Basic } else { IndexRecordOption::WithFreqs }
    }
}
