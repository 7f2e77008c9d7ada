//! The `sort` section of a search, as a request states it. [`plan`] binds it to an index.

use serde_json::Value;
use sparrow_tantivy_index::query::sorted::{Distance, SortMode, SortValue};

use crate::shape::{Named, Shape, any, either, flag, named, object, one, open, scalar, several, text};
use sparrow_mapping::geo::meters_of_unit;
use sparrow_mapping::{GeoPoint, MOST_LEVELS};
use sparrow_query::Query;
use sparrow_query::dsl::{Context, DEFAULT_SIZE, parse_query, value};
use sparrow_query::geo::{Validation, distance_type, point};
use sparrow_query::script::{QueryScript, ScriptUse};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member, Node};

/// Sort order of the hits.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Sort {
    /// By score, highest first.
    #[default]
    Score,
    /// By the values of these keys, the first key being the most significant.
    By(Vec<SortField>),
}

/// One key of a sort order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SortField {
    /// Path of a field, or `_score`, `_doc`, `_shard_doc`.
    pub name: String,
    /// Whether the highest values come first.
    pub descending: bool,
    /// Value that stands for a missing one, or `_first` or `_last`; `None` is `_last`.
    pub missing: Option<Value>,
    /// Which of several values of a document counts; by default the lowest when ascending, the highest when
    /// descending.
    pub mode: Option<SortMode>,
    /// Type to assume for the field in an index that does not map it.
    pub unmapped_type: Option<String>,
    /// Type that numbers are compared as: `long`, `double`, `date` or `date_nanos`.
    pub numeric_type: Option<String>,
    /// Format in which dates are read and shown.
    pub format: Option<String>,
    /// What a `_geo_distance` key measures.
    pub distance: Option<FieldDistance>,
    /// The script of a `_script` key.
    pub script: Option<QueryScript>,
    /// The nested fields on the way to the objects whose values count, each with what its objects have to match.
    pub nested: Vec<(String, Option<Query>)>,
}

/// Distances of the points of a field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldDistance {
    /// Path of a `geo_point` field.
    pub field: String,
    /// From where, and in which unit.
    pub distance: Distance,
    /// Whether documents of an index without the field are infinitely far, instead of the key being refused there.
    pub ignore_unmapped: bool,
}

/// The position of the last hit already returned: the search continues with the hits behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Position {
    /// The sort values of that hit.
    pub values: Vec<SortValue>,
    /// Position of its index in the list of targets.
    pub target: usize,
    /// Sequence number of that hit's document.
    pub seq_no: u64,
}

impl SortField {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), descending: name == "_score", ..Self::default() }
    }
}

impl Sort {
    /// The order for a list of keys: no keys, or `_score` descending alone, mean the default order by score.
    pub fn of(keys: Vec<SortField>) -> Self {
        match &keys[..] {
            [] => Sort::Score,
            [one] if one.name == "_score" && one.descending => Sort::Score,
            _ => Sort::By(keys),
        }
    }

    /// The queries that restrict the objects whose values count.
    pub fn queries_mut(&mut self) -> impl Iterator<Item = &mut Query> {
        let keys = match self {
            Sort::Score => &mut [][..],
            Sort::By(keys) => keys,
        };
        keys.iter_mut().flat_map(|key| &mut key.nested).filter_map(|(_, filter)| filter.as_mut())
    }

    /// The sort keys; the default order has a single one, `_score`.
    pub fn keys(&self) -> Vec<SortField> {
        match self {
            Sort::Score => vec![SortField::new("_score")],
            Sort::By(keys) => keys.clone(),
        }
    }
}

/// Reads the `sort` parameter of the URL, such as `a:desc,_score`.
///
/// # Errors
/// For a direction other than `asc` and `desc`.
pub fn from_text(text: &str) -> Result<Sort, BodyError> {
    let mut keys = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, order) = part.rsplit_once(':').unwrap_or((part, ""));
        let mut key = SortField::new(name);
        if !order.is_empty() {
            key.descending = descending(order)?;
        }
        keys.push(checked(key)?);
    }
    Ok(Sort::of(keys))
}

