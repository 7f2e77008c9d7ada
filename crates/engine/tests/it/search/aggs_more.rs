//! Metric, paired and comparing aggregations, time zones, and what a search's limits mean to its aggregations.

use serde_json::{Value, json};

use super::common::Node;

fn aggregate(node: &Node, index: &str, aggs: Value) -> Value {
    node.search(index, &json!({"size": 0, "aggs": aggs}))["aggregations"].clone()
}

/// Type and reason of the first root cause of a search that fails.
fn refused(node: &Node, body: &Value) -> String {
    let body = node.search_error("test", body);
    let root = &body["error"]["root_cause"][0];
    let cause = &body["error"]["caused_by"];
    let shown = if root.is_null() { cause } else { root };
    format!("{} {} {cause}", shown["type"].as_str().unwrap_or("?"), shown["reason"].as_str().unwrap_or("?"))
}

fn sales() -> Node {
    let node = Node::start();
    node.create(
        "test",
        &json!({"kind": {"type": "keyword"}, "shop": {"type": "keyword"}, "n": {"type": "integer"},
            "price": {"type": "double"}, "at": {"type": "date"}, "ok": {"type": "boolean"}, "text": {"type": "text"}}),
    );
    node.load(
        "test",
        &[
            json!({"kind": "rock", "shop": "a", "n": 1, "price": 2.0, "at": "2024-01-05", "ok": true, "text": "one fish"}),
            json!({"kind": "rock", "shop": "b", "n": 2, "price": 3.0, "at": "2024-02-05", "ok": false, "text": "two fish"}),
            json!({"kind": "jazz", "shop": "a", "n": 3, "price": 5.0, "at": "2024-02-15", "ok": true, "text": "red fish"}),
            json!({"kind": "rock", "shop": "a", "n": 4, "price": 10.0, "at": "2024-03-05", "ok": true, "text": "blue"}),
            json!({"kind": "electronic", "n": 5, "price": 15.0, "at": "2024-03-06", "text": "old"}),
        ],
    );
    node
}

#[test]
fn zones_follow_summer_time() {
    let node = Node::start();
    node.create("test", &json!({"at": {"type": "date"}}));
    let times =
        ["2024-03-30T22:30:00Z", "2024-03-30T23:30:00Z", "2024-03-31T21:30:00Z", "2024-03-31T22:30:00Z"];
    node.load("test", &times.map(|at| json!({"at": at})));
    let berlin = json!({"field": "at", "calendar_interval": "day", "time_zone": "Europe/Berlin"});
    let days = aggregate(&node, "test", json!({"d": {"date_histogram": berlin}}));
    let shown = |day: &Value| (day["key_as_string"].clone(), day["key"].clone(), day["doc_count"].clone());
    let days: Vec<_> = days["d"]["buckets"].as_array().unwrap().iter().map(shown).collect();
    assert_eq!(
        days,
        [
            (json!("2024-03-30T00:00:00.000+01:00"), json!(1_711_753_200_000_i64), json!(1)),
            // A day of 23 hours.
            (json!("2024-03-31T00:00:00.000+01:00"), json!(1_711_839_600_000_i64), json!(2)),
            (json!("2024-04-01T00:00:00.000+02:00"), json!(1_711_922_400_000_i64), json!(1)),
        ]
    );
    let bounded = json!({"field": "at", "calendar_interval": "day", "time_zone": "Europe/Berlin", "keyed": true,
        "format": "yyyy-MM-dd", "extended_bounds": {"min": "2024-03-29", "max": "2024-04-02"},
        "hard_bounds": {"min": "2024-03-29", "max": "2024-04-03"}});
    let days = aggregate(&node, "test", json!({"d": {"date_histogram": bounded}}));
    let names: Vec<&String> = days["d"]["buckets"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["2024-03-29", "2024-03-30", "2024-03-31", "2024-04-01", "2024-04-02"]);
    let found = aggregate(
        &node,
        "test",
        json!({
            "r": {"date_range": {"field": "at", "time_zone": "Europe/Berlin", "format": "yyyy-MM-dd",
                "ranges": [{"from": "2024-03-31", "to": "2024-04-01"}]}},
            "c": {"composite": {"sources": [{"d": {"date_histogram": {"field": "at", "calendar_interval": "day",
                "time_zone": "Europe/Berlin", "format": "yyyy-MM-dd"}}}]}}}),
    );
    assert_eq!(found["r"]["buckets"][0]["doc_count"], 2);
    assert_eq!(found["c"]["buckets"][1], json!({"key": {"d": "2024-03-31"}, "doc_count": 2}));
    let range =
        json!({"range": {"at": {"gte": "2024-03-31", "lt": "2024-04-01", "time_zone": "Europe/Berlin"}}});
    assert_eq!(node.ids("test", &range), ["2", "3"]);
    let rounded = json!({"range": {"at": {"gte": "2024-03-31T12:00||/d", "lte": "2024-03-31T12:00||/d", "time_zone": "Europe/Berlin"}}});
    assert_eq!(node.ids("test", &rounded), ["2", "3"]);
    let text =
        json!({"query_string": {"query": "at:[2024-03-31 TO 2024-03-31]", "time_zone": "Europe/Berlin"}});
    assert_eq!(node.ids("test", &text), ["2", "3"]);
    let unknown = json!({"query": {"range": {"at": {"gte": "now", "time_zone": "Mars/Olympus"}}}});
    assert!(
        refused(&node, &unknown).contains("Unknown time-zone ID: Mars/Olympus"),
        "{}",
        refused(&node, &unknown)
    );
    let unknown = json!({"aggs": {"d": {"date_histogram": {"field": "at", "fixed_interval": "1h", "time_zone": "europe/berlin"}}}});
    assert!(
        refused(&node, &unknown).contains("Unknown time-zone ID: europe/berlin"),
        "{}",
        refused(&node, &unknown)
    );
}

