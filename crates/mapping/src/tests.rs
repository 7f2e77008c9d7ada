//! Tests of mappings and documents against Elasticsearch's responses.

use std::sync::Arc;

use serde_json::{Value, json};
use sparrow_runtime::work::{self, Memory, Probe, Work};

use super::*;

fn mapping(properties: Value) -> Mapping {
    Mapping::parse(&json!({ "properties": properties })).unwrap()
}

fn parse(mapping: &Mapping, raw: &str) -> Result<(ParsedDocument, Option<Mapping>), DocumentError> {
    let source: Value = serde_json::from_str(raw).unwrap();
    mapping.parse_document("4", &source, &Limits::default()).map_err(|error| error.locate(raw.as_bytes()))
}

/// Asserts that a document is refused with this reason and these causes.
fn refused(mapping: &Mapping, raw: &str, reason: &str, causes: &[(&str, &str)]) {
    let error = parse(mapping, raw).unwrap_err();
    assert_eq!(error.reason(), reason, "{raw}");
    let found: Vec<(&str, &str)> =
        error.causes().iter().map(|(es_type, reason)| (*es_type, reason.as_str())).collect();
    assert_eq!(found, causes, "{raw}");
}

/// What a request makes, and how often it checked whether it must stop, which it does at each entry of a definition.
fn checked<T>(make: impl FnOnce() -> T) -> (T, u64) {
    let probe = Probe::new(u64::MAX);
    Probe::set(Some(Arc::clone(&probe)));
    let memory = Arc::new(Memory::new(usize::MAX, usize::MAX));
    let entered = work::enter(Some(Work::new(Arc::default(), memory, "<test>")));
    Probe::set(None);
    let made = make();
    drop(entered);
    (made, probe.checks())
}

fn books() -> Mapping {
    mapping(json!({
        "title": {"type": "text"}, "tag": {"type": "keyword"}, "n": {"type": "integer"},
        "v": {"type": "sparse_vector"}
    }))
}

