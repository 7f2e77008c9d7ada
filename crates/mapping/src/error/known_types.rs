//! The names of types of fields, for the message about one that there is not.

use sparrow_wire::suggest::suggestions;

/// All types of fields.
pub const TYPES: &[&str] = &[
    "alias",
    "binary",
    "boolean",
    "byte",
    "completion",
    "constant_keyword",
    "date",
    "date_nanos",
    "date_range",
    "dense_vector",
    "double",
    "double_range",
    "flattened",
    "float",
    "float_range",
    "geo_point",
    "half_float",
    "integer",
    "integer_range",
    "ip",
    "ip_range",
    "keyword",
    "long",
    "long_range",
    "match_only_text",
    "nested",
    "object",
    "rank_feature",
    "rank_features",
    "scaled_float",
    "search_as_you_type",
    "semantic_text",
    "short",
    "sparse_vector",
    "text",
    "token_count",
    "unsigned_long",
    "wildcard",
];

/// Types that Elasticsearch has and this server has not.
pub const ELSEWHERE: &[&str] = &[
    "aggregate_metric_double",
    "annotated_text",
    "geo_shape",
    "histogram",
    "join",
    "murmur3",
    "passthrough",
    "percolator",
    "point",
    "rank_vectors",
    "shape",
    "version",
];

/// End of the message about a type that there is not: which may have been meant, and which there are. Nothing for a name that resembles
/// none, about which Elasticsearch says no more.
pub fn other_types(type_name: &str) -> String {
    let there_are = || format!("There are [{}]", TYPES.join(", "));
    let similar = suggestions(type_name, TYPES);
    if ELSEWHERE.contains(&type_name) {
        return format!(" This server has no such type. {}", there_are());
    }
    if similar.is_empty() {
        String::new()
    } else {
        format!(" Did you mean [{}]? {}", similar.join(", "), there_are())
    }
}

#[cfg(test)]
mod tests {
    use super::other_types;

    #[test]
    fn a_name_that_resembles_none_is_answered_as_by_elasticsearch() {
        assert_eq!(other_types("nope"), "");
        assert!(other_types("semantictext").starts_with(" Did you mean [semantic_text]? There are [alias, "));
        assert!(other_types("join").starts_with(" This server has no such type. There are [alias, "));
    }
}
