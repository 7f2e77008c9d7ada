//! `_field_caps`: the types of fields across several indices, and what each can be used for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};
use serde_json::Value;
use sparrow_mapping::{FieldType, Mapping};
use sparrow_query::Query;

use super::encoding::encode;
use super::point_in_time::keep_matching;
use super::searched::{Searched, resolve_indices, target};
use super::target::{Target, mappings};
use crate::service::SearchService;
use sparrow_query::dsl::{self, Context, value};
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::INDICES;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_runtime::work::{self, Stopped};
use sparrow_search_body::body::{self, read_object};
use sparrow_wire::json::Json;
use sparrow_wire::shape::{Shape, named, object, several, text};
use sparrow_wire::{BodyError, glob};

pub(crate) const OPERATIONS: &[Operation<SearchService>] =
    &[Operation::new("field_caps", Action::FieldCaps, Lane::Read, field_caps)
        .about("Which fields there are, and what can be done with them.")
        .holds("FieldCapsRequest", shape)
        .takes(&[INDICES, "ignore_throttled fields include_unmapped include_empty_fields filters types"])
        .stops()
        .shed()];

/// What a request holds.
fn shape() -> Shape {
    object([("fields", several(text())), ("index_filter", named("Query"))])
}

/// Fields that every index has: name, type, searchable, aggregatable.
const METADATA: [(&str, &str, bool, bool); 14] = [
    ("_data_stream_timestamp", "_data_stream_timestamp", false, false),
    ("_doc_count", "integer", false, false),
    ("_field_names", "_field_names", true, false),
    ("_id", "_id", true, false),
    ("_ignored", "_ignored", true, true),
    ("_ignored_source", "_ignored_source", false, false),
    ("_index", "_index", true, true),
    ("_index_mode", "_index_mode", true, true),
    ("_nested_path", "_nested_path", true, false),
    ("_routing", "_routing", true, false),
    ("_seq_no", "_seq_no", true, true),
    ("_source", "_source", false, false),
    ("_tier", "keyword", true, true),
    ("_version", "_version", false, true),
];

/// The parameters of a request.
#[derive(Default)]
struct FieldCapsRequest {
    fields: Vec<String>,
    include_unmapped: bool,
    include_empty: bool,
    filters: Vec<String>,
    types: Vec<String>,
    index_filter: Option<Query>,
}

/// What one index supports for a field.
struct Capability {
    index: usize,
    metadata: bool,
    searchable: bool,
    aggregatable: bool,
    meta: Option<Value>,
}

/// Type of a field → what each index with that type supports.
type ByType = BTreeMap<&'static str, Vec<Capability>>;
type ByField = BTreeMap<String, ByType>;

/// The answer. It is made while it is written: for many indices it is far longer than what they have of the fields.
#[derive(Serialize)]
struct Answer<'a> {
    indices: &'a [&'a str],
    fields: Fields<'a>,
}

/// The fields of the answer, with the names of the indices.
struct Fields<'a> {
    by_field: &'a ByField,
    names: &'a [&'a str],
    include_unmapped: bool,
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.by_field.iter();
        serializer.collect_map(
            fields.map(|(field, types)| (field, merged(types, self.names, self.include_unmapped))),
        )
    }
}

/// Handles `GET|POST [/{index}]/_field_caps`.
fn field_caps(
    service: &SearchService,
    request: &Request,
    bytes: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let mut asked = read(request, bytes)?;
    let right = match &asked.index_filter {
        None => request.right(),
        // Which indices hold a match says what is in them, which seeing their fields does not entitle to.
        Some(_) => request.right().and(Action::Search),
    };
    let mut handles = resolve_indices(service, request, right)?;
    if asked.fields.is_empty() {
        return Err(EngineError::invalid("no fields specified"));
    }
    if let Some(query) = &mut asked.index_filter {
        let targets: Vec<Target> = handles.iter().map(|handle| target(service, handle)).collect();
        let mappings = mappings(&targets);
        encode(service, &handles, &mappings, &mut [&mut *query], &request.caller, cancel.flag(), None)?;
        let kept = keep_matching(targets, query)?;
        let names: BTreeSet<&str> = kept.iter().map(|target| target.shard.index.as_str()).collect();
        handles.retain(|handle| names.contains(handle.handle.name.as_str()));
    }
    let mut by_field = ByField::new();
    for (number, handle) in handles.iter().enumerate() {
        collect(number, handle, &asked, &mut by_field)?;
    }
    let names: Vec<&str> = handles.iter().map(|handle| handle.handle.name.as_str()).collect();
    let fields = Fields { by_field: &by_field, names: &names, include_unmapped: asked.include_unmapped };
    Ok(Reply::ok(&Answer { indices: &names, fields }))
}