#[test]
fn tuples_pairs_and_rare_values_have_buckets() {
    let node = sales();
    let found = aggregate(
        &node,
        "test",
        json!({
            "tuples": {"multi_terms": {"terms": [{"field": "kind"}, {"field": "ok", "missing": false}]},
                "aggs": {"s": {"sum": {"field": "n"}}}},
            "first": {"multi_terms": {"terms": [{"field": "kind"}, {"field": "shop"}], "size": 1, "order": {"s": "desc"}},
                "aggs": {"s": {"sum": {"field": "n"}}}},
            "rare": {"rare_terms": {"field": "kind"}},
            "rarer": {"rare_terms": {"field": "kind", "max_doc_count": 3, "exclude": ["jazz"]}},
            "pairs": {"adjacency_matrix": {"filters": {
                "b": {"term": {"shop": "a"}}, "a": {"term": {"kind": "rock"}}, "none": {"term": {"kind": "x"}}}},
                "aggs": {"s": {"sum": {"field": "n"}}}},
        }),
    );
    assert_eq!(
        found["tuples"],
        json!({"doc_count_error_upper_bound": 0, "sum_other_doc_count": 0, "buckets": [
            {"key": ["rock", "true"], "key_as_string": "rock|true", "doc_count": 2, "s": {"value": 5.0}},
            {"key": ["electronic", "false"], "key_as_string": "electronic|false", "doc_count": 1, "s": {"value": 5.0}},
            {"key": ["jazz", "true"], "key_as_string": "jazz|true", "doc_count": 1, "s": {"value": 3.0}},
            {"key": ["rock", "false"], "key_as_string": "rock|false", "doc_count": 1, "s": {"value": 2.0}}]})
    );
    assert_eq!(found["first"]["sum_other_doc_count"], 2);
    assert_eq!(found["first"]["buckets"][0]["key"], json!(["rock", "a"]));
    assert_eq!(
        found["rare"],
        json!({"buckets": [{"key": "electronic", "doc_count": 1}, {"key": "jazz", "doc_count": 1}]})
    );
    assert_eq!(
        found["rarer"]["buckets"],
        json!([{"key": "electronic", "doc_count": 1}, {"key": "rock", "doc_count": 3}])
    );
    assert_eq!(
        found["pairs"]["buckets"],
        json!([{"key": "a", "doc_count": 3, "s": {"value": 7.0}}, {"key": "a&b", "doc_count": 2, "s": {"value": 5.0}},
            {"key": "b", "doc_count": 3, "s": {"value": 8.0}}])
    );
    for (aggregation, reason) in [
        (json!({"multi_terms": {"terms": [{"field": "kind"}]}}), "must contain at least 2 fields"),
        (json!({"multi_terms": {}}), "Required [terms]"),
        (
            json!({"rare_terms": {"field": "kind", "max_doc_count": 101}}),
            "[max_doc_count] must be smaller than 100",
        ),
        (json!({"adjacency_matrix": {"filters": {}}}), "is missing : filters parameter"),
        (json!({"adjacency_matrix": {"filter": {}}}), "[adjacency_matrix] unknown field [filter]"),
    ] {
        let found = refused(&node, &json!({"aggs": {"x": aggregation}}));
        assert!(found.contains(reason), "{found} is not {reason}");
    }
}

