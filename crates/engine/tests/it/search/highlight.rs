//! `highlight` through the whole engine.

use serde_json::{Value, json};

use super::common::Node;

const SPARSE: &str = ".sparse_encoder_model_2";

fn library() -> Node {
    let node = Node::start();
    node.create(
        "library",
        &json!({"title": {"type": "text", "fields": {"english": {"type": "text", "analyzer": "english"},
            "raw": {"type": "keyword"}}}, "body": {"type": "text"}, "tag": {"type": "keyword"},
            "author": {"properties": {"name": {"type": "text"}}}, "n": {"type": "long"}}),
    );
    node.load(
        "library",
        &[json!({
            "title": "Running dogs run", "n": 3, "tag": ["red fox", "dog"],
            "body": ["The quick brown fox jumps over the lazy dog. It was <quick> & easy!", "A brown <b>fox</b> again"],
            "author": [{"name": "Ann Smith"}, {"name": "Bob Jones"}],
        })],
    );
    node
}

fn highlight(node: &Node, query: &Value, section: &Value) -> Value {
    let answer = node.search("library", &json!({"query": query, "highlight": section}));
    assert_eq!(answer["hits"]["hits"].as_array().map(Vec::len), Some(1), "{query}");
    answer["hits"]["hits"][0]["highlight"].clone()
}

#[test]
fn fields_and_queries() {
    let node = library();
    let fox = json!({"match": {"body": "fox"}});
    for (query, section, expected) in [
        (
            fox.clone(),
            json!({"fields": {"body": {}}}),
            json!({"body": ["The quick brown <em>fox</em> jumps over the lazy dog. It was <quick> & easy!",
                "A brown <b><em>fox</em></b> again"]}),
        ),
        (
            json!({"match_phrase": {"body": "brown fox"}}),
            json!({"fields": [{"body": {"fragment_size": 30}}]}),
            json!({"body": ["The quick <em>brown fox</em> jumps over"]}),
        ),
        (
            json!({"match_phrase": {"body": "brown fox"}}),
            json!({"fields": {"body": {"type": "plain", "number_of_fragments": 0}}, "pre_tags": "<1>", "post_tags": "</1>"}),
            json!({"body": ["The quick <1>brown</1> <1>fox</1> jumps over the lazy dog. It was <quick> & easy!"]}),
        ),
        (fox.clone(), json!({"fields": {"title": {}, "n": {}, "zzz": {}}}), Value::Null),
        (fox.clone(), json!({"fields": {"title": {"no_match_size": 8}}}), json!({"title": ["Running dogs"]})),
        (
            fox.clone(),
            json!({"require_field_match": false, "fields": {"*": {"number_of_fragments": 1, "fragment_size": 10}}}),
            json!({"body": ["quick brown <em>fox</em>"]}),
        ),
        (
            json!({"match": {"title.english": "running"}}),
            json!({"fields": {"title*": {}}}),
            json!({"title.english": ["<em>Running</em> dogs <em>run</em>"]}),
        ),
        (
            json!({"match": {"title.english": "running"}}),
            json!({"fields": {"title": {"matched_fields": ["title.english"]}}}),
            json!({"title": ["<em>Running</em> dogs <em>run</em>"]}),
        ),
        (
            json!({"bool": {"filter": {"term": {"tag": "dog"}}, "must": {"prefix": {"body": "qui"}},
                "must_not": {"match": {"title": "zzz"}}}}),
            json!({"fields": {"tag": {}, "body": {"fragment_size": 1}}}),
            // As in Lucene a fragment starts at the boundary before the word, spaces left out.
            json!({"tag": ["<em>dog</em>"], "body": ["<em>quick</em>", "<<em>quick</em>"]}),
        ),
        (
            json!({"query_string": {"query": "author.name:(smith OR jo*) AND body:\"quick brown\"~1"}}),
            json!({"fields": {"author.name": {}}, "tags_schema": "styled"}),
            json!({"author.name": ["Ann <em class=\"hlt1\">Smith</em>", "Bob <em class=\"hlt1\">Jones</em>"]}),
        ),
        (
            json!({"fuzzy": {"body": "qick"}}),
            json!({"fields": {"body": {"fragment_size": 12}}, "encoder": "html"}),
            json!({"body": ["The <em>quick</em> brown", "It was &lt;<em>quick</em>"]}),
        ),
        (
            json!({"match_all": {}}),
            json!({"fields": {"body": {"highlight_query": {"wildcard": {"body": "la?y"}}, "boundary_scanner": "word"}}}),
            json!({"body": ["<em>lazy</em>"]}),
        ),
        (
            json!({"multi_match": {"query": "dogs", "fields": ["title", "body"]}}),
            json!({"fields": {"title": {}, "body": {}}, "order": "score"}),
            json!({"title": ["Running <em>dogs</em> run"]}),
        ),
    ] {
        let found = highlight(&node, &query, &section);
        assert_eq!(found, expected, "{query} {section}");
    }
}

