//! Errors in the definition of a pipeline, and errors while it runs.

use serde_json::{Value, json};
use sparrow_inference::ModelError;
use sparrow_runtime::work;
use sparrow_scripts::ScriptError;
use sparrow_wire::Exception;
use sparrow_wire::strict_json::MOST_LEVELS;
use sparrow_wire::suggest::did_you_mean;
use sparrow_write_ahead_log::StorageError;

/// A pipeline definition that cannot be accepted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The request has to stop before the definition is read.
    #[error("the request was stopped while a pipeline was built")]
    Stopped(work::Stopped),
    /// A processor of an unknown type.
    #[error("No processor type exists with name [{kind}]{}", did_you_mean(suggestions))]
    UnknownProcessor {
        /// The type in the definition.
        kind: String,
        /// Types that are spelled alike.
        suggestions: Vec<&'static str>,
    },
    /// The processor exists in Elasticsearch and is not supported by this server.
    #[error("No processor type exists with name [{kind}]: {reason}")]
    AbsentProcessor {
        /// The type in the definition.
        kind: String,
        /// Why the processor is not supported.
        reason: &'static str,
    },
    /// A property of a processor is missing or has a wrong value.
    #[error("[{property}] {problem}")]
    Property {
        /// Type of the processor; none for a property of the pipeline itself.
        kind: Option<String>,
        /// Tag of the processor.
        tag: Option<String>,
        /// Name of the property.
        property: String,
        /// What is wrong with the property.
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
    /// The pipeline has an empty list of handlers (`on_failure: []`).
    #[error("pipeline [{id}] cannot have an empty on_failure option defined")]
    EmptyPipelineOnFailure {
        /// Id of the pipeline.
        id: String,
    },
    /// Something else than one object with one key in a list of processors.
    #[error("a processor must be an object with exactly one key, its type, but was [{found}]")]
    MalformedProcessor {
        /// The element as JSON, truncated.
        found: String,
    },
    /// A script that cannot be compiled.
    #[error("{error}")]
    Script {
        /// Type of the processor.
        kind: Option<String>,
        /// Tag of the processor.
        tag: Option<String>,
        /// Name of the property that holds the script.
        property: String,
        /// Why the script cannot be used.
        error: Box<ScriptError>,
    },
    /// Handlers are nested too deeply.
    #[error("processors are nested deeper than [{limit}] levels of on_failure")]
    TooDeep {
        /// Most levels of nested handlers.
        limit: usize,
    },
}

/// What is wrong with a property.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PropertyProblem {
    /// The property is required and missing.
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
    /// Type of the processor that the error is about.
    pub fn processor_type(&self) -> Option<&str> {
        match self {
            Self::UnknownProcessor { kind, .. }
            | Self::AbsentProcessor { kind, .. }
            | Self::UnknownParameters { kind, .. } => Some(kind),
            Self::Property { kind, .. } | Self::Script { kind, .. } => kind.as_deref(),
            Self::UnknownPipelineParameters { .. }
            | Self::EmptyPipelineOnFailure { .. }
            | Self::MalformedProcessor { .. }
            | Self::TooDeep { .. }
            | Self::Stopped(_) => None,
        }
    }

    /// Tag of the processor that the error is about.
    pub fn processor_tag(&self) -> Option<&str> {
        match self {
            Self::UnknownParameters { tag, .. } | Self::Property { tag, .. } | Self::Script { tag, .. } => {
                tag.as_deref()
            }
            Self::UnknownProcessor { .. }
            | Self::AbsentProcessor { .. }
            | Self::UnknownPipelineParameters { .. }
            | Self::EmptyPipelineOnFailure { .. }
            | Self::MalformedProcessor { .. }
            | Self::TooDeep { .. }
            | Self::Stopped(_) => None,
        }
    }

    /// Name of the property that the error is about.
    pub fn property_name(&self) -> Option<&str> {
        match self {
            Self::Property { property, .. } | Self::Script { property, .. } => Some(property),
            Self::UnknownProcessor { .. }
            | Self::AbsentProcessor { .. }
            | Self::UnknownParameters { .. }
            | Self::UnknownPipelineParameters { .. }
            | Self::EmptyPipelineOnFailure { .. }
            | Self::MalformedProcessor { .. }
            | Self::TooDeep { .. }
            | Self::Stopped(_) => None,
        }
    }
}

