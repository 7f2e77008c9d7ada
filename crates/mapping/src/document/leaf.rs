//! Scalar values of mapped fields, and the types dynamic mapping gives to new ones.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::super::dynamic::{self, MatchType};
use super::super::error::{
    Cause, DocumentError, DocumentErrorKind, ILLEGAL_ARGUMENT, MAPPER_PARSING, MappingError,
};
use super::super::geo::GEOHASH_DIGITS;
use super::super::java::{java_string, token_name};
use super::super::location::Step;
use super::super::types::{FieldType, KeywordKind, NumberValue, TextOptions};
use super::super::values::{self, is_above};
use super::super::{GeoPoint, LeafNode, LeafOptions, Node, date, ip, join};
use super::Reader;
use crate::IGNORED;

/// The first double beyond which not every whole number is one: 2^53.
const FIRST_INEXACT: f64 = 9_007_199_254_740_992.0;

/// Longest term Lucene takes, in bytes.
pub const MAX_TERM: usize = 32_766;
/// `ignore_above` of the keyword multi-field that dynamic mapping adds to a text field, in characters.
const DYNAMIC_IGNORE_ABOVE: u64 = 256;

/// Shared options of `text` fields without parameters.
static DEFAULT_TEXT: LazyLock<Arc<TextOptions>> = LazyLock::new(Arc::default);

impl<'a> Reader<'a> {
    /// The field added for a name that is not mapped, from its first value: by a dynamic template, or by the default
    /// rules.
    pub(super) fn dynamic_field(&self, name: &str, path: &str, value: &Value) -> Result<Node, DocumentError> {
        let leaf = self.dynamic_leaf(value);
        if self.mapping.dynamic_templates.is_empty() {
            return Ok(leaf.into());
        }
        let kind = match &leaf.field_type {
            FieldType::Boolean => MatchType::Boolean,
            FieldType::Long => MatchType::Long,
            FieldType::Float => MatchType::Double,
            FieldType::Date { .. } => MatchType::Date,
            _ => MatchType::String,
        };
        let format = leaf.params.get("format").and_then(Value::as_str);
        let template = self.template(name, path, kind, format)?;
        // A text that looks like a date may have a template for texts only.
        Ok(template.unwrap_or(leaf.into()))
    }

    /// The field that a dynamic template creates for a name that is not mapped; `None` if no template applies.
    pub(super) fn template(
        &self,
        name: &str,
        path: &str,
        kind: MatchType,
        format: Option<&str>,
    ) -> Result<Option<Node>, DocumentError> {
        dynamic::templated(&self.mapping.dynamic_templates, name, path, kind, format).map_err(|error| {
            self.fail(match error {
                MappingError::Stopped(stopped) => DocumentErrorKind::Stopped(stopped),
                error => DocumentErrorKind::Failed { causes: vec![(MAPPER_PARSING, error.to_string())] },
            })
        })
    }

    /// The date format in which a text in an unmapped field is a date, as the new field's mapping names it: `None` if
    /// it is no date, `Some(None)` for the default format.
    fn detect_date(&self, text: &str) -> Option<Option<&str>> {
        let Some(formats) = &self.mapping.dynamic_dates else { return date::detect(text) };
        let format = formats.iter().find(|(_, formats)| date::parse_date(formats, text, false).is_some());
        format.map(|(name, _)| Some(name.as_str()))
    }

    fn dynamic_leaf(&self, value: &Value) -> LeafNode {
        let plain = |field_type| LeafNode {
            field_type,
            options: LeafOptions::default(),
            params: Map::new(),
            fields: BTreeMap::new(),
        };
        match value {
            Value::Bool(_) => plain(FieldType::Boolean),
            Value::Number(number) if number.is_f64() => plain(FieldType::Float),
            Value::Number(_) => plain(FieldType::Long),
            other => {
                let text = other.as_str().unwrap_or_default();
                let whole = text.parse::<i64>().is_ok();
                let number = whole || values::parse_double(text).is_some();
                if number && self.mapping.numeric_detection {
                    return plain(if whole { FieldType::Long } else { FieldType::Float });
                }
                // Pure numbers are too often mistaken for years.
                if !number
                    && self.mapping.date_detection
                    && let Some(format) = self.detect_date(text)
                {
                    let name = format.unwrap_or(date::DEFAULT_FORMAT);
                    let mut leaf = plain(FieldType::Date { formats: date::stored_formats(name) });
                    if let Some(format) = format {
                        leaf.params.insert("format".to_owned(), format.into());
                    }
                    return leaf;
                }
                let mut keyword = plain(FieldType::Keyword {
                    ignore_above: Some(DYNAMIC_IGNORE_ABOVE as usize),
                    normalizer: None,
                    kind: KeywordKind::Keyword,
                });
                keyword.params.insert("ignore_above".to_owned(), DYNAMIC_IGNORE_ABOVE.into());
                let mut leaf = plain(FieldType::Text { options: DEFAULT_TEXT.clone() });
                leaf.fields.insert("keyword".to_owned(), keyword);
                leaf
            }
        }
    }

