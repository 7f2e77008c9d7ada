//! Requests that create, show, change and delete indices.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sparrow_mapping::Mapping;

use sparrow_catalog::Node;
use sparrow_catalog::aliases::AliasSpec;
use sparrow_catalog::blocks::Access;
use sparrow_catalog::settings::shown;
use sparrow_catalog::templates::Body;
use sparrow_catalog::{IndexHandle, ResolveOptions, Settings};
use sparrow_request::answers::ShardCounts;
use sparrow_request::body::parse_object;
use sparrow_request::error::EngineError;
use sparrow_request::name_steps::{self, NameSteps};
use sparrow_request::operation::parameters::{INDICES, SHOWN, TIMEOUTS};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::params::Params;
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_runtime::work;
use sparrow_wire::{glob, object};

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("create_index", Action::CreateIndex, Lane::Write, create_index)
        .about("Makes an index.")
        .holds("CreateIndexRequest", Body::shape)
        .takes(&[TIMEOUTS, "wait_for_active_shards"]),
    Operation::new("get_index", Action::GetIndex, Lane::Look, get_index)
        .about("Aliases, mapping and settings of indices.")
        .takes(&[INDICES, SHOWN, "features"]),
    Operation::new("exists_index", Action::GetIndex, Lane::Look, exists_index)
        .about("Is there such an index? 200 or 404.")
        .takes(&[INDICES, SHOWN, "features"]),
    Operation::new("delete_index", Action::DeleteIndex, Lane::Write, delete_index)
        .about("Deletes indices with all that is in them.")
        .takes(&[TIMEOUTS, INDICES]),
    Operation::new("get_mapping", Action::GetMapping, Lane::Look, get_mapping)
        .about("The fields of indices.")
        .takes(&[INDICES, SHOWN, "features"]),
    Operation::new("put_mapping", Action::PutMapping, Lane::Write, put_mapping)
        .about("Adds fields to an index.")
        .holds("Mapping", sparrow_mapping::mapping_shape)
        .takes(&[TIMEOUTS, INDICES, "write_index_only"]),
    Operation::new("get_settings", Action::GetSettings, Lane::Look, get_settings)
        .about("The settings of indices.")
        .takes(&[INDICES, SHOWN, "features"]),
    Operation::new("put_settings", Action::PutSettings, Lane::Write, put_settings)
        .about("Changes the settings of indices.")
        .holds("Settings", Settings::shape)
        .takes(&[TIMEOUTS, INDICES, "flat_settings preserve_existing"]),
    Operation::new("refresh", Action::Refresh, Lane::Write, refresh)
        .about("Makes everything searchable that was written.")
        .takes(&[INDICES]),
    Operation::new("flush", Action::Flush, Lane::Write, flush)
        .about("Puts everything on the disk that was written, and trims the log.")
        .takes(&[INDICES, "force wait_if_ongoing"]),
];

/// Value of `version.created` in the settings that are shown of an index.
const CREATED_VERSION: &str = "8537000";

/// `PUT /{index}`
fn create_index(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let provided_name = request.part("index").to_owned();
    let name = sparrow_catalog::date_math::resolve(&provided_name)?;
    request.right().check([name.as_str()])?;
    sparrow_catalog::names::check(&name)?;
    let body = parse_object(body)?;
    let mut given = Body::default();
    for (key, value) in &body {
        if !given.set(key, value)? {
            let near = Body::shape().near(key);
            return Err(EngineError::parse(format!("unknown key [{key}] for create index{near}")));
        }
    }
    check_aliases(request, &name, &given.aliases)?;
    let handle =
        node.indices.create(node.indices.planned_as(&name, &provided_name, &given)?, request.right())?;
    Ok(Reply::ok(&json!({"acknowledged": true, "shards_acknowledged": true, "index": handle.name})))
}