/// Reads the `sort` section of a search body.
///
/// # Errors
/// On malformed orders, unknown options and kinds of sort that this server does not support.
pub fn parse(node: &Node) -> Result<Sort, BodyError> {
    let mut keys = Vec::new();
    match &node.json {
        Json::String(name) => keys.push(checked(SortField::new(name))?),
        Json::Object(members) => parse_object(members, &mut keys)?,
        Json::Array(items) => {
            for item in items {
                match &item.json {
                    Json::String(name) => keys.push(checked(SortField::new(name))?),
                    Json::Object(members) => parse_object(members, &mut keys)?,
                    _ => {
                        return Err(BodyError::illegal(
                            "malformed sort format, within the sort array, an object, or an actual string \
                             are allowed",
                        ));
                    }
                }
            }
        }
        _ => {
            return Err(BodyError::illegal(
                "malformed sort format, either start with array, object, or an actual string",
            ));
        }
    }
    Ok(Sort::of(keys))
}

fn parse_object(members: &[Member], keys: &mut Vec<SortField>) -> Result<(), BodyError> {
    for member in members {
        let mut key = SortField::new(&member.name);
        match &member.value.json {
            Json::String(order) => key.descending = descending(order)?,
            Json::Object(options) if key.name == "_script" => parse_script(options, &mut key)?,
            Json::Object(options) if is_distance(&key.name) => parse_distance(options, &mut key)?,
            Json::Object(options) => parse_options(options, &mut key)?,
            _ => {
                return Err(BodyError::parsing(
                    member.value.at,
                    format!(
                        "malformed sort format, within the sort array, an object, or an actual string are \
                         allowed, found [{}]",
                        member.value.token()
                    ),
                ));
            }
        }
        keys.push(checked(key)?);
    }
    Ok(())
}

/// Most points from which a `_geo_distance` key measures.
const MOST_POINTS: usize = 100;

pub(crate) fn shape() -> Shape {
    let field = text().about("a field, `_score`, or `_doc`");
    let names = ["_geo_distance", "_geoDistance"].map(|name| (name, distance_shape()));
    let named = object(names).and([("_script", script_shape())]);
    let direction = text().about("`asc` or `desc`");
    several(either([field, named.by_field(either([direction, options_shape()]))]))
}

/// The options of a sort key; `_score` takes only `order`.
fn options_shape() -> Shape {
    object([
        order(),
        ("missing", scalar().about("`_first`, `_last`, or a value")),
        mode_shape(),
        ("unmapped_type", text()),
        ("numeric_type", one(&["long", "double", "date", "date_nanos"])),
        ("format", text()),
        ("nested", nested_shape()),
    ])
}

fn order() -> Named {
    ("order", one(&["asc", "desc", "ASC", "DESC"]))
}

fn mode_shape() -> Named {
    ("mode", one(&["min", "max", "sum", "avg", "median"]))
}

/// The path to nested objects. Further inside it may have one of the same kind.
fn nested_shape() -> Shape {
    object([("path", text()), ("filter", named("Query")), ("nested", open())]).needs(&["path"])
}

