//! The processors of single documents, one file for each family, and how a definition becomes a chain of processors.

mod bytes;
mod convert;
mod csv;
pub(crate) mod date;
mod date_index_name;
mod dissect;
mod fields;
mod flow;
mod html;
mod json;
mod kv;
mod lists;
mod script;
mod text;
mod uri_parts;

use std::sync::LazyLock;

use serde_json::{Map, Value};
use sparrow_runtime::work::Kept;
use sparrow_wire::suggest::suggestions;

use super::chain::{Action, ForEach, Inference, Node, Pipeline, PipelineCall};
use super::chain::{foreach_shape, inference_shape, pipeline_shape};
use super::config::Config;
use super::counters::Counters;
use super::error::{ConfigError, ProcessorError};
use super::script::Condition;
use super::shape::{Named, Shape, flag, int, list, named, object, one_member, open, text};

/// Most levels of error handlers within error handlers.
const MAX_DEPTH: usize = 20;

/// Builds a pipeline from its definition.
///
/// # Errors
/// The first problem in the definition; when the request must stop, or all definitions would keep more memory than they may.
pub(crate) fn build_pipeline(id: &str, definition: &Map<String, Value>) -> Result<Pipeline, ConfigError> {
    build_in_place_of(0, id, definition)
}

/// Does the same for a pipeline that takes the place of what keeps so many bytes.
///
/// # Errors
/// As [`build_pipeline`].
pub(crate) fn build_in_place_of(
    replaced: usize,
    id: &str,
    definition: &Map<String, Value>,
) -> Result<Pipeline, ConfigError> {
    let (mut pipeline, kept) = Kept::in_place_of(replaced, || read_pipeline(id, definition))?;
    pipeline.kept = Some(kept);
    Ok(pipeline)
}

/// Builds a pipeline that is stored. Formats of dates that an earlier version took and this one refuses read nothing.
///
/// # Errors
/// As [`build_pipeline`].
pub(crate) fn build_stored(id: &str, definition: &Map<String, Value>) -> Result<Pipeline, ConfigError> {
    let refused = match build_pipeline(id, definition) {
        Ok(pipeline) => return Ok(pipeline),
        Err(error) => error,
    };
    let mut usable = definition.clone();
    let reasons: Vec<String> = ["processors", "on_failure"]
        .into_iter()
        .flat_map(|list| date::leave_out_unusable(usable.get_mut(list)))
        .collect();
    if reasons.is_empty() {
        return Err(refused);
    }
    let mut pipeline = build_pipeline(id, &usable)?;
    pipeline.definition.clone_from(definition);
    for reason in reasons {
        tracing::warn!(
            pipeline = id,
            reason,
            "a format of dates that an earlier version took reads no dates any more; put the pipeline with another format"
        );
    }
    Ok(pipeline)
}

fn read_pipeline(id: &str, definition: &Map<String, Value>) -> Result<Pipeline, ConfigError> {
    let mut config = Config::new(None, definition_shape().names(), definition.clone());
    config.optional_text("description")?;
    match config.optional("version") {
        None => {}
        Some(version) if version.is_i64() => {}
        Some(other) => return Err(config.wrong_type("version", "integer", &other)),
    }
    config.optional_object("_meta")?;
    config.boolean("deprecated", false)?;
    let processors = config.optional_list("processors")?.ok_or_else(|| config.missing("processors"))?;
    let handlers = config.optional_list("on_failure")?;
    if handlers.as_ref().is_some_and(Vec::is_empty) {
        return Err(ConfigError::EmptyPipelineOnFailure { id: id.to_owned() });
    }
    let parameters = config.left_over();
    if !parameters.is_empty() {
        return Err(ConfigError::UnknownPipelineParameters { id: id.to_owned(), parameters });
    }
    Ok(Pipeline {
        id: id.to_owned(),
        definition: definition.clone(),
        processors: build_nodes(processors, 0)?,
        on_failure: build_nodes(handlers.unwrap_or_default(), 0)?,
        counters: Counters::default(),
        unusable: None,
        kept: None,
    })
}

fn build_nodes(list: Vec<Value>, depth: usize) -> Result<Vec<Node>, ConfigError> {
    if depth > MAX_DEPTH {
        return Err(ConfigError::TooDeep { limit: MAX_DEPTH });
    }
    list.into_iter().map(|value| build_node(value, depth)).collect()
}

