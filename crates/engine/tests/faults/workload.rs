//! What is done to a server, and what it may have afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::common::Node;

/// One request.
pub struct Step {
    pub name: &'static str,
    op: &'static str,
    path: &'static str,
    query: &'static str,
    body: &'static str,
    /// What it changes when it succeeds: index/id → `n` of the document, none for a deletion.
    documents: &'static [(&'static str, Option<i64>)],
    /// Facts that hold afterwards: name → value.
    facts: &'static [(&'static str, &'static str)],
}

const fn step(
    name: &'static str,
    op: &'static str,
    path: &'static str,
    query: &'static str,
    body: &'static str,
) -> Step {
    Step { name, op, path, query, body, documents: &[], facts: &[] }
}

const MAPPING: &str = r#"{"settings":{"refresh_interval":"-1"},"mappings":{"dynamic":true,"properties":{
    "n":{"type":"integer"},"t":{"type":"text"},"v":{"type":"sparse_vector"}}}}"#;
const FIRST: &str = "{\"index\":{\"_id\":\"1\"}}\n{\"n\":1,\"t\":\"red fox\",\"v\":{\"a\":1.5}}\n{\"index\":{\"_id\":\"2\"}}\n\
    {\"n\":2,\"t\":\"blue fox\",\"v\":{\"a\":0.5}}\n{\"create\":{\"_id\":\"3\"}}\n{\"n\":3,\"t\":\"red whale\"}\n";
const SECOND: &str = "{\"index\":{\"_id\":\"2\"}}\n{\"n\":22,\"t\":\"green fox\"}\n{\"delete\":{\"_id\":\"3\"}}\n\
    {\"index\":{\"_id\":\"4\"}}\n{\"n\":4,\"late\":\"a late field\"}\n";

