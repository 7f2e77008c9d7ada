//! The workload of writes: documents, mappings, settings, aliases, an upgrade, a merge, and indices made and deleted.

use super::steps::{MAPPING, Step, step};

const FIRST: &str = "{\"index\":{\"_id\":\"1\"}}\n{\"n\":1,\"t\":\"red fox\",\"v\":{\"a\":1.5},\"o\":[{\"k\":1},{\"k\":2}]}\n{\"index\":{\"_id\":\"2\"}}\n\
    {\"n\":2,\"t\":\"blue fox\",\"v\":{\"a\":0.5},\"o\":[{\"k\":3}]}\n{\"create\":{\"_id\":\"3\"}}\n{\"n\":3,\"t\":\"red whale\"}\n";
const SECOND: &str = "{\"index\":{\"_id\":\"2\"}}\n{\"n\":22,\"t\":\"green fox\",\"o\":[{\"k\":4},{\"k\":5},{\"k\":6}]}\n{\"delete\":{\"_id\":\"3\"}}\n\
    {\"index\":{\"_id\":\"4\"}}\n{\"n\":4,\"late\":\"a late field\"}\n";

/// The requests, in order. Each step lists only what it changes.
pub const STEPS: &[Step] = &[
    Step { facts: &[("index a", "there")], ..step("create a", "create_index", "index=a", "", MAPPING) },
    Step {
        documents: &[("a/1", Some(1)), ("a/2", Some(2)), ("a/3", Some(3))],
        ..step("first bulk", "bulk", "index=a", "", FIRST)
    },
    step("refresh", "refresh", "index=a", "", ""),
    Step {
        documents: &[("a/2", Some(22)), ("a/3", None), ("a/4", Some(4))],
        ..step("second bulk, with a new field", "bulk", "index=a", "", SECOND)
    },
    Step {
        facts: &[("alias now", "a")],
        ..step("alias", "update_aliases", "", "", r#"{"actions":[{"add":{"index":"a","alias":"now"}}]}"#)
    },
    step("flush", "flush", "index=a", "", ""),
    Step {
        documents: &[("a/1", Some(11))],
        ..step(
            "overwrite",
            "index_doc",
            "index=a&id=1",
            "refresh=true",
            r#"{"n":11,"t":"red fox again","o":[{"k":7}]}"#,
        )
    },
    Step {
        facts: &[("setting a", "30s")],
        ..step("settings", "put_settings", "index=a", "", r#"{"index":{"gc_deletes":"30s"}}"#)
    },
    Step { facts: &[("index b", "there")], ..step("create b", "create_index", "index=b", "", MAPPING) },
    Step {
        documents: &[("b/1", Some(100))],
        ..step("write to b", "index_doc", "index=b&id=1", "", r#"{"n":100,"t":"of b","o":{"k":8}}"#)
    },
    Step {
        facts: &[("mapping a", "keyword")],
        ..step("mapping", "put_mapping", "index=a", "", r#"{"properties":{"k":{"type":"keyword"}}}"#)
    },
    Step {
        facts: &[("alias now", "b")],
        ..step(
            "swap the alias",
            "update_aliases",
            "",
            "",
            r#"{"actions":[{"remove":{"index":"a","alias":"now"}},{"add":{"index":"b","alias":"now"}}]}"#,
        )
    },
    step("upgrade", "upgrade_index", "index=a", "", ""),
    Step {
        documents: &[("a/5", Some(5))],
        ..step("one more", "index_doc", "index=a&id=5", "", r#"{"n":5,"k":"five","t":"red","v":{"a":5}}"#)
    },
    step("merge", "force_merge", "index=a", "max_num_segments=1", ""),
    Step { documents: &[("a/1", None)], ..step("delete 1", "delete_doc", "index=a&id=1", "", "") },
    Step { facts: &[("index c", "there")], ..step("create c", "create_index", "index=c", "", MAPPING) },
    Step { facts: &[("index c", "gone")], ..step("delete c", "delete_index", "index=c", "", "") },
    Step { facts: &[("index d", "there")], ..step("create d", "create_index", "index=d", "", MAPPING) },
    Step {
        documents: &[("d/1", Some(1))],
        ..step("write to d", "index_doc", "index=d&id=1", "", r#"{"n":1,"t":"of d"}"#)
    },
    Step {
        documents: &[("d/1", None)],
        facts: &[("index d", "gone")],
        ..step(
            "remove d with aliases",
            "update_aliases",
            "",
            "",
            r#"{"actions":[{"remove_index":{"index":"d"}},{"add":{"index":"b","alias":"more"}}]}"#,
        )
    },
    Step {
        documents: &[("d/2", Some(2))],
        facts: &[("index d", "there")],
        ..step("write to d after that", "index_doc", "index=d&id=2", "", r#"{"n":2}"#)
    },
    Step {
        facts: &[("index full-000001", "there"), ("rolled", "full-000001")],
        ..step(
            "create what is rolled over",
            "create_index",
            "index=full-000001",
            "",
            r#"{"settings":{"refresh_interval":"-1"},"aliases":{"rolled":{"is_write_index":true}}}"#,
        )
    },
    Step {
        facts: &[("index full-000002", "there"), ("rolled", "full-000002")],
        ..step("roll over", "rollover", "index=rolled", "", "")
    },
    step("flush again", "flush", "index=a", "", ""),
    Step {
        documents: &[("a/6", Some(6))],
        ..step(
            "the last",
            "index_doc",
            "index=a&id=6",
            "",
            r#"{"n":6,"t":"the last fox","o":[{"k":9},{"k":10}]}"#,
        )
    },
];
