//! Errors of mappings and documents, with the sentences of Elasticsearch.

use sparrow_runtime::work;

use super::location::{Position, Step, locate};
use known_types::other_types;

pub(crate) mod known_types;

pub(crate) const ILLEGAL_ARGUMENT: &str = "illegal_argument_exception";
pub(crate) const NUMBER_FORMAT: &str = "number_format_exception";
pub(crate) const MAPPER_PARSING: &str = "mapper_parsing_exception";
pub(crate) const DOCUMENT_PARSING: &str = "document_parsing_exception";
pub(crate) const STRICT_DYNAMIC: &str = "strict_dynamic_mapping_exception";

/// Why a mapping is refused. All are client errors (400).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MappingError {
    #[error(
        "The mapper type [{type_name}] declared on field [{field}] does not exist. It might have been \
         created within a future version or requires a plugin to be installed. Check the documentation.{}",
        other_types(type_name)
    )]
    UnknownType { field: String, type_name: String },
    #[error("unknown parameter [{parameter}] on mapper [{field}] of type [{type_name}]")]
    UnknownParameter { field: String, type_name: &'static str, parameter: String },
    /// A parameter of Elasticsearch with a value that is not implemented here.
    #[error(
        "parameter [{parameter}] with value [{value}] on mapper [{field}] of type [{type_name}] is not supported"
    )]
    UnsupportedParameter { field: String, type_name: &'static str, parameter: String, value: String },
    #[error("No type specified for field [{field}]")]
    NoType { field: String },
    #[error("{scope} has unsupported parameters: {remaining}")]
    UnsupportedParameters { scope: String, remaining: String },
    #[error("analyzer [{analyzer}] has not been configured in mappings{instead}")]
    UnknownAnalyzer { analyzer: String, instead: String },
    /// A value deep inside a parameter, with all its causes, outermost first.
    #[error("{}", .causes.first().map_or("", |cause| cause.1.as_str()))]
    Nested { causes: Vec<(&'static str, String)> },
    /// Any other malformed definition.
    #[error("{reason}")]
    Malformed { reason: String },
    /// A bad value, reported by Elasticsearch as an illegal argument.
    #[error("{reason}")]
    BadValue { reason: String },
    #[error("mapper [{path}] cannot be changed from type [{from}] to [{to}]")]
    TypeChange { path: String, from: String, to: String },
    #[error("can't merge a non object mapping [{path}] with an object mapping")]
    ObjectOverLeaf { path: String },
    #[error("can't merge a non-nested mapping [{path}] with a field mapping")]
    LeafOverObject { path: String },
    #[error(
        "Mapper for [{path}] conflicts with existing mapper:\n\tCannot update parameter [{parameter}] \
         from [{from}] to [{to}]"
    )]
    ParameterChange { path: String, parameter: String, from: String, to: String },
    /// A definition that cannot take the place of the one that is there.
    #[error("{reason}")]
    BadMerge { reason: String },
    /// A limit of the index's settings that the mapping goes beyond.
    #[error("{reason}")]
    Limit { reason: String },
    #[error("Limit of total fields [{limit}] has been exceeded")]
    TotalFields { limit: usize },
    /// The request that gave the definition must stop.
    #[error("the request must stop")]
    Stopped(work::Stopped),
}

impl From<work::Stopped> for MappingError {
    fn from(stopped: work::Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl MappingError {
    /// Exception type of the inner error, before it is wrapped as a parse failure; `None` if it is not wrapped.
    fn inner_type(&self) -> Option<&'static str> {
        match self {
            MappingError::UnknownType { .. }
            | MappingError::UnknownParameter { .. }
            | MappingError::UnsupportedParameter { .. }
            | MappingError::NoType { .. }
            | MappingError::UnsupportedParameters { .. }
            | MappingError::Malformed { .. } => Some(MAPPER_PARSING),
            MappingError::Nested { causes } => Some(causes.first().map_or(MAPPER_PARSING, |cause| cause.0)),
            MappingError::UnknownAnalyzer { .. } | MappingError::BadValue { .. } => Some(ILLEGAL_ARGUMENT),
            MappingError::TypeChange { .. }
            | MappingError::ObjectOverLeaf { .. }
            | MappingError::LeafOverObject { .. }
            | MappingError::ParameterChange { .. }
            | MappingError::BadMerge { .. }
            | MappingError::Limit { .. }
            | MappingError::TotalFields { .. }
            | MappingError::Stopped(_) => None,
        }
    }

    /// `type` of the error body.
    pub fn es_type(&self) -> &'static str {
        if self.inner_type().is_some() { MAPPER_PARSING } else { ILLEGAL_ARGUMENT }
    }

    /// `reason` of the error body.
    pub fn reason(&self) -> String {
        match self.inner_type() {
            Some(_) => format!("Failed to parse mapping: {self}"),
            None => self.to_string(),
        }
    }

    /// `caused_by` of the error body.
    pub fn caused_by(&self) -> Option<(&'static str, String)> {
        self.inner_type().map(|inner| (inner, self.to_string()))
    }