fn parse_options(options: &[Member], key: &mut SortField) -> Result<(), BodyError> {
    let scored = key.name == "_score";
    let parser = if scored { "_score" } else { "field_sort" };
    for option in options {
        let node = &option.value;
        let within = |error: BodyError| error.within(parser, &option.name, node.at);
        match &*option.name {
            "order" => {
                key.descending = value::text(node).and_then(|text| descending(&text)).map_err(within)?
            }
            "missing" if !scored => match &node.json {
                Json::Array(_) | Json::Object(_) => {
                    return Err(BodyError::ValueType {
                        parser,
                        field: "missing".to_owned(),
                        token: node.token(),
                        at: node.at,
                    });
                }
                Json::Null => key.missing = None,
                Json::String(_) => {
                    key.missing = Some(value::repeated(node, "[missing]").map_err(within)?.into());
                }
                _ => key.missing = Some(node.to_value()),
            },
            "mode" if !scored => {
                key.mode = Some(value::text(node).and_then(|text| mode(&text)).map_err(within)?)
            }
            "unmapped_type" if !scored => key.unmapped_type = value::optional_text(node).map_err(within)?,
            "numeric_type" if !scored => {
                let text = value::text(node).map_err(within)?;
                if !matches!(&*text, "long" | "double" | "date" | "date_nanos") {
                    return Err(within(BodyError::illegal(format!(
                        "invalid value for [numeric_type], must be [long, double, date, date_nanos], got {text}"
                    ))));
                }
                key.numeric_type = Some(text);
            }
            "format" if !scored => key.format = value::format(node).map_err(within)?,
            "nested" if !scored => nested(node, &mut key.nested).map_err(within)?,
            // Of the oldest versions, which Elasticsearch no longer takes either.
            "nested_path" | "nested_filter" if !scored => {
                return Err(BodyError::parsing(
                    option.at,
                    format!("[{}] has been removed in favour of the [nested] parameter", option.name),
                ));
            }
            _ => {
                let options = options_shape();
                return Err(BodyError::unknown_field(
                    parser,
                    option,
                    if scored { &["order"] } else { options.names() },
                ));
            }
        }
    }
    Ok(())
}

fn script_shape() -> Shape {
    object([order(), ("script", named("Script")), ("type", one(&["number"])), mode_shape()])
        .needs(&["script", "type"])
}

fn parse_script(options: &[Member], key: &mut SortField) -> Result<(), BodyError> {
    let mut kind = None;
    for option in options {
        let node = &option.value;
        match &*option.name {
            "order" => key.descending = descending(&value::text(node)?)?,
            "script" => key.script = Some(QueryScript::read(node, ScriptUse::Sort)?),
            "type" => kind = Some(value::text(node)?),
            // Of a number for each document there is only one.
            "mode" => {
                mode(&value::text(node)?)?;
            }
            _ => return Err(BodyError::unknown_field("_script", option, script_shape().names())),
        }
    }
    match kind.as_deref() {
        Some("number") => Ok(()),
        Some("string" | "version") => {
            Err(BodyError::illegal("[_script] sorts by numbers here: [type] must be [number]"))
        }
        Some(other) => Err(BodyError::illegal(format!("Unknown ScriptSortType [{other}]"))),
        None => Err(BodyError::Required { field: "type" }),
    }
}

fn is_distance(name: &str) -> bool {
    matches!(name, "_geo_distance" | "_geoDistance")
}

fn distance_shape() -> Shape {
    object([order(), mode_shape(), ("ignore_unmapped", flag()), ("nested", nested_shape())])
        .and(["sort_mode", "unit", "distance_type", "validation_method"].map(|name| (name, text())))
        .by_field(any())
        .about("by distance: the field with one point or several, and options")
}

/// Options of a `_geo_distance` key, one of which is the field.
fn parse_distance(options: &[Member], key: &mut SortField) -> Result<(), BodyError> {
    let (mut unit, mut ignore_unmapped, mut validation) = (1.0, false, Validation::default());
    let mut field: Option<(String, Vec<GeoPoint>)> = None;
    for option in options {
        let node = &option.value;
        match &*option.name {
            "order" => key.descending = descending(&value::text(node)?)?,
            "unit" => unit = meters_of_unit(&value::text(node)?).map_err(BodyError::illegal)?,
            "mode" | "sort_mode" => key.mode = Some(mode(&value::text(node)?)?),
            "distance_type" => distance_type(node)?,
            "ignore_unmapped" => ignore_unmapped = value::boolean(node)?,
            "validation_method" => validation = Validation::read(node)?,
            "nested" => nested(node, &mut key.nested)?,
            name => {
                if let Some((first, _)) = &field {
                    return Err(BodyError::illegal(format!(
                        "Trying to reset fieldName to [{name}], already set to [{first}]."
                    )));
                }
                field = Some((name.to_owned(), points(node)?));
            }
        }
    }
    if key.mode == Some(SortMode::Sum) {
        return Err(BodyError::illegal("sort_mode [sum] isn't supported for sorting by geo distance"));
    }
    let (field, from) =
        field.ok_or_else(|| BodyError::illegal("no field and points given for [_geo_distance]"))?;
    let from = from.into_iter().map(|point| validation.checked(point, "[_geo_distance]"));
    let from = from.collect::<Result<_, _>>()?;
    key.distance = Some(FieldDistance { field, distance: Distance { from, unit }, ignore_unmapped });
    Ok(())
}