fn build_node(value: Value, depth: usize) -> Result<Node, ConfigError> {
    let malformed = |value: &Value| ConfigError::MalformedProcessor {
        found: value.to_string().chars().take(100).collect(),
    };
    let (kind, parameters) = match value {
        Value::Object(map) if map.len() == 1 => match map.into_iter().next() {
            Some((kind, Value::Object(parameters))) => (kind, parameters),
            // `{"drop": null}` is accepted by Elasticsearch; anything else is not a set of parameters.
            Some((kind, Value::Null)) => (kind, Map::new()),
            Some((_, other)) => return Err(malformed(&other)),
            None => return Err(malformed(&Value::Null)),
        },
        other => return Err(malformed(&other)),
    };
    if let Some((_, reason)) = ELSEWHERE.iter().find(|(type_name, _)| *type_name == kind) {
        return Err(ConfigError::AbsentProcessor { kind, reason });
    }
    let Some(place) = NAMED.iter().position(|(named, ..)| *named == kind) else {
        let names: Vec<&str> = NAMED.iter().map(|(named, ..)| *named).collect();
        return Err(ConfigError::UnknownProcessor { suggestions: suggestions(&kind, &names), kind });
    };
    let mut config = Config::processor(&kind, &KNOWN[place], parameters)?;
    let description = config.optional_text("description")?;
    let ignore_failure = config.boolean("ignore_failure", false)?;
    let handlers = config.optional_list("on_failure")?;
    if handlers.as_ref().is_some_and(Vec::is_empty) {
        return Err(config.unusable("on_failure", "processors list cannot be empty"));
    }
    let condition = Condition::from_config(&mut config)?;
    let action = NAMED[place].1(&mut config, depth)?;
    let tag = config.tag().map(str::to_owned);
    config.finish()?;
    let on_failure = build_nodes(handlers.unwrap_or_default(), depth + 1)?;
    let counters = Counters::default();
    Ok(Node { kind, tag, description, condition, ignore_failure, on_failure, action, counters })
}

/// Ids of the models that processors run, handlers included.
pub(crate) fn model_ids(nodes: &[Node]) -> Box<dyn Iterator<Item = &str> + '_> {
    Box::new(nodes.iter().flat_map(|node| {
        let model = match &node.action {
            Action::Inference(inference) => Some(inference.model_id()),
            _ => None,
        };
        let inner: &[Node] = match &node.action {
            Action::ForEach(each) => std::slice::from_ref(&*each.processor),
            _ => &[],
        };
        model.into_iter().chain(model_ids(inner)).chain(model_ids(&node.on_failure))
    }))
}

/// Pairs of a model and the input field with which inference processors fill `field`.
pub(crate) fn inputs_of(nodes: &[Node], field: &str) -> Vec<(String, String)> {
    let inferences = nodes.iter().filter_map(|node| match &node.action {
        Action::Inference(inference) => Some(inference),
        _ => None,
    });
    inferences
        .filter_map(|inference| {
            Some((inference.model_id().to_owned(), inference.input_of(field)?.to_owned()))
        })
        .collect()
}

/// Processors of Elasticsearch that are not here, and why.
const ELSEWHERE: [(&str, &str); 15] = [
    ("attachment", "text has to be extracted before documents are sent"),
    ("circle", "there is no geometry"),
    ("community_id", "it is not available on this server"),
    ("enrich", "there are no enrich policies"),
    ("fingerprint", "it is not available on this server"),
    ("geo_grid", "there is no geometry"),
    ("geoip", "there is no database of addresses"),
    ("grok", "it is not available on this server; use [dissect], [kv] or [gsub]"),
    ("ip_location", "there is no database of addresses"),
    ("network_direction", "it is not available on this server"),
    ("redact", "it is not available on this server; use [gsub]"),
    ("registered_domain", "it is not available on this server"),
    ("reroute", "there are no data streams; use [set] on [_index]"),
    ("set_security_user", "it is not available on this server"),
    ("user_agent", "there is no database of user agents"),
];

/// Reads the parameters of a processor that is so many levels inside others.
type Build = fn(&mut Config, usize) -> Result<Action, ConfigError>;

/// Says what the parameters hold.
type Shows = fn() -> Shape;

/// A processor that sees one document at a time.
macro_rules! each {
    ($read:path) => {
        |config, _| Ok(Action::Each(Box::new($read(config)?)))
    };
}

/// A processor that changes a text in one way.
macro_rules! changed {
    ($change:expr) => {
        |config, _| Ok(Action::Each(Box::new(text::simple(config, $change, "cannot process it.")?)))
    };
}

