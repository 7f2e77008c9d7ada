//! A single write as requested, before anything about its index is known.

use serde_json::{Map, Value};

use sparrow_catalog::{ExternalVersion, PRIMARY_TERM};
use sparrow_request::error::EngineError;
use sparrow_request::params::Params;
use sparrow_request::rights;

/// Kind of a write to a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActionKind {
    Index,
    Create,
    Update,
    Delete,
}

impl ActionKind {
    pub(super) const ALL: [Self; 4] = [Self::Index, Self::Create, Self::Update, Self::Delete];

    /// The key of the action in bulk bodies.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    /// The action on the index that the caller must be allowed to carry out. Only a document that has no id, or that
    /// must be new, is added without overwriting anything.
    pub(super) fn needed(self, id: Option<&str>) -> rights::Action {
        match self {
            Self::Create => rights::Action::Create,
            Self::Index if id.is_none() => rights::Action::Create,
            Self::Index => rights::Action::Overwrite,
            Self::Update => rights::Action::Update,
            Self::Delete => rights::Action::Delete,
        }
    }

    /// The kind with this key in bulk bodies.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Preconditions of a write, as given in the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    pub(super) if_seq_no: Option<u64>,
    pub(super) if_primary_term: Option<u64>,
    pub(super) version: Option<i64>,
    pub(super) version_type: VersionType,
}

/// Who assigns version numbers: the server, or the client (`external`, `external_gte`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum VersionType {
    #[default]
    Internal,
    External,
    ExternalGte,
}

impl VersionType {
    /// The names that bodies may have; addresses may also say `external_gt`.
    pub(super) const IN_BODIES: [&str; 3] = ["internal", "external", "external_gte"];

    /// Parses the `version_type` parameter.
    ///
    /// # Errors
    /// An illegal argument error for an unknown name.
    pub(super) fn parse(name: &str) -> Result<Self, EngineError> {
        match name {
            "internal" => Ok(Self::Internal),
            "external" | "external_gt" => Ok(Self::External),
            "external_gte" => Ok(Self::ExternalGte),
            other => Err(EngineError::illegal_argument(format!("No version type match [{other}]"))),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Internal => "INTERNAL",
            Self::External => "EXTERNAL",
            Self::ExternalGte => "EXTERNAL_GTE",
        }
    }
}

/// Checks a sequence number given in a request.
///
/// # Errors
/// An illegal argument error if it is negative.
pub(super) fn sequence_number(number: i64) -> Result<u64, EngineError> {
    u64::try_from(number).map_err(|_| {
        EngineError::illegal_argument(format!("sequence numbers must be non negative. got [{number}]."))
    })
}

/// Checks a primary term given in a request.
///
/// # Errors
/// An illegal argument error if it is negative.
pub(super) fn primary_term(number: i64) -> Result<u64, EngineError> {
    u64::try_from(number).map_err(|_| {
        EngineError::illegal_argument(format!("primary term must be non negative. got [{number}]"))
    })
}

impl Conditions {
    /// Reads the query string parameters `if_seq_no`, `if_primary_term`, `version` and `version_type`.
    ///
    /// # Errors
    /// An illegal argument error for values of a wrong type.
    pub(super) fn from_params(params: &Params<'_>) -> Result<Self, EngineError> {
        Ok(Self {
            if_seq_no: params.integer("if_seq_no")?.map(sequence_number).transpose()?,
            if_primary_term: params.integer("if_primary_term")?.map(primary_term).transpose()?,
            version: params.integer("version")?,
            version_type: params.get("version_type").map(VersionType::parse).transpose()?.unwrap_or_default(),
        })
    }

    /// Applies the preconditions that a pipeline has set in the document's metadata; null removes one.
    ///
    /// # Errors
    /// An illegal argument error for values that would be refused in a request.
    pub(super) fn set_by_pipeline(&mut self, metadata: &Map<String, Value>) -> Result<(), EngineError> {
        for (name, value) in metadata {
            let number = value.as_i64();
            match name.as_str() {
                "_version" => self.version = number,
                "_version_type" => {
                    self.version_type =
                        value.as_str().map(VersionType::parse).transpose()?.unwrap_or_default();
                }
                "_if_seq_no" => self.if_seq_no = number.map(sequence_number).transpose()?,
                "_if_primary_term" => self.if_primary_term = number.map(primary_term).transpose()?,
                // The routing is no condition.
                _ => {}
            }
        }
        Ok(())
    }

    /// The version assigned by the client; `None` if the server counts versions.
    pub(super) fn external(&self) -> Option<ExternalVersion> {
        let or_equal = match self.version_type {
            VersionType::Internal => return None,
            VersionType::External => false,
            VersionType::ExternalGte => true,
        };
        let version = u64::try_from(self.version?).ok()?;
        Some(ExternalVersion { version, or_equal })
    }

    /// The primary term to compare; `None` if the write has no `if_seq_no`.
    pub(super) fn term(&self) -> Option<u64> {
        self.if_seq_no.map(|_| self.if_primary_term.unwrap_or(PRIMARY_TERM))
    }
}