    /// Reads a value of a mapped field and its multi-fields.
    pub(super) fn leaf(&mut self, leaf: &LeafNode, path: &str, value: &Value) -> Result<(), DocumentError> {
        match &leaf.field_type {
            FieldType::SparseVector | FieldType::RankFeatures => return self.sparse(leaf, path, value),
            FieldType::DenseVector(field) => return self.dense(leaf, field, path, value),
            FieldType::SemanticText(_) => return self.semantic(path, value),
            FieldType::Completion(field) => return self.completion(leaf, field, path, value),
            FieldType::Alias { .. } => {
                // As in Elasticsearch, an empty list writes nothing.
                return match value {
                    Value::Array(values) => self.each(values, |reader, value| reader.leaf(leaf, path, value)),
                    _ => {
                        let verb = if self.copying { "copy" } else { "write" };
                        Err(self.fail(DocumentErrorKind::Alias { verb, path: path.to_owned() }))
                    }
                };
            }
            _ => {}
        }
        let is_point = |values: &[Value]| {
            matches!(leaf.field_type, FieldType::GeoPoint) && GeoPoint::is_position(values)
        };
        if let Value::Array(values) = value
            && !is_point(values)
        {
            return self.each(values, |reader, value| reader.leaf(leaf, path, value));
        }
        let shown = value;
        if leaf.field_type.is_flattened() {
            return self.flattened(leaf, path, value);
        }
        let value = match (value, &leaf.options.null_value) {
            (Value::Null, Some(null_value)) => null_value,
            (value, _) => value,
        };
        if let Err(causes) = self.scalar(leaf, path, value) {
            // An object in place of a number is no malformed number.
            let may_be_ignored = !shown.is_object() || matches!(leaf.field_type, FieldType::GeoPoint);
            if may_be_ignored && self.ignores_malformed(leaf) {
                self.ignored(path);
                return Ok(());
            }
            if shown.is_object() {
                self.steps.push(Step::End);
            }
            return Err(self.fail(DocumentErrorKind::Field {
                path: path.to_owned(),
                type_name: leaf.field_type.name(),
                id: self.id.to_owned(),
                preview: java_string(shown),
                causes,
            }));
        }
        let hash = match leaf.field_type {
            // As in Elasticsearch, other fields get a place as its geohash.
            FieldType::GeoPoint if !leaf.fields.is_empty() && !value.is_null() => GeoPoint::parse(value)
                .ok()
                .map(|point| Value::String(point.normalized().geohash(GEOHASH_DIGITS))),
            _ => None,
        };
        for (name, sub) in &leaf.fields {
            self.leaf(sub, &join(path, name), hash.as_ref().unwrap_or(value))?;
        }
        if !self.copying && !leaf.options.copy_to.is_empty() {
            self.copying = true;
            let copied = leaf.options.copy_to.iter().try_for_each(|target| self.copy(target, value));
            self.copying = false;
            return copied;
        }
        Ok(())
    }

    /// Whether a field leaves values out that it cannot take.
    fn ignores_malformed(&self, leaf: &LeafNode) -> bool {
        let of_index = self.limits.ignore_malformed && leaf.field_type.may_ignore_malformed();
        leaf.options.ignore_malformed.unwrap_or(of_index)
    }

    /// Values of a `semantic_text` field: scalars, and lists of them. Their passages come from elsewhere
    /// ([`super::super::Mapping::attach_passages`]).
    fn semantic(&mut self, path: &str, value: &Value) -> Result<(), DocumentError> {
        let refused = match value {
            Value::Array(values) => values.iter().find(|value| value.is_array() || value.is_object()),
            Value::Object(_) => Some(value),
            _ => None,
        };
        match refused {
            None => Ok(()),
            Some(refused) => Err(self.illegal(format!(
                "Invalid format for field [{path}], expected [String|Number|Boolean] got [{}]",
                if refused.is_array() { "ArrayList" } else { "HashMap" }
            ))),
        }
    }

    /// Copies a value to another field (`copy_to`); copies are not copied further.
    fn copy(&mut self, target: &str, value: &Value) -> Result<(), DocumentError> {
        let root = self.root();
        self.in_document_of(target, |reader| match target.contains('.') {
            true => reader.dotted(&root, target, value),
            false => reader.entry(&root, target, value),
        })
    }

