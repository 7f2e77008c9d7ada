//! Dates to the nanosecond.

use serde_json::{Value, json};

use super::common::{Node, ids};

const FIRST: &str = "2015-01-01T12:10:30.123456788Z";
const SECOND: &str = "2015-01-01T12:10:30.123456789Z";

fn times() -> Node {
    let node = Node::start();
    node.create("times", &json!({"at": {"type": "date_nanos"}, "also": {"type": "alias", "path": "at"}}));
    node.load("times", &[json!({"at": SECOND}), json!({"at": FIRST}), json!({"at": "2030-01-01"})]);
    node.create("older", &json!({"at": {"type": "date"}}));
    node.load("older", &[json!({"_id": "o", "at": "2015-01-01T12:10:30.1239Z"})]);
    node
}

#[test]
fn dates_are_found_and_sorted_to_the_nanosecond() {
    let node = times();
    let range = |bounds: Value| node.ids("times", &json!({"range": {"also": bounds}}));
    assert_eq!(range(json!({"gt": FIRST, "lt": "2020"})), ["1"]);
    assert_eq!(range(json!({"gte": FIRST, "lt": SECOND})), ["2"]);
    assert_eq!(range(json!({"lte": "2015-01-01T12:10:30Z"})), ["1", "2"]);
    assert_eq!(range(json!({"lte": 1_420_114_230_123_u64})), ["1", "2"]);
    assert_eq!(range(json!({"gte": "1200-01-01", "lte": "9000-01-01"})), ["1", "2", "3"]);
    assert_eq!(node.ids("times", &json!({"term": {"at": SECOND}})), ["1"]);
    let sort_of = |answer: &Value, at: usize| answer["hits"]["hits"][at]["sort"][0].clone();
    let sorted = node.search("times", &json!({"sort": ["at"]}));
    assert_eq!(ids(&sorted), ["2", "1", "3"]);
    assert_eq!(sort_of(&sorted, 1), 1_420_114_230_123_456_789_u64);
    let after = node.search(
        "times",
        &json!({"sort": [{"at": {"format": "strict_date_optional_time_nanos"}}], "search_after": [FIRST]}),
    );
    assert_eq!((ids(&after), sort_of(&after, 0)), (vec!["1".to_owned(), "3".to_owned()], json!(SECOND)));
    let both = |kind: &str| {
        node.search("times,older", &json!({"sort": [{"at": {"numeric_type": kind}}], "size": 3}))
    };
    assert_eq!(ids(&both("date_nanos")), ["o", "2", "1"]);
    assert_eq!(sort_of(&both("date"), 2), 1_420_114_230_123_u64);
}

#[test]
fn dates_are_counted_by_milliseconds_and_shown_whole() {
    let node = times();
    let aggs = json!({
        "each": {"date_histogram": {"field": "also", "fixed_interval": "1ms", "min_doc_count": 1}},
        "first": {"min": {"field": "at"}},
        "terms": {"terms": {"field": "at", "size": 1}},
    });
    let near = json!({"distance_feature": {"field": "at", "origin": "2030-01-01", "pivot": "1d"}});
    let answer = node.search(
        "times",
        &json!({
            "query": near, "aggs": aggs, "fields": ["at", {"field": "also", "format": "epoch_millis"}],
            "script_fields": {"nano": {"script": "doc['at'].value.getNano()"}},
        }),
    );
    assert_eq!(
        answer["aggregations"]["each"]["buckets"][0],
        json!({
            "key": 1_420_114_230_123_u64, "key_as_string": "2015-01-01T12:10:30.123Z", "doc_count": 2
        })
    );
    assert_eq!(answer["aggregations"]["first"]["value_as_string"], "2015-01-01T12:10:30.123Z");
    assert_eq!(answer["aggregations"]["terms"]["buckets"][0]["doc_count"], 2);
    assert_eq!(answer["hits"]["hits"][0]["_id"], "3");
    let shown = node.search("times", &json!({"sort": ["at"], "docvalue_fields": ["at"]}));
    assert_eq!(shown["hits"]["hits"][1]["fields"]["at"], json!([SECOND]));
    let hits = answer["hits"]["hits"].as_array().expect("hits");
    let of_second = hits.iter().find(|hit| hit["_id"] == "1").expect("the hit");
    assert_eq!(
        of_second["fields"],
        json!({"nano": [123_456_789], "at": [SECOND], "also": ["1420114230123.456789"]})
    );
}
