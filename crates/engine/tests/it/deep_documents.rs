//! Documents nested as deeply as can be read again, and deeper, whatever made them: what is acknowledged survives a crash.

use crate::common::Node;
use serde_json::{Value, json};

fn lists(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

#[test]
fn a_pipeline_cannot_make_a_document_that_the_log_cannot_give_back() {
    let node = Node::start();
    node.ok("create_index", "index=i", "", r#"{"mappings":{"dynamic":false}}"#);
    let target = vec!["a"; 60].join(".");
    let pipeline = json!({"processors": [{"json": {"field": "text", "target_field": target}}]}).to_string();
    node.ok("put_pipeline", "pipeline=deep", "", &pipeline);
    for (levels, fits) in [(67, true), (68, false), (120, false)] {
        let document = json!({"text": lists(levels)}).to_string();
        let (status, answer) = node.call("index_doc", "index=i&id=1", "pipeline=deep", &document);
        assert_eq!(status < 300, fits, "{levels}: {answer}");
        if !fits {
            assert_eq!(status, 400);
            let reason = answer["error"]["reason"].as_str().unwrap_or_default();
            assert!(reason.contains("nested more than [127] levels deep"), "{reason}");
        }
        let bulk = format!("{{\"index\":{{\"_index\":\"i\",\"_id\":\"b{levels}\"}}}}\n{document}\n");
        let answer = node.ok("bulk", "", "pipeline=deep", &bulk);
        assert_eq!(answer["errors"], json!(!fits));
    }
    let node = node.crash();
    let (status, source) = node.call_raw("get_source", "index=i&id=1", "", "");
    assert_eq!(status, 200);
    let expected = json!({"text": lists(67)}).to_string();
    assert!(String::from_utf8_lossy(&source).starts_with(expected.trim_end_matches('}')));
    assert!(serde_json::from_slice::<Value>(&source).is_ok());
    assert_eq!(node.call("get_doc", "index=i&id=b120", "", "").0, 404);
}

#[test]
fn pipelines_that_call_each_other_make_no_document_that_is_too_deep_to_handle() {
    let node = Node::start();
    // Ten calls of ten calls of … of a processor that puts the field one level deeper: 100,000 levels.
    let deeper = json!({"processors": [
        {"rename": {"field": "a", "target_field": "b.a"}}, {"rename": {"field": "b", "target_field": "a"}},
    ]});
    node.ok("put_pipeline", "pipeline=p0", "", &deeper.to_string());
    for level in 1..=5 {
        let call = json!({"pipeline": {"name": format!("p{}", level - 1)}});
        let pipeline = json!({"processors": vec![call; 10]});
        node.ok("put_pipeline", &format!("pipeline=p{level}"), "", &pipeline.to_string());
    }
    let (status, _, reason) = node.error("index_doc", "index=i&id=1", "pipeline=p5", r#"{"a":1}"#);
    assert_eq!(status, 400);
    assert!(reason.contains("nested more than [127] levels deep"), "{reason}");
    node.ok("index_doc", "index=i&id=2", "pipeline=p1", r#"{"a":1}"#);
}

#[test]
fn an_update_and_a_reindex_cannot_either() {
    let node = Node::start();
    node.ok("create_index", "index=i", "", r#"{"mappings":{"dynamic":false}}"#);
    // The deepest that a request can bring.
    let deepest: String = format!("{{\"a\":{}}}", lists(126));
    node.ok("index_doc", "index=i&id=1", "", &deepest);
    let (status, kind, _) = node.error("index_doc", "index=i&id=2", "", &format!("{{\"a\":{}}}", lists(127)));
    assert_eq!((status, kind.as_str()), (400, "document_parsing_exception"));
    node.ok("update_doc", "index=i&id=1", "", &format!("{{\"doc\":{{\"b\":{}}}}}", lists(125)));
    let wrap = json!({"processors": [{"rename": {"field": "a", "target_field": "w.a"}}]}).to_string();
    node.ok("put_pipeline", "pipeline=wrap", "", &wrap);
    node.ok("refresh", "index=i", "", "");
    let body = json!({"source": {"index": "i"}, "dest": {"index": "j", "pipeline": "wrap"}}).to_string();
    let (status, answer) = node.call("reindex", "", "", &body);
    assert_eq!(status, 400, "{answer}");
    assert_eq!(answer["created"], json!(0));
    let node = node.crash();
    let (status, source) = node.call_raw("get_source", "index=i&id=1", "", "");
    assert_eq!(status, 200);
    let source: Value = serde_json::from_slice(&source).unwrap();
    assert_eq!(source["b"], serde_json::from_str::<Value>(&lists(125)).unwrap());
}