/// Why a processor failed on a document.
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
    /// A step of a path names a field that does not exist.
    #[error("field [{key}] not present as part of path [{path}]")]
    NotPresent {
        /// The step that does not exist.
        key: String,
        /// The whole path.
        path: String,
    },
    /// A step of a path starts at null.
    #[error("cannot resolve [{key}] from null as part of path [{path}]")]
    ResolveFromNull {
        /// The step that follows it.
        key: String,
        /// The whole path.
        path: String,
    },
    /// A step of a path starts at a value without fields.
    #[error("cannot resolve [{key}] from object of type [{found}] as part of path [{path}]")]
    ResolveFromValue {
        /// The step that follows it.
        key: String,
        /// Type of the value.
        found: &'static str,
        /// The whole path.
        path: String,
    },
    /// The parent of a field to be written is null.
    #[error("cannot set [{key}] with null parent as part of path [{path}]")]
    SetOnNull {
        /// Name of the field: the last step of the path.
        key: String,
        /// The whole path.
        path: String,
    },
    /// The parent of a field to be written has no fields.
    #[error("cannot set [{key}] with parent object of type [{found}] as part of path [{path}]")]
    SetOnValue {
        /// Name of the field: the last step of the path.
        key: String,
        /// Type of the parent.
        found: &'static str,
        /// The whole path.
        path: String,
    },
    /// The parent of a field to be removed has no fields.
    #[error("cannot remove [{key}] from object of type [{found}] as part of path [{path}]")]
    RemoveFromValue {
        /// Name of the field: the last step of the path.
        key: String,
        /// Type of the parent.
        found: &'static str,
        /// The whole path.
        path: String,
    },
    /// A step of a path into a list is not a number.
    #[error("[{key}] is not an integer, cannot be used as an index as part of path [{path}]")]
    NotAnIndex {
        /// The step that is not a number.
        key: String,
        /// The whole path.
        path: String,
    },
    /// A list was addressed beyond its end.
    #[error("[{index}] is out of bounds for array with length [{length}] as part of path [{path}]")]
    OutOfBounds {
        /// The index that the step names.
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
        /// The whole error message.
        reason: String,
    },
    /// A value of a wrong type.
    #[error("field [{path}] of type [{found}] cannot be cast to [{expected}]")]
    Cast {
        /// Path of the field.
        path: String,
        /// Type of its value.
        found: &'static str,
        /// The type that the processor expects, as a Java class.
        expected: &'static str,
    },
    /// An element of a list has a wrong type.
    #[error("value [{value}] of type [{found}] in list field [{path}] cannot be cast to [{expected}]")]
    CastElement {
        /// The element as text.
        value: String,
        /// Type of the element, as a Java class.
        found: &'static str,
        /// Path of the list.
        path: String,
        /// The type that the processor works on.
        expected: &'static str,
    },
    /// A field is null, and the processor cannot handle that.
    #[error("field [{path}] is null, {refusal}")]
    Null {
        /// Path of the field.
        path: String,
        /// What the processor cannot do, the end of the error message.
        refusal: String,
    },
    /// A required field does not exist.
    #[error("field [{path}] doesn't exist")]
    Missing {
        /// Path of the field.
        path: String,
    },
    /// A field exists that the processor would overwrite.
    #[error("field [{path}] already exists")]
    Exists {
        /// Path of the field.
        path: String,
    },
    /// The input field of an inference is not a string.
    #[error("input field [{path}] cannot be processed because it is not a text field")]
    NotText {
        /// Path of the field.
        path: String,
    },
    /// The input field of an inference in the legacy form does not exist.
    #[error("Input field [{field}] does not exist in the source document")]
    NoInput {
        /// The model's input field.
        field: String,
    },
    /// The input field of an inference in the legacy form is not a string.
    #[error("Input value [{value}] for field [{field}] must be a string")]
    InputNotString {
        /// The value as text.
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
        /// The value as text.
        value: String,
        /// Name of the other type.
        target: &'static str,
    },
    /// A value that is neither true nor false.
    #[error("[{value}] is not a boolean value, cannot convert to boolean")]
    NotBoolean {
        /// The string.
        value: String,
    },
    /// A value that is no IP address.
    #[error("'{value}' is not an IP string literal.")]
    NotIp {
        /// The string.
        value: String,
    },
    /// A date that no format fits.
    #[error("unable to parse date [{value}]")]
    Date {
        /// The date as text.
        value: String,
    },
    /// Text that is not JSON.
    #[error("unable to parse JSON: {reason}")]
    Json {
        /// The message of the JSON parser.
        reason: String,
    },
    /// A value that would make the document deeper than one that can be read.
    #[error(
        "cannot set [{}]: objects and arrays would be nested more than [{MOST_LEVELS}] levels deep",
        path.chars().take(100).collect::<String>()
    )]
    TooDeep {
        /// Path of the field that was to be set.
        path: String,
    },
    /// The request uses more memory than it may.
    #[error(transparent)]
    Memory(work::TooMuch),
    /// Processors have added too many bytes to a document.
    #[error("cannot set [{}]: processors may add [{limit}] bytes to a document at most", path.chars().take(100).collect::<String>())]
    TooMuch {
        /// Path of the field that was to be set.
        path: String,
        /// Most bytes that may be added to a document.
        limit: usize,
    },
    /// Processors have added too many bytes to all documents together.
    #[error("processors may add [{limit}] bytes to the documents of a request at most")]
    TooMuchTogether {
        /// Most bytes that may be added to all documents of a request.
        limit: usize,
    },
    /// A text that a processor would have made too long.
    #[error("the text would be longer than [{limit}] bytes")]
    TooLong {
        /// Most bytes of a text.
        limit: usize,
    },
    /// Regular expressions took too long.
    #[error("pattern matching was interrupted after [{milliseconds}] ms")]
    Matching {
        /// The limit of time, in milliseconds.
        milliseconds: u64,
    },
    /// A script failed.
    #[error("{0}")]
    Script(Box<ScriptError>),
    /// Scripts took too long.
    #[error("scripts were interrupted after [{milliseconds}] ms")]
    ScriptTime {
        /// The limit of time, in milliseconds.
        milliseconds: u64,
    },
    /// A condition that is neither true nor false.
    #[error("the condition [{}] must be true or false", script.chars().take(100).collect::<String>())]
    Condition {
        /// The script of the condition.
        script: String,
    },
    /// Processors ran too often.
    #[error(
        "processors may run [{limit}] times on a document at most, and less often on a large one or on many"
    )]
    TooManySteps {
        /// Most runs of processors on a document.
        limit: u64,
    },
    /// Pipelines that call each other, deeper than allowed.
    #[error("Too many nested pipelines. Cannot have more than {limit} nested pipelines")]
    TooManyPipelines {
        /// Most nested pipelines.
        limit: usize,
    },
    /// Only an object can be merged into the root of a document.
    #[error("cannot add non-map fields to root of document")]
    NotMapForRoot,
    /// A `fail` processor has run.
    #[error("{message}")]
    Fail {
        /// The message of the processor's definition.
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
        /// The reason why its definition cannot be used.
        cause: String,
    },
    /// A pipeline that calls itself.
    #[error("Cycle detected for pipeline: {id}")]
    Cycle {
        /// Id of the pipeline.
        id: String,
    },
    /// A metadata field was removed, or was set to a value that it cannot have.
    #[error("{reason}")]
    Metadata {
        /// The whole error message.
        reason: String,
    },
}

