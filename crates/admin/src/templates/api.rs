//! `_index_template` and `_component_template`.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use sparrow_catalog::Node;
use sparrow_catalog::templates::alias_rights::{self, ANY_INDEX};
use sparrow_catalog::templates::definition::invalid;
use sparrow_catalog::templates::{Body, Component, IndexTemplate, TemplateSet};
use sparrow_request::body::{parse_json, parse_object};
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::operation::parameters::{SHOWN, TIMEOUTS};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_wire::glob;

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("put_index_template", Action::PutIndexTemplate, Lane::Write, put_index_template)
        .about("Defines what new indices get whose names match.")
        .holds("IndexTemplate", IndexTemplate::shape)
        .takes(&["create cause master_timeout"]),
    Operation::new("get_index_template", Action::GetIndexTemplate, Lane::Look, get_index_template)
        .about("Index templates.")
        .takes(&[SHOWN]),
    Operation::new("delete_index_template", Action::DeleteIndexTemplate, Lane::Write, delete_index_template)
        .about("Deletes index templates.")
        .takes(&[TIMEOUTS]),
    Operation::new("simulate_index_template", Action::SimulateIndexTemplate, Lane::Trial, simulate)
        .about("Shows what a new index would get.")
        .holds("IndexTemplate", IndexTemplate::shape)
        .takes(&["create cause master_timeout include_defaults flat_settings"]),
    Operation::new("put_component_template", Action::PutComponentTemplate, Lane::Write, put_component)
        .about("A part that index templates are made of.")
        .holds("ComponentTemplate", Component::shape)
        .takes(&["create cause master_timeout timeout"]),
    Operation::new("get_component_template", Action::GetComponentTemplate, Lane::Look, get_component)
        .about("Component templates.")
        .takes(&[SHOWN]),
    Operation::new(
        "delete_component_template",
        Action::DeleteComponentTemplate,
        Lane::Write,
        delete_component,
    )
    .about("Deletes component templates.")
    .takes(&[TIMEOUTS]),
];

/// `PUT|POST /_index_template/{name}`
fn put_index_template(
    node: &Node,
    request: &Request,
    body: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let name = request.part("name");
    let create = request.params().bool("create", false)?;
    let template = IndexTemplate::parse(name, &parse_json(body)?)?;
    node.indices.templates.change(|set| {
        if create && set.index.contains_key(name) {
            return Err(EngineError::illegal_argument(format!("index template [{name}] already exists")));
        }
        check(set, name, &template)?;
        // What its components say too: it decides which indices get that.
        let patterns = &template.patterns;
        alias_rights::check(&request.caller, &set.composed(&template), patterns, patterns)?;
        set.index.insert(name.to_owned(), Arc::new(template));
        Ok(())
    })?;
    Ok(Reply::acknowledged())
}

/// Checks an index template against the stored templates.
fn check(set: &TemplateSet, name: &str, template: &IndexTemplate) -> Result<(), EngineError> {
    let missing: Vec<&str> = template
        .composed_of
        .iter()
        .filter(|component| {
            !set.component.contains_key(*component) && !template.ignore_missing.contains(component)
        })
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        let cause = format!(
            "index template [{name}] specifies component templates [{}] that do not exist",
            missing.join(", ")
        );
        return Err(invalid("index_template", name, &cause));
    }
    let priority = template.priority.unwrap_or(0);
    let rivals: Vec<(&String, &Arc<IndexTemplate>)> = set
        .index
        .iter()
        .filter(|(other, it)| {
            *other != name
                && it.priority.unwrap_or(0) == priority
                && overlap(&it.patterns, &template.patterns)
        })
        .collect();
    if !rivals.is_empty() {
        let names: Vec<&str> = rivals.iter().map(|(name, _)| name.as_str()).collect();
        let with: Vec<String> =
            rivals.iter().map(|(name, it)| format!("{name} => [{}]", it.patterns.join(", "))).collect();
        return Err(EngineError::illegal_argument(format!(
            "index template [{name}] has index patterns [{}] matching patterns from existing templates [{}] with \
             patterns ({}) that have the same priority [{priority}], multiple index templates may not match during \
             index creation, please use a different priority",
            template.patterns.join(", "),
            names.join(","),
            with.join(",")
        )));
    }
    compose(set, template).map(|_| ()).map_err(|error| {
        let reason = format!("composable template [{name}] template after composition is invalid");
        EngineError::api(400, Exception::new("illegal_argument_exception", reason).because(error.exception()))
    })
}

/// Merges a template with its components, and checks the result.
fn compose(set: &TemplateSet, template: &IndexTemplate) -> Result<Body, EngineError> {
    let body = set.composed(template);
    body.mapping()?.check_limits(&body.settings.limits())?;
    Ok(body)
}

