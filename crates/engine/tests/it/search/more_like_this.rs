//! `more_like_this`: which words of the example documents are searched.

use serde_json::{Value, json};

use super::common::Node;

/// Ten documents: `salt` is in five, `sea` in three, `whale` in two; document 1 says `whale` twice.
fn sea() -> Node {
    let node = Node::start();
    let text = json!({"type": "text", "fields": {"raw": {"type": "keyword"}, "english": {"type": "text", "analyzer": "english"}}});
    let properties = json!({"title": text, "body": {"type": "text"}, "tag": {"type": "keyword"}, "n": {"type": "integer"}});
    node.create("sea", &properties);
    let mut documents = vec![
        json!({"title": "whale whale sea salt", "body": "deep water", "tag": ["big", "wet"], "n": 1}),
        json!({"title": "whale sea", "body": "a boat"}),
        json!({"title": "sea salt", "body": "whales sing", "tag": "wet"}),
        json!({"title": "salt lake"}),
        json!({"title": "salt mine"}),
        json!({"title": "salt pan"}),
    ];
    documents.extend((7..=10).map(|n| json!({"title": format!("dune {n}"), "n": n})));
    node.load("sea", &documents);
    node
}

/// Ids that a `more_like_this` query finds, ascending; by default with `min_term_freq` and `min_doc_freq` 1.
fn like(node: &Node, mut query: Value) -> String {
    for name in ["min_term_freq", "min_doc_freq"] {
        if query.get(name).is_none() {
            query[name] = json!(1);
        }
    }
    let mut ids = node.ids("sea", &json!({"more_like_this": query}));
    ids.sort_by_key(|id| id.parse::<u32>().unwrap_or(0));
    ids.join(" ")
}

#[test]
fn words_of_texts_and_documents_are_looked_for() {
    let node = sea();
    let title = json!(["title"]);
    for (query, expected) in [
        // Any of the words, and nearly a third of them.
        (json!({"fields": title, "like": "whale salt"}), "1 2 3 4 5 6"),
        (json!({"fields": title, "like": "whale salt", "minimum_should_match": 2}), "1"),
        (json!({"fields": title, "like": ["whale", "lake"]}), "1 2 4"),
        (json!({"fields": title, "like": "whale salt", "stop_words": ["salt"]}), "1 2"),
        (json!({"fields": title, "like": "sea whale", "min_word_length": 4}), "1 2"),
        (json!({"fields": title, "like": "sea whale", "max_word_length": 4}), "1 2 3"),
        (json!({"fields": title, "like": "sea whale", "min_doc_freq": 3}), "1 2 3"),
        (json!({"fields": title, "like": "sea whale", "max_doc_freq": 2}), "1 2"),
        (json!({"fields": title, "like": "sea sea whale", "min_term_freq": 2}), "1 2 3"),
        // The rarer word tells more.
        (json!({"fields": title, "like": "salt whale", "max_query_terms": 1}), "1 2"),
        (json!({"fields": title, "like": "salt whale", "unlike": "whale"}), "1 3 4 5 6"),
        (json!({"fields": title, "like": "WHALES", "analyzer": "english"}), "1 2"),
        (json!({"fields": title, "like": "camel"}), ""),
        // A word of a text is looked for where most documents have it.
        (json!({"fields": ["body", "title"], "like": "salt boat"}), "1 2 3 4 5 6"),
        // Documents, which are no hits themselves unless asked for.
        (json!({"fields": title, "like": {"_id": "2"}}), "1 3"),
        (json!({"fields": title, "like": {"_id": "2"}, "include": true}), "1 2 3"),
        (json!({"fields": title, "like": {"_index": "sea", "_id": "2"}}), "1 3"),
        (json!({"fields": title, "like": {"_id": "99"}}), ""),
        (json!({"fields": title, "like": {"_index": "nowhere", "_id": "2"}}), ""),
        (json!({"fields": title, "like": [{"_id": "2"}, "lake"]}), "1 3 4"),
        (json!({"fields": title, "like": {"doc": {"title": ["whale", "lake"]}}}), "1 2 4"),
        (json!({"fields": title, "like": {"_id": "1"}, "unlike": {"_id": "3"}}), "2"),
        (json!({"fields": ["tag"], "like": {"_id": "1"}}), "3"),
        (json!({"fields": ["title.raw"], "like": {"doc": {"title": "salt lake"}}}), "4"),
        (json!({"fields": title, "like": {"_id": "1", "fields": ["t*g"]}}), "3"),
        (
            json!({"fields": ["title.english"], "like": {"doc": {"title": "WHALES"}, "per_field_analyzer": {"title.english": "keyword"}}}),
            "",
        ),
        // All texts and keywords, unless fields are named.
        (json!({"like": {"doc": {"tag": "wet", "n": 7}}}), "1 3"),
        (json!({"fields": ["n", "tag"], "like": {"_id": "1"}, "fail_on_unsupported_field": false}), "3"),
        (json!({"fields": ["nothing"], "like": "whale"}), ""),
    ] {
        assert_eq!(like(&node, query.clone()), expected, "{query}");
    }
}

