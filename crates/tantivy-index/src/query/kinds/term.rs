//! Clauses for exact values: `term`, `terms` and its lookup, `range`, `exists`, `ids`; and `match` on fields that are not text.

use serde_json::Value;
use tantivy::Term;
use tantivy::query::Weight;
use tantivy::schema::IndexRecordOption;

use super::constant;
use crate::query::compile::Compiler;
use crate::query::filters::key::Key;
use crate::query::highlight::WantedWords;
use crate::query::kinds::{Explained, Meaning, no_words};
use sparrow_mapping::{FieldType, IGNORED, ROUTING};
use sparrow_query::wildcard::Wildcard;
use sparrow_query::{ExistsQuery, IdsQuery, RangeQuery, TermQuery, TermsLookupQuery, TermsQuery};
use sparrow_runtime::work;
use sparrow_scoring::bm25::term_weight;
use sparrow_scoring::error::QueryError;
use sparrow_scoring::fields::StringTerms;
use sparrow_scoring::multi_term::{TermFilter, multi_term};
use sparrow_scoring::weights;
use sparrow_segments::schema::{ID, SEQ_NO, VERSION};

/// Highest number of values in one `terms` clause (`index.max_terms_count`).
const MAX_TERMS: usize = 65_536;

impl Compiler<'_> {
    pub(crate) fn term(
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
    pub(crate) fn whole_term(
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
            let mut docs = weights::empty_docs(reader)?;
            let inverted = reader.inverted_index(term.field())?;
            if let Some(mut postings) = inverted.read_block_postings(&term, IndexRecordOption::Basic)? {
                docs.insert_postings(&mut postings);
            }
            Ok(docs)
        }))
    }

    pub(crate) fn terms(&mut self, field: &str, values: &[Value]) -> Result<Box<dyn Weight>, QueryError> {
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
            work::check()?;
            let text = scalar_text(field, value)?;
            clauses.push(self.match_other(field, &text, false, false)?);
        }
        Ok(match clauses.len() {
            0 => weights::none(),
            1 => clauses.remove(0),
            _ => crate::query::kinds::text::should(clauses, 1, false),
        })
    }

    pub(crate) fn exists(&mut self, pattern: &str) -> Result<Box<dyn Weight>, QueryError> {
        self.count_clause()?;
        // Every document has these.
        match pattern {
            "*" | ID | SEQ_NO | VERSION | "_index" => return Ok(weights::all(1.0, false)),
            "_source" => {
                return Err(QueryError::NotSearchable { field: pattern.to_owned(), actual: "_source" });
            }
            _ => {}
        }
        let wildcard = pattern.contains('*').then(|| Wildcard::new(pattern));
        let object = format!("{pattern}.");
        let mapping = self.snapshot.mapping();
        let wanted: Vec<String> = mapping
            .named_fields()
            .map(|(path, _)| path)
            .chain(matches!(pattern, IGNORED | ROUTING).then_some(pattern))
            // A path in a flattened object is no field of the mapping.
            .chain(mapping.field(pattern).is_some_and(FieldType::is_flattened).then_some(pattern))
            .filter(|path| match &wildcard {
                Some(wildcard) => wildcard.matches(path, false),
                None => *path == pattern || path.starts_with(&object),
            })
            .map(|path| mapping.concrete(path).into_owned())
            .collect();
        if wanted.is_empty() {
            return Ok(weights::none());
        }
        let field_names = self.snapshot.schema().field_names;
        Ok(weights::bits(move |reader| {
            let inverted = reader.inverted_index(field_names)?;
            let mut docs = weights::empty_docs(reader)?;
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
    pub(crate) fn match_other(
        &mut self,
        field: &str,
        text: &str,
        lenient: bool,
        scoring: bool,
    ) -> Result<Box<dyn Weight>, QueryError> {
        let field_type = self.snapshot.mapping().field(field);
        if !lenient && matches!(field_type, Some(FieldType::SparseVector | FieldType::RankFeatures)) {
            return self.sparse(&sparrow_query::SparseQuery {
                field: field.to_owned(),
                tokens: vec![(text.into(), 1.0)],
                pruning: sparrow_query::Pruning::Off,
                origin: sparrow_query::SparseOrigin::WeightedTokens,
            });
        }
        let matched = self.match_value(field, text, lenient)?;
        Ok(matched.map_or_else(weights::none, |weight| weights::constant(weight, 1.0, scoring)))
    }

    /// The documents with a value in a field without string terms, as a weight without scores; `None` if no
    /// document can match, as with `lenient` for a value of the wrong type.
    pub(crate) fn match_value(
        &mut self,
        field: &str,
        text: &str,
        lenient: bool,
    ) -> Result<Option<Box<dyn Weight>>, QueryError> {
        let matched = match self.snapshot.mapping().field(field) {
            None => return Ok(None),
            Some(FieldType::Ip) => self.address_term(field, text),
            Some(
                field_type @ (FieldType::Date { .. } | FieldType::DateNanos { .. } | FieldType::Range(_)),
            ) => {
                let of = if let FieldType::Range(of) = field_type { Some(of.clone()) } else { None };
                let value = Some(Value::String(text.to_owned()));
                let one = RangeQuery {
                    field: field.to_owned(),
                    gte: value.clone(),
                    lte: value,
                    ..RangeQuery::default()
                };
                match of {
                    Some(of) => self.range_of_ranges(&one, &of, false),
                    None => self.date_range(&one, false),
                }
            }
            Some(field_type) => {
                let field_type = field_type.clone();
                self.number_term(field, &field_type, text)
            }
        };
        match matched {
            Ok(weight) => Ok(Some(weight)),
            Err(error) if lenient && error.is_about_a_value() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The text of a scalar value: `term` accepts numbers and booleans in place of strings.
pub(crate) fn scalar_text(field: &str, value: &Value) -> Result<String, QueryError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(QueryError::NotAValue { field: field.to_owned() })
        }
    }
}

impl Meaning for TermQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.term(&self.field, &self.value, self.case_insensitive, scoring)
    }

    fn compile_whole(&self, compiler: &mut Compiler<'_>) -> Result<Option<Box<dyn Weight>>, QueryError> {
        compiler.whole_term(&self.field, &self.value, self.case_insensitive).map(Some)
    }

    fn of_index(&self, name: &str) -> Option<bool> {
        (self.field == INDEX).then(|| names_index(&self.value, name, self.case_insensitive))
    }

    fn filter_key(&self, key: &mut Key) -> Option<()> {
        let TermQuery { field, value, case_insensitive } = self;
        key.tag(1).text(field).value(Some(value))?.flag(*case_insensitive);
        Some(())
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.values(&self.field, std::slice::from_ref(&self.value), self.case_insensitive)
    }
}

impl Meaning for TermsQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        let terms = compiler.terms(&self.field, &self.values)?;
        Ok(constant(terms, scoring))
    }

    fn of_index(&self, name: &str) -> Option<bool> {
        (self.field == INDEX).then(|| self.values.iter().any(|value| names_index(value, name, false)))
    }

    fn filter_key(&self, key: &mut Key) -> Option<()> {
        let TermsQuery { field, values } = self;
        key.tag(2).text(field);
        for value in values.iter() {
            key.value(Some(value))?;
        }
        Some(())
    }

    fn explained(&self) -> Explained {
        Explained::Constant
    }

    fn words(&self, wanted: &mut WantedWords<'_>) -> Result<(), QueryError> {
        wanted.values(&self.field, &self.values, false)
    }
}

