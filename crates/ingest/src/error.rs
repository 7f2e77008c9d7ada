//! What can go wrong when a pipeline is defined and when it runs.

use serde_json::{Value, json};
use sparrow_inference::ModelError;
use sparrow_storage::StorageError;
use sparrow_types::work;
use sparrow_wire::Exception;
use sparrow_wire::strict_json::MOST_LEVELS;

/// A pipeline definition that cannot be accepted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A processor of an unknown type.
    #[error("No processor type exists with name [{kind}]")]
    UnknownProcessor {
        /// The name given.
        kind: String,
    },
    /// A processor of Elasticsearch that is not here.
    #[error("No processor type exists with name [{kind}]: {reason}")]
    AbsentProcessor {
        /// The name given.
        kind: String,
        /// Why it is not here.
        reason: &'static str,
    },
    /// A property of a processor is missing or has a wrong value.
    #[error("[{property}] {problem}")]
    Property {
        /// Type of the processor; none for a property of the pipeline itself.
        kind: Option<String>,
        /// Tag of the processor.
        tag: Option<String>,
        /// The property at fault.
        property: String,
        /// What is wrong with it.
        problem: PropertyProblem,
    },
    /// A processor was given parameters that it does not have.
    #[error("processor [{kind}] doesn't support one or more provided configuration parameters [{}]", parameters.join(", "))]
    UnknownParameters {
        /// Type of the processor.
        kind: String,
        /// Tag of the processor.
        tag: Option<String>,
        /// The unknown parameters.
        parameters: Vec<String>,
    },
    /// A pipeline was given parameters that it does not have.
    #[error("pipeline [{id}] doesn't support one or more provided configuration parameters [{}]", parameters.join(", "))]
    UnknownPipelineParameters {
        /// Id of the pipeline.
        id: String,
        /// The unknown parameters.
        parameters: Vec<String>,
    },
    /// `on_failure: []` of a pipeline.
    #[error("pipeline [{id}] cannot have an empty on_failure option defined")]
    EmptyPipelineOnFailure {
        /// Id of the pipeline.
        id: String,
    },
    /// Something else than one object with one key in a list of processors.
    #[error("a processor must be an object with exactly one key, its type, but was [{found}]")]
    MalformedProcessor {
        /// What was found, shortened.
        found: String,
    },
    /// Processors with handlers with handlers, deeper than anyone writes by hand.
    #[error("processors are nested deeper than [{limit}] levels of on_failure")]
    TooDeep {
        /// The deepest nesting that is accepted.
        limit: usize,
    },
}

/// What is wrong with a property.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PropertyProblem {
    /// Not given.
    #[error("required property is missing")]
    Missing,
    /// The property has the wrong JSON type.
    #[error("property isn't a {expected}, but of type [{found}]")]
    WrongType {
        /// The type that is expected.
        expected: &'static str,
        /// The type that was found.
        found: &'static str,
    },
    /// The processor cannot use the value; the reason is its own.
    #[error("{0}")]
    Unusable(String),
}

impl ConfigError {
    /// Type of the processor at fault.
    pub fn processor_type(&self) -> Option<&str> {
        match self {
            Self::UnknownProcessor { kind }
            | Self::AbsentProcessor { kind, .. }
            | Self::UnknownParameters { kind, .. } => Some(kind),
            Self::Property { kind, .. } => kind.as_deref(),
            Self::UnknownPipelineParameters { .. }
            | Self::EmptyPipelineOnFailure { .. }
            | Self::MalformedProcessor { .. }
            | Self::TooDeep { .. } => None,
        }
    }

    /// Tag of the processor at fault.
    pub fn processor_tag(&self) -> Option<&str> {
        match self {
            Self::UnknownParameters { tag, .. } | Self::Property { tag, .. } => tag.as_deref(),
            Self::UnknownProcessor { .. }
            | Self::AbsentProcessor { .. }
            | Self::UnknownPipelineParameters { .. }
            | Self::EmptyPipelineOnFailure { .. }
            | Self::MalformedProcessor { .. }
            | Self::TooDeep { .. } => None,
        }
    }

