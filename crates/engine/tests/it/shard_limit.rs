//! `cluster.max_shards_per_node`: how many indices may be open.

use crate::common::Node;

fn limit(node: &Node, most: &str) {
    let body = format!("{{\"persistent\":{{\"cluster.max_shards_per_node\":{most}}}}}");
    node.ok("put_cluster_settings", "", "", &body);
}

#[test]
fn no_more_indices_are_opened_than_the_setting_allows() {
    let node = Node::start();
    limit(&node, "3");
    node.ok("create_index", "index=a", "", "{}");
    node.ok("create_index", "index=b", "", r#"{"aliases":{"rolled-1":{"is_write_index":true}}}"#);
    node.ok("index_doc", "index=c&id=1", "", r#"{"x":1}"#);
    node.ok("put_settings", "index=a", "", r#"{"index.blocks.write":true}"#);
    let refused = |op: &str, path: &str, body: &str| {
        let (status, kind, reason) = node.error(op, path, "", body);
        assert_eq!((status, kind.as_str()), (400, "validation_exception"), "{op}: {reason}");
        assert_eq!(
            reason,
            "Validation Failed: 1: this action would add [1] shards, but this cluster currently has [3]/[3] maximum normal \
             shards open;"
        );
    };
    refused("create_index", "index=d", "{}");
    refused("index_doc", "index=d&id=1", r#"{"x":1}"#);
    refused("clone_index", "index=a&target=d", "{}");
    refused("rollover", "index=rolled-1&target=rolled-2", "{}");
    let answer = node.ok("bulk", "", "", "{\"index\":{\"_index\":\"d\"}}\n{\"x\":1}\n");
    assert_eq!(answer["items"][0]["index"]["error"]["type"], "validation_exception");
    // A closed index makes room, and cannot come back until there is some.
    node.ok("close_index", "index=a", "", "");
    node.ok("create_index", "index=d", "", "{}");
    refused("open_index", "index=a", "");
    node.ok("delete_index", "index=d", "", "");
    node.ok("open_index", "index=a", "", "");
    limit(&node, "null");
    node.ok("create_index", "index=d", "", "{}");
    let (status, _, reason) =
        node.error("put_cluster_settings", "", "", r#"{"transient":{"cluster.max_shards_per_node":0}}"#);
    assert!(status == 400 && reason.contains("must be >= 1"), "{reason}");
}
