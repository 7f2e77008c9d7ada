//! A step of a scripted workload: a request, and what it changes when it succeeds.

/// A request, and what it changes when it succeeds.
pub struct Step {
    pub name: &'static str,
    pub op: &'static str,
    pub path: &'static str,
    pub query: &'static str,
    pub body: &'static str,
    /// Documents that the request changes: `index/id` → value of the field `n`, none for a deletion.
    pub documents: &'static [(&'static str, Option<i64>)],
    /// Facts that hold after the request: name → value. The value for something that does not exist is [`GONE`].
    pub facts: &'static [(&'static str, &'static str)],
    pub effect: Effect,
}

/// The value of a fact about something that was removed.
pub const GONE: &str = "gone";

/// What a request changes beyond single documents.
#[derive(Clone, Copy)]
pub enum Effect {
    None,
    /// A document that goes through a pipeline gets the `n` of the pipeline version in force, which a refused change may have left
    /// as it was.
    Pipes {
        document: &'static str,
        pipeline: &'static str,
        by_version: &'static [(&'static str, i64)],
    },
    /// The index `to` gets the documents of the index `from`.
    Copies {
        from: &'static str,
        to: &'static str,
    },
    /// A snapshot gets the content of these indices, and the pipelines and templates.
    Keeps {
        snapshot: &'static str,
        indices: &'static [&'static str],
    },
    /// The snapshot `to` gets the content of the snapshot `from`.
    Repeats {
        from: &'static str,
        to: &'static str,
    },
    /// Indices are restored from a snapshot, each under another name or in place of a closed index; with `global`, pipelines and
    /// templates too.
    Restores {
        snapshot: &'static str,
        indices: &'static [(&'static str, &'static str)],
        global: bool,
    },
}

pub const fn step(
    name: &'static str,
    op: &'static str,
    path: &'static str,
    query: &'static str,
    body: &'static str,
) -> Step {
    Step { name, op, path, query, body, documents: &[], facts: &[], effect: Effect::None }
}

/// Settings and mapping of the indices that the workloads make.
pub const MAPPING: &str = r#"{"settings":{"refresh_interval":"-1"},"mappings":{"dynamic":true,"properties":{
    "n":{"type":"integer"},"t":{"type":"text"},"v":{"type":"sparse_vector"},
    "o":{"type":"nested","properties":{"k":{"type":"integer"}}}}}}"#;
