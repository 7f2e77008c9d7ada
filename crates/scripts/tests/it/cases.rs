//! Scripts with what the Painless of Elasticsearch 7.10.2 makes of them: each line of the three files is one.

use serde_json::{Value as Json, json};

use super::run;

fn check(lines: &str) -> usize {
    let mut wrong = Vec::new();
    for line in lines.lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let none = json!({});
        let ctx = case.get("ctx").unwrap_or(&none);
        let script = case["script"].as_str().unwrap();
        let found = match run(script, ctx, &case["params"]) {
            Ok((result, after)) => {
                let expected = case.get("after").unwrap_or(ctx);
                (Some(result) == case["result"].as_str().map(str::to_owned) && after == *expected)
                    .then_some(())
                    .ok_or_else(|| format!("{after}"))
            }
            Err(error) => {
                let shown = error.exception().to_json();
                let matches =
                    |name: &str, found: &Json| case.get(name).is_none_or(|expected| expected == found);
                (case.get("error").is_some()
                    && matches("error", &shown["caused_by"]["type"])
                    && matches("reason", &shown["caused_by"]["reason"])
                    && matches("stack", &shown["script_stack"]))
                .then_some(())
                .ok_or_else(|| shown.to_string())
            }
        };
        if let Err(found) = found {
            wrong.push(format!("{line}\n    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    lines.lines().count()
}

#[test]
fn the_language_is_that_of_painless() {
    assert!(check(include_str!("language.jsonl")) > 200);
}

#[test]
fn methods_are_those_of_java() {
    assert!(check(include_str!("methods.jsonl")) > 300);
}

#[test]
fn documents_are_changed_as_in_elasticsearch() {
    assert!(check(include_str!("documents.jsonl")) > 80);
}