    /// The whole chain of causes, outermost first.
    pub fn causes(&self) -> Vec<(&'static str, String)> {
        match self {
            MappingError::Nested { causes } => causes.clone(),
            _ => self.caused_by().into_iter().collect(),
        }
    }

    /// The one entry of `root_cause`: Elasticsearch names the innermost exception of its own there.
    pub fn root_cause(&self) -> (&'static str, String) {
        match self.inner_type() {
            Some(MAPPER_PARSING) => (MAPPER_PARSING, self.to_string()),
            _ => (self.es_type(), self.reason()),
        }
    }
}

/// A nested cause: exception type and message.
pub(crate) type Cause = (&'static str, String);

/// The causes of an error that is a single illegal argument.
pub(crate) fn illegal(reason: String) -> Vec<Cause> {
    vec![(ILLEGAL_ARGUMENT, reason)]
}

/// Why a document does not fit its mapping. A client error (400).
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentError(Box<Details>);

/// Contents of a [`DocumentError`], boxed because every function of the document reader returns that in its result.
#[derive(Debug, Clone, PartialEq)]
struct Details {
    kind: DocumentErrorKind,
    /// Path to the offending value in the document; turned into line and column by [`DocumentError::locate`].
    steps: Vec<Step>,
    position: Option<Position>,
}

/// What is wrong with a document.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DocumentErrorKind {
    /// A value that its field cannot take.
    #[error(
        "failed to parse field [{path}] of type [{type_name}] in document with id '{id}'. Preview of \
         field's value: '{preview}'"
    )]
    Field { path: String, type_name: &'static str, id: String, preview: String, causes: Vec<Cause> },
    /// The request that brought the document must stop.
    #[error("the request must stop")]
    Stopped(work::Stopped),
    /// Any failure Elasticsearch does not tie to a field.
    #[error("failed to parse: {}", .causes.first().map_or("", |cause| cause.1.as_str()))]
    Failed { causes: Vec<Cause> },
    #[error(
        "object mapping for [{path}] tried to parse field [{name}] as object, but found a concrete value"
    )]
    ConcreteForObject { path: String, name: String },
    #[error("mapping set to strict, dynamic introduction of [{name}] within [{parent}] is not allowed")]
    Strict { name: String, parent: String },
    #[error("Cannot {verb} to a field alias [{path}].")]
    Alias { verb: &'static str, path: String },
    #[error("The depth of the field has exceeded the allowed limit of [{limit}].")]
    Depth { limit: usize },
}

impl DocumentError {
    pub(crate) fn new(kind: DocumentErrorKind, steps: Vec<Step>) -> Self {
        Self(Box::new(Details { kind, steps, position: None }))
    }

    /// A failure with one cause of type `illegal_argument_exception`.
    pub(crate) fn illegal(reason: String, steps: Vec<Step>) -> Self {
        Self::new(DocumentErrorKind::Failed { causes: vec![(ILLEGAL_ARGUMENT, reason)] }, steps)
    }

    /// Finds line and column of the offending value in the JSON text the document was parsed from, as
    /// Elasticsearch's messages begin with them.
    #[must_use]
    pub fn locate(mut self, raw: &[u8]) -> Self {
        self.0.position = locate(raw, &self.0.steps);
        self
    }

    /// Names on the way to the offending value, joined by dots; empty for the document itself.
    pub fn path(&self) -> String {
        let names = self.0.steps.iter().filter_map(|step| match step {
            Step::Key(name) | Step::Name(name) => Some(name.as_str()),
            Step::Index(_) | Step::End => None,
        });
        names.collect::<Vec<_>>().join(".")
    }

    /// The id of the document, if the message names it.
    pub fn document_id(&self) -> Option<&str> {
        match &self.0.kind {
            DocumentErrorKind::Field { id, .. } => Some(id),
            _ => None,
        }
    }

    /// What is wrong with the document.
    pub fn kind(&self) -> &DocumentErrorKind {
        &self.0.kind
    }

    /// `type` of the error body.
    pub fn es_type(&self) -> &'static str {
        match self.0.kind {
            DocumentErrorKind::Strict { .. } => STRICT_DYNAMIC,
            _ => DOCUMENT_PARSING,
        }
    }

    /// `reason` of the error body.
    pub fn reason(&self) -> String {
        match self.0.position {
            Some(Position { line, column }) => format!("[{line}:{column}] {}", self.0.kind),
            None => self.0.kind.to_string(),
        }
    }

    /// `caused_by` of the error body.
    pub fn caused_by(&self) -> Option<(&'static str, String)> {
        self.causes().first().cloned()
    }

    /// The whole chain of causes, outermost first.
    pub fn causes(&self) -> &[(&'static str, String)] {
        match &self.0.kind {
            DocumentErrorKind::Field { causes, .. } | DocumentErrorKind::Failed { causes } => causes,
            _ => &[],
        }
    }
}

impl std::fmt::Display for DocumentError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason())
    }
}

impl std::error::Error for DocumentError {}
