//! Errors of queries as data, with the messages that Elasticsearch uses.

use sparrow_query::regexp::RegexpError;
use sparrow_runtime::work;
use sparrow_scripts::ScriptError;
use std::io;

/// Error of a query or a search.
///
/// Most cases are reported as `query_shard_exception` with the reason `failed to create query: …`
/// and the real cause below it; [`QueryError::es_type`], [`QueryError::reason`] and
/// [`QueryError::caused_by`] give the three parts.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The caller's cancel flag was set.
    #[error("search was cancelled")]
    Cancelled,
    /// The request needs more memory than it may use.
    #[error(transparent)]
    TooMuchMemory(#[from] work::TooMuch),
    /// The patterns of the request examine more terms than they may.
    #[error(transparent)]
    TooMuchEffort(#[from] work::TooMuchEffort),
    /// An error of tantivy.
    #[error("index cannot be searched: {0}")]
    Tantivy(tantivy::TantivyError),
    /// A file could not be read.
    #[error("index cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Dense vectors could not be searched.
    #[error("vectors cannot be searched: {0}")]
    Vectors(sparrow_vectors::VectorsError),
    /// A value that should be a number is not.
    #[error("not a number: {input:?}")]
    NumberFormat { input: String },
    /// A value that should be a boolean is not.
    #[error("not a boolean: {input:?}")]
    BooleanFormat { input: String },
    /// A value that should be a date is not. `in_range` tells whether it is in a `range` clause.
    #[error("not a date of format {format}: {input:?}")]
    DateFormat { input: String, format: String, in_range: bool },
    /// A date format that cannot be read; `reason` names what is wrong with it.
    #[error("{reason}")]
    DatePattern { reason: String },
    /// A value for an `ip` field that is neither an address nor a network.
    #[error("{reason}")]
    Address { reason: String },
    /// A field of a type that cannot be searched.
    #[error("field {field} of type {actual} is not searchable")]
    NotSearchable { field: String, actual: &'static str },
    /// A time zone that cannot be read.
    #[error("not a time zone: {input:?}")]
    TimeZone { input: String },
    /// Date math such as `now-1d/d` is malformed.
    #[error("malformed date math in {input:?}: {detail}")]
    DateMath { input: String, detail: String },
    /// A value is an object or an array where a scalar was expected.
    #[error("field {field} takes one value")]
    NotAValue { field: String },
    /// A clause does not work on fields of this type.
    #[error("field {field} of type {actual} does not support {clause} queries")]
    Unsupported { field: String, actual: &'static str, clause: &'static str },
    /// A `semantic` clause on a field that is no `semantic_text`; `instead` is one that its texts go to.
    #[error("field {field} of type {actual} does not support semantic queries")]
    NotSemantic { field: String, actual: &'static str, instead: Option<String> },
    /// A `sparse_vector` clause on a field of another type.
    #[error("field {field} is of type {actual}, not sparse_vector")]
    SparseFieldType { field: String, actual: &'static str },
    /// A `sparse_vector` or `knn` clause on a `semantic_text` field whose model makes the other kind of
    /// vector.
    #[error("field {field} needs a {wanted} model for {clause}, it has {actual}")]
    SemanticModel { field: String, clause: &'static str, wanted: &'static str, actual: &'static str },
    /// A `text_expansion` or `weighted_tokens` clause on a field of another type.
    #[error("a field of type {actual} holds no token weights")]
    ExpansionFieldType { actual: &'static str },
    /// A query weight is negative or not finite.
    #[error("weight {weight} of token {token} is not a positive number")]
    SparseWeight { token: String, weight: f32 },
    /// A kNN clause on a field of another type.
    #[error("field {field} is of type {actual}, not dense_vector")]
    KnnFieldType { field: String, actual: &'static str },
    /// A kNN clause on a field whose vectors are stored but not indexed.
    #[error("vectors of field {field} are not indexed")]
    KnnNotIndexed { field: String },
    /// The query vector has a different number of dimensions than the stored ones.
    #[error("query vector of field {field} has {actual} dimensions instead of {expected}")]
    KnnDims { field: String, expected: usize, actual: usize },
    /// The query vector has values that the field's element type cannot hold, or a magnitude that its
    /// similarity cannot use.
    #[error("{reason}")]
    KnnVector { reason: String },
    /// Text in Lucene's syntax that cannot be read.
    #[error("cannot parse {query:?}: {detail}")]
    Syntax { query: String, detail: String },
    /// A clause names an analyzer that does not exist.
    #[error("no analyzer {name}")]
    UnknownAnalyzer { clause: &'static str, name: String },
    /// A regular expression that cannot be read.
    #[error("cannot parse regular expression {pattern:?}: {detail}")]
    Regexp { pattern: String, detail: String },
    /// A fuzziness other than `AUTO`, `AUTO:low,high`, `0`, `1` and `2`.
    #[error("unknown fuzziness {input:?}")]
    Fuzziness { input: String },
    /// More clauses than a query may have.
    #[error("more than {limit} clauses")]
    TooManyClauses { limit: usize },
    /// Patterns of fields match more fields than a query may have clauses.
    #[error("patterns of fields match {found} fields, more than {limit}")]
    TooManyFields { limit: usize, found: usize },
    /// Clauses are nested more deeply than allowed.
    #[error("more than {limit} levels of clauses")]
    TooManyLevels { limit: usize },
    /// More values than a `terms` clause may have.
    #[error("{count} terms are more than {limit}")]
    TooManyTerms { count: usize, limit: usize },
    /// A regular expression longer than allowed.
    #[error("regular expression of {length} characters")]
    RegexpLength { length: usize, limit: usize },
    /// A regular expression whose automaton is too large.
    #[error("automaton of regular expression {pattern:?} has more than {limit} states")]
    RegexpStates { pattern: String, limit: usize },
    /// A parameter of a clause is invalid, by itself or for its field; `reason` explains it.
    #[error("{reason}")]
    Invalid { reason: String },
    /// A span of time that cannot be read.
    #[error("{setting}: not a span of time: {value:?}")]
    TimeValue { setting: String, value: String },
    /// A field of a decay function that is not mapped.
    #[error("no field {field}")]
    NoFunctionField { field: String },
    /// A field of a `terms_set` that is not mapped.
    #[error("no field {field}")]
    NoMinimumField { field: String },
    /// A `combined_fields` clause on a field of another type.
    #[error("field {field} of type {actual} cannot be combined")]
    CombinedFieldType { field: String, actual: &'static str },
    /// Fields of a `combined_fields` clause with different analyzers.
    #[error("fields {} and {} have different analyzers", fields[0], fields[1])]
    CombinedAnalyzers { fields: [String; 2] },
    /// A `rank_feature` clause on a field of another type.
    #[error("a field of type {actual} holds no feature")]
    RankFeatureType { actual: &'static str },
    /// A `distance_feature` clause on a field of another type.
    #[error("a field of type {actual} holds no date")]
    DistanceFeatureType { actual: &'static str },
    /// A `nested` clause on a path without nested objects, whether it is `mapped` or not.
    #[error("no nested objects under {path}")]
    NestedPath { path: String, mapped: bool },
    /// A score could not be computed.
    #[error("{reason}")]
    Score { kind: &'static str, reason: String },
    /// A `terms` lookup that the engine has not resolved.
    #[error("a lookup of terms for field {field} reached the index")]
    NotLookedUp { field: String },
    /// More sort keys than a search may have.
    #[error("more than {limit} sort keys")]
    TooManySortKeys { limit: usize },
    /// A document has several values in the column that hits are collapsed by.
    #[error("document {doc} has several values in the field that hits are collapsed by")]
    CollapseSeveral { doc: u32 },
    /// A script failed on a document.
    #[error(transparent)]
    Script(Box<ScriptError>),
    /// A clause whose text the engine has not encoded as a vector.
    #[error("a text reached the index where a vector was expected (model {model_id})")]
    NotEncoded { model_id: String },
}

impl From<tantivy::TantivyError> for QueryError {
    fn from(error: tantivy::TantivyError) -> Self {
        // A request that must stop makes tantivy fail with an error that says nothing about it.
        match work::check() {
            Err(stopped) => stopped.into(),
            Ok(()) => QueryError::Tantivy(error),
        }
    }
}

/// An error that makes tantivy stop because a limit was exceeded; [`QueryError::from`] recovers the limit.
pub fn over(limit: work::TooMuchEffort) -> tantivy::TantivyError {
    work::note(limit);
    stopped()
}

/// An error that makes tantivy stop with the request; [`QueryError::from`] recovers why.
pub fn stopped() -> tantivy::TantivyError {
    tantivy::TantivyError::InvalidArgument("the request went over a limit".to_owned())
}

impl From<RegexpError> for QueryError {
    fn from(error: RegexpError) -> Self {
        match error {
            RegexpError::Syntax { pattern, detail } => QueryError::Regexp { pattern, detail },
            RegexpError::Length { length, limit } => QueryError::RegexpLength { length, limit },
            RegexpError::States { pattern, limit } => QueryError::RegexpStates { pattern, limit },
            RegexpError::Stopped(stopped) => stopped.into(),
            RegexpError::Effort(limit) => limit.into(),
        }
    }
}

impl From<work::Stopped> for QueryError {
    fn from(stopped: work::Stopped) -> Self {
        match stopped {
            work::Stopped::Cancelled => QueryError::Cancelled,
            work::Stopped::Exceeded(work::Exceeded::Memory(limit)) => QueryError::TooMuchMemory(limit),
            work::Stopped::Exceeded(work::Exceeded::Effort(limit)) => QueryError::TooMuchEffort(limit),
        }
    }
}

impl QueryError {
    /// Type of the error in responses, as Elasticsearch names it.
    pub fn es_type(&self) -> &'static str {
        match self {
            QueryError::Cancelled => "task_cancelled_exception",
            QueryError::TooMuchMemory(_) => "circuit_breaking_exception",
            QueryError::Tantivy(_) | QueryError::Vectors(_) => "exception",
            QueryError::Io(_) => "i_o_exception",
            QueryError::DateFormat { in_range: true, .. } | QueryError::DateMath { .. } => "parse_exception",
            QueryError::TooManyClauses { .. }
            | QueryError::TooManyLevels { .. }
            | QueryError::TooMuchEffort(_) => "too_many_nested_clauses",
            QueryError::TooManySortKeys { .. } | QueryError::CollapseSeveral { .. } => {
                "illegal_argument_exception"
            }
            QueryError::NotEncoded { .. } | QueryError::NotLookedUp { .. } => "illegal_state_exception",
            QueryError::Score { kind, .. } => kind,
            QueryError::Script(_) => "script_exception",
            QueryError::RegexpLength { .. }
            | QueryError::CombinedFieldType { .. }
            | QueryError::CombinedAnalyzers { .. } => "illegal_argument_exception",
            QueryError::RegexpStates { .. }
            | QueryError::Invalid { .. }
            | QueryError::TimeValue { .. }
            | QueryError::NoFunctionField { .. }
            | QueryError::NoMinimumField { .. }
            | QueryError::RankFeatureType { .. }
            | QueryError::DistanceFeatureType { .. }
            | QueryError::NestedPath { .. }
            | QueryError::NumberFormat { .. }
            | QueryError::BooleanFormat { .. }
            | QueryError::DateFormat { .. }
            | QueryError::DatePattern { .. }
            | QueryError::Address { .. }
            | QueryError::NotSearchable { .. }
            | QueryError::TimeZone { .. }
            | QueryError::NotAValue { .. }
            | QueryError::Unsupported { .. }
            | QueryError::NotSemantic { .. }
            | QueryError::SparseFieldType { .. }
            | QueryError::SemanticModel { .. }
            | QueryError::ExpansionFieldType { .. }
            | QueryError::SparseWeight { .. }
            | QueryError::KnnFieldType { .. }
            | QueryError::KnnNotIndexed { .. }
            | QueryError::KnnDims { .. }
            | QueryError::KnnVector { .. }
            | QueryError::Syntax { .. }
            | QueryError::UnknownAnalyzer { .. }
            | QueryError::Regexp { .. }
            | QueryError::Fuzziness { .. }
            | QueryError::TooManyFields { .. }
            | QueryError::TooManyTerms { .. } => "query_shard_exception",
        }
    }

    /// Whether the error is that a value does not fit its field, which a lenient query ignores.
    pub fn is_about_a_value(&self) -> bool {
        matches!(
            self,
            QueryError::NumberFormat { .. }
                | QueryError::BooleanFormat { .. }
                | QueryError::DateFormat { .. }
                | QueryError::DateMath { .. }
                | QueryError::NotAValue { .. }
                | QueryError::Address { .. }
                | QueryError::Unsupported { .. }
                | QueryError::NotSemantic { .. }
        )
    }

    /// HTTP status: 400 for an error in the request, 429 for too much memory, 500 otherwise.
    pub fn status(&self) -> u16 {
        match self {
            QueryError::TooMuchMemory(_) => 429,
            QueryError::Tantivy(_)
            | QueryError::Io(_)
            | QueryError::Vectors(_)
            | QueryError::NotEncoded { .. }
            | QueryError::NotLookedUp { .. } => 500,
            _ => 400,
        }
    }

    /// The error message.
    pub fn reason(&self) -> String {
        match self {
            QueryError::Cancelled => "task cancelled [by user request]".into(),
            QueryError::Syntax { query, .. } => format!("Failed to parse query [{query}]"),
            QueryError::UnknownAnalyzer { clause, name } => {
                format!("[{clause}] analyzer [{name}] not found")
            }
            QueryError::DateFormat { in_range: true, .. } => {
                let cause = self.cause_reason();
                format!("{cause}: [{cause}]")
            }
            QueryError::DateMath { .. }
            | QueryError::TooMuchMemory(_)
            | QueryError::TooMuchEffort(_)
            | QueryError::TooManyClauses { .. }
            | QueryError::TooManyLevels { .. }
            | QueryError::TooManySortKeys { .. }
            | QueryError::CollapseSeveral { .. }
            | QueryError::Tantivy(_)
            | QueryError::Io(_)
            | QueryError::Vectors(_)
            | QueryError::Score { .. }
            | QueryError::RegexpLength { .. }
            | QueryError::CombinedFieldType { .. }
            | QueryError::CombinedAnalyzers { .. }
            | QueryError::NotEncoded { .. }
            | QueryError::NotLookedUp { .. } => self.cause_reason(),
            QueryError::NestedPath { path, mapped } => match mapped {
                false => format!("[nested] failed to find nested object under path [{path}]"),
                true => format!("[nested] nested object under path [{path}] is not of nested type"),
            },
            QueryError::NoFunctionField { field } => format!("unknown field [{field}]"),
            QueryError::Script(_) => "runtime error".into(),
            _ => format!("failed to create query: {}", self.cause_reason()),
        }
    }

    /// Type and message of the cause below a `query_shard_exception`.
    pub fn caused_by(&self) -> Option<(&'static str, String)> {
        let cause = match self {
            QueryError::NumberFormat { .. } => "number_format_exception",
            QueryError::DateFormat { in_range: true, .. } => "illegal_argument_exception",
            QueryError::DateFormat { .. } | QueryError::ExpansionFieldType { .. } => "parse_exception",
            QueryError::Syntax { .. } => "parse_exception",
            QueryError::TimeZone { .. } => "zone_rules_exception",
            QueryError::RegexpStates { .. } => "too_complex_to_determinize_exception",
            QueryError::NestedPath { .. } | QueryError::NoFunctionField { .. } => return None,
            QueryError::Cancelled
            | QueryError::TooMuchMemory(_)
            | QueryError::TooMuchEffort(_)
            | QueryError::Tantivy(_)
            | QueryError::Io(_)
            | QueryError::Vectors(_)
            | QueryError::DateMath { .. }
            | QueryError::TooManyClauses { .. }
            | QueryError::TooManyLevels { .. }
            | QueryError::TooManySortKeys { .. }
            | QueryError::CollapseSeveral { .. }
            | QueryError::NotEncoded { .. }
            | QueryError::NotLookedUp { .. }
            | QueryError::Score { .. }
            | QueryError::RegexpLength { .. }
            | QueryError::CombinedFieldType { .. }
            | QueryError::CombinedAnalyzers { .. }
            | QueryError::UnknownAnalyzer { .. } => return None,
            _ => "illegal_argument_exception",
        };
        Some((cause, self.cause_reason()))
    }

    fn cause_reason(&self) -> String {
        match self {
            QueryError::NumberFormat { input } => format!("For input string: \"{input}\""),
            QueryError::BooleanFormat { input } => {
                format!("Can't parse boolean value [{input}], expected [true] or [false]")
            }
            QueryError::DateFormat { input, format, .. } => {
                format!("failed to parse date field [{input}] with format [{format}]")
            }
            QueryError::TimeZone { input } => format!("Unknown time-zone ID: {input}"),
            QueryError::TooManyFields { limit, found } => {
                format!("field expansion matches too many fields, limit: {limit}, got: {found}")
            }
            QueryError::DateMath { input, detail } => format!("{detail} in date math [{input}]"),
            QueryError::NotAValue { field } => {
                format!("field [{field}] takes a single value, not an object or an array")
            }
            QueryError::Unsupported { actual: "rank_feature", .. } => {
                "Queries on [rank_feature] fields are not supported".to_owned()
            }
            QueryError::Unsupported { field, actual, clause: clause @ ("prefix" | "wildcard") } => format!(
                "Can only use {clause} queries on keyword, text and wildcard fields - not on [{field}] which is of \
                 type [{actual}]"
            ),
            QueryError::Unsupported { field, actual, clause: clause @ ("regexp" | "fuzzy") } => format!(
                "Can only use {clause} queries on keyword and text fields - not on [{field}] which is of type \
                 [{actual}]"
            ),
            QueryError::Unsupported { field, actual, clause: clause @ ("phrase" | "phrase prefix") } => {
                format!(
                    "Can only use {clause} queries on text fields - not on [{field}] which is of type [{actual}]"
                )
            }
            QueryError::Unsupported { field, actual, clause } => {
                format!("Field [{field}] of type [{actual}] does not support {clause} queries")
            }
            QueryError::NotSemantic { field, actual, instead } => {
                let instead = instead.as_ref().map(|name| match name.strip_prefix(field.as_str()) {
                    Some(rest) if rest.starts_with('.') => format!(": use its sub-field [{name}]"),
                    _ => format!(": use [{name}], to which its texts are copied"),
                });
                format!(
                    "Field [{field}] of type [{actual}] does not support semantic queries{}",
                    instead.unwrap_or_default()
                )
            }
            QueryError::SparseFieldType { field, actual } => {
                format!("field [{field}] must be type [sparse_vector] but is type [{actual}]")
            }
            QueryError::SemanticModel { field, clause, wanted, actual } => format!(
                "[{clause}] query on field [{field}] of type [semantic_text] requires a model of task type [{wanted}], \
                 but the field has [{actual}]"
            ),
            QueryError::ExpansionFieldType { actual } => format!(
                "[{actual}] is not an appropriate field type for this query. Allowed field types \
                 are [sparse_vector, rank_features]."
            ),
            QueryError::SparseWeight { weight, .. } => {
                format!("boost must be a positive float, got {weight:?}")
            }
            QueryError::KnnFieldType { .. } => {
                "[knn] queries are only supported on [dense_vector] fields".into()
            }
            QueryError::KnnNotIndexed { field } => format!(
                "to perform knn search on field [{field}], its mapping must have [index] set to \
                 [true]"
            ),
            QueryError::KnnDims { expected, actual, .. } => format!(
                "the query vector has a different number of dimensions [{actual}] than the document vectors \
                 [{expected}]"
            ),
            QueryError::KnnVector { reason } | QueryError::Address { reason } => reason.clone(),
            QueryError::NotSearchable { field, actual } => {
                format!("Cannot search on field [{field}] of type [{actual}] since it is not searchable")
            }
            QueryError::Syntax { query, detail } => format!("Cannot parse '{query}': {detail}"),
            QueryError::Regexp { detail, .. } => detail.clone(),
            QueryError::RegexpLength { length, limit } => format!(
                "The length of regex [{length}] used in the Regexp Query request has exceeded the allowed maximum of \
                 [{limit}]. This maximum can be set by changing the [index.max_regex_length] index level setting."
            ),
            QueryError::RegexpStates { pattern, limit } => {
                format!("Determinizing [{pattern}] would require more than {limit} effort.")
            }
            QueryError::TimeValue { setting, value } => format!(
                "failed to parse setting [{setting}] with value [{value}] as a time value: unit is missing or \
                 unrecognized"
            ),
            QueryError::NoMinimumField { field } => {
                format!("failed to find minimum_should_match field [{field}]")
            }
            QueryError::CombinedFieldType { field, actual } => {
                format!("Field [{field}] of type [{actual}] does not support [combined_fields] queries")
            }
            QueryError::CombinedAnalyzers { fields: [first, second] } => format!(
                "All fields in [combined_fields] query must have the same search analyzer: [{first}] and [{second}] \
                 do not"
            ),
            QueryError::RankFeatureType { actual } => format!(
                "[rank_feature] query only works on [rank_feature] fields and [rank_features] features, not \
                 [{actual}]"
            ),
            QueryError::DistanceFeatureType { actual } => format!(
                "Illegal data type of [{actual}]![distance_feature] query can only be run on a date, date_nanos or \
                 geo_point field type!"
            ),
            QueryError::Fuzziness { input } => {
                format!("Can't parse fuzziness on value: [{input}]")
            }
            QueryError::TooManyClauses { limit } => {
                format!("Query contains too many nested clauses; maxClauseCount is set to {limit}")
            }
            QueryError::TooManyLevels { limit } => {
                format!("Query contains too many nested clauses; [+] and [|] may take turns [{limit}] times")
            }
            QueryError::TooManySortKeys { limit } => {
                format!("a search on this server can be sorted by [{limit}] keys at most")
            }
            QueryError::CollapseSeveral { doc } => {
                format!("failed to extract doc:{doc}, the grouping field must be single valued")
            }
            QueryError::TooManyTerms { count, limit } => format!(
                "The number of terms [{count}] used in the Terms Query request has exceeded the \
                 allowed maximum of [{limit}]. This maximum can be set by changing the \
                 [index.max_terms_count] index level setting."
            ),
            QueryError::Cancelled
            | QueryError::TooMuchMemory(_)
            | QueryError::TooMuchEffort(_)
            | QueryError::Tantivy(_)
            | QueryError::Io(_)
            | QueryError::Vectors(_)
            | QueryError::DatePattern { .. }
            | QueryError::UnknownAnalyzer { .. }
            | QueryError::Invalid { .. }
            | QueryError::NoFunctionField { .. }
            | QueryError::NestedPath { .. }
            | QueryError::Score { .. }
            | QueryError::Script(_)
            | QueryError::NotLookedUp { .. }
            | QueryError::NotEncoded { .. } => self.to_string(),
        }
    }
}