    /// Converts a JSON scalar to text; `None` for null.
    pub(super) fn text_of<'v>(&mut self, value: &'v Value) -> Result<Option<Cow<'v, str>>, Vec<Cause>>
    where
        'a: 'v,
    {
        match value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.into())),
            Value::Number(number) => {
                Ok(Some(self.number_text(value).map_or_else(|| number.to_string().into(), Cow::Borrowed)))
            }
            Value::Bool(flag) => Ok(Some(flag.to_string().into())),
            other => {
                Err(vec![("illegal_state_exception", format!("Can't get text on a {}", token_name(other)))])
            }
        }
    }

    /// The text of a number that is printed in another way than it was written.
    fn number_text(&mut self, value: &Value) -> Option<&'a str> {
        let Some(texts) = &self.number_texts else {
            self.lacks_number_text |= value.is_f64();
            return None;
        };
        texts.of(value)
    }

    /// Reads a scalar for a number, boolean or date field; `None` stands for no value.
    pub(super) fn number(
        &mut self,
        field_type: &FieldType,
        coerce: bool,
        value: &Value,
    ) -> Result<Option<NumberValue>, Vec<Cause>> {
        let digits_count = value.is_f64()
            && field_type.is_integer()
            && value.as_f64().is_some_and(|double| double.abs() >= FIRST_INEXACT);
        let text = if digits_count { self.number_text(value) } else { None };
        values::number(field_type, coerce, value, text)
    }

    fn scalar(&mut self, leaf: &LeafNode, path: &str, value: &Value) -> Result<(), Vec<Cause>> {
        match &leaf.field_type {
            FieldType::Text { .. } | FieldType::TokenCount { .. } => {
                if let Some(text) = self.text_of(value)? {
                    self.text(leaf, path, text);
                }
            }
            FieldType::Keyword { kind: KeywordKind::Constant(constant), .. } => {
                let Some(text) = self.text_of(value)? else { return Ok(()) };
                return self.constant(leaf, path, constant.as_deref(), text.into_owned());
            }
            FieldType::Keyword { ignore_above, .. } => {
                let Some(text) = self.text_of(value)? else { return Ok(()) };
                return self.keyword(leaf, path, *ignore_above, text);
            }
            FieldType::Ip => {
                let Some(text) = self.text_of(value)? else { return Ok(()) };
                let address =
                    ip::parse(&text).ok_or_else(|| vec![(ILLEGAL_ARGUMENT, ip::not_an_address(&text))])?;
                if leaf.options.indexed {
                    self.values.seen(path);
                    self.values.add_keyword(path, ip::keyword(address).into());
                }
            }
            FieldType::GeoPoint => {
                if value.is_null() {
                    return Ok(());
                }
                let mut point = GeoPoint::parse(value).map_err(|reason| vec![("parse_exception", reason)])?;
                match point.problem(path) {
                    None => {}
                    // As Elasticsearch has it, what goes on beyond a pole or round the earth is no malformed point then.
                    Some(_)
                        if self.ignores_malformed(leaf) && point.lat.is_finite() && point.lon.is_finite() =>
                    {
                        point = point.normalized();
                    }
                    Some(reason) => return Err(vec![(ILLEGAL_ARGUMENT, reason)]),
                }
                if leaf.options.indexed {
                    self.values.seen(path);
                    self.values.out.numbers.push((path.to_owned(), NumberValue::I64(point.encoded())));
                }
            }
            FieldType::Range(of) => return self.range(leaf, of, path, value),
            FieldType::Binary => {
                let Some(text) = self.text_of(value)? else { return Ok(()) };
                check_base64(&text).map_err(|reason| vec![(ILLEGAL_ARGUMENT, reason)])?;
                if leaf.options.indexed {
                    self.values.seen(path);
                }
            }
            FieldType::RankFeature { positive_score_impact } => {
                let Some(feature) = values::rank_feature(path, *positive_score_impact, value)? else {
                    return Ok(());
                };
                if self.values.has_seen(path) {
                    return Err(vec![(
                        ILLEGAL_ARGUMENT,
                        format!(
                            "[rank_feature] fields do not support indexing multiple values for the same field \
                             [{path}] in the same document"
                        ),
                    )]);
                }
                self.values.seen(path);
                self.values.out.numbers.push((path.to_owned(), NumberValue::F64(f64::from(feature))));
            }
            field_type => {
                let number = self.number(field_type, leaf.options.coerce, value)?;
                if let Some(number) = number
                    && leaf.options.indexed
                {
                    self.values.seen(path);
                    self.values.out.numbers.push((path.to_owned(), number));
                }
            }
        }
        Ok(())
    }

    /// Reads a text into a field that takes texts (see [`takes_texts`]), and into its multi-fields.
    pub(super) fn texts(&mut self, leaf: &LeafNode, path: &str, text: &str) -> Result<(), Vec<Cause>> {
        match &leaf.field_type {
            FieldType::Keyword { ignore_above, .. } => {
                self.keyword(leaf, path, *ignore_above, text.into())?;
            }
            _ => self.text(leaf, path, text.into()),
        }
        leaf.fields.iter().try_for_each(|(name, sub)| self.texts(sub, &join(path, name), text))
    }

    fn text(&mut self, leaf: &LeafNode, path: &str, text: Cow<'_, str>) {
        if leaf.options.indexed {
            self.values.seen(path);
            self.values.out.texts.push((path.to_owned(), text.into_owned()));
        }
    }

    pub(super) fn keyword(
        &mut self,
        leaf: &LeafNode,
        path: &str,
        ignore_above: Option<usize>,
        text: Cow<'_, str>,
    ) -> Result<(), Vec<Cause>> {
        if is_above(ignore_above, &text) {
            self.ignored(path);
            return Ok(());
        }
        if !leaf.options.indexed {
            return Ok(());
        }
        if text.len() > MAX_TERM {
            let preview: Vec<String> =
                text.as_bytes()[..30].iter().map(|&byte| (byte as i8).to_string()).collect();
            return Err(vec![(
                ILLEGAL_ARGUMENT,
                format!(
                    "Document contains at least one immense term in field=\"{path}\" (whose UTF8 encoding is longer \
                     than the max length {MAX_TERM}), all of which were skipped. Please correct the analyzer to not \
                     produce such terms. The prefix of the first immense term is: '[{}]...'",
                    preview.join(", ")
                ),
            )]);
        }
        self.values.seen(path);
        self.values.add_keyword(path, text);
        Ok(())
    }

    /// Reads a value of a `constant_keyword` field. If the mapping does not set the constant, the first value becomes
    /// it.
    fn constant(
        &mut self,
        leaf: &LeafNode,
        path: &str,
        constant: Option<&str>,
        text: String,
    ) -> Result<(), Vec<Cause>> {
        match constant {
            // It is added to every document at the end.
            Some(constant) if constant == text => {}
            Some(constant) => {
                return Err(vec![(
                    ILLEGAL_ARGUMENT,
                    format!(
                        "[constant_keyword] field [{path}] only accepts values that are equal to the value defined in the \
                         mappings [{constant}], but got [{text}]"
                    ),
                )]);
            }
            None => {
                let mut with_value = leaf.clone();
                with_value.field_type = FieldType::Keyword {
                    ignore_above: None,
                    normalizer: None,
                    kind: KeywordKind::Constant(Some(text.as_str().into())),
                };
                with_value.params.insert("value".to_owned(), text.as_str().into());
                self.added.insert(path.to_owned(), with_value.into());
                self.values.seen(path);
                self.values.out.keywords.push((path.to_owned(), text));
            }
        }
        Ok(())
    }

    /// Records in the `_ignored` field of the document that a value of the field at `path` was left out.
    pub(super) fn ignored(&mut self, path: &str) {
        let document = self.around.first_mut().unwrap_or(&mut self.values);
        if document.add_keyword(IGNORED, path.into()) {
            document.seen(IGNORED);
        }
    }
}

/// Whether every value of a field that is a text, and of its multi-fields, is read by [`Reader::texts`].
pub(super) fn takes_texts(leaf: &LeafNode) -> bool {
    let takes = match &leaf.field_type {
        FieldType::Text { .. } => true,
        FieldType::Keyword { kind, .. } => {
            !matches!(kind, KeywordKind::Constant(_) | KeywordKind::Flattened { .. })
        }
        _ => false,
    };
    takes && leaf.options.copy_to.is_empty() && leaf.fields.values().all(takes_texts)
}

/// Checks that a text is valid Base64.
///
/// # Errors
/// A message about the first problem found.
fn check_base64(text: &str) -> Result<(), String> {
    let digits = text.trim_end_matches('=');
    if let Some(bad) = digits.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/'))) {
        return Err(format!("Illegal base64 character {:x}", u32::from(bad)));
    }
    let padding = text.len() - digits.len();
    match (digits.len() % 4, padding) {
        (0, 0) | (2, 0 | 2) | (3, 0 | 1) => Ok(()),
        (1, _) => Err("Last unit does not have enough valid bits".to_owned()),
        _ => Err("Input byte array has wrong 4-byte ending unit".to_owned()),
    }
}
