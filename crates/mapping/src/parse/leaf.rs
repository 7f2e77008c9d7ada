//! Definitions of fields with values: types, their parameters and multi-fields.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use sparrow_runtime::work;

use super::super::completion::Completion;
use super::super::error::MappingError;
use super::super::java::java_string;
use super::super::parameters::{Params, bad};
use super::super::sparse_options::SparseIndexOptions;
use super::super::types::{DEFAULT_ANALYZER, FieldType, KeywordKind, TextKind, TextOptions};
use super::super::{DateFormat, GeoPoint, LeafNode, LeafOptions, date, ip};
use super::super::{dense, semantic};
use super::text;

/// Default of `depth_limit`, the levels that an object in a `flattened` field may have.
pub(super) const FLATTENED_LEVELS: usize = 20;

pub(super) fn leaf(
    name: &str,
    type_name: &str,
    map: &Map<String, Value>,
    multi_fields: bool,
) -> Result<LeafNode, MappingError> {
    let unknown = || MappingError::UnknownType { field: name.to_owned(), type_name: type_name.to_owned() };
    let mut field_type = plain_type(type_name).ok_or_else(unknown)?;
    let mut params =
        Params { field: name, type_name: field_type.name(), map, kept: Map::new(), asked: vec!["type"] };
    let mut options = LeafOptions::default();
    params.keep("meta");
    read_type(&mut field_type, &mut params, &mut options)?;
    let mut fields = BTreeMap::new();
    if multi_fields && !field_type.is_flattened() {
        params.asked.push("fields");
        fields = sub_fields(name, map, &field_type)?;
        options.copy_to = copy_to(&mut params)?;
    }
    let own = field_type.own_sub_fields();
    if let Some((taken, _)) = own.iter().find(|(name, _)| fields.contains_key(name)) {
        return Err(MappingError::Malformed {
            reason: format!("field [{name}] of type [{type_name}] has a sub-field [{taken}] of its own"),
        });
    }
    if matches!(field_type, FieldType::Range(_)) && !fields.is_empty() {
        return Err(MappingError::Malformed {
            reason: format!("field [{name}] of type [{type_name}] cannot have [fields] on this server"),
        });
    }
    fields.extend(own.into_iter().map(|(name, field_type)| {
        let options = LeafOptions { indexed: options.indexed, ..LeafOptions::default() };
        (name, LeafNode { field_type, options, params: Map::new(), fields: BTreeMap::new() })
    }));
    if let Some(parameter) = map.keys().find(|key| !params.asked.contains(&key.as_str())) {
        return Err(MappingError::UnknownParameter {
            field: name.to_owned(),
            type_name: params.type_name,
            parameter: parameter.clone(),
        });
    }
    Ok(LeafNode { options, params: params.kept, fields, field_type })
}

