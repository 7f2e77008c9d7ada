//! Short reads on the calling thread: attempts that are answered, and attempts that are given up.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::common::{Node, workspace};
use serde_json::{Value, json};
use sparrow_engine::{CancelFlag, Request};

fn request(op: &str, query: &[(&str, &str)]) -> Request {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Request {
        op: op.to_owned(),
        path: [("index", "books"), ("id", "1")].iter().map(pair).collect(),
        query: query.iter().map(pair).collect(),
        ..Request::default()
    }
}

/// The answer to an operation that a worker carries out.
fn submitted(node: &Node, request: &Request, body: &str) -> Value {
    let (sender, receiver) = mpsc::channel();
    let done = move |result| sender.send(result).expect("somebody waits");
    node.engine.submit(request.clone(), body.as_bytes().to_vec(), CancelFlag::default(), done);
    let reply = receiver.recv_timeout(Duration::from_secs(20)).expect("an answer").expect("success");
    serde_json::from_slice(&reply.body).expect("JSON")
}

/// The answer to an operation that is carried out here, if it is.
fn attempted(node: &Node, request: &Request, body: &str) -> Option<Value> {
    let reply = node.engine.attempt(request, body.as_bytes())?.expect("success");
    Some(serde_json::from_slice(&reply.body).expect("JSON"))
}

