//! `collapse`: of the hits with the same value in a field, only the first is returned.

use super::error::{SearchError, Shard};
use super::inner_hits::{self, InnerHits};
use super::sort::plan::without_columns;
use sparrow_index::query::sorted::{ColumnKey, ColumnKind, Missing, SortMode, SortValue};
use sparrow_mapping::{FieldType, Mapping};
use sparrow_query::dsl::{Context, value};
use sparrow_query::{BoolQuery, ExistsQuery, Query, QueryKind, TermsQuery};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};
use sparrow_wire::suggest::suggestions;

/// Most `inner_hits` sections of a request. Each is a search for every group.
const MOST_LISTS: usize = 100;

/// A parsed `collapse` section.
#[derive(Debug, Clone, PartialEq)]
pub struct Collapse {
    /// Path of a keyword or number field.
    pub field: String,
    /// Sections that return further hits of each group.
    pub inner_hits: Vec<InnerHits>,
}

/// Reads the `collapse` section.
///
/// # Errors
/// On unknown keys, and inner hits that are malformed or of the same name.
pub fn parse(node: &Node, context: Context) -> Result<Collapse, BodyError> {
    const KEYS: &[&str] = &["field", "inner_hits", "max_concurrent_group_searches"];
    let mut field = None;
    let mut inner_hits: Vec<InnerHits> = Vec::new();
    for member in node.as_object().unwrap_or_default() {
        let within = |error: BodyError| error.within("collapse", &member.name, member.value.at);
        match &*member.name {
            "field" => field = Some(value::text(&member.value).map_err(within)?),
            // Groups are searched one after the other; the number limits nothing here.
            "max_concurrent_group_searches" => {
                let number = value::int(&member.value).map_err(within)?;
                if number < 1 {
                    return Err(within(BodyError::illegal("maxConcurrentGroupRequests` must be positive")));
                }
            }
            "inner_hits" => match &member.value.json {
                Json::Array(items) => {
                    for item in items {
                        inner_hits.push(InnerHits::of_group(item, context).map_err(within)?);
                    }
                }
                _ => inner_hits.push(InnerHits::of_group(&member.value, context).map_err(within)?),
            },
            name => {
                return Err(BodyError::UnknownField {
                    parser: "collapse",
                    field: name.to_owned(),
                    suggestions: suggestions(name, KEYS),
                    at: member.at,
                });
            }
        }
    }
    if inner_hits.len() > MOST_LISTS {
        return Err(BodyError::illegal(format!(
            "[collapse] has [{}] [inner_hits], at most [{MOST_LISTS}] are possible on this server",
            inner_hits.len()
        )));
    }
    inner_hits::check_names(inner_hits.iter().map(|one| &*one.name))?;
    let field = field.ok_or(BodyError::Required { field: "field" })?;
    Ok(Collapse { field, inner_hits })
}

impl Collapse {
    /// The column of an index by whose values hits are collapsed.
    ///
    /// # Errors
    /// When the field has no column, or one of another type.
    pub fn column(&self, mapping: &Mapping, shard: &Shard) -> Result<ColumnKey, SearchError> {
        let refused = |reason: String| SearchError::OfShard {
            shard: Box::new(shard.clone()),
            kind: "illegal_argument_exception",
            reason,
        };
        let field = &self.field;
        let kind = match mapping.field(field) {
            None => {
                return Err(refused(format!("no mapping found for `{field}` in order to collapse on")));
            }
            Some(field_type) => {
                let off = mapping.parameter(field, "doc_values") == Some(&serde_json::Value::Bool(false));
                match field_type {
                    FieldType::Keyword { .. } if !off => ColumnKind::Keyword,
                    FieldType::UnsignedLong if !off => ColumnKind::Unsigned,
                    whole if whole.is_integer() && !off => ColumnKind::Long,
                    float if float.is_float() && !off => ColumnKind::Double,
                    FieldType::Date { .. } if !off => ColumnKind::Long,
                    other if off && without_columns(field, other, true, &shard.index).is_some() => {
                        return Err(refused(format!(
                            "cannot collapse on field `{field}` without `doc_values`"
                        )));
                    }
                    other => {
                        return Err(refused(format!(
                            "collapse is not supported for the field [{field}] of the type [{}]",
                            other.name()
                        )));
                    }
                }
            }
        };
        Ok(ColumnKey {
            path: field.clone(),
            kind,
            mode: SortMode::Min,
            missing: Missing::Last,
            nested: Vec::new(),
        })
    }

    /// A query for the documents that match `query` and belong to a group.
    pub fn group_query(&self, query: Option<&Query>, group: &SortValue) -> Query {
        let field = self.field.clone();
        let value = match group {
            SortValue::Null => None,
            SortValue::Text(text) => Some(serde_json::Value::from(&**text)),
            SortValue::Long(number) => Some((*number).into()),
            SortValue::Unsigned(number) => Some((*number).into()),
            SortValue::Double(number) => Some((*number).into()),
        };
        let mut tree = BoolQuery::default();
        tree.must.push(query.cloned().unwrap_or_else(Query::match_all));
        match value {
            Some(value) => {
                tree.filter.push(QueryKind::Terms(TermsQuery { field, values: [value].into() }).into())
            }
            None => tree.must_not.push(QueryKind::Exists(ExistsQuery { field }).into()),
        }
        QueryKind::Bool(tree).into()
    }
}
