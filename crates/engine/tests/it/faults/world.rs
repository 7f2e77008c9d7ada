//! The states that a server may be in after a workload.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::steps::{Effect, GONE, Step};
use crate::common::Node;

/// Longest time that a server may take to work again after its disk failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Id of each document → the values of `n` that it may have; none stands for a document that does not exist.
pub type Documents = BTreeMap<&'static str, BTreeSet<Option<i64>>>;
/// The values that a fact may have: one if the last change was acknowledged, several after a request that failed.
pub type Possible = BTreeSet<Option<&'static str>>;

/// What a snapshot may contain.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    pub indices: BTreeMap<&'static str, Vec<Documents>>,
    /// Names of the indices that certainly existed when the snapshot was made.
    pub certain: BTreeSet<&'static str>,
    /// Facts about pipelines and templates, with the values that they may have.
    pub global: BTreeMap<&'static str, Possible>,
}

/// The state that a server may be in: one value for whatever was acknowledged, several after a request that failed.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Index → the sets of documents that it may have: more than one after a failed request that would have replaced all of them at
    /// once.
    pub indices: BTreeMap<&'static str, Vec<Documents>>,
    pub facts: BTreeMap<&'static str, Possible>,
    pub snapshots: BTreeMap<&'static str, Contents>,
    /// Number of acknowledged operations; each item of a bulk request counts.
    pub acknowledged: usize,
    /// Names of the steps that failed, each with its error body.
    pub refused: Vec<(&'static str, String)>,
}

/// Whether a fact is about something that snapshots keep in their global state.
fn is_global(fact: &str) -> bool {
    ["pipeline ", "template ", "component "].iter().any(|kind| fact.starts_with(kind))
}

/// The possible values of a fact that no request has set: only that it does not exist.
fn unknown() -> Possible {
    BTreeSet::from([None])
}