/// Some documents, and so many reads by workers that they are known to be short.
fn warm() -> Node {
    let node = Node::start();
    node.ok("create_index", "index=books", "", r#"{"mappings":{"properties":{"title":{"type":"text"}}}}"#);
    node.ok("index_doc", "index=books&id=1", "refresh=true", r#"{"title":"a short read"}"#);
    assert_eq!(attempted(&node, &request("get_doc", &[]), ""), None, "how long reads take is not known");
    for _ in 0..200 {
        submitted(&node, &request("get_doc", &[]), "");
    }
    node
}

/// Attempts until one is made: the machine may be so busy that some are given up, late, and followed by a long pause.
fn until_attempted<T>(node: &Node, attempt: impl FnMut() -> Option<T>) -> T {
    until_attempted_by(|| submitted(node, &request("get_doc", &[]), ""), attempt)
}

/// Calls `attempt` until it answers, for a minute at most; between two calls, a worker carries out `short`.
fn until_attempted_by<T>(short: impl Fn() -> Value, mut attempt: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if let Some(answer) = attempt() {
            return answer;
        }
        short();
    }
    panic!("no attempt came to its end");
}

fn answered_here(node: &Node, request: &Request, body: &str) -> Value {
    until_attempted(node, || attempted(node, request, body))
}

fn searches(node: &Node) -> Value {
    node.ok("index_stats", "index=books", "", "")["_all"]["total"]["search"]["query_total"].clone()
}

#[test]
fn an_attempt_answers_as_a_worker_does() {
    let node = warm();
    let body = r#"{"query":{"match":{"title":"read"}}}"#;
    for (op, body) in [("get_doc", ""), ("search", body), ("count", "")] {
        let request = request(op, &[]);
        let (mut here, mut there) = (answered_here(&node, &request, body), submitted(&node, &request, body));
        for answer in [&mut here, &mut there] {
            if let Some(answer) = answer.as_object_mut() {
                answer.remove("took");
            }
        }
        assert_eq!(here, there, "{op}");
    }
    let missing =
        Request { path: [("index".to_owned(), "none".to_owned())].into(), ..request("search", &[]) };
    let refused = until_attempted(&node, || node.engine.attempt(&missing, b""));
    assert_eq!(refused.expect_err("no such index").status(), 404);
}

#[test]
fn only_what_reads_and_leaves_nothing_behind_is_attempted() {
    let node = warm();
    answered_here(&node, &request("get_doc", &[]), "");
    for request in [
        request("index_doc", &[]),
        request("bulk", &[]),
        request("msearch", &[]),
        request("search", &[("scroll", "1m")]),
        request("get_doc", &[("refresh", "true")]),
    ] {
        assert_eq!(attempted(&node, &request, ""), None, "{request:?}");
    }
    let long = format!(r#"{{"query":{{"match":{{"title":"{}"}}}}}}"#, "word ".repeat(8000));
    assert_eq!(attempted(&node, &request("search", &[]), &long), None);
}

#[test]
fn what_takes_long_is_given_up_and_counted_once() {
    let node = warm();
    let body = r#"{"query":{"match":{"title":"read"}}}"#;
    answered_here(&node, &request("search", &[]), body);
    let before = searches(&node);
    // A search with a time limit has a thread to watch over it, for which the caller would wait.
    let limited = request("search", &[("timeout", "10s")]);
    assert_eq!(attempted(&node, &limited, body), None);
    assert_eq!(searches(&node), before, "it will be done again");
    assert_eq!(submitted(&node, &limited, body)["timed_out"], json!(false));
    assert_eq!(searches(&node).as_u64(), before.as_u64().map(|count| count + 1));
    assert_eq!(attempted(&node, &request("get_doc", &[]), ""), None, "for a while no attempt is made");
    answered_here(&node, &request("get_doc", &[]), "");
}

#[test]
fn what_needs_a_model_or_a_line_in_the_slow_log_is_left_to_a_worker() {
    let node = warm();
    let body = r#"{"query":{"match":{"title":"read"}}}"#;
    answered_here(&node, &request("search", &[]), body);
    // Looking for the model, which may start it, already belongs to the worker, however its name is written.
    let text = r#"{"query":{"text_expansion":{"title":{"\u006dodel_id":"none","\u006dodel_text":"a"}}}}"#;
    assert!(node.engine.attempt(&request("search", &[]), text.as_bytes()).is_none());
    let (status, _) = node.call("search", "index=books", "", text);
    assert_eq!(status, 404);
    answered_here(&node, &request("search", &[]), body);
    let slow = r#"{"index.search.slowlog.threshold.query.info":"0ms"}"#;
    node.ok("put_settings", "index=books", "", slow);
    assert_eq!(attempted(&node, &request("search", &[]), body), None);
    submitted(&node, &request("search", &[]), body);
}

#[test]
fn long_documents_and_many_patterns_for_their_sources_are_left_to_a_worker() {
    let node = warm();
    let by_id = |id: &str, query: &[(&str, &str)]| Request {
        path: [("index".to_owned(), "books".to_owned()), ("id".to_owned(), id.to_owned())].into(),
        ..request("get_doc", query)
    };
    let fields: Vec<String> = (0..1500).map(|n| format!("\"f{n}\":\"x\"")).collect();
    node.ok("put_mapping", "index=books", "", r#"{"dynamic":false}"#);
    node.ok("index_doc", "index=books&id=long", "", &format!(r#"{{"title":"{}"}}"#, "long ".repeat(8000)));
    node.ok("index_doc", "index=books&id=wide", "", &format!("{{{}}}", fields.join(",")));
    for refreshed in [false, true] {
        if refreshed {
            node.ok("refresh", "index=books", "", "");
        }
        answered_here(&node, &by_id("wide", &[]), "");
        assert_eq!(attempted(&node, &by_id("long", &[]), ""), None);
        assert_eq!(submitted(&node, &by_id("long", &[]), "")["found"], json!(true));
        answered_here(&node, &by_id("wide", &[]), "");
        let patterns: Vec<String> = (0..300).map(|n| format!("*{n}")).collect();
        let filtered = by_id("wide", &[("_source_includes", &patterns.join(","))]);
        assert_eq!(attempted(&node, &filtered, ""), None);
        assert_eq!(submitted(&node, &filtered, "")["found"], json!(true));
    }
    let body = r#"{"query":{"match":{"title":"long"}}}"#;
    answered_here(&node, &by_id("wide", &[]), "");
    let before = searches(&node);
    assert_eq!(attempted(&node, &request("search", &[]), body), None);
    assert_eq!(searches(&node), before, "it will be done again");
    assert_eq!(submitted(&node, &request("search", &[]), body)["hits"]["hits"][0]["_id"], json!("long"));
}

#[test]
fn ranges_are_the_same_whoever_scans_or_sorts_their_column() {
    let node = warm();
    node.ok("create_index", "index=many", "", r#"{"mappings":{"properties":{"n":{"type":"integer"}}}}"#);
    let lines: String =
        (0..6000).map(|n| format!("{{\"index\":{{}}}}\n{{\"n\":{}}}\n", n * 7919 % 6000)).collect();
    node.ok("bulk", "index=many", "refresh=true", &lines);
    node.ok("force_merge", "index=many", "max_num_segments=1", "");
    let many = Request { path: [("index".to_owned(), "many".to_owned())].into(), ..request("count", &[]) };
    for least in 0..300 {
        let body = format!(r#"{{"query":{{"range":{{"n":{{"gte":{least},"lt":5000}}}}}}}}"#);
        let answer = attempted(&node, &many, &body).unwrap_or_else(|| submitted(&node, &many, &body));
        assert_eq!(answer["count"], json!(5000 - least));
    }
}

#[test]
fn a_closed_engine_attempts_nothing() {
    let node = warm();
    answered_here(&node, &request("get_doc", &[]), "");
    node.engine.close();
    assert!(node.engine.attempt(&request("get_doc", &[]), b"").is_none());
}

#[test]
fn a_short_text_is_encoded_here_unless_something_has_to_be_waited_for() {
    let node = Node::start_with(|options| {
        options.models = workspace::models();
        options.threads = 2;
    });
    let of = |op: &str, part: &str, name: &str| Request {
        op: op.to_owned(),
        path: [(part.to_owned(), name.to_owned())].into(),
        ..Request::default()
    };
    let stopped = of("infer", "inference_id", ".all-minilm-l6-v2-elasticsearch");
    let model = of("infer_trained_model", "model", ".elser_model_2");
    node.ok("start_deployment", "model=.elser_model_2", "number_of_allocations=1", "");
    let text = |number: usize| format!(r#"{{"docs":[{{"text_field":"a warm blanket, {number}"}}]}}"#);
    for number in 0..200 {
        submitted(&node, &model, &text(number));
    }
    let mut numbers = 200..;
    let (asked, here) = until_attempted_by(
        || submitted(&node, &model, &text(0)),
        || {
            let body = text(numbers.next().expect("a number"));
            attempted(&node, &model, &body).map(|answer| (body, answer))
        },
    );
    assert_eq!(here, submitted(&node, &model, &asked));
    let several = r#"{"docs":[{"text_field":"one"},{"text_field":"two"},{"text_field":"three"}]}"#;
    let long = format!(r#"{{"docs":[{{"text_field":"{}"}}]}}"#, "word ".repeat(200));
    for body in [several, &long] {
        assert_eq!(attempted(&node, &model, body), None, "{body}");
    }
    assert!(node.engine.attempt(&stopped, br#"{"input":"a warm blanket"}"#).is_none());
}
