//! The `completion` suggester, compared with a naive one, and what else a `completion` field does.

use serde_json::{Value, json};
use sparrow_fuzzing::Random;

use super::common::Node;

/// The suggestions of a section, each as text, id and score.
fn options(node: &Node, index: &str, suggester: &Value) -> Vec<(String, String, f64)> {
    let found = node.search(index, &json!({"_source": false, "suggest": {"s": suggester}}));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let options = found["suggest"]["s"][0]["options"].as_array().expect("options").iter();
    options
        .map(|one| (text(&one["text"]), text(&one["_id"]), one["_score"].as_f64().expect("a score")))
        .collect()
}

/// The texts of suggestions with the ids of their documents.
fn shown(node: &Node, index: &str, suggester: &Value) -> String {
    let options = options(node, index, suggester);
    options.iter().map(|(text, id, _)| format!("{text}:{id}")).collect::<Vec<_>>().join(" ")
}

/// What the analyzer `simple` makes of a text, as a completion is compared.
fn key(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut is_inside = false;
    for character in text.chars() {
        if character.is_alphabetic() {
            if !is_inside {
                words.push(String::new());
            }
            words.last_mut().expect("a word").extend(character.to_lowercase());
        }
        is_inside = character.is_alphabetic();
    }
    let mut key = words.join("\u{1f}");
    if !is_inside && !words.is_empty() {
        key.push('\u{1f}');
    }
    key
}

/// Edits between two texts, of which swapping neighbours is one.
fn distance(left: &[u8], right: &[u8]) -> usize {
    let mut rows = vec![vec![0; right.len() + 1]; left.len() + 1];
    for i in 0..=left.len() {
        for j in 0..=right.len() {
            rows[i][j] = match (i, j) {
                (0, other) | (other, 0) => other,
                _ => {
                    let least = (rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]))
                        .min(rows[i - 1][j] + 1)
                        .min(rows[i][j - 1] + 1);
                    match i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                        true => least.min(rows[i - 2][j - 2] + 1),
                        false => least,
                    }
                }
            };
        }
    }
    rows[left.len()][right.len()]
}

/// The score of an input for a text, if it matches.
fn score(text: &str, fuzzy: Option<usize>, input: &str, weight: u64) -> Option<f64> {
    let (wanted, found) = (key(text), key(input));
    if wanted.is_empty() || found.is_empty() {
        return None;
    }
    let (wanted, found) = (wanted.as_bytes(), found.as_bytes());
    let Some(edits) = fuzzy else { return found.starts_with(wanted).then_some(weight as f64) };
    let edits = if wanted.len() < 3 { 0 } else { edits };
    let shortest = (1..=found.len())
        .find(|length| found[0] == wanted[0] && distance(&found[1..*length], &wanted[1..]) <= edits)?;
    let common = wanted.iter().zip(&found[..shortest]).take_while(|(one, other)| one == other).count();
    Some(if weight == 0 { common as f64 } else { weight as f64 * common as f64 })
}

