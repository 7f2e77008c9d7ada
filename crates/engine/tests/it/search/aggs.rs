//! Aggregations in Elasticsearch's shapes; most expectations are those of its documentation and REST tests.

use serde_json::{Value, json};

use super::common::Node;

/// The `aggregations` section that a search with size 0 answers.
fn aggregate(node: &Node, index: &str, aggs: Value) -> Value {
    node.search(index, &json!({"size": 0, "aggs": aggs}))["aggregations"].clone()
}

/// Status, type and reason of a refused search: of the first root cause, or else of `caused_by`.
fn refused(node: &Node, index: &str, aggs: Value) -> String {
    let body = node.search_error(index, &json!({"size": 0, "aggs": aggs}));
    let error = &body["error"];
    let mut root =
        if error["root_cause"][0].is_null() { &error["caused_by"] } else { &error["root_cause"][0] };
    // A value that is wrong in itself is the cause of the field that cannot be read.
    if root["type"] == "x_content_parse_exception" && !error["caused_by"].is_null() {
        root = &error["caused_by"];
    }
    format!(
        "{} {}: {}",
        body["status"],
        root["type"].as_str().unwrap_or("?"),
        root["reason"].as_str().unwrap_or("?")
    )
}

fn numbers() -> Node {
    let node = Node::start();
    node.create(
        "test",
        &json!({
            "int": {"type": "integer"}, "double": {"type": "double"}, "str": {"type": "keyword"},
            "date": {"type": "date"}, "flag": {"type": "boolean"}, "title": {"type": "text"},
            "many": {"type": "integer"}, "weight": {"type": "integer"}, "v": {"type": "sparse_vector"}}),
    );
    node.load(
        "test",
        &[
            json!({"int": 1, "double": 1.0, "str": "abc", "date": "2016-05-03", "flag": true,
                "many": [1, 2, 3], "weight": 2, "title": "the quick brown fox"}),
            json!({"int": 51, "double": 51.0, "str": ["abc", "bcd"], "date": "2014-09-01", "flag": false,
                "many": [0, 1, 4], "weight": 4, "title": "the lazy dog"}),
            json!({"int": 101, "double": 101.0, "str": "bcd", "date": "2016-05-03", "flag": true, "title": "dog"}),
            json!({"int": 151, "double": 151.0, "weight": 3}),
        ],
    );
    node
}

#[test]
fn terms_of_all_types() {
    let node = numbers();
    let buckets =
        |field: &str| aggregate(&node, "test", json!({"t": {"terms": {"field": field}}}))["t"].clone();
    assert_eq!(
        buckets("str"),
        json!({"doc_count_error_upper_bound": 0, "sum_other_doc_count": 0, "buckets": [
            {"key": "abc", "doc_count": 2}, {"key": "bcd", "doc_count": 2}]})
    );
    assert_eq!(
        buckets("flag")["buckets"],
        json!([{"key": 1, "key_as_string": "true", "doc_count": 2},
            {"key": 0, "key_as_string": "false", "doc_count": 1}])
    );
    assert_eq!(
        buckets("date")["buckets"],
        json!([{"key": 1_462_233_600_000_i64, "key_as_string": "2016-05-03T00:00:00.000Z", "doc_count": 2},
            {"key": 1_409_529_600_000_i64, "key_as_string": "2014-09-01T00:00:00.000Z", "doc_count": 1}])
    );
    assert_eq!(buckets("double")["buckets"][0], json!({"key": 1.0, "doc_count": 1}));
    assert_eq!(buckets("many")["buckets"][0], json!({"key": 1, "doc_count": 2}));
    assert_eq!(buckets("unmapped")["buckets"], json!([]));
    assert_eq!(buckets("_index")["buckets"], json!([{"key": "test", "doc_count": 4}]));
}

