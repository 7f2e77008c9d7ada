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
    for kind in ["int4_flat", "int4_hnsw", "bbq_flat", "bbq_hnsw"] {
        let graph = if kind.ends_with("hnsw") { json!({"m": 16, "ef_construction": 100}) } else { json!({}) };
        let more = match kind.starts_with("bbq") {
            true => json!({"rescore_vector": {"oversample": 3.0}}),
            false => json!({"confidence_interval": 0.0}),
        };
        let mut wanted = json!({ "type": kind });
        for part in [graph, more] {
            wanted.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        }
        assert_eq!(options(json!({"index_options": {"type": kind}})), wanted);
        assert_eq!(options(json!({"dims": 64, "index_options": wanted})), wanted);
    }
    let on_disk = json!({"type": "bbq_hnsw", "m": 16, "ef_construction": 100, "on_disk_rescore": true,
        "rescore_vector": {"oversample": 10.0}});
    assert_eq!(options(json!({ "index_options": on_disk })), on_disk);
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
        (json!({"index_options": {"type": "bbq_disk"}}), "[bbq_disk] for field [v] is not supported"),
        (
            json!({"dims": 63, "index_options": {"type": "bbq_flat"}}),
            "bbq_flat does not support dimensions fewer than 64; provided=63",
        ),
        (
            json!({"dims": 5, "index_options": {"type": "int4_hnsw"}}),
            "int4_hnsw only supports even dimensions; provided=5",
        ),
        (
            json!({"index_options": {"type": "bbq_hnsw", "confidence_interval": 0.95}}),
            "unsupported parameters:  [confidence_interval : 0.95]",
        ),
        (
            json!({"index_options": {"type": "bbq_flat", "on_disk_rescore": true}}),
            "on_disk_rescore is only supported for indexed and quantized vector types",
        ),
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
            "oversample must be greater than 1 or exactly 0",
        ),
        (
            json!({"index_options": {"type": "bbq_hnsw", "rescore_vector": {"oversample": 10.5}}}),
            "oversample must be less than or equal to 10",
        ),
        (
            json!({"index_options": {"type": "bbq_hnsw", "rescore_vector": {}}}),
            "Invalid rescore_vector value. Missing required field oversample",
        ),
        (
            json!({"index_options": {"type": "hnsw", "rescore_vector": {"oversample": 2}}}),
            "unsupported parameters:  [rescore_vector : {oversample=2}]",
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
    // As in Elasticsearch, from each type to these others.
    let allowed = [
        ("flat", "hnsw int8_hnsw int4_hnsw bbq_hnsw int8_flat int4_flat bbq_flat"),
        ("int8_flat", "hnsw int8_hnsw int4_hnsw bbq_hnsw int4_flat bbq_flat"),
        ("int4_flat", "hnsw int8_hnsw int4_hnsw bbq_hnsw bbq_flat"),
        ("bbq_flat", "bbq_hnsw"),
        ("hnsw", "int8_hnsw int4_hnsw bbq_hnsw"),
        ("int8_hnsw", "int4_hnsw bbq_hnsw"),
        ("int4_hnsw", "bbq_hnsw"),
        ("bbq_hnsw", ""),
    ];
    for (from, others) in allowed {
        for (to, _) in allowed {
            let changed = change(kind(from), kind(to));
            if from == to || others.split(' ').any(|other| other == to) {
                assert_eq!(
                    changed.unwrap().to_json()["properties"]["v"]["index_options"]["type"],
                    to,
                    "{from}"
                );
            } else {
                let reason = changed.unwrap_err();
                assert!(reason.contains("Cannot update parameter [index_options] from [{type="), "{reason}");
            }
        }
    }
    let m = |m: u8| json!({"type": "hnsw", "m": m});
    change(m(4), m(8)).unwrap();
    assert!(change(m(8), m(4)).is_err());
    let with_dims = field(json!({"dims": 3, "index_options": kind("flat")})).unwrap();
    let update = json!({"properties": {"v": {"type": "dense_vector", "index_options": kind("bbq_hnsw")}}});
    let reason = with_dims.merge_update(&update).unwrap_err().reason();
    assert!(reason.contains("does not support dimensions fewer than 64; provided=3"), "{reason}");
    // Nothing said keeps what is.
    let kept = change(kind("flat"), Value::Null).unwrap();
    assert_eq!(kept.to_json()["properties"]["v"]["index_options"]["type"], "flat");
}
