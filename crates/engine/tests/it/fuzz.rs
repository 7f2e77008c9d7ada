//! Malformed requests for the engine's parsers: queries, Lucene syntaxes, date math, bulk, analyzers, mappings and pipelines answer
//! with an error or a result, never with a panic or a 5xx error. So do damaged snapshots.

use serde_json::{Value, json};
use sparrow_engine::{CancelFlag, Request};
use sparrow_fuzzing::{Campaign, Random, mutated, mutated_json};

use crate::common::Node;
use crate::repositories::Repository;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

fn world() -> Node {
    let node = Node::start();
    let properties = json!({
        "t": {"type": "text"}, "k": {"type": "keyword"}, "n": {"type": "integer"}, "d": {"type": "date"},
        "ip": {"type": "ip"}, "v": {"type": "sparse_vector"}, "e": {"type": "dense_vector", "dims": 3},
        "o": {"type": "object"},
    });
    node.ok("create_index", "index=i", "", &json!({"mappings": {"properties": properties}}).to_string());
    let lines: String = (0..20)
        .map(|n| {
            let tag = ["a", "b", "c"][n % 3];
            let vector = [0.1, 0.2, n as f32 + 0.5];
            let document = json!({
                "t": format!("quick brown fox {n}"), "k": tag, "n": n,
                "d": format!("2020-0{}-01", 1 + n % 9), "ip": "10.0.0.1", "v": {"fox": 1.5, "dog": 0.5},
                "e": vector, "o": [{"a": n}],
            });
            format!("{{\"index\":{{\"_id\":\"{n}\"}}}}\n{document}\n")
        })
        .collect();
    node.ok("bulk", "index=i", "refresh=true", &lines);
    node
}

/// Runs a request; panics if the answer is a 5xx error, so that the fuzzer reports it as it does any panic.
fn carry_out(node: &Node, op: &str, index: &str, body: &[u8]) {
    let mut request = Request { op: op.to_owned(), ..Request::default() };
    if !index.is_empty() {
        request.path.insert("index".to_owned(), index.to_owned());
    }
    if let Err(error) = node.engine.execute(&request, body, &CancelFlag::default()) {
        assert!(error.status() < 500, "{}: {}", error.status(), error.reason());
        // What is said of it is JSON, whatever it repeats.
        assert!(!error.body().to_string().is_empty());
    }
}

fn queries() -> Vec<Value> {
    let term = json!({"term": {"k": "a"}});
    let text = json!({"match": {"t": {"query": "brown fox", "operator": "and", "fuzziness": "AUTO", "minimum_should_match": "75%"}}});
    vec![
        term.clone(),
        text.clone(),
        json!({"bool": {"must": [text], "filter": [term], "should": [{"match_all": {"boost": 2}}], "must_not": [{"exists": {"field": "x"}}], "minimum_should_match": 1}}),
        json!({"range": {"d": {"gte": "now-1d/d", "lt": "2030-01-01||+1M/d", "format": "strict_date||epoch_millis", "time_zone": "+01:00"}}}),
        json!({"range": {"n": {"gt": 1, "lte": 5, "boost": 2}}}),
        json!({"regexp": {"k": {"value": "a[b-d]{1,3}(e|f)?<1-20>", "flags": "ALL", "max_determinized_states": 1000}}}),
        json!({"wildcard": {"k": {"value": "a*b?c", "case_insensitive": true}}}),
        json!({"fuzzy": {"k": {"value": "abc", "fuzziness": 2, "prefix_length": 1, "max_expansions": 50}}}),
        json!({"intervals": {"t": {"all_of": {"ordered": true, "max_gaps": 3, "intervals": [{"match": {"query": "quick"}}, {"prefix": {"prefix": "br"}}]}}}}),
        json!({"function_score": {"query": text, "functions": [{"filter": term, "weight": 3}, {"gauss": {"n": {"origin": 1, "scale": 2, "decay": 0.3}}}, {"field_value_factor": {"field": "n", "modifier": "log1p", "missing": 1}}], "score_mode": "sum"}}),
        json!({"sparse_vector": {"field": "v", "query_vector": {"fox": 1.5}, "prune": true}}),
        json!({"knn": {"field": "e", "query_vector": [0.1, 0.2, 0.3], "k": 3, "num_candidates": 10}}),
        json!({"multi_match": {"query": "brown fox", "fields": ["t^3", "k"], "type": "cross_fields", "tie_breaker": 0.3}}),
        json!({"more_like_this": {"fields": ["t"], "like": ["a fox", {"_index": "i", "_id": "1"}], "min_term_freq": 1, "min_doc_freq": 1}}),
        json!({"match_phrase": {"t": {"query": "quick brown", "slop": 2}}}),
        json!({"terms": {"k": {"index": "i", "id": "1", "path": "k"}}}),
        json!({"dis_max": {"queries": [term, text], "tie_breaker": 0.7}}),
        json!({"rank_feature": {"field": "v.fox", "saturation": {"pivot": 8}}}),
        json!({"nested": {"path": "o", "query": {"term": {"o.a": 1}}, "score_mode": "avg"}}),
        json!({"terms_set": {"k": {"terms": ["a", "b"], "minimum_should_match_field": "n"}}}),
    ]
}