#[test]
fn distributions_texts_and_best_values_are_summed_up() {
    let node = sales();
    let found = aggregate(
        &node,
        "test",
        json!({
            "box": {"boxplot": {"field": "price"}},
            "text": {"string_stats": {"field": "shop", "show_distribution": true}},
            "none": {"string_stats": {"field": "nowhere"}},
            "best": {"top_metrics": {"metrics": [{"field": "price"}, {"field": "at"}, {"field": "kind"}],
                "sort": {"n": "desc"}, "size": 2}},
            "kinds": {"terms": {"field": "kind", "order": {"best.price": "desc"}},
                "aggs": {"best": {"top_metrics": {"metrics": {"field": "price"}, "sort": {"at": "asc"}}}}},
        }),
    );
    let values =
        ["min", "max", "q1", "q2", "q3", "lower", "upper"].map(|name| found["box"][name].as_f64().unwrap());
    assert_eq!(values, [2.0, 15.0, 3.0, 5.0, 10.0, 2.0, 15.0]);
    assert_eq!(found["text"]["count"], 4);
    assert_eq!(found["text"]["avg_length"], 1.0);
    assert!((found["text"]["entropy"].as_f64().unwrap() - 0.811_278_124).abs() < 1e-6);
    assert_eq!(found["text"]["distribution"], json!({"a": 0.75, "b": 0.25}));
    assert_eq!(
        found["none"],
        json!({"count": 0, "min_length": null, "max_length": null, "avg_length": null, "entropy": 0.0})
    );
    assert_eq!(
        found["best"],
        json!({"top": [
            {"sort": [5], "metrics": {"price": 15.0, "at": "2024-03-06T00:00:00.000Z", "kind": "electronic"}},
            {"sort": [4], "metrics": {"price": 10.0, "at": "2024-03-05T00:00:00.000Z", "kind": "rock"}}]})
    );
    let kinds: Vec<&Value> =
        found["kinds"]["buckets"].as_array().unwrap().iter().map(|b| &b["key"]).collect();
    assert_eq!(kinds, ["electronic", "jazz", "rock"]);
    assert_eq!(
        found["kinds"]["buckets"][2]["best"],
        json!({"top": [{"sort": ["2024-01-05T00:00:00.000Z"], "metrics": {"price": 2.0}}]})
    );
    for (aggregation, reason) in [
        (json!({"boxplot": {"field": "kind"}}), "is not supported for aggregation [boxplot]"),
        (json!({"string_stats": {"field": "n"}}), "is not supported for aggregation [string_stats]"),
        (json!({"top_metrics": {"metrics": {"field": "n"}}}), "Required [sort]"),
        (json!({"top_metrics": {"sort": "n"}}), "Required [metrics]"),
        (
            json!({"top_metrics": {"sort": "n", "metrics": {"field": "n"}, "size": 11}}),
            "[top_metrics.size] must not be more than [10]",
        ),
    ] {
        let found = refused(&node, &json!({"aggs": {"x": aggregation}}));
        assert!(found.contains(reason), "{found} is not {reason}");
    }
}