/// Checks that the caller may give aliases to an index that is being created, for which it needs the right to the index and to the aliases.
///
/// # Errors
/// 403 without the right; 400 for an invalid name.
pub(super) fn check_aliases(
    request: &Request,
    index: &str,
    aliases: &BTreeMap<String, AliasSpec>,
) -> Result<(), EngineError> {
    if aliases.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = aliases
        .keys()
        .map(|alias| sparrow_catalog::aliases::name_for(alias, index))
        .collect::<Result<_, _>>()?;
    let all = std::iter::once(index).chain(names.iter().map(String::as_str));
    request.caller.to(Action::Aliases).check(all)
}

/// `GET /{index}`
fn get_index(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let flat = params.bool("flat_settings", false)?;
    let defaults = params.bool("include_defaults", false)?;
    let features = features(&params)?;
    let names = node.indices.names();
    let of_indices = match features.contains(&"aliases") {
        true => names.aliases_by_index(),
        false => HashMap::new(),
    };
    for_each(node, request, ResolveOptions::metadata(), |handle| {
        let mut sections = Map::new();
        let mut steps = NameSteps::default();
        for feature in &features {
            let value = match *feature {
                "aliases" => {
                    let mut aliases = Map::new();
                    for (alias, spec) in of_indices.get(handle.name.as_str()).into_iter().flatten() {
                        steps.add(1)?;
                        if request.caller.knows(alias) {
                            aliases.insert((*alias).clone(), spec.to_json());
                        }
                    }
                    Value::Object(aliases)
                }
                "mappings" => handle.mapping().shown()?,
                _ => shown(dotted_settings(handle), flat),
            };
            sections.insert((*feature).to_owned(), value);
        }
        if defaults {
            sections.insert("defaults".to_owned(), shown(handle.settings().defaults(), flat));
        }
        Ok(Value::Object(sections))
    })
}