#[test]
fn search_bodies() {
    let node = world();
    let mut seeds: Vec<Value> =
        queries().into_iter().map(|query| json!({"query": query, "size": 2})).collect();
    seeds.extend([
        json!({"from": 1, "size": 3, "sort": [{"n": {"order": "desc", "missing": "_last"}}, "_score"], "track_total_hits": 3, "search_after": [3, 1]}),
        json!({"highlight": {"fields": {"t": {"number_of_fragments": 2, "fragment_size": 20}}}, "query": {"match": {"t": "fox"}}}),
        json!({"_source": {"includes": ["t*"]}, "fields": ["t", {"field": "d", "format": "epoch_millis"}], "docvalue_fields": ["n"]}),
        json!({"collapse": {"field": "k", "inner_hits": {"name": "i", "size": 2}}}),
        json!({"retriever": {"rrf": {"retrievers": [{"standard": {"query": {"match_all": {}}}}, {"knn": {"field": "e", "query_vector": [1, 0, 0], "k": 3, "num_candidates": 10}}], "rank_window_size": 10}}}),
        json!({"rescore": {"window_size": 10, "query": {"rescore_query": {"match_all": {}}, "query_weight": 0.7}}, "query": {"match": {"t": "fox"}}}),
        json!({"size": 0, "aggs": {"a": {"terms": {"field": "k", "order": {"b": "desc"}}, "aggs": {"b": {"avg": {"field": "n"}}}}}}),
        json!({"size": 0, "aggs": {"a": {"date_histogram": {"field": "d", "calendar_interval": "month", "time_zone": "Europe/Berlin", "offset": "+1d", "extended_bounds": {"min": "2020-01-01", "max": "2020-06-01"}}}}}),
        json!({"size": 0, "aggs": {"a": {"composite": {"size": 3, "sources": [{"t": {"terms": {"field": "k"}}}, {"h": {"histogram": {"field": "n", "interval": 2}}}], "after": {"t": "a", "h": 2}}}}}),
        json!({"size": 0, "aggs": {"a": {"percentiles": {"field": "n", "percents": [1, 50, 99.9]}}, "b": {"histogram": {"field": "n", "interval": 2, "offset": 1}}, "c": {"range": {"field": "n", "ranges": [{"to": 2}, {"from": 2}]}}}}),
    ]);
    Campaign::new(FOLDER, "search").run(
        |random: &mut Random| mutated_json(random, &seeds),
        |body| carry_out(&node, "search", "i", body),
    );
    let texts: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.to_string().into_bytes()).collect();
    Campaign::new(FOLDER, "search-bytes").run(
        |random: &mut Random| mutated(random, &texts, &[b"\"query\":", b"\\u0000", b"\\ud800", b"1e9999"]),
        |body| carry_out(&node, "search", "i", body),
    );
}

