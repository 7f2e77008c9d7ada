//! Reindex, tasks, pipelines and deployments, as the HTTP layer calls them, with the models of the workspace.

use std::time::{Duration, Instant};

use crate::common::Node;
use crate::common::jobs::{finished, load, models, put_pipeline};
use serde_json::{Value, json};

const SPARSE: &str = ".sparse_encoder_model_2";
const UNDEPLOYED: &str = "Model [.sparse_encoder_model_2] must be deployed to use. Please deploy with the start trained \
                          model deployment API.";

fn reindex(node: &Node, query: &str, body: Value) -> (u16, Value) {
    node.call("reindex", "", query, &body.to_string())
}

/// Starts a reindex as a task.
fn start(node: &Node, query: &str, body: Value) -> String {
    let query = format!("wait_for_completion=false&{query}");
    let answer = node.ok("reindex", "", query.trim_end_matches('&'), &body.to_string());
    assert_eq!(answer.as_object().expect("an object").len(), 1);
    answer["task"].as_str().expect("a task id").to_owned()
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_reindex_copies_and_counts() {
    let node = Node::start();
    load(&node, "a", 700);
    put_pipeline(&node, "p", json!([{"set": {"field": "tag", "value": "n-{{n}}"}}]));
    let body = json!({"source": {"index": "a", "size": 300, "_source": ["n"]}, "dest": {"index": "b", "pipeline": "p"}});
    let (status, answer) = reindex(&node, "refresh=true", body.clone());
    assert_eq!(status, 200);
    let counters = |answer: &Value| {
        ["total", "created", "updated", "batches", "noops"].map(|name| answer[name].as_u64())
    };
    assert_eq!(counters(&answer), [700, 700, 0, 3, 0].map(Some));
    assert_eq!(answer["failures"], json!([]));
    assert_eq!(node.count("b"), 700);
    let copy = node.ok("get_source", "index=b&id=17", "", "");
    assert_eq!(copy, json!({"n": 17, "tag": "n-17"}));
    let (_, again) = reindex(&node, "", body);
    assert_eq!(counters(&again), [700, 0, 700, 3, 0].map(Some));
}

#[test]
fn queries_limits_drops_and_conflicts() {
    let node = Node::start();
    load(&node, "a", 20);
    let few = json!({"index": "a", "query": {"range": {"n": {"lt": 5}}}});
    let (_, answer) = reindex(&node, "refresh=true", json!({"source": few, "dest": {"index": "b"}}));
    assert_eq!((&answer["total"], &answer["created"]), (&json!(5), &json!(5)));

    let (status, answer) =
        reindex(&node, "", json!({"source": few, "dest": {"index": "b", "op_type": "create"}}));
    assert_eq!(status, 409);
    assert_eq!((&answer["version_conflicts"], &answer["created"]), (&json!(5), &json!(0)));
    let failure = &answer["failures"][0];
    assert_eq!((&failure["index"], &failure["status"]), (&json!("b"), &json!(409)));
    assert_eq!(failure["cause"]["type"], "version_conflict_engine_exception");

    let (status, answer) = reindex(
        &node,
        "max_docs=7",
        json!({"conflicts": "proceed", "source": {"index": "a"}, "dest": {"index": "b", "op_type": "create"}}),
    );
    assert_eq!(status, 200);
    assert_eq!(
        (&answer["version_conflicts"], &answer["created"], &answer["total"]),
        (&json!(5), &json!(7), &json!(7))
    );

    put_pipeline(&node, "none", json!([{"drop": {}}]));
    let (_, answer) = reindex(&node, "", json!({"source": few, "dest": {"index": "c", "pipeline": "none"}}));
    assert_eq!((&answer["noops"], &answer["created"]), (&json!(5), &json!(0)));

    let (status, answer) = reindex(
        &node,
        "",
        json!({"source": {"index": "a", "size": 2}, "dest": {"index": "c", "pipeline": "no"}}),
    );
    assert_eq!((status, &answer["batches"]), (400, &json!(1)));
    assert_eq!(answer["failures"][1]["cause"]["reason"], "pipeline with id [no] does not exist");
}

#[test]
fn bad_reindex_requests_change_nothing() {
    let node = Node::start();
    load(&node, "a", 3);
    let error = |query: &str, body: Value| node.error("reindex", "", query, &body.to_string());
    let (status, kind, _) = error("", json!({"source": {"index": "missing"}, "dest": {"index": "x"}}));
    assert_eq!((status, kind.as_str()), (404, "index_not_found_exception"));
    let (status, kind, reason) = error("", json!({"source": {"index": "*"}, "dest": {"index": "a"}}));
    assert_eq!((status, kind.as_str()), (400, "action_request_validation_exception"));
    assert_eq!(reason, "Validation Failed: 1: reindex cannot write into an index its reading from [a];");
    let (status, _, _) =
        error("", json!({"source": {"index": "a", "query": {"nope": {}}}, "dest": {"index": "x"}}));
    assert_eq!(status, 400);
    assert_eq!(node.call("exists_index", "index=x", "", "").0, 404);
}

#[test]
fn a_task_shows_its_progress_and_can_be_paced_and_cancelled() {
    let node = Node::start();
    load(&node, "a", 400);
    let body = json!({"source": {"index": "a", "size": 10}, "dest": {"index": "b"}});
    let task = start(&node, "requests_per_second=20", body);
    let path = format!("task={task}");
    wait_until("the first batch", || {
        node.ok("get_task", &path, "", "")["task"]["status"]["created"].as_u64() >= Some(10)
    });
    let shown = node.ok("get_task", &path, "", "");
    assert_eq!((&shown["completed"], &shown["task"]["status"]["total"]), (&json!(false), &json!(400)));
    assert_eq!(shown["task"]["action"], "indices:data/write/reindex");
    assert_eq!(shown["task"]["description"], "reindex from [a] to [b]");
    assert_eq!(shown.get("response"), None);

    let listed = node.ok("list_tasks", "", "actions=*reindex&detailed=true", "");
    let node_id = task.rsplit_once(':').expect("a task id").0;
    assert_eq!(listed["nodes"][node_id]["tasks"][&task]["status"]["requests_per_second"], json!(20.0));
    assert_eq!(node.ok("list_tasks", "", "actions=nothing", ""), json!({"nodes": {}}));
    let by_parent = node.ok("list_tasks", "", "actions=*reindex&group_by=parents", "");
    assert_eq!(by_parent["tasks"][&task].get("status"), None);

    let changed = node.ok("rethrottle", &path, "requests_per_second=30", "");
    assert_eq!(changed["nodes"][node_id]["tasks"][&task]["status"]["requests_per_second"], json!(30.0));
    let cancelled = node.ok("cancel_tasks", &path, "", "");
    assert_eq!(cancelled["nodes"][node_id]["tasks"][&task]["cancelled"], json!(true));
    let ended = finished(&node, &task);
    assert_eq!(ended["response"]["canceled"], "by user request");
    assert!(ended["response"]["created"].as_u64() < Some(400));
    wait_until("the end of the task", || {
        node.ok("cancel_tasks", &path, "", "").get("node_failures").is_some()
    });
}

#[test]
fn results_survive_a_restart_and_unknown_tasks_are_told_apart() {
    let node = Node::start();
    load(&node, "a", 5);
    let task = start(&node, "", json!({"source": {"index": "a"}, "dest": {"index": "b"}}));
    let failed = start(&node, "", json!({"source": {"index": "missing"}, "dest": {"index": "b"}}));
    let before = finished(&node, &task);
    assert_eq!(finished(&node, &failed)["error"]["type"], "index_not_found_exception");
    let node = node.restart();
    assert_eq!(node.ok("get_task", &format!("task={task}"), "", ""), before);
    assert_eq!(before["response"]["created"], json!(5));
    let own = task.rsplit_once(':').expect("a task id").0.to_owned();
    for (id, status, reason) in [
        (format!("{own}:999"), 404, format!("task [{own}:999] isn't running and hasn't stored its results")),
        (
            "other:1".to_owned(),
            404,
            "task [other:1] belongs to the node [other] which isn't part of the cluster and there is no record of the \
             task"
                .to_owned(),
        ),
        ("garbage".to_owned(), 400, "malformed task id garbage".to_owned()),
    ] {
        let (found, _, text) = node.error("get_task", &format!("task={id}"), "", "");
        assert_eq!((found, text), (status, reason));
    }
}

#[test]
fn a_reindex_goes_on_after_a_crash_where_it_stopped() {
    for op_type in ["index", "create"] {
        let node = Node::start();
        load(&node, "a", 600);
        let body = json!({"source": {"index": "a", "size": 50}, "dest": {"index": "b", "op_type": op_type}});
        let task = start(&node, "requests_per_second=200", body);
        let path = format!("task={task}");
        wait_until("a few batches", || {
            node.ok("get_task", &path, "", "")["task"]["status"]["created"].as_u64() >= Some(100)
        });
        let node = node.crash();
        let resumed = node.ok("get_task", &path, "", "");
        assert!(resumed["task"]["status"]["created"].as_u64() >= Some(50), "{resumed}");
        node.ok("rethrottle", &path, "requests_per_second=-1", "");
        let response = finished(&node, &task)["response"].clone();
        let counted =
            ["total", "created", "updated", "version_conflicts"].map(|name| response[name].as_u64());
        assert_eq!(counted, [600, 600, 0, 0].map(Some), "{op_type}");
        node.ok("refresh", "index=b", "", "");
        assert_eq!(node.count("b"), 600);
    }
}

#[test]
fn a_reindex_that_was_cancelled_before_a_crash_does_not_go_on() {
    let node = Node::start();
    load(&node, "a", 600);
    let task = start(
        &node,
        "requests_per_second=50",
        json!({"source": {"index": "a", "size": 50}, "dest": {"index": "b"}}),
    );
    let path = format!("task={task}");
    wait_until("the first batch", || {
        node.ok("get_task", &path, "", "")["task"]["status"]["created"].as_u64() >= Some(50)
    });
    // As it is between the answer to a user who cancels and the end of the job.
    let copy = node.copy_data();
    let name = format!("task-{}", task.rsplit_once(':').expect("a task id").1);
    {
        let data = sparrow_write_ahead_log::DataDir::open(copy.path()).unwrap();
        let mut record: Value = data.read_json(&name).unwrap().expect("a record");
        record[sparrow_tasks::CANCELLED] = true.into();
        data.write_json(&name, &record).unwrap();
    }
    let again = Node::open(copy, |_| {});
    let ended = finished(&again, &task);
    assert_eq!(ended["response"]["canceled"], "by user request", "{ended}");
    assert_eq!(ended["task"]["cancelled"], true);
    assert!(again.count("b") < 600);
    // The result can be read a moment before the task leaves the list.
    wait_until("no reindex is at work", || {
        again.ok("list_tasks", "", "actions=*reindex", "")["nodes"]
            .as_object()
            .is_some_and(serde_json::Map::is_empty)
    });
}

#[test]
fn documents_get_their_vectors_and_an_undeployed_model_is_refused() {
    let node = Node::start_with(models);
    load(&node, "a", 40);
    let mapping =
        json!({"mappings": {"properties": {"text": {"type": "text"}, "v": {"type": "sparse_vector"}}}});
    node.ok("create_index", "index=b", "", &mapping.to_string());
    put_pipeline(
        &node,
        "p",
        json!([{"inference": {"model_id": SPARSE, "input_output": [{"input_field": "text", "output_field": "v"}]}}]),
    );
    let body = json!({"source": {"index": "a"}, "dest": {"index": "b", "pipeline": "p"}});
    let task = start(&node, "refresh=true", body.clone());
    assert_eq!(finished(&node, &task)["response"]["created"], json!(40));
    let copy = node.ok("get_source", "index=b&id=1", "", "");
    assert_eq!(copy["model_id"], SPARSE);
    assert!(copy["v"]["house"].as_f64() > Some(1.0), "{copy}");
    let direct = node.ok(
        "infer_trained_model",
        "model=.elser_model_2",
        "",
        &json!({"docs": [{"text_field": "house 1"}]}).to_string(),
    );
    assert_eq!(direct["inference_results"][0]["predicted_value"], copy["v"]);

    let (status, _, reason) = node.error("stop_deployment", &format!("model={SPARSE}"), "", "");
    assert_eq!(status, 409);
    assert!(reason.contains("referenced by ingest processors"), "{reason}");
    node.ok("stop_deployment", &format!("model={SPARSE}"), "force=true", "");
    let (status, answer) = reindex(&node, "", body);
    assert_eq!((status, &answer["failures"][0]["cause"]["reason"]), (409, &json!(UNDEPLOYED)));
    let question = json!({"query": {"text_expansion": {"v": {"model_id": SPARSE, "model_text": "a house"}}}});
    assert_eq!(node.error("search", "index=b", "", &question.to_string()).2, UNDEPLOYED);
    // What a user stopped stays stopped, also where models are deployed by themselves.
    let node = Node::open_again(node.stop(), models);
    assert_eq!(node.error("search", "index=b", "", &question.to_string()).2, UNDEPLOYED);
    let started = node.ok("start_deployment", &format!("model={SPARSE}"), "number_of_allocations=1", "");
    assert_eq!(started["assignment"]["assignment_state"], "started");
    assert_eq!(node.hits("b", &question.to_string()).len(), 10);
    let (status, _, reason) = node.error("start_deployment", &format!("model={SPARSE}"), "", "");
    assert_eq!(
        (status, reason.as_str()),
        (409, "Cannot start deployment [.sparse_encoder_model_2] because it has already been started")
    );
}

#[test]
fn the_default_deployment_can_be_taken_over_and_dense_texts_start_their_model() {
    let node = Node::start_with(models);
    let path = format!("model={SPARSE}");
    let before = node.ok("trained_model_stats", &path, "", "");
    let allocations = &before["trained_model_stats"][0]["deployment_stats"]["number_of_allocations"];
    assert!(allocations.as_u64() >= Some(1));
    let started = node.ok("start_deployment", &path, "", "");
    assert_eq!(&started["assignment"]["task_parameters"]["number_of_allocations"], allocations);
    assert_eq!(node.call("start_deployment", &path, "", "").0, 409);
    let updated = node.ok("update_deployment", &path, "", &json!({"number_of_allocations": 3}).to_string());
    assert_eq!(updated["assignment"]["task_parameters"]["number_of_allocations"], json!(3));

    let vector = node.ok(
        "infer_trained_model",
        "model=.all-minilm-l6-v2",
        "",
        &json!({"docs": [{"text_field": "hello"}]}).to_string(),
    );
    assert_eq!(vector["inference_results"][0]["predicted_value"].as_array().map(Vec::len), Some(384));
    for (op, path, query, status, reason) in [
        ("start_deployment", "model=nope", "", 404, "No known trained model with model_id [nope]"),
        ("get_trained_models", "model=nope", "", 404, "No known trained model with model_id [nope]"),
        (
            "start_deployment",
            "model=.all-minilm-l6-v2",
            "threads_per_allocation=3",
            400,
            "Validation Failed: 1: [threads_per_allocation] must be a power of 2 less than or equal to 32;",
        ),
    ] {
        let (found, _, text) = node.error(op, path, query, "");
        assert_eq!((found, text.as_str()), (status, reason));
    }
    let long = "word ".repeat(2000);
    let cut = node.ok("infer_trained_model", &path, "", &json!({"docs": [{"text_field": long}]}).to_string());
    assert_eq!(cut["inference_results"][0]["is_truncated"], json!(true));
}

/// Makes an index of documents with a number `n` and an unindexed text `t` of so many times the letter a.
fn load_texts(node: &Node, index: &str, documents: usize, length: usize) {
    let mapping = json!({"mappings": {"properties": {"t": {"type": "text", "index": false}}}});
    node.ok("create_index", &format!("index={index}"), "", &mapping.to_string());
    for id in 0..documents {
        let document = json!({"t": "a".repeat(length), "n": id});
        node.ok("index_doc", &format!("index={index}&id={id}"), "refresh=true", &document.to_string());
    }
}

/// Parts end after 16 MiB: what is counted, batches included, is as for small documents.
#[test]
fn large_documents_are_written_part_by_part() {
    let node = Node::start();
    load_texts(&node, "a", 10, 3 << 20);
    let body = |more: Value| {
        let mut body = json!({"source": {"index": "a", "size": 9}, "dest": {"index": "b"}});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        body
    };
    let (status, answer) = reindex(&node, "refresh=true", body(json!({"max_docs": 8})));
    assert_eq!((status, &answer["created"], &answer["batches"]), (200, &json!(8), &json!(1)));
    let (_, answer) = reindex(&node, "refresh=true", body(json!({})));
    let counts = ["total", "created", "updated", "batches"].map(|name| answer[name].as_u64());
    assert_eq!(counts, [10, 2, 8, 2].map(Some));
    assert_eq!(node.count("b"), 10);
    let again = node.ok("update_by_query", "index=a", "refresh=true", "");
    assert_eq!((&again["updated"], &again["total"]), (&json!(10), &json!(10)));
    let one = node.ok("get_source", "index=b&id=7", "", "");
    assert_eq!((one["n"].as_u64(), one["t"].as_str().map(str::len)), (Some(7), Some(3 << 20)));
}

/// Cancels a job whose pipeline evaluates a regular expression that would take a quarter of an hour for each document.
#[test]
fn a_job_that_is_cancelled_stops_in_the_middle_of_a_pipeline() {
    let node = Node::start();
    load_texts(&node, "source", 4, 3_000_000);
    put_pipeline(&node, "slow", json!([{"gsub": {"field": "t", "pattern": ".*b|a", "replacement": ""}}]));
    let body = json!({"source": {"index": "source"}, "dest": {"index": "copy", "pipeline": "slow"}});
    let task = start(&node, "", body);
    std::thread::sleep(Duration::from_millis(500));
    node.ok("cancel_tasks", &format!("task={task}"), "", "");
    finished(&node, &task);
    assert_ne!(node.call("exists_doc", "index=copy&id=0", "", "").0, 200, "half a document was written");
}
