//! Updates: a document is read, changed, and written back if nobody else wrote in between.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::action::{Action, Conditions, primary_term, sequence_number};
use super::reply::Success;
use sparrow_catalog::{IndexHandle, Source, StoredDocument, WriteOp};
use sparrow_mapping::SourceSelection;
use sparrow_request::body::parse_json;
use sparrow_request::error::{EngineError, Exception};
use sparrow_scripts::{ChangeScript, Changes, Decision, Found, ScriptError};
use sparrow_wire::json::WrittenNumbers;
use sparrow_wire::shape::{Shape, alike, flag, int, named, object, open};

/// What the body of an update holds.
pub(super) fn shape() -> Shape {
    object([("doc", open().about("members that are put over those of the document"))])
        .and([
            ("upsert", open().about("the document to write if none has this id")),
            ("script", named("Script")),
        ])
        .and(alike("doc_as_upsert scripted_upsert", flag().preset(false)))
        .and([("detect_noop", flag().preset(true)), ("_source", named("SourceSelection"))])
        .and(alike("if_seq_no if_primary_term", int()))
}

/// Body of an update.
#[derive(Debug, Clone)]
pub(super) struct UpdateBody {
    doc: Option<Map<String, Value>>,
    upsert: Option<Map<String, Value>>,
    doc_as_upsert: bool,
    detect_noop: bool,
    script: Option<ChangeScript>,
    /// Whether the script also runs on `upsert` where the document does not exist.
    scripted_upsert: bool,
    /// Why the caller may not delete documents of the index, as a script may ask for.
    pub(super) no_deletion: Option<Exception>,
    pub(super) conditions: Conditions,
    /// The routing of the request: a new document gets it, and one that is there in place of its own, unless a script changes it.
    pub(super) routing: Option<String>,
    pub(super) returned_source: Option<SourceSelection>,
    /// Numbers of `doc` that its fields do not hold as they were written.
    doc_numbers: Option<WrittenNumbers>,
    /// Those of `upsert`.
    upsert_numbers: Option<WrittenNumbers>,
}

/// Outcome of applying an update to the current document.
#[derive(Debug)]
pub(super) enum Plan {
    /// The operation to write, and the new source if it is to be returned.
    Write(WriteOp, Option<Box<RawValue>>),
    /// The update would not change the document.
    Noop(Success),
}

impl UpdateBody {
    /// Reads the body of an update.
    ///
    /// # Errors
    /// When it is malformed, asks for nothing, or has a script that cannot be compiled.
    pub(super) fn parse(action: &Action<'_>) -> Result<Self, EngineError> {
        let Value::Object(object) = parse_json(action.body)? else {
            return Err(EngineError::api(
                400,
                Exception::new("x_content_parse_exception", "[1:1] [UpdateRequest] expected an object"),
            ));
        };
        let refuse_with = |name: &str, problem: &str| {
            let place = sparrow_request::body::place(action.body, name);
            let reason = format!("{place} [UpdateRequest] {problem}");
            EngineError::api(400, Exception::new("x_content_parse_exception", reason))
        };
        let refuse = |name: &str, problem: &str| refuse_with(name, &format!("{problem} [{name}]"));
        let mut body = Self {
            doc: None,
            upsert: None,
            doc_as_upsert: false,
            detect_noop: true,
            script: None,
            scripted_upsert: false,
            no_deletion: None,
            conditions: action.conditions.clone(),
            routing: action.routing.clone(),
            returned_source: action.returned_source.clone(),
            doc_numbers: None,
            upsert_numbers: None,
        };
        if let Some(numbers) = WrittenNumbers::of(action.body) {
            body.doc_numbers = numbers.member("doc");
            body.upsert_numbers = numbers.member("upsert");
        }
        for (name, value) in object {
            match (name.as_str(), value) {
                ("doc", Value::Object(doc)) => body.doc = Some(doc),
                ("upsert", Value::Object(upsert)) => body.upsert = Some(upsert),
                ("doc_as_upsert", Value::Bool(flag)) => body.doc_as_upsert = flag,
                ("detect_noop", Value::Bool(flag)) => body.detect_noop = flag,
                ("_source", value) => body.returned_source = Some(super::get::source_selection(&value)?),
                ("if_seq_no", Value::Number(number)) => {
                    let number = number.as_i64().ok_or_else(|| refuse(&name, "failed to parse field"))?;
                    body.conditions.if_seq_no = Some(sequence_number(number)?);
                }
                ("if_primary_term", Value::Number(number)) => {
                    let number = number.as_i64().ok_or_else(|| refuse(&name, "failed to parse field"))?;
                    body.conditions.if_primary_term = Some(primary_term(number)?);
                }
                ("script", Value::Null) => {}
                ("script", script) => {
                    body.script = Some(ChangeScript::parse(&script, Changes::Update).map_err(failed)?);
                }
                ("scripted_upsert", Value::Bool(flag)) => body.scripted_upsert = flag,
                ("doc" | "upsert", Value::Null) => {}
                (
                    "doc" | "upsert" | "doc_as_upsert" | "scripted_upsert" | "detect_noop" | "if_seq_no"
                    | "if_primary_term",
                    _,
                ) => {
                    return Err(refuse(&name, "failed to parse field"));
                }
                _ => {
                    return Err(refuse_with(&name, &shape().unknown(&name)));
                }
            }
        }
        let problems = body.problems(action.retry_on_conflict);
        if problems.is_empty() { Ok(body) } else { Err(EngineError::Validation { problems }) }
    }

