//! The workload of indices closed, opened and cloned, of snapshots made, cloned, restored and deleted, and of pipelines and
//! templates.

use super::steps::{Effect, GONE, MAPPING, Step, step};

const WAIT: &str = "wait_for_completion=true";
const DOCUMENTS: &str = "{\"index\":{\"_id\":\"1\"}}\n{\"n\":1,\"t\":\"red fox\",\"v\":{\"a\":1.5},\"o\":[{\"k\":1},{\"k\":2}]}\n\
    {\"index\":{\"_id\":\"2\"}}\n{\"n\":2,\"t\":\"blue fox\"}\n{\"index\":{\"_id\":\"3\"}}\n{\"n\":3,\"t\":\"red whale\",\"o\":{\"k\":3}}\n";

/// The requests, in order. Each step lists only what it changes.
pub const STEPS: &[Step] = &[
    Step { facts: &[("index e", "there")], ..step("create e", "create_index", "index=e", "", MAPPING) },
    Step {
        documents: &[("e/1", Some(1)), ("e/2", Some(2)), ("e/3", Some(3))],
        ..step("bulk", "bulk", "index=e", "", DOCUMENTS)
    },
    Step {
        facts: &[("pipeline p", "1")],
        ..step(
            "pipeline",
            "put_pipeline",
            "pipeline=p",
            "",
            r#"{"version":1,"processors":[{"set":{"field":"n","value":4}}]}"#,
        )
    },
    Step {
        documents: &[("e/4", Some(4))],
        ..step("write through the pipeline", "index_doc", "index=e&id=4", "pipeline=p", r#"{"t":"green"}"#)
    },
    Step {
        facts: &[("component c", "1")],
        ..step(
            "component template",
            "put_component_template",
            "name=c",
            "",
            r#"{"version":1,"template":{"settings":{"refresh_interval":"-1"}}}"#,
        )
    },
    Step {
        facts: &[("template t", "1")],
        ..step(
            "template",
            "put_index_template",
            "name=t",
            "",
            r#"{"version":1,"index_patterns":["t-*"],"template":{"mappings":{"properties":{"n":{"type":"integer"}}}}}"#,
        )
    },
    Step {
        facts: &[("repository r", "there")],
        ..step(
            "repository",
            "put_repository",
            "repository=r",
            "",
            r#"{"type":"fs","settings":{"location":"r"}}"#,
        )
    },
    Step {
        facts: &[("snapshot one", "there")],
        effect: Effect::Keeps { snapshot: "one", indices: &["e"] },
        ..step(
            "first snapshot",
            "create_snapshot",
            "repository=r&snapshot=one",
            WAIT,
            r#"{"indices":"e","ignore_unavailable":true}"#,
        )
    },
    Step {
        documents: &[("e/1", Some(11)), ("e/2", None)],
        ..step(
            "after the first snapshot",
            "bulk",
            "index=e",
            "",
            "{\"index\":{\"_id\":\"1\"}}\n{\"n\":11,\"t\":\"red fox again\"}\n{\"delete\":{\"_id\":\"2\"}}\n",
        )
    },
    Step { facts: &[("closed e", "closed")], ..step("close e", "close_index", "index=e", "", "") },
    Step { facts: &[("closed e", "open")], ..step("open e", "open_index", "index=e", "", "") },
    Step {
        documents: &[("e/5", Some(5))],
        ..step("after opening", "index_doc", "index=e&id=5", "", r#"{"n":5,"t":"white"}"#)
    },
    Step { facts: &[("block e", "true")], ..step("block e", "add_block", "index=e&block=write", "", "") },
    Step {
        facts: &[("index f", "there")],
        effect: Effect::Copies { from: "e", to: "f" },
        ..step(
            "clone e",
            "clone_index",
            "index=e&target=f",
            "",
            r#"{"settings":{"index.blocks.write":null},"aliases":{"copy":{}}}"#,
        )
    },
    Step {
        facts: &[("block e", "false")],
        ..step("unblock e", "put_settings", "index=e", "", r#"{"index":{"blocks":{"write":false}}}"#)
    },
    Step {
        documents: &[("f/6", Some(6))],
        ..step("write to f", "index_doc", "index=f&id=6", "", r#"{"n":6,"t":"of f"}"#)
    },
    Step {
        facts: &[("pipeline p", "2")],
        ..step(
            "another pipeline p",
            "put_pipeline",
            "pipeline=p",
            "",
            r#"{"version":2,"processors":[{"set":{"field":"n","value":7}}]}"#,
        )
    },
    Step {
        facts: &[("snapshot two", "there")],
        effect: Effect::Keeps { snapshot: "two", indices: &["e", "f"] },
        ..step(
            "second snapshot",
            "create_snapshot",
            "repository=r&snapshot=two",
            WAIT,
            r#"{"indices":"e,f","ignore_unavailable":true}"#,
        )
    },
    Step {
        facts: &[("snapshot three", "there")],
        effect: Effect::Repeats { from: "two", to: "three" },
        ..step(
            "clone the second snapshot",
            "clone_snapshot",
            "repository=r&snapshot=two&target_snapshot=three",
            "",
            r#"{"indices":"*"}"#,
        )
    },
    Step {
        effect: Effect::Pipes { document: "e/7", pipeline: "pipeline p", by_version: &[("1", 4), ("2", 7)] },
        ..step("after the second snapshot", "index_doc", "index=e&id=7", "pipeline=p", r#"{"t":"blue"}"#)
    },
    Step { facts: &[("closed e", "closed")], ..step("close e again", "close_index", "index=e", "", "") },
    Step {
        facts: &[("closed e", "open"), ("block e", "false"), ("index e", "there")],
        effect: Effect::Restores { snapshot: "one", indices: &[("e", "e")], global: false },
        ..step(
            "restore the first one in its place",
            "restore_snapshot",
            "repository=r&snapshot=one",
            WAIT,
            r#"{"indices":"e"}"#,
        )
    },
    Step {
        documents: &[("e/8", Some(8))],
        ..step("after the restore", "index_doc", "index=e&id=8", "", r#"{"n":8,"t":"black"}"#)
    },
    Step {
        facts: &[("pipeline p", GONE)],
        ..step("delete the pipeline", "delete_pipeline", "pipeline=p", "", "")
    },
    Step {
        facts: &[("template t", GONE)],
        ..step("delete the template", "delete_index_template", "name=t", "", "")
    },
    Step {
        facts: &[("snapshot two", GONE)],
        ..step("delete the second snapshot", "delete_snapshot", "repository=r&snapshot=two", "", "")
    },
    step("clean up", "cleanup_repository", "repository=r", "", ""),
    Step {
        facts: &[("index back-f", "there")],
        effect: Effect::Restores { snapshot: "three", indices: &[("f", "back-f")], global: true },
        ..step(
            "restore the third one with its pipelines and templates",
            "restore_snapshot",
            "repository=r&snapshot=three",
            WAIT,
            r#"{"indices":"f","include_global_state":true,"include_aliases":false,
                "rename_pattern":"(.+)","rename_replacement":"back-$1"}"#,
        )
    },
    Step {
        documents: &[("back-f/9", Some(9))],
        ..step("write to what came back", "index_doc", "index=back-f&id=9", "", r#"{"n":9,"t":"of f"}"#)
    },
    Step { facts: &[("index f", GONE)], ..step("delete f", "delete_index", "index=f", "", "") },
];
