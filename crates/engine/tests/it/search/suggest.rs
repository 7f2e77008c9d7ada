//! The `suggest` section: terms near the words of a text.

use serde_json::{Value, json};

use super::common::Node;

fn towns() -> Node {
    let node = Node::start();
    node.create(
        "towns",
        &json!({"body": {"type": "text"}, "name": {"type": "keyword"}, "n": {"type": "integer"}}),
    );
    let bodies = ["Amsterdam meetup", "Amsterdam canals", "Rotterdam harbour", "amsterdame harbours"];
    let documents: Vec<Value> = bodies.iter().map(|body| json!({"body": body, "name": body})).collect();
    node.load("towns", &documents);
    node
}

fn suggest(node: &Node, section: &Value) -> Value {
    node.search("towns", &json!({"size": 0, "suggest": section}))["suggest"].clone()
}

/// The suggestions for the only word of a text, with their frequencies.
fn options(node: &Node, text: &str, mut term: Value) -> String {
    term["field"] = json!("body");
    let found = suggest(node, &json!({"s": {"text": text, "term": term}}));
    let shown = found["s"][0]["options"].as_array().expect("options").iter();
    shown
        .map(|option| format!("{}:{}", option["text"].as_str().unwrap_or(""), option["freq"]))
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn words_get_the_terms_near_them() {
    let node = towns();
    let found = suggest(
        &node,
        &json!({"text": "The Amsterdma 🚲 meetpu", "s": {"term": {"field": "body"}}, "own": {"text": "harbuor", "term": {"field": "body", "size": 1}}}),
    );
    let words: Vec<Value> = found["s"].as_array().expect("words").to_vec();
    let places: Vec<_> = words.iter().map(|word| (&word["text"], &word["offset"], &word["length"])).collect();
    assert_eq!(
        places,
        [
            (&json!("the"), &json!(0), &json!(3)),
            (&json!("amsterdma"), &json!(4), &json!(9)),
            // As the standard tokenizer has it since version 8.
            (&json!("🚲"), &json!(14), &json!(2)),
            (&json!("meetpu"), &json!(17), &json!(6)),
        ]
    );
    // Three letters are too few to tell.
    assert_eq!(words[0]["options"], json!([]));
    let first = &words[1]["options"][0];
    assert_eq!((&first["text"], &first["freq"]), (&json!("amsterdam"), &json!(2)));
    assert!(first["score"].as_f64().is_some_and(|score| (score - 8.0 / 9.0).abs() < 1e-6), "{first}");
    assert_eq!(words[3]["options"][0]["text"], "meetup");
    assert_eq!(found["own"][0]["options"].as_array().map(Vec::len), Some(1));
}

#[test]
fn options_say_which_terms_are_near() {
    let node = towns();
    for (text, term, expected) in [
        ("amsterdma", json!({}), "amsterdam:2 amsterdame:1"),
        ("amsterdma", json!({"size": 1}), "amsterdam:2"),
        ("amsterdma", json!({"max_edits": 1}), "amsterdam:2"),
        ("amsterdma", json!({"min_doc_freq": 1}), "amsterdam:2"),
        ("amsterdma", json!({"prefix_length": 8}), ""),
        ("bmsterdam", json!({}), ""),
        ("bmsterdam", json!({"prefix_length": 0}), "amsterdam:2"),
        ("amsterdma", json!({"min_word_length": 10}), ""),
        // A word that is there gets none, unless asked for.
        ("amsterdame", json!({}), ""),
        ("amsterdame", json!({"suggest_mode": "always", "max_term_freq": 1}), "amsterdam:2"),
        ("amsterdame", json!({"suggest_mode": "popular", "max_term_freq": 1}), "amsterdam:2"),
        ("amsterdam", json!({"suggest_mode": "popular", "max_term_freq": 5}), ""),
        ("amsterdam", json!({"suggest_mode": "always", "max_term_freq": 1}), ""),
        ("amsterdam", json!({"suggest_mode": "always", "max_term_freq": 5}), "amsterdame:1"),
        ("amsterdmae", json!({"sort": "frequency"}), "amsterdam:2 amsterdame:1"),
        ("amsterdmae", json!({"sort": "score"}), "amsterdame:1 amsterdam:2"),
        ("amsterdma", json!({"string_distance": "ngram", "accuracy": 0.9}), ""),
        (
            "amsterdma",
            json!({"string_distance": "jaro_winkler", "accuracy": 0.9}),
            "amsterdam:2 amsterdame:1",
        ),
        ("AMSTERDMA", json!({"analyzer": "keyword"}), ""),
    ] {
        assert_eq!(options(&node, text, term.clone()), expected, "{text} {term}");
    }
    let keyword = suggest(&node, &json!({"s": {"text": "Amsterdam meetpu", "term": {"field": "name"}}}));
    assert_eq!(keyword["s"][0]["options"][0]["text"], "Amsterdam meetup");
}

#[test]
fn indices_add_up() {
    let node = towns();
    node.create("more", &json!({"body": {"type": "text"}}));
    node.load("more", &[json!({"body": "amsterdam"}), json!({"body": "unsterdma"})]);
    node.create("other", &json!({"n": {"type": "integer"}}));
    let body = json!({"suggest": {"s": {"text": "amsterdma", "term": {"field": "body", "size": 2}}}});
    let options = &node.search("towns,more,other", &body)["suggest"]["s"][0]["options"];
    let shown: Vec<_> =
        options.as_array().expect("options").iter().map(|one| (&one["text"], &one["freq"])).collect();
    assert_eq!(shown, [(&json!("amsterdam"), &json!(3)), (&json!("amsterdame"), &json!(1))]);
    let typed = node.ok("search", &[("index", "towns")], &[("typed_keys", "true")], &body);
    assert!(typed["suggest"]["term#s"].is_array(), "{typed}");
    let page = node.ok(
        "search",
        &[("index", "towns")],
        &[("scroll", "1m")],
        &json!({"size": 1, "suggest": body["suggest"]}),
    );
    assert!(page["suggest"]["s"].is_array(), "{page}");
    let next = node.ok("scroll", &[], &[], &json!({"scroll_id": page["_scroll_id"]}));
    assert!(next.get("suggest").is_none(), "{next}");
}

#[test]
fn terms_behind_the_filter_of_an_alias_are_not_suggested() {
    let node = towns();
    let filter = json!({"filter": {"match": {"body": "amsterdame"}}});
    node.ok("put_alias", &[("index", "towns"), ("name", "some")], &[], &filter);
    let body = json!({"suggest": {"s": {"text": "amsterdma", "term": {"field": "body"}}}});
    let options = node.search("some", &body)["suggest"]["s"][0]["options"].clone();
    let shown: Vec<_> = options.as_array().expect("options").iter().map(|one| &one["text"]).collect();
    assert_eq!(shown, ["amsterdame"]);
}

#[test]
fn malformed_suggesters_are_named() {
    let node = towns();
    let many: String = "word ".repeat(1_001);
    let term = |term: Value| json!({"s": {"text": "a", "term": term}});
    for (section, reason) in [
        (
            json!({"s": {"text": "a", "phrase": {"field": "body"}}}),
            "suggester [phrase] of [s] is not supported by this server",
        ),
        (
            json!({"s": {"prefix": "a", "completion": {"field": "body"}}}),
            "Field [body] is not a completion suggest field",
        ),
        (
            json!({"s": {"text": "a", "terms": {"field": "body"}}}),
            "unknown suggester [terms] did you mean [term]?",
        ),
        (json!({"s": {"text": "a"}}), "missing suggestion object of [s]"),
        (json!({"s": {"text": []}}), "suggestion [s] does not support [text]"),
        (json!({"s": 1}), "[suggest] does not support [s]"),
        (json!({"s": {"term": {"field": "body"}}}), "The required text option is missing"),
        (term(json!({})), "the required field option [field] is missing"),
        (term(json!({"field": "body", "nope": 1})), "[term] unknown field [nope]"),
        (term(json!({"field": "body", "size": 0})), "size must be positive"),
        (term(json!({"field": "body", "size": 1_001})), "size must be at most 1000"),
        (term(json!({"field": "body", "max_edits": 3})), "maxEdits must be between 1 and 2"),
        (term(json!({"field": "body", "accuracy": 2})), "accuracy must be between 0 and 1"),
        (
            term(json!({"field": "body", "max_term_freq": 1.5})),
            "if maxTermFreq is greater than 1, it must not be a fraction",
        ),
        (
            term(json!({"field": "body", "suggest_mode": "x"})),
            "No enum constant org.elasticsearch.search.suggest.SuggestMode.X",
        ),
        (term(json!({"field": "nothing"})), "no mapping found for field [nothing]"),
        (term(json!({"field": "n"})), "Field [n] of type [integer] does not support suggest queries"),
        (term(json!({"field": "body", "analyzer": "nope"})), "[term] analyzer [nope] not found"),
        (json!({"s": {"text": many, "term": {"field": "body"}}}), "at most [1000] words"),
    ] {
        let error = node.search_error("towns", &json!({"suggest": section}));
        assert_eq!(error["status"], 400, "{error}");
        let text = error.to_string();
        assert!(text.contains(&reason.replace('"', "\\\"")), "{reason}: {error}");
    }
}