fn read(request: &Request, bytes: &[u8]) -> Result<FieldCapsRequest, EngineError> {
    let params = request.params();
    let list = |name: &str| -> Vec<String> {
        let text = params.get(name).unwrap_or_default();
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let mut asked = FieldCapsRequest {
        fields: glob::distinct("fields", list("fields"))?,
        include_unmapped: params.bool("include_unmapped", false)?,
        include_empty: params.bool("include_empty_fields", true)?,
        filters: list("filters"),
        types: list("types"),
        index_filter: None,
    };
    const FILTERS: [&str; 5] = ["+metadata", "-metadata", "-parent", "-nested", "-multifield"];
    if let Some(unknown) = asked.filters.iter().find(|filter| !FILTERS.contains(&filter.as_str())) {
        return Err(EngineError::illegal_argument(format!("Unknown field caps filter [{unknown}]")));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(asked);
    }
    let node = read_object(bytes)?;
    for member in node.as_object().unwrap_or_default() {
        match &*member.name {
            "fields" => {
                if params.get("fields").is_some() {
                    return Err(EngineError::illegal_argument(
                        "can't specify a request body and [fields] request parameter, either specify a request \
                         body or the [fields] request parameter",
                    ));
                }
                if !matches!(&member.value.json, Json::String(_) | Json::Array(_)) {
                    return Err(BodyError::ValueType {
                        parser: "field_caps_request",
                        field: "fields".to_owned(),
                        token: member.value.token(),
                        at: member.value.at,
                    }
                    .into());
                }
                asked.fields = glob::distinct("fields", value::texts(&member.value)?)?;
            }
            "index_filter" => {
                let context = Context::new(body::DEFAULT_SIZE);
                asked.index_filter = Some(dsl::parse_query(&member.value, context)?);
            }
            _ => {
                return Err(BodyError::unknown_field("field_caps_request", member, shape().names()).into());
            }
        }
    }
    Ok(asked)
}

impl FieldCapsRequest {
    fn wants(&self, path: &str) -> bool {
        self.fields.iter().any(|wanted| glob::matches(wanted, path))
    }

    fn leaves_out(&self, filter: &str) -> bool {
        self.filters.iter().any(|given| given == filter)
    }

    fn wants_type(&self, name: &str) -> bool {
        self.types.is_empty() || self.types.iter().any(|wanted| wanted == name)
    }
}

fn collect(
    index: usize,
    searched: &Searched,
    asked: &FieldCapsRequest,
    by_field: &mut ByField,
) -> Result<(), EngineError> {
    let mapping = searched.handle.mapping();
    let mut add = |path: &str, type_name: &'static str, capability: Capability| {
        if asked.wants_type(type_name) {
            by_field.entry(path.to_owned()).or_default().entry(type_name).or_default().push(capability);
        }
    };
    for (name, type_name, searchable, aggregatable) in METADATA {
        if asked.wants(name) && !asked.leaves_out("-metadata") {
            add(name, type_name, Capability { index, metadata: true, searchable, aggregatable, meta: None });
        }
    }
    if asked.leaves_out("+metadata") {
        return Ok(());
    }
    let mut leaves: Vec<(&str, &FieldType)> = Vec::new();
    for (path, field_type) in mapping.named_fields() {
        work::check()?;
        if asked.wants(path) {
            leaves.push((path, field_type));
        }
    }
    if asked.leaves_out("-multifield") {
        leaves.retain(|(path, _)| !is_multi_field(&mapping, path));
    }
    if !asked.include_empty {
        let snapshot = searched.restricted.clone().unwrap_or_else(|| searched.handle.snapshot());
        let mut filled = Vec::new();
        for leaf in leaves {
            work::check()?;
            if snapshot.has_values(leaf.0)? {
                filled.push(leaf);
            }
        }
        leaves = filled;
    }
    let mut objects = BTreeSet::new();
    for (path, field_type) in leaves {
        work::check()?;
        let on = |name: &str| mapping.parameter(path, name) != Some(&Value::Bool(false));
        let (searchable, aggregatable) = match field_type {
            FieldType::Text { .. } | FieldType::DenseVector(_) => (on("index"), field_type.has_text_column()),
            FieldType::SparseVector
            | FieldType::RankFeatures
            | FieldType::SemanticText(_)
            | FieldType::Completion(_) => (true, false),
            FieldType::Binary => (false, false),
            _ => (on("index") || on("doc_values"), on("doc_values")),
        };
        let meta = mapping.parameter(path, "meta").cloned();
        add(path, field_type.family(), Capability { index, metadata: false, searchable, aggregatable, meta });
        objects.insert(path);
    }
    if !asked.leaves_out("-parent") {
        for path in parents(&mapping, asked)? {
            let capability =
                Capability { index, metadata: false, searchable: false, aggregatable: false, meta: None };
            add(&path, mapping.field(&path).map_or("object", FieldType::name), capability);
        }
    }
    Ok(())
}

