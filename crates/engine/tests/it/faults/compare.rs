//! Compares a server with the states that it may be in.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::world::{Contents, Documents, Possible, World, allows, is_closed};
use crate::common::{Node, options};
use sparrow_engine::Engine;

const WAIT: &str = "wait_for_completion=true";

impl World {
    /// Compares everything but what snapshots have: documents by id and by search, counts, indices, aliases, settings, mappings, pipelines and
    /// templates.
    pub fn check(&self, node: &Node, context: &str) {
        let health = node.ok("cluster_health", "", "", "");
        assert_ne!(health["status"], json!("red"), "{context}: {health}");
        for index in self.names() {
            if !self.is_there(node, index, context) {
                continue;
            }
            let closed = is_closed(node, index);
            if let Some(possible) = self.facts.get(&*format!("closed {index}")) {
                let found = if closed { "closed" } else { "open" };
                let is_new = possible.contains(&None) && !closed;
                assert!(
                    is_new || allows(possible, Some(found)),
                    "{context}: {index} is {found}, possible {possible:?}"
                );
            }
            // What was written to it has to be there when it is opened.
            if closed {
                node.ok("open_index", &format!("index={index}"), "", "");
            }
            check_index(node, index, &self.indices.get(index).cloned().unwrap_or_default(), context);
            if closed {
                node.ok("close_index", &format!("index={index}"), "", "");
            }
        }
        self.check_facts(node, context);
        check_global(node, &self.facts, context);
        if let Some(possible) = self.facts.get("repository r") {
            let there = has_repository(node).then_some("there");
            assert!(allows(possible, there), "{context}: repository r: {there:?}");
        }
    }

    fn check_facts(&self, node: &Node, context: &str) {
        if let Some(possible) = self.facts.get("alias now") {
            let aliases = node.ok("get_alias", "", "", "");
            let has = |index: &&str| aliases[*index]["aliases"]["now"].is_object();
            let of: Vec<&str> = ["a", "b"].into_iter().filter(has).collect();
            assert!(of.len() <= 1, "{context}: the alias is on both");
            let found = of.first().copied();
            assert!(possible.contains(&found), "{context}: the alias is on {found:?}, possible {possible:?}");
        }
        if let Some(possible) = self.facts.get("rolled") {
            let aliases = node.ok("get_alias", "", "", "");
            let first_is_there = aliases["full-000001"].is_object();
            let is_writer = |index: &&str| aliases[*index]["aliases"]["rolled"]["is_write_index"] == true;
            let writers: Vec<&str> = ["full-000001", "full-000002"].into_iter().filter(is_writer).collect();
            assert_eq!(writers.len(), usize::from(first_is_there), "{context}: {aliases}");
            let found = writers.first().copied();
            assert!(possible.contains(&found), "{context}: writes go to {found:?}, possible {possible:?}");
            // The new index comes with the change of the alias, or not at all.
            assert_eq!(
                aliases["full-000002"].is_object(),
                found == Some("full-000002"),
                "{context}: {aliases}"
            );
        }
        let certain = |fact: &str| self.facts.get(fact).filter(|possible| !possible.contains(&None));
        if let Some(possible) = certain("setting a") {
            let settings = node.ok("get_settings", "index=a", "", "");
            let found = settings["a"]["settings"]["index"]["gc_deletes"].as_str();
            assert!(possible.contains(&found), "{context}: {settings}");
        }
        if let Some(possible) = certain("mapping a") {
            let mapping = node.ok("get_mapping", "index=a", "", "");
            let found = mapping["a"]["mappings"]["properties"]["k"]["type"].as_str();
            assert!(possible.contains(&found), "{context}: {mapping}");
        }
        if let Some(possible) = certain("block e")
            && node.call("exists_index", "index=e", "", "").0 == 200
        {
            let settings = node.ok("get_settings", "index=e", "", "");
            let write = &settings["e"]["settings"]["index"]["blocks"]["write"];
            let found = if *write == "true" { "true" } else { "false" };
            assert!(possible.contains(&Some(found)), "{context}: {settings}, possible {possible:?}");
        }
    }

