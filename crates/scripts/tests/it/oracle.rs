use std::sync::Arc;
use sparrow_scripts::{Context, Machine, Script, Value, ScriptError};
use serde_json::{json, Value as Json};

const TEST: Context = Context { name: "test", variables: &["ctx"], functions: &[] };

#[test]
#[ignore]
fn oracle() {
    let lines = std::fs::read_to_string(std::env::var("ORACLE_IN").unwrap()).unwrap();
    let mut out = String::new();
    for line in lines.lines() {
        let row: Json = serde_json::from_str(line).unwrap();
        let answer = match Script::compile(row["script"].as_str().unwrap(), &TEST) {
            Err(error) => err(&error),
            Ok(script) => {
                let mut machine = Machine::new(Arc::new(script), Some(Arc::new(row["params"].as_object().cloned().unwrap_or_default())));
                let ctx = Value::from_json(&row["ctx"]);
                machine.set("ctx", ctx.clone());
                match machine.run(&mut ()) {
                    Err(error) => err(&error),
                    Ok(value) => {
                        let class = value.class_name();
                        let shown = machine.to_text(&value).unwrap_or("?".into());
                        match machine.to_json(&ctx) {
                            Ok(ctx) => json!({"result": shown, "class": class, "ctx": ctx}),
                            Err(error) => err(&error),
                        }
                    }
                }
            }
        };
        out.push_str(&answer.to_string());
        out.push('\n');
    }
    std::fs::write(std::env::var("ORACLE_OUT").unwrap(), out).unwrap();
}

fn err(error: &ScriptError) -> Json {
    let j = error.exception().to_json();
    json!({"error": j["caused_by"]["type"], "reason": j["caused_by"]["reason"], "stack": j["script_stack"], "position": j["position"], "when": j["reason"]})
}