#[test]
fn terms_are_chosen_ordered_and_cut() {
    let node = numbers();
    let keys = |terms: Value| -> String {
        let found = aggregate(
            &node,
            "test",
            json!({"t": {"terms": terms, "aggs": {
            "m": {"max": {"field": "int"}}, "s": {"stats": {"field": "int"}},
            "f": {"filter": {"range": {"int": {"gte": 101}}}, "aggs": {"a": {"avg": {"field": "int"}}}}}}}),
        );
        let list = found["t"]["buckets"].as_array().expect("buckets").clone();
        let mut text: Vec<String> = list.iter().map(|b| format!("{}={}", b["key"], b["doc_count"])).collect();
        text.push(found["t"]["sum_other_doc_count"].to_string());
        text.join(" ").replace('"', "")
    };
    assert_eq!(keys(json!({"field": "str", "size": 1})), "abc=2 2");
    assert_eq!(keys(json!({"field": "str", "order": {"_key": "desc"}})), "bcd=2 abc=2 0");
    assert_eq!(keys(json!({"field": "str", "order": {"m": "desc"}})), "bcd=2 abc=2 0");
    assert_eq!(
        keys(json!({"field": "str", "order": [{"s.min": "asc"}, {"_count": "desc"}]})),
        "abc=2 bcd=2 0"
    );
    // What has no value comes last in both directions.
    for direction in ["asc", "desc"] {
        assert_eq!(keys(json!({"field": "str", "order": {"f>a": direction}})), "bcd=2 abc=2 0");
    }
    assert_eq!(keys(json!({"field": "str", "missing": "none"})), "abc=2 bcd=2 none=1 0");
    assert_eq!(keys(json!({"field": "str", "missing": "abc"})), "abc=3 bcd=2 0");
    assert_eq!(keys(json!({"field": "str", "min_doc_count": 3})), "0");
    assert_eq!(keys(json!({"field": "str", "include": "a.*"})), "abc=2 0");
    assert_eq!(keys(json!({"field": "str", "include": ["bcd", "x"], "exclude": "x"})), "bcd=2 0");
    assert_eq!(keys(json!({"field": "str", "include": {"partition": 0, "num_partitions": 2}})), "bcd=2 0");
    assert_eq!(keys(json!({"field": "int", "include": [51, "151"]})), "51=1 151=1 0");
    assert_eq!(keys(json!({"field": "date", "exclude": ["2016-05-03"]})), "1409529600000=1 0");
    assert_eq!(
        keys(json!({"field": "u", "value_type": "date", "missing": "2016-05-11"})),
        "1462924800000=4 0"
    );
    let some = node.search(
        "test",
        &json!({"size": 0, "query": {"term": {"int": 1}}, "aggs": {"t": {"terms": {"field": "str",
            "min_doc_count": 0}, "aggs": {"m": {"max": {"field": "int"}}}}}}),
    );
    assert_eq!(
        some["aggregations"]["t"]["buckets"],
        json!([{"key": "abc", "doc_count": 1, "m": {"value": 1.0}},
            {"key": "bcd", "doc_count": 0, "m": {"value": null}}])
    );
}

#[test]
fn ranges() {
    let node = numbers();
    let found = aggregate(
        &node,
        "test",
        json!({
        "r": {"range": {"field": "double", "ranges": [{"from": 50, "to": 150}, {"to": 50}, {"from": 150, "to": null}]}},
        "k": {"range": {"field": "int", "keyed": true, "ranges": [{"key": "few", "to": 51}, {"from": 51}]}},
        "d": {"date_range": {"field": "date", "format": "MM-yyyy", "ranges": [
            {"to": "01-2015"}, {"from": "01-2015"}]}},
        "u": {"date_range": {"field": "none", "ranges": [{"from": "2020-01-01T00:00:00Z"}]}}}),
    );
    assert_eq!(
        found["r"]["buckets"],
        json!([{"key": "*-50.0", "to": 50.0, "doc_count": 1},
            {"key": "50.0-150.0", "from": 50.0, "to": 150.0, "doc_count": 2},
            {"key": "150.0-*", "from": 150.0, "doc_count": 1}])
    );
    assert_eq!(
        found["k"]["buckets"],
        json!({"few": {"to": 51.0, "doc_count": 1}, "51.0-*": {"from": 51.0, "doc_count": 3}})
    );
    assert_eq!(
        found["d"]["buckets"],
        json!([{"key": "*-01-2015", "to": 1_420_070_400_000.0, "to_as_string": "01-2015", "doc_count": 1},
            {"key": "01-2015-*", "from": 1_420_070_400_000.0, "from_as_string": "01-2015", "doc_count": 2}])
    );
    assert_eq!(found["u"]["buckets"][0]["key"], "2020-01-01T00:00:00.000Z-*");
    assert_eq!(found["u"]["buckets"][0]["doc_count"], 0);
}

