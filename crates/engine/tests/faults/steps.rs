//! What a step of a scripted workload is: a request, and what it changes when it succeeds.

/// One request.
pub struct Step {
    pub name: &'static str,
    pub op: &'static str,
    pub path: &'static str,
    pub query: &'static str,
    pub body: &'static str,
    /// What it changes when it succeeds: index/id → `n` of the document, none for a deletion.
    pub documents: &'static [(&'static str, Option<i64>)],
    /// Facts that hold afterwards: name → value. The value of what does not exist is [`GONE`].
    pub facts: &'static [(&'static str, &'static str)],
    pub effect: Effect,
}

/// The value of a fact about something that was removed.
pub const GONE: &str = "gone";

/// What a request does to more than single documents.
#[derive(Clone, Copy)]
pub enum Effect {
    None,
    /// A document that goes through a pipeline gets the `n` of the version that is in force, which a refused change may have left as it was.
    Pipes {
        document: &'static str,
        pipeline: &'static str,
        by_version: &'static [(&'static str, i64)],
    },
    /// The documents of an index are those of another.
    Copies {
        from: &'static str,
        to: &'static str,
    },
    /// A snapshot has what these indices hold, and the pipelines and templates.
    Keeps {
        snapshot: &'static str,
        indices: &'static [&'static str],
    },
    /// A snapshot has what another has.
    Repeats {
        from: &'static str,
        to: &'static str,
    },
    /// Indices of a snapshot come back, each under another name or in the place of a closed index; with `global` pipelines and
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
    "n":{"type":"integer"},"t":{"type":"text"},"v":{"type":"sparse_vector"}}}}"#;