/// Reads the parameters that are specific to the field's type.
fn read_type(
    field_type: &mut FieldType,
    params: &mut Params<'_>,
    options: &mut LeafOptions,
) -> Result<(), MappingError> {
    match field_type {
        FieldType::Text { options: text } if text.kind == TextKind::MatchOnly => {}
        FieldType::Text { options: text } => {
            let kind = match text.kind {
                TextKind::AsYouType { max_shingle_size } => text::as_you_type(params, max_shingle_size)?,
                kind => kind,
            };
            *text = Arc::new(TextOptions { kind, ..text::text(params)? });
            options.indexed = params.flag("index", true)?;
        }
        FieldType::Keyword { kind: KeywordKind::Constant(value), .. } => *value = constant(params)?,
        FieldType::Keyword { ignore_above, kind: KeywordKind::Wildcard, .. } => {
            *ignore_above = params.unsigned("ignore_above")?.map(|limit| limit as usize);
            null_value(params, options);
        }
        FieldType::Keyword { ignore_above, kind: KeywordKind::Flattened { depth_limit }, .. } => {
            *ignore_above = params.unsigned("ignore_above")?.map(|limit| limit as usize);
            if let Some(limit) = params.unsigned("depth_limit")? {
                *depth_limit = limit as usize;
            }
            searchable(params, options)?;
            null_value(params, options);
            params.flag("eager_global_ordinals", false)?;
            params.flag("split_queries_on_whitespace", false)?;
            params.only("index_options", &["docs".into()])?;
            params.only("similarity", &["BM25".into()])?;
            params.only("time_series_dimensions", &[Value::Array(Vec::new())])?;
        }
        FieldType::Keyword { ignore_above, normalizer, .. } => {
            *ignore_above = params.unsigned("ignore_above")?.map(|limit| limit as usize);
            searchable(params, options)?;
            null_value(params, options);
            *normalizer = text::keyword(params)?;
        }
        FieldType::TokenCount { analyzer, gaps } => {
            // Stored fields are read from the source, which has the text instead of the number of its words.
            params.only("store", &[false.into(), "false".into()])?;
            searchable(params, options)?;
            let Some(name) = params.take("analyzer").map(java_string) else {
                let field = params.field;
                return Err(bad(format!("Analyzer must be set for field [{field}] but wasn't.")));
            };
            *analyzer = name.as_str().into();
            params.kept.insert("analyzer".to_owned(), name.into());
            *gaps = params.flag("enable_position_increments", true)?;
        }
        FieldType::Boolean => {
            searchable(params, options)?;
            null_value(params, options);
            options.ignore_malformed = params.given_flag("ignore_malformed")?;
        }
        FieldType::Date { .. } | FieldType::DateNanos { .. } => {
            searchable(params, options)?;
            null_value(params, options);
            options.ignore_malformed = params.given_flag("ignore_malformed")?;
            params.only("locale", &["ENGLISH".into(), "en".into(), "".into()])?;
            if let FieldType::DateNanos { formats } = field_type {
                *formats = date_formats(params, date::DEFAULT_NANOS_FORMAT)?;
            } else {
                *field_type = FieldType::Date { formats: date_formats(params, date::DEFAULT_FORMAT)? };
            }
        }
        FieldType::Ip => {
            searchable(params, options)?;
            null_value(params, options);
            if let Some(value) = &options.null_value
                && value.as_str().and_then(ip::parse).is_none()
            {
                let reason = ip::not_an_address(&java_string(value));
                return Err(bad(format!("Error parsing [null_value] on field [{}]: {reason}", params.field)));
            }
            options.ignore_malformed = params.given_flag("ignore_malformed")?;
            params.only("script", &[])?;
            params.only("time_series_dimension", &[Value::Bool(false)])?;
        }
        FieldType::GeoPoint => {
            searchable(params, options)?;
            null_value(params, options);
            if let Some(value) = &options.null_value {
                GeoPoint::on_earth(value, "null_value").map_err(|reason| {
                    bad(format!("Error parsing [null_value] on field [{}]: {reason}", params.field))
                })?;
            }
            options.ignore_malformed = params.given_flag("ignore_malformed")?;
            params.only("ignore_z_value", &[Value::Bool(true)])?;
            params.only("script", &[])?;
            params.only("time_series_metric", &[])?;
        }
        FieldType::Range(of) => {
            searchable(params, options)?;
            options.coerce = params.flag("coerce", true)?;
            if let FieldType::Date { formats } = &mut **of {
                params.only("locale", &["ENGLISH".into(), "en".into(), "".into()])?;
                *formats = date_formats(params, date::DEFAULT_FORMAT)?;
            }
        }
        FieldType::Binary => {
            let doc_values = params.flag("doc_values", false)?;
            options.indexed = params.flag("store", false)? || doc_values;
        }
        FieldType::SparseVector => {
            params.flag("store", false)?;
            if let Some(value) = params.take("index_options").cloned() {
                let options = SparseIndexOptions::parse(&value)?;
                params.kept.insert("index_options".to_owned(), options.to_json());
            }
        }
        FieldType::RankFeatures => {
            params.only("positive_score_impact", &[Value::Bool(true)])?;
        }
        FieldType::RankFeature { positive_score_impact } => {
            *positive_score_impact = params.flag("positive_score_impact", true)?;
            null_value(params, options);
        }
        FieldType::DenseVector(field) => {
            **field = dense::parse(params.field, params.map)?;
            params.asked.extend(dense::members().into_iter().map(|(name, _)| name));
            options.indexed = field.index;
        }
        FieldType::SemanticText(field) => {
            refuse_other_values(params)?;
            **field = semantic::parse(params)?;
        }
        FieldType::Completion(field) => *field = Arc::new(Completion::parse(params)?),
        FieldType::ScaledFloat { factor } => {
            *factor = scaling_factor(params)?;
            number_params(params, options)?;
        }
        FieldType::Object { .. } | FieldType::Alias { .. } => {
            return Err(MappingError::UnknownType {
                field: params.field.to_owned(),
                type_name: params.type_name.to_owned(),
            });
        }
        _ => number_params(params, options)?,
    }
    Ok(())
}