#[test]
fn histograms() {
    let node = numbers();
    let found = aggregate(
        &node,
        "test",
        json!({
        "h": {"histogram": {"field": "int", "interval": 100}},
        "o": {"histogram": {"field": "int", "interval": 50, "offset": 20, "keyed": true, "format": "0.0 'EUR'"}},
        "e": {"histogram": {"field": "int", "interval": 100, "extended_bounds": {"min": -100, "max": 250},
            "order": {"_count": "desc"}}},
        "b": {"histogram": {"field": "int", "interval": 50, "min_doc_count": 1, "hard_bounds": {"min": 50, "max": 100}}},
        "m": {"date_histogram": {"field": "date", "calendar_interval": "year", "format": "yyyy"}},
        "z": {"date_histogram": {"field": "date", "fixed_interval": "1d", "time_zone": "+02:00", "min_doc_count": 1,
            "missing": "2016-05-04"}}}),
    );
    assert_eq!(found["h"]["buckets"], json!([{"key": 0.0, "doc_count": 2}, {"key": 100.0, "doc_count": 2}]));
    assert_eq!(
        found["o"]["buckets"]["-30.0 EUR"],
        json!({"key_as_string": "-30.0 EUR", "key": -30.0, "doc_count": 1})
    );
    assert_eq!(
        found["e"]["buckets"],
        json!([{"key": 0.0, "doc_count": 2}, {"key": 100.0, "doc_count": 2}, {"key": -100.0, "doc_count": 0},
            {"key": 200.0, "doc_count": 0}])
    );
    assert_eq!(found["b"]["buckets"], json!([{"key": 50.0, "doc_count": 1}, {"key": 100.0, "doc_count": 1}]));
    assert_eq!(
        found["m"]["buckets"],
        json!([{"key_as_string": "2014", "key": 1_388_534_400_000_i64, "doc_count": 1},
            {"key_as_string": "2015", "key": 1_420_070_400_000_i64, "doc_count": 0},
            {"key_as_string": "2016", "key": 1_451_606_400_000_i64, "doc_count": 2}])
    );
    assert_eq!(found["z"]["buckets"][0]["key_as_string"], "2014-09-01T00:00:00.000+02:00");
    assert_eq!(
        found["z"]["buckets"][2],
        json!({"key_as_string": "2016-05-04T00:00:00.000+02:00",
        "key": 1_462_312_800_000_i64, "doc_count": 1})
    );
}

