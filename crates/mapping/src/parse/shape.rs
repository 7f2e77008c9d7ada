//! What mappings hold, as JSON Schema for the OpenAPI document. Parameters that another file reads are declared there.

use sparrow_wire::shape::{
    Named, any, either, int, list, map, named, num, object, one, several, switch, text,
};

use super::text::{as_you_type_members, keyword_members, text_members};
use super::{alias, object_shapes};
use crate::semantic::semantic_members;
use crate::{chunking, completion, dense, sparse_options};

/// Types of fields whose definitions hold the same.
struct Group {
    types: &'static [&'static str],
    members: fn() -> Vec<Named>,
    about: &'static str,
    /// Members that a definition must have beside its type.
    needs: &'static [&'static str],
}

const fn group(types: &'static [&'static str], members: fn() -> Vec<Named>, about: &'static str) -> Group {
    Group { types, members, about, needs: &[] }
}

const GROUPS: &[Group] = &[
    group(&["text"], text_members, "A text, searched by its words."),
    group(&["match_only_text"], Vec::new, "A text, searched by its words, whose length does not count."),
    group(&["search_as_you_type"], as_you_type_members, "A text that is searched while somebody types."),
    group(&["keyword"], || joined([indexed(), keyword_members()]), "A value that is compared as a whole."),
    group(
        &["wildcard"],
        || vec![("ignore_above", int()), null_value()],
        "A value that is compared as a whole, also by patterns.",
    ),
    group(&["constant_keyword"], || vec![("value", any())], "The same value in every document."),
    group(&["geo_point"], geo_point, "A point on the earth."),
    group(
        &["integer_range", "long_range", "float_range", "double_range", "ip_range"],
        range,
        "Ranges of values.",
    ),
    group(&["date_range"], || joined([range(), dates(crate::date::DEFAULT_FORMAT)]), "Ranges of dates."),
    Group { needs: &["analyzer"], ..group(&["token_count"], token_count, "The number of words of a text.") },
    group(
        &["completion"],
        completion::members,
        "Texts with weights that the suggester of this name completes.",
    ),
    group(NUMBERS, number, "A number."),
    Group {
        needs: &["scaling_factor"],
        ..group(
            &["scaled_float"],
            || joined([number(), vec![("scaling_factor", num())]]),
            "A number, kept as a whole one.",
        )
    },
    group(&["date"], || joined([tolerant(), dates(crate::date::DEFAULT_FORMAT)]), "A date."),
    group(
        &["date_nanos"],
        || joined([tolerant(), dates(crate::date::DEFAULT_NANOS_FORMAT)]),
        "A date, to the nanosecond.",
    ),
    group(&["boolean"], tolerant, "True or false."),
    group(&["ip"], || joined([tolerant(), vec![dimension()]]), "An address of the Internet."),
    group(&["binary"], binary, "Bytes in base64, which cannot be searched."),
    group(&["sparse_vector"], sparse_vector, "Tokens with weights."),
    group(&["rank_features"], || vec![positive_impact()], "Features with weights."),
    group(&["rank_feature"], || vec![positive_impact(), null_value()], "A feature of the document."),
    group(&["dense_vector"], dense::members, "A vector, searched by its neighbours."),
];

/// Groups whose values neither go to other fields nor are indexed in other ways.
const ALONE: &[Group] = &[
    group(&["flattened"], flattened, "An object of any keys, each of whose values is compared as a whole."),
    group(
        &["semantic_text"],
        semantic_members,
        "A text of any length, split into passages and searched by meaning.",
    ),
];

const NUMBERS: &[&str] =
    &["long", "integer", "short", "byte", "unsigned_long", "double", "float", "half_float"];

fn joined<const N: usize>(parts: [Vec<Named>; N]) -> Vec<Named> {
    parts.concat()
}

/// What says how a value is indexed.
fn indexed() -> Vec<Named> {
    vec![("index", switch().preset(true)), ("doc_values", switch().preset(true)), ("store", switch())]
}

fn null_value() -> Named {
    ("null_value", any())
}

/// Options of types that may ignore a value of another type: those of [`indexed`], `ignore_malformed` and `null_value`.
fn tolerant() -> Vec<Named> {
    joined([indexed(), vec![("ignore_malformed", switch().preset(false)), null_value()]])
}

/// What Elasticsearch has and only its default is taken of.
fn dimension() -> Named {
    ("time_series_dimension", switch().preset(false))
}

fn number() -> Vec<Named> {
    joined([tolerant(), vec![dimension(), ("coerce", switch().preset(true))]])
}