/// Name of a syntax, example texts in it to mutate, and a function that builds the request around a text.
type Syntax = (&'static str, &'static [&'static str], fn(&str) -> Value);

/// Fuzzes the parsers that read a text in a syntax of its own.
#[test]
fn syntaxes() {
    let node = world();
    let syntaxes: [Syntax; 7] = [
        (
            "query-string",
            &[
                "(t:fox OR \"quick brown\"~2^3) AND n:[1 TO 5} AND NOT k:/a.*|b{2,3}/",
                "d:[now-1d TO *] +a -b !c a~1 b*",
                "_exists_:t && (a || b)",
            ],
            |text| json!({"query": {"query_string": {"query": text, "fields": ["t^2", "k", "n", "d"], "lenient": true}}}),
        ),
        (
            "simple-query-string",
            &["\"fried eggs\" +(eggplant | potato) -frittata fo* ab~1 \"a b\"~3"],
            |text| json!({"query": {"simple_query_string": {"query": text, "fields": ["t", "k"]}}}),
        ),
        (
            "regular-expression",
            &["a[b-d]{1,3}(e|f)?<1-20>~g&@#\"x\"", "[^a-z\\]]+.*", "(a|b)*c{2,}"],
            |text| json!({"query": {"regexp": {"k": {"value": text}}}}),
        ),
        ("wildcard", &["a*b?c\\*", "*?*?*?"], |text| json!({"query": {"wildcard": {"k": {"value": text}}}})),
        (
            "date-math",
            &[
                "now-1d/d",
                "2020-01-01||+1M/d",
                "2020-02-30T25:61:61.999+99:99",
                "now+1y-3M/w",
                "1577836800000",
            ],
            |text| json!({"query": {"range": {"d": {"gte": text}}}}),
        ),
        (
            "date-format",
            &["yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "strict_date||epoch_millis||uuuu", "EEE, d MMM yyyy"],
            |text| json!({"query": {"range": {"d": {"gte": "2020-01-01", "format": text}}}, "fields": [{"field": "d", "format": text}]}),
        ),
        (
            "minimum-should-match",
            &["75%", "2<-25% 9<-3", "-1"],
            |text| json!({"query": {"match": {"t": {"query": "a b c d", "minimum_should_match": text}}}}),
        ),
    ];
    for (name, seeds, body) in syntaxes {
        let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
        Campaign::new(FOLDER, name).run(
            |random: &mut Random| mutated(random, &seeds, &[b"AND", b"||", b"TO", b"now"]),
            |text| {
                let body = body(&String::from_utf8_lossy(text)).to_string();
                carry_out(&node, "search", "i", body.as_bytes());
            },
        );
    }
}

#[test]
fn bulk_lines() {
    let node = world();
    let seeds = [
        b"{\"index\":{\"_index\":\"w\",\"_id\":\"1\",\"if_seq_no\":1,\"if_primary_term\":1}}\n{\"n\":1}\n{\"update\":{\"_index\":\"w\",\"_id\":\"2\",\"retry_on_conflict\":2}}\n{\"doc\":{\"n\":2},\"doc_as_upsert\":true}\n".to_vec(),
        b"{\"delete\":{\"_index\":\"w\",\"_id\":\"3\"}}\n{\"create\":{\"_index\":\"w\",\"dynamic_templates\":{\"a\":\"b\"}}}\n{\"a\":{\"b\":\"c\"},\"d\":[1,\"2020-01-01\"]}\n".to_vec(),
        b"{\"index\":{}}\r\n{\"t\":\"text\",\"e\":[1,2,3],\"v\":{\"a\":1}}\r\n".to_vec(),
    ];
    Campaign::new(FOLDER, "bulk").run(
        |random: &mut Random| {
            mutated(random, &seeds, &[b"{\"index\":{}}\n", b"\"_id\":", b"\n\n", b"\"version\":"])
        },
        |body| carry_out(&node, "bulk", "w", body),
    );
}

#[test]
fn analysis_mappings_and_pipelines() {
    let node = world();
    let analyses = [
        json!({"tokenizer": "standard", "char_filter": ["html_strip", {"type": "mapping", "mappings": ["a => b"]}], "filter": ["lowercase", {"type": "edge_ngram", "min_gram": 1, "max_gram": 2}, {"type": "synonym", "synonyms": ["a, b => c"]}, {"type": "stop", "stopwords": ["the"]}], "text": ["<b>The</b> Quick", "fox"], "explain": true}),
        json!({"tokenizer": {"type": "pattern", "pattern": "\\W+", "group": 0}, "filter": [{"type": "pattern_replace", "pattern": "(a)", "replacement": "$1"}, {"type": "shingle"}], "text": "a b c"}),
        json!({"analyzer": "german", "text": "Häuser am Weißen See"}),
    ];
    Campaign::new(FOLDER, "analysis").run(
        |random: &mut Random| mutated_json(random, &analyses),
        |body| carry_out(&node, "analyze", "", body),
    );
    let mappings = [
        json!({"properties": {"x": {"type": "text", "analyzer": "english", "fields": {"k": {"type": "keyword", "ignore_above": 20}}, "copy_to": ["t"]}, "y": {"type": "date", "format": "yyyy||epoch_second"}, "z": {"properties": {"q": {"type": "long"}}, "dynamic": "strict"}, "e2": {"type": "dense_vector", "dims": 4, "similarity": "cosine", "index_options": {"type": "int8_hnsw", "m": 16}}}, "dynamic_templates": [{"t": {"match_mapping_type": "string", "match": "a*", "mapping": {"type": "keyword"}}}]}),
    ];
    Campaign::new(FOLDER, "mapping").run(
        |random: &mut Random| mutated_json(random, &mappings),
        |body| carry_out(&node, "put_mapping", "i", body),
    );
    let pipelines = [json!({"pipeline": {"processors": [
        {"set": {"field": "a", "value": "{{t}}"}}, {"gsub": {"field": "t", "pattern": "f(o+)", "replacement": "$1"}},
        {"date": {"field": "d", "formats": ["yyyy-MM-dd", "ISO8601"], "timezone": "UTC", "ignore_failure": true}},
        {"dissect": {"field": "t", "pattern": "%{a} %{+a/2} %{?b}", "ignore_failure": true}},
        {"foreach": {"field": "l", "processor": {"uppercase": {"field": "_ingest._value"}}, "ignore_failure": true}},
        {"kv": {"field": "t", "field_split": " ", "value_split": "=", "ignore_failure": true}}, {"dot_expander": {"field": "*"}},
        {"csv": {"field": "t", "target_fields": ["x", "y"], "ignore_failure": true}}, {"html_strip": {"field": "t"}},
    ]}, "docs": [{"_source": {"t": "quick fox", "d": "2020-01-01", "l": ["a"], "a.b": 1}}]})];
    Campaign::new(FOLDER, "pipeline").run(
        |random: &mut Random| mutated_json(random, &pipelines),
        |body| carry_out(&node, "simulate_pipeline", "", body),
    );
}

#[test]
fn snapshots() {
    let repository = Repository::new();
    // What was written is restored: else nothing behind the checksums is reached.
    assert_eq!(repository.restore(&repository.node(), &repository.seed(), true), Ok(20));
    let seeds = [serde_json::from_slice(&repository.seed()).unwrap()];
    let node = repository.node();
    let tried = |node: &Node, file: &[u8], global: bool| {
        if let Err((status, error)) = repository.restore(node, file, global) {
            // Elsewhere too these are 500.
            let documented = ["snapshot_restore_exception", "repository_exception"];
            assert!(status < 500 || documented.iter().any(|name| error.contains(name)), "{status}: {error}");
        }
    };
    Campaign::new(FOLDER, "snapshot")
        .run(|random: &mut Random| mutated_json(random, &seeds), |input| tried(&node, input, false));
    // What belongs to no index stays: every input gets an engine of its own.
    Campaign::new(FOLDER, "snapshot-global").run(
        |random: &mut Random| mutated_json(random, &seeds),
        |input| {
            let node = repository.node();
            tried(&node, input, true);
            node.engine.close();
        },
    );
    let files = [repository.file()];
    Campaign::new(FOLDER, "snapshot-bytes").run(
        |random: &mut Random| {
            mutated(random, &files, &[b"\"format\":2", b"\n", b"\"value\":", b"\"sha256\":"])
        },
        |file| {
            repository.write(file);
            repository.look(&node);
        },
    );
}
