//! What a reindex was asked to do.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::tally::Progressed;
use crate::Engine;
use crate::error::{ApiError, EngineError, Exception};
use crate::indices::ResolveOptions;
use crate::request::Request;
use crate::search::SourceSelection;

/// Largest batch, as a search page.
const MOST_PER_BATCH: u64 = 10_000;
const DEFAULT_BATCH: u64 = 1000;

/// A reindex request, checked.
#[derive(Debug, Clone)]
pub(super) struct ReindexSpec {
    pub sources: Vec<String>,
    pub query: Option<Value>,
    pub selection: SourceSelection,
    /// Documents of a batch.
    pub batch: usize,
    pub destination: String,
    /// The destination has to be an alias.
    pub require_alias: bool,
    pub pipeline: Option<String>,
    pub create: bool,
    pub version_type: VersionType,
    pub max_docs: Option<u64>,
    /// Version conflicts are counted and passed over.
    pub proceed: bool,
    /// Infinite for no throttle.
    pub requests_per_second: f64,
    pub refresh: bool,
    /// The request, for going on after a crash.
    body: Value,
    query_string: BTreeMap<String, String>,
}

/// Whose versions the copies have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VersionType {
    /// The destination counts.
    Internal,
    /// Those of the source; only higher ones are written.
    External,
    /// Those of the source; equal ones are written too.
    ExternalOrEqual,
}