/// The `value` of a `constant_keyword`, if the definition has one.
fn constant(params: &mut Params<'_>) -> Result<Option<Arc<str>>, MappingError> {
    let Some(value) = params.take("value").cloned() else { return Ok(None) };
    if matches!(value, Value::Object(_) | Value::Array(_)) {
        return Err(MappingError::Malformed {
            reason: format!("Property [value] on field [{}] must be a scalar", params.field),
        });
    }
    let text = java_string(&value);
    params.kept.insert("value".to_owned(), text.as_str().into());
    Ok(Some(text.into()))
}

/// The `format` of dates.
fn date_formats(params: &mut Params<'_>, default: &str) -> Result<Vec<DateFormat>, MappingError> {
    let text = match params.take("format").cloned() {
        Some(Value::String(text)) => text,
        Some(other) => return Err(bad(format!("Invalid format: [{}]", java_string(&other)))),
        None => default.to_owned(),
    };
    // Mappings of requests are checked when they are whole.
    let formats = date::stored_formats(&text);
    if text != default {
        params.kept.insert("format".to_owned(), Value::String(text));
    }
    Ok(formats)
}

/// Refuses `fields` and `copy_to` in a `semantic_text` definition.
fn refuse_other_values(params: &Params<'_>) -> Result<(), MappingError> {
    let (name, map) = (params.field, params.map);
    if map.get("fields").is_some_and(|fields| fields.as_object().is_none_or(|fields| !fields.is_empty())) {
        return Err(bad(format!("semantic_text field [{name}] does not support multi-fields")));
    }
    if map.get("copy_to").is_some_and(|targets| !targets.is_null() && *targets != Value::Array(Vec::new())) {
        return Err(bad(format!("semantic_text field [{name}] does not support [copy_to]")));
    }
    Ok(())
}

/// Reads the `fields` of a field.
fn sub_fields(
    name: &str,
    map: &Map<String, Value>,
    parent: &FieldType,
) -> Result<BTreeMap<String, LeafNode>, MappingError> {
    let mut fields = BTreeMap::new();
    match map.get("fields") {
        None | Some(Value::Null) => {}
        Some(Value::Object(definitions)) => {
            for (sub, definition) in definitions {
                work::check()?;
                if sub.contains('.') {
                    return Err(MappingError::Malformed {
                        reason: format!(
                            "Field name [{sub}] which is a multi field of [{name}] cannot contain '.'"
                        ),
                    });
                }
                let read = sub_field(sub, definition)?;
                check_sub_field(parent, sub, &read)?;
                fields.insert(sub.clone(), read);
            }
        }
        Some(_) => {
            return Err(MappingError::Malformed {
                reason: format!("expected map for property [fields] on field [{name}]"),
            });
        }
    }
    Ok(fields)
}

fn sub_field(name: &str, definition: &Value) -> Result<LeafNode, MappingError> {
    let map = definition.as_object().ok_or_else(|| MappingError::Malformed {
        reason: format!("Illegal field [{name}], only fields can be specified inside fields"),
    })?;
    match map.get("type").and_then(Value::as_str) {
        None => Err(MappingError::NoType { field: name.to_owned() }),
        Some("object" | "nested") => Err(MappingError::Malformed {
            reason: format!("Type [object] cannot be used in multi field [{name}]"),
        }),
        Some("alias") => {
            Err(MappingError::Malformed { reason: "Type [alias] cannot be used in multi field".to_owned() })
        }
        Some(type_name) => leaf(name, type_name, map, false),
    }
}

/// Refuses a `semantic_text` multi-field of a field that is neither `text` nor `keyword`.
fn check_sub_field(parent: &FieldType, name: &str, sub: &LeafNode) -> Result<(), MappingError> {
    if matches!(sub.field_type, FieldType::SemanticText(_))
        && !matches!(parent, FieldType::Text { .. } | FieldType::Keyword { .. })
    {
        let parent = parent.name();
        return Err(MappingError::Malformed {
            reason: format!(
                "Field [{name}] of type [semantic_text] can't be used in multifields of a [{parent}] field"
            ),
        });
    }
    Ok(())
}

