//! What the bodies of queries hold: what is the same in those of several kinds.

pub(super) use sparrow_wire::shape::*;

/// A query inside another.
pub(super) fn sub_query() -> Shape {
    named("Query")
}

/// What every query takes.
pub(super) fn common() -> [Named; 2] {
    [
        ("boost", num().about("factor of its score").preset(1)),
        ("_name", text().about("name under which a hit tells that it matched: `matched_queries`")),
    ]
}

/// The body of a query that has these members, and those that every query takes.
pub(super) fn clause(members: impl IntoIterator<Item = Named>) -> Shape {
    object(members.into_iter().chain(common()))
}

/// A body with one member, which has the name of a field.
pub(super) fn of_field(values: Shape) -> Shape {
    open().alone().by_field(values)
}

/// A body about one field: `{"field": value}`, or `{"field": {…}}` with options, of which those in `values` hold the value.
pub(super) fn field_or_value(values: &[&'static str], options: impl IntoIterator<Item = Named>) -> Shape {
    let members = values.iter().map(|name| (*name, scalar()));
    let object = clause(members.chain(options));
    of_field(either([scalar(), if values.len() == 1 { object.needs(values) } else { object }]))
}