/// Paths of the object fields that the request asks for.
fn parents(mapping: &Mapping, asked: &FieldCapsRequest) -> Result<BTreeSet<String>, Stopped> {
    let mut parents = BTreeSet::new();
    for (path, _) in mapping.named_fields() {
        for (end, _) in path.match_indices('.') {
            work::check()?;
            let parent = &path[..end];
            if matches!(mapping.field(parent), Some(FieldType::Object { .. })) && asked.wants(parent) {
                parents.insert(parent.to_owned());
            }
        }
    }
    Ok(parents)
}

fn is_multi_field(mapping: &Mapping, path: &str) -> bool {
    mapping.concrete(path).rsplit_once('.').is_some_and(|(parent, _)| {
        mapping.field(parent).is_some_and(|parent| !matches!(parent, FieldType::Object { .. }))
    })
}

/// Names of the indices in which a field has no type.
fn unmapped<'a>(types: &ByType, names: &[&'a str]) -> Vec<&'a str> {
    let mapped: BTreeSet<usize> = types.values().flatten().map(|capability| capability.index).collect();
    let all = names.iter().enumerate();
    all.filter(|(index, _)| !mapped.contains(index)).map(|(_, name)| *name).collect()
}

/// What a field supports as one of its types, over all indices.
#[derive(Default, Serialize)]
struct TypeCapabilities<'a> {
    #[serde(rename = "type")]
    type_name: &'a str,
    metadata_field: bool,
    searchable: bool,
    aggregatable: bool,
    /// Names of the indices in which the field has this type; none if it has the same type everywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    indices: Option<Vec<&'a str>>,
    /// Names of the indices that cannot search the field; none if all can or none can.
    #[serde(skip_serializing_if = "Option::is_none")]
    non_searchable_indices: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    non_aggregatable_indices: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    meta: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

/// Type → what the field supports as that type, and where it has none if that is asked for.
fn merged<'a>(
    types: &'a ByType,
    names: &[&'a str],
    include_unmapped: bool,
) -> BTreeMap<&'a str, TypeCapabilities<'a>> {
    let unmapped = if include_unmapped { unmapped(types, names) } else { Vec::new() };
    let is_one = types.len() + usize::from(!unmapped.is_empty()) == 1;
    let shown = types.iter().map(|(type_name, capabilities)| {
        let all = |of: fn(&Capability) -> bool| capabilities.iter().all(of);
        let any = |of: fn(&Capability) -> bool| capabilities.iter().any(of);
        let those = |without: fn(&Capability) -> bool| -> Vec<&'a str> {
            capabilities.iter().filter(|one| !without(one)).map(|one| names[one.index]).collect()
        };
        let differ = |of: fn(&Capability) -> bool| (any(of) && !all(of)).then(|| those(of));
        let mut meta: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (key, value) in capabilities.iter().filter_map(|one| one.meta.as_ref()?.as_object()).flatten() {
            meta.entry(key).or_default().insert(value.as_str().unwrap_or_default());
        }
        let capabilities = TypeCapabilities {
            type_name,
            metadata_field: any(|one| one.metadata),
            searchable: all(|one| one.searchable),
            aggregatable: all(|one| one.aggregatable),
            indices: (!is_one).then(|| those(|_| false)),
            non_searchable_indices: differ(|one| one.searchable),
            non_aggregatable_indices: differ(|one| one.aggregatable),
            meta,
        };
        (*type_name, capabilities)
    });
    let mut shown: BTreeMap<&str, TypeCapabilities<'a>> = shown.collect();
    if !unmapped.is_empty() {
        let nothing =
            TypeCapabilities { type_name: "unmapped", indices: Some(unmapped), ..Default::default() };
        shown.insert(nothing.type_name, nothing);
    }
    shown
}