#[test]
fn metrics() {
    let node = numbers();
    let found = aggregate(
        &node,
        "test",
        json!({
        "avg": {"avg": {"field": "int"}}, "min": {"min": {"field": "date"}}, "max": {"max": {"field": "none"}},
        "sum": {"sum": {"field": "none"}}, "avg_none": {"avg": {"field": "none"}},
        "missing": {"avg": {"field": "weight", "missing": 11}}, "formatted": {"avg": {"field": "int", "format": "0.00"}},
        "count": {"value_count": {"field": "str"}}, "stats": {"stats": {"field": "many"}},
        "extended": {"extended_stats": {"field": "int", "sigma": 3}}, "none": {"stats": {"field": "none"}},
        "distinct": {"cardinality": {"field": "str"}}, "distinct_missing": {"cardinality": {"field": "x", "missing": "a"}},
        "p": {"percentiles": {"field": "int"}}, "pk": {"percentiles": {"field": "int", "percents": [25, 50], "keyed": false}},
        "hdr": {"percentiles": {"field": "int", "percents": [25, 50], "hdr": {}}},
        "ranks": {"percentile_ranks": {"field": "int", "values": [50, 200]}},
        "mad": {"median_absolute_deviation": {"field": "int"}},
        "weighted": {"weighted_avg": {"value": {"field": "many"}, "weight": {"field": "weight"}}}}),
    );
    assert_eq!(found["avg"], json!({"value": 76.0}));
    assert_eq!(
        found["min"],
        json!({"value": 1_409_529_600_000.0, "value_as_string": "2014-09-01T00:00:00.000Z"})
    );
    assert_eq!((&found["max"], &found["sum"]), (&json!({"value": null}), &json!({"value": 0.0})));
    assert_eq!((&found["avg_none"], &found["missing"]), (&json!({"value": null}), &json!({"value": 5.0})));
    assert_eq!(found["formatted"], json!({"value": 76.0, "value_as_string": "76.00"}));
    assert_eq!(found["count"], json!({"value": 4}));
    assert_eq!(found["stats"], json!({"count": 6, "min": 0.0, "max": 4.0, "avg": 11.0 / 6.0, "sum": 11.0}));
    assert_eq!(found["none"], json!({"count": 0, "min": null, "max": null, "avg": null, "sum": 0.0}));
    let extended = &found["extended"];
    assert_eq!(extended["sum_of_squares"], 35_604.0);
    assert_eq!(extended["variance"], 3125.0);
    assert_eq!(extended["variance_sampling"], 12_500.0 / 3.0);
    let upper = extended["std_deviation_bounds"]["upper"].as_f64().expect("a number");
    assert!((upper - (76.0 + 3.0 * 3125.0f64.sqrt())).abs() < 1e-9);
    assert_eq!(
        (&found["distinct"], &found["distinct_missing"]),
        (&json!({"value": 2}), &json!({"value": 1}))
    );
    assert_eq!(
        found["p"]["values"],
        json!({"1.0": 2.5, "5.0": 8.5, "25.0": 38.5, "50.0": 76.0, "75.0": 113.5, "95.0": 143.5, "99.0": 149.5})
    );
    assert_eq!(found["pk"]["values"], json!([{"key": 25.0, "value": 38.5}, {"key": 50.0, "value": 76.0}]));
    assert_eq!(found["hdr"]["values"]["25.0"], 1.0);
    assert!((found["hdr"]["values"]["50.0"].as_f64().expect("a number") - 51.0).abs() < 0.1);
    assert_eq!(found["ranks"]["values"], json!({"50.0": 25.0, "200.0": 100.0}));
    assert_eq!(found["mad"], json!({"value": 50.0}));
    assert_eq!(found["weighted"]["value"], 32.0 / 18.0);
}

#[test]
fn filters_missing_and_global() {
    let node = numbers();
    let answer = node.search(
        "test",
        &json!({"size": 0, "query": {"range": {"int": {"gte": 51}}}, "post_filter": {"term": {"int": 51}}, "aggs": {
            "f": {"filter": {"term": {"str": "bcd"}}, "meta": {"a": 1}, "aggs": {"a": {"avg": {"field": "int"}}}},
            "fs": {"filters": {"filters": {"b": {"term": {"str": "bcd"}}, "a": {"term": {"str": "abc"}}}}},
            "fo": {"filters": {"filters": [{"term": {"str": "abc"}}], "other_bucket": true}},
            "m": {"missing": {"field": "str"}},
            "g": {"global": {}, "aggs": {"n": {"value_count": {"field": "int"}}}}}}),
    );
    assert_eq!(answer["hits"]["total"]["value"], 1);
    let found = &answer["aggregations"];
    assert_eq!(found["f"], json!({"meta": {"a": 1}, "doc_count": 2, "a": {"value": 76.0}}));
    assert_eq!(found["fs"]["buckets"], json!({"a": {"doc_count": 1}, "b": {"doc_count": 2}}));
    assert_eq!(found["fo"]["buckets"], json!([{"doc_count": 1}, {"doc_count": 2}]));
    assert_eq!(found["m"], json!({"doc_count": 1}));
    assert_eq!(found["g"], json!({"doc_count": 4, "n": {"value": 4}}));
}

