use serde_json::{Value, json};

use super::super::Mapping;

fn field(definition: Value) -> Result<Mapping, String> {
    let mut definition = definition;
    definition["type"] = "dense_vector".into();
    Mapping::parse(&json!({"properties": {"v": definition}})).map_err(|error| error.reason())
}

fn shown(definition: Value) -> Value {
    let mapping = field(definition).unwrap();
    let shown = mapping.to_json();
    assert_eq!(Mapping::parse(&shown).unwrap(), mapping);
    shown["properties"]["v"].clone()
}

#[test]
fn options_are_shown_with_their_defaults() {
    let options = |definition: Value| shown(definition)["index_options"].clone();
    let default = json!({"type": "int8_hnsw", "m": 16, "ef_construction": 100});
    assert_eq!(options(json!({"dims": 3})), default);
    assert_eq!(options(json!({"dims": 3, "element_type": "byte"})), Value::Null);
    assert_eq!(options(json!({"dims": 3, "index": false})), Value::Null);
    assert_eq!(options(json!({"index_options": {"type": "flat"}})), json!({"type": "flat"}));
    assert_eq!(
        options(json!({"index_options": {"type": "hnsw", "m": 5}})),
        json!({"type": "hnsw", "m": 5, "ef_construction": 100})
    );
    let full =
        json!({"type": "int8_flat", "confidence_interval": 0.9, "rescore_vector": {"oversample": 2.5}});
    assert_eq!(options(json!({ "index_options": full })), full);
    assert_eq!(
        shown(json!({"element_type": "bit", "dims": 16})),
        json!({"type": "dense_vector", "element_type": "bit", "dims": 16, "index": true, "similarity": "l2_norm"})
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let cases = [
        (json!({"dims": 0}), "in the range [1, 4096] but was [0]"),
        (json!({"dims": 4097, "element_type": "byte"}), "in the range [1, 4096] but was [4097]"),
        (json!({"dims": "x"}), "Failed to parse value [x] for parameter [dims]"),
        (json!({"dims": 12, "element_type": "bit"}), "multiple of 8"),
        (json!({"element_type": "bfloat16"}), "invalid element_type [bfloat16]; available types are"),
        (json!({"element_type": "bit", "similarity": "cosine"}), "The [cosine] similarity is not supported"),
        (json!({"similarity": "manhattan"}), "Unknown value [manhattan] for field [similarity]"),
        (json!({"index": false, "similarity": "cosine"}), "Field [similarity] can only be specified"),
        (json!({"index": false, "index_options": {"type": "hnsw"}}), "Field [index_options] can only be"),
        (json!({"index_options": {}}), "[index_options] requires field [type] to be configured"),
        (
            json!({"index_options": {"type": "tree"}}),
            "Unknown vector index options type [tree] for field [v]",
        ),
        (json!({"index_options": {"type": "bbq_hnsw"}}), "[bbq_hnsw] for field [v] is not supported"),
        (
            json!({"index_options": {"type": "hnsw", "foo": {}}}),
            "Mapping definition for [v] has unsupported parameters:  [foo : {}]",
        ),
        (json!({"index_options": {"type": "flat", "m": 5}}), "unsupported parameters:  [m : 5]"),
        (json!({"index_options": {"type": "hnsw", "m": 0}}), "maxConn=0"),
        (json!({"index_options": {"type": "hnsw", "ef_construction": 4000}}), "beamWidth=4000"),
        (
            json!({"index_options": {"type": "int8_hnsw", "confidence_interval": 0.5}}),
            "confidenceInterval must be between 0.9 and 1.0 or 0; confidenceInterval=0.5",
        ),
        (
            json!({"index_options": {"type": "int8_flat", "rescore_vector": {"oversample": 0.5}}}),
            "[oversample] must be >= 1.0 and < 10.0, or 0",
        ),
        (
            json!({"element_type": "byte", "index_options": {"type": "int4_flat"}}),
            "[element_type] cannot be [byte] when using index type [int4_flat]",
        ),
        (json!({"analyzer": "x"}), "unknown parameter [analyzer]"),
    ];
    for (definition, part) in cases {
        let reason = field(definition.clone()).expect_err(&definition.to_string());
        assert!(reason.contains(part), "{definition}: {reason}");
    }
}

#[test]
fn options_only_grow() {
    let change = |from: Value, to: Value| {
        let old = field(json!({ "index_options": from })).unwrap();
        let definition = json!({"properties": {"v": {"type": "dense_vector", "index_options": to}}});
        old.merge_update(&definition).map_err(|error| error.reason())
    };
    let kind = |kind: &str| json!({ "type": kind });
    for (from, to) in [("flat", "int8_flat"), ("int8_flat", "hnsw"), ("hnsw", "int8_hnsw"), ("flat", "hnsw")]
    {
        change(kind(from), kind(to)).unwrap();
    }
    for (from, to) in [("int8_hnsw", "hnsw"), ("hnsw", "flat"), ("int8_flat", "flat")] {
        let reason = change(kind(from), kind(to)).unwrap_err();
        assert!(reason.contains("Cannot update parameter [index_options] from [{type="), "{reason}");
    }
    let m = |m: u8| json!({"type": "hnsw", "m": m});
    change(m(4), m(8)).unwrap();
    assert!(change(m(8), m(4)).is_err());
    // Nothing said keeps what is.
    let kept = change(kind("flat"), Value::Null).unwrap();
    assert_eq!(kept.to_json()["properties"]["v"]["index_options"]["type"], "flat");
}