impl ReindexSpec {
    /// Reads a request.
    ///
    /// # Errors
    /// What is wrong with it, in the words of Elasticsearch.
    pub fn parse(body: &[u8], request: &Request) -> Result<Self, EngineError> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err(EngineError::parse("request body is required"));
        }
        let value: Value = crate::strict_json::from_slice(body).map_err(|error| {
            let place = format!("[{}:{}] {error}", error.line(), error.column());
            EngineError::api(400, Exception::new("x_content_parse_exception", place))
        })?;
        Self::from_value(value, body, request.query.clone())
    }

    /// Reads what [`ReindexSpec::to_resume`] wrote.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn from_resume(saved: &Value) -> Result<(Self, Progressed), EngineError> {
        let query_string = saved["query"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect();
        let progressed = serde_json::from_value(saved["progressed"].clone())
            .map_err(|error| EngineError::internal(format!("checkpoint of a reindex: {error}")))?;
        let body = saved["body"].clone();
        let text = body.to_string();
        Ok((Self::from_value(body, text.as_bytes(), query_string)?, progressed))
    }

    /// What is needed to go on after a crash.
    pub fn to_resume(&self, progressed: &Progressed) -> Value {
        json!({"body": self.body, "query": self.query_string, "progressed": progressed})
    }

    /// Description of the task.
    pub fn description(&self) -> String {
        format!("reindex from [{}] to [{}]", self.sources.join(", "), self.destination)
    }

    /// Refuses to write into an index that is read. An index that is not there is found out later.
    ///
    /// # Errors
    /// A validation error.
    pub fn check_not_into_itself(&self, engine: &Engine) -> Result<(), EngineError> {
        if self.require_alias && !engine.indices.is_alias(&self.destination) {
            let name = &self.destination;
            let reason = format!(
                "no such index [{name}] and [require_alias] request flag is [true] and [{name}] is not an alias"
            );
            let exception = Exception::new("index_not_found_exception", reason).with("index", name.as_str());
            return Err(EngineError::api(404, exception));
        }
        let destination = engine.indices.write_target(&self.destination).map(|handle| handle.name.clone());
        let destination = destination.unwrap_or_else(|_| self.destination.clone());
        for source in &self.sources {
            let Ok(handles) = engine.indices.resolve(source, ResolveOptions::default()) else { continue };
            if handles.iter().any(|handle| handle.name == destination) {
                return Err(EngineError::invalid(format!(
                    "reindex cannot write into an index its reading from [{}]",
                    self.destination
                )));
            }
        }
        Ok(())
    }

    fn from_value(
        value: Value,
        text: &[u8],
        query_string: BTreeMap<String, String>,
    ) -> Result<Self, EngineError> {
        let request = Request { query: query_string, ..Request::default() };
        let params = request.params();
        let Value::Object(mut given) = value.clone() else {
            return Err(malformed(text, "reindex", None));
        };
        let mut source = object(&mut given, "source")?;
        let mut destination = object(&mut given, "dest")?;

        let proceed = match given.shift_remove("conflicts") {
            None | Some(Value::Null) => params.get("conflicts").map(str::to_owned),
            Some(Value::String(text)) => Some(text),
            Some(other) => Some(other.to_string()),
        };
        let proceed = match proceed.as_deref() {
            None | Some("abort") => false,
            Some("proceed") => true,
            Some(other) => {
                return Err(EngineError::illegal_argument(format!(
                    "conflicts may only be \"proceed\" or \"abort\" but was [{other}]"
                )));
            }
        };
        let max_docs = max_docs(&mut given, params.integer("max_docs")?)?;
        if given.shift_remove("script").is_some_and(|script| !script.is_null()) {
            return Err(unsupported("script", "scripts are not run by this server; use an ingest pipeline"));
        }
        if let Some(unknown) = given.keys().next() {
            return Err(malformed(text, "reindex", Some(unknown)));
        }

        let sources = indices(source.shift_remove("index"))?;
        let batch = match integer(&mut source, "size")? {
            None => DEFAULT_BATCH,
            Some(size) if size <= 0 => {
                return Err(EngineError::illegal_argument(format!(
                    "[size] parameter must be greater than 0, found [{size}]"
                )));
            }
            Some(size) => size.unsigned_abs(),
        };
        if batch > MOST_PER_BATCH {
            return Err(EngineError::illegal_argument(format!(
                "Batch size is too large, size must be less than or equal to: [{MOST_PER_BATCH}] but was [{batch}]. \
                 Scroll batch sizes cost as much memory as result windows so they are controlled by the \
                 [index.max_result_window] index level setting."
            )));
        }
        let mut problems = Vec::new();
        let selection = match selection(source.shift_remove("_source"))? {
            Some(selection) => selection,
            None => {
                problems.push("_source:false is not supported in this context".to_owned());
                SourceSelection::Whole
            }
        };
        let query = source.shift_remove("query").filter(|query| !query.is_null());
        for (name, why) in [
            ("remote", "documents are read from this server only"),
            ("slice", "this server reads with several threads by itself"),
            ("sort", "documents are read in the order in which they were written"),
        ] {
            if source.shift_remove(name).is_some_and(|value| !value.is_null()) {
                return Err(unsupported(name, why));
            }
        }
        if let Some(unknown) = source.keys().next() {
            return Err(nested(text, "source", unknown));
        }

        let destination_index = optional_text(&mut destination, "index")?.unwrap_or_default();
        let pipeline = optional_text(&mut destination, "pipeline")?;
        let create = match optional_text(&mut destination, "op_type")?
            .map(|name| name.to_ascii_lowercase())
            .as_deref()
        {
            None | Some("index") => false,
            Some("create") => true,
            Some(other) => {
                return Err(EngineError::illegal_argument(format!(
                    "opType must be 'create' or 'index', found: [{other}]"
                )));
            }
        };
        let version_type = match optional_text(&mut destination, "version_type")?.as_deref() {
            None | Some("internal") => VersionType::Internal,
            Some("external" | "external_gt") => VersionType::External,
            Some("external_gte") => VersionType::ExternalOrEqual,
            Some(other) => {
                return Err(EngineError::illegal_argument(format!("No version type match [{other}]")));
            }
        };
        match optional_text(&mut destination, "routing")?.as_deref() {
            None | Some("keep" | "discard") => {}
            Some(_) => {
                return Err(unsupported("routing", "an index is not divided, so routing decides nothing"));
            }
        }
        if let Some(unknown) = destination.keys().next() {
            return Err(nested(text, "dest", unknown));
        }

        if sources.is_empty() {
            problems.push("use _all if you really want to copy from all existing indexes".to_owned());
        }
        if destination_index.is_empty() {
            problems.push("index must be specified".to_owned());
        }
        if let Some(slices) = slices(params.get("slices"))?
            && max_docs.is_some_and(|max_docs| max_docs < slices)
        {
            problems.push("[max_docs] should be >= [slices]".to_owned());
        }
        if !problems.is_empty() {
            return Err(EngineError::Validation { problems });
        }
        // A page never holds more than may be written.
        let batch = max_docs.map_or(batch, |max_docs| batch.min(max_docs.max(1)));
        Ok(Self {
            sources,
            query,
            selection,
            batch: usize::try_from(batch).unwrap_or(usize::MAX),
            destination: destination_index,
            require_alias: params.bool("require_alias", false)?,
            pipeline: pipeline.filter(|pipeline| pipeline != "_none"),
            create,
            version_type,
            max_docs,
            proceed,
            requests_per_second: requests_per_second(&request)?.unwrap_or(f64::INFINITY),
            refresh: params.bool("refresh", false)?,
            body: value,
            query_string: request.query,
        })
    }
}

