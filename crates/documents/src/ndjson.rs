//! Bulk bodies: lines of actions and documents.
//!
//! Documents are not parsed here and not copied: an action borrows its line.

use std::io::BufRead;

use serde::Deserialize;
use serde_json::Value;
use sparrow_runtime::work;

use super::action::{Action, ActionKind, VersionType, primary_term, sequence_number};
use sparrow_mapping::SourceSelection;
use sparrow_request::body::{parse_json, token, unterminated};
use sparrow_request::error::EngineError;
use sparrow_wire::shape::{Shape, alike, flag, int, named, object, one, one_member, text};

/// Values from the URL, which apply to every action that does not override them.
#[derive(Debug, Clone, Default)]
pub(super) struct Defaults {
    pub(super) index: Option<String>,
    pub(super) routing: Option<String>,
    pub(super) pipeline: Option<String>,
    pub(super) require_alias: bool,
    pub(super) source: Option<SourceSelection>,
}

/// What the line of an action holds.
pub(super) fn shape() -> Shape {
    let about = "First line of an action; its document, or for `update` a body of that kind, is the next.";
    one_member(ActionKind::ALL.map(|kind| (kind.name(), metadata_shape(kind)))).about(about)
}

fn metadata_shape(kind: ActionKind) -> Shape {
    let all = object(alike("_index _id routing", text()))
        .and(alike("version if_seq_no if_primary_term", int()))
        .and([("version_type", one(&VersionType::IN_BODIES)), ("require_alias", flag())]);
    match kind {
        ActionKind::Index | ActionKind::Create => all.and([("pipeline", text())]),
        ActionKind::Update => all.and([("retry_on_conflict", int()), ("_source", named("SourceSelection"))]),
        ActionKind::Delete => all,
    }
}

/// Number of actions between two checks of whether the request must stop.
const ACTIONS_AT_ONCE: usize = 1024;

/// Parses a whole bulk body. Nothing has been written if this fails.
///
/// # Errors
/// On a malformed action line, with its number; on a missing newline at the end; and on actions that are invalid in
/// themselves.
pub(super) fn parse<'a>(body: &'a [u8], defaults: &Defaults) -> Result<Vec<Action<'a>>, EngineError> {
    if body.is_empty() {
        return Err(EngineError::parse("request body is required"));
    }
    let mut lines = Lines { body, rest: body, number: 0 };
    let mut actions = Vec::new();
    while let Some(line) = lines.next_line()? {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let mut action = parse_action(line, lines.number, defaults)?;
        if action.kind != ActionKind::Delete {
            match lines.next_line()? {
                Some(line) => action.body = line,
                // An action without its document is no action.
                None => break,
            }
        }
        actions.push(action);
        if actions.len().is_multiple_of(ACTIONS_AT_ONCE) {
            work::check()?;
        }
    }
    work::check()?;
    let mut problems: Vec<String> = actions.iter().flat_map(Action::problems).collect();
    if actions.is_empty() {
        problems.push("no requests added".to_owned());
    }
    if problems.is_empty() { Ok(actions) } else { Err(EngineError::Validation { problems }) }
}

struct Lines<'a> {
    body: &'a [u8],
    rest: &'a [u8],
    number: usize,
}

impl<'a> Lines<'a> {
    fn next_line(&mut self) -> Result<Option<&'a [u8]>, EngineError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut behind = self.rest;
        // Reading from memory cannot fail. This finds the byte many times faster than an iterator.
        let length = behind.skip_until(b'\n').unwrap_or_default();
        let Some(line) = self.rest[..length].strip_suffix(b"\n") else {
            return Err(EngineError::illegal_argument(unterminated("bulk", self.body)));
        };
        self.number += 1;
        self.rest = behind;
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

/// An action line in the usual form: one action, which names a document and an index, or less.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum UsualLine {
    Index(Names),
    Create(Names),
    Update(Names),
    Delete(Names),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    #[serde(rename = "_index")]
    index: Option<String>,
    #[serde(rename = "_id")]
    id: Option<String>,
    #[serde(alias = "_routing")]
    routing: Option<String>,
}