    /// The property at fault.
    pub fn property_name(&self) -> Option<&str> {
        match self {
            Self::Property { property, .. } => Some(property),
            Self::UnknownProcessor { .. }
            | Self::AbsentProcessor { .. }
            | Self::UnknownParameters { .. }
            | Self::UnknownPipelineParameters { .. }
            | Self::EmptyPipelineOnFailure { .. }
            | Self::MalformedProcessor { .. }
            | Self::TooDeep { .. } => None,
        }
    }
}

/// Why a processor could not do its work on a document.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ProcessorError {
    /// A path without characters.
    #[error("path cannot be null nor empty")]
    EmptyPath,
    /// A path of dots only.
    #[error("path [{path}] is not valid")]
    InvalidPath {
        /// The path.
        path: String,
    },
    /// A step of a path leads nowhere.
    #[error("field [{key}] not present as part of path [{path}]")]
    NotPresent {
        /// The step.
        key: String,
        /// The whole path.
        path: String,
    },
    /// A step of a path starts at null.
    #[error("cannot resolve [{key}] from null as part of path [{path}]")]
    ResolveFromNull {
        /// The step.
        key: String,
        /// The whole path.
        path: String,
    },
    /// A step of a path starts at a value without fields.
    #[error("cannot resolve [{key}] from object of type [{found}] as part of path [{path}]")]
    ResolveFromValue {
        /// The step.
        key: String,
        /// Type of the value.
        found: &'static str,
        /// The whole path.
        path: String,
    },
    /// The parent of a field to be written is null.
    #[error("cannot set [{key}] with null parent as part of path [{path}]")]
    SetOnNull {
        /// The last step.
        key: String,
        /// The whole path.
        path: String,
    },
    /// The parent of a field to be written has no fields.
    #[error("cannot set [{key}] with parent object of type [{found}] as part of path [{path}]")]
    SetOnValue {
        /// The last step.
        key: String,
        /// Type of the parent.
        found: &'static str,
        /// The whole path.
        path: String,
    },
    /// The parent of a field to be removed has no fields.
    #[error("cannot remove [{key}] from object of type [{found}] as part of path [{path}]")]
    RemoveFromValue {
        /// The last step.
        key: String,
        /// Type of the parent.
        found: &'static str,
        /// The whole path.
        path: String,
    },
    /// A list was addressed by name.
    #[error("[{key}] is not an integer, cannot be used as an index as part of path [{path}]")]
    NotAnIndex {
        /// The step.
        key: String,
        /// The whole path.
        path: String,
    },
    /// A list was addressed beyond its end.
    #[error("[{index}] is out of bounds for array with length [{length}] as part of path [{path}]")]
    OutOfBounds {
        /// The index.
        index: i64,
        /// Length of the list.
        length: usize,
        /// The whole path.
        path: String,
    },
    /// A value without elements where a list or an object is needed.
    #[error("field [{path}] of type [{found}] cannot be cast to a list or map")]
    NotElements {
        /// Path of the field.
        path: String,
        /// Type of its value.
        found: &'static str,
    },
    /// A list whose elements cannot be compared with each other.
    #[error("field [{path}] has elements of type [{left}] and of type [{right}], cannot sort.")]
    NotComparable {
        /// Path of the field.
        path: String,
        /// Type of one element.
        left: &'static str,
        /// Type of another.
        right: &'static str,
    },
    /// A text that does not have the form that the processor reads.
    #[error("{reason}")]
    Form {
        /// What is wrong with it.
        reason: String,
    },
    /// A value of a wrong type.
    #[error("field [{path}] of type [{found}] cannot be cast to [{expected}]")]
    Cast {
        /// Path of the field.
        path: String,
        /// Type of its value.
        found: &'static str,
        /// The type that the processor works on.
        expected: &'static str,
    },
    /// An element of a list has a wrong type.
    #[error("value [{value}] of type [{found}] in list field [{path}] cannot be cast to [{expected}]")]
    CastElement {
        /// The element.
        value: String,
        /// JSON type of the value that was found.
        found: &'static str,
        /// Path of the list.
        path: String,
        /// The type that the processor works on.
        expected: &'static str,
    },
    /// A field without a value.
    #[error("field [{path}] is null, {refusal}")]
    Null {
        /// Path of the field.
        path: String,
        /// What the processor cannot do with it.
        refusal: String,
    },
    /// A field that has to be there.
    #[error("field [{path}] doesn't exist")]
    Missing {
        /// Path of the field.
        path: String,
    },
    /// A field that must not be there.
    #[error("field [{path}] already exists")]
    Exists {
        /// Path of the field.
        path: String,
    },
    /// The input of an inference is not text.
    #[error("input field [{path}] cannot be processed because it is not a text field")]
    NotText {
        /// Path of the field.
        path: String,
    },
    /// The legacy form of an inference found no text.
    #[error("Input field [{field}] does not exist in the source document")]
    NoInput {
        /// The model's input field.
        field: String,
    },
    /// The legacy form of an inference found something else than text.
    #[error("Input value [{value}] for field [{field}] must be a string")]
    InputNotString {
        /// The value.
        value: String,
        /// The model's input field.
        field: String,
    },
    /// The model could not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A value that cannot be converted.
    #[error("unable to convert [{value}] to {target}")]
    Convert {
        /// The value.
        value: String,
        /// The type wanted.
        target: &'static str,
    },
    /// A value that is neither true nor false.
    #[error("[{value}] is not a boolean value, cannot convert to boolean")]
    NotBoolean {
        /// The value.
        value: String,
    },
    /// A value that is no IP address.
    #[error("'{value}' is not an IP string literal.")]
    NotIp {
        /// The value.
        value: String,
    },
    /// A date that no format fits.
    #[error("unable to parse date [{value}]")]
    Date {
        /// The value.
        value: String,
    },
    /// Text that is not JSON.
    #[error("unable to parse JSON: {reason}")]
    Json {
        /// What the parser said.
        reason: String,
    },
    /// A value that would make the document deeper than one that can be read.
    #[error(
        "cannot set [{}]: objects and arrays would be nested more than [{MOST_LEVELS}] levels deep",
        path.chars().take(100).collect::<String>()
    )]
    TooDeep {
        /// Path of the value.
        path: String,
    },
    /// Processors made too much of a document.
    #[error("cannot set [{}]: processors may add [{limit}] bytes to a document at most", path.chars().take(100).collect::<String>())]
    TooMuch {
        /// Path of the value.
        path: String,
        /// Bytes.
        limit: usize,
    },
    /// Processors made too much of all documents together.
    #[error("processors may add [{limit}] bytes to the documents of a request at most")]
    TooMuchTogether {
        /// Bytes.
        limit: usize,
    },
    /// A text that a processor would have made too long.
    #[error("the text would be longer than [{limit}] bytes")]
    TooLong {
        /// Bytes.
        limit: usize,
    },
    /// Regular expressions took too long.
    #[error("pattern matching was interrupted after [{milliseconds}] ms")]
    Matching {
        /// How long they may take.
        milliseconds: u64,
    },
    /// Processors ran too often.
    #[error(
        "processors may run [{limit}] times on a document at most, and less often on a large one or on many"
    )]
    TooManySteps {
        /// How often.
        limit: u64,
    },
    /// Pipelines that call each other, deeper than allowed.
    #[error("Too many nested pipelines. Cannot have more than {limit} nested pipelines")]
    TooManyPipelines {
        /// How deep.
        limit: usize,
    },
    /// Only an object can be merged into the root of a document.
    #[error("cannot add non-map fields to root of document")]
    NotMapForRoot,
    /// The `fail` processor did what it is for.
    #[error("{message}")]
    Fail {
        /// The user's message.
        message: String,
    },
    /// A `pipeline` processor names a pipeline that is not there.
    #[error("Pipeline processor configured for non-existent pipeline [{id}]")]
    NoSuchPipeline {
        /// Id of the pipeline.
        id: String,
    },
    /// A stored pipeline that this version cannot run.
    #[error("pipeline with id [{id}] could not be loaded, caused by [{cause}]")]
    NotLoaded {
        /// Id of the pipeline.
        id: String,
        /// What is wrong with its definition.
        cause: String,
    },
    /// A pipeline that calls itself.
    #[error("Cycle detected for pipeline: {id}")]
    Cycle {
        /// Id of the pipeline.
        id: String,
    },
    /// A metadata field was given something that it cannot hold, or was taken away.
    #[error("{reason}")]
    Metadata {
        /// What is wrong.
        reason: String,
    },
}

