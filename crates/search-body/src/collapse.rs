//! `collapse`: of the hits with the same value in a field, only the first is returned.

use super::body::SearchBody;
use super::shape::{Shape, flag, int, named, object, several, showing, text};
use sparrow_query::dsl::{Context, value};
use sparrow_query::{BoolQuery, ExistsQuery, Query, QueryKind, TermsQuery};
use sparrow_tantivy_index::query::sorted::SortValue;
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Node};

/// Default number of hits in an `inner_hits` section.
const DEFAULT_INNER_SIZE: usize = 3;

/// Most bytes of a name, as it is repeated with every hit.
const MOST_NAME: usize = 1000;

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

/// One `inner_hits` section.
#[derive(Debug, Clone, PartialEq)]
pub struct InnerHits {
    /// Name in the answer.
    pub name: String,
    /// The search for the hits, without its query, which is that of the group or of the objects.
    pub body: Box<SearchBody>,
}

pub(crate) fn shape() -> Shape {
    object([
        ("field", text()),
        ("inner_hits", several(named("InnerHits"))),
        ("max_concurrent_group_searches", int()),
    ])
    .needs(&["field"])
}

/// Reads the `collapse` section.
///
/// # Errors
/// On unknown keys, and inner hits that are malformed or of the same name.
pub fn parse(node: &Node, context: Context) -> Result<Collapse, BodyError> {
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
            _ => return Err(BodyError::unknown_field("collapse", member, shape().names())),
        }
    }
    if inner_hits.len() > MOST_LISTS {
        return Err(BodyError::illegal(format!(
            "[collapse] has [{}] [inner_hits], at most [{MOST_LISTS}] are possible on this server",
            inner_hits.len()
        )));
    }
    check_names(inner_hits.iter().map(|one| &*one.name))?;
    let field = field.ok_or(BodyError::Required { field: "field" })?;
    Ok(Collapse { field, inner_hits })
}

/// What every section may have; `collapse` only that of a group, which has no `highlight` and `explain`.
pub(crate) fn inner_hits_shape() -> Shape {
    object([
        ("name", text()),
        ("ignore_unmapped", flag()),
        ("from", int()),
        ("size", int().preset(DEFAULT_INNER_SIZE)),
        ("sort", named("Sort")),
        ("highlight", named("Highlight")),
        ("explain", flag()),
        ("collapse", named("Collapse")),
    ])
    .and(showing())
}

impl InnerHits {
    /// Reads a section of a `collapse`.
    ///
    /// # Errors
    /// On unknown keys and values, and without a name.
    pub fn of_group(node: &Node, context: Context) -> Result<Self, BodyError> {
        let (name, body) = parse_inner(node, context, true)?;
        let name = name.ok_or_else(|| {
            BodyError::illegal("inner_hits must have a [name] set for each instance in collapse context")
        })?;
        Ok(Self { name, body })
    }

    /// Reads the section of a `nested` clause, which is named after the path of the objects if it has no name.
    ///
    /// # Errors
    /// On unknown keys and values.
    pub fn of_objects(node: &Node, path: &str, context: Context) -> Result<Self, BodyError> {
        let (name, body) = parse_inner(node, context, false)?;
        Ok(Self { name: name.unwrap_or_else(|| path.to_owned()), body })
    }
}

fn parse_inner(
    node: &Node,
    context: Context,
    of_group: bool,
) -> Result<(Option<String>, Box<SearchBody>), BodyError> {
    let Some(members) = node.as_object() else {
        return Err(BodyError::parsing(
            node.at,
            format!("Expected [START_OBJECT] but found [{}]", node.token()),
        ));
    };
    let mut body = SearchBody { size: DEFAULT_INNER_SIZE, ..SearchBody::default() };
    let mut name = None;
    for member in members {
        match &*member.name {
            "name" => {
                let given = value::text(&member.value)?;
                value::check_length("name", &given, MOST_NAME)?;
                name = Some(given);
            }
            "ignore_unmapped" => {
                value::boolean(&member.value)?;
            }
            "size" => body.size = value::unsigned(&member.value, "size")?,
            "collapse" if of_group => {
                let second = parse(&member.value, context)?;
                if !second.inner_hits.is_empty() {
                    return Err(BodyError::parsing(
                        member.at,
                        "[inner_hits] of a [collapse] within [inner_hits] is not supported by this server",
                    ));
                }
                body.collapse = Some(second);
            }
            "from"
            | "sort"
            | "_source"
            | "fields"
            | "docvalue_fields"
            | "stored_fields"
            | "version"
            | "seq_no_primary_term"
            | "track_scores" => body.section(member, context)?,
            "highlight" | "explain" if !of_group => body.section(member, context)?,
            _ => return Err(BodyError::unknown_field("inner_hits", member, inner_hits_shape().names())),
        }
    }
    Ok((name, Box::new(body)))
}

/// Checks that no two sections have the same name.
///
/// # Errors
/// The first name that is there twice.
pub fn check_names<'n>(names: impl Iterator<Item = &'n str>) -> Result<(), BodyError> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(BodyError::illegal(format!(
                "[inner_hits] already contains an entry for key [{name}]"
            )));
        }
    }
    Ok(())
}

impl Collapse {
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
