use proptest::prelude::*;
use serde_json::json;

use crate::{Limits, Mapping};

fn mapping(source: &str) -> Mapping {
    Mapping::parse(&json!({
        "_source": serde_json::from_str::<serde_json::Value>(source).unwrap(),
        "dynamic_templates": [{"ids": {"match": "id_*", "mapping": {"type": "keyword"}}}],
        "properties": {
            "v": {"type": "sparse_vector"},
            "r": {"type": "rank_features"},
            "ml": {"properties": {"tokens": {"type": "sparse_vector"}, "n": {"type": "long"}}},
            "off": {"type": "object", "enabled": false},
            "fixed": {"dynamic": "strict", "properties": {"t": {"type": "text"}}},
            "t": {"type": "text", "fields": {"raw": {"type": "keyword", "ignore_above": 3}}},
            "k": {"type": "keyword", "null_value": "none"},
            "copied": {"type": "text", "copy_to": ["t", "all"]},
            "unindexed": {"type": "text", "index": false},
            "c": {"type": "constant_keyword"},
            "ip": {"type": "ip", "ignore_malformed": true},
            "d": {"type": "dense_vector"},
        },
    }))
    .unwrap()
}

/// Asserts that both readers give the same result for a document; returns whether the fast one handled it.
fn agree(mapping: &Mapping, source: &str) -> bool {
    let limits = Limits { depth: 4, ..Limits::default() };
    let Some((quick, wider)) = mapping.read_document("1", source.as_bytes(), &limits) else { return false };
    let value = sparrow_wire::strict_json::from_slice(source.as_bytes())
        .unwrap_or_else(|error| panic!("{source}: was read, though {error}"));
    let (slow, widened) = mapping
        .parse_document("1", &value, &limits)
        .unwrap_or_else(|error| panic!("{source}: was read, though {error:?}"));
    assert_eq!(quick, slow, "{source}");
    assert_eq!(wider.map(|it| it.to_json()), widened.map(|it| it.to_json()), "{source}");
    true
}