/// The parts of an index that the parameter `features` requests, in their fixed order.
fn features(params: &Params<'_>) -> Result<Vec<&'static str>, EngineError> {
    const ALL: [&str; 3] = ["aliases", "mappings", "settings"];
    let Some(list) = params.get("features") else { return Ok(ALL.to_vec()) };
    let wanted: Vec<&str> = list.split(',').map(str::trim).collect();
    if let Some(unknown) = wanted.iter().find(|name| !ALL.contains(name)) {
        return Err(EngineError::illegal_argument(format!(
            "Invalid feature name [{unknown}] must be one of [aliases, mappings, settings]"
        )));
    }
    Ok(ALL.into_iter().filter(|name| wanted.contains(name)).collect())
}

/// `HEAD /{index}`
fn exists_index(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let options = ResolveOptions::metadata().with(&request.params())?;
    let names = node.indices.names().index_names(request.part("index"), &options, request.right());
    if let Err(error) = &names
        && error.status() == 403
    {
        return Ok(Reply::bytes(403, Vec::new()));
    }
    let exist = names.is_ok_and(|names| !names.is_empty());
    Ok(Reply::bytes(if exist { 200 } else { 404 }, Vec::new()))
}

/// `DELETE /{index}`
fn delete_index(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let expression = request.part("index");
    refuse_patterns(node, expression)?;
    let options = ResolveOptions { forbid_aliases: true, ..ResolveOptions::open_and_closed() };
    let options = options.with(&request.params())?;
    let names = node.indices.names();
    let indices = names.index_names(expression, &options, request.right())?;
    indices
        .iter()
        .filter_map(|name| names.indices.get(name))
        .try_for_each(|handle| handle.check_access(Access::Delete))?;
    for name in indices {
        node.indices.delete(&name)?;
    }
    Ok(Reply::acknowledged())
}

/// `GET /{index}/_mapping`
fn get_mapping(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    for_each(node, request, ResolveOptions::metadata(), |handle| {
        Ok(object([("mappings", handle.mapping().shown()?)]))
    })
}

/// `PUT /{index}/_mapping`
fn put_mapping(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let definition = parse_object(body)?;
    if definition.is_empty() {
        return Err(EngineError::invalid("mapping source is missing"));
    }
    if definition.len() == 1 && definition.contains_key("_doc") {
        return Err(EngineError::illegal_argument("Types cannot be provided in put mapping requests"));
    }
    let definition = Value::Object(definition);
    let params = request.params();
    let options = ResolveOptions::metadata().with(&params)?;
    let handles = if params.bool("write_index_only", false)? {
        vec![node.indices.write_target(request.part("index"), request.right())?]
    } else {
        node.indices.resolve(request.part("index"), options, request.right())?
    };
    // All are checked before any is changed.
    for handle in &handles {
        handle.check_access(Access::MetadataWrite)?;
        widened(handle, &definition)?;
    }
    // Once one of them is changed, all are: what that takes, it took before.
    let _whole = work::leave_behind();
    for handle in handles {
        // Documents of the log are read again by the mapping of then: none that an earlier mapping took may be left in it.
        if *handle.mapping() != widened(&handle, &definition)? && handle.shard.uncommitted() > 0 {
            handle.flush()?;
        }
        let mut writer = handle.changer()?;
        handle.settle_mapping(&mut writer)?;
        let mapping = widened(&handle, &definition)?;
        handle.widen_mapping(&mut writer, &mapping)?;
    }
    Ok(Reply::acknowledged())
}

fn widened(handle: &IndexHandle, definition: &Value) -> Result<Mapping, EngineError> {
    let mapping = handle.mapping().merge_update(definition)?;
    mapping.check_limits(&handle.settings().limits())?;
    mapping.check_analyzers(handle.snapshot().analysis())?;
    let settings = handle.settings();
    mapping.check_similarities(|name| settings.defines_similarity(name))?;
    Ok(mapping)
}

/// `GET /{index}/_settings`
fn get_settings(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let flat = params.bool("flat_settings", false)?;
    let defaults = params.bool("include_defaults", false)?;
    let names: Vec<&str> = request.part("name").split(',').map(str::trim).collect();
    let all = names.iter().all(|name| name.is_empty() || *name == "_all" || *name == "*");
    let chosen = |name: &str| all || names.iter().any(|one| glob::matches(one, name));
    let shape = |mut settings: BTreeMap<String, Value>| {
        settings.retain(|name, _| chosen(name));
        shown(settings, flat)
    };
    let handles = targets(node, request, ResolveOptions::open_and_closed())?;
    handles.iter().try_for_each(|handle| handle.check_access(Access::MetadataRead))?;
    let mut answer = Map::new();
    for handle in handles {
        let mut sections = Map::new();
        let settings = shape(dotted_settings(&handle));
        // As in Elasticsearch, an index without any of them is not shown.
        if !all && !defaults && settings.as_object().is_none_or(Map::is_empty) {
            continue;
        }
        sections.insert("settings".into(), settings);
        if defaults {
            sections.insert("defaults".into(), shape(handle.settings().defaults()));
        }
        answer.insert(handle.name.clone(), Value::Object(sections));
    }
    Ok(Reply::ok(&Value::Object(answer)))
}

/// `PUT /{index}/_settings`
fn put_settings(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let mut changes = parse_object(body)?;
    // `{"settings": {…}}` is accepted as well.
    if let (1, Some(Value::Object(inner))) = (changes.len(), changes.get("settings")) {
        changes = inner.clone();
    }
    if changes.is_empty() {
        return Err(EngineError::invalid("no settings to update"));
    }
    let changes = Value::Object(changes);
    let handles = targets(node, request, ResolveOptions::metadata())?;
    // Blocks can be taken away again.
    let only_blocks = Settings::parse(&changes)?.is_only_blocks();
    let preserve = request.params().bool("preserve_existing", false)?;
    let changed = |handle: &IndexHandle| {
        handle.settings().changed(&changes, &handle.name, &handle.uuid, preserve, handle.is_closed())
    };
    for handle in &handles {
        if !only_blocks {
            handle.check_access(Access::MetadataWrite)?;
        }
        changed(handle)?;
    }
    for handle in handles {
        let mut changer = handle.changer()?;
        // What was acknowledged early is durable before nothing syncs it by itself any more, and while a recovery still keeps it.
        if handle.settings().is_async() {
            changer.sync_log().map_err(|error| handle.failed(error))?;
        }
        handle.replace_metadata(&changer, |metadata| {
            metadata.settings =
                metadata.settings.changed(&changes, &handle.name, &handle.uuid, preserve, metadata.closed)?;
            Ok(())
        })?;
        drop(changer);
        handle.shard.remember_deletions_for(handle.settings().gc_deletes());
    }
    Ok(Reply::acknowledged())
}

/// `POST /{index}/_refresh`
fn refresh(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    on_each(node, request, IndexHandle::refresh)
}

/// `POST /{index}/_flush`
fn flush(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    if params.bool("force", false)? && !params.bool("wait_if_ongoing", true)? {
        return Err(EngineError::invalid("wait_if_ongoing must be true for a force flush"));
    }
    on_each(node, request, IndexHandle::flush)
}

fn on_each(
    node: &Node,
    request: &Request,
    act: impl Fn(&IndexHandle) -> Result<(), EngineError>,
) -> Result<Reply, EngineError> {
    let handles = targets(node, request, ResolveOptions::default())?;
    handles.iter().try_for_each(|handle| act(handle))?;
    Ok(Reply::ok(&json!({"_shards": ShardCounts::all(handles.len())})))
}

/// The indices that a request names; its parameters take precedence over `options`.
pub(super) fn targets(
    node: &Node,
    request: &Request,
    options: ResolveOptions,
) -> Result<Vec<Arc<IndexHandle>>, EngineError> {
    node.indices.resolve(request.part("index"), options.with(&request.params())?, request.right())
}

fn for_each(
    node: &Node,
    request: &Request,
    options: ResolveOptions,
    show: impl Fn(&IndexHandle) -> Result<Value, EngineError>,
) -> Result<Reply, EngineError> {
    let handles = targets(node, request, options)?;
    handles.iter().try_for_each(|handle| handle.check_access(Access::MetadataRead))?;
    let mut shown = Map::new();
    for handle in &handles {
        name_steps::check()?;
        shown.insert(handle.name.clone(), show(handle)?);
    }
    Ok(Reply::ok(&Value::Object(shown)))
}

/// The settings of an index in the form of the API; with dotted names if `flat`.
pub fn settings_json(handle: &IndexHandle, flat: bool) -> Value {
    shown(dotted_settings(handle), flat)
}

/// The settings of an index by their dotted names.
fn dotted_settings(handle: &IndexHandle) -> BTreeMap<String, Value> {
    let metadata = handle.metadata.read().clone();
    let facts = [
        ("provided_name", metadata.provided_name.clone().unwrap_or_else(|| metadata.name.clone())),
        ("creation_date", metadata.creation_millis.to_string()),
        ("uuid", metadata.uuid.clone()),
        ("version.created", CREATED_VERSION.to_owned()),
        ("verified_before_close", "true".to_owned()),
    ];
    let facts = if metadata.closed { &facts[..] } else { &facts[..4] };
    let mut dotted = metadata.settings.dotted(facts);
    if handle.is_flooded() {
        dotted.insert(format!("index.blocks.{}", sparrow_catalog::blocks::FLOOD_STAGE), "true".into());
    }
    dotted
}

/// Checks that the indices of a destructive request are named without patterns, if the setting `action.destructive_requires_name` of the
/// cluster demands it.
///
/// # Errors
/// Illegal argument for a pattern, `_all` or an empty expression.
pub(crate) fn refuse_patterns(node: &Node, expression: &str) -> Result<(), EngineError> {
    if !node.cluster.destructive_requires_name() {
        return Ok(());
    }
    let wild = |part: &str| part == "_all" || part.contains('*');
    if expression.is_empty() || expression.split(',').any(wild) {
        return Err(EngineError::illegal_argument("Wildcard expressions or all indices are not allowed"));
    }
    Ok(())
}