#[test]
fn composite_pages() {
    let node = Node::start();
    node.create(
        "test",
        &json!({"date": {"type": "date"}, "keyword": {"type": "keyword"}, "long": {"type": "long"}}),
    );
    node.load(
        "test",
        &[
            json!({"keyword": "foo", "long": [10, 20]}),
            json!({"keyword": ["foo", "bar"]}),
            json!({"keyword": "bar", "long": [100, 0]}),
            json!({"keyword": "bar", "long": [1000, 0]}),
            json!({"date": "2017-10-20T03:08:45"}),
            json!({"date": "2017-10-21T07:00:00"}),
        ],
    );
    let two = json!([{"long": {"terms": {"field": "long"}}}, {"kw": {"terms": {"field": "keyword"}}}]);
    let mut pages = Vec::new();
    let mut body = json!({"size": 2, "sources": two});
    loop {
        let found = aggregate(&node, "test", json!({"c": {"composite": body}}))["c"].clone();
        pages.extend(found["buckets"].as_array().expect("buckets").clone());
        if found["after_key"].is_null() {
            break;
        }
        body["after"] = found["after_key"].clone();
    }
    assert_eq!(
        pages,
        [
            json!({"key": {"long": 0, "kw": "bar"}, "doc_count": 2}),
            json!({"key": {"long": 10, "kw": "foo"}, "doc_count": 1}),
            json!({"key": {"long": 20, "kw": "foo"}, "doc_count": 1}),
            json!({"key": {"long": 100, "kw": "bar"}, "doc_count": 1}),
            json!({"key": {"long": 1000, "kw": "bar"}, "doc_count": 1}),
        ]
    );
    let histogram = |options: Value| {
        aggregate(&node, "test", json!({"c": {"composite": {"sources": [{"h": {"histogram": options}}]}}}))["c"]["buckets"]
            .as_array()
            .expect("buckets")
            .iter()
            .map(|bucket| format!("{}={}", bucket["key"]["h"], bucket["doc_count"]))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let base = json!({"field": "long", "interval": 50, "missing_bucket": true});
    assert_eq!(histogram(base.clone()), "null=3 0.0=3 100.0=1 1000.0=1");
    let mut desc = base;
    desc["order"] = json!("desc");
    assert_eq!(histogram(desc), "1000.0=1 100.0=1 0.0=3 null=3");
    let dates = aggregate(
        &node,
        "test",
        json!({"c": {"composite": {"after": {"date": "2017-10-20"}, "sources": [
        {"date": {"date_histogram": {"field": "date", "calendar_interval": "1d", "format": "yyyy-MM-dd"}}}]}}}),
    );
    assert_eq!(
        dates["c"],
        json!({"after_key": {"date": "2017-10-21"}, "buckets": [{"key": {"date": "2017-10-21"}, "doc_count": 1}]})
    );
}

#[test]
fn top_hits_show_the_best_of_each_bucket() {
    let node = numbers();
    let answer = node.search(
        "test",
        &json!({"size": 0, "query": {"match": {"title": "dog"}}, "aggs": {
        "t": {"terms": {"field": "flag"}, "aggs": {"top": {"top_hits": {"size": 1, "_source": ["int"]}}}},
        "all": {"top_hits": {"sort": [{"int": "desc"}], "size": 1, "version": true}}}}),
    );
    let found = &answer["aggregations"];
    let top = &found["t"]["buckets"][1]["top"]["hits"];
    assert_eq!(top["total"], json!({"value": 1, "relation": "eq"}));
    assert_eq!(top["hits"][0]["_source"], json!({"int": 101}));
    assert_eq!(top["hits"][0]["_score"], top["max_score"]);
    assert!(top["max_score"].as_f64().is_some_and(|score| score > 0.0));
    let all = &found["all"]["hits"];
    assert_eq!((&all["hits"][0]["_id"], &all["hits"][0]["sort"]), (&json!("3"), &json!([101])));
    assert_eq!((&all["max_score"], &all["hits"][0]["_version"]), (&Value::Null, &json!(1)));
}

#[test]
fn results_of_results() {
    let node = numbers();
    let found = aggregate(
        &node,
        "test",
        json!({
        "h": {"histogram": {"field": "int", "interval": 50}, "aggs": {
            "s": {"sum": {"field": "int"}},
            "total": {"cumulative_sum": {"buckets_path": "s"}},
            "change": {"derivative": {"buckets_path": "s"}}}},
        "t": {"terms": {"field": "int"}, "aggs": {"m": {"max": {"field": "int"}},
            "sorted": {"bucket_sort": {"sort": [{"m": "desc"}], "size": 2}}}},
        "best": {"max_bucket": {"buckets_path": "h>s"}},
        "mean": {"avg_bucket": {"buckets_path": "h>s"}},
        "stats": {"stats_bucket": {"buckets_path": "h._count"}}}),
    );
    assert_eq!(found["h"]["buckets"][3]["total"], json!({"value": 304.0}));
    assert_eq!(found["h"]["buckets"][1]["change"], json!({"value": 50.0}));
    assert_eq!(found["h"]["buckets"][0]["change"], Value::Null);
    let keys: Vec<&Value> =
        found["t"]["buckets"].as_array().expect("buckets").iter().map(|bucket| &bucket["key"]).collect();
    assert_eq!(keys, [&json!(151), &json!(101)]);
    assert_eq!(found["best"], json!({"value": 151.0, "keys": ["150.0"]}));
    assert_eq!(found["mean"], json!({"value": 76.0}));
    assert_eq!(found["stats"]["sum"], 4.0);
}

#[test]
fn several_indices_are_one() {
    let node = numbers();
    node.create("other", &json!({"int": {"type": "double"}, "str": {"type": "keyword"}}));
    node.load("other", &[json!({"int": 51.0, "str": "xyz"}), json!({"int": 0.5})]);
    node.create("empty", &json!({}));
    let found = aggregate(
        &node,
        "test,other,empty",
        json!({
        "n": {"terms": {"field": "int", "size": 2}}, "s": {"terms": {"field": "str"}},
        "i": {"terms": {"field": "_index"}}, "c": {"cardinality": {"field": "int"}},
        "h": {"top_hits": {"sort": [{"int": "asc"}], "size": 1}}}),
    );
    assert_eq!(found["n"]["buckets"], json!([{"key": 51.0, "doc_count": 2}, {"key": 0.5, "doc_count": 1}]));
    assert_eq!(found["n"]["sum_other_doc_count"], 3);
    assert_eq!(found["s"]["buckets"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        found["i"]["buckets"],
        json!([{"key": "test", "doc_count": 4}, {"key": "other", "doc_count": 2}])
    );
    assert_eq!(found["c"], json!({"value": 5}));
    assert_eq!(found["h"]["hits"]["hits"][0]["_index"], "other");
    node.create("odd", &json!({"str": {"type": "long"}}));
    let error = refused(&node, "test,odd", json!({"s": {"terms": {"field": "str"}}}));
    assert!(error.contains("two different types in two different indices"), "{error}");
}

#[test]
fn keys_can_have_types() {
    let node = numbers();
    let body = json!({"size": 0, "aggs": {
        "s": {"terms": {"field": "str"}, "aggs": {"a": {"avg": {"field": "int"}}}}, "l": {"terms": {"field": "int"}},
        "d": {"terms": {"field": "double"}}, "u": {"terms": {"field": "none"}},
        "p": {"percentiles": {"field": "int"}}, "r": {"date_range": {"field": "date", "ranges": [{}]}}}});
    let answer = node.ok("search", &[("index", "test")], &[("typed_keys", "true")], &body);
    let names: Vec<&str> =
        answer["aggregations"].as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["sterms#s", "lterms#l", "dterms#d", "sterms#u", "tdigest_percentiles#p", "date_range#r"]
    );
    assert_eq!(answer["aggregations"]["sterms#s"]["buckets"][0]["avg#a"], json!({"value": 26.0}));
}

#[test]
fn what_does_not_work_is_named() {
    let node = numbers();
    for (aggs, expected) in [
        (
            json!({"a": {"avrg": {"field": "int"}}}),
            "400 parsing_exception: Unknown aggregation type [avrg] did you mean [avg]?",
        ),
        (
            json!({"a": {"avg": 1}}),
            "400 parsing_exception: Expected [START_OBJECT] under [avg], but got a [VALUE_NUMBER] in [a]",
        ),
        (
            json!({"a": {"meta": null, "avg": {}}}),
            "400 parsing_exception: Expected [START_OBJECT] under [meta], but got a [VALUE_NULL] in [a]",
        ),
        (
            json!({"a[": {}}),
            "400 parsing_exception: Invalid aggregation name [a[]. Aggregation names can contain any character except '[', ']', and '>'",
        ),
        (
            json!({"a": {"avg": {"field": "int"}, "sum": {"field": "int"}}}),
            "400 parsing_exception: Found two aggregation type definitions in [a]: [avg] and [sum]",
        ),
        (json!({"a": {}}), "400 parsing_exception: Missing definition for aggregation [a]"),
        (
            json!({"a": {"avg": {"field": "int"}, "aggs": {"b": {"avg": {"field": "int"}}}}}),
            "400 aggregation_initialization_exception: Aggregator [a] of type [avg] cannot accept sub-aggregations",
        ),
        (
            json!({"a": {"avg": {"field": "str"}}}),
            "400 illegal_argument_exception: Field [str] of type [keyword] is not supported for aggregation [avg]",
        ),
        (
            json!({"a": {"terms": {"field": "v"}}}),
            "400 illegal_argument_exception: Field [v] of type [sparse_vector] is not supported for aggregation [terms]",
        ),
        (
            json!({"a": {"terms": {"field": "str", "size": 0}}}),
            "400 illegal_argument_exception: [size] must be greater than 0. Found [0] in [a]",
        ),
        (
            json!({"a": {"terms": {}}}),
            "400 illegal_argument_exception: Required one of fields [field, script], but none were specified. ",
        ),
        (
            json!({"a": {"terms": {"field": "int", "include": "a.*"}}}),
            "400 illegal_argument_exception: Aggregation [a] cannot support regular expression style include/exclude settings as they can only be applied to string fields. Use an array of numeric values for include/exclude clauses used to filter numeric fields",
        ),
        (
            json!({"a": {"histogram": {"field": "int", "interval": 0}}}),
            "400 illegal_argument_exception: [interval] must be >0 for histogram aggregation",
        ),
        (
            json!({"a": {"histogram": {"field": "int", "interval": 0.000_01}}}),
            "400 too_many_buckets_exception: Trying to create too many buckets. Must be less than or equal to: [65536] but this number of buckets was exceeded. This limit can be set by changing the [search.max_buckets] cluster level setting.",
        ),
        (
            json!({"a": {"composite": {"sources": []}}}),
            "400 illegal_argument_exception: Composite [sources] cannot be null or empty",
        ),
        (json!({"a": {"composite": {"size": 1}}}), "400 illegal_argument_exception: Required [sources]"),
        (
            json!({"a": {"children": {"type": "x"}}}),
            "400 parsing_exception: [children] aggregation [a] is not supported by this server",
        ),
        (
            json!({"a": {"filters": {"filters": []}}}),
            "400 illegal_argument_exception: [filters] cannot be empty",
        ),
        (
            json!({"a": {"percentiles": {"field": "int", "tdigest": {"compression": -1}}}}),
            "400 illegal_argument_exception: [compression] must be greater than or equal to 0. Found [-1.0]",
        ),
        (
            json!({"a": {"cardinality": {"field": "int", "precision_threshold": -1}}}),
            "400 illegal_argument_exception: [precisionThreshold] must be greater than or equal to 0. Found [-1] in [a]",
        ),
        (
            json!({"a": {"terms": {"field": "str", "order": {"b": "asc"}}}}),
            "400 aggregation_execution_exception: Invalid aggregation order path [b]. The provided aggregation [b] either does not exist, or is a pipeline aggregation and cannot be used to sort the buckets.",
        ),
        (
            json!({"a": {"terms": {"field": "str"}, "aggs": {"g": {"global": {}}}}}),
            "400 aggregation_execution_exception: Aggregation [a] cannot have a global sub-aggregation [g]. Global aggregations can only be defined as top level aggregations",
        ),
    ] {
        assert_eq!(refused(&node, "test", aggs.clone()), expected, "{aggs}");
    }
    let text = refused(&node, "test", json!({"a": {"terms": {"field": "title"}}}));
    assert!(
        text.starts_with(
            "400 illegal_argument_exception: Fielddata is disabled on [title] in [test]. Text fields"
        ),
        "{text}"
    );
    let unknown = refused(&node, "test", json!({"a": {"terms": {"field": "str", "sizes": 1}}}));
    assert!(unknown.ends_with("[terms] unknown field [sizes] did you mean [size]?"), "{unknown}");
    let interval =
        refused(&node, "test", json!({"a": {"date_histogram": {"field": "date", "interval": "day"}}}));
    assert!(interval.contains("[date_histogram] unknown field [interval]"), "{interval}");
    let mut deep = json!({"x": {"avg": {"field": "int"}}});
    for _ in 0..40 {
        deep = json!({"x": {"filter": {"match_all": {}}, "aggs": deep}});
    }
    assert!(refused(&node, "test", deep).contains("nested deeper than"));
}