    /// All errors in an update that could be parsed, in Elasticsearch's words.
    fn problems(&self, retries: usize) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |wrong: bool, problem: &str| {
            if wrong {
                problems.push(problem.to_owned());
            }
        };
        let Conditions { if_seq_no, if_primary_term, .. } = &self.conditions;
        if if_seq_no.is_some() {
            check(if_primary_term.is_none(), "ifSeqNo is set, but primary term is [0]");
            check(retries > 0, "compare and write operations can not be retried");
            check(self.doc_as_upsert, "compare and write operations can not be used with upsert");
            check(self.upsert.is_some(), "upsert requests don't support `if_seq_no` and `if_primary_term`");
        }
        check(self.doc.is_none() && self.script.is_none(), "script or doc is missing");
        check(self.doc.is_some() && self.script.is_some(), "can't provide both script and doc");
        check(self.doc.is_none() && self.doc_as_upsert, "doc must be specified if doc_as_upsert is enabled");
        problems
    }

    /// Whether the update has a script, which may decide to delete the document.
    pub(super) fn has_script(&self) -> bool {
        self.script.is_some()
    }

    /// Whether the update can write a document if the document does not exist yet.
    pub(super) fn has_upsert(&self) -> bool {
        self.doc_as_upsert || self.upsert.is_some()
    }

    /// The document to write if the document does not exist yet; pipelines run on it.
    pub(super) fn upsert_mut(&mut self) -> Option<&mut Map<String, Value>> {
        if self.doc_as_upsert { self.doc.as_mut() } else { self.upsert.as_mut() }
    }

    /// Plans the write to `handle` that updates the document `id`.
    ///
    /// # Errors
    /// If there is no such document and no upsert, if its source is not stored, or if the script fails.
    pub(super) fn plan(&self, handle: &IndexHandle, id: &str) -> Result<Plan, EngineError> {
        handle.check_routing(id, self.routing.as_deref())?;
        let Some(document) = handle.get(id)? else {
            let (new, numbers) = match self.doc_as_upsert {
                true => (&self.doc, &self.doc_numbers),
                false => (&self.upsert, &self.upsert_numbers),
            };
            // A number that is asked for means a document that is expected.
            let Some(new) = new.clone().filter(|_| self.conditions.if_seq_no.is_none()) else {
                return Err(EngineError::DocumentMissing {
                    index: handle.name.clone(),
                    uuid: handle.uuid.clone(),
                    id: id.to_owned(),
                });
            };
            let mut new = Value::Object(new);
            if let Some(script) = self.script.as_ref().filter(|_| self.scripted_upsert) {
                let routing = self.routing.as_deref();
                let found = Found { index: &handle.name, id: Some(id), version: None, routing, source: &new };
                match script.decide(&found).map_err(failed)? {
                    Decision::Write { source, .. } => new = Value::Object(source),
                    Decision::Delete | Decision::Noop => {
                        return Ok(Plan::Noop(Success::not_created(id.to_owned())));
                    }
                }
            }
            let source = Source::written(new, numbers.as_ref().as_slice());
            let returned = self.returned(&source.raw);
            let mut op = WriteOp::create(Some(id.to_owned()), source);
            op.routing.clone_from(&self.routing);
            return Ok(Plan::Write(op, returned));
        };
        if document.source.is_empty() {
            let exception = Exception::new(
                "document_source_missing_exception",
                format!("[{id}]: document source missing"),
            )
            .with("index_uuid", handle.uuid.as_str())
            .with("shard", "0")
            .with("index", handle.name.as_str());
            return Err(EngineError::api(400, exception));
        }
        let Value::Object(mut source) = serde_json::from_slice(&document.source).map_err(|error| {
            EngineError::internal(format!("the stored source of [{id}] cannot be read: {error}"))
        })?
        else {
            return Err(EngineError::internal(format!("the stored source of [{id}] is not an object")));
        };
        let stored_numbers = WrittenNumbers::of(&document.source);
        if let Some(script) = &self.script {
            return self.plan_script(
                script,
                handle,
                id,
                document,
                &Value::Object(source),
                stored_numbers.as_ref(),
            );
        }
        // Two ids of 30 digits may be the same double: only their texts say whether one has changed.
        let before = self
            .doc_numbers
            .as_ref()
            .map(|_| Source::written(Value::Object(source.clone()), stored_numbers.as_ref().as_slice()));
        let merged = self.doc.as_ref().is_some_and(|doc| merge(&mut source, doc));
        let numbers: Vec<&WrittenNumbers> = stored_numbers.iter().chain(&self.doc_numbers).collect();
        let source = Value::Object(source);
        let stale = self.conditions.if_seq_no.is_some_and(|required| required != document.seq_no);
        let is_kept = |before: Source| before.raw == Source::written(source.clone(), &numbers).raw;
        if self.detect_noop && !stale && !merged && before.is_none_or(is_kept) {
            return Ok(self.noop(id, &document));
        }
        let routing = self.routing.clone().or_else(|| document.routing.clone());
        Ok(self.rewrite(id, document, Source::written(source, &numbers), routing))
    }

    /// Plans what the script decides for a document.
    fn plan_script(
        &self,
        script: &ChangeScript,
        handle: &IndexHandle,
        id: &str,
        document: StoredDocument,
        source: &Value,
        numbers: Option<&WrittenNumbers>,
    ) -> Result<Plan, EngineError> {
        let found = Found {
            index: &handle.name,
            id: Some(id),
            version: Some(document.version),
            routing: document.routing.as_deref(),
            source,
        };
        match script.decide(&found).map_err(failed)? {
            Decision::Write { source, .. } => {
                let routing = document.routing.clone();
                let source = Source::written(Value::Object(source), numbers.as_slice());
                Ok(self.rewrite(id, document, source, routing))
            }
            Decision::Delete => {
                if let Some(refused) = &self.no_deletion {
                    return Err(EngineError::api(403, refused.clone()));
                }
                let mut op = self.conditional(WriteOp::delete(id.to_owned()), document.seq_no);
                op.routing = document.routing.or_else(|| self.routing.clone());
                Ok(Plan::Write(op, None))
            }
            Decision::Noop => Ok(self.noop(id, &document)),
        }
    }

    /// The response to an update that leaves the document as it is.
    fn noop(&self, id: &str, document: &StoredDocument) -> Plan {
        let mut success = Success::noop(id.to_owned(), document.version, document.seq_no);
        success.source = self.returned(&document.source);
        Plan::Noop(success)
    }

    /// The write that replaces a document, unless another one came in between.
    fn rewrite(&self, id: &str, document: StoredDocument, source: Source, routing: Option<String>) -> Plan {
        let returned = self.returned(&source.raw);
        let mut op = self.conditional(WriteOp::index(Some(id.to_owned()), source), document.seq_no);
        op.routing = routing;
        op.previous = document.passages.map(|passages| (document.source.to_vec(), passages));
        Plan::Write(op, returned)
    }

    fn conditional(&self, mut op: WriteOp, seq_no: u64) -> WriteOp {
        op.if_seq_no = Some(self.conditions.if_seq_no.unwrap_or(seq_no));
        op.if_primary_term = Some(self.conditions.term().unwrap_or(sparrow_catalog::PRIMARY_TERM));
        op
    }

    fn returned(&self, source: &[u8]) -> Option<Box<RawValue>> {
        let mut shown = Vec::new();
        if !self.returned_source.as_ref()?.write(source, &mut shown) {
            return None;
        }
        RawValue::from_string(String::from_utf8(shown).ok()?).ok()
    }
}

