//! Helpers for tests of jobs over whole indices.

use serde_json::{Value, json};
use sparrow_engine::EngineOptions;

use super::{Node, workspace};

/// Sets options so that the models of the workspace are available and deployed at the start.
pub fn models(options: &mut EngineOptions) {
    options.models = workspace::models();
    options.onnx_runtime = Some(workspace::runtime());
    options.deploy_at_start = true;
}

/// Writes documents with the ids 0 to `count` − 1, each with its number in `n` and a `text`.
pub fn load(node: &Node, index: &str, count: usize) {
    let lines: String = (0..count)
        .map(|n| {
            format!(
                "{}\n{}\n",
                json!({"index": {"_id": n.to_string()}}),
                json!({"n": n, "text": format!("house {n}")})
            )
        })
        .collect();
    let answer = node.ok("bulk", &format!("index={index}"), "refresh=true", &lines);
    assert_eq!(answer["errors"], json!(false));
}

pub fn put_pipeline(node: &Node, id: &str, processors: Value) {
    node.ok("put_pipeline", &format!("pipeline={id}"), "", &json!({"processors": processors}).to_string());
}

/// Waits until a task is complete, at most 120 s, and gives it.
pub fn finished(node: &Node, task: &str) -> Value {
    let answer = node.ok("get_task", &format!("task={task}"), "wait_for_completion=true&timeout=120s", "");
    assert_eq!(answer["completed"], json!(true));
    answer
}