/// One requested write.
#[derive(Debug, Clone)]
pub(super) struct Action<'a> {
    pub(super) kind: ActionKind,
    /// Name of the target; empty if the request has none, which is an error.
    pub(super) index: String,
    pub(super) id: Option<String>,
    pub(super) routing: Option<String>,
    /// Pipeline named in the request; `_none` disables the index's default pipeline.
    pub(super) pipeline: Option<String>,
    pub(super) require_alias: bool,
    pub(super) conditions: Conditions,
    pub(super) retry_on_conflict: usize,
    /// Which parts of the new source an update returns; `None` if it is not to be returned.
    pub(super) returned_source: Option<sparrow_mapping::SourceSelection>,
    /// The document, as a line of a bulk body or the whole body; empty for a deletion.
    pub(super) body: &'a [u8],
}

impl<'a> Action<'a> {
    pub(super) fn new(
        kind: ActionKind,
        index: impl Into<String>,
        id: Option<String>,
        body: &'a [u8],
    ) -> Self {
        Self {
            kind,
            index: index.into(),
            id,
            routing: None,
            pipeline: None,
            require_alias: false,
            conditions: Conditions::default(),
            retry_on_conflict: 0,
            returned_source: None,
            body,
        }
    }

    /// All errors in the action itself, in Elasticsearch's words.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let conditions = &self.conditions;
        if self.index.is_empty() {
            problems.push("index is missing".to_owned());
        }
        match (&self.id, self.kind) {
            (None, ActionKind::Update | ActionKind::Delete) => problems.push("id is missing".to_owned()),
            (None, _) if conditions.version.is_some() || conditions.version_type != VersionType::Internal => {
                problems.push("an id must be provided if version type or value are set".to_owned());
            }
            (Some(id), _) if id.len() > 512 => problems.push(format!(
                "id [{id}] is too long, must be no longer than 512 bytes but was: {}",
                id.len()
            )),
            _ => {}
        }
        if self.kind == ActionKind::Create {
            if conditions.version_type != VersionType::Internal {
                problems
                    .push("create operations only support internal versioning. use index instead".to_owned());
            } else if conditions.version.is_some() {
                problems
                    .push("create operations do not support explicit versions. use index instead".to_owned());
            }
            if conditions.if_seq_no.is_some() {
                problems
                    .push("create operations do not support compare and set. use index instead".to_owned());
            }
        } else if conditions.version_type == VersionType::Internal && conditions.version.is_some() {
            problems.push(
                "internal versioning can not be used for optimistic concurrency control. Please use `if_seq_no` \
                 and `if_primary_term` instead"
                    .to_owned(),
            );
        } else if conditions.version_type != VersionType::Internal && conditions.version.is_none_or(|v| v < 0)
        {
            problems.push(format!(
                "illegal version value [{}] for version type [{}]",
                conditions.version.unwrap_or(-3),
                conditions.version_type.name()
            ));
        }
        if conditions.version.is_some() && conditions.if_seq_no.is_some() {
            problems.push("compare and write operations can not use versioning".to_owned());
        }
        match (conditions.if_seq_no, conditions.if_primary_term.filter(|term| *term != 0)) {
            (Some(_), None) => problems.push("ifSeqNo is set, but primary term is [0]".to_owned()),
            (None, Some(term)) => {
                problems.push(format!("ifSeqNo is unassigned, but primary term is [{term}]"));
            }
            _ => {}
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut Action<'_>), expected: &[&str]) {
        let mut action = Action::new(ActionKind::Index, "books", Some("1".into()), b"{}");
        change(&mut action);
        assert_eq!(action.problems(), expected);
    }

    #[test]
    fn problems_are_told_in_elasticsearchs_words() {
        check(|_| {}, &[]);
        check(|action| action.index.clear(), &["index is missing"]);
        check(
            |action| {
                action.kind = ActionKind::Delete;
                action.id = None;
            },
            &["id is missing"],
        );
        check(|action| action.conditions.if_seq_no = Some(1), &["ifSeqNo is set, but primary term is [0]"]);
        check(
            |action| action.conditions.if_primary_term = Some(1),
            &["ifSeqNo is unassigned, but primary term is [1]"],
        );
        check(
            |action| {
                action.kind = ActionKind::Create;
                action.conditions.if_seq_no = Some(1);
                action.conditions.if_primary_term = Some(1);
            },
            &["create operations do not support compare and set. use index instead"],
        );
        check(
            |action| {
                action.conditions.version = Some(4);
                action.conditions.version_type = VersionType::External;
            },
            &[],
        );
        check(
            |action| action.conditions.version = Some(4),
            &[
                "internal versioning can not be used for optimistic concurrency control. Please use `if_seq_no` and \
               `if_primary_term` instead",
            ],
        );
        assert!(VersionType::parse("nope").unwrap_err().reason().contains("[nope]"));
    }
}
