use serde_json::{Value, json};

use super::{Kind, Operation, Slices, Spec};
use sparrow_request::request::Request;

fn parse(kind: Kind, body: &Value, parameters: &[(&str, &str)]) -> Result<Spec, String> {
    let query = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let path = [("index".to_owned(), "a".to_owned())].into();
    let request = Request { query, path, ..Request::default() };
    Spec::parse(kind, &request, body.to_string().as_bytes()).map_err(|error| error.reason())
}

fn reindex(body: &Value, parameters: &[(&str, &str)]) -> Result<Spec, String> {
    parse(Kind::Reindex, body, parameters)
}

fn refused(source: &Value, dest: &Value, rest: &Value, parameters: &[(&str, &str)]) -> String {
    let mut body = json!({"source": source, "dest": dest});
    for (name, value) in rest.as_object().unwrap() {
        body[name] = value.clone();
    }
    reindex(&body, parameters).unwrap_err()
}

#[test]
fn requests_are_read() {
    let spec = reindex(
        &json!({"conflicts": "proceed", "max_docs": 500,
               "source": {"index": ["a", "b"], "size": 50, "query": {"match_all": {}}, "_source": ["x", "y.*"],
                          "slice": {"id": 1, "max": 3}},
               "dest": {"index": "c", "op_type": "create", "pipeline": "p", "version_type": "external"}}),
        &[("requests_per_second", "12.5"), ("refresh", "true")],
    )
    .unwrap();
    assert_eq!(spec.sources, ["a", "b"]);
    assert_eq!((spec.batch, spec.part, spec.slices), (50, Some((1, 3)), Slices::Number(1)));
    assert!(spec.proceed && spec.refresh);
    assert_eq!(spec.max_docs, Some(500));
    let destination = spec.destination().unwrap();
    assert!(destination.create);
    assert_eq!(destination.pipeline.as_deref(), Some("p"));
    assert!((spec.requests_per_second - 12.5).abs() < f64::EPSILON);
    assert_eq!(spec.description(), "reindex from [a, b] to [c]");
    let spec = reindex(
        &json!({"source": {"index": "a"}, "dest": {"index": "c"}, "max_docs": 2}),
        &[("slices", "auto")],
    )
    .unwrap();
    assert_eq!((spec.batch, spec.slices), (2, Slices::Auto));
    assert!(spec.requests_per_second.is_infinite());

    let spec = parse(
        Kind::UpdateByQuery,
        &json!({"query": {"term": {"x": 1}}, "max_docs": 7}),
        &[
            ("pipeline", "p"),
            ("scroll_size", "5"),
            ("conflicts", "proceed"),
            ("slices", "2"),
            ("terminate_after", "9"),
        ],
    )
    .unwrap();
    assert!(
        matches!(&spec.operation, Operation::Update { pipeline, script: None } if pipeline.as_deref() == Some("p"))
    );
    assert_eq!((spec.batch, spec.max_docs, spec.terminate_after), (5, Some(7), Some(9)));
    assert!(spec.query.is_some() && spec.proceed);
    assert_eq!(spec.description(), "update-by-query [a]");
    let spec = parse(Kind::DeleteByQuery, &json!({}), &[("q", "x:1")]).unwrap();
    assert!(spec.query.is_some());
}

#[test]
fn a_saved_request_comes_back() {
    let spec = reindex(
        &json!({"source": {"index": "a", "size": 7}, "dest": {"index": "c"}}),
        &[("requests_per_second", "3"), ("refresh", "true")],
    )
    .unwrap();
    let again = Spec::from_saved(&spec.to_saved()).unwrap();
    assert_eq!((again.sources, again.batch, again.refresh), (spec.sources, 7, true));
    let spec =
        parse(Kind::DeleteByQuery, &json!({"query": {"match_all": {}}}), &[("max_docs", "3")]).unwrap();
    let again = Spec::from_saved(&spec.to_saved()).unwrap();
    assert_eq!((again.kind(), again.max_docs, again.query), (Kind::DeleteByQuery, Some(3), spec.query));
}