impl ProcessorError {
    /// The error as a body: type, reason and root cause.
    pub fn to_body(&self) -> Value {
        if let Self::Script(error) = self {
            let exception = error.exception();
            let mut body = exception.to_json();
            if let Value::Object(body) = &mut body {
                body.insert("root_cause".into(), json!([exception.to_json()]));
            }
            return body;
        }
        let reason = sparrow_wire::shortened(self.to_string());
        let cause = json!({"type": self.es_type(), "reason": reason});
        json!({"root_cause": [cause], "type": self.es_type(), "reason": reason})
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
            | Self::ScriptTime { .. }
            | Self::Condition { .. }
            | Self::Metadata { .. } => "illegal_argument_exception",
            Self::Script(_) => "script_exception",
            Self::Memory(_) => "circuit_breaking_exception",
        }
    }

    /// Whether error handlers are skipped: after some errors, such as an exceeded limit, a handler would fail in the same way.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            Self::TooMuchTogether { .. }
                | Self::TooManySteps { .. }
                | Self::TooManyPipelines { .. }
                | Self::Model(ModelError::Cancelled)
                | Self::Memory(_)
        )
    }

    /// The HTTP status of the document.
    pub fn status(&self) -> u16 {
        match self {
            Self::Model(error) => error.status(),
            Self::Memory(_) => 429,
            // What Elasticsearch answers: its `fail` processor throws a plain runtime exception.
            Self::Fail { .. } | Self::NotLoaded { .. } => 500,
            _ => 400,
        }
    }
}

impl From<work::Stopped> for ProcessorError {
    fn from(stopped: work::Stopped) -> Self {
        match stopped {
            work::Stopped::Exceeded(work::Exceeded::Memory(limit)) => Self::Memory(limit),
            _ => Self::Model(ModelError::Cancelled),
        }
    }
}

impl From<work::Stopped> for ConfigError {
    fn from(stopped: work::Stopped) -> Self {
        Self::Stopped(stopped)
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
        let exception = match self {
            Self::Script { error, .. } => error.exception(),
            _ => Exception::new("parse_exception", self.to_string()),
        };
        details
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .fold(exception, |exception, (name, value)| exception.with(name, value))
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
        /// The whole error message.
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

    /// The HTTP status of this error.
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
            Self::Processor(ProcessorError::Script(error)) => return error.exception(),
            Self::Processor(error) => error.es_type(),
            Self::IllegalArgument { .. } => "illegal_argument_exception",
            Self::Storage(_) => "i_o_exception",
            Self::NotAnObject { .. } => "exception",
        };
        Exception::new(kind, self.to_string())
    }
}
