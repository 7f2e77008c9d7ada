//! `_update_by_query`, `_delete_by_query`, slices of all three jobs, dry runs: as the HTTP layer calls them.

use std::time::{Duration, Instant};

use crate::common::Node;
use crate::common::jobs::{finished, load, models, put_pipeline};
use serde_json::{Value, json};

const SPARSE: &str = ".sparse_encoder_model_2";

fn tagging(node: &Node) {
    put_pipeline(node, "tag", json!([{"set": {"field": "tag", "value": "n-{{n}}"}}]));
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn numbers<const N: usize>(answer: &Value, names: [&str; N]) -> [Option<u64>; N] {
    names.map(|name| answer[name].as_u64())
}

#[test]
fn documents_are_written_again_through_a_pipeline() {
    let node = Node::start();
    tagging(&node);
    load(&node, "a", 30);
    let few = json!({"query": {"range": {"n": {"lt": 5}}}}).to_string();
    let answer = node.ok("update_by_query", "index=a", "pipeline=tag&refresh=true&scroll_size=2", &few);
    assert_eq!(
        numbers(&answer, ["total", "updated", "deleted", "batches", "version_conflicts", "noops"]),
        [5, 5, 0, 3, 0, 0].map(Some)
    );
    assert_eq!((answer.get("created"), &answer["failures"]), (None, &json!([])));
    assert_eq!(node.ok("get_source", "index=a&id=3", "", "")["tag"], "n-3");
    assert_eq!(node.ok("get_source", "index=a&id=7", "", "").get("tag"), None);
    assert_eq!(node.ok("get_doc", "index=a&id=3", "", "")["_version"], json!(2));

    // The pipeline of the index runs where none is asked for; an empty body takes everything.
    node.ok("put_settings", "index=a", "", &json!({"index": {"default_pipeline": "tag"}}).to_string());
    let answer = node.ok("update_by_query", "index=a", "max_docs=12", "");
    assert_eq!(numbers(&answer, ["total", "updated"]), [Some(12), Some(12)]);
    let answer = node.ok("update_by_query", "index=a", "q=n:29&pipeline=_none&refresh=true", "");
    assert_eq!(answer["updated"], json!(1));
    assert_eq!(node.ok("get_source", "index=a&id=29", "", "").get("tag"), None);

    put_pipeline(&node, "none", json!([{"drop": {}}]));
    let answer = node.ok("update_by_query", "index=a", "pipeline=none", &few);
    assert_eq!(numbers(&answer, ["updated", "noops"]), [Some(0), Some(5)]);
    let (status, answer) = node.call("update_by_query", "index=a", "pipeline=missing", &few);
    assert_eq!((status, answer["failures"].as_array().map(Vec::len)), (400, Some(5)));
    assert_eq!(answer["failures"][0]["cause"]["reason"], "pipeline with id [missing] does not exist");
}

#[test]
fn documents_are_deleted_and_what_changed_meanwhile_is_a_conflict() {
    let node = Node::start();
    node.ok("create_index", "index=a", "", &json!({"settings": {"refresh_interval": "-1"}}).to_string());
    load(&node, "a", 10);
    node.ok("index_doc", "index=a&id=1", "", &json!({"n": 1}).to_string());
    let all = json!({"query": {"match_all": {}}}).to_string();
    let (status, answer) = node.call("delete_by_query", "index=a", "max_docs=2", &all);
    assert_eq!((status, answer["version_conflicts"].as_u64()), (409, Some(1)));
    assert_eq!((answer.get("updated"), answer.get("created")), (None, None));
    let failure = &answer["failures"][0];
    assert_eq!(
        (&failure["index"], &failure["id"], &failure["status"]),
        (&json!("a"), &json!("1"), &json!(409))
    );
    assert_eq!(failure["cause"]["type"], "version_conflict_engine_exception");
    assert!(
        failure["cause"]["reason"].as_str().unwrap().starts_with("[1]: version conflict, required seqNo [")
    );
    // Document 0 is gone, also for one that has not been refreshed.
    let answer = node.ok("delete_by_query", "index=a", "conflicts=proceed&refresh=true", &all);
    assert_eq!(numbers(&answer, ["total", "deleted", "version_conflicts"]), [10, 8, 2].map(Some));
    assert_eq!(node.count("a"), 1);
    let answer = node.ok("delete_by_query", "index=a", "refresh=true", &all);
    assert_eq!(numbers(&answer, ["total", "deleted", "batches"]), [1, 1, 1].map(Some));
    assert_eq!(node.count("a"), 0);
    let answer = node.ok("delete_by_query", "index=a", "", &all);
    assert_eq!(numbers(&answer, ["total", "deleted", "batches"]), [0, 0, 0].map(Some));
}

#[test]
fn documents_are_taken_in_the_order_of_a_sort() {
    let node = Node::start();
    load(&node, "a", 30);
    let last = json!({"query": {"range": {"n": {"lt": 20}}}, "sort": [{"n": "desc"}]}).to_string();
    let answer = node.ok("delete_by_query", "index=a", "max_docs=3&refresh=true", &last);
    assert_eq!(numbers(&answer, ["total", "deleted"]), [Some(3), Some(3)]);
    assert_eq!(node.call("get_doc", "index=a&id=17", "", "").0, 404);
    assert_eq!(node.call("get_doc", "index=a&id=16", "", "").0, 200);
    tagging(&node);
    node.ok("update_by_query", "index=a", "sort=n:desc&max_docs=2&pipeline=tag&refresh=true", "");
    assert_eq!(node.ok("get_source", "index=a&id=28", "", "")["tag"], "n-28");
    assert_eq!(node.ok("get_source", "index=a&id=27", "", "").get("tag"), None);
    let body =
        json!({"max_docs": 4, "source": {"index": "a", "sort": {"n": "desc"}}, "dest": {"index": "b"}});
    assert_eq!(node.ok("reindex", "", "refresh=true", &body.to_string())["created"], json!(4));
    assert_eq!(node.call("get_doc", "index=b&id=26", "", "").0, 200);
    let (status, kind, _) = node.error("update_by_query", "index=a", "sort=nowhere", "");
    assert_eq!((status, kind.as_str()), (400, "search_phase_execution_exception"));
}

#[test]
fn bad_requests_by_query_leave_everything_as_it_was() {
    let node = Node::start();
    load(&node, "a", 3);
    for (op, index, query, body, status, reason) in [
        ("delete_by_query", "a", "", json!({}), 400, "Validation Failed: 1: query is missing;"),
        (
            "delete_by_query",
            "remote:a",
            "",
            json!({"query": {"match_all": {}}}),
            400,
            "Validation Failed: 1: Cross-cluster calls are not supported in this context but remote indices were \
             requested: [remote:a];",
        ),
        (
            "delete_by_query",
            "missing",
            "",
            json!({"query": {"match_all": {}}}),
            404,
            "no such index [missing]",
        ),
        ("update_by_query", "a", "", json!({"query": {"nope": {}}}), 400, "unknown query [nope]"),
        (
            "update_by_query",
            "a",
            "slices=2&max_docs=1",
            json!({}),
            400,
            "Validation Failed: 1: [max_docs] should be >= [slices];",
        ),
    ] {
        let (found, _, text) = node.error(op, &format!("index={index}"), query, &body.to_string());
        assert_eq!((found, text.as_str()), (status, reason));
    }
    node.ok("refresh", "index=a", "", "");
    assert_eq!(node.count("a"), 3);
    assert_eq!(node.ok("get_doc", "index=a&id=1", "", "")["_version"], json!(1));
    let answer = node.ok("delete_by_query", "index=missing", "ignore_unavailable=true&q=n:1", "");
    assert_eq!(answer["total"], json!(0));
    let hidden = json!({"mappings": {"_source": {"enabled": false}}});
    node.ok("create_index", "index=blind", "", &hidden.to_string());
    node.ok("index_doc", "index=blind&id=1", "refresh=true", "{}");
    let (status, _, reason) = node.error("update_by_query", "index=blind", "", "");
    assert_eq!((status, reason.as_str()), (400, "[blind][1] didn't store _source"));
}

#[test]
fn slices_divide_the_documents_of_all_three_jobs() {
    let node = Node::start();
    tagging(&node);
    load(&node, "a", 100);
    let sum = |answer: &Value, name: &str| -> u64 {
        answer["slices"].as_array().unwrap().iter().map(|slice| slice[name].as_u64().unwrap()).sum()
    };
    let body = json!({"source": {"index": "a", "size": 7}, "dest": {"index": "b"}}).to_string();
    let answer = node.ok("reindex", "", "slices=5&refresh=true", &body);
    assert_eq!(numbers(&answer, ["total", "created", "updated"]), [100, 100, 0].map(Some));
    assert_eq!(answer["slices"].as_array().map(Vec::len), Some(5));
    assert_eq!((sum(&answer, "created"), sum(&answer, "total")), (100, 100));
    assert_eq!((&answer["slices"][4]["slice_id"], answer["slices"][0].get("took")), (&json!(4), None));
    assert_eq!(node.count("b"), 100);

    let answer = node.ok("update_by_query", "index=b", "slices=3&pipeline=tag&max_docs=31", "");
    assert_eq!((answer["updated"].as_u64(), sum(&answer, "updated")), (Some(30), 30));
    node.ok("create_index", "index=c", "", &json!({"settings": {"number_of_shards": 3}}).to_string());
    load(&node, "c", 20);
    let all = json!({"query": {"match_all": {}}}).to_string();
    let answer = node.ok("delete_by_query", "index=c", "slices=auto&refresh=true", &all);
    assert_eq!((answer["deleted"].as_u64(), answer["slices"].as_array().map(Vec::len)), (Some(20), Some(3)));
    assert_eq!(node.count("c"), 0);
    let answer = node.ok("update_by_query", "index=a", "slices=auto&refresh=true", "");
    assert_eq!((answer["updated"].as_u64(), answer.get("slices")), (Some(100), None));
    // More slices than documents, and slices by hand, which are a partition.
    let answer = node.ok("delete_by_query", "index=c", "slices=4", &all);
    assert_eq!((answer["total"].as_u64(), answer["slices"].as_array().map(Vec::len)), (Some(0), Some(4)));
    let parts: u64 = (0..3)
        .map(|id| {
            let body = json!({"query": {"match_all": {}}, "slice": {"id": id, "max": 3}}).to_string();
            let deleted = node.ok("delete_by_query", "index=a", "refresh=true", &body)["deleted"].as_u64();
            assert!(deleted > Some(10), "{deleted:?}");
            deleted.unwrap()
        })
        .sum();
    assert_eq!((parts, node.count("a")), (100, 0));
}

#[test]
fn slices_are_tasks_with_a_parent_which_can_be_paced_and_cancelled() {
    let node = Node::start();
    load(&node, "a", 200);
    let body = json!({"source": {"index": "a", "size": 5}, "dest": {"index": "b"}}).to_string();
    let start = || {
        let answer =
            node.ok("reindex", "", "wait_for_completion=false&slices=4&requests_per_second=20", &body);
        answer["task"].as_str().unwrap().to_owned()
    };
    let task = start();
    let path = format!("task={task}");
    let of_parent = format!("parent_task_id={task}&group_by=none&detailed=true");
    let parts = || node.ok("list_tasks", "", &of_parent, "")["tasks"].as_array().unwrap().clone();
    wait_until("four slices", || {
        parts().len() == 4 && parts().iter().all(|part| part["status"]["created"].as_u64() >= Some(5))
    });
    let part = &parts()[0];
    assert_eq!((&part["parent_task_id"], &part["cancellable"]), (&json!(task), &json!(true)));
    assert_eq!(
        (&part["action"], &part["status"]["slice_id"]),
        (&json!("indices:data/write/reindex"), &json!(0))
    );
    assert_eq!(part["status"]["requests_per_second"], json!(5.0));
    let tree = node.ok("list_tasks", "", "actions=*reindex&group_by=parents", "");
    assert_eq!(tree["tasks"].as_object().map(serde_json::Map::len), Some(1), "{tree}");
    assert_eq!(tree["tasks"][&task]["children"].as_array().map(Vec::len), Some(4));
    let status = node.ok("get_task", &path, "", "")["task"]["status"].clone();
    assert_eq!((&status["total"], &status["requests_per_second"]), (&json!(200), &json!(20.0)));
    assert_eq!(status["slices"].as_array().map(Vec::len), Some(4));

    node.ok("rethrottle", &path, "requests_per_second=8", "");
    assert_eq!(parts()[2]["status"]["requests_per_second"], json!(2.0));
    // One slice alone, then all of them.
    let one = format!("{}:{}", parts()[1]["node"].as_str().unwrap(), parts()[1]["id"]);
    node.ok("cancel_tasks", &format!("task={one}"), "wait_for_completion=true", "");
    wait_until("the end of one slice", || parts().len() == 3);
    assert_eq!(node.ok("get_task", &path, "", "")["completed"], json!(false));
    node.ok("cancel_tasks", "", "actions=*reindex&wait_for_completion=true", "");
    let ended = finished(&node, &task);
    assert_eq!(ended["response"]["canceled"], "by user request");
    assert!(ended["response"]["created"].as_u64() < Some(200));
    assert!(parts().is_empty());

    let task = start();
    node.ok("rethrottle", &format!("task={task}"), "requests_per_second=-1", "");
    let ended = finished(&node, &task);
    assert_eq!(ended["response"]["total"], json!(200));
    assert_eq!(ended["response"]["slices"].as_array().map(Vec::len), Some(4));
    assert_eq!(ended["task"]["status"]["slices"].as_array().map(Vec::len), Some(4));
}

#[test]
fn tasks_that_take_longer_than_one_waits_are_no_failed_request() {
    let node = Node::start();
    load(&node, "a", 20);
    let body = json!({"source": {"index": "a", "size": 5}, "dest": {"index": "b"}}).to_string();
    let task = node.ok("reindex", "", "wait_for_completion=false&requests_per_second=1", &body);
    let task = task["task"].as_str().unwrap().to_owned();
    for (group, rest) in [("nodes", ("nodes", json!({}))), ("none", ("tasks", json!([])))] {
        let query = format!("actions=*reindex&wait_for_completion=true&timeout=20ms&group_by={group}");
        let answer = node.ok("list_tasks", "", &query, "");
        assert_eq!(answer[rest.0], rest.1);
        assert_eq!(answer["node_failures"][0]["type"], "failed_node_exception");
        assert_eq!(
            answer["node_failures"][0]["caused_by"],
            json!({"type": "timeout_exception", "reason": "Timed out waiting for completion of tasks"})
        );
    }
    let (_, kind, reason) =
        node.error("get_task", &format!("task={task}"), "wait_for_completion=true&timeout=20ms", "");
    assert_eq!(
        (kind, reason),
        ("timeout_exception".into(), format!("Timed out waiting for completion of [{task}]"))
    );
    node.ok("cancel_tasks", &format!("task={task}"), "wait_for_completion=true", "");
}

#[test]
fn tasks_that_cannot_do_what_is_asked_say_so() {
    let node = Node::start();
    load(&node, "a", 20);
    let task = node.ok(
        "delete_by_query",
        "index=a",
        "wait_for_completion=false&scroll_size=1&requests_per_second=0.1",
        &json!({"query": {"match_all": {}}}).to_string(),
    )["task"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("task={task}");
    let shown = node.ok("get_task", &path, "", "");
    assert_eq!(shown["task"]["action"], "indices:data/write/delete/byquery");
    assert_eq!(shown["task"]["description"], "delete-by-query [a]");
    let (status, _, reason) = node.error("cancel_tasks", &path, "nodes=_local", "");
    assert_eq!(
        (status, reason.as_str()),
        (400, "Validation Failed: 1: task id cannot be used with node ids;")
    );
    let refused = node.ok("cancel_tasks", &path, "actions=*reindex", "");
    assert_eq!(
        refused["node_failures"][0]["caused_by"]["reason"],
        format!("task [{task}] doesn't support this operation")
    );
    let (status, _, reason) = node.error("list_tasks", "", "group_by=colour", "");
    assert_eq!(status, 400);
    assert!(reason.contains("[colour]"), "{reason}");
    let (status, _, reason) = node.error("rethrottle", &path, "", "");
    assert_eq!((status, reason.as_str()), (400, "requests_per_second is a required parameter"));
    let other = node.ok("cancel_tasks", &path, "wait_for_completion=true", "");
    assert!(other["nodes"].as_object().is_some_and(|nodes| nodes.len() == 1), "{other}");
    assert_eq!(finished(&node, &task)["response"]["canceled"], "by user request");
}

/// A query of all documents that takes some milliseconds.
fn slow_query() -> String {
    let patterns = (0..4000).map(|at| json!({"wildcard": {"text": format!("*{at}*")}}));
    let should: Vec<Value> = patterns.chain([json!({"match_all": {}})]).collect();
    json!({"query": {"bool": {"should": should}}}).to_string()
}

/// A job can be cancelled at any time, even while its query is still running, and always reports the cancellation.
#[test]
fn a_cancelled_job_says_so_and_how_far_it_came() {
    let node = Node::start();
    load(&node, "a", 200);
    let query = slow_query();
    for wait in 0..20 {
        let options = "wait_for_completion=false&scroll_size=1&requests_per_second=0.1&conflicts=proceed";
        let started = node.ok("update_by_query", "index=a", options, &query);
        let task = started["task"].as_str().unwrap().to_owned();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        node.ok("cancel_tasks", &format!("task={task}"), "wait_for_completion=true", "");
        let ended = finished(&node, &task);
        assert_eq!(ended["response"]["canceled"], "by user request", "{ended}");
    }
}

/// Stopping the server while a job's query is running is no failure of the job.
#[test]
fn a_job_that_is_stopped_while_its_query_is_looked_for_goes_on_after_the_next_start() {
    let mut node = Node::start();
    load(&node, "a", 200);
    let query = slow_query();
    for wait in 0..6 {
        let options = "wait_for_completion=false&conflicts=proceed&refresh=true";
        let started = node.ok("update_by_query", "index=a", options, &query);
        let task = started["task"].as_str().unwrap().to_owned();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        node = node.restart();
        let ended = finished(&node, &task);
        assert_eq!(ended["response"]["updated"], 200, "{ended}");
    }
}

#[test]
fn jobs_that_write_where_they_read_go_on_after_a_crash() {
    for (op, counter, slices) in [
        ("update_by_query", "updated", 1),
        ("update_by_query", "updated", 3),
        ("delete_by_query", "deleted", 1),
    ] {
        let node = Node::start();
        tagging(&node);
        load(&node, "a", 400);
        let query = format!(
            "wait_for_completion=false&scroll_size=20&requests_per_second=200&slices={slices}{}",
            if op == "update_by_query" { "&pipeline=tag" } else { "" }
        );
        let body = json!({"query": {"range": {"n": {"lt": 390}}}}).to_string();
        let task = node.ok(op, "index=a", &query, &body)["task"].as_str().unwrap().to_owned();
        let path = format!("task={task}");
        wait_until("a few batches", || {
            node.ok("get_task", &path, "", "")["task"]["status"][counter].as_u64() >= Some(80)
        });
        let node = node.crash();
        assert!(node.ok("get_task", &path, "", "")["task"]["status"][counter].as_u64() >= Some(20));
        node.ok("rethrottle", &path, "requests_per_second=-1", "");
        let response = finished(&node, &task)["response"].clone();
        assert_eq!(
            numbers(&response, ["total", counter, "version_conflicts"]),
            [390, 390, 0].map(Some),
            "{op}"
        );
        assert_eq!(response["failures"], json!([]));
        node.ok("refresh", "index=a", "", "");
        if op == "delete_by_query" {
            assert_eq!(node.count("a"), 10);
        } else {
            // Nothing was written twice.
            let twice =
                json!({"query": {"exists": {"field": "tag"}}, "size": 400, "version": true}).to_string();
            let hits = node.hits("a", &twice);
            assert_eq!(hits.len(), 390);
            let answer = node.ok("search", "index=a", "", &twice);
            let versions = answer["hits"]["hits"].as_array().unwrap();
            assert!(versions.iter().all(|hit| hit["_version"] == json!(2)));
        }
    }
}

#[test]
fn a_sliced_reindex_goes_on_after_a_crash() {
    let node = Node::start();
    load(&node, "a", 600);
    let body = json!({"source": {"index": "a", "size": 20}, "dest": {"index": "b", "op_type": "create"}});
    let answer = node.ok(
        "reindex",
        "",
        "wait_for_completion=false&slices=3&requests_per_second=300",
        &body.to_string(),
    );
    let task = answer["task"].as_str().unwrap().to_owned();
    let path = format!("task={task}");
    wait_until("a few batches", || {
        node.ok("get_task", &path, "", "")["task"]["status"]["created"].as_u64() >= Some(120)
    });
    let node = node.crash();
    node.ok("rethrottle", &path, "requests_per_second=-1", "");
    let response = finished(&node, &task)["response"].clone();
    assert_eq!(
        numbers(&response, ["total", "created", "updated", "version_conflicts"]),
        [600, 600, 0, 0].map(Some)
    );
    assert_eq!(response["slices"].as_array().map(Vec::len), Some(3));
    node.ok("refresh", "index=b", "", "");
    assert_eq!(node.count("b"), 600);
}

fn inference(node: &Node) {
    let mapping = json!({"mappings": {"properties": {"v": {"type": "sparse_vector"}}}});
    node.ok("create_index", "index=b", "", &mapping.to_string());
    put_pipeline(
        node,
        "p",
        json!([{"inference": {"model_id": SPARSE, "input_output": [{"input_field": "text", "output_field": "v"}]}}]),
    );
}

#[test]
fn a_dry_run_tells_the_cost_and_writes_nothing() {
    let node = Node::start_with(models);
    load(&node, "a", 50);
    inference(&node);
    let long = json!({"text": "word ".repeat(3000)}).to_string();
    node.ok("index_doc", "index=a&id=long", "", &long);
    node.ok("index_doc", "index=a&id=bad", "refresh=true", &json!({"text": 7}).to_string());
    let body = json!({"source": {"index": "a"}, "dest": {"index": "b", "pipeline": "p"}}).to_string();
    let answer = node.ok("reindex", "", "dry_run=true", &body);
    assert_eq!(answer["documents"], json!({"total": 52, "to_write": 51, "dropped": 0, "failed": 1}));
    assert_eq!(answer["texts"], json!({"total": 51, "truncated": 1}));
    assert!(answer["tokens"]["total"].as_u64() > Some(512 + 150), "{answer}");
    assert!(answer["tokens"]["truncated"].as_u64() > Some(1000), "{answer}");
    assert!(answer["time"]["millis"].as_u64() > Some(0) && answer["disk"]["bytes"].as_u64() > Some(1000));
    assert_eq!(answer["failures"][0]["id"], "bad");
    assert!(answer["exact"].as_array().unwrap().contains(&json!("tokens")));
    assert_eq!(answer["estimated"], json!(["time", "disk"]));
    node.ok("refresh", "index=b", "", "");
    assert_eq!(node.count("b"), 0);

    // A destination that is not there is not made, and large indices are tried in part.
    load(&node, "many", 1000);
    let body = json!({"source": {"index": "many"}, "dest": {"index": "new", "pipeline": "p"}}).to_string();
    let answer = node.ok("reindex", "", "dry_run=true&requests_per_second=1", &body);
    assert_eq!(
        (&answer["documents"]["total"], &answer["exact"]),
        (&json!(1000), &json!(["documents.total"]))
    );
    assert!(answer["sample"]["documents"].as_u64() <= Some(256));
    assert_eq!((&answer["texts"]["total"], &answer["time"]["millis"]), (&json!(1000), &json!(1_000_000)));
    assert_eq!(node.call("exists_index", "index=new", "", "").0, 404);
    for (query, dest, reason) in [
        ("dry_run=true&wait_for_completion=false", "new", "[dry_run] answers at once"),
        (
            "dry_run=true",
            "many",
            "Validation Failed: 1: reindex cannot write into an index its reading from [many]",
        ),
    ] {
        let body = json!({"source": {"index": "many"}, "dest": {"index": dest, "pipeline": "p"}}).to_string();
        let (status, _, found) = node.error("reindex", "", query, &body);
        assert_eq!(status, 400);
        assert!(found.starts_with(reason), "{found}");
    }
    let body = json!({"source": {"index": "many"}, "dest": {"index": "new", "pipeline": "none"}}).to_string();
    assert_eq!(node.error("reindex", "", "dry_run=true", &body).2, "pipeline with id [none] does not exist");
}

#[test]
fn truncated_texts_are_counted() {
    let node = Node::start_with(models);
    inference(&node);
    let long = "word ".repeat(3000);
    let lines = format!(
        "{}\n{}\n{}\n{}\n",
        json!({"index": {"_id": "1"}}),
        json!({"text": long}),
        json!({"index": {"_id": "2"}}),
        json!({"text": "short"})
    );
    let answer = node.ok("bulk", "index=b", "pipeline=p&refresh=true", &lines);
    assert_eq!((&answer["errors"], &answer["truncated_texts"]), (&json!(false), &json!(1)));
    let plain = format!("{}\n{}\n", json!({"index": {}}), json!({"text": "short"}));
    assert_eq!(node.ok("bulk", "index=b", "pipeline=p&refresh=true", &plain).get("truncated_texts"), None);
    let body = json!({"source": {"index": "b"}, "dest": {"index": "c", "pipeline": "p"}}).to_string();
    let answer = node.ok("reindex", "", "slices=2", &body);
    assert_eq!((&answer["created"], &answer["truncated_texts"]), (&json!(3), &json!(1)));
    let answer = node.ok("update_by_query", "index=b", "pipeline=p&q=_id:2", "");
    assert_eq!((&answer["updated"], answer.get("truncated_texts")), (&json!(1), None));
}

#[test]
fn a_retry_after_a_full_queue_runs_the_pipeline_again() {
    let node = Node::start_with(models);
    inference(&node);
    let path = format!("model={SPARSE}");
    node.ok("stop_deployment", &path, "force=true", "");
    node.ok("start_deployment", &path, "queue_capacity=1&number_of_allocations=1", "");
    let mut left: Vec<usize> = (0..300).collect();
    let mut refusals = 0;
    for attempt in 0.. {
        assert!(attempt < 400, "{} documents were refused again and again", left.len());
        // A large request does not fit the queue; what is refused is sent again in smaller ones.
        let size = if attempt == 0 { left.len() } else { left.len().min(1) };
        let sent: Vec<usize> = left.drain(..size).collect();
        let lines: String = sent
            .iter()
            .map(|n| {
                let text = format!("a house with the number {n}");
                format!("{}\n{}\n", json!({"index": {"_id": n.to_string()}}), json!({"text": text}))
            })
            .collect();
        let answer = node.ok("bulk", "index=b", "pipeline=p", &lines);
        for (n, item) in sent.iter().zip(answer["items"].as_array().unwrap()) {
            match item["index"]["status"].as_u64() {
                Some(201) => {}
                Some(429) => {
                    refusals += 1;
                    let error = &item["index"]["error"];
                    assert_eq!(error["type"], "es_rejected_execution_exception");
                    assert_eq!(error["reason"], "inference process queue is full. Unable to execute command");
                    // A refused document is not stored, not even without its vector.
                    assert_eq!(node.call("get_doc", &format!("index=b&id={n}"), "", "").0, 404);
                    left.push(*n);
                }
                other => panic!("{other:?}: {item}"),
            }
        }
        if left.is_empty() {
            break;
        }
    }
    assert!(refusals > 0, "the queue was never full");
    node.ok("refresh", "index=b", "", "");
    let with_vector = json!({"query": {"exists": {"field": "v"}}}).to_string();
    assert_eq!(node.ok("count", "index=b", "", &with_vector)["count"], json!(300));
    assert_eq!(node.count("b"), 300);

    // A job waits for room instead, and owes nothing either.
    let body =
        json!({"source": {"index": "b", "_source": ["text"]}, "dest": {"index": "c", "pipeline": "p"}});
    let mapping = json!({"mappings": {"properties": {"v": {"type": "sparse_vector"}}}});
    node.ok("create_index", "index=c", "", &mapping.to_string());
    let answer = node.ok("reindex", "", "refresh=true&slices=3", &body.to_string());
    assert_eq!((&answer["created"], &answer["failures"]), (&json!(300), &json!([])));
    assert_eq!(node.ok("count", "index=c", "", &with_vector)["count"], json!(300));
}