#[test]
fn bad_reindex_requests_are_refused_in_known_words() {
    let (a, b) = (json!({"index": "a"}), json!({"index": "b"}));
    assert_eq!(
        reindex(&json!({}), &[]).unwrap_err(),
        "Validation Failed: 1: use _all if you really want to copy from all existing indexes;2: index must be \
         specified;"
    );
    let pace = "[requests_per_second] must be a float greater than 0. Use -1 to disable throttling.";
    for (rest, parameters, message) in [
        (json!({"conflicts": "x"}), &[][..], "conflicts may only be \"proceed\" or \"abort\" but was [x]"),
        (json!({"max_docs": -4}), &[], "[max_docs] parameter cannot be negative, found [-4]"),
        (json!({"max_docs": 4}), &[("max_docs", "5")], "[max_docs] set to two different values [4] and [5]"),
        (json!({"size": 4, "max_docs": 5}), &[], "[max_docs] set to two different values [4] and [5]"),
        (
            json!({}),
            &[("max_docs", "5"), ("size", "4")],
            "[max_docs] set to two different values [4] and [5]",
        ),
        (json!({}), &[("requests_per_second", "0")], pace),
        (json!({}), &[("requests_per_second", "")], pace),
        (json!({}), &[("requests_per_second", "fast")], pace),
        (json!({}), &[("requests_per_second", "inf")], pace),
        (json!({}), &[("slices", "0")], "[slices] must be a positive integer or the string \"auto\""),
        (
            json!({}),
            &[("slices", "1025")],
            "The number of slices [1025] is too large. It must be less than [1024]. This limit can be set by changing \
             the [index.max_slices_per_scroll] index level setting.",
        ),
        (
            json!({"max_docs": 2}),
            &[("slices", "5")],
            "Validation Failed: 1: [max_docs] should be >= [slices];",
        ),
        (json!({"script": {"source": "ctx.op="}}), &[], "compile error"),
    ] {
        assert_eq!(refused(&a, &b, &rest, parameters), message);
    }
    let nothing = json!({});
    assert!(refused(&a, &b, &json!({"junk": 1}), &[]).ends_with("[reindex] unknown field [junk]"));
    for (source, dest, end) in [
        (json!({"index": "a"}), json!({"index": "b", "junk": 1}), "[reindex] failed to parse field [dest]"),
        (json!({"index": "a", "junk": {}}), b.clone(), "[reindex] failed to parse field [source]"),
        (
            json!({"index": "a", "_source": false}),
            b.clone(),
            "Validation Failed: 1: _source:false is not supported in this context;",
        ),
        (
            json!({"index": "a", "stored_fields": ["_id"], "from": 1}),
            b.clone(),
            "Validation Failed: 1: stored_fields is not supported in this context;2: from is not supported in this \
             context;",
        ),
        (json!({"index": "a", "slice": {"id": 3, "max": 2}}), b.clone(), "max must be greater than id"),
        (a.clone(), json!({"index": "b", "routing": "x"}), "Unsupported routing command: [x]"),
    ] {
        let found = refused(&source, &dest, &nothing, &[]);
        assert!(found.ends_with(end), "{found}");
    }
    assert!(
        refused(&json!({"index": "a", "size": 10_001}), &b, &nothing, &[])
            .starts_with("Batch size is too large")
    );
    assert_eq!(
        refused(&json!({"index": "a", "slice": {"id": 0, "max": 2}}), &b, &nothing, &[("slices", "2")]),
        "Validation Failed: 1: can't specify both manual and automatic slicing at the same time;"
    );
}

#[test]
fn remote_sources_are_refused() {
    for (remote, start) in [
        (
            json!({"host": "http://badremote:9200"}),
            "[badremote:9200] not whitelisted in reindex.remote.whitelist",
        ),
        (json!({"host": "https://b:9200/prefix"}), "[b:9200] not whitelisted in reindex.remote.whitelist"),
        (json!({}), "[host] must be specified to reindex from a remote cluster"),
        (
            json!({"host": "badremote", "weird": 1}),
            "[host] must be of the form [scheme]://[host]:[port](/[pathPrefix])? but was [badremote]",
        ),
        (
            json!({"host": "http://okremote:9200", "weird": 1, "bad": 2}),
            "Unsupported fields in [remote]: [weird,bad]",
        ),
        (json!({"host": "http://okremote:9200", "socket_timeout": "borked"}), "failed to parse"),
    ] {
        let found =
            refused(&json!({"index": "a", "remote": remote}), &json!({"index": "b"}), &json!({}), &[]);
        assert!(found.starts_with(start), "{found}");
    }
}