fn range() -> Vec<Named> {
    joined([indexed(), vec![("coerce", switch().preset(true))]])
}

fn dates(format: &str) -> Vec<Named> {
    vec![("format", text().preset(format)), ("locale", text())]
}

fn geo_point() -> Vec<Named> {
    joined([tolerant(), vec![("ignore_z_value", switch().preset(true))]])
}

fn token_count() -> Vec<Named> {
    joined([indexed(), vec![("analyzer", text()), ("enable_position_increments", switch().preset(true))]])
}

fn flattened() -> Vec<Named> {
    let own = vec![
        null_value(),
        ("depth_limit", int().preset(super::leaf::FLATTENED_LEVELS)),
        ("ignore_above", int()),
        ("index_options", text()),
        ("eager_global_ordinals", switch()),
        ("similarity", text()),
        ("split_queries_on_whitespace", switch()),
        ("time_series_dimensions", list(text())),
    ];
    joined([indexed(), own])
}

fn binary() -> Vec<Named> {
    vec![("doc_values", switch()), ("store", switch())]
}

fn sparse_vector() -> Vec<Named> {
    vec![("store", switch()), ("index_options", sparse_options::options_shape())]
}

fn positive_impact() -> Named {
    ("positive_score_impact", switch().preset(true))
}

/// What parts of mappings hold, by the names in the OpenAPI document.
pub fn schemas() -> [Named; 4] {
    let own = |group: &Group| {
        object([("type", one(group.types))])
            .and((group.members)())
            .and([("meta", map(text()))])
            .needs(&[&["type"], group.needs].concat())
    };
    let copied = || {
        let about = "the same value, indexed in other ways";
        [("copy_to", several(text())), ("fields", map(named("Property")).about(about))]
    };
    let with_copies = GROUPS.iter().map(|group| own(group).and(copied()).about(group.about));
    let alone = ALONE.iter().map(|group| own(group).about(group.about));
    let fields = either(with_copies.chain(alone).chain([alias::alias_shape()]).chain(object_shapes()));
    let dynamic = switch().about("`true`, `false` or `strict`: what becomes of fields that nobody named");
    [
        ("ChunkingSettings", chunking::chunking_shape()),
        ("Dynamic", dynamic),
        ("Properties", map(named("Property")).about("Fields by their names.")),
        ("Property", fields.about("A field. Its type says which parameters it has.")),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Map, Value, json};

    use super::{ALONE, GROUPS};
    use crate::error::known_types::TYPES;
    use crate::{Mapping, MappingError};

    /// Whether the definition of a field of this type may have this member, whatever it holds.
    fn is_read(kind: &str, member: &str) -> bool {
        [json!("1"), json!(true), json!({}), json!([]), json!("x"), json!(1)].into_iter().any(|value| {
            let needed = match kind {
                "scaled_float" => json!({"scaling_factor": 1}),
                "token_count" => json!({"analyzer": "standard"}),
                _ => json!({}),
            };
            let Value::Object(mut definition) = needed else { unreachable!() };
            definition.insert("type".to_owned(), kind.into());
            definition.insert(member.to_owned(), value);
            let mapping = json!({"properties": {"f": Value::Object(definition)}});
            !matches!(Mapping::parse(&mapping), Err(MappingError::UnknownParameter { .. }))
        })
    }

    #[test]
    fn what_a_field_is_said_to_hold_is_what_is_read() {
        let groups = || GROUPS.iter().chain(ALONE);
        let all: BTreeSet<&str> =
            groups().flat_map(|group| (group.members)()).map(|(name, _)| name).collect();
        let mut wrong = Vec::new();
        for group in groups() {
            let declared: Vec<&str> = (group.members)().into_iter().map(|(name, _)| name).collect();
            for kind in group.types {
                wrong.extend(
                    all.iter()
                        .filter(|member| declared.contains(member) != is_read(kind, member))
                        .map(|member| format!("{kind}: {member}")),
                );
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn every_type_is_in_one_group() {
        let mut types: Vec<&str> =
            GROUPS.iter().chain(ALONE).flat_map(|group| group.types).copied().collect();
        types.extend(["alias", "nested", "object"]);
        types.sort_unstable();
        assert_eq!(types, TYPES);
    }

    #[test]
    fn what_a_mapping_is_said_to_hold_is_read() {
        for name in super::super::mapping_shape().names() {
            let definition = Map::from_iter([((*name).to_owned(), json!(false))]);
            let refused = Mapping::parse(&definition.into()).err();
            assert!(!matches!(refused, Some(MappingError::UnsupportedParameters { .. })), "{name}");
        }
    }
}