impl UsualLine {
    /// Reads a line; `None` if it is in another form, or malformed.
    fn read(line: &[u8]) -> Option<(ActionKind, Names)> {
        // A list could stand for the names, in their order.
        if line.contains(&b'[') {
            return None;
        }
        Some(match serde_json::from_slice(line).ok()? {
            Self::Index(names) => (ActionKind::Index, names),
            Self::Create(names) => (ActionKind::Create, names),
            Self::Update(names) => (ActionKind::Update, names),
            Self::Delete(names) => (ActionKind::Delete, names),
        })
    }
}

fn parse_action<'a>(line: &[u8], number: usize, defaults: &Defaults) -> Result<Action<'a>, EngineError> {
    match UsualLine::read(line) {
        Some((kind, names)) => {
            let mut action = action_with(kind, defaults);
            action.index = names.index.unwrap_or(action.index);
            action.id = names.id;
            action.routing = names.routing.or(action.routing);
            Ok(action)
        }
        None => parse_any_action(line, number, defaults),
    }
}

/// An action with the values from the URL.
fn action_with<'a>(kind: ActionKind, defaults: &Defaults) -> Action<'a> {
    let mut action = Action::new(kind, defaults.index.clone().unwrap_or_default(), None, &[]);
    action.routing.clone_from(&defaults.routing);
    action.pipeline.clone_from(&defaults.pipeline);
    action.require_alias = defaults.require_alias;
    action.returned_source.clone_from(&defaults.source);
    action
}

/// Reads an action line of any form, and says what is wrong with a malformed one.
fn parse_any_action<'a>(line: &[u8], number: usize, defaults: &Defaults) -> Result<Action<'a>, EngineError> {
    let malformed = |expected: &str, found: &str| {
        EngineError::illegal_argument(format!(
            "Malformed action/metadata line [{number}], expected {expected} but found [{found}]"
        ))
    };
    let value = parse_json(line)?;
    let Value::Object(object) = value else {
        return Err(malformed("START_OBJECT", token(&value)));
    };
    let mut entries = object.into_iter();
    let Some((name, metadata)) = entries.next() else {
        return Err(malformed("FIELD_NAME", "END_OBJECT"));
    };
    let kind = ActionKind::from_name(&name)
        .ok_or_else(|| malformed("field [create], [delete], [index] or [update]", &name))?;
    let Value::Object(metadata) = metadata else {
        return Err(malformed("START_OBJECT", token(&metadata)));
    };
    if entries.next().is_some() {
        return Err(malformed("END_OBJECT", "FIELD_NAME"));
    }
    let mut action = action_with(kind, defaults);
    for (name, value) in metadata {
        let text = match &value {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Array(_) | Value::Object(_) => {
                if name == "_source" {
                    action.returned_source = Some(super::get::source_selection(&value)?);
                    continue;
                }
                return Err(EngineError::illegal_argument(format!(
                    "Malformed action/metadata line [{number}], expected a simple value for field [{name}] but found \
                     [{}]",
                    token(&value)
                )));
            }
        };
        set(&mut action, &name, text, &value, number)?;
    }
    Ok(action)
}

