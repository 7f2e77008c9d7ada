//! The committed index of format 1: readable, and upgraded without a change of its answers.
//!
//! `examples/make_format_1_fixture.rs` wrote it.

use std::path::Path;

use crate::common::{Node, copy_tree};
use serde_json::{Value, json};

const DOCS: u64 = 400;
const QUERY: [(&str, f64); 5] =
    [("token3", 1.5), ("token17", 0.7), ("token29", 2.25), ("token41", 0.4), ("token58", 1.1)];

fn open() -> Node {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/fixtures/format-1");
    let folder = tempfile::tempdir().expect("a temporary folder");
    copy_tree(&fixture, folder.path());
    Node::open(folder, |_| {})
}

fn search_body() -> String {
    let vector: serde_json::Map<String, Value> =
        QUERY.iter().map(|(token, weight)| ((*token).to_owned(), json!(weight))).collect();
    json!({"size": 400, "query": {"sparse_vector": {"field": "tokens", "query_vector": vector}}}).to_string()
}

/// Ids and expected scores of the matching documents, computed from the stored sources, best first.
fn expected(node: &Node) -> Vec<(String, f64)> {
    let mut scores = Vec::new();
    for id in 0..DOCS {
        let source = &node.ok("get_doc", &format!("index=old&id={id}"), "", "")["_source"];
        let score: f64 = QUERY
            .iter()
            .filter_map(|(token, weight)| Some(weight * source["tokens"].get(*token)?.as_f64()?))
            .sum();
        if score > 0.0 {
            scores.push((id.to_string(), score));
        }
    }
    scores.sort_by(|a, b| b.1.total_cmp(&a.1));
    scores
}

#[test]
fn the_committed_index_is_upgraded_with_equal_results() {
    let node = open();
    assert_eq!(node.count("old"), DOCS);
    assert_eq!(
        node.ok("upgrade_assistance", "", "", ""),
        json!({"indices": {"old": {"action_required": "upgrade"}}})
    );
    let before = node.hits("old", &search_body());
    let expected = expected(&node);
    assert_eq!(before.len(), expected.len());
    for ((_, score), (_, wanted)) in before.iter().zip(&expected) {
        // Weights are stored in half precision.
        assert!((score - wanted).abs() <= wanted * 5e-4, "{score} {wanted}");
    }

    let statistics = node.ok("upgrade_index", "index=old", "", "");
    assert_eq!((&statistics["total"], &statistics["updated"]), (&json!(DOCS), &json!(DOCS)));
    assert_eq!(statistics["failures"], json!([]));
    assert_eq!(node.hits("old", &search_body()), before);
    assert_eq!(node.ok("upgrade_assistance", "", "", ""), json!({"indices": {}}));

    let node = node.restart();
    assert_eq!(node.count("old"), DOCS);
    assert_eq!(node.hits("old", &search_body()), before);
}