#[test]
fn defaults_are_those_of_elasticsearch() {
    let node = sea();
    // A word counts that is in the examples twice and in five documents.
    let ids =
        |text: &str| node.ids("sea", &json!({"more_like_this": {"fields": ["title"], "like": text}})).len();
    assert_eq!((ids("salt salt"), ids("salt"), ids("sea sea")), (5, 0, 0));
    // The least telling of the words counts as much as `boost_terms` says, others more.
    let score = |boost: f32| {
        let query = json!({"fields": ["title"], "like": "salt whale", "min_term_freq": 1, "min_doc_freq": 1,
            "max_doc_freq": 2, "boost_terms": boost});
        node.search("sea", &json!({"query": {"more_like_this": query}}))["hits"]["max_score"].as_f64()
    };
    assert_eq!(score(2.0), score(1.0).map(|one| one * 2.0));
}

#[test]
fn examples_are_those_of_the_index_that_is_searched() {
    let node = sea();
    node.create("lake", &json!({"title": {"type": "text"}}));
    node.load("lake", &[json!({"title": "salt"}), json!({"title": "carp"}), json!({"title": "carp pond"})]);
    let query = json!({"fields": ["title"], "like": {"_id": "2"}, "min_term_freq": 1, "min_doc_freq": 1});
    let answer = node.search("sea,lake", &json!({"query": {"more_like_this": query}, "size": 20}));
    let mut found: Vec<String> = answer["hits"]["hits"]
        .as_array()
        .expect("hits")
        .iter()
        .map(|hit| format!("{}/{}", hit["_index"].as_str().unwrap_or(""), hit["_id"].as_str().unwrap_or("")))
        .collect();
    found.sort();
    assert_eq!(found, ["lake/3", "sea/1", "sea/3"]);
}

#[test]
fn it_is_a_clause_like_others() {
    let node = sea();
    let query = json!({"more_like_this": {"fields": ["title"], "like": {"_id": "2"}, "min_term_freq": 1,
        "min_doc_freq": 1, "_name": "alike", "boost": 2}});
    let answer = node.search(
        "sea",
        &json!({"query": {"bool": {"must": query, "filter": {"term": {"tag": "big"}}}}, "explain": true,
            "highlight": {"fields": {"title": {}}}}),
    );
    let hit = &answer["hits"]["hits"][0];
    assert_eq!((&hit["_id"], &hit["matched_queries"]), (&json!("1"), &json!(["alike"])));
    assert_eq!(hit["highlight"]["title"], json!(["<em>whale</em> <em>whale</em> <em>sea</em> salt"]));
    assert!(hit["_explanation"]["details"].as_array().is_some_and(|details| !details.is_empty()), "{hit}");
    let filtered = node.search("sea", &json!({"query": {"bool": {"filter": query}}}));
    assert_eq!(filtered["hits"]["total"]["value"], 2);
    let count = node.ok("count", &[("index", "sea")], &[], &json!({"query": query}));
    assert_eq!(count["count"], 2);
    let alias = node.run(
        "put_alias",
        &[("index", "sea"), ("name", "alike")],
        &[],
        json!({"filter": query}).to_string().as_bytes(),
    );
    assert!(alias.expect_err("a filter").body().to_string().contains("cannot look up other documents"));
}

#[test]
fn malformed_examples_are_named() {
    let node = sea();
    let many: Vec<String> = (0..1_025).map(|n| n.to_string()).collect();
    for (query, kind, reason) in [
        (json!({}), "parsing_exception", "more_like_this requires 'like' to be specified"),
        (json!({"like": []}), "parsing_exception", "more_like_this requires 'like' to be specified"),
        (
            json!({"like": "a", "fields": []}),
            "parsing_exception",
            "more_like_this requires 'fields' to be non-empty",
        ),
        (json!({"like": "a", "nope": 1}), "parsing_exception", "[mlt] query does not support [nope]"),
        (json!({"like": "a", "fields": {}}), "parsing_exception", "[mlt] query does not support [fields]"),
        (
            json!({"like": [[]]}),
            "illegal_argument_exception",
            "Content of 'like' parameter should either be a string or an object",
        ),
        (json!({"like": many}), "illegal_argument_exception", "takes at most [1024]"),
        (
            json!({"like": "a", "max_query_terms": 0}),
            "illegal_argument_exception",
            "requires 'maxQueryTerms' to be greater than 0",
        ),
        (
            json!({"like": "a", "minimum_should_match": null}),
            "illegal_argument_exception",
            "requires minimum should match to be non-null",
        ),
        (
            json!({"like": {}}),
            "parse_exception",
            "failed to parse More Like This item. neither [id] nor [doc] is specified!",
        ),
        (
            json!({"like": {"_id": 1, "doc": {}}}),
            "parse_exception",
            "either [id] or [doc] can be specified, but not both!",
        ),
        (
            json!({"like": {"_id": 1, "version": 2}}),
            "parse_exception",
            "failed to parse More Like This item. unknown field [version]",
        ),
        (
            json!({"like": "a", "fields": ["n"]}),
            "query_shard_exception",
            "more_like_this only supports text/keyword fields: [n]",
        ),
        (
            json!({"like": "a", "fields": ["title"], "analyzer": "nope"}),
            "query_shard_exception",
            "[more_like_this] analyzer [nope] not found",
        ),
        (
            json!({"like": "whale salt", "fields": ["title"], "minimum_should_match": "x", "min_term_freq": 1, "min_doc_freq": 1}),
            "query_shard_exception",
            "failed to create query: For input string: \"x\"",
        ),
    ] {
        let error = node.search_error("sea", &json!({"query": {"more_like_this": query}}));
        let root = &error["error"]["root_cause"][0];
        assert_eq!(error["status"], 400, "{error}");
        assert_eq!(root["type"], kind, "{error}");
        assert!(root["reason"].as_str().is_some_and(|found| found.contains(reason)), "{reason}: {error}");
    }
}
