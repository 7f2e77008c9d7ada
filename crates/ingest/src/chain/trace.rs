//! The trace of `_simulate?verbose`: what each processor made of a document.

use serde_json::{Map, Value, json};
use sparrow_runtime::work;

use super::node::{Action, Failure, Item, Node, Runtime, State, fail};
use crate::effort::weight;
use crate::error::ProcessorError;
use crate::script::Condition;

/// Records the result of a processor for `_simulate?verbose`. A `pipeline` processor is recorded before its inner ones, by [`run_call`],
/// unless it fails itself.
pub(super) fn record(runtime: &Runtime<'_>, node: &Node, item: &mut Item) {
    if item.trace.is_none() {
        return;
    }
    let result = match &item.state {
        State::Dropped => json!({"status": "dropped"}),
        State::Failed(failure) => {
            let inside = item.stack.last() != Some(&failure.pipeline);
            if matches!(node.action, Action::Pipeline(_)) && inside {
                return;
            }
            let error = failure.error.to_body();
            if node.ignore_failure {
                json!({"status": "error_ignored", "ignored_error": {"error": error}})
            } else {
                json!({"status": "error", "error": error})
            }
        }
        State::Live if matches!(node.action, Action::Pipeline(_)) => return,
        State::Live | State::Terminated => json!({"status": "success"}),
    };
    let shown = matches!(item.state, State::Live | State::Terminated) || node.ignore_failure;
    push_trace(runtime, node, item, result, shown);
}

pub(super) fn push_trace(
    runtime: &Runtime<'_>,
    node: &Node,
    item: &mut Item,
    result: Value,
    with_document: bool,
) {
    if item.trace.is_none() {
        return;
    }
    let room = work::room_for(if with_document { item.document.weight() } else { 0 });
    let mut document = (with_document && room.is_ok()).then(|| item.document.to_simulated(true));
    let shown = document.as_ref().map_or(0, weight) as isize;
    if let Err(error) = room.map_err(ProcessorError::from).and(runtime.budget.grow(0, shown)) {
        // It is not kept, so it does not count.
        let _ = runtime.budget.grow(shown, 0);
        document = None;
        fail(item, node, error);
    }
    let Some(trace) = &mut item.trace else { return };
    let Value::Object(result) = result else { return };
    let status = result.get("status").and_then(Value::as_str).unwrap_or_default();
    let mut entry =
        entry(node, &node.kind, status, node.condition.as_ref().map(|condition| (condition, true)));
    for (name, value) in result {
        entry.insert(name, value);
    }
    if let Some(document) = document {
        entry.insert("doc".into(), document);
    }
    trace.push(Value::Object(entry));
}

/// Replaces the trace of a pipeline that calls itself: it is shown as the error of the outermost call that leads to the cycle, as if none
/// of its processors had run.
pub(super) fn show_cycle(runtime: &Runtime<'_>, node: &Node, item: &mut Item, length: Option<usize>) {
    let State::Failed(Failure { error: error @ ProcessorError::Cycle { .. }, .. }) = &item.state else {
        return;
    };
    let (Some(trace), Some(length)) = (&mut item.trace, length) else { return };
    let result = json!({"status": "error", "error": error.to_body()});
    trace.truncate(length);
    push_trace(runtime, node, item, result, false);
}

/// What every entry of a trace says of a processor.
pub(super) fn entry(
    node: &Node,
    kind: &str,
    status: &str,
    condition: Option<(&Condition, bool)>,
) -> Map<String, Value> {
    let mut entry = Map::new();
    entry.insert("processor_type".into(), kind.into());
    entry.insert("status".into(), status.into());
    if let Some(description) = &node.description {
        entry.insert("description".into(), Value::String(description.clone()));
    }
    if let Some(tag) = &node.tag {
        entry.insert("tag".into(), Value::String(tag.clone()));
    }
    if let Some((condition, result)) = condition {
        entry.insert("if".into(), json!({"condition": condition.source(), "result": result}));
    }
    entry
}