/// Whether some name can match patterns of both lists.
fn overlap(a: &[String], b: &[String]) -> bool {
    a.iter().any(|a| b.iter().any(|b| patterns_overlap(a.as_bytes(), b.as_bytes())))
}

/// Whether a text can match both patterns: computes which pairs of places in the patterns the same text can reach.
fn patterns_overlap(a: &[u8], b: &[u8]) -> bool {
    let mut reachable = vec![vec![false; b.len() + 1]; a.len() + 1];
    reachable[0][0] = true;
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            if !reachable[i][j] {
                continue;
            }
            let (in_a, in_b) = (a.get(i), b.get(j));
            if in_a == Some(&b'*') {
                // It takes nothing, or whatever the other one has next.
                reachable[i + 1][j] = true;
                if j < b.len() {
                    reachable[i][j + 1] = true;
                }
            }
            if in_b == Some(&b'*') {
                reachable[i][j + 1] = true;
                if i < a.len() {
                    reachable[i + 1][j] = true;
                }
            }
            if in_a.is_some() && in_a == in_b {
                reachable[i + 1][j + 1] = true;
            }
        }
    }
    reachable[a.len()][b.len()]
}

/// `GET|HEAD /_index_template[/{name}]`
fn get_index_template(
    node: &Node,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let flat = request.params().bool("flat_settings", false)?;
    let set = node.indices.templates.set();
    let templates: Vec<Value> = wanted(request.part("name"), &set.index, "index template matching")?
        .into_iter()
        .map(|(name, template)| json!({"name": name, "index_template": template.to_json(flat)}))
        .collect();
    Ok(Reply::ok(&json!({"index_templates": templates})))
}

/// `DELETE /_index_template/{name}`
fn delete_index_template(
    node: &Node,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let names = request.part("name");
    node.indices.templates.change(|set| {
        let deleted: Vec<String> = chosen(names, &set.index).map_err(|missing| missing_template(&missing))?;
        for name in deleted {
            set.index.remove(&name);
        }
        Ok(())
    })?;
    Ok(Reply::acknowledged())
}

/// The error `index_template_missing_exception` for templates that do not exist.
pub(super) fn missing_template(names: &[String]) -> EngineError {
    let reason = format!("index_template [{}] missing", names.join(","));
    EngineError::api(404, Exception::new("index_template_missing_exception", reason))
}

/// `PUT|POST /_component_template/{name}`
fn put_component(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let name = request.part("name");
    let create = request.params().bool("create", false)?;
    let component = Component::parse(name, &parse_json(body)?)?;
    node.indices.templates.change(|set| {
        // The templates that use it decide which indices get what it says.
        let users = set.index.values().filter(|it| it.composed_of.iter().any(|part| part == name));
        let patterns: Vec<String> = users.flat_map(|it| it.patterns.iter().cloned()).collect();
        alias_rights::check(&request.caller, &component.body, ANY_INDEX, &patterns)?;
        if create && set.component.contains_key(name) {
            return Err(EngineError::illegal_argument(format!("component template [{name}] already exists")));
        }
        set.component.insert(name.to_owned(), Arc::new(component));
        for (user, template) in &set.index {
            if !template.composed_of.iter().any(|it| it == name) {
                continue;
            }
            if let Err(error) = compose(set, template) {
                let reason = format!(
                    "updating component template [{name}] results in invalid composable template [{user}] after \
                     templates are merged"
                );
                let exception = Exception::new("illegal_argument_exception", reason).because(error.exception());
                return Err(EngineError::api(400, exception));
            }
        }
        Ok(())
    })?;
    Ok(Reply::acknowledged())
}

/// `GET|HEAD /_component_template[/{name}]`
fn get_component(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let flat = request.params().bool("flat_settings", false)?;
    let set = node.indices.templates.set();
    let components: Vec<Value> = wanted(request.part("name"), &set.component, "component template matching")?
        .into_iter()
        .map(|(name, component)| json!({"name": name, "component_template": component.to_json(flat)}))
        .collect();
    Ok(Reply::ok(&json!({"component_templates": components})))
}