#[test]
fn a_valid_document_is_read_at_once_and_means_the_same() {
    let long = "x".repeat(40_000);
    let texts = format!(r#"{{"t": "{long}", "unindexed": "{long}", "k": ["a", "a", 1, null, true]}}"#);
    let many: Vec<String> = (0..40).map(|n| format!(r#""id_{}": "{}", "n{n}": {n}"#, n, n % 7)).collect();
    let many = format!("{{{}}}", many.join(", "));
    for filter in [
        "{}",
        r#"{"enabled": false}"#,
        r#"{"excludes": ["v"]}"#,
        r#"{"excludes": ["*.tokens", "t", "ml.n"]}"#,
        r#"{"excludes": ["ml"]}"#,
        r#"{"includes": ["t", "ml.n", "*.b"]}"#,
        r#"{"includes": ["v", "ml", "off.*"], "excludes": ["ml.tokens", "*.e"]}"#,
    ] {
        let mapping = mapping(filter);
        for source in [
            r#"{"v": {"a": 1, "x.y": 0.0025}, "t": "text", "new": [1, null, [2]]}"#,
            r#"{"ml": {"tokens": {"\u00fcber": 1.25, "\"": 2}, "n": 3, "other": true}, "v": {"b": 1}}"#,
            r#"{"r": {"a": 0.5}, "ml": [{"n": 1}], "off": {"v": {"a": 1, "b": "x"}, "e": [1, {"b": 2}]}}"#,
            r#"{"ml": [{"tokens": {"a": 1}}, null, {"n": [2, 3]}, [], [{"n": 4}], {}]}"#,
            r#"{"t": "caf\u00e9 \"x\" \n\t\u007f \u2028 ✓", "\u006b": "y\\z", "k2": "\ud83d\ude00"}"#,
            r#"{"t": ["a", ["bcd", "efgh"], null], "k": null, "c": "is", "ip": ["::1", "no address", "::1"]}"#,
            r#"{"copied": "to two", "t": "and more", "fixed": {"t": "deep"}, "id_a": "keyword"}"#,
            r#"{"d": [1, 2.5, -3], "new.dotted": "a", "new": {"dotted": "b", "b": 1.5, "e": 1000.0}}"#,
            r#"{"t": "no tokens", "new": {"a": [1, 2]}}"#,
            r#"{"ml": {"other": {}}, "fixed": null, "k": "same", "id_k": "same"}"#,
            r#" {} "#,
            &texts,
            &many,
        ] {
            assert!(agree(&mapping, source), "{filter} {source}");
        }
    }
}

#[test]
fn whatever_else_there_is_the_reader_of_values_has_to_read() {
    let mapping = mapping(r#"{"excludes": ["v", "r", "*.tokens"]}"#);
    for source in [
        r#"{"v": {}}"#,
        r#"{"new": 1.50}"#,
        r#"{"v": {}, "v": {"a": 1}}"#,
        r#"{"ml": {"tokens": {}, "tokens": {"a": 1}}}"#,
        r#"{"ml": [{"tokens": {"a": 1}}, {"tokens": {"a": 1}}]}"#,
        r#"{"ml": "no object"}"#,
        r#"{"ml.tokens": {"a": 1}, "ml": {"tokens": {"b": 1}}}"#,
        r#"{"v": {"a": 1}, "r": {}}"#,
        r#"{"v": {"a": 1}, "v.b": 1}"#,
        r#"{"v": {"a": 1}, "_id": 1}"#,
        r#"{"t": 1, "t": 2}"#,
        r#"{"t": {"b": 1}}"#,
        r#"{"t": "x", "\u0074": "y"}"#,
        r#"{"new": {"a": 1, "a": 2}}"#,
        r#"{"off": {"a": {"b": 1, "b": 2}}}"#,
        r#"{"v": [{"a": 1}, {"a": 2}]}"#,
        r#"{"v": {"a": "1"}}"#,
        r#"{"v": {"a": -1}}"#,
        r#"{"v": {"a": 0}}"#,
        r#"{"v": {"a": 1e39}}"#,
        r#"{"v": {"a": null, "b": 1}}"#,
        r#"{"v": {"a": 1, "a": 2}}"#,
        r#"{"v": {"a": 1, "\u0061": 2}}"#,
        r#"{"v": {"a": 1}, "v": {"b": 2}}"#,
        r#"{"r": {"a.b": 1}}"#,
        r#"{"v": {"a": 1}"#,
        r#"{"v": {"a": 1}} {}"#,
        r#"[{"v": {"a": 1}}]"#,
        r#"{"v": null}"#,
        r#"{"fixed": {"other": 1}}"#,
        r#"{"c": ["one", "two"], "": 1}"#,
        r#"{"a": {"b": {"c": {"d": {"e": 1}}}}}"#,
        r#"{"t": "\ud800"}"#,
        "null",
        "",
    ] {
        assert!(!agree(&mapping, source), "{source}");
    }
    let long = "x".repeat(40_000);
    for source in [format!(r#"{{"v": {{"{long}": 1}}}}"#), format!(r#"{{"k": "{long}"}}"#)] {
        assert!(mapping.read_document("1", source.as_bytes(), &Limits::default()).is_none());
    }
    let many: Vec<String> = (0..40).map(|n| format!(r#""off{}": 1"#, n % 39)).collect();
    let twice = format!("{{{}}}", many.join(", "));
    assert!(mapping.read_document("1", twice.as_bytes(), &Limits::default()).is_none());
}

proptest! {
    #[test]
    fn both_readers_say_the_same(
        members in proptest::collection::vec(
            ("[vrtkcd]|ml|off|fixed|copied|ip|id_a|v\\.x|ml\\.n|new", prop_oneof![
                Just(r#"{"a": 1, "b": 0.25}"#), Just(r#"{"a.b": 3}"#), Just(r#"{"tokens": {"x": 1}, "n": 2}"#),
                Just(r#"{"tokens": {"x": 0}}"#), Just("[1, 2]"), Just("7"), Just(r#""text""#), Just("null"),
                Just("{}"), Just(r#"{"n": "no number"}"#), Just(r#"{"tokens": [{"x": 1}]}"#),
                Just(r#"{"t": "a"}"#), Just(r#""\u0062\n""#), Just(r#"["a", null, ["b"]]"#), Just("[]"),
                Just(r#"[{"n": 1, "b": [{"a": 1}, {"b": 2}]}, null, [{"b": null}]]"#), Just("2020-01-01"),
            ]), 0..6,
        ),
        filter in prop_oneof![
            Just("{}"), Just(r#"{"enabled": false}"#), Just(r#"{"excludes": ["v", "*b"]}"#),
            Just(r#"{"includes": ["*n", "t"], "excludes": ["*.b"]}"#), Just(r#"{"includes": ["ml.b.a", "off"]}"#),
        ],
    ) {
        let members: Vec<String> =
            members.into_iter().map(|(name, value)| format!("{name:?}: {value}")).collect();
        agree(&mapping(filter), &format!("{{{}}}", members.join(", ")));
    }
}