impl ProcessorError {
    /// The error as a body: type, reason and root cause.
    pub fn to_body(&self) -> Value {
        let cause = json!({"type": self.es_type(), "reason": self.to_string()});
        json!({"root_cause": [cause], "type": self.es_type(), "reason": self.to_string()})
    }

    /// The `type` of the error body.
    pub fn es_type(&self) -> &'static str {
        match self {
            Self::Model(error) => error.es_type(),
            Self::Fail { .. } => "fail_processor_exception",
            Self::TooManyPipelines { .. } => "graph_structure_exception",
            Self::NoSuchPipeline { .. } | Self::Cycle { .. } | Self::NotLoaded { .. } => {
                "illegal_state_exception"
            }
            Self::NoInput { .. } | Self::InputNotString { .. } => "status_exception",
            Self::EmptyPath
            | Self::InvalidPath { .. }
            | Self::NotPresent { .. }
            | Self::ResolveFromNull { .. }
            | Self::ResolveFromValue { .. }
            | Self::SetOnNull { .. }
            | Self::SetOnValue { .. }
            | Self::RemoveFromValue { .. }
            | Self::NotAnIndex { .. }
            | Self::OutOfBounds { .. }
            | Self::NotElements { .. }
            | Self::NotComparable { .. }
            | Self::Form { .. }
            | Self::Cast { .. }
            | Self::CastElement { .. }
            | Self::Null { .. }
            | Self::Missing { .. }
            | Self::Exists { .. }
            | Self::NotText { .. }
            | Self::Convert { .. }
            | Self::NotBoolean { .. }
            | Self::NotIp { .. }
            | Self::Date { .. }
            | Self::Json { .. }
            | Self::NotMapForRoot
            | Self::TooDeep { .. }
            | Self::TooMuch { .. }
            | Self::TooMuchTogether { .. }
            | Self::TooLong { .. }
            | Self::Matching { .. }
            | Self::TooManySteps { .. }
            | Self::Metadata { .. } => "illegal_argument_exception",
        }
    }

    /// Whether no handler may go on with the document: what ended it would end the handler too, after doing it all again.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            Self::TooMuchTogether { .. }
                | Self::TooManySteps { .. }
                | Self::TooManyPipelines { .. }
                | Self::Model(ModelError::Cancelled)
        )
    }

    /// The HTTP status of the document.
    pub fn status(&self) -> u16 {
        match self {
            Self::Model(error) => error.status(),
            // What Elasticsearch answers: its `fail` processor throws a plain runtime exception.
            Self::Fail { .. } | Self::NotLoaded { .. } => 500,
            _ => 400,
        }
    }
}