#[test]
fn finds_what_a_naive_suggester_finds() {
    let node = Node::start();
    node.create("songs", &json!({"c": {"type": "completion"}, "n": {"type": "integer"}}));
    let mut random = Random::new(49, 1);
    let text = |random: &mut Random, letters: usize| -> String {
        let alphabet = ['a', 'b', 'C', 'ü', ' ', '-'];
        (0..=random.below(letters)).filter_map(|_| random.pick(&alphabet).copied()).collect()
    };
    // By id: inputs with weights. Documents are written twice, into many segments, and some are deleted.
    let mut documents: Vec<Vec<(String, u64)>> = vec![Vec::new(); 150];
    for _ in 0..6 {
        let mut written = Vec::new();
        for _ in 0..50 {
            let id = random.below(documents.len());
            let inputs: Vec<(String, u64)> =
                (0..random.below(4)).map(|_| (text(&mut random, 8), random.below(4) as u64)).collect();
            let mut unique: Vec<(String, u64)> = Vec::new();
            for (input, weight) in &inputs {
                match unique.iter_mut().find(|(known, _)| known == input) {
                    Some(known) => known.1 = known.1.max(*weight),
                    None => unique.push((input.clone(), *weight)),
                }
            }
            let value: Vec<Value> =
                inputs.iter().map(|(input, weight)| json!({"input": input, "weight": weight})).collect();
            written.push(json!({"_id": id.to_string(), "c": value, "n": id}));
            documents[id] = unique;
        }
        node.load("songs", &written);
    }
    for id in [3, 14, 15, 92] {
        documents[id].clear();
        let id = id.to_string();
        let _ = node.run("delete_doc", &[("index", "songs"), ("id", &id)], &[("refresh", "true")], b"");
    }
    let mut found_some = 0;
    for round in 0..400 {
        if round == 200 {
            node.ok("force_merge", &[("index", "songs")], &[("max_num_segments", "1")], &Value::Null);
        }
        let prefix = text(&mut random, 5);
        let edits = random.below(3);
        let fuzzy = random.once_in(2).then_some(edits);
        let (size, skip) = (1 + random.below(12), random.once_in(3));
        let mut best: Vec<(f64, String, usize)> = Vec::new();
        for (id, inputs) in documents.iter().enumerate() {
            for (input, weight) in inputs.iter().filter(|(input, _)| !input.trim().is_empty()) {
                best.extend(score(&prefix, fuzzy, input, *weight).map(|score| (score, input.clone(), id)));
            }
        }
        best.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let mut completion = json!({"field": "c", "size": size, "skip_duplicates": skip});
        if let Some(edits) = fuzzy {
            completion["fuzzy"] = json!({"fuzziness": edits});
        }
        let found = options(&node, "songs", &json!({"prefix": prefix, "completion": completion}));
        let told = format!("{prefix:?} {completion} {found:?} {best:?}");
        if skip {
            // Which of several documents has a text, only their age says.
            let texts: Vec<&String> = found.iter().map(|(text, ..)| text).collect();
            assert!(texts.iter().enumerate().all(|(at, text)| !texts[..at].contains(text)), "{told}");
            assert!(
                found.iter().all(|(text, id, score)| best.contains(&(
                    *score,
                    text.clone(),
                    id.parse().expect("a number")
                ))),
                "{told}"
            );
        } else {
            let mut seen = Vec::new();
            best.retain(|(_, _, id)| {
                !seen.contains(id) && {
                    seen.push(*id);
                    true
                }
            });
            let scored: Vec<(f64, &String)> = found.iter().map(|(text, _, score)| (*score, text)).collect();
            let expected: Vec<(f64, &String)> =
                best.iter().take(size).map(|(score, text, _)| (*score, text)).collect();
            assert_eq!(scored, expected, "{told}");
            assert!(
                found.iter().all(|(text, id, score)| best.contains(&(
                    *score,
                    text.clone(),
                    id.parse().expect("a number")
                ))),
                "{told}"
            );
        }
        found_some += usize::from(found.len() > 1);
    }
    assert!(found_some > 100, "{found_some}");
}

fn songs() -> Node {
    let node = Node::start();
    let properties = json!({
        "suggest": {"type": "completion", "fields": {"raw": {"type": "keyword"}, "exact": {"type": "completion", "analyzer": "keyword"}}},
        "title": {"type": "text", "copy_to": "copied", "fields": {"complete": {"type": "completion"}}},
        "copied": {"type": "completion"},
        "other": {"type": "alias", "path": "suggest"},
        "joined": {"type": "completion", "preserve_separators": false},
        "tag": {"type": "keyword"},
    });
    node.create("music", &properties);
    node.load(
        "music",
        &[
            json!({"suggest": {"input": ["Nevermind", "Nirvana"], "weight": 34}, "tag": "a"}),
            json!({"suggest": [{"input": "Nirvana", "weight": 10}, {"input": "Nevermore"}], "tag": "b"}),
            json!({"suggest": "Nine Inch Nails", "title": ["Hurt so", "Closer"], "joined": "foo fighters", "tag": "b"}),
            json!({"suggest": null, "tag": "b"}),
            json!({"suggest": {"input": "Noir Désir", "weight": "7"}, "tag": "a"}),
        ],
    );
    node
}