fn set(
    action: &mut Action<'_>,
    name: &str,
    text: String,
    value: &Value,
    number: usize,
) -> Result<(), EngineError> {
    let whole = || -> Result<i64, EngineError> {
        text.parse().map_err(|_| {
            EngineError::illegal_argument(format!(
                "Failed to parse [{name}] with value [{text}] as a whole number"
            ))
        })
    };
    let flag = || match text.as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(EngineError::illegal_argument(format!(
            "Failed to parse value [{other}] as only [true] or [false] are allowed."
        ))),
    };
    match name {
        "_index" => action.index = text,
        "_id" => action.id = Some(text),
        "routing" | "_routing" => action.routing = Some(text),
        "op_type" => match (action.kind, text.as_str()) {
            (ActionKind::Index, "create") => action.kind = ActionKind::Create,
            (ActionKind::Index, "index") | (ActionKind::Create, "create") => {}
            (_, other) => {
                return Err(EngineError::illegal_argument(format!(
                    "opType must be 'create' or 'index', found: [{other}]"
                )));
            }
        },
        "version" | "_version" => action.conditions.version = Some(whole()?),
        "version_type" | "_version_type" => action.conditions.version_type = VersionType::parse(&text)?,
        "if_seq_no" => action.conditions.if_seq_no = Some(sequence_number(whole()?)?),
        "if_primary_term" => action.conditions.if_primary_term = Some(primary_term(whole()?)?),
        "retry_on_conflict" | "_retry_on_conflict" => {
            action.retry_on_conflict = usize::try_from(whole()?).unwrap_or(0);
        }
        "pipeline" => action.pipeline = Some(text),
        "require_alias" => action.require_alias = flag()?,
        "_source" => action.returned_source = Some(super::get::source_selection(value)?),
        _ => {
            let near = metadata_shape(action.kind).near(name);
            return Err(EngineError::illegal_argument(format!(
                "Action/metadata line [{number}] contains an unknown parameter [{name}]{near}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(body: &str) -> Result<Vec<Action<'_>>, EngineError> {
        parse(body.as_bytes(), &Defaults::default())
    }

    fn check_error(body: &str, kind: &str, reason: &str) {
        let error = parsed(body).unwrap_err();
        assert_eq!((error.es_type(), error.reason().as_str()), (kind, reason), "{body:?}");
        assert_eq!(error.status(), 400);
    }

    #[test]
    fn actions_keep_their_order_and_lines() {
        let body = "{\"index\":{\"_index\":\"a\",\"_id\":1}}\r\n{\"x\":1}\r\n\n{\"delete\":{\"_index\":\"a\",\"_id\":\"2\"}}\n\
                    {\"update\":{\"_index\":\"a\",\"_id\":\"3\",\"retry_on_conflict\":3,\"if_seq_no\":7,\"if_primary_term\":1}}\n{\"doc\":{}}\n";
        let actions = parsed(body).unwrap();
        let kinds: Vec<ActionKind> = actions.iter().map(|action| action.kind).collect();
        assert_eq!(kinds, [ActionKind::Index, ActionKind::Delete, ActionKind::Update]);
        assert_eq!(actions[0].id.as_deref(), Some("1"));
        assert_eq!(actions[0].body, b"{\"x\":1}");
        assert_eq!(actions[2].retry_on_conflict, 3);
        assert_eq!(actions[2].conditions.if_seq_no, Some(7));
    }

    #[test]
    fn malformed_bodies_are_refused_as_recorded() {
        const ILLEGAL: &str = "illegal_argument_exception";
        const INVALID: &str = "action_request_validation_exception";
        check_error("", "parse_exception", "request body is required");
        check_error(
            "{\"index\":{\"_index\":\"books\"}}\n{\"a\":1}",
            ILLEGAL,
            "The bulk request must be terminated by a newline [\\n]",
        );
        check_error(
            "{\"nope\":{\"_index\":\"books\"}}\n{\"a\":1}\n",
            ILLEGAL,
            "Malformed action/metadata line [1], expected field [create], [delete], [index] or [update] but found \
             [nope]",
        );
        check_error(
            "{\"index\":{}}{\"a\":1}",
            ILLEGAL,
            "The bulk request must be terminated by a newline [\\n]: the body has no line break. curl removes those of a \
             file with [-d], and keeps them with [--data-binary]",
        );
        check_error(
            "{\"index\":{\"_index\":\"books\",\"rooting\":\"r\"}}\n{}\n",
            ILLEGAL,
            "Action/metadata line [1] contains an unknown parameter [rooting] did you mean [routing]?",
        );
        check_error("{\"index\"\n{\"a\":1}\n", "x_content_e_o_f_exception", "[1:9] Unexpected end of file");
        check_error("{\"index\":{}}\n{\"a\":1}\n", INVALID, "Validation Failed: 1: index is missing;");
        check_error("\n\n", INVALID, "Validation Failed: 1: no requests added;");
        check_error(
            "{\"delete\":{\"_index\":\"a\"}}\n{\"delete\":{\"_id\":\"1\"}}\n",
            INVALID,
            "Validation Failed: 1: id is missing;2: index is missing;",
        );
        check_error(
            "{\"index\":{\"_index\":\"a\"}}\n{}\n{\"index\":{\"_index\":\"a\",\"_type\":\"t\"}}\n{}\n",
            ILLEGAL,
            "Action/metadata line [3] contains an unknown parameter [_type]",
        );
        check_error(
            "{\"index\":{\"_index\":[\"a\"]}}\n{}\n",
            ILLEGAL,
            "Malformed action/metadata line [1], expected a simple value for field [_index] but found [START_ARRAY]",
        );
        check_error(
            "[1]\n{}\n",
            ILLEGAL,
            "Malformed action/metadata line [1], expected START_OBJECT but found [START_ARRAY]",
        );
    }

    #[test]
    fn what_an_action_is_said_to_hold_is_read() {
        for kind in ActionKind::ALL {
            let kind = (kind.name(), metadata_shape(kind));
            let is_read = |member: &str| {
                ["1", "\"index\"", "\"create\"", "true"].iter().any(|value| {
                    let line = format!(r#"{{"{}":{{"{member}":{value}}}}}"#, kind.0);
                    parse_any_action(line.as_bytes(), 1, &Defaults::default())
                        .map_or_else(|error| !error.reason().contains("unknown parameter"), |_| true)
                })
            };
            let unread: Vec<_> = kind.1.names().iter().filter(|name| !is_read(name)).collect();
            assert!(unread.is_empty(), "{}: {unread:?}", kind.0);
            assert!(!is_read("dynamic_templates_"), "{}", kind.0);
        }
    }

    #[test]
    fn the_usual_form_means_the_same_as_any_other() {
        let defaults =
            Defaults { index: Some("books".into()), pipeline: Some("p".into()), ..Defaults::default() };
        let mut usual = 0;
        for line in [
            r#"{"index":{"_id":"1"}}"#,
            r#" {"create" : {"_index": "b", "_id" : "\u00e9\n"} }"#,
            r#"{"delete":{"_id":"1","_index":null}}"#,
            r#"{"update":{"_id":null}}"#,
            r#"{"\u0069ndex":{}}"#,
            r#"{"index":["b","1"]}"#,
            r#"{"index":{"_id":"[1]"}}"#,
            r#"{"index":{"_id":1}}"#,
            r#"{"index":{"_id":true,"_index":"b"}}"#,
            r#"{"index":{"_id":"1","_id":"2"}}"#,
            r#"{"index":{"_id":null,"_id":"2"}}"#,
            r#"{"index":{"_id":"1","routing":"r","pipeline":"q"}}"#,
            r#"{"index":{"_id":{}}}"#,
            r#"{"index":{"id":"1"}}"#,
            r#"{"index":{"_id":"1"},"index":{}}"#,
            r#"{"index":{"_id":"1"},"create":{}}"#,
            r#"{"Index":{}}"#,
            r#"{"index":null}"#,
            r#"{"index":"x"}"#,
            r#""index""#,
            r#"{"index":{"_id":"\ud800"}}"#,
            r#"{"index":{}} {}"#,
            r#"{"index":{}"#,
            "{}",
        ] {
            usual += usize::from(UsualLine::read(line.as_bytes()).is_some());
            let either = format!("{:?}", parse_action(line.as_bytes(), 3, &defaults));
            assert_eq!(either, format!("{:?}", parse_any_action(line.as_bytes(), 3, &defaults)), "{line}");
        }
        assert_eq!(usual, 5);
    }

    #[test]
    fn the_address_gives_defaults() {
        let defaults =
            Defaults { index: Some("books".into()), pipeline: Some("p".into()), ..Defaults::default() };
        let body = "{\"index\":{}}\n{}\n{\"create\":{\"_index\":\"other\",\"pipeline\":\"q\"}}\n{}\n";
        let actions = parse(body.as_bytes(), &defaults).unwrap();
        assert_eq!((actions[0].index.as_str(), actions[0].pipeline.as_deref()), ("books", Some("p")));
        assert_eq!((actions[1].index.as_str(), actions[1].pipeline.as_deref()), ("other", Some("q")));
    }
}