/// The pace that a request asks for; none if it does not say.
pub(in crate::jobs) fn requests_per_second(request: &Request) -> Result<Option<f64>, EngineError> {
    let Some(text) = request.params().get("requests_per_second") else { return Ok(None) };
    match text.parse::<f64>() {
        Ok(pace) if pace.to_bits() == (-1.0_f64).to_bits() => Ok(Some(f64::INFINITY)),
        Ok(pace) if pace > 0.0 => Ok(Some(pace)),
        _ => Err(EngineError::illegal_argument(
            "[requests_per_second] must be a float greater than 0. Use -1 to disable throttling.",
        )),
    }
}

fn slices(text: Option<&str>) -> Result<Option<u64>, EngineError> {
    match text {
        None | Some("auto") => Ok(None),
        Some(text) => match text.parse::<u64>() {
            Ok(slices) if slices > 0 => Ok(Some(slices)),
            _ => Err(EngineError::illegal_argument(
                "[slices] must be a positive integer or the string \"auto\"",
            )),
        },
    }
}

fn max_docs(given: &mut Map<String, Value>, parameter: Option<i64>) -> Result<Option<u64>, EngineError> {
    let mut in_body = integer(given, "max_docs")?;
    if in_body.is_none() {
        // The name before Elasticsearch 7.
        in_body = integer(given, "size")?;
    }
    for value in [in_body, parameter].into_iter().flatten() {
        if value < 0 {
            return Err(EngineError::illegal_argument(format!(
                "[max_docs] parameter cannot be negative, found [{value}]"
            )));
        }
    }
    match (in_body, parameter) {
        (Some(body), Some(parameter)) if body != parameter => Err(EngineError::illegal_argument(format!(
            "[max_docs] set to two different values [{parameter}] and [{body}]"
        ))),
        (body, parameter) => Ok(body.or(parameter).map(i64::unsigned_abs)),
    }
}

fn indices(given: Option<Value>) -> Result<Vec<String>, EngineError> {
    let wrong = || EngineError::illegal_argument("[source] [index] must be a string or a list of strings");
    let list = match given {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(names)) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        Some(Value::Array(list)) => list
            .into_iter()
            .map(|name| match name {
                Value::String(name) => Ok(name),
                _ => Err(wrong()),
            })
            .collect::<Result<Vec<_>, _>>()?,
        Some(_) => return Err(wrong()),
    };
    Ok(list.into_iter().filter(|name| !name.is_empty()).collect())
}