impl World {
    /// Runs a step and records its outcome.
    pub fn run(&mut self, node: &Node, step: &Step) {
        let (status, answer) = node.call(step.op, step.path, step.query, step.body);
        let items: Vec<&Value> = answer["items"]
            .as_array()
            .map(|items| items.iter().filter_map(|item| item.as_object()?.values().next()).collect())
            .unwrap_or_default();
        if !items.is_empty() {
            for (item, (key, after)) in items.iter().zip(step.documents) {
                let status = item["status"].as_u64().unwrap_or_default();
                // What is to be deleted and is not there is as good as deleted.
                let done = status < 300 || (status == 404 && after.is_none());
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
        if done && step.op == "create_snapshot" {
            assert_eq!(answer["snapshot"]["state"], "SUCCESS", "{answer}");
        }
        self.note(step, done);
    }

    /// Records a step that was running when the power was cut, so that both outcomes are possible.
    pub fn may_have(&mut self, step: &Step) {
        self.note(step, false);
    }

    fn note(&mut self, step: &Step, done: bool) {
        step.documents.iter().for_each(|(key, after)| self.note_document(key, *after, done));
        self.note_effect(step.effect, done);
        for (name, after) in step.facts {
            self.acknowledged += usize::from(done);
            self.note_fact(name, BTreeSet::from([Some(*after)]), done);
        }
    }

    fn note_fact(&mut self, name: &'static str, after: Possible, done: bool) {
        let possible = self.facts.entry(name).or_insert_with(unknown);
        if done {
            possible.clear();
        }
        possible.extend(after);
    }

    fn note_document(&mut self, key: &'static str, after: Option<i64>, done: bool) {
        self.note_values(key, &BTreeSet::from([after]), done);
    }

    /// Records that a document has one of some values of `n`; as further possibilities if the request was not `done`.
    fn note_values(&mut self, key: &'static str, after: &BTreeSet<Option<i64>>, done: bool) {
        self.acknowledged += usize::from(done);
        let (index, id) = key.split_once('/').unwrap();
        let alternatives = self.indices.entry(index).or_insert_with(|| vec![Documents::new()]);
        for documents in alternatives {
            let possible = documents.entry(id).or_insert_with(|| BTreeSet::from([None]));
            if done {
                possible.clear();
            }
            possible.extend(after);
        }
    }

    /// Records that all documents of an index were replaced by one of these sets; as further possibilities if the request was not
    /// `done`.
    fn note_documents(&mut self, index: &'static str, after: Vec<Documents>, done: bool) {
        let alternatives = self.indices.entry(index).or_insert_with(|| vec![Documents::new()]);
        if done {
            alternatives.clear();
        }
        alternatives.extend(after);
    }

    fn documents(&self, index: &str) -> Vec<Documents> {
        self.indices.get(index).cloned().unwrap_or_else(|| vec![Documents::new()])
    }

    fn note_effect(&mut self, effect: Effect, done: bool) {
        match effect {
            Effect::None => {}
            Effect::Pipes { document, pipeline, by_version } => {
                let versions = by_version.iter().filter(|(version, _)| self.may_be(pipeline, version));
                let after = versions.map(|(_, value)| Some(*value)).collect();
                self.note_values(document, &after, done);
            }
            Effect::Copies { from, to } => self.note_documents(to, self.documents(from), done),
            Effect::Keeps { snapshot, indices } => {
                let there = BTreeSet::from([Some("there")]);
                let is_certain = |index: &&&str| self.facts.get(&*format!("index {index}")) == Some(&there);
                let contents = Contents {
                    indices: indices.iter().map(|index| (*index, self.documents(index))).collect(),
                    certain: indices.iter().filter(is_certain).copied().collect(),
                    global: self
                        .facts
                        .iter()
                        .filter(|(fact, _)| is_global(fact))
                        .map(|(fact, possible)| (*fact, possible.clone()))
                        .collect(),
                };
                self.snapshots.insert(snapshot, contents);
            }
            Effect::Repeats { from, to } => {
                let contents = self.snapshots.get(from).cloned().unwrap_or_default();
                self.snapshots.insert(to, contents);
            }
            Effect::Restores { snapshot, indices, global } => {
                let contents = self.snapshots.get(snapshot).cloned().unwrap_or_default();
                for (from, to) in indices {
                    let documents = contents.indices.get(from).cloned();
                    self.note_documents(to, documents.unwrap_or_else(|| vec![Documents::new()]), done);
                }
                if global {
                    let facts: Vec<&'static str> =
                        self.facts.keys().copied().filter(|fact| is_global(fact)).collect();
                    for fact in facts {
                        let after = contents.global.get(fact).cloned().unwrap_or_else(unknown);
                        self.note_fact(fact, after, done);
                    }
                }
            }
        }
    }

    /// Whether a fact may have a value.
    pub fn may_be(&self, fact: &str, value: &str) -> bool {
        self.facts.get(fact).is_some_and(|possible| possible.contains(&Some(value)))
    }

    /// Whether an index exists. Panics if that is not among the possibilities.
    pub fn is_there(&self, node: &Node, index: &str, context: &str) -> bool {
        let possible = self.facts.get(&*format!("index {index}")).cloned().unwrap_or_default();
        // A failed bulk or write may have made the index by itself.
        let automatic = self.indices.contains_key(index);
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

    /// Names of the indices that the workload has touched.
    pub fn names(&self) -> BTreeSet<&'static str> {
        let facts = self.facts.keys().filter_map(|fact| fact.strip_prefix("index "));
        facts.chain(self.indices.keys().copied()).collect()
    }

    /// Waits until writes and snapshots work again, which needs no restart once the disk works.
    pub fn settle(&mut self, node: &Node, context: &str) {
        let deadline = Instant::now() + PATIENCE;
        for index in self.names() {
            if !self.is_there(node, index, context) || is_closed(node, index) {
                continue;
            }
            loop {
                let (status, answer) =
                    node.call("index_doc", &format!("index={index}&id=settled"), "", r#"{"n":0}"#);
                let is_blocked = status == 403 && self.may_be(&format!("block {index}"), "true");
                let flushed = node.call("flush", &format!("index={index}"), "", "");
                if (status < 300 || is_blocked) && flushed.0 < 300 {
                    if !is_blocked {
                        node.ok("delete_doc", &format!("index={index}&id=settled"), "refresh=true", "");
                    }
                    break;
                }
                assert!(
                    Instant::now() < deadline,
                    "{context}: {index} takes no writes again: {answer}, {}",
                    flushed.1
                );
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        if !self.facts.contains_key("repository r")
            || node.call("get_repository", "repository=r", "", "").0 != 200
        {
            return;
        }
        let path = "repository=r&snapshot=settled";
        let made = node.ok("create_snapshot", path, "wait_for_completion=true", "");
        assert_eq!(made["snapshot"]["state"], "SUCCESS", "{context}: {made}");
        node.ok("delete_snapshot", path, "", "");
    }

    /// Checks that reads by id give one of the possible values while the disk still fails.
    pub fn check_reads(&self, node: &Node, context: &str) {
        for (index, alternatives) in &self.indices {
            let mut possible = Documents::new();
            for (id, values) in alternatives.iter().flatten() {
                possible.entry(*id).or_default().extend(values);
            }
            for (id, mut possible) in possible {
                if alternatives.iter().any(|documents| !documents.contains_key(id)) {
                    possible.insert(None);
                }
                let (status, answer) = node.call("get_doc", &format!("index={index}&id={id}"), "", "");
                let is_closed = status == 400 && self.may_be(&format!("closed {index}"), "closed");
                if is_closed || (status == 404 && answer["error"].is_object()) {
                    continue;
                }
                assert!(status == 200 || status == 404, "{context}: reading {index}/{id}: {answer}");
                let found = answer["_source"]["n"].as_i64();
                assert!(
                    possible.contains(&found),
                    "{context}: {index}/{id} is {found:?}, possible {possible:?}"
                );
            }
        }
    }
}

/// Whether a value that was found is one of the possible ones.
pub fn allows(possible: &Possible, found: Option<&str>) -> bool {
    let is = |value: &Option<&'static str>| match value {
        Some(GONE) | None => found.is_none(),
        Some(value) => found == Some(*value),
    };
    possible.iter().any(is)
}

/// Whether an index is closed.
pub fn is_closed(node: &Node, index: &str) -> bool {
    let found = node.ok("resolve_index", &format!("name={index}"), "expand_wildcards=all", "");
    found["indices"][0]["attributes"].as_array().is_some_and(|all| all.iter().any(|one| one == "closed"))
}
