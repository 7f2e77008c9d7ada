//! Clauses for exact values: `term`, `terms`, `exists`, and `match` on fields that are not text.

use serde_json::Value;
use tantivy::Term;
use tantivy::query::Weight;
use tantivy::schema::IndexRecordOption;

use super::bits::DocBits;
use super::compile::Compiler;
use super::error::QueryError;
use super::fields::term_weight;
use super::multi_term::{TermFilter, Wildcard, multi_term};
use super::weights;
use sparrow_mapping::{FieldType, IGNORED};
use sparrow_query::RangeQuery;
use sparrow_segments::schema::ID;

/// Highest number of values in one `terms` clause (`index.max_terms_count`).
const MAX_TERMS: usize = 65_536;

impl Compiler<'_> {
    pub(super) fn term(
        &mut self,
        field: &str,
        value: &Value,
        case_insensitive: bool,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        let text = self.term_text(field, value)?;
        let Some(terms) = self.string_terms(field) else {
            return self.match_other(field, &text, false, scoring);
        };
        if field == ID {
            let set = multi_term(terms, TermFilter::Set(vec![text]), false);
            return Ok(weights::constant(set, 1.0, scoring));
        }
        if case_insensitive {
            let set = multi_term(terms, TermFilter::Set(vec![text]), true);
            return Ok(weights::constant(set, 1.0, scoring));
        }
        let statistics = self.statistics(&terms, scoring)?;
        term_weight(self.searcher(), statistics, &terms, &text, None)
    }

    /// Compiles to the documents with one exact value, of which every one will be read; without scores.
    pub(super) fn whole_term(
        &mut self,
        field: &str,
        value: &Value,
        case_insensitive: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        if let Some(terms) = self.string_terms(field) {
            self.count_clause()?;
            let set = TermFilter::Set(vec![self.term_text(field, value)?]);
            return Ok(multi_term(terms, set, case_insensitive && field != ID));
        }
        let number = match self.snapshot.mapping().field(field) {
            Some(FieldType::Ip) => return self.address_term(field, &scalar_text(field, value)?),
            Some(field_type) if field_type.is_integer() || field_type.is_float() => field_type.clone(),
            Some(FieldType::Boolean) => FieldType::Boolean,
            _ => return self.term(field, value, case_insensitive, false),
        };
        self.count_clause()?;
        let Some(term) = self.number_key(field, &number, &scalar_text(field, value)?)? else {
            return Ok(weights::none());
        };
        Ok(weights::bits(move |reader| {
            let mut docs = DocBits::empty(reader.max_doc());
            let inverted = reader.inverted_index(term.field())?;
            if let Some(mut postings) = inverted.read_block_postings(&term, IndexRecordOption::Basic)? {
                docs.insert_postings(&mut postings);
            }
            Ok(docs)
        }))
    }

    pub(super) fn terms(&mut self, field: &str, values: &[Value]) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        if values.len() > MAX_TERMS {
            return Err(QueryError::TooManyTerms { count: values.len(), limit: MAX_TERMS });
        }
        if let Some(terms) = self.string_terms(field) {
            let mut texts = Vec::with_capacity(values.len());
            for value in values {
                texts.push(self.term_text(field, value)?);
            }
            return Ok(multi_term(terms, TermFilter::Set(texts), false));
        }
        let mut clauses = Vec::with_capacity(values.len());
        for value in values {
            let text = scalar_text(field, value)?;
            clauses.push(self.match_other(field, &text, false, false)?);
        }
        Ok(match clauses.len() {
            0 => weights::none(),
            1 => clauses.remove(0),
            _ => super::text::should(clauses, 1, false),
        })
    }

    pub(super) fn exists(&mut self, pattern: &str) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        if pattern == "*" || matches!(pattern, ID | sparrow_segments::schema::SEQ_NO | "_index") {
            return Ok(weights::all(1.0, false));
        }
        let wildcard = pattern.contains('*').then(|| Wildcard::new(pattern));
        let object = format!("{pattern}.");
        let wanted: Vec<String> = self
            .snapshot
            .mapping()
            .leaf_fields()
            .map(|(path, _)| path)
            .chain((pattern == IGNORED).then_some(IGNORED))
            .filter(|path| match &wildcard {
                Some(wildcard) => wildcard.matches(path, false),
                None => *path == pattern || path.starts_with(&object),
            })
            .map(Into::into)
            .collect();
        if wanted.is_empty() {
            return Ok(weights::none());
        }
        let field_names = self.snapshot.schema().field_names;
        Ok(weights::bits(move |reader| {
            let inverted = reader.inverted_index(field_names)?;
            let mut docs = DocBits::empty(reader.max_doc());
            for path in &wanted {
                let term = Term::from_field_text(field_names, path);
                if let Some(mut postings) = inverted.read_block_postings(&term, IndexRecordOption::Basic)? {
                    docs.insert_postings(&mut postings);
                }
            }
            Ok(docs)
        }))
    }

    /// Compiles `term` or `match` on a field without string terms. With `lenient`, a value of the wrong type
    /// matches nothing instead of being an error.
    pub(super) fn match_other(
        &mut self,
        field: &str,
        text: &str,
        lenient: bool,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let matched = match self.snapshot.mapping().field(field) {
            None => Ok(weights::none()),
            Some(FieldType::SparseVector | FieldType::RankFeatures) if !lenient => {
                return self.sparse(&sparrow_query::SparseQuery {
                    field: field.to_owned(),
                    tokens: vec![(text.into(), 1.0)],
                    pruning: sparrow_query::Pruning::Off,
                    origin: sparrow_query::SparseOrigin::WeightedTokens,
                });
            }
            Some(FieldType::Ip) => self.address_term(field, text),
            Some(FieldType::Date { .. }) => {
                let value = Some(Value::String(text.to_owned()));
                let day = RangeQuery {
                    field: field.to_owned(),
                    gte: value.clone(),
                    lte: value,
                    ..RangeQuery::default()
                };
                self.date_range(&day, false)
            }
            Some(field_type) => {
                let field_type = field_type.clone();
                self.number_term(field, &field_type, text)
            }
        };
        match matched {
            Ok(weight) => Ok(weights::constant(weight, 1.0, scoring)),
            Err(error) if lenient && error.is_about_a_value() => Ok(weights::none()),
            Err(error) => Err(error),
        }
    }
}

/// The text of a scalar value: `term` accepts numbers and booleans in place of strings.
pub(super) fn scalar_text(field: &str, value: &Value) -> Result<String, QueryError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(QueryError::NotAValue { field: field.to_owned() })
        }
    }
}