/// The error of a script, as an update shows it.
fn failed(error: ScriptError) -> EngineError {
    match error {
        ScriptError::Stopped(stopped) => stopped.into(),
        other => EngineError::api(
            400,
            Exception::new("illegal_argument_exception", "failed to execute script")
                .because(other.exception()),
        ),
    }
}

/// Merges `changes` into `source`, recursively for objects; returns whether anything changed.
pub(super) fn merge(source: &mut Map<String, Value>, changes: &Map<String, Value>) -> bool {
    let mut changed = false;
    for (name, change) in changes {
        match (source.get_mut(name), change) {
            (Some(Value::Object(old)), Value::Object(new)) => changed |= merge(old, new),
            (Some(old), new) if old == new => {}
            (_, new) => {
                source.insert(name.clone(), new.clone());
                changed = true;
            }
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::action::ActionKind;
    use super::*;

    #[test]
    fn merging_goes_into_objects_and_tells_changes() {
        let check = |source: Value, changes: Value, expected: Value| {
            let (Value::Object(mut merged), Value::Object(changes)) = (source.clone(), changes) else {
                return;
            };
            assert_eq!(merge(&mut merged, &changes), source != expected);
            assert_eq!(Value::Object(merged), expected);
        };
        check(json!({"a": 1}), json!({"a": 1}), json!({"a": 1}));
        check(json!({"a": 1}), json!({"b": null}), json!({"a": 1, "b": null}));
        check(json!({"o": {"x": 1, "y": 2}}), json!({"o": {"y": 3}}), json!({"o": {"x": 1, "y": 3}}));
        check(json!({"o": [1, 2]}), json!({"o": [2]}), json!({"o": [2]}));
        check(json!({"o": {"x": 1}}), json!({"o": 5}), json!({"o": 5}));
    }

    #[test]
    fn bad_bodies_are_refused() {
        let reason = |body: &str| {
            let action = Action::new(ActionKind::Update, "a", Some("1".into()), body.as_bytes());
            UpdateBody::parse(&action).unwrap_err().reason()
        };
        assert_eq!(reason("{}"), "Validation Failed: 1: script or doc is missing;");
        assert_eq!(
            reason("{\"doc_as_upsert\":true}"),
            "Validation Failed: 1: script or doc is missing;2: doc must be specified if doc_as_upsert is enabled;"
        );
        assert_eq!(reason("{\"doc\":{},\"nope\":1}"), "[1:11] [UpdateRequest] unknown field [nope]");
        assert_eq!(reason("{\"doc\":3}"), "[1:2] [UpdateRequest] failed to parse field [doc]");
        assert_eq!(reason("{\"script\":\"ctx.x=\"}"), "failed to execute script");
        assert!(reason("{\"script\":\"ctx.x=1\",\"doc\":{}}").contains("can't provide both script and doc"));
        assert!(reason("{\"scripted_upsert\":true,\"upsert\":{}}").contains("script or doc is missing"));
        assert_eq!(
            reason("{\"doc\":{},\"doc_as_upsert\":true,\"upsert\":{},\"if_seq_no\":1,\"if_primary_term\":1}"),
            "Validation Failed: 1: compare and write operations can not be used with upsert;2: upsert requests don't \
             support `if_seq_no` and `if_primary_term`;"
        );
        assert_eq!(
            reason("{\"doc\":{},\"if_seq_no\":-1}"),
            "sequence numbers must be non negative. got [-1]."
        );
        assert_eq!(reason(""), "request body is required");
    }
}