#[test]
fn recorded_document_errors() {
    let books = books();
    refused(
        &books,
        r#"{"n": "not a number"}"#,
        "[1:7] failed to parse field [n] of type [integer] in document with id '4'. Preview of field's value: 'not a number'",
        &[("number_format_exception", "For input string: \"not a number\"")],
    );
    for (weight, shown) in [("-1", "-1.0"), ("0", "0.0")] {
        let cause = format!(
            "featureValue must be a positive normal float, got: {shown} for feature alpha on field v which is \
             less than the minimum positive normal float: 1.17549435E-38"
        );
        refused(
            &books,
            &format!(r#"{{"v": {{"alpha": {weight}}}}}"#),
            &format!("[1:17] failed to parse: {cause}"),
            &[("illegal_argument_exception", &cause)],
        );
    }
    refused(
        &books,
        r#"{"v": {"alpha": "abc"}}"#,
        "[1:17] failed to parse: For input string: \"abc\"",
        &[("number_format_exception", "For input string: \"abc\"")],
    );
}

#[test]
fn recorded_field_explosion() {
    let fields: Vec<String> = (0..1001).map(|n| format!("\"f{n}\": {n}")).collect();
    let raw = format!("{{{}}}", fields.join(", "));
    let cause = "Limit of total fields [1000] has been exceeded while adding new fields [1001]";
    let error = parse(&Mapping::empty(), &raw).unwrap_err();
    assert_eq!(error.es_type(), "document_parsing_exception");
    assert_eq!(error.reason(), format!("[1:12791] failed to parse: {cause}"));
    assert_eq!(error.caused_by(), Some(("illegal_argument_exception", cause.to_owned())));

    let explicit: serde_json::Map<String, Value> =
        (0..1001).map(|n| (format!("f{n}"), json!({"type": "integer"}))).collect();
    let error = mapping(Value::Object(explicit)).check_total_fields(1000).unwrap_err();
    assert_eq!(error.es_type(), "illegal_argument_exception");
    assert_eq!(error.reason(), "Limit of total fields [1000] has been exceeded");
    assert_eq!(error.caused_by(), None);
}

#[test]
fn tokens_in_an_unmapped_field_explode() {
    let tokens: serde_json::Map<String, Value> =
        (0..1200).map(|n| (format!("token{n}"), json!(0.5))).collect();
    let raw = json!({ "ml": { "tokens": tokens } }).to_string();
    let error = parse(&Mapping::empty(), &raw).unwrap_err();
    let reason = error.reason();
    // Two objects and 998 floats fit.
    assert!(
        reason.ends_with(
            "failed to parse: Limit of total fields [1000] has been exceeded while adding new fields [1001]"
        ),
        "{reason}"
    );
    let limits = Limits { ignore_dynamic_beyond_limit: true, ..Limits::default() };
    let source: Value = serde_json::from_str(&raw).unwrap();
    let (parsed, wider) = Mapping::empty().parse_document("1", &source, &limits).unwrap();
    assert_eq!((wider.unwrap().field_count(), parsed.numbers.len()), (1000, 998));
}

#[test]
fn recorded_mapping_errors() {
    let error = Mapping::parse(&json!({"properties": {"x": {"type": "nope"}}})).unwrap_err();
    let inner = "The mapper type [nope] declared on field [x] does not exist. It might have been created within a \
                 future version or requires a plugin to be installed. Check the documentation.";
    assert_eq!(error.es_type(), "mapper_parsing_exception");
    assert_eq!(error.reason(), format!("Failed to parse mapping: {inner}"));
    assert_eq!(error.caused_by(), Some(("mapper_parsing_exception", inner.to_owned())));
    assert_eq!(error.root_cause(), ("mapper_parsing_exception", inner.to_owned()));

    let error = books().merge_update(&json!({"properties": {"tag": {"type": "integer"}}})).unwrap_err();
    assert_eq!(error.es_type(), "illegal_argument_exception");
    assert_eq!(error.reason(), "mapper [tag] cannot be changed from type [keyword] to [integer]");
    assert_eq!(error.caused_by(), None);
}

#[test]
fn types_that_are_said_to_be_there_are_there() {
    let has_no_such = |name: &str| {
        let properties = json!({"f": {"type": name, "path": "g"}, "g": {"type": "keyword"}});
        let found = Mapping::parse(&json!({"properties": properties}));
        found.is_err_and(|error| error.to_string().contains("declared on field [f] does not exist"))
    };
    assert_eq!(error::known_types::TYPES.iter().find(|name| has_no_such(name)), None);
    assert_eq!(error::known_types::ELSEWHERE.iter().find(|name| !has_no_such(name)), None);
}

#[test]
fn what_stands_for_a_null_has_to_be_a_value_of_the_field() {
    let with = |kind: &str, value: Value| json!({"properties": {"o": {"properties": {"x": {"type": kind, "null_value": value}}}}});
    for (kind, value, expected) in [
        ("date", json!("soon"), "failed to parse date field [soon]"),
        ("date", json!(i64::MAX), "failed to parse date field [9223372036854775807]"),
        ("date_nanos", json!("1500-01-01"), "date[1500-01-01T00:00:00Z] is before the epoch"),
        ("long", json!("many"), "For input string: \"many\""),
        ("byte", json!(300), "out of range for a byte"),
        ("boolean", json!("perhaps"), "Failed to parse value [perhaps]"),
    ] {
        let error = Mapping::parse(&with(kind, value.clone())).unwrap_err().reason();
        let start = "Failed to parse mapping: Error parsing [null_value] on field [o.x]: ";
        assert!(error.starts_with(start) && error.contains(expected), "{error}");
        assert!(Mapping::stored(&with(kind, value)).is_ok(), "an earlier version took it");
    }
    for (kind, value) in [
        ("date", json!("2020-01-01")),
        ("long", json!("7")),
        ("boolean", json!(true)),
        ("double", json!(null)),
    ] {
        assert!(Mapping::parse(&with(kind, value)).is_ok(), "{kind}");
    }
}

#[test]
fn unknown_parameters_are_named() {
    let check = |definition: Value, expected: &str| {
        let error = Mapping::parse(&definition).unwrap_err();
        assert_eq!(error.reason(), format!("Failed to parse mapping: {expected}"), "{definition}");
    };
    check(
        json!({"properties": {"x": {"type": "keyword", "foo": 1}}}),
        "unknown parameter [foo] on mapper [x] of type [keyword]",
    );
    check(
        json!({"properties": {"x": {"type": "sparse_vector", "analyzer": "english"}}}),
        "unknown parameter [analyzer] on mapper [x] of type [sparse_vector]",
    );
    check(
        json!({"properties": {"x": {"type": "token_count", "analyzer": "standard", "store": true}}}),
        "parameter [store] with value [true] on mapper [x] of type [token_count] is not supported",
    );
    check(json!({"propertys": {}}), "Root mapping definition has unsupported parameters:  [propertys : {}]");
    check(json!({"properties": {"x": {"analyzer": "english"}}}), "No type specified for field [x]");
    check(
        json!({"properties": {"x": {"type": "dense_vector", "dims": 5000}}}),
        "The number of dimensions should be in the range [1, 4096] but was [5000]",
    );
}

#[test]
fn mappings_print_as_elasticsearch_shows_them() {
    let definition = json!({
        "dynamic": "strict",
        "_source": {"excludes": ["ml.tokens"]},
        "properties": {
            "b": {"type": "text", "analyzer": "english", "fields": {"raw": {"type": "keyword", "ignore_above": 256}}},
            "a": {"type": "long", "index": true},
            "ml.tokens": {"type": "rank_features"},
            "vec": {"type": "dense_vector", "dims": 3},
            "when": {"type": "date", "format": "yyyy/MM/dd"},
            "o": {"type": "object", "enabled": false}
        }
    });
    let mapping = Mapping::parse(&definition).unwrap();
    let expected = json!({
        "dynamic": "strict",
        "_source": {"excludes": ["ml.tokens"]},
        "properties": {
            "a": {"type": "long"},
            "b": {"type": "text", "analyzer": "english", "fields": {"raw": {"type": "keyword", "ignore_above": 256}}},
            "ml": {"properties": {"tokens": {"type": "rank_features"}}},
            "o": {"type": "object", "enabled": false},
            "vec": {
                "type": "dense_vector", "dims": 3, "index": true, "similarity": "cosine",
                "index_options": {"type": "int8_hnsw", "m": 16, "ef_construction": 100}
            },
            "when": {"type": "date", "format": "yyyy/MM/dd"}
        }
    });
    assert_eq!(mapping.to_json().to_string(), expected.to_string());
    assert_eq!(Mapping::parse(&mapping.to_json()).unwrap(), mapping);
    assert_eq!(mapping.field_count(), 8);
    assert_eq!(
        mapping.field("b.raw"),
        Some(&FieldType::Keyword { ignore_above: Some(256), normalizer: None, kind: KeywordKind::Keyword })
    );
    assert_eq!(mapping.field("ml.tokens"), Some(&FieldType::RankFeatures));
    assert!(mapping.field("ml").is_some_and(|field| matches!(field, FieldType::Object { .. })));
    assert_eq!(mapping.leaf_fields().count(), 6);
}

#[test]
fn updates_add_and_refuse() {
    let old = books();
    let merged = old
        .merge_update(&json!({"properties": {
            "title": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
            "tag": {"type": "keyword", "ignore_above": 10},
            "extra.deep": {"type": "float"}
        }}))
        .unwrap();
    assert!(merged.field("title.raw").is_some() && merged.field("extra.deep").is_some());
    assert_eq!(
        merged.field("tag"),
        Some(&FieldType::Keyword { ignore_above: Some(10), normalizer: None, kind: KeywordKind::Keyword })
    );
    assert_eq!(merged.field("v"), Some(&FieldType::SparseVector));
    let refused = |definition: Value, reason: &str| {
        assert_eq!(old.merge_update(&definition).unwrap_err().reason(), reason, "{definition}");
    };
    refused(
        json!({"properties": {"title": {"type": "text", "analyzer": "english"}}}),
        "Mapper for [title] conflicts with existing mapper:\n\tCannot update parameter [analyzer] from [default] to [english]",
    );
    refused(
        json!({"properties": {"tag": {"properties": {"x": {"type": "text"}}}}}),
        "can't merge a non object mapping [tag] with an object mapping",
    );
}

#[test]
fn dynamic_mapping_guesses_types() {
    let raw = r#"{"s": "hello", "i": 3, "f": 1.5, "b": true, "d": "2024-02-29T10:00:00Z", "d2": "2024/02/29",
        "year": "2024", "o": {"x": [1, 2]}, "n": null, "e": [], "l": [null, "a"], "a.b": 1}"#;
    let (parsed, wider) = parse(&Mapping::empty(), raw).unwrap();
    let expected = json!({"properties": {
        "a": {"properties": {"b": {"type": "long"}}},
        "b": {"type": "boolean"},
        "d": {"type": "date"},
        "d2": {"type": "date", "format": "yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis"},
        "f": {"type": "float"},
        "i": {"type": "long"},
        "l": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
        "o": {"properties": {"x": {"type": "long"}}},
        "s": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
        "year": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
    }});
    assert_eq!(wider.unwrap().to_json(), expected);
    assert!(parsed.texts.contains(&("s".to_owned(), "hello".to_owned())));
    assert!(parsed.keywords.contains(&("s.keyword".to_owned(), "hello".to_owned())));
    assert!(parsed.numbers.contains(&("o.x".to_owned(), NumberValue::I64(2))));
    assert!(parsed.numbers.contains(&("d".to_owned(), NumberValue::I64(1_709_200_800_000))));
    assert!(parsed.field_names.contains(&"o.x".to_owned()) && parsed.field_names.contains(&"s".to_owned()));

    let (_, again) = parse(&Mapping::parse(&expected).unwrap(), raw).unwrap();
    assert!(again.is_none(), "a known document changes nothing");
}