#[test]
fn results_are_compared_with_each_other() {
    let node = sales();
    let found = aggregate(
        &node,
        "test",
        json!({
            "months": {"date_histogram": {"field": "at", "calendar_interval": "month"}, "aggs": {
                "s": {"sum": {"field": "price"}},
                "change": {"serial_diff": {"buckets_path": "s", "lag": 2}},
                "share": {"normalize": {"buckets_path": "s", "method": "percent_of_sum", "format": "00.00%"}},
                "scaled": {"normalize": {"buckets_path": "s", "method": "rescale_0_1"}}}},
            "middle": {"percentiles_bucket": {"buckets_path": "months>s", "percents": [25, 50, 75]}},
            "spread": {"extended_stats_bucket": {"buckets_path": "months>s"}},
        }),
    );
    let months = found["months"]["buckets"].as_array().unwrap();
    assert!(months[0]["change"].is_null() && months[1]["change"].is_null());
    assert_eq!(months[2]["change"], json!({"value": 23.0}));
    assert_eq!(months[1]["scaled"]["value"], 6.0 / 23.0);
    assert_eq!(months[2]["share"]["value"], 25.0 / 35.0);
    assert_eq!(found["middle"], json!({"values": {"25.0": 8.0, "50.0": 8.0, "75.0": 25.0}}));
    assert_eq!(found["spread"]["sum_of_squares"], 693.0);
    assert!(found["spread"]["std_deviation_bounds"]["upper"].is_number());
    let months = json!({"terms": {"field": "kind"}, "aggs": {
        "p": {"percentiles": {"field": "n"}}, "t": {"terms": {"field": "n"}, "aggs": {"m": {"max": {"field": "n"}}}}}});
    for (path, reason) in [
        ("k>p", "but [p] contains multiple values. Please specify which to use."),
        ("k>t", "got: [LongTerms] at aggregation [t]"),
        ("k>t>m", "got: [Object[]] at aggregation [t]"),
        ("k>x", "No aggregation [x] found for path [k>x]"),
    ] {
        let found =
            refused(&node, &json!({"aggs": {"k": months, "b": {"max_bucket": {"buckets_path": path}}}}));
        assert!(found.contains(reason), "{found} is not {reason}");
    }
    for (aggregation, reason) in [
        (json!({"normalize": {"buckets_path": "s"}}), "Required [method]"),
        (json!({"normalize": {"buckets_path": "s", "method": "x"}}), "invalid method [x]"),
        (json!({"serial_diff": {"buckets_path": "s", "lag": 0}}), "Lag must be a positive, non-zero integer"),
    ] {
        let aggs = json!({"h": {"histogram": {"field": "n", "interval": 1}, "aggs": {"x": aggregation}}});
        let found = refused(&node, &json!({"aggs": aggs}));
        assert!(found.contains(reason), "{found} is not {reason}");
    }
}