/// `DELETE /_component_template/{name}`
fn delete_component(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let names = request.part("name");
    node.indices.templates.change(|set| {
        let deleted = chosen(names, &set.component)
            .map_err(|missing| EngineError::resource_not_found(missing.join(",")))?;
        let users: Vec<&str> = set
            .index
            .iter()
            .filter(|(_, template)| {
                let needed = |it: &String| deleted.contains(it) && !template.ignore_missing.contains(it);
                template.composed_of.iter().any(needed)
            })
            .map(|(name, _)| name.as_str())
            .collect();
        if !users.is_empty() {
            return Err(EngineError::illegal_argument(format!(
                "component templates [{}] cannot be removed as they are still in use by index templates [{}]",
                deleted.join(", "),
                users.join(", ")
            )));
        }
        for name in deleted {
            set.component.remove(&name);
        }
        Ok(())
    })?;
    Ok(Reply::acknowledged())
}

/// `POST /_index_template/_simulate_index/{index}` and `POST /_index_template/_simulate[/{name}]`
fn simulate(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    const SIMULATED: &str = "simulate_template";
    let mut set = TemplateSet::clone(&node.indices.templates.set());
    let (index, name) = (request.part("index"), request.part("name"));
    let body = parse_object(body)?;
    if !body.is_empty() {
        let template_name = if name.is_empty() { SIMULATED } else { name };
        let template = IndexTemplate::parse(template_name, &Value::Object(body))?;
        check(&set, template_name, &template)?;
        set.index.insert(template_name.to_owned(), Arc::new(template));
    }
    let applied = if index.is_empty() {
        let name = if name.is_empty() { SIMULATED } else { name };
        if !set.index.contains_key(name) {
            return Err(EngineError::illegal_argument(format!(
                "unable to simulate template [{name}] that does not exist"
            )));
        }
        set.index.get_key_value(name)
    } else {
        set.matching(index)
    };
    let Some((name, template)) = applied else { return Ok(Reply::ok(&json!({}))) };
    let matches = |patterns: &[String]| match index.is_empty() {
        true => overlap(patterns, &template.patterns),
        false => patterns.iter().any(|one| glob::matches(one, index)),
    };
    let legacy = set.legacy.iter().map(|(name, it)| (name, &it.patterns));
    let beside = set.index.iter().filter(|(other, _)| *other != name).map(|(name, it)| (name, &it.patterns));
    let overlapping: Vec<Value> = legacy
        .chain(beside)
        .filter(|(_, patterns)| matches(patterns))
        .map(|(name, patterns)| json!({"name": name, "index_patterns": patterns}))
        .collect();
    set.check_parts(name, template)?;
    let composed = compose(&set, template)?;
    let template = json!({
        "settings": composed.settings.given(request.params().bool("flat_settings", false)?),
        "mappings": composed.mappings.clone().unwrap_or_default(),
        "aliases": composed.aliases_json(),
    });
    Ok(Reply::ok(&json!({"template": template, "overlapping": overlapping})))
}

type Named<T> = std::collections::BTreeMap<String, Arc<T>>;

/// The templates that a list of names and patterns matches; all if the list is empty.
fn wanted<'a, T>(
    names: &str,
    all: &'a Named<T>,
    what: &str,
) -> Result<Vec<(&'a String, &'a Arc<T>)>, EngineError> {
    let selected = match names.is_empty() {
        true => Ok(all.keys().cloned().collect()),
        false => chosen(names, all),
    };
    let selected = selected.map_err(|missing| {
        EngineError::resource_not_found(format!("{what} [{}] not found", missing.join(",")))
    })?;
    Ok(selected.iter().filter_map(|name| all.get_key_value(name)).collect())
}

/// The names of the templates that a list of names and patterns matches; the error is the list of names that do not
/// exist.
pub(super) fn chosen<T>(names: &str, all: &Named<T>) -> Result<Vec<String>, Vec<String>> {
    let (mut selected, mut missing) = (BTreeSet::new(), Vec::new());
    for one in names.split(',').map(str::trim) {
        if one.contains('*') {
            selected.extend(all.keys().filter(|name| glob::matches(one, name)));
        } else if let Some((name, _)) = all.get_key_value(one) {
            selected.insert(name);
        } else {
            missing.push(one.to_owned());
        }
    }
    if missing.is_empty() { Ok(selected.into_iter().cloned().collect()) } else { Err(missing) }
}

#[cfg(test)]
mod tests {
    use super::patterns_overlap;

    #[test]
    fn patterns_overlap_when_a_name_matches_both() {
        for (a, b, expected) in [
            ("logs-*", "logs-a*", true),
            ("*-a", "b-*", true),
            ("a*", "b*", false),
            ("*", "x", true),
            ("a*c", "ab*", true),
            ("abc", "abc", true),
            ("abc", "abd", false),
            ("a*b*c", "a*d", false),
            ("", "*", true),
        ] {
            assert_eq!(patterns_overlap(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
            assert_eq!(patterns_overlap(b.as_bytes(), a.as_bytes()), expected, "{b} {a}");
        }
    }
}
