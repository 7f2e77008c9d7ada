//! Scripts as requests state them, their errors as responses show them, and the cache.

use std::sync::Arc;

use serde_json::json;
use sparrow_scripts::{Cache, Script, ScriptSource};

use super::{TEST, run};

#[test]
fn requests_state_scripts() {
    let text = ScriptSource::parse(&json!("ctx.a = 1")).unwrap();
    assert_eq!((&*text.source, text.id, text.params), ("ctx.a = 1", None, None));
    let object =
        ScriptSource::parse(&json!({"source": "1", "lang": "painless", "params": {"a": 1}})).unwrap();
    assert_eq!((&*object.source, object.params.unwrap().len()), ("1", 1));
    let stored = ScriptSource::parse(&json!({"id": "mine", "params": {}})).unwrap();
    assert_eq!(stored.id.as_deref(), Some("mine"));
    for (request, kind, reason) in [
        (
            json!({}),
            "illegal_argument_exception",
            "must specify either [source] for an inline script or [id] for a stored script",
        ),
        (
            json!({"source": "1", "id": "a"}),
            "illegal_argument_exception",
            "must specify only one of [source] or [id]",
        ),
        (
            json!({"id": "a", "lang": "painless"}),
            "illegal_argument_exception",
            "illegally specified [lang] for a stored script",
        ),
        (
            json!({"source": "1", "lang": "mustache"}),
            "illegal_argument_exception",
            "script_lang not supported [mustache]",
        ),
        (
            json!({"source": "1", "lang": "expression"}),
            "illegal_argument_exception",
            "script_lang not supported [expression]",
        ),
        (
            json!({"source": "1", "inline": "2"}),
            "x_content_parse_exception",
            "[script] unknown field [inline]",
        ),
        (
            json!({"source": 5}),
            "x_content_parse_exception",
            "[script] source doesn't support values of type: VALUE_NUMBER",
        ),
        (
            json!({"source": "1", "params": []}),
            "x_content_parse_exception",
            "[script] params doesn't support values of type: START_ARRAY",
        ),
        (
            json!(7),
            "x_content_parse_exception",
            "[script] script doesn't support values of type: VALUE_NUMBER",
        ),
    ] {
        let exception = ScriptSource::parse(&request).unwrap_err().exception();
        assert_eq!((exception.kind, exception.reason.as_str()), (kind, reason), "{request}");
    }
}

#[test]
fn errors_show_where_they_are() {
    let script = "int x = 1;\n  ctx.ä.b = x;\nreturn x";
    let error = run(script, &json!({"ä": null}), &json!({})).unwrap_err();
    assert_eq!(error.to_string(), "compile error: unexpected character [ä]. at line [2], column [7]");
    let script = "int x = 1;\n  ctx['ä'].b.c = x;\nreturn x";
    let error = run(script, &json!({"ä": {}}), &json!({})).unwrap_err();
    assert_eq!(
        error.exception().to_json(),
        json!({
            "type": "script_exception",
            "reason": "runtime error",
            "script_stack": ["ctx['ä'].b.c = x;\n", "          ^---- HERE"],
            "script": script,
            "lang": "painless",
            "position": {"offset": 23, "start": 13, "end": 31},
            "caused_by": {
                "type": "null_pointer_exception",
                "reason": "cannot access method/field [c] from a null def reference",
            },
        })
    );
    let error = run(
        "ctx.a = 5;\nctx.b = gone + 1;\n// and so on, for a while, until it ends",
        &json!({}),
        &json!({}),
    )
    .unwrap_err();
    let shown = error.exception().to_json();
    assert_eq!(shown["reason"], "compile error");
    assert_eq!(
        shown["script_stack"],
        json!(["ctx.a = 5;\nctx.b = gone + 1;\n// and so on, f ...", "                   ^---- HERE"])
    );
    assert_eq!(shown["caused_by"]["reason"], "cannot resolve symbol [gone]");
}

#[test]
fn compiled_scripts_are_kept() {
    let cache = Cache::default();
    let source: Arc<str> = "ctx.a + 1".into();
    let first = cache.get(&source, &TEST).unwrap();
    assert!(Arc::ptr_eq(&first, &cache.get(&source, &TEST).unwrap()));
    assert!(cache.get(&"1 +".into(), &TEST).is_err());
    for number in 0..300 {
        cache.get(&format!("{number}").into(), &TEST).unwrap();
        // What is used stays.
        assert!(Arc::ptr_eq(&first, &cache.get(&source, &TEST).unwrap()));
    }
    let old: Arc<str> = "0".into();
    let again = cache.get(&old, &TEST).unwrap();
    assert!(Arc::ptr_eq(&again, &cache.get(&old, &TEST).unwrap()));
    // Long ones leave less room.
    for number in 0..100 {
        cache.get(&format!("{number} // {}", "x".repeat(60_000)).into(), &TEST).unwrap();
    }
    assert!(!Arc::ptr_eq(&first, &cache.get(&source, &TEST).unwrap()));
}

#[test]
fn threads_share_scripts() {
    fn shared<T: Send + Sync>() {}
    shared::<Script>();
    shared::<Cache>();
}