#[test]
fn top_hits_show_what_searches_show() {
    let node = sales();
    let top = json!({"size": 1, "sort": [{"n": "asc"}], "_source": ["kind"], "version": true, "seq_no_primary_term": true,
        "fields": ["at", {"field": "n"}], "docvalue_fields": [{"field": "price"}], "explain": true, "track_scores": true,
        "highlight": {"fields": {"text": {}}}});
    let body = json!({"size": 0, "query": {"match": {"text": "fish"}},
        "aggs": {"kinds": {"terms": {"field": "kind"}, "aggs": {"top": {"top_hits": top}}}}});
    let found = node.search("test", &body);
    let hit = &found["aggregations"]["kinds"]["buckets"][0]["top"]["hits"]["hits"][0];
    assert_eq!(hit["_id"], "1");
    assert_eq!(hit["_source"], json!({"kind": "rock"}));
    assert_eq!((&hit["_version"], &hit["_seq_no"], &hit["_primary_term"]), (&json!(1), &json!(0), &json!(1)));
    assert_eq!(hit["fields"], json!({"at": ["2024-01-05T00:00:00.000Z"], "n": [1], "price": [2.0]}));
    assert_eq!(hit["highlight"], json!({"text": ["one <em>fish</em>"]}));
    assert_eq!(hit["_explanation"]["value"], hit["_score"]);
    assert!(hit["_score"].as_f64().unwrap() > 0.0);
    assert_eq!(hit["sort"], json!([1]));
    let bare = json!({"aggs": {"top": {"top_hits": {"size": 1, "stored_fields": "_none_"}}}});
    let bare = node.search("test", &bare)["aggregations"]["top"]["hits"]["hits"][0].clone();
    assert!(bare.get("_source").is_none() && bare.get("_id").is_none(), "{bare}");
    for (top, reason) in [
        (
            json!({"size": 101}),
            "Top hits result window is too large, the top hits aggregator [top]'s from + size",
        ),
        (
            json!({"script_fields": {}}),
            "[script_fields] of the [top_hits] aggregation [top] is not supported",
        ),
        (json!({"fields": 3}), "Unknown key for a VALUE_NUMBER in [fields]"),
    ] {
        let found = refused(&node, &json!({"aggs": {"top": {"top_hits": top}}}));
        assert!(found.contains(reason), "{found} is not {reason}");
    }
}

#[test]
fn what_limits_a_search_limits_its_aggregations() {
    let node = sales();
    let count = json!({"n": {"value_count": {"field": "n"}}, "all": {"global": {}}});
    let value = |body: Value| {
        let found = node.search("test", &body)["aggregations"].clone();
        assert_eq!(found["all"]["doc_count"], 5);
        found["n"]["value"].clone()
    };
    assert_eq!(value(json!({"terminate_after": 2, "aggs": count})), 2);
    assert_eq!(value(json!({"post_filter": {"term": {"kind": "rock"}}, "aggs": count})), 5);
    assert_eq!(value(json!({"collapse": {"field": "kind"}, "aggs": count})), 5);
    assert_eq!(value(json!({"size": 1, "from": 1, "aggs": count})), 5);
    let scored = json!({"function_score": {"field_value_factor": {"field": "n"}, "boost_mode": "replace"}});
    assert_eq!(value(json!({"query": scored, "min_score": 3, "aggs": count})), 3);
    assert_eq!(value(json!({"query": scored, "min_score": 3, "terminate_after": 1, "aggs": count})), 1);
    assert_eq!(value(json!({"timeout": "10s", "aggs": count})), 5);
    let pit =
        node.ok("open_point_in_time", &[("index", "test")], &[("keep_alive", "1m")], &Value::Null)["id"]
            .clone();
    let mut sum = 0;
    for id in 0..2 {
        let body = json!({"pit": {"id": pit}, "slice": {"id": id, "max": 2}, "aggs": count});
        let found: Value = serde_json::from_slice(
            &node
                .run("search", &[], &[], body.to_string().as_bytes())
                .unwrap_or_else(|e| panic!("{}", e.body()))
                .body,
        )
        .unwrap();
        assert_eq!(found["aggregations"]["n"]["value"], found["hits"]["total"]["value"]);
        sum += found["aggregations"]["n"]["value"].as_u64().unwrap();
    }
    assert_eq!(sum, 5);
}