/// Reads one point or a list of them; an array that begins with a number is one.
fn points(node: &Node) -> Result<Vec<GeoPoint>, BodyError> {
    match node.as_array() {
        Some([]) => Err(BodyError::illegal("no points provided for [_geo_distance]")),
        Some(items) if items.len() > MOST_POINTS => Err(BodyError::illegal(format!(
            "[_geo_distance] takes at most [{MOST_POINTS}] points, found [{}]",
            items.len()
        ))),
        Some(items) if !matches!(items[0].json, Json::Number(_)) => items.iter().map(point).collect(),
        _ => point(node).map(|point| vec![point]),
    }
}

/// Reads the path to nested objects, with filters.
fn nested(node: &Node, out: &mut Vec<(String, Option<Query>)>) -> Result<(), BodyError> {
    let (mut path, mut filter, mut inner) = (None, None, None);
    for member in node.as_object().unwrap_or_default() {
        match &*member.name {
            "path" => path = Some(value::text(&member.value)?),
            "filter" => filter = Some(parse_query(&member.value, Context::new(DEFAULT_SIZE))?),
            "nested" if member.value.as_object().is_some() => inner = Some(&member.value),
            _ => return Err(BodyError::unknown_field("nested_sort", member, nested_shape().names())),
        }
    }
    let path = path.ok_or(BodyError::Required { field: "path" })?;
    out.push((path, filter));
    // One level inside the other is as deep as a mapping can be.
    match inner {
        Some(inner) if out.len() < MOST_LEVELS => nested(inner, out),
        Some(_) => Err(BodyError::illegal("[nested] of [sort] has too many levels")),
        None => Ok(()),
    }
}

fn checked(key: SortField) -> Result<SortField, BodyError> {
    match &*key.name {
        "_script" if key.script.is_none() => Err(BodyError::Required { field: "script" }),
        name if is_distance(name) && key.distance.is_none() => {
            Err(BodyError::illegal("[_geo_distance] needs a field and a point"))
        }
        "_shard_doc" if key.descending => Err(BodyError::illegal(
            "[sort] by [_shard_doc] in descending order is not supported by this server",
        )),
        _ => Ok(key),
    }
}

fn descending(order: &str) -> Result<bool, BodyError> {
    match order.to_ascii_lowercase().as_str() {
        "asc" => Ok(false),
        "desc" => Ok(true),
        _ => Err(BodyError::illegal(format!(
            "No enum constant org.elasticsearch.search.sort.SortOrder.{}",
            order.to_uppercase()
        ))),
    }
}

fn mode(text: &str) -> Result<SortMode, BodyError> {
    match text.to_ascii_lowercase().as_str() {
        "min" => Ok(SortMode::Min),
        "max" => Ok(SortMode::Max),
        "sum" => Ok(SortMode::Sum),
        "avg" => Ok(SortMode::Avg),
        "median" => Ok(SortMode::Median),
        _ => Err(BodyError::illegal(format!("Unknown SortMode [{text}]"))),
    }
}

/// Reads `search_after`: one scalar per sort key.
///
/// # Errors
/// When it is empty or holds anything else.
pub fn parse_after(items: &[Node]) -> Result<Vec<Value>, BodyError> {
    if items.is_empty() {
        return Err(BodyError::illegal("Values must contains at least one value."));
    }
    items
        .iter()
        .map(|item| match item.is_scalar() {
            true => Ok(item.to_value()),
            false => Err(BodyError::parsing(
                item.at,
                format!(
                    "Expected [VALUE_STRING] or [VALUE_NUMBER] or [VALUE_BOOLEAN] or [VALUE_NULL] but found \
                     [{}] inside search_after.",
                    item.token()
                ),
            )),
        })
        .collect()
}