/// The workload, in order. Each step names only what it is about.
pub const STEPS: &[Step] = &[
    Step { facts: &[("index a", "there")], ..step("create a", "create_index", "index=a", "", MAPPING) },
    Step {
        documents: &[("a/1", Some(1)), ("a/2", Some(2)), ("a/3", Some(3))],
        ..step("first bulk", "bulk", "index=a", "", FIRST)
    },
    step("refresh", "refresh", "index=a", "", ""),
    Step {
        documents: &[("a/2", Some(22)), ("a/3", None), ("a/4", Some(4))],
        ..step("second bulk, with a new field", "bulk", "index=a", "", SECOND)
    },
    Step {
        facts: &[("alias now", "a")],
        ..step("alias", "update_aliases", "", "", r#"{"actions":[{"add":{"index":"a","alias":"now"}}]}"#)
    },
    step("flush", "flush", "index=a", "", ""),
    Step {
        documents: &[("a/1", Some(11))],
        ..step("overwrite", "index_doc", "index=a&id=1", "refresh=true", r#"{"n":11,"t":"red fox again"}"#)
    },
    Step {
        facts: &[("setting a", "30s")],
        ..step("settings", "put_settings", "index=a", "", r#"{"index":{"gc_deletes":"30s"}}"#)
    },
    Step { facts: &[("index b", "there")], ..step("create b", "create_index", "index=b", "", MAPPING) },
    Step {
        documents: &[("b/1", Some(100))],
        ..step("write to b", "index_doc", "index=b&id=1", "", r#"{"n":100,"t":"of b"}"#)
    },
    Step {
        facts: &[("mapping a", "keyword")],
        ..step("mapping", "put_mapping", "index=a", "", r#"{"properties":{"k":{"type":"keyword"}}}"#)
    },
    Step {
        facts: &[("alias now", "b")],
        ..step(
            "swap the alias",
            "update_aliases",
            "",
            "",
            r#"{"actions":[{"remove":{"index":"a","alias":"now"}},{"add":{"index":"b","alias":"now"}}]}"#,
        )
    },
    step("upgrade", "upgrade_index", "index=a", "", ""),
    Step {
        documents: &[("a/5", Some(5))],
        ..step("one more", "index_doc", "index=a&id=5", "", r#"{"n":5,"k":"five","t":"red","v":{"a":5}}"#)
    },
    step("merge", "force_merge", "index=a", "max_num_segments=1", ""),
    Step { documents: &[("a/1", None)], ..step("delete 1", "delete_doc", "index=a&id=1", "", "") },
    Step { facts: &[("index c", "there")], ..step("create c", "create_index", "index=c", "", MAPPING) },
    Step { facts: &[("index c", "gone")], ..step("delete c", "delete_index", "index=c", "", "") },
    Step { facts: &[("index d", "there")], ..step("create d", "create_index", "index=d", "", MAPPING) },
    Step {
        documents: &[("d/1", Some(1))],
        ..step("write to d", "index_doc", "index=d&id=1", "", r#"{"n":1,"t":"of d"}"#)
    },
    Step {
        documents: &[("d/1", None)],
        facts: &[("index d", "gone")],
        ..step(
            "remove d with aliases",
            "update_aliases",
            "",
            "",
            r#"{"actions":[{"remove_index":{"index":"d"}},{"add":{"index":"b","alias":"more"}}]}"#,
        )
    },
    Step {
        documents: &[("d/2", Some(2))],
        facts: &[("index d", "there")],
        ..step("write to d after that", "index_doc", "index=d&id=2", "", r#"{"n":2}"#)
    },
    step("flush again", "flush", "index=a", "", ""),
    Step {
        documents: &[("a/6", Some(6))],
        ..step("the last", "index_doc", "index=a&id=6", "", r#"{"n":6,"t":"the last fox"}"#)
    },
];

/// What may be there: one value where it was acknowledged, several where a request failed.
#[derive(Debug, Clone, Default)]
pub struct World {
    documents: BTreeMap<&'static str, BTreeSet<Option<i64>>>,
    facts: BTreeMap<&'static str, BTreeSet<Option<&'static str>>>,
    /// Operations that were acknowledged: items of a bulk count one by one.
    pub acknowledged: usize,
    /// Names of the steps that failed, with what they were told.
    pub refused: Vec<(&'static str, String)>,
}

impl World {
    /// Does a step and notes what became of it.
    pub fn run(&mut self, node: &Node, step: &Step) {
        let (status, answer) = node.call(step.op, step.path, step.query, step.body);
        let items: Vec<&Value> = answer["items"]
            .as_array()
            .map(|items| items.iter().filter_map(|item| item.as_object()?.values().next()).collect())
            .unwrap_or_default();
        if !items.is_empty() {
            for (item, (key, after)) in items.iter().zip(step.documents) {
                let done = item["status"].as_u64().is_some_and(|status| status < 300);
                self.note_document(key, *after, done);
                if !done {
                    self.refused.push((step.name, item.to_string()));
                }
            }
            return;
        }
        // A refresh that was asked for may fail after the write was acknowledged in the log: it may or may not be there.
        let done = status < 300 || (status == 404 && step.op == "delete_doc");
        if !done {
            self.refused.push((step.name, answer.to_string()));
        }
        step.documents.iter().for_each(|(key, after)| self.note_document(key, *after, done));
        for (name, after) in step.facts {
            let possible = self.facts.entry(name).or_insert_with(|| BTreeSet::from([None]));
            if done {
                possible.clear();
                self.acknowledged += 1;
            }
            possible.insert(Some(after));
        }
    }

    /// Notes a step that was under way when the power went.
    pub fn may_have(&mut self, step: &Step) {
        for (key, after) in step.documents {
            self.note_document(key, *after, false);
        }
        for (name, after) in step.facts {
            self.facts.entry(name).or_insert_with(|| BTreeSet::from([None])).insert(Some(after));
        }
    }

    fn note_document(&mut self, key: &'static str, after: Option<i64>, done: bool) {
        let possible = self.documents.entry(key).or_insert_with(|| BTreeSet::from([None]));
        if done {
            possible.clear();
            self.acknowledged += 1;
        }
        possible.insert(after);
    }

    fn is_there(&self, node: &Node, index: &str, context: &str) -> bool {
        let name =
            ["index a", "index b", "index c", "index d"].into_iter().find(|name| name.ends_with(index));
        let possible = name.and_then(|name| self.facts.get(name)).cloned().unwrap_or_default();
        // A failed bulk or write may have made the index by itself.
        let automatic = self.documents.keys().any(|key| key.starts_with(index));
        let (status, answer) = node.call("exists_index", &format!("index={index}"), "", "");
        let there = status == 200;
        let allowed = |fact: Option<&str>| match fact {
            Some("there") => there,
            _ => !there || automatic,
        };
        assert!(
            possible.is_empty() || possible.iter().any(|fact| allowed(*fact)),
            "{context}: index {index} is there: {there} ({answer}), possible {possible:?}"
        );
        there
    }

    /// Waits until writes are taken again, which needs no restart once the disk works.
    pub fn settle(&mut self, node: &Node, context: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        for index in ["a", "b", "d"] {
            if !self.is_there(node, index, context) {
                continue;
            }
            loop {
                let (status, answer) =
                    node.call("index_doc", &format!("index={index}&id=settled"), "", r#"{"n":0}"#);
                let flushed = node.call("flush", &format!("index={index}"), "", "");
                if status < 300 && flushed.0 < 300 {
                    break;
                }
                assert!(
                    Instant::now() < deadline,
                    "{context}: {index} takes no writes again: {answer}, {}",
                    flushed.1
                );
                std::thread::sleep(Duration::from_millis(50));
            }
            node.ok("delete_doc", &format!("index={index}&id=settled"), "refresh=true", "");
        }
    }

    /// Reads by id give what may be there, while the disk still fails.
    pub fn check_reads(&self, node: &Node, context: &str) {
        for (key, possible) in &self.documents {
            let (index, id) = key.split_once('/').unwrap();
            let (status, answer) = node.call("get_doc", &format!("index={index}&id={id}"), "", "");
            if status == 404 && answer["error"].is_object() {
                continue;
            }
            assert!(status == 200 || status == 404, "{context}: reading {key}: {answer}");
            let found = answer["_source"]["n"].as_i64();
            assert!(possible.contains(&found), "{context}: {key} is {found:?}, possible {possible:?}");
        }
    }

    /// Compares everything: documents by id and by search, counts, indices, aliases, settings and mappings.
    pub fn check(&self, node: &Node, context: &str) {
        let health = node.ok("cluster_health", "", "", "");
        assert_ne!(health["status"], json!("red"), "{context}: {health}");
        for index in ["a", "b", "c", "d"] {
            if self.is_there(node, index, context) {
                self.check_index(node, index, context);
            }
        }
        self.check_facts(node, context);
    }

    fn check_index(&self, node: &Node, index: &str, context: &str) {
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
        for (key, possible) in self.documents.iter().filter(|(key, _)| key.starts_with(index)) {
            let id = &key[2..];
            let n = found.get(id).copied().flatten();
            assert!(possible.contains(&n), "{context}: {key} is {n:?}, possible {possible:?}");
            let by_id = node.call("get_doc", &format!("index={index}&id={id}"), "", "").1;
            assert_eq!(by_id["_source"]["n"].as_i64(), n, "{context}: {key} by id and by search");
        }
        for id in found.keys() {
            let known = self.documents.keys().any(|key| *key == format!("{index}/{id}"));
            assert!(known, "{context}: {index}/{id} was never written");
        }
        // What is found by a number is what the sources say.
        for (id, n) in &found {
            let Some(n) = n else { continue };
            let query = format!("{{\"query\":{{\"term\":{{\"n\":{n}}}}}}}");
            let hits = node.hits(index, &query);
            assert!(
                hits.iter().any(|(hit, _)| hit == id),
                "{context}: {index}/{id} is not found by its number"
            );
        }
    }

    fn check_facts(&self, node: &Node, context: &str) {
        let aliases = node.ok("get_alias", "", "", "");
        let of: Vec<&str> =
            ["a", "b"].into_iter().filter(|index| aliases[*index]["aliases"]["now"].is_object()).collect();
        if let Some(possible) = self.facts.get("alias now") {
            assert!(of.len() <= 1, "{context}: the alias is on both");
            let found = of.first().copied();
            assert!(possible.contains(&found), "{context}: the alias is on {found:?}, possible {possible:?}");
        }
        if let Some(possible) = self.facts.get("setting a")
            && !possible.contains(&None)
        {
            let settings = node.ok("get_settings", "index=a", "", "");
            let found = settings["a"]["settings"]["index"]["gc_deletes"].as_str();
            assert!(possible.contains(&found), "{context}: {settings}");
        }
        if let Some(possible) = self.facts.get("mapping a")
            && !possible.contains(&None)
        {
            let mapping = node.ok("get_mapping", "index=a", "", "");
            let found = mapping["a"]["mappings"]["properties"]["k"]["type"].as_str();
            assert!(possible.contains(&found), "{context}: {mapping}");
        }
    }
}