/// Every type of processor, what reads its parameters, and what these hold; `packages/http/src/node/nodes.ts` shows the names.
const NAMED: &[(&str, Build, Shows)] = &[
    ("append", each!(lists::Append::from_config), lists::append_shape),
    ("bytes", each!(bytes::from_config), text::simple_shape),
    ("convert", each!(convert::Convert::from_config), convert::convert_shape),
    ("csv", each!(csv::Csv::from_config), csv::csv_shape),
    ("date", each!(date::Date::from_config), date::date_shape),
    (
        "date_index_name",
        each!(date_index_name::DateIndexName::from_config),
        date_index_name::date_index_name_shape,
    ),
    ("dissect", each!(dissect::Dissect::from_config), dissect::dissect_shape),
    ("dot_expander", each!(fields::DotExpander::from_config), fields::dot_expander_shape),
    ("drop", |_, _| Ok(Action::Drop), no_parameters),
    ("fail", each!(flow::Fail::from_config), flow::fail_shape),
    ("foreach", foreach, foreach_shape),
    ("gsub", each!(text::gsub), text::gsub_shape),
    ("html_strip", changed!(html::strip), text::simple_shape),
    ("inference", |config, _| Inference::from_config(config).map(Action::Inference), inference_shape),
    ("join", each!(lists::Join::from_config), lists::join_shape),
    ("json", each!(json::Json::from_config), json::json_shape),
    ("kv", each!(kv::KeyValue::from_config), kv::kv_shape),
    ("lowercase", changed!(str::to_lowercase), text::simple_shape),
    ("pipeline", |config, _| PipelineCall::from_config(config).map(Action::Pipeline), pipeline_shape),
    ("remove", each!(fields::Remove::from_config), fields::remove_shape),
    ("rename", each!(fields::Rename::from_config), fields::rename_shape),
    ("script", each!(script::ScriptProcessor::from_config), script::script_shape),
    ("set", each!(fields::Set::from_config), fields::set_shape),
    ("sort", each!(lists::Sort::from_config), lists::sort_shape),
    ("split", each!(lists::Split::from_config), lists::split_shape),
    ("terminate", |_, _| Ok(Action::Terminate), no_parameters),
    ("trim", changed!(|text: &str| text.trim().to_owned()), text::simple_shape),
    ("uppercase", changed!(str::to_uppercase), text::simple_shape),
    ("uri_parts", each!(uri_parts::UriParts::from_config), uri_parts::uri_parts_shape),
    ("urldecode", changed!(text::url_decode), text::simple_shape),
];

/// The names of the parameters of each of [`NAMED`], with those that every processor has.
static KNOWN: LazyLock<Vec<Vec<&str>>> =
    LazyLock::new(|| NAMED.iter().map(|(.., shows)| shows().and(common()).names().to_vec()).collect());

/// The parameters that every processor has.
fn common() -> [Named; 5] {
    [
        ("description", text()),
        ("if", named("Script").about("the condition under which it runs")),
        ("ignore_failure", flag().preset(false)),
        ("on_failure", list(named("Processor"))),
        ("tag", text()),
    ]
}

fn no_parameters() -> Shape {
    object([])
}

fn foreach(config: &mut Config, depth: usize) -> Result<Action, ConfigError> {
    let inner = ForEach::from_config(config, |processor| {
        if depth > MAX_DEPTH {
            return Err(ConfigError::TooDeep { limit: MAX_DEPTH });
        }
        build_node(processor, depth + 1)
    });
    inner.map(Action::ForEach)
}

/// What a pipeline holds.
pub fn definition_shape() -> Shape {
    let list = || list(named("Processor"));
    object([
        ("description", text()),
        ("processors", list()),
        ("on_failure", list()),
        ("version", int()),
        ("_meta", open()),
        ("deprecated", flag()),
    ])
    .needs(&["processors"])
}

/// What processors hold, as JSON Schema, by its name in the OpenAPI document.
pub fn schemas() -> [Named; 1] {
    let kinds = one_member(NAMED.iter().map(|(name, _, shows)| (*name, shows().and(common()))));
    let about = "One step: an object with one member, whose name says which.";
    [("Processor", kinds.about(about))]
}

/// Handles a null field: no error with `ignore_missing`; otherwise the error ends with `refusal`.
fn null(path: &str, ignore_missing: bool, refusal: &str) -> Result<(), ProcessorError> {
    if ignore_missing {
        Ok(())
    } else {
        Err(ProcessorError::Null { path: path.into(), refusal: refusal.into() })
    }
}