pub(super) fn plain_type(type_name: &str) -> Option<FieldType> {
    Some(match type_name {
        "text" => FieldType::Text { options: Arc::default() },
        "search_as_you_type" => FieldType::Text { options: Arc::new(TextOptions::as_you_type()) },
        "match_only_text" => FieldType::Text { options: Arc::new(TextOptions::match_only()) },
        "keyword" => keyword(KeywordKind::Keyword),
        "wildcard" => keyword(KeywordKind::Wildcard),
        "constant_keyword" => keyword(KeywordKind::Constant(None)),
        "flattened" => keyword(KeywordKind::Flattened { depth_limit: FLATTENED_LEVELS }),
        "long" => FieldType::Long,
        "integer" => FieldType::Integer,
        "short" => FieldType::Short,
        "byte" => FieldType::Byte,
        "unsigned_long" => FieldType::UnsignedLong,
        "token_count" => FieldType::TokenCount { analyzer: DEFAULT_ANALYZER.into(), gaps: true },
        "double" => FieldType::Double,
        "float" => FieldType::Float,
        "half_float" => FieldType::HalfFloat,
        "scaled_float" => FieldType::ScaledFloat { factor: 1.0 },
        "boolean" => FieldType::Boolean,
        "date" => FieldType::Date { formats: Vec::new() },
        "date_nanos" => FieldType::DateNanos { formats: Vec::new() },
        "ip" => FieldType::Ip,
        "geo_point" => FieldType::GeoPoint,
        "integer_range" => FieldType::Range(Box::new(FieldType::Integer)),
        "long_range" => FieldType::Range(Box::new(FieldType::Long)),
        "float_range" => FieldType::Range(Box::new(FieldType::Float)),
        "double_range" => FieldType::Range(Box::new(FieldType::Double)),
        "date_range" => FieldType::Range(Box::new(FieldType::Date { formats: Vec::new() })),
        "ip_range" => FieldType::Range(Box::new(FieldType::Ip)),
        "binary" => FieldType::Binary,
        "sparse_vector" => FieldType::SparseVector,
        "rank_features" => FieldType::RankFeatures,
        "rank_feature" => FieldType::RankFeature { positive_score_impact: true },
        "dense_vector" => FieldType::DenseVector(Box::default()),
        "completion" => FieldType::Completion(Arc::default()),
        "semantic_text" => FieldType::SemanticText(Box::default()),
        _ => return None,
    })
}

fn keyword(kind: KeywordKind) -> FieldType {
    FieldType::Keyword { ignore_above: None, normalizer: None, kind }
}

/// `index` and `doc_values`: a field is searchable with either, as in Elasticsearch.
fn searchable(params: &mut Params<'_>, options: &mut LeafOptions) -> Result<(), MappingError> {
    let index = params.flag("index", true)?;
    let doc_values = params.flag("doc_values", true)?;
    params.flag("store", false)?;
    options.indexed = index || doc_values;
    Ok(())
}

/// `copy_to`: one field or several.
fn copy_to(params: &mut Params<'_>) -> Result<Vec<String>, MappingError> {
    let Some(value) = params.take("copy_to").cloned() else { return Ok(Vec::new()) };
    let targets = match &value {
        Value::Array(items) => items.iter().collect(),
        single => vec![single],
    };
    let targets: Vec<String> = targets.into_iter().map(java_string).collect();
    if let Some(pattern) = targets.iter().find(|target| target.contains('*')) {
        return Err(MappingError::Malformed {
            reason: format!("[copy_to] may not be used to copy to a pattern: [{pattern}]"),
        });
    }
    if !targets.is_empty() {
        params.kept.insert("copy_to".to_owned(), Value::from(targets.clone()));
    }
    Ok(targets)
}

fn null_value(params: &mut Params<'_>, options: &mut LeafOptions) {
    if let Some(value) = params.take("null_value").cloned() {
        params.kept.insert("null_value".to_owned(), value.clone());
        options.null_value = Some(value);
    }
}

fn number_params(params: &mut Params<'_>, options: &mut LeafOptions) -> Result<(), MappingError> {
    searchable(params, options)?;
    null_value(params, options);
    options.coerce = params.flag("coerce", true)?;
    options.ignore_malformed = params.given_flag("ignore_malformed")?;
    params.only("script", &[])?;
    params.only("time_series_dimension", &[Value::Bool(false)])?;
    Ok(())
}

fn scaling_factor(params: &mut Params<'_>) -> Result<f64, MappingError> {
    let Some(value) = params.take("scaling_factor").cloned() else {
        return Err(bad("Field [scaling_factor] is required".to_owned()));
    };
    let factor = match &value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    match factor.filter(|factor| factor.is_finite() && *factor > 0.0) {
        Some(factor) => {
            params.kept.insert("scaling_factor".to_owned(), factor.into());
            Ok(factor)
        }
        None => {
            Err(bad(format!("[scaling_factor] must be a positive number, got [{}]", java_string(&value))))
        }
    }
}