/// The fields to copy; none for `_source: false`.
fn selection(given: Option<Value>) -> Result<Option<SourceSelection>, EngineError> {
    let wrong = || {
        EngineError::illegal_argument("[source] [_source] must be a string, a list of strings or an object")
    };
    let texts = |value: Option<Value>| -> Result<Vec<String>, EngineError> {
        match value {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text]),
            Some(Value::Array(list)) => {
                list.into_iter().map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
            }
            Some(_) => Err(wrong()),
        }
    };
    match given {
        None | Some(Value::Null | Value::Bool(true)) => Ok(Some(SourceSelection::Whole)),
        Some(Value::Bool(false)) => Ok(None),
        Some(Value::Object(mut map)) => {
            let mut take =
                |one: &str, other: &str| texts(map.shift_remove(one).or_else(|| map.shift_remove(other)));
            let (includes, excludes) = (take("includes", "include")?, take("excludes", "exclude")?);
            if map.is_empty() { Ok(Some(SourceSelection::fields(includes, excludes))) } else { Err(wrong()) }
        }
        given => Ok(Some(SourceSelection::fields(texts(given)?, Vec::new()))),
    }
}

fn object(given: &mut Map<String, Value>, name: &str) -> Result<Map<String, Value>, EngineError> {
    match given.shift_remove(name) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map),
        Some(_) => Err(EngineError::api(
            400,
            Exception::new(
                "x_content_parse_exception",
                format!("[reindex] {name} doesn't support values of this type, an object is needed"),
            ),
        )),
    }
}

fn integer(given: &mut Map<String, Value>, name: &str) -> Result<Option<i64>, EngineError> {
    match given.shift_remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_i64().or_else(|| value.as_str()?.parse().ok()).map(Some).ok_or_else(|| {
            EngineError::illegal_argument(format!("[{name}] must be a whole number but was [{value}]"))
        }),
    }
}

fn optional_text(given: &mut Map<String, Value>, name: &str) -> Result<Option<String>, EngineError> {
    match given.shift_remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            Err(EngineError::illegal_argument(format!("[dest] [{name}] must be a string but was [{other}]")))
        }
    }
}

fn unsupported(name: &str, why: &str) -> EngineError {
    EngineError::illegal_argument(format!("[reindex] does not support [{name}]: {why}"))
}

fn malformed(text: &[u8], parser: &str, unknown: Option<&str>) -> EngineError {
    let reason = match unknown {
        Some(name) => format!("{} [{parser}] unknown field [{name}]", place(text, name)),
        None => format!("[1:1] [{parser}] Expected START_OBJECT"),
    };
    EngineError::api(400, Exception::new("x_content_parse_exception", reason))
}

/// An unknown field inside `source` or `dest`: the outer parser reports the inner one's error.
fn nested(text: &[u8], section: &str, unknown: &str) -> EngineError {
    let place = place(text, unknown);
    let cause =
        Exception::new("x_content_parse_exception", format!("{place} [{section}] unknown field [{unknown}]"));
    EngineError::Api(Box::new(ApiError {
        status: 400,
        exception: Exception::new(
            "x_content_parse_exception",
            format!("{place} [reindex] failed to parse field [{section}]"),
        )
        .because(cause.clone()),
        root_causes: vec![cause],
    }))
}