    /// Restores every listed snapshot under other index names and compares its documents, whether the snapshot was acknowledged or
    /// not.
    pub fn check_snapshots(&self, node: &Node, context: &str) {
        if !has_repository(node) {
            return;
        }
        for (name, found) in self.listed(node, context) {
            let contents = &self.snapshots[&*name];
            let body =
                json!({"rename_pattern": "(.+)", "rename_replacement": "check-$1", "include_aliases": false});
            let path = format!("repository=r&snapshot={name}");
            node.ok("restore_snapshot", &path, WAIT, &body.to_string());
            check_contents(node, contents, &found, "check-", &format!("{context}, snapshot {name}"));
            for index in &found {
                node.ok("delete_index", &format!("index=check-{index}"), "", "");
            }
        }
    }

    /// Names of the snapshots on the server → names of their indices. Checks that these snapshots are among those that may exist.
    fn listed(&self, node: &Node, context: &str) -> BTreeMap<String, Vec<String>> {
        let answer = node.ok("get_snapshot", "repository=r&snapshot=_all", "", "");
        let shown = answer["snapshots"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let found: BTreeMap<String, Vec<String>> = shown
            .iter()
            // What failed is shown, and is no snapshot.
            .filter(|it| it["state"] != "FAILED")
            .map(|it| {
                assert_eq!(it["state"], "SUCCESS", "{context}: {it}");
                let indices = it["indices"].as_array().into_iter().flatten().map(text).collect();
                (text(&it["snapshot"]), indices)
            })
            .collect();
        for (fact, possible) in &self.facts {
            let Some(name) = fact.strip_prefix("snapshot ") else { continue };
            let there = found.contains_key(name).then_some("there");
            assert!(allows(possible, there), "{context}: snapshot {name}: {there:?}, possible {possible:?}");
        }
        for name in found.keys() {
            assert!(self.snapshots.contains_key(&**name), "{context}: nobody asked for snapshot {name}");
        }
        found
    }

    /// Restores each snapshot into an empty server that has nothing but the repository folder, and compares.
    pub fn check_backups(&self, node: &Node, repositories: &Path, context: &str) {
        if !has_repository(node) {
            return;
        }
        for (name, found) in self.listed(node, context) {
            let context = format!("{context}, snapshot {name} in an empty server");
            let folder = tempfile::tempdir().unwrap();
            let mut options = options(&folder.path().join("data"));
            options.repo_path = Some(repositories.to_path_buf());
            let empty = Node::new(Engine::open(options).expect("an empty server"), folder);
            let definition = r#"{"type":"fs","settings":{"location":"r","readonly":true}}"#;
            empty.ok("put_repository", "repository=r", "", definition);
            let body = r#"{"include_global_state":true,"include_aliases":false}"#;
            empty.ok("restore_snapshot", &format!("repository=r&snapshot={name}"), WAIT, body);
            let contents = &self.snapshots[&*name];
            check_contents(&empty, contents, &found, "", &context);
            check_global(&empty, &contents.global, &context);
            empty.engine.close();
        }
    }
}

fn has_repository(node: &Node) -> bool {
    node.call("get_repository", "repository=r", "", "").0 == 200
}

/// Compares the indices that were restored from a snapshot with what they may hold.
fn check_contents(node: &Node, contents: &Contents, found: &[String], prefix: &str, context: &str) {
    for index in &contents.certain {
        assert!(found.iter().any(|name| name == index), "{context}: it lacks index {index}");
    }
    for index in found {
        let documents = contents.indices.get(&**index);
        let documents = documents.unwrap_or_else(|| panic!("{context}: nobody asked for index {index}"));
        check_index(node, &format!("{prefix}{index}"), documents, context);
    }
}

fn check_index(node: &Node, index: &str, alternatives: &[Documents], context: &str) {
    let path = format!("index={index}");
    node.ok("refresh", &path, "", "");
    let body = r#"{"query":{"match_all":{}},"size":100}"#;
    let answer = node.ok("search", &path, "", body);
    let hits = answer["hits"]["hits"].as_array().cloned().unwrap_or_default();
    let found: BTreeMap<String, Option<i64>> = hits
        .iter()
        .map(|hit| (hit["_id"].as_str().unwrap_or_default().to_owned(), hit["_source"]["n"].as_i64()))
        .collect();
    assert_eq!(found.len(), hits.len(), "{context}: a document is there twice: {answer}");
    assert_eq!(node.count(index), hits.len() as u64, "{context}");
    // All documents are what one of the possible states says, or the index is not what it may be.
    let fits = |documents: &Documents| {
        let each = documents.iter().all(|(id, values)| values.contains(&found.get(*id).copied().flatten()));
        each && found.keys().all(|id| documents.contains_key(&**id))
    };
    assert!(
        alternatives.iter().any(fits) || (alternatives.is_empty() && found.is_empty()),
        "{context}: {index} has {found:?}, possible {alternatives:?}"
    );
    for id in alternatives.iter().flat_map(|documents| documents.keys()) {
        let by_id = node.call("get_doc", &format!("index={index}&id={id}"), "", "").1;
        let n = found.get(*id).copied().flatten();
        assert_eq!(by_id["_source"]["n"].as_i64(), n, "{context}: {index}/{id} by id and by search");
    }
    // What is found by a number is what the sources say.
    for (id, n) in &found {
        let Some(n) = n else { continue };
        let query = format!("{{\"query\":{{\"term\":{{\"n\":{n}}}}}}}");
        let hits = node.hits(index, &query);
        assert!(hits.iter().any(|(hit, _)| hit == id), "{context}: {index}/{id} is not found by its number");
    }
    check_objects(node, index, &hits, context);
}

/// Objects of the nested field come and go with their documents: each finds its own, and there are no others.
fn check_objects(node: &Node, index: &str, hits: &[Value], context: &str) {
    let mapping = node.ok("get_mapping", &format!("index={index}"), "", "");
    let field = mapping
        .as_object()
        .and_then(|all| all.values().next())
        .map(|one| &one["mappings"]["properties"]["o"]["type"]);
    // A write makes an index that a failure kept from being made, without the field.
    if field.is_none_or(|field| field != "nested") {
        return;
    }
    let mut objects = Vec::new();
    for hit in hits {
        let own = match &hit["_source"]["o"] {
            Value::Array(own) => own.clone(),
            Value::Null => Vec::new(),
            one => vec![one.clone()],
        };
        objects.extend(own.into_iter().map(|object| (hit["_id"].clone(), object["k"].clone())));
    }
    for (id, k) in &objects {
        let query = json!({"query": {"nested": {"path": "o", "query": {"term": {"o.k": k}}}}});
        let found = node.hits(index, &query.to_string());
        let ids: Vec<&str> = found.iter().map(|(id, _)| &**id).collect();
        assert_eq!(ids, [id.as_str().unwrap_or_default()], "{context}: {index} by the object {k}");
    }
    let body = r#"{"size":0,"aggs":{"o":{"nested":{"path":"o"}}}}"#;
    let answer = node.ok("search", &format!("index={index}"), "", body);
    let count = &answer["aggregations"]["o"]["doc_count"];
    assert_eq!(count.as_u64(), Some(objects.len() as u64), "{context}: {index}: {answer}");
}

/// Compares pipelines and templates by the version that each has.
fn check_global(node: &Node, facts: &BTreeMap<&'static str, Possible>, context: &str) {
    for (fact, possible) in facts {
        let Some((kind, name)) = fact.split_once(' ') else { continue };
        let (status, version) = match kind {
            "pipeline" => {
                let (status, answer) = node.call("get_pipeline", &format!("pipeline={name}"), "", "");
                (status, answer[name]["version"].clone())
            }
            "template" => {
                let (status, answer) = node.call("get_index_template", &format!("name={name}"), "", "");
                (status, answer["index_templates"][0]["index_template"]["version"].clone())
            }
            "component" => {
                let (status, answer) = node.call("get_component_template", &format!("name={name}"), "", "");
                (status, answer["component_templates"][0]["component_template"]["version"].clone())
            }
            _ => continue,
        };
        assert!(status == 200 || status == 404, "{context}: {fact} is answered with {status}");
        let found = (status == 200).then(|| version.to_string());
        assert!(allows(possible, found.as_deref()), "{context}: {fact} is {found:?}, possible {possible:?}");
    }
}