#[test]
fn every_way_to_ask_finds_its_inputs() {
    let node = songs();
    let ask = |place: &str, text: &str, mut completion: Value| {
        if completion.get("field").is_none() {
            completion["field"] = json!("suggest");
        }
        shown(&node, "music", &json!({place: text, "completion": completion}))
    };
    for (place, text, completion, expected) in [
        // A document is there once, with its best input; of equal weights, with the first text.
        ("prefix", "n", json!({}), "Nevermind:1 Nirvana:2 Noir Désir:5 Nine Inch Nails:3"),
        ("text", "Nir", json!({}), "Nirvana:1 Nirvana:2"),
        ("prefix", "n", json!({"size": 2}), "Nevermind:1 Nirvana:2"),
        ("prefix", "nir", json!({"skip_duplicates": true}), "Nirvana:1"),
        ("prefix", "nine i", json!({}), "Nine Inch Nails:3"),
        ("prefix", "inch", json!({}), ""),
        ("prefix", "", json!({}), ""),
        ("prefix", "42", json!({}), ""),
        ("prefix", "n", json!({"field": "suggest.exact"}), ""),
        ("prefix", "Nine ", json!({"field": "suggest.exact"}), "Nine Inch Nails:3"),
        ("prefix", "Nir", json!({"field": "other"}), "Nirvana:1 Nirvana:2"),
        ("prefix", "hu", json!({"field": "title.complete"}), "Hurt so:3"),
        ("prefix", "clo", json!({"field": "copied"}), "Closer:3"),
        ("prefix", "foof", json!({"field": "joined"}), "foo fighters:3"),
        ("prefix", "nur", json!({"fuzzy": true}), "Nirvana:1 Nirvana:2"),
        ("prefix", "nurvana", json!({"fuzzy": {"fuzziness": "AUTO"}}), "Nirvana:1 Nirvana:2"),
        ("prefix", "nurvama", json!({"fuzzy": {"fuzziness": 1}}), ""),
        ("prefix", "nurvama", json!({"fuzzy": {"fuzziness": 2}}), "Nirvana:1 Nirvana:2"),
        ("prefix", "nurvama", json!({"fuzzy": {"fuzziness": "AUTO:2,5"}}), "Nirvana:1 Nirvana:2"),
        ("prefix", "nrivana", json!({"fuzzy": {}}), "Nirvana:1 Nirvana:2"),
        ("prefix", "nrivana", json!({"fuzzy": {"transpositions": false}}), ""),
        ("prefix", "mirvana", json!({"fuzzy": {}}), ""),
        ("prefix", "mirvana", json!({"fuzzy": {"prefix_length": 0}}), "Nirvana:1 Nirvana:2"),
        ("prefix", "nurvana", json!({"fuzzy": {"min_length": 8}}), ""),
        ("prefix", "noir das", json!({"fuzzy": {}}), ""),
        ("prefix", "noir das", json!({"fuzzy": {"unicode_aware": true}}), "Noir Désir:5"),
        ("regex", "n[ever|i]r", json!({}), "Nirvana:1 Nirvana:2"),
        ("regex", ".*mo", json!({}), "Nevermore:2"),
        ("regex", "NIR", json!({}), ""),
        ("regex", "", json!({}), ""),
        ("prefix", "NIR", json!({"analyzer": "keyword"}), ""),
    ] {
        assert_eq!(ask(place, text, completion.clone()), expected, "{place} {text} {completion}");
    }
    // Three bytes in common; of a weight of 10, ten times as much.
    let fuzzy = json!({"prefix": "nirv", "completion": {"field": "suggest", "fuzzy": {"fuzziness": 1}}});
    let scores: Vec<f64> = options(&node, "music", &fuzzy).into_iter().map(|(.., score)| score).collect();
    assert_eq!(scores, [102.0, 30.0]);
}

#[test]
fn documents_behind_the_filter_of_an_alias_are_not_suggested() {
    let node = songs();
    let filter = json!({"filter": {"term": {"tag": "b"}}});
    node.ok("put_alias", &[("index", "music"), ("name", "some")], &[], &filter);
    let n = json!({"prefix": "n", "completion": {"field": "suggest"}});
    assert_eq!(shown(&node, "some", &n), "Nirvana:2 Nine Inch Nails:3");
    node.ok("delete_doc", &[("index", "music"), ("id", "2")], &[("refresh", "true")], &Value::Null);
    assert_eq!(shown(&node, "some", &n), "Nine Inch Nails:3");
    assert_eq!(shown(&node, "music", &n), "Nevermind:1 Noir Désir:5 Nine Inch Nails:3");
    let update = json!({"doc": {"suggest": {"input": "Never say never", "weight": 50}}});
    node.ok("update_doc", &[("index", "music"), ("id", "3")], &[("refresh", "true")], &update);
    assert_eq!(shown(&node, "music", &n), "Never say never:3 Nevermind:1 Noir Désir:5");
}