#[test]
fn bad_requests_by_query_are_refused_in_known_words() {
    let all = json!({"query": {"match_all": {}}});
    for (kind, body, parameters, message) in [
        (Kind::DeleteByQuery, json!({}), &[][..], "Validation Failed: 1: query is missing;"),
        (
            Kind::DeleteByQuery,
            all.clone(),
            &[("conflicts", "cat")],
            "conflicts may only be \"proceed\" or \"abort\" but was [cat]",
        ),
        (
            Kind::UpdateByQuery,
            json!({}),
            &[("size", "-4")],
            "[max_docs] parameter cannot be negative, found [-4]",
        ),
        (
            Kind::UpdateByQuery,
            json!({}),
            &[("scroll_size", "asdf")],
            "Failed to parse int parameter [scroll_size] with value [asdf]",
        ),
        (
            Kind::UpdateByQuery,
            json!({"stored_fields": ["_id"]}),
            &[],
            "Validation Failed: 1: stored_fields is not supported in this context;",
        ),
        (
            Kind::UpdateByQuery,
            json!({"_source": ["a"]}),
            &[],
            "Validation Failed: 1: _source is not supported in this context;",
        ),
        (Kind::UpdateByQuery, json!({"ext": {}}), &[], "[ext] is not supported by this server"),
        (
            Kind::DeleteByQuery,
            json!({"query": {"match_all": {}}, "min_score": 1, "_source": ["a"]}),
            &[],
            "Validation Failed: 1: min_score is not supported in this context;",
        ),
        (
            Kind::DeleteByQuery,
            json!({"query": {"match_all": {}}, "aggs": {"a": {"nope": {}}}}),
            &[],
            "Unknown aggregation type [nope]",
        ),
        (Kind::UpdateByQuery, json!({"script": {"source": "x"}}), &[], "compile error"),
        (Kind::UpdateByQuery, json!({"junk": 1}), &[], "Unknown key for a VALUE_NUMBER in [junk]."),
        (
            Kind::DeleteByQuery,
            all.clone(),
            &[("sort", "n:up")],
            "No enum constant org.elasticsearch.search.sort.SortOrder.UP",
        ),
        (
            Kind::DeleteByQuery,
            all.clone(),
            &[("refresh", "wait_for")],
            "Failed to parse value [wait_for] as only [true] or [false] are allowed.",
        ),
        (Kind::DeleteByQuery, all, &[("search_type", "scan")], "No search type for [scan]"),
    ] {
        assert_eq!(parse(kind, &body, parameters).unwrap_err(), message);
    }
}

#[test]
fn the_place_of_an_unknown_field_is_named() {
    let error = Spec::parse(Kind::Reindex, &Request::default(), b"{\n  \"junk\": 1\n}").unwrap_err();
    assert_eq!(error.reason(), "[2:3] [reindex] unknown field [junk]");
    assert_eq!(error.status(), 400);
}

#[test]
fn a_saved_request_keeps_the_rights_of_the_key_that_asked() {
    let grant = |names: &[&str]| json!({"names": [names], "by": "all"});
    let request = json!({"op": "reindex", "action": "indices:data/write/reindex", "rights": {
        "key": "k", "user": "owner", "grants": {
            "indices:data/read/search": grant(&["a"]),
            "indices:data/write/index:op_type/index": grant(&["c"])}}});
    let request: Request = serde_json::from_str(&request.to_string()).unwrap();
    let body = json!({"source": {"index": "a"}, "dest": {"index": "c"}}).to_string();
    let spec = Spec::parse(Kind::Reindex, &request, body.as_bytes()).unwrap();
    let again = Spec::from_saved(&spec.to_saved()).unwrap();
    assert!(again.right_to_read().check(["a"]).is_ok() && again.right_to_read().check(["c"]).is_err());
    assert!(again.check_written("c").is_ok() && again.check_written("a").is_err());
    // What an earlier version kept of a restricted key is not enough to go on with.
    let mut old = spec.to_saved();
    old.as_object_mut().unwrap().remove("rights");
    old["visible"] = json!(["a"]);
    assert!(Spec::from_saved(&old).is_err());
    old["visible"] = Value::Null;
    assert!(Spec::from_saved(&old).is_ok());
}