impl Meaning for TermsLookupQuery {
    fn compile(&self, _: &mut Compiler<'_>, _: bool) -> Result<Box<dyn Weight>, QueryError> {
        Err(QueryError::NotLookedUp { field: self.field.clone() })
    }

    no_words!();
}

impl Meaning for RangeQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        let range = compiler.range(self)?;
        Ok(constant(range, scoring))
    }

    fn filter_key(&self, key: &mut Key) -> Option<()> {
        let RangeQuery { field, gt, gte, lt, lte, format, time_zone, relation } = self;
        key.tag(3).tag(*relation as u8).text(field);
        for bound in [gt, gte, lt, lte] {
            key.value(bound.as_ref())?;
        }
        key.option(format.as_deref()).option(time_zone.as_deref());
        Some(())
    }

    fn explained(&self) -> Explained {
        Explained::Constant
    }

    no_words!();
}

impl Meaning for ExistsQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        let exists = compiler.exists(&self.field)?;
        Ok(constant(exists, scoring))
    }

    fn filter_key(&self, key: &mut Key) -> Option<()> {
        let ExistsQuery { field } = self;
        key.tag(4).text(field);
        Some(())
    }

    fn explained(&self) -> Explained {
        Explained::Constant
    }

    no_words!();
}

impl Meaning for IdsQuery {
    fn compile(&self, compiler: &mut Compiler<'_>, scoring: bool) -> Result<Box<dyn Weight>, QueryError> {
        compiler.count_clause()?;
        let ids = StringTerms::text(compiler.snapshot.schema().id, ID);
        let set = multi_term(ids, TermFilter::Set(self.values.clone()), false);
        Ok(constant(set, scoring))
    }

    fn explained(&self) -> Explained {
        Explained::Constant
    }

    no_words!();
}

/// The field of a document's index: a clause on it matches all documents of an index or none.
pub(super) const INDEX: &str = "_index";

fn names_index(value: &Value, name: &str, folded: bool) -> bool {
    match value {
        Value::String(text) if folded => text.eq_ignore_ascii_case(name),
        Value::String(text) => text == name,
        _ => false,
    }
}