/// `[line:column]` of a key.
fn place(text: &[u8], key: &str) -> String {
    let quoted = Value::String(key.to_owned()).to_string();
    let at = text.windows(quoted.len()).position(|window| window == quoted.as_bytes()).unwrap_or(0);
    let line = text[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = at - text[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1) + 1;
    format!("[{line}:{column}]")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ReindexSpec;
    use crate::jobs::reindex::tally::Progressed;
    use crate::request::Request;

    fn parse(body: Value, parameters: &[(&str, &str)]) -> Result<ReindexSpec, String> {
        let query =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let request = Request { query, ..Request::default() };
        ReindexSpec::parse(body.to_string().as_bytes(), &request).map_err(|error| error.reason())
    }

    fn refused(source: Value, dest: Value, rest: Value, parameters: &[(&str, &str)]) -> String {
        let mut body = json!({"source": source, "dest": dest});
        for (name, value) in rest.as_object().unwrap() {
            body[name] = value.clone();
        }
        parse(body, parameters).unwrap_err()
    }

    #[test]
    fn requests_are_read() {
        let spec = parse(
            json!({"conflicts": "proceed", "max_docs": 500,
                   "source": {"index": ["a", "b"], "size": 50, "query": {"match_all": {}}, "_source": ["x", "y.*"]},
                   "dest": {"index": "c", "op_type": "create", "pipeline": "p", "version_type": "external"}}),
            &[("requests_per_second", "12.5"), ("refresh", "true"), ("slices", "auto")],
        )
        .unwrap();
        assert_eq!(spec.sources, ["a", "b"]);
        assert_eq!(spec.batch, 50);
        assert!(spec.proceed && spec.create && spec.refresh);
        assert_eq!(spec.max_docs, Some(500));
        assert_eq!(spec.pipeline.as_deref(), Some("p"));
        assert!((spec.requests_per_second - 12.5).abs() < f64::EPSILON);
        assert_eq!(spec.description(), "reindex from [a, b] to [c]");
        let spec =
            parse(json!({"source": {"index": "a"}, "dest": {"index": "c"}, "max_docs": 2}), &[]).unwrap();
        assert_eq!(spec.batch, 2);
        assert!(spec.requests_per_second.is_infinite());
    }

    #[test]
    fn a_checkpoint_brings_the_request_back() {
        let spec = parse(
            json!({"source": {"index": "a", "size": 7}, "dest": {"index": "c"}}),
            &[("requests_per_second", "3"), ("refresh", "true")],
        )
        .unwrap();
        let progressed = Progressed { after: Some(("a".into(), 17)), ..Progressed::default() };
        let (again, there) = ReindexSpec::from_resume(&spec.to_resume(&progressed)).unwrap();
        assert_eq!(there.after, Some(("a".into(), 17)));
        assert_eq!((again.sources, again.batch, again.refresh), (spec.sources, 7, true));
    }

    #[test]
    fn bad_requests_are_refused_in_known_words() {
        let (a, b) = (json!({"index": "a"}), json!({"index": "b"}));
        assert_eq!(
            parse(json!({}), &[]).unwrap_err(),
            "Validation Failed: 1: use _all if you really want to copy from all existing indexes;2: index must be \
             specified;"
        );
        for (rest, parameters, message) in [
            (
                json!({"conflicts": "x"}),
                &[][..],
                "conflicts may only be \"proceed\" or \"abort\" but was [x]",
            ),
            (json!({"max_docs": -4}), &[], "[max_docs] parameter cannot be negative, found [-4]"),
            (
                json!({"max_docs": 5}),
                &[("max_docs", "4")],
                "[max_docs] set to two different values [4] and [5]",
            ),
            (
                json!({}),
                &[("requests_per_second", "0")],
                "[requests_per_second] must be a float greater than 0. Use -1 to disable throttling.",
            ),
            (
                json!({}),
                &[("requests_per_second", "fast")],
                "[requests_per_second] must be a float greater than 0. Use -1 to disable throttling.",
            ),
            (json!({}), &[("slices", "0")], "[slices] must be a positive integer or the string \"auto\""),
            (
                json!({"max_docs": 2}),
                &[("slices", "5")],
                "Validation Failed: 1: [max_docs] should be >= [slices];",
            ),
        ] {
            assert_eq!(refused(a.clone(), b.clone(), rest, parameters), message);
        }
        assert!(
            refused(a.clone(), b.clone(), json!({"junk": 1}), &[])
                .ends_with("[reindex] unknown field [junk]")
        );
        assert!(
            refused(a.clone(), json!({"index": "b", "junk": 1}), json!({}), &[])
                .ends_with("[reindex] failed to parse field [dest]")
        );
        assert_eq!(
            refused(json!({"index": "a", "_source": false}), b.clone(), json!({}), &[]),
            "Validation Failed: 1: _source:false is not supported in this context;"
        );
        assert!(
            refused(json!({"index": "a", "size": 10_001}), b, json!({}), &[])
                .starts_with("Batch size is too large")
        );
    }

    #[test]
    fn the_place_of_an_unknown_field_is_named() {
        let error = ReindexSpec::parse(b"{\n  \"junk\": 1\n}", &Request::default()).unwrap_err();
        assert_eq!(error.reason(), "[2:3] [reindex] unknown field [junk]");
        assert_eq!(error.status(), 400);
    }
}
