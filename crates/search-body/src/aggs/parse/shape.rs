//! What the bodies of aggregations hold: what is the same in those of several kinds.

pub use sparrow_wire::shape::*;

pub fn query() -> Shape {
    named("Query")
}

pub fn field() -> Named {
    ("field", text())
}

pub fn missing() -> Named {
    ("missing", scalar().about("value of documents that have none"))
}

pub fn format() -> Named {
    ("format", text().about("how keys and values are written"))
}

pub fn value_type() -> Named {
    let types = ["string", "long", "integer", "short", "byte", "double", "float", "number", "numeric"];
    ("value_type", one(&[&types[..], &["date", "boolean"]].concat()))
}

pub fn time_zone() -> Named {
    ("time_zone", text().about("such as `Europe/Berlin`"))
}

/// What says which values are aggregated, and of what type they are.
pub fn typed() -> [Named; 4] {
    [field(), missing(), format(), value_type()]
}

/// What says which values are aggregated, whose type follows from the aggregation.
pub fn untyped() -> [Named; 3] {
    [field(), missing(), format()]
}

/// The body of an aggregation of the values of a field, with these members and its own.
pub fn of_values(source: impl IntoIterator<Item = Named>, own: impl IntoIterator<Item = Named>) -> Shape {
    object(source).and(own).needs(&["field"])
}

/// Whether an answer is an object by keys.
pub fn keyed(preset: bool) -> Named {
    ("keyed", flag().about("an object by keys instead of a list").preset(preset))
}

pub fn shard_size() -> Named {
    ("shard_size", int())
}

/// How many documents a bucket has at least.
pub fn min_doc_count(preset: u64) -> Named {
    ("min_doc_count", int().about("documents that a bucket has at least").preset(preset))
}

/// An order of buckets.
pub fn order() -> Named {
    ("order", several(map(one(&["asc", "desc", "ASC", "DESC"]))))
}
