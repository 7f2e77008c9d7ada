//! Documents by id, as recorded from Elasticsearch 8.19.

use crate::common::Node;
use serde_json::{Value, json};

const BOOKS: &str = r#"{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{
    "title":{"type":"text"},"tag":{"type":"keyword"},"n":{"type":"integer"},"v":{"type":"sparse_vector"}}}}"#;

fn books() -> (Node, String) {
    let node = Node::start();
    let created = node.ok("create_index", "index=books", "", BOOKS);
    assert_eq!(created, json!({"acknowledged": true, "shards_acknowledged": true, "index": "books"}));
    let index = node.ok("get_index", "index=books", "", "");
    let uuid = index["books"]["settings"]["index"]["uuid"].as_str().expect("a uuid").to_owned();
    (node, uuid)
}

fn written(id: &str, version: u64, result: &str, seq_no: u64) -> Value {
    json!({"_index": "books", "_id": id, "_version": version, "result": result,
        "_shards": {"total": 1, "successful": 1, "failed": 0}, "_seq_no": seq_no, "_primary_term": 1})
}

#[test]
fn the_recorded_sequence_of_writes() {
    let (node, uuid) = books();
    let (status, first) =
        node.call("index_doc", "index=books", "", r#"{"title":"auto id","v":{"alpha":1.5,"beta":0.25}}"#);
    assert_eq!(status, 201);
    let auto = first["_id"].as_str().expect("an id").to_owned();
    assert_eq!(auto.len(), 20);
    assert_eq!(first, written(&auto, 1, "created", 0));

    let one = r#"{"title": "first", "tag": "a", "n": 2, "v": {"alpha": 0.333333, "gamma": 2}}"#;
    assert_eq!(node.call("index_doc", "index=books&id=1", "", one), (201, written("1", 1, "created", 1)));
    assert_eq!(node.call("index_doc", "index=books&id=1", "", one), (200, written("1", 2, "updated", 2)));
    let missing = node.error("index_doc", "index=books&id=2", "pipeline=none", r#"{"title":"x"}"#);
    assert_eq!(
        missing,
        (400, "illegal_argument_exception".into(), "pipeline with id [none] does not exist".into())
    );
    assert_eq!(node.call("create_doc", "index=books&id=3", "", "{}"), (201, written("3", 1, "created", 3)));

    for (op, query) in [("create_doc", ""), ("index_doc", "op_type=create")] {
        let (status, body) = node.call(op, "index=books&id=3", query, "{}");
        let conflict = json!({"type": "version_conflict_engine_exception",
            "reason": "[3]: version conflict, document already exists (current version [1])",
            "index_uuid": uuid, "shard": "0", "index": "books"});
        let mut error = conflict.clone();
        error["root_cause"] = json!([conflict]);
        assert_eq!((status, body), (409, json!({"error": error, "status": 409})));
    }
    let stale = node.error("index_doc", "index=books&id=3", "if_seq_no=0&if_primary_term=1", "{}");
    assert_eq!(
        stale.2,
        "[3]: version conflict, required seqNo [0], primary term [1]. current document has seqNo [3] and primary \
         term [1]"
    );

    for (body, reason) in [
        (
            r#"{"n": "not a number"}"#,
            "[1:7] failed to parse field [n] of type [integer] in document with id '4'. Preview of field's value: \
             'not a number'",
        ),
        (
            r#"{"v": {"alpha": -1}}"#,
            "[1:17] failed to parse: featureValue must be a positive normal float, got: -1.0 for feature alpha on \
             field v which is less than the minimum positive normal float: 1.17549435E-38",
        ),
        (r#"{"v": {"alpha": "abc"}}"#, "[1:17] failed to parse: For input string: \"abc\""),
    ] {
        let error = node.error("index_doc", "index=books&id=4", "", body);
        assert_eq!(error, (400, "document_parsing_exception".into(), reason.into()));
    }
    let created = node.call("index_doc", "index=books&id=4", "", r#"{"v": {"a.b": 1}}"#);
    assert_eq!(created, (201, written("4", 1, "created", 4)));
    let malformed = node.error("index_doc", "index=books&id=5", "", "{\"title\": \"x\", ");
    assert!(
        malformed.2.starts_with("[1:11] failed to parse: [1:16] Unexpected end-of-input"),
        "{}",
        malformed.2
    );
    assert_eq!(node.error("index_doc", "index=books&id=5", "", "").2, "request body is required");

    let update = |body: &str| node.call("update_doc", "index=books&id=1", "", body);
    assert_eq!(update(r#"{"doc": {"n": 42}}"#), (200, written("1", 3, "updated", 5)));
    let mut noop = written("1", 3, "noop", 5);
    noop["_shards"] = json!({"total": 0, "successful": 0, "failed": 0});
    assert_eq!(update(r#"{"doc": {"n": 42}}"#), (200, noop));
    let gone = node.error("update_doc", "index=books&id=zzz", "", r#"{"doc": {"n": 42}}"#);
    assert_eq!(gone, (404, "document_missing_exception".into(), "[zzz]: document missing".into()));

    let delete = || node.call("delete_doc", "index=books&id=3", "", "");
    assert_eq!(delete(), (200, written("3", 2, "deleted", 6)));
    assert_eq!(delete(), (404, written("3", 3, "not_found", 7)));
}

#[test]
fn gets_see_writes_at_once_and_give_sources_back_byte_for_byte() {
    let (node, _) = books();
    let source = "{ \"title\":\"x\",  \"n\" : 1.0e0,\"v\":{\"alpha\":0.333333} }";
    node.ok("index_doc", "index=books&id=1", "", source);
    for _ in 0..2 {
        let (status, body) = node.call_raw("get_doc", "index=books&id=1", "", "");
        let expected = format!(
            "{{\"_index\":\"books\",\"_id\":\"1\",\"_version\":1,\"_seq_no\":0,\"_primary_term\":1,\"found\":true,\
             \"_source\":{source}}}"
        );
        assert_eq!((status, String::from_utf8_lossy(&body).into_owned()), (200, expected));
        assert_eq!(
            node.call_raw("get_source", "index=books&id=1", "", ""),
            (200, source.as_bytes().to_vec())
        );
        node.ok("refresh", "index=books", "", "");
    }
    assert_eq!(
        node.call("get_doc", "index=books&id=zzz", "", ""),
        (404, json!({"_index": "books", "_id": "zzz", "found": false}))
    );
    assert_eq!(node.call_raw("exists_doc", "index=books&id=1", "", ""), (200, Vec::new()));
    assert_eq!(node.call_raw("exists_doc", "index=books&id=zzz", "", "").0, 404);
    assert_eq!(node.error("get_doc", "index=missing&id=1", "", "").2, "no such index [missing]");
    assert_eq!(node.error("get_source", "index=books&id=zzz", "", "").2, "Document not found [books]/[zzz]");

    let filtered = node.ok("get_doc", "index=books&id=1", "_source_excludes=v", "");
    assert_eq!(filtered["_source"], json!({"title": "x", "n": 1.0}));
    assert!(node.ok("get_doc", "index=books&id=1", "_source=false", "").get("_source").is_none());
    node.ok("index_doc", "index=books&id=late", "", "{}");
    assert_eq!(node.call("get_doc", "index=books&id=late", "realtime=false", "").0, 404);

    let answer = node.ok(
        "mget",
        "index=books",
        "",
        r#"{"docs":[{"_id":"1","_source":"title"},{"_id":"zzz"},{"_index":"missing","_id":"1"}]}"#,
    );
    assert_eq!(answer["docs"][0]["_source"], json!({"title": "x"}));
    assert_eq!(answer["docs"][1], json!({"_index": "books", "_id": "zzz", "found": false}));
    assert_eq!(answer["docs"][2]["error"]["reason"], json!("no such index [missing]"));
    assert_eq!(node.ok("mget", "index=books", "", r#"{"ids":["1","zzz"]}"#)["docs"][0]["found"], json!(true));
    assert_eq!(
        node.error("mget", "", "", r#"{"ids":["1"]}"#).2,
        "Validation Failed: 1: index is missing for doc 0;"
    );
    assert_eq!(node.error("mget", "", "", "{}").2, "Validation Failed: 1: no documents to get;");
}

#[test]
fn excluded_fields_are_searchable_and_gone() {
    let node = Node::start();
    let mapping =
        r#"{"mappings":{"_source":{"excludes":["v"]},"properties":{"v":{"type":"sparse_vector"}}}}"#;
    node.ok("create_index", "index=a", "", mapping);
    node.ok("index_doc", "index=a&id=1", "refresh=true", r#"{"t":"x","v":{"alpha":2.0}}"#);
    assert_eq!(node.ok("get_doc", "index=a&id=1", "", "")["_source"], json!({"t": "x"}));
    let query = r#"{"query":{"sparse_vector":{"field":"v","query_vector":{"alpha":1.5}}}}"#;
    assert_eq!(node.hits("a", query), [("1".to_owned(), 3.0)]);
    // The log has the whole document, so a crash loses nothing of it; a get before the refresh shows it filtered too.
    node.ok("index_doc", "index=a&id=2", "", r#"{"t":"y","v":{"alpha":4.0}}"#);
    assert_eq!(node.ok("get_doc", "index=a&id=2", "", "")["_source"], json!({"t": "y"}));
    let node = node.crash();
    assert_eq!(node.hits("a", query), [("2".to_owned(), 6.0), ("1".to_owned(), 3.0)]);
}

#[test]
fn updates_merge_insert_and_retry() {
    let (node, _) = books();
    let update = |id: &str, query: &str, body: &str| {
        node.call("update_doc", &format!("index=books&id={id}"), query, body)
    };
    let source = |id: &str| node.ok("get_doc", &format!("index=books&id={id}"), "", "")["_source"].clone();
    assert_eq!(update("1", "", r#"{"doc":{"n":1},"doc_as_upsert":true}"#).1["result"], json!("created"));
    assert_eq!(update("1", "", r#"{"doc":{"o":{"x":1}}}"#).1["result"], json!("updated"));
    assert_eq!(update("1", "", r#"{"doc":{"o":{"y":2}}}"#).1["_version"], json!(3));
    assert_eq!(source("1"), json!({"n": 1, "o": {"x": 1, "y": 2}}));
    assert_eq!(update("2", "", r#"{"doc":{"n":1},"upsert":{"n":7}}"#).0, 201);
    assert_eq!(source("2"), json!({"n": 7}));
    let forced = update("2", "", r#"{"doc":{"n":7},"detect_noop":false}"#).1;
    assert_eq!((forced["result"].clone(), forced["_version"].clone()), (json!("updated"), json!(2)));
    let returned = update("2", "_source=true", r#"{"doc":{"n":8}}"#).1;
    assert_eq!(returned["get"]["_source"], json!({"n": 8}));
    assert_eq!(update("2", "if_seq_no=0&if_primary_term=1", r#"{"doc":{"n":9}}"#).0, 409);
    assert!(
        node.error("update_doc", "index=books&id=1", "", r#"{"script":"x"}"#)
            .2
            .contains("failed to execute script")
    );
    assert_eq!(update("3", "", r#"{"doc":{"n":"bad"},"doc_as_upsert":true}"#).0, 400);

    std::thread::scope(|scope| {
        for thread in 0..4 {
            let node = &node;
            scope.spawn(move || {
                for round in 0..20 {
                    let body = format!("{{\"doc\":{{\"count-{thread}\":{round}}}}}");
                    let (status, answer) =
                        node.call("update_doc", "index=books&id=2", "retry_on_conflict=1000", &body);
                    assert_eq!(status, 200, "{answer}");
                }
            });
        }
    });
    let merged = source("2");
    for thread in 0..4 {
        assert_eq!(merged[format!("count-{thread}")], json!(19), "an update was lost: {merged}");
    }
}

#[test]
fn versions_can_be_counted_outside() {
    let (node, _) = books();
    let put = |version: u64, kind: &str| {
        node.call("index_doc", "index=books&id=1", &format!("version={version}&version_type={kind}"), "{}")
    };
    assert_eq!(put(5, "external").1["_version"], json!(5));
    assert_eq!(put(5, "external").0, 409);
    assert_eq!(put(5, "external_gte").1["_version"], json!(5));
    assert_eq!(put(4, "external_gte").0, 409);
    assert_eq!(put(9, "external").1["_version"], json!(9));
    let (status, body) = node.call("get_doc", "index=books&id=1", "version=8", "");
    assert_eq!(status, 409, "{body}");
    assert!(node.error("index_doc", "index=books&id=1", "version=3", "{}").2.contains("if_seq_no"));

    // Nothing comes after the highest one but itself.
    let highest = i64::MAX as u64;
    assert_eq!(put(highest, "external").1["_version"], json!(highest));
    for operation in ["index_doc", "delete_doc"] {
        let (status, _, reason) = node.error(operation, "index=books&id=1", "", "{}");
        assert_eq!(status, 409, "{reason}");
        assert!(
            reason.ends_with("current version [9223372036854775807] is the highest there is"),
            "{reason}"
        );
    }
    assert_eq!(put(highest, "external_gte").0, 200);
}

#[test]
fn an_index_is_made_by_its_first_document() {
    let node = Node::start();
    let (status, body) =
        node.call("index_doc", "index=auto&id=1", "refresh=true", r#"{"t":"x","n":1,"f":1.5}"#);
    assert_eq!(status, 201);
    // Replicas that are not there are counted as Elasticsearch counts them.
    assert_eq!(body["_shards"], json!({"total": 2, "successful": 1, "failed": 0}));
    assert_eq!(body["forced_refresh"], json!(true));
    let mapping = node.ok("get_mapping", "index=auto", "", "");
    let properties = &mapping["auto"]["mappings"]["properties"];
    assert_eq!(properties["n"], json!({"type": "long"}));
    assert_eq!(properties["f"], json!({"type": "float"}));
    assert_eq!(properties["t"]["fields"]["keyword"], json!({"type": "keyword", "ignore_above": 256}));
    let error = node.error("index_doc", "index=BAD&id=1", "", "{}");
    assert_eq!(error.2, "Invalid index name [BAD], must be lowercase");
    let error = node.error("index_doc", "index=new&id=1", "require_alias=true", "{}");
    assert_eq!(error.0, 404);
    assert_eq!(node.call("exists_index", "index=new", "", "").0, 404);
}

#[test]
fn too_many_fields_are_refused_and_change_nothing() {
    let node = Node::start();
    let fields: Vec<String> = (0..1001).map(|number| format!("\"f{number}\": {number}")).collect();
    let body = format!("{{{}}}", fields.join(", "));
    let (status, kind, reason) = node.error("index_doc", "index=auto", "", &body);
    assert_eq!((status, kind.as_str()), (400, "document_parsing_exception"));
    let sentence =
        "failed to parse: Limit of total fields [1000] has been exceeded while adding new fields [1001]";
    assert!(reason.ends_with(sentence), "{reason}");
    let mapping = node.ok("get_mapping", "index=auto", "", "");
    assert_eq!(mapping["auto"]["mappings"], json!({}));
}