#[test]
fn several_indices_are_one_list() {
    let node = songs();
    node.create("more", &json!({"suggest": {"type": "completion"}}));
    node.create("without", &json!({"n": {"type": "integer"}}));
    node.load("more", &[json!({"_id": "x", "suggest": {"input": "Nirvana", "weight": 20}})]);
    let asked = |skip| json!({"prefix": "nirv", "completion": {"field": "suggest", "skip_duplicates": skip}});
    assert_eq!(shown(&node, "music,more,without", &asked(false)), "Nirvana:1 Nirvana:x Nirvana:2");
    assert_eq!(shown(&node, "music,more", &asked(true)), "Nirvana:1");
    let typed = node.ok(
        "search",
        &[("index", "music")],
        &[("typed_keys", "true")],
        &json!({"suggest": {"s": {"prefix": "Noir", "completion": {"field": "suggest"}}}}),
    );
    assert_eq!(
        typed["suggest"],
        json!({"completion#s": [{
            "text": "Noir", "offset": 0, "length": 4,
            "options": [{
                "text": "Noir Désir", "_index": "music", "_id": "5", "_score": 7.0,
                "_source": {"suggest": {"input": "Noir Désir", "weight": "7"}, "tag": "a"},
            }],
        }]})
    );
    // Nothing else was asked for.
    assert_eq!(
        typed["hits"],
        json!({"total": {"value": 0, "relation": "eq"}, "max_score": null, "hits": []})
    );
    let both = json!({"query": {"match_all": {}}, "suggest": {"s": {"prefix": "Noir", "completion": {"field": "suggest"}}}});
    assert_eq!(node.search("music", &both)["hits"]["total"]["value"], 5);
}

#[test]
fn other_requests_treat_the_field_as_elasticsearch_does() {
    let node = songs();
    assert_eq!(node.ids("music", &json!({"exists": {"field": "suggest"}})), ["1", "2", "3", "5"]);
    assert_eq!(node.ids("music", &json!({"term": {"suggest.raw": "Nirvana"}})), ["1", "2"]);
    let body = json!({"query": {"ids": {"values": ["2", "3"]}}, "fields": ["suggest"], "_source": false});
    let found = node.search("music", &body);
    assert_eq!(
        found["hits"]["hits"][0]["fields"]["suggest"],
        json!([{"input": "Nirvana", "weight": 10}, {"input": "Nevermore"}])
    );
    assert_eq!(found["hits"]["hits"][1]["fields"]["suggest"], json!(["Nine Inch Nails"]));
    for body in [
        json!({"sort": "suggest"}),
        json!({"aggs": {"a": {"terms": {"field": "suggest"}}}}),
        json!({"docvalue_fields": ["suggest"]}),
    ] {
        let error = node.search_error("music", &body).to_string();
        assert!(
            error.contains("Fielddata is not supported on field [suggest] of type [completion]"),
            "{error}"
        );
    }
    let error = node.search_error("music", &json!({"query": {"term": {"suggest": "n"}}})).to_string();
    assert!(error.contains("Field [suggest] of type [completion] does not support term queries"), "{error}");
}

#[test]
fn malformed_completions_are_named() {
    let node = songs();
    let completion = |options: Value| json!({"s": {"prefix": "a", "completion": options}});
    for (section, reason) in [
        (completion(json!({})), "the required field option [field] is missing"),
        (completion(json!({"field": "tag"})), "Field [tag] is not a completion suggest field"),
        (completion(json!({"field": "nothing"})), "no mapping found for field [nothing]"),
        (completion(json!({"field": "suggest", "size": 0})), "size must be positive"),
        (completion(json!({"field": "suggest", "nope": 1})), "[completion] unknown field [nope]"),
        (
            completion(json!({"field": "suggest", "contexts": ["a"]})),
            "[contexts] of a completion takes an object",
        ),
        (completion(json!({"field": "suggest", "fuzzy": {"nope": 1}})), "[fuzzy] unknown field [nope]"),
        (
            completion(json!({"field": "suggest", "fuzzy": {"fuzziness": 3}})),
            "fuzziness must be between 0 and 2",
        ),
        (
            completion(json!({"field": "suggest", "fuzzy": {"min_length": -1}})),
            "fuzzyMinLength must not be negative",
        ),
        (completion(json!({"field": "suggest", "regex": {"nope": 1}})), "[regex] unknown field [nope]"),
        (
            completion(json!({"field": "suggest", "analyzer": "nope"})),
            "[completion] analyzer [nope] not found",
        ),
        (json!({"s": {"completion": {"field": "suggest"}}}), "'prefix/text' or 'regex' must be defined"),
        (
            json!({"s": {"regex": "a", "completion": {"field": "suggest", "fuzzy": true}}}),
            "can not use 'fuzzy' options with 'regex",
        ),
        (
            json!({"s": {"regex": "a", "prefix": "b", "completion": {"field": "suggest"}}}),
            "[regex] cannot stand beside [prefix] or [text]",
        ),
        (json!({"s": {"regex": "[a", "completion": {"field": "suggest"}}}), "expected"),
    ] {
        let error = node.search_error("music", &json!({"suggest": section}));
        assert_eq!(error["status"], 400, "{error}");
        assert!(error.to_string().contains(reason), "{error} lacks {reason}");
    }
}
