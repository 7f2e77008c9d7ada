//! Tests of scripts, as their callers use them.

mod bounds;
mod cases;
mod documents;
mod requests;
mod soup;

use std::sync::Arc;

use serde_json::Value as Json;
use sparrow_scripts::{Context, Machine, Script, ScriptError, Value};

const TEST: Context = Context { name: "test", variables: &["ctx"], functions: &[] };

/// What a script returns, and the `ctx` that it leaves.
fn run(source: &str, ctx: &Json, params: &Json) -> Result<(String, Json), ScriptError> {
    let script = Script::compile(source, &TEST)?;
    let mut machine = Machine::new(Arc::new(script), params.as_object().cloned().map(Arc::new));
    let ctx = Value::from_json(ctx);
    machine.set("ctx", ctx.clone());
    let result = machine.run(&mut ())?;
    let after = machine.to_json(&ctx)?;
    Ok((machine.to_text(&result)?, after))
}

/// What a script returns, as a text.
fn result(source: &str) -> Result<String, ScriptError> {
    run(source, &serde_json::json!({}), &Json::Null).map(|(result, _)| result)
}

/// The type and the reason of the error of a script.
fn refusal(source: &str) -> (String, String) {
    let error = match result(source) {
        Ok(result) => panic!("{source}: {result}"),
        Err(error) => error,
    };
    let json = error.exception().to_json();
    let cause = |name: &str| json["caused_by"][name].as_str().unwrap_or_default().to_owned();
    (cause("type"), cause("reason"))
}