/// Test helper: runs one processor, given as JSON, on a source.
#[cfg(test)]
pub(crate) fn check(processor: Value, source: Value) -> Result<Value, String> {
    let node = build_node(processor, 0).map_err(|error| format!("config: {error}"))?;
    let Action::Each(processor) = node.action else {
        return Err("not a processor of single documents".into());
    };
    let Value::Object(source) = source else { return Err("not an object".into()) };
    let mut document = super::document::Document { source, ..Default::default() };
    processor.run(&mut document).map_err(|error| error.to_string())?;
    Ok(Value::Object(document.source))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{ConfigError, ELSEWHERE, NAMED, build_node, build_pipeline, check, common};

    /// What a parameter may be, of those that have to be there, and of those of which one has to be.
    fn needed(kind: &str, name: &str) -> Value {
        match (kind, name) {
            (_, "processor") => json!({"drop": {}}),
            (_, "formats" | "target_fields") => json!(["ISO8601"]),
            (_, "type") => "string".into(),
            (_, "field") => "a.b".into(),
            ("dissect", "pattern") => "%{a}".into(),
            (_, "input_output") => json!({"input_field": "a", "output_field": "b"}),
            _ => "x".into(),
        }
    }

    /// Whether a processor reads a parameter of this name. What it is not said to have, it cannot read.
    fn is_read(kind: &str, shape: &Value, name: &str) -> bool {
        let mut required: Vec<&str> =
            shape["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        required.extend(match (kind, name) {
            ("set", "copy_from") | ("remove", "keep" | "field") => None,
            ("inference", "target_field" | "field_map" | "field_mappings") => None,
            ("set", _) => Some("value"),
            ("remove", _) => Some("field"),
            ("inference", _) => Some("input_output"),
            _ => None,
        });
        [json!("x"), json!(true), json!({}), json!(["x"])].into_iter().any(|value| {
            let mut parameters: Map<String, Value> =
                required.iter().map(|name| ((*name).to_owned(), needed(kind, name))).collect();
            parameters.insert(name.to_owned(), value);
            match build_node(json!({kind: parameters}), 0) {
                Ok(_) => true,
                // The parameters of a script are read together, before it is compiled.
                Err(ConfigError::Script { .. }) => kind == "script" || name == "if",
                Err(error) => error.property_name() == Some(name),
            }
        })
    }

    #[test]
    fn what_a_processor_is_said_to_have_is_read() {
        let mut unread = Vec::new();
        for (kind, _, shows) in NAMED {
            let shape = shows().and(common());
            let names = shape.names().to_vec();
            let shape = Value::from(shape);
            unread.extend(
                names
                    .into_iter()
                    .filter(|name| !is_read(kind, &shape, name))
                    .map(|name| format!("{kind}: {name}")),
            );
        }
        assert!(unread.is_empty(), "{unread:?}");
    }

    #[test]
    fn a_kind_has_one_name() {
        assert!(NAMED.is_sorted_by(|(one, ..), (next, ..)| one < next));
        assert!(ELSEWHERE.iter().all(|(name, _)| NAMED.iter().all(|(named, ..)| named != name)));
    }

    fn refusal(definition: Value) -> String {
        let Value::Object(definition) = definition else { unreachable!() };
        build_pipeline("p", &definition).unwrap_err().to_string()
    }

    #[test]
    fn definitions_are_refused_by_name() {
        for (definition, message) in [
            (json!({}), "[processors] required property is missing"),
            (
                json!({"processors": {}}),
                "[processors] property isn't a list, but of type [java.util.HashMap]",
            ),
            (json!({"processors": [{"nope": {}}]}), "No processor type exists with name [nope]"),
            (json!({"processors": [{"set": {"field": "a"}}]}), "[value] required property is missing"),
            (json!({"processors": [{"set": {"value": 1}}]}), "[field] required property is missing"),
            (
                json!({"processors": [{"set": {"field": 1, "value": 1}}]}),
                "[field] property isn't a string, but of type [java.lang.Integer]",
            ),
            (
                json!({"processors": [{"trim": {"field": "a", "x": 1, "y": 2}}]}),
                "processor [trim] doesn't support one or more provided configuration parameters [x, y]",
            ),
            (
                json!({"processors": [], "x": 1}),
                "pipeline [p] doesn't support one or more provided configuration parameters [x]",
            ),
            (
                json!({"processors": [], "on_failure": []}),
                "pipeline [p] cannot have an empty on_failure option defined",
            ),
            (
                json!({"processors": [{"trim": {"field": "a", "on_failure": []}}]}),
                "[on_failure] processors list cannot be empty",
            ),
            (json!({"processors": [{"inference": {}}]}), "[model_id] required property is missing"),
        ] {
            assert_eq!(refusal(definition), message);
        }
        assert!(refusal(json!({"processors": [{"drop": {"if": "1 +"}}]})).starts_with("compile error"));
        assert!(refusal(json!({"processors": [1]})).contains("exactly one key"));
    }

    #[test]
    fn common_parameters_are_accepted() {
        let processor = json!({"set": {
            "field": "a", "value": 1, "tag": "t", "description": "d", "ignore_failure": true,
            "on_failure": [{"set": {"field": "e", "value": "x"}}],
        }});
        assert_eq!(check(processor, json!({})).unwrap(), json!({"a": 1}));
    }

    #[test]
    fn handlers_cannot_nest_forever() {
        let mut processor = json!({"fail": {"message": "m"}});
        for _ in 0..40 {
            processor = json!({"fail": {"message": "m", "on_failure": [processor]}});
        }
        assert!(refusal(json!({"processors": [processor]})).contains("nested deeper"));
    }
}