#[test]
fn long_float_arrays_become_dense_vectors() {
    let raw = json!({ "vec": vec![0.5; 128] }).to_string();
    let (parsed, wider) = parse(&Mapping::empty(), &raw).unwrap();
    assert_eq!(parsed.dense[0].1.len(), 128);
    assert!(
        matches!(wider.unwrap().field("vec"), Some(FieldType::DenseVector(field)) if field.dims == Some(128))
    );
}

#[test]
fn dynamic_can_be_off() {
    let mut definition = json!({"dynamic": false, "properties": {"a": {"type": "long"}}});
    let (parsed, wider) = parse(&Mapping::parse(&definition).unwrap(), r#"{"a":1,"x":{"y":2}}"#).unwrap();
    assert!(wider.is_none() && parsed.field_names == ["a"]);
    definition["dynamic"] = "strict".into();
    let strict = Mapping::parse(&definition).unwrap();
    let error = parse(&strict, r#"{"a":1,"x":{"y":2}}"#).unwrap_err();
    assert_eq!(error.es_type(), "strict_dynamic_mapping_exception");
    assert_eq!(
        error.reason(),
        "[1:12] mapping set to strict, dynamic introduction of [x] within [_doc] is not allowed"
    );
}

#[test]
fn objects_and_values_do_not_mix() {
    let mapping = mapping(json!({"o": {"properties": {"x": {"type": "long"}}}, "n": {"type": "long"}}));
    refused(
        &mapping,
        r#"{"o": 5}"#,
        "[1:7] object mapping for [o] tried to parse field [o] as object, but found a concrete value",
        &[],
    );
    refused(
        &mapping,
        r#"{"n": {"a":1}}"#,
        "[1:13] failed to parse field [n] of type [long] in document with id '4'. Preview of field's value: '{a=1}'",
        &[("illegal_argument_exception", "Cannot parse object as number")],
    );
    refused(
        &mapping,
        r#"{"n.a": 1}"#,
        "[1:9] failed to parse: Could not dynamically add mapping for field [n.a]. Existing mapping for [n] must be of type object but found [long].",
        &[(
            "illegal_argument_exception",
            "Could not dynamically add mapping for field [n.a]. Existing mapping for [n] must be of type object but found [long].",
        )],
    );
    let deep = (0..30).fold("1".to_owned(), |inner, _| format!("{{\"a\":{inner}}}"));
    assert!(parse(&Mapping::empty(), &deep).unwrap_err().reason().contains("The depth of the field"));
}

#[test]
fn sparse_fields_are_strict() {
    let mapping = mapping(json!({"v": {"type": "sparse_vector"}, "r": {"type": "rank_features"}}));
    let (parsed, _) = parse(&mapping, r#"{"v": [{"a": 1, "x.y": 2}, {"a": 3}], "r": {}}"#).unwrap();
    assert_eq!(parsed.sparse, [("v".to_owned(), [("a", 3.0), ("x.y", 2.0)].into_iter().collect())]);
    assert_eq!(parsed.field_names, ["v"]);
    let fails = |raw: &str, part: &str| {
        let reason = parse(&mapping, raw).unwrap_err().reason();
        assert!(reason.contains(part), "{raw}: {reason}");
    };
    fails(
        r#"{"r": {"a.b": 1}}"#,
        "[1:8] failed to parse: [rank_features] fields do not support dots in feature names but found [a.b]",
    );
    fails(
        r#"{"v": "x"}"#,
        "[sparse_vector] fields must be json objects, expected a START_OBJECT but got: VALUE_STRING",
    );
    fails(r#"{"v": {"a": {}}}"#, "strictly positive float, but got unexpected token START_OBJECT");
    fails(r#"{"v": {"a": "NaN"}}"#, "featureValue must be finite, got: NaN for feature a on field v");
    fails(r#"{"r": [{"a": 1}, {"a": 2}]}"#, "multiple values for the same rank feature [r.a]");
}

#[test]
fn rank_feature_stores_what_lucene_does() {
    let definition = json!({
        "rank": {"type": "rank_feature"},
        "length": {"type": "rank_feature", "positive_score_impact": false, "null_value": 4}
    });
    let mapping = mapping(definition.clone());
    assert_eq!(mapping.to_json()["properties"], definition);
    assert_eq!(mapping.field("length"), Some(&FieldType::RankFeature { positive_score_impact: false }));
    let stored = |raw: &str| parse(&mapping, raw).unwrap().0.numbers;
    // Nine significant bits: 1.1 is cut, powers of two are exact.
    assert_eq!(
        stored(r#"{"rank": "1.1", "length": null}"#),
        [("rank".to_owned(), NumberValue::F64(1.097_656_25)), ("length".to_owned(), NumberValue::F64(0.25))]
    );
    assert_eq!(stored(r#"{"rank": [null, 8]}"#), [("rank".to_owned(), NumberValue::F64(8.0))]);
    let fails = |raw: &str, part: &str| {
        let error = parse(&mapping, raw).unwrap_err();
        assert!(error.causes()[0].1.contains(part), "{raw}: {error}");
    };
    fails(r#"{"rank": -1}"#, "must be a positive normal float, got: -1.0 for feature rank on field _feature");
    fails(r#"{"length": 0}"#, "featureValue must be finite, got: Infinity for feature length");
    fails(r#"{"rank": [1, 2]}"#, "multiple values for the same field [rank] in the same document");
    fails(r#"{"rank": "x"}"#, "For input string: \"x\"");
    fails(r#"{"rank": true}"#, "Current token (VALUE_TRUE) not numeric");
}

#[test]
fn dense_vectors_are_checked() {
    let mapping = mapping(json!({
        "v": {"type": "dense_vector", "dims": 2}, "free": {"type": "dense_vector", "similarity": "l2_norm"},
        "off": {"type": "dense_vector", "dims": 2, "index": false}
    }));
    let (parsed, wider) = parse(&mapping, r#"{"v": [1, 0.5], "free": [1,2,3], "off": [1, 2]}"#).unwrap();
    // Scripts compare the vectors of a field that is not searched.
    let expected = [("v", vec![1.0, 0.5]), ("free", vec![1.0, 2.0, 3.0]), ("off", vec![1.0, 2.0])];
    assert_eq!(parsed.dense, expected.map(|(path, vector)| (path.to_owned(), vector)));
    let mut there = parsed.field_names;
    there.sort();
    assert_eq!(there, ["free", "off", "v"], "a field that is not searched exists, too");
    let wider = wider.unwrap();
    assert!(matches!(wider.field("free"), Some(FieldType::DenseVector(field)) if field.dims == Some(3)));
    assert_eq!(wider.to_json()["properties"]["free"]["dims"], 3);
    assert_eq!(wider.field_count(), mapping.field_count());
    let fails = |mapping: &Mapping, raw: &str, part: &str| {
        let reason = parse(mapping, raw).unwrap_err().reason();
        assert!(reason.contains(part), "{raw}: {reason}");
    };
    fails(
        &mapping,
        r#"{"v": [1]}"#,
        "in doc [document with id '4'] has a different number of dimensions [1] than defined in the mapping [2]",
    );
    fails(&mapping, r#"{"v": [1,2,3]}"#, "has more dimensions than defined in the mapping [2]");
    fails(
        &mapping,
        r#"{"v": [0,0]}"#,
        "The [cosine] similarity does not support vectors with zero magnitude. Preview of invalid vector: [0.0, 0.0]",
    );
    fails(&mapping, r#"{"v": [1e40, 0]}"#, "do not support NaN or infinite values");
    fails(&wider, r#"{"free": [1]}"#, "different number of dimensions [1]");
}

#[test]
fn source_is_filtered_when_stored() {
    let mapping = Mapping::parse(&json!({"_source": {"excludes": ["ml.tokens"]}, "properties": {"ml.tokens": {"type": "sparse_vector"}}})).unwrap();
    let (parsed, _) = parse(&mapping, r#"{"ml":{"tokens":{"a":1},"model_id":"m"},"t":"x"}"#).unwrap();
    assert_eq!(parsed.stored_source.as_deref(), Some(br#"{"ml":{"model_id":"m"},"t":"x"}"#.as_slice()));
    assert_eq!(parsed.sparse[0].1.len(), 1);
    let (parsed, _) =
        parse(&Mapping::parse(&json!({"_source": {"enabled": false}})).unwrap(), r#"{"a":1}"#).unwrap();
    assert_eq!(parsed.stored_source, Some(Vec::new()));
    let (parsed, _) = parse(&Mapping::empty(), r#"{"a":1}"#).unwrap();
    assert_eq!(parsed.stored_source, None);
}

#[test]
fn keywords_ignore_long_values_and_refuse_immense_ones() {
    let mapping = mapping(json!({"short": {"type": "keyword", "ignore_above": 3}, "k": {"type": "keyword"}}));
    let (parsed, _) =
        parse(&mapping, r#"{"short": ["abc", "abcd"], "k": [1, true, 1.5, "x", "x"]}"#).unwrap();
    let keywords: Vec<(&str, &str)> =
        parsed.keywords.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let of_k = ["1", "true", "1.5", "x"].map(|value| ("k", value));
    // Which field has a value that is ignored can be asked for.
    assert_eq!(keywords, [&[("short", "abc"), ("_ignored", "short")][..], &of_k[..]].concat());
    let raw = json!({ "k": "a".repeat(40_000) }).to_string();
    assert!(
        parse(&mapping, &raw).unwrap_err().causes()[0]
            .1
            .starts_with("Document contains at least one immense term")
    );
}

#[test]
fn aliases_stand_for_fields() {
    let alias = |path: &str| json!({"type": "alias", "path": path});
    let definition = json!({"properties": {
        "title": {"type": "text", "fields": {"raw": {"type": "keyword", "ignore_above": 5}}},
        "name": alias("title"),
        "exact": alias("title.raw"),
        "labels": {"type": "flattened"},
        "tags": alias("labels"),
        "o": {"properties": {"name": alias("title")}},
    }});
    let mapping = Mapping::parse(&definition).unwrap();
    assert_eq!(mapping.to_json(), definition);
    assert_eq!(mapping.field_count(), 8);
    for (alias, field, source) in [
        ("name", "title", "title"),
        ("exact", "title.raw", "title"),
        ("o.name", "title", "title"),
        ("tags", "labels", "labels"),
        ("tags.a.b", "labels.a.b", "labels.a.b"),
    ] {
        assert_eq!(mapping.concrete(alias), field);
        assert_eq!(mapping.concrete(field), field);
        assert_eq!(mapping.field(alias), mapping.field(field), "{alias}");
        assert_eq!(mapping.source_path(alias), source);
        assert_eq!(mapping.parameter(alias, "ignore_above"), mapping.parameter(field, "ignore_above"));
    }
    assert!(mapping.parameter("exact", "ignore_above").is_some());
    assert_eq!((mapping.field("name.raw"), mapping.concrete("name.raw")), (None, "name.raw".into()));
    let mut leaves: Vec<&str> = mapping.leaf_fields().map(|(path, _)| path).collect();
    leaves.sort_unstable();
    assert_eq!(leaves, ["labels", "title", "title.raw"]);
    assert_eq!(mapping.named_fields().count(), 7);

    refused(&mapping, r#"{"name": "x"}"#, "[1:10] Cannot write to a field alias [name].", &[]);
    let (nothing, _) = parse(&mapping, r#"{"name": []}"#).unwrap();
    assert_eq!(nothing, ParsedDocument::default());
    let raw = r#"{"title": "x"}"#;
    assert_eq!(
        mapping.read_document("1", raw.as_bytes(), &Limits::default()).unwrap().0.field_names.len(),
        2
    );
    assert!(mapping.read_document("1", br#"{"name": "x"}"#, &Limits::default()).is_none());

    let turned = mapping.merge_update(&json!({"properties": {"exact": alias("title")}})).unwrap();
    assert_eq!(turned.concrete("exact"), "title");
    let dangling = mapping.merge_update(&json!({"properties": {"more": alias("name")}})).unwrap_err();
    assert_eq!(
        dangling.to_string(),
        "Invalid [path] value [name] for field alias [more]: an alias cannot refer to another alias."
    );
    assert!(Mapping::parse_part(&json!({"properties": {"a": alias("elsewhere")}})).is_ok());
}

/// The patterns are some that a build of before took.
#[test]
fn stored_mappings_open_with_formats_that_requests_may_not_have() {
    for format in ["yyyy-ddd", "HHH", "yyyy]", "yyyy#MM", "yyyy{MM}", "dd'T"] {
        let definition = json!({
            "properties": {"d": {"type": "date", "format": format}, "e": {"type": "date", "format": format,
                "fields": {"sub": {"type": "date", "format": format!("{format}||yyyy")}}}},
            "dynamic_date_formats": [format],
            "dynamic_templates": [{"t": {"match": "*_d", "mapping": {"type": "date", "format": format}}}]});
        let mapping = Mapping::stored(&definition).unwrap();
        assert_eq!(mapping.to_json(), definition, "they keep their names");
        let mut owners: Vec<String> =
            mapping.unusable_formats().into_iter().map(|(owner, _)| owner).collect();
        owners.sort_unstable();
        assert_eq!(owners, ["d", "dynamic_date_formats", "e", "e.sub"]);
        let Some(crate::FieldType::Date { formats }) = mapping.field("e.sub") else { unreachable!() };
        assert_eq!(date::parse_date(formats, "2024", false), Some(1_704_067_200_000), "others still read");
        assert_eq!(formats[0].write(0, &sparrow_wire::Zone::UTC), "1970-01-01T00:00:00.000Z");
        for key in ["properties", "dynamic_date_formats", "dynamic_templates"] {
            let request = json!({key: definition[key]});
            assert!(Mapping::parse(&request).is_err(), "{format} {key}");
            assert!(Mapping::empty().merge_update(&request).is_err(), "{format} {key}");
        }
        // An index with such a field takes others.
        let wider = json!({"properties": {"n": {"type": "long"}}});
        assert!(mapping.merge_update(&wider).is_ok());
    }
}

/// A build of before had no such limits.
#[test]
fn stored_mappings_open_with_more_than_requests_may_have() {
    let keyword = json!({"type": "keyword"});
    let fields: serde_json::Map<String, Value> =
        (0..=crate::MOST_TOTAL_FIELDS).map(|at| (format!("f{at}"), keyword.clone())).collect();
    let names: Vec<String> = (0..2000).map(|at| format!("*a*b{at}")).collect();
    let templates: Vec<Value> = (0..50_000)
        .map(|at| json!({format!("t{at}"): {"path_match": format!("*x{at}"), "mapping": keyword}}))
        .collect();
    let long = json!([{"t": {"match": names, "mapping": keyword}}]);
    let (fields_given, templates_given) = (fields.len() as u64, templates.len() as u64);
    for (definition, entries) in [
        (json!({"properties": fields}), fields_given),
        (json!({"_source": {"excludes": names}}), 0),
        (json!({"dynamic_templates": templates}), templates_given),
        (json!({"dynamic_templates": long}), 1),
    ] {
        let key = definition.as_object().unwrap().keys().next().unwrap().clone();
        let (mapping, checks) = checked(|| Mapping::stored(&definition));
        let mapping = mapping.unwrap();
        // One look at each entry or two, not a comparison of each with all others.
        assert!(
            (entries..=2 * entries + 10).contains(&checks),
            "{key}: {checks} checks of {entries} entries"
        );
        assert_eq!(mapping.to_json(), definition, "{key}");
        assert!(Mapping::parse(&definition).is_err(), "{key}");
        assert!(Mapping::empty().merge_update(&definition).is_err(), "{key}");
        let wider = json!({"properties": {"n": {"type": "long"}}});
        assert!(mapping.merge_update(&wider).is_ok(), "{key}");
    }
}