#[test]
fn bounds_of_searches_are_settings() {
    let node = sales();
    let settings = json!({"index": {"max_result_window": 20, "max_inner_result_window": 2, "max_rescore_window": 5,
        "max_docvalue_fields_search": 1, "max_slices_per_scroll": 3, "max_slices_per_pit": 2, "max_terms_count": 2,
        "max_regex_length": 4}});
    node.ok("put_settings", &[("index", "test")], &[], &settings);
    let inner = json!({"name": "i", "size": 3});
    for (body, reason) in [
        (
            json!({"size": 21}),
            "Result window is too large, from + size must be less than or equal to: [20] but was [21]",
        ),
        (
            json!({"collapse": {"field": "kind", "inner_hits": inner}}),
            "must be less than or equal to: [2] but was [3]",
        ),
        (json!({"aggs": {"t": {"top_hits": {"size": 3}}}}), "must be less than or equal to: [2] but was [3]"),
        (
            json!({"rescore": {"window_size": 6, "query": {"rescore_query": {"match_all": {}}}}}),
            "Rescore window [6] is too large. It must be less than [5]",
        ),
        (json!({"docvalue_fields": ["n", "kind"]}), "Must be less than or equal to: [1] but was [2]"),
        (
            json!({"query": {"terms": {"n": [1, 2, 3]}}}),
            "The number of terms [3] used in the Terms Query request has exceeded the allowed maximum of [2]",
        ),
        (
            json!({"query": {"bool": {"filter": {"regexp": {"kind": "r.*ck"}}}}}),
            "The length of regex [5] used in the Regexp Query request has exceeded the allowed maximum of [4]",
        ),
    ] {
        let found = refused(&node, &body);
        assert!(found.contains(reason), "{found} is not {reason}");
    }
    let sliced = json!({"slice": {"id": 0, "max": 4}}).to_string();
    let error = node.run("search", &[("index", "test")], &[("scroll", "1m")], sliced.as_bytes()).unwrap_err();
    assert!(
        error.body().to_string().contains("The number of slices [4] is too large. It must be less than [3]")
    );
    for (setting, text) in
        [("max_terms_count", "65537"), ("max_regex_length", "0"), ("max_rescore_window", "x")]
    {
        let body = json!({"index": {setting: text}}).to_string();
        let error = node.run("put_settings", &[("index", "test")], &[], body.as_bytes()).unwrap_err();
        assert!(
            error
                .body()
                .to_string()
                .contains(&format!("Failed to parse value [{text}] for setting [index.{setting}]"))
        );
    }
}

#[test]
fn terms_are_looked_up_through_an_alias() {
    let node = sales();
    node.ok("put_alias", &[("index", "test"), ("name", "one")], &[], &Value::Null);
    let lookup = json!({"terms": {"kind": {"index": "one", "id": "3", "path": "kind"}}});
    assert_eq!(node.ids("test", &lookup), ["3"]);
    node.create("other", &json!({}));
    node.ok("put_alias", &[("index", "other"), ("name", "one")], &[], &Value::Null);
    let found = node.search_error("test", &json!({"query": lookup}));
    assert!(found.to_string().contains("alias [one] has more than one index associated with it"), "{found}");
}

/// Aggregations count the documents that any list of the fusion matches, not only those of the rank window.
#[test]
fn fused_lists_are_aggregated() {
    let node = sales();
    let list = |kind: &str| json!({"standard": {"query": {"term": {"kind": kind}}}});
    let aggs = json!({"n": {"value_count": {"field": "n"}}});
    let count = |retriever: Value, size: u32| {
        let body = json!({"retriever": retriever, "size": size, "aggs": aggs});
        node.search("test", &body)["aggregations"]["n"]["value"].clone()
    };
    let lists = json!([list("rock"), list("jazz")]);
    assert_eq!(count(json!({"rrf": {"retrievers": lists, "rank_window_size": 1}}), 1), 4);
    assert_eq!(
        count(
            json!({"linear": {"retrievers": [{"retriever": list("rock")}, {"retriever": list("jazz")}]}}),
            2
        ),
        4
    );
    let filtered = json!({"rrf": {"retrievers": lists, "filter": {"term": {"shop": "a"}}}});
    assert_eq!(count(filtered, 2), 3);
    let ranked = json!({"sub_searches": [{"query": {"term": {"kind": "rock"}}}, {"query": {"term": {"kind": "electronic"}}}],
        "rank": {"rrf": {}}, "size": 1, "post_filter": {"term": {"shop": "b"}}, "aggs": aggs});
    assert_eq!(node.search("test", &ranked)["aggregations"]["n"]["value"], 4);
}
