//! `fields`, `docvalue_fields` and `stored_fields`: which values of individual fields hits are shown with.

use crate::shape::{Shape, either, flag, list, object, text};
use rustc_hash::FxHashSet;
use sparrow_query::dsl::value;
use sparrow_wire::json::{Json, Node};
use sparrow_wire::{BodyError, glob};

/// A field, or several by a pattern, with the format of its values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldRequest {
    /// Path; `*` stands for any characters.
    pub pattern: String,
    /// Format in which dates or numbers are returned; the field's own if absent.
    pub format: Option<String>,
    /// Whether values at paths that the mapping does not contain are returned, too.
    pub include_unmapped: bool,
}

/// The section `stored_fields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredFields {
    /// `_none_`: neither id nor source.
    Nothing,
    /// Patterns for fields that the mapping marks as stored.
    Some(Vec<String>),
}

impl FieldRequest {
    fn new(pattern: &str) -> Self {
        Self { pattern: pattern.to_owned(), format: None, include_unmapped: false }
    }
}

pub(crate) fn shape() -> Shape {
    list(either([text().about("name or pattern"), request_shape()]))
}

fn request_shape() -> Shape {
    object([("field", text()), ("format", text()), ("include_unmapped", flag())]).needs(&["field"])
}

/// Parses the section `fields` or `docvalue_fields`; `section` is its name.
///
/// # Errors
/// On anything but names, and objects with `field` and `format`.
pub fn parse(node: &Node, section: &'static str) -> Result<Vec<FieldRequest>, BodyError> {
    let unmapped = section == "fields";
    let mut requests = Vec::new();
    for item in node.as_array().unwrap_or_default() {
        let members = match &item.json {
            Json::String(pattern) => {
                requests.push(FieldRequest::new(pattern));
                continue;
            }
            Json::Object(members) => members,
            _ => {
                return Err(BodyError::parsing(
                    item.at,
                    format!("Expected [VALUE_STRING, START_OBJECT] but found [{}]", item.token()),
                ));
            }
        };
        let mut request = FieldRequest::new("");
        for member in members {
            let within = |error: BodyError| error.within("field_and_format", &member.name, member.value.at);
            match &*member.name {
                "field" => request.pattern = value::text(&member.value).map_err(within)?,
                "format" => request.format = value::format(&member.value).map_err(within)?,
                "include_unmapped" if unmapped => {
                    request.include_unmapped = value::boolean(&member.value).map_err(within)?;
                }
                _ => {
                    return Err(BodyError::unknown_field(
                        "field_and_format",
                        member,
                        request_shape().names(),
                    ));
                }
            }
        }
        if request.pattern.is_empty() {
            return Err(BodyError::Required { field: "field" });
        }
        requests.push(request);
    }
    // A field is looked up once, however often the request names it. Of equal requests the last stays, as a later format of a field
    // replaces an earlier one.
    let mut seen = FxHashSet::default();
    let keep: Vec<bool> = requests.iter().rev().map(|request| seen.insert(request)).collect();
    let mut keep = keep.into_iter().rev();
    let distinct: Vec<FieldRequest> =
        requests.iter().filter(|_| keep.next().unwrap_or(true)).cloned().collect();
    if unmapped {
        glob::check_patterns("fields", distinct.len())?;
    }
    Ok(if unmapped { distinct } else { requests })
}

/// Reads the URL parameter `docvalue_fields`: names separated by commas.
pub fn docvalues_from_text(text: &str) -> Vec<FieldRequest> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(FieldRequest::new).collect()
}

/// Checks the names in `stored_fields`.
///
/// # Errors
/// When `_none_` is not the only one.
pub fn stored(names: Vec<String>) -> Result<StoredFields, BodyError> {
    match names.iter().any(|name| name == "_none_") {
        false => Ok(StoredFields::Some(names)),
        true if names.len() == 1 => Ok(StoredFields::Nothing),
        true => Err(BodyError::illegal("cannot combine _none_ with other fields")),
    }
}