impl From<work::Stopped> for ProcessorError {
    fn from(_: work::Stopped) -> Self {
        Self::Model(ModelError::Cancelled)
    }
}

impl ConfigError {
    /// The error in its wire form.
    fn exception(&self) -> Exception {
        let details = [
            ("processor_type", self.processor_type()),
            ("processor_tag", self.processor_tag()),
            ("property_name", self.property_name()),
        ];
        details
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .fold(Exception::new("parse_exception", self.to_string()), |exception, (name, value)| {
                exception.with(name, value)
            })
    }
}

/// Why pipelines cannot be read, changed or run, or a document cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The store of the pipelines is damaged, or cannot be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A definition that cannot be accepted.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A processor failed on a document, and no handler helped.
    #[error(transparent)]
    Processor(#[from] ProcessorError),
    /// A request that cannot be carried out.
    #[error("{reason}")]
    IllegalArgument {
        /// What is wrong with it.
        reason: String,
    },
    /// A definition from a snapshot that is no object.
    #[error("pipeline [{id}] is not an object")]
    NotAnObject {
        /// Id of the pipeline.
        id: String,
    },
}

impl IngestError {
    /// A request that cannot be carried out.
    pub(crate) fn illegal_argument(reason: impl Into<String>) -> Self {
        Self::IllegalArgument { reason: reason.into() }
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::Config(_) | Self::IllegalArgument { .. } => 400,
            Self::Processor(error) => error.status(),
            Self::Storage(_) | Self::NotAnObject { .. } => 500,
        }
    }

    /// The error in its wire form.
    pub fn exception(&self) -> Exception {
        let kind = match self {
            Self::Config(error) => return error.exception(),
            Self::Processor(error) => error.es_type(),
            Self::IllegalArgument { .. } => "illegal_argument_exception",
            Self::Storage(_) => "i_o_exception",
            Self::NotAnObject { .. } => "exception",
        };
        Exception::new(kind, self.to_string())
    }
}