#[test]
fn wrong_sections_are_refused() {
    let node = library();
    for (section, reason) in [
        (json!({"fields": {"body": {"type": "zzz"}}}), "unknown highlighter type [zzz] for the field [body]"),
        (json!({"zzz": 1}), "[highlight] unknown field [zzz]"),
        (json!({"fields": {"body": {"zzz": 1}}}), "[highlight_field] unknown field [zzz]"),
        (
            json!({"fields": [{"a": {}, "b": {}}]}),
            "an array where each entry is an object with a single field",
        ),
        (
            json!({"fields": {"body": {"type": "fvh"}}}),
            "should be indexed with term vector with position offsets",
        ),
        (
            json!({"fields": {"body": {"type": "plain", "fragmenter": "zzz"}}}),
            "unknown fragmenter option [zzz] for the field [body]",
        ),
        (json!({"fields": {"body": {}}, "tags_schema": "zzz"}), "Unknown tag schema [zzz]"),
        (json!({"fields": {"body": {}}, "pre_tags": ["<a>"]}), "pre_tags are set but post_tags are not set"),
        (json!({"fields": {"body": {"fragment_size": "x"}}}), "For input string: \"x\""),
        (
            json!({"fields": {"body": {"max_analyzed_offset": -5}}}),
            "[max_analyzed_offset] must be a positive integer",
        ),
        (json!([]), "Unknown key for a START_ARRAY in [highlight]."),
    ] {
        let error =
            node.search_error("library", &json!({"query": {"match": {"body": "fox"}}, "highlight": section}));
        assert_eq!(error["status"], 400, "{error}");
        assert!(error.to_string().contains(&reason.replace('"', "\\\"")), "{reason}: {error}");
    }
}

#[test]
fn long_texts_are_bounded() {
    let node = Node::start();
    let settings = json!({"settings": {"index.highlight.max_analyzed_offset": 20},
        "mappings": {"properties": {"t": {"type": "text"}}}});
    node.ok("create_index", &[("index", "long")], &[], &settings);
    node.load("long", &[json!({"t": "fox and hound and fox and hound"})]);
    let body =
        |options: Value| json!({"query": {"match": {"t": "hound"}}, "highlight": {"fields": {"t": options}}});
    let error = node.search_error("long", &body(json!({})));
    let reason = error["error"]["root_cause"][0]["reason"].as_str().unwrap_or_default();
    assert!(
        reason.starts_with(
            "The length [31] of field [t] in doc[0]/index[long] exceeds the \
            [index.highlight.max_analyzed_offset] limit [20]."
        ),
        "{error}"
    );
    let found = node.search("long", &body(json!({"max_analyzed_offset": 15})));
    assert_eq!(
        found["hits"]["hits"][0]["highlight"]["t"],
        json!(["fox and <em>hound</em> and fox and hound"])
    );
    // Hostile sizes.
    let node = library();
    let section = json!({"fields": {"body": {"fragment_size": i32::MAX, "number_of_fragments": i32::MAX,
        "no_match_size": i32::MAX}}});
    assert!(highlight(&node, &json!({"match": {"body": "fox"}}), &section)["body"].is_array());
}

#[test]
fn passages_found_by_meaning_are_shown() {
    let node = Node::with_models(true);
    let pipeline = json!({"processors": [{"inference": {"model_id": SPARSE,
        "input_output": [{"input_field": "text", "output_field": "v"}]}}]});
    node.ok("put_pipeline", &[("pipeline", "encode")], &[], &pipeline);
    let settings = json!({"settings": {"default_pipeline": "encode"}, "mappings": {"properties": {
        "text": {"type": "text"}, "v": {"type": "sparse_vector"}}}});
    node.ok("create_index", &[("index", "passages")], &[], &settings);
    node.load(
        "passages",
        &[json!({"text": "Stock markets fell sharply on Monday. The cat sleeps on the warm sofa. Rivers flow \
            slowly to the sea."})],
    );
    let query = json!({"text_expansion": {"v": {"model_id": SPARSE, "model_text": "sleeping cats"}}});
    for kind in ["unified", "semantic"] {
        let answer = node.search(
            "passages",
            &json!({"query": query, "highlight": {"order": "score", "fields": {"text":
                {"type": kind, "number_of_fragments": 1, "fragment_size": 40}}}}),
        );
        let fragments = &answer["hits"]["hits"][0]["highlight"]["text"];
        let text = fragments[0].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(text.contains("<em>cat</em>"), "{text}");
        assert_eq!(fragments.as_array().map(Vec::len), Some(1));
        assert!(!text.contains("Stock") && !text.contains("Rivers"), "{text}");
    }
}

#[test]
fn a_long_phrase_over_one_repeated_word_is_marked_as_one() {
    let node = Node::start();
    node.create("library", &json!({"body": {"type": "text"}}));
    node.load("library", &[json!({"body": format!("{}end, again a a and a", "a ".repeat(3000))})]);
    // Each word begins an occurrence of 1,000 words: 3 million are looked at, and as many terms would be 100 MB.
    let phrase = |words: usize, slop: u32| json!({"match_phrase": {"body": {"query": "a ".repeat(words), "slop": slop}}});
    let whole = |query: Value| {
        let section = json!({"fields": {"body": {"number_of_fragments": 0}}});
        let found = highlight(&node, &query, &section);
        found["body"][0].as_str().map(str::to_owned).unwrap_or_default()
    };
    let long = whole(phrase(1000, 1000));
    assert!(long.starts_with(&format!("<em>{}a", "a ".repeat(2999))) && long.matches("<em>").count() == 1);
    assert!(whole(phrase(2, 0)).ends_with("</em> end, again <em>a a</em> and a"));
}
